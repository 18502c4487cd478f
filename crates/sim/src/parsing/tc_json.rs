//! Output of `tc -j` as the lines of `tc`, without rounding.

mod mend;

use mend::{WORDS, mended};
use serde_json::{Deserializer, Map, Value as Json};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::sorting::sort_by_key;
use sojourn_aqm::tc::table::{Kind, Unit, Word};
use sojourn_aqm::tc::{self, units};

/// Members of an entry that say nothing about its configuration.
const STATISTICS: [&str; 24] = [
    "kind",
    "class",
    "handle",
    "dev",
    "parent",
    "root",
    "refcnt",
    "options",
    "leaf",
    "bytes",
    "packets",
    "drops",
    "overlimits",
    "requeues",
    "backlog",
    "qlen",
    "offloaded",
    "stats",
    "rate64",
    "lended",
    "borrowed",
    "giants",
    "tokens",
    "ctokens",
];

/// Translates the text of `tc -j qdisc show` to lines of `tc qdisc show`.
///
/// # Errors
/// Text that is not JSON, or not of tc.
pub fn lines(text: &str) -> Result<String> {
    script(text).map(|(lines, _)| lines)
}

/// Translates JSON to lines, and returns other texts as they are; with the members that have no
/// word.
pub(crate) fn as_text(text: &str) -> Result<(String, Vec<String>)> {
    if text.trim_start().starts_with(['[', '{']) {
        script(text)
    } else {
        Ok((text.to_string(), Vec::new()))
    }
}

/// Reads one or several arrays or objects, one after the other.
fn script(text: &str) -> Result<(String, Vec<String>)> {
    let text = mended(text);
    let mut entries = Vec::new();
    for value in Deserializer::from_str(&text).into_iter::<Json>() {
        match value.map_err(|e| Error::new(format!("not valid JSON: {e}")))? {
            Json::Array(list) => entries.extend(list),
            other => entries.push(other),
        }
    }
    let mut lost = Vec::new();
    let lines = entries.iter().enumerate();
    let lines = lines.map(|(i, entry)| shown_line(entry, &mut lost).map_err(|e| e.at(i)));
    let lines = lines.collect::<Result<Vec<String>>>()?;
    Ok((lines.join("\n"), lost))
}

fn shown_line(entry: &Json, lost: &mut Vec<String>) -> Result<String> {
    let Some(entry) = entry.as_object() else {
        return Err(Error::new("is not an object of tc -j qdisc show"));
    };
    let text = |key: &str| entry.get(key).and_then(Json::as_str);
    if entry.contains_key("protocol") || entry.contains_key("pref") {
        return Ok(filter(entry));
    }
    let (object, name) = match (text("class"), text("kind")) {
        (Some(class), _) => ("class", class),
        (None, Some(kind)) => ("qdisc", kind),
        (None, None) => return Err(Error::new("is missing").at("kind")),
    };
    let mut line = format!("{object} {name} {}", text("handle").unwrap_or("0:"));
    if let Some(dev) = text("dev") {
        line += &format!(" dev {dev}");
    }
    match text("parent") {
        Some(parent) => line += &format!(" parent {parent}"),
        None => line += " root",
    }
    if let Some(leaf) = text("leaf") {
        line += &format!(" leaf {leaf}");
    }
    let kind = if object == "class" {
        tc::kinds::CLASSES.iter().copied().find(|kind| kind.name == name)
    } else {
        Some(tc::find(name)?)
    };
    let Some(kind) = kind else { return Ok(line) };
    let options = entry.get("options").and_then(Json::as_object).into_iter().flatten();
    // Options of a class are members of the entry itself.
    let own =
        entry.iter().filter(|(key, _)| object == "class" && !STATISTICS.contains(&key.as_str()));
    let mut known: Vec<_> = options.chain(own).collect();
    // raw also resets the framing, so it comes first.
    sort_by_key(&mut known, |(key, _)| key.as_str() != "raw");
    for (key, value) in &known {
        if let (WORDS, Some(words)) = (key.as_str(), value.as_str()) {
            line += &format!(" {words}");
            continue;
        }
        match shown_word(kind, key.trim(), value) {
            Some(word) => line += &word,
            None => lost.push(format!("{name} {key} {value}: sojourn has no such word")),
        }
    }
    Ok(line)
}

