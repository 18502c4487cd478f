//! Hybla: grows as fast as Reno would with a round-trip time of 25 ms, for paths by satellite.
//!
//! **Source**: C. Caini, R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks",
//! International Journal of Satellite Communications and Networking 22, 2004, equation 8 (growth
//! per ack: `2^rho - 1` in slow start, `rho^2 / W` after it); Linux 6.12 `net/ipv4/tcp_hybla.c`,
//! with its integers: growth in 1/128, `rho` in 1/8.
//!
//! **Symbols** `rho`, `RTT0` as in the paper. As in Linux, `rho` is from the least smoothed
//! round-trip time and at least 1, the connection starts with a window of `rho` segments, and the
//! growth is per ack: delayed acks halve it.

use super::linux::{Acked, Algorithm, Segments, State};
use super::{ControlParams, TcpEntry};
use crate::endpoint::common_params::{LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::Span;

params! {
    /// Parameters of [`Hybla`].
    pub struct HyblaParams {
        /// Round-trip time whose growth is imitated.
        rtt0: Span = Span::ms(25), [Span::ms(1) => Span::s(10)], "RTT0", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "hybla",
    aliases: &[],
    about: "grows per second as Reno at a round-trip time of 25 ms; not in ns2",
    source: "Caini, Firrincieli, TCP Hybla, IJSCN 22, 2004; Linux tcp_hybla.c",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Hybla(HyblaParams::default()),
};

/// 1 in the fixed point of the growth.
const ONE: u64 = 128;
/// Largest window, segments.
const CLAMP: u64 = 65_535;
/// `2^(i/8)` in 1/128.
const POWERS: [u64; 8] = [128, 139, 152, 165, 181, 197, 215, 234];

/// Hybla state.
#[derive(Clone, Debug, Snapshot)]
pub struct Hybla {
    params: HyblaParams,
    /// False during a reduction: the window grows as Reno's.
    enabled: bool,
    /// Eighths of `rho`.
    rho_8: u64,
    /// Least smoothed round-trip time, eighths of a microsecond.
    min_rtt: u64,
    /// Parts of a segment that the window has grown by.
    cents: u64,
}

impl Hybla {
    /// Creates a control.
    pub fn of(params: HyblaParams) -> Hybla {
        Hybla { params, enabled: true, rho_8: 8, min_rtt: u64::MAX, cents: 0 }
    }

    /// Sets `rho` for a round-trip time in eighths of a microsecond.
    fn set_rho(&mut self, rtt_8us: u64) {
        self.rho_8 = (rtt_8us / (self.params.rtt0.0 / 1_000)).max(8);
        self.min_rtt = rtt_8us;
    }

    /// Growth for an ack in slow start, in 1/128: `2^rho - 1`.
    fn slow_start(&self) -> u64 {
        let power = POWERS[usize::from(self.rho_8.to_le_bytes()[0] & 7)];
        (power << (self.rho_8 / 8).min(16)) - ONE
    }
}

impl Algorithm for Hybla {
    type Params = HyblaParams;

    fn new(params: &HyblaParams, _: &mut dyn Random) -> Hybla {
        Hybla::of(params.clone())
    }

    fn reset(&mut self) {
        *self = Hybla::of(self.params.clone());
    }

    fn on_established(&mut self, w: &mut Segments, _: u64, rtt_us: u64) {
        self.set_rho(8 * rtt_us);
        w.cwnd = self.rho_8 / 8;
    }

    fn grow(&mut self, w: &mut Segments, ack: &Acked, acked: u64) {
        if ack.srtt_8us < self.min_rtt {
            self.set_rho(ack.srtt_8us);
        }
        if !ack.full {
            return;
        }
        if !self.enabled {
            return w.reno(acked);
        }
        let starts = w.is_in_slow_start();
        let growth = if starts { self.slow_start() } else { 2 * self.rho_8 * self.rho_8 / w.cwnd };
        if !starts && growth < ONE {
            w.cnt += 1;
        }
        w.cwnd += growth / ONE;
        self.cents += growth % ONE;
        if self.cents >= ONE {
            (w.cwnd, self.cents, w.cnt) = (w.cwnd + 1, self.cents - ONE, 0);
        }
        if growth == 0 && w.cnt >= w.cwnd {
            (w.cwnd, w.cnt) = (w.cwnd + 1, 0);
        }
        if starts {
            w.cwnd = w.cwnd.min(w.ssthresh);
        }
        w.cwnd = w.cwnd.min(CLAMP);
    }

    fn on_state(&mut self, state: State, _: u64) {
        self.enabled = state == State::Open;
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux::testing::{acked, window};
    use super::*;

    /// Control of a connection with a round-trip time of `ms`, and its window.
    fn connected(ms: u64, ssthresh: u64) -> (Hybla, Segments) {
        let (mut h, mut w) = (Hybla::of(HyblaParams::default()), window(10, ssthresh));
        h.on_established(&mut w, 0, 1_000 * ms);
        (h, w)
    }

    #[test]
    fn a_connection_starts_with_rho_segments() {
        for (ms, rho_8, cwnd) in [(5, 8, 1), (25, 8, 1), (90, 28, 3), (500, 160, 20)] {
            let (h, w) = connected(ms, 1_000);
            assert_eq!((h.rho_8, w.cwnd), (rho_8, cwnd), "{ms} ms");
        }
    }

    #[test]
    fn slow_start_grows_by_two_to_the_power_of_rho() {
        // 90 ms: rho = 3.5, 2^3.5 - 1 = 10.3 segments for an ack; in 1/128: 8 * 181 - 128 = 1320.
        let (mut h, mut w) = connected(90, 30);
        h.grow(&mut w, &acked(0, 90_000), 2);
        assert_eq!((w.cwnd, h.cents), (13, 40));
        h.grow(&mut w, &acked(0, 90_000), 2);
        h.grow(&mut w, &acked(0, 90_000), 2);
        assert_eq!(w.cwnd, 30, "not above the threshold");
    }

    #[test]
    fn avoidance_grows_by_the_square_of_rho_per_window() {
        // 100 ms: rho = 4, so that 2 * 32 * 32 / 20 = 102 of 128 for each ack.
        let (mut h, _) = connected(100, 2);
        let mut w = window(20, 2);
        let grown: Vec<u64> = (0..5)
            .map(|_| {
                h.grow(&mut w, &acked(0, 100_000), 1);
                w.cwnd
            })
            .collect();
        // 102, 204 - 128 = 76; then 97 each, as the window is 21: 173 - 128 = 45; 22 gives 93.
        assert_eq!(grown, [20, 21, 22, 23, 23]);
    }

    #[test]
    fn the_shortest_smoothed_round_trip_time_counts() {
        let (mut h, mut w) = connected(100, 2);
        h.grow(&mut w, &acked(0, 110_000), 1);
        assert_eq!(h.rho_8, 32);
        h.grow(&mut w, &acked(0, 75_000), 1);
        assert_eq!(h.rho_8, 24);
    }

    #[test]
    fn during_a_reduction_it_is_reno() {
        let (mut h, _) = connected(500, 2);
        h.on_state(State::Loss, 0);
        let mut w = window(4, 40);
        h.grow(&mut w, &acked(0, 500_000), 2);
        assert_eq!(w.cwnd, 6);
    }

    #[test]
    fn a_growth_that_rounds_to_nothing_is_a_segment_per_window_of_acks() {
        let (mut h, _) = connected(25, 2);
        let mut w = Segments { cwnd: 129, ssthresh: 2, cnt: 128 };
        h.grow(&mut w, &acked(0, 25_000), 1);
        assert_eq!((w.cwnd, w.cnt), (130, 0));
    }
}
