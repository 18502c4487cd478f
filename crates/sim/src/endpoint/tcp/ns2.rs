//! Sender of the `ns2` profile: windows in packets, growth per ack.
//!
//! **Source**: the behaviour of the one-way agents of ns-2.35, `Agent/TCP`, `TCP/Reno`,
//! `TCP/Newreno` and (in `ns2/sack.rs`) `TCP/SackState`; the tests replay its traces.
//!
//! **Symbols**
//!
//! | ns-2 | here | unit |
//! |---|---|---|
//! | `highest_ack_` + 1 | `una` | packet number |
//! | `t_seqno_` | `nxt` | packet number |
//! | `maxseq_` + 1 | `max` | packet number |
//! | `curseq_` | `end` | packet number |
//! | `recover_` + 1 | `recover` | packet number |
//! | `window_` | `rwnd` | packets |
//! | `dupwnd_` | `inflation` | packets |
//! | `last_cwnd_action_` | `last` | |
//!
//! Intended differences from the RFCs: the window is halved, not the flight size; slow start and
//! congestion avoidance count acks, not bytes; leaving recovery can release a burst; a
//! retransmission after a timeout can be of a packet that the receiver already has.
//!
//! Every connection after the first behaves as one on an agent that was `reset`, which is how ns-2
//! scripts with many short connections reuse agents. Two things survive the reset: the initial
//! window of 1 after a lost SYN, and with SACK the number below which holes are not retransmitted
//! (`ns2/sack.rs`). The latter often makes a later connection that loses several packets of a
//! window wait for its retransmission timer.
//!
//! **Cost**: under 400 bytes per sender; no work per packet in flight (except SACK).

mod sack;

use super::params::{LossRecovery, TcpParams, resolved};
use super::rtt::{Ns2RttEstimator, RtoBounds};
use super::{Ack, DUP_THRESH, Segment, SenderStats, UNLIMITED};
use sack::SackState;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::Time;

/// Cause of the last window reduction; decides the reaction to the next congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub(super) enum LastReduction {
    /// No reduction yet, or one by duplicate acks whose recovery is over.
    Done,
    /// Duplicate acks.
    DupAcks,
    /// Retransmission timeout.
    Timeout,
    /// ECN echo.
    Mark,
}

/// Sender of the `ns2` profile.
#[derive(Clone, Debug, Snapshot)]
pub struct Ns2Sender {
    /// Lowest unacknowledged packet.
    pub(super) una: u64,
    /// Next packet to send.
    pub(super) nxt: u64,
    /// Lowest packet never sent.
    pub(super) max: u64,
    /// First packet not yet written by the application.
    pub(super) end: u64,
    /// Value of `max` at the last window reduction.
    pub(super) recover: u64,
    /// Congestion window in packets, with fraction.
    pub(super) cwnd: f64,
    ssthresh: u64,
    pub(super) rwnd: u64,
    /// Window inflation by duplicate acks, packets.
    inflation: u64,
    pub(super) dup: u32,
    pub(super) last: LastReduction,
    /// NewReno: true if this recovery has seen a partial ack.
    partial: bool,
    /// True if the next packet, new or not, carries CWR.
    cwr: bool,
    /// True if a mark arrived at a window of one packet.
    starved: bool,
    pub(super) rtt: Ns2RttEstimator,
    /// Packet being timed and its transmission time.
    timed: Option<(u64, Time)>,
    timer: Time,
    sack: SackState,
    pub(super) recovery: LossRecovery,
    limited_transmit: bool,
    careful: bool,
    ecn: bool,
    /// Initial window in packets; stays 1 after a lost SYN.
    first_window: u32,
    initial_ssthresh: u64,
    packet_bytes: u32,
    header_bytes: u32,
    /// Time at which the SYN was acknowledged; [`Time::NEVER`] before.
    established: Time,
    stats: SenderStats,
}

