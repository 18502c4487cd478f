//! On/off sources: packets at a constant rate in bursts, silence between them.
//!
//! **Source**: ns-2.35's `Traffic/Exponential` and `Traffic/Pareto` (expoo.cc, pareto.cc): the
//! number of packets of a burst is the drawn time over the interval, rounded, at least one; its
//! length and the silence before it are drawn together, in this order.

use crate::dist::Dist;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::cast;
use sojourn_aqm::params;
use sojourn_aqm::units::{Bytes, Rate, Span};

params! {
    /// Bursts of packets at a constant rate: over UDP, or over a TCP that is given.
    pub struct OnOff {
        /// When it starts; its first burst follows after a silence.
        start: Dist<Span> = Dist::Constant(Span::ZERO), [], "", [];
        /// When it stops; auto for never.
        stop: Option<Span> = None, [], "", [];
        /// Bits per second during a burst.
        rate: Rate = Rate(64_000), [Rate(1) => Rate(1_000_000_000_000)], "", [];
        /// Bytes of a packet: on the wire over UDP, of payload over TCP.
        packet: Bytes = Bytes(210), [Bytes(1) => Bytes(65_535)], "", ["size"];
        /// How long a burst lasts; for ns-2's Pareto source pareto(mean=500ms, shape=1.5).
        on: Dist<Span> = Dist::Exponential(Span::ms(500)), [], "", ["burst_time"];
        /// How long the silence between two bursts lasts.
        off: Dist<Span> = Dist::Exponential(Span::ms(500)), [], "", ["idle_time"];
    }
}

/// A source at work.
#[derive(Clone, Debug)]
pub struct Bursts {
    /// Its parameters.
    pub params: OnOff,
    /// From one packet of a burst to the next.
    interval: Span,
    /// Packets of this burst that are still to be sent.
    left: u64,
}

impl Bursts {
    /// Before the first burst.
    pub fn new(params: &OnOff) -> Bursts {
        let bits = u128::from(params.packet.0) * 8;
        let interval =
            Span(cast::saturate(bits * 1_000_000_000 / u128::from(params.rate.0)).max(1));
        Bursts { params: params.clone(), interval, left: 0 }
    }

    /// How long after the last packet (or the start) the next one follows.
    pub fn gap(&mut self, rng: &mut Pcg64Mcg) -> Span {
        if self.left > 0 {
            self.left -= 1;
            return self.interval;
        }
        let packets = libm::round(self.params.on.draw(rng) / self.interval.0 as f64);
        self.left = cast::trunc(packets.max(1.0)) - 1;
        self.interval + self.params.off.sample(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    #[test]
    fn bursts_are_rounded_and_silences_come_before_them() {
        // 1000 B at 8 Mbit/s are 1 ms each; 3.4 ms are three of them; 10 ms lie between.
        let (on, off) = (Dist::Constant(Span::us(3400)), Dist::Constant(Span::ms(10)));
        let params =
            OnOff { rate: Rate(8_000_000), packet: Bytes(1000), on, off, ..OnOff::default() };
        let mut bursts = Bursts::new(&params);
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let gaps: Vec<u64> = (0..7).map(|_| bursts.gap(&mut rng).0 / 1_000_000).collect();
        assert_eq!(gaps, [11, 1, 1, 11, 1, 1, 11]);
        let short = OnOff { on: Dist::Constant(Span(1)), ..params };
        let mut bursts = Bursts::new(&short);
        assert_eq!((0..3).map(|_| bursts.gap(&mut rng)).max(), Some(Span::ms(11)), "one at least");
    }

    /// Load = rate * on / (on + off), both forms; the rounding of bursts and their interval of
    /// 26.25 ms cost under 3 %.
    #[test]
    fn loads_are_as_asked() {
        for shape in [None, Some(2.5)] {
            let dist = |mean| shape.map_or(Dist::Exponential(mean), |a| Dist::Pareto(mean, a));
            let params = OnOff { on: dist(Span::s(2)), off: dist(Span::s(6)), ..OnOff::default() };
            let mut bursts = Bursts::new(&params);
            let mut rng = Pcg64Mcg::seed_from_u64(3);
            let total: u64 = (0..1_000_000).map(|_| bursts.gap(&mut rng).0).sum();
            let bps = 1e6 * 210.0 * 8.0 / (total as f64 / 1e9);
            assert!((bps / 16_000.0 - 1.0).abs() < 0.03, "{shape:?}: {bps}");
        }
    }
}
