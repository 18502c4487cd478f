//! RED, adaptive RED and CHOKe: tc computes the weight of the average from a burst.

use super::super::table::Ours::{Computed, Harmless, Lost, To};
use super::super::table::{Arg, Becomes, Fixed, Kind, Line, Params, Rules, Unit, Word};
use crate::cast;
use crate::error::{Error, Result};
use crate::units::{Rate, Size};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

const WORDS: &[Word] = &[
    Word::new("limit", Unit::Bytes, "", Computed),
    Word::new("min", Unit::Bytes, "", Computed),
    Word::new("max", Unit::Bytes, "", Computed),
    Word::new("avpkt", Unit::Bytes, "", Computed).within(1, 65_535),
    Word::new("burst", Unit::Integer, "", Computed),
    // In place of burst, with `tc -d`.
    Word::new("ewma", Unit::Integer, "", Computed).within(1, 31).output_only(),
    Word::new("Scell_log", Unit::Integer, "", Harmless).output_only(),
    Word::new("Plog", Unit::Integer, "", Harmless).output_only(),
    Word::new("probability", Unit::Probability, "0.02", Computed),
    Word::new("bandwidth", Unit::Rate, "10mbit", To("bandwidth")),
    Word::new("ecn", Unit::Choice(&[("", "false"), ("ecn", "true")]), "", Computed),
    Word::new("harddrop", Unit::Choice(&[("", "false"), ("harddrop", "true")]), "", Computed),
    Word::new(
        "nodrop",
        Unit::Choice(&[("", ""), ("nodrop", "")]),
        "",
        Lost("sojourn drops packets that are not ECN-capable"),
    ),
    Word::new(
        "adaptive",
        Unit::Choice(&[("", ""), ("adaptive", ""), ("adaptative", "")]),
        "",
        Computed,
    ),
    Word::new("qevent", Unit::Text, "", Lost("sojourn has no events")),
];

const GENTLE: Fixed = Fixed { name: "gentle", linux: "none", why: "Linux drops all above max" };
const WAIT: Fixed = Fixed { name: "wait", linux: "no", why: "Linux spaces drops by 1 to 1/p" };
const BYTE_MODE: Fixed =
    Fixed { name: "byte_mode", linux: "off", why: "in Linux p does not depend on the length" };
const SPARE: Fixed =
    Fixed { name: "spare_short", linux: "false", why: "Linux does not spare short queues" };
/// Parameters that the functions below translate; `max_packet` is irrelevant without `byte_mode`.
const PARAMETERS: &[&str] =
    &["limit", "min_th", "max_th", "max_p", "w_q", "packet", "ecn", "hard_drop", "max_packet"];

/// `red`.
pub static RED: Kind = Kind {
    name: "red",
    becomes: Becomes::Discipline("red"),
    words: WORDS,
    fixed: &[GENTLE, WAIT, BYTE_MODE, SPARE],
    rules: Rules {
        parameters: PARAMETERS,
        check,
        complete,
        settings,
        words: red_words,
        ..Rules::ALL
    },
    differs: "Linux averages in whole numbers, and the gap between two drops is 1 to 1/p packets; \
              so does `variant = \"linux\"`, which a tc line sets",
};

/// `red adaptive`.
pub static ADAPTIVE: Kind = Kind {
    name: "red",
    becomes: Becomes::Discipline("ared"),
    words: WORDS,
    fixed: &[
        GENTLE,
        WAIT,
        BYTE_MODE,
        SPARE,
        Fixed { name: "interval", linux: "500ms", why: "Linux adapts every 500 ms" },
        Fixed { name: "alpha", linux: "0.01", why: "Linux adds at most 0.01" },
        Fixed { name: "beta", linux: "0.9", why: "Linux multiplies by 0.9" },
        Fixed { name: "bottom", linux: "0.01", why: "Linux keeps max_p above 0.01" },
        Fixed { name: "top", linux: "0.5", why: "Linux keeps max_p below 0.5" },
    ],
    rules: Rules {
        parameters: &[
            "limit",
            "min_th",
            "max_th",
            "max_p",
            "w_q",
            "packet",
            "ecn",
            "hard_drop",
            "max_packet",
            "stale_gentle",
            "target_delay",
        ],
        complete,
        settings,
        words: adaptive_words,
        ..Rules::ALL
    },
    differs: "kernels since 5.11 ignore the flag as iproute2 sends it",
};

