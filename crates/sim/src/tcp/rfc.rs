//! Sender of the `rfc` profile: sequence numbers and windows in bytes.
//!
//! **Source**: RFC 5681 (fast retransmit, fast recovery, restart after idle), RFC 6582 (NewReno),
//! RFC 6675 (SACK, in `rfc_sack.rs`), RFC 6298 (timer), RFC 3042 (limited transmit), RFC 3168
//! (ECN). `rfc_loss.rs` handles duplicate acks and timeouts, [`crate::cc`] the growth of the
//! window.
//!
//! **Symbols**
//!
//! | RFC | here |
//! |---|---|
//! | SND.UNA, HighACK + 1 | `una` |
//! | SND.NXT | `nxt` |
//! | HighData + 1 | `max` |
//! | recover + 1, RecoveryPoint + 1 | `recover` |
//! | SMSS, cwnd, ssthresh | `window` |
//!
//! **Departures**: there is no timestamps option: one segment per round trip is timed, and none
//! during loss recovery. The timer is restarted at a fast retransmit, as in ns-2 and Linux, so that
//! the retransmission has a full timeout. There is no Nagle algorithm: written data is sent at
//! once. Window space smaller than a full segment is not used, except by the last segment.
//!
//! `rfc_hooks.rs` has the hooks of congestion controls beyond growth and reduction (rate samples,
//! pacing). Where [`Control::HOOKED`] is false, they are not compiled in.
//!
//! **Cost**: under 400 bytes per sender; no work per packet in flight (except SACK).

use super::params::{Recovery, TcpParams, worked_out};
use super::rfc_rack::Order;
use super::rtt::{Bounds, Rfc6298};
use super::scoreboard::Scoreboard;
use super::{Ack, Segment, Stats};
pub(super) use crate::cc::State;
use crate::cc::{Acked, Control, Sent, Window};
use sojourn_aqm::dice::Dice;
use sojourn_aqm::units::{Span, Time};

/// Sender of the `rfc` profile with congestion control `C`.
#[derive(Clone, Debug)]
pub struct Rfc<C> {
    /// Lowest unacknowledged byte; 0 until the SYN is acknowledged.
    pub(super) una: u64,
    /// Next byte to send.
    pub(super) nxt: u64,
    /// Lowest byte never sent.
    pub(super) max: u64,
    /// First byte not yet written by the application.
    pub(super) end: u64,
    /// Value of `max` at the last window reduction.
    pub(super) recover: u64,
    pub(super) window: Window,
    pub(super) rwnd: u64,
    /// Window inflation by duplicate acks, bytes.
    pub(super) inflation: u64,
    /// Bytes sent by limited transmit since the last ack of new data.
    pub(super) limited: u64,
    pub(super) dup: u32,
    pub(super) state: State,
    pub(super) recovery: Recovery,
    /// NewReno: true if this recovery has seen a partial ack.
    pub(super) partial: bool,
    /// True if the last window reduction was caused by a mark.
    pub(super) marked: bool,
    /// True if the segment at `una` was retransmitted after a timeout.
    pub(super) expired: bool,
    /// True if a mark arrived at a window of one segment: sending is paused until the timer
    /// expires.
    pub(super) hushed: bool,
    /// True if the next new segment carries CWR.
    pub(super) cwr: bool,
    pub(super) ecn: bool,
    pub(super) limited_transmit: bool,
    pub(super) careful: bool,
    pub(super) rtt: Rfc6298,
    /// End of the segment being timed and its transmission time.
    pub(super) timed: Option<(u64, Time)>,
    pub(super) timer: Time,
    /// Time of the last transmission.
    last_sent: Time,
    pub(super) board: Scoreboard,
    /// RACK: order of transmissions.
    pub(super) order: Option<Box<Order>>,
    /// SACK: the rescue retransmission is allowed once `una` is above this.
    pub(super) rescued: u64,
    pub(super) control: C,
    /// Initial window and threshold, bytes.
    initial: (u64, u64),
    header_bytes: u32,
    /// Time at which the SYN was acknowledged; [`Time::NEVER`] before.
    established: Time,
    pub(super) stats: Stats,
}

