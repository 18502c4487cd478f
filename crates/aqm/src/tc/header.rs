//! Bits of the IP and transport header that a filter compares, as keys of a filter of sojourn.
//!
//! `u32` of tc compares any bits; a key compares a whole field. Headers of the transport layer are
//! taken to follow an IP header of 20 bytes.

use crate::params::Params;
use crate::sched::filter::Filter;
use crate::units::Bytes;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Bytes that are looked at: the IP header and 20 bytes of the transport header.
const BYTES: usize = 40;

/// Value and mask of the first bytes of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    value: [u8; BYTES],
    mask: [u8; BYTES],
}

/// Key of a filter with its value.
pub(super) type Key = (&'static str, String);

impl Header {
    /// No bit is compared.
    pub const ANY: Header = Header { value: [0; BYTES], mask: [0; BYTES] };

    /// Compares `width` bytes at `offset` with `value` in the bits of `mask`.
    ///
    /// # Errors
    /// Bytes outside the headers, or another value for the same bits; the text says so.
    pub fn compare(
        &mut self,
        offset: i64,
        width: usize,
        value: u32,
        mask: u32,
    ) -> Result<(), String> {
        let start = usize::try_from(offset).ok().filter(|start| start + width <= BYTES);
        let Some(start) = start.filter(|_| mask != 0).or((mask == 0).then_some(0)) else {
            return Err(format!("bytes at {offset} are outside the headers of IP, TCP and UDP"));
        };
        if mask == 0 {
            return Ok(());
        }
        let bytes = |n: u32| n.to_be_bytes().into_iter().skip(4 - width);
        let both = |i: usize, mask: u8| self.mask[start + i] & mask;
        let mut pairs = bytes(value).zip(bytes(mask)).enumerate();
        if pairs.any(|(i, (value, mask))| (self.value[start + i] ^ value) & both(i, mask) != 0) {
            return Err("two values for the same bits, so no packet matches".to_string());
        }
        for (i, (value, mask)) in bytes(value).zip(bytes(mask)).enumerate() {
            self.value[start + i] |= value & mask;
            self.mask[start + i] |= mask;
        }
        Ok(())
    }

    /// Value and mask of `width` bytes at `start`.
    fn field(&self, start: usize, width: usize) -> (u32, u32) {
        let number = |bytes: &[u8]| {
            bytes.iter().skip(start).take(width).fold(0, |n, byte| (n << 8) | u32::from(*byte))
        };
        (number(&self.value), number(&self.mask))
    }

    /// Keys that match the same packets.
    ///
    /// # Errors
    /// A field that no key matches; the text names it.
    pub fn keys(&self) -> Result<Vec<Key>, String> {
        let mut keys = Vec::new();
        self.version()?;
        self.tos(&mut keys)?;
        for (start, width, name) in [(4, 4, "identification and fragments"), (8, 1, "TTL")] {
            self.nothing(start, width, name)?;
        }
        self.nothing(10, 2, "the checksum")?;
        if self.is_pure_ack()? {
            keys.push(("pure_ack", "true".to_string()));
        } else {
            self.length(&mut keys)?;
            self.protocol(&mut keys)?;
        }
        for (start, key) in [(12, "source"), (16, "destination")] {
            match self.field(start, 4) {
                (_, 0) => {}
                (value, u32::MAX) => keys.push((key, host(value))),
                (value, mask) => {
                    let prefix = mask.leading_ones();
                    let text = format!("{key} {}/{prefix}", host(value).replace('-', "."));
                    return Err(format!("{text}: a filter names one host, not a network"));
                }
            }
        }
        for (start, key) in [(20, "source_port"), (22, "destination_port")] {
            keys.extend(range(self.field(start, 2), 16, key)?.map(|text| (key, text)));
        }
        self.nothing(24, 9, "sequence numbers of TCP")?;
        if !self.is_pure_ack()? {
            self.nothing(33, 1, "flags of TCP")?;
        }
        self.nothing(34, BYTES - 34, "bytes behind the ports")?;
        Ok(keys)
    }

    /// Version and length of the header, which all packets have.
    fn version(&self) -> Result<(), String> {
        let (value, mask) = self.field(0, 1);
        if value == 0x45 & mask {
            Ok(())
        } else {
            Err("packets have IP headers of 20 bytes".into())
        }
    }

    fn nothing(&self, start: usize, width: usize, name: &str) -> Result<(), String> {
        if self.mask[start..start + width].iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        Err(format!("{name}: sojourn has no filter by them"))
    }

    /// DSCP and ECN field.
    fn tos(&self, keys: &mut Vec<Key>) -> Result<(), String> {
        let (value, mask) = self.field(1, 1);
        let none = || Err(format!("TOS {value:#04x}/{mask:#04x}: no whole field of DSCP or ECN"));
        match mask & 3 {
            0 => {}
            3 => {
                let words = ["not_ect", "ect1", "ect0", "ce"];
                keys.push(("ecn", words[(value & 3) as usize].to_string()));
            }
            _ => return none(),
        }
        match range((value >> 2, mask >> 2), 6, "dscp") {
            Ok(None) => Ok(()),
            Ok(Some(text)) if text.contains('-') => {
                // The class of a flow is its DSCP.
                keys.push(("class", text));
                Ok(())
            }
            Ok(Some(text)) => {
                keys.push(("dscp", text));
                Ok(())
            }
            Err(_) => none(),
        }
    }

    /// Largest length: a length below a power of two.
    fn length(&self, keys: &mut Vec<Key>) -> Result<(), String> {
        let (value, mask) = self.field(2, 2);
        let most = u32::from(u16::MAX) - mask;
        match (value, mask) {
            (_, 0) => Ok(()),
            (0, _) if (most + 1).is_power_of_two() && most > 0 => {
                keys.push(("max_length", format!("{most}B")));
                Ok(())
            }
            _ => Err(format!("length {value:#x}/{mask:#x}: not all lengths up to one")),
        }
    }

    fn protocol(&self, keys: &mut Vec<Key>) -> Result<(), String> {
        match self.field(9, 1) {
            (_, 0) => Ok(()),
            (value, 0xff) => {
                let name = protocol(value).ok_or_else(|| format!("protocol {value}"))?;
                keys.push(("protocol", name.to_string()));
                Ok(())
            }
            (value, mask) => Err(format!("protocol {value:#x}/{mask:#x}")),
        }
    }

    /// True if the packets are acknowledgements of TCP without payload: below 64 bytes, with the
    /// flag ACK only.
    fn is_pure_ack(&self) -> Result<bool, String> {
        let (flags, mask) = self.field(33, 1);
        let (length, small) = self.field(2, 2);
        let (protocol, exact) = self.field(9, 1);
        let tcp = (protocol, exact) == (6, 0xff);
        Ok((flags, mask) == (0x10, 0xff) && length == 0 && small >= 0xff80 && tcp)
    }
}

/// Name of an IP protocol that packets of sojourn have.
pub(super) fn protocol(number: u32) -> Option<&'static str> {
    match number {
        1 | 58 => Some("icmp"),
        6 => Some("tcp"),
        17 => Some("udp"),
        _ => None,
    }
}

