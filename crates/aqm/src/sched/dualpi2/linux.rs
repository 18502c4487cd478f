//! DualPI2 as Linux's sch_dualpi2 computes it, in integers.

use super::{Controller, DualPi2Params, Gains, Updates};
use crate::aqm::fits;
use crate::build::Env;
use crate::cast;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::packet::Packet;
use crate::params::Checked;
use crate::qdisc::Backlog;
use crate::sched::dual::{DualParams, Lane, Queues};
use crate::snapshot::Snapshot;
use crate::units::{Span, Threshold};
use alloc::collections::VecDeque;

/// Probability 1.
const FULL: u64 = u32::MAX as u64;

/// PI controller in fixed point.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct FixedPi {
    target: i128,
    /// Change of p per 64 ns.
    alpha: i128,
    beta: i128,
    p: u64,
    p_max: u64,
    pub(super) q_prev: Span,
}

impl FixedPi {
    /// p' as a number from 0 to 1.
    pub(super) fn share(&self) -> f64 {
        self.p as f64 / FULL as f64
    }

    /// Sets p' to at least `p`.
    #[cfg(test)]
    pub(super) fn raise(&mut self, p: f64) {
        self.p = self.p.max(cast::trunc(p * FULL as f64));
    }

    /// Changes p by `change / 64`, within its limits. The kernel keeps the lower 32 bits of the
    /// size of a change: p may stay high when a delay of seconds ends.
    fn add(&mut self, change: i128) {
        let size = cast::saturate((change.unsigned_abs() / 64) & u128::from(FULL));
        self.p = if change > 0 {
            self.p.saturating_add(size).min(self.p_max)
        } else {
            self.p.saturating_sub(size).min(self.p_max)
        };
    }
}

impl Controller for FixedPi {
    fn update(&mut self, delay: Span) -> bool {
        let (now, old) = (i128::from(delay.0), i128::from(self.q_prev.0));
        let change = (now - self.target) * self.alpha + (now - old) * self.beta;
        self.add(change);
        self.q_prev = delay;
        self.p == self.p_max && change >= 0
    }

    fn update_idle(&mut self, n: u64) {
        let fall = cast::saturate((self.target * self.alpha / 64).unsigned_abs()) & FULL;
        self.p = self.p.saturating_sub(n.saturating_mul(fall));
    }
}

/// State of DualPI2 as on Linux.
#[derive(Clone, Debug, Snapshot)]
pub struct LinuxPi2 {
    pub(super) updates: Updates,
    pub(super) pi: FixedPi,
    pub(super) k: u64,
    step: Threshold,
    min_qlen_step: u32,
    drop_on_overload: bool,
    drop_enqueue: bool,
    may_mark: bool,
    /// Backlog in bytes below which nothing is signalled by k p' and p'^2.
    quiet: u64,
    /// Memory of the queued packets, and its limit.
    memory: u64,
    memory_limit: u64,
    /// For each packet in L, true if the step applies to it. Empty if it applies to all.
    stepped: VecDeque<bool>,
}

/// Scales a gain per second to a change of p per 64 ns. tc sends it in units of 1/256.
fn scaled(units: u64) -> i128 {
    i128::from(units) * i128::from(FULL) / 4_000_000_000
}

/// Memory that the kernel counts for a forwarded packet of `len` bytes: a buffer with 384 bytes in
/// addition to the packet, whose size is a power of two, and 256 bytes for its descriptor.
fn memory_of(len: u32) -> u64 {
    (u64::from(len) + 384).next_power_of_two() + 256
}