impl Ns2Sender {
    /// Creates a sender without a connection; `phase` in [0, 1) is the offset of its clock in
    /// ticks.
    pub fn new(params: &TcpParams, phase: f64) -> Ns2Sender {
        let s = &params.settings;
        let first_window = cast::saturate32(s.in_packets(resolved(s.initial_window)));
        let initial_ssthresh = s.in_packets(resolved(s.initial_ssthresh));
        Ns2Sender {
            una: 0,
            nxt: 0,
            max: 0,
            end: 0,
            recover: 1,
            cwnd: 1.0,
            ssthresh: initial_ssthresh,
            rwnd: s.in_packets(s.receive_window),
            inflation: 0,
            dup: 0,
            last: LastReduction::Done,
            partial: false,
            cwr: false,
            starved: false,
            rtt: Ns2RttEstimator::new(RtoBounds::of(s), phase),
            timed: None,
            timer: Time::NEVER,
            sack: SackState::default(),
            recovery: params.recovery,
            limited_transmit: s.limited_transmit,
            careful: s.careful,
            ecn: resolved(s.ecn),
            first_window,
            initial_ssthresh,
            packet_bytes: s.packet_bytes(),
            header_bytes: s.header_bytes(),
            established: Time::NEVER,
            stats: SenderStats::default(),
        }
    }

    /// See [`super::Tcp::open`]. The first call is for a new agent, later ones are its `reset`.
    pub fn open(&mut self, now: Time, out: &mut Vec<Segment>) {
        (self.una, self.nxt, self.max, self.end, self.recover) = (0, 0, 0, 1, 1);
        (self.cwnd, self.ssthresh) = (1.0, self.initial_ssthresh);
        (self.inflation, self.dup, self.last) = (0, 0, LastReduction::Done);
        (self.partial, self.cwr, self.starved) = (false, false, false);
        (self.timed, self.timer, self.established) = (None, Time::NEVER, Time::NEVER);
        self.rtt.reset();
        self.sack.reset();
        self.send(now, u32::MAX, out);
    }

    /// See [`super::Tcp::write`].
    pub fn write(&mut self, now: Time, amount: u64, out: &mut Vec<Segment>) {
        let packets = match amount {
            UNLIMITED => UNLIMITED,
            bytes => bytes.div_ceil(u64::from(self.packet_bytes - self.header_bytes)),
        };
        self.end = self.end.saturating_add(packets);
        self.send(now, u32::MAX, out);
    }

    /// See [`super::Tcp::stop_writing`].
    pub fn stop(&mut self) {
        self.end = self.end.min(self.max.max(1));
    }

    /// See [`super::Tcp::abort`].
    pub fn abort(&mut self) {
        self.stop();
        self.timer = Time::NEVER;
    }

    /// See [`super::Tcp::on_ack`].
    pub fn on_ack(&mut self, now: Time, ack: &Ack, out: &mut Vec<Segment>) {
        if self.una == 0 && ack.ack > 0 {
            self.established = now;
        }
        if ack.ece && self.ecn {
            self.on_mark(ack.ack);
        }
        if self.recovery == LossRecovery::Sack {
            return self.on_sack(now, ack, out);
        }
        if ack.ack > self.una {
            let recovering =
                self.last == LastReduction::DupAcks && self.recovery == LossRecovery::NewReno;
            if recovering && ack.ack < self.recover {
                self.on_partial_ack(now, ack.ack, out);
            } else {
                if self.last == LastReduction::DupAcks {
                    self.last = LastReduction::Done;
                }
                (self.inflation, self.partial) = (0, false);
                self.on_new_ack(now, ack);
            }
        } else if ack.ack == self.una {
            self.dup += 1;
            if self.dup == DUP_THRESH {
                self.on_third_dup(now, out);
            } else if self.dup < DUP_THRESH {
                self.send_limited(now, out);
            } else if self.last == LastReduction::DupAcks && self.recovery != LossRecovery::Tahoe {
                self.inflation += 1;
            }
        } else {
            return;
        }
        // NewReno sends at most two packets per ack during recovery.
        let burst = match self.recovery {
            _ if self.dup == 0 => u32::MAX,
            LossRecovery::NewReno if self.dup >= DUP_THRESH => 2,
            _ if self.dup >= DUP_THRESH => u32::MAX,
            _ => return,
        };
        self.send_inlined(now, burst, out);
    }

    /// Processes an ack of new data outside of recovery.
    #[inline]
    pub(super) fn on_new_ack(&mut self, now: Time, ack: &Ack) {
        self.on_cumulative_ack(now, ack);
        if !(ack.ece && self.ecn) {
            self.cwnd += if self.cwnd < self.ssthresh as f64 { 1.0 } else { 1.0 / self.cwnd };
            self.starved = false;
        }
        if self.una == 1 {
            self.cwnd = f64::from(self.first_window);
        }
    }

