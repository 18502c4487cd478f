//! CoDel: controlled delay.
//!
//! **Source** K. Nichols, V. Jacobson, A. McGregor, J. Iyengar, RFC 8289, 2018 (section 5). Older
//! variants: K. Nichols' queue for ns-2, of 2012 and 2013.
//!
//! **Decides** on departure.
//!
//! **Measures** the sojourn time of the packet at the head.
//!
//! **Symbols** as in the RFC: `target`, `interval`, `first_above_time`, `drop_next`, `count`,
//! `lastcount`, `dropping`.
//!
//! **Algorithm** Once the sojourn time has been above `target` for an `interval`, packets are
//! dropped from the head until it falls below. The n-th drop follows `interval / sqrt(n)` after the
//! previous one.
//!
//! **Departures** (1) With ECN an ECN-capable packet is marked instead of dropped. A mark is the
//! last action of a dequeue, even if more drops are due. (2) The square root is exact (correctly
//! rounded). (3) Before the first drop no drop counts as recent, as on Linux after boot: the first
//! dropping state starts with a count of 1, however many packets were dropped by overflow. With an
//! initial `drop_next` of 0, a possible reading of the pseudo-code, the result would depend on the
//! time since the clock's zero. (4) ns-2 can drop the first packet above `target` at once. This is
//! not implemented: it cannot happen on a link that was idle.
//!
//! **Linux** With `variant = "linux"`, as `sch_codel` and `sch_fq_codel`: (1) Times are counted in
//! units of 1.024 us. (2) `1 / sqrt(count)` is a fraction of 16 bits, corrected by one Newton step
//! when `count` changes; it is off by up to 1 % for some drops after a dropping state that starts
//! with an earlier count. (3) No packet is dropped while the backlog behind it is at most `mtu`:
//! the backlog of the whole discipline, also in `fq_codel`, where the RFC means the backlog of the
//! flow. So flows with few packets each are not exempt, and `fq_codel` has less delay with many
//! flows. Mean queueing delay, ms, of `variant = "linux"` and `"rfc"` with 1, 4, 16 and 64 CUBIC
//! flows (40 s, round-trip times of 20 to 80 ms, means of 5 seeds): at 10 Mbit/s 2.4, 6.6, 12.2,
//! 16.6 and 2.4, 7.9, 36.4, 98.5; at 100 Mbit/s 1.5, 1.8, 3.1, 6.9 and 1.5, 1.8, 3.2, 12.3. (4) The
//! first drop comes once more than an `interval` has passed; the RFC also allows exactly an
//! interval. Older kernels kept `first_above_time` when a queue of `fq_codel` became empty (fixed
//! by 6.1.192). Here it is reset, as in the RFC.
//!
//! **Cost** 144 bytes of state; a dequeue does constant work beyond the packets it drops.

mod linux;

use super::{Aqm, SingleQueue};
use crate::build::Env;
use crate::cast;
use crate::ce_threshold::{CeThreshold, EcnSelector};
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Span, Time};

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<CoDel>>(
    "codel",
    "controlled delay: keeps the sojourn time at a target",
)
.decides("on departure: drops at an increasing rate while the sojourn time stays above target")
.source("RFC 8289");

crate::choice! {
    /// Variant: they differ in the count with which a new dropping state starts.
    pub enum Variant {
        /// RFC 8289: within 16 intervals, the drops of the last state.
        Rfc = "rfc",
        /// ns-2 of 2012: within 16 intervals, the count less one.
        Ns2V1 = "ns2_v1",
        /// ns-2 of 2013: within 8 intervals, the count less two; and the first drop comes earlier.
        Ns2V2 = "ns2_v2",
        /// Linux: as the RFC, in Linux's arithmetic and with its exemption of short queues.
        Linux = "linux",
    }
}

crate::params! {
    /// Parameters of [`CoDel`].
    pub struct CoDelParams {
        /// Target queueing delay: acceptable minimum over an interval.
        target: Span = Span::ms(5), [Span::us(1) => Span::s(10)], "TARGET", [];
        /// Time in which a good queue drains at least once; about the largest round-trip time.
        interval: Span = Span::ms(100), [Span::us(1) => Span::s(100)], "INTERVAL", [];
        /// Variant of the algorithm; the variants of ns-2 are for papers that used them.
        variant: Variant = Variant::Rfc, [], "", [];
        /// Sojourn time above which every ECN-capable packet that leaves is marked, whatever CoDel
        /// decides and whatever `ecn` is (as on Linux); auto: never.
        ce_threshold: Option<Span> = None, [Span(1) => Span::s(100)], "", [];
        /// ECN fields to which ce_threshold applies, VALUE/MASK as in tc: 0x1/0x1 is ECT(1) and CE.
        ce_threshold_selector: EcnSelector = EcnSelector::ALL, [], "", [];
        /// Linux: backlog up to which nothing is dropped; size of the largest frame.
        mtu: Bytes = Bytes(1514), [Bytes(1) => Bytes(1_000_000_000)], "", [];
    }
}

