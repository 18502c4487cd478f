//! Packets in flight of the profile `quic`, by packet number.
//!
//! **Source**: RFC 9002 §6.1 (packet and time threshold), §7.6 (persistent congestion), A.10.
//!
//! **Cost**: one record per packet in flight. After an ack, at most [`PACKET_THRESHOLD`] records
//! are below the largest acknowledged packet number, so an ack costs what it newly acknowledges.

use super::rtt::QuicRtt;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// Packets after it that must be acknowledged before a packet is lost (`kPacketThreshold`).
pub(super) const PACKET_THRESHOLD: u64 = 3;

/// Packet that was sent.
#[derive(Clone, Copy, Debug, Snapshot)]
pub(super) struct SentPacket {
    /// Time of transmission.
    pub sent: Time,
    /// First byte of the stream that it carries; 0 for a SYN.
    pub seq: u64,
    /// Number of these bytes.
    pub len: u32,
    /// True if it is neither acknowledged nor lost.
    in_flight: bool,
    /// True if it is acknowledged.
    acked: bool,
}

/// Losses found by [`SentPackets::detect_lost`].
#[derive(Debug)]
pub(super) struct Losses {
    /// Transmission time of the last lost packet, if any was lost.
    pub last_sent: Option<Time>,
    /// True if the losses show persistent congestion.
    pub persistent: bool,
    /// Time at which the next packet becomes lost; [`Time::NEVER`] if none is expected to.
    pub next: Time,
}

/// Sent packets, from the first that is in flight.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct SentPackets {
    packets: VecDeque<SentPacket>,
    /// Packet number of the first record.
    first: u64,
    /// Packet number after the largest acknowledged one.
    acked_end: u64,
    /// Payload bytes, and number of packets, in flight.
    bytes: u64,
    count: u64,
    /// Lowest byte of the stream that was never sent.
    high_data: u64,
}

impl SentPackets {
    /// Forgets all packets; packet numbers continue.
    pub(super) fn clear(&mut self) {
        self.first = self.next();
        self.packets.clear();
        (self.bytes, self.count) = (0, 0);
    }

