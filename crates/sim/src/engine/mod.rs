//! The event loop and what moves in it: flows, session groups, scheduled changes.

pub mod application;
pub mod change_schedule;
pub mod flow;
mod gauges;
mod htb;
pub mod random_stream;
pub(crate) mod replay;
pub mod script;
pub mod series;
pub mod sessions;
pub(crate) mod simulation;
pub mod transfer;
mod xorshift;
