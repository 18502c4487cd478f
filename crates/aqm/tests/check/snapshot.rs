//! Snapshots of links with every discipline, compared with links that are never saved: the bytes of
//! their states, which have everything, and what they send, drop, log and show.

use crate::cases::Case;
use crate::link::{SPEC, of_kind};
use crate::{each, link};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::snapshot::Reader;
use sojourn_aqm::wire::{Chance, Impairments, Jitter, LossModel, Reorder};
use sojourn_aqm::{Ecn, FlowHeader, Link, Packet, Rate, Snapshot, Span, TcpFlags, Time, TimedLink};
use std::cell::Cell;

/// Arrivals with everything that disciplines read: hosts, classes, acknowledgements, departure
/// times and headers of XCP.
pub fn arrivals(rng: &mut Pcg64Mcg, n: u32) -> Vec<(Time, Packet)> {
    let mut arrivals = link::arrivals(rng, n);
    for (at, packet) in &mut arrivals {
        let bits = rng.next_u32();
        packet.hash = packet.flow.wrapping_mul(0x9e37_79b9);
        (packet.source, packet.destination) = (1 + packet.flow % 3, 7 + packet.flow % 2);
        packet.class = (bits >> 8) as u16 % 48;
        packet.arrived = *at;
        match bits % 5 {
            0 => (packet.tcp, packet.ack) = (TcpFlags::ACK.with(TcpFlags::PURE), packet.body),
            1 => *packet = packet.with_departure(*at + Span::us(u64::from(bits >> 20))),
            2 => *packet = packet.with_xcp(sojourn_aqm::XcpHeader::default()),
            _ => {}
        }
    }
    arrivals
}

/// Offers `arrivals` and returns what happened, as text.
fn offer(link: &mut Link, arrivals: &[(Time, Packet)]) -> String {
    let mut text = String::new();
    for (at, packet) in arrivals {
        while let Some(due) = link.next_poll().filter(|due| due <= at) {
            text += &format!("{due:?} {:?}\n", link.poll(due));
        }
        link.push(*at, *packet);
        text += &format!("{:?}\n", link.take_dropped().collect::<Vec<_>>());
    }
    link.inspect(&mut |name, value| text += &format!("{name} {}\n", value.to_bits()));
    text += &format!("{:?}\n", link.packet_log());
    text + &format!("{:?}", link.stats())
}

#[test]
fn a_loaded_link_continues_as_the_saved_one() {
    each(3, |case, rng| {
        let kind = rng.next_u32();
        let arrivals = arrivals(rng, 900);
        let (before, after) = arrivals.split_at(rng.next_u32() as usize % arrivals.len());
        let mut whole = of_kind(case, kind);
        let headers = FlowHeader::default();
        (0..6).for_each(|flow| whole.describe_flow(flow, &headers));
        offer(&mut whole, before);
        let bytes = whole.save().unwrap();
        assert_eq!(whole.save().unwrap(), bytes, "saving changes nothing");

        let mut loaded = of_kind(case, kind);
        loaded.load(&bytes).unwrap();
        assert!(loaded.save().unwrap() == bytes, "the state is complete");
        // Into a link that has been used as well.
        let mut used = of_kind(case, kind);
        offer(&mut used, &arrivals[..arrivals.len() / 2]);
        used.load(&bytes).unwrap();
        assert!(used.save().unwrap() == bytes, "nothing is left of the earlier state");

        let expected = offer(&mut whole, after);
        for mut link in [loaded, used] {
            assert!(offer(&mut link, after) == expected, "it continues in the same way");
            assert!(link.save().unwrap() == whole.save().unwrap(), "up to the same state");
        }
    });
}

#[test]
fn changed_parameters_are_in_a_snapshot() {
    let changed = Cell::new(0);
    each(3, |case, rng| {
        let arrivals = arrivals(rng, 400);
        let (before, after) = arrivals.split_at(200);
        let mut whole = of_kind(case, 1);
        offer(&mut whole, before);
        let preset = Case::new(case.entry, &[]);
        let now = whole.now();
        if !whole.reconfigure(now, preset.build().qdisc) {
            return;
        }
        let mut loaded = of_kind(case, 1);
        loaded.load(&whole.save().unwrap()).unwrap();
        assert_eq!(offer(&mut loaded, after), offer(&mut whole, after));
        changed.set(changed.get() + 1);
    });
    assert!(changed.get() > 20, "{changed:?} cases can change");
}

#[test]
fn damaged_bytes_give_an_error() {
    each(0, |case, rng| {
        let mut link = of_kind(case, 0);
        offer(&mut link, &arrivals(rng, 200));
        let bytes = link.save().unwrap();
        for _ in 0..8 {
            let mut damaged = bytes.clone();
            let place = rng.next_u32() as usize % bytes.len();
            if rng.next_u32().is_multiple_of(2) {
                damaged.truncate(place);
            } else {
                damaged[place] ^= 1 << (rng.next_u32() % 8);
            }
            let error = of_kind(case, 0).load(&damaged).expect_err("the checksum differs");
            assert_eq!(error.path(), "snapshot", "{error}");
        }
    });
}