/// `choke`.
pub static CHOKE: Kind = Kind {
    name: "choke",
    becomes: Becomes::Discipline("choke"),
    words: &[
        Word::new("limit", Unit::Packets, "", Computed).within(1, 131_071),
        Word::new("min", Unit::Packets, "", Computed),
        Word::new("max", Unit::Packets, "", Computed),
        Word::new("avpkt", Unit::Bytes, "1000", Computed).within(1, 65_535),
        Word::new("burst", Unit::Packets, "", Computed),
        Word::new("ewma", Unit::Integer, "", Computed).within(1, 31).output_only(),
        Word::new("Scell_log", Unit::Integer, "", Harmless).output_only(),
        Word::new("Plog", Unit::Integer, "", Harmless).output_only(),
        Word::new("probability", Unit::Probability, "0.02", Computed),
        Word::new("bandwidth", Unit::Rate, "", To("bandwidth")),
        Word::new("ecn", Unit::Choice(&[("", "false"), ("ecn", "true")]), "", Computed),
    ],
    fixed: &[
        GENTLE,
        WAIT,
        BYTE_MODE,
        SPARE,
        Fixed { name: "candidates", linux: "1", why: "Linux compares with one packet" },
    ],
    rules: Rules {
        parameters: PARAMETERS,
        check,
        complete,
        settings,
        words: choke_words,
        ..Rules::ALL
    },
    differs: "as red",
};

/// True if the thresholds of `line` count packets.
fn counts_packets(line: &Line) -> bool {
    line.kind.name == "choke"
}

/// Words that tc needs, and its output does not have.
fn check(line: &Line) -> Result<()> {
    if counts_packets(line) {
        line.require("limit", "limit 1000")?;
        if line.given("bandwidth").is_none() {
            return Err(Error::new("is required, like bandwidth 10mbit").at("bandwidth"));
        }
        return Ok(());
    }
    line.require("limit", "limit 400000")?;
    line.require("avpkt", "avpkt 1000")
}

/// Fills in what tc computes: min, max, burst, and the weight of the average.
fn complete(line: &mut Line) -> Result<()> {
    let packets = counts_packets(line);
    line.require("limit", if packets { "limit 1000" } else { "limit 400000" })?;
    if line.given("bandwidth").is_none() {
        line.set("bandwidth", Arg::Whole(10_000_000)); // `tc qdisc show` leaves it out
    }
    if !packets && (line.says("adaptive", "adaptive") || line.says("adaptive", "adaptative")) {
        line.set("adaptive", Arg::Word("adaptive"));
        line.kind = &ADAPTIVE;
    }
    if line.whole("avpkt") == 0 {
        line.set("avpkt", Arg::Whole(1000));
    }
    let (limit, avpkt) = (line.whole("limit"), line.whole("avpkt"));
    let unit = if packets { 1 } else { avpkt };
    if !packets && line.says("nodrop", "nodrop") && !line.says("ecn", "ecn") {
        return Err(Error::new("requires ecn: it marks in place of drops").at("nodrop"));
    }
    let (min, max) = match (line.whole("min"), line.whole("max")) {
        (0, 0) => (limit / 4 / 3, limit / 4),
        (min, 0) if packets => (min, limit / 4),
        (0, max) => (max / 3, max),
        (min, 0) => (min, min * 3),
        both => both,
    };
    if min >= max {
        return Err(Error::new(format!("{max} is not above min, {min}")).at("max"));
    }
    line.set("min", Arg::Whole(min));
    line.set("max", Arg::Whole(max));
    if line.given("ewma").is_none() {
        let burst = Some(line.whole("burst")).filter(|b| *b > 0);
        let burst = burst.unwrap_or((2 * min + max) / (3 * unit));
        line.set("burst", Arg::Whole(burst));
        line.set("ewma", Arg::Whole(weight(min, unit, burst)?));
    }
    let log = line.whole("ewma");
    if log > most_log(max) {
        let text = format!("{max} is too large for the kernel's 32 bits with a weight of 2^-{log}");
        return Err(Error::new(format!("{text}; make burst smaller")).at("max"));
    }
    Ok(())
}

