//! Unit tests of HFSC. Deadlines follow the definition: the minimum of service curves.

use super::*;
use crate::params::Value;
use crate::random::Random;
use crate::testing::Bench;
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use std::prelude::v1::*;

/// Link of the bench, bit/s: a packet of 1000 bytes takes 1 ms.
const LINK: f64 = 8e6;

/// Service curve in bytes and seconds.
#[derive(Clone, Copy)]
struct Plain {
    m1: f64,
    d: f64,
    m2: f64,
}

impl Plain {
    fn text(self) -> String {
        let Plain { m1, d, m2 } = self;
        format!("{}bit/{}us/{}bit", m1, d * 1e6, m2)
    }

    /// Time after which the service is `bytes`.
    fn time(self, bytes: f64) -> f64 {
        let first = self.m1 * self.d / 8.0;
        if bytes <= first {
            bytes * 8.0 / self.m1
        } else {
            self.d + (bytes - first) * 8.0 / self.m2
        }
    }
}

/// Leaf with its activations (time and service until then), service, and queue of deadlines.
struct Leaf {
    curve: Plain,
    starts: Vec<(f64, f64)>,
    service: f64,
    arrived: f64,
    queue: Vec<(u32, f64)>,
}

/// Runs random bursts of three leaves that have only real-time curves; returns the largest delay
/// beyond a deadline, in packets of 1500 bytes, and the number of packets.
fn lateness(curves: [Plain; 3], seed: u64) -> (f64, u32) {
    let rt = curves.map(Plain::text).join(" ");
    let mut q = Bench::new("hfsc", &[("rt", &rt), ("parents", "0")]);
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let new = |curve| Leaf { curve, starts: vec![], service: 0.0, arrived: 0.0, queue: vec![] };
    let mut leaves = curves.map(new);
    let (mut now, mut next, mut free, mut body) = (0u64, 0u64, 0u64, 0u32);
    let (mut latest, mut sent) = (f64::MIN, 0);
    while sent < 3000 {
        q.at_ns(now);
        if now >= next {
            let i = rng.below(3) as usize;
            for _ in 0..1 + rng.below(6) {
                let len = [100, 700, 1500][rng.below(3) as usize];
                body += 1;
                let leaf = &mut leaves[i];
                let at = now as f64 / 1e9;
                if leaf.queue.is_empty() {
                    leaf.starts.push((at, leaf.service));
                }
                leaf.arrived += f64::from(len);
                // Minimum of all curves: the deadline is the latest of their times.
                let time =
                    |(from, service): &(f64, f64)| from + leaf.curve.time(leaf.arrived - service);
                let deadline = leaf.starts.iter().map(time).fold(f64::MIN, f64::max);
                leaf.queue.push((len, deadline));
                assert_eq!(q.put_class(i as u16 + 1, i as u32 + 10 * body, len), [0; 0]);
            }
            next = now + u64::from(rng.below(9_000_000));
        }
        if now >= free
            && let Some(body) = q.get().0
        {
            let leaf = &mut leaves[body as usize % 10];
            let (len, deadline) = leaf.queue.remove(0);
            leaf.service += f64::from(len);
            free = now + u64::from(len) * 1000;
            latest = latest.max((free as f64 / 1e9 - deadline) * LINK / 8.0 / 1500.0);
            sent += 1;
        }
        let wake = if now < free { free } else { q.ready_at().map_or(u64::MAX, |at| at.0) };
        now = next.min(wake).max(now);
    }
    (latest, sent)
}

#[test]
fn deadlines_are_kept_within_a_packet() {
    let line = |m2| Plain { m1: m2, d: 0.0, m2 };
    let curve = |m1, ms: f64, m2| Plain { m1, d: ms / 1e3, m2 };
    for curves in [
        [line(4e6), line(2e6), line(2e6)],
        [curve(5e6, 10.0, 1e6), line(1e6), curve(2e6, 3.0, 1e6)],
        [curve(1e6, 5.0, 5e6), curve(4e6, 20.0, 1e6), line(1e6)],
    ] {
        for seed in 0..5 {
            let (latest, sent) = lateness(curves, seed);
            assert!(latest <= 1.001, "seed {seed}: {latest} packets late of {sent}");
            assert!(latest > 0.0, "seed {seed}: never close to a deadline");
        }
    }
}

/// Bytes per second of each class over 4 s, while packets of 1000 bytes wait in the `busy` ones.
fn shares(settings: &[(&str, &str)], busy: &[u16]) -> Vec<u64> {
    let mut q = Bench::new("hfsc", &[settings, &[("children", "droptail(limit=9999p)")]].concat());
    for class in busy {
        (0..5000).for_each(|_| drop(q.put_class(*class, (*class).into(), 1000)));
    }
    let mut bytes = [0; 8];
    for ms in 0..4000 {
        q.at_ms(ms);
        if let Some(class) = q.get().0 {
            bytes[class as usize] += 1000;
        }
    }
    bytes.iter().map(|b| b / 4).collect()
}

