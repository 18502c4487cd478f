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
pub(crate) mod sampling;
pub mod scenario;

use crate::parsing::keys::Table;

/// All tables of a scenario, outermost first.
pub static TABLES: [&Table; 7] = [
    &scenario::SCENARIO,
    &links::LINK,
    &loss::LOSS,
    &link_trace::TRACE,
    &flows::FLOW,
    &changes::CHANGE,
    &changes::LINK_CHANGE,
];
