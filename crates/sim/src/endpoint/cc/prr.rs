//! Proportional Rate Reduction: in fast recovery, reduces the window to its threshold over one
//! round trip, in proportion to delivered data, instead of pausing for half a round trip. The same
//! in the round trip after an ECN mark, in which the window does not grow.
//!
//! **Source**: RFC 9937 §6.2, which obsoletes RFC 6937. For marks: Linux, whose state CWR lasts
//! until the data sent before the reduction is acknowledged.
//!
//! **Symbols** `prr_delivered`, `prr_out`, `RecoverFS`, `safeACK` as in the RFC; `DeliveredData` is
//! `news`, `inflight` is `pipe`.
//!
//! **Departure** `RecoverFS` is the flight size that the sender reports, or its window.

use super::{CongestionSignal, ProcessedAck, RecoveryState, Window};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;

/// PRR state.
#[derive(Clone, Debug, Default, Snapshot)]
pub(crate) struct Prr {
    /// `RecoverFS`; 0 outside of recovery.
    recover_fs: u64,
    prr_delivered: u64,
    prr_out: u64,
    /// Sequence number at which the reduction for a mark ends; 0 if there is none.
    mark_end: u64,
    /// Cumulative ack, and next sequence number to send.
    una: u64,
    next: u64,
    /// True if the last ack advanced the cumulative ack.
    advanced: bool,
    /// Bytes in the network after the last ack, and those sent since; `None` before the first ack.
    pipe: Option<u64>,
}

impl Prr {
    /// Starts at a reduction of the window, with `flight` bytes outstanding.
    pub(crate) fn on_congestion(&mut self, flight: u64, cause: CongestionSignal) {
        (self.prr_delivered, self.prr_out) = (0, 0);
        self.recover_fs = if cause == CongestionSignal::Timeout { 0 } else { flight };
        self.mark_end = if cause == CongestionSignal::Mark { self.next } else { 0 };
    }

    /// Ends the reduction: it was undone.
    pub(crate) fn stop(&mut self) {
        (self.recover_fs, self.mark_end) = (0, 0);
    }

    /// Records an ack of everything below `ack`, before it is processed; `next` is sent next.
    pub(crate) fn on_feedback(&mut self, ack: u64, next: u64) {
        self.advanced = ack > self.una;
        (self.una, self.next) = (ack, next);
    }

    /// True in the round trip after a mark, in which the window does not grow.
    pub(crate) fn reduces_for_mark(&self) -> bool {
        self.mark_end > 0 && self.una <= self.mark_end
    }

    /// Records `bytes` sent in `state`.
    pub(crate) fn on_sent(&mut self, state: RecoveryState, bytes: u64) {
        if let Some(pipe) = &mut self.pipe {
            *pipe += bytes;
        }
        if state == RecoveryState::Recovery || self.reduces_for_mark() {
            self.prr_out += bytes;
        }
    }

