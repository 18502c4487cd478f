//! PIE: proportional integral controller enhanced.
//!
//! **Source** R. Pan, P. Natarajan, F. Baker, G. White, RFC 8033, 2017 (sections 4 and 5).
//!
//! **Decides** on arrival.
//!
//! **Measures** the queueing delay: the sojourn time of the last packet dequeued, or the backlog
//! divided by an estimate of the departure rate.
//!
//! **Symbols** `alpha`, `beta`, `target` (QDELAY_REF), `t_update`, `max_burst`, `p` (drop_prob),
//! `qdelay_old`, `burst` (burst_allowance), `accu` (accu_prob) as in the RFC.
//!
//! **Algorithm** Every `t_update`, p changes by `alpha (qdelay - target) + beta (qdelay -
//! qdelay_old)`, scaled down if p is small. Arrivals are dropped with probability p, except during
//! a burst, while the queue is short, or while the delay was below half the target and p below 0.2.
//!
//! **Departures** (1) p also changes during a burst, as in the RFC; with `hold` it stays 0, as in
//! RFC 8034 and ns-3. (2) `accu` is reset by a mark as by a drop; otherwise marks alone would let
//! it grow without bound. (3) Several updates at the same delay are computed in one step, a product
//! instead of a sum. (4) The algorithm is always active; section 5.3 turns it off while the buffer
//! is less than a third full. (5) The random number is drawn even if the buffer turns out to be
//! full. (6) A measurement of the rate counts from the packet after the one at which it starts, and
//! its time is scaled to the threshold. (7) Updates count from the first arrival: the first one
//! comes `t_update` later.
//!
//! **Linux** With `variant = "linux"`, as `sch_pie`: (1) Times are counted in units of 64 ns,
//! probabilities in units of 2^-56. (2) Drops are always spaced out by `accu`, which a mark at its
//! upper bound does not reset. (3) p grows by 2 % more per update while the delay is above 250 ms,
//! and decays by 1/64 per update without delay. (4) The burst allowance falls by the time between
//! departures, not by `t_update`. (5) p applies to a queue of at least twice `mtu`. (6) With
//! `latency = "rate"` the measurement of the rate includes the packet at which it starts, the
//! average has weight 1/8, and its time is not scaled. (7) The timer runs every `t_update`, rounded
//! up to ticks of `1 / hz`, and one tick more: 20 ms by default. (8) In FQ-PIE, a full buffer drops
//! the arriving packet. `mark_ecnth` is in whole percent. `hold`, `dq_threshold`, `dq_weight`,
//! `derandomise` and `packet` have no effect.
//!
//! **Cost** 280 bytes of state; a random number per arrival while p applies. After an idle time
//! O(1), or as long as p takes to decay.

mod linux;

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::timer::{Period, Timer};
use crate::units::{Bytes, Span, Time};
use alloc::boxed::Box;
use linux::LinuxPie;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Pie>>(
    "pie",
    "proportional integral controller of the queueing delay",
)
.decides("on arrival: a drop probability that integrates the deviation of the delay from target")
.source("RFC 8033");

crate::choice! {
    /// Source of the queueing delay.
    pub enum Latency {
        /// Sojourn time of the last packet dequeued; 0 if the queue is empty.
        Timestamp = "timestamp" | "timestamps" | "false" | "off" | "no",
        /// Backlog divided by the rate at which the last dq_threshold bytes departed.
        Rate = "rate" | "true" | "on" | "yes",
    }
}

crate::choice! {
    /// Variant of the algorithm.
    pub enum Variant {
        /// RFC 8033.
        Rfc = "rfc",
        /// Linux: whole numbers and other bounds.
        Linux = "linux",
    }
}

