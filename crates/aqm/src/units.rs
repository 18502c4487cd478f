//! Quantities with units: [`Time`], [`Span`], [`Rate`], [`Bytes`], [`Size`], and their text form
//! (`10mbit`, `5ms`, `300kB`, `100p`).
//!
//! Every conversion is exact or an error: `1.5ms` is 1,500,000 ns, `0.5ns` is an error. All types
//! hold integers, so sums never drift.

use crate::cast;
use crate::error::{Error, Result};
use crate::snapshot::Snapshot;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Point in time: nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Snapshot)]
pub struct Time(pub u64);

/// Length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Snapshot)]
pub struct Span(pub u64);

/// Rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Snapshot)]
pub struct Rate(pub u64);

/// Number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Snapshot)]
pub struct Bytes(pub u64);

/// Length of a queue, in bytes or in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Snapshot)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// Packets of any length.
    Packets(u64),
}

/// Threshold of a queue: a delay, or a number of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Snapshot)]
pub enum Threshold {
    /// Delay.
    Time(Span),
    /// Packets of any length.
    Packets(u64),
}

impl Time {
    /// Start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than any event.
    pub const NEVER: Time = Time(u64::MAX);

    /// Time from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Zero length.
    pub const ZERO: Span = Span(0);

    /// Returns a span of `n` microseconds.
    pub const fn us(n: u64) -> Span {
        Span(n * 1_000)
    }

    /// Returns a span of `n` milliseconds.
    pub const fn ms(n: u64) -> Span {
        Span(n * 1_000_000)
    }

    /// Returns a span of `n` seconds.
    pub const fn s(n: u64) -> Span {
        Span(n * 1_000_000_000)
    }

    /// Converts to seconds, rounded to the nearest `f64`.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Rate {
    /// Converts to packets of `len` bytes per second, rounded to the nearest `f64`.
    pub fn packets_per_sec(self, len: Bytes) -> f64 {
        self.0 as f64 / (8.0 * len.0 as f64)
    }
}

impl Size {
    /// Bare number of bytes or packets.
    pub fn number(self) -> u64 {
        match self {
            Size::Bytes(n) | Size::Packets(n) => n,
        }
    }

    /// True if a buffer of this size can hold `packets` packets of `bytes` bytes.
    #[inline]
    pub fn holds(self, packets: u32, bytes: u64) -> bool {
        match self {
            Size::Bytes(n) => bytes <= n,
            Size::Packets(n) => u64::from(packets) <= n,
        }
    }

    /// True if the unit is the byte.
    pub fn in_bytes(self) -> bool {
        matches!(self, Size::Bytes(_))
    }
}

/// Converts exactly; a duration above 2^64 - 1 ns (584 years) becomes that.
impl From<core::time::Duration> for Span {
    fn from(duration: core::time::Duration) -> Span {
        Span(cast::saturate(duration.as_nanos()))
    }
}

