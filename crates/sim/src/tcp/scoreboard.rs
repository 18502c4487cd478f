//! What a SACK sender knows of its packets in flight, for both profiles.
//!
//! **Source**: RFC 6675 §4 (Update, IsLost, SetPipe, NextSeg); ns-2's Sack1 asks it only for the
//! next hole.
//!
//! **Cost**: nothing per packet in flight: ranges that the receiver holds, and one mark. Holes are
//! repaired from the lowest up, so everything below the mark that is still a hole was sent again.

use super::ranges::Ranges;
use super::{Ack, DUP_THRESH};

/// The sender's copy of what the receiver holds out of order.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    held: Ranges,
    /// End of the highest hole sent again (HighRxt, exclusive).
    high_rxt: u64,
}

impl Scoreboard {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.held.clear();
        self.high_rxt = 0;
    }

    /// Sequence numbers held.
    pub fn covered(&self) -> u64 {
        self.held.covered()
    }

    /// Calls `each` with every part of `from..to` that is not held.
    pub fn lacked(&self, mut from: u64, to: u64, mut each: impl FnMut(u64, u64)) {
        while from < to {
            if from >= self.top() {
                return each(from, to); // most often: nothing was out of order
            }
            let (start, end) = self.held.gap(from);
            if start < to {
                each(start, end.min(to));
            }
            from = end;
        }
    }

    /// Takes the blocks of an ack; whether they told anything new.
    pub fn update(&mut self, ack: &Ack) -> bool {
        self.held.forget_below(ack.ack);
        let mut new = 0;
        for &(start, end) in &ack.sacks[..usize::from(ack.blocks)] {
            new += self.held.insert(start.max(ack.ack), end);
        }
        new > 0
    }

    /// The range held that `seq` is in.
    pub fn around(&self, seq: u64) -> Option<(u64, u64)> {
        self.held.around(seq)
    }

    /// Notes that everything below `end` that the receiver lacks has been sent again.
    pub fn repaired_to(&mut self, end: u64) {
        self.high_rxt = self.high_rxt.max(end);
    }

    /// Starts repairing from the bottom again.
    pub fn start_over(&mut self) {
        self.high_rxt = 0;
    }

    /// The lowest gap below `below` that was not yet sent again.
    pub fn lacking(&self, una: u64, below: u64) -> Option<(u64, u64)> {
        let from = una.max(self.high_rxt);
        let (start, end) = self.held.gap(from);
        (start < below).then_some((start, end.min(below)))
    }

    /// The end of the highest block held; 0 if there is none.
    pub fn top(&self) -> u64 {
        self.held.end().unwrap_or(0)
    }

    /// The last sequence numbers before `nxt` that the receiver lacks (for the rescue).
    pub fn top_gap(&self, una: u64, nxt: u64) -> (u64, u64) {
        let mut top = nxt;
        for (start, end) in self.held.downwards() {
            if end < top {
                return (end, top);
            }
            top = start;
        }
        (una, top)
    }

    /// Everything below this that the receiver lacks is lost: three ranges, or more than two
    /// segments' worth, are held above it (IsLost).
    pub fn lost_below(&self, mss: u64) -> u64 {
        let (mut ranges, mut bytes) = (0, 0);
        for (start, end) in self.held.downwards() {
            ranges += 1;
            bytes += end - start;
            if ranges >= DUP_THRESH || bytes > u64::from(DUP_THRESH - 1) * mss {
                return start;
            }
        }
        0
    }

    /// What is in the network (SetPipe): neither held nor lost, or sent again. `lost` is where
    /// [`Scoreboard::lost_below`] or a timeout put the edge.
    pub fn pipe(&self, una: u64, nxt: u64, lost: u64) -> u64 {
        let lacking_below = |seq: u64| {
            let seq = seq.clamp(una, nxt);
            seq - una - self.held.covered_below(seq)
        };
        let lacking = nxt - una - self.held.covered();
        // Sent once and not lost, plus sent again.
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
    fn three_ranges_or_two_segments_above_mean_lost() {
        assert_eq!(board(&[(12, 13), (14, 15)]).lost_below(1), 0);
        assert_eq!(board(&[(12, 13), (14, 15), (16, 17)]).lost_below(1), 12);
        assert_eq!(board(&[(12, 14)]).lost_below(1), 0, "two segments are not more than two");
        assert_eq!(board(&[(12, 15)]).lost_below(1), 12);
        assert_eq!(board(&[(12, 13), (14, 17)]).lost_below(1), 14, "12 may only be late");
    }

    #[test]
    fn pipe_counts_what_is_neither_held_nor_lost_nor_repaired() {
        let mut b = board(&[(12, 13), (15, 20)]);
        let lost = b.lost_below(1);
        assert_eq!(lost, 15);
        // In flight are 10..25: 10 11 13 14 lost, 12 15-19 held, 20-24 on their way.
        assert_eq!(b.pipe(10, 25, lost), 5);
        assert_eq!(b.lacking(10, b.top()), Some((10, 12)));
        assert_eq!((b.lacking(10, 11), b.lacking(10, 10)), (Some((10, 11)), None));
        b.repaired_to(11);
        assert_eq!((b.pipe(10, 25, lost), b.lacking(10, b.top())), (6, Some((11, 12))));
        b.repaired_to(14);
        assert_eq!((b.pipe(10, 25, lost), b.lacking(10, b.top())), (8, Some((14, 15))));
        b.repaired_to(15);
        assert_eq!((b.pipe(10, 25, lost), b.lacking(10, b.top())), (9, None));
        b.start_over();
        assert_eq!(b.pipe(10, 25, 25), 0, "a timeout declares all of it lost");
    }

    #[test]
    fn repeated_blocks_are_no_news() {
        let mut b = board(&[(12, 13)]);
        let again = Ack { ack: 10, sacks: [(12, 13), (0, 0), (0, 0)], blocks: 1, ..Ack::default() };
        assert!(!b.update(&again));
        assert!(!b.update(&Ack { ack: 13, ..again }), "already passed");
        assert_eq!(b.top(), 0);
    }

    #[test]
    fn rescue_takes_the_top() {
        assert_eq!(board(&[(12, 13)]).top_gap(10, 20), (13, 20));
        assert_eq!(board(&[(12, 20)]).top_gap(10, 20), (10, 12));
        assert_eq!(Scoreboard::default().top_gap(10, 20), (10, 20));
    }
}
