//! Packet-level simulator of TCP and UDP flows over links with queue disciplines. [`run`] is a pure
//! function from a [`Scenario`] to an [`Outcome`]: the same scenario gives the same bytes on every
//! machine.
//!
//! ```
//! let scenario = sojourn_sim::Scenario::from_json(r#"{
//!     "duration": "10s", "warmup": "2s",
//!     "links": {"up": {"rate": "10mbit", "delay": "20ms", "qdisc": "codel"}},
//!     "flows": [{"name": "upload", "path": ["up"], "rtt": "50ms"}]
//! }"#)?;
//! let outcome = sojourn_sim::run(&scenario);
//! assert!(outcome.summary["links"]["up"]["utilisation"].as_f64().unwrap() > 0.8);
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```
//!
//! [`Scenario::builder`] makes a scenario from typed values instead; [`config`] has an example.
//! [`Simulation`] runs a scenario in steps, and changes it meanwhile. [`replay()`] sends recorded
//! arrivals through one link.
//!
//! A discipline, a congestion control or a traffic source of another crate is simulated by name:
//! put it into [`Registries`] and parse the scenario with [`Scenario::from_json_with`].
//!
//! # Features
//!
//! Without `descriptions`, on by default, parameters, disciplines, TCPs and keys have empty
//! descriptions. The crate needs `std` and runs on every platform.
//!
//! # Modules
//!
//! [`config`] has the parts of a scenario and their builders, [`lines`] access lines by name,
//! [`traffic`] the sources, and [`tcp`] the TCPs. [`prelude`] has the names that most programs
//! need.
#![warn(missing_debug_implementations, unreachable_pub)]
#![deny(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests use small numbers"
    )
)]

/// Compiles and runs the example of this crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct CrateReadme;

mod collections;
pub mod config;
mod endpoint;
mod engine;
mod external_state;
#[doc(hidden)]
pub mod internals;
pub mod lines;
mod missing;
mod output;
mod parsing;
pub mod prelude;
mod random_stream;
mod replay;
pub mod tcp;
pub mod traffic;

pub use config::check::{check, check_with};
pub use config::registries::Registries;
pub use config::scenario::Scenario;
pub use engine::simulation::{
    Fate, FlowState, LinkState, Progress, Simulation, TappedContent, TappedFlow, TappedPacket,
    TappedProtocol, Threads, run, run_on_threads, run_tapped, run_with_progress,
};
pub use output::outcome::{Column, Outcome, Summary};
pub use output::specs::registry_json;
pub use parsing::distribution::{EmpiricalTable, SIZE_TABLES};
pub use replay::{Arrival, Decision, Replay, ReplayOptions, replay};
