//! Bytes in the queue by class with every discipline, compared with a set of the packets that are
//! in the queue by the packet log.

use crate::link::{SPEC, of_kind};
use crate::{each, link};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::{ClassGroups, Link, LinkSpec, LogEntry, Packet, Pcg, Rate, Span, TcpFlags, Time};
use std::collections::BTreeMap;

fn groups() -> ClassGroups {
    ClassGroups::new(&[0..=0, 46..=46, 8..=23]).unwrap()
}

/// Arrivals with classes and acknowledgements. Some arrive together.
fn arrivals(rng: &mut Pcg64Mcg, n: u32) -> Vec<(Time, Packet)> {
    let mut arrivals = link::arrivals(rng, n);
    for i in 0..arrivals.len() {
        let bits = rng.next_u32();
        if bits.is_multiple_of(7) && i > 0 {
            arrivals[i].0 = arrivals[i - 1].0;
        }
        let packet = &mut arrivals[i].1;
        packet.hash = packet.flow.wrapping_mul(0x9e37_79b9);
        packet.class = [0, 46, 8, 10, 23, 24, 1, 65_535][(bits >> 8) as usize % 8];
        if bits.is_multiple_of(4) {
            (packet.tcp, packet.ack) = (TcpFlags::ACK.with(TcpFlags::PURE), packet.body);
        }
    }
    arrivals
}

/// The plain model: class and length of each packet in the queue, by body.
#[derive(Default)]
struct Model(BTreeMap<u32, (u16, u32)>);

impl Model {
    /// Removes the packets that have left `link`, and compares the bytes by class.
    fn check(&mut self, link: &mut Link) {
        for LogEntry { packet, .. } in link.take_packet_log() {
            self.0.remove(&packet.body);
        }
        link.take_dropped().for_each(drop);
        let groups = groups();
        let mut expected = vec![0; groups.count()];
        for (class, len) in self.0.values() {
            expected[groups.group_of(*class)] += u64::from(*len);
        }
        assert_eq!(link.queued_bytes_by_class(), expected);
        assert_eq!(link.queued_bytes(), expected.iter().sum::<u64>());
    }
}

#[test]
fn bytes_by_class_are_those_of_the_packets_in_the_queue() {
    each(1, |case, rng| {
        for kind in 0..4 {
            let (mut link, mut model) = (of_kind(case, kind), Model::default());
            link.count_by_class(groups());
            for (i, (at, packet)) in arrivals(rng, 300).into_iter().enumerate() {
                model.0.insert(packet.body, (packet.class, packet.len));
                match i % 40 {
                    7 => link.refuse(at, packet),
                    _ => link.push(at, packet),
                }
                model.check(&mut link);
                match (i % 60, kind) {
                    (20, _) => link.reset_stats(at),
                    (30, 1) => link.change(at, LinkSpec::new(Rate(5_555_555), Span::ms(1))),
                    (40, 1) => link.take_down(at, i % 120 > 60),
                    (50, 1) => link.bring_up(at, SPEC.rate),
                    _ => continue,
                }
                model.check(&mut link);
            }
            let end = link.now() + Span::s(100);
            link.advance(end);
            model.check(&mut link);
        }
    });
}

#[test]
fn counting_by_class_changes_nothing_else() {
    each(1, |case, rng| {
        let arrivals = arrivals(rng, 500);
        let (mut plain, mut counted) = (link::link(case, 3), link::link(case, 3));
        counted.count_by_class(groups());
        assert_eq!(plain.computes_departures(), counted.computes_departures());
        for link in [&mut plain, &mut counted] {
            arrivals.iter().for_each(|(at, packet)| link.push(*at, *packet));
            link.advance(arrivals[499].0 + Span::s(100));
        }
        assert_eq!(plain.packet_log(), counted.packet_log());
        let flight =
            |link: &mut Link| std::iter::from_fn(|| link.pop_in_flight()).collect::<Vec<_>>();
        assert_eq!(flight(&mut plain), flight(&mut counted));
    });
}

#[cfg(feature = "snapshot")]
#[test]
fn a_loaded_link_continues_to_count() {
    each(1, |case, rng| {
        let kind = rng.next_u32();
        let (mut link, mut model) = (of_kind(case, kind), Model::default());
        link.count_by_class(groups());
        for (i, (at, packet)) in arrivals(rng, 300).into_iter().enumerate() {
            model.0.insert(packet.body, (packet.class, packet.len));
            link.push(at, packet);
            model.check(&mut link);
            if i % 100 == 50 {
                let bytes = link.save().unwrap();
                // The target does not count before: the state has everything.
                link = of_kind(case, kind);
                link.load(&bytes).unwrap();
                model.check(&mut link);
            }
        }
    });
}

#[test]
fn bytes_are_counted_on_after_a_change_of_parameters() {
    let build = |limit| {
        let text = format!("droptail(policy=head, limit={limit}p)");
        sojourn_aqm::build_text(&text, SPEC.rate).unwrap().qdisc
    };
    let mut link = Link::new(SPEC, build(30), Pcg::new(3)).unwrap();
    link.enable_packet_log();
    link.count_by_class(groups());
    let mut model = Model::default();
    let arrivals = arrivals(&mut Pcg64Mcg::seed_from_u64(1), 2000);
    for (i, (at, packet)) in arrivals.into_iter().enumerate() {
        model.0.insert(packet.body, (packet.class, packet.len));
        link.push(at, packet);
        model.check(&mut link);
        if i % 50 == 49 {
            assert!(link.reconfigure(at, build(5 + i % 30)));
            model.check(&mut link);
        }
    }
}
