//! Parameters as data: one list gives the struct, its defaults, its ranges, its setter and the
//! table that `sojourn list` prints.
//!
//! ```
//! use sojourn_aqm::params::{Params, Setting};
//! use sojourn_aqm::units::Span;
//! sojourn_aqm::params! {
//!     /// Parameters of an example.
//!     pub struct Example {
//!         /// Time to wait.
//!         target: Span = Span::ms(5), [Span::us(1) => Span::s(10)], "T", [];
//!         /// Whether to try.
//!         ecn: bool = false, [], "", ["mark"];
//!     }
//! }
//! let mut p = Example::default();
//! p.set("target", Setting::Text("20ms")).unwrap();
//! p.set("mark", Setting::Flag(true)).unwrap();
//! assert_eq!((p.target, p.ecn), (Span::ms(20), true));
//! assert!(p.set("targte", Setting::Text("1s")).unwrap_err().to_string().contains("target"));
//! ```

mod both;

pub use both::{Both, Nothing};

use crate::cast;
use crate::error::{Error, Result};
use crate::units::{Bytes, Rate, Size, Span};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A value as it comes from a scenario file or a command line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting<'a> {
    /// A quoted value, or one from the command line.
    Text(&'a str),
    /// A bare whole number, exactly.
    Integer(i128),
    /// Any other bare number.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
}

impl core::fmt::Display for Setting<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Setting::Text(t) => write!(f, "{t:?}"),
            Setting::Integer(n) => write!(f, "{n}"),
            Setting::Number(n) => write!(f, "{n}"),
            Setting::Flag(b) => write!(f, "{b}"),
        }
    }
}

/// A row of a parameter table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The canonical name.
    pub name: &'static str,
    /// Other names that are accepted.
    pub aliases: &'static [&'static str],
    /// Kind of the value: `duration`, `rate`, `size`, `bytes`, `number`, `integer`, `flag` or the
    /// choices.
    pub kind: String,
    /// The value now; in a table of defaults, the default.
    pub value: String,
    /// The allowed range, or empty.
    pub range: String,
    /// The symbol in the paper, or empty.
    pub symbol: &'static str,
    /// Description.
    pub about: &'static str,
}

