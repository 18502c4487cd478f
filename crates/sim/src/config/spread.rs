//! Spread of the packets of a group of flows over the shortest paths between their hosts.
//!
//! **Source**: a path per connection by hash-threshold, RFC 2992; flowlets: Vanini, Pan, Alizadeh,
//! Taheri and Edsall, "Let It Flow", NSDI 2017; packets: Dixit, Prakash, Hu and Kompella, "On the
//! Impact of Packet Spraying in Data Center Networks", INFOCOM 2013.

use super::flow_routes::{Hosts, Links, RoutePair, Way};
use super::topology::{ShortestPaths, Topology};
use crate::parsing::parse::{KeyReader, NamedParams, canonical};
use serde_json::Value as Json;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::Params;
use sojourn_aqm::units::Span;
use sojourn_aqm::{choice, params};
use std::cell::OnceCell;

choice! {
    /// Hash functions of the switches.
    pub enum HashFunctions {
        /// One of its own in each switch.
        PerSwitch = "per-switch" | "per_switch",
        /// The same in all switches, so that a switch chooses as the one before it did.
        Shared = "shared",
    }
}

params! {
    /// Parameters of flowlets.
    pub struct FlowletParams {
        /// Gap between two packets of a connection after which a new path is chosen.
        gap: Span = Span::us(100), [Span(1) => Span::s(100)], "", [];
    }
}

/// Packets that share a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpreadUnit {
    /// All packets of a connection.
    Connection,
    /// Packets of a connection without a gap longer than this between them.
    Flowlet(Span),
    /// One packet, with a path drawn at random.
    Packet,
    /// One packet; the paths are taken in turn.
    RoundRobin,
}

/// Names of the units.
const UNITS: [&str; 4] = ["connection", "flowlet", "packet", "round-robin"];

/// Spread of a group of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Packets that share a path.
    pub unit: SpreadUnit,
    /// Hash functions of the switches.
    pub hash: HashFunctions,
}

impl Spread {
    /// Reads the keys `spread` and `hash` of a group.
    ///
    /// # Errors
    /// If the name or a parameter is unknown, or `hash` is given alone.
    pub(super) fn read(fields: &KeyReader<'_>) -> Result<Option<Spread>> {
        let hash = fields.read("hash")?;
        let Some(json) = fields.get("spread") else {
            return match hash {
                None => Ok(None),
                Some::<HashFunctions>(_) => {
                    Err(Error::new("requires spread = \"connection\" or another spread").at("hash"))
                }
            };
        };
        let unit = SpreadUnit::parse(json).map_err(|e| e.at("spread"))?;
        Ok(Some(Spread { unit, hash: hash.unwrap_or(HashFunctions::PerSwitch) }))
    }
}

impl SpreadUnit {
    fn parse(json: &Json) -> Result<SpreadUnit> {
        let named = NamedParams::of(json)?;
        let unit = match named.name {
            "connection" => SpreadUnit::Connection,
            "flowlet" => return Ok(SpreadUnit::Flowlet(named.params::<FlowletParams>()?.gap)),
            "packet" => SpreadUnit::Packet,
            "round-robin" => SpreadUnit::RoundRobin,
            other => return Err(Error::unknown("spread", other, UNITS)),
        };
        match named.settings.first() {
            None => Ok(unit),
            Some((key, _)) => {
                Err(Error::new(format!("unknown parameter: {} has none", named.name)).at(key))
            }
        }
    }

    /// Canonical JSON form.
    pub(super) fn canonical(self) -> Json {
        match self {
            SpreadUnit::Connection => canonical(UNITS[0], &[]),
            SpreadUnit::Flowlet(gap) => {
                canonical(UNITS[1], &FlowletParams::default().gap(gap).table())
            }
            SpreadUnit::Packet => canonical(UNITS[2], &[]),
            SpreadUnit::RoundRobin => canonical(UNITS[3], &[]),
        }
    }
}

/// Topology of the links of a scenario, created when the first group needs it.
#[derive(Default)]
pub(super) struct LazyTopology(OnceCell<Topology>);

impl LazyTopology {
    fn get(&self, links: &Links<'_>) -> &Topology {
        self.0.get_or_init(|| Topology::of(links.all))
    }
}

/// The shortest paths between the hosts of a group of `count` flows, there and back, whose nodes
/// have the first names.
///
/// # Errors
/// If a host has no name, or is no node, or no path leads to it.
pub(super) fn paths_of(
    hosts: &[Hosts; 2],
    count: u64,
    links: &Links<'_>,
    lazy: &LazyTopology,
) -> Result<[Way; 2]> {
    let topology = lazy.get(links);
    let mut shortest = ShortestPaths::new(topology);
    for (key, end) in ["sender", "receiver"].into_iter().zip(hosts) {
        if matches!(end, Hosts::Own) {
            let text = "is missing: spread without path needs the names of the hosts";
            return Err(Error::new(text).at(key));
        }
    }
    let node = |key: &str, end: &Hosts, i: u64| {
        let name = end.name(i, String::new());
        topology.node(&name).ok_or_else(|| {
            let error = Error::unknown("node", &name, topology.nodes().iter().map(String::as_str));
            error.at(key)
        })
    };
    let [mut there, mut back] = [Vec::new(), Vec::new()];
    let number = if hosts.iter().any(Hosts::differ) { count } else { 1 };
    for i in 0..number {
        let ends = [node("sender", &hosts[0], i)?, node("receiver", &hosts[1], i)?];
        if ends[0] == ends[1] {
            let text = format!("{} sends to itself", topology.nodes()[ends[0] as usize]);
            return Err(Error::new(text).at("receiver"));
        }
        for (way, [from, to]) in [(&mut there, ends), (&mut back, [ends[1], ends[0]])] {
            let path = shortest.first([from, to]).ok_or_else(|| {
                let [from, to] = [from, to].map(|node| &topology.nodes()[node as usize]);
                Error::new(format!("no links lead from {from} to {to}")).at("path")
            })?;
            way.push(path.into_iter().map(|l| l as usize).collect());
        }
    }
    let name = |l: usize| links.all[l].name.clone();
    let way = |mut all: Vec<Vec<usize>>| match hosts.iter().any(Hosts::differ) {
        true => Way::Each(all),
        false => Way::Same(all.pop().unwrap_or_default().into_iter().map(name).collect()),
    };
    Ok([way(there), way(back)])
}

/// Checks that each route leads from node to node, and back to where it starts.
///
/// # Errors
/// If a link is not called by its ends, or does not start where the link before it ends.
pub(super) fn check(routes: &[RoutePair], links: &Links<'_>, lazy: &LazyTopology) -> Result<()> {
    let topology = lazy.get(links);
    for route in routes {
        let mut at = None;
        for (key, way) in ["path", "return_path"].into_iter().zip(route) {
            for l in way {
                let name = &links.all[*l].name;
                let [from, to] = topology.ends(*l).ok_or_else(|| {
                    let text = format!("{name:?} is not called by its ends, like \"h3-s20\"");
                    Error::new(format!("{text}, which spread needs")).at(key)
                })?;
                if let Some(node) = at.filter(|node| *node != from) {
                    let node = &topology.nodes()[node as usize];
                    let text = format!("{name:?} does not start at {node}, where the path is");
                    return Err(Error::new(text).at(key));
                }
                at = Some(to);
            }
        }
        let first = route[0].first().and_then(|l| topology.ends(*l));
        if route[1].is_empty() || at != first.map(|[from, _]| from) {
            let text = "does not lead back to the sender, which spread needs";
            return Err(Error::new(text).at("return_path"));
        }
    }
    Ok(())
}
