//! FRED: flow random early drop.
//!
//! **Source** D. Lin, R. Morris, "Dynamics of Random Early Detection", SIGCOMM 1997.
//!
//! **Decides** on arrival.
//!
//! **Measures** the average queue, also at departures, and the queued packets of each active flow.
//!
//! **Symbols** as in RED; `minq`, `maxq`, `avgcq`, `qlen`, `strike`, `nactive`.
//!
//! **Algorithm** A flow with fewer than `minq` packets and fewer than the mean flow is exempt from
//! RED's drops. An arrival of a flow with `maxq` packets (`min_th`; 2 while the average is above
//! `max_th`) is dropped, and the flow gets a strike. With more than one strike it may not exceed
//! the mean flow.
//!
//! **Departures** (1) RED's own drops can be marks; drops of flows with too many packets cannot.
//! (2) Above `max_th`, RED's `gentle` applies; the paper's value is none. (3) `maxq` is never less
//! than `minq`. (4) Flow i has account i modulo `flows`: with more flows, two share an account, and
//! none is evicted. (5) With thresholds in bytes, flows are measured in bytes, and a packet counts
//! as one of the mean size.
//!
//! **Cost** 16640 bytes of state: 16 per account; O(1) per packet, at most one random number.

use super::{
    Aqm, SingleQueue, Verdict,
    red::{Red, RedParams, not_in_linux},
};
use crate::build::Env;
use crate::cast;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::{Checked, Combined};
use crate::snapshot::Snapshot;
use crate::units::Time;
use alloc::vec;
use alloc::vec::Vec;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Fred>>(
    "fred",
    "RED with an account per active flow",
)
.decides("on arrival: as RED, except that flows with few packets are exempt, with many are dropped")
.source("Lin and Morris, SIGCOMM 1997");

crate::params! {
    /// Parameters of [`Fred`], in addition to RED's.
    pub struct FredParams {
        /// Number of packets that every flow may queue; 4 for large buffers.
        minq: u64 = 2, [1 => 1_000_000], "minq", ["min_q"];
        /// Number of accounts; flow i has account i modulo this number.
        flows: u64 = 1024, [1 => 1_048_576], "", [];
    }
}

/// Account of an active flow.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct Account {
    /// Its packets and bytes in the queue.
    packets: u32,
    bytes: u64,
    /// Number of times it exceeded maxq.
    strike: u32,
}

/// State of FRED.
#[derive(Clone, Debug, Snapshot)]
pub struct Fred {
    red: Red,
    accounts: Vec<Account>,
    /// One packet, in the unit of the average.
    unit: f64,
    minq: f64,
    /// Number of accounts with packets in the queue.
    nactive: u32,
}

impl Fred {
    fn account(&mut self, packet: &Packet) -> &mut Account {
        let i = packet.flow as usize % self.accounts.len();
        &mut self.accounts[i]
    }

    /// Mean queue per active flow.
    fn avgcq(&self) -> f64 {
        (self.red.avg / f64::from(self.nactive.max(1))).max(self.unit)
    }

    fn qlen(&self, account: Account) -> f64 {
        if self.red.in_bytes { account.bytes as f64 } else { f64::from(account.packets) }
    }

    /// True if the next packet of the flow must be dropped.
    fn greedy(&self, account: Account) -> bool {
        let Red { avg, min_th, max_th, .. } = self.red;
        let (qlen, avgcq) = (self.qlen(account), self.avgcq());
        let maxq = if avg >= max_th { 2.0 * self.unit } else { min_th };
        qlen >= maxq.max(self.minq)
            || (avg >= max_th && qlen > 2.0 * avgcq)
            || (qlen >= avgcq && account.strike > 1)
    }

    fn decide(&mut self, context: &mut Context<'_>, packet: &Packet) -> Verdict {
        let account = *self.account(packet);
        if self.greedy(account) {
            let account = self.account(packet);
            account.strike = account.strike.saturating_add(1);
            return Verdict::Drop;
        }
        let fragile = self.qlen(account) < self.minq.max(self.avgcq());
        if fragile && (self.red.min_th..self.red.max_th).contains(&self.red.avg) {
            self.red.count += 1;
            self.red.count_bytes += u64::from(packet.len);
            return Verdict::Pass;
        }
        self.red.decide(context, packet)
    }
}

impl Aqm for Fred {
    type Params = Combined<FredParams, RedParams>;

    fn new(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self> {
        not_in_linux(&params.inner, "fred")?;
        let FredParams { minq, flows } = params.outer;
        let red = Red::build(&params.inner, env)?;
        let unit = if red.in_bytes { red.packet as f64 } else { 1.0 };
        Ok(Fred {
            accounts: vec![Account::default(); cast::index(flows)],
            unit,
            minq: minq as f64 * unit,
            nactive: 0,
            red,
        })
    }

    // A dropped arrival does not change the average, unless it ends an idle time.
    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        let empty = queue.packets() == 0;
        if empty {
            self.red.average(context.now, queue);
        }
        let verdict = self.decide(context, packet);
        if verdict == Verdict::Pass && !empty {
            self.red.average(context.now, queue);
        }
        verdict
    }

