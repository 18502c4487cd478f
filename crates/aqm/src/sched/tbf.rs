//! TBF: a token bucket filter.
//!
//! **Source** Linux sch_tbf; tc-tbf(8).
//!
//! **Decides** on departure: sends the head once the bucket has enough tokens.
//!
//! **Measures** nothing.
//!
//! **Algorithm** A bucket fills with tokens at `rate`, up to `burst`; a token is a byte. The packet
//! at the head of the FIFO queue is sent once the bucket holds a token for each of its bytes, and
//! takes these. So after a pause up to `burst` bytes leave at the rate of the link, and at most
//! `burst` + `rate` t bytes in any time t. With `peakrate`, a second bucket of `mtu` bytes, which
//! fills at that rate, must hold the tokens as well. A packet that arrives at a full queue is
//! dropped, and so is one that is larger than a bucket, since it would never be sent.
//!
//! A discipline of `children` may be in place of the FIFO queue. As in Linux, its next packet is
//! dequeued and kept until the buckets have enough tokens, so that later packets do not overtake
//! it. Only disciplines that know their next packet without a decision, such as `prio`, keep it: a
//! packet of an earlier band may then go first.
//!
//! **Departures** (1) `limit` may be in packets. tc's `latency` T stands for a limit of `rate` T +
//! `burst` bytes, and does not go with `children`. (2) Tokens are exact; Linux rounds the time of a
//! packet to nanoseconds.
//!
//! **Cost** 240 bytes of state; O(1) per packet.

use crate::aqm::fits;
use crate::bucket::{Bucket, FASTEST};
use crate::build::{Build, Env};
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::{Fifo, Pool};
use crate::flow_header::FlowHeader;
use crate::packet::Packet;
use crate::params::Checked;
use crate::qdisc::{Backlog, Qdisc};
use crate::sched::child::{Child, Leaf, Leaves};
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Rate, Size, Time};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::any::Any;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Tbf>(
    "tbf",
    "a token bucket filter: a queue with a rate and a burst of its own",
)
.aliases(&["token_bucket"])
.decides("on departure: sends the head once the bucket has enough tokens")
.source("Linux sch_tbf");

