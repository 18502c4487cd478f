//! Links that are due at the same moment: the one that was served longest ago comes first.

use super::Simulation;
use sojourn_aqm::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of links due at one moment from which on they are kept in a heap. Packets that follow
/// each other on a path of many equal links are all due together: to search all of them at each
/// event would take the square of their number.
const MANY: usize = 16;

/// Links that are due at one moment, if there are many.
#[derive(Default)]
pub(super) struct Ties {
    /// The moment. `None` until there are many.
    at: Option<Time>,
    /// Keys of the links due then, the next one on top: when it was last served, and its index. A
    /// key is outdated if its link is no longer due or was served since, and may be there twice.
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Simulation<'_> {
    /// The link to serve next of those that are due at `now`, of which there is at least one.
    pub(super) fn whose_turn(&mut self, now: Time) -> usize {
        if self.ties.at == Some(now) {
            while let Some(Reverse((turn, l))) = self.ties.heap.pop() {
                if turn == self.turns[l] && self.slots.at(l) == now {
                    return l;
                }
            }
            self.ties.at = None;
        }
        let Simulation { slots, turns, links, .. } = self;
        let (mut first, mut count) = ((u64::MAX, usize::MAX), 0);
        slots.for_each_tied(now, links.len(), &mut |l| {
            first = first.min((turns[l], l));
            count += 1;
        });
        if count >= MANY {
            self.keep_ties(now, first.1);
        }
        first.1
    }

    /// Keeps all links that are due at `now` but `served`.
    #[cold]
    fn keep_ties(&mut self, now: Time, served: usize) {
        let Simulation { slots, turns, links, ties, .. } = self;
        ties.at = Some(now);
        ties.heap.clear();
        slots.for_each_tied(now, links.len(), &mut |l| {
            if l != served {
                ties.heap.push(Reverse((turns[l], l)));
            }
        });
    }

    /// Notes that link `l` is due at `at`.
    #[inline]
    pub(super) fn note_tie(&mut self, l: usize, at: Time) {
        if self.ties.at == Some(at) {
            self.ties.heap.push(Reverse((self.turns[l], l)));
        }
    }
}
