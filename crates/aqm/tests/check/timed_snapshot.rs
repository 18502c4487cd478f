//! Snapshots of links with bodies, from which links are created: with every discipline, with and
//! without impairments, after changes of rate, delay and parameters.

use crate::cases::Case;
use crate::each;
use crate::snapshot::arrivals;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::params::call_text;
use sojourn_aqm::snapshot::{Kind, Writer, seal};
use sojourn_aqm::wire::{Chance, Impairments, Jitter, LossModel, Reorder};
use sojourn_aqm::{Link, LinkSpec, Packet, Pcg, Rate, Snapshot, Span, Time, TimedLink, build_text};
use std::cell::Cell;

const RATE: Rate = Rate(8_000_000);
const DELAY: Span = Span::ms(10);

fn text(case: &Case) -> String {
    call_text(case.entry.name, case.settings.iter().map(|(k, v)| (k.as_str(), v.as_str())))
}

fn build(text: &str, impaired: bool) -> TimedLink<u64> {
    let mut impairments = Impairments::default();
    if impaired {
        impairments.jitter = Some(Jitter::new(Span::ms(4)));
        impairments.loss = LossModel::Random(0.02);
        impairments.duplicate = Chance::new(0.1);
        impairments.corrupt = Chance::new(0.1);
        impairments.reorder = Some(Reorder::new(Chance::new(0.1)));
    }
    let builder = TimedLink::builder(text, RATE, DELAY).impairments(impairments).seed(5);
    builder.clone_duplicates().keep_undelivered().build().unwrap()
}

