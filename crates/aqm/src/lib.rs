//! Queue disciplines for congested links: AQM algorithms, schedulers, and the link that serves
//! them.
//!
//! They are pure: no clock, no I/O, no allocation per packet. Time and random numbers are
//! arguments.
//!
//! ```
//! use rand_core::SeedableRng;
//! use sojourn_aqm::aqm::codel::CoDel;
//! use sojourn_aqm::{Algorithm, Link, LinkSpec, Packet, Rate, Size, Span, Time};
//!
//! let spec = LinkSpec::new(Rate(10_000_000), Span::ms(25));
//! let codel = CoDel::builder()
//!     .queue(|queue| queue.limit(Size::Bytes(300_000)))
//!     .aqm(|codel| codel.target(Span::ms(15)))
//!     .build(spec.rate)?;
//! let mut link = Link::new(spec, codel, rand_pcg::Pcg64Mcg::seed_from_u64(1))?;
//!
//! link.push(Time::ZERO, Packet { len: 1250, body: 7, ..Packet::default() });
//! let due = link.next_poll().unwrap();                          // 1 ms to send, 25 ms to travel
//! assert_eq!(due, Time::ZERO + Span::ms(26));
//! assert_eq!(link.poll(due).unwrap().body, 7);
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```
//!
//! The text form builds by name, for configuration files:
//! `build("codel", &[("target", Setting::Text("15ms"))], rate)`; see [`registry`].
//!
//! # Features
//!
//! None: the crate has no optional features. It is `no_std` with `alloc`, and depends on `libm` and
//! `rand_core`.
//!
//! # Modules
//!
//! [`units`] has the quantities; [`Packet`] is the descriptor that queues hold. An AQM
//! algorithm ([`aqm::Aqm`]) manages one FIFO queue ([`fifo`]). A discipline ([`Qdisc`]) is
//! the interface to a link, and [`registry::REGISTRY`] lists all of them. [`Link`] adds rate and
//! delay, counts packets in a [`LinkStats`], and optionally writes a packet log ([`packet_log`]).
//! [`tc`] reads and writes disciplines as `tc` of Linux does.
#![warn(missing_debug_implementations)]
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

/// Compiles and runs the example of this crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct CrateReadme;

extern crate alloc;
#[cfg(test)]
#[macro_use]
extern crate std;

pub mod aqm;
mod build;
pub mod cast;
pub mod ce_threshold;
pub mod context;
mod entry;
pub mod error;
pub mod fifo;
pub mod link;
pub mod missing;
pub mod packet;
pub mod packet_log;
pub mod params;
mod qdisc;
pub mod random;
pub mod registry;
pub mod sched;
pub mod stats;
pub mod tc;
#[cfg(test)]
mod testing;
mod timer;
pub mod units;

pub use aqm::Algorithm;
pub use build::{Build, Builder, Env};
pub use context::{Context, DropReason, Dropped, Marks};
pub use entry::{Built, External, QdiscEntry};
pub use error::{Error, ErrorKind, Result};
pub use link::{Link, LinkSpec, Opportunities, TokenBucket};
pub use packet::{Ecn, Packet, TcpFlags};
pub use params::Setting;
pub use qdisc::{Backlog, Qdisc};
pub use random::Random;
pub use registry::build;
pub use stats::LinkStats;
pub use units::{Bytes, Rate, Size, Span, Threshold, Time};
