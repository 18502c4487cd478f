//! TCP: a sender and a receiver without knowledge of links or queues. The simulation passes in the
//! time, carries segments and acks, and calls them when their timers expire.
//!
//! There are three profiles (`docs/concepts/design.md` explains why): `rfc` counts bytes and
//! follows current RFCs; `ns2` counts packets and follows the one-way agents of ns-2.35, which most
//! papers of the field used; `quic` counts bytes and follows RFC 9002. They use sequence numbers in
//! the same way:
//!
//! * sequence number 0 is the SYN and carries no payload; data starts at 1;
//! * the unit is the payload byte in `rfc` and `quic`, and the packet in `ns2`;
//! * an ack carries the **next expected** sequence number (ns-2's traces print that minus one); in
//!   `quic`, it carries ranges of packet numbers;
//! * SACK blocks are half open, `first..end`.
//!
//! In all, a connection starts with a SYN of header size and an ack of the same size, then data.
//! With `fin`, the sender acknowledges that ack, and a connection of limited data ends with a FIN,
//! which takes the sequence number after the data.
//!
//! ```
//! use sojourn_aqm::units::Time;
//! use sojourn_sim::internals::tcp;
//! # struct Fixed;
//! # impl sojourn_aqm::Random for Fixed { fn uniform(&mut self) -> f64 { 0.5 } }
//! let params = tcp::parse("newreno", []).unwrap();
//! let mut sender = tcp::Tcp::new(&params, &mut Fixed);
//! let mut receiver = tcp::Receiver::new(&params, &mut Fixed);
//! let (mut now, mut wire) = (Time::ZERO, Vec::new());
//! sender.open(now, &mut wire);
//! sender.write(now, 3_000, &mut wire);
//! while !sender.is_done() {
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

mod external;
mod jiffies;
mod needs;
mod ns2;
mod params;
mod presets;
mod quic;
mod ranges;
mod receiver;
mod rfc;
mod rtt;
mod scoreboard;

pub use crate::endpoint::cc::{TCPS, TcpEntry};
pub use external::{parse, parse_with};
pub use params::{CommonParams, EcnFeedback, LossRecovery, Profile, TcpParams};
pub(crate) use presets::{Preset, presets};
pub use receiver::Receiver;

use crate::endpoint::cc::{self, CongestionControl, ControlParams, Reno};
use crate::endpoint::telemetry::PathTelemetry;
use ns2::Ns2Sender;
use quic::QuicSender;
use rfc::RfcSender;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use sojourn_aqm::{TcpFlags, XcpHeader};

/// Duplicate acks that indicate a loss (RFC 5681 §3.2).
pub const DUP_THRESH: u32 = 3;

/// Bytes of the options of Linux's SYN (MSS, SACK permitted, window scale, padding) beyond the
/// options of data.
const SYN_OPTIONS: u16 = 8;

/// Unlimited amount of data, for [`Tcp::write`].
pub const UNLIMITED: u64 = u64::MAX;

/// Segment from sender to receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct Segment {
    /// First sequence number; 0 for a SYN.
    pub seq: u64,
    /// Payload, in the profile's unit: bytes (`rfc`) or packets (`ns2`, always 1); 0 for a SYN and
    /// for an ack of the sender, 1 for a FIN.
    pub len: u16,
    /// Size on the wire with header, bytes.
    pub wire_bytes: u16,
    /// Time of transmission in ms, modulo 2^32 (TSval of RFC 7323); 0 without timestamps. In the
    /// profile `quic` the packet number, modulo 2^32. At the receiver, with XCP the feedback, bytes
    /// per second, as the bits of an `i32`; with telemetry its number.
    pub timestamp: u32,
    /// True for a SYN.
    pub syn: bool,
    /// True for a FIN.
    pub fin: bool,
    /// Congestion window reduced (CWR): the sender has reacted to an ECN echo (RFC 3168 §6.1.2).
    pub cwr: bool,
    /// True for a retransmission.
    pub retransmission: bool,
    /// PSH: the receiver acknowledges at once, if it acknowledges as Linux (`linux_acks`).
    pub push: bool,
    /// True if the packet is ECN-capable.
    pub ect: bool,
}

