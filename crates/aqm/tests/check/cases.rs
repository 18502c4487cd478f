//! Cases of the suite: every discipline of the registry with many settings.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::params::{ParamRow, answers};
use sojourn_aqm::registry::{Built, QdiscEntry, REGISTRY};
use sojourn_aqm::{Env, Rate, Setting, Size};
use std::fmt;

/// Discipline with its settings.
#[derive(Clone)]
pub struct Case {
    pub entry: &'static QdiscEntry,
    pub settings: Vec<(String, String)>,
}

/// Link of every case: a packet of 1000 bytes takes 1 ms.
pub const RATE: Rate = Rate(8_000_000);

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name)?;
        self.settings.iter().try_for_each(|(k, v)| write!(f, " {k}={v}"))
    }
}

impl Case {
    /// A discipline with these settings.
    pub fn new(entry: &'static QdiscEntry, settings: &[(&str, &str)]) -> Case {
        let owned = settings.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        Case { entry, settings: owned.collect() }
    }

    /// Builds the discipline; None if the settings contradict each other.
    pub fn try_build(&self) -> Option<Built> {
        let settings: Vec<_> =
            self.settings.iter().map(|(k, v)| (k.as_str(), Setting::Text(v))).collect();
        self.entry.build(&settings, &Env::new(RATE)).ok()
    }

    /// Builds the discipline.
    pub fn build(&self) -> Built {
        self.try_build().unwrap_or_else(|| panic!("{self} does not build"))
    }
}

/// Value of the parameter `name` of a discipline.
pub fn value<'a>(built: &'a Built, name: &str) -> Option<&'a str> {
    built.params.iter().find(|row| row.name == name).map(|row| row.value.as_str())
}

/// Buffer size of a discipline; every discipline has one.
pub fn limit(built: &Built) -> Size {
    match value(built, "limit").expect("a discipline has a limit") {
        "auto" => Size::Packets(1_000_000_000_000),
        size => size.parse().unwrap(),
    }
}

/// Settings for many disciplines; those a discipline does not have are omitted.
const SHARED: &[&[(&str, &str)]] = &[
    &[],
    &[("limit", "1p")],
    &[("limit", "7p"), ("ecn", "false")],
    &[("limit", "7p"), ("ecn", "true")],
    &[("limit", "1500B")],
    &[("limit", "9000B"), ("ecn", "true")],
    &[("limit", "64kB"), ("ecn", "false")],
    &[("limit", "40p"), ("flows", "1"), ("ecn", "true")],
    &[("limit", "40p"), ("flows", "3"), ("quantum", "64B"), ("drop_batch", "3")],
    &[("limit", "30kB"), ("flows", "3"), ("drop", "head"), ("depth", "2"), ("perturb", "20ms")],
    &[("limit", "30kB"), ("flows", "3"), ("drop", "tail"), ("depth", "1"), ("perturb", "1ms")],
    // AQMs that act at once, so that short runs have drops.
    &[("limit", "50p"), ("target", "1us"), ("interval", "1us"), ("ecn", "true")],
    &[("limit", "50p"), ("target", "1ms"), ("interval", "5ms"), ("ecn", "false")],
    &[("limit", "50p"), ("w_q", "0.5"), ("min_th", "2p"), ("max_th", "6p"), ("ecn", "true")],
    &[("limit", "50p"), ("w_q", "1"), ("min_th", "0B"), ("max_th", "6kB"), ("ecn", "false")],
    // Shapers below and above the rate of the link.
    &[("limit", "50p"), ("bandwidth", "7mbit"), ("rtt", "1ms"), ("overhead", "conservative")],
    &[("limit", "64kB"), ("bandwidth", "6mbit"), ("ingress", "true"), ("ack_filter", "on")],
    &[("limit", "50p"), ("bandwidth", "9mbit"), ("isolation", "flows"), ("rtt", "1us")],
    // The same for AQMs with an integral.
    &[
        ("limit", "50p"),
        ("a", "0.03"),
        ("b", "0.02"),
        ("w", "1000"),
        ("q_ref", "3p"),
        ("m_max", "4"),
    ],
    &[("limit", "50p"), ("gamma", "0.5"), ("phi", "1.1"), ("period", "1ms"), ("b_star", "3kB")],
    &[
        ("limit", "50p"),
        ("t_update", "1ms"),
        ("max_burst", "0s"),
        ("packet", "1B"),
        ("ecn", "true"),
    ],
];

