//! What the schedulers by virtual time share: every packet gets a start tag when it joins, and the
//! head with the least tag is sent.

use crate::order::{Item, Loss};
use crate::tree::{OUT, Tree, key};
use alloc::vec;
use alloc::vec::Vec;

/// By which tag heads are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Least {
    /// The start tag.
    Start,
    /// The finish tag.
    Finish,
}

/// The tags of one queue.
#[derive(Clone, Copy, Default)]
struct Queue {
    weight: f64,
    /// The start tag of its head.
    head: f64,
    /// What is taken off the start tags of all that wait, for what was lost before them.
    shift: f64,
    /// The finish tag of its last packet, and the busy time that it belongs to.
    finish: f64,
    busy: u32,
}

/// The tags of all that waits, in bytes of service for a weight of one.
pub struct Tags {
    least: Least,
    queues: Vec<Queue>,
    /// Start tags by the places of the packets in the pool.
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

    /// The weight of queue `i`.
    pub fn weight(&self, i: u32) -> f64 {
        self.queues[i as usize].weight
    }

    /// The finish tag of the last packet of queue `i` in this busy time.
    pub fn finish(&self, i: u32) -> f64 {
        let queue = &self.queues[i as usize];
        if queue.busy == self.busy { queue.finish } else { 0.0 }
    }

    /// A packet joins queue `i` at virtual time `v`; its finish tag.
    pub fn join(&mut self, v: f64, i: u32, packet: Item, first: bool) -> f64 {
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

    /// Brings the key of queue `i` up to its head.
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

    /// The queue whose head has the least tag.
    pub fn first(&self) -> Option<u32> {
        self.heads.first().map(|(i, _)| i)
    }

    /// The head of queue `i`, of `len` bytes, is sent: its start and finish tags.
    pub fn sent(&mut self, i: u32, len: u32, next: Option<Item>) -> (f64, f64) {
        let Queue { head, weight, .. } = self.queues[i as usize];
        self.head(i, next);
        (head, head + f64::from(len) / weight)
    }

    /// Packets were lost. One at the tail takes its tag with it; those behind the head move up, as
    /// if what was lost had never come.
    pub fn lost(&mut self, i: u32, loss: Loss, next: Option<Item>) {
        let queue = &mut self.queues[i as usize];
        match loss {
            Loss::Tail(place) => queue.finish = self.starts[place as usize] - queue.shift,
            Loss::Head(bytes) => {
                let service = bytes as f64 / queue.weight;
                queue.shift += service;
                queue.finish = (queue.finish - service).max(0.0);
            }
        }
        self.head(i, next);
    }

    /// A busy time ends: all tags are forgotten.
    pub fn reset(&mut self) {
        self.busy = self.busy.wrapping_add(1);
    }

    /// Bytes of memory, but for what waits.
    pub fn state(&self) -> usize {
        size_of_val(&*self.queues) + self.heads.state()
    }
}