impl From<Span> for core::time::Duration {
    fn from(span: Span) -> core::time::Duration {
        core::time::Duration::from_nanos(span.0)
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, s: Span) -> Time {
        Time(self.0.saturating_add(s.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, s: Span) {
        *self = *self + s;
    }
}

impl Sub<Time> for Time {
    type Output = Span;
    /// Panics if `t` is later: time does not run backwards.
    fn sub(self, t: Time) -> Span {
        Span(self.0.checked_sub(t.0).expect("time runs forwards"))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, s: Span) -> Span {
        Span(self.0.saturating_add(s.0))
    }
}

// ---- parsing ----------------------------------------------------------------------------------

/// Splits `10.5 mbit` into its number, as digits and a count of decimals, and its unit.
fn split(text: &str) -> Result<(u128, u32, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let bad = || Error::new(format!("{text:?} does not start with a plain number"));
    if text.starts_with('-') {
        return Err(Error::new(format!("{text:?} is negative")));
    }
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() > 20 || part.len() > 15 {
        return Err(Error::new(format!("{text:?} has too many digits")));
    }
    let digits = format!("{whole}{part}").parse().map_err(|_| bad())?;
    Ok((digits, cast::index32(part.len()), unit.trim()))
}

/// Returns `digits / 10^decimals * scale` if that is a whole number.
fn exact(text: &str, digits: u128, decimals: u32, scale: u64, grain: &str) -> Result<u64> {
    let (scaled, tens) = (digits * u128::from(scale), 10u128.pow(decimals));
    if scaled % tens != 0 {
        return Err(Error::new(format!("{text:?} is not a whole number of {grain}")));
    }
    u64::try_from(scaled / tens).map_err(|_| Error::new(format!("{text:?} is too large")))
}

/// Returns the multiplier of an SI or binary prefix, in either case.
fn prefix(p: &str) -> Option<u64> {
    Some(match p {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        "t" | "T" => 1_000_000_000_000,
        "ki" | "Ki" => 1 << 10,
        "mi" | "Mi" => 1 << 20,
        "gi" | "Gi" => 1 << 30,
        _ => return None,
    })
}

/// Creates the error for `unit` in place of a unit of `what`.
fn not_a(what: &str, text: &str, unit: &str, like: &str) -> Error {
    if unit.is_empty() {
        Error::new(format!("{text:?} has no unit; a {what} is written like {like}"))
    } else {
        Error::new(format!("{text:?} is not a {what}: unknown unit {unit:?}; write it like {like}"))
    }
}

impl core::str::FromStr for Span {
    type Err = Error;
    fn from_str(text: &str) -> Result<Span> {
        let (digits, decimals, unit) = split(text)?;
        let scale = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(not_a("duration", text, unit, "5ms, 300us or 2s")),
        };
        exact(text, digits, decimals, scale, "nanoseconds").map(Span)
    }
}

impl core::str::FromStr for Rate {
    type Err = Error;
    fn from_str(text: &str) -> Result<Rate> {
        let (digits, decimals, unit) = split(text)?;
        let bps = unit.to_lowercase();
        if let Some(p) = bps.strip_suffix("bps").filter(|p| prefix(p).is_some()) {
            let n = text.trim().trim_end_matches(unit).trim();
            let (bits, bytes) = (p.to_lowercase(), p.to_uppercase().replace('K', "k"));
            return Err(Error::new(format!(
                "{text:?} is ambiguous (tc reads {unit:?} as bytes, others as bits), \
                 did you mean {n}{bits}bit or {n}{bytes}B/s?"
            )));
        }
        let bits = ["bit/s", "bit", "b/s"].iter().find_map(|u| unit.strip_suffix(u));
        let scale = match (bits, unit.strip_suffix("B/s")) {
            (Some(p), _) => prefix(p),
            (_, Some(p)) => prefix(p).map(|s| s * 8),
            _ => None,
        };
        let scale = scale.ok_or_else(|| not_a("rate", text, unit, "10mbit or 1.25MB/s"))?;
        exact(text, digits, decimals, scale, "bits per second").map(Rate)
    }
}

impl core::str::FromStr for Size {
    type Err = Error;
    fn from_str(text: &str) -> Result<Size> {
        let (digits, decimals, unit) = split(text)?;
        if matches!(unit, "p" | "pkt" | "pkts" | "packet" | "packets") {
            return exact(text, digits, decimals, 1, "packets").map(Size::Packets);
        }
        let scale = unit.strip_suffix('B').and_then(prefix);
        let scale = scale.ok_or_else(|| not_a("size", text, unit, "300kB, 64KiB or 100p"))?;
        exact(text, digits, decimals, scale, "bytes").map(Size::Bytes)
    }
}

impl core::str::FromStr for Bytes {
    type Err = Error;
    fn from_str(text: &str) -> Result<Bytes> {
        match text.parse()? {
            Size::Bytes(n) => Ok(Bytes(n)),
            Size::Packets(_) => {
                Err(Error::new(format!("{text:?} counts packets; bytes are due, like 1500B")))
            }
        }
    }
}

impl core::str::FromStr for Threshold {
    type Err = Error;
    fn from_str(text: &str) -> Result<Threshold> {
        match text.parse() {
            Ok(Size::Packets(n)) => Ok(Threshold::Packets(n)),
            Ok(Size::Bytes(_)) => {
                let text = format!("{text:?} counts bytes; a threshold is written like 1ms or 5p");
                Err(Error::new(text))
            }
            Err(_) => text.parse().map(Threshold::Time).map_err(|_| {
                Error::new(format!("{text:?} is not a threshold; write it like 1ms or 5p"))
            }),
        }
    }
}

// ---- formatting -------------------------------------------------------------------------------

/// Formats `n` in the largest unit of `units` (name, scale; largest first) in which it is whole.
fn written(n: u64, units: &[(&str, u64)]) -> String {
    let (name, scale) = units
        .iter()
        .find(|(_, s)| n.is_multiple_of(*s) && n >= *s)
        .unwrap_or(&units[units.len() - 1]);
    (n / scale).to_string() + name
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
        f.write_str(&if self.0 == 0 { "0s".to_string() } else { written(self.0, &units) })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];
        f.write_str(&written(self.0, &units))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&written(
            self.0,
            &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)],
        ))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Size::Bytes(n) => Bytes(n).fmt(f),
            Size::Packets(n) => write!(f, "{n}p"),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Threshold::Time(time) => time.fmt(f),
            Threshold::Packets(n) => write!(f, "{n}p"),
        }
    }
}

#[cfg(test)]
mod tests;