/// Every discipline with the shared settings, with each value of each of its choices, and with
/// `random` settings drawn from the ranges of its parameters.
pub fn all(random: usize, seed: u64) -> Vec<Case> {
    REGISTRY.iter().flat_map(|entry| of(entry, random, seed)).collect()
}

fn of(entry: &'static QdiscEntry, random: usize, seed: u64) -> Vec<Case> {
    let rows = entry.params();
    let known = |name: &str| rows.iter().any(|row| answers(row, name));
    let shaper = |settings: &&&[(&str, &str)]| settings.iter().any(|(k, _)| *k == "bandwidth");
    let fitting = SHARED.iter().filter(|s| known("bandwidth") || !shaper(s));
    let shared = fitting.map(|settings| {
        let fit: Vec<_> = settings.iter().copied().filter(|(k, _)| known(k)).collect();
        Case::new(entry, &fit)
    });
    let words = rows.iter().flat_map(|row| {
        let words = row.kind.split('|').filter(|_| row.kind.contains('|'));
        words.flat_map(move |word| {
            ["30p", "20kB"].map(|limit| Case::new(entry, &[("limit", limit), (row.name, word)]))
        })
    });
    let mut cases: Vec<Case> = shared.chain(words).filter(|c| c.try_build().is_some()).collect();
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    // Bounded: for every known discipline at least one draw in a hundred builds.
    let drawn: Vec<Case> = (0..100 * random)
        .map(|_| Case { entry, settings: draw(&rows, &mut rng) })
        .filter(|case| case.try_build().is_some())
        .take(random)
        .collect();
    assert_eq!(drawn.len(), random, "{}: too few random settings build", entry.name);
    cases.extend(drawn);
    cases
}

/// Disciplines of classes: FIFO queues, AQMs, schedulers, shapers, and trees.
const CHILDREN: &[&str] = &[
    "droptail",
    "droptail(limit=3p)",
    "codel(target=1ms, interval=5ms, ecn=true)",
    "pie(limit=30p)",
    "red(limit=30p, w_q=0.5, min_th=2p, max_th=6p)",
    "fq_codel(flows=3, quantum=300B)",
    "sfq(limit=20p)",
    "fq",
    "dualpi2",
    "cake(bandwidth=7mbit)",
    "tbf(rate=7mbit, burst=3000B, limit=20p)",
    "tbf(rate=9mbit, children=fq_codel(flows=2))",
    "multiq(flows=2, children=codel tbf(rate=7mbit))",
    "prio(children=fq_codel(flows=2) tbf(rate=9mbit) droptail)",
    "htb(rates=8mbit 3mbit 5mbit, children=codel sfq, filters=2(dscp=EF) 3(class=0-40))",
    "hfsc(ls=8mbit 3mbit 5mbit, rt=none 2mbit/5ms/1mbit, ul=7mbit, children=codel sfq)",
    "drr(flows=2, children=tbf(rate=7mbit) fq_codel(flows=2))",
];

/// Filters with classes that most disciplines have.
const FILTERS: &[&str] = &[
    "0",
    "1",
    "1(class=0-30)",
    "2(dscp=EF)",
    "0(max_length=500B)",
    "1(pure_ack=true)",
    "2(ecn=ce)",
];

