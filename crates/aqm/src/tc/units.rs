//! Numbers and units as tc reads and writes them.
//!
//! They differ from the units of the rest of this library: `mbps` is megabytes per second, `k` in a
//! size is 1024, a bare time is in microseconds (in nanoseconds for netem), and fractions are cut
//! off. Case does not matter.

use crate::cast;
use crate::error::{Error, Result};
use crate::units::{Rate, Span};
use alloc::format;
use alloc::string::{String, ToString};

/// Largest quantity that is read, so that products with a unit stay exact.
const MOST: f64 = 1e18;

/// Splits a number, as C's `strtod` reads it, from its unit.
///
/// # Errors
/// A text that does not start with a number, or a number that is negative or too large.
fn split(text: &str) -> Result<(f64, &str)> {
    let bad = || Error::new(format!("{text:?} does not start with a number"));
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    if let Some(digits) = hex {
        let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        let number = u64::from_str_radix(&digits[..end], 16).map_err(|_| bad())?;
        return Ok((number as f64, &digits[end..]));
    }
    let mut end =
        text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    // An exponent belongs to the number only if digits follow.
    if let Some(rest) = text[end..].strip_prefix(['e', 'E']) {
        let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        if length > 0 {
            end += 1 + (rest.len() - digits.len()) + length;
        }
    }
    let number: f64 = text[..end].parse().map_err(|_| bad())?;
    if number < 0.0 {
        return Err(Error::new(format!("{text:?} is negative")));
    }
    if number > MOST {
        return Err(Error::new(format!("{text:?} is too large")));
    }
    Ok((number, &text[end..]))
}

/// Returns `number` in `unit` of `units` (names, scale) as a whole number, rounded down.
fn scaled(text: &str, units: &[(&[&str], f64)], what: &str) -> Result<u64> {
    let (number, unit) = split(text)?;
    let folded = unit.to_lowercase();
    let scale = units.iter().find(|(names, _)| names.contains(&folded.as_str()));
    let Some((_, scale)) = scale else {
        return Err(Error::new(format!("{text:?} is not a {what}")));
    };
    let value = number * scale;
    if value > MOST {
        return Err(Error::new(format!("{text:?} is too large")));
    }
    Ok(cast::trunc(value))
}

/// Reads a rate in bits per second, cut to whole bytes per second.
///
/// # Errors
/// A text that is no rate.
pub fn rate(text: &str) -> Result<u64> {
    const K: f64 = 1000.0;
    const KI: f64 = 1024.0;
    let units: [(&[&str], f64); 18] = [
        (&["", "bit"], 1.0),
        (&["kbit"], K),
        (&["mbit"], K * K),
        (&["gbit"], K * K * K),
        (&["tbit"], K * K * K * K),
        (&["kibit"], KI),
        (&["mibit"], KI * KI),
        (&["gibit"], KI * KI * KI),
        (&["tibit"], KI * KI * KI * KI),
        (&["bps"], 8.0),
        (&["kbps"], 8.0 * K),
        (&["mbps"], 8.0 * K * K),
        (&["gbps"], 8.0 * K * K * K),
        (&["tbps"], 8.0 * K * K * K * K),
        (&["kibps"], 8.0 * KI),
        (&["mibps"], 8.0 * KI * KI),
        (&["gibps"], 8.0 * KI * KI * KI),
        (&["tibps"], 8.0 * KI * KI * KI * KI),
    ];
    let what = "rate; write it like 20mbit (mbps is megabytes per second)";
    scaled(text, &units, what).map(|bits| bits / 8 * 8)
}

/// Reads a size in bytes: `k`, `m` and `g` are powers of 1024.
///
/// # Errors
/// A text that is no size.
pub fn bytes(text: &str) -> Result<u64> {
    let k = 1024.0;
    let units: [(&[&str], f64); 7] = [
        (&["", "b"], 1.0),
        (&["k", "kb"], k),
        (&["m", "mb"], k * k),
        (&["g", "gb"], k * k * k),
        (&["kbit"], k / 8.0),
        (&["mbit"], k * k / 8.0),
        (&["gbit"], k * k * k / 8.0),
    ];
    scaled(text, &units, "size; write it like 1514 or 32k (k is 1024 bytes)")
}

/// Reads a time of the usual kind, in nanoseconds: a bare number is in microseconds, and parts of a
/// microsecond are cut off.
///
/// # Errors
/// A text that is no time.
pub fn time(text: &str) -> Result<u64> {
    let units: [(&[&str], f64); 3] = [
        (&["s", "sec", "secs"], 1e6),
        (&["ms", "msec", "msecs"], 1e3),
        (&["", "us", "usec", "usecs"], 1.0),
    ];
    let what = "time; write it like 5ms (a bare number is in microseconds)";
    scaled(text, &units, what).map(|us| us.saturating_mul(1000))
}

/// Reads a time, or a number of packets like `5p`, and returns it as `5ms` or `5p`.
///
/// # Errors
/// A text that is neither.
pub fn threshold(text: &str) -> Result<String> {
    let folded = text.to_lowercase();
    let units = ["packets", "pkt", "p"];
    match units.iter().find_map(|unit| folded.strip_suffix(unit)).map(integer) {
        Some(Ok(packets)) => Ok(format!("{packets}p")),
        _ => time(text).map(write_time),
    }
}

