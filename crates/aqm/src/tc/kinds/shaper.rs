//! Shapers and emulation, which become rate, delay and loss of a link.

use super::super::table::Ours::{Computed, Harmless, Lost, To};
use super::super::table::{Arg, Becomes, Change, Kind, Line, Params, Rules, Unit, Word};
use crate::error::{Error, Result};
use crate::tc::units;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

const FRAMING: &str = "a link counts the bytes of the packets";

/// `tbf`: token bucket filter.
pub static TBF: Kind = Kind {
    name: "tbf",
    becomes: Becomes::Discipline("tbf"),
    words: &[
        Word::new("limit", Unit::Bytes, "", To("limit")),
        Word::new("burst", Unit::Bytes, "", To("burst")).also(&["buffer", "maxburst"]),
        Word::new("rate", Unit::Rate, "", To("rate")),
        Word::new("mtu", Unit::Bytes, "", To("mtu")).also(&["minburst"]),
        Word::new("peakrate", Unit::Rate, "", To("peakrate")),
        Word::new("latency", Unit::Time, "", Computed).also(&["lat"]),
        Word::new("mpu", Unit::Bytes, "0", Lost(FRAMING)),
        Word::new("overhead", Unit::Integer, "0", Lost(FRAMING)),
        Word::new("linklayer", Unit::Text, "ethernet", Lost(FRAMING)),
    ],
    fixed: &[],
    rules: Rules {
        complete: complete_tbf,
        check: check_tbf,
        words: tbf_words,
        once: true,
        abbreviates: true,
        ..Rules::ALL
    },
    differs: "Linux can have another qdisc below it; tc import uses its rate for the link",
};

fn check_tbf(line: &Line) -> Result<()> {
    if line.given("limit").is_some() && line.given("latency").is_some() {
        let text = "and latency exclude each other: latency is the longest delay at this limit";
        return Err(Error::new(text).at("limit"));
    }
    Ok(())
}

fn complete_tbf(line: &mut Line) -> Result<()> {
    line.require("rate", "rate 1mbit")?;
    line.require("burst", "burst 32k")?;
    if line.given("limit").is_none() {
        if line.given("latency").is_none() {
            line.require("limit", "limit 100k, or latency 50ms")?;
        }
        // limit = rate x latency + burst, in bytes.
        let queued =
            u128::from(line.whole("rate") / 8) * u128::from(line.whole("latency")) / 1_000_000_000;
        let limit = u64::try_from(queued).unwrap_or(u64::MAX).saturating_add(line.whole("burst"));
        line.set("limit", Arg::Whole(limit));
    }
    if line.given("peakrate").is_some() {
        line.require("mtu", "mtu 1540 with peakrate")?;
    }
    Ok(())
}

fn tbf_words(params: &Params<'_>, line: &mut Line) -> Vec<String> {
    if params.text("peakrate") == "auto" && line.whole("mtu") == 1514 {
        line.unset("mtu"); // the default here, which matters with peakrate only
    }
    match params.rate {
        _ if line.given("rate").is_some() => Vec::new(),
        None => vec!["rate = auto: tc has no word for the rate of the link".to_string()],
        Some(rate) => {
            line.set("rate", Arg::Whole(rate.0 / 8 * 8));
            Vec::new()
        }
    }
}

const SHARE: Unit = Unit::Several(&[Unit::Percent, Unit::Percent]);

/// `netem`: delay, loss and rate.
pub static NETEM: Kind = Kind {
    name: "netem",
    becomes: Becomes::Link,
    words: &[
        Word::new("limit", Unit::Packets, "1000", Computed),
        Word::new("delay", Unit::Several(&[Unit::Nanos, Unit::Nanos, Unit::Percent]), "", Computed)
            .also(&["latency"]),
        Word::new("distribution", Unit::Text, "", Computed),
        Word::new("loss random", SHARE, "", Computed),
        Word::new("loss state", Unit::Several(&[Unit::Percent; 5]), "", Computed),
        Word::new("loss gemodel", Unit::Several(&[Unit::Percent; 4]), "", Computed),
        Word::new("loss", SHARE, "", Computed).also(&["drop"]),
        Word::new("corrupt", SHARE, "", Computed),
        Word::new("duplicate", SHARE, "", Computed),
        Word::new("reorder", SHARE, "", Computed),
        Word::new("gap", Unit::Integer, "0", Computed),
        Word::new(
            "rate",
            Unit::Several(&[Unit::Rate, Unit::Signed, Unit::Signed, Unit::Signed]),
            "",
            Computed,
        ),
        Word::new(
            "slot distribution",
            Unit::Several(&[Unit::Text, Unit::Nanos, Unit::Nanos]),
            "",
            Computed,
        ),
        Word::new("slot", Unit::Several(&[Unit::Nanos, Unit::Nanos]), "", Computed),
        Word::new("packets", Unit::Integer, "", Computed),
        Word::new("bytes", Unit::Bytes, "", Computed),
        Word::new("seed", Unit::Text, "", Harmless),
        Word::new("ecn", Unit::Choice(&[("", ""), ("ecn", "")]), "", Computed),
    ],
    fixed: &[],
    rules: Rules {
        complete: complete_netem,
        check: check_netem,
        shown: netem_shown,
        change: Change::Named(
            &[
                "limit",
                "delay",
                "loss random",
                "loss state",
                "loss gemodel",
                "loss",
                "duplicate",
                "gap",
            ],
            &[],
        ),
        ends: &[
            ("slot", &["slot distribution"]),
            ("slot distribution", &["slot"]),
            ("loss", &["loss random", "loss state", "loss gemodel"]),
            ("loss random", &["loss", "loss state", "loss gemodel"]),
            ("loss state", &["loss", "loss random", "loss gemodel"]),
            ("loss gemodel", &["loss", "loss random", "loss state"]),
        ],
        abbreviates: true,
        ..Rules::NONE
    },
    differs: "losses, delays and the rest happen behind the queue; correlated delays are \
              correlated, which Linux loses; a limit from 10,000 on is none",
};

