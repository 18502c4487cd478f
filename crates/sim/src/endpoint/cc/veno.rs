//! Veno: Reno that estimates from the round-trip time whether a loss is congestion; if not, the
//! window is reduced by a fifth only.
//!
//! **Source**: C. P. Fu, S. C. Liew, "TCP Veno: TCP Enhancement for Transmission Over Wireless
//! Access Networks", IEEE JSAC 21(2), 2003, §III (backlog `N`, here `diff`); Linux 6.12
//! `net/ipv4/tcp_veno.c`, with its integers: the backlog in halves of segments.
//!
//! **Symbols** `beta`, `BaseRTT` as in the paper. As in Linux, the backlog is computed at every
//! ack from its own round-trip time.

use super::linux::{Acked, Algorithm, Segments, State};
use super::{CongestionSignal, ControlParams, TcpEntry};
use crate::endpoint::common_params::{LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;

params! {
    /// Parameters of [`Veno`].
    pub struct VenoParams {
        /// Segments in the queue from which on the network counts as congested.
        beta: u64 = 3, [1 => 1_000], "beta", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "veno",
    aliases: &[],
    about: "as Reno, reducing less after losses while the queue is short; not in ns2",
    source: "Fu, Liew, TCP Veno, IEEE JSAC 21(2), 2003; Linux tcp_veno.c",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Veno(VenoParams::default()),
};

/// Veno state. Round-trip times are in microseconds.
#[derive(Clone, Debug, Snapshot)]
pub struct Veno {
    params: VenoParams,
    /// False during a reduction: the window grows as Reno's.
    enabled: bool,
    /// Number of round-trip times.
    cnt_rtt: u64,
    /// Least round-trip time since the last growth, and of all.
    min_rtt: u64,
    base_rtt: u64,
    /// True if the next window of acks counts, while the network is congested.
    inc: bool,
    /// Backlog, halves of segments.
    diff: u64,
}

impl Veno {
    /// Creates a control.
    pub fn of(params: VenoParams) -> Veno {
        Veno {
            params,
            enabled: true,
            cnt_rtt: 0,
            min_rtt: u64::MAX,
            base_rtt: u64::MAX,
            inc: true,
            diff: 0,
        }
    }

    /// True if the backlog is small.
    fn is_uncongested(&self) -> bool {
        self.diff < 2 * self.params.beta
    }

    /// Grows by a segment every second round trip.
    fn grow_slowly(&mut self, w: &mut Segments, acked: u64) {
        if w.cnt < w.cwnd {
            w.cnt += acked;
            return;
        }
        w.cwnd += u64::from(self.inc);
        (self.inc, w.cnt) = (!self.inc, 0);
    }
}

impl Algorithm for Veno {
    type Params = VenoParams;

    fn new(params: &VenoParams, _: &mut dyn Random) -> Veno {
        Veno::of(params.clone())
    }

    fn reset(&mut self) {
        *self = Veno::of(self.params.clone());
    }

    fn on_acked(&mut self, _: &mut Segments, ack: &Acked) {
        if let Some(rtt) = ack.rtt_us {
            self.base_rtt = self.base_rtt.min(rtt + 1);
            self.min_rtt = self.min_rtt.min(rtt + 1);
            self.cnt_rtt += 1;
        }
    }

    fn grow(&mut self, w: &mut Segments, ack: &Acked, acked: u64) {
        if !self.enabled || self.cnt_rtt <= 2 {
            if ack.full {
                w.reno(acked);
            }
            if self.enabled && ack.full {
                self.min_rtt = u64::MAX;
            }
            return;
        }
        if !ack.full {
            return;
        }
        // Without a sample, the kernel has 2^31 - 1 µs.
        let [base, rtt] = [self.base_rtt, self.min_rtt].map(|rtt| rtt.min(0x7fff_ffff));
        self.diff = (2 * w.cwnd).saturating_sub((2 * w.cwnd).saturating_mul(base) / rtt);
        let left = w.slow_start_if_below(acked);
        if left > 0 {
            if self.is_uncongested() {
                w.increase(w.cwnd, left);
            } else {
                self.grow_slowly(w, left);
            }
        }
        self.min_rtt = u64::MAX;
    }

    fn ssthresh(&mut self, w: &Segments, _: CongestionSignal, _: u64) -> u64 {
        if self.is_uncongested() { (w.cwnd * 4 / 5).max(2) } else { w.half() }
    }

    fn on_state(&mut self, state: State, _: u64) {
        self.enabled = state == State::Open;
        if self.enabled {
            self.min_rtt = u64::MAX;
        }
    }

    fn on_start(&mut self) {
        (self.base_rtt, self.min_rtt) = (u64::MAX, u64::MAX);
        (self.inc, self.enabled) = (true, true);
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux::testing::{acked, window};
    use super::*;

    /// Processes an ack of a segment with a round-trip time.
    fn ack(v: &mut Veno, w: &mut Segments, rtt_us: u64) {
        let ack = acked(0, rtt_us);
        v.on_acked(w, &ack);
        v.grow(w, &ack, 1);
    }

    #[test]
    fn the_backlog_is_in_halves_of_segments() {
        let (mut v, mut w) = (Veno::of(VenoParams::default()), window(20, 2));
        ack(&mut v, &mut w, 99_999);
        ack(&mut v, &mut w, 109_999);
        assert_eq!(v.diff, 0, "two samples are too few");
        // 40 - 40 * 100 / 110 = 40 - 36; 115: 40 - 34; 117.7: 40 - 33.
        for (rtt, diff, left) in [(109_999, 4, 80), (114_999, 6, 50), (117_699, 7, 50)] {
            ack(&mut v, &mut w, rtt);
            assert_eq!(v.diff, diff);
            assert_eq!(v.ssthresh(&window(100, 2), CongestionSignal::Loss, 0), left, "{rtt}");
        }
    }

    #[test]
    fn with_a_backlog_it_grows_every_second_round_trip() {
        let mut v = Veno { cnt_rtt: 3, base_rtt: 50_000, ..Veno::of(VenoParams::default()) };
        let mut w = window(10, 2);
        let mut grown = Vec::new();
        for n in 1..=40 {
            let before = w.cwnd;
            ack(&mut v, &mut w, 99_999);
            grown.extend((w.cwnd > before).then_some(n));
        }
        // Ten acks count, the eleventh grows; then eleven and a twelfth without growth, and again.
        assert_eq!(grown, [11, 35]);
    }

    #[test]
    fn a_reduction_and_a_pause_suspend_the_estimate() {
        let mut v = Veno { cnt_rtt: 9, base_rtt: 5, diff: 9, ..Veno::of(VenoParams::default()) };
        v.on_state(State::Recovery, 0);
        let mut w = window(4, 40);
        ack(&mut v, &mut w, 100);
        assert_eq!((w.cwnd, v.diff), (5, 9), "as Reno");
        v.on_start();
        assert!(v.enabled && v.base_rtt == u64::MAX);
    }
}