/// A set of named parameters; made by [`params!`](crate::params!).
pub trait Params: Clone + Default {
    /// Sets the parameter `name` (or one of its aliases).
    ///
    /// # Errors
    /// An unknown name, a value of the wrong kind or out of range; the message says what is
    /// allowed.
    fn set(&mut self, name: &str, value: Setting<'_>) -> Result<()>;

    /// True if a parameter has that name or alias; a dash equals an underscore.
    fn knows(name: &str) -> bool;

    /// Every parameter with its present value.
    fn table(&self) -> Vec<Row>;

    /// Checks the range of every parameter, since a field can be assigned any value.
    ///
    /// # Errors
    /// The first parameter that is out of range, as [`Params::set`] refuses it.
    fn check(&self) -> Result<()>;
}

/// True if `name` is the name or an alias of `row`; a dash equals an underscore.
pub fn answers(row: &Row, name: &str) -> bool {
    let name = name.replace('-', "_");
    row.name == name || row.aliases.contains(&name.as_str())
}

/// The error for a parameter `name` that is not in `table`.
pub fn unknown(table: &[Row], name: &str) -> Error {
    let names: Vec<&str> = table.iter().map(|r| r.name).collect();
    Error::unknown("parameter", name, names.iter().copied()).at(name)
}

/// A type that a parameter can have.
pub trait Value: Sized {
    /// Name of the kind in a table.
    fn kind() -> String;
    /// Reads a setting; the error says what is due.
    ///
    /// # Errors
    /// A setting of another kind, or one that cannot be read.
    fn read(setting: Setting<'_>) -> Result<Self>;
    /// Reads a setting whose allowed range is known: a number from 0 to 1 may be a percentage.
    /// Whether the value lies in the range is not checked.
    ///
    /// # Errors
    /// As [`Value::read`].
    fn read_for(setting: Setting<'_>, _range: Option<(&Self, &Self)>) -> Result<Self> {
        Self::read(setting)
    }
    /// Formats the value; [`Value::read`] of the text returns it.
    fn write(&self) -> String;
    /// True if the value is in `lo..=hi`.
    fn within(&self, lo: &Self, hi: &Self) -> bool;
}

macro_rules! quantity {
    ($($type:ty, $kind:literal, $like:literal, $rank:expr;)*) => {$(
        impl Value for $type {
            fn kind() -> String {
                $kind.to_string()
            }
            fn read(setting: Setting<'_>) -> Result<Self> {
                match setting {
                    Setting::Text(text) => text.parse(),
                    other => Err(Error::new(format!(
                        "{other} has no unit; a {} is written like {}", $kind, $like
                    ))),
                }
            }
            fn write(&self) -> String {
                self.to_string()
            }
            fn within(&self, lo: &Self, hi: &Self) -> bool {
                let rank: fn(&Self) -> u64 = $rank;
                (rank(lo)..=rank(hi)).contains(&rank(self))
            }
        }
    )*};
}

quantity! {
    Span, "duration", "\"5ms\"", |s| s.0;
    Rate, "rate", "\"10mbit\"", |r| r.0;
    Bytes, "bytes", "\"1500B\"", |b| b.0;
    Size, "size", "\"300kB\" or \"100p\"", |s| s.number();
}

impl Value for f64 {
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
    fn read_for(setting: Setting<'_>, range: Option<(&Self, &Self)>) -> Result<Self> {
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
    fn within(&self, lo: &Self, hi: &Self) -> bool {
        (lo..=hi).contains(&self)
    }
}

impl Value for u64 {
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
    fn within(&self, lo: &Self, hi: &Self) -> bool {
        (lo..=hi).contains(&self)
    }
}

impl Value for bool {
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
    fn within(&self, _: &Self, _: &Self) -> bool {
        true
    }
}

/// A value that may be left to be worked out: `auto` is [`None`].
impl<T: Value> Value for Option<T> {
    fn kind() -> String {
        T::kind() + " or auto"
    }
    fn read(setting: Setting<'_>) -> Result<Self> {
        if setting == Setting::Text("auto") { Ok(None) } else { T::read(setting).map(Some) }
    }
    fn read_for(setting: Setting<'_>, range: Option<(&Self, &Self)>) -> Result<Self> {
        if setting == Setting::Text("auto") {
            return Ok(None);
        }
        let inner = range.and_then(|(lo, hi)| lo.as_ref().zip(hi.as_ref()));
        T::read_for(setting, inner).map(Some)
    }
    fn write(&self) -> String {
        self.as_ref().map_or_else(|| "auto".to_string(), Value::write)
    }
    fn within(&self, lo: &Self, hi: &Self) -> bool {
        match (self, lo, hi) {
            (Some(x), Some(lo), Some(hi)) => x.within(lo, hi),
            _ => true,
        }
    }
}

/// The `i`-th of a list whose last entry stands for all further ones.
pub fn nth<T: Copy>(list: &[T], i: usize) -> Option<T> {
    list.get(i).or(list.last()).copied()
}

/// Several values, written with spaces between them or as `[1, 2]`.
impl<T: Value> Value for Vec<T> {
    fn kind() -> String {
        format!("list of {}", T::kind())
    }
    fn read(setting: Setting<'_>) -> Result<Self> {
        Self::read_for(setting, None)
    }
    fn read_for(setting: Setting<'_>, range: Option<(&Self, &Self)>) -> Result<Self> {
        let inner = range.and_then(|(lo, hi)| lo.first().zip(hi.first()));
        let Setting::Text(text) = setting else {
            return T::read_for(setting, inner).map(|one| [one].into());
        };
        let bare = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let words =
            bare.unwrap_or(text).split(|c: char| c.is_whitespace() || (bare.is_some() && c == ','));
        let words =
            words.filter(|word| !word.is_empty()).map(|word| word.trim_matches(['"', '\'']));
        words.map(|word| T::read_for(Setting::Text(word), inner)).collect()
    }
    fn write(&self) -> String {
        self.iter().map(Value::write).collect::<Vec<_>>().join(" ")
    }
    fn within(&self, lo: &Self, hi: &Self) -> bool {
        let bounds = lo.first().zip(hi.first());
        bounds.is_none_or(|(lo, hi)| self.iter().all(|x| x.within(lo, hi)))
    }
}

/// Reads a value and refuses one outside `range`; used by [`params!`](crate::params!).
///
/// # Errors
/// A setting that cannot be read, or a value out of range.
pub fn read_checked<T: Value>(setting: Setting<'_>, range: Option<(T, T)>) -> Result<T> {
    let value = T::read_for(setting, range.as_ref().map(|(lo, hi)| (lo, hi)))?;
    checked(value, range)
}

/// Refuses a value outside `range`; used by [`params!`](crate::params!).
#[doc(hidden)]
pub fn checked<T: Value>(value: T, range: Option<(T, T)>) -> Result<T> {
    match range {
        Some((lo, hi)) if !value.within(&lo, &hi) => Err(Error::new(format!(
            "{} is out of range, allowed: {} to {}",
            value.write(),
            lo.write(),
            hi.write()
        ))),
        _ => Ok(value),
    }
}

/// Formats a range; used by [`params!`](crate::params!). An unreachable upper end is omitted, and a
/// very small number is written with its power of ten.
#[doc(hidden)]
pub fn range_text<T: Value>(range: &Option<(T, T)>) -> String {
    let Some((lo, hi)) = range.as_ref().map(|(lo, hi)| (lo.write(), hi.write())) else {
        return String::new();
    };
    let lo = match lo.parse::<f64>() {
        Ok(x) if x > 0.0 && x < 1e-3 => format!("{x:e}"),
        _ => lo,
    };
    if hi == "1000000000000p" { format!("{lo} or more") } else { format!("{lo} to {hi}") }
}

/// Declares a struct of parameters: per line a doc comment, then
/// `name: Type = default, [lo => hi], "symbol of the paper", ["alias", ...];` (`[]` for any value).
#[macro_export]
macro_rules! params {
    (@range) => { None };
    (@range $lo:expr => $hi:expr) => { Some(($lo, $hi)) };
    (
        $(#[$outer:meta])*
        $vis:vis struct $Name:ident {
            $(
                #[doc = $about:literal]
                $(#[doc = $more:literal])*
                $field:ident: $Type:ty = $default:expr,
                    [$($lo:expr => $hi:expr)?], $symbol:literal, [$($alias:literal),*];
            )*
        }
    ) => {
        $(#[$outer])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $Name {
            $( #[doc = $about] $(#[doc = $more])* pub $field: $Type, )*
        }

        impl Default for $Name {
            fn default() -> Self {
                $Name { $( $field: $default, )* }
            }
        }

        impl $crate::params::Params for $Name {
            fn set(
                &mut self,
                name: &str,
                value: $crate::params::Setting<'_>,
            ) -> $crate::error::Result<()> {
                let canonical = name.replace('-', "_");
                match canonical.as_str() {
                    $(
                        stringify!($field) $(| $alias)* => {
                            let range: Option<($Type, $Type)> =
                                $crate::params!(@range $($lo => $hi)?);
                            self.$field = $crate::params::read_checked(value, range)
                                .map_err(|e| e.at(stringify!($field)))?;
                            Ok(())
                        }
                    )*
                    _ => Err($crate::params::unknown(&self.table(), name)),
                }
            }

            fn knows(name: &str) -> bool {
                let canonical = name.replace('-', "_");
                matches!(canonical.as_str(), $(stringify!($field) $(| $alias)*)|*)
            }

            fn check(&self) -> $crate::error::Result<()> {
                $({
                    let range: Option<($Type, $Type)> = $crate::params!(@range $($lo => $hi)?);
                    $crate::params::checked(self.$field.clone(), range)
                        .map_err(|e| e.at(stringify!($field)))?;
                })*
                Ok(())
            }

            fn table(&self) -> $crate::params::Rows {
                $crate::params::Rows::from([
                    $({
                        let range: Option<($Type, $Type)> = $crate::params!(@range $($lo => $hi)?);
                        $crate::params::Row {
                            name: stringify!($field),
                            aliases: &[$($alias),*],
                            kind: <$Type as $crate::params::Value>::kind(),
                            value: $crate::params::Value::write(&self.$field),
                            range: $crate::params::range_text(&range),
                            symbol: $symbol,
                            about: concat!($about $(, $more)*).trim_ascii(),
                        }
                    }),*
                ])
            }
        }
    };
}

/// A table of parameters.
pub type Rows = Vec<Row>;

/// Declares an enum whose variants are the words of a parameter, other accepted words after a bar:
/// `Tail = "tail" | "back",`. `true` and `false` may be such words.
#[macro_export]
macro_rules! choice {
    (
        $(#[$outer:meta])*
        $vis:vis enum $Name:ident {
            $( #[doc = $about:literal] $Variant:ident = $word:literal $(| $other:literal)*, )*
        }
    ) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Name { $( #[doc = $about] $Variant, )* }

        impl $crate::params::Value for $Name {
            fn kind() -> $crate::params::Text {
                [$($word),*].join("|").into()
            }
            fn read(setting: $crate::params::Setting<'_>) -> $crate::error::Result<Self> {
                match $crate::params::word(setting, &[$($word),*])?.as_str() {
                    $( $word $(| $other)* => Ok($Name::$Variant), )*
                    other => {
                        Err($crate::error::Error::unknown("choice", other, [$($word),*]))
                    }
                }
            }
            fn write(&self) -> $crate::params::Text {
                match self { $( $Name::$Variant => $word.into(), )* }
            }
            fn within(&self, _: &Self, _: &Self) -> bool {
                true
            }
        }
    };
}

/// The owned text of [`choice!`](crate::choice!).
pub type Text = String;

/// Converts a setting to a word; used by [`choice!`](crate::choice!).
#[doc(hidden)]
pub fn word(value: Setting<'_>, words: &[&str]) -> Result<String> {
    match value {
        Setting::Text(text) => Ok(text.replace('-', "_")),
        Setting::Flag(flag) => Ok(flag.to_string()),
        Setting::Integer(_) | Setting::Number(_) => {
            Err(Error::new(format!("{value} is not one of: {}", words.join(", "))))
        }
    }
}
