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
//! **Departures** (1) The queue is a FIFO queue; Linux can have another discipline in its place.
//! (2) `limit` may be in packets. tc's `latency` T stands for a limit of `rate` T + `burst` bytes.
//! (3) Tokens are exact; Linux rounds the time of a packet to nanoseconds.
//!
//! **Cost** 240 bytes of state; O(1) per packet.

use crate::aqm::fits;
use crate::bucket::{Bucket, FASTEST};
use crate::build::{Build, Env};
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::{Fifo, Pool};
use crate::packet::Packet;
use crate::params::Checked;
use crate::qdisc::{Backlog, Qdisc};
use crate::units::{Bytes, Rate, Size, Time};

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Tbf>(
    "tbf",
    "a token bucket filter: a FIFO queue with a rate and a burst of its own",
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
        /// Buffer size, in bytes or packets.
        limit: Size = Size::Packets(1000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "B", [];
        /// Highest rate of a burst; auto: the rate of the link.
        peakrate: Option<Rate> = None, [Rate(8) => FASTEST], "p", [];
        /// Size of the bucket of peakrate.
        mtu: Bytes = Bytes(1514), [Bytes(1) => Bytes(1_000_000_000)], "M", ["minburst"];
    }
}

/// The token bucket filter.
#[derive(Clone, Debug)]
pub struct Tbf {
    fifo: Fifo,
    pool: Pool,
    limit: Size,
    /// Largest packet that the buckets can send, bytes.
    largest: u64,
    bucket: Bucket,
    peak: Option<Bucket>,
}

impl Build for Tbf {
    type Params = TbfParams;

    fn new(params: Checked<'_, TbfParams>, env: &Env) -> Result<Self> {
        let TbfParams { rate, burst, limit, peakrate, mtu } = (*params).clone();
        Ok(Tbf {
            fifo: Fifo::default(),
            pool: Pool::default(),
            limit,
            largest: if peakrate.is_some() { burst.0.min(mtu.0) } else { burst.0 },
            bucket: Bucket::new(rate.unwrap_or(env.rate), burst),
            peak: peakrate.map(|peak| Bucket::new(peak, mtu)),
        })
    }
}

impl Tbf {
    /// Time from which on the packet at the head can be sent.
    fn head_ready(&self) -> Option<Time> {
        let len = self.fifo.front(&self.pool)?.len;
        let peak = self.peak.map_or(Time::ZERO, |peak| peak.ready(len));
        Some(self.bucket.ready(len).max(peak))
    }
}

impl Qdisc for Tbf {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        context.check_arrival(&packet);
        let room = fits(self.limit, self.fifo.packets(), self.fifo.bytes().0, &packet);
        if !room || u64::from(packet.len) > self.largest {
            return context.drop(packet, DropReason::Full);
        }
        self.fifo.push(&mut self.pool, packet);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.head_ready().filter(|ready| *ready <= context.now)?;
        let packet = self.fifo.pop(&mut self.pool)?;
        self.bucket.take(context.now, packet.len);
        if let Some(peak) = &mut self.peak {
            peak.take(context.now, packet.len);
        }
        Some(packet)
    }

    fn ready_at(&self) -> Option<Time> {
        self.head_ready()
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.fifo.packets(), bytes: self.fifo.bytes().0 }
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
}
