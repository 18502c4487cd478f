//! Service curves of hfsc: `m1 RATE d TIME m2 RATE`, or `umax SIZE dmax TIME rate RATE`.

use super::table::Arg;
use super::units;
use crate::cast;
use crate::error::{Error, Result};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Reads a curve at the start of `words`; returns it and the number of words it takes.
///
/// # Errors
/// No curve, or one without a rate.
pub(super) fn read(words: &[&str]) -> Result<(Arg, usize)> {
    let mut used = 0;
    let mut next = |key: &str| -> Result<Option<&str>> {
        match words.get(used) {
            Some(word) if key.starts_with(word) => {
                let value =
                    words.get(used + 1).ok_or_else(|| Error::new("has no value").at(key))?;
                used += 2;
                Ok(Some(value))
            }
            _ => Ok(None),
        }
    };
    let rate =
        |text: Option<&str>, key: &str| text.map_or(Ok(0), units::rate).map_err(|e| e.at(key));
    let time =
        |text: Option<&str>, key: &str| text.map_or(Ok(0), units::time).map_err(|e| e.at(key));
    let (m1, d, m2) = (next("m1")?, next("d")?, next("m2")?);
    let curve = if m1.or(d).or(m2).is_some() {
        [rate(m1, "m1")?, time(d, "d")?, rate(m2, "m2")?]
    } else {
        let (umax, dmax) = (next("umax")?, next("dmax")?);
        let m2 = next("rate")?;
        let umax = umax.map_or(Ok(0), units::bytes).map_err(|e| e.at("umax"))?;
        two_pieces(umax, time(dmax, "dmax")?, rate(m2, "rate")?)
    };
    if curve[2] == 0 {
        return Err(Error::new("has no rate; write it like m2 5mbit or rate 5mbit"));
    }
    Ok((Arg::List(curve.into()), used))
}

/// Curve on which a packet of `umax` bytes has a delay of at most `dmax` nanoseconds.
fn two_pieces(umax: u64, dmax: u64, rate: u64) -> [u64; 3] {
    let per_second = umax as f64 * 1e9 / dmax.max(1) as f64;
    let bytes = rate as f64 / 8.0;
    if dmax > 0 && libm::ceil(per_second) > bytes {
        return [cast::trunc(libm::ceil(per_second)) * 8, dmax, rate];
    }
    let empty = if rate > 0 { dmax as f64 / 1e3 - umax as f64 * 1e6 / bytes } else { 0.0 };
    [0, cast::trunc(libm::ceil(libm::fmax(empty, 0.0))) * 1_000, rate]
}

/// Formats a curve as [`read`] reads it.
pub(super) fn write(curve: &[u64]) -> String {
    let rate = |key: &str, bits: u64| format!("{key} {}", units::write_rate(bits));
    let mut parts = Vec::new();
    if let [m1, d, m2] = *curve {
        if m1 > 0 {
            parts.push(rate("m1", m1));
        }
        if d > 0 {
            parts.push(format!("d {}", units::write_time(d)));
        }
        parts.push(rate("m2", m2));
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let words: Vec<&str> = text.split(' ').collect();
        match read(&words) {
            Ok((Arg::List(curve), used)) => format!("{used}: {}", write(&curve)),
            Ok(other) => panic!("{other:?}"),
            Err(error) => format!("{error}"),
        }
    }

    #[test]
    fn both_notations_are_read() {
        assert_eq!(of("m2 5mbit ul"), "2: m2 5mbit");
        assert_eq!(of("m1 0bit d 0us m2 10Mbit"), "6: m2 10mbit");
        assert_eq!(of("m1 8mbit d 10ms m2 1mbit"), "6: m1 8mbit d 10ms m2 1mbit");
        assert_eq!(of("rate 1mbit"), "2: m2 1mbit");
        // 1500 bytes in 10 ms are 1.2 Mbit/s: more than the rate, so first a steeper slope.
        assert_eq!(of("umax 1500 dmax 10ms rate 1mbit"), "6: m1 1200kbit d 10ms m2 1mbit");
        // Less than the rate: first nothing, for 10 ms less the time of 125 bytes.
        assert_eq!(of("umax 125 dmax 10ms rate 1mbit"), "6: d 9ms m2 1mbit");
        assert!(of("umax 1500 dmax 5ms").contains("has no rate"));
        assert!(of("m1 5mbit d 10ms").contains("has no rate"));
        assert!(of("m2").contains("m2: has no value"));
    }
}