    /// Next packet number.
    pub(super) fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Payload bytes in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.bytes
    }

    /// True if a packet is in flight.
    pub(super) fn has_in_flight(&self) -> bool {
        self.count > 0
    }

    /// Lowest byte of the stream that was never sent.
    pub(super) fn high_data(&self) -> u64 {
        self.high_data
    }

    /// Records a transmission; returns its packet number.
    pub(super) fn send(&mut self, now: Time, seq: u64, len: u32) -> u64 {
        let number = self.next();
        self.packets.push_back(SentPacket { sent: now, seq, len, in_flight: true, acked: false });
        self.bytes += u64::from(len);
        self.count += 1;
        self.high_data = self.high_data.max(seq + u64::from(len));
        number
    }

    /// Processes the ack of `start..end`: calls `each` with number and record of every packet that
    /// was in flight, from the highest to the lowest.
    pub(super) fn acknowledge(
        &mut self,
        start: u64,
        end: u64,
        mut each: impl FnMut(u64, &SentPacket),
    ) {
        let end = end.min(self.next());
        self.acked_end = self.acked_end.max(end);
        for number in (start.max(self.first)..end).rev() {
            let packet = &mut self.packets[cast::index(number - self.first)];
            if packet.in_flight {
                (packet.in_flight, packet.acked) = (false, true);
                self.bytes -= u64::from(packet.len);
                self.count -= 1;
                each(number, packet);
            }
        }
    }

    /// Declares packets lost, and calls `each` with them in order of their numbers.
    pub(super) fn detect_lost(
        &mut self,
        now: Time,
        rtt: &QuicRtt,
        mut each: impl FnMut(&SentPacket),
    ) -> Losses {
        let delay = rtt.loss_delay();
        let mut losses = Losses { last_sent: None, persistent: false, next: Time::NEVER };
        // Start of a run of packets of which none is acknowledged.
        let mut run: Option<Time> = None;
        let below = cast::index(self.acked_end.saturating_sub(self.first));
        for (i, packet) in self.packets.iter_mut().take(below).enumerate() {
            let number = self.first + i as u64;
            if !packet.in_flight {
                run = run.filter(|_| !packet.acked);
                continue;
            }
            let late = packet.sent + delay;
            if number + PACKET_THRESHOLD >= self.acked_end && late > now {
                losses.next = losses.next.min(late);
                run = None;
                continue;
            }
            packet.in_flight = false;
            self.bytes -= u64::from(packet.len);
            self.count -= 1;
            losses.last_sent = Some(packet.sent);
            if run.is_none() && packet.sent > rtt.first_sample() {
                run = Some(packet.sent);
            }
            let length = run.map_or(Span::ZERO, |start| packet.sent - start);
            losses.persistent |= length > rtt.persistent_congestion();
            each(packet);
        }
        while self.packets.front().is_some_and(|packet| !packet.in_flight) {
            self.packets.pop_front();
            self.first += 1;
        }
        losses
    }

    /// Data of the oldest packets in flight, at most `count` of them.
    pub(super) fn oldest(&self, count: usize) -> Vec<(u64, u64)> {
        let range = |packet: &SentPacket| (packet.seq, packet.seq + u64::from(packet.len));
        self.packets.iter().filter(|packet| packet.in_flight).take(count).map(range).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten packets of 100 bytes, sent at 0, 10, ... 90 ms, and a round-trip time of 80 ms.
    fn ten() -> (SentPackets, QuicRtt) {
        let mut packets = SentPackets::default();
        for i in 0..10 {
            assert_eq!(packets.send(ms(10 * i), 1 + 100 * i, 100), i);
        }
        let mut rtt = QuicRtt::new(Span::ms(25));
        rtt.sample(ms(0), Span::ms(80), Span::ZERO);
        (packets, rtt)
    }

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    fn lost(packets: &mut SentPackets, rtt: &QuicRtt, now: u64) -> (Vec<u64>, Losses) {
        let mut lost = Vec::new();
        let losses = packets.detect_lost(ms(now), rtt, |packet| lost.push(packet.seq / 100));
        (lost, losses)
    }

    fn acknowledge(packets: &mut SentPackets, start: u64, end: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        packets.acknowledge(start, end, |number, _| numbers.push(number));
        numbers
    }

    #[test]
    fn a_packet_is_lost_when_three_later_ones_are_acknowledged() {
        let (mut packets, rtt) = ten();
        assert_eq!(acknowledge(&mut packets, 2, 3), [2]);
        let (numbers, losses) = lost(&mut packets, &rtt, 85);
        assert_eq!(numbers, Vec::<u64>::new(), "2 - 0 is below the threshold");
        assert_eq!((losses.last_sent, losses.next), (None, ms(90)), "time threshold of packet 0");
        assert_eq!(acknowledge(&mut packets, 3, 5), [4, 3]);
        let (numbers, losses) = lost(&mut packets, &rtt, 86);
        assert_eq!((numbers, losses.last_sent), (vec![0, 1], Some(ms(10))));
        assert_eq!((losses.next, packets.in_flight(), packets.first), (Time::NEVER, 500, 5));
    }

    #[test]
    fn a_packet_is_lost_after_nine_eighths_of_a_round_trip() {
        let (mut packets, rtt) = ten();
        acknowledge(&mut packets, 2, 3);
        assert_eq!(lost(&mut packets, &rtt, 89).0, Vec::<u64>::new());
        let (numbers, losses) = lost(&mut packets, &rtt, 90);
        assert_eq!((numbers, losses.next), (vec![0], ms(100)));
        // A packet that nothing acknowledged follows is never lost.
        assert_eq!(lost(&mut packets, &rtt, 1_000).0, [1]);
        assert_eq!(lost(&mut packets, &rtt, 1_000).1.next, Time::NEVER);
    }

    #[test]
    fn a_packet_is_acknowledged_once_and_not_after_it_was_lost() {
        let (mut packets, rtt) = ten();
        assert_eq!(acknowledge(&mut packets, 1, 6), [5, 4, 3, 2, 1]);
        assert_eq!(acknowledge(&mut packets, 1, 7), [6]);
        assert_eq!(lost(&mut packets, &rtt, 70).0, [0]);
        assert_eq!(acknowledge(&mut packets, 0, 7), Vec::<u64>::new());
        assert_eq!((packets.in_flight(), packets.next()), (300, 10));
        packets.clear();
        assert_eq!(
            (packets.has_in_flight(), packets.next(), packets.high_data()),
            (false, 10, 1001)
        );
    }

    #[test]
    fn losses_over_three_probe_timeouts_are_persistent_congestion() {
        // Probe timeout: 80 + 160 + 25 = 265 ms; persistent congestion: 795 ms.
        for (second, acked, persistent) in
            [(796, false, true), (795, false, false), (900, true, false)]
        {
            let mut packets = SentPackets::default();
            let mut rtt = QuicRtt::new(Span::ms(25));
            rtt.sample(ms(0), Span::ms(80), Span::ZERO);
            for at in [1, 400, 1 + second, 2_000, 2_000, 2_000] {
                packets.send(ms(at), 1, 100);
            }
            if acked {
                acknowledge(&mut packets, 1, 2);
            }
            acknowledge(&mut packets, 5, 6);
            let (_, losses) = lost(&mut packets, &rtt, 2_080);
            assert_eq!((losses.last_sent, losses.persistent), (Some(ms(1 + second)), persistent));
        }
    }

    #[test]
    fn packets_sent_before_the_first_sample_do_not_show_persistent_congestion() {
        let mut packets = SentPackets::default();
        let mut rtt = QuicRtt::new(Span::ms(25));
        rtt.sample(ms(500), Span::ms(80), Span::ZERO);
        for at in [500, 900, 1_400, 2_000, 2_000, 2_000] {
            packets.send(ms(at), 1, 100);
        }
        acknowledge(&mut packets, 5, 6);
        assert!(!lost(&mut packets, &rtt, 2_080).1.persistent, "500 ms are left");
    }
}