/// A filter as a line of `tc filter show`.
fn filter(entry: &Map<String, Json>) -> String {
    let text = |key: &str, default: &str| match entry.get(key) {
        Some(Json::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => default.to_string(),
    };
    let kind = text("kind", "");
    let (parent, protocol) = (text("parent", "none"), text("protocol", "all"));
    let (pref, chain) = (text("pref", "1"), text("chain", "0"));
    let mut line =
        format!("filter parent {parent} protocol {protocol} pref {pref} {kind} chain {chain}");
    let options = entry.get("options").and_then(Json::as_object).into_iter().flatten();
    for (key, value) in options {
        let compact = plain(value).replace(char::is_whitespace, "");
        match (key.as_str(), value) {
            (WORDS, _) => line += &format!(" {}", plain(value)),
            ("keys", Json::Object(keys)) => {
                for (key, value) in keys {
                    line += &format!(" {key} {}", flower_key(value));
                }
            }
            ("handle" | "fh", _) | (_, Json::Bool(_)) => {}
            ("classid" | "flowid", _) => line += &format!(" flowid {compact}"),
            ("ht_divisor", _) => line += &format!(" ht divisor {compact}"),
            ("key_ht", _) => line += &format!(" key ht {compact}"),
            ("fwmark_value", _) => {
                let mask = entry["options"].get("fwmark_mask").map(plain).unwrap_or_default();
                line += &format!(" match mark {compact} {mask}");
            }
            ("fwmark_mask" | "fwmark_success", _) => {}
            (_, Json::Object(one)) if key.starts_with("match ") => {
                let part = |name: &str| one.get(name).map(plain).unwrap_or_default();
                let (value, mask) = (part("value"), part("mask"));
                line += &format!(" match {value}/{mask} at {}{}", part("offmask"), part("off"));
            }
            _ => line += &format!(" {key} {compact}"),
        }
    }
    line
}

/// Text of a value, without the quotes of a string.
fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// Value of a key of flower; a range of ports is an object.
fn flower_key(value: &Json) -> String {
    match (value.get("start"), value.get("end")) {
        (Some(start), Some(end)) => format!("{start}-{end}"),
        _ => plain(value),
    }
}

/// Text of one option with a space before it; empty if it is off, None if it is unknown.
fn shown_word(kind: &Kind, key: &str, value: &Json) -> Option<String> {
    if let Some(text) = special(kind, key, value) {
        return Some(text);
    }
    let named = |word: &&Word| word.name == key || word.also.contains(&key);
    let word = kind.words.iter().find(named);
    let is_word = |text: &str| tc::line::words_of_name(kind.name).contains(&text);
    Some(match (value, word.map(|word| word.unit)) {
        (Json::Bool(true) | Json::Null, _) if is_word(key) || word.is_some() => format!(" {key}"),
        (Json::Bool(false), _) => String::new(),
        (Json::Number(n), Some(Unit::Rate)) => format!(" {key} {}bps", n.as_u64()?),
        (Json::Number(n), Some(Unit::Time)) => {
            let us = n.as_u64()?;
            let us = if kind.name.ends_with("codel") { before_codel_clock(us) } else { us };
            format!(" {key} {us}")
        }
        (Json::Number(n), Some(_)) => format!(" {key} {n}"),
        (Json::Number(n), None) if is_word(key) => format!(" {key} {n}"),
        (Json::String(text), _) if is_word(text.split('/').next()?) => {
            format!(" {}", text.split('/').next()?)
        }
        (Json::String(text), Some(_)) => format!(" {key} {text}"),
        (Json::Array(items), Some(_)) => {
            let items = items.iter().map(|item| format!(" {item}"));
            format!(" {key}{}", items.collect::<String>())
        }
        _ => return None,
    })
}

/// Options whose JSON differs from the words.
fn special(kind: &Kind, key: &str, value: &Json) -> Option<String> {
    match (kind.name, key, value) {
        ("netem", ..) => netem(key, value),
        ("dualpi2", ..) => dualpi2(key, value),
        ("gred", "dp_cnt", _) => Some(format!(" vqs {value}")),
        ("gred", "dp_default", _) => Some(format!(" default {value}")),
        ("gred", "vqs", Json::Array(queues)) => Some(queues.iter().map(virtual_queue).collect()),
        ("cake", "split_gso", Json::Bool(split)) => {
            Some(if *split { " split-gso" } else { " no-split-gso" }.to_string())
        }
        ("cake", "fwmark", Json::String(mask)) if mask == "0" => Some(String::new()),
        ("cake", "ack-filter", Json::String(mode)) => Some(match mode.as_str() {
            "enabled" => " ack-filter".to_string(),
            "aggressive" => " ack-filter-aggressive".to_string(),
            _ => String::new(),
        }),
        ("cake", "autorate", Json::Bool(true)) => Some(" autorate-ingress".to_string()),
        ("fq", "pacing", Json::Bool(false)) => Some(" nopacing".to_string()),
        // Active and hashed flows.
        ("sfq", "flows", Json::String(_)) => Some(String::new()),
        ("hfsc", "rt" | "ls" | "sc" | "ul", Json::Object(curve)) => {
            let number = |name: &str| curve.get(name).and_then(Json::as_u64).unwrap_or(0);
            let (m1, d, m2) = (number("m1"), number("d"), number("m2"));
            Some(format!(" {key} m1 {m1}bps d {d}us m2 {m2}bps"))
        }
        _ => None,
    }
}

/// Options of netem: shares, and times in seconds.
fn netem(key: &str, value: &Json) -> Option<String> {
    let number = |part: &str| value.get(part).and_then(Json::as_f64).unwrap_or(0.0);
    let percent = |part: &str| units::write_percent(number(part));
    let whole = |part: &str| value.get(part).and_then(Json::as_u64).unwrap_or(0);
    let list = |parts: &[&str]| parts.iter().map(|p| percent(p)).collect::<Vec<_>>().join(" ");
    Some(match (key, value) {
        ("delay", Json::Object(_)) => {
            let mut text = format!(" delay {}s", number("delay"));
            if number("jitter") > 0.0 {
                text += &format!(" {}s", number("jitter"));
                if number("correlation") > 0.0 {
                    text += &format!(" {}", percent("correlation"));
                }
            }
            text
        }
        ("loss-random", _) => format!(" loss {}", list(&["loss", "correlation"])),
        ("loss-state", _) => {
            format!(" loss state {}", list(&["p13", "p31", "p32", "p23", "p14"]))
        }
        ("loss-gemodel", _) => format!(" loss gemodel {}", list(&["p", "r", "1-h", "1-k"])),
        ("duplicate" | "reorder" | "corrupt", Json::Object(_)) => {
            format!(" {key} {}", list(&[key, "correlation"]))
        }
        ("rate", Json::Object(_)) => {
            let signed = |part: &str| value.get(part).and_then(Json::as_i64).unwrap_or(0);
            let parts = ["packetoverhead", "cellsize", "celloverhead"].map(signed);
            let cells = parts.map(|n| n.to_string()).join(" ");
            format!(" rate {}bps {cells}", whole("rate"))
        }
        ("slot", Json::Object(slot)) => {
            let mut text = if slot.contains_key("distribution") {
                let (delay, jitter) = (number("distribution"), number("jitter"));
                format!(" slot distribution {delay}s {jitter}s")
            } else {
                format!(" slot {}s {}s", number("min-delay"), number("max-delay"))
            };
            for part in ["packets", "bytes"] {
                if whole(part) > 0 {
                    text += &format!(" {part} {}", whole(part));
                }
            }
            text
        }
        _ => return None,
    })
}

/// Line of a virtual queue of gred, which follows the line of the qdisc.
fn virtual_queue(queue: &Json) -> String {
    let mut line = "\n".to_string();
    for key in ["vq", "prio", "limit", "min", "max", "ewma", "probability"] {
        if let Some(value) = queue.get(key) {
            line += &format!(" {key} {value}");
        }
    }
    for key in ["ecn", "harddrop"] {
        if queue.get(key) == Some(&Json::Bool(true)) {
            line += &format!(" {key}");
        }
    }
    line
}

/// Options of dualpi2.
fn dualpi2(key: &str, value: &Json) -> Option<String> {
    let word = match key {
        "memory-limit" | "memory_limit" => "memlimit",
        "coupling" => "coupling_factor",
        "min-qlen-step" => "min_qlen_step",
        "step-thresh-us" => return Some(format!(" step_thresh {value}us")),
        "step-thresh-pkts" => return Some(format!(" step_thresh {value}p")),
        "c-protection" => return Some(format!(" classic_protection {value}%")),
        "drop-overload" | "drop-early" | "ecn-mask" => {
            return value.as_str().map(|word| format!(" {word}"));
        }
        "split-gso" | "split_gso" => {
            let off = value == &Json::Bool(false);
            return Some(if off { " no_split_gso" } else { " split_gso" }.to_string());
        }
        _ => return None,
    };
    Some(format!(" {word} {value}"))
}

/// Time in microseconds that the kernel's `CoDel`, whose clock ticks every 1.024 us, shows as
/// `us`: 5000 for 4999.
fn before_codel_clock(us: u64) -> u64 {
    let shown = |us: u64| (((us * 1000) >> 10) << 10) / 1000;
    if (us + 1).is_multiple_of(10) && shown(us + 1) == us { us + 1 } else { us }
}