/// The checksum finds damage; without it, wrong bytes may be loaded, and nothing panics meanwhile.
#[test]
fn wrong_bytes_behind_a_correct_checksum_cause_no_panic() {
    each(0, |case, rng| {
        let mut link = of_kind(case, 0);
        offer(&mut link, &arrivals(rng, 200));
        let mut out = sojourn_aqm::snapshot::Writer::default();
        link.save_to(&mut out).unwrap();
        let bytes = out.into_bytes();
        for _ in 0..10 {
            let mut wrong = bytes.clone();
            for _ in 0..1 + rng.next_u32() % 4 {
                let place = rng.next_u32() as usize % wrong.len();
                match rng.next_u32() % 4 {
                    0 => wrong.truncate(place + 1),
                    1 => wrong[place] = 0xff,
                    2 => wrong.insert(place, rng.next_u32() as u8),
                    _ => wrong[place] ^= 1 << (rng.next_u32() % 8),
                }
            }
            let mut input = Reader::new(&wrong);
            let _ = of_kind(case, 0).load_from(&mut input).and_then(|()| input.finish());
        }
    });
}

#[test]
fn other_links_and_versions_are_refused() {
    let case = |name| Case::new(sojourn_aqm::registry::find(name).unwrap(), &[]);
    let bytes = of_kind(&case("codel"), 0).save().unwrap();
    let message = |name, bytes: &[u8]| {
        let error = of_kind(&case(name), 0).load(bytes).unwrap_err();
        error.to_string()
    };
    assert!(message("pie", &bytes).contains("another discipline"), "{}", message("pie", &bytes));
    let mut other = bytes.clone();
    other[8] = 9;
    let text = message("codel", &other);
    assert_eq!(text, "snapshot: has format 9; this version reads format 1");
    let mut other = bytes.clone();
    other[13] = b'7';
    let text = message("codel", &other);
    assert!(text.contains("was written by sojourn 7.") && text.contains("only"), "{text}");
    assert!(message("codel", b"PNG").contains("is not a snapshot of sojourn"));
    let timed = TimedLink::<u32>::builder("codel", Rate(1_000_000), Span::ms(1)).build().unwrap();
    let text = message("codel", &timed.save().unwrap());
    assert_eq!(text, "snapshot: is of a timed link, not of a link");
    let rng = Pcg64Mcg::seed_from_u64(1);
    let link = Link::new(SPEC, case("codel").build().qdisc, rng).unwrap();
    assert!(link.save().unwrap_err().to_string().contains("random number generator"));
}

fn timed(discipline: &str) -> TimedLink<String> {
    let mut impairments = Impairments::default();
    impairments.jitter = Some(Jitter::new(Span::ms(4)));
    impairments.loss = LossModel::Random(0.02);
    impairments.duplicate = Chance::new(0.1);
    impairments.corrupt = Chance::new(0.1);
    impairments.reorder = Some(Reorder::new(Chance::new(0.1)));
    let builder = TimedLink::builder(discipline, Rate(8_000_000), Span::ms(10));
    builder.impairments(impairments).clone_duplicates().keep_undelivered().build().unwrap()
}

#[test]
fn a_timed_link_is_saved_with_bodies_and_impairments() {
    let mut rng = Pcg64Mcg::seed_from_u64(5);
    for discipline in ["codel", "fq_codel(flows=8)", "pie", "cake"] {
        let arrivals = arrivals(&mut rng, 600);
        let run = |link: &mut TimedLink<String>, part: &[(Time, Packet)]| {
            let mut text = String::new();
            for (at, packet) in part {
                while let Some(delivery) = link.poll(*at).unwrap() {
                    text += &format!("{delivery:?}\n");
                }
                let packet = Packet { ecn: Ecn::Ect0, ..*packet };
                link.push(*at, packet, format!("body {}", packet.body)).unwrap();
                while let Some(undelivered) = link.next_undelivered() {
                    text += &format!("{undelivered:?}\n");
                }
            }
            text
        };
        let mut whole = timed(discipline);
        run(&mut whole, &arrivals[..300]);
        let mut loaded = timed(discipline);
        loaded.load(&whole.save().unwrap()).unwrap();
        let (expected, text) =
            (run(&mut whole, &arrivals[300..]), run(&mut loaded, &arrivals[300..]));
        assert_eq!(text, expected);
        assert!(text.contains("wrong_bit: Some") && text.contains("reason: None"));
        assert!(loaded.save().unwrap() == whole.save().unwrap());
    }
}
