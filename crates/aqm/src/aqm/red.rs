//! RED: random early detection.
//!
//! **Source** S. Floyd, V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM ToN 1(4), 1993. Gentle to twice `max_th`: S. Floyd, note of March 2000. Gentle to the
//! buffer size: Ziegler et al., 2001.
//!
//! **Decides** on arrival.
//!
//! **Measures** the average queue length, in packets or bytes, depending on the unit of `min_th`.
//!
//! **Symbols** `min_th`, `max_th`, `max_p`, `w_q`, `avg`, `count`, `pb`, `pa`.
//!
//! **Algorithm** Every arrival updates the average: `avg += w_q (q - avg)`. After an idle time in
//! which the link could have sent m packets, the average decays as if m packets had found an empty
//! queue. Between the thresholds `pb = max_p (avg - min_th) / (max_th - min_th)`, and the drop
//! probability is `pa = pb / (1 - count pb)`, where `count` is the number of packets since the last
//! drop. This spreads the drops: at a constant `pb` the gap between two drops is uniform on 1 to
//! 1/`pb` - 1 packets, since the first packet after a drop has `count` = 1, as in the paper's
//! pseudo-code and in ns-2. The first drop after the average rises above `min_th` comes after 1 to
//! 1/`pb` packets. In the text of the paper every gap is uniform on 1 to 1/`pb`.
//!
//! **Departures** (1) The arrival that ends an idle time also counts as an ordinary sample of an
//! empty queue. This is one factor `1 - w_q` more than in the paper, as in every implementation we
//! know. (2) The gentle slopes use the current `max_p`. (3) Above `max_th` without `gentle` the
//! drop probability is 1, but ECN-capable packets are still marked, unless `hard_drop` is set (RFC
//! 3168 §7 recommends to drop). (4) With `spare_short`, as in ns-2, nothing is dropped while the
//! queue itself is short. This matters where a burst leaves a high average over an empty queue:
//! without it, the retransmissions are dropped. (5) `byte_mode` mean also spreads drops of
//! probability 1, as ns-2: small packets can pass after one.
//!
//! **Linux** With `variant = "linux"`, as `sch_red`: (1) The average is a whole number with as many
//! binary digits after the point as the exponent of `w_q`, which is rounded to a power of 1/2. (2)
//! Every gap between two drops is uniform on 1 to 1/`pb` packets, in multiples of 2^-32; the first
//! arrival after the average rose above `min_th`, or fell below `max_th`, only starts one. (3) At
//! the arrival that ends an idle time the average decays and takes no sample. It falls linearly to
//! one half, and further by a table of powers of 1/2, computed as `tc` does from `packet` and
//! `bandwidth`: 15.6 times more slowly than in the paper. (4) Thresholds in packets are averaged in
//! packets; `sch_red` has bytes only. (5) A tail drop does not restart `count`. `gentle`, `wait`,
//! `byte_mode`, `max_packet` and `spare_short` have no effect.
//!
//! **Cost** 208 bytes of state; one multiplication and at most one random number per arrival; after
//! an idle time O(log m), where m is the number of packets that could have been sent.

mod construction;
mod linux;
mod tuned;

pub(super) use construction::{not_in_linux, one_unit};
pub use tuned::{Tune, Tuned};

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Rate, Size, Time};
use alloc::boxed::Box;
pub(crate) use linux::{Level, LinuxRed};

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry =
    QdiscEntry::new::<SingleQueue<Red>>("red", "random early detection by the average queue")
        .decides("on arrival: a drop probability that grows with the average queue")
        .source("Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; gentle: Floyd, 2000");

crate::choice! {
    /// Drop probability above `max_th`.
    pub enum Gentle {
        /// 1 (the paper of 1993).
        None = "none" | "false" | "off" | "no",
        /// Rises from `max_p` at `max_th` to 1 at twice `max_th` (Floyd, 2000).
        TwoMaxTh = "two_max_th" | "true" | "on" | "yes",
        /// Rises from `max_p` at `max_th` to 1 at the buffer size (Ziegler et al., 2001).
        Buffer = "buffer",
    }
}

crate::choice! {
    /// Distribution of the gap between two drops, at a constant pb.
    pub enum Wait {
        /// Uniform on 1 to 1/pb - 1 packets (the paper's `pb / (1 - count pb)`).
        No = "no" | "false" | "off",
        /// Uniform on 1/pb to 2/pb - 1 packets: two drops are never close together.
        Yes = "yes" | "true" | "on",
        /// Geometric: every packet is dropped with pb, independently of the others.
        Bernoulli = "bernoulli",
    }
}

