//! When Linux's receiver delays an ack, and for how long.
//!
//! **Source**: Linux 6.18 `net/ipv4/tcp_input.c` (`tcp_event_data_recv`, `tcp_measure_rcv_mss`,
//! `tcp_enter_quickack_mode`), `tcp_output.c` (`tcp_send_delayed_ack`, `tcp_dec_quickack_mode`) and
//! `tcp_timer.c` (`tcp_delack_timer_handler`).
//!
//! **Departures** The program reads at once. The answer to a SYN gives the only round-trip time of
//! delays, from it to the first data; the receive window has its own (`linux_rtt.rs`). Delays are
//! not whole ticks; with `jiffies` their ends are.

use super::super::params::EcnFeedback;
use super::super::{Ack, Segment};
use super::Receiver;
use super::linux_compression::LinuxCompression;
use super::linux_rtt::LinuxRtt;
use super::linux_window::LinuxWindow;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};

/// Most segments that are acknowledged at once after the start, a pause or a duplicate.
const MAX_QUICK: u32 = 16;
/// Segments that are acknowledged at once after a mark.
const QUICK_AFTER_MARK: u32 = 2;
/// Minimum of the receiver's own retransmission timeout, less the round-trip time.
const RTO_MIN: Span = Span::ms(200);

/// State of the delayed acks of a connection.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct LinuxAcks {
    /// Shortest delay.
    least: Span,
    /// Delay of an ack, before its upper bound (`ato`); zero before the first data.
    ato: Span,
    /// Segments that are still to be acknowledged at once (`quick`).
    quick: u32,
    /// Time of the last data in order.
    heard: Time,
    /// Time of the SYN.
    syn: Time,
    rtt: LinuxRtt,
    window: LinuxWindow,
    /// State of the acks that wait while data is missing.
    pub(super) compression: LinuxCompression,
}

impl LinuxAcks {
    /// Creates the state for a new connection, with delays of at least `least`.
    pub(super) fn new(least: Span) -> LinuxAcks {
        let (ato, rtt, window) = (Span::ZERO, LinuxRtt::default(), LinuxWindow::new());
        let (heard, syn, compression) = (Time::ZERO, Time::ZERO, LinuxCompression::default());
        LinuxAcks { least, ato, quick: 0, heard, syn, rtt, window, compression }
    }

    /// Starts anew.
    pub(super) fn reset(&mut self) {
        *self = LinuxAcks::new(self.least);
    }

    /// Notes a SYN.
    pub(super) fn on_syn(&mut self, now: Time) {
        self.syn = now;
    }

    /// Notes a segment in order: the delay follows the gaps between segments.
    pub(super) fn on_data(&mut self, now: Time, seg: &Segment) {
        let gap = now - self.heard;
        self.heard = now;
        if self.ato == Span::ZERO {
            self.rtt.start(now, seg, now - self.syn);
            (self.ato, self.quick) = (self.least, MAX_QUICK);
        } else if gap <= Span(self.least.0 / 2) {
            self.ato = Span(self.ato.0 / 2 + self.least.0 / 2);
        } else if gap < self.ato {
            self.ato = Span(self.ato.0 / 2 + gap.0).min(self.rto());
        } else if gap > self.rto() {
            self.quick = self.quick.max(MAX_QUICK);
        }
    }

    /// Notes a segment that had not arrived before; `next` is the next expected byte.
    pub(super) fn on_new_data(&mut self, now: Time, seg: &Segment, next: u64) {
        self.rtt.on_data(now, seg, self.window.mss());
        if self.window.on_data(now, u64::from(seg.len), next, self.rtt.estimate()) {
            self.quick |= 1;
        }
    }

    /// Notes a segment that had arrived before.
    pub(super) fn on_duplicate(&mut self) {
        (self.quick, self.ato) = (self.quick.max(MAX_QUICK), self.least);
    }

    /// Notes the first mark of an echo.
    pub(super) fn on_mark(&mut self) {
        (self.quick, self.ato) = (self.quick.max(QUICK_AFTER_MARK), self.least);
    }

