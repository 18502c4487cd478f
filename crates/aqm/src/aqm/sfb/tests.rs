//! Unit tests of SFB.

use super::*;
use crate::testing::Bench;
use std::prelude::v1::*;

#[test]
fn defaults_are_those_of_the_kernel_not_of_tc() {
    let SfbParams { levels, bins, bin_size, max, d1, d2, .. } = SfbParams::default();
    assert_eq!((levels, bins, bin_size, max), (8, 16, 20, 25));
    assert_eq!((d1, d2), (1.0 / 1000.0, 1.0 / 6000.0));
    let SfbParams { rehash_interval, warmup, penalty_rate, penalty_burst, .. } =
        SfbParams::default();
    assert_eq!((rehash_interval, warmup), (Span::s(600), Span::s(60)));
    assert_eq!((penalty_rate, penalty_burst), (10.0, 20.0));
}

#[test]
fn a_full_bin_raises_its_probability_and_an_empty_one_lowers_it() {
    let one = [("levels", "1"), ("bins", "1"), ("bin_size", "2"), ("d1", "0.1"), ("d2", "0.04")];
    let mut q = Bench::new("sfb", &[&one[..], &[("ecn", "true")]].concat());
    q.ect();
    // They find 0, 1, 2, 3 and 4 packets in their bins.
    let pmin: Vec<f64> = (0..5).map(|i| (q.put(i, 100), q.gauge("pmin")).1).collect();
    assert_eq!(pmin, [0.0, 0.0, 0.1, 0.2, 0.1 + 0.1 + 0.1]);
    q.drain();
    q.put(9, 100);
    assert!((q.gauge("pmin") - 0.26).abs() < 1e-12);
}

#[test]
fn no_flow_holds_more_than_max_and_the_buffer_comes_first() {
    let mut q = Bench::new("sfb", &[("d1", "0"), ("limit", "40p")]);
    let dropped: Vec<u32> = (0..30).flat_map(|i| q.put_flow(1, i, 100)).collect();
    assert_eq!(dropped, [25, 26, 27, 28, 29]);
    assert!((30..45).all(|i| q.put_flow(2, i, 100).is_empty()), "another flow has its own");
    let before = q.gauge("qmin");
    assert_eq!(q.put_flow(3, 45, 100), [45]);
    assert_eq!(q.gauge("qmin"), before, "a full buffer moves nothing");
}

/// Sends 4 packets per ms of flow 1 from `from` to `to` ms, where the link sends 1 per ms;
/// returns how many of the last 100 ms were dropped.
fn flood(q: &mut Bench, from: u64, to: u64) -> usize {
    let mut dropped = 0;
    for ms in from..to {
        q.at_ms(ms);
        let now: usize = (0..4).map(|i| q.put_flow(1, i, 1000).len()).sum();
        dropped += if ms + 100 >= to { now } else { 0 };
        q.get();
    }
    dropped
}

#[test]
fn a_flood_is_confined_and_others_are_not() {
    // The probabilities do not fall here: alone on a link, even an unresponsive flow may use
    // the whole link.
    let stays = [("max", "1000"), ("d1", "0.01"), ("d2", "0"), ("penalty_rate", "100")];
    let mut q = Bench::new("sfb", &stays);
    assert_eq!(flood(&mut q, 0, 2000), 400 - 10, "100 packets per second leave the box");
    assert_eq!(q.gauge("pmin"), 1.0);
    // None of 15 other flows shares all its bins with the unresponsive one.
    for flow in 2..17 {
        assert!(q.put_flow(flow, 0, 1000).is_empty());
        assert_eq!(q.gauge("pmin"), 0.0);
    }
    assert_eq!(flood(&mut q, 2001, 2200), 400 - 10);
    q.at_ms(86_400_000);
    q.put_flow(1, 0, 1000);
    assert_eq!(q.gauge("pmin"), 0.0, "a day later other bins are used");
}

#[test]
fn the_box_releases_a_burst_and_then_its_rate() {
    let box_ = [("levels", "1"), ("bins", "1"), ("bin_size", "1"), ("d1", "1"), ("d2", "0")];
    let mut q = Bench::new("sfb", &[&box_[..], &[("penalty_burst", "3")]].concat());
    // The second finds a full bin; 3 and, at 10 per second, 2 more leave the box.
    let dropped: Vec<u32> = (0..6).flat_map(|i| q.put(i, 100)).collect();
    assert_eq!(dropped, [4, 5]);
    q.at_ms(250);
    let dropped: Vec<u32> = (6..10).flat_map(|i| q.put(i, 100)).collect();
    assert_eq!(dropped, [8, 9]);
    assert!((q.gauge("tokens") - 0.5).abs() < 1e-12);
}

