//! Filters of tc as rules: which packets they match, and what happens to them.
//!
//! **Source**: tc-u32(8), tc-flower(8), tc-fw(8), tc-matchall(8), tc-basic(8), tc-ematch(8).

use super::header::{Header, Key, protocol};
use super::keys::joined;
use super::place::Handle;
use super::police::{self, Police};
use super::units;
use crate::sorting::sort_by_key;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Filter of tc.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    /// Order in which filters are tried; None if tc chooses it.
    pub pref: Option<u32>,
    /// Protocol of the packets.
    pub protocol: String,
    /// Keys that match the same packets, or the reason why there are none.
    pub keys: Result<Vec<Key>, String>,
    /// Class of the packets.
    pub to: Option<Handle>,
    /// Policer.
    pub police: Option<Police>,
    /// Words of another action; empty if there is none.
    pub action: String,
    /// True for a line of output that only names a table of filters.
    pub is_table: bool,
    /// True for `fw` without a handle: the mark of a packet is the identifier of its class.
    pub by_mark: bool,
}

/// State of reading.
struct Reader<'a> {
    words: core::slice::Iter<'a, String>,
    rule: Rule,
    header: Header,
    handle: String,
    keys: Vec<Key>,
}

/// Words that no packet depends on.
const IGNORED: [&str; 6] = ["skip_hw", "skip_sw", "in_hw", "not_in_hw", "terminal", "verbose"];
/// The same with a value.
const IGNORED_VALUES: [&str; 6] = ["fh", "order", "bkt", "in_hw_count", "ref", "bind"];

