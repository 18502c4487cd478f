mod linux_variant;

use super::*;
use crate::context::{Dropped, Marks};
use crate::packet::Ecn;
use crate::params::{Params, Setting};
use crate::sched::dual::Dual;
use crate::testing::Bench;
use crate::units::Rate;
use rand_core::SeedableRng;
use std::prelude::v1::*;

fn params(settings: &[(&str, &str)]) -> (DualParams, DualPi2Params) {
    let (mut dual, mut own) = (DualParams::default(), DualPi2Params::default());
    for (name, value) in settings {
        let value = Setting::Text(value);
        if dual.knows(name) { dual.set(name, value) } else { own.set(name, value) }.unwrap();
    }
    (dual, own)
}

fn rfc(settings: &[(&str, &str)]) -> RfcPi2 {
    let (dual, own) = params(settings);
    RfcPi2::new(&own, &dual, &Env::new(Rate(10_000_000))).unwrap()
}

fn linux(settings: &[(&str, &str)]) -> LinuxPi2 {
    let (dual, own) = params(settings);
    LinuxPi2::new(&own.checked().unwrap(), &dual, &Env::new(Rate(10_000_000))).unwrap()
}

fn refusal(settings: &[(&str, &str)]) -> String {
    let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, Setting::Text(v))).collect();
    crate::build("dualpi2", &settings, Rate(10_000_000)).expect_err("it is refused").to_string()
}

/// Bench for both variants of the algorithm, without a scheduler.
struct Departures {
    rng: rand_pcg::Pcg64Mcg,
    dropped: Vec<Dropped>,
    marks: Marks,
}

impl Departures {
    fn new() -> Departures {
        let rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        Departures { rng, dropped: Vec::new(), marks: Marks::default() }
    }

