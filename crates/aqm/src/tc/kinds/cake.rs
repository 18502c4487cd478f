//! CAKE.

use super::super::table::Ours::{Computed, Lost, To};
use super::super::table::{Arg, Becomes, Fixed, Kind, Line, Ours, Params, Rules, Unit, Word};
use crate::error::{Error, Result};
use crate::overhead::Framing;
use crate::params::{Setting, Value};
use crate::sched::cake::{Overhead, RTTS};
use crate::units::{Bytes, Span};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

const fn choice(
    name: &'static str,
    words: &'static [(&'static str, &'static str)],
    ours: Ours,
) -> Word {
    Word::new(name, Unit::Choice(words), words[0].0, ours)
}

/// Words of the overhead, which add up from left to right, with the number of arguments of each.
const OVERHEAD: &[(&str, usize)] = &[
    ("raw", 0),
    ("conservative", 0),
    ("ipoa-vcmux", 0),
    ("ipoa-llcsnap", 0),
    ("bridged-vcmux", 0),
    ("bridged-llcsnap", 0),
    ("pppoa-vcmux", 0),
    ("pppoa-llc", 0),
    ("pppoe-vcmux", 0),
    ("pppoe-llcsnap", 0),
    ("pppoe-ptm", 0),
    ("bridged-ptm", 0),
    ("via-ethernet", 0),
    ("ethernet", 0),
    ("ether-vlan", 0),
    ("docsis", 0),
    ("noatm", 0),
    ("atm", 0),
    ("ptm", 0),
    ("overhead", 1),
    ("mpu", 1),
];

/// `cake`.
pub static CAKE: Kind = Kind {
    name: "cake",
    becomes: Becomes::Discipline("cake"),
    words: &[
        // Before bandwidth: its output has two words.
        choice("rate", &[("", ""), ("unlimited", ""), ("bandwidth unlimited", "")], Computed),
        Word::new("bandwidth", Unit::Rate, "", To("bandwidth")),
        choice("autorate", &[("", "false"), ("autorate-ingress", "true")], To("autorate_ingress")),
        choice(
            "diffserv",
            &[
                ("diffserv3", "diffserv3"),
                ("besteffort", "besteffort"),
                ("diffserv4", "diffserv4"),
                ("diffserv", "diffserv4"),
                ("diffserv8", "diffserv8"),
                ("precedence", "precedence"),
            ],
            To("tins"),
        ),
        choice(
            "flowmode",
            &[
                ("triple-isolate", "triple_isolate"),
                ("flowblind", "flowblind"),
                ("srchost", "srchost"),
                ("dsthost", "dsthost"),
                ("hosts", "hosts"),
                ("flows", "flows"),
                ("dual-srchost", "dual_srchost"),
                ("dual-dsthost", "dual_dsthost"),
            ],
            To("isolation"),
        ),
        choice(
            "nat",
            &[("nonat", ""), ("nat", "")],
            Lost("hosts are given by name, or read from the headers as they are"),
        ),
        choice("wash", &[("nowash", "false"), ("wash", "true")], To("wash")),
        choice("ingress", &[("egress", "false"), ("ingress", "true")], To("ingress")),
        choice(
            "ack-filter",
            &[
                ("no-ack-filter", "off"),
                ("ack-filter", "on"),
                ("ack-filter-aggressive", "aggressive"),
            ],
            To("ack_filter"),
        ),
        choice(
            "split-gso",
            &[("split-gso", ""), ("no-split-gso", "")],
            Lost("packets here are never aggregated"),
        ),
        choice(
            "preset",
            &[
                ("", ""),
                ("datacentre", ""),
                ("lan", ""),
                ("metro", ""),
                ("regional", ""),
                ("internet", ""),
                ("oceanic", ""),
                ("satellite", ""),
                ("interplanetary", ""),
            ],
            Computed,
        ),
        Word::new("rtt", Unit::Time, "100ms", Computed),
        Word::new("framing", Unit::Words(OVERHEAD), "raw overhead 0", Computed),
        Word::new("memlimit", Unit::Bytes, "", Computed),
        Word::new("fwmark", Unit::Text, "", Lost("packets carry no mark of a firewall")),
    ],
    fixed: &[
        Fixed { name: "ecn", linux: "true", why: "Linux always marks ECN-capable packets" },
        Fixed {
            name: "memory",
            linux: "truesize",
            why: "Linux counts the memory of the packets, about 2304 bytes for one of 1514",
        },
        Fixed { name: "mtu", linux: "1514B", why: "Linux takes it from the device" },
    ],
    rules: Rules {
        parameters: &["rtt", "overhead", "header", "limit", "split_gso"],
        complete,
        settings,
        words,
        merge,
        ends: &[
            ("rate", &["bandwidth"]),
            ("bandwidth", &["rate"]),
            ("preset", &["rtt"]),
            ("rtt", &["preset"]),
        ],
        ..Rules::NONE
    },
    differs: "Linux counts the Ethernet header of 14 bytes in a packet, unless an overhead is \
              given: write header = \"14B\" if the packets here have it",
};

