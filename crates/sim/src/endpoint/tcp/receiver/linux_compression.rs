//! Compression of SACKs in Linux's receiver: while data is missing, most duplicate acks wait for a
//! timer and one ack stands for all of them.
//!
//! **Source**: Linux 6.18 `net/ipv4/tcp_input.c` (`__tcp_ack_snd_check`, `tcp_sack_new_ofo_skb`)
//! and `tcp_timer.c` (`tcp_compressed_ack_kick`), with the defaults of `tcp_comp_sack_delay_ns`,
//! `tcp_comp_sack_slack_ns` and `tcp_comp_sack_nr`. From 6.19 on the delay is 33 % of a round-trip
//! time, not 5 % (`tcp_comp_sack_rtt_percent`).
//!
//! **Rule**: the first three duplicate acks of a sequence number are sent at once, so that a sender
//! without RACK sees the loss. A later one waits for 5 % of the round-trip time, at most 1 ms, and
//! a slack of 100 us, unless 44 wait already. A segment whose block would be the third one sends
//! the waiting ack first, because an ack has room for three blocks and may be lost.
//!
//! **Departures**: the timer expires at the end of its slack, as it does on an idle machine. The
//! round-trip time is the one of the handshake.

use super::super::DUP_THRESH;
use super::super::{Ack, Segment};
use super::Receiver;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};

/// Longest delay, before the slack.
const MAX_DELAY: Span = Span::ms(1);
/// Delay after which a timer may expire later, to share an interrupt with others.
const SLACK: Span = Span::us(100);
/// Round-trip times per delay.
const RTTS_PER_DELAY: u64 = 20;
/// Most acks that wait.
const MAX_WAITING: u32 = 44;
/// Number of blocks that a waiting ack reports.
const BLOCKS_EXPECTED: usize = 2;

/// State of a connection.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct LinuxCompression {
    /// Cumulative ack to which `sent` belongs.
    next: u64,
    /// Duplicate acks of `next` that were sent at once, at most [`DUP_THRESH`].
    sent: u32,
    /// Number of acks that wait.
    waiting: u32,
}

impl LinuxCompression {
    /// Decides about the ack of a segment that leaves data missing, where `next` is the next
    /// expected byte. Returns true if the ack waits.
    fn holds(&mut self, next: u64) -> bool {
        if self.waiting >= MAX_WAITING {
            return false;
        }
        if self.next != next {
            (self.next, self.sent) = (next, 0);
        }
        if self.sent < DUP_THRESH {
            self.sent += 1;
            return false;
        }
        self.waiting += 1;
        true
    }

    /// Notes that an ack is sent. Returns true if others waited.
    pub(super) fn on_ack(&mut self) -> bool {
        std::mem::take(&mut self.waiting) > 0
    }
}

/// Time from the first ack that waits to the ack, at a round-trip time of `rtt`.
fn delay(rtt: Span) -> Span {
    Span(rtt.0 / RTTS_PER_DELAY).min(MAX_DELAY) + SLACK
}

impl Receiver {
    /// Returns true if the ack of a segment that leaves data missing waits for the timer.
    pub(super) fn compresses(&mut self, now: Time) -> bool {
        let Some(linux) = self.linux.as_mut().filter(|_| self.sack) else { return false };
        // More than a full segment is acknowledged at once, and so is a change of the mark state.
        let advance = self.next - self.last.ack;
        if advance > linux.mss() || self.due == Time::ZERO || !linux.compression.holds(self.next) {
            return false;
        }
        if linux.compression.waiting == 1 {
            self.due = now + delay(linux.rtt());
        }
        true
    }

    /// Sends the waiting ack before `seg`, if the block of `seg` would be at least the third one.
    #[cold]
    pub(super) fn before_linux_segment(&mut self, seg: &Segment) -> Option<&Ack> {
        let linux = self.linux.as_mut()?;
        let end = seg.seq + u64::from(seg.len);
        if linux.compression.waiting == 0 || seg.seq <= self.next {
            return None;
        }
        let recent = &self.recent[..usize::from(self.recents)];
        let mut blocks = recent.iter().filter(|block| block.0 > self.next);
        let known = blocks.clone().count();
        let place = blocks.position(|block| seg.seq <= block.1 && block.0 <= end);
        if place.unwrap_or(known) < BLOCKS_EXPECTED {
            return None;
        }
        linux.on_ack();
        self.due = Time::NEVER;
        Some(self.write_ack(false))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::jiffies::HalfTick;
    use super::super::super::params::parse;
    use super::*;
    use sojourn_aqm::params::Setting::Flag;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::us(us)
    }

    fn segment(seq: u64) -> Segment {
        Segment { seq, len: 100, ect: true, ..Segment::default() }
    }

