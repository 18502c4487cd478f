//! Congestion control of the profile `rfc`: how the window grows and by how much it is cut. When to
//! do either, and what to send, is the sender's business (`tcp/rfc.rs`), the same for all.
//!
//! A new control is one file with one type, and a variant of [`crate::tcp::Tcp`].

mod reno;

pub use reno::Reno;

use crate::tcp::Settings;
use sojourn_aqm::units::{Span, Time};

/// What sender and control share; bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold.
    pub ssthresh: u64,
    /// Payload of a full segment (SMSS).
    pub mss: u64,
}

/// What an ack of new data told.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When it came.
    pub now: Time,
    /// Payload bytes that it acknowledged first.
    pub bytes: u64,
    /// The round-trip time, if it gave a sample.
    pub rtt: Option<Span>,
    /// Whether what a timeout declared lost is still being sent again.
    pub after_timeout: bool,
}

/// What calls for a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A loss that duplicate acks told of.
    Loss,
    /// An echo of a mark.
    Mark,
    /// The retransmission timer.
    Timeout,
}

/// A congestion control.
pub trait Control {
    /// A control for one connection.
    fn new(settings: &Settings) -> Self;

    /// Forgets the connection.
    fn reset(&mut self);

    /// Grows the window by an ack of new data. Not called in fast recovery, nor for an ack that
    /// echoes a mark.
    fn grow(&mut self, window: &mut Window, acked: &Acked);

    /// The slow-start threshold after a cut, with `flight` bytes outstanding; called at most once
    /// per window of data. The sender sets the window to it, or to one segment after a timeout.
    fn cut(&mut self, now: Time, window: &Window, flight: u64, cause: Cause) -> u64;
}
