//! fq, ETS and HHF.

use super::super::table::Ours::{Computed, Harmless, Lost, To};
use super::super::table::{Arg, Becomes, Kind, Line, Params, Rules, Unit, Word};
use super::fifo::{
    BY_CLASS, LEAF_TAIL, MAP, check_priomap, leaf_limits, lost_limits, priomap_setting,
    priomap_words,
};
use crate::error::{Error, Result};
use crate::units::Bytes;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// Quantum that Linux takes for a device with packets of 1514 bytes.
const MTU: u64 = 1514;

/// Numbers of bytes as a parameter.
fn sizes(numbers: &[u64]) -> String {
    numbers.iter().map(|n| Bytes(*n).to_string()).collect::<Vec<_>>().join(" ")
}

/// The parameter `name`, a list of bytes, as numbers.
fn numbers(params: &Params<'_>, name: &str) -> Vec<u64> {
    let sizes = params.text(name).split_whitespace();
    sizes.filter_map(|size| size.parse::<Bytes>().ok()).map(|bytes| bytes.0).collect()
}

/// `fq`: a queue per flow, with pacing.
pub static FQ: Kind = Kind {
    name: "fq",
    becomes: Becomes::Discipline("fq"),
    words: &[
        Word::new("limit", Unit::Packets, "10000", To("limit")),
        Word::new("flow_limit", Unit::Integer, "100", To("flow_limit")),
        Word::new("buckets", Unit::Integer, "1024", Harmless),
        Word::new("orphan_mask", Unit::Integer, "1023", Computed).within(0, 1_048_575),
        Word::new("quantum", Unit::Bytes, "3028", To("quantum")).within(1, 1 << 20),
        Word::new("initial_quantum", Unit::Bytes, "15140", To("initial_quantum"))
            .within(0, i32::MAX as u64),
        Word::new("maxrate", Unit::Rate, "", To("maxrate")),
        Word::new("low_rate_threshold", Unit::Rate, "550kbit", To("low_rate_threshold")),
        Word::new("refill_delay", Unit::Time, "40ms", To("refill_delay")),
        Word::new("timer_slack", Unit::Nanos, "10us", Harmless),
        Word::new("ce_threshold", Unit::Time, "", To("ce_threshold")),
        Word::new("horizon", Unit::Time, "10s", To("horizon")),
        Word::new(
            "beyond",
            Unit::Choice(&[("horizon_drop", "true"), ("horizon_cap", "false")]),
            "horizon_drop",
            To("horizon_drop"),
        ),
        Word::new("bands", Unit::Integer, "3", Harmless).within(3, 3),
        Word::new("priomap", Unit::Numbers, "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1", Lost(MAP)),
        Word::new("weights", Unit::Numbers, "589824 196608 65536", Computed),
        Word::new("offload_horizon", Unit::Time, "0", Harmless),
        Word::new("defrate", Unit::Rate, "", Harmless),
        Word::new(
            "pace",
            Unit::Choice(&[("pacing", ""), ("nopacing", "")]),
            "pacing",
            Lost("maxrate applies whenever it is given"),
        ),
    ],
    fixed: &[],
    rules: Rules {
        parameters: &["flows", "weights"],
        settings: |line| {
            let weights = match line.get("weights") {
                Some(Arg::List(list)) => sizes(&list),
                _ => String::new(),
            };
            let flows = (line.whole("orphan_mask") + 1).to_string();
            vec![("weights", weights), ("flows", flows)]
        },
        words: fq_words,
        ..Rules::NONE
    },
    differs: "Linux gives each socket a queue of its own; packets that it forwards share as many \
              queues as orphan_mask says",
};

fn fq_words(params: &Params<'_>, line: &mut Line) -> Vec<String> {
    line.set("weights", Arg::List(numbers(params, "weights")));
    let flows: u64 = params.text("flows").parse().unwrap_or(1024);
    line.set("orphan_mask", Arg::Whole(flows.max(1) - 1));
    if flows.is_power_of_two() {
        return Vec::new();
    }
    vec![format!("flows = {flows}: Linux takes bits of the hash, which give powers of two")]
}

/// `ets`: strict bands, then weighted ones.
pub static ETS: Kind = Kind {
    name: "ets",
    becomes: Becomes::Discipline("ets"),
    words: &[
        Word::new("bands", Unit::Integer, "", Computed).within(1, 16),
        Word::new("strict", Unit::Integer, "0", To("strict")).within(0, 16),
        Word::new("quanta", Unit::Numbers, "", Computed),
        Word::new("priomap", Unit::Numbers, "", Computed),
    ],
    fixed: &[BY_CLASS, LEAF_TAIL],
    rules: Rules {
        parameters: &["flows", "quanta", "priomap", "full", "limit", "limits"],
        complete: complete_ets,
        settings: |line| {
            let bands = bands(line);
            let strict = line.whole("strict").min(bands);
            let mut quanta = given_quanta(line);
            quanta.resize(crate::cast::index((bands - strict).max(1)), MTU);
            let flows = ("flows", bands.to_string());
            let map = priomap_setting(line, LAST, bands);
            [vec![flows, ("quanta", sizes(&quanta)), map], leaf_limits(bands)].concat()
        },
        words: ets_words,
        ..Rules::ALL
    },
    differs: "Linux takes the band from the priority of a packet, which follows the DSCP if no \
              application sets it; without priomap all packets are in the last band",
};

