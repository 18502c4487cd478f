//! On/off sources: bursts of packets at a constant rate, separated by idle periods.
//!
//! **Source**: ns-2.35, `Traffic/Exponential` and `Traffic/Pareto` (expoo.cc, pareto.cc). The
//! number of packets in a burst is the drawn on-time divided by the interval, rounded, at least
//! one. The on-time and the preceding off-time are drawn together, in this order.

use crate::parsing::distribution::Distribution;
use sojourn_aqm::Pcg;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::params;
use sojourn_aqm::units::{Bytes, Rate, Span};

params! {
    /// Bursts of packets at a constant rate, over UDP or over a given TCP.
    pub struct OnOff {
        /// Start time; the first burst follows after an idle period.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Stop time; auto means never.
        stop: Option<Span> = None, [], "", [];
        /// Sending rate during a burst, bit/s.
        rate: Rate = Rate(64_000), [Rate(1) => Rate(1_000_000_000_000)], "", [];
        /// Packet size in bytes: on the wire over UDP, payload over TCP.
        packet: Bytes = Bytes(210), [Bytes(1) => Bytes(65_535)], "", ["size"];
        /// Duration of a burst; for ns-2's Pareto source use pareto(mean=500ms, shape=1.5).
        on: Distribution<Span> = Distribution::Exponential(Span::ms(500)), [], "", ["burst_time"];
        /// Duration of the idle period between two bursts.
        off: Distribution<Span> = Distribution::Exponential(Span::ms(500)), [], "", ["idle_time"];
    }
}

/// State of an on/off source.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct OnOffState {
    /// Parameters.
    pub params: OnOff,
    /// Time between packets of a burst.
    interval: Span,
    /// Packets of this burst still to be sent.
    left: u64,
}

impl OnOffState {
    /// Creates a source that is about to draw its first burst.
    pub(crate) fn new(params: &OnOff) -> OnOffState {
        let bits = u128::from(params.packet.0) * 8;
        let interval =
            Span(cast::saturate(bits * 1_000_000_000 / u128::from(params.rate.0)).max(1));
        OnOffState { params: params.clone(), interval, left: 0 }
    }

    /// Gap from the last packet (or the start) to the next one.
    pub(crate) fn next_gap(&mut self, rng: &mut Pcg) -> Span {
        if self.left > 0 {
            self.left -= 1;
            return self.interval;
        }
        let packets = libm::round(self.params.on.sample_f64(rng) / self.interval.0 as f64);
        self.left = cast::trunc(packets.max(1.0)) - 1;
        self.interval + self.params.off.sample(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    #[test]
    fn bursts_are_rounded_and_start_with_an_idle_period() {
        // 1000 B at 8 Mbit/s take 1 ms each; 3.4 ms make three packets; the idle period is 10 ms.
        let (on, off) =
            (Distribution::Constant(Span::us(3400)), Distribution::Constant(Span::ms(10)));
        let params =
            OnOff { rate: Rate(8_000_000), packet: Bytes(1000), on, off, ..OnOff::default() };
        let mut bursts = OnOffState::new(&params);
        let mut rng = Pcg::seed_from_u64(1);
        let gaps: Vec<u64> = (0..7).map(|_| bursts.next_gap(&mut rng).0 / 1_000_000).collect();
        assert_eq!(gaps, [11, 1, 1, 11, 1, 1, 11]);
        let short = OnOff { on: Distribution::Constant(Span(1)), ..params };
        let mut bursts = OnOffState::new(&short);
        assert_eq!(
            (0..3).map(|_| bursts.next_gap(&mut rng)).max(),
            Some(Span::ms(11)),
            "one or more"
        );
    }

    /// Load = rate * on / (on + off) for both shapes. Rounding to whole packets (26.25 ms each)
    /// costs under 3 %.
    #[test]
    fn mean_load_matches_the_parameters() {
        for shape in [None, Some(2.5)] {
            let dist = |mean| {
                shape.map_or(Distribution::Exponential(mean), |a| Distribution::Pareto(mean, a))
            };
            let params = OnOff { on: dist(Span::s(2)), off: dist(Span::s(6)), ..OnOff::default() };
            let mut bursts = OnOffState::new(&params);
            let mut rng = Pcg::seed_from_u64(3);
            let total: u64 = (0..1_000_000).map(|_| bursts.next_gap(&mut rng).0).sum();
            let bps = 1e6 * 210.0 * 8.0 / (total as f64 / 1e9);
            assert!((bps / 16_000.0 - 1.0).abs() < 0.03, "{shape:?}: {bps}");
        }
    }
}
