//! Matches of a filter: one type each, with its text form.

use crate::dscp;
use crate::error::{Error, ErrorKind, Result};
use crate::packet::Ecn;
use crate::params::{Setting, Value};
use crate::random::hash;
use crate::snapshot::Snapshot;
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
    pub(super) fn field(self) -> Ecn {
        match self {
            EcnMatch::NotEct => Ecn::NotEct,
            EcnMatch::Ect0 => Ecn::Ect0,
            EcnMatch::Ect1 => Ecn::Ect1,
            EcnMatch::Ce => Ecn::Ce,
        }
    }
}

/// A class, or classes from one to another, like 3-7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct Classes(pub u16, pub u16);

/// A port, or ports from one to another, like 5000-5999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct Ports(pub u16, pub u16);

/// A mark and the mask of the bits that are compared, like 1 or 0x10/0xf0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct Mark {
    pub(super) value: u32,
    pub(super) mask: u32,
}

/// A differentiated services code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct Dscp(pub u16);

/// Name of a host, and the key of its packets.
#[derive(Clone, Debug, PartialEq, Eq, Snapshot)]
pub struct Host {
    name: String,
    pub(super) key: u32,
}

impl Value for Classes {
    type End = Self;

    fn kind() -> String {
        "class".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        read_range(setting).map(|(first, last)| Classes(first, last))
    }

    fn write(&self) -> String {
        write_range(self.0, self.1)
    }

    fn is_within(&self, _: &Self::End, _: &Self::End) -> bool {
        true
    }
}

impl Value for Ports {
    type End = Self;

    fn kind() -> String {
        "port".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        read_range(setting).map(|(first, last)| Ports(first, last))
    }

    fn write(&self) -> String {
        write_range(self.0, self.1)
    }

    fn is_within(&self, _: &Self::End, _: &Self::End) -> bool {
        true
    }
}

/// Reads a number of 16 bits, or a range like 3-7.
fn read_range(setting: Setting<'_>) -> Result<(u16, u16)> {
    let one = |setting| {
        let number = u64::read(setting)?;
        u16::try_from(number).map_err(|_| {
            let text = format!("{number} is out of range, allowed: 0 to 65535");
            Error::new(text).of_kind(ErrorKind::OutOfRange)
        })
    };
    let Setting::Text(text) = setting else { return one(setting).map(|n| (n, n)) };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (one(Setting::Text(first))?, one(Setting::Text(last))?);
    if first > last {
        return Err(Error::new(format!("{text:?} ends before it begins")));
    }
    Ok((first, last))
}

fn write_range(first: u16, last: u16) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

impl Mark {
    /// Returns the mark of the packets that match both; None if there are none.
    pub(crate) fn and(self, other: Mark) -> Option<Mark> {
        let agree = (self.value ^ other.value) & self.mask & other.mask == 0;
        let (value, mask) = (self.value | other.value, self.mask | other.mask);
        agree.then_some(Mark { value, mask })
    }
}

impl Value for Mark {
    type End = Self;

    fn kind() -> String {
        "mark".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        let Setting::Text(text) = setting else {
            return Mark::read(Setting::Text(&u64::read(setting)?.to_string()));
        };
        let number = |text: &str| {
            let hex = text.strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16));
            hex.unwrap_or_else(|| text.parse()).map_err(|_| {
                Error::new(format!("{text:?} is no mark; one is written like 16, 0x10 or 16/255"))
            })
        };
        let (value, mask) = match text.split_once('/') {
            Some((value, mask)) => (number(value)?, number(mask)?),
            None => (number(text)?, u32::MAX),
        };
        if value & !mask != 0 {
            return Err(Error::new(format!("{text:?} has bits outside its mask: none matches")));
        }
        Ok(Mark { value, mask })
    }

    fn write(&self) -> String {
        let Mark { value, mask } = self;
        if *mask == u32::MAX { value.to_string() } else { format!("{value}/{mask}") }
    }

    fn is_within(&self, _: &Self::End, _: &Self::End) -> bool {
        true
    }
}

impl Value for Dscp {
    type End = Self;

    fn kind() -> String {
        "DSCP".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        dscp::read(setting).map(Dscp)
    }

    fn write(&self) -> String {
        self.0.to_string()
    }

    fn is_within(&self, _: &Self::End, _: &Self::End) -> bool {
        true
    }
}

impl Value for Host {
    type End = Self;

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

    fn is_within(&self, _: &Self::End, _: &Self::End) -> bool {
        true
    }
}