/// `priomap` of an ets line without one: the last band for every priority.
const LAST: [u64; 16] = [u64::MAX; 16];

fn given_quanta(line: &Line) -> Vec<u64> {
    match line.given("quanta") {
        Some(Arg::List(list)) => list.clone(),
        _ => Vec::new(),
    }
}

/// Checks the bands as tc and the kernel do.
fn complete_ets(line: &mut Line) -> Result<()> {
    let (strict, quanta) = (line.whole("strict"), given_quanta(line));
    if strict == 0 && quanta.is_empty() {
        line.require("bands", "bands 3")?;
    }
    let named = strict + quanta.len() as u64;
    if named > MOST_BANDS {
        let text = format!("{named} bands with strict and quanta, but there are up to 16");
        return Err(Error::new(text).at("quanta"));
    }
    if line.given("bands").is_some() && line.whole("bands") < named {
        let text = format!("{} is fewer than strict and quanta, {named}", line.whole("bands"));
        return Err(Error::new(text).at("bands"));
    }
    if quanta.contains(&0) {
        return Err(Error::new("0 is out of range: a band needs a quantum").at("quanta"));
    }
    check_priomap(line, bands(line))
}

/// Sets the quantum of the band `minor`, as `tc class change ... ets quantum Q`.
///
/// # Errors
/// A strict band, or no quantum.
pub(in super::super) fn set_quantum(line: &mut Line, minor: u16, quantum: u64) -> Result<()> {
    let strict = line.whole("strict");
    let Some(place) = u64::from(minor).checked_sub(strict + 1) else {
        return Err(Error::new("a strict band has no quantum").at("quantum").at("ets"));
    };
    if quantum == 0 {
        return Err(Error::new("is required, like quantum 1514").at("quantum").at("ets"));
    }
    let mut quanta = given_quanta(line);
    let weighted = crate::cast::index(bands(line) - strict);
    line.set("bands", Arg::Whole(bands(line)));
    quanta.resize(weighted, MTU);
    if let Some(old) = quanta.get_mut(crate::cast::index(place)) {
        *old = quantum;
    }
    line.set("quanta", Arg::List(quanta));
    Ok(())
}

/// Class of [`ETS`]: a band.
pub static ETS_CLASS: Kind = Kind {
    name: "ets",
    becomes: Becomes::Nothing("is a class"),
    words: &[Word::new("quantum", Unit::Bytes, "", Computed)],
    fixed: &[],
    rules: Rules::NONE,
    differs: "",
};

/// Most bands of ets.
const MOST_BANDS: u64 = 16;

/// Number of bands: as given, or the strict bands and the bands with a quantum.
pub(in super::super) fn bands(line: &Line) -> u64 {
    let named = line.whole("strict") + given_quanta(line).len() as u64;
    line.whole("bands").max(named).clamp(1, 16)
}

fn ets_words(params: &Params<'_>, line: &mut Line) -> Vec<String> {
    let flows: u64 = params.text("flows").parse().unwrap_or(1);
    let bands = flows.clamp(1, 16);
    let mut lost = lost_limits(params, bands);
    if bands != flows {
        lost.push(format!("flows = {flows}: tc takes up to 16 bands"));
    }
    line.set("bands", Arg::Whole(bands));
    let weighted = bands.saturating_sub(line.whole("strict"));
    let mut quanta = numbers(params, "quanta");
    let last = quanta.last().copied().unwrap_or(MTU);
    quanta.resize(crate::cast::index(weighted), last);
    if weighted > 0 {
        line.set("quanta", Arg::List(quanta));
    }
    lost.extend(priomap_words(params, line, LAST.map(|band| band.min(bands - 1)), bands));
    lost
}

/// `hhf`: heavy-hitter filter.
pub static HHF: Kind = Kind {
    name: "hhf",
    becomes: Becomes::Discipline("hhf"),
    words: &[
        Word::new("limit", Unit::Packets, "1000", To("limit")),
        Word::new("quantum", Unit::Bytes, "1514", To("quantum")).within(256, i32::MAX as u64),
        Word::new("hh_limit", Unit::Integer, "2048", To("hh_limit")).within(1, 2048),
        Word::new("reset_timeout", Unit::Time, "40ms", To("reset_timeout")),
        Word::new("admit_bytes", Unit::PlainBytes, "131072", To("admit_bytes")),
        Word::new("evict_timeout", Unit::Time, "1s", To("evict_timeout")),
        Word::new("non_hh_weight", Unit::Integer, "2", To("non_hh_weight")).within(1, 1_000_000),
    ],
    fixed: &[],
    rules: Rules::NONE,
    differs: "",
};