impl<C: Control> Rfc<C> {
    /// Create a sender without a connection.
    pub fn new(params: &TcpParams, dice: &mut dyn Dice) -> Rfc<C> {
        let s = &params.settings;
        let initial =
            (s.in_bytes(worked_out(s.initial_window)), s.in_bytes(worked_out(s.initial_ssthresh)));
        Rfc {
            una: 0,
            nxt: 0,
            max: 0,
            end: 0,
            recover: 0,
            window: Window { cwnd: initial.0, ssthresh: initial.1, mss: s.payload() },
            rwnd: s.in_bytes(s.receive_window),
            inflation: 0,
            limited: 0,
            dup: 0,
            state: State::Open,
            recovery: params.recovery,
            partial: false,
            marked: false,
            expired: false,
            hushed: false,
            cwr: false,
            ecn: worked_out(s.ecn),
            limited_transmit: s.limited_transmit,
            careful: s.careful,
            rtt: Rfc6298::new(Bounds::of(s)),
            timed: None,
            timer: Time::NEVER,
            last_sent: Time::ZERO,
            board: Scoreboard::default(),
            order: s.rack.then(Box::default),
            rescued: 0,
            control: C::new(params, dice),
            initial,
            header_bytes: s.header_bytes(),
            established: Time::NEVER,
            stats: Stats::default(),
        }
    }

    /// See [`super::Tcp::open`].
    pub fn open(&mut self, now: Time, out: &mut Vec<Segment>) {
        (self.una, self.nxt, self.max, self.end, self.recover) = (0, 0, 0, 1, 0);
        (self.window.cwnd, self.window.ssthresh) = self.initial;
        (self.inflation, self.limited, self.dup, self.state) = (0, 0, 0, State::Open);
        (self.partial, self.marked, self.expired) = (false, false, false);
        (self.hushed, self.cwr, self.rescued) = (false, false, 0);
        self.rtt.reset();
        self.board.clear();
        if let Some(order) = &mut self.order {
            order.clear();
        }
        self.control.reset();
        self.timed = None;
        (self.timer, self.established) = (Time::NEVER, Time::NEVER);
        self.output(now, 0, 0, out);
        self.nxt = 1;
    }

    /// See [`super::Tcp::write`].
    pub fn write(&mut self, now: Time, amount: u64, out: &mut Vec<Segment>) {
        self.end = self.end.saturating_add(amount);
        self.send(now, out);
    }

    /// See [`super::Tcp::stop`].
    pub fn stop(&mut self) {
        self.end = self.end.min(self.max.max(1));
    }

    /// See [`super::Tcp::abort`].
    pub fn abort(&mut self) {
        self.stop();
        self.control.reset(); // drops a segment held by the pacer
        self.timer = Time::NEVER;
    }

    /// See [`super::Tcp::on_ack`].
    pub fn on_ack(&mut self, now: Time, ack: &Ack, out: &mut Vec<Segment>) {
        debug_assert!(ack.ack <= self.max, "ack of data that was never sent");
        if self.una == 0 {
            return self.on_syn_ack(now, ack, out);
        }
        if C::HOOKED {
            self.tell_of(now, ack);
        }
        if ack.ece && self.ecn {
            self.on_mark(now, ack.ack);
        }
        let news = self.recovery == Recovery::Sack && ack.ack >= self.una && self.board.update(ack);
        if let Some(order) = &mut self.order {
            order.learn(self.una.max(ack.ack), &self.board);
        }
        if ack.ack > self.una {
            self.on_new_ack(now, ack, out);
        } else if ack.ack == self.una && self.una < self.max {
            self.on_dup(now, news, out);
        }
        if self.state == State::Open && self.order.as_ref().is_some_and(|o| o.lost_bytes() > 0) {
            self.fast_retransmit(now, out);
        }
        if C::HOOKED {
            self.settle(now);
        }
        self.send(now, out);
    }

    /// Establish the connection. After a lost SYN it starts with one segment (RFC 5681 §3.1) and a
    /// timeout of 3 s (RFC 6298 (5.7)).
    fn on_syn_ack(&mut self, now: Time, ack: &Ack, out: &mut Vec<Segment>) {
        if ack.ack == 0 {
            return;
        }
        (self.una, self.nxt, self.established) = (1, 1, now);
        let rtt = self.timed.take().map(|(_, sent)| now - sent);
        match rtt {
            Some(sample) => self.rtt.sample(sample),
            None => {
                self.rtt.syn_was_lost();
                self.window.cwnd = self.window.mss;
            }
        }
        self.timer = Time::NEVER;
        self.control.established(now, &self.window, rtt);
        self.send(now, out);
    }

    /// Process an ack of new data.
    fn on_new_ack(&mut self, now: Time, ack: &Ack, out: &mut Vec<Segment>) {
        let (bytes, flight) = (ack.ack - self.una, self.nxt.max(ack.ack) - self.una);
        self.una = ack.ack;
        self.nxt = self.nxt.max(self.una);
        (self.dup, self.limited, self.expired) = (0, 0, false);
        let timed = self.timed.take_if(|&mut (end, _)| end <= ack.ack);
        let rtt = timed.map(|(_, sent)| now - sent);
        if let Some(sample) = rtt {
            self.rtt.sample(sample);
        }
        if self.state == State::Recovery {
            return self.on_ack_in_recovery(now, bytes, out);
        }
        self.restart_timer(now);
        let after_timeout = self.state == State::Loss;
        if after_timeout && self.una >= self.recover {
            self.state = State::Open;
        }
        if !(ack.ece && self.ecn) {
            let srtt = self.rtt.srtt();
            let acked = Acked { now, bytes, flight, rtt, srtt, after_timeout };
            self.control.grow(&mut self.window, &acked);
        }
    }

