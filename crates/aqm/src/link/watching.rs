//! Packets of a link, for pictures of its queue.

use super::Link;
use super::recorder::Recorder;
use crate::context::{Context, Marks};
use crate::packet::Packet;
use crate::packet_log::LogEntry;
use crate::units::Span;
use alloc::vec::Vec;
use core::mem::take;

impl Link {
    /// Removes and returns the rows of the packet log since the last call. Without a log there are
    /// none.
    pub fn take_packet_log(&mut self) -> Vec<LogEntry> {
        let recorder = self.transmitter.recorder.as_deref_mut();
        recorder.and_then(Recorder::log_mut).map_or_else(Vec::new, take)
    }

    /// Packets in the queue, in the order in which they would leave it if no other packet arrived
    /// and each were sent at once. A packet that the discipline would drop on the way has its place
    /// in this order. A copy of the discipline is emptied: the link does not change.
    pub fn queued(&self) -> Vec<Packet> {
        let (mut qdisc, mut rng) = (self.qdisc.clone(), self.transmitter.rng.clone());
        let (mut now, mut dropped) = (self.now(), Vec::new());
        let mut marks = Marks::default();
        let mut packets = Vec::new();
        while qdisc.backlog().packets > 0 {
            let next = qdisc.dequeue(&mut Context {
                now,
                rng: &mut *rng,
                dropped: &mut dropped,
                marks: &mut marks,
            });
            packets.extend(dropped.drain(..).map(|dropped| dropped.packet));
            packets.extend(next);
            if next.is_none() {
                // A shaper delays the rest, or the discipline has dropped it.
                let Some(ready) = qdisc.ready_at() else { break };
                now = ready.max(now + Span(1));
            }
        }
        packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkSpec;
    use crate::params::Setting;
    use crate::registry::REGISTRY;
    use crate::units::{Rate, Time};
    use rand_core::SeedableRng;
    use std::prelude::v1::*;

    /// A changeable link of 8 Mbit/s.
    fn link(qdisc: &str, settings: &[(&str, Setting<'_>)]) -> Link {
        let rate = Rate(8_000_000);
        let built = crate::build(qdisc, settings, rate).unwrap();
        let rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let mut link = Link::new(LinkSpec::new(rate, Span::ZERO), built.qdisc, rng).unwrap();
        link.may_change();
        link.enable_packet_log();
        link
    }

    /// Sends 12 packets of three flows, of which the first is in transmission afterwards.
    fn fill(link: &mut Link) {
        for body in 0..12 {
            let flow = body % 3;
            link.push(Time(0), Packet { body, flow, hash: flow, len: 1000, ..Packet::default() });
        }
    }

    #[test]
    fn queued_packets_have_the_order_of_their_departure() {
        let bodies = |link: &Link| link.queued().iter().map(|p| p.body).collect::<Vec<_>>();
        let mut fifo = link("droptail", &[]);
        fill(&mut fifo);
        assert_eq!(bodies(&fifo), (1..12).collect::<Vec<_>>());
        fifo.advance(Time(9_500_000));
        assert_eq!(bodies(&fifo), [10, 11]);
        let mut drr = link("drr", &[("quantum", Setting::Text("2000B"))]);
        fill(&mut drr);
        let order = bodies(&drr);
        drr.advance(Time(1_000_000_000));
        let sent: Vec<u32> = drr.take_packet_log().iter().map(|row| row.packet.body).collect();
        assert_eq!(order, sent[1..]);
        assert!(drr.take_packet_log().is_empty() && bodies(&drr).is_empty());
    }

    #[test]
    fn every_discipline_shows_its_queue_and_continues_as_if_nobody_had_looked() {
        for entry in REGISTRY {
            let (mut looked, mut plain) = (link(entry.name, &[]), link(entry.name, &[]));
            fill(&mut looked);
            fill(&mut plain);
            for ms in [0, 1, 3, 6, 10, 2000] {
                looked.advance(Time(ms * 1_000_000));
                let (count, _) = looked.stats().backlog();
                assert_eq!(looked.queued().len() as u64, count, "{} at {ms} ms", entry.name);
            }
            plain.advance(Time(2_000_000_000));
            assert_eq!(looked.take_packet_log(), plain.take_packet_log(), "{}", entry.name);
        }
    }

    #[test]
    fn a_link_without_a_log_has_no_rows() {
        let mut link = link("droptail", &[]);
        link.transmitter.recorder = None;
        fill(&mut link);
        assert!(link.take_packet_log().is_empty());
    }
}
