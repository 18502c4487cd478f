//! Disciplines and links in the language of Linux's `tc`, as JSON.

use crate::parsing::object::object;
use crate::parsing::parse::with_qdisc;
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Setting, Value, parse_call};
use sojourn_aqm::registry::{QdiscEntry, Registry};
use sojourn_aqm::sched::{child::Child, filter::Filter};
use sojourn_aqm::tc::kinds::KINDS;
use sojourn_aqm::tc::table::{Becomes, Kind, Ours, Unit, Word};
use sojourn_aqm::tc::{Discipline, Form, Line};
use sojourn_aqm::units::Rate;
use sojourn_aqm::{Built, Env, tc};

pub use super::tc_json::lines;
pub use super::tc_state::state;

/// Parses a qdisc with its words, with or without `tc:` before it; returns name, settings, and the
/// words that are lost.
///
/// # Errors
/// As [`tc::parse`].
pub fn parse(text: &str) -> Result<Json> {
    let discipline = tc::parse(text)?;
    let lost = discipline.lost.clone();
    Ok(json!({ "qdisc": qdisc(&discipline), "lost": lost }))
}

/// Table of a discipline of tc with its settings.
pub(crate) fn qdisc(discipline: &Discipline) -> Json {
    let settings = discipline.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    described(discipline.name, settings)
}

/// Table of a discipline with its settings.
fn described<'a>(name: &str, settings: impl Iterator<Item = (&'a str, &'a str)>) -> Json {
    let mut map = Map::new();
    map.insert("name".into(), name.into());
    let lists = matches!(name, "htb" | "hfsc");
    for (key, value) in settings {
        let value = match key {
            "children" => entries(value, child),
            "filters" => entries(value, filter),
            "default" | "limit" => plain(value),
            _ if lists => value.split_whitespace().map(plain).collect(),
            _ => plain(value),
        };
        map.insert(key.into(), value);
    }
    Json::Object(map)
}

/// Entries of a list, or its text if it is none.
fn entries<T: Value>(text: &str, write: fn(&T) -> Json) -> Json {
    match Vec::<T>::read(Setting::Text(text)) {
        Ok(list) => list.iter().map(write).collect(),
        Err(_) => text.into(),
    }
}

/// Discipline of a class: its name if it has no settings, else a table.
fn child(child: &Child) -> Json {
    let text = child.write();
    match parse_call(&text) {
        Ok((name, settings)) if !settings.is_empty() => described(name, settings.into_iter()),
        _ => text.into(),
    }
}

/// Table of a filter.
fn filter(filter: &Filter) -> Json {
    let text = filter.write();
    let Ok((to, keys)) = parse_call(&text) else { return text.into() };
    let keys = keys.into_iter().map(|(key, value)| (key.to_string(), plain(value)));
    let to = ("to".to_string(), plain(to));
    object(core::iter::once(to).chain(keys))
}

/// Value of a setting in its JSON type: flags and numbers are not text.
fn plain(value: &str) -> Json {
    match value {
        "true" => true.into(),
        "false" => false.into(),
        _ => value.parse::<u64>().map(Json::from).unwrap_or_else(|_| {
            let number = value.parse::<f64>().ok().filter(|x| x.is_finite());
            number.map_or_else(|| value.into(), Json::from)
        }),
    }
}

/// Translates a discipline to the nearest qdisc of Linux, with its text in commands and in the
/// output of `tc qdisc show`, the commands for classes, filters and qdiscs `below` it (object, verb
/// and words), and with what Linux cannot do. `handle` is the major number of the qdisc in these
/// commands.
///
/// # Errors
/// An invalid discipline, or one that has no counterpart in Linux.
pub fn export(json: &Json, rate: Option<&str>, handle: u16) -> Result<Json> {
    let known = rate.map(str::parse::<Rate>).transpose().map_err(|e| e.at("rate"))?;
    let env = Env::new(known.unwrap_or(Rate(10_000_000)));
    let build = |entry: &QdiscEntry, settings: &[(&str, Setting<'_>)]| {
        Ok((entry.name, entry.build(settings, &env)?))
    };
    let (name, Built { params, .. }) = with_qdisc(json, env.rate, &Registry::default(), build)?;
    let exported = tc::export_tree(name, &params, known, handle)?;
    let below =
        exported.below.iter().map(|command| json!([command.object, command.verb, command.words]));
    let line: &Line = &exported.line;
    // As tc completes it: thresholds of RED and others.
    let whole = line.clone().completed(Form::Command)?;
    let options: Json = serde_json::from_str(&whole.shown_json())
        .map_err(|e| Error::new(format!("options: {e}")))?;
    Ok(json!({
        "kind": line.kind.name,
        "line": line.write(),
        "shown": whole.shown(),
        "options": options,
        "below": below.collect::<Json>(),
        "lost": exported.lost,
        "differs": line.kind.differs,
    }))
}

/// Tables of all qdiscs, for pages and completion.
pub fn tables() -> Json {
    let word = |word: &Word| {
        let (ours, why) = match word.ours {
            Ours::To(name) => (name, ""),
            Ours::Scaled(name, _) => (name, "scaled"),
            Ours::Computed => ("", "computed"),
            Ours::Lost(why) => ("", why),
            Ours::Harmless => ("", "no effect"),
        };
        let words: Vec<_> = match word.unit {
            Unit::Choice(choices) => {
                choices.iter().map(|(w, v)| [*w, *v]).filter(|[w, _]| !w.is_empty()).collect()
            }
            Unit::Words(words) => words.iter().map(|(w, _)| [*w, ""]).collect(),
            _ => Vec::new(),
        };
        json!({
            "name": word.name, "unit": word.unit.name(), "default": word.default,
            "parameter": ours, "note": why, "words": words, "output_only": word.output_only,
        })
    };
    let kind = |kind: &&'static Kind| {
        let (discipline, why) = match kind.becomes {
            Becomes::Discipline(name) => (name, ""),
            Becomes::Link => ("", "link"),
            Becomes::Nothing(why) => ("", why),
        };
        let fixed =
            kind.fixed.iter().map(|f| json!({"name": f.name, "linux": f.linux, "why": f.why}));
        json!({
            "name": kind.name, "discipline": discipline, "why": why, "differs": kind.differs,
            "words": kind.words.iter().map(word).collect::<Vec<_>>(),
            "fixed": fixed.collect::<Vec<_>>(),
        })
    };
    KINDS.iter().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_has_the_output_of_tc() {
        let out = export(&json!("fq_codel(limit=500p, target=20ms)"), None, 1).unwrap();
        assert_eq!(out["line"], "fq_codel limit 500 target 20ms");
        assert_eq!(out["options"]["target"], 20_000);
        assert!(out["shown"].as_str().unwrap().starts_with("limit 500p flows 1024 "), "{out}");
        let error = export(&json!("wfq"), None, 1).unwrap_err().to_string();
        assert!(error.contains("Linux has no qdisc for wfq"), "{error}");
    }
}
