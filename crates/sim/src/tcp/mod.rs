//! TCP: a sender and a receiver that know neither links nor queues. The world tells them the time,
//! carries their segments and acks, and calls them when their timers are due.
//!
//! Two profiles (`docs/design.md` says why both): `rfc` counts bytes and follows the RFCs of
//! today; `ns2` counts packets and follows the one-way agents of ns-2.35, with which most papers
//! of the field were made. Both write sequence numbers in the same way:
//!
//! * sequence 0 is the SYN and carries no payload; data starts at 1;
//! * the unit is the payload byte in `rfc` and the packet in `ns2`;
//! * an ack names the **next expected** sequence number (ns-2's own traces print that less one);
//! * SACK blocks are half open, `first..end`.
//!
//! Both model a connection's start alike: a SYN of header size, its ack of the same size, then
//! data. There is no FIN.
//!
//! ```
//! use sojourn_aqm::units::Time;
//! use sojourn_sim::tcp;
//! # struct Fixed;
//! # impl sojourn_aqm::dice::Dice for Fixed { fn uniform(&mut self) -> f64 { 0.5 } }
//! let params = tcp::parse("newreno", []).unwrap();
//! let mut sender = tcp::Tcp::new(&params, &mut Fixed);
//! let mut receiver = tcp::Receiver::new(&params);
//! let (mut now, mut wire) = (Time::ZERO, Vec::new());
//! sender.open(now, &mut wire);
//! sender.write(now, 3_000, &mut wire);
//! while !sender.done() {
//!     now = Time(now.0 + 10_000_000);
//!     for segment in std::mem::take(&mut wire) {
//!         if let Some(ack) = receiver.on_segment(now, &segment, false) {
//!             sender.on_ack(now, &ack, &mut wire);
//!         }
//!     }
//!     if receiver.timer() <= now {
//!         let ack = receiver.on_timer(now).unwrap();
//!         sender.on_ack(now, &ack, &mut wire);
//!     }
//! }
//! assert_eq!(receiver.received_in_connection(), 3_000);
//! ```

mod ns2;
mod ns2_sack;
mod params;
mod ranges;
mod receiver;
mod registry;
mod rfc;
mod rfc_hooks;
mod rfc_loss;
mod rfc_rack;
mod rfc_sack;
mod rtt;
mod scoreboard;

pub use params::{Profile, Recovery, Settings, TcpParams, parse};
pub use receiver::Receiver;
pub use registry::{Entry, TCPS};

use crate::cc::{self, Choice, Reno};
use ns2::Ns2;
use rfc::Rfc;
use sojourn_aqm::dice::Dice;
use sojourn_aqm::units::Time;

/// Duplicate acks that tell of a loss (RFC 5681 §3.2).
pub const DUP_THRESH: u32 = 3;

/// An amount that never ends, for [`Tcp::write`].
pub const UNLIMITED: u64 = u64::MAX;

/// A segment on its way from the sender to the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Its first sequence number; 0 for a SYN.
    pub seq: u64,
    /// Payload, in the profile's unit: bytes (`rfc`) or packets (`ns2`, always 1); 0 for a SYN.
    pub len: u32,
    /// Bytes on the wire, header included.
    pub wire: u32,
    /// Whether it opens the connection.
    pub syn: bool,
    /// Congestion window reduced: the sender has answered an echo (RFC 3168 §6.1.2).
    pub cwr: bool,
    /// Whether its sequence number was sent before.
    pub retransmission: bool,
    /// Whether it may be marked in place of being dropped.
    pub ect: bool,
}

/// An ack on its way back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The next sequence number that the receiver expects.
    pub ack: u64,
    /// SACK blocks, half open, the most recently changed first; `blocks` of them are there.
    pub sacks: [(u64, u64); 3],
    /// How many of `sacks` are there.
    pub blocks: u8,
    /// Echo of a mark (RFC 3168 §6.1.3).
    pub ece: bool,
    /// Whether it answers a SYN.
    pub syn: bool,
    /// Bytes on the wire.
    pub wire: u32,
}

// They are copied by the million.
const _: () = assert!(size_of::<Segment>() <= 24 && size_of::<Ack>() <= 64);

/// What a sender did since it was made; opening a new connection does not reset it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments sent, SYNs and retransmissions included.
    pub sent_packets: u64,
    /// Segments sent whose sequence number had been sent before.
    pub retransmitted_packets: u64,
    /// Expiries of the retransmission timer with something outstanding.
    pub timeouts: u64,
}

