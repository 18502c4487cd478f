//! RACK: a segment is lost if a segment sent after it is delivered; retransmissions count like
//! first transmissions. A lost retransmission is detected without a timeout, and one delivered
//! segment suffices instead of three duplicate acks.
//!
//! **Source**: RFC 8985 §6, which Linux uses instead of RFC 6675's count of duplicate acks.
//!
//! **Departures**: transmission order replaces transmission times. The reordering window (§6.2
//! step 4) is an option, `reordering_window`: a segment is lost a quarter of the least round-trip
//! time later. It grows by a quarter for each round trip with a DSACK (`rack/reordering.rs`). As in
//! Linux, its timer, the retransmission timer and the probe timer (`rfc/tlp.rs`) are one.
//!
//! **Cost**: one entry per segment in flight; an ack visits the entries it resolves.

mod packets;
mod parts;
mod reordering;
mod sender;

use super::super::jiffies::TimerClock;
use super::super::params::CommonParams;
use super::super::ranges::Ranges;
use super::super::scoreboard::Scoreboard;
use super::close::Closing;
use crate::endpoint::cc::WindowUsage;
use packets::PacketCount;
pub(super) use parts::{Delivery, Frto, TailProbe, TimerKind, UndoState};
use reordering::ReorderingWindow;
pub(super) use sender::timestamp;
use sojourn_aqm::Snapshot;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// Transmission: byte range, transmission number and time.
#[derive(Clone, Copy, Debug, Snapshot)]
struct SentRange {
    start: u64,
    end: u64,
    number: u64,
    at: Time,
    /// True if it repairs a loss. The segment counts as lost until it is delivered.
    repairs: bool,
}

/// Lost segment: its last transmission, and whether that was a retransmission.
#[derive(Clone, Copy, Debug, Snapshot)]
struct LostRange {
    sent: SentRange,
    again: bool,
}

/// Segments in flight in transmission order, lost segments not yet retransmitted, and the state of
/// the parts of loss recovery that are built on them.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct RackState {
    /// First transmissions, ordered by number and thus by sequence number.
    fresh: VecDeque<SentRange>,
    /// Retransmissions, ordered by number.
    again: VecDeque<SentRange>,
    /// Lost segments not yet retransmitted, ordered by sequence number.
    lost: VecDeque<LostRange>,
    lost_bytes: u64,
    /// True if the next transmission repairs a loss.
    repairs: bool,
    /// Bytes declared lost in this connection.
    lost_total: u64,
    /// True if the last ack showed the loss of a retransmission.
    lost_again: bool,
    /// Outstanding data that was retransmitted at least once.
    retransmitted: Ranges,
    /// Number of the next transmission.
    next: u64,
    /// All transmissions with lower numbers are delivered or lost, or wait for `due`.
    settled: u64,
    /// Round-trip time of the last delivered transmission, and the least one; 0 before the first.
    rtt: Span,
    min_rtt: Span,
    pub window: ReorderingWindow,
    pub undo: UndoState,
    pub frto: Frto,
    pub probe: TailProbe,
    pub timer: TimerKind,
    pub clock: TimerClock,
    /// Use of the window, if only a window that was full grows (Linux).
    pub usage: Option<WindowUsage>,
    /// Short segments, if packets are counted (Linux).
    pub packets: PacketCount,
    /// True if a connection asks for ECN, and if a SYN that is sent again does not.
    pub ecn: bool,
    pub ecn_fallback: bool,
    /// Timestamp of the first SYN.
    pub first_syn: u32,
    pub closing: Closing,
    /// Timeouts of the SYN, if it is sent again as in Linux.
    pub syn_timeouts: Option<u32>,
    /// Round-trip time that the last ack shows to the congestion control.
    pub rtt_of_ack: Option<Span>,
    /// True if the last ack restarts the timer (`FLAG_SET_XMIT_TIMER`).
    restarts_timer: bool,
    /// Time at which the transmissions that wait for its end are lost; [`Time::NEVER`] if none
    /// waits.
    due: Time,
}

/// Data that the receiver is known to have.
#[derive(Clone, Copy)]
struct ReceivedData<'a> {
    una: u64,
    board: &'a Scoreboard,
}