/// Checks of tc: what each word needs.
fn check_netem(line: &Line) -> Result<()> {
    let has = |word: &str| line.given(word).is_some();
    let needs = |word: &str, text: &str| Err(Error::new(text).at(word));
    let delay = match line.given("delay") {
        Some(Arg::Several(parts)) => parts.len(),
        _ => 0,
    };
    if has("reorder") && delay == 0 {
        return needs("reorder", "requires delay: write delay 10ms reorder 25%");
    }
    if line.whole("gap") > 0 && !has("reorder") {
        return needs("gap", "requires reorder: write reorder 25% gap 5");
    }
    if has("distribution") && delay < 2 {
        return needs("distribution", "requires jitter: write delay 10ms 2ms distribution normal");
    }
    let loses = ["loss", "loss random", "loss state", "loss gemodel"].into_iter().any(has);
    if line.says("ecn", "ecn") && !loses {
        return needs("ecn", "requires loss: write loss 1% ecn");
    }
    Ok(())
}

/// Adds the shares that tc sends if only the first ones are given.
fn fill(line: &mut Line, word: &str, whole: fn(f64) -> Vec<f64>) {
    let Some(Arg::Several(parts)) = line.given(word) else { return };
    let Some(Arg::Number(first)) = parts.first() else { return };
    let all = whole(*first).into_iter().map(Arg::Number).skip(parts.len());
    let parts = parts.iter().cloned().chain(all).collect();
    line.set(word, Arg::Several(parts));
}

/// Has one word for random losses, and the gap that reordering implies.
fn complete_netem(line: &mut Line) -> Result<()> {
    if let Some(arg) = line.given("loss random").cloned() {
        line.set("loss", arg);
        line.unset("loss random");
    }
    fill(line, "loss gemodel", |p| [p, 1.0 - p, 1.0, 0.0].into());
    fill(line, "loss state", |p| [p, 1.0 - p, 0.0, 1.0, 0.0].into());
    if line.given("reorder").is_some() && line.whole("gap") == 0 {
        line.set("gap", Arg::Whole(1));
    }
    Ok(())
}

/// Rewrites the labels that `tc qdisc show` prints between the numbers of netem.
fn netem_shown(words: &[&str]) -> Vec<String> {
    let labels = ["p", "r", "1-h", "1-k", "p13", "p31", "p32", "p23", "p14"];
    let cells = ["packetoverhead", "cellsize", "celloverhead"];
    let mut out: Vec<String> = Vec::new();
    let mut framing = [0i64; 3];
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if let Some(place) = cells.iter().position(|cell| cell == word) {
            framing[place] = words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
            continue;
        }
        if labels.contains(word) && words.peek().is_some_and(|next| next.ends_with('%')) {
            continue;
        }
        out.push((*word).to_string());
        // The name of the table is not printed.
        if *word == "distribution" && out.iter().rev().nth(1).is_some_and(|w| w == "slot") {
            out.push("custom".to_string());
        }
    }
    if framing != [0; 3]
        && let Some(rate) = out.iter().position(|word| word == "rate")
    {
        let numbers = framing.iter().map(i64::to_string);
        let at = (rate + 2).min(out.len());
        out.splice(at..at, numbers);
    }
    out
}

/// `htb`: hierarchical token buckets.
pub static HTB: Kind = Kind {
    name: "htb",
    becomes: Becomes::Link,
    words: &[
        Word::new("default", Unit::Text, "0", Computed),
        Word::new("r2q", Unit::Integer, "10", Harmless),
        Word::new("direct_qlen", Unit::Integer, "1000", Harmless),
        Word::new("direct_packets_stat", Unit::Integer, "", Harmless).output_only(),
        Word::new("offload", Unit::Choice(&[("", ""), ("offload", "")]), "", Harmless),
        Word::new("ver", Unit::Text, "", Harmless).output_only(),
        Word::new("debug", Unit::Integer, "", Harmless),
    ],
    fixed: &[],
    rules: Rules { complete: complete_default, abbreviates: true, ..Rules::FIXED },
    differs: "a tree with one class that carries traffic becomes the rate of a link; a class has \
              one burst for its rate and its ceiling",
};