impl Rule {
    /// Reads the words of a filter, as they follow the device.
    pub fn read(words: &[String]) -> Rule {
        let rule = Rule {
            pref: None,
            protocol: "all".to_string(),
            keys: Ok(Vec::new()),
            to: None,
            police: None,
            action: String::new(),
            is_table: false,
            by_mark: false,
        };
        let mut reader = Reader {
            words: words.iter(),
            rule,
            header: Header::ANY,
            handle: String::new(),
            keys: Vec::new(),
        };
        let result = reader.read();
        let Reader { mut rule, header, keys, .. } = reader;
        rule.keys = result.and_then(|()| header.keys()).and_then(|of_header| {
            let one = |all: Vec<Key>, key| joined(&all, core::slice::from_ref(key));
            let all = keys.iter().try_fold(of_header, one);
            let mut all = all.ok_or("two values for the same bits, so no packet matches")?;
            sort_by_key(&mut all, Key::clone);
            Ok(all)
        });
        rule
    }
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.words.next().map(String::as_str)
    }

    fn value(&mut self, key: &str) -> Result<&'a str, String> {
        self.next().ok_or_else(|| format!("{key} has no value"))
    }

    fn read(&mut self) -> Result<(), String> {
        while let Some(word) = self.next() {
            match word {
                "root" | "ingress" | "egress" => {}
                "parent" | "dev" | "block" => drop(self.value(word)?),
                "protocol" => self.rule.protocol = self.value(word)?.to_lowercase(),
                "pref" | "prio" | "preference" | "priority" => {
                    let number = units::integer(self.value(word)?).map_err(|e| e.to_string())?;
                    self.rule.pref = u32::try_from(number).ok().filter(|pref| *pref > 0);
                }
                "handle" => self.handle = self.value(word)?.to_string(),
                "chain" if self.value(word)? == "0" => {}
                "chain" => return Err("sojourn has no chains of filters".to_string()),
                kind => return self.kind(kind),
            }
        }
        Err("names no kind of filter".to_string())
    }

    fn kind(&mut self, kind: &str) -> Result<(), String> {
        // An output begins with a line for the chain, before the filters in it.
        self.rule.is_table = matches!(self.words.as_slice(), [chain, _] if chain == "chain");
        match kind {
            "u32" => {
                let rest = self.words.as_slice();
                let has = |name: &str| rest.iter().any(|word| word == name);
                let tables = has("divisor") && rest.windows(2).any(|w| w == ["divisor", "1"]);
                let own = ["match", "mark", "flowid", "*flowid", "divisor"].into_iter().any(has);
                self.rule.is_table |= tables || !own;
                self.options(Reader::u32)
            }
            "flower" => self.options(Reader::flower),
            "matchall" => self.options(Reader::unknown),
            "fw" => {
                let rest = self.words.as_slice();
                if self.handle.is_empty() && (rest.is_empty() || self.rule.is_table) {
                    // Its line in an output is like the line of a table.
                    (self.rule.by_mark, self.rule.is_table) = (true, false);
                    return Ok(());
                }
                self.mark_of_handle()?;
                self.options(Reader::unknown)
            }
            "basic" => self.options(Reader::basic),
            _ => Err(format!("sojourn has no counterpart of filters of the kind {kind}")),
        }
    }

    /// Reads the options of a filter: what all kinds have, and others by `own`.
    fn options(&mut self, own: fn(&mut Self, &'a str) -> Result<(), String>) -> Result<(), String> {
        let mut first = Ok(());
        while let Some(word) = self.next() {
            let result = match word {
                // An output marks classes that it does not find.
                "flowid" | "classid" | "*flowid" => self.target(),
                "police" => self.police(),
                "action" => self.action(),
                "chain" => match self.next() {
                    Some("0") | None => Ok(()),
                    Some(chain) => Err(format!("chain {chain}: sojourn has no chains of filters")),
                },
                // Number of the filter; `fw` has read it as the mark.
                "handle" => self.value(word).map(drop),
                _ if IGNORED.contains(&word) => Ok(()),
                _ if IGNORED_VALUES.contains(&word) => {
                    self.next();
                    Ok(())
                }
                _ => own(self, word),
            };
            // The target is read in any case.
            first = first.and(result);
        }
        first
    }

    fn target(&mut self) -> Result<(), String> {
        let text = self.value("flowid")?;
        self.rule.to = Some(units::class_id(text).map_err(|e| e.to_string())?);
        Ok(())
    }

    fn police(&mut self) -> Result<(), String> {
        let (police, used) = police::read(self.words.as_slice())?;
        self.words = self.words.as_slice()[used..].iter();
        self.rule.police = Some(police);
        Ok(())
    }

    /// Reads `action KIND ...`, or `action order N: KIND ...` of an output.
    fn action(&mut self) -> Result<(), String> {
        let word = self.value("action")?;
        match word {
            "order" => {
                self.next();
                self.action()
            }
            "police" => self.police(),
            "pass" | "ok" if self.words.as_slice().is_empty() => Ok(()),
            _ => {
                let rest: Vec<&str> = self.words.by_ref().map(String::as_str).collect();
                self.rule.action = format!("{word} {}", rest.join(" ")).trim_end().to_string();
                Ok(())
            }
        }
    }

    fn unknown(&mut self, word: &str) -> Result<(), String> {
        Err(format!("sojourn has no counterpart of {word}"))
    }

    fn mark_of_handle(&mut self) -> Result<(), String> {
        // An output has the handle among the options.
        let rest = self.words.as_slice();
        if let Some(at) = rest.iter().position(|word| word == "handle") {
            self.handle = rest.get(at + 1).cloned().unwrap_or_default();
            let rest: Vec<&String> = rest.iter().take(at).chain(rest.iter().skip(at + 2)).collect();
            if rest.iter().any(|word| *word == "handle") {
                return Err("has two handles".to_string());
            }
        }
        let handle = core::mem::take(&mut self.handle);
        if handle.is_empty() {
            return Err("options of fw require a handle, like handle 6 fw".to_string());
        }
        self.mark(&handle)
    }

    /// Compares the mark with `NUMBER` or `NUMBER/MASK`.
    fn mark(&mut self, text: &str) -> Result<(), String> {
        let (number, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
        let number = units::integer(number).map_err(|e| e.to_string())?;
        let mask = units::integer(mask).map_err(|e| e.to_string())?;
        let all = mask == u64::from(u32::MAX);
        self.keys.push(("mark", if all { number.to_string() } else { format!("{number}/{mask}") }));
        Ok(())
    }

    fn u32(&mut self, word: &str) -> Result<(), String> {
        match word {
            "match" => self.selector(),
            // In an output, with the number of packets that had it.
            "mark" => {
                let (value, mask) = self.pair()?;
                self.mark(&format!("{value}/{mask}"))?;
                if self.words.as_slice().first().is_some_and(|word| word == "(success") {
                    self.words = self.words.as_slice()[2.min(self.words.len())..].iter();
                }
                Ok(())
            }
            "handle" => {
                self.next();
                Ok(())
            }
            // The table that an output names: 800: is the one of the filter itself.
            "ht" if self.rule.is_table => {
                self.words = [].iter();
                Ok(())
            }
            "key" | "ht" if self.is_own_table(word) => Ok(()),
            "divisor" if self.rule.is_table => {
                self.next();
                Ok(())
            }
            "divisor" | "ht" | "link" | "hashkey" | "offset" | "key" | "sample" => {
                Err(format!("{word}: sojourn has no tables of filters"))
            }
            _ => self.unknown(word),
        }
    }

    /// Reads the rest of `key ht 800` or `ht 800:`.
    fn is_own_table(&mut self, word: &str) -> bool {
        let mut words = self.words.clone();
        let table = if word == "key" { words.nth(1) } else { words.next() };
        let number = table.map(|table| u32::from_str_radix(table.trim_end_matches(':'), 16));
        let own = number.is_some_and(|number| number.is_ok_and(|number| number >= 0x800));
        if own {
            self.words = words;
        }
        own
    }

    /// Reads a comparison of u32: `ip dport 22 0xffff`, `u16 0 0xffc0 at 2`, or `VALUE/MASK at 16`
    /// of an output.
    fn selector(&mut self) -> Result<(), String> {
        let layer = self.value("match")?;
        if let Some((value, mask)) = layer.split_once('/') {
            let hex = |text: &str| u32::from_str_radix(text, 16).map_err(|e| e.to_string());
            let (value, mask) = (hex(value)?, hex(mask)?);
            let offset = self.offset()?.unwrap_or(0);
            return self.header.compare(offset, 4, value, mask);
        }
        match layer {
            "u8" | "u16" | "u32" => {
                let width =
                    units::integer(&layer[1..]).map_or(4, |bits| crate::cast::index(bits) / 8);
                let (value, mask) = self.pair()?;
                let offset = self.offset()?.unwrap_or(0);
                self.header.compare(offset, width, value, mask)
            }
            "mark" => {
                let (value, mask) = self.pair()?;
                self.mark(&format!("{value}/{mask}"))
            }
            _ => {
                let field = self.value(layer)?;
                self.field(layer, field)
            }
        }
    }

    /// Reads the comparison of a field with a name.
    fn field(&mut self, layer: &str, field: &str) -> Result<(), String> {
        let ipv6 = layer == "ip6";
        let (offset, width) = match (layer, field) {
            ("ip" | "ip6", "src" | "dst") => {
                let text = self.value(field)?;
                return self.address(field == "src", text);
            }
            ("ip", "tos" | "dsfield" | "precedence") | ("ip6", "priority") => (1, 1),
            ("ip" | "ip6", "protocol") => (9, 1),
            ("ip", "ihl") => (0, 1),
            ("ip" | "ip6", "sport") | ("tcp" | "udp", "src") => (20, 2),
            ("ip" | "ip6", "dport") | ("tcp" | "udp", "dst") => (22, 2),
            _ => {
                let _ = self.pair();
                return Err(format!("{layer} {field}: sojourn has no filter by it"));
            }
        };
        let (value, mask) = self.pair()?;
        let (value, mask) = if field == "ihl" { (value & 15, mask & 15) } else { (value, mask) };
        let named = self.offset()?;
        if named.is_some_and(|named| named != offset && named != 0 && !ipv6) {
            return Err(format!("{layer} {field} at another place"));
        }
        self.header.compare(offset, width, value, mask)
    }

    /// Compares an address.
    fn address(&mut self, source: bool, text: &str) -> Result<(), String> {
        let (address, length) = text.split_once('/').unwrap_or((text, ""));
        if address.contains(':') {
            if !matches!(length, "" | "128") {
                return Err(format!("{text}: a filter names one host, not a network"));
            }
            let name = address.replace(':', "-").trim_start_matches('-').to_string();
            self.keys.push((if source { "source" } else { "destination" }, name));
            return Ok(());
        }
        let parts: Vec<u8> = address.split('.').filter_map(|part| part.parse().ok()).collect();
        let Ok(bytes) = <[u8; 4]>::try_from(parts) else {
            return Err(format!("{text} is no address"));
        };
        let bits: u32 = if length.is_empty() { 32 } else { length.parse().unwrap_or(33) };
        if bits > 32 {
            return Err(format!("{text} is no address with the length of a prefix"));
        }
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        let start = if source { 12 } else { 16 };
        self.header.compare(start, 4, u32::from_be_bytes(bytes), mask)
    }

    /// Reads a value and a mask.
    fn pair(&mut self) -> Result<(u32, u32), String> {
        let mut number = || {
            let text = self.value("match")?;
            let number = units::integer(text).or_else(|e| {
                u32::from_str_radix(text, 16).map(u64::from).map_err(|_| e.to_string())
            })?;
            u32::try_from(number).map_err(|_| format!("{text} has more than 32 bits"))
        };
        Ok((number()?, number()?))
    }

    /// Reads `at OFFSET`, if it is there.
    fn offset(&mut self) -> Result<Option<i64>, String> {
        if self.words.as_slice().first().is_none_or(|word| word != "at") {
            return Ok(None);
        }
        self.next();
        let text = self.value("at")?;
        let (base, digits) = match text.strip_prefix("nexthdr+") {
            Some(rest) => (20, rest),
            None => (0, text),
        };
        let number: i64 = match digits.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).map_err(|e| e.to_string())?,
            None => digits.parse().map_err(|_| format!("{text} is no offset"))?,
        };
        Ok(Some(base + number))
    }

    fn flower(&mut self, word: &str) -> Result<(), String> {
        match word {
            "handle" | "eth_type" => {
                self.next();
                Ok(())
            }
            "ip_proto" => {
                let text = self.value(word)?;
                let number = text.parse().ok().and_then(protocol);
                let known = ["tcp", "udp", "icmp"].into_iter().find(|name| *name == text);
                let name = known.or(number).or((text == "icmpv6").then_some("icmp"));
                let name = name.ok_or_else(|| format!("ip_proto {text}"))?;
                self.keys.push(("protocol", name.to_string()));
                Ok(())
            }
            "src_ip" | "dst_ip" => {
                let text = self.value(word)?;
                self.address(word == "src_ip", text)
            }
            "src_port" | "dst_port" => {
                let text = self.value(word)?.to_string();
                let key = if word == "src_port" { "source_port" } else { "destination_port" };
                self.keys.push((key, text));
                Ok(())
            }
            "ip_tos" => {
                let text = self.value(word)?;
                let (value, mask) = text.split_once('/').unwrap_or((text, "0xff"));
                let hex = |text: &str| {
                    let digits = text.strip_prefix("0x").unwrap_or(text);
                    u32::from_str_radix(digits, 16).map_err(|e| e.to_string())
                };
                let (value, mask) = (hex(value)?, hex(mask)?);
                self.header.compare(1, 1, value, mask)
            }
            _ => self.unknown(word),
        }
    }

    /// Reads `match EMATCH and EMATCH`.
    fn basic(&mut self, word: &'a str) -> Result<(), String> {
        match word {
            "handle" => {
                self.next();
                Ok(())
            }
            "match" => {
                let rest: Vec<&str> = self.words.as_slice().iter().map(String::as_str).collect();
                let end = rest.iter().position(|w| {
                    matches!(
                        *w,
                        "flowid" | "*flowid" | "classid" | "police" | "action" | "not_in_hw"
                    )
                });
                let end = end.unwrap_or(rest.len());
                let text = rest[..end].join(" ");
                self.words = self.words.as_slice()[end..].iter();
                text.split(" and ").try_for_each(|one| self.ematch(one.trim()))
            }
            _ if word.contains('(') => {
                // An output has no `match`.
                let whole = core::iter::once(word)
                    .chain(self.words.by_ref().map(String::as_str))
                    .collect::<Vec<_>>()
                    .join(" ");
                whole.replace("AND", "and").split(" and ").try_for_each(|e| self.ematch(e.trim()))
            }
            _ => self.unknown(word),
        }
    }

    fn ematch(&mut self, text: &str) -> Result<(), String> {
        let none = || format!("{text}: sojourn has no filter by it");
        let inner = text.split_once('(').and_then(|(name, rest)| {
            rest.trim_end().strip_suffix(')').map(|inner| (name.trim(), inner.trim()))
        });
        let (name, inner) = inner.ok_or_else(none)?;
        let words: Vec<&str> = inner.split_whitespace().collect();
        let number = |text: &str| units::integer(text).ok().and_then(|n| u32::try_from(n).ok());
        match (name, words.as_slice()) {
            ("meta", ["nf_mark" | "fwmark", "eq", value]) => self.mark(value),
            ("cmp", [width @ ("u8" | "u16" | "u32"), "at", at, "layer", layer, rest @ ..]) => {
                let base = match *layer {
                    "1" | "network" => 0,
                    "2" | "transport" => 20,
                    _ => return Err(none()),
                };
                let (mask, value) = match rest {
                    ["eq", value] => (u32::MAX, number(value)),
                    ["mask", mask, "eq", value] => (number(mask).unwrap_or(0), number(value)),
                    _ => return Err(none()),
                };
                let bytes = width[1..].parse::<usize>().map_or(4, |bits| bits / 8);
                let at: i64 = at.parse().map_err(|_| none())?;
                self.header.compare(base + at, bytes, value.ok_or_else(none)?, mask)
            }
            ("u32", [width @ ("u8" | "u16" | "u32"), value, mask, "at", at]) => {
                let bytes = width[1..].parse::<usize>().map_or(4, |bits| bits / 8);
                let (Some(value), Some(mask)) = (number(value), number(mask)) else {
                    return Err(none());
                };
                self.header.compare(at.parse().map_err(|_| none())?, bytes, value, mask)
            }
            _ => Err(none()),
        }
    }
}
