//! Parameters as data: one list gives the struct, its defaults, its ranges, its setters and the
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
//!         /// True to try.
//!         ecn: bool = false, [], "", ["mark"];
//!     }
//! }
//! let mut p = Example::default();
//! p.set("target", Setting::Text("20ms")).unwrap();
//! p.set("mark", Setting::Flag(true)).unwrap();
//! assert_eq!((p.target, p.ecn), (Span::ms(20), true));
//! assert_eq!(p, Example::default().target(Span::ms(20)).ecn(true));
//! assert!(p.set("targte", Setting::Text("1s")).unwrap_err().to_string().contains("target"));
//! ```

mod both;
mod call;
#[doc(hidden)]
pub mod field;
mod value;

pub use both::{Combined, Nothing};
#[doc(hidden)]
pub use call::{call_text, parse_call};
pub use value::Value;

use crate::error::{Error, ErrorKind, Result};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A value as it comes from a scenario file or a command line.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
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
pub struct ParamRow {
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

/// A set of named parameters. [`params!`](crate::params!) declares a type with fixed names. A type
/// whose names are known only at run time implements the trait itself.
pub trait Params {
    /// Sets the parameter `name` (or one of its aliases).
    ///
    /// # Errors
    /// An unknown name, a value of the wrong kind or out of range; the message lists the allowed
    /// values.
    fn set(&mut self, name: &str, value: Setting<'_>) -> Result<()> {
        self.assign(name, value, true)
    }

    /// Sets the parameter `name` (or one of its aliases). If `checks` is false, its range is not
    /// checked, as if the field were assigned: for tests of what assignments can do.
    ///
    /// # Errors
    /// As [`Params::set`].
    fn assign(&mut self, name: &str, value: Setting<'_>, checks: bool) -> Result<()>;

    /// True if a parameter has that name or alias; a dash equals an underscore.
    fn knows(&self, name: &str) -> bool;

    /// Every parameter with its present value.
    fn table(&self) -> Vec<ParamRow>;

    /// Checks the range of every parameter, since a field can be assigned any value.
    ///
    /// # Errors
    /// The first parameter that is out of range, as [`Params::set`] refuses it.
    fn check(&self) -> Result<()>;

    /// Checks every range and returns the proof that constructors ask for.
    ///
    /// # Errors
    /// As [`Params::check`].
    fn checked(&self) -> Result<Checked<'_, Self>>
    where
        Self: Sized,
    {
        self.check()?;
        Ok(Checked(self))
    }
}

/// Parameters whose ranges were checked: the only way to make one is [`Params::checked`], and
/// disciplines are built from nothing else.
#[derive(Debug)]
pub struct Checked<'a, P>(&'a P);

impl<'a, P: Params> Checked<'a, P> {
    /// Returns the proof for parameters that the caller has checked with [`Params::check`].
    pub(crate) fn proven(params: &'a P) -> Self {
        Checked(params)
    }
}

impl<P> Clone for Checked<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Checked<'_, P> {}

impl<P> core::ops::Deref for Checked<'_, P> {
    type Target = P;
    fn deref(&self) -> &P {
        self.0
    }
}

/// True if `name` is the name or an alias of `row`; a dash equals an underscore.
#[doc(hidden)]
pub fn answers(row: &ParamRow, name: &str) -> bool {
    let name = name.replace('-', "_");
    row.name == name || row.aliases.contains(&name.as_str())
}

/// The error for a parameter `name` that is not in `table`.
#[doc(hidden)]
pub fn unknown(table: &[ParamRow], name: &str) -> Error {
    let names: Vec<&str> = table.iter().map(|r| r.name).collect();
    Error::unknown("parameter", name, names.iter().copied()).at(name)
}

/// The `i`-th of a list whose last entry stands for all further ones.
pub(crate) fn nth<T: Copy>(list: &[T], i: usize) -> Option<T> {
    list.get(i).or(list.last()).copied()
}

/// Reads a value and refuses one outside `range`.
///
/// # Errors
/// A setting that cannot be read, or a value out of range.
#[doc(hidden)]
pub fn read_checked<T: Value>(setting: Setting<'_>, range: Option<(T::End, T::End)>) -> Result<T> {
    let value = T::read_for(setting, range.as_ref().map(|(lo, hi)| (lo, hi)))?;
    checked(value, range)
}

/// Refuses a value outside `range`.
#[doc(hidden)]
pub fn checked<T: Value>(value: T, range: Option<(T::End, T::End)>) -> Result<T> {
    match range {
        Some((lo, hi)) if !value.is_within(&lo, &hi) => Err(refusal(&value, &lo, &hi)),
        _ => Ok(value),
    }
}

