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
//! time since the clock's zero. (4) ns-2 may drop the very first packet above `target` at once.
//! Omitted: unreachable on an idle link.
//!
//! **Linux** With `variant = "linux"`, as `sch_codel` and `sch_fq_codel`: (1) Times are counted in
//! units of 1.024 us. (2) `1 / sqrt(count)` is a fraction of 16 bits, corrected by one Newton step
//! when `count` changes; it is off by up to 1 % for some drops after a dropping state that starts
//! with an earlier count. (3) No packet is dropped while the backlog behind it is at most `mtu`:
//! the backlog of the whole discipline, also in `fq_codel`, where the RFC means that of the flow.
//! (4) The first drop comes once more than an `interval` has passed; the RFC also allows exactly an
//! interval. Until some version before 6.1.192, a queue of `fq_codel` that was found empty did not
//! forget the time at which its first drop was due; here it does, as in the RFC.
//!
//! **Cost** 144 bytes of state; a dequeue does constant work beyond the packets it drops.

mod linux;

use super::{Algorithm, Aqm};
use crate::cast;
use crate::ce_threshold::{CeThreshold, EcnSelector};
use crate::context::{Context, DropReason};
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::qdisc::Env;
use crate::units::{Bytes, Span, Time};

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
    pub struct CoDelParams: aqm {
        /// Target queueing delay: acceptable minimum over an interval.
        target: Span = Span::ms(5), [Span::us(1) => Span::s(10)], "TARGET", [];
        /// Time in which a good queue drains at least once; about the largest round-trip time.
        interval: Span = Span::ms(100), [Span::us(1) => Span::s(100)], "INTERVAL", [];
        /// Variant of the algorithm; those of ns-2 are for papers that used them.
        variant: Variant = Variant::Rfc, [], "", [];
        /// Sojourn time above which every ECN-capable packet that leaves is marked, whatever CoDel
        /// decides and whatever `ecn` is (as on Linux); auto: never.
        ce_threshold: Option<Span> = None, [Some(Span(1)) => Some(Span::s(100))], "", [];
        /// ECN fields to which ce_threshold applies, VALUE/MASK as in tc: 0x1/0x1 is ECT(1) and CE.
        ce_threshold_selector: EcnSelector = EcnSelector::ALL, [], "", [];
        /// Linux: backlog up to which nothing is dropped; size of the largest frame.
        mtu: Bytes = Bytes(1514), [Bytes(1) => Bytes(1_000_000_000)], "", [];
    }
}

/// State of CoDel for one queue.
#[derive(Clone, Debug)]
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

impl Algorithm for CoDel {
    type Params = CoDelParams;

