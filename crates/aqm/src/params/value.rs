//! Types of parameters: parsing, formatting and range checks.

use super::Setting;
use super::call::split_words;
use crate::cast;
use crate::error::{Error, Result};
use crate::units::{Bytes, Rate, Size, Span, Threshold};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A type that a parameter can have.
pub trait Value: Sized {
    /// Type of the ends of a range: `Self`, or the type of the elements of a list, or of the value
    /// that may be `auto`.
    type End: Value + 'static;
    /// Name of the kind in a table.
    fn kind() -> String;
    /// Reads a setting; the error names the expected kind.
    ///
    /// # Errors
    /// A setting of another kind, or one that cannot be read.
    fn read(setting: Setting<'_>) -> Result<Self>;
    /// Reads a setting whose allowed range is known: a number from 0 to 1 may be a percentage.
    /// Does not check the range.
    ///
    /// # Errors
    /// As [`Value::read`].
    fn read_for(setting: Setting<'_>, _range: Option<(&Self::End, &Self::End)>) -> Result<Self> {
        Self::read(setting)
    }
    /// Formats the value; [`Value::read`] of the text returns it.
    fn write(&self) -> String;
    /// True if the value is in `lo..=hi`.
    fn is_within(&self, lo: &Self::End, hi: &Self::End) -> bool;
}

macro_rules! quantity {
    ($($type:ty, $kind:literal, $like:expr, $rank:expr;)*) => {$(
        impl Value for $type {
            type End = Self;

            fn kind() -> String {
                $kind.to_string()
            }
            fn read(setting: Setting<'_>) -> Result<Self> {
                match setting {
                    Setting::Text(text) => text.parse(),
                    other => Err(without_unit(other, $kind, $like)),
                }
            }
            fn write(&self) -> String {
                self.to_string()
            }
            fn is_within(&self, lo: &Self::End, hi: &Self::End) -> bool {
                let rank: fn(&Self) -> u64 = $rank;
                (rank(lo)..=rank(hi)).contains(&rank(self))
            }
        }
    )*};
}

quantity! {
    Span, "duration", &[("60", "s"), ("5", "ms")], |s| s.0;
    Rate, "rate", &[("10", "mbit")], |r| r.0;
    Bytes, "bytes", &[("1500", "B")], |b| b.0;
    Size, "size", &[("300", "kB"), ("100", "p")], |s| s.number();
}

/// Creates the error for a setting without a unit. Examples, of a number and a unit each, have the
/// number of the setting, if it is one.
fn without_unit(setting: Setting<'_>, kind: &str, examples: &[(&str, &str)]) -> Error {
    let is_number = matches!(setting, Setting::Integer(_) | Setting::Number(_));
    let example = |&(number, unit): &(&str, &str)| {
        if is_number { format!("\"{setting}{unit}\"") } else { format!("\"{number}{unit}\"") }
    };
    let like = examples.iter().map(example).collect::<Vec<_>>().join(" or ");
    Error::new(format!("{setting} has no unit; a {kind} is written like {like}"))
}

impl Value for Threshold {
    type End = Self;

    fn kind() -> String {
        "threshold".to_string()
    }
    fn read(setting: Setting<'_>) -> Result<Self> {
        match setting {
            Setting::Text(text) => text.parse(),
            other => Err(without_unit(other, "threshold", &[("1", "ms"), ("5", "p")])),
        }
    }
    fn write(&self) -> String {
        self.to_string()
    }
    fn is_within(&self, _: &Self::End, _: &Self::End) -> bool {
        true
    }
}

impl Value for f64 {
    type End = Self;

    fn kind() -> String {
        "number".to_string()
    }
    fn read(setting: Setting<'_>) -> Result<Self> {
        let number = match setting {
            Setting::Number(n) => Some(n),
            Setting::Integer(n) => Some(n as f64),
            Setting::Text(t) => t.trim().parse().ok(),
            Setting::Flag(_) => None,
        };
        number
            .filter(|n| n.is_finite())
            .ok_or_else(|| Error::new(format!("{setting} is not a finite number")))
    }
    fn read_for(setting: Setting<'_>, range: Option<(&Self::End, &Self::End)>) -> Result<Self> {
        let Setting::Text(text) = setting else { return Self::read(setting) };
        let Some(percent) = text.trim().strip_suffix('%') else { return Self::read(setting) };
        if !range.is_some_and(|(lo, hi)| *lo >= 0.0 && *hi <= 1.0) {
            return Err(Error::new(format!("{text:?} is a percentage; a plain number is due")));
        }
        // By the exponent, so that 2% is the same number as 0.02.
        let plain = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
        let number = Some(percent.trim()).filter(|p| p.chars().all(plain));
        let share = number.and_then(|p| format!("{p}e-2").parse().ok());
        share.ok_or_else(|| Error::new(format!("{text:?} is not a percentage like 2%")))
    }
    fn write(&self) -> String {
        self.to_string()
    }
    fn is_within(&self, lo: &Self::End, hi: &Self::End) -> bool {
        (lo..=hi).contains(&self)
    }
}

impl Value for u64 {
    type End = Self;

