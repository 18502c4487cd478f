//! EWFQ: weighted fair queueing with differential dropping.
//!
//! **Source** F. Lu, G. Voelker, A. Snoeren, "Weighted Fair Queuing with Differential Dropping",
//! INFOCOM 2012.
//!
//! **Decides** on arrival: drops by the recent bytes of the class; on departure: the next class, by
//! WFQ.
//!
//! **Measures** the bytes of the classes that a byte sample finds and a cache of recent packets
//! confirms.
//!
//! **Symbols** `m_i`, `m_fair`, `mbar`, `gamma_i`, `n_i`, `w_i`, `alpha`, `beta`, `f_s`, `t_i`,
//! `p`, `p_c`, `k`, `T`, `RTT_o`.
//!
//! **Algorithm** All classes share one buffer, scheduled by WFQ. `m_fair += alpha (q_old -
//! q_target) - beta (q - q_target)` every 1/f_s. If `m_i`, the bytes of a class in the last
//! interval, is above `w_i m_fair`, its packets are dropped. For a responsive class the drop
//! probability is `(gamma_i n_i / w_i)^2 / (0.66 ((m_fair / S) (RTT_o / t_i))^2)`, which holds a
//! TCP flow of that round-trip time at its share; otherwise `1 - w_i m_fair / m_i`. gamma_i
//! corrects for round-trip times shorter than RTT_o; it follows from the excess of the class over
//! its share.
//!
//! **Departures** The paper does not say: (1) m_fair is controlled as in AFD, with q and m in
//! bytes; `mfair_gain` scales its step. (2) `p` is such that a class at its fair share is missed
//! with probability 0.1, whatever its weight, since bytes are sampled with probability p / w_i; `T`
//! is half the share. (3) The cache has 100 entries. (4) m_fair starts at an even split of the
//! link. It stays between a packet and the link's bytes of an interval, and below the largest `m_i
//! / w_i` found: above that no class is dropped, and m_fair would only wind up. (5) RTT_o is 0.25 s
//! by default. (6) Within an interval the m_i of the last one apply; a class found in this interval
//! is not dropped before its end. (7) S is a running mean of the class's packet sizes. (8) n_i is 1
//! by default; gamma includes it. (9) gamma is at most 64. (10) `responsive` lists the responsive
//! classes. (11) On overflow the tail of the longest class for its weight is dropped; with plain
//! tail drop EWFQ settles in a bad state. (12) Weights are scaled to a minimum of 1. (13) mbar is
//! at least S. (14) Samples and intervals count from the first arrival. (15) A class that is found
//! is credited the mean number of bytes before its first sample, w_i / p, unless `credit` is false;
//! the paper counts the bytes after it. (16) A packet that was put into the cache can match its own
//! entry.
//!
//! **Cost** 189568 bytes of state: WFQ's, plus 48 per class found. The number of classes found is
//! bounded by `table`: a full set of eight evicts the class with the fewest bytes.

use crate::build::{Build, Env};
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::packet::Packet;
use crate::params::{Checked, Combined, Nothing, nth};
use crate::qdisc::{Backlog, Qdisc};
use crate::sched::fair::{By, End, Fair, FairParams};
use crate::sched::hold::{Hold, Seen};
use crate::sched::wfq::Wfq;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Size, Span, Time};
use alloc::format;
use alloc::vec::Vec;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Ewfq>(
    "ewfq",
    "WFQ over one shared buffer, with drops that limit large classes to their share",
)
.decides("on departure: the next class; on arrival: a drop probability by its recent bytes")
.source("Lu, Voelker and Snoeren, INFOCOM 2012");