/// Values of a field of `bits` bits: one, or a range whose length is a power of two; None for all.
fn range((value, mask): (u32, u32), bits: u32, key: &str) -> Result<Option<String>, String> {
    let all = (1u32 << bits) - 1;
    let free = all & !mask;
    if mask == 0 {
        return Ok(None);
    }
    if !(free + 1).is_power_of_two() {
        return Err(format!("{key} {value:#x}/{mask:#x}: not a range of values"));
    }
    let last = value + free;
    Ok(Some(if free == 0 { value.to_string() } else { format!("{value}-{last}") }))
}

/// Host named after an address: names have no dots.
fn host(address: u32) -> String {
    address.to_be_bytes().map(|byte| byte.to_string()).join("-")
}

/// Words of u32 that match the packets of `filter`: of several filters if it has ranges, since u32
/// compares bits.
///
/// # Errors
/// A key that u32 cannot express; the text says why.
pub(super) fn matches(filter: &Filter) -> Result<Vec<String>, String> {
    let defaults = Filter::default().table();
    let rows = filter.table().into_iter().zip(defaults);
    let keys = rows.filter(|(row, default)| row.name != "to" && row.value != default.value);
    let mut all = Vec::from([String::new()]);
    for (row, _) in keys {
        let options = words_of(row.name, &row.value)?;
        let with = |words: &String| {
            options.iter().map(|option| words.clone() + option).collect::<Vec<String>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    if let [words] = all.as_mut_slice()
        && words.is_empty()
    {
        *words = " match u32 0 0".to_string();
    }
    Ok(all.into_iter().map(|words| format!("u32{words}")).collect())
}

/// Comparisons of u32 for one key of a filter: one of these matches.
fn words_of(key: &str, value: &str) -> Result<Vec<String>, String> {
    let all = |words: &[&str]| {
        let words = words.iter().map(|word| format!(" match {word}"));
        Ok(Vec::from([words.collect::<String>()]))
    };
    let one = |word: String| all(&[word.as_str()]);
    match key {
        "dscp" => {
            let number: u32 = value.parse().map_err(|_| format!("{value} is no number"))?;
            one(format!("ip dsfield {:#04x} 0xfc", number << 2))
        }
        "class" => match range_of(value) {
            Some((first, last)) if first < last && last < 64 => {
                let word = |(start, free): (u32, u32)| {
                    format!(" match ip dsfield {:#04x} {:#04x}", start << 2, (63 & !free) << 2)
                };
                Ok(blocks(first, last).into_iter().map(word).collect())
            }
            _ => Err("Linux has no class of a flow; tc matches a DSCP".to_string()),
        },
        "ecn" => {
            let number = ["not_ect", "ect1", "ect0", "ce"].iter().position(|name| *name == value);
            one(format!("ip dsfield {:#04x} 0x03", number.unwrap_or(0)))
        }
        "source" | "destination" => {
            let parts: Vec<u8> = value.split('-').filter_map(|part| part.parse().ok()).collect();
            if parts.len() != 4 || value.split('-').count() != 4 {
                return Err("tc needs the address of the host".to_string());
            }
            let word = if key == "source" { "src" } else { "dst" };
            one(format!("ip {word} {}/32", value.replace('-', ".")))
        }
        "max_length" => {
            let most: u32 =
                value.parse::<Bytes>().map_or(0, |bytes| bytes.0.try_into().unwrap_or(0));
            if !(most + 1).is_power_of_two() || most > 0x7fff {
                return Err("u32 compares with lengths below a power of two only".to_string());
            }
            one(format!("u16 0x0000 {:#06x} at 2", 0xffff & !most))
        }
        "pure_ack" if value == "true" => all(&[
            "ip protocol 6 0xff",
            "u8 0x05 0x0f at 0",
            "u16 0x0000 0xffc0 at 2",
            "u8 0x10 0xff at 33",
        ]),
        "pure_ack" => Err("u32 cannot match all other packets".to_string()),
        "mark" => {
            let (number, mask) = value.split_once('/').unwrap_or((value, "0xffffffff"));
            one(format!("mark {number} {mask}"))
        }
        "protocol" => {
            let number = match value {
                "tcp" => 6,
                "udp" => 17,
                "icmp" => 1,
                _ => return Err(format!("{value} is no protocol of u32")),
            };
            one(format!("ip protocol {number} 0xff"))
        }
        "source_port" | "destination_port" => port_words(key, value),
        _ => Err(format!("tc has no counterpart of {key}")),
    }
}

/// Comparisons of u32 for a range of ports.
fn port_words(key: &str, value: &str) -> Result<Vec<String>, String> {
    let field = if key == "source_port" { "sport" } else { "dport" };
    let range = range_of(value).ok_or_else(|| format!("{value} is no range of ports"));
    let (first, last) = range?;
    let word =
        |(start, free): (u32, u32)| format!(" match ip {field} {start} {:#06x}", 0xffff & !free);
    Ok(blocks(first, last).into_iter().map(word).collect())
}

/// Ends of a range like `3-7`, or a value twice.
fn range_of(value: &str) -> Option<(u32, u32)> {
    let (first, last) = value.split_once('-').unwrap_or((value, value));
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Values from `first` to `last` as blocks whose length is a power of two: the first value of each,
/// and the mask of the bits in which its values differ.
pub(super) fn blocks(first: u32, last: u32) -> Vec<(u32, u32)> {
    let mut blocks = Vec::new();
    let mut start = first;
    while start <= last {
        let aligned = if start == 0 { u32::MAX } else { (1 << start.trailing_zeros()) - 1 };
        let rest = (last - start + 1).ilog2();
        let free = aligned.min((1 << rest) - 1);
        blocks.push((start, free));
        start += free + 1;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn blocks_are_a_partition_of_their_range() {
        for first in 0..70u32 {
            for last in first..70 {
                let blocks = blocks(first, last);
                let values: Vec<u32> =
                    blocks.iter().flat_map(|(start, free)| *start..=start + free).collect();
                assert_eq!(values, (first..=last).collect::<Vec<_>>());
                let aligned = |(start, free): &(u32, u32)| start & free == 0;
                assert!(blocks.iter().all(aligned) && blocks.len() <= 12, "{first} to {last}");
            }
        }
        assert_eq!(blocks(0, 65_535), [(0, 65_535)]);
        assert_eq!(blocks(1, 65_534).len(), 30, "the most of a range of ports");
    }
}
