//! Receiver of the profile `quic`: when packets are acknowledged, and by which ranges.
//!
//! **Source**: RFC 9000 §13.2.1 (delay, and acks at once), §13.2.2 (every second packet), §13.2.3
//! (ranges), A.3 (packet numbers).
//!
//! **Departures**: ranges are kept until [`MAX_RANGES`] newer ones exist; there are no acks of
//! acks.

use super::super::quic::write_ranges;
use super::super::ranges::Ranges;
use super::super::{Ack, Segment};
use super::Receiver;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};

/// Ranges that are kept; more do not fit into an ack.
const MAX_RANGES: usize = 24;

/// Packets received, by number.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct QuicAcks {
    received: Ranges,
    /// Packet number after the largest received one, and its arrival time.
    end: u64,
    largest_at: Time,
    /// Packets since the last ack.
    pending: u32,
    /// Packets per ack.
    threshold: u32,
    /// Longest delay of an ack (`max_ack_delay`).
    delay: Span,
}

impl QuicAcks {
    /// Creates the state for a new connection. Without `delay`, every packet is acknowledged.
    pub(super) fn new(delay: Option<Span>) -> QuicAcks {
        QuicAcks {
            received: Ranges::default(),
            end: 0,
            largest_at: Time::ZERO,
            pending: 0,
            threshold: if delay.is_some() { 2 } else { 1 },
            delay: delay.unwrap_or(Span::ZERO),
        }
    }

    /// Discards the state of the connection.
    pub(super) fn reset(&mut self) {
        self.received.clear();
        (self.end, self.pending) = (0, 0);
    }

    /// Records a packet with the low 32 bits of its number; returns true if it must be
    /// acknowledged at once: it is the second one, out of order or behind a gap, or `ce` marked.
    fn on_packet(&mut self, now: Time, low: u32, ce: bool) -> bool {
        let number = expand(low, self.end);
        let in_order = number == self.end;
        self.received.insert(number, number + 1);
        self.received.keep_last(MAX_RANGES);
        if number >= self.end {
            (self.end, self.largest_at) = (number + 1, now);
        }
        self.pending += 1;
        !in_order || ce || self.pending >= self.threshold
    }
}

/// Number with the low 32 bits `low` that is nearest to `expected`.
fn expand(low: u32, expected: u64) -> u64 {
    let ahead = low.wrapping_sub(cast::low32(expected)).cast_signed();
    expected.saturating_add_signed(i64::from(ahead))
}

impl Receiver {
    /// Acknowledges `seg` at once, or notes when to.
    #[cold]
    pub(super) fn acknowledge_as_quic(
        &mut self,
        now: Time,
        seg: &Segment,
        ce: bool,
    ) -> Option<&Ack> {
        let quic = self.quic.as_mut()?;
        if quic.on_packet(now, seg.timestamp, ce) || seg.syn {
            return self.write_quic_ack(now, seg.syn);
        }
        if self.due == Time::NEVER {
            self.due = now + quic.delay;
        }
        None
    }

    /// Writes an ack at `now`.
    pub(super) fn write_quic_ack(&mut self, now: Time, syn: bool) -> Option<&Ack> {
        let quic = self.quic.as_mut()?;
        quic.pending = 0;
        let delay = (now - quic.largest_at).0 / 1_000;
        let bytes = write_ranges(quic.received.iter_descending(), &mut self.last);
        (self.last.echo, self.last.syn) = (cast::saturate32(delay), syn);
        (self.last.quic, self.last.wire) = (true, self.ack_bytes + bytes);
        self.due = Time::NEVER;
        Some(&self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::jiffies::HalfTick;
    use super::super::super::parse;
    use super::*;
    use sojourn_aqm::params::Setting::Text;

    fn receiver() -> Receiver {
        let mut receiver =
            Receiver::new(&parse("cubic", [("profile", Text("quic"))]).unwrap(), &mut HalfTick);
        let syn = Segment { syn: true, ..Segment::default() };
        let ack = *receiver.on_segment(Time::ZERO, &syn, false).expect("at once");
        assert_eq!((ack.ack, ack.blocks, ack.syn), (1, 0, true));
        receiver
    }

    /// Packet `number` with ten bytes of the stream, which start at `seq`.
    fn packet(number: u32, seq: u64) -> Segment {
        Segment { seq, len: 10, timestamp: number, ect: true, ..Segment::default() }
    }

    #[test]
    fn every_second_packet_is_acknowledged_and_a_gap_at_once() {
        let mut r = receiver();
        let mut ack = |number| {
            let seg = packet(number, 10 * u64::from(number) - 9);
            r.on_segment(Time(5), &seg, false).map(|ack| (ack.ack, ack.blocks))
        };
        assert_eq!([1, 2, 3, 4].map(&mut ack), [None, Some((3, 0)), None, Some((5, 0))]);
        assert_eq!(ack(6), Some((7, 2)), "a gap");
        assert_eq!([7, 8].map(&mut ack), [None, Some((9, 2))], "in order behind the gap");
        assert_eq!(ack(5), Some((9, 0)), "out of order");
    }

    #[test]
    fn a_delayed_ack_reports_its_delay() {
        let mut r = receiver();
        let at = Time(1_000_000);
        assert_eq!(r.on_segment(at, &packet(1, 1), false), None);
        assert_eq!(r.timer(), at + Span::ms(25));
        let ack = *r.on_timer(r.timer()).unwrap();
        assert_eq!((ack.ack, ack.echo, r.timer()), (2, 25_000, Time::NEVER));
        r.on_segment(Time(60_000_000), &packet(2, 11), false);
        let ack = *r.on_segment(Time(61_000_000), &packet(3, 21), false).unwrap();
        assert_eq!((ack.ack, ack.echo), (4, 0), "the delay of the largest");
    }

    #[test]
    fn marks_are_counted_and_acknowledged_at_once() {
        let mut r = receiver();
        let ack = *r.on_segment(Time(5), &packet(1, 1), true).unwrap();
        assert_eq!((ack.ce_packets, ack.ece), (1, false));
        assert_eq!(r.on_segment(Time(5), &packet(2, 11), false), None);
        let ack = *r.on_segment(Time(5), &packet(3, 21), true).unwrap();
        assert_eq!(ack.ce_packets, 2);
    }

    #[test]
    fn data_counts_once_whatever_the_packet_number() {
        let mut r = receiver();
        for (number, seq) in [(1, 1), (3, 21), (4, 21), (5, 1), (6, 11)] {
            r.on_segment(Time(5), &packet(number, seq), false);
        }
        assert_eq!(r.received_in_connection(), 30);
        r.reset();
        assert_eq!((r.received_in_connection(), r.delivered_bytes()), (0, 30));
    }

    #[test]
    fn numbers_are_expanded_to_the_nearest() {
        assert_eq!(expand(7, 5), 7);
        assert_eq!(expand(3, 5), 3);
        assert_eq!(expand(1, 0xffff_ffff), 0x1_0000_0001);
        assert_eq!(expand(0xffff_fffe, 0x1_0000_0001), 0xffff_fffe);
    }

    #[test]
    fn an_ack_takes_the_bytes_of_its_ranges() {
        let mut r = receiver();
        let ack = *r.on_segment(Time(5), &packet(2, 11), false).unwrap();
        // Header, first range, gap and range.
        assert_eq!((ack.blocks, ack.wire), (2, 62 + 3));
        assert_eq!(ack.tcp_flags(), sojourn_aqm::TcpFlags::default(), "not an ack of TCP");
    }
}
