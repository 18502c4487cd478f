//! Unit tests of HTB.

use super::*;
use crate::testing::Bench;
use std::prelude::v1::*;

/// Bytes per second of each class while packets of 1000 bytes wait in the `busy` ones, over
/// 10 s of a link of 8 Mbit/s (a packet per ms).
fn shares(settings: &[(&str, &str)], busy: &[u16]) -> Vec<u64> {
    let settings = [settings, &[("limits", "20000p")]].concat();
    let mut q = Bench::new("htb", &settings);
    for class in busy {
        (0..12_000).for_each(|_| drop(q.put_class(*class, (*class).into(), 1000)));
    }
    let mut bytes = [0; 8];
    for ms in 0..10_000 {
        q.at_ms(ms);
        if let Some(class) = q.get().0 {
            bytes[class as usize] += 1000;
        }
    }
    bytes.iter().map(|b| b / 10).collect()
}

fn near(bytes: &[u64], expected: &[u64]) {
    let close = |(a, b): (&u64, &u64)| a.abs_diff(*b) <= b / 50 + 1000;
    assert!(bytes.iter().zip(expected).all(close), "{bytes:?}, not {expected:?}");
}

#[test]
fn the_example_of_the_manual() {
    // The user guide of HTB: 100 kB/s in all, of which A has 40 (10 for mail and 30 for the
    // web) and B has 60. The unused rate of a class goes to its sibling first.
    let tree = [
        ("rates", "800kbit 320kbit 480kbit 80kbit 240kbit"),
        ("ceils", "800kbit"),
        ("parents", "0 1 1 2 2"),
        ("quanta", "1500B 1500B 6000B 1000B 3000B"),
        ("default", "3"),
    ];
    near(&shares(&tree, &[3, 4, 5])[3..6], &[60_000, 10_000, 30_000]);
    near(&shares(&tree, &[3, 4])[3..6], &[60_000, 40_000, 0]);
    near(&shares(&tree, &[4, 5])[3..6], &[0, 25_000, 75_000]);
    near(&shares(&tree, &[5])[3..6], &[0, 0, 100_000]);
}

#[test]
fn a_ceiling_holds_and_priority_decides_who_borrows() {
    let tree = [
        ("rates", "800kbit 80kbit 80kbit"),
        ("ceils", "800kbit 800kbit 400kbit"),
        ("parents", "0 1 1"),
        ("default", "2"),
    ];
    near(&shares(&tree, &[3])[2..4], &[0, 50_000]);
    let prios = |prios: &'static str| [&tree[..], &[("prios", prios)]].concat();
    near(&shares(&prios("0 0 1"), &[2, 3])[2..4], &[90_000, 10_000]);
    near(&shares(&prios("0 1 0"), &[2, 3])[2..4], &[50_000, 50_000]);
}

#[test]
fn classes_without_parameters_have_half_the_rate_and_a_tenth_of_a_second() {
    // Neither takes the rate of the other, whatever its priority.
    near(&shares(&[("prios", "0 0 1")], &[2, 3])[2..4], &[500_000, 500_000]);
    // Quanta of 1000 and 3000 bytes: 60 kB/s are lent by these weights.
    let tree = [("rates", "800kbit 80kbit 240kbit"), ("ceils", "800kbit"), ("default", "2")];
    near(&shares(&tree, &[2, 3])[2..4], &[25_000, 75_000]);
}

#[test]
fn a_class_within_its_rate_comes_before_one_that_borrows() {
    let tree = [("rates", "800kbit 80kbit 80kbit"), ("bursts", "100kB 1600B"), ("prios", "0 1 0")];
    let mut q = Bench::new("htb", &tree);
    q.put_class(3, 1, 2000);
    assert_eq!(q.get().0, Some(1), "class 3 is overdrawn now");
    q.at_ms(1);
    q.put_class(3, 2, 1000);
    q.put_class(2, 3, 1000);
    assert_eq!(q.drain(), [3, 2], "of the lower priority, but within its rate");
}

#[test]
fn a_turn_ends_when_its_credit_is_below_zero() {
    let roots = [("rates", "4mbit 4mbit"), ("parents", "0"), ("bursts", "1MB")];
    let mut q = Bench::new("htb", &[&roots[..], &[("quanta", "2000B 2000B")]].concat());
    for class in [1, 2] {
        (0..4).for_each(|_| drop(q.put_class(class, class.into(), 1000)));
    }
    assert_eq!(q.drain(), [1, 2, 1, 1, 2, 2, 1, 2]);
}

#[test]
fn packets_without_a_leaf_go_to_the_default() {
    let mut q = Bench::new("htb", &[("rates", "8mbit"), ("limits", "3p")]);
    for (class, body) in [(0, 1), (9, 2), (1, 3)] {
        assert_eq!(q.put_class(class, body, 1000), [0; 0]);
    }
    assert_eq!(q.put_class(1, 4, 1000), [4], "its buffer is full");
    assert_eq!([q.get().0, q.get().0], [Some(1), Some(2)], "1600 bytes may be overdrawn");
    assert_eq!(q.get().0, None);
    assert_eq!((q.backlog(), q.bytes()), (1, 1000));
    assert_eq!(q.ready_at(), Some(Time(400_000)), "400 bytes too many at 8 Mbit/s");
    q.at_ms(1);
    assert_eq!(q.get().0, Some(3));
    assert_eq!((q.backlog(), q.bytes(), q.ready_at()), (0, 0, None));
}

