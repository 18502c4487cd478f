//! Links that are due at the same time: the least recently served one goes first.

use super::Simulation;
use sojourn_aqm::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of links due at the same time above which they are kept in a heap. On a path of many
/// equal links all packets in flight are due together: a search at each event would take time
/// proportional to the square of their number.
const MANY: usize = 16;

/// Links that are due at the same time, if there are many.
#[derive(Clone, Default)]
pub(super) struct Ties {
    /// That time; `None` if there are few.
    at: Option<Time>,
    /// Time of last service and index of each link due then, the least recently served on top. An
    /// entry is outdated if its link is no longer due or was served since; there may be duplicates.
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Simulation {
    /// Returns the least recently served of the links due at `now`. At least one is due.
    pub(super) fn least_recently_served(&mut self, now: Time) -> usize {
        if self.links.len() == 1 {
            return 0;
        }
        if self.ties.at == Some(now) {
            while let Some(Reverse((turn, l))) = self.ties.heap.pop() {
                if turn == self.last_served[l] && self.events.at(l) == now {
                    return l;
                }
            }
            self.ties.at = None;
        }
        let Simulation { events, last_served, links, .. } = self;
        let (mut first, mut count) = ((u64::MAX, usize::MAX), 0);
        events.for_each_tied(now, links.len(), &mut |l| {
            first = first.min((last_served[l], l));
            count += 1;
        });
        if count >= MANY {
            self.keep_ties(now, first.1);
        }
        first.1
    }

    /// Puts all links due at `now`, except `served`, into the heap.
    #[cold]
    fn keep_ties(&mut self, now: Time, served: usize) {
        let Simulation { events, last_served, links, ties, .. } = self;
        ties.at = Some(now);
        ties.heap.clear();
        events.for_each_tied(now, links.len(), &mut |l| {
            if l != served {
                ties.heap.push(Reverse((last_served[l], l)));
            }
        });
    }

    /// Adds link `l`, due at `at`, to the heap if it is of that time.
    #[inline]
    pub(super) fn note_tie(&mut self, l: usize, at: Time) {
        if self.ties.at == Some(at) {
            self.ties.heap.push(Reverse((self.last_served[l], l)));
        }
    }
}
