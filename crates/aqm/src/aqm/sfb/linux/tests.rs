//! Unit tests of SFB as in Linux.

use super::*;
use std::prelude::v1::*;

fn linux_bins(params: &SfbParams) -> Box<LinuxSfb> {
    let mut sfb = LinuxSfb::new(params, Time::NEVER);
    sfb.on_first_packet(Time::ZERO);
    sfb
}

/// Random numbers of 32 bits that are all the same.
struct Draws(u32);

impl crate::Random for Draws {
    fn uniform(&mut self) -> f64 {
        f64::from(self.0) / 4_294_967_296.0
    }
    fn draw32(&mut self) -> u32 {
        self.0
    }
}

fn arrive(sfb: &mut LinuxSfb, at_us: u64, flow: u32, random: u32) -> Verdict {
    let (mut rng, mut dropped, mut marks) = (Draws(random), vec![], crate::Marks::default());
    let now = Time(at_us * 1000);
    let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
    let verdict = sfb.on_enqueue(&mut context, &Packet { hash: flow, ..Packet::default() });
    if verdict == Verdict::Pass {
        sfb.after_enqueue();
    }
    verdict
}

#[test]
fn above_one_half_the_smallest_random_numbers_drop() {
    let p = 40_000;
    let params = SfbParams { d1: f64::from(p) / 65_535.0, d2: 0.0, ..SfbParams::default() };
    let mut sfb = linux_bins(&SfbParams { max: 1000, ..params });
    for _ in 0..=20 {
        arrive(&mut sfb, 0, 1, 65_535);
    }
    assert_eq!(sfb.shown()[0] * 65_535.0, f64::from(p));
    sfb.bins.iter_mut().flatten().for_each(|bin| bin.qlen = bin.qlen.min(1));
    // Of 65,536 numbers, 2 (40,000 - 32,767) drop, and those below 40,000 mark.
    for (random, verdict) in [
        (14_465, Verdict::Drop),
        (14_466, Verdict::Mark),
        (39_999, Verdict::Mark),
        (40_000, Verdict::Pass),
        (65_536 + 40_000, Verdict::Pass),
    ] {
        assert_eq!(arrive(&mut sfb, 0, 1, random), verdict, "{random}");
    }
    // Below one half there are only marks.
    sfb.bins.iter_mut().flatten().for_each(|bin| (bin.qlen, bin.p_mark) = (1, 1000));
    assert_eq!(arrive(&mut sfb, 0, 1, 999), Verdict::Mark);
    sfb.bins.iter_mut().flatten().for_each(|bin| (bin.qlen, bin.p_mark) = (1, 32_767));
    assert_eq!(arrive(&mut sfb, 0, 1, 0), Verdict::Mark);
}

#[test]
fn the_hash_changes_after_an_interval_and_the_sets_take_turns() {
    let params =
        SfbParams { rehash_interval: Span::ms(10), warmup: Span::ms(2), ..SfbParams::default() };
    let mut sfb = linux_bins(&params);
    let mut slots = vec![];
    for us in [10_000, 10_001, 20_001, 20_002, 30_003] {
        arrive(&mut sfb, us, 1, 7 + us as u32);
        slots.push((sfb.slot, sfb.warming));
    }
    // 10 ms are not over the interval; the next one counts from the change.
    assert_eq!(slots, [(0, true), (1, false), (1, true), (0, false), (1, false)]);
    assert_eq!(sfb.salts, [30_010, 20_009], "the set that goes out of use gets another hash");
}

#[test]
fn the_warm_up_begins_less_than_its_length_before_the_change() {
    for (warmup, at_us, warming) in
        [(2, 8_000, false), (2, 8_001, true), (0, 9_999, false), (0, 10_000, false)]
    {
        let (rehash_interval, warmup) = (Span::ms(10), Span::ms(warmup));
        let mut sfb = linux_bins(&SfbParams { rehash_interval, warmup, ..SfbParams::default() });
        arrive(&mut sfb, at_us, 1, 0);
        assert_eq!(sfb.warming, warming, "{warmup:?} {at_us}");
    }
}

#[test]
fn the_warm_up_counts_flows_in_the_penalty_box_in_the_other_set() {
    for (slot, salts) in [(0, [1, 2]), (1, [1, 2])] {
        let mut sfb = linux_bins(&SfbParams::default());
        (sfb.slot, sfb.salts, sfb.warming) = (slot, salts, true);
        let counted =
            |sfb: &LinuxSfb, set: usize| sfb.bins[set].iter().map(|bin| bin.qlen).sum::<u32>();
        arrive(&mut sfb, 0, 1, 65_535);
        assert_eq!([counted(&sfb, slot), counted(&sfb, 1 - slot)], [8, 0], "one bin per level");
        sfb.bins[slot].iter_mut().for_each(|bin| bin.p_mark = 65_535);
        arrive(&mut sfb, 0, 1, 65_535);
        assert_eq!([counted(&sfb, slot), counted(&sfb, 1 - slot)], [16, 8]);
    }
}

#[test]
fn flows_and_hashes_have_bins_of_their_own() {
    let bins = |flow: u32, salt: u64| {
        let mut sfb = linux_bins(&SfbParams::default());
        sfb.salts[0] = salt;
        arrive(&mut sfb, 0, flow, 65_535);
        let used = sfb.bins[0].iter().enumerate().filter(|(_, bin)| bin.qlen > 0);
        used.map(|(i, _)| i).collect::<Vec<_>>()
    };
    let all = [(1, 1), (2, 1), (1, 2), (1, 3), (0, 1)].map(|(flow, salt)| bins(flow, salt));
    for (i, a) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|b| a != b), "{all:?}");
    }
}

#[test]
fn a_penalty_box_without_rate_or_burst_is_closed() {
    for (rate, burst, limited) in [(0.0, 5.0, true), (5.0, 0.0, true), (5.0, 5.0, false)] {
        let params = SfbParams { penalty_rate: rate, penalty_burst: burst, ..SfbParams::default() };
        assert_eq!(linux_bins(&params).limited(Time::ZERO), limited, "{rate} {burst}");
    }
    // It is filled with the packets of ten seconds at most.
    let params =
        SfbParams { penalty_rate: 2.0, penalty_burst: 100.0, hz: 100, ..SfbParams::default() };
    let mut sfb = linux_bins(&params);
    sfb.tokens = 0;
    let passed = (0..100).take_while(|_| !sfb.limited(Time(60_000_000_000))).count();
    assert_eq!(passed, 20);
}