/// Ack from receiver to sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct Ack {
    /// Next sequence number that the receiver expects; in the profile `quic`, the packet number
    /// after the largest received one.
    pub ack: u64,
    /// SACK blocks, half open, most recently changed first; the first `blocks` are valid. In the
    /// profile `quic`, the encoded ranges of packet numbers.
    pub sacks: [(u64, u64); 3],
    /// Number of valid entries in `sacks`; in the profile `quic`, the number of ranges.
    pub blocks: u8,
    /// ECN echo (RFC 3168 §6.1.3).
    pub ece: bool,
    /// True if it acknowledges a SYN.
    pub syn: bool,
    /// Size on the wire, bytes.
    pub wire: u16,
    /// Accurate ECN feedback: number of marked packets received in this connection, modulo 2^16.
    pub ce_packets: u16,
    /// Echo of a timestamp (TSecr of RFC 7323); 0 without timestamps. In the profile `quic` the
    /// time for which the receiver delayed the ack, us. With XCP the sum of the feedback since the
    /// last ack, bytes per second, as the bits of an `i32`. With telemetry its number.
    pub echo: u32,
    /// True in the profile `quic`: on the path, it is no ack of TCP.
    pub quic: bool,
}

impl Segment {
    /// True for an ack of the sender, which carries nothing.
    pub fn is_pure_ack(&self) -> bool {
        self.len == 0 && !self.syn
    }
}

impl Ack {
    /// Header of the packet that carries the ack, as an ACK filter sees it.
    pub fn tcp_flags(&self) -> TcpFlags {
        if self.syn || self.quic {
            return TcpFlags::default();
        }
        let blocks = usize::from(self.blocks);
        let pure = TcpFlags::ACK.with(TcpFlags::PURE).with_if(self.ece, TcpFlags::ECE);
        let full = blocks == self.sacks.len();
        pure.with_if(blocks > 0, TcpFlags::SACK).with_if(full, TcpFlags::SACK_FULL)
    }
}

// Copied once per packet, so kept small.
const _: () = assert!(size_of::<Segment>() <= 24 && size_of::<Ack>() <= 72);

/// Counters of a sender since its creation; opening a new connection does not reset them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct SenderStats {
    /// Segments sent, SYNs and retransmissions included, acks and FINs not.
    pub sent_packets: u64,
    /// Retransmitted segments with payload.
    pub retransmitted_packets: u64,
    /// Expiries of the retransmission timer with data outstanding.
    pub timeouts: u64,
}

/// TCP sender; runs one connection after the other.
// The variants differ little in size, and a flow keeps its variant. A tag of its own takes fewer
// instructions to read than one that is hidden in a field.
#[derive(Clone, Debug, Snapshot)]
#[repr(u8)]
pub enum Tcp {
    /// ns-2's agents; counts packets.
    Ns2(Ns2Sender),
    /// RFC sender with Reno's window, without RACK, timestamps and pacing; counts bytes.
    Reno(RfcSender<Reno>),
    /// RFC sender with any congestion control and optional pacing.
    Any(Box<RfcSender<cc::AnyControl>>),
    /// QUIC sender with any congestion control; counts bytes.
    Quic(Box<QuicSender>),
}

// Kept small: runs may have 100,000 flows.
const _: () = assert!(size_of::<Tcp>() <= 400);

/// Static dispatch of a call to the active sender.
macro_rules! each {
    ($tcp:expr, $sender:ident => $call:expr) => {
        match $tcp {
            Tcp::Ns2($sender) => $call,
            Tcp::Reno($sender) => $call,
            Tcp::Any($sender) => $call,
            Tcp::Quic($sender) => $call,
        }
    };
}

impl Tcp {
    /// Creates a sender without a connection. Draws one random number for the clock phase (profile
    /// `ns2`, and with `jiffies`) and one for BBR (probing phase).
    pub fn new(params: &TcpParams, rng: &mut dyn Random) -> Tcp {
        let s = &params.settings;
        let linux = s.rack || s.linux_acks || s.timestamps;
        let hooked = linux || s.pacing == Some(true) || s.prr || s.hystart == Some(true);
        match (s.profile, &params.control) {
            (Profile::Ns2, _) => Tcp::Ns2(Ns2Sender::new(params, rng.uniform())),
            (Profile::Quic, _) => Tcp::Quic(Box::new(QuicSender::new(params, rng))),
            (_, ControlParams::Reno(own)) if !hooked => Tcp::Reno(RfcSender::new(params, own, rng)),
            (_, control) => Tcp::Any(Box::new(RfcSender::new(params, control, rng))),
        }
    }