/// Reads a time of netem, and of a few other words, in nanoseconds, which is also the unit of a
/// bare number.
///
/// # Errors
/// A text that is no time.
pub fn nanos(text: &str) -> Result<u64> {
    let units: [(&[&str], f64); 4] = [
        (&["s", "sec", "secs"], 1e9),
        (&["ms", "msec", "msecs"], 1e6),
        (&["us", "usec", "usecs"], 1e3),
        (&["", "ns", "nsec", "nsecs"], 1.0),
    ];
    scaled(text, &units, "time; write it like 10ms (a bare number is in nanoseconds here)")
}

/// Reads a whole number: decimal, `0x` for hexadecimal, a leading `0` for octal.
///
/// # Errors
/// A text that is no whole number of 32 bits.
pub fn integer(text: &str) -> Result<u64> {
    let parsed = match (text.strip_prefix("0x"), text.strip_prefix('0')) {
        (Some(hex), _) => u32::from_str_radix(hex, 16),
        (_, Some(octal)) if !octal.is_empty() => u32::from_str_radix(octal, 8),
        _ => text.parse(),
    };
    parsed.map(u64::from).map_err(|_| {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let odd = !unit.is_empty() && unit.len() < text.len() && !unit.starts_with('.');
        let hint = if odd { ": this word takes no unit" } else { "" };
        Error::new(format!("{text:?} is not a whole number{hint}"))
    })
}

/// Reads a probability from 0 to 1.
///
/// # Errors
/// A text that is no number, or out of range.
pub fn probability(text: &str) -> Result<f64> {
    match split(text) {
        Ok((share, "")) if share <= 1.0 => Ok(share),
        _ => Err(Error::new(format!("{text:?} is not a probability from 0 to 1, like 0.02"))),
    }
}

/// Reads a number that is not negative.
///
/// # Errors
/// A text that is no such number.
pub fn number(text: &str) -> Result<f64> {
    match split(text) {
        Ok((number, "")) => Ok(number),
        _ => Err(Error::new(format!("{text:?} is not a number"))),
    }
}

/// Reads a percentage, with or without the sign, as a share of 1.
///
/// # Errors
/// A text that is no percentage, or above 100.
pub fn percent(text: &str) -> Result<f64> {
    match split(text) {
        // By the exponent, so that 2% is the same number as 0.02.
        Ok((hundredths, "" | "%")) if hundredths <= 100.0 => {
            let digits = text.trim_end_matches('%');
            Ok(format!("{digits}e-2").parse().unwrap_or(hundredths / 100.0))
        }
        _ => Err(Error::new(format!("{text:?} is not a percentage like 1% or 0.5%"))),
    }
}

/// Reads the handle of a qdisc, `MAJOR:`, in hexadecimal. A minor number is ignored, as by tc.
///
/// # Errors
/// A text of another form, or a number above `ffff`.
pub fn handle(text: &str) -> Result<u16> {
    let digits = text.split(':').next().unwrap_or(text);
    part(digits).filter(|_| !digits.is_empty()).ok_or_else(|| no_handle(text))
}

/// Reads the identifier of a class, `MAJOR:MINOR`, both in hexadecimal; without a colon the number
/// is the minor one.
///
/// # Errors
/// A text of another form, or a part above `ffff`.
pub fn class_id(text: &str) -> Result<(u16, u16)> {
    let parsed = match text.split_once(':') {
        Some((major, minor)) => part(major).and_then(|a| part(minor).map(|b| (a, b))),
        None => part(text).filter(|_| !text.is_empty()).map(|minor| (0, minor)),
    };
    parsed.ok_or_else(|| no_handle(text))
}

/// A part of a handle; 0 if it is empty.
fn part(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
    if digits.is_empty() { Some(0) } else { u16::from_str_radix(digits, 16).ok() }
}

fn no_handle(text: &str) -> Error {
    let form = "write it like 1: or 1:10, in hexadecimal up to ffff";
    Error::new(format!("{text:?} is not a handle; {form}"))
}

/// Formats nanoseconds so that [`time`] and [`nanos`] read the same: in the largest unit that is
/// exact.
pub fn write_time(ns: u64) -> String {
    if ns == 0 { "0us".to_string() } else { Span(ns).to_string() }
}

/// Formats bits per second in the largest unit that is exact.
pub fn write_rate(bits: u64) -> String {
    Rate(bits).to_string()
}

/// Formats a share of 1 as a percentage.
pub fn write_percent(share: f64) -> String {
    let text = share.to_string();
    let digits: Option<f64> = format!("{text}e2").parse().ok();
    format!("{}%", digits.unwrap_or(share * 100.0))
}

