//! Congestion control of the `rfc` profile: growth and reduction of the window. The sender
//! (`tcp/rfc.rs`), which is the same for all controls, decides when either happens and what is
//! sent.
//!
//! To add a control, write one file with one type, and add a variant of [`Law`] and of [`Choice`]
//! and an entry of [`crate::tcp::TCPS`]. [`Reno`] can be used directly, so that the most common
//! flows pay nothing for the others; [`Any`] is every control, with optional pacer, PRR and
//! HyStart++.

mod any;
pub mod bbr;
mod bbr_filter;
mod compound;
mod cubic;
mod dctcp;
mod hystart;
mod pacer;
mod prr;
mod rate;
mod reno;
mod vegas;

pub use any::{Any, Choice, Law};
pub use bbr::{Bbr, BbrParams};
pub use compound::{Compound, CompoundParams};
pub use cubic::{Cubic, CubicParams};
pub use dctcp::{Dctcp, DctcpParams};
pub use hystart::HyStart;
pub use pacer::Pacer;
pub use prr::Prr;
pub use rate::{Rates, Sample};
pub use reno::Reno;
pub use vegas::{Vegas, VegasParams};

use crate::tcp::TcpParams;
use sojourn_aqm::dice::Dice;
use sojourn_aqm::units::{Span, Time};

/// Window state shared by sender and congestion control; bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold.
    pub ssthresh: u64,
    /// Payload of a full segment (SMSS).
    pub mss: u64,
}

/// Ack of new data, as a congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Arrival time of the ack.
    pub now: Time,
    /// Payload bytes newly acknowledged.
    pub bytes: u64,
    /// Bytes outstanding before the ack.
    pub flight: u64,
    /// Round-trip time sample, if the ack gave one.
    pub rtt: Option<Span>,
    /// Smoothed round-trip time, once there is a sample.
    pub srtt: Option<Span>,
    /// True while data declared lost by a timeout is being retransmitted.
    pub after_timeout: bool,
}

impl Acked {
    /// True if the window was full before the ack, so that it may grow. In slow start half full is
    /// enough, because the window can double before the sender has used it.
    pub fn filled(&self, window: &Window) -> bool {
        let half = window.cwnd < window.ssthresh && 2 * self.flight > window.cwnd;
        half || self.flight + window.mss >= window.cwnd
    }
}

/// Reason for a reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Loss detected by duplicate acks.
    Loss,
    /// ECN echo.
    Mark,
    /// Retransmission timeout.
    Timeout,
}

/// Loss recovery state of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No known losses.
    Open,
    /// Fast recovery, until `recover` is acknowledged (Reno: until any new data is acknowledged).
    Recovery,
    /// Retransmitting after a timeout (or, in Tahoe, any loss), until `recover` is acknowledged.
    Loss,
}

/// Segment that has just been sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Time of transmission.
    pub now: Time,
    /// Sequence number of the first byte.
    pub seq: u64,
    /// Sequence number after the last byte.
    pub end: u64,
    /// True for a retransmission.
    pub again: bool,
    /// True if nothing else was outstanding.
    pub alone: bool,
    /// Loss recovery state.
    pub state: State,
}

/// Ack after loss detection and window update, before anything is sent in response.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    /// Arrival time of the ack.
    pub now: Time,
    /// Payload bytes of this connection known to be received, in order or not.
    pub delivered: u64,
    /// Estimate of the payload bytes in the network.
    pub flight: u64,
    /// Smoothed round-trip time, once there is a sample.
    pub srtt: Option<Span>,
    /// Loss recovery state.
    pub state: State,
}

/// Congestion control algorithm.
pub trait Control {
    /// True if the hooks (all methods below `cut`) are used. If false, the sender skips the work of
    /// preparing their arguments.
    const HOOKED: bool = false;

    /// Create the control in the state before a connection.
    fn new(params: &TcpParams, dice: &mut dyn Dice) -> Self;

    /// Reset to the state before a connection.
    fn reset(&mut self);

    /// Grow the window for an ack of new data. Not called in fast recovery, nor for an ack that
    /// carries an ECN echo.
    fn grow(&mut self, window: &mut Window, acked: &Acked);

    /// Return the slow-start threshold after a reduction, with `flight` bytes outstanding. Called
    /// at most once per window of data. The sender sets the window to it, or to one segment after a
    /// timeout.
    fn cut(&mut self, now: Time, window: &Window, flight: u64, cause: Cause) -> u64;

    /// True if the control reacts to the fraction of marked bytes (RFC 8257). All packets are then
    /// ECN-capable, and a mark at the minimum window does not pause the sender.
    fn counts_marks(&self) -> bool {
        false
    }

    /// True if the window is kept after an idle period.
    fn keeps_window(&self) -> bool {
        false
    }

    /// Handle the ack of the SYN; `rtt` is its round-trip time, if the SYN was not retransmitted.
    fn established(&mut self, _now: Time, _window: &Window, _rtt: Option<Span>) {}

    /// Handle an ack of everything below `ack`, `bytes` of it new, with the ECN echo `ece`; `next`
    /// is the next sequence number to send. Called before any other processing of the ack.
    fn echoed(&mut self, _ack: u64, _bytes: u64, _ece: bool, _next: u64) {}

    /// True if the control uses [`Control::delivered`] and [`Control::settled`], whose arguments
    /// are costly to compute.
    fn follows_delivery(&self) -> bool {
        false
    }

    /// Handle the news that the receiver has `from..to`.
    fn delivered(&mut self, _now: Time, _from: u64, _to: u64) {}

    /// Handle the end of the processing of an ack; the sender may transmit next.
    fn settled(&mut self, _window: &mut Window, _ack: &Settled) {}

    /// Handle the transmission of a segment.
    fn sent(&mut self, _sent: &Sent) {}

    /// True if a segment may be sent now; if false, it is held until [`Control::release`].
    fn may_send(&mut self, _now: Time) -> bool {
        true
    }

    /// Clear the held segment; the sender is about to ask again.
    fn unblock(&mut self) {}

    /// Time at which the held segment may be sent; [`Time::NEVER`] if none is held.
    fn release(&self) -> Time {
        Time::NEVER
    }

    /// Handle the application running out of data while the window has room; `flight` bytes are in
    /// the network.
    fn starved(&mut self, _flight: u64) {}
}
