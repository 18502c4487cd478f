//! Lines become parameters and parameters lines without a loss, for every qdisc that has a
//! discipline here.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::cast;
use sojourn_aqm::params::ParamRow;
use sojourn_aqm::registry::{self, REGISTRY};
use sojourn_aqm::tc::kinds::KINDS;
use sojourn_aqm::tc::line::words_of_name;
use sojourn_aqm::tc::table::{Arg, Becomes, Kind, Line, Ours, Unit};
use sojourn_aqm::tc::{Discipline, Form, export};
use sojourn_aqm::{Rate, Setting};

const RATE: Rate = Rate(20_000_000);

/// Qdiscs whose discipline is in the registry.
fn translated() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().copied().filter(|kind| match kind.becomes {
        Becomes::Discipline(name) => registry::find(name).is_ok(),
        _ => false,
    })
}

fn build(discipline: &Discipline) -> Result<Vec<ParamRow>, sojourn_aqm::Error> {
    let settings: Vec<_> =
        discipline.settings.iter().map(|(k, v)| (k.as_str(), Setting::Text(v))).collect();
    sojourn_aqm::build(discipline.name, &settings, RATE).map(|built| built.params)
}

/// A random argument that `unit` can have, in the range of its word.
fn random(unit: Unit, range: Option<(u64, u64)>, rng: &mut Pcg64Mcg) -> Option<Arg> {
    let (least, most) = range.unwrap_or((1, 100_000));
    let whole = least + rng.next_u64() % (most.min(least + 100_000) - least + 1);
    Some(match unit {
        Unit::Choice(words) => Arg::Word(words[cast::index(rng.next_u64() % words.len() as u64)].0),
        Unit::Time => Arg::Whole((1 + whole % 9_000_000) * 1_000),
        Unit::Millis => Arg::Whole((1 + whole % 3_600_000) * 1_000_000),
        Unit::Seconds => Arg::Whole(whole % 86_400 * 1_000_000_000),
        Unit::Rate => Arg::Whole(whole * 8_000),
        Unit::Probability | Unit::Number => Arg::Number((1 + whole % 999) as f64 / 1000.0),
        Unit::Hundredths | Unit::Percent => Arg::Number((whole % 100) as f64 / 100.0),
        Unit::Bytes => Arg::Whole(whole.max(64)),
        Unit::Packets | Unit::Count | Unit::Integer | Unit::PlainBytes => Arg::Whole(whole),
        Unit::Threshold => Arg::Text(format!("{}p", whole % 1000 + 1)),
        Unit::Words(words) => {
            let (word, numbers) = words[cast::index(rng.next_u64() % words.len() as u64)];
            Arg::Text(if numbers == 1 { format!("{word} {}", whole % 256) } else { word.into() })
        }
        Unit::Signed if whole.is_multiple_of(2) => Arg::Text(format!("-{whole}")),
        Unit::Signed => Arg::Text(whole.to_string()),
        Unit::Nanos | Unit::Numbers | Unit::Text | Unit::Several(_) | Unit::Curve => return None,
    })
}

/// A random line of `kind`: each word that has a meaning here is given in half of the cases.
fn random_line(kind: &'static Kind, rng: &mut Pcg64Mcg) -> Line {
    let mut line = Line::new(kind);
    for word in kind.words {
        let means = matches!(word.ours, Ours::To(_) | Ours::Scaled(..) | Ours::Computed);
        let chosen = means && rng.next_u64().is_multiple_of(2);
        if let Some(arg) = random(word.unit, word.range, rng).filter(|_| chosen) {
            line.set(word.name, arg);
        }
    }
    line
}

/// The same text read again, as `tc` completes it; none if tc would refuse it.
fn read(line: &Line) -> Option<Line> {
    Line::parse(&line.write_given(), Form::Command).ok()
}