crate::params! {
    /// Parameters of [`Pie`].
    pub struct PieParams {
        /// Target queueing delay.
        target: Span = Span::ms(15), [Span::us(1) => Span::s(10)], "QDELAY_REF", ["qdelay_ref"];
        /// Time between updates of the drop probability.
        t_update: Span = Span::ms(15), [Span::us(1) => Span::s(10)], "T_UPDATE", ["tupdate"];
        /// Gain of the difference between delay and target, per second.
        alpha: f64 = 0.125, [0.0 => 1e6], "alpha", [];
        /// Gain of the change of the delay, per second.
        beta: f64 = 1.25, [0.0 => 1e6], "beta", [];
        /// Length of a burst that is not dropped.
        max_burst: Span = Span::ms(150), [Span::ZERO => Span::s(10)], "MAX_BURST", ["burst"];
        /// True if p stays 0 during a burst.
        hold: bool = false, [], "", [];
        /// Drop probability above which ECN-capable packets are dropped, too.
        mark_ecnth: f64 = 0.1, [0.0 => 1.0], "mark_ecnth", [];
        /// Source of the queueing delay: packet timestamps, or backlog over departure rate.
        latency: Latency = Latency::Timestamp, [], "", ["dq_rate_estimator"];
        /// For latency rate: number of bytes over which the rate is measured, and backlog that a
        /// measurement requires.
        dq_threshold: Bytes = Bytes(16_384),
            [Bytes(1) => Bytes(1_000_000_000)], "DQ_THRESHOLD", [];
        /// For latency rate: weight of a measurement in the average.
        dq_weight: f64 = 0.25, [0.001 => 1.0], "weight", [];
        /// True if drops are spaced out: none before the sum of p reaches 0.85, certain at 8.5.
        derandomise: bool = false, [], "", ["derandomize", "use_derandomization"];
        /// True if the drop probability is scaled by packet length / packet.
        byte_mode: bool = false, [], "", ["bytemode", "bytes"];
        /// Mean packet size: p applies only to a queue of more than two of these; also for
        /// byte_mode.
        packet: Bytes = Bytes(1500),
            [Bytes(1) => Bytes(1_000_000)], "MEAN_PKTSIZE", ["mean_packet", "mean_pktsize"];
        /// Variant of the algorithm.
        variant: Variant = Variant::Rfc, [], "", [];
        /// Linux: size of the largest frame.
        mtu: Bytes = Bytes(1514), [Bytes(1) => Bytes(1_000_000)], "", [];
        /// Linux: timer ticks per second (CONFIG_HZ).
        hz: u64 = 250, [1 => 10_000], "", [];
    }
}

/// Upper bounds of p and the divisor of a step up to there (section 4.2).
const SCALE: [(f64, f64); 7] = [
    (1e-6, 2048.0),
    (1e-5, 512.0),
    (1e-4, 128.0),
    (1e-3, 32.0),
    (1e-2, 8.0),
    (0.1, 2.0),
    (f64::INFINITY, 1.0),
];

/// Largest step up once p is 0.1 (section 5.5).
const LARGEST_STEP: f64 = 0.02;

/// Factor of p in an update without delay (section 4.2).
const DECAY: f64 = 0.98;

/// Measurement of the departure rate.
#[derive(Clone, Copy, Debug, Snapshot)]
struct Cycle {
    start: Time,
    bytes: u64,
}

/// State of PIE for one queue.
#[derive(Clone, Debug, Snapshot)]
pub struct Pie {
    params: PieParams,
    /// Drop probability.
    p: f64,
    /// Rest of the burst allowance.
    burst: Span,
    /// Queueing delay at the last update.
    qdelay_old: Span,
    /// Sum of the drop probabilities since the last drop or mark.
    accu: f64,
    updates: Timer,
    /// Sojourn time of the last packet dequeued.
    sojourn: Span,
    /// Measurement in progress.
    cycle: Option<Cycle>,
    /// Mean time in which dq_threshold bytes depart, nanoseconds; 0 before the first measurement.
    dq_time: f64,
    /// The controller of Linux, which replaces the fields above; with its own period of updates.
    linux: Option<Box<LinuxPie>>,
}

/// Time between updates; Linux's timers have ticks, and fire a tick late.
fn period(params: &PieParams) -> Span {
    if params.variant == Variant::Rfc {
        return params.t_update;
    }
    let tick = Span::s(1).0 / params.hz;
    Span((params.t_update.0.div_ceil(tick) + 1) * tick)
}

impl Pie {
    // RFC 8033 §4.3, §5.2
    fn qdelay(&self, queue: &QueueView<'_>) -> Span {
        match self.params.latency {
            Latency::Timestamp if queue.packets() == 0 => Span::ZERO,
            Latency::Timestamp => self.sojourn,
            Latency::Rate => {
                let share = queue.bytes() as f64 / self.params.dq_threshold.0 as f64;
                Span(crate::cast::trunc(share * self.dq_time))
            }
        }
    }

    /// Row of the table for the current p.
    fn row(&self) -> usize {
        SCALE.iter().take_while(|(bound, _)| *bound <= self.p).count()
    }

