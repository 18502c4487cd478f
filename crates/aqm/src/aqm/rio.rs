//! RIO: RED with two curves, for packets in and out of their profile.
//!
//! **Source** D. Clark, W. Fang, "Explicit Allocation of Best-Effort Packet Delivery Service",
//! IEEE/ACM ToN 6(4), 1998, section IV.
//!
//! **Decides** on arrival, as RED.
//!
//! **Measures** two averages, each as RED: of all queued packets, and of the queued packets that
//! are in profile.
//!
//! **Symbols** as in RED; `in_min_th`, `in_max_th` and `in_max_p` are `min_in`, `max_in` and
//! `P_max_in` of the paper, RED's own parameters the ones for packets out of profile.
//!
//! **Algorithm** A packet is in profile if its class is `in_class`. Its arrival updates both
//! averages, and RED decides by the average of the packets in profile and its thresholds. The
//! arrival of another packet updates the average of all packets, and RED decides by that. So
//! packets out of profile are dropped earlier, and all of them before the first packet in profile,
//! if their thresholds are lower.
//!
//! **Departures** (1) Each curve has its own `count` of packets since the last drop. (2) Both
//! averages decay in the idle times of the link. (3) A packet that overflows the buffer is dropped,
//! whatever its class.
//!
//! **Cost** 368 bytes of state; twice the work of RED.

use super::red::{Red, RedParams, not_in_linux};
use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::{Checked, Combined};
use crate::snapshot::Snapshot;
use crate::units::{Size, Time};
use alloc::format;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Rio>>(
    "rio",
    "RED with two curves: packets out of their profile are dropped earlier",
)
.decides("on arrival: RED's drop probability, by the class of the packet")
.source("Clark and Fang, IEEE/ACM ToN 6(4), 1998");

crate::params! {
    /// Parameters of [`Rio`] for packets in profile; RED's are for packets out of profile.
    pub struct RioParams {
        /// Average queue of packets in profile below which none of them is dropped.
        in_min_th: Size = Size::Packets(10),
            [Size::Packets(0) => Size::Packets(1_000_000_000_000)], "min_in", ["min_in"];
        /// Average queue of packets in profile above which each of them is dropped, unless gentle
        /// is set.
        in_max_th: Size = Size::Packets(30),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "max_in", ["max_in"];
        /// Drop probability of packets in profile, before spreading, at in_max_th.
        in_max_p: f64 = 0.02, [0.0 => 1.0], "P_max_in", ["maxp_in"];
        /// Class of the packets in profile.
        in_class: u64 = 1, [0 => 65_535], "", [];
    }
}

/// State of RIO.
#[derive(Clone, Debug, Snapshot)]
pub struct Rio {
    /// Average of all packets, and curve for packets out of profile.
    all: Red,
    /// Average and curve of packets in profile.
    inside: Red,
    in_class: u16,
    /// Queued packets in profile, and their bytes.
    packets: u32,
    bytes: u64,
    /// True if packets were evicted, so that both must be counted again.
    evicted: bool,
    /// True if the last arrival was in profile.
    last_in: bool,
}

impl Rio {
    fn is_in(&self, packet: &Packet) -> bool {
        packet.class == self.in_class
    }

    /// Returns the curve of the last arrival.
    fn last(&mut self) -> &mut Red {
        if self.last_in { &mut self.inside } else { &mut self.all }
    }

    /// Counts the packets in profile again, after others were evicted.
    fn count(&mut self, queue: &QueueView<'_>) {
        let (mut packets, mut bytes) = (0, 0);
        queue.for_each(|packet| {
            if self.is_in(packet) {
                packets += 1;
                bytes += u64::from(packet.len);
            }
        });
        (self.packets, self.bytes, self.evicted) = (packets, bytes, false);
    }
}

impl Aqm for Rio {
    type Params = Combined<RioParams, RedParams>;

