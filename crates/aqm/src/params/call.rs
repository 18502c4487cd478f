//! Text form of a name with parameters: `codel(target=15ms, ecn=true)`.

use crate::error::{Error, Result};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Name and parameters as written.
pub type NameAndSettings<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// Parses the text form of a name with parameters: `codel`, or `codel(target=15ms, ecn=true)`.
/// Values may be quoted; commas inside quotes, parentheses or brackets belong to the value.
///
/// # Errors
/// If the form is wrong, or a parameter is given twice.
pub fn parse_call(text: &str) -> Result<NameAndSettings<'_>> {
    let Some((name, rest)) = text.split_once('(') else { return Ok((text.trim(), Vec::new())) };
    let form = "write it as NAME or NAME(KEY=VALUE, ...)";
    let bad = |why: &str| Error::new(format!("{} {why}; {form}", quoted(text)));
    let inside = rest.trim_end().strip_suffix(')').ok_or_else(|| bad("does not end with \")\""))?;
    if name.trim().is_empty() {
        return Err(bad("has no name before \"(\""));
    }
    let mut settings: Vec<(&str, &str)> = Vec::new();
    for part in split_arguments(inside).ok_or_else(|| bad("has an unmatched quote or bracket"))? {
        let pair = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let Some((key, value)) = pair.filter(|(key, _)| !key.is_empty()) else {
            return Err(bad(&format!("has {}, which is not KEY=VALUE", quoted(part))));
        };
        if settings.iter().any(|(known, _)| *known == key) {
            return Err(Error::new("is given twice").at(key));
        }
        settings.push((key, strip_quotes(value)));
    }
    Ok((name.trim(), settings))
}

/// Splits `text` at commas outside of quotes and brackets. An empty last part is dropped. Returns
/// None if a quote or bracket is not closed.
fn split_arguments(text: &str) -> Option<Vec<&str>> {
    let mut parts: Vec<&str> = split(text, |c| c == ',')?.into_iter().map(str::trim).collect();
    parts.pop_if(|last| last.is_empty());
    Some(parts)
}

/// Splits `text` at each `separator` outside of quotes and brackets. Returns None if a quote or
/// bracket is not closed.
fn split(text: &str, separator: impl Fn(char) -> bool) -> Option<Vec<&str>> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut open, mut quote) = (Vec::new(), None);
    for (i, c) in text.char_indices() {
        match c {
            _ if quote.is_some() => quote = quote.filter(|q| *q != c),
            '"' | '\'' => quote = Some(c),
            '(' => open.push(')'),
            '[' => open.push(']'),
            ')' | ']' if open.pop() != Some(c) => return None,
            _ if open.is_empty() && separator(c) => {
                parts.push(&text[start..i]);
                start = i + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    (open.is_empty() && quote.is_none()).then_some(parts)
}

/// Removes the pair of quotes around `text`, if there is one.
fn strip_quotes(text: &str) -> &str {
    let without = |q| text.strip_prefix(q).and_then(|rest| rest.strip_suffix(q));
    without('"').or_else(|| without('\'')).unwrap_or(text)
}

/// Splits `text` at white space outside of quotes and brackets, and at commas if `commas`. Empty
/// words are dropped. Returns None if a quote or bracket is not closed.
pub(super) fn split_words(text: &str, commas: bool) -> Option<Vec<&str>> {
    split(text, |c| c.is_whitespace() || (commas && c == ','))
        .map(|words| words.into_iter().filter(|word| !word.is_empty()).collect())
}

/// Writes a name with parameters, as [`parse_call`] reads it.
pub fn call_text<'a>(name: &str, settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let argument = |(key, value): (&str, &str)| {
        let plain = split(value, |c| c == ',').is_some_and(|parts| parts.len() == 1);
        let quote = if value.contains('"') { '\'' } else { '"' };
        let bare = plain && !value.is_empty() && !value.starts_with(['"', '\'']);
        if bare { format!("{key}={value}") } else { format!("{key}={quote}{value}{quote}") }
    };
    let arguments: Vec<String> = settings.into_iter().map(argument).collect();
    if arguments.is_empty() { name.into() } else { format!("{name}({})", arguments.join(", ")) }
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn text_form_is_parsed_into_name_and_parameters() {
        let cases = [
            ("codel", "codel", vec![]),
            (" codel() ", "codel", vec![]),
            ("codel(target=15ms)", "codel", vec![("target", "15ms")]),
            (
                " codel ( target = 15ms , ecn = true ) ",
                "codel",
                vec![("target", "15ms"), ("ecn", "true")],
            ),
            ("CoDel(target='15ms',)", "CoDel", vec![("target", "15ms")]),
            (
                "bulk(start=uniform(0s, 2s), stop=\"9s\")",
                "bulk",
                vec![("start", "uniform(0s, 2s)"), ("stop", "9s")],
            ),
            ("drr(weights=[3, 1])", "drr", vec![("weights", "[3, 1]")]),
            ("x(a='1,=(2')", "x", vec![("a", "1,=(2")]),
        ];
        for (text, name, settings) in cases {
            assert_eq!(parse_call(text).unwrap(), (name, settings), "{text}");
        }
    }

    #[test]
    fn malformed_text_is_rejected() {
        let cases = [
            ("codel(target=15ms", "does not end with"),
            ("codel(target=15ms) x", "does not end with"),
            ("codel(15ms)", "has \"15ms\", which is not KEY=VALUE"),
            ("codel(=15ms)", "is not KEY=VALUE"),
            ("codel(,)", "is not KEY=VALUE"),
            ("codel(target=15ms))", "has an unmatched"),
            ("codel(target='15ms)", "has an unmatched"),
            ("codel(a=[1, 2)", "has an unmatched"),
            ("(target=15ms)", "has no name"),
            ("codel(ecn=true, ecn=false)", "ecn: is given twice"),
        ];
        for (text, why) in cases {
            let error = parse_call(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error:?} for {text:?}");
        }
    }

    #[test]
    fn words_with_arguments_are_split_and_written() {
        let words = |text| split_words(text, true);
        assert_eq!(words("a(x=1 2, y=b(c)), d  e"), Some(vec!["a(x=1 2, y=b(c))", "d", "e"]));
        assert_eq!(words("a(b"), None);
        for (settings, text) in [
            (vec![], "a"),
            (vec![("x", "1"), ("y", "b(c=1, d=2) e")], "a(x=1, y=b(c=1, d=2) e)"),
            (vec![("x", "1,2"), ("y", ""), ("z", "(")], "a(x=\"1,2\", y=\"\", z=\"(\")"),
        ] {
            assert_eq!(call_text("a", settings.iter().copied()), text);
            assert_eq!(parse_call(text).unwrap(), ("a", settings));
        }
    }
}
