//! Timing of packet-oriented sources, for UDP datagrams and for writes into a TCP socket alike.

use crate::traffic::external::ArrivalSchedule;
use crate::traffic::on_off::OnOffState;
use crate::traffic::source::{Cbr, Source};
use sojourn_aqm::Pcg;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};

/// Generator of packet sizes and inter-packet gaps.
#[derive(Clone, Debug, Snapshot)]
pub(crate) enum PacketSchedule {
    /// Constant rate, with the index of the next packet.
    Cbr(Cbr, u64),
    /// On/off bursts.
    Bursts(OnOffState),
    /// Arrivals of an external source.
    External(ArrivalSchedule),
}

impl PacketSchedule {
    /// Creates the generator of `source` and the gap from its start to the first packet. None if
    /// the source is not packet-oriented. `largest` is the size of the largest packet of an
    /// external source.
    pub(crate) fn for_source(
        source: &Source,
        start: Time,
        largest: u64,
        rng: &mut Pcg,
    ) -> Option<(PacketSchedule, Span)> {
        match source {
            Source::Cbr(cbr) => {
                let phase = Span(cast::trunc(rng.uniform() * cbr.offset_of(1).0 as f64));
                Some((PacketSchedule::Cbr(cbr.clone(), 0), phase))
            }
            Source::OnOff(params) => {
                let mut bursts = OnOffState::new(params);
                let gap = bursts.next_gap(rng);
                Some((PacketSchedule::Bursts(bursts), gap))
            }
            Source::External(external) => {
                let schedule = ArrivalSchedule::new(external, start, largest, rng);
                let gap = schedule.next_time() - start;
                Some((PacketSchedule::External(schedule), gap))
            }
            _ => None,
        }
    }

    /// Sends one packet: returns its size in bytes and the gap to the next one.
    pub(crate) fn next_packet(&mut self, rng: &mut Pcg) -> (u64, Span) {
        match self {
            PacketSchedule::Cbr(cbr, next) => {
                *next += 1;
                (cbr.packet.0, cbr.next_gap(*next - 1, rng))
            }
            PacketSchedule::Bursts(bursts) => (bursts.params.packet.0, bursts.next_gap(rng)),
            PacketSchedule::External(schedule) => {
                let (at, bytes) = schedule.pop(rng);
                (bytes, schedule.next_time() - at)
            }
        }
    }
}
