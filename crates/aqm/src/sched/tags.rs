//! Common part of the virtual-time schedulers: every packet gets a start tag at enqueue, and the
//! head with the smallest tag is sent.

use crate::sched::scheduler::{DropPosition, Item};
use crate::sched::tree::{OUT, Tree, key};
use crate::snapshot::Snapshot;
use alloc::vec;
use alloc::vec::Vec;

/// Tag by which packets are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub enum Least {
    /// Start tag.
    Start,
    /// Finish tag.
    Finish,
}

/// Tags of a queue.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct Queue {
    weight: f64,
    /// Start tag of the head.
    head: f64,
    /// Amount by which the start tags of the queued packets decrease, for packets dropped before
    /// them.
    shift: f64,
    /// Finish tag of the last packet, and the busy period to which it belongs.
    finish: f64,
    busy: u32,
}

/// Tags of all queued packets, in bytes of service per unit of weight.
#[derive(Clone, Debug, Snapshot)]
pub struct Tags {
    least: Least,
    queues: Vec<Queue>,
    /// Start tags by the indices of the packets in the pool.
    starts: Vec<f64>,
    busy: u32,
    heads: Tree,
}

impl Tags {
    pub fn new(weights: &[f64], least: Least) -> Tags {
        let queue = |weight: &f64| Queue { weight: *weight, ..Queue::default() };
        Tags {
            least,
            queues: weights.iter().map(queue).collect(),
            starts: Vec::new(),
            busy: 0,
            heads: Tree::new(weights.len()),
        }
    }

    /// Weight of queue `i`.
    pub fn weight(&self, i: u32) -> f64 {
        self.queues[i as usize].weight
    }

    /// Finish tag of the last packet of queue `i` in this busy period.
    pub fn finish(&self, i: u32) -> f64 {
        let queue = &self.queues[i as usize];
        if queue.busy == self.busy { queue.finish } else { 0.0 }
    }

    /// Tags a packet that joins queue `i` at virtual time `v`; returns its finish tag.
    pub fn on_enqueued(&mut self, v: f64, i: u32, packet: Item, first: bool) -> f64 {
        let start = v.max(self.finish(i));
        if first {
            self.queues[i as usize].shift = 0.0;
        }
        let place = packet.place as usize;
        if place >= self.starts.len() {
            self.starts.extend(vec![0.0; place + 1 - self.starts.len()]);
        }
        self.starts[place] = start + self.queues[i as usize].shift;
        let queue = &mut self.queues[i as usize];
        (queue.finish, queue.busy) = (start + f64::from(packet.len) / queue.weight, self.busy);
        let finish = queue.finish;
        if first {
            self.head(i, Some(packet));
        }
        finish
    }

    /// Updates the key of queue `i` after a change of its head.
    fn head(&mut self, i: u32, head: Option<Item>) {
        let queue = &mut self.queues[i as usize];
        let Some(Item { place, len }) = head else { return self.heads.set(i, OUT) };
        queue.head = (self.starts[place as usize] - queue.shift).max(0.0);
        let tag = match self.least {
            Least::Start => queue.head,
            Least::Finish => queue.head + f64::from(len) / queue.weight,
        };
        self.heads.set(i, key(tag));
    }

    /// Queue whose head has the smallest tag.
    pub fn first(&self) -> Option<u32> {
        self.heads.first().map(|(i, _)| i)
    }

    /// Sends the head of queue `i`, of `len` bytes; returns its start and finish tags.
    pub fn on_sent(&mut self, i: u32, len: u32, next: Option<Item>) -> (f64, f64) {
        let Queue { head, weight, .. } = self.queues[i as usize];
        self.head(i, next);
        (head, head + f64::from(len) / weight)
    }

    /// Accounts for dropped packets. A packet dropped at the tail takes its tag with it. After a
    /// drop at the head the following packets move up, as if the dropped packet had never arrived.
    pub fn on_dropped(&mut self, i: u32, loss: DropPosition, next: Option<Item>) {
        let queue = &mut self.queues[i as usize];
        match loss {
            // Rounding must not leave a negative tag, whose key would come last.
            DropPosition::Tail(place) => {
                queue.finish = (self.starts[place as usize] - queue.shift).max(0.0);
            }
            DropPosition::Head(bytes) => {
                let service = bytes as f64 / queue.weight;
                queue.shift += service;
                queue.finish = (queue.finish - service).max(0.0);
            }
        }
        self.head(i, next);
    }

    /// Ends a busy period: invalidates all tags.
    pub fn reset(&mut self) {
        self.busy = self.busy.wrapping_add(1);
    }

    /// Size of the state in bytes, without packets.
    pub fn state_bytes(&self) -> usize {
        size_of_val(&*self.queues) + self.heads.state_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use rand_core::SeedableRng;

    #[test]
    fn rounding_leaves_no_negative_tag() {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        for _ in 0..1000 {
            let weight = 0.1 + rng.uniform();
            let mut tags = Tags::new(&[weight], Least::Finish);
            let items: Vec<_> =
                (0..6).map(|place| Item { place, len: 1 + rng.below(1500) }).collect();
            // Some packets are dropped at the head, more arrive, and all but one at the tail go.
            let (early, late) = items.split_at(3);
            for item in early {
                tags.on_enqueued(0.0, 0, *item, item.place == 0);
            }
            tags.on_dropped(0, DropPosition::Head(u64::from(early[0].len)), Some(early[1]));
            for item in late {
                tags.on_enqueued(0.0, 0, *item, false);
            }
            for i in 1..5 {
                tags.on_dropped(0, DropPosition::Head(u64::from(items[i].len)), Some(items[i + 1]));
            }
            tags.on_dropped(0, DropPosition::Tail(5), None);
            assert!(tags.finish(0) >= 0.0, "{:e}", tags.finish(0));
        }
    }

    #[test]
    fn dropped_packets_leave_no_service_behind() {
        // Of 1000 bytes each, at weight 2: start tags 0, 500, 1000.
        let item = |place| Item { place, len: 1000 };
        let mut tags = Tags::new(&[2.0], Least::Finish);
        let finish = [0, 1, 2].map(|place| tags.on_enqueued(0.0, 0, item(place), place == 0));
        assert_eq!(finish, [500.0, 1000.0, 1500.0]);
        tags.on_dropped(0, DropPosition::Head(1000), Some(item(1)));
        assert_eq!(tags.finish(0), 1000.0);
        tags.on_dropped(0, DropPosition::Tail(2), Some(item(1)));
        assert_eq!(tags.finish(0), 500.0);
        assert_eq!(tags.on_sent(0, 1000, None), (0.0, 500.0), "as if it had come first");
        tags.reset();
        assert_eq!(tags.finish(0), 0.0, "a new busy period");
    }
}