crate::choice! {
    /// Dependence of the drop probability on the length of the packet.
    pub enum ByteMode {
        /// None: every packet has the same drop probability.
        Off = "off" | "false" | "no",
        /// `count` counts bytes in units of `packet`, and pa is scaled by length / `packet`.
        Mean = "mean" | "true" | "on" | "yes",
        /// pb is scaled by length / `max_packet` before it is spread (the paper, section 11).
        Max = "max",
    }
}

crate::choice! {
    /// Variant of the algorithm.
    pub enum Variant {
        /// The paper.
        Paper = "paper",
        /// Linux: whole numbers, and gaps of 1 to 1/pb packets.
        Linux = "linux",
    }
}

crate::params! {
    /// Parameters of [`Red`].
    pub struct RedParams {
        /// Average queue below which no packet is dropped. The average has the same unit, packets
        /// or bytes.
        min_th: Size = Size::Packets(5),
            [Size::Packets(0) => Size::Packets(1_000_000_000_000)],
            "min_th", ["minth", "min", "thresh"];
        /// Average queue above which every packet is dropped, unless gentle is set.
        max_th: Size = Size::Packets(15),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)],
            "max_th", ["maxth", "max", "maxthresh"];
        /// Drop probability, before spreading, when the average reaches max_th.
        max_p: f64 = 0.1, [0.0 => 1.0], "max_p", ["maxp", "probability"];
        /// Weight of one arrival in the average.
        w_q: f64 = 0.002, [1e-9 => 1.0], "w_q", ["wq", "weight", "q_weight"];
        /// Drop probability above max_th: 1 (none), or rising to 1 at twice max_th or at the buffer
        /// size.
        gentle: Gentle = Gentle::None, [], "", [];
        /// Spreading of the drops: gaps of 1 to 1/pb - 1 packets (no), of 1/pb to 2/pb - 1 (yes),
        /// or independent drops (bernoulli).
        wait: Wait = Wait::No, [], "count", [];
        /// Scaling of the drop probability by the packet length: off, after spreading (mean), or
        /// before it (max).
        byte_mode: ByteMode = ByteMode::Off, [], "", ["bytes"];
        /// Mean packet size, for the decay of the average in idle times and for byte_mode mean.
        packet: Bytes = Bytes(500),
            [Bytes(1) => Bytes(1_000_000)], "s", ["mean_packet", "mean_pktsize", "avpkt"];
        /// Largest packet size, for byte_mode max.
        max_packet: Bytes = Bytes(1500), [Bytes(1) => Bytes(1_000_000)], "MaximumPacketSize", [];
        /// True if ECN-capable packets are dropped, not marked, where the drop probability is 1.
        hard_drop: bool = false, [], "", ["harddrop"];
        /// True if nothing is dropped while at most one packet is queued (no byte, where bytes are
        /// averaged), nor at the first arrival after that or below min_th, as in ns-2.
        spare_short: bool = false, [], "", [];
        /// Variant of the algorithm, in red, ared and choke.
        variant: Variant = Variant::Paper, [], "", [];
        /// Linux: rate from which the decay of the average in idle times is computed; auto is the
        /// rate of the link.
        bandwidth: Option<Rate> = None,
            [Rate(1) => Rate(1_000_000_000_000_000)], "", [];
    }
}

/// State of RED.
// The layout is fixed: a packet below min_th touches the first line of 64 bytes, and half of the
// second.
#[derive(Clone, Debug, Snapshot)]
#[repr(C)]
pub struct Red {
    /// Average queue, packets or bytes.
    pub(super) avg: f64,
    /// Weight of one arrival in the average.
    pub(super) w_q: f64,
    /// Time at which the link became idle.
    idle_since: Option<Time>,
    /// Thresholds, in the unit of the average.
    pub(super) min_th: f64,
    pub(super) max_th: f64,
    /// State of Linux's RED, which replaces the fields of the average.
    pub(super) linux: Option<Box<LinuxRed>>,
    /// True if the unit of the average is the byte.
    pub(super) in_bytes: bool,
    spare_short: bool,
    /// True if `spare_short` is set and the queue was short at the last update of the average.
    short: bool,
    gentle: Gentle,
    wait: Wait,
    byte_mode: ByteMode,
    hard_drop: bool,

