//! Random decisions with a probability and, optionally, correlated.
//!
//! **Source**: Linux, `net/sched/sch_netem.c`, get_crandom. A correlated number is the mean of a
//! new random number and the previous correlated one, weighted by the correlation. The means of
//! such numbers are closer to one half than independent numbers are, so a probability below one
//! half is met less often than it says: with a correlation of 25 %, a probability of 10 % gives
//! 1.8 %, and one of 1 % gives 3 in a million.

use crate::cast;
use crate::random::{CloneRandom, Random};
use crate::snapshot::Snapshot;
use alloc::boxed::Box;

/// Random stream of one impairment.
pub type Stream = Box<dyn CloneRandom + Send>;

/// Probability of an event, and its correlation with the previous event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Snapshot)]
#[non_exhaustive]
pub struct Chance {
    /// Probability, 0 to 1.
    pub probability: f64,
    /// Correlation with the previous packet, 0 to 1.
    pub correlation: f64,
}

impl Chance {
    /// Returns independent events with this probability.
    pub const fn new(probability: f64) -> Chance {
        Chance { probability, correlation: 0.0 }
    }

    /// Returns events with this probability and correlation.
    pub const fn correlated(probability: f64, correlation: f64) -> Chance {
        Chance { probability, correlation }
    }
}

/// `share` of 2^32 - 1, as tc converts a percentage.
fn scaled(share: f64) -> u64 {
    cast::trunc(libm::round(share * f64::from(u32::MAX)))
}

/// Correlated random numbers.
#[derive(Clone, Copy, Debug, Snapshot)]
pub(super) struct Correlated {
    rho: u64,
    last: u64,
}

impl Correlated {
    /// Creates the state; the first number depends on one draw, unless `correlation` is 0.
    pub(super) fn new(correlation: f64, rng: &mut impl Random) -> Correlated {
        let rho = scaled(correlation);
        Correlated { rho, last: if rho > 0 { u64::from(rng.draw32()) } else { 0 } }
    }

    /// Returns the next number of 32 bits.
    pub(super) fn next(&mut self, rng: &mut impl Random) -> u32 {
        let value = rng.draw32();
        if self.rho == 0 {
            return value;
        }
        let rho = self.rho + 1;
        let sum = u64::from(value) * ((1 << 32) - rho) + self.last * rho;
        self.last = sum >> 32;
        cast::low32(self.last)
    }
}

/// Events with a [`Chance`].
#[derive(Clone, Debug, Snapshot)]
pub(super) struct Events<R> {
    chance: Chance,
    numbers: Correlated,
    rng: R,
}

impl<R: Random> Events<R> {
    pub(super) fn new(chance: Chance, mut rng: R) -> Events<R> {
        Events { chance, numbers: Correlated::new(chance.correlation, &mut rng), rng }
    }

    /// Probability and correlation.
    pub(super) fn chance(&self) -> Chance {
        self.chance
    }

    /// Sets another probability and correlation; nothing happens if they are the same.
    pub(super) fn change(&mut self, chance: Chance) {
        if chance != self.chance {
            self.numbers = Correlated::new(chance.correlation, &mut self.rng);
            self.chance = chance;
        }
    }

    /// Draws the next event: true if it happens. A probability of 0 draws nothing.
    pub(super) fn next(&mut self) -> bool {
        let Chance { probability, correlation } = self.chance;
        if probability == 0.0 {
            return false;
        }
        if correlation == 0.0 {
            return self.rng.bernoulli(probability);
        }
        u64::from(self.numbers.next(&mut self.rng)) <= scaled(probability)
    }

    /// Random stream of the events.
    pub(super) fn rng(&mut self) -> &mut R {
        &mut self.rng
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_pcg::Pcg64Mcg;
    use std::prelude::v1::*;

    const N: usize = 400_000;

    fn events(chance: Chance) -> Vec<bool> {
        let mut events = Events::new(chance, Pcg64Mcg::seed_from_u64(3));
        (0..N).map(|_| events.next()).collect()
    }

    fn share(events: &[bool]) -> f64 {
        events.iter().filter(|e| **e).count() as f64 / events.len() as f64
    }

    #[test]
    fn independent_events_have_their_probability() {
        for p in [0.0, 0.01, 0.25, 1.0] {
            assert!((share(&events(Chance::new(p))) - p).abs() < 0.003, "{p}");
        }
    }

    /// The variance of correlated numbers is `(1 - r) / (1 + r)` of the variance of uniform ones,
    /// and consecutive numbers have the correlation `r`.
    #[test]
    fn correlated_numbers_have_their_correlation() {
        for r in [0.25, 0.5, 0.9] {
            let mut rng = Pcg64Mcg::seed_from_u64(7);
            let mut numbers = Correlated::new(r, &mut rng);
            let x: Vec<f64> =
                (0..N).map(|_| f64::from(numbers.next(&mut rng)) / 4_294_967_296.0).collect();
            let mean = x.iter().sum::<f64>() / N as f64;
            let cov = |lag: usize| {
                x.windows(lag + 1).map(|w| (w[0] - mean) * (w[lag] - mean)).sum::<f64>() / N as f64
            };
            assert!((mean - 0.5).abs() < 0.005, "{r}: {mean}");
            let variance = (1.0 - r) / (1.0 + r) / 12.0;
            assert!((cov(0) / variance - 1.0).abs() < 0.03, "{r}: {}", cov(0));
            assert!((cov(1) / cov(0) - r).abs() < 0.01, "{r}: {}", cov(1) / cov(0));
        }
    }

    /// Shares of 4 million chains computed with NumPy.
    #[test]
    fn correlation_lowers_a_small_probability() {
        for (p, r, expected) in [(0.1, 0.25, 0.0176), (0.3, 0.5, 0.1295), (0.4, 0.5, 0.3008)] {
            let rate = share(&events(Chance::correlated(p, r)));
            assert!((rate / expected - 1.0).abs() < 0.05, "{p} {r}: {rate}");
        }
        assert!(share(&events(Chance::correlated(0.01, 0.25))) < 1e-4);
        assert_eq!(share(&events(Chance::correlated(1.0, 0.25))), 1.0);
        assert_eq!(share(&events(Chance::correlated(0.0, 0.25))), 0.0);
    }

    #[test]
    fn correlated_events_come_in_bursts() {
        let lone = events(Chance::new(0.3));
        let together = events(Chance::correlated(0.4, 0.5));
        let after = |e: &[bool]| {
            let pairs = e.windows(2).filter(|w| w[0]);
            share(&pairs.map(|w| w[1]).collect::<Vec<_>>())
        };
        assert!((after(&lone) - 0.3).abs() < 0.01);
        assert!((after(&together) - 0.497).abs() < 0.02, "{}", after(&together));
        assert!(share(&together) < 0.31);
    }
}
