//! YeAH: Scalable TCP while the queue is short and Reno while it is long, from which it also
//! removes packets before they are lost.
//!
//! **Source**: A. Baiocchi, A. P. Castellani, F. Vacirca, "YeAH-TCP: Yet Another Highspeed TCP",
//! PFLDnet 2007, §2; Linux 6.12 `net/ipv4/tcp_yeah.c`, with its integers.
//!
//! **Symbols** `Qmax` (here `alpha`), `gamma`, `delta`, `epsilon`, `phi` (here `phy`), `rho` and
//! `zeta` as in Linux; `Q` is `queue`.

use super::linux::{Acked, Algorithm, Segments, State};
use super::{CongestionSignal, ControlParams, TcpEntry};
use crate::endpoint::common_params::{LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;

params! {
    /// Parameters of [`Yeah`].
    pub struct YeahParams {
        /// Largest queue in fast mode, segments.
        alpha: u64 = 80, [1 => 1_000_000], "Qmax", [];
        /// Fraction of the queue that is removed per round trip: 1 / gamma.
        gamma: u64 = 1, [1 => 1_000], "gamma", [];
        /// Least reduction after a loss: the window divided by two to the power of this.
        delta: u64 = 3, [1 => 16], "delta", [];
        /// Largest reduction without a loss: the window divided by two to the power of this.
        epsilon: u64 = 1, [1 => 16], "epsilon", [];
        /// Largest queueing delay in fast mode: the shortest round-trip time divided by this.
        phy: u64 = 8, [1 => 1_000], "phi", [];
        /// Round trips in slow mode after which Reno is assumed to compete.
        rho: u64 = 16, [1 => 1_000], "rho", [];
        /// Round trips in fast mode after which Reno is assumed to have left.
        zeta: u64 = 50, [1 => 1_000], "zeta", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "yeah",
    aliases: &[],
    about: "grows as scalable while the queue is short, else as Reno; not in ns2",
    source: "Baiocchi, Castellani, Vacirca, YeAH-TCP, PFLDnet 2007; Linux tcp_yeah.c",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Yeah(YeahParams::default()),
};

/// Segments to acknowledge for one that the window grows by in fast mode.
const AI_CNT: u64 = 100;

/// YeAH state. Round-trip times are in microseconds.
#[derive(Clone, Debug, Snapshot)]
pub struct Yeah {
    params: YeahParams,
    /// Number and least of the round-trip times in this round trip, which ends at `round_end`.
    cnt_rtt: u64,
    min_rtt: u64,
    round_end: u64,
    base_rtt: u64,
    /// Next sequence number to send, as of the last ack.
    next: u64,
    /// Queue in the last round trip, segments.
    last_q: u64,
    /// Round trips in slow mode; 0 in fast mode.
    doing_reno: u64,
    /// Window of a competing Reno flow, segments.
    reno_count: u64,
    /// Round trips in fast mode since `reno_count` was reset.
    fast_count: u64,
}

impl Yeah {
    /// Creates a control.
    pub fn of(params: YeahParams) -> Yeah {
        Yeah {
            params,
            cnt_rtt: 0,
            min_rtt: u64::MAX,
            round_end: 0,
            base_rtt: u64::MAX,
            next: 0,
            last_q: 0,
            doing_reno: 0,
            reno_count: 2,
            fast_count: 0,
        }
    }

    /// Begins a round trip.
    fn restart_round(&mut self) {
        (self.round_end, self.cnt_rtt, self.min_rtt) = (self.next, 0, u64::MAX);
    }

    /// Chooses the mode after a round trip, and removes packets from a long queue.
    fn choose_mode(&mut self, w: &mut Segments) {
        let YeahParams { alpha, gamma, epsilon, phy, zeta, .. } = self.params;
        let delay = self.min_rtt.saturating_sub(self.base_rtt);
        let queue = w.cwnd.saturating_mul(delay) / self.min_rtt;
        if queue > alpha || delay > self.base_rtt / phy {
            if queue > alpha && w.cwnd > self.reno_count {
                let less = (queue / gamma).min(w.cwnd >> epsilon);
                w.cwnd = (w.cwnd - less).max(self.reno_count);
                w.ssthresh = w.cwnd;
            }
            self.reno_count = if self.reno_count <= 2 { w.half() } else { self.reno_count + 1 };
            self.doing_reno += 1;
        } else {
            self.fast_count += 1;
            if self.fast_count > zeta {
                (self.reno_count, self.fast_count) = (2, 0);
            }
            self.doing_reno = 0;
        }
        self.last_q = queue;
    }
}

impl Algorithm for Yeah {
    type Params = YeahParams;

    fn new(params: &YeahParams, _: &mut dyn Random) -> Yeah {
        Yeah::of(params.clone())
    }

    fn reset(&mut self) {
        *self = Yeah::of(self.params.clone());
    }

    fn on_acked(&mut self, _: &mut Segments, ack: &Acked) {
        self.next = ack.next;
        if let Some(rtt) = ack.rtt_us {
            self.base_rtt = self.base_rtt.min(rtt + 1);
            self.min_rtt = self.min_rtt.min(rtt + 1);
            self.cnt_rtt += 1;
        }
    }

    fn grow(&mut self, w: &mut Segments, ack: &Acked, acked: u64) {
        if !ack.full {
            return;
        }
        let left = w.slow_start_if_below(acked);
        if left > 0 {
            let cnt = if self.doing_reno > 0 { w.cwnd } else { w.cwnd.min(AI_CNT) };
            w.increase(cnt, left);
        }
        if ack.una > self.round_end {
            if self.cnt_rtt > 2 {
                self.choose_mode(w);
            }
            self.restart_round();
        }
    }

    fn ssthresh(&mut self, w: &Segments, _: CongestionSignal, _: u64) -> u64 {
        let half = w.half();
        let less = if self.doing_reno < self.params.rho {
            self.last_q.min(half).max(w.cwnd >> self.params.delta)
        } else {
            half
        };
        self.fast_count = 0;
        self.reno_count = (self.reno_count / 2).max(2);
        w.cwnd.saturating_sub(less).max(2)
    }

    fn on_state(&mut self, state: State, _: u64) {
        if state == State::Open {
            self.restart_round();
        }
    }

    fn on_start(&mut self) {
        self.base_rtt = u64::MAX;
        self.restart_round();
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux::testing::{acked, window};
    use super::*;

    /// Control after a round trip with a window of `cwnd` whose shortest time was `min_rtt`, with
    /// 100 ms as the shortest of all.
    fn after(cwnd: u64, min_rtt: u64) -> (Yeah, Segments) {
        let (base_rtt, cnt_rtt) = (100_000, 3);
        let mut y = Yeah { base_rtt, min_rtt, cnt_rtt, ..Yeah::of(YeahParams::default()) };
        let mut w = window(cwnd, 2);
        y.choose_mode(&mut w);
        (y, w)
    }

    #[test]
    fn the_mode_depends_on_the_queue_and_on_the_delay() {
        // 112.5 ms: an eighth more than 100 ms, and 200 / 9 = 22 segments.
        let (y, w) = after(200, 112_500);
        assert_eq!((y.doing_reno, y.last_q, w.cwnd, y.fast_count), (0, 22, 200, 1));
        let (y, w) = after(200, 112_600);
        assert_eq!((y.doing_reno, y.last_q, w.cwnd, y.reno_count), (1, 22, 200, 100));
        // 81 segments in the queue are removed: 900 * 10 / 110 = 81.
        let (y, w) = after(900, 110_000);
        assert_eq!((y.doing_reno, y.last_q, w.cwnd, w.ssthresh), (1, 81, 819, 819));
        assert_eq!(y.reno_count, 409);
        // Not more than half: 300 * 100 / 200 = 150.
        assert_eq!(after(300, 200_000).1.cwnd, 150);
    }

    #[test]
    fn the_reduction_is_the_queue_within_bounds() {
        let left = |last_q, doing_reno| {
            let mut y = Yeah { last_q, doing_reno, ..Yeah::of(YeahParams::default()) };
            y.ssthresh(&window(80, 2), CongestionSignal::Loss, 0)
        };
        assert_eq!([left(20, 3), left(5, 3), left(70, 3), left(5, 16)], [60, 70, 40, 40]);
    }

    #[test]
    fn competing_renos_are_counted_up_and_forgotten() {
        let (mut y, mut w) = after(200, 112_600);
        y.choose_mode(&mut w);
        assert_eq!((y.reno_count, y.doing_reno), (101, 2));
        y.ssthresh(&w, CongestionSignal::Loss, 0);
        assert_eq!(y.reno_count, 50);
        y.min_rtt = 100_000;
        (0..50).for_each(|_| y.choose_mode(&mut w));
        assert_eq!((y.reno_count, y.fast_count), (50, 50));
        y.choose_mode(&mut w);
        assert_eq!((y.reno_count, y.fast_count), (2, 0));
    }

    #[test]
    fn grows_by_a_hundredth_or_as_reno() {
        for (doing_reno, acks) in [(0, 100), (1, 300)] {
            let mut y = Yeah { doing_reno, round_end: 9, ..Yeah::of(YeahParams::default()) };
            let mut w = window(300, 2);
            (1..acks).for_each(|_| y.grow(&mut w, &acked(0, 1), 1));
            assert_eq!(w.cwnd, 300);
            y.grow(&mut w, &acked(0, 1), 1);
            assert_eq!(w.cwnd, 301);
        }
    }

    #[test]
    fn a_round_trip_with_two_samples_decides_nothing() {
        let (mut y, mut w) = (Yeah::of(YeahParams::default()), window(200, 2));
        for (una, samples) in [(1, 0), (2, 0), (3, 0)] {
            let ack = Acked { una, next: 2, ..acked(0, 100_000) };
            y.on_acked(&mut w, &ack);
            y.grow(&mut w, &ack, 0);
            assert_eq!((y.fast_count, y.cnt_rtt), (0, if una == 2 { 1 } else { samples }));
        }
        assert_eq!(y.round_end, 2);
    }
}