impl ReceivedData<'_> {
    fn contains(&self, start: u64, end: u64) -> bool {
        let held = || self.board.around(start).is_some_and(|(a, b)| a <= start && end <= b);
        end <= self.una || held()
    }
}

/// Number of transmissions, from the first one on, for which `holds` returns true. Searches near
/// the first one, because an ack as a rule resolves the first transmissions, and the cache rarely
/// holds those in the middle.
fn count_first(list: &VecDeque<SentRange>, holds: impl Fn(&SentRange) -> bool) -> usize {
    let mut end = 1;
    while end <= list.len() && holds(&list[end - 1]) {
        end *= 2;
    }
    let (mut low, mut high) = (end / 2, list.len().min(end - 1));
    while low < high {
        let middle = low.midpoint(high);
        if holds(&list[middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl RackState {
    /// Returns a state without entries, with the optional parts of `s`. Draws one random number
    /// with `jiffies`.
    pub(super) fn new(s: &CommonParams, rng: &mut dyn Random) -> RackState {
        let empty = RackState {
            clock: TimerClock::new(s, rng),
            ecn: s.ecn == Some(true),
            ecn_fallback: s.ecn_fallback,
            usage: s.reduce_cwnd.then(WindowUsage::default),
            packets: PacketCount::new(s.count_packets.then_some(s.payload())),
            syn_timeouts: s.linux_syn.then_some(0),
            closing: Closing::new(s.fin),
            ..RackState::default()
        };
        empty.with_parts(s.reordering_window, s.frto, s.tlp)
    }

    /// Returns this state at the start of a connection, with or without its optional parts.
    fn with_parts(self, reordering_window: bool, frto: bool, tlp: bool) -> RackState {
        RackState {
            window: ReorderingWindow::new(reordering_window),
            frto: Frto { on: frto, ..Frto::default() },
            probe: TailProbe::new(tlp),
            due: Time::NEVER,
            ..self
        }
    }

    /// Removes all entries, and keeps their memory.
    pub(super) fn clear(&mut self) {
        let old = std::mem::take(self);
        let (window, frto, tlp) = (old.window.is_on(), old.frto.on, old.probe.on);
        let cleared = RackState {
            packets: old.packets,
            clock: old.clock,
            ecn: old.ecn,
            ecn_fallback: old.ecn_fallback,
            usage: old.usage.map(|_| WindowUsage::default()),
            syn_timeouts: old.syn_timeouts.map(|_| 0),
            closing: Closing::new(old.closing.is_on()),
            ..RackState::default()
        };
        *self = cleared.with_parts(window, frto, tlp);
        (self.fresh, self.again, self.lost) = (old.fresh, old.again, old.lost);
        self.fresh.clear();
        self.again.clear();
        self.lost.clear();
        self.packets.clear();
    }

    /// Notes the round-trip time of the SYN.
    pub(super) fn on_established(&mut self, rtt: Option<Span>) {
        self.min_rtt = rtt.unwrap_or(Span::ZERO);
    }

    /// Records a transmission at `at`; `again` for a retransmission.
    pub(super) fn sent(&mut self, at: Time, start: u64, end: u64, again: bool) {
        let repairs = std::mem::take(&mut self.repairs);
        let sent = SentRange { start, end, number: self.next, at, repairs };
        self.next += 1;
        if again {
            self.again.push_back(sent);
            self.retransmitted.insert(start, end);
        } else {
            self.fresh.push_back(sent);
            self.packets.on_sent(start, end);
        }
    }

    /// Lost bytes that are not yet retransmitted.
    pub(super) fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Bytes declared lost in this connection, retransmissions included.
    pub(super) fn lost_total(&self) -> u64 {
        self.lost_total
    }

    /// Time of the last transmission of the segment at `una`, if it is outstanding.
    pub(super) fn head_sent_at(&self, una: u64) -> Option<Time> {
        let at_head = |sent: &&SentRange| sent.start <= una && una < sent.end;
        let again = self.again.iter().rev().find(at_head);
        let lost = || self.lost.front().map(|lost| &lost.sent).filter(at_head);
        again.or_else(lost).or_else(|| self.fresh.front().filter(at_head)).map(|sent| sent.at)
    }

    /// Least round-trip time of this connection; `None` before the first.
    pub(super) fn min_rtt(&self) -> Option<Span> {
        (self.min_rtt > Span::ZERO).then_some(self.min_rtt)
    }

    /// First byte of the lowest lost segment.
    pub(super) fn next_lost(&self) -> Option<u64> {
        self.lost.front().map(|lost| lost.sent.start)
    }

    /// Removes and returns the lowest lost segment, which the caller retransmits.
    pub(super) fn take_lost(&mut self) -> Option<(u64, u64)> {
        let SentRange { start, end, .. } = self.lost.pop_front()?.sent;
        self.lost_bytes -= self.packets.weight(start, end);
        self.repairs = true;
        Some((start, end))
    }

    /// Removes and returns the last segment that was sent once, which the caller retransmits.
    pub(super) fn take_last(&mut self) -> Option<(u64, u64)> {
        self.fresh.pop_back().map(|sent| (sent.start, sent.end))
    }

    /// Number of retransmissions in flight.
    pub(super) fn retransmissions(&self) -> u64 {
        self.again.len() as u64
    }

    /// True if a lost segment is not delivered, be it retransmitted or not (`lost_out`).
    pub(super) fn has_lost(&self, una: u64, board: &Scoreboard) -> bool {
        let known = ReceivedData { una, board };
        let repairs = |sent: &SentRange| sent.repairs && !known.contains(sent.start, sent.end);
        self.lost_bytes > 0 || self.again.iter().any(repairs)
    }

    /// Takes no segment for lost any more: all are in flight again.
    pub(super) fn unmark_lost(&mut self) {
        self.again.iter_mut().for_each(|sent| sent.repairs = false);
        for LostRange { sent, again } in self.lost.drain(..) {
            let sent = SentRange { repairs: false, ..sent };
            let list = if again { &mut self.again } else { &mut self.fresh };
            list.insert(list.partition_point(|other| other.number < sent.number), sent);
        }
        self.lost_bytes = 0;
    }

    /// Adds newly delivered data `from..to` to `delivery`. `edges` are the cumulative ack, the end
    /// of the selectively acknowledged data before it, and the end of the data sent before the last
    /// reduction. To be called before [`RackState::on_ack`].
    fn report(&self, from: u64, to: u64, edges: (u64, u64, u64), delivery: &mut Delivery) {
        let (una, highest, recover) = edges;
        delivery.sacked |= to > una;
        let first = count_first(&self.fresh, |sent| sent.start < from);
        let fresh = self.fresh.range(first..).take_while(|sent| sent.end <= to);
        let lost = self.lost.iter().filter(|lost| !lost.again).map(|lost| &lost.sent);
        let lost = lost.filter(|sent| from <= sent.start && sent.end <= to);
        for sent in lost.chain(fresh) {
            delivery.original |= sent.end <= recover;
            if sent.end == una {
                delivery.last_acked = Some(sent.at);
            }
            delivery.reordered |= sent.end <= highest;
            let (first, newest) = if sent.end <= una {
                (&mut delivery.first_acked, &mut delivery.newest_acked)
            } else {
                (&mut delivery.first_sacked, &mut delivery.newest_sacked)
            };
            *first = Some(first.map_or(sent.at, |earlier| earlier.min(sent.at)));
            *newest = (*newest).max(Some(sent.at));
        }
    }

    /// True if data below `una` was retransmitted.
    fn has_retransmitted_below(&self, una: u64) -> bool {
        self.retransmitted.start().is_some_and(|start| start < una)
    }

    /// True if `start..end` was retransmitted and is not cumulatively acknowledged.
    pub(super) fn was_retransmitted(&self, start: u64, end: u64) -> bool {
        self.retransmitted.containing(start).is_some_and(|range| end <= range.1)
    }

    /// Time at which [`RackState::expire`] is to be called; [`Time::NEVER`] if no segment waits.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Updates from an ack of everything below `una` that delivers `delivery`, with SACK scoreboard
    /// `board`. Without `patience`, the reordering window is 0. As in Linux, a segment may take the
    /// round-trip time of the last one that was acknowledged.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        una: u64,
        board: &Scoreboard,
        patience: bool,
        delivery: &Delivery,
    ) {
        self.retransmitted.remove_below(una);
        let known = ReceivedData { una, board };
        if !self.lost.is_empty() {
            // Declared lost but delivered: the timeout was spurious.
            self.lost.retain(|lost| !known.contains(lost.sent.start, lost.sent.end));
            self.lost_bytes = self
                .lost
                .iter()
                .map(|lost| self.packets.weight(lost.sent.start, lost.sent.end))
                .sum();
        }
        // The last delivered first transmission, and the last delivered retransmission.
        let top = una.max(board.highest_sacked());
        let fresh = count_first(&self.fresh, |sent| sent.end <= top).checked_sub(1);
        let fresh = fresh.map(|i| self.fresh[i]).filter(|s| known.contains(s.start, s.end));
        // After less than a round trip it is the first transmission that was delivered (§6.2 step
        // 2), and if a cumulative ack has an older timestamp. As in Linux, timestamps do not decide
        // about selective acks: they echo an older segment.
        let older = |sent: &SentRange| {
            let since = |echo: u32| echo.wrapping_sub(timestamp(sent.at)).cast_signed();
            sent.end <= una && delivery.echo.is_some_and(|echo| since(echo) < 0)
        };
        let is_again = |sent: &&SentRange| {
            let arrived = known.contains(sent.start, sent.end);
            arrived && now - sent.at >= self.min_rtt && !older(sent)
        };
        let again = self.again.iter().rev().find(is_again);
        for sent in fresh.iter().chain(again) {
            if sent.number >= self.settled {
                (self.settled, self.rtt) = (sent.number + 1, now - sent.at);
                let first = self.min_rtt == Span::ZERO;
                self.min_rtt = if first { self.rtt } else { self.min_rtt.min(self.rtt) };
            }
        }
        self.rtt = delivery.last_acked.map_or(self.rtt, |sent| now - sent);
        let wait = self.window.wait(patience, self.min_rtt).map(|wait| self.rtt + wait);
        self.settle(now, known, wait);
    }

    /// Declares the segments lost that the reordering window has spared until `now`.
    pub(super) fn expire(&mut self, now: Time, una: u64, board: &Scoreboard) {
        self.settle(now, ReceivedData { una, board }, None);
    }

    /// Processes a retransmission timeout: the first segment is lost, and each one that was sent a
    /// round-trip time ago or earlier (RFC 8985 §6.3).
    pub(super) fn on_timeout(&mut self, now: Time, una: u64, board: &Scoreboard) {
        for (which, again) in [(&mut self.fresh, false), (&mut self.again, true)] {
            let first = which.iter().position(|sent| sent.start <= una && una < sent.end);
            if let Some(sent) = first.and_then(|i| which.remove(i)) {
                let weight = self.packets.weight(sent.start, sent.end);
                self.lost.push_front(LostRange { sent, again });
                self.lost_bytes += weight;
                self.lost_total += weight;
            }
        }
        let settled = std::mem::replace(&mut self.settled, self.next);
        self.settle(now, ReceivedData { una, board }, Some(self.rtt));
        (self.settled, self.due) = (settled, Time::NEVER);
    }

    /// Removes delivered and lost segments. A segment is lost `wait` after its transmission.
    fn settle(&mut self, now: Time, known: ReceivedData<'_>, wait: Option<Span>) {
        let RackState { fresh, again, lost, lost_bytes, lost_total, settled, packets, .. } = self;
        let mut due = Time::NEVER;
        self.lost_again = false;
        for (which, again) in [(fresh, false), (again, true)] {
            while let Some(sent) = which.front().copied() {
                let arrived = known.contains(sent.start, sent.end);
                if sent.number >= *settled && !(arrived && sent.end <= known.una) {
                    break;
                }
                if let Some(lost_at) = wait.map(|wait| sent.at + wait).filter(|at| *at > now)
                    && !arrived
                {
                    due = due.min(lost_at);
                    break;
                }
                which.pop_front();
                if !arrived {
                    let at = lost.partition_point(|lost| lost.sent.start < sent.start);
                    lost.insert(at, LostRange { sent, again });
                    *lost_bytes += packets.weight(sent.start, sent.end);
                    *lost_total += packets.weight(sent.start, sent.end);
                    self.lost_again |= again;
                }
            }
        }
        self.due = due;
    }
}

#[cfg(test)]
mod tests;