    /// Returns the next change of p at a delay of `qdelay`, before decay and bounds (sections 4.2
    /// and 5.5).
    fn step(&self, qdelay: Span) -> f64 {
        let PieParams { target, alpha, beta, .. } = self.params;
        let (target, delay, old) = (target.as_secs(), qdelay.as_secs(), self.qdelay_old.as_secs());
        let step = (alpha * (delay - target) + beta * (delay - old)) / SCALE[self.row()].1;
        if self.p >= 0.1 { step.min(LARGEST_STEP) } else { step }
    }

    /// True if `delay` is below half the target.
    fn is_short(&self, delay: Span) -> bool {
        delay.0 < self.params.target.0 / 2
    }

    // §4.2, §4.4
    fn update(&mut self, qdelay: Span) {
        let PieParams { t_update, max_burst, hold, .. } = self.params;
        if hold && self.burst > Span::ZERO {
            self.p = 0.0;
        } else {
            self.p += self.step(qdelay);
            if qdelay == Span::ZERO && self.qdelay_old == Span::ZERO {
                self.p *= DECAY;
            }
            self.p = self.p.clamp(0.0, 1.0);
        }
        self.burst = Span(self.burst.0.saturating_sub(t_update.0));
        if self.p == 0.0 && self.is_short(qdelay) && self.is_short(self.qdelay_old) {
            self.burst = max_burst;
        }
        self.qdelay_old = qdelay;
    }

    /// Makes `left` updates, all at the delay of now.
    #[inline(never)]
    fn make_updates(&mut self, mut left: u64, queue: &QueueView<'_>) {
        if let Some(linux) = &mut self.linux {
            return linux.update_often(left, queue.bytes());
        }
        let qdelay = self.qdelay(queue);
        // Bounded: at most two turns per row of the table, two per burst, and 4 * 10^4 until 0.98^n
        // underflows.
        while left > 0 {
            let (p, burst, old) = (self.p, self.burst, self.qdelay_old);
            self.update(qdelay);
            left -= 1;
            let held = self.params.hold && self.burst > Span::ZERO;
            if (self.p, self.qdelay_old) == (p, old) {
                if self.burst == burst {
                    break;
                }
                left -= self.leap_burst(left);
            } else if qdelay > Span::ZERO && !held {
                left -= self.leap(left);
            }
        }
    }

    /// Applies as many of `n` updates as only shorten the burst allowance and leave some of it, at
    /// a constant delay and p. Returns their number.
    fn leap_burst(&mut self, n: u64) -> u64 {
        if self.p == 0.0 && self.is_short(self.qdelay_old) {
            return 0; // An update restores the allowance.
        }
        let period = self.params.t_update.0;
        let k = (self.burst.0.saturating_sub(1) / period).min(n);
        self.burst.0 -= k * period;
        k
    }

    /// Applies as many of `n` updates as leave p within the same row of the table, at a constant
    /// delay, and returns their number. Valid only where p does not decay, so that all steps are
    /// equal.
    fn leap(&mut self, n: u64) -> u64 {
        let step = self.step(self.qdelay_old);
        let row = self.row();
        let low = if row > 0 { SCALE[row - 1].0 } else { 0.0 };
        let room = if step > 0.0 { SCALE[row].0.min(1.0) - self.p } else { self.p - low };
        // A step of 0 gives infinity, or NaN if there is no room either, which counts as 0.
        let k = crate::cast::trunc(room / step.abs()).saturating_sub(1).min(n);
        self.p += k as f64 * step;
        self.burst.0 = self.burst.0.saturating_sub(self.params.t_update.0.saturating_mul(k));
        k
    }

    // §4.1, §5.4
    fn drop_early(&mut self, context: &mut Context<'_>, queue: &QueueView<'_>, len: u32) -> bool {
        let PieParams { byte_mode, packet, derandomise, .. } = self.params;
        let quiet = self.is_short(self.qdelay_old) && self.p < 0.2;
        if self.burst > Span::ZERO || quiet || queue.bytes() <= 2 * packet.0 {
            return false;
        }
        let share = if byte_mode { f64::from(len) / packet.0 as f64 } else { 1.0 };
        let p = (self.p * share).min(1.0);
        if derandomise {
            self.accu = if self.p == 0.0 { 0.0 } else { self.accu + p };
            if self.accu < 0.85 {
                return false;
            }
            if self.accu >= 8.5 {
                return true;
            }
        }
        context.rng.bernoulli(p)
    }

