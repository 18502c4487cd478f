//! Disciplines inside others: what a parent dequeues in advance, to know its length, still counts
//! as queued in its discipline.

use crate::cases::Case;
use crate::ledger::Ledger;
use crate::packet;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::registry::{REGISTRY, find};
use sojourn_aqm::{Ecn, Packet, Size, Span};

/// Name of a parent, its settings and its number of children.
type Parent = (&'static str, &'static [(&'static str, &'static str)], u64);

/// Parents that need the length of the next packet.
const PARENTS: [Parent; 4] = [
    ("drr", &[("flows", "2"), ("by", "class")], 2),
    ("ets", &[("flows", "2"), ("by", "class")], 2),
    ("qfq", &[("flows", "2"), ("by", "class")], 2),
    ("tbf", &[("rate", "1kbit"), ("burst", "1000B")], 1),
];

/// Disciplines that keep the packets of their buffer elsewhere, as in Linux: in a FIFO queue, from
/// which the packet is gone.
const OTHERS: [&str; 2] = ["tbf", "cbs"];

/// Largest backlog of `parent`, in the unit of `limit`, with a discipline `child` in each class.
fn largest(parent: &str, own: &[(&str, &str)], child: &str, limit: Size) -> Option<u64> {
    let settings = [own, &[("children", child)]].concat();
    let case = Case::new(find(parent).expect("in the registry"), &settings);
    let mut ledger = Ledger::of(case.try_build()?, 1);
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut most = 0;
    for _ in 0..400 {
        let len = 200 + rng.next_u32() % 800;
        let flow = rng.next_u32() % 6;
        let class = u16::from(flow % 2 == 1);
        ledger.put(Packet { class, ..packet(len, flow, Ecn::NotEct) });
        let backlog = ledger.backlog();
        most = most.max(if limit.in_bytes() { backlog.bytes } else { backlog.packets.into() });
        if rng.next_u32().is_multiple_of(3) {
            ledger.wait(Span::us(rng.next_u32().into()));
            ledger.get();
        }
    }
    Some(most)
}

#[test]
fn a_packet_dequeued_in_advance_counts_towards_the_buffer_of_its_discipline() {
    let mut full = 0;
    for limit in [Size::Packets(3), Size::Bytes(2500)] {
        for (parent, own, classes) in PARENTS {
            for entry in REGISTRY.iter().filter(|entry| !OTHERS.contains(&entry.name)) {
                let child = format!("{}(limit={limit})", entry.name);
                let Some(most) = largest(parent, own, &child, limit) else { continue };
                let allowed = classes * limit.number();
                assert!(most <= allowed, "{parent} holds {most} in {classes} of {child}");
                full += u32::from(most == allowed);
            }
        }
    }
    assert!(full > 70, "{full} were full");
}
