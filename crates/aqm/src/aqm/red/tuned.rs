//! RED with an algorithm that adapts its parameters.

use super::{Red, RedParams};
use crate::aqm::{Aqm, SingleParams, Verdict};
use crate::build::{Builder, Env};
use crate::context::Context;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::{Checked, Combined, Params};
use crate::snapshot::Snapshot;
use crate::units::Time;

/// An algorithm that adapts the parameters of a [`Red`], with one hook for each point in time at
/// which it may.
pub trait Tune: Clone + Send + Snapshot + 'static {
    /// Parameters of the algorithm, and RED's parameters that can be set.
    type Params: Params;

    /// Builds RED and the algorithm, see [`Aqm::new`].
    ///
    /// # Errors
    /// Parameters that contradict each other or the link; the path names the parameter.
    fn tuned(params: Checked<'_, Self::Params>, env: &Env) -> Result<Tuned<Self>>;

    /// See [`Aqm::on_first_packet`].
    fn on_first_packet(&mut self, _now: Time) {}

    /// See [`Aqm::on_update`].
    fn on_update(&mut self, _now: Time, _line: &QueueView<'_>, _red: &mut Red) {}

    /// Called when the average was updated, before the decision.
    fn on_average(&mut self, _now: Time, _red: &mut Red) {}

    /// See [`Aqm::inspect`]. The variables follow RED's.
    fn inspect(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
}

/// RED whose parameters are adapted by `T`.
#[derive(Clone, Debug, Snapshot)]
pub struct Tuned<T> {
    pub(in crate::aqm) red: Red,
    pub(in crate::aqm) tuner: T,
}

impl<Q, T> Builder<Q, Combined<SingleParams, Combined<T, RedParams>>> {
    /// Changes the parameters of the algorithm that adapts RED.
    #[must_use]
    pub fn tuner(self, change: impl FnOnce(T) -> T) -> Self {
        self.aqm(|Combined { outer, inner }| Combined { outer: change(outer), inner })
    }

    /// Changes the parameters of RED.
    #[must_use]
    pub fn red(self, change: impl FnOnce(RedParams) -> RedParams) -> Self {
        self.aqm(|Combined { outer, inner }| Combined { outer, inner: change(inner) })
    }
}

impl<T: Tune> Aqm for Tuned<T> {
    type Params = T::Params;

    fn new(params: Checked<'_, T::Params>, env: &Env) -> Result<Self> {
        T::tuned(params, env)
    }

    fn on_first_packet(&mut self, now: Time) {
        self.tuner.on_first_packet(now);
    }

    fn on_update(&mut self, now: Time, queue: &QueueView<'_>) {
        self.tuner.on_update(now, queue, &mut self.red);
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        self.red.average(context.now, queue);
        self.tuner.on_average(context.now, &mut self.red);
        self.red.decide(context, packet)
    }

    fn on_overflow(&mut self, now: Time) {
        self.red.on_overflow(now);
    }

    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        self.red.on_dequeue(context, queue, ecn)
    }

    fn on_idle(&mut self, now: Time) {
        self.red.on_idle(now);
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + self.red.beyond()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.red.inspect(visit);
        self.tuner.inspect(visit);
    }
}
