//! Lines of `tc qdisc show`, `tc class show` and `tc filter show`.

use super::line::Form;
use super::place::{Handle, Object, Place, Site, place};
use super::table::Line;
use super::units;
use crate::error::{Error, Result};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Line of output.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Device; empty if the line names none.
    pub site: Site,
    /// Object.
    pub object: Object,
    /// Place.
    pub place: Option<Place>,
    /// Handle of the qdisc, with minor number 0, or identifier of the class.
    pub handle: Handle,
    /// Qdisc or class; none for a continuation or a filter.
    pub line: Option<Line>,
    /// Words of a filter, or of the line after a qdisc.
    pub words: Vec<String>,
}

/// Reads a line of output, whose second word is `kind`. Returns none for a command.
///
/// # Errors
/// An unknown qdisc or word.
pub fn line(object: Object, kind: &str, rest: &[&str]) -> Result<Option<Shown>> {
    let site = Site::default();
    let words = Vec::new();
    let mut shown = Shown { site, object, place: None, handle: (0, 0), line: None, words };
    if object == Object::Filter {
        if !matches!(kind, "parent" | "protocol" | "ingress" | "egress" | "dev" | "root" | "[") {
            return Ok(None);
        }
        shown.words.push(kind.to_string());
        shown.words.extend(rest.iter().map(|w| (*w).to_string()));
        if kind == "parent" {
            shown.place = place(rest.first().copied().unwrap_or_default()).ok().flatten();
        }
        return Ok(Some(shown));
    }
    let mut words = rest.iter();
    let first = words.next().copied().unwrap_or_default();
    let is_handle = first.contains(':') && units::class_id(first).is_ok();
    if !is_handle {
        return Ok(None);
    }
    shown.handle = units::class_id(first)?;
    loop {
        let after = words.clone();
        let mut value =
            |key: &str| words.next().copied().ok_or_else(|| Error::new("has no value").at(key));
        match value("line") {
            Ok("dev") => shown.site.dev = value("dev")?.to_string(),
            Ok("parent") => shown.place = place(value("parent")?)?,
            Ok("root") => shown.place = Some(Place::Root),
            Ok("leaf" | "refcnt") => drop(value("refcnt")?),
            Ok("offloaded" | "[Unknown" | "----------------" | "deleted") => {}
            Ok("ingress_block" | "egress_block") => drop(value("block")?),
            _ => {
                words = after;
                break;
            }
        }
    }
    let words = words.as_slice();
    shown.line = Some(match object {
        // The class of a fair queue is one of its flows: statistics.
        Object::Class if !Line::has_classes(kind) => return Ok(Some(shown)),
        Object::Class => Line::read_class(kind, words, Form::Shown)?.completed(Form::Shown)?,
        _ => Line::read(kind, words, Form::Shown)?.completed(Form::Shown)?,
    });
    Ok(Some(shown))
}

/// First words of a line that follows a filter.
const OF_FILTERS: [&str; 26] = [
    "match",
    "eth_type",
    "ip_proto",
    "src_ip",
    "dst_ip",
    "src_port",
    "dst_port",
    "ip_tos",
    "not_in_hw",
    "in_hw",
    "skip_hw",
    "skip_sw",
    "police",
    "action",
    "mark",
    "AND",
    "OR",
    "dst_mac",
    "src_mac",
    "indev",
    "ip_ttl",
    "ip_flags",
    "tcp_flags",
    "num_of_vlans",
    "l2_miss",
    "code",
];

/// Starts of other such words, of flower.
const OF_FLOWER: [&str; 8] = ["vlan_", "cvlan_", "mpls_", "enc_", "arp_", "ct_", "icmp_", "ppp"];

/// Reads a line that follows the line of a qdisc, a size table, the RED of sfq or a virtual queue
/// of gred, or the line of a filter. Returns none for statistics.
pub fn continuation(words: &[&str]) -> Option<Shown> {
    let more = matches!(words, ["linklayer", ..] | ["ewma", _, "min", ..] | ["vq", _, "prio", ..])
        || matches!(words, ["overhead" | "mpu" | "mtu", n, ..] if n.parse::<i64>().is_ok());
    let ematch = |word: &&str| {
        let word = word.trim_start_matches("NOT");
        ["cmp(", "meta(", "u32(", "nbyte("].iter().any(|start| word.starts_with(start))
    };
    let flower = |word: &str| OF_FLOWER.iter().any(|start| word.starts_with(start));
    let is_own = |word: &&str| OF_FILTERS.contains(word) || ematch(word) || flower(word);
    let of_filter = words.first().is_some_and(is_own);
    (more || of_filter).then(|| Shown {
        site: Site::default(),
        object: if more { Object::Qdisc } else { Object::Filter },
        place: None,
        handle: (0, 0),
        line: None,
        words: words.iter().map(|w| (*w).to_string()).collect(),
    })
}