    /// Congestion control; None for plain Reno.
    pub fn control(&self) -> Option<&cc::AnyControl> {
        match self {
            Tcp::Any(sender) => Some(sender.control()),
            Tcp::Quic(sender) => Some(sender.control()),
            _ => None,
        }
    }

    /// Calls `visit` with the name and value of each variable that the congestion control shows.
    pub fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        if let Some(control) = self.control() {
            control.inspect(visit);
        }
    }

    /// Opens a new connection: resets the state of the last one and sends a SYN.
    pub fn open(&mut self, now: Time, out: &mut Vec<Segment>) {
        each!(self, s => s.open(now, out));
    }

    /// Accepts `amount` payload bytes from the application ([`UNLIMITED`] for an endless transfer)
    /// and send what the window allows. The `ns2` profile rounds each amount up to whole packets.
    pub fn write(&mut self, now: Time, amount: u64, out: &mut Vec<Segment>) {
        each!(self, s => s.write(now, amount, out));
    }

    /// Announces that no more data will be written: with `fin`, the connection ends with a FIN.
    pub fn close(&mut self, now: Time, out: &mut Vec<Segment>) {
        match self {
            Tcp::Any(sender) => sender.close(now, out),
            Tcp::Ns2(_) | Tcp::Reno(_) | Tcp::Quic(_) => {}
        }
    }

    /// Ends the transfer: no new data is sent from now on; outstanding data is still delivered.
    pub fn stop_writing(&mut self) {
        each!(self, s => s.stop());
    }

    /// Abort the connection: outstanding data is abandoned and all timers are stopped.
    pub fn abort(&mut self) {
        each!(self, s => s.abort());
    }

    /// Processes an ack of this connection.
    pub fn on_ack(&mut self, now: Time, ack: &Ack, out: &mut Vec<Segment>) {
        match self {
            Tcp::Ns2(s) => s.on_ack(now, ack, out),
            Tcp::Reno(s) => s.on_ack(now, ack, out),
            Tcp::Any(s) => on_ack_of_any(s, now, ack, out),
            Tcp::Quic(s) => s.on_ack(now, ack, out),
        }
    }

    /// Processes the expiry of [`Tcp::next_timer`]; does nothing if it is not due.
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Segment>) {
        if now >= self.next_timer() {
            each!(self, s => s.on_timer(now, out));
        }
    }

    /// Time at which the retransmission timer expires or the pacer releases a segment;
    /// [`Time::NEVER`] if neither is pending.
    #[inline]
    pub fn next_timer(&self) -> Time {
        each!(self, s => s.timer())
    }

    /// Congestion window in packets, without the inflation of fast recovery.
    pub fn cwnd_packets(&self) -> f64 {
        each!(self, s => s.cwnd_packets())
    }

    /// Smoothed round-trip time; None before the first sample, and for the `ns2` profile.
    pub fn srtt(&self) -> Option<Span> {
        match self {
            Tcp::Ns2(_) => None,
            Tcp::Reno(sender) => sender.srtt(),
            Tcp::Any(sender) => sender.srtt(),
            Tcp::Quic(sender) => sender.srtt(),
        }
    }

    /// Returns the congestion header of the next segments, if the sender uses XCP.
    pub fn xcp_header(&self) -> Option<XcpHeader> {
        let Tcp::Any(sender) = self else { return None };
        let rtt = sender.srtt().unwrap_or(Span::ZERO);
        let x = Span(cast::trunc(rtt.0 as f64 / sender.cwnd_packets().max(1.0)));
        sender.control().uses_explicit_feedback().then_some(XcpHeader {
            rtt,
            x,
            delta_throughput: XcpHeader::UNLIMITED,
        })
    }

    /// Keeps the telemetry of a packet that the receiver has until its ack arrives, and returns its
    /// number; 0 if the sender uses none.
    pub(crate) fn store_telemetry(&mut self, telemetry: &PathTelemetry) -> u32 {
        match self {
            Tcp::Any(sender) => sender.control.store_telemetry(telemetry),
            _ => 0,
        }
    }

    /// Slow-start threshold in packets.
    pub fn ssthresh_packets(&self) -> f64 {
        each!(self, s => s.ssthresh_packets())
    }

    /// Number of consecutive duplicate acks, as compared with [`DUP_THRESH`].
    pub fn dup_acks(&self) -> u32 {
        each!(self, s => s.dup_acks())
    }

    /// Time at which the SYN of this connection was acknowledged; [`Time::NEVER`] before.
    pub fn established(&self) -> Time {
        each!(self, s => s.established())
    }

    /// True if all data written in this connection is acknowledged, and its FIN.
    pub fn is_done(&self) -> bool {
        each!(self, s => s.done())
    }

    /// Acknowledged payload bytes of this connection.
    pub fn acked_bytes(&self) -> u64 {
        each!(self, s => s.acked_bytes())
    }

    /// Counters since creation.
    pub fn stats(&self) -> &SenderStats {
        each!(self, s => s.stats())
    }
}