    /// Sets the window for an ack that delivered `news` bytes. Returns true if it ended a recovery
    /// from losses.
    pub(crate) fn on_ack_processed(
        &mut self,
        window: &mut Window,
        ack: &ProcessedAck,
        news: u64,
    ) -> bool {
        if self.recover_fs == 0 {
            return false;
        }
        if ack.state != RecoveryState::Recovery && !self.reduces_for_mark() {
            let open = ack.state == RecoveryState::Open;
            if open {
                window.cwnd = window.ssthresh;
            }
            self.recover_fs = 0;
            return open && self.mark_end == 0;
        }
        self.prr_delivered += news;
        let (pipe, ssthresh) = (ack.flight, window.ssthresh);
        // Bytes that have left the network without being delivered are lost.
        let safe = self.advanced && self.pipe.is_some_and(|before| before <= pipe + news);
        self.pipe = Some(pipe);
        let send = if pipe > ssthresh {
            let share = u128::from(self.prr_delivered) * u128::from(ssthresh);
            cast::saturate(share.div_ceil(u128::from(self.recover_fs))).saturating_sub(self.prr_out)
        } else {
            let limit = self.prr_delivered.saturating_sub(self.prr_out).max(news);
            (limit + if safe { window.mss } else { 0 }).min(ssthresh - pipe)
        };
        let first = if self.prr_out == 0 { window.mss } else { 0 };
        window.cwnd = (pipe + send.max(first)).max(window.mss);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::processed;
    use super::super::{AnyControl, CongestionControl};
    use super::*;
    use crate::endpoint::tcp::parse;
    use sojourn_aqm::params::Setting::{Flag, Text};
    use sojourn_aqm::units::Time;

    /// Segments sent in response to each ack of one segment, after `losses`, and one more loss that
    /// shows at the ack `again`. Acks advance the cumulative ack if `advancing`.
    fn sent(
        pipe: u64,
        losses: u64,
        ssthresh: u64,
        acks: u64,
        advancing: bool,
        again: Option<u64>,
    ) -> Vec<u64> {
        let mut w = Window { cwnd: ssthresh, ssthresh, mss: 1 };
        let mut prr = Prr::default();
        prr.on_congestion(pipe, CongestionSignal::Loss);
        let mut pipe = pipe - losses;
        let mut out = Vec::new();
        for i in 0..acks {
            pipe -= if again == Some(i) { 2 } else { 1 };
            prr.on_feedback(if advancing { i + 1 } else { 0 }, 100);
            let ack = processed(Time::ZERO, 0, pipe, RecoveryState::Recovery);
            prr.on_ack_processed(&mut w, &ack, 1);
            let n = w.cwnd - pipe;
            prr.on_sent(RecoveryState::Recovery, n);
            pipe += n;
            out.push(n);
        }
        out
    }

    #[test]
    fn one_loss_sends_one_segment_per_two_acks() {
        // 20 in flight, the first lost, threshold 10.
        let out = sent(20, 1, 10, 18, false, None);
        assert!(out.chunks(2).all(|pair| pair.iter().sum::<u64>() == 1), "{out:?}");
        assert_eq!(out.iter().sum::<u64>(), 9);
    }

    #[test]
    fn many_losses_use_slow_start_only_while_acks_are_safe() {
        // 20 in flight, 15 lost, threshold 10. An ack sends what it delivered, and one segment more
        // if it advances the cumulative ack and shows no loss.
        assert_eq!(sent(20, 15, 10, 4, false, None), [1, 1, 1, 1]);
        assert_eq!(sent(20, 15, 10, 4, true, None), [1, 2, 2, 2], "the first shows the losses");
        assert_eq!(sent(20, 15, 10, 4, true, Some(2)), [1, 2, 1, 2]);
    }

    #[test]
    fn the_first_ack_sends_a_segment() {
        // 20 in flight, threshold 2: the share of the first ack is nothing.
        let mut w = Window { cwnd: 2_000, ssthresh: 2_000, mss: 1_000 };
        let mut prr = Prr::default();
        prr.on_congestion(20_000, CongestionSignal::Loss);
        let (now, delivered, flight, srtt) = (Time::ZERO, 0, 19_000, None);
        let ack =
            ProcessedAck { srtt, ..processed(now, delivered, flight, RecoveryState::Recovery) };
        prr.on_ack_processed(&mut w, &ack, 0);
        assert_eq!(w.cwnd, 20_000);
        prr.on_sent(RecoveryState::Recovery, 1_000);
        prr.on_ack_processed(&mut w, &ack, 0);
        assert_eq!(w.cwnd, 19_000, "only the first");
    }

    #[test]
    fn leaving_recovery_sets_the_window_to_ssthresh() {
        let mut w = Window { cwnd: 3, ssthresh: 10, mss: 1 };
        let mut prr = Prr::default();
        prr.on_congestion(20, CongestionSignal::Loss);
        let ack = processed(Time::ZERO, 0, 3, RecoveryState::Open);
        assert!(prr.on_ack_processed(&mut w, &ack, 1));
        assert_eq!(w.cwnd, 10);
        prr.on_congestion(20, CongestionSignal::Loss);
        let lost = ProcessedAck { state: RecoveryState::Loss, ..ack };
        assert!(!prr.on_ack_processed(&mut w, &lost, 1), "a timeout is no end");
        w.cwnd = 4;
        assert!(!prr.on_ack_processed(&mut w, &ack, 1));
        assert_eq!(w.cwnd, 4, "only once");
    }

    #[test]
    fn nothing_leaves_while_the_pipe_is_at_the_threshold() {
        // RFC 9937 section 6.2: the proportional part is for a pipe above ssthresh; at ssthresh
        // the bound is ssthresh - pipe = 0. Ten of twenty segments were delivered at once.
        let mut w = Window { cwnd: 10, ssthresh: 10, mss: 1 };
        let mut prr = Prr::default();
        prr.on_congestion(20, CongestionSignal::Loss);
        prr.on_sent(RecoveryState::Recovery, 1);
        let (now, delivered, flight, srtt) = (Time::ZERO, 10, 10, None);
        prr.on_ack_processed(
            &mut w,
            &ProcessedAck { srtt, ..processed(now, delivered, flight, RecoveryState::Recovery) },
            10,
        );
        assert_eq!(w.cwnd, 10);
    }

    #[test]
    fn a_mark_reduces_in_proportion_and_holds_the_window_for_a_round_trip() {
        // Twenty segments of a byte in flight, 1 to 20, and a threshold of 15.
        let mut w = Window { cwnd: 20, ssthresh: 15, mss: 1 };
        let mut prr = Prr::default();
        prr.on_feedback(1, 21);
        prr.on_congestion(20, CongestionSignal::Mark);
        assert!(prr.reduces_for_mark());
        let (mut pipe, mut next) = (20, 21);
        let (mut sent, mut ended) = (Vec::new(), false);
        for una in 2..=22 {
            prr.on_feedback(una, next);
            pipe -= 1;
            let (now, state) = (Time::ZERO, RecoveryState::Open);
            let ack = processed(now, 0, pipe, state);
            ended |= prr.on_ack_processed(&mut w, &ack, 1);
            let n = w.cwnd.saturating_sub(pipe);
            prr.on_sent(state, n);
            (pipe, next) = (pipe + n, next + n);
            sent.push(n);
        }
        // Three segments for four acks; 21 ends the round trip, something above it the reduction.
        assert_eq!(sent[..8], [1, 1, 1, 0, 1, 1, 1, 0]);
        assert_eq!(sent[..20].iter().sum::<u64>(), 15);
        assert_eq!((w.cwnd, prr.reduces_for_mark()), (15, false));
        assert!(!ended, "no recovery from a loss");
    }

    #[test]
    fn in_linux_the_ack_that_ends_a_recovery_counts() {
        for (variant, cwnd) in [("rfc", 2_500), ("linux", 3_000)] {
            let settings = [("prr", Flag(true)), ("variant", Text(variant))];
            let params = parse("sack", settings).unwrap();
            let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
            let mut control = AnyControl::new(&params.control, &params.settings, &mut rng);
            let mut w = Window { cwnd: 5_000, ssthresh: 9_000, mss: 1_000 };
            let cause = CongestionSignal::Loss;
            w.ssthresh = control.on_congestion(Time::ZERO, &w, w.cwnd, cause);
            let states = [RecoveryState::Recovery, RecoveryState::Open, RecoveryState::Open];
            for (delivered, state) in [1_000, 4_000, 6_000].into_iter().zip(states) {
                let (now, flight, srtt) = (Time::ZERO, 1_000, None);
                let ack = ProcessedAck { srtt, ..processed(now, delivered, flight, state) };
                control.on_ack_processed(&mut w, &ack);
            }
            assert_eq!(w.cwnd, cwnd, "{variant}");
        }
    }
}
