//! API: adaptive PI, whose gains grow with the distance between the queue and its reference.
//!
//! **Source** Huang et al., CECNet 2013. Only the abstract was available to us: the gains follow
//! the deviation of the queue from its target. The formula is ours.
//!
//! **Decides** on arrival.
//!
//! **Measures** as PI.
//!
//! **Symbols** as in PI; `m` the multiplier, `GM` the gain margin of PI's design.
//!
//! **Algorithm** PI with `p += m (a (q - q_ref) - b (q_old - q_ref))`, where `m = 1 + (m_max - 1)
//! min(1, |q - q_ref| / q_ref)` and `m_max = GM / 2`. At the reference it equals PI; far from it
//! the loop keeps a gain margin of 6 dB.
//!
//! **Departures** As PI. `m_max` can be set, and is required if `a` and `b` are given without
//! `flows` and `rtt`. If GM is below 2, `m_max` is 1.
//!
//! **Cost** 168 bytes of state; a random number per arrival, as PI.

use super::pi::{Gains, Pi, PiParams, gains};
use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::{Checked, Combined};
use crate::snapshot::Snapshot;
use crate::units::Time;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Api>>(
    "api",
    "PI with gains that grow with the distance from q_ref",
)
.aliases(&["adaptive_pi"])
.decides("on arrival: PI's drop probability, integrated faster if the queue is far from q_ref")
.source("after Huang et al., CECNet 2013");

crate::params! {
    /// Parameters of [`Api`], in addition to PI's.
    pub struct ApiParams {
        /// Factor on both gains when the queue is empty or at least twice q_ref; auto is half the
        /// gain margin of the design.
        m_max: Option<f64> = None, [1.0 => 1000.0], "m", [];
    }
}

/// State of API.
#[derive(Clone, Debug, Snapshot)]
pub struct Api {
    pi: Pi,
    /// Largest factor on the gains.
    m_max: f64,
}

/// The phase of the loop, without the controller's gain, is 180 degrees at x tan(x) = 1, where the
/// loop gain is the inverse of this value.
const MODULUS: f64 = 1.1349;

impl Aqm for Api {
    type Params = Combined<ApiParams, PiParams>;

    fn new(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self> {
        let (Gains { crossover: x, .. }, designed) = gains(&params.inner, env)?;
        let margin = || MODULUS / (x * libm::sqrt(1.0 + x * x));
        let m_max = match params.outer.m_max {
            Some(m) => m,
            None if designed => (margin() / 2.0).max(1.0),
            None => {
                let text = "is required if a and b are given without flows and rtt";
                return Err(Error::new(text).at("m_max"));
            }
        };
        Ok(Api { pi: Pi::build(&params.inner, env)?, m_max })
    }

    fn on_first_packet(&mut self, now: Time) {
        self.pi.on_first_packet(now);
    }

    fn on_update(&mut self, now: Time, queue: &QueueView<'_>) {
        let more = self.m_max - 1.0;
        self.pi.sample(now, queue, |e| 1.0 + more * e.min(1.0));
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        self.pi.on_enqueue(context, queue, packet)
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.pi.inspect(visit);
        // Factor on both gains far from q_ref.
        visit("m_max", self.m_max);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// Ten samples a second; gains of 0.002 and 0.001, at most three times that.
    const SLOW: [(&str, &str); 5] =
        [("a", "0.002"), ("b", "0.001"), ("w", "10"), ("q_ref", "8p"), ("m_max", "3")];

    fn p_after(name: &str, packets: u32, ms: u64) -> f64 {
        let known = if name == "api" { &SLOW[..] } else { &SLOW[..4] };
        let mut q = Bench::new(name, known);
        (0..packets).for_each(|i| assert!(q.put(i, 1000).is_empty()));
        q.at_ms(ms);
        q.get();
        q.gauge("p")
    }

    #[test]
    fn samples_by_hand() {
        // 12 of 8: half the reference away, so m = 1 + 2/2 = 2:
        // 2 (0.002 * 4 + 0.001 * 8) = 0.032, and 2 * 0.001 * 4 = 0.008 more a sample later.
        assert!((p_after("api", 12, 100) - 0.032).abs() < 1e-15);
        assert!((p_after("api", 12, 200) - 0.040).abs() < 1e-15);
        // Beyond twice the reference m stays 3: 3 (0.002 * 16 + 0.001 * 8) = 0.12.
        assert!((p_after("api", 24, 100) - 0.12).abs() < 1e-15);
    }

    #[test]
    fn at_the_reference_it_is_pi() {
        assert_eq!(p_after("api", 8, 500), p_after("pi", 8, 500));
        assert!(p_after("api", 9, 500) > p_after("pi", 9, 500));
    }

    #[test]
    fn half_the_gain_margin_is_worked_out() {
        // 11250 packets per second are 45 mbit; the bench has 8 mbit: 2000 packets of 500 bytes, so
        // the same crossover, 2 N / (R C) = 0.08889, follows from 100 * 8 / 45 flows.
        let design = [("flows", "17.7777777777777"), ("rtt", "200ms"), ("w", "160")];
        let q = Bench::new("api", &design);
        assert!((q.gauge("m_max") - 12.7 / 2.0).abs() < 0.02, "{}", q.gauge("m_max"));
        let message = |settings: &[(&str, &str)]| {
            let settings: Vec<_> =
                settings.iter().map(|(k, v)| (*k, crate::Setting::Text(v))).collect();
            crate::build("api", &settings, crate::Rate(8_000_000)).unwrap_err().to_string()
        };
        assert!(message(&SLOW[..4]).starts_with("m_max: is required"));
    }

    #[test]
    fn a_day_ends_at_the_bounds() {
        assert_eq!(p_after("api", 12, 86_400_000), 1.0);
        assert_eq!(p_after("api", 3, 86_400_000), 0.0);
    }

    #[test]
    fn packets_are_dropped_with_probability_p() {
        let mut q = Bench::new("api", &SLOW);
        (0..12).for_each(|i| assert!(q.put(i, 1000).is_empty()));
        q.at_ms(86_400_000);
        assert_eq!((q.put(12, 1000), q.gauge("p")), (vec![12], 1.0));
    }
}
