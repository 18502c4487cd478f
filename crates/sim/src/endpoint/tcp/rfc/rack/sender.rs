//! RACK in the sender: what an ack tells, the start of recovery, and transmission.

use super::super::super::{Ack, DUP_THRESH, Segment};
use super::super::hooks::new_blocks;
use super::super::{RecoveryState, RfcSender};
use super::{Delivery, RackState, TimerKind};
use crate::endpoint::cc::CongestionControl;
use sojourn_aqm::units::{Span, Time};

/// Unit of timestamps, ns.
const TICK: u64 = 1_000_000;

/// Returns the timestamp of `now`.
pub(in super::super) fn timestamp(now: Time) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "timestamps are modulo 2^32")]
    let stamp = (now.0 / TICK) as u32;
    stamp
}

/// Returns the duplicate data that `ack` reports (RFC 2883): its first block, if that is below the
/// cumulative ack or within the second block.
fn duplicate_data(ack: &Ack) -> Option<(u64, u64)> {
    let blocks = &ack.sacks[..usize::from(ack.blocks)];
    let (start, end) = *blocks.first()?;
    let within = blocks.get(1).is_some_and(|second| second.0 <= start && end <= second.1);
    (start < ack.ack || within).then_some((start, end))
}

impl<C: CongestionControl> RfcSender<C> {
    /// Updates scoreboard and RACK from an ack, before the cumulative ack is taken over; `marked`
    /// is true if the ack reports a mark. Returns true if it has new SACK information.
    #[inline(never)]
    pub(in super::super) fn rack_on_ack(&mut self, now: Time, ack: &Ack, marked: bool) -> bool {
        if ack.ack < self.snd_una {
            return false;
        }
        if let Some(order) = &mut self.rack {
            order.rtt_of_ack = None;
        }
        let delivery = self.take_delivery(ack);
        let dsack = duplicate_data(ack);
        self.on_ack_of_probe(now, ack, delivery.sacked, dsack.map(|range| range.1));
        let before = self.state;
        self.try_undo(ack, &delivery, dsack, marked);
        if marked && before != RecoveryState::Open && self.state == RecoveryState::Open {
            self.on_mark(now, ack.ack); // it was not counted in the recovery
        }
        let Some(order) = &mut self.rack else { return false };
        let sacked = self.scoreboard.covered() + order.packets.sacked();
        let few = sacked < u64::from(DUP_THRESH) * self.window.mss;
        let patience = few && self.state == RecoveryState::Open;
        let reordered = dsack.is_some_and(|(_, end)| !order.probe.explains(end));
        order.window.on_ack(ack.ack, self.snd_nxt, reordered, self.rtt.srtt());
        order.on_ack(now, ack.ack, &self.scoreboard, patience, &delivery);
        if self.rtt.is_per_ack() {
            self.take_rtt(now, ack, &delivery);
        }
        delivery.sacked
    }

    /// Returns the newly delivered data of an ack, and updates the scoreboard.
    fn take_delivery(&mut self, ack: &Ack) -> Delivery {
        let echo = self.timestamps.then_some(ack.echo);
        let mut delivery = Delivery { echo, ..Delivery::default() };
        let Some(order) = &mut self.rack else { return delivery };
        let (una, recover, board) = (ack.ack, self.recover, &mut self.scoreboard);
        let highest = board.highest_sacked();
        let mut report = |from, to| {
            order.report(from, to, (una, highest, recover), &mut delivery);
            order.packets.on_delivered(from, to);
        };
        board.for_each_missing(self.snd_una, una, &mut report);
        for &(start, end) in new_blocks(ack) {
            board.for_each_missing(start.max(una), end, &mut report);
        }
        delivery.acked_retransmitted = order.has_retransmitted_below(una);
        if delivery.reordered {
            order.window.on_reordering();
        }
        board.update(ack);
        delivery
    }

    /// Takes a round-trip time from an ack: of a segment sent once, else of the echoed timestamp.
    fn take_rtt(&mut self, now: Time, ack: &Ack, delivery: &Delivery) {
        let advanced = ack.ack > self.snd_una;
        let echoed = self.echoed_rtt(now, ack).filter(|_| advanced && delivery.timed().is_none());
        let since = |sent| now - sent;
        let sample = delivery.timed().map(since).or(echoed);
        let rtt_of_ack = delivery.timed_by_control().map(since).or(echoed);
        if let Some(sample) = sample {
            self.rtt.sample_per_ack(sample, ack.ack, self.snd_nxt);
        }
        // As in Linux, a selective ack of data sent before the head of the queue was last sent
        // restarts the timer: the answer to the head cannot have come yet.
        let head = self.rack.as_ref().and_then(|order| order.head_sent_at(self.snd_una));
        let before_head = |sent| head.is_some_and(|head| sent < head);
        let restarts = advanced || delivery.first_sacked.is_some_and(before_head);
        if let Some(order) = &mut self.rack {
            (order.restarts_timer, order.rtt_of_ack) = (restarts, rtt_of_ack);
        }
    }

    /// Returns the round-trip time that the echoed timestamp of an ack gives, with timestamps.
    pub(in super::super) fn echoed_rtt(&self, now: Time, ack: &Ack) -> Option<Span> {
        let ticks = timestamp(now).wrapping_sub(ack.echo);
        self.timestamps.then(|| Span(u64::from(ticks.max(1)) * TICK))
    }

