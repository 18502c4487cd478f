//! PIE as in Linux (`sch_pie`, Linux 5.6 and later): the same controller in whole numbers, with
//! Linux's bounds.
//!
//! Times are in units of 64 ns, probabilities in units of 2^-56. All sums wrap, as they do there.

use super::{Latency, PieParams, Verdict};
use crate::cast;
use crate::context::Context;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};

/// Probability 1.
const MAX_PROB: u64 = u64::MAX >> 8;
/// Nanoseconds per unit of time, as a power of two.
const SHIFT: u32 = 6;
/// Units of time per second.
const PER_SECOND: u64 = 1_000_000_000 >> SHIFT;
/// Delay above which the probability grows by 2 % per update in addition: 250 ms.
const LONG_DELAY: u64 = 250_000_000 >> SHIFT;
/// Bytes over which the departure rate is measured.
const QUEUE_THRESHOLD: u64 = 16_384;
/// Binary digits after the point of the departure rate, bytes per unit of time.
const RATE_SHIFT: u32 = 8;

/// Controller of one queue.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct LinuxPie {
    /// Drop probability.
    prob: u64,
    /// Sum of the drop probabilities since the last drop.
    accu_prob: u64,
    /// Rest of the burst allowance.
    burst_time: u64,
    /// Queueing delay: of the last departure, or at the last update.
    qdelay: u64,
    /// Queueing delay at the last update.
    qdelay_old: u64,
    /// Time of the last departure, or of the start of a measurement of the rate.
    dq_tstamp: Option<u64>,
    /// Bytes that departed in a measurement of the rate.
    dq_count: Option<u64>,
    /// Departure rate; 0 before the first measurement.
    avg_dq_rate: u32,
    target: u64,
    max_burst: u64,
    /// Gains in sixteenths, as tc takes them.
    gains: (u64, u64),
    mtu: u64,
    estimates_rate: bool,
    byte_mode: bool,
    ecn: bool,
    /// Largest probability at which packets are marked.
    ecn_most: u64,
}

fn units(span: Span) -> u64 {
    span.0 >> SHIFT
}

impl LinuxPie {
    pub(super) fn new(params: &PieParams, ecn: bool) -> LinuxPie {
        let sixteenths = |gain: f64| cast::trunc(gain * 16.0 + 0.5);
        LinuxPie {
            prob: 0,
            accu_prob: 0,
            burst_time: units(params.max_burst),
            qdelay: 0,
            qdelay_old: 0,
            dq_tstamp: None,
            dq_count: None,
            avg_dq_rate: 0,
            target: units(Span(params.target.0 / 1000 * 1000)),
            max_burst: units(params.max_burst),
            gains: (sixteenths(params.alpha), sixteenths(params.beta)),
            mtu: params.mtu.0,
            estimates_rate: params.latency == Latency::Rate,
            byte_mode: params.byte_mode,
            ecn,
            ecn_most: MAX_PROB / 100 * cast::trunc(params.mark_ecnth * 100.0 + 0.5),
        }
    }

    /// Probability of a drop.
    pub(super) fn p(&self) -> f64 {
        self.prob as f64 / MAX_PROB as f64
    }

    /// Queueing delay at the last update.
    pub(super) fn qdelay_old(&self) -> Span {
        Span(self.qdelay_old << SHIFT)
    }

    /// Rest of the burst allowance.
    pub(super) fn burst(&self) -> Span {
        Span(self.burst_time << SHIFT)
    }

    /// Sum of the drop probabilities since the last drop.
    pub(super) fn accu(&self) -> f64 {
        self.accu_prob as f64 / MAX_PROB as f64
    }

    /// Departure rate, bytes per second.
    pub(super) fn dq_rate(&self) -> f64 {
        f64::from(self.avg_dq_rate) * PER_SECOND as f64 / f64::from(1u32 << RATE_SHIFT)
    }

    /// Handles a drop of an arrival.
    pub(super) fn on_drop(&mut self) {
        self.accu_prob = 0;
    }

    /// Makes `n` updates without an arrival or departure between them.
    pub(super) fn update_often(&mut self, mut n: u64, backlog: u64) {
        let backlog = cast::low32(backlog);
        while n > 0 {
            let state =
                |p: &LinuxPie| (p.prob, p.qdelay, p.qdelay_old, p.burst_time, p.avg_dq_rate);
            let before = state(self);
            self.update(backlog);
            n -= 1;
            // Bounded: equal steps are made at once, and the decay ends within 3,000 updates.
            if state(self) == before {
                break;
            }
            let decays = self.qdelay == 0 && backlog == 0;
            if self.qdelay == self.qdelay_old && !decays {
                n -= self.leap(n);
            }
        }
    }

    /// Makes as many of `n` updates as have equal steps, at a constant delay; returns their number.
    fn leap(&mut self, n: u64) -> u64 {
        let delta = self.delta(self.qdelay, self.qdelay);
        let step = delta.unsigned_abs();
        let bounds = (1..=6).rev().map(|digits| MAX_PROB / 10u64.pow(digits));
        if delta > 0 {
            // A sum that overflows is set to 1, over and over again.
            let period = (u64::MAX - MAX_PROB) / step + 1;
            if self.prob == MAX_PROB && n >= period {
                return n - n % period;
            }
            let last = bounds.clone().find(|end| *end > self.prob).map_or(u64::MAX, |end| end - 1);
            let k = n.min((last - self.prob) / step);
            self.prob += k * step;
            return k;
        }
        let first = bounds.rev().find(|start| *start <= self.prob).unwrap_or(0);
        let k = (self.prob - first).checked_div(step).unwrap_or(n).min(n);
        self.prob -= k * step;
        k
    }

