//! AVQ: adaptive virtual queue.
//!
//! **Source** S. Kunniyur, R. Srikant, "Analysis and Design of an Adaptive Virtual Queue (AVQ)
//! Algorithm for Active Queue Management", SIGCOMM 2001.
//!
//! **Decides** on arrival, without random numbers.
//!
//! **Measures** a virtual queue, in the unit of the buffer: bytes, or packets of `packet` bytes.
//!
//! **Symbols** `C` link capacity, `C_tilde` virtual capacity, `VQ` virtual queue, `alpha` and
//! `gamma` as in the paper; `buflim` is the virtual buffer as a share of the real one.
//!
//! **Algorithm** The virtual queue has the same arrivals but drains at `C_tilde`. An arrival that
//! does not fit into it is dropped (or marked) and does not join it. `C_tilde` grows at `alpha
//! gamma C` and falls by `alpha` times the arrivals, so that the utilisation of the link settles at
//! `gamma`.
//!
//! **Departures** (1) A dropped packet does not change `C_tilde`: the admitted rate is regulated,
//! as in ns-2, and the time before the drop counts at the next admitted packet. A marked packet
//! does change it. Time starts with the first arrival. (2) `C_tilde` is kept in bounds after both
//! steps, in the paper after the first only. (3) It never falls below 1 % of `C`: at 0, with a full
//! virtual queue, no packet could ever be admitted again.
//!
//! **Cost** 144 bytes of state, no random numbers, two multiplications per arrival.

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Time};
use alloc::format;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Avq>>(
    "avq",
    "adaptive virtual queue: drops or marks the packets that a slower link would drop",
)
.aliases(&["vq"])
.decides("on arrival, deterministic: drops if a virtual queue of adaptive capacity is full")
.source("Kunniyur and Srikant, SIGCOMM 2001");

crate::params! {
    /// Parameters of [`Avq`].
    pub struct AvqParams {
        /// Target utilisation.
        gamma: f64 = 0.98, [0.05 => 1.0], "gamma", [];
        /// Speed at which the virtual capacity adapts.
        alpha: f64 = 0.15, [0.0 => 10.0], "alpha", [];
        /// Virtual buffer as a share of the real one.
        buflim: f64 = 1.0, [0.001 => 1000.0], "B", ["virtual_buffer"];
        /// Initial virtual capacity as a share of the link's capacity.
        ecnlim: f64 = 0.8, [0.01 => 1.0], "C_tilde", ["virtual_capacity"];
        /// Mean packet size, which converts bytes to packets if the buffer counts packets.
        packet: Bytes = Bytes(1000),
            [Bytes(1) => Bytes(1_000_000)], "s", ["mean_packet", "mean_pktsize"];
    }
}

/// Smallest virtual capacity as a share of the link's.
const LEAST: f64 = 0.01;

/// State of AVQ; capacities in bytes or packets per second.
#[derive(Clone, Debug, Snapshot)]
pub struct Avq {
    alpha: f64,
    gamma: f64,
    /// True if bytes are counted.
    in_bytes: bool,
    /// True if packets may be marked.
    ecn: bool,
    /// Virtual buffer, bytes or packets.
    buffer: f64,
    /// Capacity of the link.
    c: f64,
    /// Virtual capacity.
    c_tilde: f64,
    /// Virtual queue, bytes or packets.
    vq: f64,
    /// Time of the last arrival.
    last: Time,
    /// Time of the last arrival that AVQ did not drop, initially of the first arrival.
    adapted: Option<Time>,
}

impl Aqm for Avq {
    type Params = AvqParams;

