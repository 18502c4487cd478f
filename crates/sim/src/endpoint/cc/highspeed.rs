//! HighSpeed TCP: grows faster and reduces less the larger the window is, so that large windows
//! need fewer losses; Reno up to 38 segments.
//!
//! **Source**: RFC 3649 §5 (response function), §6 (increase `a(w)`) and appendix B (table of the
//! windows at which `a(w)` has risen by one); Linux 6.12 `net/ipv4/tcp_highspeed.c`, with its
//! integers: `b(w)` in 1/256, rounded down. The table is computed as in the RFC.
//!
//! **Symbols** `a(w)`, `b(w)`, `Low_Window`, `High_Window`, `High_Decrease` as in the RFC. As in
//! Linux, the growth is per ack: delayed acks halve it.

use super::linux::{Acked, Algorithm, Segments};
use super::{CongestionSignal, ControlParams, TcpEntry};
use crate::endpoint::common_params::{LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use std::sync::Arc;

params! {
    /// Parameters of [`HighSpeed`].
    pub struct HighSpeedParams {
        /// Window up to which it is Reno, segments.
        low_window: u64 = 38, [2 => 10_000], "Low_Window", [];
        /// Window at which the reduction is `high_decrease`, segments.
        high_window: u64 = 83_000, [10_001 => 1_000_000], "High_Window", [];
        /// Reduction at `high_window`, as a fraction of the window.
        high_decrease: f64 = 0.1, [0.01 => 0.5], "High_Decrease", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "highspeed",
    aliases: &["hstcp"],
    about: "grows faster and reduces less the larger the window is; not in ns2",
    source: "RFC 3649; Linux tcp_highspeed.c",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::HighSpeed(HighSpeedParams::default()),
};

/// End of the table, segments.
const TABLE_END: u64 = 90_000;

/// Row of the table: largest window of a growth, and its reduction in 1/256.
type Row = (u64, u64);

/// Computes the table of RFC 3649 appendix B. The i-th row, from 1 on, has a growth of i segments
/// per window.
fn table(params: &HighSpeedParams) -> Vec<Row> {
    let log = |w: u64| libm::log(w as f64);
    let low = log(params.low_window);
    let mut rows = vec![(params.low_window, 128)];
    let mut last = 1.0;
    for w in params.low_window..TABLE_END {
        let share = (log(w) - low) / (log(params.high_window) - low);
        let b = (params.high_decrease - 0.5) * share + 0.5;
        let size = w as f64;
        let a = size * size * 2.0 * b / ((2.0 - b) * libm::pow(size, 1.2) * 12.8);
        if a > last + 1.0 {
            rows.push((w, cast::trunc(256.0 * b)));
            last = a;
        }
    }
    rows
}

/// HighSpeed TCP state.
#[derive(Clone, Debug, Snapshot)]
pub struct HighSpeed {
    rows: Arc<[Row]>,
    /// Row of the window, from 0 on.
    row: usize,
}

impl HighSpeed {
    /// Creates a control.
    pub fn of(params: &HighSpeedParams) -> HighSpeed {
        HighSpeed { rows: table(params).into(), row: 0 }
    }
}

impl Algorithm for HighSpeed {
    type Params = HighSpeedParams;

    fn new(params: &HighSpeedParams, _: &mut dyn Random) -> HighSpeed {
        HighSpeed::of(params)
    }

    fn reset(&mut self) {
        self.row = 0;
    }

    fn grow(&mut self, w: &mut Segments, ack: &Acked, acked: u64) {
        if !ack.full {
            return;
        }
        if w.is_in_slow_start() {
            w.slow_start(acked);
            return;
        }
        let row = self.rows.partition_point(|(largest, _)| *largest < w.cwnd);
        self.row = row.min(self.rows.len() - 1);
        w.cnt += u64::from(cast::number(self.row)) + 1;
        if w.cnt >= w.cwnd {
            (w.cwnd, w.cnt) = (w.cwnd + 1, w.cnt - w.cwnd);
        }
    }

    fn ssthresh(&mut self, w: &Segments, _: CongestionSignal, _: u64) -> u64 {
        (w.cwnd - w.cwnd * self.rows[self.row].1 / 256).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux::testing::{acked, window};
    use super::*;

    fn highspeed() -> HighSpeed {
        HighSpeed::of(&HighSpeedParams::default())
    }

    #[test]
    fn the_table_is_that_of_the_rfc() {
        // Appendix B: w, a(w), b(w). 256 * 0.44 = 113, as 0.441 is rounded up there.
        let rows = highspeed().rows;
        let shown = |a: usize| (rows[a - 1].0, rows[a - 1].1 as f64 / 256.0);
        for (a, w, b) in
            [(1, 38, 0.50), (2, 118, 0.44), (3, 221, 0.41), (10, 1529, 0.31), (72, 89053, 0.10)]
        {
            let (window, decrease) = shown(a);
            assert_eq!(window, w);
            assert!((decrease - b).abs() < 0.01, "{w}: {decrease}");
        }
        assert_eq!(rows.len(), 72);
    }

    #[test]
    fn grows_by_a_of_the_window_per_window_of_acks() {
        for (cwnd, acks) in [(38, 38), (39, 20), (118, 59), (119, 40)] {
            let (mut h, mut w) = (highspeed(), window(cwnd, 2));
            (1..acks).for_each(|_| h.grow(&mut w, &acked(0, 1), 2));
            assert_eq!(w.cwnd, cwnd, "{cwnd}: one ack less");
            h.grow(&mut w, &acked(0, 1), 2);
            assert_eq!(w.cwnd, cwnd + 1);
        }
    }

    #[test]
    fn the_reduction_is_that_of_the_last_growth() {
        let (mut h, mut w) = (highspeed(), window(200, 2));
        let left =
            |h: &mut HighSpeed, cwnd| h.ssthresh(&window(cwnd, 2), CongestionSignal::Loss, 0);
        assert_eq!(left(&mut h, 200), 100, "before the first growth: half");
        h.grow(&mut w, &acked(0, 1), 1);
        assert_eq!(left(&mut h, 200), 119, "0.408: 104 of 256 are 81");
        assert_eq!(left(&mut h, 2), 2);
        h.reset();
        assert_eq!(left(&mut h, 200), 100);
    }

    #[test]
    fn above_the_table_the_last_row_counts() {
        let (mut h, mut w) = (highspeed(), window(95_000, 2));
        h.grow(&mut w, &acked(0, 1), 1);
        assert_eq!(w.cnt, 72);
    }
}
