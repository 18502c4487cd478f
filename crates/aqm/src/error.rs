//! The error type of the library: path of the field, and message.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// An invalid input: the path of the field and a one-sentence message for the user.
///
/// Only construction can fail; no operation on packets returns an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    path: Cow<'static, str>,
    text: Cow<'static, str>,
}

/// Kind of an [`Error`], to match on.
///
/// ```
/// use sojourn_aqm::aqm::codel::CoDel;
/// use sojourn_aqm::{Aqm, ErrorKind, Rate, Size};
///
/// let codel = CoDel::builder().queue(|queue| queue.limit(Size::Packets(0)));
/// let error = codel.build(Rate(10_000_000)).unwrap_err();
/// match error.kind() {
///     ErrorKind::OutOfRange => assert_eq!(error.path(), "limit"),
///     _ => unreachable!(),
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value that cannot be used: wrong type, unit or form, or in conflict with another value.
    Invalid,
    /// A number or quantity outside its range.
    OutOfRange,
    /// A name that does not exist: of a discipline, a parameter, a key, a choice and others.
    UnknownName,
    /// A required value that is not given.
    Missing,
    /// A feature that does not exist here; the message names an alternative.
    Unavailable,
}

/// Longest quotation of the input in a message, in characters.
const QUOTED_MAX: usize = 60;

/// Longest list of known names in a message, in characters.
const KNOWN_MAX: usize = 1000;

/// Largest number of known names that follow a suggestion in a message.
const KNOWN_AFTER_GUESS: usize = 12;

/// Result with [`Error`].
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// Creates an error of the kind [`ErrorKind::Invalid`] with the message `text`; [`Error::at`]
    /// adds the path.
    ///
    /// Quoted input (as written by `{:?}`) is cut after 60 characters, and its length is added.
    pub fn new(text: impl Into<String>) -> Error {
        Error::of_text(&text.into())
    }

    /// As [`Error::new`]; compiled once.
    #[cold]
    #[inline(never)]
    fn of_text(text: &str) -> Error {
        let text = sentence(text);
        Error { kind: ErrorKind::Invalid, path: "".into(), text: text.into() }
    }

    /// As [`Error::new`], for a message that quotes no input: it needs no code for texts.
    #[cold]
    pub(crate) fn fixed(text: &'static str) -> Error {
        Error { kind: ErrorKind::Invalid, path: "".into(), text: text.into() }
    }

    /// As [`Error::at`], for the name of a parameter and an empty path.
    #[cold]
    pub(crate) fn at_name(self, name: &'static str) -> Error {
        Error { path: name.into(), ..self }
    }

    /// Creates the error for a `name` that is not in `allowed`, and suggests the nearest one. Lists
    /// all names, unless there is a suggestion and they are many.
    pub fn unknown<'a>(
        what: &str,
        name: &str,
        allowed: impl IntoIterator<Item = &'a str>,
    ) -> Error {
        Error::unknown_in(what, name, &allowed.into_iter().collect::<Vec<_>>())
    }

    /// As [`Error::unknown`]; compiled once.
    fn unknown_in(what: &str, name: &str, allowed: &[&str]) -> Error {
        let mut text = format!("unknown {what} {name:?}");
        let near = nearest_in(name, allowed);
        if let Some(near) = near {
            text += &format!(", did you mean {near:?}?");
        }
        if near.is_none() || allowed.len() <= KNOWN_AFTER_GUESS {
            text += &known(allowed);
        }
        Error::new(text).of_kind(ErrorKind::UnknownName)
    }

    /// Returns the error as one of `kind`.
    #[must_use]
    pub fn of_kind(self, kind: ErrorKind) -> Error {
        Error { kind, ..self }
    }

    /// Kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Prepends `key` to the path.
    #[must_use]
    pub fn at(self, key: impl fmt::Display) -> Error {
        self.under(&key.to_string())
    }

    /// As [`Error::at`]; compiled once.
    #[cold]
    #[inline(never)]
    fn under(mut self, key: &str) -> Error {
        let key = plain(key, 80);
        let path = if self.path.is_empty() { key } else { format!("{key}.{}", self.path) };
        self.path = path.into();
        self
    }

    /// Path of the field, outermost name first, joined by dots.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Message without the path.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Returns `text` on one line: control characters are escaped, and it is cut after `most`
/// characters.
fn plain(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len());
    for (i, c) in text.chars().enumerate() {
        match c {
            _ if i == most => return line + "...",
            c if c.is_control() => line.extend(c.escape_default()),
            c => line.push(c),
        }
    }
    line
}

/// Returns the message `text` on one line: control characters are escaped, long quotations cut.
fn sentence(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(4 * KNOWN_MAX));
    // Characters since the open quotation mark; true if the last character was a backslash.
    let (mut quoted, mut escaped) = (None, false);
    for c in text.chars() {
        let closes = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        match quoted {
            Some(n) if closes => {
                line += if n > QUOTED_MAX { "...\"" } else { "\"" };
                if n > QUOTED_MAX {
                    line += &format!(" ({n} characters)");
                }
                quoted = None;
                continue;
            }
            Some(n) => quoted = Some(n + 1),
            None if closes => quoted = Some(0),
            None => {}
        }
        if quoted.is_none_or(|n| n <= QUOTED_MAX) {
            line += &plain(c.encode_utf8(&mut [0; 4]), 1);
        }
    }
    if quoted.is_some_and(|n| n > QUOTED_MAX) { line + "..." } else { line }
}