/// Largest negative exponent of the weight that the kernel accepts with the threshold `max`: it
/// keeps the average in 32 bits.
pub(super) fn most_log(max: u64) -> u64 {
    u64::from(max.leading_zeros()).saturating_sub(33)
}

/// Weight of the average for the threshold `min`, packets of `unit` and a burst of packets.
///
/// # Errors
/// If tc finds none.
pub(super) fn weight(min: u64, unit: u64, burst: u64) -> Result<u64> {
    let log = weight_log(min as f64 / unit as f64, burst);
    log.ok_or_else(|| {
        if min < unit {
            return Error::new(format!("{min} is less than a packet, {unit}")).at("min");
        }
        let least = min / unit;
        let text = format!("{burst} is too small for min: at least {least} packets are needed");
        Error::new(text).at("burst")
    })
}

/// Weight of the average as tc finds it, as a negative power of two: the largest with which a burst
/// of `burst` packets into an empty queue does not bring the average above `min` packets.
fn weight_log(min: f64, burst: u64) -> Option<u64> {
    let rest = burst as f64 + 1.0 - min;
    if rest < 1.0 {
        return None;
    }
    (1..32).find(|log| {
        let w = 1.0 / (1u64 << log) as f64;
        rest <= (1.0 - libm::pow(1.0 - w, burst as f64)) / w
    })
}

fn settings(line: &Line) -> Vec<(&'static str, String)> {
    let size = |name| {
        let n = line.whole(name);
        (if counts_packets(line) { Size::Packets(n) } else { Size::Bytes(n) }).to_string()
    };
    let weight = 1.0 / (1u64 << line.whole("ewma")) as f64;
    let mut settings: Vec<(&'static str, String)> = [
        ("limit", size("limit")),
        ("min_th", size("min")),
        ("max_th", size("max")),
        ("max_p", line.number("probability").to_string()),
        ("w_q", weight.to_string()),
        ("packet", Size::Bytes(line.whole("avpkt")).to_string()),
        ("ecn", line.says("ecn", "ecn").to_string()),
    ]
    .into();
    if !counts_packets(line) {
        settings.push(("hard_drop", line.says("harddrop", "harddrop").to_string()));
    }
    settings
}

/// Parameter `name` in packets of `packet` bytes, and what that changes.
pub fn packets(params: &Params<'_>, name: &str, packet: u64) -> (u64, Vec<String>) {
    match params.size(name) {
        Some(Size::Packets(n)) => (n.min(u64::from(u32::MAX)), Vec::new()),
        Some(Size::Bytes(n)) => {
            let near = (n / packet).max(1);
            let text = format!("{name} = {}: tc counts packets, taken as {near}", Size::Bytes(n));
            (near, [text].into())
        }
        None => (1000, Vec::new()),
    }
}

/// Parameter `name` in bytes, `packet` for each packet, and what that changes.
fn bytes(params: &Params<'_>, name: &str, packet: u64) -> (u64, Vec<String>) {
    match params.size(name) {
        Some(Size::Bytes(n)) => (n.min(u64::from(u32::MAX)), Vec::new()),
        Some(Size::Packets(n)) => {
            let near = n.saturating_mul(packet).min(u64::from(u32::MAX));
            let text = format!("{name} = {n}p: tc counts bytes, taken as {n} x {packet}");
            (near, [text].into())
        }
        None => (0, Vec::new()),
    }
}