    /// Drop probability before and after spreading, for inspection.
    pb: f64,
    pa: f64,
    /// Packets since the last drop or mark; -1 while the average is below min_th.
    pub(super) count: i64,
    /// Bytes since the last drop or mark.
    pub(super) count_bytes: u64,
    /// Packets of the mean size that the link sends in a nanosecond.
    packets_per_ns: f64,
    /// Drop probability when the average reaches max_th from below, and from where it rises on
    /// above it. Algorithms that adapt max_p change one or both.
    pub(super) max_p: f64,
    pub(super) gentle_max_p: f64,
    /// Mean and largest packet size, bytes.
    pub(super) packet: u64,
    max_packet: f64,
    /// Buffer size, in the unit of the average.
    buffer: f64,
}

/// Computes `x` to the power `n` by squaring, with the same bits on every machine.
pub(super) fn power(mut x: f64, mut n: u64) -> f64 {
    let mut y = 1.0;
    while n > 0 {
        if n & 1 == 1 {
            y *= x;
        }
        x *= x;
        n >>= 1;
    }
    y
}

/// Returns the smaller of `p` and 1: a comparison, whereas `f64::min` is a call in WebAssembly.
#[inline(always)]
fn at_most_one(p: f64) -> f64 {
    if p < 1.0 { p } else { 1.0 }
}

impl Red {
    /// Updates the average at an arrival, before the packet is enqueued (section 4).
    // Inlining is forced here and for the two functions below; without it a packet costs 7 % more.
    #[inline(always)]
    pub(super) fn average(&mut self, now: Time, queue: &QueueView<'_>) {
        if let Some(linux) = &mut self.linux {
            linux.average(now, if self.in_bytes { queue.bytes() } else { queue.packets().into() });
            self.avg = linux.avg();
            return;
        }
        self.sample(
            now,
            // The mask changes nothing: it shows the compiler that the sign bit is zero, so that
            // the conversion is one instruction.
            if self.in_bytes {
                (queue.bytes() & (u64::MAX >> 1)) as f64
            } else {
                f64::from(queue.packets())
            },
        );
    }

    /// Updates the average with a queue of `q`, except in the variant of Linux.
    #[inline(always)]
    pub(super) fn sample(&mut self, now: Time, q: f64) {
        let w_q = self.w_q;
        if let Some(since) = self.idle_since {
            // With a weight of 1 the sample below replaces the average.
            if w_q < 1.0 {
                let m = crate::cast::trunc(now.since(since).0 as f64 * self.packets_per_ns);
                self.avg *= power(1.0 - w_q, m);
            }
            self.idle_since = Some(now);
        }
        self.avg = (1.0 - w_q) * self.avg + w_q * q;
        if self.spare_short {
            self.short = q <= 1.0;
        }
    }

    /// Returns the drop probability at the current average, before spreading.
    #[inline]
    fn pb(&self) -> f64 {
        let Red { min_th, max_th, max_p, .. } = *self;
        let end = match self.gentle {
            _ if self.avg < min_th => return 0.0,
            _ if self.avg < max_th => return max_p * (self.avg - min_th) / (max_th - min_th),
            Gentle::None => return 1.0,
            Gentle::TwoMaxTh => 2.0 * max_th,
            Gentle::Buffer => self.buffer,
        };
        let p = self.gentle_max_p;
        at_most_one(p + (1.0 - p) * (self.avg - max_th) / (end - max_th))
    }

    /// Spreads `pb` over the packets since the last drop (sections 4 and 11).
    #[inline]
    fn pa(&self, len: u32) -> f64 {
        let Red { wait, byte_mode, packet, .. } = *self;
        let (len, mean) = (f64::from(len), packet as f64);
        let pb = match byte_mode {
            ByteMode::Max => at_most_one(self.pb * len / self.max_packet),
            _ => self.pb,
        };
        let count = match byte_mode {
            ByteMode::Mean => (self.count_bytes / packet) as f64,
            _ => self.count as f64,
        };
        let pa = match wait {
            Wait::Bernoulli => pb,
            Wait::No if count * pb < 1.0 => at_most_one(pb / (1.0 - count * pb)),
            Wait::Yes if count * pb < 1.0 => 0.0,
            Wait::Yes if count * pb < 2.0 => at_most_one(pb / (2.0 - count * pb)),
            Wait::No | Wait::Yes => 1.0,
        };
        if byte_mode == ByteMode::Mean && pa < 1.0 { at_most_one(pa * len / mean) } else { pa }
    }