    fn new(params: Checked<'_, AvqParams>, env: &Env) -> Result<Self> {
        let AvqParams { gamma, alpha, buflim, ecnlim, packet } = *params;
        let in_bytes = env.limit.in_bytes();
        let buffer = buflim * env.limit.number() as f64;
        if buffer < 1.0 {
            let text = format!("{buflim} of {} leaves no virtual buffer", env.limit);
            return Err(Error::new(text).at("buflim"));
        }
        let c = env.rate.packets_per_sec(if in_bytes { Bytes(1) } else { packet });
        let (ecn, c_tilde, vq) = (env.ecn, ecnlim * c, 0.0);
        let (last, adapted) = (Time::ZERO, None);
        Ok(Avq { alpha, gamma, in_bytes, ecn, buffer, c, c_tilde, vq, last, adapted })
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        _line: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        let b = if self.in_bytes { f64::from(packet.len) } else { 1.0 };
        self.vq = (self.vq - self.c_tilde * context.now.since(self.last).as_secs()).max(0.0);
        self.last = context.now;
        let adapted = *self.adapted.get_or_insert(context.now);
        let verdict = if self.vq + b > self.buffer {
            Verdict::Mark
        } else {
            self.vq += b;
            Verdict::Pass
        };
        if verdict == Verdict::Pass || (self.ecn && packet.ecn.capable()) {
            let credit = self.gamma * self.c * context.now.since(adapted).as_secs();
            let c_tilde = self.c_tilde + self.alpha * (credit - b);
            self.c_tilde = c_tilde.clamp(LEAST * self.c, self.c);
            self.adapted = Some(context.now);
        }
        verdict
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("vq", self.vq);
        // Virtual capacity, bytes or packets per second.
        visit("c_tilde", self.c_tilde);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    // The bench sends 1000 packets of 1000 bytes per second.
    const BASE: [(&str, &str); 3] = [("limit", "10p"), ("gamma", "0.9"), ("alpha", "0.5")];

    fn near(x: f64, y: f64) -> bool {
        (x - y).abs() < 1e-9
    }

    #[test]
    fn capacity_and_queue_by_hand() {
        let mut q = Bench::new("avq", &BASE);
        q.at_ms(4);
        q.put(0, 1000);
        // No credit for the time before the first arrival: 800 - 0.5.
        assert!(near(q.gauge("vq"), 1.0) && near(q.gauge("c_tilde"), 799.5));
        q.put(1, 1000);
        assert!(near(q.gauge("vq"), 2.0) && near(q.gauge("c_tilde"), 799.0));
        q.at_ms(9);
        q.put(2, 1000);
        // 2 left in these 5 ms, 3.995 could have; 799 + 0.5 (0.9 * 1000 * 0.005 - 1).
        assert!(near(q.gauge("vq"), 1.0) && near(q.gauge("c_tilde"), 800.75));
    }

    #[test]
    fn a_dropped_packet_counts_for_nothing_and_a_marked_one_adapts() {
        let full = |q: &mut Bench| {
            // Ten fill the virtual queue; they leave the real one at once.
            (0..10).for_each(|i| assert!(q.put(i, 1000).is_empty()));
            q.drain();
            assert!(near(q.gauge("c_tilde"), 795.0));
            q.at_ms(1);
            q.put(10, 1000)
        };
        let mut q = Bench::new("avq", &BASE);
        assert_eq!(full(&mut q), [10]);
        assert!(near(q.gauge("vq"), 9.205) && near(q.gauge("c_tilde"), 795.0));
        // At 2 ms there is room, and the credit of two milliseconds is 0.5 (1.8 - 1).
        q.at_ms(2);
        assert!(q.put(11, 1000).is_empty());
        assert!(near(q.gauge("vq"), 9.41) && near(q.gauge("c_tilde"), 795.4));

        let with_ecn = [&BASE[..], &[("ecn", "true")]].concat();
        for (settings, ect) in [(&BASE[..], true), (&with_ecn, false)] {
            let mut q = Bench::new("avq", settings);
            if ect {
                q.ect();
            }
            assert_eq!(full(&mut q), [10], "it can be marked only if both sides use ECN");
            assert!(near(q.gauge("c_tilde"), 795.0));
        }

        let mut q = Bench::new("avq", &with_ecn);
        q.ect();
        assert_eq!(full(&mut q), []);
        assert_eq!(q.marked(), 1);
        assert!(near(q.gauge("vq"), 9.205), "a marked packet does not join the virtual queue");
        assert!(near(q.gauge("c_tilde"), 795.0 + 0.5 * (0.9 - 1.0)));
    }

    #[test]
    fn a_limit_in_bytes_counts_bytes() {
        let mut q = Bench::new("avq", &[("limit", "10kB"), ("buflim", "0.25"), ("alpha", "0")]);
        assert!(q.put(0, 1500).is_empty() && q.put(1, 1000).is_empty());
        assert_eq!(q.put(2, 1), [2], "2500 bytes of 2500");
        q.at_ms(1);
        // 800,000 bytes per second: 800 have left.
        assert!(q.put(3, 800).is_empty());
        assert_eq!(q.put(4, 1), [4]);
    }

    #[test]
    fn capacity_stays_within_its_bounds() {
        let mut q = Bench::new("avq", &[("limit", "1000p"), ("alpha", "10")]);
        (0..1000).for_each(|i| drop(q.put(i, 1000)));
        assert_eq!(q.gauge("c_tilde"), 10.0);
        assert_eq!(q.put(1000, 1000), [1000]);
        // One hundredth of the link's capacity is enough to drain it.
        q.drain();
        q.at_ms(86_400_000);
        assert!(q.put(1001, 1000).is_empty());
        assert_eq!((q.gauge("vq"), q.gauge("c_tilde")), (1.0, 1000.0));
    }

    #[test]
    fn no_room_at_all_is_refused() {
        let settings = [("limit", "2p"), ("buflim", "0.4")];
        let settings = settings.map(|(k, v)| (k, crate::Setting::Text(v)));
        let refusal = crate::build("avq", &settings, crate::Rate(1_000_000)).unwrap_err();
        assert!(refusal.to_string().starts_with("buflim: 0.4 of 2p"));
        Bench::new("avq", &[("limit", "2p"), ("buflim", "0.5")]); // one packet
    }
}