    /// Updates the probability.
    fn update(&mut self, backlog: u32) {
        let (qdelay, qdelay_old) = if self.estimates_rate {
            self.qdelay_old = self.qdelay;
            let delay = (backlog << RATE_SHIFT).checked_div(self.avg_dq_rate);
            (u64::from(delay.unwrap_or(0)), self.qdelay_old)
        } else {
            (self.qdelay, self.qdelay_old)
        };
        let mut decays = !(qdelay == 0 && backlog != 0);
        let delta = self.delta(qdelay, qdelay_old);
        let before = self.prob;
        self.prob = before.wrapping_add_signed(delta);
        if delta > 0 && self.prob < before {
            (self.prob, decays) = (MAX_PROB, false);
        } else if delta <= 0 && self.prob > before {
            self.prob = 0;
        }
        if qdelay == 0 && qdelay_old == 0 && decays {
            self.prob -= self.prob / 64;
        }
        self.qdelay = qdelay;
        let short = |delay: u64| delay < self.target / 2;
        let measured = !self.estimates_rate || self.avg_dq_rate > 0;
        if short(self.qdelay) && short(self.qdelay_old) && self.prob == 0 && measured {
            (self.burst_time, self.dq_tstamp, self.dq_count) = (self.max_burst, None, None);
            (self.accu_prob, self.avg_dq_rate) = (0, 0);
        }
        if !self.estimates_rate {
            self.qdelay_old = qdelay;
        }
    }

    /// Returns the change of the probability.
    fn delta(&self, qdelay: u64, qdelay_old: u64) -> i64 {
        let (alpha, beta) = self.scaled_gains();
        let error = alpha.wrapping_mul(qdelay.wrapping_sub(self.target));
        let change = beta.wrapping_mul(qdelay.wrapping_sub(qdelay_old));
        let mut delta = error.wrapping_add(change).cast_signed();
        if delta > (MAX_PROB / 50).cast_signed() && self.prob >= MAX_PROB / 10 {
            delta = (MAX_PROB / 100 * 2).cast_signed();
        }
        if qdelay > LONG_DELAY {
            delta = delta.wrapping_add((MAX_PROB / 50).cast_signed());
        }
        delta
    }

    /// Gains of delay and change of delay, per unit of time, scaled down if the probability is low.
    fn scaled_gains(&self) -> (u64, u64) {
        let gain = |sixteenths: u64| (sixteenths * (MAX_PROB / PER_SECOND)) >> 4;
        let (mut alpha, mut beta) = (gain(self.gains.0), gain(self.gains.1));
        if self.prob < MAX_PROB / 10 {
            (alpha, beta) = (alpha >> 1, beta >> 1);
            let mut power = 100;
            while power <= 1_000_000 && self.prob < MAX_PROB / power {
                (alpha, beta, power) = (alpha >> 2, beta >> 2, power * 10);
            }
        }
        (alpha, beta)
    }

    /// Returns the verdict on an arrival.
    pub(super) fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        if !self.hits(context, queue, packet.len) {
            return Verdict::Pass;
        }
        if self.ecn && packet.ecn.capable() && self.prob <= self.ecn_most {
            return Verdict::Mark;
        }
        self.accu_prob = 0;
        Verdict::Drop
    }

    /// True if an arrival of `len` bytes is to be dropped or marked.
    fn hits(&mut self, context: &mut Context<'_>, queue: &QueueView<'_>, len: u32) -> bool {
        let quiet = self.qdelay < self.target / 2 && self.prob < MAX_PROB / 5;
        if self.burst_time > 0 || quiet || queue.bytes() < 2 * self.mtu {
            return false;
        }
        let len = u64::from(len);
        let scaled = self.byte_mode && len <= self.mtu;
        let p = if scaled { len * (self.prob / self.mtu) } else { self.prob };
        self.accu_prob = if p == 0 { 0 } else { self.accu_prob.wrapping_add(p) };
        if self.accu_prob < MAX_PROB / 100 * 85 {
            return false;
        }
        if self.accu_prob >= MAX_PROB / 2 * 17 {
            return true;
        }
        let hit = context.rng.bernoulli(p as f64 / MAX_PROB as f64);
        if hit {
            self.accu_prob = 0;
        }
        hit
    }

    /// Handles the departure of a packet that arrived at `arrived`, has `len` bytes and leaves
    /// `backlog` bytes behind.
    pub(super) fn on_dequeue(&mut self, now: Time, arrived: Time, len: u32, backlog: u64) {
        let now = now.0 >> SHIFT;
        if !self.estimates_rate {
            self.qdelay = if backlog == 0 { 0 } else { now - (arrived.0 >> SHIFT) };
            let since = self.dq_tstamp.replace(now).map_or(0, |last| now - last);
            self.burst_time = self.burst_time.saturating_sub(since);
            return;
        }
        if backlog >= QUEUE_THRESHOLD && self.dq_count.is_none() {
            (self.dq_tstamp, self.dq_count) = (Some(now), Some(0));
        }
        let Some(count) = &mut self.dq_count else { return };
        *count += u64::from(len);
        let took = now - self.dq_tstamp.unwrap_or(now);
        if *count < QUEUE_THRESHOLD || took == 0 {
            return;
        }
        let rate = cast::low32(((*count << RATE_SHIFT) & u64::from(u32::MAX)) / took);
        let old = self.avg_dq_rate;
        self.avg_dq_rate = if old == 0 { rate } else { old - (old >> 3) + (rate >> 3) };
        if backlog < QUEUE_THRESHOLD {
            self.dq_count = None;
        } else {
            (self.dq_count, self.dq_tstamp) = (Some(0), Some(now));
        }
        self.burst_time = self.burst_time.saturating_sub(took);
    }
}

#[cfg(test)]
mod tests;
