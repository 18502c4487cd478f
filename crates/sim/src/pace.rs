//! Timing of packet-oriented sources, for UDP datagrams and for writes into a TCP socket alike.

use crate::onoff::Bursts;
use crate::source::{Cbr, Source};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::cast;
use sojourn_aqm::dice::Dice;
use sojourn_aqm::units::Span;

/// Generator of packet sizes and inter-packet gaps.
#[derive(Clone, Debug)]
pub enum Pace {
    /// Constant rate, with the index of the next packet.
    Cbr(Cbr, u64),
    /// On/off bursts.
    Bursts(Bursts),
}

impl Pace {
    /// Create the generator of `source` and the gap from its start to the first packet. None if the
    /// source is not packet-oriented.
    pub fn of(source: &Source, rng: &mut Pcg64Mcg) -> Option<(Pace, Span)> {
        match source {
            Source::Cbr(cbr) => {
                let phase = Span(cast::trunc(rng.uniform() * cbr.due(1).0 as f64));
                Some((Pace::Cbr(cbr.clone(), 0), phase))
            }
            Source::OnOff(params) => {
                let mut bursts = Bursts::new(params);
                let gap = bursts.gap(rng);
                Some((Pace::Bursts(bursts), gap))
            }
            _ => None,
        }
    }

    /// Send one packet: returns its size in bytes and the gap to the next one.
    pub fn send(&mut self, rng: &mut Pcg64Mcg) -> (u64, Span) {
        match self {
            Pace::Cbr(cbr, next) => {
                *next += 1;
                (cbr.packet.0, cbr.gap(*next - 1, rng))
            }
            Pace::Bursts(bursts) => (bursts.params.packet.0, bursts.gap(rng)),
        }
    }
}
