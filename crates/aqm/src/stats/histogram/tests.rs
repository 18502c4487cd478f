use super::*;

#[test]
fn bins_are_within_one_percent() {
    let mut previous = 0;
    for ns in
        (0..400).chain((9..63).flat_map(|e| [1 << e, (1 << e) + (1 << (e - 1)), (2 << e) - 1]))
    {
        let (b, m) = (bin(ns), middle(bin(ns)));
        assert!(b >= previous || ns < 400);
        assert!(m.abs_diff(ns) as f64 <= 0.004 * ns as f64, "{ns}: bin {b} means {m}");
        previous = b;
    }
    assert_eq!(bin(u64::MAX), 7423);
}

#[test]
fn a_bin_is_read_as_its_middle() {
    let (mut start, mut previous) = (0, 0);
    for ns in 0..5_000 {
        if bin(ns) != previous {
            assert_eq!(bin(ns), previous + 1, "{ns}");
            assert_eq!(middle(previous), start + (ns - start) / 2, "{start}..{ns}");
            (start, previous) = (ns, bin(ns));
        }
    }
    assert_eq!((bin(127), bin(128), bin(255), bin(256)), (127, 128, 255, 256));
    assert_eq!((bin(258), bin(511), bin(512)), (257, 383, 384));
}

#[test]
fn quantiles_are_the_nearest_rank() {
    let mut h = Histogram::default();
    assert_eq!((h.mean_s(), h.std_s(), h.max_s(), h.quantile_s(0.0)), (None, None, None, None));
    [10, 20, 30, 40].iter().for_each(|ns| h.add(Span(*ns)));
    for (q, ns) in [(0.0, 10), (0.25, 10), (0.26, 20), (0.5, 20), (0.75, 30), (0.76, 40)] {
        assert_eq!(h.quantile_s(q), Some(f64::from(ns) / 1e9), "{q}");
    }
    assert_eq!((h.count(), h.sum_ns(), h.max_s()), (4, 100, Some(4e-8)));
    // A bin of two durations: its middle is never outside of what was counted.
    let mut h = Histogram::default();
    [1_000_000, 1_000_000, 1_000_000].iter().for_each(|ns| h.add(Span(*ns)));
    assert_eq!(h.quantile_s(0.5), Some(0.001));
}

/// Their squares fit in 128 bits, but not the product of these with the number of durations.
#[test]
fn the_deviation_of_huge_durations_is_that_of_floating_point() {
    let mut h = Histogram::default();
    let a = 1u64 << 63;
    [a, a, a / 2].iter().for_each(|ns| h.add(Span(*ns)));
    let expected = a as f64 * libm::sqrt(0.75 - 25.0 / 36.0) / 1e9;
    assert!((h.std_s().unwrap() / expected - 1.0).abs() < 1e-9, "{:?}", h.std_s());
}

#[test]
fn later_extremes_are_those_of_later_bins() {
    let mut h = Histogram::default();
    [100, 5_000].iter().for_each(|us| h.add(Span::us(*us)));
    let earlier = h.clone();
    [2_000, 3_000, 3_000].iter().for_each(|us| h.add(Span::us(*us)));
    let later = h.since(&earlier);
    let near = |ns: u64, us: u64| (ns as f64 / us as f64 / 1_000.0 - 1.0).abs() < 0.005;
    assert!(near(later.min, 2_000) && near(later.max, 3_000), "{} {}", later.min, later.max);
    assert_eq!((later.count(), later.sum_ns()), (3, 8_000_000));
    let expected = libm::sqrt(2.0) / 3.0 / 1e3;
    assert!((later.std_s().unwrap() - expected).abs() < 1e-12);
}

#[test]
fn memory_follows_the_longest_duration() {
    let bytes = |h: &Histogram| size_of_val(&*h.bins);
    let mut h = Histogram::default();
    assert_eq!(bytes(&h), 0);
    let day = Span::s(86_400);
    let steps = [(Span::ZERO, 0), (Span(1), 28), (Span::s(17), 28), (day, 41), (Span::ms(1), 41)];
    for (span, octaves) in steps {
        h.add(span);
        assert_eq!(bytes(&h), octaves * 512, "{span}");
    }
    assert_eq!(Histogram::bytes_up_to(day), 41 * 512);
    h.add(Span(u64::MAX >> 1));
    assert_eq!((bytes(&h), h.count()), (57 * 512, 6));
    h.clear();
    assert_eq!((bytes(&h), h.quantile_s(0.5)), (57 * 512, None));
}

#[test]
fn moments_of_durations_are_exact() {
    let mut h = Histogram::default();
    assert_eq!((h.mean_s(), h.quantile_s(0.5)), (None, None));
    [1, 2, 3, 4, 100].iter().for_each(|ms| h.add(Span::ms(*ms)));
    assert_eq!(h.mean_s(), Some(0.022));
    assert!((h.std_s().unwrap() - 0.039_012_818_4).abs() < 1e-9);
    assert!((h.quantile_s(0.5).unwrap() - 0.003).abs() < 3e-5);
    assert_eq!(h.quantile_s(0.99), Some(0.1));
}

