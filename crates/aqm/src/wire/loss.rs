//! Random packet loss on a link: independent or correlated, or in bursts.
//!
//! **Source**: E. N. Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical Journal 39
//! (1960); E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", ibid. 42
//! (1963); S. Salsano, F. Ludovici, A. Ordine, D. Giannuzzi, "Definition of a general and intuitive
//! loss model for packet networks", 2012; the names are from tc-netem(8), `loss gemodel p r 1-h
//! 1-k` and `loss state p13 p31 p32 p23 p14`.
//!
//! Gilbert-Elliott: the channel is good or bad and starts good. A packet is lost with the loss
//! probability of the current state; after each packet a good channel turns bad with probability p
//! and a bad one good with probability r. State changes are per packet, not per unit of time. The
//! loss rate is `(1-h) b + (1-k) (1-b)` with `b = p / (p + r)`. If a bad channel loses every packet
//! and a good one none, the mean burst length is 1/r packets.
//!
//! Four states: 1 delivers in a gap, 2 delivers in a burst, 3 loses in a burst, 4 loses alone in a
//! gap. Each packet is delivered or lost by the state after the transition; the packet after an
//! isolated loss is delivered.

use super::chance::{Chance, Correlated};
use crate::random::Random;
use crate::snapshot::Snapshot;

/// Loss model of a link.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
#[non_exhaustive]
pub enum LossModel {
    /// Independent losses with this probability.
    Random(f64),
    /// Correlated losses, as `loss random P C` of netem.
    Correlated(Chance),
    /// Gilbert-Elliott bursts.
    Bursts {
        /// Probability that a good channel turns bad after a packet.
        p: f64,
        /// Probability that a bad channel turns good after a packet.
        r: f64,
        /// Loss probability in the bad state: 1-h.
        bad_loss: f64,
        /// Loss probability in the good state: 1-k.
        good_loss: f64,
    },
    /// Markov chain with four states.
    States {
        /// Probability that a gap ends with a loss that starts a burst.
        p13: f64,
        /// Probability that a burst ends after a loss.
        p31: f64,
        /// Probability that a delivered packet follows a loss within a burst.
        p32: f64,
        /// Probability that a loss follows a delivered packet within a burst.
        p23: f64,
        /// Probability of an isolated loss in a gap.
        p14: f64,
    },
}

impl Default for LossModel {
    fn default() -> LossModel {
        LossModel::Random(0.0)
    }
}

impl LossModel {
    fn correlation(self) -> f64 {
        match self {
            LossModel::Correlated(chance) => chance.correlation,
            _ => 0.0,
        }
    }

    /// True if no packet is ever lost.
    pub fn is_lossless(self) -> bool {
        match self {
            LossModel::Random(probability) => probability == 0.0,
            LossModel::Correlated(chance) => chance.probability == 0.0,
            _ => false,
        }
    }
}

/// State of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
enum Channel {
    /// Good channel; state 1.
    Gap,
    /// State 2.
    Burst,
    /// Bad channel; state 3.
    Lost,
    /// State 4.
    LostAlone,
}

/// State of a lossy channel.
#[derive(Clone, Debug, Snapshot)]
pub struct LossProcess<R> {
    loss: LossModel,
    state: Channel,
    numbers: Correlated,
    rng: R,
    /// Packets lost among those that arrived at the link in the measured interval; updated by the
    /// owner.
    pub lost: u64,
}

impl<R: Random> LossProcess<R> {
    /// Creates a channel with its own random stream.
    pub fn new(loss: LossModel, mut rng: R) -> LossProcess<R> {
        let numbers = Correlated::new(loss.correlation(), &mut rng);
        LossProcess { loss, state: Channel::Gap, numbers, rng, lost: 0 }
    }

    /// Model of the losses.
    pub fn model(&self) -> LossModel {
        self.loss
    }

    /// Sets another model, in its first state; nothing happens if it is the same.
    pub fn change(&mut self, loss: LossModel) {
        if loss != self.loss {
            self.numbers = Correlated::new(loss.correlation(), &mut self.rng);
            (self.loss, self.state) = (loss, Channel::Gap);
        }
    }

