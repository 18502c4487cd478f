//! Network of a scenario whose links are called by their ends, like `h3-s20`, and the shortest
//! paths in it.

use super::links::LinkConfig;
use sojourn_aqm::cast;
use std::collections::{BTreeMap, VecDeque};

/// Distance of a node from which no path leads to the destination.
const UNREACHABLE: u32 = u32::MAX;

/// Number of links to a destination, by node.
pub(crate) type Distances = Vec<u32>;

/// Nodes and links. Hosts, called `h` and a number, do not forward.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    /// Names of the nodes, sorted.
    nodes: Vec<String>,
    /// For each link, the nodes at its ends; `None` if it is not called by its ends.
    ends: Vec<Option<[u32; 2]>>,
    /// For each node, the links that leave it, by name.
    leaving: Vec<Vec<u32>>,
    /// For each node, the links that lead to it.
    arriving: Vec<Vec<u32>>,
}

impl Topology {
    /// Creates the network of these links. Those that are not called by two names with `-` between
    /// them are no part of it.
    pub(crate) fn of(links: &[LinkConfig]) -> Topology {
        let names: Vec<Option<[&str; 2]>> = links.iter().map(|link| ends(&link.name)).collect();
        let mut nodes: Vec<&str> = names.iter().flatten().flatten().copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        let number = |name: &str| nodes.binary_search(&name).map_or(0, cast::index32);
        let ends: Vec<Option<[u32; 2]>> =
            names.iter().map(|ends| ends.map(|ends| ends.map(number))).collect();
        let (mut leaving, mut arriving) = (vec![Vec::new(); nodes.len()], Vec::new());
        arriving.resize(nodes.len(), Vec::new());
        for (l, ends) in ends.iter().enumerate() {
            if let Some([from, to]) = ends {
                leaving[*from as usize].push(cast::index32(l));
                arriving[*to as usize].push(cast::index32(l));
            }
        }
        let of_link = |l: u32| ends[l as usize].map(|[_, to]| to);
        leaving.iter_mut().for_each(|links| links.sort_unstable_by_key(|l| of_link(*l)));
        let nodes = nodes.into_iter().map(str::to_string).collect();
        Topology { nodes, ends, leaving, arriving }
    }

    /// Names of the nodes, sorted.
    pub(crate) fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Number of the node called `name`.
    pub(crate) fn node(&self, name: &str) -> Option<u32> {
        self.nodes.binary_search_by(|node| node.as_str().cmp(name)).ok().map(cast::index32)
    }

    /// Nodes at the ends of link `l`; `None` if it is not called by its ends.
    pub(crate) fn ends(&self, l: usize) -> Option<[u32; 2]> {
        self.ends[l]
    }

    /// Distances to `destination` over the links for which `usable` is true.
    pub(crate) fn distances(&self, destination: u32, usable: &[bool]) -> Distances {
        let mut distances = vec![UNREACHABLE; self.nodes.len()];
        distances[destination as usize] = 0;
        let mut reached = VecDeque::from([destination]);
        while let Some(node) = reached.pop_front() {
            if node != destination && self.is_host(node) {
                continue;
            }
            for l in self.arriving[node as usize].iter().filter(|l| usable[**l as usize]) {
                let Some([from, _]) = self.ends[*l as usize] else { continue };
                if distances[from as usize] == UNREACHABLE {
                    distances[from as usize] = distances[node as usize] + 1;
                    reached.push_back(from);
                }
            }
        }
        distances
    }

    /// A shortest path from `from` to the destination of `distances`; `None` if there is none.
    /// `choose` returns which of several links a node takes, below their number.
    pub(crate) fn path(
        &self,
        from: u32,
        distances: &[u32],
        usable: &[bool],
        choose: &mut dyn FnMut(u32, u32) -> u32,
    ) -> Option<Vec<u32>> {
        let (mut node, mut path) = (from, Vec::with_capacity(8));
        while distances[node as usize] > 0 {
            let next = distances[node as usize].checked_sub(1).filter(|d| *d < UNREACHABLE - 1)?;
            let leads_on = |l: &&u32| {
                let Some([_, to]) = self.ends[**l as usize] else { return false };
                usable[**l as usize]
                    && distances[to as usize] == next
                    && (next == 0 || !self.is_host(to))
            };
            let ways = || self.leaving[node as usize].iter().filter(leads_on);
            let number = match cast::index32(ways().count()) {
                1 => 0,
                count => choose(node, count),
            };
            let link = *ways().nth(number as usize)?;
            path.push(link);
            node = self.ends[link as usize]?[1];
        }
        Some(path)
    }