    // §5.2
    fn measure(&mut self, now: Time, backlog: u64, len: u32) {
        let threshold = self.params.dq_threshold.0;
        if self.cycle.is_none() && backlog >= threshold {
            self.cycle = Some(Cycle { start: now, bytes: 0 });
            return;
        }
        let Some(cycle) = &mut self.cycle else { return };
        cycle.bytes += u64::from(len);
        if cycle.bytes < threshold {
            return;
        }
        // A measurement rarely ends exactly on the threshold: scale its time in proportion.
        let time = now.since(cycle.start).0 as f64 * threshold as f64 / cycle.bytes as f64;
        let weight = if self.dq_time == 0.0 { 1.0 } else { self.params.dq_weight };
        self.dq_time += weight * (time - self.dq_time);
        self.cycle = (backlog >= threshold).then_some(Cycle { start: now, bytes: 0 });
    }
}

impl Aqm for Pie {
    type Params = PieParams;

    fn new(params: Checked<'_, PieParams>, env: &Env) -> Result<Self> {
        Ok(Pie {
            p: 0.0,
            burst: params.max_burst,
            qdelay_old: Span::ZERO,
            accu: 0.0,
            updates: Timer::new(env, Period::Every(period(&params))),
            sojourn: Span::ZERO,
            cycle: None,
            dq_time: 0.0,
            linux: (params.variant == Variant::Linux)
                .then(|| Box::new(LinuxPie::new(&params, env.ecn))),
            params: (*params).clone(),
        })
    }

    // The schedule of updates follows from t_update: it stays.
    fn reconfigure(&mut self, fresh: &Self) -> bool {
        let linux = self.linux.is_some() || fresh.linux.is_some();
        let same = !linux && fresh.params.t_update == self.params.t_update;
        if same {
            self.params = fresh.params.clone();
        }
        same
    }

    fn on_first_packet(&mut self, now: Time) {
        self.updates.start(now);
    }

    fn on_update(&mut self, now: Time, queue: &QueueView<'_>) {
        let due = self.updates.due(now);
        if due != 0 {
            self.make_updates(due, queue);
        }
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        if let Some(linux) = &mut self.linux {
            return linux.on_enqueue(context, queue, packet);
        }
        if !self.drop_early(context, queue, packet.len) {
            return Verdict::Pass;
        }
        self.accu = 0.0;
        if self.p <= self.params.mark_ecnth { Verdict::Mark } else { Verdict::Drop }
    }

    fn on_overflow(&mut self, _now: Time) {
        self.accu = 0.0;
        if let Some(linux) = &mut self.linux {
            linux.on_drop();
        }
    }

    fn drops_arrival_when_full(&self) -> bool {
        self.linux.is_some()
    }

    fn on_evict(&mut self, _packets: u32) {
        self.accu = 0.0;
    }

    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _ecn: bool,
    ) -> Option<Packet> {
        // Read before the packet is removed, so that it goes to the caller in one copy. Held
        // meanwhile, it is copied in pieces that overlap: a read across two of them waits until
        // both have left the store buffer.
        let &Packet { arrived, len, .. } = queue.front()?;
        let backlog = queue.bytes();
        if let Some(linux) = &mut self.linux {
            linux.on_dequeue(context.now, arrived, len, backlog - u64::from(len));
        } else {
            self.sojourn = context.now.since(arrived);
            if self.params.latency == Latency::Rate {
                self.measure(context.now, backlog, len);
            }
        }
        queue.pop()
    }

    // Only packets dropped by others can make a queue idle during a measurement.
    fn on_idle(&mut self, _now: Time) {
        self.cycle = None;
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + self.linux.as_ref().map_or(0, |linux| size_of_val(&**linux))
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        if let Some(linux) = &self.linux {
            let (old, burst) = (linux.qdelay_old().as_secs(), linux.burst().as_secs());
            let shown = ["p", "qdelay_old", "burst", "accu", "dq_rate"];
            let values = [linux.p().min(1.0), old, burst, linux.accu(), linux.dq_rate()];
            return shown.into_iter().zip(values).for_each(|(name, value)| visit(name, value));
        }
        visit("p", self.p);
        // Queueing delay at the last update, seconds.
        visit("qdelay_old", self.qdelay_old.as_secs());
        // Rest of the burst allowance, seconds.
        visit("burst", self.burst.as_secs());
        visit("accu", self.accu);
        let bytes = self.params.dq_threshold.0 as f64;
        // Estimate of the departure rate, bytes per second; 0 before the first measurement.
        visit("dq_rate", if self.dq_time > 0.0 { bytes / self.dq_time * 1e9 } else { 0.0 });
    }
}

#[cfg(test)]
mod tests;
