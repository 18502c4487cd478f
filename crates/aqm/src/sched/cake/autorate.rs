//! Estimate of the arrival rate, from which `autorate_ingress` sets the rate of the shaper.

use crate::cast;
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};

/// Estimator of the rate at which packets arrive.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub struct Autorate {
    /// Average time between arrivals, ns.
    gap: u64,
    last: Option<Time>,
    /// Start of the window, and the bytes that arrived since.
    since: Time,
    bytes: u64,
    /// Largest rate of late, bytes per second.
    peak: u64,
    changed: Time,
}

/// Least time between two changes of the rate.
const PAUSE: Span = Span::ms(250);

/// Moves an average by `1 / 2^up` of the way to a larger sample, `1 / 2^8` to a smaller one, as
/// Linux rounds.
pub fn average(average: u64, sample: u64) -> u64 {
    let shift = if sample > average { 2 } else { 8 };
    average - (average >> shift) + (sample >> shift)
}

impl Autorate {
    /// Counts a packet of `bytes` bytes; returns the new rate of the shaper in bytes per second if
    /// it changes.
    pub fn on_enqueue(&mut self, now: Time, bytes: u64) -> Option<u64> {
        self.bytes += bytes;
        let Some(last) = self.last.replace(now) else {
            (self.since, self.changed) = (now, now);
            return None;
        };
        let gap = now.since(last).0.min(1_000_000_000);
        self.gap = average(self.gap, gap);
        if gap <= self.gap {
            return None; // within a burst
        }
        let window = now.since(self.since).0.max(1);
        let rate = u128::from(self.bytes) * 1_000_000_000 / u128::from(window);
        self.peak = average(self.peak, cast::saturate(rate));
        (self.since, self.bytes) = (now, 0);
        (now.since(self.changed) > PAUSE).then(|| {
            self.changed = now;
            cast::saturate(u128::from(self.peak) * 15 / 16)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_fifteen_sixteenths_of_the_arrivals() {
        // 20 Mbit/s: a packet of 1250 bytes every 500 us, and now and then one 10 us late, since a
        // window ends with a gap above the average.
        let (mut auto, mut rate, mut changes) = (Autorate::default(), 0, 0);
        for i in 0..200_000u64 {
            let late = if i % 10 == 9 { 10_000 } else { 0 };
            if let Some(new) = auto.on_enqueue(Time(i * 500_000 + late), 1250) {
                (rate, changes) = (new, changes + 1);
            }
        }
        let expected = 2_500_000.0 * 15.0 / 16.0;
        assert!((rate as f64 / expected - 1.0).abs() < 0.01, "{rate}");
        assert!((380..=400).contains(&changes), "every 250 ms: {changes}");
    }

    #[test]
    fn the_average_follows_growth_quickly_and_decline_slowly() {
        // A quarter of the way up, 1 / 256 of it down.
        assert_eq!([average(1024, 2048), average(2048, 1024)], [1280, 2044]);
    }

    #[test]
    fn a_window_ends_with_a_gap_above_the_average_and_a_change_waits_250_ms() {
        let mut auto = Autorate::default();
        assert_eq!(auto.on_enqueue(Time(0), 1000), None);
        // 2000 bytes in 320 ms are 6250 B/s, of which the average takes a quarter: 1562.
        assert_eq!(auto.on_enqueue(Time(320_000_000), 1000), Some(1562 * 15 / 16));
        // The average gap is 80 ms; this one is within a burst, although 250 ms have passed since.
        assert_eq!(auto.on_enqueue(Time(321_000_000), 1000), None);
        for (ns, changes) in [(250_000_000, false), (250_000_001, true)] {
            let mut auto = Autorate::default();
            auto.on_enqueue(Time(0), 1000);
            assert_eq!(auto.on_enqueue(Time(ns), 1000).is_some(), changes);
        }
    }
}
