//! Filters of a classful discipline: the class of a packet by what the packet is.

use crate::dscp;
use crate::error::{Error, ErrorKind, Result};
use crate::packet::{Ecn, Packet, TcpFlags};
use crate::params::{Params, Setting, Value, call_text, parse_call};
use crate::random::hash;
use crate::units::Bytes;
use alloc::format;
use alloc::string::{String, ToString};

crate::choice! {
    /// ECN field of a packet.
    pub enum EcnMatch {
        /// Not ECN-capable.
        NotEct = "not_ect",
        /// ECN-capable, classic.
        Ect0 = "ect0",
        /// ECN-capable, low latency.
        Ect1 = "ect1",
        /// Congestion experienced.
        Ce = "ce",
    }
}

impl EcnMatch {
    fn field(self) -> Ecn {
        match self {
            EcnMatch::NotEct => Ecn::NotEct,
            EcnMatch::Ect0 => Ecn::Ect0,
            EcnMatch::Ect1 => Ecn::Ect1,
            EcnMatch::Ce => Ecn::Ce,
        }
    }
}

/// A class, or classes from one to another, like 3-7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes(pub u16, pub u16);

/// A differentiated services code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dscp(pub u16);

/// Name of a host, and the key of its packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    name: String,
    key: u32,
}

impl Value for Classes {
    fn kind() -> String {
        "class".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        let class = |setting| {
            let number = u64::read(setting)?;
            u16::try_from(number).map_err(|_| {
                let text = format!("{number} is out of range, allowed: 0 to 65535");
                Error::new(text).of_kind(ErrorKind::OutOfRange)
            })
        };
        let Setting::Text(text) = setting else { return class(setting).map(|c| Classes(c, c)) };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let classes = Classes(class(Setting::Text(first))?, class(Setting::Text(last))?);
        if classes.0 > classes.1 {
            return Err(Error::new(format!("{text:?} ends before it begins")));
        }
        Ok(classes)
    }

    fn write(&self) -> String {
        let Classes(first, last) = self;
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    }

    fn is_within(&self, _: &Self, _: &Self) -> bool {
        true
    }
}

impl Value for Dscp {
    fn kind() -> String {
        "DSCP".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        dscp::read(setting).map(Dscp)
    }

    fn write(&self) -> String {
        self.0.to_string()
    }

    fn is_within(&self, _: &Self, _: &Self) -> bool {
        true
    }
}

impl Value for Host {
    fn kind() -> String {
        "host".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        match setting {
            Setting::Text(name) if !name.is_empty() => {
                Ok(Host { name: name.to_string(), key: hash(name) })
            }
            other => Err(Error::new(format!("{other} is not the name of a host"))),
        }
    }

    fn write(&self) -> String {
        self.name.clone()
    }

    fn is_within(&self, _: &Self, _: &Self) -> bool {
        true
    }
}

crate::params! {
    /// Filter: the class of packets that match everything that is given. Its text form is
    /// `2(dscp=EF)`, where 2 is the class, or `2` for all packets.
    pub struct Filter {
        /// Class of the packets, numbered as the classes of the discipline.
        to: u64 = 0, [0 => 1_048_576], "", [];
        /// Class of the flow, or a range like 3-7.
        class: Option<Classes> = None, [], "", [];
        /// DSCP, by number or name.
        dscp: Option<Dscp> = None, [], "", [];
        /// ECN field.
        ecn: Option<EcnMatch> = None, [], "", [];
        /// Name of the host that sends the packets.
        source: Option<Host> = None, [], "", ["sender"];
        /// Name of the host that receives the packets.
        destination: Option<Host> = None, [], "", ["receiver"];
        /// Largest length.
        max_length: Option<Bytes> = None, [Some(Bytes(1)) => Some(Bytes(1_000_000_000))], "", [];
        /// True for acknowledgements of TCP without payload, false for all other packets.
        pure_ack: Option<bool> = None, [], "", [];
    }
}

impl Filter {
    /// True if `packet` matches.
    #[inline]
    pub fn matches(&self, packet: &Packet) -> bool {
        let Filter { to: _, class, dscp, ecn, source, destination, max_length, pure_ack } = self;
        let pure = || packet.tcp.has(TcpFlags::ACK.with(TcpFlags::PURE));
        class.is_none_or(|Classes(first, last)| (first..=last).contains(&packet.class))
            && dscp.is_none_or(|Dscp(dscp)| packet.class & 63 == dscp)
            && ecn.is_none_or(|ecn| ecn.field() == packet.ecn)
            && source.as_ref().is_none_or(|host| host.key == packet.source)
            && destination.as_ref().is_none_or(|host| host.key == packet.destination)
            && max_length.is_none_or(|most| u64::from(packet.len) <= most.0)
            && pure_ack.is_none_or(|is| is == pure())
    }
}