/// Returns the names `allowed` in brackets, as many as fit into a line.
fn known(allowed: &[&str]) -> String {
    let (mut names, mut more) = (String::new(), 0);
    for name in allowed {
        if names.len() + name.len() > KNOWN_MAX {
            more += 1;
        } else {
            names = if names.is_empty() { (*name).into() } else { format!("{names}, {name}") };
        }
    }
    if more > 0 {
        format!(" (known: {names}, and {more} more)")
    } else {
        format!(" (known: {names})")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.text)
        } else {
            write!(f, "{}: {}", self.path, self.text)
        }
    }
}

impl core::error::Error for Error {}

/// Returns the name in `allowed` with the smallest edit distance from `name`, if at most a third of
/// its letters (but at least one, and not all) differ.
pub fn nearest<'a>(name: &str, allowed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_in(name, &allowed.into_iter().collect::<Vec<_>>())
}

/// As [`nearest`]; compiled once.
fn nearest_in<'a>(name: &str, allowed: &[&'a str]) -> Option<&'a str> {
    let fold = |s: &str| s.to_lowercase().replace('-', "_");
    let name = fold(name);
    let near = allowed.iter().map(|a| (edits(&name, &fold(a)), *a)).min_by_key(|(d, _)| *d)?;
    let letters = name.chars().count();
    (near.0 <= 1.max(letters.max(near.1.len()) / 3) && near.0 < letters).then_some(near.1)
}

/// Returns the Levenshtein distance, where a swap of neighbouring letters counts as one edit.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let swap = if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    rows[i - 2][j - 2] + 1
                } else {
                    usize::MAX
                };
                change.min(swap).min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1)
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_typing_errors_only() {
        let names = ["codel", "fq_codel", "red", "droptail"];
        assert_eq!(nearest("cdoel", names), Some("codel"));
        assert_eq!(nearest("FQ-CoDel", names), Some("fq_codel"));
        assert_eq!(nearest("droptial", names), Some("droptail"));
        assert_eq!(nearest("pineapple", names), None);
        assert_eq!(nearest("y", ["x"]), None);
        assert_eq!(nearest("X", ["x"]), Some("x"));
    }

    #[test]
    fn path_grows_outwards() {
        let e = Error::new("is wrong").at("rate").at("up").at("links");
        assert_eq!(e.to_string(), "links.up.rate: is wrong");
    }

    #[test]
    fn long_input_is_quoted_in_part() {
        let long = "é\"\n".repeat(30_000);
        let text = Error::new(format!("{long:?} is not a rate, {:?} is", "5mbit")).to_string();
        assert!(text.starts_with("\"é\\\"\\né"), "{text}");
        assert!(text.ends_with("...\" (150000 characters) is not a rate, \"5mbit\" is"), "{text}");
        assert!(text.chars().count() < 120, "{text}");
        let whole = "x".repeat(60);
        assert_eq!(Error::new(format!("{whole:?} is odd")).text(), format!("\"{whole}\" is odd"));
        let open = Error::new("\"".to_string() + &"x".repeat(100));
        assert_eq!(open.text().len(), 1 + 60 + 3, "a quotation that is never closed");
    }

    #[test]
    fn a_list_of_known_names_is_bounded() {
        let names: Vec<String> = (0..65_000).map(|i| format!("link{i}")).collect();
        let text = Error::unknown("link", "up", names.iter().map(String::as_str)).to_string();
        assert!(text.starts_with("unknown link \"up\" (known: link0, link1, "), "{text}");
        assert!(text.ends_with(" more)") && text.len() < 1200, "{text}");
    }

    #[test]
    fn a_suggestion_replaces_a_long_list() {
        let names: Vec<String> = (10..=10 + KNOWN_AFTER_GUESS).map(|i| format!("l{i}")).collect();
        let text = |n: usize, name: &str| {
            Error::unknown("link", name, names[..n].iter().map(String::as_str)).to_string()
        };
        assert_eq!(text(names.len(), "l1O"), "unknown link \"l1O\", did you mean \"l10\"?");
        assert!(text(KNOWN_AFTER_GUESS, "l1O").contains("? (known: l10, l11, "));
        assert!(text(names.len(), "uplink").starts_with("unknown link \"uplink\" (known: l10, "));
    }

    #[test]
    fn an_error_stays_on_one_line() {
        assert_eq!(Error::new("a\nb").to_string(), "a\\nb");
        assert_eq!(Error::new("is wrong").at("a\nb\u{7f}").path(), "a\\nb\\u{7f}");
        assert_eq!(Error::new("is wrong").at("é".repeat(100)).path().chars().count(), 83);
    }
}
