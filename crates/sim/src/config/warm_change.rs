//! Change that a warm start makes: the difference between the scenario of a warm state and the
//! scenario that its run continues as.

use crate::parsing::parse::display;
use serde_json::{Map, Value as Json};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::units::Span;

/// Keys of a scenario that a run continues with, whatever the state has.
const FREE: [&str; 4] = ["name", "seed", "duration", "warmup"];

/// Keys of a link that a change can set, apart from `qdisc`, with the value that ends it. The
/// canonical form of a link has no impairment that has ended.
const OF_LINKS: [(&str, &str); 9] = [
    ("rate", ""),
    ("delay", ""),
    ("loss", ""),
    ("jitter", "0s"),
    ("reorder", "0"),
    ("duplicate", "0"),
    ("corrupt", "0"),
    ("slot", ""),
    ("in_flight_limit", ""),
];

/// End of a refusal.
const ALLOWED: &str = "a warm start can change seed, duration, warmup, and of links rate, delay, \
                       impairments and parameters of the discipline";

/// Returns the change at the time `at` after which a run of `state` has the links of `wanted`: both
/// are canonical scenarios. It is empty if they agree.
///
/// # Errors
/// A difference that no change can make, with its path.
pub(crate) fn change_between(state: &Json, wanted: &Json, at: Span) -> Result<Map<String, Json>> {
    let [old, new] = [Timeline::of(state, at), Timeline::of(wanted, at)];
    let by_hand = ["links", "changes"];
    let keys = table(state).keys().chain(table(wanted).keys()).map(String::as_str);
    for key in keys.filter(|key| !FREE.contains(key) && !by_hand.contains(key)) {
        same(state.get(key), wanted.get(key)).map_err(|e| e.at(key))?;
    }
    for (what, old, new) in [("join", old.joins, new.joins), ("later", old.later, new.later)] {
        if old != new {
            let when = if what == "join" { "until" } else { "after" };
            let text = format!("are others than in the warm state {when} {at}; {ALLOWED}");
            return Err(Error::new(text).at("changes"));
        }
    }
    if let Some(group) = new.left.iter().find(|group| !old.left.contains(group)) {
        let text = format!("{} has left by {at}, and not in the warm state", display(group));
        return Err(Error::new(format!("{text}; {ALLOWED}")).at("changes"));
    }
    let mut links = Map::new();
    for name in old.links.keys().chain(new.links.keys()) {
        let change = link_change(old.links.get(name), new.links.get(name));
        let change = change.map_err(|e| e.at(name).at("links"))?;
        if !change.is_empty() {
            links.insert(name.clone(), change.into());
        }
    }
    let change = Map::from_iter([("links".to_string(), Json::Object(links))]);
    Ok(if change["links"] == Json::Object(Map::new()) { Map::new() } else { change })
}

/// A scenario at a time of its run.
struct Timeline {
    /// Links with the settings that they have then.
    links: Map<String, Json>,
    /// Groups that have joined, with their times.
    joins: Vec<Json>,
    /// Groups that have left.
    left: Vec<Json>,
    /// Changes that come later.
    later: Vec<Json>,
}

impl Timeline {
    fn of(scenario: &Json, at: Span) -> Timeline {
        let mut timeline = Timeline {
            links: table(&scenario["links"]).clone(),
            joins: Vec::new(),
            left: Vec::new(),
            later: Vec::new(),
        };
        let changes = scenario.get("changes").and_then(Json::as_array);
        let mut changes: Vec<(Span, &Json)> =
            changes.into_iter().flatten().map(|change| (time_of(change), change)).collect();
        sojourn_aqm::sorting::sort_by_key(&mut changes, |(at, _)| *at);
        for (time, change) in changes {
            if time > at {
                timeline.later.push(change.clone());
                continue;
            }
            if change.get("join").is_some() {
                timeline.joins.push([change["at"].clone(), change["join"].clone()].into());
            }
            timeline
                .left
                .extend(change.get("leave").and_then(Json::as_array).cloned().unwrap_or_default());
            for (name, new) in change.get("links").map(table).into_iter().flatten() {
                timeline.apply(name, table(new));
            }
        }
        timeline
    }

