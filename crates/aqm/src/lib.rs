//! Queue disciplines for congested links: AQM algorithms, schedulers, and the link that serves
//! them.
//!
//! They are pure: no clock, no I/O, no allocation per packet. Time and random numbers are
//! arguments.
//!
//! ```
//! use sojourn_aqm::aqm::codel::CoDel;
//! use sojourn_aqm::{Aqm, Link, LinkSpec, Packet, Pcg, Rate, Size, Span, Time};
//!
//! let spec = LinkSpec::new(Rate(10_000_000), Span::ms(25));
//! let codel = CoDel::builder()
//!     .queue(|queue| queue.limit(Size::Bytes(300_000)))
//!     .aqm(|codel| codel.target(Span::ms(15)))
//!     .build(spec.rate)?;
//! let mut link = Link::new(spec, codel, Pcg::new(1))?;
//!
//! link.push(Time::ZERO, Packet { len: 1250, body: 7, ..Packet::default() });
//! let due = link.next_poll().unwrap();                          // 1 ms to send, 25 ms to travel
//! assert_eq!(due, Time::ZERO + Span::ms(26));
//! assert_eq!(link.poll(due).unwrap().body, 7);
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```
//!
//! The text form builds by name, for configuration files: `build_text("codel(target=15ms)", rate)`;
//! see [`build_text`] and [`registry`]. A [`TimedLink`] also carries bodies of any type, with loss
//! and jitter.
//!
//! # Features
//!
//! The crate is `no_std` with `alloc`, and depends on `libm` and `rand_core`. By default it has
//! everything but `std`.
//!
//! - Families of disciplines: `afd`, `blue`, `cake`, `classful`, `codel`, `fair`, `l4s`, `pi`,
//!   `red` and `xcp`. Tail drop is in every build.
//! - `shaped-links`: links with [`Opportunities`], a [`TokenBucket`], an [`Overhead`], or outages.
//! - `batches`: sojourn times counted in batches, for simulations of many links.
//! - `class-bytes`: [`Link::count_by_class`], for a [`SharedBuffer`] with a queue per class.
//! - `telemetry`: [`Link::enable_telemetry`], for senders that read the state of links.
//! - `tc`: the words of `tc` of Linux, with `cake` and `classful`.
//! - `full`: all of these.
//! - `messages`: the value and the allowed range in errors about typed parameters.
//! - `descriptions`: descriptions of parameters and disciplines. Without it, they are empty.
//! - `snapshot`: saving and loading. Without it, both return an error.
//! - `std`: `Clock`, which converts between `std::time::Instant` and [`Time`].
//!
//! # Modules
//!
//! A [`Link`] serves a discipline ([`Qdisc`]): it adds rate and delay, counts packets in a
//! [`LinkStats`], and optionally writes a packet log ([`LogEntry`]). An AQM algorithm
//! ([`aqm::Aqm`]) manages one FIFO queue ([`QueueView`]); [`sched`] has the disciplines with many
//! queues. [`registry::REGISTRY`] lists all of them, [`params`](mod@params) describes their
//! parameters, and [`tc`] reads and writes them as `tc` of Linux does. [`units`] has the
//! quantities; [`Packet`] is the descriptor that queues hold. [`prelude`] has the names that most
//! programs need.
#![warn(missing_debug_implementations)]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "full"),
    allow(dead_code, unused_imports, reason = "families of disciplines share parts")
)]
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

/// Compiles and runs the examples of the page about embedding.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../../../docs/how-to/embed.md")]
pub struct Embed;

extern crate alloc;
// Derived code names the crate.
extern crate self as sojourn_aqm;
#[cfg(any(test, feature = "std"))]
#[cfg_attr(test, macro_use)]
extern crate std;

pub mod aqm;
mod bucket;
mod build;
#[doc(hidden)]
pub mod cast;
mod ce_threshold;
mod checked_qdisc;
mod class_groups;
#[cfg(feature = "std")]
mod clock;
mod context;
#[doc(hidden)]
pub mod dscp;
mod entry;
pub mod error;
mod fifo;
mod flow_header;
mod link;
#[doc(hidden)]
pub mod missing;
mod overhead;
mod packet;
mod packet_log;
pub mod params;
pub mod prelude;
mod qdisc;
#[doc(hidden)]
pub mod random;
pub mod registry;
pub mod sched;
mod shared_buffer;
pub mod snapshot;
#[doc(hidden)]
pub mod sorting;
mod stats;
#[cfg(feature = "tc")]
pub mod tc;
#[cfg(test)]
mod testing;
mod text_form;
mod timed_link;
mod timer;
pub mod units;
pub mod wire;

pub use aqm::Aqm;
pub use build::{Build, Builder, Env};
pub use ce_threshold::EcnSelector;
pub use checked_qdisc::CheckedQdisc;
pub use class_groups::ClassGroups;
#[cfg(feature = "std")]
pub use clock::Clock;
pub use context::{Context, DropReason, Dropped, Marks};
pub use entry::{Built, External, QdiscEntry};
pub use error::{Error, ErrorKind, Result};
pub use fifo::{QueueView, SingleFifo};
pub use flow_header::{FlowHeader, Protocol};
pub use link::{HopTelemetry, LEN_MAX, Link, LinkSpec, Served};
#[cfg(feature = "shaped-links")]
pub use link::{Opportunities, TokenBucket};
pub use overhead::{Framing, Overhead};
pub use packet::{Ecn, Packet, TcpFlags, XcpHeader};
pub use packet_log::{LogEntry, PacketLog};
pub use params::Setting;
pub use qdisc::{Backlog, Peek, Qdisc};
pub use random::{CloneRandom, FiveTuple, Pcg, Random};
pub use registry::{Registry, build};
// For disciplines that contain disciplines, which the registry lists.
pub(crate) use registry::find as find_discipline;
pub use shared_buffer::{QueueShare, SharedBuffer};
pub use snapshot::Snapshot;
pub use stats::{Histogram, LinkStats, RUN_MAX};
pub use text_form::{build_text, text_of};
pub use timed_link::{Delivery, TimedLink, TimedLinkBuilder, Undelivered};
pub use units::{Bytes, Rate, Size, Span, Threshold, Time};
