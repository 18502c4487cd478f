//! Packets at times of their own, whatever takes them: datagrams of UDP, writes into a TCP socket.

use crate::onoff::Bursts;
use crate::source::{Cbr, Source};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::cast;
use sojourn_aqm::dice::Dice;
use sojourn_aqm::units::Span;

/// When the next packet is due, and how large it is.
#[derive(Clone, Debug)]
pub enum Pace {
    /// A constant rate, with the number of the next packet.
    Cbr(Cbr, u64),
    /// Bursts and silences.
    Bursts(Bursts),
}

impl Pace {
    /// That of a source, and how long after its start the first packet follows; none where the
    /// source has no pace of its own.
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

    /// A packet is sent: its bytes, and how long after it the next one follows.
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
