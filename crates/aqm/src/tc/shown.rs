//! Qdiscs as `tc qdisc show` prints them: a text for people, which is rounded, and JSON.

use super::kinds::gred;
use super::table::{Arg, Line, Unit, Word};
use super::units::size;
use crate::sorting::sort_by_key;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Words of a qdisc in the order of `tc qdisc show`, where it differs from the commands' order.
fn order(kind: &str) -> &'static [&'static str] {
    match kind {
        "sfb" => &["rehash", "db", "limit"],
        "codel" => &["limit", "target", "ce_threshold"],
        "fq_codel" => &["limit", "flows", "quantum", "target", "ce_threshold"],
        _ => &[],
    }
}

/// Words that `tc qdisc show` leaves out.
fn hidden(kind: &str, word: &str) -> bool {
    matches!(
        (kind, word),
        (
            "red" | "choke",
            "avpkt" | "burst" | "ewma" | "Scell_log" | "Plog" | "probability" | "bandwidth"
        ) | ("sfq", "flows")
            | ("fq_codel", "ce_threshold_selector")
    )
}

impl Line {
    /// Formats the words as `tc qdisc show` does, after the handle.
    pub fn shown(&self) -> String {
        if self.kind.name == "gred" {
            return gred::text(self);
        }
        let words = self.shown_words().into_iter();
        let words = words.filter_map(|(word, arg)| text(self.kind.name, word, &arg));
        words.collect::<Vec<String>>().join(" ")
    }

    /// Formats the words as the object `options` of `tc -j qdisc show`.
    pub fn shown_json(&self) -> String {
        if self.kind.name == "gred" {
            return gred::json(self);
        }
        let pairs = self.shown_words().into_iter();
        let pairs = pairs.filter_map(|(word, arg)| json(self.kind.name, word, &arg));
        format!("{{{}}}", pairs.collect::<Vec<String>>().join(","))
    }

    /// Words with their values, given or by default, in the order of the output.
    fn shown_words(&self) -> Vec<(&'static Word, Arg)> {
        let first = order(self.kind.name);
        let place = |word: &Word| {
            let index = first.iter().position(|name| *name == word.name);
            index.unwrap_or(first.len())
        };
        let kind = self.kind;
        let mut words: Vec<&'static Word> = kind.words.iter().collect();
        sort_by_key(&mut words, |word| place(word));
        let words = words.into_iter().filter(|word| !hidden(kind.name, word.name));
        words.filter_map(|word| self.get(word.name).map(|arg| (word, arg))).collect()
    }
}

/// Formats a word and its value; `None` if tc does not print it.
fn text(kind: &str, word: &Word, arg: &Arg) -> Option<String> {
    let name = word.name;
    let value = match (word.unit, arg) {
        (Unit::Choice(_), Arg::Word(on)) => {
            // cake also shows words that are off, except ingress.
            let off = match kind {
                "cake" => on.is_empty() || *on == "egress",
                _ => on.is_empty() || on.starts_with("no"),
            };
            return (!off).then(|| (*on).to_string());
        }
        (Unit::Words(_), Arg::Text(words)) => return Some(words.clone()),
        (Unit::Packets, Arg::Whole(n)) if name == "penalty_rate" => format!("{n}pps"),
        (Unit::Packets | Unit::Count, Arg::Whole(n)) => format!("{n}p"),
        (Unit::Integer, Arg::Whole(n)) if kind == "sfb" => {
            format!("{n}{}", if name == "penalty_rate" { "pps" } else { "p" })
        }
        (Unit::Bytes, Arg::Whole(n)) if kind == "fq_codel" && name == "quantum" => n.to_string(),
        // RED's sizes are printed with all digits.
        (Unit::Bytes, Arg::Whole(n)) => size(*n),
        (Unit::Time | Unit::Millis | Unit::Nanos, Arg::Whole(n)) => time(*n),
        (Unit::Seconds, Arg::Whole(0)) => return None,
        (Unit::Seconds, Arg::Whole(n)) => format!("{}sec", n / 1_000_000_000),
        (Unit::Probability, Arg::Number(x)) if kind == "sfb" => general(sixteenth_bit(*x), 6),
        (unit, arg) => unit.write(arg),
    };
    Some(format!("{name} {value}"))
}

