//! Canonical JSON form of a scenario: canonical names, all defaults explicit.

use super::flows::FlowConfig;
use super::links::LinkConfig;
use super::scenario::Scenario;
use super::switches;
use crate::endpoint::tcp::TcpParams;
use crate::parsing::object::insert;
use crate::traffic::source::Source;
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::params::ParamRow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

impl Scenario {
    /// Canonical JSON form: canonical names, all defaults explicit.
    pub fn canonical(&self) -> Json {
        let mut all = self.canonical_keys();
        let links = self.links.iter().map(|link| (link.name.clone(), link.canonical()));
        all.insert("links".into(), links.collect());
        let flows = self.participants().map(|flow| flow.canonical(&self.links));
        all.insert("flows".into(), flows.collect());
        all.into()
    }

    /// Text of the canonical JSON form. This is faster than [`Scenario::canonical`] and takes less
    /// memory.
    pub fn canonical_text(&self) -> String {
        let mut text = String::new();
        self.write_canonical(&mut text).expect("a string takes all text");
        text
    }

    /// Writes the canonical form as text. Links and flows are converted one by one: their trees
    /// together would take twice the memory of the links.
    pub(crate) fn write_canonical(&self, text: &mut impl fmt::Write) -> fmt::Result {
        let mut parts = PartTexts::default();
        for (i, (key, value)) in self.canonical_keys().iter().enumerate() {
            write!(text, "{}\"{key}\":", if i > 0 { ',' } else { '{' })?;
            match key.as_str() {
                "links" => {
                    let links = self.links.iter().map(|link| (&*link.name, link));
                    write_members(text, links, |text, link| parts.write_link(text, link))?;
                }
                "flows" => {
                    for (i, flow) in self.participants().enumerate() {
                        text.write_char(if i > 0 { ',' } else { '[' })?;
                        parts.write_flow(text, flow, &self.links)?;
                    }
                    text.write_char(']')?;
                }
                _ => write!(text, "{value}")?,
            }
        }
        text.write_char('}')
    }

    /// Groups that join before the end.
    fn participants(&self) -> impl Iterator<Item = &FlowConfig> {
        self.flows.iter().filter(|flow| flow.takes_part(self.duration()))
    }

    /// Canonical JSON form with null in place of the links and flows.
    fn canonical_keys(&self) -> Map<String, Json> {
        let mut map = Map::new();
        insert(&mut map, "name", self.name.as_str().into());
        insert(&mut map, "links", Json::Null);
        insert(&mut map, "flows", Json::Null);
        self.keys.write(&mut map);
        if self.sample().is_none() {
            map.remove("sample_flows");
        }
        if !self.switches.is_empty() {
            insert(&mut map, "switches", switches::canonical(&self.switches, &self.links));
        }
        let changes = self.changes.iter().filter(|c| c.at < self.duration());
        let changes: Vec<Json> = changes.map(|c| c.canonical(&self.links, &self.flows)).collect();
        if !changes.is_empty() {
            insert(&mut map, "changes", changes.into());
        }
        if let Some(past) = self.warm_from.filter(|past| past.seed != self.seed()) {
            insert(&mut map, "warm_from", past.canonical());
        }
        map
    }
}

/// Texts of the values that links and groups share.
#[derive(Default)]
struct PartTexts {
    qdiscs: BTreeMap<(&'static str, *const ParamRow), String>,
    sources: BTreeMap<*const Source, String>,
    tcps: BTreeMap<*const TcpParams, String>,
}

impl PartTexts {
    fn write_link(&mut self, text: &mut impl fmt::Write, link: &LinkConfig) -> fmt::Result {
        let key = (link.qdisc, link.params.as_ptr());
        let qdisc = self.qdiscs.entry(key).or_insert_with(|| link.canonical_qdisc().to_string());
        write_with(text, &link.canonical_keys(), &[("qdisc", qdisc)])
    }

