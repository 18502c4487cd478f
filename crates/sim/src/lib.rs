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
//! Modules: [`scenario`] parses and validates the JSON; `world` holds links and flows and processes
//! events in order ([`slots`]); [`flow`] is the pair of endpoints of a flow, with [`tcp`] and a
//! [`source`]; [`outcome`] is the result; [`replay`] sends recorded arrivals through one link.
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

mod acks;
pub mod cc;
pub mod cdf;
pub mod changes;
mod check;
pub mod crowd;
pub mod dist;
mod fetch;
pub mod flow;
pub mod keys;
pub mod link_def;
mod memory;
pub mod missing;
pub mod onoff;
pub mod outcome;
mod pace;
mod places;
pub mod read;
mod replay;
pub mod scenario;
pub mod script;
pub mod series;
pub mod slots;
pub mod source;
mod specs;
pub mod tcp;
pub mod timetable;
pub mod trace;
pub mod udp;
pub mod wire;
mod world;

pub use check::check;
pub use outcome::{Column, Outcome};
pub use replay::{Arrival, Decision, Replay, ReplayOptions, replay};
pub use scenario::Scenario;
pub use specs::registry_json;
pub use world::{Progress, run};