    /// Draws the fate of the next packet: true if it is lost.
    pub fn next_is_lost(&mut self) -> bool {
        let chance = match self.loss {
            LossModel::Random(chance) => chance,
            LossModel::Correlated(chance) => {
                let number = f64::from(self.numbers.next(&mut self.rng));
                return chance.probability > 0.0
                    && number <= chance.probability * f64::from(u32::MAX);
            }
            LossModel::Bursts { p, r, bad_loss: bad, good_loss: good } => {
                let is_bad = self.state == Channel::Lost;
                let (loss, transition) = if is_bad { (bad, r) } else { (good, p) };
                if self.rng.bernoulli(transition) {
                    self.state = if is_bad { Channel::Gap } else { Channel::Lost };
                }
                loss
            }
            LossModel::States { p13, p31, p32, p23, p14 } => {
                let u = self.rng.uniform();
                self.state = match self.state {
                    Channel::Gap if u < p14 => Channel::LostAlone,
                    Channel::Gap if u < p14 + p13 => Channel::Lost,
                    Channel::Burst if u < p23 => Channel::Lost,
                    Channel::Burst => Channel::Burst,
                    Channel::Lost if u < p32 => Channel::Burst,
                    Channel::Lost if u >= p32 + p31 => Channel::Lost,
                    Channel::Gap | Channel::Lost | Channel::LostAlone => Channel::Gap,
                };
                return matches!(self.state, Channel::Lost | Channel::LostAlone);
            }
        };
        self.rng.bernoulli(chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_pcg::Pcg64Mcg;
    use std::prelude::v1::*;

    const PACKETS: usize = 1_000_000;

    fn losses(loss: LossModel) -> Vec<bool> {
        let mut wire = LossProcess::new(loss, Pcg64Mcg::seed_from_u64(1));
        let lost: Vec<bool> = (0..PACKETS).map(|_| wire.next_is_lost()).collect();
        lost
    }

    /// Loss rate and mean burst length.
    fn measured(loss: LossModel) -> (f64, f64) {
        let lost = losses(loss);
        let all = lost.iter().filter(|l| **l).count() as f64;
        let runs = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count() as f64;
        (all / PACKETS as f64, all / runs)
    }

    fn close(value: f64, expected: f64, share: f64) {
        assert!((value / expected - 1.0).abs() < share, "{value}, not {expected}");
    }

    #[test]
    fn loss_rate_and_burst_length_match_the_formulas() {
        for (p, r, bad, good) in
            [(0.01, 0.25, 1.0, 0.0), (0.002, 0.1, 0.7, 0.001), (0.3, 0.4, 0.9, 0.1)]
        {
            let b = p / (p + r);
            let share = bad * b + good * (1.0 - b);
            // Probability that two consecutive packets are lost.
            let both = b * bad * ((1.0 - r) * bad + r * good)
                + (1.0 - b) * good * ((1.0 - p) * good + p * bad);
            let (lost, run) = measured(LossModel::Bursts { p, r, bad_loss: bad, good_loss: good });
            close(lost, share, 0.05);
            close(run, 1.0 / (1.0 - both / share), 0.02);
        }
    }

    #[test]
    fn gilbert_burst_lengths_are_geometric() {
        let lost = losses(LossModel::Bursts { p: 0.05, r: 0.5, bad_loss: 1.0, good_loss: 0.0 });
        let runs: Vec<usize> =
            lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect();
        for n in 1..6 {
            let share = runs.iter().filter(|run| **run == n).count() as f64 / runs.len() as f64;
            close(share, 1.0 / f64::from(1u32 << n), 0.05);
        }
    }

    #[test]
    fn losses_are_independent_if_r_is_one_minus_p() {
        let independent = LossModel::Bursts { p: 0.1, r: 0.9, bad_loss: 1.0, good_loss: 0.0 };
        for model in [independent, LossModel::Random(0.1)] {
            let (lost, run) = measured(model);
            close(lost, 0.1, 0.02);
            close(run, 1.0 / 0.9, 0.01);
        }
    }

    /// Stationary shares of the four states, from the balance of their flows.
    fn shares(p13: f64, p31: f64, p32: f64, p23: f64, p14: f64) -> [f64; 4] {
        // Relative to state 1: 3 by its own balance with 2, 2 by p32 = p23, 4 by one step.
        let three = p13 / p31;
        let two = three * p32 / p23;
        let sum = 1.0 + two + three + p14;
        [1.0, two, three, p14].map(|share| share / sum)
    }

    #[test]
    fn four_states_lose_the_share_of_their_stationary_distribution() {
        for (p13, p31, p32, p23, p14) in
            [(0.02, 0.3, 0.2, 0.4, 0.01), (0.1, 0.5, 0.1, 0.9, 0.0), (0.01, 0.05, 0.3, 0.5, 0.05)]
        {
            let [_, _, burst, alone] = shares(p13, p31, p32, p23, p14);
            let (lost, _) = measured(LossModel::States { p13, p31, p32, p23, p14 });
            close(lost, burst + alone, 0.03);
        }
    }

    #[test]
    fn isolated_losses_are_isolated() {
        let lost = losses(LossModel::States { p13: 0.0, p31: 1.0, p32: 0.0, p23: 1.0, p14: 0.2 });
        assert!(lost.windows(2).all(|w| !(w[0] && w[1])));
        close(lost.iter().filter(|l| **l).count() as f64 / PACKETS as f64, 0.2 / 1.2, 0.02);
    }

    #[test]
    fn correlated_losses_are_fewer_and_come_together() {
        let chance = |c| measured(LossModel::Correlated(Chance::correlated(0.1, c)));
        let (free, (tied, run)) = (chance(0.0), chance(0.5));
        close(free.0, 0.1, 0.02);
        close(free.1, 1.0 / 0.9, 0.01);
        close(tied, 0.0011, 0.2);
        assert!(run > 1.08, "{run}");
    }
}