/// Returns a word as a pair of JSON; `None` if tc does not print it.
fn json(kind: &str, word: &Word, arg: &Arg) -> Option<String> {
    let value = match (word.unit, arg) {
        (Unit::Choice(_), Arg::Word(on)) => {
            let off = on.is_empty() || on.starts_with("no");
            if off && !matches!(kind, "red" | "choke") {
                return None;
            }
            (!off).to_string()
        }
        (Unit::Time | Unit::Millis, Arg::Whole(ns)) => (ns / 1000).to_string(),
        (Unit::Seconds, Arg::Whole(0)) => return None,
        (Unit::Seconds, Arg::Whole(ns)) => (ns / 1_000_000_000).to_string(),
        (Unit::Rate, Arg::Whole(bits)) => (bits / 8).to_string(),
        (Unit::Hundredths, arg) => Unit::Hundredths.write(arg),
        (Unit::Probability, Arg::Number(x)) if kind == "sfb" => general(sixteenth_bit(*x), 6),
        (_, Arg::Whole(n)) => n.to_string(),
        (_, Arg::Number(x)) => x.to_string(),
        (_, Arg::List(list)) => {
            format!("[{}]", list.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
        }
        (unit, arg) => format!("{:?}", unit.write(arg)),
    };
    Some(format!("{:?}:{value}", word.name))
}

/// A probability as the kernel's SFB keeps it, in 65535ths.
fn sixteenth_bit(share: f64) -> f64 {
    libm::round(share * 65_535.0) / 65_535.0
}

/// Formats a time like tc: in seconds, milliseconds or microseconds with three digits.
pub fn time(ns: u64) -> String {
    let us = ns as f64 / 1e3;
    if us >= 1e6 {
        format!("{}s", general(us / 1e6, 3))
    } else if us >= 1e3 {
        format!("{}ms", general(us / 1e3, 3))
    } else {
        format!("{}us", ns / 1000)
    }
}

/// Formats like C's `%g` with `digits` significant digits, of a number that is not negative.
pub fn general(x: f64, digits: usize) -> String {
    let text = format!("{x:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| {
        if s.contains('.') {
            s.trim_end_matches('0').trim_end_matches('.').to_string()
        } else {
            s.to_string()
        }
    };
    let most = i32::try_from(digits).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= most {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    let decimals = usize::try_from(most - 1 - exponent).unwrap_or(0);
    trim(&format!("{x:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tc::Form;

    /// Output of iproute2 6.1 on Linux 6.1.
    const REAL: &[(&str, &str)] = &[
        ("pfifo limit 100", "limit 100p"),
        ("bfifo limit 15140", "limit 15140b"),
        ("prio bands 4", "bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"),
        ("red limit 400000 avpkt 1000", "limit 400000b min 33333b max 100000b"),
        ("choke limit 1000 bandwidth 10mbit ecn", "limit 1000p min 83p max 250p ecn"),
        (
            "sfb",
            "rehash 600s db 60s limit 1000p max 25p target 20p increment 0.000503548 decrement \
             4.57771e-05 penalty_rate 10pps penalty_burst 20p",
        ),
        (
            "sfq perturb 10 headdrop",
            "limit 127p quantum 1514b depth 127 headdrop divisor 1024 perturb 10sec",
        ),
        ("codel ecn", "limit 1000p target 5ms interval 100ms ecn"),
        (
            "fq_codel",
            "limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn \
             drop_batch 64",
        ),
        (
            "pie ecn bytemode dq_rate_estimator",
            "limit 1000p target 15ms tupdate 15ms alpha 2 beta 20 ecn bytemode dq_rate_estimator",
        ),
    ];

    #[test]
    fn words_are_printed_as_by_tc() {
        for (line, out) in REAL {
            let read = Line::parse(line, Form::Command).unwrap();
            assert_eq!(&read.shown(), out, "{line}");
            let name = line.split(' ').next().unwrap();
            let back = Line::parse(&format!("{name} {out}"), Form::Shown).unwrap();
            assert_eq!(back.shown(), read.shown(), "{line}");
        }
    }

    #[test]
    fn a_threshold_comes_before_the_interval() {
        for (line, out) in [
            ("codel ce_threshold 1ms", "limit 1000p target 5ms ce_threshold 1ms interval 100ms"),
            (
                "fq_codel ce_threshold 1ms",
                "limit 10240p flows 1024 quantum 1514 target 5ms ce_threshold 1ms interval 100ms \
                 memory_limit 32Mb ecn drop_batch 64",
            ),
        ] {
            assert_eq!(Line::parse(line, Form::Command).unwrap().shown(), out);
        }
    }

    /// Cake shows words that are off, too, except ingress.
    #[test]
    fn cake_names_what_is_off() {
        // Output of a router, from issue 274 of lynxthecat/cake-autorate.
        let out = "bandwidth 200Mbit besteffort triple-isolate nonat nowash no-ack-filter \
                   split-gso rtt 100ms noatm overhead 44";
        let read = Line::parse(&format!("cake {out}"), Form::Shown).unwrap();
        assert_eq!(read.shown(), out.replace("200Mbit", "200mbit"));
        let read = Line::parse("cake ingress wash", Form::Command).unwrap();
        assert!(read.shown().contains(" wash ingress no-ack-filter "), "{}", read.shown());
    }

    /// In JSON, times are in microseconds and rates in bytes per second; words that are off are
    /// left out.
    #[test]
    fn options_are_an_object_of_json() {
        for (line, json) in [
            ("codel", r#"{"limit":1000,"target":5000,"interval":100000}"#),
            ("codel ecn", r#"{"limit":1000,"target":5000,"interval":100000,"ecn":true}"#),
            (
                "sfq perturb 10",
                r#"{"limit":127,"quantum":1514,"depth":127,"divisor":1024,"perturb":10}"#,
            ),
        ] {
            assert_eq!(Line::parse(line, Form::Command).unwrap().shown_json(), json, "{line}");
        }
    }

    #[test]
    fn numbers_are_rounded_as_by_tc() {
        assert_eq!(
            [size(1514), size(33_554_432), size(131_072), size(32_770)],
            ["1514b", "32Mb", "128Kb", "32Kb"]
        );
        assert_eq!(
            [time(5_000_000), time(1_500_000), time(16_667_000), time(999_000)],
            ["5ms", "1.5ms", "16.7ms", "999us"]
        );
        assert_eq!(
            [general(0.02, 6), general(4.577_71e-5, 6), general(100.0, 3)],
            ["0.02", "4.57771e-05", "100"]
        );
    }
}
