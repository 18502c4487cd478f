//! A scenario: links, flows, changes, losses and traces, from text or from typed values.
//!
//! ```
//! use sojourn_aqm::Aqm;
//! use sojourn_aqm::aqm::codel::CoDel;
//! use sojourn_sim::prelude::*;
//!
//! let codel = CoDel::builder().aqm(|codel| codel.target(Span::ms(15)));
//! let voice = Source::Cbr(Cbr { rate: Rate(96_000), ..Cbr::default() });
//! let scenario = Scenario::builder(Span::s(10))
//!     .warmup(Span::s(2))
//!     .link("up", LinkBuilder::new(Rate(10_000_000), Span::ms(20)).discipline(&codel))
//!     .flow("upload", FlowBuilder::new(["up"]).rtt(Span::ms(50)))
//!     .flow("voice", FlowBuilder::new(["up"]).source(voice))
//!     .build()?;
//! assert!(run_with_progress(&scenario, &mut |_| true).is_some());
//!
//! let silent = Source::Cbr(Cbr { rate: Rate(0), ..Cbr::default() });
//! let error = Scenario::builder(Span::s(10))
//!     .link("up", LinkBuilder::new(Rate(10_000_000), Span::ms(20)))
//!     .flow("voice", FlowBuilder::new(["up"]).source(silent))
//!     .build()
//!     .unwrap_err();
//! assert_eq!(error.path(), "flows.voice.source.rate");
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```

pub(crate) mod builder;
pub(crate) mod canonical;
pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod discipline_builder;
mod disciplines;
pub(crate) mod flow_routes;
pub(crate) mod flows;
pub(crate) mod impairment_changes;
pub(crate) mod impairments;
pub(crate) mod link_process;
pub(crate) mod link_trace;
pub(crate) mod links;
pub(crate) mod loss;
pub(crate) mod memory;
pub(crate) mod registries;
pub(crate) mod sampling;
pub(crate) mod scenario;
mod senders;
mod shared;
pub(crate) mod spread;
pub(crate) mod switch_classes;
pub(crate) mod switches;
pub(crate) mod tc_links;
pub(crate) mod topology;
pub(crate) mod warm_change;
pub(crate) mod warm_from;

pub use crate::parsing::distribution::{Cdf, Countable, Distribution};
pub use builder::{ClassBuilder, FlowBuilder, LinkBuilder, ScenarioBuilder, SwitchBuilder};
pub use changes::{Change, Queued, UpOrDown};
pub use flow_routes::RoutePair;
pub use flows::{Capable, FlowConfig};
pub use impairment_changes::NewImpairments;
pub use link_process::{LinkProcess, ProcessChanges};
pub use link_trace::{LinkChange, LinkTrace};
pub use links::{LinkConfig, NewParam, parse_links, parse_links_with};
pub use sojourn_aqm::wire::LossModel;
pub use spread::{HashFunctions, Spread, SpreadUnit};
pub use switch_classes::SwitchClass;
pub use switches::SwitchConfig;

use crate::parsing::keys::Table;

/// All tables of a scenario, outermost first.
#[doc(hidden)]
pub static TABLES: [&Table; 17] = [
    &scenario::SCENARIO,
    &links::LINK,
    &loss::LOSS,
    &impairments::JITTER,
    &impairments::REORDER,
    &impairments::DUPLICATE,
    &impairments::CORRUPT,
    &impairments::OUTAGES,
    &impairments::SLOT,
    &link_trace::TRACE,
    &link_process::PROCESS,
    &switches::SWITCH,
    &switch_classes::CLASS,
    &flows::FLOW,
    &changes::CHANGE,
    &changes::LINK_CHANGE,
    &warm_from::WARM_FROM,
];
