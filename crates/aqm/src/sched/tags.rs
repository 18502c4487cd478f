//! What the schedulers by virtual time share: every packet gets a start tag when it joins, and the
//! head with the least tag is sent.

use super::fair::End;
use super::tree::{OUT, Tree, key};
use alloc::collections::VecDeque;
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

/// The tags of all that waits, in bytes of service for a weight of one.
pub struct Tags {
    least: Least,
    weights: Vec<f64>,
    /// Start tags of the packets of each queue.
    starts: Vec<VecDeque<f64>>,
    /// The finish tag of the last packet of each queue, and the busy time it belongs to.
    finish: Vec<(f64, u32)>,
    busy: u32,
    heads: Tree,
}

impl Tags {
    pub fn new(weights: &[f64], least: Least) -> Tags {
        Tags {
            least,
            weights: weights.to_vec(),
            starts: vec![VecDeque::new(); weights.len()],
            finish: vec![(0.0, 0); weights.len()],
            busy: 0,
            heads: Tree::new(weights.len()),
        }
    }

    /// The finish tag of the last packet of queue `i` in this busy time.
    pub fn finish(&self, i: u32) -> f64 {
        let (tag, busy) = self.finish[i as usize];
        if busy == self.busy { tag } else { 0.0 }
    }

    /// A packet joins queue `i` at virtual time `v`; its finish tag.
    pub fn join(&mut self, v: f64, i: u32, len: u32, first: bool) -> f64 {
        let start = v.max(self.finish(i));
        let finish = start + f64::from(len) / self.weights[i as usize];
        self.finish[i as usize] = (finish, self.busy);
        self.starts[i as usize].push_back(start);
        if first {
            self.head(i, Some(len));
        }
        finish
    }

    /// Brings the key of queue `i` up to its head, of `len` bytes.
    fn head(&mut self, i: u32, len: Option<u32>) {
        let tags = self.starts[i as usize].front().zip(len).map(|(start, len)| match self.least {
            Least::Start => *start,
            Least::Finish => start + f64::from(len) / self.weights[i as usize],
        });
        self.heads.set(i, tags.map_or(OUT, key));
    }

    /// The queue whose head has the least tag.
    pub fn first(&self) -> Option<u32> {
        self.heads.first().map(|(i, _)| i)
    }

    /// The head of queue `i`, of `len` bytes, is sent: its start and finish tags.
    pub fn sent(&mut self, i: u32, len: u32, next: Option<u32>) -> (f64, f64) {
        let start = self.starts[i as usize].pop_front().unwrap_or_default();
        self.head(i, next);
        (start, start + f64::from(len) / self.weights[i as usize])
    }

    /// Packets were lost. Those at the tail leave no trace; those at the head have used up their
    /// tags.
    pub fn lost(&mut self, i: u32, end: End, packets: u32, next: Option<u32>) {
        let starts = &mut self.starts[i as usize];
        for _ in 0..packets {
            match end {
                End::Head => drop(starts.pop_front()),
                End::Tail => {
                    let start = starts.pop_back().unwrap_or_default();
                    self.finish[i as usize].0 = start;
                }
            }
        }
        self.head(i, next);
    }

    /// A busy time ends: all tags are forgotten.
    pub fn reset(&mut self) {
        self.busy = self.busy.wrapping_add(1);
    }

    pub fn state(&self) -> usize {
        let queue = size_of::<f64>() + size_of::<VecDeque<f64>>() + size_of::<(f64, u32)>();
        self.weights.len() * queue + self.heads.state()
    }
}
