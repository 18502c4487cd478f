//! Interface of a scheduler: selects the next queue.

use crate::build::Env;
use crate::error::Result;
use crate::params::{Checked, Params};
use crate::snapshot::Snapshot;
use crate::units::Time;

/// A packet as a scheduler sees it.
#[derive(Clone, Copy, Debug, Snapshot)]
pub struct Item {
    /// Index of the packet in the pool; constant while it is queued.
    pub place: u32,
    /// Length in bytes.
    pub len: u32,
}

/// Packets dropped from a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub enum DropPosition {
    /// That many bytes at its head.
    Head(u64),
    /// The packet at its tail, with that index in the pool.
    Tail(u32),
}

/// Order in which queues are served. It is notified of all packets that join or leave. It returns a
/// queue that is not empty, or `None` if all are empty.
pub trait Scheduler: Clone + Send + Snapshot + 'static {
    /// Parameters of the scheduler.
    type Params: Params + Default;

    /// True if packets that no filter matches have a class nevertheless.
    const HAS_DEFAULT: bool = true;

    /// True if [`Scheduler::select`] does not change the state and does not call `head`, so that
    /// the next packet can be shown before it is sent.
    const PEEKS: bool = false;

    /// True if the scheduler needs the length of the next packet of a queue when its head has
    /// changed: also of queues that are disciplines, whose next packet may be decided later.
    const READS_NEXT: bool = false;

    /// Parameters that [`Scheduler::change`] can change while queues have packets.
    const CHANGES: &[&str] = &[];

    /// Creates a scheduler for queues of these weights.
    ///
    /// # Errors
    /// Parameters that contradict each other or the link.
    fn new(params: Checked<'_, Self::Params>, env: &Env, weights: &[f64]) -> Result<Self>;

    /// Returns the queue of packets of a traffic class; None if the class is the number of the
    /// queue.
    #[inline]
    fn queue_of(&self, _class: u16) -> Option<u32> {
        None
    }

    /// Called before a packet of `len` bytes joins queue `i`, which may still drop it.
    #[inline]
    fn on_arrival(&mut self, _i: u32, _len: u32) {}

    /// Called when a packet was appended to queue `i`, which was empty if `first`.
    fn on_enqueued(&mut self, now: Time, i: u32, packet: Item, first: bool);

    /// Called if [`Scheduler::READS_NEXT`] when a packet has joined queue `i`, which is a
    /// discipline that was not empty. `len` is the length of its next packet, maybe the new one.
    #[inline]
    fn on_next(&mut self, _i: u32, _len: u32) {}

    /// Returns the queue to serve at `now`. `head` returns the length in bytes of the packet at the
    /// head of a queue; `None` if the queue is empty.
    fn select(&mut self, now: Time, head: impl Fn(u32) -> Option<u32>) -> Option<u32>;

    /// Called when queue `i`, the one returned by `select`, sends `len` bytes from `now` on; `next`
    /// is its new head.
    fn on_sent(&mut self, now: Time, i: u32, len: u32, next: Option<Item>);

    /// Called when packets of queue `i` were dropped; `next` is its new head. Drops at the head
    /// before a packet that is sent are reported after [`Scheduler::on_sent`], also if the queue is
    /// empty by then.
    fn on_dropped(&mut self, i: u32, loss: DropPosition, next: Option<Item>);

    /// Returns the queue of `tied` that is served next, for schedulers with a round.
    fn nearest(&self, _tied: &dyn Fn(u32) -> bool) -> Option<u32> {
        None
    }

    /// Called when all queues are empty and no packet is in transmission.
    fn on_idle(&mut self) {}

    /// Takes the parameters [`Scheduler::CHANGES`] of `fresh`, which has as many queues.
    fn change(&mut self, _fresh: &Self) {}

    /// Size of the state in bytes.
    fn state_bytes(&self) -> usize;

    /// Calls `visit` with the name and value of each internal variable.
    fn inspect(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
}