/// Sets the words that RED and CHOKe share, with thresholds from `size`.
fn common(
    params: &Params<'_>,
    line: &mut Line,
    weight: f64,
    size: impl Fn(&Params<'_>, &str, u64) -> (u64, Vec<String>),
) -> Vec<String> {
    let packet = params.size("packet").map_or(1000, Size::number).clamp(1, 65_535);
    let mut lost = Vec::new();
    for (word, name) in [("limit", "limit"), ("min", "min_th"), ("max", "max_th")] {
        if params.size(name).is_some() || word == "limit" {
            let (n, notes) = size(params, name, packet);
            line.set(word, Arg::Whole(n.max(1)));
            lost.extend(notes);
        }
    }
    line.set("avpkt", Arg::Whole(packet));
    line.set("probability", Arg::Number(params.number("max_p")));
    if params.text("bandwidth") == "auto" {
        line.set("bandwidth", Arg::Whole(params.rate.unwrap_or(Rate(10_000_000)).0 / 8 * 8));
    }
    if params.text("ecn") == "true" {
        line.set("ecn", Arg::Word("ecn"));
    }
    let unit = if counts_packets(line) { 1 } else { packet };
    let min = line.whole("min") as f64 / unit as f64;
    lost.extend(set_burst(line, min, weight));
    lost
}

/// Sets the burst from which tc computes a weight next to `weight`.
pub(super) fn set_burst(line: &mut Line, min: f64, weight: f64) -> Vec<String> {
    let most = most_log(line.whole("max")).clamp(1, 31);
    let wanted = cast::trunc(libm::round(-libm::log2(weight))).clamp(1, most);
    let first = cast::trunc(libm::ceil(min)).max(1);
    // The weight falls with the burst: take the largest burst whose weight is not below the wanted.
    let (mut low, mut high) = (first, 1u64 << 32);
    while low < high {
        let middle = (low + high).div_ceil(2);
        match weight_log(min, middle) {
            Some(log) if log <= wanted => low = middle,
            _ => high = middle - 1,
        }
    }
    let log = weight_log(min, low).unwrap_or(wanted);
    line.set("burst", Arg::Whole(low));
    line.set("ewma", Arg::Whole(log));
    let near = 1.0 / (1u64 << log) as f64;
    if near == weight {
        return Vec::new();
    }
    [format!("w_q = {weight}: tc computes it from burst, here {near}")].into()
}

fn red_words(params: &Params<'_>, line: &mut Line) -> Vec<String> {
    let lost = common(params, line, params.number("w_q"), bytes);
    if params.text("hard_drop") == "true" {
        line.set("harddrop", Arg::Word("harddrop"));
    }
    lost
}

fn choke_words(params: &Params<'_>, line: &mut Line) -> Vec<String> {
    common(params, line, params.number("w_q"), packets)
}

/// As RED; thresholds and weight that are `auto` follow from the rate of the link.
fn adaptive_words(params: &Params<'_>, line: &mut Line) -> Vec<String> {
    let packet = params.size("packet").map_or(1000.0, |p| p.number() as f64);
    let rate = params.rate.unwrap_or(Rate(10_000_000)).0 as f64;
    let per_second = rate / 8.0 / packet;
    let auto = params.text("w_q") == "auto";
    let weight = if auto { 1.0 - libm::exp(-1.0 / per_second) } else { params.number("w_q") };
    let mut notes = Vec::new();
    let half = params.nanos("target_delay") as f64 / 2e9 * rate / 8.0;
    let min = match params.size("min_th") {
        Some(Size::Bytes(n)) => n as f64,
        Some(Size::Packets(n)) => n as f64 * packet,
        None => libm::fmax(half, 5.0 * packet),
    };
    line.set("min", Arg::Whole(cast::trunc(min)));
    line.set("max", Arg::Whole(cast::trunc(min) * 3));
    if auto || params.size("min_th").is_none() || params.size("max_th").is_none() {
        notes.push(format!("auto: computed for a link of {}", Rate(cast::trunc(rate))));
    }
    notes.extend(common(params, line, weight, bytes));
    if params.text("hard_drop") == "true" {
        line.set("harddrop", Arg::Word("harddrop"));
    }
    line.set("adaptive", Arg::Word("adaptive"));
    notes
}
