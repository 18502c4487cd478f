//! How a scenario's JSON is read: every key is known or refused, every value has its unit, and
//! every refusal carries the path of what it refuses.

use crate::keys::{Key, Table, Unset};
use serde_json::{Map, Value as Json};
use sojourn_aqm::Made;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Params, Row, Setting, Value, answers, read_checked, unknown};
use sojourn_aqm::sched::{Entry, Env};
use std::borrow::Cow;

/// The fields of one object, read by the table of its keys. Every method panics on a key that the
/// table does not have.
pub struct Fields<'a> {
    map: &'a Map<String, Json>,
    table: &'static Table,
}

impl<'a> Fields<'a> {
    /// The fields of `json`.
    ///
    /// # Errors
    /// Something else than a table, or a key that is not in `keys`.
    pub fn of(json: &'a Json, keys: &'static Table) -> Result<Fields<'a>> {
        let map = table(json)?;
        let names = keys.keys.iter().map(|key| key.name);
        match map.keys().find(|key| !names.clone().any(|name| name == *key)) {
            Some(key) => Err(Error::unknown("key", key, names).at(key)),
            None => Ok(Fields { map, table: keys }),
        }
    }

    /// The value of `key`, if it is given.
    pub fn get(&self, key: &str) -> Option<&'a Json> {
        self.map.get(self.table.key(key).name)
    }

    /// The value of `key`, or its default, which it must have.
    pub fn or_default(&self, key: &str) -> Cow<'a, Json> {
        match (self.get(key), self.table.key(key).unset) {
            (Some(given), _) => Cow::Borrowed(given),
            (None, Unset::Is(text)) => Cow::Owned(Json::from(text)),
            (None, _) => panic!("{key} has no default"),
        }
    }

    /// The value of `key`, which must be given.
    pub fn need(&self, key: &str) -> Result<&'a Json> {
        self.get(key).ok_or_else(|| Error::new("is missing").at(key))
    }

    /// The value of `key` as a `T` in the range of the key, if it is given.
    pub fn read<T: Value>(&self, key: &str) -> Result<Option<T>> {
        let Key { kind, range, .. } = self.table.key(key);
        debug_assert_eq!(*kind, T::kind(), "the kind of {key}");
        let ends = range.map(|(least, largest)| (stated(least), stated(largest)));
        let value = self.get(key).map(|json| setting(json).and_then(|s| read_checked(s, ends)));
        value.transpose().map_err(|e| e.at(key))
    }

    /// The value of `key` as a `T` in the range of the key, or its default.
    ///
    /// # Errors
    /// Also a key that must be given and is not.
    pub fn value<T: Value>(&self, key: &str) -> Result<T> {
        match (self.read(key)?, self.table.key(key).unset) {
            (Some(value), _) => Ok(value),
            (None, Unset::Is(text)) => Ok(stated(text)),
            (None, _) => self.need(key).and_then(read),
        }
    }

    /// The text of `key`, or its default, which it must have.
    pub fn text(&self, key: &str) -> Result<String> {
        text(&self.or_default(key)).map(str::to_string).map_err(|e| e.at(key))
    }
}

/// A value of the table of keys.
fn stated<T: Value>(text: &str) -> T {
    T::read(Setting::Text(text)).unwrap_or_else(|e| panic!("in the table of keys: {e}"))
}

/// `json` as a table.
pub fn table(json: &Json) -> Result<&Map<String, Json>> {
    json.as_object().ok_or_else(|| Error::new(format!("{} is not a table", shown(json))))
}

/// `json` as text.
pub fn text(json: &Json) -> Result<&str> {
    json.as_str().ok_or_else(|| Error::new(format!("{} is not text", shown(json))))
}

/// `json` as a list.
pub fn list(json: &Json) -> Result<&Vec<Json>> {
    json.as_array().ok_or_else(|| Error::new(format!("{} is not a list", shown(json))))
}

/// `json` as a `T`.
pub fn read<T: Value>(json: &Json) -> Result<T> {
    T::read(setting(json)?)
}

