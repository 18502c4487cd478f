//! Orders whose clock is the packet being sent: virtual time is the tag by which it was chosen.

use crate::error::Result;
use crate::order::{Heads, Item, Loss, Order};
use crate::params::Nothing;
use crate::sched::Env;
use crate::tags::{Least, Tags};
use crate::units::Time;
use core::marker::PhantomData;

/// The tag that is the clock.
pub trait Clock {
    /// Which it is; heads are sent by it too.
    const TAG: Least;

    /// Shows `v`.
    fn gauges(v: f64, see: &mut dyn FnMut(&'static str, f64));
}

/// The order.
pub struct Clocked<C> {
    tags: Tags,
    /// The tag of the packet being sent.
    v: f64,
    clock: PhantomData<C>,
}

impl<C: Clock> Order for Clocked<C> {
    type Params = Nothing;

    fn new(_: &Nothing, _env: &Env, weights: &[f64]) -> Result<Self> {
        Ok(Clocked { tags: Tags::new(weights, C::TAG), v: 0.0, clock: PhantomData })
    }

    fn join(&mut self, _now: Time, i: u32, packet: Item, first: bool) {
        self.tags.join(self.v, i, packet, first);
    }

    fn turn(&mut self, _now: Time, _heads: &Heads<'_>) -> Option<u32> {
        self.tags.first()
    }

    fn sent(&mut self, _now: Time, i: u32, len: u32, next: Option<Item>) {
        let (start, finish) = self.tags.sent(i, len, next);
        self.v = match C::TAG {
            Least::Start => start,
            Least::Finish => finish,
        };
    }

    fn lost(&mut self, i: u32, loss: Loss, next: Option<Item>) {
        self.tags.lost(i, loss, next);
    }

    fn idle(&mut self) {
        self.v = 0.0;
        self.tags.reset();
    }

    fn state(&self) -> usize {
        self.tags.state()
    }

    fn gauges(&self, see: &mut dyn FnMut(&'static str, f64)) {
        C::gauges(self.v, see);
    }
}