#[test]
fn a_histogram_of_what_came_later() {
    let mut h = Histogram::default();
    assert_eq!(h.since(&Histogram::default()).max_s(), None);
    let never = h.clone();
    [1, 50, 900].iter().for_each(|ms| h.add(Span::ms(*ms)));
    assert_eq!(h.since(&never).quantile_s(0.5), h.quantile_s(0.5));
    let earlier = h.clone();
    assert_eq!(h.since(&earlier).quantile_s(0.5), None);
    [2, 3, 4].iter().for_each(|ms| h.add(Span::ms(*ms)));
    let later = h.since(&earlier);
    assert_eq!((later.count(), later.mean_s()), (3, Some(0.003)));
    for (q, s) in [(0.1, 0.002), (0.5, 0.003), (1.0, 0.004)] {
        assert!((later.quantile_s(q).unwrap() / s - 1.0).abs() < 0.005, "{q}");
    }
}

#[test]
fn values_are_the_distinct_durations() {
    let mut h = Histogram::default();
    assert_eq!(h.values().count(), 0);
    [3, 100, 3, 1].iter().for_each(|ms| h.add(Span::ms(*ms)));
    let values: Vec<(Span, u64)> = h.values().collect();
    let counts: Vec<u64> = values.iter().map(|v| v.1).collect();
    assert_eq!(counts, [1, 2, 1]);
    for (value, ms) in values.iter().zip([1.0, 3.0, 100.0]) {
        assert!((value.0.as_secs() * 1e3 / ms - 1.0).abs() < 0.005, "{ms} ms");
    }
}

/// A histogram of durations in nanoseconds.
fn histogram_of(durations: &[u64]) -> Histogram {
    let mut h = Histogram::default();
    durations.iter().for_each(|ns| h.add(Span(*ns)));
    h
}

#[test]
fn zeros_count_as_all_durations_do() {
    let h = histogram_of(&[0, 0, 0]);
    assert_eq!((h.count(), h.mean_s(), h.std_s(), h.max_s()), (3, Some(0.0), Some(0.0), Some(0.0)));
    assert_eq!((h.quantile_s(0.3), h.quantile_s(1.0)), (Some(0.0), Some(0.0)));
    assert!(h.values().eq([(Span(0), 3)]) && h.bins.is_empty());

    let mut h = histogram_of(&[8, 0, 4, 0]);
    assert_eq!((h.count(), h.mean_s(), h.max_s()), (4, Some(3e-9), Some(8e-9)));
    assert_eq!(h.std_s(), Some(libm::sqrt(11.0) / 1e9));
    for (q, ns) in [(0.0, 0), (0.5, 0), (0.51, 4), (0.75, 4), (0.76, 8)] {
        assert_eq!(h.quantile_s(q), Some(f64::from(ns) / 1e9), "{q}");
    }
    assert!(h.values().eq([(Span(0), 2), (Span(4), 1), (Span(8), 1)]));
    assert_eq!(h.min(), 0);

    let earlier = h.clone();
    h.add(Span(6));
    let later = h.since(&earlier);
    assert!(later.values().eq([(Span(6), 1)]) && later.min() == 6);
    h.add(Span(0));
    let later = h.since(&earlier);
    assert!(later.values().eq([(Span(0), 1), (Span(6), 1)]) && later.min() == 0);
    assert_eq!(h.since(&h).values().count(), 0);
    h.clear();
    assert_eq!((h.count(), h.min()), (0, u64::MAX));
}

/// Counts `n` further durations of `ns`, of which there is one already, without a call for each.
fn add_many(h: &mut Histogram, ns: u64, n: u32) {
    h.bins[bin(ns)] += n;
    h.longer += u64::from(n);
    h.sum += u128::from(n) * u128::from(ns);
    h.sum_of_squares += u128::from(n) * u128::from(ns * ns);
}

#[test]
fn a_bin_counts_beyond_32_bits() {
    const ALL: u64 = 1 << 32;
    let mut h = histogram_of(&[2, 5]);
    add_many(&mut h, 2, u32::MAX - 1);
    assert!(h.high.is_empty() && h.values().eq([(Span(2), ALL - 1), (Span(5), 1)]));
    let earlier = h.clone();
    h.add(Span(2));
    assert!(h.values().eq([(Span(2), ALL), (Span(5), 1)]), "{:?}", h.values().last());
    h.add(Span(2));
    assert_eq!((h.count(), h.sum_ns()), (ALL + 2, u128::from(ALL + 1) * 2 + 5));
    assert_eq!((h.quantile_s(0.0), h.quantile_s(0.999)), (Some(2e-9), Some(2e-9)));
    assert_eq!((h.quantile_s(1.0), h.max_s()), (Some(5e-9), Some(5e-9)));

    // A difference is exact, below and above 2^32.
    assert!(h.since(&earlier).values().eq([(Span(2), 2)]));
    let all = h.since(&Histogram::default());
    assert!(all.values().eq(h.values()) && !all.high.is_empty());

    // Longer durations can follow, and they can carry as well.
    let long = Span::s(3600);
    h.add(long);
    let n = &mut h.bins[bin(long.0)];
    (*n, h.longer) = (u32::MAX, h.longer + u64::from(u32::MAX - 1));
    h.add(long);
    let counts: Vec<u64> = h.values().map(|(_, n)| n).collect();
    assert_eq!((counts, h.count()), (vec![ALL + 1, 1, ALL], 2 * ALL + 2));
    h.clear();
    assert_eq!((h.values().count(), h.count()), (0, 0));
}

#[test]
fn a_histogram_shows_a_summary_and_no_bins() {
    let mut h = Histogram::default();
    assert_eq!(format!("{h:?}"), "Histogram { count: 0, .. }");
    [1, 3].iter().for_each(|ms| h.add(Span::ms(*ms)));
    let expected = "Histogram { count: 2, min_s: 0.001, mean_s: 0.002, max_s: 0.003, .. }";
    assert_eq!(format!("{h:?}"), expected);
}
