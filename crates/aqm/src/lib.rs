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
//! let due = link.wake().unwrap();                          // 1 ms to send, 25 ms to travel
//! assert_eq!(due, Time::ZERO + Span::ms(26));
//! assert_eq!(link.poll(due).unwrap().body, 7);
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```
//!
//! Modules: [`units`] has the quantities; [`Packet`] is the descriptor that queues hold. An AQM
//! algorithm ([`aqm::Aqm`]) manages one FIFO queue ([`fifo`]). A discipline ([`sched::Qdisc`]) is
//! the interface to a link, and [`sched::REGISTRY`] lists all of them. [`Link`] adds rate and
//! delay, counts packets in a [`Tally`], and optionally writes a packet log ([`tape`]).
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
mod clocked;
pub mod cx;
pub mod dice;
pub mod error;
pub mod fifo;
pub mod hold;
pub mod link;
pub mod missing;
pub mod order;
pub mod packet;
pub mod params;
mod ring;
pub mod sched;
mod tags;
pub mod tally;
pub mod tape;
#[cfg(test)]
mod testing;
mod timer;
mod tree;
pub mod units;

pub use cx::{Cx, Lost, Marks, Why};
pub use dice::Dice;
pub use error::{Error, Result};
pub use link::{Link, LinkSpec, Opportunities};
pub use packet::{Ecn, Packet};
pub use params::Setting;
pub use sched::{Made, build};
pub use tally::Tally;
pub use units::{Bytes, Rate, Size, Span, Time};
