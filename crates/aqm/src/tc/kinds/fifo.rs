//! FIFO queues, priority bands and deficit round robin.

use super::super::table::Ours::{Computed, Harmless, To};
use super::super::table::{Arg, Becomes, Fixed, Kind, Line, Params, Rules, Unit, Word};
use crate::error::{Error, ErrorKind, Result};
use crate::sched::priority_map::PRIOMAP;
use crate::units::Size;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

const TAIL: Fixed =
    Fixed { name: "policy", linux: "tail", why: "Linux drops the arriving packet of this FIFO" };
const HEAD: Fixed = Fixed { name: "policy", linux: "head", why: "Linux drops at the head here" };

fn in_bytes(params: &Params<'_>) -> bool {
    params.size("limit").is_some_and(Size::in_bytes)
}

/// Refuses a limit beyond 32 bits, which tc sends.
fn complete_fifo(line: &mut Line) -> Result<()> {
    let (limit, most) = (line.whole("limit"), u64::from(u32::MAX));
    if limit > most {
        let text = format!("{limit} is out of range, allowed: 1 to {most}");
        return Err(Error::new(text).of_kind(ErrorKind::OutOfRange).at("limit"));
    }
    Ok(())
}

/// Refuses a priomap with more than 16 entries, or with a band that does not exist.
pub(super) fn check_priomap(line: &Line, bands: u64) -> Result<()> {
    let Some(Arg::List(list)) = line.get("priomap") else { return Ok(()) };
    if list.len() > 16 {
        let text = format!("has {} entries, but there are 16 priorities", list.len());
        return Err(Error::new(text).at("priomap"));
    }
    match list.iter().find(|band| **band >= bands) {
        Some(band) => {
            let last = bands.saturating_sub(1);
            let text = format!("{band} is no band: with bands {bands} they are 0 to {last}");
            Err(Error::new(text).at("priomap"))
        }
        None => Ok(()),
    }
}

/// `pfifo`: tail drop by packets.
pub static PFIFO: Kind = Kind {
    name: "pfifo",
    becomes: Becomes::Discipline("droptail"),
    words: &[Word::new("limit", Unit::Count, "1000", To("limit"))],
    fixed: &[TAIL],
    rules: Rules {
        fits: |params| params.text("policy") != "head" && !in_bytes(params),
        complete: complete_fifo,
        ..Rules::ALL
    },
    differs: "",
};

/// `bfifo`: tail drop by bytes.
pub static BFIFO: Kind = Kind {
    name: "bfifo",
    becomes: Becomes::Discipline("droptail"),
    words: &[Word::new("limit", Unit::Bytes, "1514000", To("limit"))],
    fixed: &[TAIL],
    rules: Rules { fits: |params| in_bytes(params), complete: complete_fifo, ..Rules::ALL },
    differs: "Linux counts the Ethernet header of 14 bytes per packet; the default is the queue \
              length of the device, 1000, times 1514 bytes",
};

/// `pfifo_head_drop`: head drop by packets.
pub static PFIFO_HEAD_DROP: Kind = Kind {
    name: "pfifo_head_drop",
    becomes: Becomes::Discipline("droptail"),
    words: &[Word::new("limit", Unit::Count, "1000", To("limit"))],
    fixed: &[HEAD],
    rules: Rules { complete: complete_fifo, ..Rules::ALL },
    differs: "",
};

pub(super) const BY_CLASS: Fixed =
    Fixed { name: "by", linux: "class", why: "Linux needs a tc filter to choose the class" };
pub(super) const LEAF_TAIL: Fixed =
    Fixed { name: "drop", linux: "tail", why: "the pfifo of each class drops the arriving packet" };
/// Buffers of the classes. `full` is irrelevant where each class has its own.
const PRIO_PARAMETERS: &[&str] = &["priomap", "full", "limit", "limits"];

/// Buffer of each class: a pfifo of the queue length of the device.
pub(super) fn leaf_limits(bands: u64) -> Vec<(&'static str, String)> {
    vec![("limits", "1000p".to_string()), ("limit", Size::Packets(1000 * bands).to_string())]
}

/// Limits that differ from the limits of the leaves.
pub(super) fn lost_limits(params: &Params<'_>, bands: u64) -> Vec<String> {
    let (limits, limit) = (params.text("limits"), params.text("limit"));
    if limits == "1000p" && limit == format!("{}p", 1000 * bands) {
        return Vec::new();
    }
    if limits.is_empty() {
        return vec![format!(
            "limit = {limit}: the classes of Linux share no buffer; each has 1000 packets"
        )];
    }
    vec![format!("limits = {limits}: add a qdisc pfifo or bfifo with its limit to each class")]
}

/// True for a note about the buffer of all classes, which children do not fill.
pub(in super::super) fn lost_shared_limit(text: &str) -> bool {
    text.starts_with("limit = ") && text.contains("share no buffer")
}

/// `priomap` with the entries of `first`, then the entries of `rest`; no entry is above `last`.
fn completed(first: &[u64], rest: [u64; 16], last: u64) -> [u64; 16] {
    let mut map = rest;
    map.iter_mut().zip(first).for_each(|(band, entry)| *band = *entry);
    map.map(|band| band.min(last))
}

/// Setting of `priomap` for a line with this many bands, whose default is `rest`.
pub(super) fn priomap_setting(line: &Line, rest: [u64; 16], bands: u64) -> (&'static str, String) {
    let entries: &[u64] = match line.given("priomap") {
        Some(Arg::List(list)) => list,
        _ => &[],
    };
    let map = completed(entries, rest, bands.max(1) - 1);
    ("priomap", map.map(|band| band.to_string()).join(" "))
}

