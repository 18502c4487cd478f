//! Schedulers whose virtual time is the tag of the packet in transmission.

use crate::build::Env;
use crate::error::Result;
use crate::params::{Checked, Nothing};
use crate::sched::scheduler::{DropPosition, Item, Scheduler};
use crate::sched::tags::{Least, Tags};
use crate::snapshot::Snapshot;
use crate::units::Time;
use core::marker::PhantomData;

/// Virtual clock: selects the tag that is the virtual time.
pub trait Clock: Clone + Send + Snapshot + 'static {
    /// Tag that is the virtual time; packets are sent in its order.
    const TAG: Least;

    /// Calls `visit` with the name and value of the virtual time `v`.
    fn gauges(v: f64, visit: &mut dyn FnMut(&'static str, f64));
}

/// Self-clocked scheduler with the clock `C`.
#[derive(Clone, Debug, Snapshot)]
pub struct Clocked<C> {
    tags: Tags,
    /// Virtual time: the tag of the packet in transmission.
    v: f64,
    clock: PhantomData<C>,
}

impl<C: Clock> Scheduler for Clocked<C> {
    type Params = Nothing;

    fn new(_: Checked<'_, Nothing>, _env: &Env, weights: &[f64]) -> Result<Self> {
        Ok(Clocked { tags: Tags::new(weights, C::TAG), v: 0.0, clock: PhantomData })
    }

    fn on_enqueued(&mut self, _now: Time, i: u32, packet: Item, first: bool) {
        self.tags.on_enqueued(self.v, i, packet, first);
    }

    fn select(&mut self, _now: Time, _head: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        self.tags.first()
    }

    fn on_sent(&mut self, _now: Time, i: u32, len: u32, next: Option<Item>) {
        let (start, finish) = self.tags.on_sent(i, len, next);
        self.v = match C::TAG {
            Least::Start => start,
            Least::Finish => finish,
        };
    }

    fn on_dropped(&mut self, i: u32, loss: DropPosition, next: Option<Item>) {
        self.tags.on_dropped(i, loss, next);
    }

    fn on_idle(&mut self) {
        self.v = 0.0;
        self.tags.reset();
    }

    fn state_bytes(&self) -> usize {
        self.tags.state_bytes()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        C::gauges(self.v, visit);
    }
}