    /// True if the next segment is acknowledged at once.
    pub(super) fn is_quick(&self) -> bool {
        self.quick > 0
    }

    /// Notes an ack. Returns true if it stands for compressed ones.
    pub(super) fn on_ack(&mut self) -> bool {
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = self.least;
            }
        }
        self.compression.on_ack()
    }

    /// Notes that the delay of an ack has passed.
    pub(super) fn on_timer(&mut self) {
        self.ato = Span(self.ato.0 * 2).min(self.rto());
    }

    /// Delay of an ack: at most a round-trip time, if that is longer than the shortest delay.
    pub(super) fn delay(&self) -> Span {
        self.ato.min(self.rtt().max(self.least)).max(self.least)
    }

    /// Round-trip time of the handshake; zero before the first data.
    pub(super) fn rtt(&self) -> Span {
        self.rtt.handshake()
    }

    /// Largest segment so far, bytes.
    pub(super) fn mss(&self) -> u64 {
        self.window.mss()
    }

    /// Retransmission timeout after one sample.
    fn rto(&self) -> Span {
        self.rtt() + Span(self.rtt().0 * 2).max(RTO_MIN)
    }
}

impl Receiver {
    /// Acknowledges `seg` at once, or notes when to. `whole` is true if no data was missing before
    /// it, and `at_once` if every receiver acknowledges it at once.
    #[cold]
    pub(super) fn acknowledge_as_linux(
        &mut self,
        now: Time,
        seg: &Segment,
        in_order: bool,
        whole: bool,
        at_once: bool,
    ) -> Option<&Ack> {
        if self.last.syn {
            self.last.wire = self.ack_bytes;
        }
        let linux = self.linux.as_mut()?;
        if seg.syn {
            linux.on_syn(now);
        } else if in_order {
            linux.on_data(now, seg);
        } else if seg.seq < self.next {
            linux.on_duplicate();
        }
        if !seg.syn && (in_order || seg.seq >= self.next) {
            linux.on_new_data(now, seg, self.next);
        }
        // The sender has confirmed earlier marks, so that this is the first one of another echo.
        let first = !self.echo || self.answered;
        if self.feedback == EcnFeedback::Rfc3168 && self.marked && first {
            linux.on_mark();
        }
        // The window of a sender that reduces it may be a single segment.
        if !at_once && !seg.cwr && !linux.is_quick() {
            if whole && in_order && !seg.push && self.due == Time::NEVER {
                self.due = self.clock.after(now, linux.delay());
                return None;
            }
            if !self.held.is_empty() && self.compresses(now) {
                return None;
            }
        }
        if let Some(linux) = self.linux.as_mut().filter(|_| !seg.syn) {
            linux.on_ack();
        }
        self.due = Time::NEVER;
        self.write_ack(seg.syn);
        if seg.syn {
            self.last.wire += self.syn_options;
        }
        Some(&self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::jiffies::HalfTick;
    use super::super::super::params::parse;
    use super::*;
    use sojourn_aqm::params::Setting::Flag;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    /// State after a SYN, first data `rtt` ms later, and 16 acks.
    fn settled(rtt: u64) -> LinuxAcks {
        let mut acks = LinuxAcks::new(Span::ms(40));
        acks.on_syn(at(0));
        acks.on_data(at(rtt), &segment(1));
        (0..MAX_QUICK).for_each(|_| _ = acks.on_ack());
        acks
    }

    #[test]
    fn the_first_sixteen_segments_are_acknowledged_at_once() {
        let mut acks = LinuxAcks::new(Span::ms(40));
        assert!(!acks.is_quick());
        acks.on_data(at(50), &segment(1));
        for _ in 0..16 {
            assert!(acks.is_quick());
            acks.on_ack();
        }
        assert!(!acks.is_quick());
    }

    #[test]
    fn the_delay_follows_the_gaps_up_to_the_round_trip_time() {
        let mut acks = settled(60);
        assert_eq!(acks.delay(), Span::ms(40));
        acks.on_data(at(96), &segment(1)); // 36 ms: 40/2 + 36
        assert_eq!(acks.delay(), Span::ms(56));
        acks.on_data(at(132), &segment(1)); // 56/2 + 36 = 64, above the round-trip time
        assert_eq!(acks.delay(), Span::ms(60));
        acks.on_data(at(133), &segment(1)); // 64/2 + 20
        assert_eq!(acks.delay(), Span::ms(52));
        acks.on_timer(); // 104
        assert_eq!(acks.delay(), Span::ms(60));
        assert_eq!(settled(10).delay(), Span::ms(40), "never shorter");
    }

    #[test]
    fn a_gap_as_long_as_the_delay_does_not_change_it() {
        let mut acks = settled(60);
        acks.on_data(at(100), &segment(1));
        assert_eq!(acks.delay(), Span::ms(40));
    }

    #[test]
    fn the_last_quick_ack_ends_with_the_shortest_delay() {
        let mut acks = LinuxAcks::new(Span::ms(40));
        acks.on_data(at(60), &segment(1));
        (0..15).for_each(|_| _ = acks.on_ack());
        acks.on_data(at(96), &segment(1));
        acks.on_ack();
        assert_eq!(acks.delay(), Span::ms(40));
    }

    #[test]
    fn a_pause_is_longer_than_the_timeout() {
        // Timeouts: the round-trip time and twice as much, or 200 ms.
        for (rtt, timeout) in [(50, 250), (150, 450)] {
            let mut acks = settled(rtt);
            acks.on_data(at(rtt + timeout), &segment(1));
            assert!(!acks.is_quick());
            acks.on_data(at(rtt + 2 * timeout + 1), &segment(1));
            assert!(acks.is_quick());
        }
    }

    #[test]
    fn pauses_duplicates_and_marks_are_followed_by_quick_acks() {
        let count = |acks: &mut LinuxAcks| {
            (0..)
                .take_while(|_| {
                    let quick = acks.is_quick();
                    acks.on_ack();
                    quick
                })
                .count()
        };
        let mut acks = settled(50); // timeout 250 ms
        acks.on_data(at(50 + 250), &segment(1));
        assert_eq!(count(&mut acks), 0);
        acks.on_data(at(50 + 250 + 251), &segment(1));
        assert_eq!(count(&mut acks), 16);
        acks.on_duplicate();
        assert_eq!(count(&mut acks), 16);
        acks.on_mark();
        assert_eq!(count(&mut acks), 2);
    }

    /// The answer to a SYN has the options of Linux; acks have not.
    #[test]
    fn the_answer_to_a_syn_is_longer_than_an_ack() {
        for (linux_syn, bytes) in [(true, 48), (false, 40)] {
            let params = [("linux_acks", Flag(true)), ("linux_syn", Flag(linux_syn))];
            let mut r = Receiver::new(&parse("sack", params).unwrap(), &mut HalfTick);
            for _ in 0..2 {
                let syn = Segment { syn: true, ..Segment::default() };
                assert_eq!(r.on_segment(at(0), &syn, false).map(|ack| ack.wire), Some(bytes));
                assert_eq!(r.on_segment(at(0), &segment(1), false).map(|ack| ack.wire), Some(40));
                r.reset();
            }
        }
    }

    /// Receiver with a round-trip time of 50 ms that has acknowledged 16 segments, and the next
    /// sequence number.
    fn receiver() -> (Receiver, u64) {
        let mut r =
            Receiver::new(&parse("sack", [("linux_acks", Flag(true))]).unwrap(), &mut HalfTick);
        let syn = Segment { syn: true, ..Segment::default() };
        assert!(r.on_segment(at(0), &syn, false).is_some_and(|ack| ack.syn));
        for seq in 1..17 {
            let quick = r.on_segment(at(50), &segment(seq), false).map(|ack| ack.ack);
            assert_eq!(quick, Some(seq + 1));
        }
        (r, 17)
    }

    fn segment(seq: u64) -> Segment {
        Segment { seq, len: 1, ect: true, ..Segment::default() }
    }

    #[test]
    fn a_segment_with_push_is_acknowledged_at_once() {
        let (mut r, next) = receiver();
        let mut take = |ms, seg: Segment| r.on_segment(at(ms), &seg, false).map(|ack| ack.ack);
        assert_eq!(take(51, segment(next)), None);
        assert_eq!(take(52, segment(next + 1)), Some(next + 2), "every second");
        assert_eq!(take(53, Segment { push: true, ..segment(next + 2) }), Some(next + 3));
        assert_eq!(take(54, segment(next + 3)), None);
        assert_eq!(r.timer(), at(54 + 40));
    }

    #[test]
    fn the_timer_of_an_ack_follows_gaps_and_its_expiry() {
        let (mut r, next) = receiver();
        assert_eq!(r.on_segment(at(86), &segment(next), false), None);
        assert_eq!(r.timer(), at(86 + 50), "36 ms after the last: 56 ms, at most 50");
        assert!(r.on_timer(at(136)).is_some());
        assert_eq!(r.on_segment(at(146), &segment(next + 1), false), None);
        assert_eq!(r.timer(), at(146 + 50), "112/2 + 20 ms");
    }

    #[test]
    fn a_duplicate_and_a_mark_are_followed_by_quick_acks() {
        let (mut r, next) = receiver();
        assert_eq!(r.on_segment(at(51), &segment(next), true).map(|ack| ack.ece), Some(true));
        assert!(r.on_segment(at(52), &segment(next + 1), false).is_some(), "two after a mark");
        assert!(r.on_segment(at(53), &segment(next + 2), false).is_none());
        assert!(r.on_segment(at(54), &segment(next), false).is_some(), "a duplicate");
        for seq in next + 3..next + 18 {
            assert!(r.on_segment(at(55), &segment(seq), false).is_some());
        }
        assert!(r.on_segment(at(55), &segment(next + 18), false).is_none());
    }

    /// Segments of 1000 bytes, 40 in each round trip of 50 ms.
    #[test]
    fn segments_are_acknowledged_at_once_while_the_window_grows() {
        let (mut r, mut next) = receiver();
        let mut round = |r: &mut Receiver, ms| {
            let acks = (0..40).filter(|_| {
                let seg = Segment { len: 1_000, ..segment(next) };
                next += 1_000;
                r.on_segment(at(ms), &seg, false).is_some()
            });
            acks.count()
        };
        assert_eq!(round(&mut r, 60), 20, "every second one");
        assert_eq!(round(&mut r, 110), 40, "more than the 10 that were expected");
        assert_eq!(round(&mut r, 120), 40);
    }

    #[test]
    fn cwr_and_the_first_mark_after_it_are_acknowledged_at_once() {
        let (mut r, next) = receiver();
        let mut take = |i, cwr, ce| {
            let seg = Segment { cwr, ..segment(next + i) };
            r.on_segment(at(51), &seg, ce).map(|ack| ack.ece)
        };
        assert_eq!(take(0, false, true), Some(true));
        assert_eq!([take(1, false, false), take(2, false, true)], [Some(true), None], "two quick");
        assert_eq!(take(3, false, false), Some(true), "every second one");
        assert_eq!(take(4, true, false), Some(false), "CWR ends the echo");
        assert_eq!(take(5, false, false), None);
        assert_eq!(take(6, true, true), Some(true));
        assert_eq!(take(7, true, true), Some(true), "a mark with CWR is a first mark");
        assert_eq!(take(8, false, false), Some(true), "so one more is quick");
    }

    #[test]
    fn a_new_connection_starts_anew() {
        let (mut r, _) = receiver();
        r.reset();
        r.on_segment(at(1_000), &Segment { syn: true, ..Segment::default() }, false);
        for seq in 1..17 {
            assert!(r.on_segment(at(1_060), &segment(seq), false).is_some(), "quick");
        }
        assert!(r.on_segment(at(1_096), &segment(17), false).is_none());
        assert!(r.on_segment(at(1_132), &segment(18), false).is_some());
        assert!(r.on_segment(at(1_168), &segment(19), false).is_none());
        assert_eq!(r.timer(), at(1_168 + 60), "the round-trip time of this connection");
    }
}
