//! Links that the flows of a group cross, and the hosts at their ends.

use super::links::LinkConfig;
use crate::parsing::parse;
use serde_json::Value as Json;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::units::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;

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
pub(super) enum Way {
    /// The same names for all flows of the group; `{i}` stands for the number of the flow.
    Same(Vec<String>),
    /// Indices of the links of each flow.
    Each(Vec<Vec<usize>>),
}

impl Way {
    /// Parses a list of names, or a list of such lists for a group of `count` flows.
    ///
    /// # Errors
    /// If it is no such list, or has not one list for each flow, or a list has an unknown link or
    /// one twice.
    pub(super) fn parse(json: &Json, count: u64, links: &Links<'_>) -> Result<Way> {
        let list = parse::list(json)?;
        if !list.first().is_some_and(Json::is_array) {
            return names(json).map(Way::Same);
        }
        if list.len() as u64 != count {
            let text = format!("has {} paths for a group of {count} flows", list.len());
            return Err(Error::new(text));
        }
        let mut all = Vec::with_capacity(list.len());
        for (i, json) in (0..).zip(list) {
            let path = names(json).and_then(|names| path(&names, i, links));
            all.push(path.map_err(|e: Error| e.at(i))?);
        }
        Ok(Way::Each(all))
    }

    /// True if a flow crosses no link in this direction.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Way::Same(names) => names.is_empty(),
            Way::Each(all) => all.iter().any(Vec::is_empty),
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
            Way::Each(all) => all.iter().map(|links| links.len() as u64).sum(),
        }
    }

    /// Links of the flow with this number, which is asked for once.
    fn take(&mut self, number: u64, links: &Links<'_>) -> Result<Vec<usize>> {
        match self {
            Way::Same(names) => path(names, number, links),
            Way::Each(all) => Ok(mem::take(&mut all[cast::index(number)])),
        }
    }

    /// Names of the links that all flows have; None if each flow has its own.
    fn into_shared(self) -> Option<Vec<String>> {
        match self {
            Way::Same(names) => Some(names),
            Way::Each(_) => None,
        }
    }
}

fn names(json: &Json) -> Result<Vec<String>> {
    let name = |(i, json)| parse::text(json).map(str::to_string).map_err(|e| e.at(i));
    parse::list(json)?.iter().enumerate().map(name).collect()
}

/// Links that the flows of a group cross.
pub(super) struct GroupRoutes {
    /// Path and return path of each flow; a single entry if all flows have the same links.
    pub routes: Vec<RoutePair>,
    /// Names of the links of both directions as written; None if each flow has its own.
    pub written: [Option<Vec<String>>; 2],
}

impl GroupRoutes {
    /// Finds the links of `count` flows.
    ///
    /// They are taken from `hops_left`, the number of hops that the scenario may still have.
    ///
    /// # Errors
    /// If a link does not exist or is crossed twice, or too few hops are left.
    pub(super) fn new(
        mut ways: [Way; 2],
        count: u64,
        links: &Links<'_>,
        hops_left: &mut u64,
    ) -> Result<GroupRoutes> {
        let number = if ways.iter().any(Way::differs) { count } else { 1 };
        let hops = ways.iter().fold(0, |sum: u64, way| sum.saturating_add(way.hops(number)));
        *hops_left = hops_left.checked_sub(hops).ok_or_else(|| {
            let text =
                format!("{number} paths have {hops} links, allowed for all flows: {HOPS_MAX}");
            Error::new(text).at("path")
        })?;
        let mut routes = Vec::with_capacity(cast::index(number));
        for i in 0..number {
            let mut way = |w: usize, key| ways[w].take(i, links).map_err(|e: Error| e.at(key));
            routes.push([way(0, "path")?, way(1, "return_path")?]);
        }
        Ok(GroupRoutes { routes, written: ways.map(Way::into_shared) })
    }
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

fn path(names: &[String], number: u64, links: &Links<'_>) -> Result<Vec<usize>> {
    let mut path = Vec::with_capacity(names.len());
    let mut crossed = BTreeSet::new();
    for (i, name) in names.iter().enumerate() {
        let name = name.replace(NUMBER, &number.to_string());
        let at = links.by_name.get(name.as_str());
        let unknown = || Error::unknown("link", &name, links.by_name.keys().copied()).at(i);
        let at = *at.ok_or_else(unknown)?;
        if !crossed.insert(at) {
            return Err(Error::new(format!("link {name:?} is crossed twice")).at(i));
        }
        path.push(at);
    }
    Ok(path)
}
