//! How a scenario's JSON is read: every key is known or refused, every value has its unit, and
//! every refusal carries the path of what it refuses.

use crate::keys::{Key, Table, Unset};
use serde_json::{Map, Value as Json};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Params, Row, Setting, Value, checked};
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
        let value = self.get(key).map(|json| read(json)).transpose();
        let value = value.and_then(|v| v.map(|v| checked(v, ends)).transpose());
        value.map_err(|e| e.at(key))
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

/// `json` as the value of a parameter.
pub fn setting(json: &Json) -> Result<Setting<'_>> {
    match json {
        Json::String(text) => Ok(Setting::Text(text)),
        Json::Bool(flag) => Ok(Setting::Flag(*flag)),
        Json::Number(n) => Ok(Setting::Number(n.as_f64().unwrap_or(f64::NAN))),
        _ => Err(Error::new(format!("{} is not a single value", shown(json)))),
    }
}

/// Writes the lists among the parameters of the named thing `json` as the text that
/// [`sojourn_aqm::params`] reads: `[1, 2]` as `"1 2"`.
pub fn lists_as_text(json: &mut Json) {
    for value in json.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
        let word = |item: &Json| match item {
            Json::String(text) if !text.contains(char::is_whitespace) => Some(text.clone()),
            Json::Number(n) => Some(n.to_string()),
            _ => None,
        };
        let words: Option<Vec<String>> =
            value.as_array().and_then(|list| list.iter().map(word).collect());
        if let Some(words) = words {
            *value = Json::String(words.join(" "));
        }
    }
}

/// A thing with a name and parameters: `"codel"` or `{"name": "codel", "target": "5ms"}`.
pub struct Named<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its parameters, as they were written.
    pub settings: Vec<(&'a str, Setting<'a>)>,
    /// Its parameters that are lists; only a trace has some.
    pub lists: Vec<(&'a str, &'a Json)>,
}

impl<'a> Named<'a> {
    /// Reads either form; lists are refused.
    pub fn of(json: &'a Json) -> Result<Named<'a>> {
        let named = Named::with_lists(json)?;
        named.no_lists()?;
        Ok(named)
    }

    /// Reads either form.
    pub fn with_lists(json: &'a Json) -> Result<Named<'a>> {
        if let Json::String(name) = json {
            return Ok(Named { name, settings: Vec::new(), lists: Vec::new() });
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

/// `json` as it appears in a message: short, on one line.
fn shown(json: &Json) -> String {
    let text = json.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
