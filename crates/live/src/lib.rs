//! Real packets through the same [`sojourn_aqm::Link`] that the simulator drives: a pump reads
//! them from one file descriptor and writes them to another, once they have crossed the link.
//!
//! The map: [`ip`] makes a ticket of a packet's header, and writes marks into it; [`pool`] keeps
//! the bytes; a [`Line`] is a link with what is planned for it. A [`Hop`] is one direction over one
//! link, a [`Net`] many links, with hosts at both ends; both are told the time as everything else
//! is. [`pump`] reads the clock, in one line, and moves the bytes; [`capture`] writes what happened
//! for Wireshark.
//!
//! Every decision is made in virtual time: a thread that wakes up late writes a packet late, and
//! changes nothing else. The descriptors are usually TUN devices, but a test uses socketpairs.
#![cfg(target_os = "linux")]
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

pub mod capture;
pub mod hop;
pub mod ip;
pub mod line;
pub mod net;
pub mod pool;
pub mod pump;

pub use capture::Capture;
pub use hop::{Hop, HopSpec};
pub use line::Line;
pub use net::{Net, NetSpec, Way};
pub use pump::{Lane, Pump, Report, Start};
