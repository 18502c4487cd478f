//! Arrivals of flows between the hosts of a cluster: Poisson or log-normal, from one sender or from
//! several to one receiver (incast).
//!
//! **Source**: Li et al., "HPCC", SIGCOMM 2019 (Poisson arrivals, and bursts of 60 senders on top
//! of them); Zhao et al., "Scalable Tail Latency Estimation for Data Center Networks" (Parsimon),
//! NSDI 2023 (log-normal gaps).

use crate::parsing::distribution::Distribution;
use crate::traffic::session_params::{BYTES_MAX, CompletionRule, MAX_OPEN, MIN_SIZE};
use rand_core::Rng;
use rand_distr::{Distribution as _, Exp1, StandardNormal};
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Bytes, Span};
use std::collections::BTreeSet;

params! {
    /// Flows between pairs of hosts, each on a new connection. A member of the group is a pair of
    /// hosts with its path.
    pub struct Cluster {
        /// Time from which flows arrive.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Payload of a flow.
        size: Distribution<Bytes> =
            Distribution::Constant(Bytes(100_000)), [MIN_SIZE => BYTES_MAX], "", [];
        /// Arrivals per second in the whole group: of flows, or of bursts of several senders. The
        /// gaps keep fractions of a nanosecond.
        arrivals: f64 = 1000.0, [1e-6 => 1e9], "", [];
        /// Standard deviation of the logarithm of the gaps, which are log-normal; auto: exponential
        /// gaps (Poisson arrivals).
        sigma: Option<f64> = None, [0.0 => 5.0], "", [];
        /// Number of receivers. The members of the group are as many for each receiver, one
        /// receiver after the other.
        receivers: u64 = 1, [1 => 1_000_000], "", [];
        /// Number of flows of an arrival: from different members to one receiver, at the same time.
        senders: u64 = 1, [1 => 1_000_000], "n", ["fan_in"];
        /// Number of arrivals; auto means unlimited.
        number: Option<u64> = None, [1 => 1_000_000_000], "", [];
        /// Time from which nothing further arrives; auto means never.
        stop: Option<Span> = None, [], "", [];
        /// Definition of completion: received in order, or acknowledged.
        until: CompletionRule = CompletionRule::Received, [], "", [];
        /// Maximum number of open connections; further ones are retried after 1 s.
        most: u64 = 100_000, [1 => MAX_OPEN], "", [];
    }
}

impl Cluster {
    /// Checks the members against a group of `count` flows.
    ///
    /// # Errors
    /// If the group has not as many members for each receiver, or too few for an arrival.
    pub(crate) fn validate(&self, count: u64) -> Result<()> {
        let Cluster { receivers, senders, .. } = *self;
        if !count.is_multiple_of(receivers) {
            let text = format!("{receivers} does not divide the {count} flows of the group");
            return Err(Error::new(text).at("receivers"));
        }
        let each = count / receivers;
        if senders > each {
            let text = format!("{senders} is more than the {each} flows of each receiver");
            return Err(Error::new(text).at("senders"));
        }
        Ok(())
    }

    /// Draws the time to the next arrival. `carry` has the fraction of a nanosecond that the gaps
    /// up to now have left.
    pub(crate) fn gap(&self, carry: &mut f64, rng: &mut impl Rng) -> Span {
        let share: f64 = match self.sigma {
            None => Exp1.sample(rng),
            Some(sigma) => {
                let normal: f64 = StandardNormal.sample(rng);
                libm::exp(sigma * (normal - sigma / 2.0))
            }
        };
        let exact = share * 1e9 / self.arrivals + *carry;
        let whole = cast::trunc(exact);
        *carry = exact - whole as f64;
        Span(whole)
    }

    /// Draws the members of an arrival in a group of `count`: different members of one receiver
    /// (Floyd's algorithm, Communications of the ACM 30(9), 1987).
    pub(crate) fn draw_members(&self, count: u64, rng: &mut impl Random) -> Vec<u32> {
        let each = cast::number(cast::index(count / self.receivers));
        let receiver = match self.receivers {
            1 => 0,
            receivers => rng.below(cast::number(cast::index(receivers))),
        };
        let senders = cast::number(cast::index(self.senders));
        let mut members = BTreeSet::new();
        for last in each - senders..each {
            let member = rng.below(last + 1);
            if !members.insert(member) {
                members.insert(last);
            }
        }
        members.into_iter().map(|member| receiver * each + member).collect()
    }

    /// Maximum number of flows within `time`. The number of Poisson arrivals exceeds it with a
    /// probability below e^-50 (Chernoff's bound at ten standard deviations and 100).
    pub(crate) fn max_arrivals(&self, time: Span) -> u64 {
        let mean = time.as_secs() * self.arrivals;
        let most = match self.sigma {
            None => cast::trunc(libm::ceil(mean + 10.0 * libm::sqrt(mean))).saturating_add(100),
            Some(_) => u64::MAX,
        };
        most.min(self.number.unwrap_or(u64::MAX)).saturating_mul(self.senders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn gaps_have_the_rate_below_a_nanosecond() {
        // 7.3 ns: whole nanoseconds alone would be 7 % off.
        for sigma in [None, Some(0.5)] {
            let cluster = Cluster { arrivals: 1e9 / 7.3, sigma, ..Cluster::default() };
            let (mut rng, mut carry) = (Pcg64Mcg::seed_from_u64(1), 0.0);
            let total: u64 = (0..1_000_000).map(|_| cluster.gap(&mut carry, &mut rng).0).sum();
            assert!((total as f64 / 7.3e6 - 1.0).abs() < 0.004, "{sigma:?}: {total}");
        }
    }

    #[test]
    fn an_arrival_has_different_members_of_one_receiver_each_as_often() {
        let cluster = Cluster { receivers: 4, senders: 3, ..Cluster::default() };
        let mut rng = Pcg64Mcg::seed_from_u64(2);
        let mut hits = [0u32; 20];
        for _ in 0..40_000 {
            let members = cluster.draw_members(20, &mut rng);
            assert_eq!(members.len(), 3);
            assert!(members.iter().all(|m| m / 5 == members[0] / 5), "{members:?}");
            members.iter().for_each(|m| hits[*m as usize] += 1);
        }
        // 6000 each, with a standard deviation of 71.
        assert!(hits.iter().all(|n| n.abs_diff(6000) < 300), "{hits:?}");
    }

    #[test]
    fn members_are_checked() {
        let error = |receivers, senders, count| {
            let cluster = Cluster { receivers, senders, ..Cluster::default() };
            cluster.validate(count).err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert_eq!(error(4, 5, 20), "");
        assert!(error(3, 1, 20).starts_with("receivers: 3 does not divide the 20 flows"));
        assert!(error(4, 6, 20).starts_with("senders: 6 is more than the 5 flows"));
    }
}
