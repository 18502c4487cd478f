//! Links that the flows of a group cross, and the hosts at their ends.

use super::links::LinkConfig;
use crate::parsing::parse;
use serde_json::Value as Json;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::units::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Links crossed by the data of a flow, and those crossed on the return path.
pub type RoutePair = [Vec<usize>; 2];

/// Placeholder for the number of a flow in the names of its links.
pub(super) const NUMBER: &str = "{i}";

/// Maximum number of links on all paths together. A path per flow counts per flow.
pub(super) const HOPS_MAX: u64 = 50_000_000;

/// Propagation delay of all links of `route`, there and back.
pub(crate) fn delay_of(route: &RoutePair, links: &[LinkConfig]) -> Span {
    route.iter().flatten().fold(Span::ZERO, |sum, l| sum + links[*l].delay())
}

/// The links of a scenario, and their indices by name.
pub(super) struct Links<'a> {
    pub all: &'a [LinkConfig],
    pub by_name: BTreeMap<&'a str, usize>,
}

/// Links of one direction, as a scenario has them.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// The same names for all flows of the group; `{i}` stands for the number of the flow.
    Same(Vec<String>),
    /// Names of its own for each flow.
    Each(Vec<Vec<String>>),
}

impl Way {
    /// Parses a list of names, or a list of such lists for a group of `count` flows.
    ///
    /// # Errors
    /// If it is no such list, or has not one list for each flow.
    pub(super) fn parse(json: &Json, count: u64) -> Result<Way> {
        let list = parse::list(json)?;
        if !list.first().is_some_and(Json::is_array) {
            return names(json).map(Way::Same);
        }
        if list.len() as u64 != count {
            let text = format!("has {} paths for a group of {count} flows", list.len());
            return Err(Error::new(text));
        }
        let each = |(i, json)| names(json).map_err(|e: Error| e.at(i));
        list.iter().enumerate().map(each).collect::<Result<_>>().map(Way::Each)
    }

    /// True if a flow crosses no link in this direction.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Way::Same(names) => names.is_empty(),
            Way::Each(all) => all.iter().any(Vec::is_empty),
        }
    }

    /// Canonical JSON form.
    pub(super) fn canonical(&self) -> Json {
        match self {
            Way::Same(names) => names.as_slice().into(),
            Way::Each(all) => all.iter().map(|names| Json::from(names.as_slice())).collect(),
        }
    }

    /// True if flows differ in their links.
    fn differs(&self) -> bool {
        match self {
            Way::Same(names) => names.iter().any(|name| name.contains(NUMBER)),
            Way::Each(_) => true,
        }
    }

    /// Number of links on the ways of `routes` flows.
    fn hops(&self, routes: u64) -> u64 {
        match self {
            Way::Same(names) => routes.saturating_mul(names.len() as u64),
            Way::Each(all) => all.iter().map(|names| names.len() as u64).sum(),
        }
    }

    fn links(&self, number: u64, links: &BTreeMap<&str, usize>) -> Result<Vec<usize>> {
        match self {
            Way::Same(names) => path(names, number, links),
            Way::Each(all) => {
                path(&all[cast::index(number)], number, links).map_err(|e| e.at(number))
            }
        }
    }
}

fn names(json: &Json) -> Result<Vec<String>> {
    let name = |(i, json)| parse::text(json).map(str::to_string).map_err(|e| e.at(i));
    parse::list(json)?.iter().enumerate().map(name).collect()
}

/// The routes of the flows of a group: one for all, or where their links differ, one for each.
///
/// Their links are taken from `hops_left`, the number of hops that the scenario may still have.
pub(super) fn routes(
    written: &[Way; 2],
    count: u64,
    links: &Links<'_>,
    hops_left: &mut u64,
) -> Result<Vec<RoutePair>> {
    let routes = if written.iter().any(Way::differs) { count } else { 1 };
    let hops = written.iter().fold(0, |sum: u64, way| sum.saturating_add(way.hops(routes)));
    *hops_left = hops_left.checked_sub(hops).ok_or_else(|| {
        let text = format!("{routes} paths have {hops} links, allowed for all flows: {HOPS_MAX}");
        Error::new(text).at("path")
    })?;
    let each = |i: u64| -> Result<RoutePair> {
        let way = |w: usize, key| written[w].links(i, &links.by_name).map_err(|e: Error| e.at(key));
        Ok([way(0, "path")?, way(1, "return_path")?])
    };
    (0..routes).map(each).collect()
}

/// Indices by name. A list, since `collect` compiles a sort for each type of iterator.
pub(super) fn by_name(names: Vec<&str>) -> BTreeMap<&str, usize> {
    names.into_iter().zip(0..).collect()
}

/// Names of the hosts at one end of the flows of a group, as a scenario has them.
#[derive(Clone, Debug)]
pub(crate) enum Hosts {
    /// A host of its own for each flow.
    Own,
    /// One name, in which `{i}` stands for the number of the flow.
    Named(String),
    /// A name for each flow.
    Each(Vec<String>),
}

impl Hosts {
    /// Parses a name, or a list of names for a group of `count` flows.
    ///
    /// # Errors
    /// If a name is none, or there is not one for each flow.
    pub(super) fn parse(json: &Json, count: u64) -> Result<Hosts> {
        let Some(list) = json.as_array() else {
            let name = parse::text(json)?;
            parse::check_name(&name.replace(NUMBER, "0"))?;
            return Ok(Hosts::Named(name.to_string()));
        };
        if list.len() as u64 != count {
            let text = format!("has {} names for a group of {count} flows", list.len());
            return Err(Error::new(text));
        }
        let names = names(json)?;
        for (i, name) in names.iter().enumerate() {
            parse::check_name(name).map_err(|e| e.at(i))?;
        }
        Ok(Hosts::Each(names))
    }

    /// True if flows of the group differ in it.
    pub(super) fn differ(&self) -> bool {
        match self {
            Hosts::Own | Hosts::Each(_) => true,
            Hosts::Named(name) => name.contains(NUMBER),
        }
    }

    /// Canonical JSON form; None for hosts of its own.
    pub(super) fn canonical(&self) -> Option<Json> {
        match self {
            Hosts::Own => None,
            Hosts::Named(name) => Some(name.as_str().into()),
            Hosts::Each(names) => Some(names.as_slice().into()),
        }
    }

    /// Name of the host of the `i`-th flow, or `own`.
    pub(super) fn name(&self, i: u64, own: String) -> String {
        match self {
            Hosts::Own => own,
            Hosts::Named(text) => text.replace(NUMBER, &i.to_string()),
            Hosts::Each(names) => names[cast::index(i)].clone(),
        }
    }
}

fn path(names: &[String], number: u64, links: &BTreeMap<&str, usize>) -> Result<Vec<usize>> {
    let mut path = Vec::with_capacity(names.len());
    let mut crossed = BTreeSet::new();
    for (i, name) in names.iter().enumerate() {
        let name = name.replace(NUMBER, &number.to_string());
        let at = links.get(name.as_str());
        let at = *at.ok_or_else(|| Error::unknown("link", &name, links.keys().copied()).at(i))?;
        if !crossed.insert(at) {
            return Err(Error::new(format!("link {name:?} is crossed twice")).at(i));
        }
        path.push(at);
    }
    Ok(path)
}