crate::params! {
    /// Parameters of [`Ewfq`].
    pub struct EwfqParams {
        /// Size of the buffer that all classes share.
        limit: Size = Size::Bytes(30_000),
            [Size::Bytes(100) => Size::Bytes(1_000_000_000_000)], "B", ["buffer"];
        /// Number of classes; the class identifier is taken modulo this number.
        flows: u64 = 1024, [1 => 1_048_576], "n", ["queues", "classes"];
        /// Identifier of the class: flow number, flow hash, or configured class.
        by: By = By::Flow, [], "", [];
        /// Weights of the classes in order; the last one applies to all further classes.
        weights: Vec<f64> = [1.0].into(), [1e-3 => 1e3], "w_i", ["weight"];
        /// Number of flows in each class, in order; the last one applies to all further classes.
        members: Vec<f64> = [1.0].into(), [1.0 => 1e6], "n_i", ["n_i"];
        /// 1 for classes that respond to drops, 0 for others, in order; the last one applies to all
        /// further classes.
        responsive: Vec<f64> = [1.0].into(), [0.0 => 1.0], "", [];
        /// Number of classes that share the link, for the initial m_fair and for p.
        expected: u64 = 3, [1 => 1_000_000], "", [];
        /// Gain of the previous sample of the queue.
        alpha: f64 = 0.85, [0.0 => 100.0], "alpha", [];
        /// Gain of the current sample of the queue.
        beta: f64 = 0.9, [0.0 => 100.0], "beta", [];
        /// Scale of m_fair's step.
        mfair_gain: f64 = 1.0, [0.0 => 1e6], "", [];
        /// Time between samples of the queue, 1 / f_s.
        sample: Span = Span::ms(10), [Span::us(1) => Span::s(10)], "1/f_s", [];
        /// Reference of the queue; auto is half of the buffer.
        q_target: Option<Bytes> = None,
            [Bytes(1) => Bytes(1_000_000_000_000)], "q_target", [];
        /// Length of a measurement interval.
        interval: Span = Span::s(1), [Span::us(1) => Span::s(100)], "t_i", [];
        /// Probability that a packet is put into the cache.
        p_c: f64 = 0.1, [0.0 => 1.0], "p_c", [];
        /// Hits in the cache after which a class counts as found.
        k: u64 = 1, [0 => 16], "k", ["stages"];
        /// Probability that a byte of a class of weight 1 is sampled; auto is computed from
        /// expected.
        p: Option<f64> = None, [0.0 => 1.0], "p", [];
        /// True if a class that is found is credited the bytes missed before its first sample.
        credit: bool = true, [], "", [];
        /// Entries of the cache.
        cache: u64 = 100, [1 => 65_536], "K", [];
        /// Largest number of classes that can be measured at once.
        table: u64 = 1024, [8 => 1_048_576], "", [];
        /// Largest round-trip time.
        rtt: Span = Span::ms(250), [Span::us(1) => Span::s(10)], "RTT_o", ["rtt_o"];
    }
}

/// Largest gamma.
const GAMMA_MAX: f64 = 64.0;

/// The EWFQ discipline.
#[derive(Clone, Debug, Snapshot)]
pub struct Ewfq {
    params: EwfqParams,
    queue: Fair<Wfq, crate::aqm::NoAqm>,
    hold: Hold,
    /// Fair share, bytes per interval and weight.
    m_fair: f64,
    /// Sum of m_fair over the samples of this interval, and their number; mean of the last
    /// interval.
    sum: (f64, f64),
    mbar: f64,
    /// Queue at the last sample less q_target, bytes.
    q_old: f64,
    q_target: f64,
    /// Upper bound of m_fair.
    top: f64,
    /// Bytes that the link sends in an interval.
    capacity: f64,
    /// Mean packet size, bytes.
    s: f64,
    /// Time of the next sample; never before the first arrival.
    next_sample: Time,
    next_interval: Time,
    scale: f64,
    /// See [`Env::first_update`].
    first_update: Option<Time>,
}

/// Returns the entry of class `i` in a list; 1 if the list is empty.
fn of(list: &[f64], i: u32) -> f64 {
    nth(list, i as usize).unwrap_or(1.0)
}

impl Build for Ewfq {
    type Params = EwfqParams;

    fn new(params: Checked<'_, EwfqParams>, env: &Env) -> Result<Self> {
        // On overflow the longest queue for its weight drops, as by default.
        let fair = FairParams {
            limit: params.limit,
            flows: params.flows,
            by: params.by,
            weights: params.weights.clone(),
            drop: End::Tail,
            ..FairParams::default()
        };
        let fair = Combined { outer: fair, inner: Nothing };
        let queue = Combined { outer: fair, inner: Nothing };
        // Both bound the work after an idle time.
        if params.sample.0 < params.interval.0 / 10_000 {
            let text = format!("{} is below a 10000th of interval", params.sample);
            return Err(Error::new(text).at("sample"));
        }
        if params.sample.0 / 10_000 > params.interval.0 {
            let text = format!("{} is above 10000 times interval", params.sample);
            return Err(Error::new(text).at("sample"));
        }
        let capacity = env.rate.0 as f64 / 8.0 * params.interval.as_secs();
        let bytes = match params.limit {
            Size::Bytes(n) => n as f64,
            Size::Packets(n) => n as f64 * 1000.0,
        };
        let fair = capacity / params.expected as f64;
        // A class with a share f of the packets is missed with probability (1 - f p L)^n, about
        // exp(-f p L n) = 0.1, in an interval of n of its packets, where it finds itself in the
        // cache with probability f.
        let packets = fair / 1000.0;
        let p = 2.303 * params.expected as f64 / packets / 1000.0;
        let q_target = params.q_target.map_or(bytes / 2.0, |q| q.0 as f64);
        let least = params.weights.iter().copied().fold(f64::INFINITY, f64::min);
        Ok(Ewfq {
            queue: Fair::build(&queue, env)?,
            hold: Hold::new(
                params.table,
                params.cache,
                params.k,
                params.p.unwrap_or(p.min(1.0)),
                params.credit,
            ),
            m_fair: fair.clamp(1000.0, capacity.max(1000.0)),
            sum: (0.0, 0.0),
            mbar: fair,
            q_old: -q_target,
            q_target,
            top: capacity,
            capacity,
            s: 1000.0,
            next_sample: Time::NEVER,
            next_interval: Time::NEVER,
            first_update: env.first_update,
            scale: if least.is_finite() { least } else { 1.0 },
            params: (*params).clone(),
        })
    }
}

