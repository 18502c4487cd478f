//! Division of a weighted graph into parts of about equal weight with a light cut.

use sojourn_aqm::cast;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A node that is in no part yet.
const FREE: u32 = u32::MAX;
/// A graph is made coarser until it has about this many nodes per part.
const NODES_PER_PART: usize = 16;
/// Number of divisions of the coarsest graph from which the best is taken.
const GROWTHS: usize = 24;
/// Number of passes over all nodes that move single nodes to a better part.
const PASSES: usize = 8;
/// Greatest weight of a part, in hundredths of the mean, up to which a move may fill it.
const FILL_PERCENT: u64 = 103;

/// Graph whose nodes have weights, with symmetric weighted edges.
pub(super) struct Graph {
    /// Weight of each node.
    pub weights: Vec<u64>,
    /// For each node, its neighbours and the weights of the edges, merged and in order.
    neighbours: Vec<Vec<(u32, u64)>>,
}

impl Graph {
    /// Creates a graph; edges between the same two nodes add up, and loops are ignored.
    pub(super) fn new(weights: Vec<u64>, edges: impl Iterator<Item = [u32; 2]>) -> Graph {
        Graph::with_weights(weights, edges.filter(|[a, b]| a != b).map(|edge| (edge, 1)))
    }

    fn with_weights(weights: Vec<u64>, edges: impl Iterator<Item = ([u32; 2], u64)>) -> Graph {
        let mut neighbours = vec![Vec::new(); weights.len()];
        for ([a, b], weight) in edges {
            neighbours[a as usize].push((b, weight));
            neighbours[b as usize].push((a, weight));
        }
        for all in &mut neighbours {
            all.sort_unstable();
            all.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.1 += if same { next.1 } else { 0 };
                same
            });
        }
        Graph { weights, neighbours }
    }

    /// Part of each node, at most `parts` of them. A large graph is made coarser first, and its
    /// division is improved at every level (Karypis and Kumar, 1998).
    pub(super) fn divide(&self, parts: usize) -> Vec<u32> {
        let total: u64 = self.weights.iter().sum();
        let coarse = self.join_neighbours(total / (parts * NODES_PER_PART) as u64);
        let few = self.weights.len() <= parts * NODES_PER_PART;
        let shrinks = coarse.iter().max().is_some_and(|n| *n as usize + 1 < self.weights.len());
        let mut part_of = if few || !shrinks {
            self.best_growth(parts)
        } else {
            let coarse_parts = self.contract(&coarse).divide(parts);
            coarse.iter().map(|node| coarse_parts[*node as usize]).collect()
        };
        self.improve(parts, &mut part_of);
        part_of
    }

    /// The best of several divisions, grown from different nodes and improved: balanced if one is,
    /// with the lightest cut.
    fn best_growth(&self, parts: usize) -> Vec<u32> {
        let mut heaviest: Vec<u32> = (0..cast::index32(self.weights.len())).collect();
        heaviest.sort_by_key(|node| Reverse(self.weights[*node as usize]));
        let divisions = (0..heaviest.len().clamp(1, GROWTHS)).map(|first| {
            let mut order = heaviest.clone();
            order.rotate_left(first);
            let mut part_of = self.grow_parts(parts, &order);
            self.improve(parts, &mut part_of);
            part_of
        });
        let limit = self.limit(parts);
        let cost = |part_of: &Vec<u32>| {
            let heaviest = self.sizes(parts, part_of).into_iter().max().unwrap_or_default();
            (heaviest.saturating_sub(limit), self.cut(part_of))
        };
        divisions.min_by_key(cost).expect("there is at least one growth")
    }

    /// Weight of the edges between parts, each counted from both ends.
    fn cut(&self, part_of: &[u32]) -> u64 {
        let of_node = |(node, near): (usize, &Vec<(u32, u64)>)| {
            let leaves = |(other, _): &&(u32, u64)| part_of[*other as usize] != part_of[node];
            near.iter().filter(leaves).map(|(_, edge)| edge).sum::<u64>()
        };
        self.neighbours.iter().enumerate().map(of_node).sum()
    }

    /// Weight up to which a move may fill a part.
    fn limit(&self, parts: usize) -> u64 {
        self.weights.iter().sum::<u64>() * FILL_PERCENT / (100 * parts as u64)
    }

    /// Joins each node with one neighbour at most, up to a weight of `limit`: with the one whose
    /// edge is heaviest in relation to both weights. Returns the joint number of each node.
    fn join_neighbours(&self, limit: u64) -> Vec<u32> {
        let mut joint = vec![FREE; self.weights.len()];
        let mut next = 0;
        for node in 0..joint.len() {
            if joint[node] != FREE {
                continue;
            }
            joint[node] = next;
            let fits = |(other, _): &&(u32, u64)| {
                let weight = self.weights[node] + self.weights[*other as usize];
                joint[*other as usize] == FREE && weight <= limit
            };
            let rating = |(other, edge): &(u32, u64)| {
                let product = self.weights[node].max(1) * self.weights[*other as usize].max(1);
                (edge * edge) as f64 / product as f64
            };
            let candidates = self.neighbours[node].iter().filter(fits);
            let best = candidates.max_by(|a, b| rating(a).total_cmp(&rating(b)));
            if let Some((other, _)) = best {
                joint[*other as usize] = next;
            }
            next += 1;
        }
        joint
    }

    /// The graph of the joint nodes.
    fn contract(&self, joint: &[u32]) -> Graph {
        let count = joint.iter().max().map_or(0, |last| *last as usize + 1);
        let mut weights = vec![0; count];
        for (node, joint) in joint.iter().enumerate() {
            weights[*joint as usize] += self.weights[node];
        }
        let edges = self.neighbours.iter().zip(joint).flat_map(|(near, a)| {
            near.iter().map(move |(other, edge)| ([*a, joint[*other as usize]], *edge))
        });
        Graph::with_weights(weights, edges.filter(|([a, b], _)| a < b))
    }

    /// Parts grown one after the other along the heaviest edges; each starts at the first free node
    /// in `order`.
    fn grow_parts(&self, parts: usize, order: &[u32]) -> Vec<u32> {
        let mut part_of = vec![FREE; self.weights.len()];
        let mut left: u64 = self.weights.iter().sum();
        for part in 0..parts {
            let target = left / (parts - part) as u64;
            left -= self.grow(cast::index32(part), target, order, &mut part_of);
        }
        let last = cast::index32(parts - 1);
        part_of.iter_mut().filter(|part| **part == FREE).for_each(|part| *part = last);
        part_of
    }

    /// Adds free nodes to `part` up to a weight of about `target`; returns their weight.
    fn grow(&self, part: u32, target: u64, order: &[u32], part_of: &mut [u32]) -> u64 {
        let (mut size, mut near) = (0, BinaryHeap::new());
        let mut ties = vec![0; self.weights.len()];
        let mut seeds = order.iter();
        while size < target {
            let node = match near.pop() {
                Some((_, Reverse(node))) => node,
                None => match seeds.find(|node| part_of[**node as usize] == FREE) {
                    Some(node) => *node,
                    None => break,
                },
            };
            let weight = self.weights[node as usize];
            // A node that makes the part too heavy is left to the next one.
            if part_of[node as usize] != FREE || (size > 0 && size + weight / 2 > target) {
                continue;
            }
            part_of[node as usize] = part;
            size += weight;
            for (other, edge) in &self.neighbours[node as usize] {
                if part_of[*other as usize] == FREE {
                    ties[*other as usize] += edge;
                    near.push((ties[*other as usize], Reverse(*other)));
                }
            }
        }
        size
    }

    /// Moves single nodes to parts with which they have heavier edges, or from a part that is too
    /// heavy, as long as that helps.
    fn improve(&self, parts: usize, part_of: &mut [u32]) {
        let limit = self.limit(parts);
        let mut sizes = self.sizes(parts, part_of);
        for _ in 0..PASSES {
            let mut moved = false;
            for node in 0..self.weights.len() {
                let (weight, from) = (self.weights[node], part_of[node] as usize);
                let mut edges = vec![0; parts];
                for (other, edge) in &self.neighbours[node] {
                    edges[part_of[*other as usize] as usize] += edge;
                }
                let relieves = |to: usize| sizes[from] > limit && sizes[to] + weight < sizes[from];
                let fits = |to: usize| sizes[to] + weight <= limit;
                let better = |to: &usize| {
                    *to != from && (relieves(*to) || (fits(*to) && edges[*to] > edges[from]))
                };
                let to = (0..parts).filter(better).max_by_key(|to| (edges[*to], Reverse(*to)));
                if let Some(to) = to {
                    part_of[node] = cast::index32(to);
                    (sizes[from], sizes[to]) = (sizes[from] - weight, sizes[to] + weight);
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Weight of each part.
    pub(super) fn sizes(&self, parts: usize, part_of: &[u32]) -> Vec<u64> {
        let mut sizes = vec![0; parts];
        for (part, weight) in part_of.iter().zip(&self.weights) {
            sizes[*part as usize] += weight;
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cliques_are_divided_at_their_bridge() {
        let clique = |first: u32| {
            (first..first + 5).flat_map(move |a| (a + 1..first + 5).map(move |b| [a, b]))
        };
        let edges = clique(0).chain(clique(5)).chain([[4, 5]]);
        let graph = Graph::new(vec![1; 10], edges);
        let part_of = graph.divide(2);
        assert!(part_of[..5].iter().all(|part| *part == part_of[0]), "{part_of:?}");
        assert!(part_of[5..].iter().all(|part| *part == 1 - part_of[0]), "{part_of:?}");
    }

    #[test]
    fn nodes_without_edges_are_spread_by_weight() {
        let graph = Graph::new(vec![3, 1, 1, 1, 3, 3], std::iter::empty());
        assert_eq!(graph.sizes(2, &graph.divide(2)), [6, 6]);
        assert_eq!(graph.sizes(4, &graph.divide(4)), [3, 3, 3, 3]);
    }
}