impl LinuxPi2 {
    pub(super) fn new(
        params: &Checked<'_, DualPi2Params>,
        dual: &DualParams,
        env: &Env,
    ) -> Result<LinuxPi2> {
        for (name, value) in [("min_th", params.min_th), ("range", params.range)] {
            if value.is_some() {
                let text = "is not a parameter of the variant linux, which has step_thresh";
                return Err(Error::new(text).at(name));
            }
        }
        let k = params.coupling_factor;
        if k % 1.0 != 0.0 || k < 1.0 {
            let text = alloc::format!("{k} is not a whole number from 1 to 255 (variant linux)");
            return Err(Error::new(text).at("coupling_factor"));
        }
        if dual.classic_protection.is_some_and(|percent| percent % 1.0 != 0.0) {
            let text = "is not a whole percentage (variant linux)";
            return Err(Error::new(text).at("classic_protection"));
        }
        let k = cast::trunc(k);
        let (gains, derived) = Gains::of(params)?;
        // tc cuts gains off to 1/256; the defaults of the kernel are its own.
        let units = |set: Option<f64>, gain: f64, default: u64| {
            let own = set.is_none() && !derived;
            scaled(if own { default } else { cast::trunc(gain * 256.0) })
        };
        let alpha = units(params.alpha, gains.alpha, 41);
        let beta = units(params.beta, gains.beta, 819);
        let own_period = params.tupdate.is_none() && !derived;
        let period = if own_period { Span::ms(16) } else { gains.period };
        let p_max = if params.drop_on_overload { FULL } else { FULL / k };
        let target = i128::from(gains.target.0);
        let memory_limit =
            params.memlimit.map_or(dual.limit.number() * 2 * dual.link_mtu.0, |b| b.0);
        Ok(LinuxPi2 {
            updates: Updates::new(env, period),
            pi: FixedPi { target, alpha, beta, p: 0, p_max, q_prev: Span::ZERO },
            k,
            step: params.step_thresh.unwrap_or(Threshold::Time(Span::ms(1))),
            min_qlen_step: cast::saturate32(params.min_qlen_step.unwrap_or(0)),
            drop_on_overload: params.drop_on_overload,
            drop_enqueue: params.drop_enqueue,
            may_mark: dual.ecn,
            quiet: 2 * dual.link_mtu.0,
            memory: 0,
            memory_limit,
            stepped: VecDeque::new(),
        })
    }

    pub(super) fn fits(&self, dual: &DualParams, queued: Backlog, packet: &Packet) -> bool {
        fits(dual.limit, queued.packets, queued.bytes, packet)
            && self.memory + memory_of(packet.len) <= self.memory_limit
    }

    fn mark(&self, context: &mut Context<'_>, packet: &mut Packet) -> bool {
        self.may_mark && context.mark(packet)
    }

    /// Applies the controller's probabilities; returns false if the packet is to be dropped.
    fn passes(
        &self,
        context: &mut Context<'_>,
        queues: &Queues,
        lane: Lane,
        packet: &mut Packet,
    ) -> bool {
        if queues.bytes() < self.quiet {
            return true;
        }
        let (p, coupled) = (self.pi.p, self.pi.p * self.k);
        let overload = coupled > FULL;
        let rng = &mut *context.rng;
        if lane == Lane::C {
            let signal = rng.at_most(p) && rng.at_most(p);
            return !signal || (!overload && self.mark(context, packet));
        }
        if overload {
            // Every packet that is not dropped is marked.
            if self.drop_on_overload && rng.at_most(p) && rng.at_most(p) {
                return false;
            }
        } else if !rng.at_most(coupled) {
            return true;
        }
        self.mark(context, packet)
    }

    pub(super) fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queues: &Queues,
        lane: Lane,
        packet: &mut Packet,
    ) -> bool {
        if self.drop_enqueue && !self.passes(context, queues, lane, packet) {
            return false;
        }
        self.memory += memory_of(packet.len);
        if lane == Lane::L && self.min_qlen_step > 0 {
            self.stepped.push_back(queues.packets(Lane::L) >= self.min_qlen_step);
        }
        true
    }

    pub(super) fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queues: &Queues,
        lane: Lane,
        packet: &mut Packet,
    ) -> bool {
        self.memory -= memory_of(packet.len);
        let stepped = lane == Lane::L && self.stepped.pop_front().unwrap_or(true);
        if !self.drop_enqueue && !self.passes(context, queues, lane, packet) {
            return false;
        }
        let above = stepped
            && match self.step {
                Threshold::Time(time) => context.now.since(packet.arrived) > time,
                Threshold::Packets(n) => u64::from(queues.packets(Lane::L)) > n,
            };
        !above || self.mark(context, packet)
    }

    pub(super) fn heap(&self) -> usize {
        self.stepped.capacity() * size_of::<bool>()
    }
}