/// Draws values in range for about half of the parameters.
pub fn draw(rows: &[ParamRow], rng: &mut Pcg64Mcg) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    for row in rows {
        // A shaper that is much slower than the link would still be busy when a test ends; and
        // what the kernel needs for a packet may exceed a buffer that holds it.
        if matches!(row.name, "bandwidth" | "rate" | "peakrate" | "maxrate" | "idleslope") {
            let rates = ["auto", "7mbit", "9mbit", "1gbit"];
            let rate = rates[rng.next_u32() as usize % rates.len()];
            settings.push((row.name.to_string(), rate.to_string()));
        } else if matches!(row.name, "rates" | "ceils") {
            let rates = ["7mbit", "9mbit 5mbit", "8mbit 3mbit 6mbit"];
            let rates = rates[rng.next_u32() as usize % rates.len()];
            settings.push((row.name.to_string(), rates.to_string()));
        } else if row.kind == "list of service curve" {
            let all = match row.name {
                "ls" => &["", "8mbit", "9mbit 5mbit", "8mbit 3mbit 6mbit/2ms/2mbit"][..],
                "rt" => {
                    &["", "none 3mbit", "none 9mbit/2ms/1mbit 2mbit", "none none 1mbit/9ms/7mbit"]
                }
                _ => &["", "7mbit", "none 6mbit", "none none 7mbit/1ms/6mbit"],
            };
            let list = all[rng.next_u32() as usize % all.len()];
            settings.push((row.name.to_string(), list.to_string()));
        } else if matches!(row.name, "children" | "filters") {
            let all = if row.name == "children" { CHILDREN } else { FILTERS };
            let draws = (0..rng.next_u32() % 4).map(|_| all[rng.next_u32() as usize % all.len()]);
            let list = draws.collect::<Vec<_>>().join(" ");
            settings.extend((!list.is_empty()).then_some((row.name.to_string(), list)));
        } else if matches!(row.name, "memory" | "autorate_ingress") {
            continue;
        } else if row.name == "limit" || rng.next_u32().is_multiple_of(2) {
            settings.extend(one(row, rng).map(|value| (row.name.to_string(), value)));
        }
    }
    settings
}

/// Draws a value of `row`, uniform over its orders of magnitude.
fn one(row: &ParamRow, rng: &mut Pcg64Mcg) -> Option<String> {
    let kind = row.kind.trim_end_matches(" or auto");
    if let Some(kind) = kind.strip_prefix("list of ") {
        let of = ParamRow { kind: kind.into(), ..row.clone() };
        let values = (0..1 + rng.next_u32() % 3).map(|_| one(&of, rng));
        return values.collect::<Option<Vec<_>>>().map(|list| list.join(" "));
    }
    if kind == "flag" {
        return Some((rng.next_u32() & 1 == 1).to_string());
    }
    if kind.contains('|') {
        let words: Vec<&str> = kind.split('|').collect();
        return Some(words[rng.next_u32() as usize % words.len()].to_string());
    }
    let (lo, hi) = row.range.split_once(" to ")?;
    if kind == "number" {
        let (lo, hi): (f64, f64) = (lo.parse().unwrap(), hi.parse().unwrap());
        let share = f64::from(rng.next_u32()) / f64::from(u32::MAX);
        let low = f64::from(rng.next_u32() % 3) / 2.0; // small values as often as large ones
        return Some((lo + (hi - lo) * (share * (1.0 - low * 0.999))).to_string());
    }
    let whole = |text: &str| -> u64 {
        match kind {
            "duration" => text.parse::<sojourn_aqm::Span>().unwrap().0,
            "rate" => text.parse::<Rate>().unwrap().0,
            "integer" => text.parse().unwrap(),
            _ => text.parse::<Size>().unwrap().number(),
        }
    };
    let n = magnitude(whole(lo), whole(hi), rng);
    Some(match kind {
        "duration" => format!("{n}ns"),
        "rate" => format!("{n}bit"),
        // Large tables of queues take long to build and test nothing more.
        "integer" => n.min(whole(lo).max(5000)).to_string(),
        "bytes" => format!("{n}B"),
        "size" if rng.next_u32() & 1 == 1 => format!("{n}B"),
        "size" => format!("{n}p"),
        other => panic!("{}: unknown kind {other:?}", row.name),
    })
}

/// Integer in `lo..=hi`; its number of bits is drawn first.
fn magnitude(lo: u64, hi: u64, rng: &mut Pcg64Mcg) -> u64 {
    let bits = rng.next_u32() % (65 - hi.leading_zeros());
    let n = rng.next_u64() & ((1u64 << bits) - 1) | (1 << bits >> 1);
    n.clamp(lo, hi)
}