/// `json` as the value of a parameter. Whole numbers are exact.
///
/// A parameter takes its own JSON type, and these conversions, which the command line needs too:
/// a number or a flag written as text (`"5"`, `"true"`, `"yes"`, `"on"`), a whole number with a
/// fraction of zero (`2.0`), a choice named true or false as a flag, and one value for a list.
pub fn setting(json: &Json) -> Result<Setting<'_>> {
    match json {
        Json::String(text) => Ok(Setting::Text(text)),
        Json::Bool(flag) => Ok(Setting::Flag(*flag)),
        Json::Number(n) => Ok(match n.as_i128() {
            Some(whole) => Setting::Integer(whole),
            None => Setting::Number(n.as_f64().unwrap_or(f64::NAN)),
        }),
        _ => Err(Error::new(format!("{} is not a single value", shown(json)))),
    }
}

/// Builds the discipline that `json` describes for the link of `env`.
///
/// # Errors
/// An unknown discipline or parameter, a value of the wrong type or out of range.
pub fn qdisc(json: &Json, env: &Env) -> Result<(&'static Entry, Made)> {
    let named = Named::with_lists(json)?;
    let entry = sojourn_aqm::sched::find(named.name)
        .map_err(|e| if json.is_string() { e } else { e.at("name") })?;
    let rows = if named.lists.is_empty() { Vec::new() } else { entry.params() };
    let texts = named.lists.iter().map(|(key, list)| words(key, list, &rows));
    let texts = texts.collect::<Result<Vec<String>>>()?;
    let mut settings = named.settings;
    let lists = named.lists.iter().zip(&texts);
    settings.extend(lists.map(|((key, _), text)| (*key, Setting::Text(text))));
    Ok((entry, entry.build(&settings, env)?))
}

/// The list given for the parameter `key` of `rows` as the text that [`sojourn_aqm::params`]
/// reads: `[1, 2]` as `"1 2"`. Refuses a list for any other parameter.
fn words(key: &str, list: &Json, rows: &[Row]) -> Result<String> {
    let row = rows.iter().find(|row| answers(row, key)).ok_or_else(|| unknown(rows, key))?;
    let not_one = |json: &Json| Error::new(format!("{} is not a single value", shown(json)));
    if !row.kind.starts_with("list of") {
        return Err(not_one(list).at(key));
    }
    let word = |(i, item): (usize, &Json)| match item {
        Json::String(text) if !text.contains(char::is_whitespace) => Ok(text.clone()),
        Json::Number(n) => Ok(n.to_string()),
        other => Err(not_one(other).at(i).at(key)),
    };
    let words = self::list(list)?.iter().enumerate().map(word).collect::<Result<Vec<String>>>()?;
    Ok(words.join(" "))
}

/// A thing with a name and parameters: `"codel"`, `"codel(target=5ms)"` or
/// `{"name": "codel", "target": "5ms"}`.
pub struct Named<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its parameters, as they were written.
    pub settings: Vec<(&'a str, Setting<'a>)>,
    /// Its parameters that are lists.
    pub lists: Vec<(&'a str, &'a Json)>,
}

