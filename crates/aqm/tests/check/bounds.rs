//! Every parameter of every discipline below, at and above its bounds: settings as text and
//! assigned fields are refused with the same error, and what is accepted works.

use crate::cases::Case;
use crate::ledger::Ledger;
use crate::{bytes, ops, packet};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::params::ParamRow;
use sojourn_aqm::registry::{QdiscEntry, REGISTRY};
use sojourn_aqm::{Ecn, Env, LEN_MAX, Link, LinkSpec, Rate, Result, Setting, Size, Span, Time};

/// Values of `row` around its bounds, and the index of the first one that must be refused.
fn around(row: &ParamRow) -> (Vec<String>, usize) {
    let kind = row.kind.trim_end_matches(" or auto").trim_start_matches("list of ");
    let (lo, hi) = match row.range.split_once(" to ") {
        Some((lo, hi)) => (lo, hi),
        None => match row.range.strip_suffix(" or more") {
            Some(lo) => (lo, "1000000000000p"),
            None => return (Vec::new(), 0),
        },
    };
    let at = [lo.to_string(), hi.to_string()];
    let outside: Vec<String> = if kind == "number" {
        let (lo, hi): (f64, f64) = (lo.parse().unwrap(), hi.parse().unwrap());
        [lo.next_down(), hi.next_up(), -1.0, 1e300].into_iter().map(|x| x.to_string()).collect()
    } else {
        let (lo, hi) = (whole(kind, lo), whole(kind, hi));
        let out = [lo.checked_sub(1), hi.checked_add(1), Some(0), Some(u64::MAX)];
        out.into_iter()
            .flatten()
            .filter(|n| !(lo..=hi).contains(n))
            .map(|n| unit(kind, n))
            .collect()
    };
    let accepted = at.len();
    (at.into_iter().chain(outside).collect(), accepted)
}

/// The number of the smallest units in `text`.
fn whole(kind: &str, text: &str) -> u64 {
    match kind {
        "duration" => text.parse::<Span>().unwrap().0,
        "rate" => text.parse::<Rate>().unwrap().0,
        "integer" => text.parse().unwrap(),
        "size" | "bytes" => text.parse::<Size>().unwrap().number(),
        other => panic!("unknown kind {other:?}"),
    }
}

/// `n` of the smallest units as text.
fn unit(kind: &str, n: u64) -> String {
    let unit = match kind {
        "duration" => "ns",
        "rate" => "bit",
        "size" => "p",
        "bytes" => "B",
        _ => "",
    };
    format!("{n}{unit}")
}

/// True for a count that may be the size of a table: a million queues take long to build, and
/// show at one rate what they show at all.
fn is_large(row: &ParamRow, value: &str) -> bool {
    row.kind == "integer" && whole("integer", value) > 10_000
}

/// The discipline with `settings` as text and by assigned fields; both agree on the error.
fn both(entry: &'static QdiscEntry, settings: &[(&str, Setting<'_>)], rate: Rate) -> Result<()> {
    let env = Env::new(rate);
    let [text, typed] = [entry.build(settings, &env), entry.build_assigned(settings, &env)]
        .map(|built| built.map(|discipline| discipline.params));
    assert_eq!(text, typed, "{}: {settings:?} at {rate}", entry.name);
    text.map(|_| ())
}

#[test]
fn typed_parameters_are_refused_as_text_is() {
    let mut refused = 0;
    for entry in REGISTRY {
        for row in entry.params() {
            let (values, accepted) = around(&row);
            for (i, value) in values.iter().enumerate() {
                if i < accepted && is_large(&row, value) {
                    continue; // built below
                }
                let error = both(entry, &[(row.name, Setting::Text(value))], Rate(8_000_000)).err();
                let Some(error) = error else {
                    assert!(i < accepted, "{}: {} = {value} is accepted", entry.name, row.name);
                    continue;
                };
                // At its bounds it may contradict another parameter.
                let range = error.text().contains("is out of range, allowed: ");
                assert_eq!(range, i >= accepted, "{}: {error}", entry.name);
                assert!(error.path() == row.name || i < accepted, "{}: {error}", entry.name);
                refused += i32::from(range);
            }
        }
    }
    assert!(refused > 500, "{refused} refusals");
}

#[test]
fn accepted_bounds_work_at_extreme_rates() {
    let noise = bytes(&mut Pcg64Mcg::seed_from_u64(1), 400);
    for entry in REGISTRY {
        for row in entry.params() {
            let (values, accepted) = around(&row);
            for value in &values[..accepted] {
                for rate in [8_000_000, 1, u64::MAX] {
                    let settings = vec![(row.name.to_string(), value.clone())];
                    let case = Case { entry, settings };
                    if is_large(&row, value) && rate != 8_000_000 {
                        continue;
                    }
                    eprintln!("{case} at {rate} bit/s");
                    let built =
                        entry.build(&[(row.name, Setting::Text(value))], &Env::new(Rate(rate)));
                    let Ok(built) = built else { continue };
                    let mut ledger = Ledger::of(built, 1);
                    ops::apply(&mut ledger, &noise);
                    (0..50).for_each(|i| ledger.put(packet(1 + i * 30, 1000 + i % 5, Ecn::Ect0)));
                    ledger.wait(Span::s(10));
                    ledger.drain();
                }
            }
        }
    }
}

#[test]
fn a_link_refuses_rates_out_of_range_and_works_at_the_ends() {
    let link = |rate: u64, delay| {
        let qdisc = sojourn_aqm::build("codel", &[], Rate(rate.max(1))).unwrap().qdisc;
        Link::new(LinkSpec::new(Rate(rate), delay), qdisc, Pcg64Mcg::seed_from_u64(1))
    };
    let max = LinkSpec::RATE_MAX.0;
    for entry in REGISTRY {
        let error =
            entry.build(&[], &Env::new(Rate(0))).expect_err("no discipline for a rate of 0");
        assert_eq!(error.path(), "rate", "{}: {error}", entry.name);
    }
    for rate in [0, max + 1, u64::MAX] {
        let error = link(rate, Span::ZERO).expect_err("refused").to_string();
        assert!(error.starts_with("rate: ") && error.contains("out of range, allowed: 1bit to "));
    }
    let longest = packet(LEN_MAX - 1, 0, Ecn::NotEct);
    for (rate, sent_at) in [(1, 8_589_934_584_000_000_000), (max, 8)] {
        let mut l = link(rate, Span::ZERO).unwrap();
        l.push(Time::ZERO, longest);
        assert_eq!(l.next_poll(), Some(Time(sent_at)), "{rate} bit/s");
        let mut far = link(rate, Span(u64::MAX)).unwrap();
        far.push(Time(5), longest);
        assert_eq!(far.next_poll(), Some(Time::NEVER));
    }
    // A change saturates, because it is made while packets flow and cannot return an error.
    let mut l = link(1, Span::ZERO).unwrap();
    l.may_change();
    l.change(Time(1), LinkSpec::new(Rate(u64::MAX), Span::ZERO));
    assert_eq!(l.spec().rate, LinkSpec::RATE_MAX);
    (0..5).for_each(|_| l.push(Time(2), longest));
    l.advance(Time(60));
    assert_eq!(l.stats().departed_packets, 5);
}

#[test]
fn no_number_is_without_a_range() {
    // A range is what refuses NaN and infinity in an assigned field.
    for entry in REGISTRY {
        for row in entry.params().iter().filter(|row| row.kind.contains("number")) {
            assert!(!row.range.is_empty(), "{}: {} has no range", entry.name, row.name);
        }
    }
}
