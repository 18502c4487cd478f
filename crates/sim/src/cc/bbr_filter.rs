//! The largest of the samples of the last rounds.

use sojourn_aqm::cast;
use std::collections::VecDeque;

/// A maximum over a window of rounds. Only a new sample ages the old ones, so a silence forgets
/// nothing.
#[derive(Clone, Debug)]
pub(super) struct WindowedMax {
    rounds: u64,
    /// (round, value), values falling: each is the largest since its round.
    line: VecDeque<(u64, f64)>,
}

impl WindowedMax {
    /// Over `rounds` rounds.
    pub fn new(rounds: u64) -> WindowedMax {
        WindowedMax { rounds, line: VecDeque::with_capacity(cast::index(rounds) + 2) }
    }

    /// Forgets them all.
    pub fn reset(&mut self) {
        self.line.clear();
    }

    /// Takes a sample of `round`.
    pub fn add(&mut self, round: u64, value: f64) {
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

    /// The largest; 0 before the first.
    pub fn get(&self) -> f64 {
        self.line.front().map_or(0.0, |f| f.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use sojourn_aqm::dice::Dice;

    #[test]
    fn agrees_with_a_list_of_all_samples() {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
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
}
