//! A parsed scenario: links, flows, changes and limits.

pub mod builder;
pub mod changes;
pub(crate) mod check;
pub mod flows;
pub mod link_trace;
pub mod links;
pub mod loss;
pub(crate) mod memory;
pub mod registries;
pub mod scenario;