#[test]
fn above_one_half_signals_turn_into_drops() {
    let full = [("bins", "1"), ("bin_size", "1"), ("ecn", "true")];
    for (d1, marks, drops) in [("0.4", 0.4, 0.0), ("0.5", 0.5, 0.0), ("0.8", 0.2, 0.6)] {
        let (mut marked, mut dropped) = (0, 0);
        for seed in 0..4000 {
            let settings = [&full[..], &[("d1", d1)]].concat();
            let mut q = Bench::seeded("sfb", &settings, seed);
            q.ect();
            q.put(0, 100);
            dropped += q.put(1, 100).len();
            marked += q.marked();
        }
        // Three standard errors of 4000 trials are at most 0.024.
        assert!((marked as f64 / 4000.0 - marks).abs() < 0.024, "{d1}: {marked}");
        assert!((dropped as f64 / 4000.0 - drops).abs() < 0.024, "{d1}: {dropped}");
    }
}

#[test]
fn warmed_bins_confine_a_flood_from_their_first_packet() {
    for (warmup, pmin) in [("0s", 0.0), ("1s", 1.0)] {
        let rehash = [("max", "1000"), ("rehash_interval", "2s"), ("warmup", warmup)];
        // The penalty box passes all that the link can send, so that there are packets to warm
        // the bins up.
        let flow = [("d1", "0.01"), ("d2", "0"), ("bin_size", "1"), ("penalty_rate", "1000")];
        let mut q = Bench::new("sfb", &[&rehash[..], &flow[..]].concat());
        flood(&mut q, 0, 2000);
        assert_eq!(q.gauge("pmin"), 1.0);
        q.drain();
        q.at_ms(2000);
        q.put_flow(1, 0, 1000);
        assert_eq!(q.gauge("pmin"), pmin, "{warmup}");
    }
}

#[test]
fn a_change_of_hash_loses_count_of_nobody() {
    let params =
        SfbParams { rehash_interval: Span::ms(3), warmup: Span::ms(1), ..SfbParams::default() };
    let mut aqm = Sfb::build(&params, &Env::new(crate::Rate(8_000_000))).unwrap();
    aqm.limit = Size::Packets(1000);
    let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(3);
    let mut fifo = crate::fifo::SingleFifo::default();
    let (mut dropped, mut marks) = (vec![], crate::Marks::default());
    for step in 0..3000u64 {
        let now = Time(step * 100_000);
        let (rng, dropped, marks) = (&mut rng, &mut dropped, &mut marks);
        let mut context = Context { now, rng, dropped, marks };
        let mut queue = QueueView::single(&mut fifo);
        let hash = (step * 7 % 13) as u32;
        let packet = Packet { hash, len: 100, ..Packet::default() };
        if step / 100 % 2 == 0 && aqm.on_enqueue(&mut context, &mut queue, &packet) == Verdict::Pass
        {
            aqm.after_enqueue(&packet);
            fifo.push(packet);
        } else {
            aqm.on_dequeue(&mut context, &mut queue, false);
        }
        let counted = |bins: &Bins| bins.bins.iter().map(|b| u64::from(b.qlen)).sum::<u64>();
        let held = u64::from(fifo.packets()) * 8;
        assert_eq!(counted(&aqm.current), held, "step {step}");
        assert!(!aqm.warming || counted(&aqm.spare) == held, "step {step}");
    }
}

#[test]
fn contradictions_are_refused() {
    let refusal = |name, value| {
        let settings = [(name, crate::Setting::Text(value))];
        crate::build("sfb", &settings, crate::Rate(1_000_000)).unwrap_err().to_string()
    };
    assert!(refusal("bin_size", "26").starts_with("max: 25 is below bin_size"));
    assert!(refusal("warmup", "601s").starts_with("warmup: 601s is longer"));
    Bench::new("sfb", &[("bin_size", "25"), ("warmup", "600s")]); // the largest allowed
}

/// Indices of the bins of `hash`.
fn bins_of(mut bins: Bins, hash: u32) -> Vec<usize> {
    bins.bins.fill(Bin::default());
    bins.count(hash, 1);
    let used = bins.bins.iter().enumerate().filter(|(_, bin)| bin.qlen > 0);
    used.map(|(i, _)| i).collect()
}

#[test]
fn each_level_has_a_hash_of_its_own_and_each_salt_others() {
    // The salt has all of the bits with which the number of the level is combined.
    let bins = |salt| Bins { bins: vec![Bin::default(); 8 * 1024], levels: 8, salt };
    let first = bins_of(bins(0xffff_ffff), 7);
    let levels: Vec<usize> = first.iter().map(|i| i / 1024).collect();
    assert_eq!(levels, [0, 1, 2, 3, 4, 5, 6, 7], "one bin per level");
    let mut within: Vec<usize> = first.iter().map(|i| i % 1024).collect();
    within.sort_unstable();
    within.dedup();
    assert_eq!(within.len(), 8, "of 1024 bins, by chance two are equal once in 36 times");
    let second = bins_of(bins(0x7fff_ffff), 7);
    assert!(first.iter().zip(&second).filter(|(a, b)| a == b).count() < 2);
}