fn near(bytes: &[u64], expected: &[u64]) {
    let close = |(a, b): (&u64, &u64)| a.abs_diff(*b) <= b / 50 + 1500;
    assert!(bytes.iter().zip(expected).all(close), "{bytes:?}, not {expected:?}");
}

#[test]
fn active_classes_share_by_their_curves_level_by_level() {
    let tree =
        [("ls", "8mbit 2mbit 6mbit 1mbit 3mbit"), ("parents", "0 1 1 3 3"), ("default", "2")];
    near(&shares(&tree, &[2, 4, 5]), &[0, 0, 250_000, 0, 187_500, 562_500]);
    near(&shares(&tree, &[2, 4]), &[0, 0, 250_000, 0, 750_000, 0]);
    near(&shares(&tree, &[4, 5]), &[0, 0, 0, 0, 250_000, 750_000]);
}

#[test]
fn an_upper_limit_holds_for_a_class_and_all_below_it() {
    let tree = [("ls", "8mbit 4mbit 4mbit"), ("ul", "none none 1mbit")];
    near(&shares(&tree, &[3]), &[0, 0, 0, 125_000]);
    near(&shares(&tree, &[2, 3]), &[0, 0, 875_000, 125_000]);
    let tree = [("ls", "8mbit 2mbit 2mbit"), ("ul", "2mbit")];
    near(&shares(&tree, &[2, 3]), &[0, 0, 125_000, 125_000]);
}

#[test]
fn real_time_comes_before_link_sharing() {
    // Shares of 1 to 3, of which class 2 has 4 Mbit/s for sure.
    let tree = [("ls", "8mbit 1mbit 3mbit"), ("rt", "none 4mbit")];
    near(&shares(&tree, &[2, 3]), &[0, 0, 500_000, 500_000]);
}

#[test]
fn a_steep_first_segment_is_a_short_delay() {
    // 1500 bytes within 10 ms, while another class is busy; a linear curve would need 30 ms.
    let delay = |rt: &str| {
        let tree = [("ls", "8mbit 400kbit 7600kbit"), ("rt", rt)];
        let mut q = Bench::new("hfsc", &tree);
        (0..900).for_each(|body| drop(q.put_class(3, body, 1000)));
        for ms in 0..100 {
            q.at_ms(ms);
            q.get();
        }
        q.put_class(2, 9999, 1500);
        (100..).find(|ms| {
            q.at_ms(*ms);
            q.get().0 == Some(9999)
        })
    };
    assert!(delay("none 1200kbit/10ms/400kbit").unwrap() <= 110);
    assert!(delay("none none").is_some());
}

#[test]
fn curves_are_text_and_trees_that_are_none_are_refused() {
    for (text, canonical) in [
        ("2mbit", "2mbit"),
        ("10mbit/20ms/2mbit", "10mbit/20ms/2mbit"),
        ("0/5ms/1mbit", "0bit/5ms/1mbit"),
        ("1MB/s", "8mbit"),
        ("none", "none"),
    ] {
        let curve = ServiceCurve::read(Setting::Text(text)).unwrap();
        assert_eq!(curve.write(), canonical);
        assert_eq!(ServiceCurve::read(Setting::Text(canonical)).unwrap(), curve);
    }
    let error = |settings: &[(&str, &str)]| {
        let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, Setting::Text(v))).collect();
        crate::build("hfsc", &settings, Rate(8_000)).unwrap_err().to_string()
    };
    for (settings, message) in [
        (&[("ls", "1mbit/2ms")][..], "ls: \"1mbit/2ms\" is not a service curve, which is written"),
        (&[("ls", "1mbit 1mbit"), ("parents", "2 0")], "parents: class 1 has the parent 2, which"),
        (&[("ls", "1mbit 1mbit"), ("default", "1")], "default: class 1 is no leaf"),
        (&[("rt", "1mbit 1mbit")], "rt: class 1 has children, and a real-time curve"),
        (&[("rt", "none 1mbit")], "ls: class 1 has children, and no link-share curve"),
        (&[("ls", "1mbit"), ("ul", "1mbit 1mbit")], "ul: 2 values for 1 classes"),
        (&[("rt", "1mbit"), ("ul", "1mbit")], "ul: class 1 has an upper limit, and no link-share"),
        (&[("ls", "1mbit/2ms/0")], "ls: class 1 has an m2 below 8 bit/s"),
        (&[("ls", "none")], "ls: class 1 has no curve"),
    ] {
        let text = error(settings);
        assert!(text.starts_with(message), "{text}");
    }
}
