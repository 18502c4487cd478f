//! Parser of a scenario's JSON: unknown keys are rejected, values need units, and every error
//! carries the path of the value.

use crate::parsing::keys::{DefaultValue, Key, Table};
use serde_json::{Map, Value as Json};
use sojourn_aqm::error::{Error, ErrorKind, Result};
use sojourn_aqm::params::{
    ParamRow, Params, Setting, Value, answers, call_text, parse_call, read_checked, unknown,
};
use sojourn_aqm::registry::{QdiscEntry, Registry};
use sojourn_aqm::sched::{child::Child, filter::Filter};
use sojourn_aqm::units::{Rate, Span};
use sojourn_aqm::{Built, Env, tc};
use std::borrow::Cow;

/// Smallest buffer that is given as a time, in bytes: a packet of Ethernet.
const LEAST_BUFFER_B: u128 = 1514;

/// Fields of a JSON object, parsed by its table of keys. All methods panic on a key that is not in
/// the table.
#[derive(Debug)]
pub(crate) struct KeyReader<'a> {
    map: &'a Map<String, Json>,
    table: &'static Table,
}

impl<'a> KeyReader<'a> {
    /// Checks the keys of `json` against `keys`.
    ///
    /// # Errors
    /// If `json` is not a table, or has a key that is not in `keys`.
    pub(crate) fn new(json: &'a Json, keys: &'static Table) -> Result<KeyReader<'a>> {
        let map = table(json)?;
        let names = keys.keys.iter().map(|key| key.name);
        match map.keys().find(|key| !names.clone().any(|name| name == *key)) {
            Some(key) => Err(Error::unknown("key", key, names).at(key)),
            None => Ok(KeyReader { map, table: keys }),
        }
    }

    /// Value of `key`, if given.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Json> {
        self.map.get(self.table.key(key).name)
    }

    /// Value of `key` or its default.
    ///
    /// # Panics
    /// If the key has no default.
    pub(crate) fn get_or_default(&self, key: &str) -> Cow<'a, Json> {
        self.get(key).map_or_else(|| Cow::Owned(self.table.default_of(key)), Cow::Borrowed)
    }

    /// Value of the required `key`.
    ///
    /// # Errors
    /// If it is missing.
    pub(crate) fn require(&self, key: &str) -> Result<&'a Json> {
        self.get(key).ok_or_else(|| missing(key))
    }

    /// Parses the value of `key`, if given.
    ///
    /// # Errors
    /// If it is not a `T`, or outside the range of the key.
    pub(crate) fn read<T: Value>(&self, key: &str) -> Result<Option<T>> {
        let Key { kind, range, .. } = self.table.key(key);
        debug_assert_eq!(*kind, T::kind(), "the kind of {key}");
        let ends = range.map(|(least, largest)| (from_table(least), from_table(largest)));
        let value = self.get(key).map(|json| to_setting(json).and_then(|s| read_checked(s, ends)));
        value.transpose().map_err(|e| e.at(key))
    }

    /// Parses the value of `key` or its default.
    ///
    /// # Errors
    /// If it is not a `T`, outside the range of the key, or required and missing.
    pub(crate) fn read_or_default<T: Value>(&self, key: &str) -> Result<T> {
        match (self.read(key)?, self.table.key(key).default) {
            (Some(value), _) => Ok(value),
            (None, DefaultValue::Is(text)) => Ok(from_table(text)),
            (None, _) => self.require(key).and_then(read),
        }
    }

    /// Text of `key` or its default.
    ///
    /// # Errors
    /// If it is not text.
    ///
    /// # Panics
    /// If the key has no default.
    pub(crate) fn text(&self, key: &str) -> Result<String> {
        text(&self.get_or_default(key)).map(str::to_string).map_err(|e| e.at(key))
    }
}

/// The error for a required key that is not given.
fn missing(key: &str) -> Error {
    Error::new("is missing").of_kind(ErrorKind::Missing).at(key)
}

/// Parses a value from the table of keys.
fn from_table<T: Value>(text: &str) -> T {
    T::read(Setting::Text(text)).unwrap_or_else(|e| panic!("in the table of keys: {e}"))
}

