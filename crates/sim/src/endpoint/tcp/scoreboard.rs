//! SACK scoreboard of a sender, for both profiles.
//!
//! **Source**: RFC 6675 §4 (Update, IsLost, SetPipe, NextSeg); ns-2's Sack1 uses only the next
//! hole.
//!
//! **Cost**: nothing per packet in flight; the ranges that the receiver holds and one sequence
//! number. Holes are retransmitted in ascending order, so every hole below `high_rxt` has been
//! retransmitted.

use super::ranges::Ranges;
use super::{Ack, DUP_THRESH};
use sojourn_aqm::Snapshot;

/// Sender's view of the out-of-order data at the receiver.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct Scoreboard {
    held: Ranges,
    /// End of the highest retransmitted hole (HighRxt, exclusive).
    high_rxt: u64,
}

impl Scoreboard {
    /// Removes all entries.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.high_rxt = 0;
    }

    /// Number of sequence numbers held.
    pub(super) fn covered(&self) -> u64 {
        self.held.covered()
    }

    /// Calls `each` with every part of `from..to` that is not held.
    pub(super) fn for_each_missing(&self, mut from: u64, to: u64, mut each: impl FnMut(u64, u64)) {
        while from < to {
            if from >= self.highest_sacked() {
                return each(from, to); // common case: nothing is out of order
            }
            let (start, end) = self.held.gap_at(from);
            if start < to {
                each(start, end.min(to));
            }
            from = end;
        }
    }

    /// Records the blocks of an ack; returns true if they contain new information.
    pub(super) fn update(&mut self, ack: &Ack) -> bool {
        self.held.remove_below(ack.ack);
        let mut new = 0;
        for &(start, end) in &ack.sacks[..usize::from(ack.blocks)] {
            new += self.held.insert(start.max(ack.ack), end);
        }
        new > 0
    }

    /// Start of the lowest held range.
    pub(super) fn lowest_sacked(&self) -> Option<u64> {
        self.held.start()
    }

    /// Held range that contains `seq`.
    pub(super) fn around(&self, seq: u64) -> Option<(u64, u64)> {
        self.held.containing(seq)
    }

    /// Records that every hole below `end` has been retransmitted.
    pub(super) fn set_retransmitted_to(&mut self, end: u64) {
        self.high_rxt = self.high_rxt.max(end);
    }

    /// Restarts retransmission from the lowest hole.
    pub(super) fn restart_retransmission(&mut self) {
        self.high_rxt = 0;
    }

    /// Lowest hole below `below` that is not yet retransmitted.
    pub(super) fn next_hole(&self, una: u64, below: u64) -> Option<(u64, u64)> {
        let from = una.max(self.high_rxt);
        let (start, end) = self.held.gap_at(from);
        (start < below).then_some((start, end.min(below)))
    }

    /// End of the highest held block; 0 if there is none.
    pub(super) fn highest_sacked(&self) -> u64 {
        self.held.end().unwrap_or(0)
    }

    /// Highest hole below `nxt` (for the rescue retransmission).
    pub(super) fn highest_hole(&self, una: u64, nxt: u64) -> (u64, u64) {
        let mut top = nxt;
        for (start, end) in self.held.iter_descending() {
            if end < top {
                return (end, top);
            }
            top = start;
        }
        (una, top)
    }

    /// Sequence number below which all holes are lost: at least three ranges, or more than two
    /// segments, are held above it (IsLost).
    pub(super) fn lost_below(&self, mss: u64) -> u64 {
        let (mut ranges, mut bytes) = (0, 0);
        for (start, end) in self.held.iter_descending() {
            ranges += 1;
            bytes += end - start;
            if ranges >= DUP_THRESH || bytes > u64::from(DUP_THRESH - 1) * mss {
                return start;
            }
        }
        0
    }

    /// Estimate of the data in the network (SetPipe): neither held nor lost, or retransmitted.
    /// `lost` is the edge set by [`Scoreboard::lost_below`] or a timeout.
    pub(super) fn pipe(&self, una: u64, nxt: u64, lost: u64) -> u64 {
        let lacking_below = |seq: u64| {
            let seq = seq.clamp(una, nxt);
            seq - una - self.held.covered_below(seq)
        };
        let lacking = nxt - una - self.held.covered();
        // In flight and not lost, plus retransmitted.
        lacking - lacking_below(lost) + lacking_below(self.high_rxt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(blocks: &[(u64, u64)]) -> Scoreboard {
        let mut b = Scoreboard::default();
        for &block in blocks {
            let sacks = [block, (0, 0), (0, 0)];
            assert!(b.update(&Ack { ack: 10, sacks, blocks: 1, ..Ack::default() }));
        }
        b
    }

    #[test]
    fn lost_below_three_ranges_or_more_than_two_segments() {
        assert_eq!(board(&[(12, 13), (14, 15)]).lost_below(1), 0);
        assert_eq!(board(&[(12, 13), (14, 15), (16, 17)]).lost_below(1), 12);
        assert_eq!(board(&[(14, 15), (12, 13)]).lowest_sacked(), Some(12));
        assert_eq!(board(&[(12, 14)]).lost_below(1), 0, "two segments are not more than two");
        assert_eq!(board(&[(12, 15)]).lost_below(1), 12);
        assert_eq!(board(&[(12, 13), (14, 17)]).lost_below(1), 14, "11 may be reordered");
        // RFC 6675 section 4, IsLost: three ranges are enough, however short they are.
        assert_eq!(board(&[(12, 13), (14, 15), (16, 17)]).lost_below(1000), 12);
        assert_eq!(board(&[(12, 13), (14, 15)]).lost_below(1000), 0);
    }

    #[test]
    fn lacked_parts_are_the_bytes_not_held_and_none_is_empty() {
        let b = board(&[(12, 13), (15, 20)]);
        for (from, to) in (10..25).flat_map(|from| (from..=25).map(move |to| (from, to))) {
            let mut lacked = vec![];
            b.for_each_missing(from, to, |start, end| {
                assert!(start < end, "{from}..{to}: {start}..{end}");
                lacked.extend(start..end);
            });
            let expected = (from..to).filter(|&x| x != 12 && !(15..20).contains(&x));
            assert!(lacked.iter().copied().eq(expected), "{from}..{to}: {lacked:?}");
        }
    }

    #[test]
    fn pipe_excludes_held_and_lost_and_includes_retransmitted() {
        let mut b = board(&[(12, 13), (15, 20)]);
        let lost = b.lost_below(1);
        assert_eq!(lost, 15);
        // In flight: 10..25. Lost: 10, 11, 13, 14. Held: 12, 15-19. In the network: 20-24.
        assert_eq!(b.pipe(10, 25, lost), 5);
        assert_eq!(b.next_hole(10, b.highest_sacked()), Some((10, 12)));
        assert_eq!((b.next_hole(10, 11), b.next_hole(10, 10)), (Some((10, 11)), None));
        b.set_retransmitted_to(11);
        assert_eq!(
            (b.pipe(10, 25, lost), b.next_hole(10, b.highest_sacked())),
            (6, Some((11, 12)))
        );
        b.set_retransmitted_to(14);
        assert_eq!(
            (b.pipe(10, 25, lost), b.next_hole(10, b.highest_sacked())),
            (8, Some((14, 15)))
        );
        b.set_retransmitted_to(15);
        assert_eq!((b.pipe(10, 25, lost), b.next_hole(10, b.highest_sacked())), (9, None));
        b.restart_retransmission();
        assert_eq!(b.pipe(10, 25, 25), 0, "after a timeout everything is lost");
    }

    #[test]
    fn repeated_blocks_are_not_new() {
        let mut b = board(&[(12, 13)]);
        let again = Ack { ack: 10, sacks: [(12, 13), (0, 0), (0, 0)], blocks: 1, ..Ack::default() };
        assert!(!b.update(&again));
        assert!(!b.update(&Ack { ack: 13, ..again }), "below the cumulative ack");
        assert_eq!(b.highest_sacked(), 0);
    }

    #[test]
    fn rescue_uses_the_highest_hole() {
        assert_eq!(board(&[(12, 13)]).highest_hole(10, 20), (13, 20));
        assert_eq!(board(&[(12, 20)]).highest_hole(10, 20), (10, 12));
        assert_eq!(Scoreboard::default().highest_hole(10, 20), (10, 20));
    }
}