/// Replaces a name of a round-trip time, adds up the words of the overhead, and writes the mask as
/// `tc qdisc show` does.
fn complete(line: &mut Line) -> Result<()> {
    if let Some(Arg::Text(text)) = line.given("fwmark") {
        let mask = match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let Some(mask) = mask else {
            let text = format!("{text:?} is not a mask of 32 bits, like 0xff");
            return Err(Error::new(text).at("fwmark"));
        };
        line.set("fwmark", Arg::Text(format!("{mask:#x}")));
    }
    if let Some(Arg::Word(preset)) = line.given("preset")
        && let Some((_, rtt)) = RTTS.iter().find(|(name, _)| name == preset)
    {
        line.set("rtt", Arg::Whole(rtt.0));
        line.set("preset", Arg::Word(""));
    }
    if let Some(Arg::Text(text)) = line.given("framing") {
        let overhead = Overhead::read(Setting::Text(text)).map_err(|e| e.at("overhead"))?;
        line.set("framing", Arg::Text(shown(overhead)));
    }
    Ok(())
}

/// Of the overhead, tc sends bytes, framing and smallest packet apart: those that are not named are
/// kept.
fn merge(old: &Line, mut new: Line) -> Result<Line> {
    let Some(Arg::Text(text)) = new.given("framing").cloned() else { return Ok(new) };
    let read = |text: &str| Overhead::read(Setting::Text(text)).map_err(|e| e.at("overhead"));
    let before = match old.get("framing") {
        Some(Arg::Text(text)) => read(&text)?,
        _ => Overhead::RAW,
    };
    let mut after = read(&text)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    if after.bytes.is_none() && !words.contains(&"raw") {
        after.bytes = before.bytes;
    }
    // Read over two framings: a word of framing gives the same with both.
    let framed = [read(&format!("atm {text}"))?, read(&format!("ptm {text}"))?];
    if framed[0].framing != framed[1].framing {
        after.framing = before.framing;
    }
    if after.mpu == 0 {
        after.mpu = before.mpu;
    }
    new.set("framing", Arg::Text(shown(after)));
    Ok(new)
}

/// The overhead in the words of `tc qdisc show`.
fn shown(overhead: Overhead) -> String {
    let text = overhead.write();
    let parts: Vec<&str> = text.split(' ').collect();
    let framing = match parts.last() {
        Some(&"atm") => "atm ",
        Some(&"ptm") => "ptm ",
        _ if parts[0] == "raw" => "",
        _ => "noatm ",
    };
    let bytes = if parts[0] == "raw" { "raw " } else { "" };
    let number = if parts[0] == "raw" { "0" } else { parts[0] };
    let mpu = if overhead.mpu > 0 { format!(" mpu {}", overhead.mpu) } else { String::new() };
    format!("{bytes}{framing}overhead {number}{mpu}")
}

fn settings(line: &Line) -> Vec<(&'static str, String)> {
    let mut settings = Vec::from([("rtt", Span(line.whole("rtt").max(1_000)).to_string())]);
    if let Some(Arg::Text(text)) = line.get("framing") {
        // `complete` has read it.
        let overhead = Overhead::read(Setting::Text(&text)).unwrap_or(Overhead::RAW);
        settings.push(("overhead", overhead.write()));
    }
    let limit = match line.whole("memlimit") {
        0 => "auto".to_string(),
        bytes => Bytes(bytes).to_string(),
    };
    settings.push(("limit", limit));
    settings
}

fn words(params: &Params<'_>, line: &mut Line) -> Vec<String> {
    let mut lost = Vec::new();
    let us = (params.nanos("rtt") / 1_000).max(1);
    if us * 1_000 != params.nanos("rtt") {
        lost.push(format!("rtt = {}: the nearest value of tc is {us}us", params.text("rtt")));
    }
    line.set("rtt", Arg::Whole(us * 1_000));
    if let Ok(mut overhead) = Overhead::read(Setting::Text(params.text("overhead"))) {
        if let Framing::Cells(..) = overhead.framing {
            lost.push(format!("overhead = {}: cake has the cells of ATM only", overhead.write()));
            overhead.framing = Framing::NoAtm;
        }
        line.set("framing", Arg::Text(shown(overhead)));
    }
    match params.size("limit") {
        Some(limit) if limit.in_bytes() => line.set("memlimit", Arg::Whole(limit.number())),
        Some(limit) => {
            lost.push(format!("limit = {limit}: Linux limits the memory of the packets in bytes"));
        }
        None => {}
    }
    lost
}