/// Creates the error for a value outside its range.
#[cfg(feature = "messages")]
fn refusal<T: Value>(value: &T, lo: &T::End, hi: &T::End) -> Error {
    // A value without a text form (NaN) is refused like an invalid text.
    let text = value.write();
    let invalid = T::read(Setting::Text(&text)).err();
    invalid.unwrap_or_else(|| out_of_range(&text, &lo.write(), &hi.write()))
}

/// Creates the error for a value outside its range, without the values.
#[cfg(not(feature = "messages"))]
#[cold]
fn refusal<T: Value>(_: &T, _: &T::End, _: &T::End) -> Error {
    Error::fixed("is out of range").of_kind(ErrorKind::OutOfRange)
}

fn out_of_range(value: &str, lo: &str, hi: &str) -> Error {
    let text = format!("{value} is out of range, allowed: {lo} to {hi}");
    Error::new(text).of_kind(ErrorKind::OutOfRange)
}

/// Declares a struct of parameters: per line a doc comment, then
/// `name: Type = default, [lo => hi], "symbol of the paper", ["alias", ...];` (`[]` for any value).
/// The ends are constants of type [`Value::End`]: for a list, the ends of its elements.
#[macro_export]
macro_rules! params {
    (@ends $Type:ty) => { None };
    (@ends $Type:ty, $lo:expr => $hi:expr) => {{
        const LOW: &<$Type as $crate::params::Value>::End = &$lo;
        const HIGH: &<$Type as $crate::params::Value>::End = &$hi;
        Some((LOW, HIGH))
    }};
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
        #[derive(Clone, Debug, PartialEq, $crate::snapshot::Snapshot)]
        $vis struct $Name {
            $( #[doc = $about] $(#[doc = $more])* pub $field: $Type, )*
        }

        impl $Name {
            $(
                #[doc = concat!("Sets `", stringify!($field), "`:", $about)]
                $(#[doc = $more])*
                #[inline]
                #[must_use]
                $vis fn $field(mut self, $field: $Type) -> Self {
                    self.$field = $field;
                    self
                }
            )*
        }

        impl Default for $Name {
            #[inline(never)]
            fn default() -> Self {
                $Name { $( $field: $default, )* }
            }
        }

        impl $Name {
            const DECLARATIONS: &'static [$crate::params::field::Declaration] = &[
                $($crate::params::field::Declaration {
                    name: stringify!($field),
                    aliases: &[$($alias),*],
                    ends: $crate::params!(@ends $Type $(, $lo => $hi)?),
                    symbol: $crate::params::field::described($symbol),
                    about: $crate::params::field::described(concat!($about $(, $more)*)),
                }),*
            ];
        }

        impl $crate::params::Params for $Name {
            fn assign(
                &mut self,
                name: &str,
                value: $crate::params::Setting<'_>,
                checks: bool,
            ) -> $crate::error::Result<()> {
                let fields: &mut [&mut dyn $crate::params::field::Field] =
                    &mut [$(&mut self.$field),*];
                $crate::params::field::assign(Self::DECLARATIONS, fields, name, value, checks)
            }

            fn knows(&self, name: &str) -> bool {
                $crate::params::field::knows(Self::DECLARATIONS, name)
            }

            fn check(&self) -> $crate::error::Result<()> {
                $crate::check_fields!(
                    self, $($field: $Type = $crate::params!(@ends $Type $(, $lo => $hi)?);)*
                )
            }

            fn table(&self) -> $crate::params::ParamRows {
                $crate::params::field::table(Self::DECLARATIONS, &[$(&self.$field),*])
            }
        }
    };
}

/// Checks the fields of a type of parameters by its table. Used by [`params!`](crate::params!).
#[cfg(feature = "messages")]
#[doc(hidden)]
#[macro_export]
macro_rules! check_fields {
    ($this:expr, $($field:ident: $Type:ty = $ends:expr;)*) => {
        $crate::params::field::check(Self::DECLARATIONS, &[$(&$this.$field),*])
    };
}

/// The same without the table, whose types have code that reads and writes texts.
#[cfg(not(feature = "messages"))]
#[doc(hidden)]
#[macro_export]
macro_rules! check_fields {
    ($this:expr, $($field:ident: $Type:ty = $ends:expr;)*) => {{
        $($crate::params::field::check_typed(stringify!($field), &$this.$field, $ends)?;)*
        Ok(())
    }};
}

/// A table of parameters.
pub type ParamRows = Vec<ParamRow>;

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
        #[derive(Clone, Copy, Debug, PartialEq, Eq, $crate::snapshot::Snapshot)]
        #[non_exhaustive]
        $vis enum $Name { $( #[doc = $about] $Variant, )* }

        impl $crate::params::Value for $Name {
            type End = Self;

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
            fn is_within(&self, _: &Self, _: &Self) -> bool {
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
