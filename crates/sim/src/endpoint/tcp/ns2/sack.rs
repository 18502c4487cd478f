//! ns-2's `SackState`: only duplicate acks with new SACK information count. A recovery sends while
//! its estimate of the packets in the network is below the window: first holes, each once, then new
//! data. Unlike FACK and RFC 6675, every hole below the highest block counts as lost at once.

use super::super::scoreboard::Scoreboard;
use super::super::{Ack, DUP_THRESH, Segment};
use super::{LastReduction, Ns2Sender};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::Time;

/// State of the SACK sender.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct SackState {
    board: Scoreboard,
    /// Estimate of the packets in the network; can be negative.
    pipe: i64,
    recovering: bool,
    /// True from a timeout until the next ack of new data: duplicate acks are ignored.
    deaf: bool,
    /// `sack_min`: lowest packet that may be retransmitted; `una` when blocks last arrived. A reset
    /// does not clear it, and a block that starts below it moves it to the end of the block.
    floor: u64,
}

impl SackState {
    /// Resets the connection state, except what ns-2's `reset` keeps.
    pub(super) fn reset(&mut self) {
        self.board.clear();
        (self.pipe, self.recovering, self.deaf) = (0, false, false);
    }

    /// Discards SACK information after a retransmission timeout.
    pub(super) fn on_timeout(&mut self) {
        self.board.clear();
        (self.recovering, self.deaf) = (false, true);
    }

    /// Records the blocks of an ack; returns true if they contain new information.
    fn record_blocks(&mut self, ack: &Ack) -> bool {
        self.floor = self.floor.max(ack.ack);
        let new = self.board.update(ack);
        if self.board.lowest_sacked().is_none_or(|start| self.floor < start) {
            return new; // common case: no block begins as low
        }
        for &(start, _) in &ack.sacks[..usize::from(ack.blocks)] {
            if let Some((start, end)) = self.board.around(start)
                && self.floor >= start
            {
                self.floor = end;
            }
        }
        new
    }

    /// Applies `floor` to the scoreboard; ns-2 does so whenever the window allows sending.
    pub(super) fn apply_floor(&mut self) {
        self.board.set_retransmitted_to(self.floor);
    }

    /// True in fast recovery.
    pub(super) fn recovering(&self) -> bool {
        self.recovering
    }
}

impl Ns2Sender {
    /// Processes an ack as a SACK sender.
    pub(super) fn on_sack(&mut self, now: Time, ack: &Ack, out: &mut Vec<Segment>) {
        if self.sack.recovering {
            self.on_ack_in_recovery(now, ack);
            return self.send(now, u32::MAX, out);
        }
        if ack.ack > self.una {
            self.on_new_ack(now, ack);
            self.sack.deaf = false;
            self.sack.board.clear();
        } else if ack.ack == self.una && !self.sack.deaf && self.sack.record_blocks(ack) {
            self.dup += 1;
            if self.dup == DUP_THRESH {
                self.enter_recovery(now, out);
            } else if self.dup < DUP_THRESH {
                self.send_limited(now, out);
            }
        }
        if self.dup == 0 {
            self.send_inlined(now, u32::MAX, out);
        }
    }

    /// Processes the third duplicate ack: retransmits the first hole. The pipe starts at the flight
    /// size minus the three packets of the duplicate acks; the retransmission is not added.
    fn enter_recovery(&mut self, now: Time, out: &mut Vec<Segment>) {
        let again = self.loss_after_mark();
        if !again && !self.may_cut() {
            return;
        }
        if !again {
            self.recover = self.max;
            self.halve_window();
        }
        self.last = LastReduction::DupAcks;
        self.sack.pipe = (self.max - self.una).cast_signed() - i64::from(DUP_THRESH);
        self.sack.recovering = true;
        self.sack.board.set_retransmitted_to(self.una + 1);
        self.stop_timing();
        self.set_timer(now);
        self.output(now, self.una, out);
    }

    /// Processes an ack in recovery: one packet has left the network, for a partial ack two.
    fn on_ack_in_recovery(&mut self, now: Time, ack: &Ack) {
        self.sack.pipe -= 1;
        if ack.ack >= self.recover {
            (self.sack.recovering, self.sack.deaf) = (false, false);
            self.recover = 1;
            self.sack.board.clear();
            self.on_cumulative_ack(now, ack);
        } else if ack.ack > self.una {
            self.sack.pipe -= 1;
            self.sack.record_blocks(ack);
            self.set_timer(now);
            self.rtt.reset_backoff();
            self.set_una(ack.ack);
        } else if self.sack.record_blocks(ack) {
            self.dup += 1;
        }
    }

    /// Sends holes, then new data, while the pipe is below the window.
    pub(super) fn send_in_recovery(&mut self, now: Time, out: &mut Vec<Segment>) {
        let window = i64::try_from(cast::trunc(self.cwnd)).unwrap_or(i64::MAX);
        while self.sack.pipe < window {
            self.sack.apply_floor();
            let seq = match self.sack.board.next_hole(self.una, self.sack.board.highest_sacked()) {
                Some((hole, _)) => {
                    self.sack.board.set_retransmitted_to(hole + 1);
                    hole
                }
                None if self.nxt < self.end.min(self.una + self.rwnd) => self.nxt,
                None => return,
            };
            self.output(now, seq, out);
            self.nxt = self.nxt.max(seq + 1);
            self.sack.pipe += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_begins_at_the_floor_raises_it_to_its_end() {
        let block = |start, end| {
            let sacks = [(start, end), (0, 0), (0, 0)];
            let mut sack = SackState { floor: 5, ..SackState::default() };
            assert!(sack.record_blocks(&Ack { ack: 2, sacks, blocks: 1, ..Ack::default() }));
            sack.floor
        };
        assert_eq!([block(4, 8), block(5, 8), block(6, 8)], [8, 8, 5]);
    }
}