    fn write_flow(
        &mut self,
        text: &mut impl fmt::Write,
        flow: &FlowConfig,
        links: &[LinkConfig],
    ) -> fmt::Result {
        let key = Arc::as_ptr(&flow.source);
        let source = self.sources.entry(key).or_insert_with(|| flow.source.canonical().to_string());
        let tcp = flow.tcp.as_ref().map_or("", |tcp| {
            self.tcps.entry(Arc::as_ptr(tcp)).or_insert_with(|| tcp.canonical().to_string())
        });
        write_with(text, &flow.canonical_keys(links), &[("source", source), ("tcp", tcp)])
    }
}

/// Writes `table`, whose values of the keys in `texts` are these texts.
fn write_with(
    text: &mut impl fmt::Write,
    table: &Map<String, Json>,
    texts: &[(&str, &str)],
) -> fmt::Result {
    for (i, (key, value)) in table.iter().enumerate() {
        write!(text, "{}\"{key}\":", if i > 0 { ',' } else { '{' })?;
        match texts.iter().find(|(name, _)| name == key) {
            Some((_, value)) => text.write_str(value)?,
            None => write!(text, "{value}")?,
        }
    }
    text.write_char('}')
}

/// Writes a JSON object with at least one of `members`, each value with `write`.
pub(crate) fn write_members<'a, T, W: fmt::Write>(
    text: &mut W,
    members: impl Iterator<Item = (&'a str, T)>,
    mut write: impl FnMut(&mut W, T) -> fmt::Result,
) -> fmt::Result {
    for (i, (name, value)) in members.enumerate() {
        write!(text, "{}{}:", if i > 0 { ',' } else { '{' }, json!(name))?;
        write(text, value)?;
    }
    text.write_char('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"{
        "duration": "3s", "sample": "10ms", "name": "\"quoted\"",
        "links": {
            "a": {"rate": "10mbit", "qdisc": "red(max_p=0.2)", "loss": "1%"},
            "b": {"rate": "20mbit", "qdisc": "red(max_p=0.2)"},
            "c": {"rate": "20mbit", "trace": {"opportunities_ms": [1, 2, 5]}},
            "d": {"rate": "20mbit"}
        },
        "flows": [
            {"name": "f", "path": ["a"], "tcp": "dctcp", "sender": "host"},
            {"name": "g", "path": ["b", "a"], "tcp": "dctcp", "rtt": "uniform(10ms, 20ms)"},
            {"name": "h", "path": ["c"], "return_path": ["d"], "source": "poisson"},
            {"name": "i", "path": ["d"], "source": "cbr", "ecn": "ect0"},
            {"name": "late", "path": ["d"]}
        ],
        "changes": [{"at": "1s", "leave": ["f"]}, {"at": "2s", "links": {"b": {"rate": "1mbit"}}}]
    }"#;

    #[test]
    fn text_and_tree_are_equal() {
        let scenario = Scenario::from_json(SCENARIO).unwrap();
        let text = scenario.canonical_text();
        assert_eq!(text, scenario.canonical().to_string());
        assert_eq!(Scenario::from_json(&text).unwrap().canonical_text(), text);
    }

    #[test]
    fn equal_texts_are_parsed_once_and_seeds_share_all() {
        let scenario = Scenario::from_json(SCENARIO).unwrap();
        let [f, g, h, i, _] = &*scenario.flows else { panic!("five groups") };
        let tcp = |flow: &FlowConfig| Arc::as_ptr(flow.tcp.as_ref().unwrap());
        assert!(tcp(f) == tcp(g) && tcp(f) != tcp(h) && i.tcp.is_none());
        assert!(Arc::ptr_eq(&f.source, &g.source) && !Arc::ptr_eq(&f.source, &h.source));
        assert!(Arc::ptr_eq(&scenario.links[0].params, &scenario.links[1].params));
        let other = scenario.with_seed(7).unwrap();
        assert!(Arc::ptr_eq(&scenario.links, &other.links));
        assert!(Arc::ptr_eq(&scenario.flows, &other.flows));
    }
}
