//! Fields of a type of parameters, without their types: reading, checking and formatting exist once
//! per type of value rather than once per parameter. [`params!`](crate::params!) uses them.

use super::{ParamRow, Setting, Value, out_of_range};
use crate::error::{Error, Result};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

/// Declaration of a parameter.
pub struct Declaration {
    /// Canonical name.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// Smallest and largest value, if there are.
    pub ends: Ends,
    /// Symbol in the paper, or empty.
    pub symbol: &'static str,
    /// Description.
    pub about: &'static str,
}

/// Ends of a range.
pub type Ends = Option<(&'static dyn Field, &'static dyn Field)>;

/// Returns a text of a description without white space at its ends; an empty text without the
/// feature `descriptions`.
pub const fn described(text: &'static str) -> &'static str {
    if cfg!(feature = "descriptions") { text.trim_ascii() } else { "" }
}

impl fmt::Debug for Declaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declaration").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A [`Value`] of any type. The ends of a range have the type [`Value::End`].
pub trait Field: Any {
    /// Calls [`Value::kind`].
    fn kind_name(&self) -> String;
    /// Calls [`Value::write`].
    fn text(&self) -> String;
    /// Calls [`Value::is_within`]; true without ends.
    fn lies_within(&self, ends: Ends) -> bool;
    /// Refuses a text that is not a value of this type.
    ///
    /// # Errors
    /// As [`Value::read`].
    fn accepts(&self, text: &str) -> Result<()>;
    /// Assigns a setting, if it is in its range or `checks` is false; else the value stays.
    ///
    /// # Errors
    /// As [`Value::read_for`]; a value out of range, or without a text form.
    fn assign(&mut self, setting: Setting<'_>, ends: Ends, checks: bool) -> Result<()>;
}

/// Returns the ends of values of type `T`.
fn typed<T: Value>(ends: Ends) -> Option<(&'static T::End, &'static T::End)> {
    let (lo, hi) = ends?;
    let (lo, hi): (&dyn Any, &dyn Any) = (lo, hi);
    lo.downcast_ref().zip(hi.downcast_ref())
}

impl<T: Value + 'static> Field for T {
    fn kind_name(&self) -> String {
        T::kind()
    }

    fn text(&self) -> String {
        self.write()
    }

    fn lies_within(&self, ends: Ends) -> bool {
        typed::<T>(ends).is_none_or(|(lo, hi)| self.is_within(lo, hi))
    }

    fn accepts(&self, text: &str) -> Result<()> {
        T::read(Setting::Text(text)).map(drop)
    }

    fn assign(&mut self, setting: Setting<'_>, ends: Ends, checks: bool) -> Result<()> {
        let value = T::read_for(setting, typed::<T>(ends))?;
        if checks {
            check_within(&value, ends)?;
        }
        *self = value;
        Ok(())
    }
}

/// Refuses a value out of range, or without a text form (NaN), as an invalid text is refused.
fn check_within(field: &dyn Field, ends: Ends) -> Result<()> {
    let Some((lo, hi)) = ends.filter(|_| !field.lies_within(ends)) else { return Ok(()) };
    let text = field.text();
    field.accepts(&text)?;
    Err(out_of_range(&text, &lo.text(), &hi.text()))
}

/// Position of the parameter with that name or alias; a dash equals an underscore.
fn position(declarations: &[Declaration], name: &str) -> Option<usize> {
    let name = name.replace('-', "_");
    declarations.iter().position(|d| d.name == name || d.aliases.contains(&name.as_str()))
}

/// The error for a parameter that is not declared.
fn unknown(declarations: &[Declaration], name: &str) -> Error {
    let names: Vec<&str> = declarations.iter().map(|d| d.name).collect();
    Error::unknown("parameter", name, names).at(name)
}

/// True if a parameter has that name or alias.
pub fn knows(declarations: &[Declaration], name: &str) -> bool {
    position(declarations, name).is_some()
}

/// Sets the parameter `name`. `fields` has a field per declaration, in the same order.
///
/// # Errors
/// As [`Params::assign`](super::Params::assign).
pub fn assign(
    declarations: &[Declaration],
    fields: &mut [&mut dyn Field],
    name: &str,
    value: Setting<'_>,
    checks: bool,
) -> Result<()> {
    let Some(i) = position(declarations, name) else {
        return Err(unknown(declarations, name));
    };
    let declaration = &declarations[i];
    fields[i].assign(value, declaration.ends, checks).map_err(|e| e.at(declaration.name))
}

/// Checks the range of every parameter.
///
/// # Errors
/// The first parameter that is out of range.
pub fn check(declarations: &[Declaration], fields: &[&dyn Field]) -> Result<()> {
    let mut all = declarations.iter().zip(fields);
    all.try_for_each(|(d, field)| check_within(*field, d.ends).map_err(|e| e.at(d.name)))
}

/// Refuses the value of the parameter `name` if it is not between `ends`.
///
/// # Errors
/// A value out of range.
#[cfg(not(feature = "messages"))]
pub fn check_typed<T: Value>(
    name: &'static str,
    value: &T,
    ends: Option<(&T::End, &T::End)>,
) -> Result<()> {
    match ends {
        Some((lo, hi)) if !value.is_within(lo, hi) => {
            Err(super::refusal(value, lo, hi).at_name(name))
        }
        _ => Ok(()),
    }
}

/// Every parameter with its value.
pub fn table(declarations: &[Declaration], fields: &[&dyn Field]) -> Vec<ParamRow> {
    let row = |(d, field): (&Declaration, &&dyn Field)| ParamRow {
        name: d.name,
        aliases: d.aliases,
        kind: field.kind_name(),
        value: field.text(),
        range: range_text(d.ends),
        symbol: d.symbol,
        about: d.about,
    };
    declarations.iter().zip(fields).map(row).collect()
}

/// Formats a range. An unreachable upper end is omitted, and a very small number is written with
/// its power of ten.
fn range_text(ends: Ends) -> String {
    let Some((lo, hi)) = ends.map(|(lo, hi)| (lo.text(), hi.text())) else {
        return String::new();
    };
    let lo = match lo.parse::<f64>() {
        Ok(x) if x > 0.0 && x < 1e-3 => format!("{x:e}"),
        _ => lo,
    };
    if hi == "1000000000000p" { format!("{lo} or more") } else { format!("{lo} to {hi}") }
}
