//! Real packets through the same [`sojourn_aqm::Link`] as in the simulator: a pump reads them from
//! one file descriptor and writes them to another once they have left the link.
//!
//! # Features
//!
//! None: the crate has no optional features. It needs Linux; on other systems it has [`pcapng`]
//! only.
//!
//! # Modules
//!
//! [`ip`] parses headers and sets marks; [`corrupt`] changes a bit; [`offload`] splits and joins
//! packets of TCP; [`pool`] holds the bytes of packets; a [`TimedLink`] is a link with scheduled
//! events. A [`Direction`] is one direction over one link, a [`Network`] is a network of links with
//! hosts at both ends; both are passed the time. [`pump`] reads the clock, in one place, and moves
//! the bytes; [`capture`] writes a packet capture for Wireshark, in blocks of [`pcapng`].
//!
//! # Time
//!
//! All decisions are made in virtual time: a thread that wakes up late delivers packets late, but
//! decides the same. The descriptors are usually TUN devices; tests use socket pairs.
#![warn(missing_debug_implementations)]
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

#[cfg(target_os = "linux")]
pub mod capture;
#[cfg(target_os = "linux")]
pub mod corrupt;
#[cfg(target_os = "linux")]
pub mod direction;
#[cfg(target_os = "linux")]
pub mod ip;
#[cfg(target_os = "linux")]
pub mod network;
#[cfg(target_os = "linux")]
pub mod offload;
pub mod pcapng;
#[cfg(target_os = "linux")]
pub mod pool;
#[cfg(target_os = "linux")]
pub mod pump;
#[cfg(target_os = "linux")]
pub mod timed_link;

#[cfg(target_os = "linux")]
pub use capture::Capture;
#[cfg(target_os = "linux")]
pub use direction::{Direction, DirectionConfig};
#[cfg(target_os = "linux")]
pub use network::{Network, NetworkConfig, Route};
#[cfg(target_os = "linux")]
pub use pump::{Pump, PumpThread, Report, Start};
#[cfg(target_os = "linux")]
pub use timed_link::TimedLink;