    /// Applies a change of the link `name`.
    fn apply(&mut self, name: &str, change: &Map<String, Json>) {
        let Some(Json::Object(link)) = self.links.get_mut(name) else { return };
        for (key, value) in change {
            match (key.as_str(), value) {
                ("qdisc", Json::Object(new)) => {
                    let Some(Json::Object(qdisc)) = link.get_mut(key) else { continue };
                    for (param, value) in new {
                        qdisc.insert(param.clone(), value.clone());
                    }
                }
                ("jitter" | "reorder" | "duplicate" | "corrupt", Json::Number(_)) => {
                    link.remove(key);
                }
                _ => {
                    link.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

/// Time of a change.
fn time_of(change: &Json) -> Span {
    let time = change["at"].as_str().and_then(|text| text.parse().ok());
    time.expect("a canonical scenario has the times of its changes")
}

/// The members of a table of a canonical scenario.
fn table(json: &Json) -> &Map<String, Json> {
    json.as_object().expect("a canonical scenario has tables where they belong")
}

/// Returns the change from a link to another one.
fn link_change(old: Option<&Json>, new: Option<&Json>) -> Result<Map<String, Json>> {
    let (Some(Json::Object(old)), Some(Json::Object(new))) = (old, new) else {
        return same(old, new).map(|()| Map::new());
    };
    let mut change = Map::new();
    for key in old.keys().chain(new.keys()) {
        let [before, after] = [old.get(key), new.get(key)];
        if before == after {
            continue;
        }
        let ending = OF_LINKS.iter().find(|(name, _)| name == key).map(|(_, ending)| *ending);
        match (key.as_str(), before, after, ending) {
            ("qdisc", Some(before), Some(after), _) => {
                let params = new_params(table(before), table(after)).map_err(|e| e.at(key))?;
                if !params.is_empty() {
                    change.insert(key.clone(), params.into());
                }
            }
            (_, _, Some(value), Some(_)) => {
                change.insert(key.clone(), value.clone());
            }
            (_, Some(_), None, Some(ending)) if !ending.is_empty() => {
                change.insert(key.clone(), ending.into());
            }
            _ => same(before, after).map_err(|e| e.at(key))?,
        }
    }
    Ok(change)
}

/// Returns the parameters of a discipline that differ.
fn new_params(old: &Map<String, Json>, new: &Map<String, Json>) -> Result<Map<String, Json>> {
    same(old.get("name"), new.get("name")).map_err(|e| e.at("name"))?;
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let differs = |key: &str, value: &Json| old.get(key).is_none_or(|o| text(o) != text(value));
    let rows = new.iter().filter(|(key, value)| differs(key, value));
    Ok(rows.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Checks that two parts of scenarios are equal.
///
/// # Errors
/// The first difference, with its path.
fn same(state: Option<&Json>, wanted: Option<&Json>) -> Result<()> {
    let text = match (state, wanted) {
        (one, other) if one == other => return Ok(()),
        (Some(Json::Object(old)), Some(Json::Object(new))) => {
            for key in old.keys().chain(new.keys()) {
                same(old.get(key), new.get(key)).map_err(|e| e.at(key))?;
            }
            return Ok(());
        }
        (Some(Json::Array(old)), Some(Json::Array(new))) => {
            for i in 0..old.len().max(new.len()) {
                let [old, new] = [old.get(i), new.get(i)];
                let name = |json: Option<&Json>| Some(json?.get("name")?.as_str()?.to_string());
                let at = name(new).or(name(old)).unwrap_or(i.to_string());
                same(old, new).map_err(|e| e.at(&at))?;
            }
            return Ok(());
        }
        (None, Some(new)) if new.is_object() => "is not in the warm state".to_string(),
        (Some(old), None) if old.is_object() => "is in the warm state".to_string(),
        (None, Some(new)) => format!("is {}, and is not set in the warm state", display(new)),
        (Some(old), None) => format!("is not set, and is {} in the warm state", display(old)),
        (Some(old), Some(new)) => {
            format!("is {}, and {} in the warm state", display(new), display(old))
        }
        (None, None) => return Ok(()),
    };
    Err(Error::new(format!("{text}; {ALLOWED}")))
}
