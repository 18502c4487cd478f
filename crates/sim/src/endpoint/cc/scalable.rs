//! Scalable TCP: grows by a segment per hundred acknowledged ones, and reduces by an eighth, so
//! that the time between losses does not depend on the window.
//!
//! **Source**: T. Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", ACM
//! CCR 33(2), 2003, §3 (`a` = 0.01, `b` = 0.125); Linux 6.12 `net/ipv4/tcp_scalable.c`, which is as
//! fast as Reno below a hundred segments.

use super::linux::{Acked, Algorithm, Segments};
use super::{CongestionSignal, ControlParams, TcpEntry};
use crate::endpoint::common_params::{LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;

params! {
    /// Parameters of [`Scalable`].
    pub struct ScalableParams {
        /// Segments to acknowledge for one that the window grows by, at most a window.
        ai_cnt: u64 = 100, [1 => 1_000_000], "1 / a", [];
        /// Reduction after a loss: the window divided by two to the power of this.
        md_scale: u64 = 3, [1 => 16], "-log2 b", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "scalable",
    aliases: &["stcp"],
    about: "grows by a hundredth per round trip, reduces by an eighth; not in ns2",
    source: "Kelly, Scalable TCP, ACM CCR 33(2), 2003; Linux tcp_scalable.c",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Scalable(ScalableParams::default()),
};

/// Scalable TCP, which has no state.
#[derive(Clone, Debug, Snapshot)]
pub struct Scalable {
    params: ScalableParams,
}

impl Algorithm for Scalable {
    type Params = ScalableParams;

    fn new(params: &ScalableParams, _: &mut dyn Random) -> Scalable {
        Scalable { params: params.clone() }
    }

    fn reset(&mut self) {}

    fn grow(&mut self, w: &mut Segments, ack: &Acked, acked: u64) {
        if !ack.full {
            return;
        }
        let left = w.slow_start_if_below(acked);
        if left > 0 {
            w.increase(w.cwnd.min(self.params.ai_cnt), left);
        }
    }

    fn ssthresh(&mut self, w: &Segments, _: CongestionSignal, _: u64) -> u64 {
        (w.cwnd - (w.cwnd >> self.params.md_scale)).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux::testing::{acked, window};
    use super::*;

    fn scalable() -> Scalable {
        Scalable { params: ScalableParams::default() }
    }

    #[test]
    fn grows_by_a_hundredth_of_what_is_acknowledged() {
        for (cwnd, acks, grown) in [(400, 400, 4), (400, 99, 0), (400, 100, 1), (50, 50, 1)] {
            let (mut w, mut control) = (window(cwnd, 2), scalable());
            (0..acks).for_each(|_| control.grow(&mut w, &acked(0, 1), 1));
            assert_eq!(w.cwnd, cwnd + grown, "{cwnd} segments, {acks} acks");
        }
    }

    #[test]
    fn slow_start_is_renos_and_an_unused_window_does_not_grow() {
        let (mut w, mut control) = (window(8, 10), scalable());
        control.grow(&mut w, &Acked { full: false, ..acked(0, 1) }, 3);
        assert_eq!(w, window(8, 10));
        control.grow(&mut w, &acked(0, 1), 3);
        assert_eq!((w.cwnd, w.cnt), (10, 1));
    }

    #[test]
    fn a_loss_takes_an_eighth() {
        let left = |cwnd| scalable().ssthresh(&window(cwnd, 2), CongestionSignal::Loss, 0);
        assert_eq!([400, 15, 7, 1].map(left), [350, 14, 7, 2]);
    }
}
