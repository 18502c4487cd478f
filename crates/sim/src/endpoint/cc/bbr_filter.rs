//! Windowed maximum filter.

use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use std::collections::VecDeque;

/// Maximum over a window of rounds. Samples expire only when a new one is added, so nothing is lost
/// while idle.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct WindowedMax {
    rounds: u64,
    /// (round, value) with decreasing values: each is the maximum since its round.
    line: VecDeque<(u64, f64)>,
}

impl WindowedMax {
    /// Creates a filter over `rounds` rounds.
    pub(super) fn new(rounds: u64) -> WindowedMax {
        WindowedMax { rounds, line: VecDeque::with_capacity(cast::index(rounds) + 2) }
    }

    /// Removes all samples.
    pub(super) fn reset(&mut self) {
        self.line.clear();
    }

    /// Sets the length of the filter to `rounds`; takes effect with the next sample.
    pub(super) fn set_rounds(&mut self, rounds: u64) {
        self.rounds = rounds;
    }

    /// Adds a sample of `round`.
    pub(super) fn add(&mut self, round: u64, value: f64) {
        while self.line.back().is_some_and(|b| b.1 <= value) {
            self.line.pop_back();
        }
        if self.line.back().is_none_or(|b| b.0 < round) {
            self.line.push_back((round, value));
        }
        while self.line.front().is_some_and(|f| f.0 + self.rounds < round) {
            self.line.pop_front();
        }
    }

    /// Maximum; 0 if there is no sample.
    pub(super) fn get(&self) -> f64 {
        self.line.front().map_or(0.0, |f| f.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use sojourn_aqm::random::Random;

    #[test]
    fn agrees_with_a_list_of_all_samples() {
        let mut rng = sojourn_aqm::Pcg::seed_from_u64(1);
        let (mut max, mut all) = (WindowedMax::new(10), Vec::new());
        assert_eq!(max.get(), 0.0);
        let mut round = 0;
        for _ in 0..5_000 {
            round += u64::from(rng.below(10) == 0) * (1 + u64::from(rng.below(4)));
            let value = f64::from(rng.below(1_000));
            max.add(round, value);
            all.push((round, value));
            let recent = all.iter().filter(|s| s.0 + 10 >= round).map(|s| s.1);
            assert_eq!(max.get(), recent.fold(0.0, f64::max));
            assert!(max.line.len() <= 12);
        }
    }

    #[test]
    fn one_sample_per_round_is_kept() {
        let mut max = WindowedMax::new(2);
        [5.0, 4.0, 3.0].iter().for_each(|value| max.add(1, *value));
        assert_eq!(max.line, [(1, 5.0)]);
        [3.0, 4.0].iter().for_each(|value| max.add(2, *value));
        assert_eq!(max.line, [(1, 5.0), (2, 4.0)]);
        max.add(4, 1.0);
        assert_eq!(max.line, [(2, 4.0), (4, 1.0)], "rounds 2 to 4");
    }
}