#[test]
fn trees_that_are_none_are_refused() {
    let error = |settings: &[(&str, &str)]| {
        let settings: Vec<_> =
            settings.iter().map(|(k, v)| (*k, crate::Setting::Text(v))).collect();
        crate::build("htb", &settings, Rate(8_000)).unwrap_err().to_string()
    };
    assert_eq!(
        error(&[("rates", "1mbit 1mbit"), ("parents", "2 0")]),
        "parents: class 1 has the parent 2, which is no earlier class"
    );
    assert_eq!(
        error(&[("rates", "1mbit"), ("parents", "1")]),
        "parents: class 1 has the parent 1, which is no earlier class"
    );
    assert_eq!(error(&[("rates", "1mbit 1mbit"), ("default", "1")]), "default: class 1 is no leaf");
    assert_eq!(
        error(&[("rates", "1mbit"), ("ceils", "1mbit 2mbit")]),
        "ceils: 2 values for 1 classes"
    );
    assert_eq!(
        error(&[
            ("rates", "1mbit 1mbit 1mbit 1mbit 1mbit 1mbit 1mbit 1mbit 1mbit"),
            ("parents", "0 1 2 3 4 5 6 7 8")
        ]),
        "parents: the tree has more than 8 levels"
    );
    let settings = [
        ("rates", "1mbit 1mbit 1mbit 1mbit 1mbit 1mbit 1mbit 1mbit"),
        ("parents", "0 1 2 3 4 5 6 7"),
    ];
    let mut q = Bench::new("htb", &settings);
    q.put(1, 1000);
    assert_eq!(q.get().0, Some(1), "8 levels are allowed");
}

#[test]
fn a_leaf_whose_discipline_holds_packets_back_wakes_in_time() {
    let settings = [
        ("rates", "8mbit 4mbit 4mbit"),
        ("bursts", "100kB"),
        ("children", "tbf(rate=800kbit, burst=1000B) droptail"),
    ];
    let mut q = Bench::new("htb", &settings);
    for (class, body) in [(2, 1), (2, 2), (3, 3), (3, 4)] {
        assert_eq!(q.put_class(class, body, 1000), [0; 0]);
    }
    assert_eq!(q.drain(), [1, 3, 4]);
    assert_eq!((q.backlog(), q.ready_at()), (1, Some(Time(10_000_000))));
    q.at_ms(10);
    assert_eq!((q.get().0, q.get().0, q.ready_at()), (Some(2), None, None));
}

#[test]
fn rates_and_children_change_while_it_runs() {
    let tree = |rates: &'static str, children: &'static str| {
        [("rates", rates), ("ceils", "8mbit 800kbit 8mbit"), ("children", children)]
    };
    let mut q = Bench::new("htb", &tree("8mbit 800kbit 80kbit", "codel sfq"));
    (0..99).for_each(|body| drop(q.put_class(2, body, 1000)));
    let sent = |q: &mut Bench, from: u64| {
        (from..from + 100)
            .filter(|ms| {
                q.at_ms(*ms);
                q.get().0.is_some()
            })
            .count()
    };
    assert!((10..=12).contains(&sent(&mut q, 0)), "100 kB/s");
    let faster = [("rates", "8mbit 1600kbit 80kbit"), ("ceils", "8mbit 1600kbit 8mbit")];
    let with = |children: &'static str| [&faster[..], &[("children", children)]].concat();
    assert!(!q.reconfigure("htb", &with("codel(target=9ms) sfq(limit=9p)")), "sfq cannot");
    assert!(!q.reconfigure("htb", &[("rates", "8mbit 8mbit")]), "another tree");
    assert!(q.reconfigure("htb", &with("codel(target=900ms) sfq")));
    assert!((19..=21).contains(&sent(&mut q, 100)), "200 kB/s");
}

#[test]
fn filters_name_leaves_and_others_go_to_the_default() {
    let tree = [("rates", "8mbit 4mbit 4mbit"), ("default", "3"), ("filters", "2(class=9)")];
    let mut q = Bench::new("htb", &[&tree[..], &[("limits", "1p")]].concat());
    assert_eq!([q.put_class(9, 1, 100), q.put_class(2, 2, 100)], [[0; 0]; 2]);
    assert_eq!(q.put_class(9, 3, 100), [3], "class 2 is full");
    assert_eq!(q.put_class(2, 4, 100), [4], "the default is full: its own class does not count");
    let bad = [("rates", "8mbit 4mbit"), ("filters", "1")];
    let bad: Vec<_> = bad.iter().map(|(k, v)| (*k, crate::Setting::Text(v))).collect();
    let error = crate::build("htb", &bad, Rate(8_000)).unwrap_err().to_string();
    assert_eq!(error, "filters.0.to: 1 is no class of packets");
}