#[test]
fn a_line_survives_the_way_to_parameters_and_back() {
    let mut rng = Pcg64Mcg::seed_from_u64(19);
    // gred has several commands (`gred.rs`).
    for kind in translated().filter(|kind| kind.name != "gred") {
        let mut tried = 0;
        for _ in 0..400 {
            let Some(line) = read(&random_line(kind, &mut rng)) else { continue };
            let discipline = line.discipline().unwrap();
            // Ranges here may be narrower than the kernel's.
            let Ok(params) = build(&discipline) else { continue };
            let out = export(discipline.name, &params, Some(RATE)).unwrap();
            let text = out.line.write();
            let again = Line::parse(&text, Form::Command).unwrap_or_else(|e| panic!("{text}: {e}"));
            let back = again.discipline().unwrap();
            assert_eq!(
                (back.name, &back.settings),
                (discipline.name, &discipline.settings),
                "{line:?}: {text}"
            );
            let again = export(back.name, &build(&back).unwrap(), Some(RATE)).unwrap();
            assert_eq!(again.line.write(), text, "the export of {line:?} is stable");
            tried += 1;
        }
        assert!(tried > 0, "{}: no random line was valid", kind.name);
    }
}

#[test]
fn defaults_of_every_discipline_export_to_a_line_that_reads_back() {
    let mut exported = 0;
    for entry in REGISTRY {
        let Ok(out) = export(entry.name, &entry.params(), Some(RATE)) else {
            let served = translated().any(|k| k.becomes == Becomes::Discipline(entry.name));
            assert!(!served, "{} has a qdisc", entry.name);
            continue;
        };
        let text = out.line.write();
        let back = Line::parse(&text, Form::Command).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(back.discipline().unwrap().name, entry.name, "{text}");
        exported += 1;
    }
    assert!(exported >= 12, "{exported}");
}

#[test]
fn every_default_of_the_tables_can_be_read_and_is_in_range() {
    for kind in KINDS {
        for word in kind.words {
            let Some(arg) = word.default_arg() else { continue };
            assert_eq!(word.check(&arg), Ok(()), "{} {}", kind.name, word.name);
        }
        let names: Vec<_> = kind.words.iter().map(|w| w.name).collect();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len(), "{}", kind.name);
    }
}

#[test]
fn parameters_named_by_the_tables_exist() {
    let mut absent = Vec::new();
    for kind in translated() {
        let Becomes::Discipline(name) = kind.becomes else { continue };
        let rows = registry::find(name).unwrap().params();
        let words = kind.words.iter().filter_map(|word| match word.ours {
            Ours::To(name) | Ours::Scaled(name, _) => Some(name),
            _ => None,
        });
        for ours in words
            .chain(kind.fixed.iter().map(|fixed| fixed.name))
            .chain(kind.rules.parameters.iter().copied())
        {
            if !rows.iter().any(|row| row.name == ours) {
                absent.push(format!("{name}.{ours}"));
            }
        }
    }
    assert_eq!(absent, [""; 0]);
}

#[test]
fn words_and_their_units_have_names() {
    let codel = ["limit", "target", "interval", "ecn", "noecn", "ce_threshold"];
    let mut words = words_of_name("codel");
    assert!(codel.iter().all(|word| words.contains(word)) && words.len() == 6, "{words:?}");
    words = words_of_name("codle");
    assert_eq!(words, [""; 0]);
    let names = [Unit::Time, Unit::Nanos, Unit::Rate, Unit::Packets].map(Unit::name);
    assert_eq!(names, ["time", "time (bare: ns)", "rate", "packets"]);
}

/// The kernel keeps the average in 32 bits: 17 for 90,000 bytes leave 14 for the weight.
#[test]
fn the_weight_of_red_is_limited_by_the_threshold() {
    let read = |log: u32| {
        let text = format!("red limit 400000b min 30000b max 90000b ewma {log}");
        Line::parse(&text, Form::Shown).map(|line| line.whole("ewma"))
    };
    assert_eq!(read(14), Ok(14));
    let error = read(15).unwrap_err().to_string();
    assert!(error.contains("90000 is too large for the kernel's 32 bits"), "{error}");
}