/// Returns `json` as a table.
///
/// # Errors
/// If it is not one.
pub(crate) fn table(json: &Json) -> Result<&Map<String, Json>> {
    json.as_object().ok_or_else(|| Error::new(format!("{} is not a table", display(json))))
}

/// Returns `json` as text.
///
/// # Errors
/// If it is not text.
pub(crate) fn text(json: &Json) -> Result<&str> {
    json.as_str().ok_or_else(|| Error::new(format!("{} is not text", display(json))))
}

/// Returns `json` as a list.
///
/// # Errors
/// If it is not one.
pub(crate) fn list(json: &Json) -> Result<&Vec<Json>> {
    json.as_array().ok_or_else(|| Error::new(format!("{} is not a list", display(json))))
}

/// Parses `json` as a `T`.
///
/// # Errors
/// If it is not a single value, or not a `T`.
pub(crate) fn read<T: Value>(json: &Json) -> Result<T> {
    T::read(to_setting(json)?)
}

/// Converts `json` to the value of a parameter. Integers are exact.
///
/// Besides its own JSON type a parameter accepts these conversions, which the command line needs: a
/// number or a flag as text (`"5"`, `"true"`, `"yes"`, `"on"`), an integer with a zero fraction
/// (`2.0`), a flag for a choice named true or false, and a single value for a list.
///
/// # Errors
/// If `json` is null, a list or a table.
pub(crate) fn to_setting(json: &Json) -> Result<Setting<'_>> {
    match json {
        Json::String(text) => Ok(Setting::Text(text)),
        Json::Bool(flag) => Ok(Setting::Flag(*flag)),
        Json::Number(n) => Ok(match n.as_i128() {
            Some(whole) => Setting::Integer(whole),
            None => Setting::Number(n.as_f64().unwrap_or(f64::NAN)),
        }),
        _ => Err(Error::new(format!("{} is not a single value", display(json)))),
    }
}

