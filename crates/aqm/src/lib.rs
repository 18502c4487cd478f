//! Queue disciplines for congested links: AQM algorithms, schedulers, and the link that serves
//! them.
//!
//! They are pure: no clock, no I/O, no allocation per packet. Time and random numbers are
//! arguments.
//!
//! ```
//! use sojourn_aqm::{Link, LinkSpec, Packet, Rate, Setting, Span, Time};
//! use rand_core::SeedableRng;
//!
//! let spec = LinkSpec { rate: Rate(10_000_000), delay: Span::ms(25) };
//! let made = sojourn_aqm::build("codel", &[("limit", Setting::Text("300kB"))], spec.rate)?;
//! let mut link = Link::new(spec, made.qdisc, rand_pcg::Pcg64Mcg::seed_from_u64(1))?;
//!
//! link.push(Time::ZERO, Packet { len: 1250, body: 7, ..Packet::default() });
//! let due = link.next_poll().unwrap();                          // 1 ms to send, 25 ms to travel
//! assert_eq!(due, Time::ZERO + Span::ms(26));
//! assert_eq!(link.poll(due).unwrap().body, 7);
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```
//!
//! Modules: [`units`] has the quantities; [`Packet`] is the descriptor that queues hold. An AQM
//! algorithm ([`aqm::Aqm`]) manages one FIFO queue ([`fifo`]). A discipline ([`qdisc::Qdisc`]) is
//! the interface to a link, and [`registry::REGISTRY`] lists all of them. [`Link`] adds rate and
//! delay, counts packets in a [`LinkStats`], and optionally writes a packet log ([`packet_log`]).
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests use small numbers"
    )
)]

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

extern crate alloc;
#[cfg(test)]
#[macro_use]
extern crate std;

pub mod aqm;
pub mod cast;
pub mod context;
pub mod error;
pub mod fifo;
pub mod link;
pub mod missing;
pub mod packet;
pub mod packet_log;
pub mod params;
pub mod qdisc;
pub mod random;
pub mod registry;
pub mod sched;
pub mod stats;
#[cfg(test)]
mod testing;
mod timer;
pub mod units;

pub use context::{Context, DropReason, Dropped, Marks};
pub use error::{Error, Result};
pub use link::{Link, LinkSpec, Opportunities};
pub use packet::{Ecn, Packet};
pub use params::Setting;
pub use random::Random;
pub use registry::{Built, build};
pub use stats::LinkStats;
pub use units::{Bytes, Rate, Size, Span, Time};
