//! Queues, buffer and scheduler, without an AQM algorithm that drops.

use super::*;
use crate::context::Marks;
use crate::registry::find;
use crate::testing::Bench;
use crate::units::Rate;
use std::prelude::v1::*;

/// DualPI2 that neither drops nor marks.
fn quiet(settings: &[(&str, &str)]) -> Bench {
    let off = [("target", "10s"), ("alpha", "0"), ("beta", "0"), ("step", "10s")];
    Bench::new("dualpi2", &[settings, &off].concat())
}

/// Enqueues packets with these lengths: Classic, then L4S.
fn fill(q: &mut Bench, classic: &[u32], l4s: &[u32]) -> Vec<u32> {
    let mut lost = Vec::new();
    for (ecn, lengths) in [(Ecn::NotEct, classic), (Ecn::Ect1, l4s)] {
        q.ecn(ecn);
        lost.extend(lengths.iter().flat_map(|len| q.put(*len, *len)));
    }
    lost
}

/// RFC 9332 section 4.1: while both queues wait, the credit of C grows by its share of the bytes of
/// L, and shrinks by the share of L of its own bytes; it starts as if C had just sent a packet.
#[test]
fn the_credit_counts_bytes_while_both_queues_wait() {
    let mut q = quiet(&[]);
    let rest = 1514.0 * (6.25 - 93.75);
    assert_eq!(q.gauge("credit"), rest);
    fill(&mut q, &[], &[1000, 1001]);
    assert_eq!((q.drain(), q.gauge("credit")), (vec![1000, 1001], rest), "L alone");
    fill(&mut q, &[1000, 1001], &[]);
    assert_eq!((q.drain(), q.gauge("credit")), (vec![1000, 1001], rest), "C alone");
    fill(&mut q, &[900], &[1000, 1001]);
    assert_eq!((q.get().0, q.gauge("credit")), (Some(1000), rest + 6.25 * 1000.0));
    assert_eq!(q.drain(), [1001, 900]);
    assert_eq!(q.gauge("credit"), rest, "idle");

    let mut q = quiet(&[("classic_protection", "90")]);
    let rest = 1514.0 * (90.0 - 10.0);
    assert_eq!(q.gauge("credit"), rest, "C comes first");
    fill(&mut q, &[900, 901], &[1000]);
    assert_eq!((q.get().0, q.gauge("credit")), (Some(900), rest - 10.0 * 900.0));
}

#[test]
fn both_queues_share_the_buffer() {
    let mut q = quiet(&[("limit", "4p")]);
    assert_eq!(fill(&mut q, &[100, 101], &[200, 201]), []);
    assert_eq!((q.backlog(), q.gauge("packets_c"), q.gauge("packets_l")), (4, 2.0, 2.0));
    assert_eq!(fill(&mut q, &[102], &[202]), [102, 202]);
    q.get();
    assert_eq!((fill(&mut q, &[103], &[]), q.backlog()), (vec![], 4));
    // In bytes: 2500 and 2000 wait, and 1500 stay free for a large packet.
    let mut q = quiet(&[("limit", "6000B"), ("mtu", "1500B")]);
    assert_eq!(fill(&mut q, &[2500], &[2000]), []);
    assert_eq!(fill(&mut q, &[1501, 100, 101], &[]), [1501, 101]);
}

#[test]
fn the_oldest_packet_is_at_one_of_the_heads() {
    let mut queues = Queues::default();
    assert_eq!((queues.oldest(), queues.head(Lane::C)), (None, None));
    let packet = |arrived, len| Packet { arrived: Time(arrived), len, ..Packet::default() };
    queues.push(Lane::C, packet(5, 100));
    queues.push(Lane::L, packet(3, 200));
    queues.push(Lane::L, packet(9, 300));
    assert_eq!([Lane::C, Lane::L].map(|lane| queues.packets(lane)), [1, 2]);
    assert_eq!([Lane::C, Lane::L].map(|lane| queues.head(lane)), [Some(Time(5)), Some(Time(3))]);
    assert_eq!((queues.oldest(), queues.bytes()), (Some(Time(3)), 600));
    assert_eq!(queues.pop(Lane::L).map(|p| p.len), Some(200));
    assert_eq!(queues.oldest(), Some(Time(5)));
}

/// An inspection shows the updates that are due, and makes none.
#[test]
fn an_inspection_at_a_time_leaves_the_controller_as_it_is() {
    let mut q = find("dualpi2").unwrap().build(&[], &Env::new(Rate(8_000_000))).unwrap().qdisc;
    let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(1);
    let (mut lost, mut marks) = (Vec::new(), Marks::default());
    let mut context =
        Context { now: Time::ZERO, rng: &mut rng, lost: &mut lost, marks: &mut marks };
    q.enqueue(&mut context, Packet { len: 1000, ..Packet::default() });
    let mut later = Vec::new();
    q.inspect_at(Time(400_000_000), &mut |_, value| later.push(value));
    let mut now = Vec::new();
    q.inspect(&mut |_, value| now.push(value));
    assert_eq!(now.len(), later.len());
    assert_ne!(now, later, "a packet waits for 400 ms");
    let mut again = Vec::new();
    q.inspect_at(Time(400_000_000), &mut |_, value| again.push(value));
    assert_eq!(again, later);
}