    /// A packet with `ecn` that waited for `us`, taken from `lane`. Returns whether it was sent,
    /// and its ECN field.
    fn next(
        &mut self,
        queues: &Queues,
        lane: Lane,
        ecn: Ecn,
        us: u64,
        mut decide: impl FnMut(&mut Context<'_>, &Queues, Lane, &mut Packet) -> bool,
    ) -> (bool, Ecn) {
        let now = Time(1_000_000_000);
        let Departures { rng, dropped, marks } = self;
        let mut context = Context { now, rng, dropped, marks };
        let arrived = Time(now.0 - us * 1000);
        let mut packet = Packet { arrived, len: 1500, ecn, ..Packet::default() };
        (decide(&mut context, queues, lane, &mut packet), packet.ecn)
    }
}

/// Queues with `n` packets in L and one in C.
fn queues(n: u32) -> Queues {
    let mut queues = Queues::default();
    let packet = Packet { len: 1500, ..Packet::default() };
    (0..n).for_each(|_| queues.push(Lane::L, packet));
    queues.push(Lane::C, packet);
    queues
}

/// Shares of dropped and of marked packets among `n` packets of `lane` at a constant p'.
fn shares(aqm: &mut RfcPi2, p_prime: f64, lane: Lane, ecn: Ecn, n: u32) -> [f64; 2] {
    aqm.pi.p_prime = p_prime;
    let (mut bench, queues) = (Departures::new(), queues(5));
    let (mut dropped, mut marked) = (0, 0);
    for _ in 0..n {
        let (sent, out) =
            bench.next(&queues, lane, ecn, 0, |c, q, l, p| aqm.on_dequeue(c, q, l, p));
        dropped += u32::from(!sent);
        marked += u32::from(sent && out == Ecn::Ce);
    }
    [dropped, marked].map(|count| f64::from(count) / f64::from(n))
}

const DELAYS_MS: [u64; 6] = [20, 20, 18, 15, 10, 0];

#[test]
fn p_prime_follows_the_equation_of_the_rfc() {
    // By hand, with the gains that follow from RTT_max = 100 ms: 0.15 and 3.0.
    let mut aqm = rfc(&[]);
    assert_eq!(aqm.pi.gains.period, Span::ms(15));
    assert!((aqm.pi.gains.alpha - 0.15).abs() < 1e-12);
    let shares = DELAYS_MS.map(|ms| {
        aqm.pi.update(Span::ms(ms));
        (aqm.pi.p_prime * 1e6).round()
    });
    let expected = [60_750.0, 61_500.0, 55_950.0, 46_950.0, 31_200.0, 0.0];
    assert_eq!(shares, expected);
    // The same with all times divided by 10,000.
    let mut aqm = rfc(&[("max_rtt", "10us"), ("target", "1500ns")]);
    assert_eq!(aqm.pi.gains.period, Span(1500));
    let shares = DELAYS_MS.map(|ms| {
        aqm.pi.update(Span(100 * ms));
        (aqm.pi.p_prime * 1e6).round()
    });
    assert_eq!(shares, expected);
}

#[test]
fn p_prime_of_linux_is_an_integer() {
    let mut aqm = linux(&[]);
    let shares = DELAYS_MS.map(|ms| {
        aqm.pi.update(Span::ms(ms));
        (aqm.pi.share() * 1e6).round()
    });
    assert_eq!(shares, [64_756.0, 65_556.0, 59_641.0, 50_048.0, 33_258.0, 0.0]);
    // One update by hand: (5 ms x 44 + 20 ms x 879) / 64 ns.
    let mut aqm = linux(&[]);
    aqm.pi.update(Span::ms(20));
    assert_eq!(aqm.pi.share(), (278_125_000.0) / f64::from(u32::MAX));
}

#[test]
fn p_prime_of_linux_stays_high_when_a_delay_of_seconds_ends() {
    // A recording of the kernel (dualpi2-k1_over_10m): p' fell from 1 to 405,643,027 2^-32.
    let mut aqm = linux(&[]);
    (0..9).for_each(|_| _ = aqm.pi.update(Span(7_162_196_480)));
    assert_eq!(aqm.pi.share(), 1.0);
    aqm.pi.update(Span::ZERO);
    assert_eq!(aqm.pi.share(), 405_643_027.0 / f64::from(u32::MAX));
}

#[test]
fn the_ramp_grows_from_800_to_1200_us() {
    let ramp = rfc(&[]).native;
    let probabilities =
        [700, 800, 900, 1000, 1100, 1200, 5000].map(|us| ramp.probability(Span::us(us), 9));
    assert_eq!(probabilities, [0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0]);
    let step = rfc(&[("step", "1ms")]).native;
    assert_eq!([1000, 1001].map(|us| step.probability(Span::us(us), 9)), [0.0, 1.0]);
    let step = rfc(&[("step", "5p")]).native;
    assert_eq!([5, 6].map(|left| step.probability(Span::ms(9), left)), [0.0, 1.0]);
}

#[test]
fn the_native_aqm_spares_the_last_packets() {
    for (left, marked) in [(1, Ecn::Ect1), (2, Ecn::Ce)] {
        let (mut aqm, mut bench) = (rfc(&[]), Departures::new());
        let mut next = |_| {
            bench.next(&queues(left), Lane::L, Ecn::Ect1, 9000, |c, q, l, p| {
                aqm.on_dequeue(c, q, l, p)
            })
        };
        // The accumulator passes the first packet even at probability 1.
        assert_eq!([0; 3].map(&mut next)[1..], [(true, marked); 2]);
    }
}

#[test]
fn signals_are_spaced_evenly() {
    let signals = |p: f64| {
        let mut count = 0.0;
        (1..=13).filter(|_| recur(&mut count, p)).collect::<Vec<i32>>()
    };
    assert_eq!(signals(0.25), [5, 9, 13]);
    assert_eq!(signals(0.3)[..2], [4, 7]);
    assert_eq!(signals(1.0), (2..=13).collect::<Vec<_>>());
}

#[test]
fn classic_drops_are_the_square_and_l4s_marks_k_times_p_prime() {
    for k in ["1", "2", "4", "8"] {
        let number: f64 = k.parse().unwrap();
        for p_prime in [0.01, 0.05, 0.1, 0.9 / number] {
            let mut aqm = rfc(&[("k", k)]);
            let close = |a: f64, b: f64| assert!((a - b).abs() < 2e-5, "{k} {p_prime}: {a} {b}");
            let n = 100_000;
            let [dropped, marked] = shares(&mut aqm, p_prime, Lane::C, Ecn::NotEct, n);
            assert_eq!(marked, 0.0);
            close(dropped, p_prime * p_prime);
            // ECN-capable packets are marked instead, since there is no overload.
            let [dropped, marked] = shares(&mut aqm, p_prime, Lane::C, Ecn::Ect0, n);
            assert_eq!(dropped, 0.0);
            close(marked, p_prime * p_prime);
            let [dropped, marked] = shares(&mut aqm, p_prime, Lane::L, Ecn::Ect1, n);
            assert_eq!(dropped, 0.0);
            close(marked, number * p_prime);
        }
    }
}

#[test]
fn coupling_balances_the_rates_of_both_kinds() {
    // RFC 9332 appendix C: Reno sends 1.22 / sqrt(p_C), a scalable sender 2 / p_CL packets per
    // round trip. Their ratio is 1.64 / k for every p'.
    for (k, number) in [("1", 1.0), ("2", 2.0), ("4", 4.0)] {
        for p_prime in [0.02, 0.1, 0.2] {
            let n = 200_000;
            let mut aqm = rfc(&[("k", k)]);
            let [_, marked] = shares(&mut aqm, p_prime, Lane::L, Ecn::Ect1, n);
            let [dropped, _] = shares(&mut aqm, p_prime, Lane::C, Ecn::NotEct, n);
            let ratio = (2.0 / marked) / (1.22 / dropped.sqrt());
            assert!((ratio * number / 1.64 - 1.0).abs() < 0.01, "k = {k}, p' = {p_prime}: {ratio}");
        }
    }
}

/// Share of L packets that the pseudocode of RFC 9332 drops in overload, where p_CL = 2 p' is not
/// limited to 1 before it is accumulated.
fn unlimited(p_prime: f64) -> f64 {
    let (mut count, mut dropped) = (0.0, 0);
    for _ in 0..100_000 {
        if recur(&mut count, p_prime * p_prime) {
            dropped += 1;
        } else {
            recur(&mut count, 2.0 * p_prime);
        }
    }
    f64::from(dropped) / 100_000.0
}

#[test]
fn overload_drops_the_square_in_both_queues_and_not_more() {
    for (p_prime, too_many) in [(0.6, 0.467), (0.7, 0.636)] {
        let square = p_prime * p_prime;
        let mut aqm = rfc(&[]);
        let [dropped, marked] = shares(&mut aqm, p_prime, Lane::L, Ecn::Ect1, 100_000);
        assert!((dropped - square).abs() < 1e-4, "{dropped}");
        assert!((dropped + marked - 1.0).abs() < 1e-4, "all others are marked: {marked}");
        let [dropped, marked] = shares(&mut aqm, p_prime, Lane::C, Ecn::Ect0, 100_000);
        assert!((dropped - square).abs() < 1e-4 && marked == 0.0, "{dropped} {marked}");
        assert!((unlimited(p_prime) - too_many).abs() < 1e-3, "{}", unlimited(p_prime));
    }
}

#[test]
fn without_drops_in_overload_p_prime_ends_at_one_by_k() {
    let mut aqm = rfc(&[("drop_on_overload", "false"), ("k", "4")]);
    (0..100).for_each(|_| _ = aqm.pi.update(Span::s(1)));
    assert_eq!(aqm.pi.p_prime, 0.25);
    let [dropped, marked] = shares(&mut aqm, 0.25, Lane::L, Ecn::Ect1, 1000);
    assert!(dropped == 0.0 && marked > 0.99);
    let mut aqm = linux(&[("drop_on_overload", "false"), ("k", "4")]);
    (0..100).for_each(|_| _ = aqm.pi.update(Span::s(1)));
    assert!((aqm.pi.share() - 0.25).abs() < 1e-9 && aqm.pi.share() <= 0.25);
}

/// The values of an inspection.
fn told(aqm: &DualPi2) -> Vec<f64> {
    let mut all = vec![];
    aqm.inspect(&mut |_, value| all.push(value));
    all
}

#[test]
fn updates_after_a_pause_are_those_made_in_time() {
    for (variant, waiting, end, p) in [
        ("rfc", true, 2999, 0.0),
        ("rfc", true, 100, 0.0),
        ("rfc", false, 2999, 0.0),
        ("rfc", false, 2999, 0.9),
        ("linux", true, 2999, 0.0),
        ("linux", true, 100, 0.0),
        ("linux", false, 2999, 0.0),
        ("linux", false, 2999, 0.9),
    ] {
        let start = |settings: &[(&str, &str)]| {
            let (dual, own) = params(settings);
            let env = Env::new(Rate(10_000_000));
            DualPi2::new(own.checked().unwrap(), &dual, &env).unwrap()
        };
        let queues = if waiting { queues(1) } else { Queues::default() };
        let [mut late, mut prompt] = [(); 2].map(|()| start(&[("variant", variant)]));
        for aqm in [&mut late, &mut prompt] {
            aqm.on_first_packet(Time::ZERO);
            aqm.on_update(Time(40_000_000), &queues);
            match aqm {
                DualPi2::Rfc(rfc) => rfc.pi.p_prime = f64::max(rfc.pi.p_prime, p),
                DualPi2::Linux(linux) => linux.pi.raise(p),
            }
        }
        (41..=end).for_each(|ms| prompt.on_update(Time(ms * 1_000_000), &queues));
        late.on_update(Time(end * 1_000_000), &queues);
        for (late, prompt) in told(&late).into_iter().zip(told(&prompt)) {
            assert!((late - prompt).abs() < 1e-12, "{variant}, {waiting}, {end}: {late} {prompt}");
        }
        let p_prime = told(&late)[0];
        assert!(p == 0.0 || (0.1..0.8).contains(&p_prime), "falls while idle: {p_prime}");
    }
}

#[test]
fn the_probabilities_follow_from_p_prime() {
    for (p_prime, expected) in [(0.3, [0.3, 0.09, 0.6]), (0.7, [0.7, 0.49, 1.0])] {
        let mut rfc = rfc(&[]);
        rfc.pi.p_prime = p_prime;
        let shown = told(&DualPi2::Rfc(rfc));
        assert!(shown.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{shown:?}");
    }
}

/// Bodies of `n` packets sent from full queues of packets with these lengths; bodies below 2000 are
/// of C.
fn served(settings: &[(&str, &str)], c: u32, l: u32, n: usize) -> Vec<u32> {
    let off = [("target", "10s"), ("alpha", "0"), ("beta", "0"), ("step", "10s")];
    let mut q = Bench::new("dualpi2", &[settings, &off].concat());
    (0..2000).for_each(|i| drop(q.put(i, c)));
    q.ecn(Ecn::Ect1);
    (2000..4000).for_each(|i| drop(q.put(i, l)));
    (0..n).map(|_| q.get().0.unwrap()).collect()
}

#[test]
fn a_classic_packet_waits_for_15_l_packets_at_most() {
    let from_c = |settings: &[(&str, &str)]| {
        let sent = served(settings, 1514, 1514, 60);
        (0..60).filter(|i| sent[*i] < 2000).collect::<Vec<_>>()
    };
    assert_eq!(from_c(&[]), [15, 31, 47]);
    assert_eq!(from_c(&[("variant", "linux")]), [9, 19, 29, 39, 49, 59]);
    assert_eq!(from_c(&[("classic_protection", "0")]), [0; 0], "strict priority");
}

#[test]
fn the_weights_hold_in_bytes_and_bound_the_wait_of_c() {
    for percent in [1.0, 6.25, 25.0, 50.0, 90.0] {
        for (c, l) in [(1500, 100), (100, 1500), (700, 700)] {
            let text = percent.to_string();
            let sent = served(&[("classic_protection", &text), ("mtu", "1500B")], c, l, 400);
            // Between two C packets, L sends at most what the C packet and the initial credit of
            // one packet are worth, and one packet more.
            let weight = (100.0 - percent) / percent;
            let most = weight * 1500.0 + f64::from(l) + f64::from(c);
            let (mut gap, mut bytes) = (0.0, [0.0, 0.0]);
            for body in sent {
                let own = usize::from(body >= 2000);
                bytes[own] += f64::from([c, l][own]);
                gap = if own == 0 { 0.0 } else { gap + f64::from(l) };
                assert!(gap <= most, "{percent} %, {c} and {l}: {gap}");
            }
            let expected = bytes[0] * weight - bytes[1];
            let slack = 1500.0 * weight.max(1.0) + f64::from(l) + weight * f64::from(c);
            assert!(expected.abs() <= slack, "{percent} %, {c} and {l}: {bytes:?}");
        }
    }
}

#[test]
fn a_time_shifted_fifo_serves_c_once_it_is_older_by_the_shift() {
    let mut q = Bench::new("dualpi2", &[("scheduler", "ts_fifo"), ("t_shift", "10ms")]);
    q.put(0, 1000);
    q.at_ms(9);
    q.ecn(Ecn::Ect1);
    (1..4).for_each(|i| drop(q.put(i, 1000)));
    assert_eq!(q.get().0, Some(1));
    q.at_ms(12);
    assert_eq!(q.get().0, Some(2), "both heads age alike: 3 + 10 ms against 12 ms");
    // The next L packet is younger: C is older by 12 ms.
    let mut q = Bench::new("dualpi2", &[("scheduler", "ts_fifo"), ("t_shift", "10ms")]);
    q.put(0, 1000);
    q.at_ms(12);
    q.ecn(Ecn::Ect1);
    q.put(1, 1000);
    assert_eq!(q.drain(), [0, 1]);
    // C alone is served however young it is.
    q.ecn(Ecn::NotEct);
    q.put(2, 1000);
    assert_eq!(q.get().0, Some(2));
}

#[test]
fn the_ecn_field_selects_the_queue() {
    for (settings, in_l) in [
        (&[][..], [false, true, false, true]),
        (&[("any_ect", "true")], [false, true, true, true]),
        (&[("ecn", "false")], [false; 4]),
    ] {
        for (bits, l) in in_l.into_iter().enumerate() {
            let mut q = Bench::new("dualpi2", settings);
            q.ecn(Ecn::from_bits(bits as u8));
            q.put(1, 1000);
            assert_eq!(q.gauge("packets_l"), f64::from(u8::from(l)), "{settings:?}, {bits}");
        }
    }
}

#[test]
fn space_for_one_large_packet_stays_free() {
    let mut q = Bench::new("dualpi2", &[("limit", "6000B"), ("mtu", "1500B")]);
    let dropped: Vec<u32> = (0..60).flat_map(|i| q.put(i, 100)).collect();
    // 4500 bytes are queued; the packet of 1500 bytes finds the same space as small ones.
    assert_eq!(dropped[0], 46);
    assert_eq!(q.backlog(), 46);
    assert_eq!(q.put(99, 1500), [99]);
    let mut q = Bench::new("dualpi2", &[("limit", "1000B")]);
    assert_eq!(q.put(1, 1000), [], "an empty buffer takes what fits");
}

#[test]
fn contradictions_are_refused_with_their_path() {
    for (settings, message) in [
        (&[("drop_enqueue", "true")][..], "drop_enqueue: needs variant = \"linux\""),
        (&[("memlimit", "9kB")], "memlimit: needs variant = \"linux\""),
        (&[("variant", "linux"), ("min_th", "1ms")], "min_th: is not a parameter of the variant"),
        (&[("variant", "linux"), ("k", "1.5")], "coupling_factor: 1.5 is not a whole number"),
        (&[("variant", "linux"), ("classic_protection", "2.5")], "classic_protection: is not a w"),
        (&[("step_thresh", "1ms"), ("range", "1ms")], "range: is not allowed with step_thresh"),
        (&[("max_rtt", "10ms"), ("typical_rtt", "20ms")], "typical_rtt: 20ms is above max_rtt"),
        (&[("scheduler", "ts_fifo"), ("classic_protection", "10")], "classic_protection: is not a"),
        (&[("step_thresh", "5kB")], "step_thresh: \"5kB\" counts bytes"),
    ] {
        let error = refusal(settings);
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn round_trip_times_set_target_and_gains() {
    let (_, own) = params(&[("max_rtt", "40ms"), ("typical_rtt", "10ms")]);
    let (gains, derived) = Gains::of(&own).unwrap();
    assert_eq!((gains.target, gains.period, derived), (Span::ms(10), Span::ms(10), true));
    assert!((gains.alpha - 0.625).abs() < 1e-12 && (gains.beta - 7.5).abs() < 1e-12);
    let (_, own) = params(&[("typical_rtt", "25ms"), ("alpha", "1")]);
    let (gains, _) = Gains::of(&own).unwrap();
    assert_eq!((gains.target, gains.alpha, gains.beta), (Span::ms(25), 1.0, 2.0));
    // RFC 9332 Fig. 2: typical_rtt is a sixth of max_rtt; the period is at most a third of it.
    for (settings, target, period) in [
        (&[("max_rtt", "61ms")][..], Span(61_000_000 / 6), Span(61_000_000 / 6)),
        (&[("max_rtt", "60ms"), ("typical_rtt", "25ms")], Span::ms(25), Span::ms(20)),
        (&[("max_rtt", "60ms"), ("typical_rtt", "60ms")], Span::ms(60), Span::ms(20)),
        (&[("max_rtt", "1us")], Span(166), Span(166)),
        (&[("typical_rtt", "1us")], Span(1000), Span(1000)),
    ] {
        let (gains, _) = Gains::of(&params(settings).1).unwrap();
        assert_eq!((gains.target, gains.period), (target, period), "{settings:?}");
        assert!(gains.alpha < 1e6 && gains.beta < 1e6, "{settings:?}: {gains:?}");
    }
    // The builder reaches both sets of parameters.
    use crate::build::Build;
    use crate::qdisc::Qdisc;
    let dual = Dual::<DualPi2>::builder()
        .queue(|q| q.link_mtu(Bytes(1500)))
        .aqm(|p| p.coupling_factor(4.0))
        .build(Rate(8_000));
    assert_eq!(dual.unwrap().backlog().packets, 0);
}