#[test]
fn new_bins_count_the_queued_packets_and_have_no_probability() {
    let mut fifo = crate::fifo::SingleFifo::default();
    [7, 7, 8].iter().for_each(|hash| {
        fifo.push(Packet { hash: *hash, ..Packet::default() });
    });
    let bin = Bin { qlen: 5, pm: 0.5 };
    let mut bins = Bins { bins: vec![bin; 8 * 1024], levels: 8, salt: 1 };
    bins.renew(9, &QueueView::single(&mut fifo));
    assert_eq!(bins.salt, 9);
    assert!(bins.bins.iter().all(|bin| bin.pm == 0.0));
    assert_eq!(bins.bins.iter().map(|bin| bin.qlen).sum::<u32>(), 24);
}

#[test]
fn bins_that_were_not_warmed_up_in_this_period_are_renewed() {
    // The hash changes every 3 ms, and the warm-up begins 1 ms earlier.
    for (calls_us, renewed, next_ms) in [
        (&[2_500, 3_000][..], false, 6), // warmed up
        (&[3_500], true, 6),             // no call in the warm-up
        (&[2_500, 7_000], true, 9),      // warmed up for a period that has passed
    ] {
        let params =
            SfbParams { rehash_interval: Span::ms(3), warmup: Span::ms(1), ..SfbParams::default() };
        let mut aqm = Sfb::build(&params, &Env::new(crate::Rate(8_000_000))).unwrap();
        aqm.on_first_packet(Time::ZERO);
        let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(3);
        let mut fifo = crate::fifo::SingleFifo::default();
        let (mut dropped, mut marks) = (vec![], crate::Marks::default());
        let mut spare = 0;
        for us in calls_us {
            spare = aqm.spare.salt;
            let (rng, dropped, marks) = (&mut rng, &mut dropped, &mut marks);
            let mut context = Context { now: Time(us * 1000), rng, dropped, marks };
            aqm.rehash(&mut context, &QueueView::single(&mut fifo));
        }
        assert_eq!(aqm.current.salt != spare, renewed, "{calls_us:?}");
        assert_eq!(aqm.rehash_at, Time(next_ms * 1_000_000), "{calls_us:?}");
    }
}

/// Fills the bins of flow 1 with `n` packets in Linux's variant; `more` are other settings.
fn linux(n: u32, more: &[(&str, &str)]) -> Bench {
    let mut q = Bench::new("sfb", &[&[("variant", "linux"), ("ecn", "true")], more].concat());
    (0..n).for_each(|i| drop(q.put_flow(1, i, 100)));
    q
}

#[test]
fn on_linux_probabilities_have_16_bits() {
    for (more, step) in [(&[][..], 66.0), (&[("d1", "0.0005"), ("d2", "0.00005")], 33.0)] {
        let mut q = linux(20, more);
        q.put_flow(1, 20, 100);
        assert_eq!(q.gauge("pmin") * 65_535.0, step);
        q.drain();
        q.put_flow(1, 21, 100);
        let back = if step == 66.0 { 11.0 } else { 3.0 };
        assert_eq!(q.gauge("pmin") * 65_535.0, step - back);
    }
}

#[test]
fn on_linux_the_penalty_box_is_filled_once_it_is_empty() {
    let penalty = [("penalty_rate", "10"), ("penalty_burst", "2"), ("hz", "100")];
    let mut q = linux(20, &[&[("d1", "1"), ("max", "1000")], &penalty[..]].concat());
    let mut passes = |ms: u64| {
        q.at_ms(ms);
        q.put_flow(1, 99, 100).is_empty()
    };
    // The burst; then nothing has come since the last attempt, until 100 ms are over.
    assert_eq!([0, 0, 0, 99, 199].map(&mut passes), [true, true, false, false, true]);
    // A refill starts anew at each attempt: the whole packets of 190 ms, one, are all.
    assert_eq!([389, 389, 470, 480].map(&mut passes), [true, false, false, false]);
}

#[test]
fn on_linux_above_one_half_marks_become_drops() {
    // 45,874 of 65,535, or 0.7: two times 0.2 are drops, the rest of 0.7 marks.
    let mut q = linux(20, &[("d1", "0.7"), ("d2", "0"), ("bin_size", "20"), ("max", "1000000")]);
    q.put_flow(1, 20, 100);
    q.drain();
    q.ect();
    let before = q.marked();
    let (mut dropped, n) = (0, 4000);
    for i in 0..n {
        dropped += q.put_flow(1, 100 + i, 100).len();
        q.drain();
    }
    let (dropped, marked) =
        (dropped as f64 / f64::from(n), (q.marked() - before) as f64 / f64::from(n));
    // Four standard errors.
    assert!((dropped - 0.4).abs() < 0.031 && (marked - 0.3).abs() < 0.029, "{dropped} {marked}");
}

#[test]
fn on_linux_a_new_hash_does_not_count_the_packets_queued_before() {
    let times = [("rehash_interval", "10ms"), ("warmup", "2ms")];
    let mut q = linux(15, &times);
    assert_eq!(q.gauge("qmin"), 14.0);
    q.at_ms(11);
    q.put_flow(1, 50, 100);
    assert_eq!(q.gauge("qmin"), 0.0);
    q.put_flow(1, 51, 100);
    assert_eq!(q.gauge("qmin"), 1.0);
    q.drain();
    q.put_flow(1, 52, 100);
    assert_eq!(q.gauge("qmin"), 0.0);
}