/// Builds the discipline of `registry` described by `json` for the link of `env`.
///
/// # Errors
/// If the discipline or a parameter is unknown, or a value has the wrong type or is out of range.
pub(crate) fn build_qdisc(
    json: &Json,
    env: &Env,
    registry: &Registry,
) -> Result<(QdiscEntry, Built)> {
    let build = |entry: &QdiscEntry, settings: &[(&str, Setting<'_>)]| {
        Ok((*entry, entry.build(settings, env)?))
    };
    with_qdisc(json, env.rate, registry, build)
}

/// Parses the discipline of `registry` described by `json`, or by a line of tc (`tc: fq_codel limit
/// 1000`), and call `then` with its settings.
///
/// A `limit` that is a time, like 300ms, becomes the bytes that a link of `rate` sends in it.
///
/// # Errors
/// If the discipline or a list parameter is unknown, or as `then`.
pub(crate) fn with_qdisc<T>(
    json: &Json,
    rate: Rate,
    registry: &Registry,
    then: impl FnOnce(&QdiscEntry, &[(&str, Setting<'_>)]) -> Result<T>,
) -> Result<T> {
    if let Some(line) = json.as_str().and_then(tc::without_prefix) {
        let discipline = tc::parse(line)?;
        let settings: Vec<_> = discipline
            .settings
            .iter()
            .map(|(key, value)| (key.as_str(), Setting::Text(value)))
            .collect();
        return then(registry.find(discipline.name)?, &settings);
    }
    let named = NamedParams::with_lists(json)?;
    let entry =
        registry.find(named.name).map_err(|e| if json.is_string() { e } else { e.at("name") })?;
    let mut settings = named.settings;
    let times = settings.iter().map(|&(_, value)| bytes_of_time(value, rate)).collect::<Vec<_>>();
    let known = named.lists.is_empty() && times.iter().all(Option::is_none);
    let rows = if known { Vec::new() } else { entry.params() };
    for ((key, value), bytes) in settings.iter_mut().zip(&times) {
        let limit = rows.iter().any(|row| row.name == "limit" && answers(row, key));
        if let (true, Some(bytes)) = (limit, bytes) {
            *value = Setting::Text(bytes);
        }
    }
    let texts = named.lists.iter().map(|(key, list)| list_to_text(key, list, &rows));
    let texts = texts.collect::<Result<Vec<String>>>()?;
    let lists = named.lists.iter().zip(&texts);
    settings.extend(lists.map(|((key, _), text)| (*key, Setting::Text(text))));
    then(entry, &settings)
}

/// Text of the bytes that a link of `rate` sends in the time `value`, at least one packet; none if
/// `value` is not a time.
fn bytes_of_time(value: Setting<'_>, rate: Rate) -> Option<String> {
    let Setting::Text(text) = value else { return None };
    let time: Span = text.parse().ok()?;
    let bytes = u128::from(time.0) * u128::from(rate.0) / 8_000_000_000;
    Some(format!("{}B", bytes.max(LEAST_BUFFER_B)))
}

/// Converts the list given for parameter `key` of `rows` to the text that [`sojourn_aqm::params`]
/// parses: `[1, 2]` becomes `"1 2"`. Rejects a list for any other parameter.
pub(crate) fn list_to_text(key: &str, list: &Json, rows: &[ParamRow]) -> Result<String> {
    let row = rows.iter().find(|row| answers(row, key)).ok_or_else(|| unknown(rows, key))?;
    let not_one = |json: &Json| Error::new(format!("{} is not a single value", display(json)));
    if let Some(kind) = row.kind.strip_prefix("list of ").and_then(TableKind::of) {
        return kind.list_to_text(list).map_err(|e| e.at(key));
    }
    if !row.kind.starts_with("list of") {
        return Err(not_one(list).at(key));
    }
    let word = |(i, item): (usize, &Json)| match item {
        Json::String(text) if !text.contains(char::is_whitespace) => Ok(text.clone()),
        Json::Number(n) => Ok(n.to_string()),
        other => Err(not_one(other).at(i).at(key)),
    };
    let items = self::list(list).map_err(|e| e.at(key))?;
    let words = items.iter().enumerate().map(word).collect::<Result<Vec<String>>>()?;
    Ok(words.join(" "))
}

/// Kind of a parameter whose values are tables.
#[derive(Clone, Copy)]
enum TableKind {
    /// A discipline, with its name.
    Discipline,
    /// A filter, with its class.
    Filter,
}

impl TableKind {
    fn of(kind: &str) -> Option<TableKind> {
        match kind {
            "discipline" => Some(TableKind::Discipline),
            "filter" => Some(TableKind::Filter),
            _ => None,
        }
    }

    /// Converts a list of tables or texts, or a single table, to text.
    fn list_to_text(self, list: &Json) -> Result<String> {
        let one = std::slice::from_ref(list);
        let items = list.as_array().map_or(one, Vec::as_slice);
        let text = |(i, item): (usize, &Json)| self.text(item).map_err(|e| e.at(i));
        Ok(items.iter().enumerate().map(text).collect::<Result<Vec<_>>>()?.join(" "))
    }

    /// Converts a table or a text, checks it, and returns its canonical text.
    fn text(self, json: &Json) -> Result<String> {
        let text = match (self, json) {
            (TableKind::Discipline, Json::String(text)) => match tc::without_prefix(text) {
                Some(line) => {
                    let tc::Discipline { name, settings, .. } = tc::parse(line)?;
                    let settings =
                        settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
                    call_text(name, settings)
                }
                None => text.clone(),
            },
            (TableKind::Filter, Json::Number(class)) => class.to_string(),
            (_, Json::String(text)) => text.clone(),
            (_, Json::Object(map)) => self.table_to_text(map)?,
            (_, other) => return Err(Error::new(format!("{} is not a table", display(other)))),
        };
        let text = Setting::Text(&text);
        match self {
            TableKind::Discipline => Child::read(text).map(|child| child.write()),
            TableKind::Filter => Filter::read(text).map(|filter| filter.write()),
        }
    }

    fn table_to_text(self, map: &Map<String, Json>) -> Result<String> {
        let key = if matches!(self, TableKind::Discipline) { "name" } else { "to" };
        let head = map.get(key).ok_or_else(|| missing(key))?;
        let head = match head {
            Json::String(text) => text.clone(),
            Json::Number(number) => number.to_string(),
            other => {
                return Err(Error::new(format!("{} is not a name", display(other))).at(key));
            }
        };
        let rows = match self {
            TableKind::Discipline => {
                sojourn_aqm::registry::find(&head).map_err(|e| e.at(key))?.params()
            }
            TableKind::Filter => Filter::default().table(),
        };
        let argument = |(key, json): (&String, &Json)| {
            let text = match json {
                Json::Array(_) | Json::Object(_) => list_to_text(key, json, &rows)?,
                Json::String(text) => text.clone(),
                Json::Bool(_) | Json::Number(_) => json.to_string(),
                Json::Null => to_setting(json).map(|s| s.to_string()).map_err(|e| e.at(key))?,
            };
            Ok((key.clone(), text))
        };
        let rest = map.iter().filter(|(name, _)| *name != key);
        let arguments = rest.map(argument).collect::<Result<Vec<_>>>()?;
        Ok(call_text(&head, arguments.iter().map(|(key, text)| (key.as_str(), text.as_str()))))
    }
}

/// Name with parameters: `"codel"`, `"codel(target=5ms)"` or
/// `{"name": "codel", "target": "5ms"}`.
#[derive(Debug)]
pub(crate) struct NamedParams<'a> {
    /// Name.
    pub name: &'a str,
    /// Parameters as written, except lists.
    pub settings: Vec<(&'a str, Setting<'a>)>,
    /// Parameters given as lists.
    pub lists: Vec<(&'a str, &'a Json)>,
}

impl<'a> NamedParams<'a> {
    /// Parses any of the forms, without list parameters.
    ///
    /// # Errors
    /// If the form is wrong, or a parameter is a list.
    pub(crate) fn of(json: &'a Json) -> Result<NamedParams<'a>> {
        let named = NamedParams::with_lists(json)?;
        named.reject_lists()?;
        Ok(named)
    }

    /// Parses any of the forms; list parameters are kept in [`NamedParams::lists`].
    ///
    /// # Errors
    /// If the form is wrong.
    pub(crate) fn with_lists(json: &'a Json) -> Result<NamedParams<'a>> {
        if let Json::String(text) = json {
            let (name, settings) = parse_call(text)?;
            let settings = settings.into_iter().map(|(key, value)| (key, Setting::Text(value)));
            return Ok(NamedParams { name, settings: settings.collect(), lists: Vec::new() });
        }
        let map = table(json)?;
        let name = map.get("name").ok_or_else(|| missing("name"))?;
        let name = text(name).map_err(|e| e.at("name"))?;
        let (mut settings, mut lists) = (Vec::new(), Vec::new());
        for (key, json) in map.iter().filter(|(key, _)| *key != "name") {
            if json.is_array() || json.is_object() {
                lists.push((key.as_str(), json));
            } else {
                settings.push((key.as_str(), to_setting(json).map_err(|e| e.at(key))?));
            }
        }
        Ok(NamedParams { name, settings, lists })
    }

    fn reject_lists(&self) -> Result<()> {
        match self.lists.first() {
            Some((key, list)) => to_setting(list).map(drop).map_err(|e| e.at(key)),
            None => Ok(()),
        }
    }

    /// Applies the settings to default parameters of type `P`.
    ///
    /// # Errors
    /// If a parameter is a list or unknown, or a value is out of range.
    pub(crate) fn params<P: Params + Default>(&self) -> Result<P> {
        self.reject_lists()?;
        let mut params = P::default();
        self.settings.iter().try_for_each(|(key, value)| params.set(key, *value))?;
        Ok(params)
    }
}

/// Canonical JSON form of a name with parameters.
pub(crate) fn canonical(name: &str, table: &[ParamRow]) -> Json {
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

/// Formats `json` for an error message on one line, at most 40 characters. [`Error`] shortens text.
pub(crate) fn display(json: &Json) -> String {
    if let Json::String(text) = json {
        return format!("{text:?}");
    }
    let text = json.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Checks a name: names appear in paths and file names.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        let text = format!("{name:?} is not a name: 1 to 64 letters, digits, \"_\" and \"-\" are");
        return Err(Error::new(text));
    }
    Ok(())
}

/// Checks a title: text without characters that move the cursor, or reorder or hide other text.
pub(crate) fn check_title(title: &str) -> Result<()> {
    let unseen = |c: &char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
    };
    title.chars().find(unseen).map_or(Ok(()), |c| {
        let code = u32::from(c);
        Err(Error::new(format!("has the control character U+{code:04X}, allowed: printable text")))
    })
}

#[cfg(test)]
mod tests;
