//! Disciplines of links. Disciplines of the same text and rate are parsed once.

use super::shared::Shared;
use crate::parsing::parse;
use serde_json::Value as Json;
use sojourn_aqm::Env;
use sojourn_aqm::error::Result;
use sojourn_aqm::params::ParamRow;
use sojourn_aqm::registry::{QdiscEntry, Registry};
use sojourn_aqm::units::Rate;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Parsed definition of a discipline for links of one rate.
#[derive(Clone, Debug)]
pub(super) struct Discipline {
    /// Entry in the registry.
    pub entry: Arc<QdiscEntry>,
    /// All parameters; disciplines with equal parameters share them.
    pub params: Arc<[ParamRow]>,
    /// State without packets, bytes.
    pub state: usize,
    /// Number of variables that it shows.
    pub gauges: usize,
}

/// Parser of the disciplines of links.
pub(super) struct Disciplines<'a> {
    registry: &'a Registry,
    default: Json,
    known: Shared<(Option<&'a Json>, Rate), Discipline>,
    /// The last one of each name.
    last: BTreeMap<&'static str, Discipline>,
}

impl<'a> Disciplines<'a> {
    /// Creates a parser with this default.
    pub(super) fn new(registry: &'a Registry, default: Json) -> Disciplines<'a> {
        Disciplines { registry, default, known: Shared::default(), last: BTreeMap::new() }
    }

    /// Parses the discipline `json`, or the default, for a link of rate `rate`.
    ///
    /// # Errors
    /// If it or a parameter is unknown, or a value is invalid.
    pub(super) fn parse(&mut self, json: Option<&'a Json>, rate: Rate) -> Result<Discipline> {
        let Disciplines { registry, default, known, last } = self;
        known.get((json, rate), || {
            let mut discipline = build(json.unwrap_or(default), rate, registry)?;
            let same = last.get(discipline.entry.name);
            if let Some(same) = same.filter(|same| same.params == discipline.params) {
                discipline.params = Arc::clone(&same.params);
                discipline.entry = Arc::clone(&same.entry);
            }
            last.insert(discipline.entry.name, discipline.clone());
            Ok(discipline)
        })
    }
}

fn build(json: &Json, rate: Rate, registry: &Registry) -> Result<Discipline> {
    let (entry, built) = parse::build_qdisc(json, &Env::new(rate), registry)?;
    let mut gauges = 0;
    built.qdisc.inspect(&mut |_, _| gauges += 1);
    let state = built.qdisc.state_bytes();
    Ok(Discipline { entry: entry.into(), params: built.params.into(), state, gauges })
}