    /// Send what the window allows.
    pub(super) fn send(&mut self, now: Time, out: &mut Vec<Segment>) {
        if C::HOOKED {
            self.note_starved();
        }
        if self.una == 0 || self.hushed || self.nxt >= self.end && self.state == State::Open {
            return;
        }
        // RFC 5681 §4.1: after an idle period the window no longer reflects the path.
        let silent = self.una == self.max && (now - self.last_sent) > self.rtt.rto();
        if silent && !self.control.keeps_window() {
            self.window.cwnd = self.window.cwnd.min(self.initial.0);
        }
        if self.order.is_some() {
            return self.send_in_order(now, out);
        }
        if self.recovery == Recovery::Sack {
            return self.send_by_pipe(now, out);
        }
        let window = (self.window.cwnd + self.inflation).min(self.rwnd);
        while self.nxt < self.end {
            let len = self.window.mss.min(self.end - self.nxt);
            if self.nxt + len > self.una + window || C::HOOKED && !self.control.may_send(now) {
                break;
            }
            self.output(now, self.nxt, len, out);
            self.nxt += len;
        }
    }

    /// Send `len` bytes from `seq`; updates the timed segment and the timer.
    pub(super) fn output(&mut self, now: Time, seq: u64, len: u64, out: &mut Vec<Segment>) {
        let (syn, again) = (seq == 0, seq < self.max);
        // RFC 3168 §6.1.5, RFC 8257 §3.5.
        let ect = self.ecn && (!syn && !again || self.control.counts_marks());
        let cwr = self.cwr && !syn && !again;
        self.cwr &= !cwr;
        #[expect(clippy::cast_possible_truncation, reason = "at most the payload of 65,535 bytes")]
        let len = len as u32;
        let wire = len + self.header_bytes;
        out.push(Segment { seq, len, wire, syn, cwr, retransmission: again, ect });
        self.stats.sent_packets += 1;
        self.stats.retransmitted_packets += u64::from(again);
        let end = seq + u64::from(len).max(u64::from(syn));
        if C::HOOKED && !syn {
            let alone = self.una == self.max;
            self.control.sent(&Sent { now, seq, end, again, alone, state: self.state });
        }
        if let Some(order) = self.order.as_mut().filter(|_| !syn) {
            order.sent(seq, end, again);
        }
        self.max = self.max.max(end);
        if again {
            // Karn's algorithm: an ack during retransmission gives no RTT sample.
            self.timed = None;
        } else if self.state == State::Open {
            self.timed.get_or_insert((end, now));
        }
        if self.timer == Time::NEVER {
            self.timer = now + self.rtt.rto(); // RFC 6298 (5.1)
        }
        self.last_sent = now;
    }

    /// RFC 6298 (5.2), (5.3).
    pub(super) fn restart_timer(&mut self, now: Time) {
        let needed = self.una < self.max || self.hushed;
        self.timer = if needed { now + self.rtt.rto() } else { Time::NEVER };
    }

    /// Flight size in bytes, without data sent by limited transmit (RFC 5681 §3.2).
    pub(super) fn flight(&self) -> u64 {
        self.nxt - self.una - self.limited
    }

    /// Current retransmission timeout.
    pub(super) fn rto(&self) -> Span {
        self.rtt.rto()
    }

    /// See [`super::Tcp::timer`].
    pub fn timer(&self) -> Time {
        if C::HOOKED { self.timer.min(self.control.release()) } else { self.timer }
    }

    /// Congestion control.
    pub fn control(&self) -> &C {
        &self.control
    }

    /// See [`super::Tcp::cwnd_packets`].
    pub fn cwnd_packets(&self) -> f64 {
        self.window.cwnd as f64 / self.window.mss as f64
    }

    /// See [`super::Tcp::ssthresh_packets`].
    pub fn ssthresh_packets(&self) -> f64 {
        self.window.ssthresh as f64 / self.window.mss as f64
    }

    /// See [`super::Tcp::dup_acks`].
    pub fn dup_acks(&self) -> u32 {
        self.dup
    }

    /// See [`super::Tcp::done`].
    pub fn done(&self) -> bool {
        self.una >= self.end
    }

    /// See [`super::Tcp::acked_bytes`].
    pub fn acked_bytes(&self) -> u64 {
        self.una.saturating_sub(1)
    }

    /// See [`super::Tcp::established`].
    pub fn established(&self) -> Time {
        self.established
    }

    /// See [`super::Tcp::stats`].
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}