/// Not inlined, so that [`Tcp::on_ack`] stays small enough to be inlined itself.
#[inline(never)]
fn on_ack_of_any(s: &mut RfcSender<cc::AnyControl>, now: Time, ack: &Ack, out: &mut Vec<Segment>) {
    s.on_ack(now, ack, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_aqm::params::Setting::Text;

    #[test]
    fn an_ack_filter_sees_the_options_of_an_ack() {
        let flags = |blocks, ece| Ack { blocks, ece, ..Ack::default() }.tcp_flags();
        let pure = TcpFlags::ACK.with(TcpFlags::PURE);
        assert_eq!(flags(0, false), pure);
        assert_eq!(flags(0, true), pure.with(TcpFlags::ECE));
        assert_eq!(flags(1, false), pure.with(TcpFlags::SACK));
        let most = Ack::default().sacks.len() as u8;
        assert_eq!(flags(most, false), pure.with(TcpFlags::SACK).with(TcpFlags::SACK_FULL));
        let syn = Ack { syn: true, blocks: 1, ..Ack::default() };
        assert_eq!(syn.tcp_flags(), TcpFlags::default(), "a SYN-ACK is never dropped");
    }

    #[test]
    fn the_smoothed_round_trip_time_starts_with_the_first_sample() {
        for (name, profile, known) in
            [("newreno", "rfc", true), ("newreno", "ns2", false), ("cubic", "rfc", true)]
        {
            let params = parse(name, [("profile", Text(profile))]).unwrap();
            let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
            let (mut sender, mut out) = (Tcp::new(&params, &mut rng), Vec::new());
            sender.open(Time(0), &mut out);
            assert_eq!(sender.srtt(), None);
            let syn = Ack { ack: 1, syn: true, ..Ack::default() };
            sender.on_ack(Time(30_000_000), &syn, &mut out);
            assert_eq!(sender.srtt(), known.then_some(Span::ms(30)), "{name} {profile}");
        }
    }

    #[test]
    fn an_aborted_connection_ends_with_what_was_sent() {
        for (name, profile) in [("newreno", "rfc"), ("newreno", "ns2"), ("cubic", "rfc")] {
            let params = parse(name, [("profile", Text(profile))]).unwrap();
            let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
            let (mut sender, mut out) = (Tcp::new(&params, &mut rng), Vec::new());
            assert_eq!(sender.control().is_some(), name == "cubic");
            sender.open(Time(5), &mut out);
            sender.write(Time(5), 100_000, &mut out);
            assert_eq!((out.len(), sender.established()), (1, Time::NEVER), "the SYN alone");
            sender.on_ack(Time(9), &Ack { ack: 1, syn: true, ..Ack::default() }, &mut out);
            assert_eq!(sender.established(), Time(9));
            assert!(sender.next_timer() < Time::NEVER && !sender.is_done());
            let (sent, last) = (out.len(), out[out.len() - 1]);
            assert!(sent < 20, "less than was written: {sent}");
            sender.abort();
            assert_eq!(sender.next_timer(), Time::NEVER);
            let ack = last.seq + u64::from(last.len);
            sender.on_ack(Time(20), &Ack { ack, ..Ack::default() }, &mut out);
            assert!(sender.is_done() && out.len() == sent, "{name}, {profile}");
        }
    }
}