/// Formats a size like tc: in Mb or Kb (1024) if it is nearly a whole number of them, else in
/// bytes.
pub fn size(bytes: u64) -> String {
    let near = |unit: u64, slack: u64| {
        let times = (bytes + unit / 2) / unit;
        (bytes >= unit && bytes.abs_diff(times * unit) < slack).then_some(times)
    };
    match (near(1 << 30, 1024), near(1 << 20, 1024), near(1 << 10, 16)) {
        (Some(n), _, _) => format!("{n}Gb"),
        (_, Some(n), _) => format!("{n}Mb"),
        (_, _, Some(n)) => format!("{n}Kb"),
        _ => format!("{bytes}b"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bits_and_ps_means_bytes() {
        let rates = [
            ("20mbit", 20_000_000),
            ("20Mbit", 20_000_000),
            ("20MBIT", 20_000_000),
            ("10mbps", 80_000_000),
            ("10kbps", 80_000),
            ("1kibit", 1_024),
            ("1mibps", 8 << 20),
            ("1e6", 1_000_000),
            ("8000", 8_000),
            ("15", 8),
            ("0x10kbit", 16_000),
            ("1.5gbit", 1_500_000_000),
            ("1tbit", 1_000_000_000_000),
            ("1tbps", 8_000_000_000_000),
            ("1gbps", 8_000_000_000),
            ("1mibit", 1 << 20),
            ("1gibit", 1 << 30),
            ("1tibit", 1 << 40),
            ("1kibps", 8 << 10),
            ("1gibps", 8 << 30),
            ("1tibps", 8 << 40),
        ];
        for (text, bits) in rates {
            assert_eq!(rate(text), Ok(bits), "{text}");
        }
        for text in ["10k", "10m", "mbit", "", "-1mbit", "10mb/s", "1e30mbit", "10mbits"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_count_by_1024() {
        let sizes =
            [("32k", 32_768), ("32Kb", 32_768), ("1m", 1 << 20), ("1514", 1514), ("1514b", 1514)];
        for (text, size) in sizes {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        assert_eq!((bytes("1mbit"), bytes("1.5k")), (Ok(131_072), Ok(1536)));
        assert_eq!(
            (bytes("1kbit"), bytes("1gbit"), bytes("1g")),
            (Ok(128), Ok(1 << 27), Ok(1 << 30))
        );
        assert!(bytes("10p").is_err() && bytes("32kib").is_err());
    }

    #[test]
    fn a_bare_time_is_in_microseconds_but_in_netem_in_nanoseconds() {
        assert_eq!((time("5000"), nanos("5000")), (Ok(5_000_000), Ok(5_000)));
        for text in ["5ms", "5msec", "5msecs", "5MS", "0.005s", "5000us", "5e3"] {
            assert_eq!(time(text), Ok(5_000_000), "{text}");
        }
        assert_eq!((time("1.7us"), time("100ns").is_err()), (Ok(1_000), true));
        assert_eq!((nanos("1.5us"), nanos("100ns")), (Ok(1_500), Ok(100)));
        assert!(time("5min").unwrap_err().to_string().contains("bare number is in microseconds"));
    }

    #[test]
    fn numbers_end_at_10_to_the_18() {
        assert_eq!((number("1e18"), nanos("1e18")), (Ok(1e18), Ok(10u64.pow(18))));
        for text in ["1.1e18", "1e300"] {
            assert!(number(text).is_err() && nanos(text).is_err(), "{text}");
        }
        assert!(nanos("1e18s").unwrap_err().to_string().contains("is too large"));
    }

    #[test]
    fn whole_numbers_have_the_base_of_c() {
        assert_eq!((integer("1000"), integer("0x10"), integer("010")), (Ok(1000), Ok(16), Ok(8)));
        assert_eq!(integer("0"), Ok(0));
        assert!(integer("1000p").unwrap_err().to_string().ends_with("this word takes no unit"));
        for text in ["-1", "1.5", "", "4294967296"] {
            assert!(integer(text).is_err(), "{text}");
        }
    }

    #[test]
    fn handles_are_hexadecimal() {
        assert_eq!((handle("10:"), handle("0x1a:5"), handle("8001")), (Ok(16), Ok(26), Ok(0x8001)));
        assert_eq!(
            (class_id("1:1a"), class_id("0x1:0x1"), class_id(":3"), class_id("10")),
            (Ok((1, 26)), Ok((1, 1)), Ok((0, 3)), Ok((0, 16)))
        );
        for text in ["1:2:3", "fffff:", "x:", ""] {
            assert!(class_id(text).is_err(), "{text}");
        }
        assert!(handle("fffff:").is_err() && handle(":").is_err());
    }

    #[test]
    fn shares_and_percentages_are_exact() {
        assert_eq!((percent("1%"), percent("0.1"), percent("30%")), (Ok(0.01), Ok(0.001), Ok(0.3)));
        assert!(
            percent("101%").is_err() && probability("2").is_err() && probability("1%").is_err()
        );
        for share in [0.01, 0.3, 0.07, 1.0, 1e-7] {
            assert_eq!(percent(&write_percent(share)), Ok(share));
        }
        for ns in [0, 1_000, 5_000_000, 1_234_000, 3_000_000_000] {
            assert_eq!(time(&write_time(ns)), Ok(ns));
        }
    }
}
