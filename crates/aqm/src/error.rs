//! The one error of the library: where, what, and what was meant.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// A refused input: the path of the field and one sentence for the user.
///
/// Nothing on the path of a packet can fail, so this is met at construction only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    path: String,
    text: String,
}

/// Longest quotation of the input in a message, in characters.
const QUOTED_MAX: usize = 60;

/// Longest list of known names in a message, in characters.
const KNOWN_MAX: usize = 1000;

/// The result of reading an input.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// An error that says `text` about the value at hand; [`Error::at`] adds where it stood.
    ///
    /// Quoted input (as `{:?}` writes it) is cut after 60 characters, and its length is added.
    pub fn new(text: impl Into<String>) -> Error {
        Error { path: String::new(), text: sentence(&text.into()) }
    }

    /// A name that does not exist among `allowed`; the nearest one is suggested.
    pub fn unknown<'a>(
        what: &str,
        name: &str,
        allowed: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Error {
        let mut text = format!("unknown {what} {name:?}");
        if let Some(near) = nearest(name, allowed.clone()) {
            text += &format!(", did you mean {near:?}?");
        }
        Error::new(text + &known(allowed))
    }

    /// The same error, one level further out: `key` is put before the path.
    #[must_use]
    pub fn at(mut self, key: impl fmt::Display) -> Error {
        let key = plain(&key.to_string(), 80);
        self.path = if self.path.is_empty() { key } else { format!("{key}.{}", self.path) };
        self
    }

    /// Where in the input the value stood, outermost name first, joined by dots.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong, without the path.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// `text` as it can stand in one line: control characters escaped, cut after `most` characters.
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

/// The message `text` on one line: control characters escaped, long quotations cut.
fn sentence(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(4 * KNOWN_MAX));
    // Characters since the quotation mark that is open, and whether the last one was a backslash.
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

/// The names `allowed` in brackets, as many as a line can take.
fn known<'a>(allowed: impl IntoIterator<Item = &'a str>) -> String {
    let (mut names, mut more) = (String::new(), 0);
    for name in allowed {
        if names.len() + name.len() > KNOWN_MAX {
            more += 1;
        } else {
            names = if names.is_empty() { name.to_string() } else { format!("{names}, {name}") };
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

/// The name in `allowed` that is fewest edits away from `name`, if it is near at all
/// (at most a third of its letters, and at least one, may differ).
pub fn nearest<'a>(name: &str, allowed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |s: &str| s.to_lowercase().replace('-', "_");
    let name = fold(name);
    let near = allowed.into_iter().map(|a| (edits(&name, &fold(a)), a)).min_by_key(|(d, _)| *d)?;
    (near.0 <= 1.max(name.chars().count().max(near.1.len()) / 3)).then_some(near.1)
}

/// Levenshtein's distance, letters swapped next to each other counting as one edit.
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
    fn nearest_finds_slips_and_refuses_strangers() {
        let names = ["codel", "fq_codel", "red", "droptail"];
        assert_eq!(nearest("cdoel", names), Some("codel"));
        assert_eq!(nearest("FQ-CoDel", names), Some("fq_codel"));
        assert_eq!(nearest("droptial", names), Some("droptail"));
        assert_eq!(nearest("pineapple", names), None);
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
    fn an_error_stays_on_one_line() {
        assert_eq!(Error::new("a\nb").to_string(), "a\\nb");
        assert_eq!(Error::new("is wrong").at("a\nb\u{7f}").path(), "a\\nb\\u{7f}");
        assert_eq!(Error::new("is wrong").at("é".repeat(100)).path().chars().count(), 83);
    }
}