/// A body that uses all 64 bits.
fn cookie(packet: &Packet) -> u64 {
    u64::from(packet.body).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Offers `arrivals`, and returns what happened as text.
fn offer(link: &mut TimedLink<u64>, arrivals: &[(Time, Packet)]) -> String {
    let mut text = String::new();
    for (at, packet) in arrivals {
        while let Some(due) = link.next_poll().filter(|due| due <= at) {
            text += &format!("{due:?} {:?}\n", link.poll(due).unwrap());
        }
        link.push(*at, *packet, cookie(packet)).unwrap();
        // Some stay for the snapshot.
        if packet.body % 3 == 0 {
            text += &format!("{:?}\n", link.next_undelivered());
        }
    }
    link.inspect(&mut |name, value| text += &format!("{name} {}\n", value.to_bits()));
    text += &format!("{:?} {:?}\n", link.wire_stats(), link.packets());
    text + &format!("{:?}", link.stats())
}

/// Changes rate, delay and parameters; returns true if the discipline took the parameters.
fn change(link: &mut TimedLink<u64>, case: &Case, rng: &mut Pcg64Mcg) -> bool {
    let now = link.link().now();
    if rng.next_u32().is_multiple_of(2) {
        link.change(now, LinkSpec::new(Rate(5_000_000), Span::ms(3))).unwrap();
    }
    let preset = case.entry.name;
    rng.next_u32().is_multiple_of(2) && link.reconfigure(now, preset).is_ok()
}

#[test]
fn a_link_of_a_snapshot_continues_as_the_saved_one() {
    let changed = Cell::new(0);
    each(2, |case, rng| {
        // `rng` draws the same for every case.
        let own = rng.next_u64() ^ text(case).bytes().map(u64::from).sum::<u64>();
        let rng = &mut Pcg64Mcg::seed_from_u64(own);
        let arrivals = arrivals(rng, 300);
        let (before, after) = arrivals.split_at(rng.next_u32() as usize % arrivals.len());
        let impaired = rng.next_u32().is_multiple_of(2);
        let mut whole = build(&text(case), impaired);
        offer(&mut whole, before);
        changed.set(changed.get() + u32::from(change(&mut whole, case, rng)));
        let bytes = whole.save().unwrap();
        let mut other = TimedLink::<u64>::from_snapshot(&bytes).unwrap();
        assert!(other.save().unwrap() == bytes, "the state is complete");
        assert_eq!(other.text(), Some(text(case).as_str()));
        assert!(offer(&mut other, after) == offer(&mut whole, after), "it continues equally");
        assert!(other.save().unwrap() == whole.save().unwrap(), "up to the same state");
    });
    assert!(changed.get() > 20, "{changed:?} cases had their parameters changed");
}

#[test]
fn bodies_of_64_bits_come_back_in_both() {
    let mut whole = build("droptail(limit=3p)", false);
    let bodies = [0, 1, u64::MAX, 1 << 63, 0xffff_ffff_0000_0001, 42];
    for body in bodies {
        whole.push(Time(1), Packet { len: 1000, ..Packet::default() }, body).unwrap();
    }
    let mut other = TimedLink::<u64>::from_snapshot(&whole.save().unwrap()).unwrap();
    for link in [&mut whole, &mut other] {
        let dropped = std::iter::from_fn(|| link.next_undelivered()).map(|lost| lost.body);
        assert_eq!(dropped.collect::<Vec<_>>(), bodies[4..], "one is sent, and three wait");
        let arrived = std::iter::from_fn(|| link.poll(Time(1_000_000_000)).unwrap());
        assert_eq!(arrived.map(|delivery| delivery.body).collect::<Vec<_>>(), bodies[..4]);
    }
}

#[test]
fn bodies_can_be_changed() {
    let mut link = build("droptail(limit=1p)", false);
    (0..4).for_each(|n| link.push(Time(1), Packet { len: 9, ..Packet::default() }, n).unwrap());
    link.bodies_mut().for_each(|body| *body += 10);
    let mut bodies: Vec<u64> = link.bodies().copied().collect();
    bodies.sort_unstable();
    assert_eq!(bodies, [10, 11, 12, 13], "on the link, and dropped");
}

fn refusal<T: Snapshot + Clone>(bytes: &[u8]) -> String {
    TimedLink::<T>::from_snapshot(bytes).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn other_things_than_such_links_are_refused() {
    let bytes = build("codel", true).save().unwrap();
    for end in 0..bytes.len() {
        assert!(refusal::<u64>(&bytes[..end]).starts_with("snapshot: is "), "{end}");
    }
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x40;
        assert!(refusal::<u64>(&damaged).starts_with("snapshot: "), "{place}");
    }
    let other = "snapshot: was written by another build of this version, or is of a link with \
                 other types";
    assert_eq!(refusal::<u32>(&bytes), other);
    let spec = LinkSpec::new(RATE, DELAY);
    let codel = || build_text("codel", RATE).unwrap().qdisc;
    let link = Link::new(spec, codel(), Pcg::new(1)).unwrap().save().unwrap();
    assert_eq!(refusal::<u64>(&link), "snapshot: is of a link, not of a timed link");
    let own = TimedLink::<u64>::builder("", RATE, DELAY).qdisc(codel()).build().unwrap();
    assert_eq!(own.text(), None);
    assert_eq!(
        refusal::<u64>(&own.save().unwrap()),
        "snapshot: is of a link whose discipline was not built from a text: build such a link and \
         call `load`"
    );
}

/// The checksum finds damage; without it, wrong bytes may be loaded, and nothing panics meanwhile.
#[test]
fn wrong_bytes_behind_a_correct_checksum_cause_no_panic() {
    each(0, |case, rng| {
        let mut link = build(&text(case), true);
        offer(&mut link, &arrivals(rng, 200));
        let mut out = Writer::default();
        link.save_to(&mut out).unwrap();
        let bytes = out.into_bytes();
        for _ in 0..10 {
            let mut wrong = bytes.clone();
            for _ in 0..1 + rng.next_u32() % 4 {
                // Behind the text: other settings can be a table of gigabytes.
                let start = (text(case).len() + 16).min(wrong.len() - 1);
                let place = start + rng.next_u32() as usize % (wrong.len() - start);
                match rng.next_u32() % 4 {
                    0 => wrong.truncate(place + 1),
                    1 => wrong[place] = 0xff,
                    2 => wrong.insert(place, rng.next_u32() as u8),
                    _ => wrong[place] ^= 1 << (rng.next_u32() % 8),
                }
            }
            let mut body = Writer::default();
            body.bytes(&wrong);
            let sealed = seal(Kind::TimedLink, TimedLink::<u64>::layout(), body);
            let _ = TimedLink::<u64>::from_snapshot(&sealed);
        }
    });
}