/// Writes the default class in hexadecimal, as `tc qdisc show` does.
fn complete_default(line: &mut Line) -> Result<()> {
    if let Some(Arg::Text(text)) = line.given("default") {
        let class = units::class_id(text).map_err(|e| e.at("default"))?.1;
        let text = if class == 0 { "0".to_string() } else { format!("{class:#x}") };
        line.set("default", Arg::Text(text));
    }
    Ok(())
}

/// Class of [`HTB`].
pub static HTB_CLASS: Kind = Kind {
    name: "htb",
    becomes: Becomes::Link,
    words: &[
        Word::new("rate", Unit::Rate, "", Computed),
        Word::new("ceil", Unit::Rate, "", Computed),
        Word::new("burst", Unit::Bytes, "", Harmless).also(&["buffer", "maxburst"]),
        Word::new("cburst", Unit::Bytes, "", Harmless).also(&["cbuffer", "cmaxburst"]),
        Word::new("prio", Unit::Integer, "0", Harmless),
        Word::new("quantum", Unit::Bytes, "", Harmless),
        Word::new("mtu", Unit::Bytes, "1600", Harmless),
        Word::new("mpu", Unit::Bytes, "0", Lost(FRAMING)),
        Word::new("overhead", Unit::Integer, "0", Lost(FRAMING)),
        Word::new("linklayer", Unit::Text, "ethernet", Lost(FRAMING)),
        Word::new("level", Unit::Integer, "", Harmless).output_only(),
    ],
    fixed: &[],
    rules: Rules { complete: complete_class, abbreviates: true, ..Rules::ALL },
    differs: "",
};

/// Sets the ceiling that tc sends: the rate.
fn complete_class(line: &mut Line) -> Result<()> {
    line.require("rate", "rate 20mbit")?;
    if line.given("ceil").is_none() {
        line.set("ceil", Arg::Whole(line.whole("rate")));
    }
    Ok(())
}

/// `hfsc`: hierarchical fair service curve.
pub static HFSC: Kind = Kind {
    name: "hfsc",
    becomes: Becomes::Link,
    words: &[Word::new("default", Unit::Text, "0", Computed)],
    fixed: &[],
    rules: Rules { complete: complete_default, once: true, abbreviates: true, ..Rules::ALL },
    differs: "as htb; the rate of a link is the second slope of ul of the highest classes, if \
              there is one",
};

/// Class of [`HFSC`].
pub static HFSC_CLASS: Kind = Kind {
    name: "hfsc",
    becomes: Becomes::Link,
    words: &[
        Word::new("rt", Unit::Curve, "", Computed),
        Word::new("ls", Unit::Curve, "", Computed),
        Word::new("sc", Unit::Curve, "", Computed),
        Word::new("ul", Unit::Curve, "", Computed),
    ],
    fixed: &[],
    rules: Rules {
        complete: complete_curves,
        check: check_curves,
        merge: merge_curves,
        ends: &[("sc", &["rt", "ls"])],
        abbreviates: true,
        ..Rules::NONE
    },
    differs: "",
};

/// Checks of tc: a curve, and `ul` with a curve that it limits.
fn check_curves(line: &Line) -> Result<()> {
    let has = |word: &str| line.given(word).is_some();
    if has("ul") && !has("ls") && !has("sc") {
        return Err(Error::new("requires ls or sc: write ls m2 5mbit").at("ul"));
    }
    if !has("rt") && !has("ls") && !has("sc") {
        return Err(Error::new("has no curve: write ls m2 5mbit"));
    }
    Ok(())
}

/// Writes equal curves `rt` and `ls` as `sc`, as `tc class show` does.
fn complete_curves(line: &mut Line) -> Result<()> {
    if let Some(both) = line.given("sc").cloned() {
        line.unset("sc");
        for word in ["rt", "ls"] {
            if line.given(word).is_none() {
                line.set(word, both.clone());
            }
        }
    }
    if let Some(curve) = line.given("rt").cloned()
        && line.given("ls") == Some(&curve)
    {
        line.unset("rt");
        line.unset("ls");
        line.set("sc", curve);
    }
    Ok(())
}

/// A new `sc` replaces both curves.
fn merge_curves(_: &Line, mut new: Line) -> Result<Line> {
    if let Some(curve) = new.given("sc").cloned() {
        new.unset("sc");
        new.set("rt", curve.clone());
        new.set("ls", curve);
    }
    Ok(new)
}