    fn after_enqueue(&mut self, packet: &Packet) {
        let account = self.account(packet);
        account.packets += 1;
        account.bytes += u64::from(packet.len);
        self.nactive += u32::from(account.packets == 1);
    }

    fn on_overflow(&mut self, now: Time) {
        self.red.on_overflow(now);
    }

    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        let packet = self.red.on_dequeue(context, queue, ecn)?;
        self.red.average(context.now, queue);
        let account = self.account(&packet);
        account.packets -= 1;
        account.bytes -= u64::from(packet.len);
        if account.packets == 0 {
            *account = Account::default();
            self.nactive -= 1;
        }
        Some(packet)
    }

    fn on_idle(&mut self, now: Time) {
        self.red.on_idle(now);
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.red.inspect(visit);
        // Mean queue of the active flows, packets or bytes.
        visit("avgcq", self.avgcq());
        visit("nactive", f64::from(self.nactive));
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.accounts)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// The average is the queue that the last admitted packet found, or that the last departure
    /// left.
    const NOW: (&str, &str) = ("w_q", "1");

    #[test]
    fn a_flow_holds_at_most_maxq_and_pays_for_wanting_more() {
        let settings = [NOW, ("min_th", "3p"), ("max_th", "100p"), ("max_p", "0")];
        for (too_many, dropped) in [(1, vec![]), (2, vec![9])] {
            let mut q = Bench::new("fred", &settings);
            assert!((0..3).all(|i| q.put_flow(1, i, 100).is_empty()));
            assert!((0..too_many).all(|i| q.put_flow(1, i, 100) == [i]), "it has min_th packets");
            assert_eq!(q.gauge("avg"), 2.0, "a dropped arrival does not change the average");
            q.get();
            // Flow 1 holds 2, as much as the mean flow; with more than one strike that is too much.
            assert_eq!(q.gauge("avgcq"), 2.0);
            assert_eq!(q.put_flow(1, 9, 100), dropped);
            // The account of a flow is reset when its queue becomes empty.
            q.drain();
            assert!((0..3).all(|i| q.put_flow(1, i, 100).is_empty()));
        }
    }

    #[test]
    fn fragile_flows_are_spared_what_robust_ones_lose() {
        let band = [("min_th", "8p"), ("max_th", "10p"), ("max_p", "1"), ("wait", "bernoulli")];
        let dropped = |flow: u32, seed| {
            let mut q = Bench::seeded("fred", &[&[NOW][..], &band].concat(), seed);
            (0..10).for_each(|i| assert!(q.put_flow(i % 5, i, 100).is_empty()));
            // Five flows of 2 packets, average 9: half way up, and 1.8 per flow.
            assert_eq!((q.gauge("avg"), q.gauge("avgcq")), (9.0, 1.8));
            q.put_flow(flow, 10, 100).len()
        };
        assert_eq!((0..1000).map(|seed| dropped(7, seed)).sum::<usize>(), 0, "it holds none");
        let robust: usize = (0..4000).map(|seed| dropped(1, seed)).sum();
        // Three standard errors of 4000 trials are 95.
        assert!(robust.abs_diff(2000) < 95, "{robust}");
    }

    #[test]
    fn above_max_th_two_packets_are_too_many_and_one_is_reds() {
        let settings = [NOW, ("min_th", "4p"), ("max_th", "6p"), ("max_p", "0"), ("ecn", "true")];
        let mut q = Bench::new("fred", &[&settings[..], &[("minq", "1")]].concat());
        q.ect();
        (0..7).for_each(|i| assert!(q.put_flow(i / 2, i, 100).is_empty()));
        assert_eq!((q.gauge("avg"), q.marked()), (6.0, 0));
        assert_eq!(q.put_flow(1, 7, 100), [7], "a drop: it has two");
        assert_eq!(q.put_flow(3, 8, 100), [], "RED's own is a signal");
        assert_eq!(q.marked(), 1);
    }

    #[test]
    fn accounts_follow_the_queue_and_are_shared_beyond_their_number() {
        let settings = [("limit", "4p"), ("flows", "3"), ("min_th", "100p"), ("max_th", "200p")];
        let mut q = Bench::new("fred", &settings);
        for (flow, nactive) in [(0, 1.0), (1, 2.0), (4, 2.0), (u32::MAX, 2.0), (2, 2.0)] {
            q.put_flow(flow, 0, 100);
            assert_eq!(q.gauge("nactive"), nactive, "flow {flow}");
        }
        q.drain();
        assert_eq!(q.gauge("nactive"), 0.0);
    }

    #[test]
    fn in_bytes_a_packet_is_one_of_the_mean_size() {
        let settings = [NOW, ("min_th", "3kB"), ("max_th", "100kB"), ("packet", "1000B")];
        let mut q = Bench::new("fred", &[&settings[..], &[("max_p", "0")]].concat());
        let dropped: Vec<u32> = (0..40).flat_map(|i| q.put(i, 100)).collect();
        assert_eq!(dropped, (30..40).collect::<Vec<_>>());
    }

    /// Departure (5).
    #[test]
    fn in_bytes_minq_is_counted_in_packets_of_the_mean_size() {
        let settings = [("min_th", "1kB"), ("max_th", "100kB"), ("packet", "1000B")];
        let more = [NOW, ("max_p", "0"), ("minq", "3")];
        let mut q = Bench::new("fred", &[&settings[..], &more].concat());
        let put = |q: &mut Bench, n| (0..n).flat_map(|i| q.put(i, 100)).collect::<Vec<_>>();
        assert_eq!(put(&mut q, 30), []);
        (0..10).for_each(|_| drop(q.get()));
        assert_eq!(put(&mut q, 11), [10], "3000 bytes again");
    }

    #[test]
    fn in_bytes_two_packets_of_the_mean_size_are_allowed_above_max_th() {
        let settings = [("min_th", "1kB"), ("max_th", "2kB"), ("packet", "1000B"), ("minq", "1")];
        let mut q = Bench::new("fred", &[&settings[..], &[NOW, ("ecn", "true")]].concat());
        q.ect();
        (0..27).for_each(|i| assert!(q.put_flow(2 + i % 3, i, 100).is_empty()));
        assert!(q.gauge("avg") >= 2_000.0);
        let dropped: Vec<u32> = (0..21).flat_map(|i| q.put_flow(1, i, 100)).collect();
        assert_eq!(dropped, [20]);
    }

    #[test]
    fn above_max_th_nobody_holds_more_than_twice_the_mean() {
        for (max_th, dropped) in [("12p", vec![9]), ("100p", vec![])] {
            let settings = [NOW, ("min_th", "4p"), ("max_th", max_th), ("max_p", "0")];
            let more = [("minq", "20"), ("ecn", "true")];
            let mut q = Bench::new("fred", &[&settings[..], &more].concat());
            q.ect();
            // Of 12 packets in 3 flows flow 1 has 8: twice the mean.
            for flow in [4, 2, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1] {
                assert!(q.put_flow(flow, 0, 100).is_empty());
            }
            q.get();
            assert_eq!((q.gauge("avg"), q.gauge("avgcq")), (12.0, 4.0));
            assert!(q.put_flow(1, 8, 100).is_empty());
            assert_eq!(q.put_flow(1, 9, 100), dropped, "{max_th}");
        }
    }

    #[test]
    fn spared_packets_bring_the_next_drop_nearer() {
        for byte_mode in ["off", "mean"] {
            let settings = [NOW, ("min_th", "8p"), ("max_th", "28p"), ("max_p", "1")];
            let more = [("packet", "100B"), ("byte_mode", byte_mode)];
            for seed in 0..20 {
                let mut q = Bench::seeded("fred", &[&settings[..], &more].concat(), seed);
                (0..10).for_each(|i| assert!(q.put_flow(i % 5, i, 100).is_empty()));
                (10..16).for_each(|i| assert!(q.put_flow(i, i, 100).is_empty()));
                assert_eq!((q.gauge("avg"), q.gauge("count")), (15.0, 6.0));
                // pb = 7 / 20, and 6 or more packets were not dropped: the next one is.
                assert_eq!(q.put_flow(1, 99, 100), [99], "{byte_mode}");
            }
        }
    }

    #[test]
    fn red_learns_of_overflows_and_idle_times() {
        let settings = [NOW, ("min_th", "1p"), ("max_th", "100p"), ("max_p", "0")];
        let mut q = Bench::new("fred", &[&settings[..], &[("limit", "6p")]].concat());
        (0..6).for_each(|i| assert!(q.put_flow(i, i, 1000).is_empty()));
        assert!(q.gauge("count") > 0.0);
        assert_eq!((q.put_flow(6, 6, 1000), q.gauge("count")), (vec![6], 0.0));
        let mut q = Bench::new("fred", &[("w_q", "0.5")]);
        (0..4).for_each(|i| drop(q.put_flow(i, i, 1000)));
        q.drain();
        let before = q.gauge("avg");
        assert!(before > 0.0);
        q.at_ms(1_000_000);
        q.put_flow(9, 9, 1000);
        assert!(q.gauge("avg") < before / 1e6, "a thousand seconds without a packet");
    }
}