    /// Receiver of segments of 100 bytes, too small to let the window grow, with a round-trip time
    /// of 10 ms. It has acknowledged the segments from 1 to 1501, and no ack is quick any more.
    fn receiver(name: &str) -> Receiver {
        let mut r =
            Receiver::new(&parse(name, [("linux_acks", Flag(true))]).unwrap(), &mut HalfTick);
        r.on_segment(at(0), &Segment { syn: true, ..Segment::default() }, false);
        for i in 0..16 {
            let ack = r.on_segment(at(10_000), &segment(1 + 100 * i), false);
            assert!(ack.is_some(), "{i}");
        }
        r
    }

    /// Cumulative ack and number of blocks of the ack of a segment.
    fn take(r: &mut Receiver, us: u64, seq: u64) -> Option<(u64, u8)> {
        r.on_segment(at(us), &segment(seq), false).map(|ack| (ack.ack, ack.blocks))
    }

    #[test]
    fn three_duplicate_acks_are_sent_at_once_and_the_next_ones_by_the_timer() {
        let mut r = receiver("sack");
        let now = [1801, 1901, 2001, 2101, 2201].map(|seq| take(&mut r, 20_000, seq));
        assert_eq!(now, [Some((1601, 1)), Some((1601, 1)), Some((1601, 1)), None, None]);
        assert_eq!(r.timer(), at(20_600), "5 % of 10 ms, and 100 us");
        assert_eq!(take(&mut r, 20_300, 2301), None);
        assert_eq!(r.timer(), at(20_600), "the first one starts the timer");
        let ack = *r.on_timer(r.timer()).unwrap();
        assert_eq!((ack.ack, ack.sacks[0]), (1601, (1801, 2401)));
        assert_eq!((take(&mut r, 20_700, 2401), r.timer()), (None, at(21_300)), "again");
    }

    #[test]
    fn data_in_order_is_acknowledged_at_once_and_starts_the_count_again() {
        let mut r = receiver("sack");
        for seq in [1801, 2001, 2101] {
            assert!(take(&mut r, 20_000, seq).is_some());
        }
        assert_eq!(take(&mut r, 20_000, 2201), None);
        assert_eq!(take(&mut r, 20_100, 1601), Some((1701, 2)), "one of two holes");
        assert_eq!(take(&mut r, 20_200, 1701), Some((1901, 1)));
        assert_eq!((r.timer(), take(&mut r, 20_200, 2301)), (Time::NEVER, Some((1901, 1))));
        let now = [2401, 2501, 2601].map(|seq| take(&mut r, 20_300, seq));
        assert_eq!(now, [Some((1901, 1)), Some((1901, 1)), None]);
        assert_eq!(take(&mut r, 20_400, 1901), Some((2701, 0)), "the last hole");
        assert_eq!(take(&mut r, 20_500, 2701), None, "delayed");
        assert_eq!(r.timer(), at(60_500));
    }

    #[test]
    fn a_third_block_sends_the_waiting_ack_first() {
        let mut r = receiver("sack");
        for seq in [1801, 1901, 2001] {
            assert!(take(&mut r, 20_000, seq).is_some());
        }
        assert_eq!((take(&mut r, 20_000, 2201), r.timer()), (None, at(20_600)));
        assert_eq!(r.before_segment(&segment(2301), false), None, "extends the latest block");
        assert_eq!(r.before_segment(&segment(2101), false), None, "joins both");
        let ack = *r.before_segment(&segment(2401), false).unwrap();
        assert_eq!(ack.sacks[..2], [(2201, 2301), (1801, 2101)]);
        assert_eq!(r.timer(), Time::NEVER);
        assert_eq!((take(&mut r, 20_200, 2401), r.timer()), (None, at(20_800)));
        assert!(r.before_segment(&segment(2101), false).is_none(), "extends the second one");
        assert!(r.before_segment(&segment(1601), false).is_none(), "in order");
    }

    #[test]
    fn at_most_44_acks_wait_for_at_most_a_millisecond() {
        let mut compression = LinuxCompression::default();
        let held = (0..100).map(|_| compression.holds(7)).collect::<Vec<_>>();
        assert_eq!(held.iter().position(|held| *held), Some(3));
        assert_eq!(held.iter().filter(|held| **held).count(), 44);
        assert!(compression.on_ack() && !compression.on_ack());
        assert!(compression.holds(7) && !compression.holds(8));
        assert_eq!([5, 20, 300].map(|ms| delay(Span::ms(ms)).0), [350_000, 1_100_000, 1_100_000]);
    }

    #[test]
    fn without_sack_and_after_a_duplicate_every_ack_is_sent() {
        let mut r = receiver("newreno");
        assert!((18..30).all(|k| take(&mut r, 20_000, k * 100 + 1).is_some()));
        let mut r = receiver("sack");
        assert!(take(&mut r, 20_000, 1501).is_some(), "a duplicate: 16 quick acks");
        assert!((18..33).all(|k| take(&mut r, 20_000, k * 100 + 1).is_some()));
        let waits = (33..40).map(|k| take(&mut r, 20_000, k * 100 + 1).is_none());
        assert_eq!(waits.collect::<Vec<_>>(), [false, false, false, true, true, true, true]);
    }
}
