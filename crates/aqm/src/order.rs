//! What a fair scheduler's order is: it says whose turn it is among many queues.

use crate::error::Result;
use crate::params::Params;
use crate::sched::Env;
use crate::units::Time;

/// A packet as an order sees it.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Its place in the pool, its own as long as it waits.
    pub place: u32,
    /// Its bytes.
    pub len: u32,
}

/// What a queue lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// That many bytes at its head.
    Head(u64),
    /// The packet at its tail, which had that place.
    Tail(u32),
}

/// Bytes of the packet at the head of a queue; none if it is empty.
pub type Heads<'a> = dyn Fn(u32) -> Option<u32> + 'a;

/// Whose turn it is. Told of all that joins and leaves; asked for the next queue, it names one that
/// is not empty, and `None` only when all are.
pub trait Order: Sized {
    /// Its parameters.
    type Params: Params;

    /// For queues of these weights.
    ///
    /// # Errors
    /// Parameters that contradict each other or the link.
    fn new(params: &Self::Params, env: &Env, weights: &[f64]) -> Result<Self>;

    /// A packet joined queue `i`, which was empty if `first`.
    fn join(&mut self, now: Time, i: u32, packet: Item, first: bool);

    /// The queue whose turn it is at `now`.
    fn turn(&mut self, now: Time, heads: &Heads<'_>) -> Option<u32>;

    /// Queue `i`, whose turn it was, sends `len` bytes from `now` on; `next` is at its head then.
    fn sent(&mut self, now: Time, i: u32, len: u32, next: Option<Item>);

    /// Queue `i` lost packets; `next` is at its head then.
    fn lost(&mut self, i: u32, loss: Loss, next: Option<Item>);

    /// The first one by turns of those that are `tied`, if it keeps turns.
    fn nearest(&self, _tied: &dyn Fn(u32) -> bool) -> Option<u32> {
        None
    }

    /// Nothing waits any more, and nothing is being sent.
    fn idle(&mut self) {}

    /// Bytes of memory.
    fn state(&self) -> usize;

    /// Shows its internal variables.
    fn gauges(&self, _see: &mut dyn FnMut(&'static str, f64)) {}
}
