//! Westwood+: Reno, but after a loss the window is the estimated bandwidth times the shortest
//! round-trip time, so that random losses reduce it less.
//!
//! **Source**: L. Grieco, S. Mascolo, "Performance evaluation and comparison of Westwood+, New
//! Reno, and Vegas TCP congestion control", ACM CCR 34(2), 2004, §2; Linux 6.12
//! `net/ipv4/tcp_westwood.c`, with its integers: bandwidth in bytes/ms, times in ms.
//!
//! **Symbols** `bw_est`, `bk`, `rtt_min` as in Linux. The threshold is computed at the end of fast
//! recovery, as there; until then the window follows half the one before.

use super::linux::{Acked, Algorithm, Segments, jiffies};
use super::{CongestionSignal, ControlParams, TcpEntry};
use crate::endpoint::common_params::{LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::Span;

params! {
    /// Parameters of [`Westwood`].
    pub struct WestwoodParams {
        /// Shortest time over which the bandwidth is measured.
        interval_min: Span = Span::ms(50), [Span::ms(1) => Span::s(10)], "TCP_WESTWOOD_RTT_MIN", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "westwood",
    aliases: &["westwood+"],
    about: "after losses, the window is the measured bandwidth times the least RTT; not in ns2",
    source: "Grieco, Mascolo, Westwood+, ACM CCR 34(2), 2004; Linux tcp_westwood.c",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Westwood(WestwoodParams::default()),
};

/// Round-trip time before the first sample, ms.
const RTT_INITIAL: u64 = 20_000;

/// Westwood+ state. Times are in milliseconds.
#[derive(Clone, Debug, Snapshot)]
pub struct Westwood {
    params: WestwoodParams,
    /// Bandwidth after one filter, and after both, bytes/ms.
    bw_ns_est: u64,
    bw_est: u64,
    /// Start of the measurement, and bytes acknowledged since.
    started_at: u64,
    bk: u64,
    /// Bytes counted for duplicate acks, which the next cumulative acks cover again.
    accounted: u64,
    rtt: u64,
    rtt_min: u64,
    /// True if the next sample is the shortest one.
    resets_rtt_min: bool,
    mss: u64,
}

impl Westwood {
    /// Creates a control.
    pub fn of(params: WestwoodParams) -> Westwood {
        Westwood {
            params,
            bw_ns_est: 0,
            bw_est: 0,
            started_at: 0,
            bk: 0,
            accounted: 0,
            rtt: RTT_INITIAL,
            rtt_min: RTT_INITIAL,
            resets_rtt_min: true,
            mss: 1,
        }
    }

    /// Ends the measurement after a round trip.
    fn update_window(&mut self, now: u64) {
        let time = now - self.started_at;
        let least = self.params.interval_min.0 / 1_000_000;
        if self.rtt == 0 || time <= self.rtt.max(least) {
            return;
        }
        let sample = self.bk / time;
        if self.bw_ns_est == 0 && self.bw_est == 0 {
            (self.bw_ns_est, self.bw_est) = (sample, sample);
        } else {
            self.bw_ns_est = (7 * self.bw_ns_est + sample) / 8;
            self.bw_est = (7 * self.bw_est + self.bw_ns_est) / 8;
        }
        (self.bk, self.started_at) = (0, now);
    }

    /// Bytes that an ack shows to have left the network. A duplicate ack counts as a segment.
    fn acked_count(&mut self, ack: &Acked) -> u64 {
        if ack.bytes == 0 {
            self.accounted += ack.mss;
            return ack.mss;
        }
        if ack.bytes <= ack.mss {
            return ack.bytes;
        }
        if self.accounted >= ack.bytes {
            self.accounted -= ack.bytes;
            return ack.mss;
        }
        ack.bytes - std::mem::take(&mut self.accounted)
    }

    /// Segments that the estimated bandwidth delivers in the shortest round-trip time.
    fn bandwidth_delay(&self) -> u64 {
        (self.bw_est.saturating_mul(self.rtt_min) / self.mss).max(2)
    }
}

impl Algorithm for Westwood {
    type Params = WestwoodParams;

    fn new(params: &WestwoodParams, _: &mut dyn Random) -> Westwood {
        Westwood::of(params.clone())
    }

    fn reset(&mut self) {
        *self = Westwood::of(self.params.clone());
    }

    fn on_established(&mut self, _: &mut Segments, now: u64, _: u64) {
        self.started_at = now;
    }

    fn on_acked(&mut self, _: &mut Segments, ack: &Acked) {
        self.mss = ack.mss;
        self.update_window(ack.now);
        self.bk += self.acked_count(ack);
        let resets = std::mem::take(&mut self.resets_rtt_min);
        self.rtt_min = if resets { self.rtt } else { self.rtt.min(self.rtt_min) };
        if let Some(rtt) = ack.rtt_us.filter(|rtt| *rtt > 0) {
            self.rtt = jiffies(rtt);
        }
    }

    fn ssthresh(&mut self, w: &Segments, cause: CongestionSignal, _: u64) -> u64 {
        if cause != CongestionSignal::Timeout {
            return w.half();
        }
        self.resets_rtt_min = true;
        self.bandwidth_delay()
    }

    fn on_recovered(&mut self, w: &mut Segments) {
        w.ssthresh = self.bandwidth_delay();
        w.cwnd = w.ssthresh;
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux::testing::{acked, window};
    use super::*;

    #[test]
    fn bandwidth_is_filtered_once_per_round_trip() {
        let mut west = Westwood::of(WestwoodParams::default());
        let mut w = window(10, 2);
        // The first interval ends with the ack after 51 ms, whose own bytes count for the next:
        // the first ack leaves a round-trip time of 20 s behind it.
        for ms in 1..=51 {
            west.on_acked(&mut w, &acked(ms, 40_000));
        }
        assert_eq!((west.bw_ns_est, west.bw_est, west.bk), (980, 980, 1_000), "50,000 B / 51 ms");
        for ms in [80, 103] {
            west.on_acked(&mut w, &acked(ms, 40_000));
        }
        // 2000 B / 52 ms = 38: (7 * 980 + 38) / 8 = 862, (7 * 980 + 862) / 8 = 965.
        assert_eq!((west.bw_ns_est, west.bw_est), (862, 965));
        assert_eq!(west.rtt_min, 40);
        // 965 B/ms * 40 ms = 38.6 segments.
        west.on_recovered(&mut w);
        assert_eq!((w.cwnd, w.ssthresh), (38, 38));
    }

    #[test]
    fn a_loss_halves_until_recovery_ends_and_a_timeout_does_not() {
        let mut west = Westwood {
            bw_est: 500,
            rtt_min: 40,
            mss: 1_000,
            ..Westwood::of(WestwoodParams::default())
        };
        west.resets_rtt_min = false;
        let w = window(60, 2);
        assert_eq!(west.ssthresh(&w, CongestionSignal::Loss, 0), 30);
        assert!(!west.resets_rtt_min);
        assert_eq!(west.ssthresh(&w, CongestionSignal::Timeout, 0), 20);
        assert!(west.resets_rtt_min);
        west.bw_est = 0;
        assert_eq!(west.bandwidth_delay(), 2);
    }

    #[test]
    fn data_of_duplicate_acks_counts_once() {
        let mut west = Westwood::of(WestwoodParams::default());
        let mut count = |bytes, sacked| west.acked_count(&Acked { bytes, sacked, ..acked(0, 0) });
        // Two duplicate acks, then a cumulative ack of three segments of which two are counted.
        assert_eq!(
            [(0, true), (0, true), (3_000, true)].map(|(b, s)| count(b, s)),
            [1_000, 1_000, 1_000]
        );
        // Three, and acks of two segments: the first is covered, of the second one segment is.
        (0..3).for_each(|_| assert_eq!(count(0, true), 1_000));
        assert_eq!([(2_000, true), (2_000, true)].map(|(b, s)| count(b, s)), [1_000, 1_000]);
    }

    #[test]
    fn the_shortest_round_trip_time_is_of_the_previous_ack() {
        let mut west = Westwood::of(WestwoodParams::default());
        let mut w = window(10, 2);
        for (rtt, least) in [(30_000, 20_000), (20_500, 30), (50_000, 21), (50_000, 21)] {
            west.on_acked(&mut w, &acked(1, rtt));
            assert_eq!(west.rtt_min, least);
        }
    }
}