    fn from_checked(params: Checked<'_, CoDelParams>, _env: &Env) -> Result<Self> {
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
}

// RFC 8289 §5.6
pub(super) fn control_law(t: Time, interval: Span, count: u32) -> Time {
    t + Span(cast::trunc(interval.0 as f64 / libm::sqrt(f64::from(count))))
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
    fn backlog(&self, line: &QueueView<'_>) -> u64 {
        line.bytes() + if self.variant == Variant::Linux { line.others } else { 0 }
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
    fn may_drop_head(&mut self, now: Time, line: &QueueView<'_>) -> bool {
        let above = line.front().is_some_and(|head| {
            now.since(self.clock(head.arrived)) >= self.target
                && self.backlog(line) - u64::from(head.len) > u64::from(self.maxpacket)
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

    /// Enters the dropping state: drops or marks the packet at the head. Returns the one to send.
    #[cold]
    fn start_dropping(
        &mut self,
        context: &mut Context<'_>,
        line: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        let now = self.clock(context.now);
        let mut head = line.pop()?;
        let marked = ecn && context.mark(&mut head);
        if !marked {
            context.drop(head, DropReason::Late);
            self.may_drop_head(now, line);
        }
        self.dropping = true;
        match self.initial_count(now) {
            1 => (self.count, self.rec_inv_sqrt) = (1, u16::MAX),
            several => self.set_count(several),
        }
        self.drop_next = Some(self.control_law(now));
        self.lastcount = self.count;
        if marked { Some(head) } else { line.pop() }
    }

    /// Drops or marks packets at the head while the next drop is due, in the dropping state.
    /// Returns the packet to send.
    #[cold]
    fn continue_dropping(
        &mut self,
        context: &mut Context<'_>,
        line: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        let now = self.clock(context.now);
        // Bounded: each turn removes a packet from the queue.
        while self.dropping
            && let Some(due) = self.drop_next.filter(|due| now >= *due)
        {
            let mut head = line.pop()?;
            self.set_count(self.count.saturating_add(1));
            if ecn && context.mark(&mut head) {
                self.drop_next = Some(self.control_law(due));
                return Some(head);
            }
            context.drop(head, DropReason::Late);
            self.dropping = self.may_drop_head(now, line);
            if self.dropping {
                self.drop_next = Some(self.control_law(due));
            } else if self.variant == Variant::Ns2V2 {
                self.count -= 1; // ns-2 does not count the drop that ends the state
            }
        }
        line.pop()
    }
}

impl Aqm for CoDel {
    fn reconfigure(&mut self, fresh: Self) -> bool {
        let same = fresh.variant == self.variant;
        if same {
            let CoDel { first_above_time, drop_next, count, lastcount, dropping, .. } = *self;
            let CoDel { maxpacket, rec_inv_sqrt, .. } = *self;
            let state = CoDel { first_above_time, drop_next, count, lastcount, dropping, ..fresh };
            *self = CoDel { maxpacket, rec_inv_sqrt, ..state };
        }
        same
    }

    fn on_arrival(
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

    // RFC 8290 does not define the state of a flow that loses packets to overflow. As on Linux,
    // these drops count, so that CoDel drops more of a flow that fills the buffer.
    fn on_evicted(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    #[inline(always)]
    fn dequeue(
        &mut self,
        context: &mut Context<'_>,
        line: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        let mut packet = self.decide(context, line, ecn)?;
        if self.ce_threshold.is_set() {
            let sojourn = self.clock(context.now).since(self.clock(packet.arrived));
            self.ce_threshold.apply(sojourn, context, &mut packet);
        }
        Some(packet)
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, f64)) {
        let secs = |t: Time| t.0 as f64 / 1e9;
        see("count", f64::from(self.count));
        // Value of count when the dropping state was last entered.
        see("lastcount", f64::from(self.lastcount));
        // 1 in the dropping state, otherwise 0.
        see("dropping", f64::from(u8::from(self.dropping)));
        // Time at which the sojourn time will have been above target for an interval, seconds; 0
        // while below.
        see("first_above_time", self.first_above_time.map_or(0.0, secs));
        // Time of the next drop, while dropping, seconds; 0 before the first drop.
        see("drop_next", self.drop_next.map_or(0.0, secs));
    }
}

impl CoDel {
    // RFC 8289 §5.5
    #[inline(always)]
    fn decide(
        &mut self,
        context: &mut Context<'_>,
        line: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        let now = self.clock(context.now);
        let ok_to_drop = self.may_drop_head(now, line);
        if self.dropping {
            self.dropping = ok_to_drop;
            if ok_to_drop && self.drop_next.is_some_and(|due| now >= due) {
                return self.continue_dropping(context, line, ecn);
            }
        } else if ok_to_drop {
            return self.start_dropping(context, line, ecn);
        }
        line.pop()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// Keeps a queue at 1 ms per packet, each `wait` ms old when it leaves; returns the bodies of
    /// the dropped packets.
    fn losses(q: &mut Bench, from_ms: u64, to_ms: u64, wait: u64) -> Vec<(u64, u32)> {
        let mut lost = vec![];
        for ms in from_ms..to_ms {
            q.at_ms(ms);
            q.put(ms as u32, 1000);
            if ms >= from_ms + wait {
                lost.extend(q.get().1.into_iter().map(|b| (ms, b)));
            }
        }
        lost
    }

    #[test]
    fn a_new_interval_counts_from_the_next_drop_on() {
        let of = |interval, variant| [("interval", interval), ("variant", variant)];
        let mut q = Bench::new("codel", &of("100ms", "rfc"));
        // As below: drops at 120 ms and at 220 ms, the next one is due 70.7 ms later.
        assert_eq!(losses(&mut q, 0, 230, 20).len(), 2);
        assert!(!q.reconfigure("codel", &of("300ms", "ns2_v1")), "the variant stays");
        assert!(q.reconfigure("codel", &of("300ms", "rfc")));
        let state = ["count", "lastcount", "dropping"].map(|name| q.gauge(name));
        assert_eq!(state, [2.0, 1.0, 1.0]);
        let due = |q: &Bench, s: f64| (q.gauge("drop_next") - s).abs() < 1e-6;
        assert!(due(&q, 0.220 + 0.070_710_7));
        assert_eq!(q.gauge("first_above_time"), 0.120);
        // The drop of a packet that is late leaves the next one 300 ms / sqrt(3) later.
        q.at_ms(300);
        assert_eq!(q.get().1.len(), 1);
        assert!(due(&q, 0.220 + 0.070_710_7 + 0.173_205_1));
    }

    #[test]
    fn drops_an_interval_after_going_above_and_then_faster() {
        let mut q = Bench::new("codel", &[("target", "5ms"), ("interval", "100ms")]);
        // Above target from 20 ms on, so the first drop comes at 120 ms, the next 100, 70.7, 57.7
        // ms later (each on the first departure, every 1 ms, that is not earlier).
        let lost = losses(&mut q, 0, 400, 20);
        let times: Vec<u64> = lost.iter().map(|l| l.0).collect();
        assert_eq!(times, [120, 220, 291, 349, 399]);
        // Each drop brings the head one packet nearer to the tail.
        assert_eq!(lost[0].1, 100);
        assert_eq!(lost[1].1, 201);
    }

    #[test]
    fn marks_in_place_of_drops_and_spares_the_last_packets() {
        let mut q = Bench::new("codel", &[("ecn", "true")]);
        q.ect();
        assert_eq!(losses(&mut q, 0, 400, 20), []);
        assert_eq!(q.marked(), 5);
        let mut q = Bench::new("codel", &[]);
        assert_eq!(losses(&mut q, 0, 1000, 1), [], "one packet of backlog is never too much");
    }

    #[test]
    fn a_packet_larger_than_the_buffer_does_not_end_the_law() {
        let mut q = Bench::new("codel", &[("limit", "100kB")]);
        assert_eq!(q.put(7, 100_001), [7]);
        assert_eq!(losses(&mut q, 0, 400, 20).len(), 5);
    }

    #[test]
    fn leaves_on_empty_and_remembers_the_rate() {
        let mut q = Bench::new("codel", &[]);
        losses(&mut q, 0, 400, 20);
        q.drain();
        assert_eq!(q.gauge("dropping"), 0.0);
        let lost = losses(&mut q, 500, 700, 20);
        assert_eq!(lost[0].0, 620);
        // It had dropped 5 times: it starts again from 5 - 1 = 4, so the next is 50 ms later.
        assert_eq!(lost[1].0, 670);
    }

    #[test]
    fn variants_differ_in_the_count_of_a_new_dropping_state() {
        // Three standing queues of 20 ms, from 0, 500 and 900 ms; 5 drops in the first.
        for (variant, first, next, third, after) in [
            ("rfc", 620, 670, 1020, 1070),    // 5 - 1 = 4; then 8 - 4 = 4
            ("ns2_v1", 620, 670, 1020, 1058), // 5 - 1 = 4; then 8 - 1 = 7: 37.8 ms
            ("ns2_v2", 565, 623, 956, 997),   // after 44.7 ms 5 - 2 = 3; after 35.4 ms 8 - 2 = 6
        ] {
            let mut q = Bench::new("codel", &[("variant", variant)]);
            losses(&mut q, 0, 400, 20);
            q.drain();
            let lost = losses(&mut q, 500, 800, 20);
            assert_eq!([lost[0].0, lost[1].0], [first, next], "{variant}");
            q.drain();
            let lost = losses(&mut q, 900, 1100, 20);
            assert_eq!([lost[0].0, lost[1].0], [third, after], "{variant}");
        }
    }

    #[test]
    fn ns2_v2_does_not_count_the_drop_that_ends_a_state() {
        for (variant, count) in [("rfc", 2.0), ("ns2_v1", 2.0), ("ns2_v2", 1.0)] {
            let mut q = Bench::new("codel", &[("variant", variant)]);
            // 300 packets arrive at 0 and leave 1 ms apart: the sojourn time is above target from
            // 5 ms on, so the first drop is at 105 ms and the second is due at 205 ms.
            (0..300).for_each(|i| drop(q.put(i, 1000)));
            let lost = (1..205).flat_map(|ms| {
                q.at_ms(ms);
                q.get().1
            });
            assert_eq!(lost.count(), 1);
            // Behind the packet that will be dropped are three younger than target.
            (0..3).for_each(|_| drop(q.put(1000, 1000)));
            while q.backlog() > 4 {
                assert_eq!(q.get().1, []);
            }
            q.at_ms(205);
            assert_eq!(q.get(), (Some(1000), vec![299]), "{variant}");
            assert_eq!((q.gauge("dropping"), q.gauge("count")), (0.0, count), "{variant}");
        }
    }

    #[test]
    fn ns2_v2_forgets_little_of_a_high_rate() {
        use super::*;
        let params = CoDelParams { variant: Variant::Ns2V2, ..CoDelParams::default() };
        let mut aqm = CoDel::new(&params, &Env::new(crate::Rate(8_000_000))).unwrap();
        let at = |aqm: &mut CoDel, count| {
            (aqm.count, aqm.drop_next) = (count, Some(Time::ZERO));
            aqm.initial_count(Time(1))
        };
        assert_eq!([2, 3, 128, 129, 1000].map(|n| at(&mut aqm, n)), [1, 1, 126, 126, 984]);
        assert_eq!(aqm.initial_count(Time::ZERO + Span::ms(800)), 1, "8 intervals later");
    }
}