impl<'a> Named<'a> {
    /// Reads any of the forms; lists are refused.
    ///
    /// # Errors
    /// A form that is none of these, or a list among the parameters.
    pub fn of(json: &'a Json) -> Result<Named<'a>> {
        let named = Named::with_lists(json)?;
        named.no_lists()?;
        Ok(named)
    }

    /// Reads any of the forms; lists are kept apart.
    ///
    /// # Errors
    /// A form that is none of these.
    pub fn with_lists(json: &'a Json) -> Result<Named<'a>> {
        if let Json::String(text) = json {
            let (name, settings) = call(text)?;
            let settings = settings.into_iter().map(|(key, value)| (key, Setting::Text(value)));
            return Ok(Named { name, settings: settings.collect(), lists: Vec::new() });
        }
        let map = table(json)?;
        let name = map.get("name").ok_or_else(|| Error::new("is missing").at("name"))?;
        let name = text(name).map_err(|e| e.at("name"))?;
        let (mut settings, mut lists) = (Vec::new(), Vec::new());
        for (key, json) in map.iter().filter(|(key, _)| *key != "name") {
            if json.is_array() {
                lists.push((key.as_str(), json));
            } else {
                settings.push((key.as_str(), setting(json).map_err(|e| e.at(key))?));
            }
        }
        Ok(Named { name, settings, lists })
    }

    fn no_lists(&self) -> Result<()> {
        match self.lists.first() {
            Some((key, list)) => setting(list).map(drop).map_err(|e| e.at(key)),
            None => Ok(()),
        }
    }

    /// Parameters of the type `P` with these settings.
    pub fn params<P: Params>(&self) -> Result<P> {
        self.no_lists()?;
        let mut params = P::default();
        self.settings.iter().try_for_each(|(key, value)| params.set(key, *value))?;
        Ok(params)
    }
}

/// A name with its parameters, both as they were written.
pub type Call<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// The name and the parameters of a thing written as text: `codel`, or
/// `codel(target=15ms, ecn=true)`. A value may stand in quotes; a comma inside quotes, parentheses
/// or brackets belongs to the value.
///
/// # Errors
/// Text that is neither form, or a parameter that is given twice.
pub fn call(text: &str) -> Result<Call<'_>> {
    let Some((name, rest)) = text.split_once('(') else { return Ok((text.trim(), Vec::new())) };
    let form = "write it as NAME or NAME(KEY=VALUE, ...)";
    let bad = |why: &str| Error::new(format!("{} {why}; {form}", shown(&text.into())));
    let inside = rest.trim_end().strip_suffix(')').ok_or_else(|| bad("does not end with \")\""))?;
    if name.trim().is_empty() {
        return Err(bad("has no name before \"(\""));
    }
    let mut settings: Vec<(&str, &str)> = Vec::new();
    for part in parts(inside).ok_or_else(|| bad("has an unmatched quote or bracket"))? {
        let pair = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let Some((key, value)) = pair.filter(|(key, _)| !key.is_empty()) else {
            return Err(bad(&format!("has {}, which is no KEY=VALUE", shown(&part.into()))));
        };
        if settings.iter().any(|(known, _)| *known == key) {
            return Err(Error::new("is given twice").at(key));
        }
        settings.push((key, unquoted(value)));
    }
    Ok((name.trim(), settings))
}

/// Splits `text` at its commas, those inside quotes and brackets aside. An empty last part is left
/// out. None if a quote or bracket is not closed.
fn parts(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut open, mut quote) = (Vec::new(), None);
    for (i, c) in text.char_indices() {
        match c {
            _ if quote.is_some() => quote = quote.filter(|q| *q != c),
            '"' | '\'' => quote = Some(c),
            '(' => open.push(')'),
            '[' => open.push(']'),
            ')' | ']' if open.pop() != Some(c) => return None,
            ',' if open.is_empty() => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    (open.is_empty() && quote.is_none()).then_some(parts)
}

/// `text` without the pair of quotes around it, if there is one.
fn unquoted(text: &str) -> &str {
    let without = |q| text.strip_prefix(q).and_then(|rest| rest.strip_suffix(q));
    without('"').or_else(|| without('\'')).unwrap_or(text)
}

/// The canonical form of a named thing: its name and every parameter, each as it would be written.
pub fn canonical(name: &str, table: &[Row]) -> Json {
    let mut map = Map::new();
    map.insert("name".into(), name.into());
    for row in table {
        let number = row.value.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
        let value = match (row.value.as_str(), number) {
            (flag @ ("true" | "false"), _) if row.kind.starts_with("flag") => {
                Json::Bool(flag == "true")
            }
            (whole, _) if row.kind.starts_with("integer") && whole != "auto" => {
                whole.parse::<u64>().map_or_else(|_| whole.into(), Json::from)
            }
            (_, Some(number)) if row.kind.starts_with("number") => Json::Number(number),
            (text, _) => Json::String(text.into()),
        };
        map.insert(row.name.into(), value);
    }
    Json::Object(map)
}

/// `json` as it appears in a message: short, on one line. [`Error`] shortens text.
pub(crate) fn shown(json: &Json) -> String {
    if let Json::String(text) = json {
        return format!("{text:?}");
    }
    let text = json.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_gives_the_name_and_the_parameters() {
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
            assert_eq!(call(text).unwrap(), (name, settings), "{text}");
        }
    }

    #[test]
    fn text_that_is_no_form_is_refused() {
        let cases = [
            ("codel(target=15ms", "does not end with"),
            ("codel(target=15ms) x", "does not end with"),
            ("codel(15ms)", "has \"15ms\", which is no KEY=VALUE"),
            ("codel(=15ms)", "is no KEY=VALUE"),
            ("codel(,)", "is no KEY=VALUE"),
            ("codel(target=15ms))", "has an unmatched"),
            ("codel(target='15ms)", "has an unmatched"),
            ("codel(a=[1, 2)", "has an unmatched"),
            ("(target=15ms)", "has no name"),
            ("codel(ecn=true, ecn=false)", "ecn: is given twice"),
        ];
        for (text, why) in cases {
            let error = call(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error:?} for {text:?}");
        }
    }
}
