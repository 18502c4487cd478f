//! Real packets through the same [`sojourn_aqm::Link`] as in the simulator: a pump reads them from
//! one file descriptor and writes them to another once they have left the link.
//!
//! # Features
//!
//! None: the crate has no optional features. It needs Linux, and is empty on other systems.
//!
//! # Modules
//!
//! [`ip`] parses headers and sets marks; [`corrupt`] changes a bit; [`offload`] splits and joins
//! packets of TCP; [`pool`] holds the bytes of packets; a [`TimedLink`] is a link with scheduled events. A [`Direction`] is
//! one direction over one link, a [`Network`] is a network of links with hosts at both ends; both
//! are passed the time. [`pump`] reads the clock, in one place, and moves the bytes; [`capture`]
//! writes a packet capture for Wireshark.
//!
//! # Time
//!
//! All decisions are made in virtual time: a thread that wakes up late delivers packets late, but
//! decides the same. The descriptors are usually TUN devices; tests use socket pairs.
#![warn(missing_debug_implementations)]
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
pub mod corrupt;
pub mod direction;
pub mod ip;
pub mod network;
pub mod offload;
pub mod pool;
pub mod pump;
pub mod timed_link;

pub use capture::Capture;
pub use direction::{Direction, DirectionConfig};
pub use network::{Network, NetworkConfig, Route};
pub use pump::{Pump, PumpThread, Report, Start};
pub use timed_link::TimedLink;