impl Ewfq {
    fn weight(&self, i: u32) -> f64 {
        of(&self.params.weights, i) / self.scale
    }

    /// Called at the first arrival: samples and intervals count from `now`.
    fn start(&mut self, now: Time) {
        let EwfqParams { sample, interval, .. } = self.params;
        self.next_sample = self.first_update.unwrap_or(now + sample);
        self.next_interval = Time((self.next_sample + interval).0.saturating_sub(sample.0));
    }

    /// Brings m_fair and the measurement up to `now`. The queue is constant between packets.
    fn advance(&mut self, now: Time) {
        let EwfqParams { sample, interval, .. } = self.params;
        while self.next_sample.min(self.next_interval) <= now {
            if self.hold.found() == 0 && now.since(self.next_sample).0 > 2 * interval.0 {
                self.skip(now);
            } else if self.next_interval < self.next_sample {
                self.end_interval();
                self.next_interval += interval;
            } else {
                self.sample(1.0);
                self.next_sample += sample;
            }
        }
    }

    /// Takes `n` samples of the current queue. From the second on all steps are equal.
    fn sample(&mut self, n: f64) {
        let EwfqParams { alpha, beta, mfair_gain, .. } = self.params;
        let q = self.queue.backlog().bytes as f64 - self.q_target;
        let step = alpha * self.q_old - beta * q + (n - 1.0) * (alpha - beta) * q;
        let top = self.top.max(self.s);
        self.m_fair = (self.m_fair + mfair_gain * step).clamp(self.s.min(top), top);
        self.q_old = q;
        self.sum = (self.sum.0 + n * self.m_fair, self.sum.1 + n);
    }

    /// Catches up after an idle time: all samples and ends of intervals up to `now` in one step.
    fn skip(&mut self, now: Time) {
        let EwfqParams { sample, interval, .. } = self.params;
        let n = now.since(self.next_sample).0 / sample.0 + 1;
        self.sample(n as f64);
        self.next_sample = Time(self.next_sample.0 + n * sample.0);
        let ends = now.since(self.next_interval).0 / interval.0 + 1;
        self.next_interval = Time(self.next_interval.0 + ends * interval.0);
        self.end_interval();
    }

    fn end_interval(&mut self) {
        if self.sum.1 > 0.0 {
            self.mbar = (self.sum.0 / self.sum.1).max(self.s);
        }
        self.sum = (0.0, 0.0);
        let (mbar, weights, scale) = (self.mbar, &self.params.weights, self.scale);
        let weight = |i| of(weights, i) / scale;
        self.hold.end_interval(|i, seen: &mut Seen| {
            let fair = weight(i) * mbar;
            seen.m = seen.bytes;
            seen.gamma = (0.5 * seen.gamma * (1.0 + seen.m / fair)).clamp(1.0, GAMMA_MAX);
            seen.m >= 0.5 * fair
        });
        self.top = self.hold.largest(weight).map_or(self.capacity, |m| m.min(self.capacity));
    }

    /// Returns the drop probability of a packet of class `i`, equation 2.
    fn probability(&self, i: u32) -> f64 {
        let Some(seen) = self.hold.get(i) else { return 0.0 };
        let (w, fair) = (self.weight(i), self.m_fair);
        if seen.m <= w * fair {
            return 0.0;
        }
        let d = if of(&self.params.responsive, i) > 0.5 {
            let n = of(&self.params.members, i);
            let per_rtt =
                fair / seen.s * self.params.rtt.as_secs() / self.params.interval.as_secs();
            let (up, down) = (seen.gamma * n / w, per_rtt);
            up * up / (0.66 * down * down)
        } else {
            1.0 - w * fair / seen.m
        };
        d.clamp(0.0, 1.0)
    }
}

impl Qdisc for Ewfq {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.enqueue_behind(context, packet, Backlog::default());
    }

    fn enqueue_behind(&mut self, context: &mut Context<'_>, packet: Packet, ahead: Backlog) {
        context.check_arrival(&packet);
        if self.next_sample == Time::NEVER {
            self.start(context.now);
        }
        self.advance(context.now);
        let i = self.queue.index(&packet);
        self.s += 0.01 * (f64::from(packet.len) - self.s);
        self.hold.record(context.rng, (i, self.weight(i)), packet.len, self.params.p_c, self.s);
        let d = self.probability(i);
        if d > 0.0 && context.rng.bernoulli(d) {
            return context.drop(packet, DropReason::AtEnqueue);
        }
        self.queue.enqueue_behind(context, packet, ahead);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.advance(context.now);
        self.queue.dequeue(context)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Bytes that a class of weight 1 may send in an interval.
        visit("m_fair", self.m_fair);
        // Bytes in an interval above which a class is measured.
        visit("mbar", self.mbar);
        // Number of classes found so far in this interval.
        visit("found", self.hold.found() as f64);
        self.queue.inspect(visit);
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) - size_of_val(&self.queue)
            + self.queue.state_bytes()
            + self.hold.state_bytes()
    }
}

#[cfg(test)]
mod tests;