    /// Starts recovery if a segment is lost. If one may only be late, sets the timer. After a
    /// timeout the loss of a retransmission is a new congestion signal (RFC 5681 §4.3). In Linux
    /// (`tcp_time_to_recover`), a recovery that ends before all losses are repaired is followed by
    /// another one.
    #[inline(never)]
    pub(in super::super) fn rack_recover(&mut self, now: Time, out: &mut Vec<Segment>) {
        let Some(order) = &mut self.rack else { return };
        let restarts = std::mem::take(&mut order.restarts_timer);
        let starts = match self.state {
            RecoveryState::Open => true,
            RecoveryState::Recovery => false,
            RecoveryState::Loss => order.lost_again,
        };
        let lost = match self.state {
            RecoveryState::Open if self.reduce_cwnd => {
                order.has_lost(self.snd_una, &self.scoreboard)
            }
            _ => order.lost_bytes() > 0,
        };
        if starts && lost {
            self.fast_retransmit(now, out);
        } else if order.due() != Time::NEVER {
            // Not the earlier of both: that could be a former end of the reordering window.
            order.timer = TimerKind::Reordering;
            let left = order.due().max(now) - now;
            self.timer = order.clock.after(now, left + order.clock.margin());
            return;
        }
        if restarts && !self.schedule_probe(now, true) {
            self.restart_retransmission_timer(now);
        }
    }

    /// Restarts the retransmission timer. After another kind of timer, the timeout counts from the
    /// last transmission of the first outstanding segment.
    pub(in super::super) fn restart_retransmission_timer(&mut self, now: Time) {
        let (rto, delay) = (self.rto(), self.pacing_delay(now));
        let Some(order) = &mut self.rack else { return };
        let kind = std::mem::take(&mut order.timer);
        let head = order.head_sent_at(self.snd_una).filter(|_| kind != TimerKind::Retransmission);
        if self.timer != Time::NEVER {
            let end = (head.unwrap_or(now) + rto).max(now + Span::us(1));
            self.timer = order.clock.after(now, end - now + delay);
        }
    }

    /// Processes the end of the reordering window; returns false if it did not end.
    pub(in super::super) fn rack_expired(&mut self, now: Time, out: &mut Vec<Segment>) -> bool {
        let due = |order: &&mut Box<RackState>| order.timer == TimerKind::Reordering;
        let Some(order) = self.rack.as_mut().filter(due) else { return false };
        order.expire(now, self.snd_una, &self.scoreboard);
        self.restart_retransmission_timer(now);
        self.rack_recover(now, out);
        true
    }

    /// Sends lost segments, then new ones, while the window has room for a full segment.
    #[inline(never)]
    pub(in super::super) fn send_rack(&mut self, now: Time, out: &mut Vec<Segment>) {
        if self.state == RecoveryState::Open && self.dup_acks > 0 && !self.limited_transmit {
            return;
        }
        let before = self.high_data;
        if self.rack.as_mut().is_some_and(|order| std::mem::take(&mut order.frto.new_first)) {
            self.send_while_open(now, out, false);
            if self.high_data > before {
                return;
            }
            self.rack.as_mut().expect("RACK is on").frto.undecided = false; // nothing new to send
        }
        self.send_while_open(now, out, true);
        if self.high_data > before {
            self.schedule_probe(now, false);
        }
        let (flight, window) = (self.bytes_in_network(), self.window);
        let full = flight + window.mss > window.cwnd;
        let (una, next, sent) = (self.snd_una, self.snd_nxt, self.high_data > before);
        let usage = self.rack.as_mut().and_then(|order| order.usage.as_mut());
        if let Some(usage) = usage.filter(|_| full || sent) {
            usage.update(full, una, next, flight);
        }
    }

    /// Returns the bytes in flight that decide whether the window grows: `flight`, or in Linux the
    /// most in this round trip.
    pub(in super::super) fn used_window(&self, flight: u64) -> u64 {
        let usage = self.rack.as_ref().and_then(|order| order.usage);
        usage.map_or(flight, |usage| usage.most_in_flight(&self.window))
    }

    /// Sends until there is nothing to send, the window is full or the pacer holds a segment; lost
    /// segments first if `repairs`.
    fn send_while_open(&mut self, now: Time, out: &mut Vec<Segment>, repairs: bool) {
        while self.bytes_in_network() + self.window.mss <= self.window.cwnd {
            let lost = self.rack.as_ref().filter(|_| repairs).and_then(|order| order.next_lost());
            if C::HOOKED && !self.control.may_send(now, lost.unwrap_or(self.snd_nxt)) {
                return;
            }
            let sent =
                if repairs { self.send_lost_or_new(now, out) } else { self.send_new(now, out) };
            if !sent {
                return;
            }
        }
    }

    /// Sends one segment, lost ones first. Returns false if there is none.
    pub(in super::super) fn send_lost_or_new(&mut self, now: Time, out: &mut Vec<Segment>) -> bool {
        let Some(order) = &mut self.rack else { return false };
        let Some((start, end)) = order.take_lost() else { return self.send_new(now, out) };
        order.undo.on_retransmission(timestamp(now));
        if start == self.snd_una {
            order.timer = TimerKind::Retransmission;
        }
        self.output(now, start, end - start, out);
        if start == self.snd_una {
            self.timer = self.rto_end(now); // a full timeout for the retransmission
        }
        true
    }

    /// Sends one new segment. Returns false if there is none, or the receive window is full.
    pub(in super::super) fn send_new(&mut self, now: Time, out: &mut Vec<Segment>) -> bool {
        let len = self.window.mss.min(self.write_end - self.snd_nxt.min(self.write_end));
        if len == 0 || self.snd_nxt + len > self.snd_una + self.rwnd {
            return false;
        }
        self.output(now, self.snd_nxt, len, out);
        self.snd_nxt += len;
        true
    }
}
