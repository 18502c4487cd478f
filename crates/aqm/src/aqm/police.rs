//! Police: a policer, which drops what exceeds a rate and a burst, and queues nothing for it.
//!
//! **Source** Linux act_police (tcf_police_act); tc-police(8).
//!
//! **Decides** on arrival.
//!
//! **Measures** the rate of the arrivals, with a token bucket.
//!
//! **Symbols** `r` the rate, `b` the burst, `p` the peak rate, `M` the bucket of the peak rate.
//!
//! **Algorithm** A bucket of `burst` bytes fills at `rate`. A packet that finds as many tokens as
//! it has bytes takes them and conforms; any other packet takes none, and exceeds. With `peakrate`,
//! a second bucket of `mtu` bytes, which fills at that rate, must have the tokens as well, and
//! packets longer than `mtu` exceed. Packets that exceed are dropped, or pass if `exceed` says so.
//! Packets that pass join a FIFO queue, which stays short if the link is faster than `rate`.
//!
//! **Departures** (1) Tokens are exact; Linux rounds the time of a packet to nanoseconds. (2) Linux
//! has actions for both results; here a packet that conforms passes, and one that exceeds is
//! dropped or passes. (3) A policer of Linux is part of a filter, in front of any discipline; here
//! it has a FIFO queue.
//!
//! **Cost** 256 bytes of state; O(1) per packet.

use super::{Aqm, SingleQueue, Verdict};
use crate::bucket::{Bucket, FASTEST};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Rate, Time};

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Police>>(
    "police",
    "a policer: drops what exceeds a rate and a burst, without a queue for it",
)
.aliases(&["policer"])
.decides("on arrival: drops a packet for which a token bucket has no tokens")
.source("Linux act_police");

crate::choice! {
    /// Action for packets that exceed the rate.
    pub enum Exceed {
        /// Drop them.
        Drop = "drop",
        /// Let them pass, and count them.
        Pass = "pass",
    }
}

crate::params! {
    /// Parameters of [`Police`].
    pub struct PoliceParams {
        /// Rate at which the bucket fills; auto: the rate of the link.
        rate: Option<Rate> = None, [Rate(8) => FASTEST], "r", [];
        /// Size of the bucket, and the largest packet that conforms.
        burst: Bytes = Bytes(15_140), [Bytes(1) => Bytes(1_000_000_000_000)], "b",
            ["buffer", "maxburst"];
        /// Highest rate of a burst; auto: no limit.
        peakrate: Option<Rate> = None, [Rate(8) => FASTEST], "p", [];
        /// Size of the bucket of peakrate.
        mtu: Bytes = Bytes(2047), [Bytes(1) => Bytes(1_000_000_000)], "M", ["minburst"];
        /// Action for packets that exceed the rate.
        exceed: Exceed = Exceed::Drop, [], "", ["conform_exceed"];
    }
}

/// Bucket and its size.
#[derive(Clone, Copy, Debug, Snapshot)]
struct Limit {
    bucket: Bucket,
    burst: u64,
}

impl Limit {
    fn new(rate: Rate, burst: Bytes) -> Limit {
        Limit { bucket: Bucket::new(rate, burst), burst: burst.0 }
    }

    /// True if it has the tokens for `len` bytes.
    fn admits(&self, now: Time, len: u32) -> bool {
        u64::from(len) <= self.burst && self.bucket.ready(len) <= now
    }
}

/// State of the policer.
#[derive(Clone, Debug, Snapshot)]
pub struct Police {
    rate: Limit,
    peak: Option<Limit>,
    exceed: Exceed,
    /// Packets that exceeded the rate.
    exceeded: u64,
}

impl Aqm for Police {
    type Params = PoliceParams;

    fn new(params: Checked<'_, PoliceParams>, env: &Env) -> Result<Self> {
        let PoliceParams { rate, burst, peakrate, mtu, exceed } = *params;
        Ok(Police {
            rate: Limit::new(rate.unwrap_or(env.rate), burst),
            peak: peakrate.map(|peak| Limit::new(peak, mtu)),
            exceed,
            exceeded: 0,
        })
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        _queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        let (now, len) = (context.now, packet.len);
        if self.rate.admits(now, len) && self.peak.is_none_or(|peak| peak.admits(now, len)) {
            self.rate.bucket.take(now, len);
            if let Some(peak) = &mut self.peak {
                peak.bucket.take(now, len);
            }
            return Verdict::Pass;
        }
        self.exceeded += 1;
        match self.exceed {
            Exceed::Drop => Verdict::Drop,
            Exceed::Pass => Verdict::Pass,
        }
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("exceeded", self.exceeded as f64);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// Packets of 1000 bytes at these milliseconds; for each, true if it is dropped.
    fn dropped(settings: &[(&str, &str)], at: &[u64]) -> Vec<bool> {
        let mut q = Bench::new("police", settings);
        let mut put = |(i, ms): (usize, &u64)| {
            q.at_ms(*ms);
            !q.put(u32::try_from(i).unwrap(), 1000).is_empty()
        };
        at.iter().enumerate().map(&mut put).collect()
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        // 8 Mbit/s is a packet per millisecond; the bucket has three.
        let rate = [("rate", "8mbit"), ("burst", "3000B")];
        let at = [0, 0, 0, 0, 1, 1, 3, 3, 3, 10, 10, 10, 10];
        let expected = [0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 1].map(|dropped| dropped == 1);
        assert_eq!(dropped(&rate, &at), expected);
        // A dropped packet takes no tokens: at half the time, every other one passes.
        let slow = [("rate", "4mbit"), ("burst", "1000B")];
        assert_eq!(dropped(&slow, &[0, 1, 2, 3, 4]), [false, true, false, true, false]);
        assert_eq!(dropped(&[("rate", "8mbit"), ("burst", "999B")], &[0, 50]), [true, true]);
    }

    #[test]
    fn a_peak_rate_limits_the_burst() {
        let peak = [("rate", "8mbit"), ("burst", "9kB"), ("peakrate", "8mbit"), ("mtu", "1000B")];
        assert_eq!(dropped(&peak, &[0, 0, 1, 1]), [false, true, false, true]);
    }

    #[test]
    fn packets_that_exceed_can_pass() {
        let mut q =
            Bench::new("police", &[("rate", "8mbit"), ("burst", "1000B"), ("exceed", "pass")]);
        (0..3).for_each(|i| assert!(q.put(i, 1000).is_empty()));
        assert_eq!(q.gauge("exceeded"), 2.0);
    }
}