/// State of CoDel for one queue.
///
/// `CoDel::builder()` builds a queue with it. [`Builder::queue`] sets the parameters of the queue
/// (`limit`, `ecn`), [`Builder::aqm`] the parameters of CoDel. [`Builder`] has examples for other
/// disciplines, with [`Builder::fair`], [`Builder::scheduler`] and [`Builder::params`].
///
/// [`Builder`]: crate::Builder
/// [`Builder::queue`]: crate::Builder::queue
/// [`Builder::aqm`]: crate::Builder::aqm
/// [`Builder::fair`]: crate::Builder::fair
/// [`Builder::scheduler`]: crate::Builder::scheduler
/// [`Builder::params`]: crate::Builder::params
#[derive(Clone, Debug, Snapshot)]
pub struct CoDel {
    target: Span,
    interval: Span,
    variant: Variant,
    ce_threshold: CeThreshold,
    /// Time at which the sojourn time will have been above target for an interval; `None` while
    /// below.
    first_above_time: Option<Time>,
    /// Time of the next drop, while dropping; `None` before the first drop.
    drop_next: Option<Time>,
    /// Drops since the dropping state was entered.
    count: u32,
    /// `count` when the dropping state was last entered.
    lastcount: u32,
    /// True in the dropping state.
    dropping: bool,
    /// Largest packet seen, bytes; Linux: `mtu`.
    maxpacket: u32,
    /// Linux: `1 / sqrt(count)`, as a fraction of 2^16.
    rec_inv_sqrt: u16,
}

// RFC 8289 §5.6
pub(super) fn control_law(t: Time, interval: Span, count: u32) -> Time {
    t + Span(cast::trunc(interval.0 as f64 / libm::sqrt(f64::from(count))))
}

/// Marks the packet at the head; returns false if it is not ECN-capable or there is none.
fn mark_head(context: &mut Context<'_>, queue: &mut QueueView<'_>) -> bool {
    queue.front_mut().is_some_and(|head| context.mark(head))
}

/// Drops the packet at the head, if there is one.
fn drop_head(context: &mut Context<'_>, queue: &mut QueueView<'_>) {
    if let Some(head) = queue.pop() {
        context.drop(head, DropReason::AfterEnqueue);
    }
}

impl CoDel {
    fn control_law(&self, t: Time) -> Time {
        match self.variant {
            Variant::Linux => t + linux::fraction(self.interval, self.rec_inv_sqrt),
            _ => control_law(t, self.interval, self.count),
        }
    }

    /// Returns the time as the algorithm counts it.
    fn clock(&self, t: Time) -> Time {
        if self.variant == Variant::Linux { linux::time(t) } else { t }
    }

    /// Bytes behind the head that protect it from a drop.
    fn backlog(&self, queue: &QueueView<'_>) -> u64 {
        queue.bytes() + if self.variant == Variant::Linux { queue.others } else { 0 }
    }

    /// Sets the count of a new dropping state, or of the next drop in it.
    fn set_count(&mut self, count: u32) {
        self.count = count;
        if self.variant == Variant::Linux {
            self.rec_inv_sqrt = linux::newton_step(self.rec_inv_sqrt, count);
        }
    }

    /// True if the last drop was due less than `intervals` intervals ago.
    fn dropped_within(&self, now: Time, intervals: u64) -> bool {
        self.drop_next.is_some_and(|t| now.since(t).0 < intervals * self.interval.0)
    }

    /// Returns the time at which a sojourn time that has just exceeded target leads to a drop.
    fn drop_after(&self, now: Time) -> Time {
        let short = self.variant == Variant::Ns2V2 && self.count > 1 && self.dropped_within(now, 8);
        if short { self.control_law(now) } else { now + self.interval }
    }

    /// Returns the count for a new dropping state. If entered soon after the last one, it starts
    /// near the drop rate that controlled the queue then.
    fn initial_count(&self, now: Time) -> u32 {
        let drops = match self.variant {
            Variant::Rfc | Variant::Linux if self.dropped_within(now, 16) => {
                self.count.saturating_sub(self.lastcount)
            }
            Variant::Ns2V1 if self.dropped_within(now, 16) => self.count.saturating_sub(1),
            Variant::Ns2V2 if self.dropped_within(now, 8) => match self.count.saturating_sub(2) {
                127.. => cast::low32(cast::trunc(0.9844 * f64::from(self.count))),
                few => few,
            },
            _ => 1,
        };
        drops.max(1)
    }