    /// Advances `una`, takes the RTT sample and sets the timer; does not change the window.
    pub(super) fn on_cumulative_ack(&mut self, now: Time, ack: &Ack) {
        self.dup = 0;
        self.set_una(ack.ack);
        if let Some((packet, sent)) = self.timed.filter(|&(packet, _)| packet < self.una) {
            debug_assert!(packet < self.max);
            if !(self.ecn && self.starved && ack.ece) {
                self.rtt.reset_backoff();
                self.starved = false;
            }
            self.timed = None;
            self.rtt.sample(sent, now);
        }
        self.set_timer(now);
    }

    /// Sets `una` to `ack`.
    pub(super) fn set_una(&mut self, ack: u64) {
        debug_assert!(ack <= self.max, "ack of data that was never sent");
        self.una = ack;
        self.nxt = self.nxt.max(ack);
    }

    /// Processes a NewReno partial ack: retransmits the next hole. Only the first partial ack
    /// restarts the timer, so that the timer can end a long recovery.
    fn on_partial_ack(&mut self, now: Time, ack: u64, out: &mut Vec<Segment>) {
        if !self.partial {
            self.partial = true;
            self.set_timer(now);
        }
        let deflate = ack - self.una;
        self.set_una(ack);
        if self.timed.is_some_and(|(packet, _)| packet < ack) {
            self.timed = None;
            self.rtt.reset_backoff();
        }
        self.output(now, self.una, out);
        if self.inflation > deflate {
            self.inflation -= deflate - 1;
        } else {
            self.cwnd -= (deflate - self.inflation) as f64;
            self.inflation = 1;
        }
        self.cwnd = self.cwnd.max(1.0);
    }

    /// Processes the third duplicate ack. Once all written data has arrived, it can only be caused
    /// by a packet received twice; ns-2 would then send a packet that was never written.
    fn on_third_dup(&mut self, now: Time, out: &mut Vec<Segment>) {
        let again = self.loss_after_mark();
        if !again && !self.may_cut() || self.done() {
            return;
        }
        if !again {
            self.recover = self.max;
            self.halve_window();
        }
        self.last = LastReduction::DupAcks;
        self.timed = None;
        self.set_timer(now);
        if self.recovery == LossRecovery::Tahoe {
            self.cwnd = 1.0;
            self.cwr = self.ecn;
            self.nxt = self.una;
        } else {
            self.output(now, self.una, out);
            self.inflation = u64::from(DUP_THRESH);
        }
    }

    /// True if duplicate acks may reduce the window: once per window, and always if the first data
    /// packet was lost.
    pub(super) fn may_cut(&self) -> bool {
        self.una > self.recover || self.una == 1 || !(self.careful || self.ecn)
    }

    /// True for a loss in a window that a mark has already reduced: retransmit without a second
    /// reduction.
    pub(super) fn loss_after_mark(&self) -> bool {
        self.ecn && self.last == LastReduction::Mark && self.una <= self.recover && self.una != 1
    }

    /// Returns the window that may be used, in packets. A comparison, whereas `f64::min` is a call
    /// in WebAssembly.
    #[inline(always)]
    fn window(&self) -> f64 {
        let (window, limit) = (self.cwnd + self.inflation as f64, self.rwnd as f64);
        if window < limit { window } else { limit }
    }

    /// Halves the window; the threshold is rounded down to whole packets.
    pub(super) fn halve_window(&mut self) {
        let half = self.window() / 2.0;
        self.ssthresh = cast::trunc(half).max(2);
        self.cwnd = half;
        self.cwr = self.ecn;
    }

    /// Processes an ECN echo in an ack of everything below `ack`: reduces at most once per window.
    /// The window may fall below one packet, which means waiting for the timer.
    fn on_mark(&mut self, ack: u64) {
        if ack <= self.recover && self.last != LastReduction::Timeout {
            return;
        }
        self.recover = self.max;
        self.last = LastReduction::Mark;
        let one = self.cwnd <= 1.0;
        if one && self.starved {
            self.rtt.back_off();
        }
        self.starved = one;
        self.halve_window();
    }

