//! Shapers and emulation, which become rate, delay and loss of a link.

use super::super::table::Ours::{Computed, Harmless, Lost, To};
use super::super::table::{Arg, Becomes, Kind, Line, Params, Rules, Unit, Word};
use crate::error::{Error, Result};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

const FRAMING: &str = "a link counts the bytes of the packets";
const NO: &str = "sojourn does not do that to packets";

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
    rules: Rules { complete: complete_tbf, words: tbf_words, ..Rules::NONE },
    differs: "Linux can have another qdisc below it; tc import uses its rate for the link",
};

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
        Word::new("distribution", Unit::Text, "", Lost("the delay of a link does not vary")),
        Word::new("loss random", SHARE, "", Computed),
        Word::new(
            "loss state",
            Unit::Several(&[Unit::Percent; 5]),
            "",
            Lost("a loss of four states; gemodel has two"),
        ),
        Word::new("loss gemodel", Unit::Several(&[Unit::Percent; 4]), "", Computed),
        Word::new("loss", SHARE, "", Computed).also(&["drop"]),
        Word::new("corrupt", SHARE, "", Lost(NO)),
        Word::new("duplicate", SHARE, "", Lost(NO)),
        Word::new("reorder", SHARE, "", Lost(NO)),
        Word::new("gap", Unit::Integer, "", Lost(NO)),
        Word::new(
            "rate",
            Unit::Several(&[Unit::Rate, Unit::Integer, Unit::Integer, Unit::Integer]),
            "",
            Computed,
        ),
        Word::new("slot distribution", Unit::Text, "", Lost(NO)),
        Word::new("slot", Unit::Several(&[Unit::Nanos, Unit::Nanos]), "", Lost(NO)),
        Word::new("packets", Unit::Integer, "", Lost(NO)),
        Word::new("bytes", Unit::Bytes, "", Lost(NO)),
        Word::new("seed", Unit::Text, "", Harmless),
        Word::new("ecn", Unit::Choice(&[("", ""), ("ecn", "")]), "", Lost("a link drops")),
    ],
    fixed: &[],
    rules: Rules { complete: complete_netem, ..Rules::NONE },
    differs: "jitter, reordering, duplication and corruption do not exist; the packets in flight \
              do not count towards limit",
};

fn complete_netem(line: &mut Line) -> Result<()> {
    let unlike = |other: &str| Error::new(format!("requires delay: {other}")).at("reorder");
    if line.given("reorder").is_some() && line.given("delay").is_none() {
        return Err(unlike("write delay 10ms reorder 25%"));
    }
    if line.given("loss random").is_some() && line.given("loss").is_none() {
        let random = line.get("loss random");
        if let Some(arg) = random {
            line.set("loss", arg);
        }
    }
    Ok(())
}

/// `htb`: hierarchical token buckets.
pub static HTB: Kind = Kind {
    name: "htb",
    becomes: Becomes::Link,
    words: &[
        Word::new("default", Unit::Text, "0", Computed),
        Word::new("r2q", Unit::Integer, "10", Harmless),
        Word::new("direct_qlen", Unit::Integer, "1000", Harmless),
        Word::new("direct_packets_stat", Unit::Integer, "", Harmless),
        Word::new("offload", Unit::Choice(&[("", ""), ("offload", "")]), "", Harmless),
        Word::new("ver", Unit::Text, "", Harmless),
        Word::new("debug", Unit::Integer, "", Harmless),
    ],
    fixed: &[],
    rules: Rules::NONE,
    differs: "a tree with one class that carries traffic becomes the rate of a link",
};

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
        Word::new("level", Unit::Integer, "", Harmless),
    ],
    fixed: &[],
    rules: Rules { complete: |line| line.require("rate", "rate 20mbit"), ..Rules::NONE },
    differs: "",
};

/// `hfsc`: hierarchical fair service curve.
pub static HFSC: Kind = Kind {
    name: "hfsc",
    becomes: Becomes::Link,
    words: &[Word::new("default", Unit::Text, "0", Computed)],
    fixed: &[],
    rules: Rules::NONE,
    differs: "as htb; the curves are read only as single rates",
};

/// Class of [`HFSC`].
pub static HFSC_CLASS: Kind = Kind {
    name: "hfsc",
    becomes: Becomes::Link,
    words: &[
        Word::new("ul rate", Unit::Rate, "", Computed).also(&["ul m2"]),
        Word::new("sc rate", Unit::Rate, "", Computed).also(&["sc m2"]),
        Word::new("ls rate", Unit::Rate, "", Computed).also(&["ls m2"]),
        Word::new("rt rate", Unit::Rate, "", Computed).also(&["rt m2"]),
    ],
    fixed: &[],
    rules: Rules::NONE,
    differs: "",
};