    // RFC 8289 §5.4, for the packet at the head, which is still queued: true if it may be dropped.
    #[inline(always)]
    fn may_drop_head(&mut self, now: Time, queue: &QueueView<'_>) -> bool {
        let above = queue.front().is_some_and(|head| {
            now.since(self.clock(head.arrived)) >= self.target
                && self.backlog(queue) - u64::from(head.len) > u64::from(self.maxpacket)
        });
        if !above {
            self.first_above_time = None;
            return false;
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(self.drop_after(now));
                false
            }
            Some(t) => now > t || now == t && self.variant != Variant::Linux,
        }
    }

    /// Enters the dropping state: drops or marks the packet at the head.
    #[cold]
    fn start_dropping(&mut self, context: &mut Context<'_>, queue: &mut QueueView<'_>, ecn: bool) {
        let now = self.clock(context.now);
        if !(ecn && mark_head(context, queue)) {
            drop_head(context, queue);
            self.may_drop_head(now, queue);
        }
        self.dropping = true;
        match self.initial_count(now) {
            1 => (self.count, self.rec_inv_sqrt) = (1, u16::MAX),
            several => self.set_count(several),
        }
        self.drop_next = Some(self.control_law(now));
        self.lastcount = self.count;
    }

    /// Drops or marks packets at the head while the next drop is due, in the dropping state.
    #[cold]
    fn continue_dropping(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        ecn: bool,
    ) {
        let now = self.clock(context.now);
        // Bounded: each turn removes a packet from the queue.
        while self.dropping
            && let Some(due) = self.drop_next.filter(|due| now >= *due)
        {
            self.set_count(self.count.saturating_add(1));
            if ecn && mark_head(context, queue) {
                self.drop_next = Some(self.control_law(due));
                return;
            }
            drop_head(context, queue);
            self.dropping = self.may_drop_head(now, queue);
            if self.dropping {
                self.drop_next = Some(self.control_law(due));
            } else if self.variant == Variant::Ns2V2 {
                self.count -= 1; // ns-2 does not count the drop that ends the state
            }
        }
    }
}

impl Aqm for CoDel {
    type Params = CoDelParams;

    fn new(params: Checked<'_, CoDelParams>, _env: &Env) -> Result<Self> {
        let linux = params.variant == Variant::Linux;
        let ticks = |span| if linux { linux::span(span) } else { span };
        Ok(CoDel {
            target: ticks(params.target),
            interval: ticks(params.interval),
            variant: params.variant,
            ce_threshold: CeThreshold::new(
                params.ce_threshold.map(ticks),
                params.ce_threshold_selector,
            ),
            first_above_time: None,
            drop_next: None,
            count: 0,
            lastcount: 0,
            dropping: false,
            maxpacket: match params.variant {
                Variant::Rfc => 0,
                Variant::Linux => u32::try_from(params.mtu.0).expect("its range is within u32"),
                Variant::Ns2V1 | Variant::Ns2V2 => 256,
            },
            rec_inv_sqrt: 0,
        })
    }

    fn reconfigure(&mut self, fresh: &Self) -> bool {
        let same = fresh.variant == self.variant;
        if same {
            let CoDel { first_above_time, drop_next, count, lastcount, dropping, .. } = *self;
            let CoDel { maxpacket, rec_inv_sqrt, .. } = *self;
            let state =
                CoDel { first_above_time, drop_next, count, lastcount, dropping, ..fresh.clone() };
            *self = CoDel { maxpacket, rec_inv_sqrt, ..state };
        }
        same
    }

    fn on_enqueue(
        &mut self,
        _: &mut Context<'_>,
        _: &mut QueueView<'_>,
        packet: &Packet,
    ) -> super::Verdict {
        if self.variant != Variant::Linux {
            self.maxpacket = self.maxpacket.max(packet.len);
        }
        super::Verdict::Pass
    }

    // RFC 8290 does not define the state of a flow whose packets are dropped by overflow. As on
    // Linux, these drops count, so that CoDel drops more of a flow that fills the buffer.
    fn on_evict(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    #[inline(always)]
    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        self.decide(context, queue, ecn);
        // Marks are made before the packet leaves, so that it is moved only once.
        if self.ce_threshold.is_set()
            && let Some(head) = queue.front_mut()
        {
            let sojourn = self.clock(context.now).since(self.clock(head.arrived));
            self.ce_threshold.apply(sojourn, context, head);
        }
        queue.pop()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let secs = |t: Time| t.0 as f64 / 1e9;
        visit("count", f64::from(self.count));
        // Value of count when the dropping state was last entered.
        visit("lastcount", f64::from(self.lastcount));
        // 1 in the dropping state, otherwise 0.
        visit("dropping", f64::from(u8::from(self.dropping)));
        // Time at which the sojourn time will have been above target for an interval, seconds; 0
        // while below.
        visit("first_above_time", self.first_above_time.map_or(0.0, secs));
        // Time of the next drop, while dropping, seconds; 0 before the first drop.
        visit("drop_next", self.drop_next.map_or(0.0, secs));
    }
}

impl CoDel {
    // RFC 8289 §5.5. Marks the head or drops packets there, until the head may be sent.
    #[inline(always)]
    fn decide(&mut self, context: &mut Context<'_>, queue: &mut QueueView<'_>, ecn: bool) {
        let now = self.clock(context.now);
        let ok_to_drop = self.may_drop_head(now, queue);
        if self.dropping {
            self.dropping = ok_to_drop;
            if ok_to_drop && self.drop_next.is_some_and(|due| now >= due) {
                self.continue_dropping(context, queue, ecn);
            }
        } else if ok_to_drop {
            self.start_dropping(context, queue, ecn);
        }
    }
}

#[cfg(test)]
mod tests;