    /// See [`super::Tcp::on_timer`].
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Segment>) {
        let idle = self.una == self.max;
        if self.recovery != LossRecovery::Tahoe {
            (self.inflation, self.dup) = (0, 0);
        }
        self.sack.on_timeout();
        self.cwnd = self.cwnd.max(1.0);
        self.timed = None;
        self.recover = self.max;
        if self.una == 0 {
            self.first_window = 1;
        }
        if idle {
            // Nothing is missing; only the window is reset after the idle period.
            self.timer = Time::NEVER;
        } else {
            if self.last != LastReduction::Mark {
                self.halve_window();
            }
            self.stats.timeouts += 1;
            self.rtt.back_off();
            self.set_timer(now);
        }
        self.cwnd = 1.0;
        self.cwr = self.ecn;
        self.last = LastReduction::Timeout;
        self.nxt = self.una;
        self.send(now, u32::MAX, out);
    }

    /// Sends at most `burst` packets, as far as the window allows.
    #[inline(never)]
    pub(super) fn send(&mut self, now: Time, burst: u32, out: &mut Vec<Segment>) {
        self.send_inlined(now, burst, out);
    }

    #[inline(always)]
    pub(super) fn send_inlined(&mut self, now: Time, burst: u32, out: &mut Vec<Segment>) {
        if self.sack.recovering() {
            return self.send_in_recovery(now, out);
        }
        let window = cast::trunc(self.window());
        if self.recovery == LossRecovery::Sack && self.nxt < self.una + window {
            self.sack.apply_floor();
        }
        let end = self.end.min(self.una + window).min(self.nxt.saturating_add(burst.into()));
        while self.nxt < end {
            self.output_inlined(now, self.nxt, out);
            self.nxt += 1;
        }
    }

    /// Limited transmit: send one new packet for a duplicate ack (RFC 3042).
    pub(super) fn send_limited(&mut self, now: Time, out: &mut Vec<Segment>) {
        let room = (self.nxt + 1) as f64 <= self.una as f64 + self.cwnd + f64::from(self.dup);
        let allowed = self.nxt < self.end && self.nxt < self.una + self.rwnd && room;
        if self.limited_transmit && allowed {
            self.output(now, self.nxt, out);
            self.nxt += 1;
        }
    }

    /// Sends packet `seq`. Times it if it is new and none is being timed, and starts the timer if
    /// it is off or nothing was outstanding.
    #[inline(never)]
    pub(super) fn output(&mut self, now: Time, seq: u64, out: &mut Vec<Segment>) {
        self.output_inlined(now, seq, out);
    }

    #[inline(always)]
    fn output_inlined(&mut self, now: Time, seq: u64, out: &mut Vec<Segment>) {
        let (syn, again) = (seq == 0, seq < self.max);
        let cwr = std::mem::take(&mut self.cwr);
        #[expect(clippy::cast_possible_truncation, reason = "at most 65,535 bytes")]
        let wire_bytes = (if syn { self.header_bytes } else { self.packet_bytes }) as u16;
        let ect = self.ecn && !syn;
        let len = u16::from(!syn);
        let bits = Segment { syn, cwr, retransmission: again, ect, ..Segment::default() };
        out.push(Segment { seq, len, wire_bytes, ..bits });
        self.stats.sent_packets += 1;
        self.stats.retransmitted_packets += u64::from(again && !syn);
        let idle = self.una == self.max;
        if !again {
            self.max = seq + 1;
            self.timed.get_or_insert((seq, now));
        }
        if self.timer == Time::NEVER || idle {
            self.set_timer(now);
        }
    }

    /// Restarts the timer. An ack of new data does so even if nothing is outstanding; the expiry
    /// then resets the window after an idle period.
    pub(super) fn set_timer(&mut self, now: Time) {
        self.timer = now + self.rtt.rto();
    }

    /// Stops timing a packet.
    pub(super) fn stop_timing(&mut self) {
        self.timed = None;
    }

    /// See [`super::Tcp::next_timer`].
    pub fn timer(&self) -> Time {
        self.timer
    }

    /// See [`super::Tcp::cwnd_packets`].
    pub fn cwnd_packets(&self) -> f64 {
        self.cwnd
    }

    /// See [`super::Tcp::ssthresh_packets`].
    pub fn ssthresh_packets(&self) -> f64 {
        self.ssthresh as f64
    }

    /// See [`super::Tcp::dup_acks`].
    pub fn dup_acks(&self) -> u32 {
        self.dup
    }

    /// See [`super::Tcp::is_done`].
    pub fn done(&self) -> bool {
        self.una >= self.end
    }

    /// See [`super::Tcp::acked_bytes`].
    pub fn acked_bytes(&self) -> u64 {
        self.una.saturating_sub(1) * u64::from(self.packet_bytes - self.header_bytes)
    }

    /// See [`super::Tcp::established`].
    pub fn established(&self) -> Time {
        self.established
    }

    /// See [`super::Tcp::stats`].
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests;