/// A sender: one connection after the other.
// The variants differ little in size, and a flow holds one for its whole life.
#[derive(Clone, Debug)]
pub enum Tcp {
    /// ns-2's agents, in packets.
    Ns2(Ns2),
    /// The RFCs' window, in bytes.
    Reno(Rfc<Reno>),
    /// The RFCs' sender with any congestion control, paced or not.
    Any(Box<Rfc<cc::Any>>),
}

// Runs with 100,000 flows are asked for.
const _: () = assert!(size_of::<Tcp>() <= 400);

/// The same call on whichever sender it is, without a table of functions.
macro_rules! each {
    ($tcp:expr, $sender:ident => $call:expr) => {
        match $tcp {
            Tcp::Ns2($sender) => $call,
            Tcp::Reno($sender) => $call,
            Tcp::Any($sender) => $call,
        }
    };
}

impl Tcp {
    /// A sender without a connection. The profile `ns2` draws one number: where its clock's ticks
    /// fall; BBR one: in which phase it probes.
    pub fn new(params: &TcpParams, dice: &mut dyn Dice) -> Tcp {
        let s = &params.settings;
        let hooked = s.pacing == Some(true) || s.prr || s.hystart == Some(true);
        let plain = params.control == Choice::Reno && !hooked;
        match s.profile {
            Profile::Ns2 => Tcp::Ns2(Ns2::new(params, dice.uniform())),
            Profile::Rfc if plain => Tcp::Reno(Rfc::new(params, dice)),
            Profile::Rfc => Tcp::Any(Box::new(Rfc::new(params, dice))),
        }
    }

    /// The congestion control, where it is not plain Reno's.
    pub fn control(&self) -> Option<&cc::Any> {
        match self {
            Tcp::Any(sender) => Some(sender.control()),
            _ => None,
        }
    }

    /// Opens a new connection, forgetting everything of the last, and sends its SYN.
    pub fn open(&mut self, now: Time, out: &mut Vec<Segment>) {
        each!(self, s => s.open(now, out));
    }

    /// Takes `amount` payload bytes from the application ([`UNLIMITED`] for ever) and sends what
    /// may be sent. The profile `ns2` rounds each amount up to whole packets.
    pub fn write(&mut self, now: Time, amount: u64, out: &mut Vec<Segment>) {
        each!(self, s => s.write(now, amount, out));
    }

    /// Ends the transfer: nothing new is sent from now on; what is outstanding is finished.
    pub fn stop(&mut self) {
        each!(self, s => s.stop());
    }

    /// Ends the connection at once: whatever is outstanding stays so, and no timer runs.
    pub fn abort(&mut self) {
        each!(self, s => s.abort());
    }

    /// Takes an ack of this connection.
    pub fn on_ack(&mut self, now: Time, ack: &Ack, out: &mut Vec<Segment>) {
        match self {
            Tcp::Ns2(s) => s.on_ack(now, ack, out),
            Tcp::Reno(s) => s.on_ack(now, ack, out),
            Tcp::Any(s) => on_ack_of_any(s, now, ack, out),
        }
    }

    /// To be called when [`Tcp::timer`] is due; before that it does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Segment>) {
        if now >= self.timer() {
            each!(self, s => s.on_timer(now, out));
        }
    }

    /// When the retransmission timer expires or the pacer lets go; [`Time::NEVER`] if both are off.
    pub fn timer(&self) -> Time {
        each!(self, s => s.timer())
    }

    /// The congestion window, without the inflation of a fast recovery.
    pub fn cwnd_packets(&self) -> f64 {
        each!(self, s => s.cwnd_packets())
    }

    /// The slow-start threshold.
    pub fn ssthresh_packets(&self) -> f64 {
        each!(self, s => s.ssthresh_packets())
    }

    /// Duplicate acks in a row, as counted towards [`DUP_THRESH`].
    pub fn dup_acks(&self) -> u32 {
        each!(self, s => s.dup_acks())
    }

    /// When the SYN of this connection was acknowledged, so that data could go; [`Time::NEVER`]
    /// before.
    pub fn established(&self) -> Time {
        each!(self, s => s.established())
    }

    /// Whether everything written in this connection is acknowledged.
    pub fn done(&self) -> bool {
        each!(self, s => s.done())
    }

    /// Payload bytes of this connection that are acknowledged.
    pub fn acked_bytes(&self) -> u64 {
        each!(self, s => s.acked_bytes())
    }

    /// What it did since it was made.
    pub fn stats(&self) -> &Stats {
        each!(self, s => s.stats())
    }
}

/// Apart, so that [`Tcp::on_ack`] stays small enough to be inlined where it is called.
#[inline(never)]
fn on_ack_of_any(s: &mut Rfc<cc::Any>, now: Time, ack: &Ack, out: &mut Vec<Segment>) {
    s.on_ack(now, ack, out);
}