    fn new(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self> {
        let (RioParams { in_min_th, in_max_th, in_max_p, in_class }, out) =
            (&params.outer, &params.inner);
        not_in_linux(out, "rio")?;
        for (name, th) in [("in_min_th", in_min_th), ("in_max_th", in_max_th)] {
            if th.in_bytes() != out.max_th.in_bytes() {
                let text = format!("{th} is in another unit than max_th ({})", out.max_th);
                return Err(Error::new(text).at(name));
            }
        }
        if in_max_th.number() <= in_min_th.number() {
            let text = format!("{in_max_th} is not above in_min_th ({in_min_th})");
            return Err(Error::new(text).at("in_max_th"));
        }
        let inside =
            RedParams { min_th: *in_min_th, max_th: *in_max_th, max_p: *in_max_p, ..out.clone() };
        Ok(Rio {
            all: Red::build(out, env)?,
            inside: Red::build(&inside, env)?,
            in_class: u16::try_from(*in_class).unwrap_or(u16::MAX),
            packets: 0,
            bytes: 0,
            evicted: false,
            last_in: false,
        })
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        if self.evicted {
            self.count(queue);
        }
        self.last_in = self.is_in(packet);
        self.all.average(context.now, queue);
        if self.last_in {
            let in_bytes = self.inside.in_bytes;
            let q = if in_bytes { self.bytes as f64 } else { f64::from(self.packets) };
            self.inside.sample(context.now, q);
        }
        self.last().decide(context, packet)
    }

    fn after_enqueue(&mut self, packet: &Packet) {
        if self.is_in(packet) {
            self.packets += 1;
            self.bytes += u64::from(packet.len);
        }
    }

    fn on_overflow(&mut self, now: Time) {
        self.last().on_overflow(now);
    }

    fn on_evict(&mut self, _packets: u32) {
        self.evicted = true;
    }

    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        let packet = self.all.on_dequeue(context, queue, ecn)?;
        self.inside.end_idle_time();
        if self.is_in(&packet) && !self.evicted {
            self.packets -= 1;
            self.bytes -= u64::from(packet.len);
        }
        Some(packet)
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn on_idle(&mut self, now: Time) {
        self.all.on_idle(now);
        self.inside.on_idle(now);
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Average queue of all packets, packets or bytes.
        visit("avg", self.all.avg);
        // Average queue of the packets in profile, packets or bytes.
        visit("avg_in", self.inside.avg);
        // Drop probability of the last packet out of profile.
        visit("pa", self.all.last_pa());
        // Drop probability of the last packet in profile.
        visit("pa_in", self.inside.last_pa());
    }
}

#[cfg(test)]
mod tests {
    use crate::Setting;
    use crate::testing::Bench;
    use crate::units::Rate;
    use std::prelude::v1::*;

    const LOW: [(&str, &str); 7] = [
        ("w_q", "1"),
        ("min_th", "2p"),
        ("max_th", "4p"),
        ("in_min_th", "3p"),
        ("in_max_th", "6p"),
        ("in_max_p", "0.5"),
        ("in_class", "7"),
    ];

    #[test]
    fn packets_out_of_profile_are_dropped_by_all_packets_and_others_by_their_own() {
        let mut q = Bench::new("rio", &LOW);
        // Four packets in profile: their average is below in_min_th at each arrival.
        assert!((0..4).all(|i| q.put_class(7, i, 1000).is_empty()));
        assert_eq!(q.gauge("avg_in"), 3.0);
        // Four packets are queued in total, which is max_th of the packets out of profile.
        assert_eq!(q.put_class(0, 4, 1000), [4]);
        assert_eq!((q.gauge("avg"), q.gauge("pa")), (4.0, 1.0));
        assert_eq!(q.gauge("avg_in"), 3.0, "it takes samples at arrivals in profile only");
        q.put_class(7, 5, 1000);
        assert_eq!(q.gauge("avg_in"), 4.0);
        // pb = 0.5 (4 - 3) / (6 - 3), spread over the one packet since the average reached
        // in_min_th: 1/6 / (1 - 1/6).
        assert!((q.gauge("pa_in") - 0.2).abs() < 1e-12);
    }

    #[test]
    fn departures_leave_the_counts_of_both_kinds() {
        let mut q = Bench::new("rio", &LOW);
        q.put_class(7, 0, 1000);
        q.put_class(0, 1, 1000);
        q.put_class(7, 2, 1000);
        q.get();
        q.put_class(7, 3, 1000);
        assert_eq!((q.gauge("avg"), q.gauge("avg_in")), (2.0, 1.0));
        q.drain();
        q.put_class(7, 4, 1000);
        assert_eq!((q.gauge("avg"), q.gauge("avg_in")), (0.0, 0.0));
    }

    #[test]
    fn bytes_are_averaged_where_the_thresholds_are_bytes() {
        let bytes =
            [("min_th", "2kB"), ("max_th", "4kB"), ("in_min_th", "3kB"), ("in_max_th", "6kB")];
        let mut q = Bench::new("rio", &[&bytes[..], &[("w_q", "1")]].concat());
        q.put_class(1, 0, 700);
        q.put_class(1, 1, 700);
        assert_eq!((q.gauge("avg"), q.gauge("avg_in")), (700.0, 700.0));
    }

    #[test]
    fn thresholds_have_one_unit() {
        let refusal = |settings: &[(&str, &str)]| {
            let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, Setting::Text(v))).collect();
            crate::build("rio", &settings, Rate(1_000_000)).unwrap_err().to_string()
        };
        let bytes = refusal(&[("in_min_th", "3kB")]);
        assert_eq!(bytes, "in_min_th: 3kB is in another unit than max_th (15p)");
        let crossed = [("in_min_th", "9p"), ("in_max_th", "8p")];
        assert_eq!(refusal(&crossed), "in_max_th: 8p is not above in_min_th (9p)");
        assert!(refusal(&[("variant", "linux")]).starts_with("variant: "));
    }
}