/// Sets `priomap` if it differs from the default of tc, `rest`; returns what tc cannot say.
pub(super) fn priomap_words(
    params: &Params<'_>,
    line: &mut Line,
    rest: [u64; 16],
    bands: u64,
) -> Vec<String> {
    let list = params.text("priomap").split_whitespace();
    let entries: Vec<u64> = list.filter_map(|band| band.parse().ok()).collect();
    if entries.is_empty() {
        return vec!["priomap is empty: Linux needs a tc filter to choose the class".to_string()];
    }
    let map = completed(&entries, rest, bands.max(1) - 1);
    if map != rest {
        line.set("priomap", Arg::List(map.to_vec()));
    }
    Vec::new()
}

pub(super) const MAP: &str = "the class of each flow is set in the scenario";

/// `prio`: strict priority.
pub static PRIO: Kind = Kind {
    name: "prio",
    becomes: Becomes::Discipline("prio"),
    words: &[
        Word::new("bands", Unit::Integer, "3", To("flows")).within(2, 16),
        Word::new("priomap", Unit::Numbers, "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1", Computed),
    ],
    fixed: &[BY_CLASS, LEAF_TAIL],
    rules: Rules {
        parameters: PRIO_PARAMETERS,
        settings: |line| {
            let bands = line.whole("bands");
            [vec![priomap_setting(line, PRIOMAP, bands)], leaf_limits(bands)].concat()
        },
        words: |params, line| {
            let bands = line.whole("bands");
            let lost = lost_limits(params, bands);
            [lost, priomap_words(params, line, PRIOMAP, bands)].concat()
        },
        complete: |line| {
            let bands = line.whole("bands");
            if let Some(Arg::List(list)) = line.given("priomap").cloned() {
                let rest = PRIOMAP.iter().skip(list.len());
                line.set("priomap", Arg::List(list.iter().chain(rest).copied().collect()));
            }
            check_priomap(line, bands)
        },
        ..Rules::ALL
    },
    differs: "Linux takes the band from the priority of a packet, which follows the DSCP if no \
              application sets it",
};

/// `pfifo_fast`: three bands, without options.
pub static PFIFO_FAST: Kind = Kind {
    name: "pfifo_fast",
    becomes: Becomes::Discipline("pfifo_fast"),
    words: &[
        Word::new("bands", Unit::Integer, "3", Harmless).within(3, 3),
        Word::new("priomap", Unit::Numbers, "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1", Harmless),
    ],
    fixed: &[],
    rules: Rules {
        parameters: &["limit", "limits"],
        settings: |_| vec![("limits", "1000p".to_string()), ("limit", "auto".to_string())],
        words: |params, _| {
            let (limits, limit) = (params.text("limits"), params.text("limit"));
            let mut lost = Vec::new();
            if limits != "1000p" {
                lost.push(format!(
                    "limits = {limits}: each band has the queue length of the device"
                ));
            }
            if limit != "auto" {
                lost.push(format!("limit = {limit}: the bands of Linux share no buffer"));
            }
            lost
        },
        ..Rules::FIXED
    },
    differs: "the limit of each band is the queue length of the device, 1000 packets; Linux takes \
              the band from the priority of a packet, which follows the DSCP if no application \
              sets it",
};

/// `skbprio`: strict priority in one buffer.
pub static SKBPRIO: Kind = Kind {
    name: "skbprio",
    becomes: Becomes::Discipline("skbprio"),
    words: &[Word::new("limit", Unit::Count, "64", To("limit"))],
    fixed: &[],
    rules: Rules { complete: complete_fifo, ..Rules::ALL },
    differs: "Linux takes the priority from a filter, such as action skbedit inheritdsfield; \
              without one it follows the DSCP as in prio, if no application sets it. Here it is \
              the class of the flow",
};

/// `drr`: deficit round robin.
pub static DRR: Kind = Kind {
    name: "drr",
    becomes: Becomes::Discipline("drr"),
    words: &[],
    fixed: &[
        BY_CLASS,
        LEAF_TAIL,
        Fixed { name: "quantum", linux: "1514B", why: "set the quantum of each class of tc" },
    ],
    rules: Rules {
        parameters: &["flows", "full", "limit", "limits"],
        words: |params, _| class_words(params, "drr quantum Q"),
        ..Rules::FIXED
    },
    differs: "Linux has a class per queue, each with its quantum and its own qdisc, and drops \
              packets that no filter assigns to a class",
};

/// Parameters that no word of a qdisc says whose classes are made by commands with `words`.
pub(super) fn class_words(params: &Params<'_>, words: &str) -> Vec<String> {
    let mut lost = vec![format!(
        "flows = {}: Linux needs a class per queue, tc class add ... {words}",
        params.text("flows")
    )];
    if params.text("limits").is_empty() {
        let limit = params.text("limit");
        lost.push(format!("limit = {limit}: the classes of Linux share no buffer"));
    }
    lost
}

/// Class of [`DRR`].
pub static DRR_CLASS: Kind = Kind {
    name: "drr",
    becomes: Becomes::Nothing("is a class"),
    words: &[Word::new("quantum", Unit::Bytes, "1514", Computed)],
    fixed: &[],
    rules: Rules::NONE,
    differs: "",
};