    fn is_host(&self, node: u32) -> bool {
        let number = self.nodes[node as usize].strip_prefix('h').unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// Names of the nodes at the ends of the link called `name`.
fn ends(name: &str) -> Option<[&str; 2]> {
    let (from, to) = name.split_once('-')?;
    (!from.is_empty() && !to.is_empty() && !to.contains('-')).then_some([from, to])
}

/// Shortest paths in a topology, with the distances to the destinations so far.
pub(crate) struct ShortestPaths<'a> {
    topology: &'a Topology,
    usable: Vec<bool>,
    distances: BTreeMap<u32, Distances>,
}

impl<'a> ShortestPaths<'a> {
    pub(crate) fn new(topology: &'a Topology) -> ShortestPaths<'a> {
        let usable = vec![true; topology.ends.len()];
        ShortestPaths { topology, usable, distances: BTreeMap::new() }
    }

    /// The shortest path whose nodes have the first names; `None` if there is none.
    pub(crate) fn first(&mut self, [from, to]: [u32; 2]) -> Option<Vec<u32>> {
        let ShortestPaths { topology, usable, distances } = self;
        let distances = distances.entry(to).or_insert_with(|| topology.distances(to, usable));
        topology.path(from, distances, usable, &mut |_, _| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::links::parse_links;
    use serde_json::{Map, json};

    /// Topology of links with these names, and their names.
    fn topology(names: &[&str]) -> Topology {
        let links: Map<String, serde_json::Value> =
            names.iter().map(|name| (name.to_string(), json!({"rate": "1mbit"}))).collect();
        Topology::of(&parse_links(&links.into()).unwrap())
    }

    fn number(topology: &Topology, name: &str) -> u32 {
        topology.node(name).unwrap()
    }

    #[test]
    fn a_path_is_shortest_and_no_host_forwards() {
        let names = ["h0-s0", "s0-h1", "h1-s1", "s1-h2", "s0-a", "a-b", "b-s1", "s0-c", "c-d"];
        let net = topology(&[&names[..], &["d-s1", "uplink", "x-y-z"]].concat());
        let [from, to] = ["h0", "h2"].map(|name| number(&net, name));
        let distances = net.distances(to, &[true; 12]);
        assert_eq!(distances[from as usize], 5, "not 4 over h1");
        let mut switches = Vec::new();
        let mut choose = |node: u32, count| {
            switches.push((net.nodes()[node as usize].clone(), count));
            1
        };
        let path = net.path(from, &distances, &[true; 12], &mut choose).unwrap();
        let ends = |l: &u32| net.nodes()[net.ends(*l as usize).unwrap()[1] as usize].clone();
        assert_eq!(path.iter().map(ends).collect::<Vec<_>>(), ["s0", "c", "d", "s1", "h2"]);
        assert_eq!(switches, [("s0".to_string(), 2)]);
        assert_eq!(net.node("uplink"), None);
        assert_eq!(net.node("x"), None);
    }

    #[test]
    fn links_that_are_down_are_avoided() {
        let net = topology(&["h0-s0", "s0-h1", "s0-a", "a-h1"]);
        let [from, to] = ["h0", "h1"].map(|name| number(&net, name));
        let direct = [true; 4];
        assert_eq!(net.distances(to, &direct)[from as usize], 2);
        let ends = [number(&net, "s0"), to];
        let usable = |l: usize| net.ends(l) != Some(ends);
        let around: Vec<bool> = (0..4).map(usable).collect();
        let distances = net.distances(to, &around);
        assert_eq!(distances[from as usize], 3);
        assert_eq!(net.path(from, &distances, &around, &mut |_, _| 0).unwrap().len(), 3);
        let none = [false; 4];
        assert_eq!(net.path(from, &net.distances(to, &none), &none, &mut |_, _| 0), None);
    }
}