    /// Decides about a packet at the current average (section 4).
    #[inline(always)]
    pub(super) fn decide(&mut self, context: &mut Context<'_>, packet: &Packet) -> Verdict {
        if let Some(linux) = &mut self.linux {
            return match linux.decide(context.rng) {
                (_, false) => Verdict::Pass,
                (Level::Above, true) if self.hard_drop => Verdict::Drop,
                (_, true) => Verdict::Mark,
            };
        }
        self.pb = self.pb();
        if self.avg < self.min_th || self.short {
            (self.count, self.count_bytes, self.pa) = (-1, 0, 0.0);
            return Verdict::Pass;
        }
        self.count += 1;
        self.count_bytes += u64::from(packet.len);
        let spread = self.pb < 1.0 || self.byte_mode == ByteMode::Mean;
        self.pa = if spread { self.pa(packet.len) } else { 1.0 };
        if self.spare_short && self.count == 0 {
            (self.count, self.pa) = (1, 0.0);
            return Verdict::Pass;
        }
        if !context.rng.bernoulli(self.pa) {
            return Verdict::Pass;
        }
        (self.count, self.count_bytes) = (0, 0);
        if self.pb >= 1.0 && self.hard_drop { Verdict::Drop } else { Verdict::Mark }
    }
}

impl Red {
    /// Returns the drop probability of the last packet that was decided about.
    pub(super) fn last_pa(&self) -> f64 {
        self.pa
    }

    /// Ends an idle time, in which the average decays: the link has taken a packet.
    pub(super) fn end_idle_time(&mut self) {
        self.idle_since = None;
    }

    /// Size of the state outside the struct, bytes.
    pub(super) fn beyond(&self) -> usize {
        self.linux.as_ref().map_or(0, |linux| size_of_val(&**linux))
    }
}

impl Aqm for Red {
    type Params = RedParams;

    fn new(params: Checked<'_, RedParams>, env: &Env) -> Result<Self> {
        let RedParams { min_th, max_th, .. } = *params;
        one_unit(min_th, max_th)?;
        let thresholds = [min_th, max_th].map(|th| th.number() as f64);
        Red::with(&params, thresholds, max_th.in_bytes(), env)
    }

    // The average keeps its unit.
    fn reconfigure(&mut self, fresh: &Self) -> bool {
        let linux = self.linux.is_some() || fresh.linux.is_some();
        let same = !linux && fresh.in_bytes == self.in_bytes;
        if same {
            let Red { avg, count, count_bytes, short, pb, pa, idle_since, .. } = *self;
            let short = short && fresh.spare_short;
            *self = Red { avg, count, count_bytes, short, pb, pa, idle_since, ..fresh.clone() };
        }
        same
    }

    #[inline(always)]
    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        self.average(context.now, queue);
        self.decide(context, packet)
    }

    fn on_overflow(&mut self, _now: Time) {
        (self.count, self.count_bytes) = (0, 0);
    }

    #[inline(always)]
    fn on_dequeue(
        &mut self,
        _context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _ecn: bool,
    ) -> Option<Packet> {
        let packet = queue.pop();
        if packet.is_some() {
            self.idle_since = None;
        }
        packet
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn on_idle(&mut self, now: Time) {
        self.idle_since = Some(now);
        if let Some(linux) = &mut self.linux {
            linux.on_idle(now);
        }
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + self.beyond()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        if let Some(linux) = &self.linux {
            let values = [linux.avg(), linux.pb(), linux.pa(), linux.count() as f64, linux.max_p()];
            let shown = ["avg", "pb", "pa", "count", "max_p"];
            return shown.into_iter().zip(values).for_each(|(name, value)| visit(name, value));
        }
        // Average queue, packets or bytes.
        visit("avg", self.avg);
        // Drop probability before spreading, at the last arrival.
        visit("pb", self.pb);
        // Drop probability at the last arrival.
        visit("pa", self.pa);
        visit("count", self.count as f64);
        // Drop probability, before spreading, when the average reaches max_th.
        visit("max_p", self.max_p);
    }
}

#[cfg(test)]
mod tests;
