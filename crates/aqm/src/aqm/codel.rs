//! CoDel: controlled delay.
//!
//! **Source** K. Nichols, V. Jacobson, A. McGregor, J. Iyengar, RFC 8289, 2018 (section 5).
//! **Decides** on departure. **Measures** the sojourn time of the packet at the head.
//! **Symbols** as in the RFC: `target`, `interval`, `first_above_time`, `drop_next`, `count`,
//! `lastcount`, `dropping`.
//! **The law** once the sojourn time has been above `target` for an `interval`, packets are dropped
//! from the head, the n-th `interval / sqrt(n)` after the one before, until it falls below.
//! **Departures** where ECN is on and the packet can carry it, the mark takes the place of the drop
//! and ends the catching-up of that departure. The square root is exact (correctly rounded).
//! **Cost** 48 bytes of state; a departure does constant work beyond the packets it drops.

use super::{Aqm, Law};
use crate::cx::{Cx, Why};
use crate::error::Result;
use crate::fifo::Line;
use crate::packet::Packet;
use crate::sched::Env;
use crate::units::{Span, Time};

crate::params! {
    /// Parameters of [`CoDel`].
    pub struct CoDelParams {
        /// Acceptable standing delay.
        target: Span = Span::ms(5), [Span::us(1) => Span::s(10)], "TARGET", [];
        /// Time in which a good queue drains at least once; about the worst round-trip time.
        interval: Span = Span::ms(100), [Span::us(1) => Span::s(100)], "INTERVAL", [];
    }
}

/// The law's state for one line.
pub struct CoDel {
    target: Span,
    interval: Span,
    /// When the sojourn time will have been above target for an interval; none while below.
    first_above_time: Option<Time>,
    /// When to drop next, while dropping.
    drop_next: Time,
    /// Drops since dropping began.
    count: u32,
    /// `count` when dropping last began.
    lastcount: u32,
    /// Whether in the dropping state.
    dropping: bool,
    /// The largest packet seen, bytes.
    maxpacket: u32,
}

impl Law for CoDel {
    type Params = CoDelParams;

    fn new(params: &CoDelParams, _env: &Env) -> Result<Self> {
        Ok(CoDel {
            target: params.target,
            interval: params.interval,
            first_above_time: None,
            drop_next: Time::ZERO,
            count: 0,
            lastcount: 0,
            dropping: false,
            maxpacket: 0,
        })
    }
}

/// How many intervals after the last drop a new dropping state still remembers the old rate.
const MEMORY: u64 = 16;

impl CoDel {
    // RFC 8289 §5.6
    fn control_law(&self, t: Time) -> Time {
        t + Span((self.interval.0 as f64 / libm::sqrt(f64::from(self.count))) as u64)
    }

    // RFC 8289 §5.4: the packet at the head, and whether it may be dropped.
    fn dodequeue(&mut self, now: Time, line: &mut Line<'_>) -> (Option<Packet>, bool) {
        let Some(packet) = line.pop() else {
            self.first_above_time = None;
            return (None, false);
        };
        if now.since(packet.arrived) < self.target || line.bytes() <= u64::from(self.maxpacket) {
            self.first_above_time = None;
            return (Some(packet), false);
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + self.interval);
                (Some(packet), false)
            }
            Some(t) => (Some(packet), now >= t),
        }
    }
}

impl Aqm for CoDel {
    fn admit(&mut self, _: &mut Cx<'_>, _: &mut Line<'_>, packet: &Packet) -> super::Verdict {
        self.maxpacket = self.maxpacket.max(packet.len);
        super::Verdict::Pass
    }

    // RFC 8290 is silent about the state of a flow that loses packets to overflow. Linux counts
    // them, so that the law presses harder on a flow that fills the buffer; so do we.
    fn shed(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    // RFC 8289 §5.5
    fn take(&mut self, cx: &mut Cx<'_>, line: &mut Line<'_>, ecn: bool) -> Option<Packet> {
        let now = cx.now;
        let (mut packet, mut ok_to_drop) = self.dodequeue(now, line);
        if self.dropping {
            self.dropping &= ok_to_drop;
            // Bounded: each turn takes a packet off the line.
            while self.dropping && now >= self.drop_next {
                let Some(mut head) = packet.take() else { break };
                self.count = self.count.saturating_add(1);
                if ecn && cx.mark(&mut head) {
                    self.drop_next = self.control_law(self.drop_next);
                    return Some(head);
                }
                cx.drop(head, Why::Late);
                (packet, ok_to_drop) = self.dodequeue(now, line);
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if ok_to_drop {
            let mut head = packet.take().expect("only a packet may be dropped");
            if ecn && cx.mark(&mut head) {
                packet = Some(head);
            } else {
                cx.drop(head, Why::Late);
                packet = self.dodequeue(now, line).0;
            }
            self.dropping = true;
            // A state entered soon after the last one starts near the rate that controlled it.
            let delta = self.count.saturating_sub(self.lastcount);
            let recent = now.since(self.drop_next).0 < MEMORY * self.interval.0;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
        }
        packet
    }

    fn gauges(&self, see: &mut dyn FnMut(&'static str, f64)) {
        let secs = |t: Time| t.0 as f64 / 1e9;
        see("count", f64::from(self.count));
        see("lastcount", f64::from(self.lastcount));
        see("dropping", f64::from(u8::from(self.dropping)));
        see("first_above_time", self.first_above_time.map_or(0.0, secs));
        see("drop_next", secs(self.drop_next));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// A standing queue at 1 ms per packet, each `wait` ms old when it leaves; gives the bodies
    /// lost.
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
}
