//! Links that the flows of a group cross.

use super::links::LinkConfig;
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

/// The routes of the flows of a group: one for all, or where a name has the flow's number in it,
/// one for each.
///
/// Their links are taken from `hops_left`, the number of hops that the scenario may still have.
pub(super) fn routes(
    written: &[Vec<String>; 2],
    count: u64,
    links: &Links<'_>,
    hops_left: &mut u64,
) -> Result<Vec<RoutePair>> {
    let numbered = written.iter().flatten().any(|name| name.contains(NUMBER));
    let routes = if numbered { count } else { 1 };
    let hops = routes.saturating_mul(written.iter().map(|names| names.len() as u64).sum());
    *hops_left = hops_left.checked_sub(hops).ok_or_else(|| {
        let text = format!("{routes} paths have {hops} links, allowed for all flows: {HOPS_MAX}");
        Error::new(text).at("path")
    })?;
    let each = |i: u64| -> Result<RoutePair> {
        let way = |w: usize, key: &str| path(&written[w], i, &links.by_name).map_err(|e| e.at(key));
        Ok([way(0, "path")?, way(1, "return_path")?])
    };
    (0..routes).map(each).collect()
}

/// Indices by name. A list, since `collect` compiles a sort for each type of iterator.
pub(super) fn by_name(names: Vec<&str>) -> BTreeMap<&str, usize> {
    names.into_iter().zip(0..).collect()
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
