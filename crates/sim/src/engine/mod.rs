//! The event loop and what moves in it: flows, session groups, scheduled changes.

pub(crate) mod change_schedule;
pub(crate) mod flow;
mod gauges;
pub mod script;
pub(crate) mod series;
pub(crate) mod sessions;
pub(crate) mod simulation;
