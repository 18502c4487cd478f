//! Results of a run, and the registries as JSON.

pub mod outcome;
pub(crate) mod specs;
