//! RED with an algorithm that adapts its parameters.

use super::{Red, RedParams};
use crate::aqm::{Aqm, SingleParams, Verdict};
use crate::build::Builder;
use crate::context::Context;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Combined;
use crate::units::Time;

/// An algorithm that adapts the parameters of a [`Red`], with one method for each point in time at
/// which it may.
pub trait Tune: Clone + Send + 'static {
    /// See [`Aqm::start`].
    fn start(&mut self, _now: Time) {}

    /// See [`Aqm::advance`].
    fn advance(&mut self, _now: Time, _line: &QueueView<'_>, _red: &mut Red) {}

    /// Called when the average was updated, before the decision.
    fn averaged(&mut self, _now: Time, _red: &mut Red) {}

    /// See [`Aqm::inspect`]; called after those of RED.
    fn gauges(&self, _see: &mut dyn FnMut(&'static str, f64)) {}
}

/// RED whose parameters are adapted by `T`.
#[derive(Clone, Debug)]
pub struct Tuned<T> {
    pub(in crate::aqm) red: Red,
    pub(in crate::aqm) tuner: T,
}

impl<Q, T> Builder<Q, Combined<SingleParams, Combined<T, RedParams>>> {
    /// Changes the parameters of the algorithm that adapts RED.
    #[must_use]
    pub fn tuner(self, change: impl FnOnce(T) -> T) -> Self {
        self.aqm(|Combined { frame, aqm }| Combined { frame: change(frame), aqm })
    }

    /// Changes the parameters of RED.
    #[must_use]
    pub fn red(self, change: impl FnOnce(RedParams) -> RedParams) -> Self {
        self.aqm(|Combined { frame, aqm }| Combined { frame, aqm: change(aqm) })
    }
}

impl<T: Tune> Aqm for Tuned<T> {
    fn start(&mut self, now: Time) {
        self.tuner.start(now);
    }

    fn advance(&mut self, now: Time, line: &QueueView<'_>) {
        self.tuner.advance(now, line, &mut self.red);
    }

    fn on_arrival(
        &mut self,
        context: &mut Context<'_>,
        line: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        self.red.average(context.now, line);
        self.tuner.averaged(context.now, &mut self.red);
        self.red.decide(context, packet)
    }

    fn on_overflow(&mut self, now: Time) {
        self.red.on_overflow(now);
    }

    fn dequeue(
        &mut self,
        context: &mut Context<'_>,
        line: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        self.red.dequeue(context, line, ecn)
    }

    fn on_idle(&mut self, now: Time) {
        self.red.on_idle(now);
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn state(&self) -> usize {
        size_of_val(self) + self.red.beyond()
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, f64)) {
        self.red.inspect(see);
        self.tuner.gauges(see);
    }
}
