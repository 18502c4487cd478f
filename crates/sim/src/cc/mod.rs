//! Congestion control of the profile `rfc`: how the window grows and by how much it is cut. When to
//! do either, and what to send, is the sender's business (`tcp/rfc.rs`), the same for all.
//!
//! A new control is one file with one type, a variant of [`Law`] and of [`Choice`], and an entry of
//! [`crate::tcp::TCPS`]. [`Reno`] alone stands by itself, so that the flows that most runs are
//! made of pay nothing for the others; [`Any`] is every control, with a pacer, PRR and
//! HyStart++ if asked.

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
    /// Bytes that were outstanding before it.
    pub flight: u64,
    /// The round-trip time, if it gave a sample.
    pub rtt: Option<Span>,
    /// The smoothed round-trip time, once there is one.
    pub srtt: Option<Span>,
    /// Whether what a timeout declared lost is still being sent again.
    pub after_timeout: bool,
}

impl Acked {
    /// Whether the window was full before it, so that a larger one would be of use: half full in
    /// slow start, where it may double before what it permits is sent.
    pub fn filled(&self, window: &Window) -> bool {
        let half = window.cwnd < window.ssthresh && 2 * self.flight > window.cwnd;
        half || self.flight + window.mss >= window.cwnd
    }
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

/// What a sender is doing about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// None that it knows of.
    Open,
    /// Fast recovery, until `recover` is acknowledged (Reno: until anything is).
    Recovery,
    /// Sending again what a timeout (or Tahoe) gave up, until `recover` is acknowledged.
    Loss,
}

/// A segment that has just been sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Time,
    /// Its first byte.
    pub seq: u64,
    /// The byte after its last.
    pub end: u64,
    /// Whether it was sent before.
    pub again: bool,
    /// Whether nothing was outstanding.
    pub alone: bool,
    /// What the sender is doing about losses.
    pub state: State,
}

/// An ack, once losses and the window are settled and before anything is sent in answer.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    /// When it came.
    pub now: Time,
    /// Payload bytes of this connection that the receiver is known to have, in order or not.
    pub delivered: u64,
    /// Payload bytes believed to be in the network.
    pub flight: u64,
    /// The smoothed round-trip time, once there is one.
    pub srtt: Option<Span>,
    /// What the sender is doing about losses.
    pub state: State,
}

/// A congestion control.
pub trait Control {
    /// Whether the hooks (all below `cut`) are used; where not, nothing is worked out for them.
    const HOOKED: bool = false;

    /// A control without a connection.
    fn new(params: &TcpParams, dice: &mut dyn Dice) -> Self;

    /// Forgets the connection.
    fn reset(&mut self);

    /// Grows the window by an ack of new data. Not called in fast recovery, nor for an ack that
    /// echoes a mark.
    fn grow(&mut self, window: &mut Window, acked: &Acked);

    /// The slow-start threshold after a cut, with `flight` bytes outstanding; called at most once
    /// per window of data. The sender sets the window to it, or to one segment after a timeout.
    fn cut(&mut self, now: Time, window: &Window, flight: u64, cause: Cause) -> u64;

    /// Whether the extent of marking counts (RFC 8257): all packets are ECN-capable, and a mark
    /// never silences.
    fn counts_marks(&self) -> bool {
        false
    }

    /// Whether it keeps its window after a silence.
    fn keeps_window(&self) -> bool {
        false
    }

    /// The SYN was acknowledged; `rtt` is how long that took, if it was sent once.
    fn established(&mut self, _now: Time, _window: &Window, _rtt: Option<Span>) {}

    /// An ack of everything below `ack`, `bytes` of it new, with the echo `ece`; `next` is the next
    /// to send. Before anything else is made of it.
    fn echoed(&mut self, _ack: u64, _bytes: u64, _ece: bool, _next: u64) {}

    /// Whether the next two are of use to it: what they tell takes searches.
    fn follows_delivery(&self) -> bool {
        false
    }

    /// The receiver is now known to have `from..to`.
    fn delivered(&mut self, _now: Time, _from: u64, _to: u64) {}

    /// An ack was dealt with, and something may be sent.
    fn settled(&mut self, _window: &mut Window, _ack: &Settled) {}

    /// A segment was sent.
    fn sent(&mut self, _sent: &Sent) {}

    /// Whether a segment may leave now; if not, it waits for [`Control::release`].
    fn may_send(&mut self, _now: Time) -> bool {
        true
    }

    /// Nothing waits any more; it is about to be asked again.
    fn unblock(&mut self) {}

    /// When a segment that waits may leave; [`Time::NEVER`] if none does.
    fn release(&self) -> Time {
        Time::NEVER
    }

    /// The application has nothing more to send though the window has room; `flight` bytes are in
    /// the network.
    fn starved(&mut self, _flight: u64) {}
}