/// Lines of tc, and our disciplines for them: worked examples of the manual pages and of the table
/// of units.
const EXAMPLES: &[(&str, &str)] = &[
    ("fq_codel", "fq_codel(limit=10240p)"),
    ("fq_codel limit 1000 target 5ms noecn", "fq_codel(limit=1000p, ecn=false)"),
    ("tc: codel target 20000 interval 100ms ecn", "codel(limit=1000p, target=20ms, ecn=true)"),
    ("pfifo limit 1k", "droptail(limit=1024p)"),
    ("bfifo limit 1mbit", "droptail(limit=131072B)"),
    ("pfifo_head_drop limit 50", "droptail(limit=50p, policy=head)"),
    (
        "red limit 400000 avpkt 1000",
        "red(limit=400kB, min_th=33333B, max_th=100kB, max_p=0.02, w_q=0.03125, packet=1kB, \
         bandwidth=10mbit)",
    ),
    (
        "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn probability 0.02",
        "red(limit=400kB, min_th=30kB, max_th=90kB, max_p=0.02, w_q=0.03125, \
         packet=1kB, bandwidth=10mbit, ecn=true)",
    ),
    (
        "red limit 400000 min 30000 avpkt 1000 burst 55 probability 0.02",
        "red(limit=400kB, min_th=30kB, max_th=90kB, max_p=0.02, w_q=0.03125, packet=1kB, \
         bandwidth=10mbit)",
    ),
    (
        "red limit 400000 min 30000 max 90000 avpkt 1000 burst 30",
        "red(limit=400kB, min_th=30kB, max_th=90kB, max_p=0.02, w_q=0.5, packet=1kB, \
         bandwidth=10mbit)",
    ),
    ("sfb max 26", "sfb(limit=1000p, max=26, bin_size=21, d1=0.0005, d2=0.00005, ecn=true)"),
    (
        "sfb rehash 600 target 40",
        "sfb(limit=1000p, max=50, bin_size=40, rehash_interval=600ms, d1=0.0005, \
         d2=0.00005, ecn=true)",
    ),
    (
        "pie alpha 4 beta 32",
        "pie(limit=1000p, alpha=0.25, beta=2, derandomise=true, dq_weight=0.125, packet=1514B)",
    ),
    ("sfq perturb 10 headdrop", "sfq(limit=127p, quantum=1514B, drop=head, perturb=10s)"),
    (
        "cake bandwidth 20mbit diffserv4 docsis ether-vlan ack-filter regional memlimit 4mb",
        "cake(bandwidth=20mbit, tins=diffserv4, overhead=22 mpu 64, ack_filter=on, rtt=30ms, \
         limit=4194304B, memory=truesize)",
    ),
    (
        "cake autorate-ingress pppoe-ptm",
        "cake(autorate_ingress=true, overhead=30 ptm, limit=auto, memory=truesize)",
    ),
    (
        "ets strict 2",
        "ets(flows=2, strict=2, priomap=1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1, limits=1000p, \
         limit=2000p, drop=tail)",
    ),
    ("prio bands 4", "prio(flows=4, limits=1000p, limit=4000p, drop=tail)"),
];

#[test]
fn worked_examples() {
    let settings = |text: &str| {
        let discipline = sojourn_aqm::tc::parse(text).unwrap();
        let named = discipline.settings.iter().filter(|(k, _)| k != "variant");
        let pairs = named.map(|(k, v)| format!("{k}={v}"));
        format!("{}({})", discipline.name, pairs.collect::<Vec<_>>().join(", "))
    };
    for (line, ours) in EXAMPLES {
        let sorted = |text: &str| {
            let mut parts: Vec<String> = text
                .trim_end_matches(')')
                .split(['(', ','])
                .map(|p| p.trim().to_string())
                .collect();
            parts.sort();
            parts
        };
        assert_eq!(sorted(&settings(line)), sorted(ours), "{line}: {}", settings(line));
    }
}