    fn kind() -> String {
        "integer".to_string()
    }
    fn read(setting: Setting<'_>) -> Result<Self> {
        let whole = |x: f64| (0.0..=9_007_199_254_740_992.0).contains(&x) && x % 1.0 == 0.0;
        let number = match setting {
            Setting::Number(x) => whole(x).then_some(cast::trunc(x)),
            Setting::Integer(n) => u64::try_from(n).ok(),
            Setting::Text(t) => t.trim().parse().ok(),
            Setting::Flag(_) => None,
        };
        let large = match setting {
            Setting::Number(x) => x >= 9_007_199_254_740_992.0,
            Setting::Integer(n) => n > 0,
            Setting::Text(t) => !t.is_empty() && t.bytes().all(|c| c.is_ascii_digit()),
            Setting::Flag(_) => false,
        };
        let why = if large { "is too large" } else { "is not a whole number from 0 up" };
        number.ok_or_else(|| Error::new(format!("{setting} {why}")))
    }
    fn write(&self) -> String {
        self.to_string()
    }
    fn is_within(&self, lo: &Self::End, hi: &Self::End) -> bool {
        (lo..=hi).contains(&self)
    }
}

impl Value for bool {
    type End = Self;

    fn kind() -> String {
        "flag".to_string()
    }
    fn read(setting: Setting<'_>) -> Result<Self> {
        match setting {
            Setting::Flag(b) => Ok(b),
            Setting::Text("true" | "on" | "yes") => Ok(true),
            Setting::Text("false" | "off" | "no") => Ok(false),
            other => Err(Error::new(format!("{other} is not true or false"))),
        }
    }
    fn write(&self) -> String {
        self.to_string()
    }
    fn is_within(&self, _: &Self::End, _: &Self::End) -> bool {
        true
    }
}

/// A value that may be left to be worked out: `auto` is [`None`].
impl<T: Value> Value for Option<T> {
    type End = T::End;

    fn kind() -> String {
        T::kind() + " or auto"
    }
    fn read(setting: Setting<'_>) -> Result<Self> {
        if setting == Setting::Text("auto") { Ok(None) } else { T::read(setting).map(Some) }
    }
    fn read_for(setting: Setting<'_>, range: Option<(&Self::End, &Self::End)>) -> Result<Self> {
        if setting == Setting::Text("auto") {
            return Ok(None);
        }
        T::read_for(setting, range).map(Some)
    }
    fn write(&self) -> String {
        self.as_ref().map_or_else(|| "auto".to_string(), Value::write)
    }
    fn is_within(&self, lo: &Self::End, hi: &Self::End) -> bool {
        self.as_ref().is_none_or(|x| x.is_within(lo, hi))
    }
}

/// Several values, written with spaces between them or as `[1, 2]`.
impl<T: Value> Value for Vec<T> {
    type End = T::End;

    fn kind() -> String {
        format!("list of {}", T::kind())
    }
    fn read(setting: Setting<'_>) -> Result<Self> {
        Self::read_for(setting, None)
    }
    fn read_for(setting: Setting<'_>, range: Option<(&Self::End, &Self::End)>) -> Result<Self> {
        let Setting::Text(text) = setting else {
            return T::read_for(setting, range).map(|one| [one].into());
        };
        let bare = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if text.contains('(') {
            return calls(bare.unwrap_or(text), bare.is_some(), |one| T::read_for(one, range));
        }
        let words =
            bare.unwrap_or(text).split(|c: char| c.is_whitespace() || (bare.is_some() && c == ','));
        let words =
            words.filter(|word| !word.is_empty()).map(|word| word.trim_matches(['"', '\'']));
        words.map(|word| T::read_for(Setting::Text(word), range)).collect()
    }
    fn write(&self) -> String {
        self.iter().map(Value::write).collect::<Vec<_>>().join(" ")
    }
    fn is_within(&self, lo: &Self::End, hi: &Self::End) -> bool {
        self.iter().all(|x| x.is_within(lo, hi))
    }
}

/// Reads a list whose entries may have parameters of their own, like `codel(target=5ms) sfq`.
fn calls<T>(text: &str, commas: bool, read: impl Fn(Setting<'_>) -> Result<T>) -> Result<Vec<T>> {
    let words = split_words(text, commas)
        .ok_or_else(|| Error::new(format!("{text:?} has an unmatched quote or bracket")))?;
    let one = |(i, word): (usize, &str)| read(Setting::Text(word)).map_err(|e| e.at(i));
    words.into_iter().enumerate().map(one).collect()
}
