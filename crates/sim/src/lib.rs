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
//! let outcome = sojourn_sim::run(&scenario, &mut |_| true).expect("the callback never cancels");
//! assert!(outcome.summary["links"]["up"]["utilisation"].as_f64().unwrap() > 0.8);
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```
//!
//! [`config::builder`] makes a scenario from typed values instead. A discipline, a congestion
//! control or a traffic source of another crate is simulated by name with
//! [`Scenario::from_json_with`].
//!
//! # Features
//!
//! None: the crate has no optional features. It needs `std` and runs on every platform.
//!
//! # Modules
//!
//! Each uses only those above it: [`collections`] has the event queue, [`parsing`] reads
//! values of scenario files, [`traffic`] has the sources, [`endpoint`] the transport protocols,
//! [`config`] a parsed scenario, [`output`] the results; [`engine`] runs a scenario, with
//! [`engine::flow`] as the pair of endpoints of a flow, and [`replay`] sends recorded arrivals
//! through one link.
#![warn(missing_debug_implementations)]
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

pub mod collections;
pub mod config;
pub mod endpoint;
pub mod engine;
pub mod missing;
pub mod output;
pub mod parsing;
pub mod traffic;

pub use config::check::{check, check_with};
pub use config::registries::Registries;
pub use config::scenario::Scenario;
pub use engine::replay::{Arrival, Decision, Replay, ReplayOptions, replay};
pub use engine::simulation::{FlowState, LinkState, Progress, Simulation, run};
pub use output::outcome::{Column, Outcome};
pub use output::specs::registry_json;