crate::params! {
    /// Parameters of [`Tbf`].
    pub struct TbfParams {
        /// Rate at which the bucket fills; auto: the rate of the link.
        rate: Option<Rate> = None, [Rate(8) => FASTEST], "r", [];
        /// Size of the bucket, and the largest packet that is sent.
        burst: Bytes = Bytes(15_140), [Bytes(1) => Bytes(1_000_000_000_000)], "b",
            ["buffer", "maxburst"];
        /// Size of the buffer of the FIFO queue, in bytes or packets.
        limit: Size = Size::Packets(1000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "B", [];
        /// Highest rate of a burst; auto: the rate of the link.
        peakrate: Option<Rate> = None, [Rate(8) => FASTEST], "p", [];
        /// Size of the bucket of peakrate.
        mtu: Bytes = Bytes(1514), [Bytes(1) => Bytes(1_000_000_000)], "M", ["minburst"];
        /// Discipline in place of the FIFO queue, which has a buffer of its own; none for the FIFO
        /// queue.
        children: Vec<Child> = Vec::new(), [], "", ["child"];
    }
}

/// The token bucket filter.
#[derive(Clone, Debug, Snapshot)]
pub struct Tbf {
    queue: Queue,
    /// Largest packet that the buckets can send, bytes.
    largest: u64,
    bucket: Bucket,
    peak: Option<Bucket>,
}

#[derive(Clone, Debug, Snapshot)]
enum Queue {
    Fifo { fifo: Fifo, pool: Pool, limit: Size },
    Child(Box<Below>),
}

/// Discipline in place of the FIFO queue.
#[derive(Clone, Debug, Snapshot)]
struct Below {
    leaf: Leaf,
    /// Parameters of the whole.
    params: TbfParams,
    /// Time at which a packet may be sent, of the last time that none could be.
    wakes: Option<Time>,
}

impl Build for Tbf {
    type Params = TbfParams;

    fn new(params: Checked<'_, TbfParams>, env: &Env) -> Result<Self> {
        let TbfParams { rate, burst, limit, peakrate, mtu, children } = &*params;
        check_child(&params)?;
        let rate = rate.unwrap_or(env.rate);
        let queue = match Leaves::new(children, env).build(0, rate)? {
            None => Queue::Fifo { fifo: Fifo::default(), pool: Pool::default(), limit: *limit },
            Some(leaf) => {
                Queue::Child(Box::new(Below { leaf, params: (*params).clone(), wakes: None }))
            }
        };
        Ok(Tbf {
            queue,
            largest: if peakrate.is_some() { burst.0.min(mtu.0) } else { burst.0 },
            bucket: Bucket::new(rate, *burst),
            peak: peakrate.map(|peak| Bucket::new(peak, *mtu)),
        })
    }
}

/// Checks the parameters that a discipline in place of the FIFO queue excludes.
///
/// # Errors
/// More than one discipline, or a limit of the queue that it replaces.
fn check_child(params: &TbfParams) -> Result<()> {
    let n = params.children.len();
    if n > 1 {
        return Err(Error::new(format!("{n} disciplines, allowed: 1")).at("children"));
    }
    if n == 1 && params.limit != TbfParams::default().limit {
        let text = "does not go with children, which have buffers of their own";
        return Err(Error::new(text).at("limit"));
    }
    Ok(())
}

impl Tbf {
    /// Time from which on the buckets have enough tokens for `len` bytes.
    fn ready(&self, len: u32) -> Time {
        let peak = self.peak.map_or(Time::ZERO, |peak| peak.ready(len));
        self.bucket.ready(len).max(peak)
    }
}

impl Qdisc for Tbf {
    // A packet that a parent has dequeued in advance is neither in the FIFO queue nor in the child.
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        context.check_arrival(&packet);
        if u64::from(packet.len) > self.largest {
            return context.drop(packet, DropReason::Full);
        }
        match &mut self.queue {
            Queue::Fifo { fifo, pool, limit } => {
                if !fits(*limit, fifo.packets(), fifo.bytes().0, &packet) {
                    return context.drop(packet, DropReason::Full);
                }
                fifo.push(pool, packet);
            }
            Queue::Child(below) => below.leaf.enqueue(context, packet),
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let now = context.now;
        let head = match &mut self.queue {
            Queue::Fifo { fifo, pool, .. } => fifo.front(pool).map(|packet| packet.len),
            Queue::Child(below) => below.leaf.peek(context),
        };
        let ready = head.map(|len| self.ready(len));
        if ready.is_none_or(|ready| ready > now) {
            if let Queue::Child(below) = &mut self.queue {
                below.wakes = ready.or_else(|| below.leaf.ready_after(now));
            }
            return None;
        }
        let packet = match &mut self.queue {
            Queue::Fifo { fifo, pool, .. } => fifo.pop(pool)?,
            Queue::Child(below) => below.leaf.dequeue(context)?,
        };
        self.bucket.take(now, packet.len);
        if let Some(peak) = &mut self.peak {
            peak.take(now, packet.len);
        }
        Some(packet)
    }

    fn ready_at(&self) -> Option<Time> {
        match &self.queue {
            Queue::Fifo { fifo, pool, .. } => fifo.front(pool).map(|head| self.ready(head.len)),
            Queue::Child(below) => below.wakes,
        }
    }

    fn backlog(&self) -> Backlog {
        match &self.queue {
            Queue::Fifo { fifo, .. } => Backlog { packets: fifo.packets(), bytes: fifo.bytes().0 },
            Queue::Child(below) => below.leaf.backlog(),
        }
    }

    fn changes_class(&self) -> bool {
        matches!(&self.queue, Queue::Child(below) if below.leaf.changes_class())
    }

    fn reads_headers(&self) -> bool {
        matches!(&self.queue, Queue::Child(below) if below.leaf.reads_headers())
    }

    fn describe_flow(&mut self, flow: u32, header: &FlowHeader) {
        if let Queue::Child(below) = &mut self.queue {
            below.leaf.describe_flow(flow, header);
        }
    }

    fn reconfigure(&mut self, fresh: Box<dyn Qdisc + Send>) -> bool {
        let Ok(fresh) = (fresh as Box<dyn Any>).downcast::<Self>() else { return false };
        let (Queue::Child(below), Queue::Child(fresh)) = (&mut self.queue, fresh.queue) else {
            return false;
        };
        let children = fresh.params.children.clone();
        let fits = TbfParams { children, ..below.params.clone() } == fresh.params
            && (below.params == fresh.params || below.leaf.reconfigure(fresh.leaf));
        if fits {
            below.params = fresh.params;
        }
        fits
    }

    fn state_bytes(&self) -> usize {
        let below = match &self.queue {
            Queue::Fifo { .. } => 0,
            Queue::Child(below) => size_of_val(&**below) + below.leaf.state_bytes(),
        };
        size_of_val(self) + below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// Times in ms at which packets of 1000 bytes leave, asked every millisecond.
    fn sent(settings: &[(&str, &str)], packets: u32, from_ms: u64) -> Vec<u64> {
        let mut q = Bench::new("tbf", settings);
        q.at_ms(from_ms);
        (0..packets).for_each(|body| assert_eq!(q.put(body, 1000), [0; 0]));
        let mut times = Vec::new();
        for ms in from_ms..from_ms + 100 {
            q.at_ms(ms);
            times.extend(core::iter::from_fn(|| q.get().0).map(|_| ms));
        }
        times
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
        // 800 kbit/s: 10 ms per packet.
        let settings = [("rate", "800kbit"), ("burst", "3000B")];
        assert_eq!(sent(&settings, 6, 0), [0, 0, 0, 10, 20, 30]);
        assert_eq!(sent(&settings, 5, 500), [500, 500, 500, 510, 520], "no more after a pause");
        assert_eq!(sent(&[("rate", "800kbit"), ("burst", "1500B")], 3, 0), [0, 5, 15]);
    }

    #[test]
    fn a_peak_rate_spreads_the_burst() {
        let settings =
            [("rate", "800kbit"), ("burst", "4000B"), ("peakrate", "4mbit"), ("mtu", "1000B")];
        // A packet per 2 ms as long as the burst lasts: 4000 bytes and 100 more per ms.
        assert_eq!(sent(&settings, 7, 0), [0, 2, 4, 6, 10, 20, 30]);
    }

    #[test]
    fn packets_that_do_not_fit_a_bucket_or_the_queue_are_dropped() {
        let mut q = Bench::new("tbf", &[("rate", "8kbit"), ("burst", "1kB"), ("limit", "2500B")]);
        assert_eq!(q.put(1, 1001), [1], "larger than the bucket");
        assert_eq!([q.put(2, 1000), q.put(3, 1000)], [[0; 0]; 2]);
        assert_eq!(q.put(4, 600), [4]);
        assert_eq!(q.put(5, 500), [0; 0]);
        assert_eq!((q.get().0, q.get().0), (Some(2), None));
        assert_eq!((q.backlog(), q.bytes()), (2, 1500));
        assert_eq!(q.ready_at(), Some(Time(1_000_000_000)), "1000 bytes at 8 kbit/s");
        let settings = [("peakrate", "8mbit"), ("mtu", "500B")];
        assert_eq!(
            Bench::new("tbf", &settings).put(6, 501),
            [6],
            "larger than the bucket of peakrate"
        );
    }

    #[test]
    fn an_earlier_band_of_prio_goes_first_while_the_tokens_are_missing() {
        let prio = "prio(flows=2, by=flow, priomap=\"\", children=droptail(limit=2p))";
        let mut q =
            Bench::new("tbf", &[("rate", "800kbit"), ("burst", "1000B"), ("children", prio)]);
        for (flow, body) in [(1, 1), (1, 2), (0, 3)] {
            assert_eq!(q.put_flow(flow, body, 1000), [0; 0]);
        }
        assert_eq!(q.put_flow(1, 4, 1000), [4], "the buffer of the child");
        assert_eq!(q.put_flow(0, 5, 1001), [5], "larger than the bucket");
        assert_eq!((q.get().0, q.get().0), (Some(3), None), "the child's order");
        assert_eq!((q.backlog(), q.bytes()), (2, 2000));
        assert_eq!(q.ready_at(), Some(Time(10_000_000)));
        assert_eq!(q.put_flow(0, 6, 500), [0; 0]);
        q.at_ms(5);
        assert_eq!((q.get().0, q.get().0), (Some(6), None), "shorter, and in the earlier band");
        assert_eq!(q.ready_at(), Some(Time(15_000_000)));
        q.at_ms(15);
        assert_eq!((q.get().0, q.get().0, q.backlog()), (Some(1), None, 1));
    }

    #[test]
    fn a_packet_that_was_dequeued_in_advance_is_not_overtaken_and_counts_in_the_buffer() {
        let drr = "drr(flows=2, by=flow, limit=2p, full=tail)";
        let mut q =
            Bench::new("tbf", &[("rate", "800kbit"), ("burst", "1000B"), ("children", drr)]);
        assert_eq!((q.put_flow(1, 1, 1000), q.get().0), (vec![], Some(1)));
        assert_eq!((q.put_flow(1, 2, 1000), q.get().0), (vec![], None));
        assert_eq!((q.put_flow(0, 3, 500), q.put_flow(0, 4, 500)), (vec![], vec![4]));
        assert_eq!((q.backlog(), q.bytes()), (2, 1500));
        q.at_ms(5);
        assert_eq!((q.get().0, q.ready_at()), (None, Some(Time(10_000_000))));
        q.at_ms(10);
        assert_eq!((q.get().0, q.get().0), (Some(2), None));
        q.at_ms(15);
        assert_eq!((q.get().0, q.backlog()), (Some(3), 0));
    }

    #[test]
    fn a_child_that_holds_packets_back_states_when_it_sends() {
        let child = ("children", "tbf(rate=80kbit, burst=1000B)");
        let mut q = Bench::new("tbf", &[("rate", "8mbit"), ("burst", "9kB"), child]);
        (0..2).for_each(|body| assert_eq!(q.put(body, 1000), [0; 0]));
        assert_eq!((q.get().0, q.get().0), (Some(0), None));
        assert_eq!(q.ready_at(), Some(Time(100_000_000)), "1000 bytes at 80 kbit/s");
        q.at_ms(100);
        assert_eq!((q.get().0, q.get().0, q.ready_at()), (Some(1), None, None));
    }

    #[test]
    fn a_child_changes_while_it_runs_if_it_can() {
        let with = |child: &'static str| [("burst", "3kB"), ("children", child)];
        let mut q = Bench::new("tbf", &with("droptail(limit=1p)"));
        assert_eq!([q.put(1, 100), q.put(2, 100)], [vec![], vec![2]]);
        assert!(!q.reconfigure("tbf", &with("codel")), "another discipline");
        assert!(!q.reconfigure("tbf", &with("")), "no child");
        assert!(!q.reconfigure("tbf", &[("burst", "4kB"), ("children", "droptail")]), "burst");
        assert_eq!(q.put(3, 100), [3], "nothing has changed");
        assert!(q.reconfigure("tbf", &with("droptail(limit=2p)")));
        assert_eq!(q.put(4, 100), [0; 0]);
        assert_eq!(q.drain(), [1, 4]);
    }

    #[test]
    fn parameters_that_contradict_a_child_are_refused() {
        let error = |settings: &[(&str, &str)]| {
            let settings: Vec<_> =
                settings.iter().map(|(k, v)| (*k, crate::Setting::Text(v))).collect();
            crate::build("tbf", &settings, Rate(8)).unwrap_err().to_string()
        };
        assert_eq!(error(&[("children", "codel sfq")]), "children: 2 disciplines, allowed: 1");
        assert_eq!(
            error(&[("children", "codel"), ("limit", "9p")]),
            "limit: does not go with children, which have buffers of their own"
        );
    }
}