/// Class of `packet` by the first of `filters` that matches.
#[inline]
pub(crate) fn classify(filters: &[Filter], packet: &Packet) -> Option<u64> {
    filters.iter().find(|filter| filter.matches(packet)).map(|filter| filter.to)
}

/// Checks that all classes of `filters` are from `first` up, and that `is_class` holds for them.
///
/// # Errors
/// A filter with another class.
pub(crate) fn check_classes(filters: &[Filter], is_class: impl Fn(u64) -> bool) -> Result<()> {
    match filters.iter().enumerate().find(|(_, filter)| !is_class(filter.to)) {
        None => Ok(()),
        Some((i, filter)) => {
            let text = format!("{} is no class of packets", filter.to);
            Err(Error::new(text).at("to").at(i).at("filters"))
        }
    }
}

impl Value for Filter {
    fn kind() -> String {
        "filter".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        let mut filter = Filter::default();
        let Setting::Text(text) = setting else {
            filter.set("to", setting)?;
            return Ok(filter);
        };
        let (to, matches) = parse_call(text)?;
        filter.set("to", Setting::Text(to))?;
        matches.into_iter().try_for_each(|(key, value)| filter.set(key, Setting::Text(value)))?;
        Ok(filter)
    }

    fn write(&self) -> String {
        let (rows, defaults) = (self.table(), Filter::default().table());
        let differ = rows.iter().zip(&defaults).filter(|(row, default)| row.value != default.value);
        let matches = differ.map(|(row, _)| (row.name, row.value.as_str()));
        call_text(&self.to.to_string(), matches.filter(|(name, _)| *name != "to"))
    }

    fn is_within(&self, _: &Self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    fn read(text: &str) -> super::Result<Filter> {
        Filter::read(Setting::Text(text))
    }

    #[test]
    fn each_match_selects_its_packets() {
        let host = hash("laptop");
        let ack = TcpFlags::ACK.with(TcpFlags::PURE);
        let plain = Packet { len: 1000, class: 46, ecn: Ecn::Ect0, ..Packet::default() };
        let cases = [
            ("1", plain, true),
            ("1(dscp=EF)", plain, true),
            ("1(dscp=EF)", Packet { class: 64 + 46, ..plain }, true),
            ("1(dscp=CS1)", plain, false),
            ("1(class=46)", plain, true),
            ("1(class=46)", Packet { class: 64 + 46, ..plain }, false),
            ("1(class=45-47)", plain, true),
            ("1(class=47-50)", plain, false),
            ("1(ecn=ect0)", plain, true),
            ("1(ecn=ce)", plain, false),
            ("1(source=laptop)", Packet { source: host, ..plain }, true),
            ("1(source=laptop)", Packet { destination: host, ..plain }, false),
            ("1(destination=laptop)", Packet { destination: host, ..plain }, true),
            ("1(max_length=1000B)", plain, true),
            ("1(max_length=999B)", plain, false),
            ("1(pure_ack=true)", Packet { tcp: ack, ..plain }, true),
            ("1(pure_ack=true)", plain, false),
            ("1(pure_ack=false)", Packet { tcp: TcpFlags::ACK, ..plain }, true),
            ("1(dscp=EF, ecn=ect1)", plain, false),
        ];
        for (text, packet, expected) in cases {
            assert_eq!(read(text).unwrap().matches(&packet), expected, "{text}");
        }
    }

    #[test]
    fn the_first_match_decides_and_the_text_is_canonical() {
        let filters = ["3(dscp=EF, class=0-99)", "2", "1"].map(|text| read(text).unwrap());
        let packet = |class| Packet { class, ..Packet::default() };
        assert_eq!(classify(&filters, &packet(46)), Some(3));
        assert_eq!(classify(&filters, &packet(0)), Some(2));
        assert_eq!(classify(&filters[..1], &packet(0)), None);
        assert_eq!(filters.map(|f| f.write()), ["3(class=0-99, dscp=46)", "2", "1"]);
    }

    #[test]
    fn faults_are_named() {
        let error = |text| read(text).unwrap_err().to_string();
        assert!(error("x").starts_with("to: \"x\" is not a whole number"));
        assert!(error("1(dport=5)").starts_with("dport: unknown parameter \"dport\""));
        assert_eq!(error("1(class=7-3)"), "class: \"7-3\" ends before it begins");
        assert!(error("1(class=70000)").starts_with("class: 70000 is out of range"));
        assert!(error("1(dscp=AF14)").starts_with("dscp: unknown DSCP"));
        assert!(error("1(max_length=64)").starts_with("max_length: "));
    }
}
