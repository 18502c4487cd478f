//! CHOKe: choose and keep for responsive flows, choose and kill for unresponsive flows.
//!
//! **Source** R. Pan, B. Prabhakar, K. Psounis, "CHOKe: A Stateless Active Queue Management Scheme
//! for Approximating Fair Bandwidth Allocation", INFOCOM 2000.
//!
//! **Decides** on arrival.
//!
//! **Measures** the average queue, as RED does.
//!
//! **Symbols** as in RED; `candidates` is m.
//!
//! **Algorithm** While the average is above `min_th`, an arrival is compared with `candidates`
//! random packets of the queue. Candidates of the same flow are dropped together with the arrival,
//! so the drop rate of a flow grows with its share of the queue. An arrival without a match is left
//! to RED.
//!
//! **Departures** (1) After a match packets are dropped even if ECN-capable: the purpose is to
//! limit an unresponsive flow, not to notify it. (2) Above `max_th`, RED's `gentle` applies; the
//! paper's value is none.
//!
//! **Linux** With `variant = "linux"`, as `sch_choke`: (1) RED as in Linux; an average equal to a
//! threshold counts as below it. (2) The queue is a table with holes, where packets were dropped
//! after a match. A candidate that is a hole is replaced by another one, at most twice, and then by
//! the head of the queue.
//!
//! **Cost** 248 bytes of state; a random number per candidate, and a walk to it from the nearer end
//! of the queue, which RED keeps short.

use super::{
    Aqm, SingleQueue, Verdict,
    red::{Red, RedParams},
};
use crate::build::Env;
use crate::cast;
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::{Checked, Combined};
use crate::random::Random;
use crate::snapshot::Snapshot;
use crate::units::Time;
use alloc::collections::VecDeque;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Choke>>(
    "choke",
    "RED that drops an arrival and a random queued packet if both are of one flow",
)
.decides("on arrival: drops both packets if a random queued one is of the same flow, else as RED")
.source("Pan, Prabhakar and Psounis, INFOCOM 2000");

crate::params! {
    /// Parameters of [`Choke`], in addition to RED's.
    pub struct ChokeParams {
        /// Number of queued packets with which an arrival is compared.
        candidates: u64 = 1, [1 => 16], "m", [];
    }
}

/// State of CHOKe.
#[derive(Clone, Debug, Snapshot)]
pub struct Choke {
    red: Red,
    candidates: u64,
    /// Linux: the places of the table from the head on, true if a packet is there. The first one
    /// is not a hole.
    table: VecDeque<bool>,
}

impl Choke {
    /// Drops the candidates of the same flow as `packet`; returns true if there were any.
    fn matched(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> bool {
        let mut matched = false;
        for _ in 0..self.candidates {
            if queue.packets() == 0 {
                break;
            }
            let k = match self.red.linux {
                None => context.rng.below(queue.packets()),
                Some(_) => self.drawn(context.rng),
            };
            if queue.get(k).is_some_and(|p| p.flow == packet.flow) {
                let victim = queue.remove(k).expect("it was there just now");
                self.vacate(k);
                context.drop(victim, DropReason::AfterEnqueue);
                matched = true;
            }
        }
        matched
    }
}

impl Choke {
    /// Returns the number of a random packet of the table, counted from the head.
    fn drawn(&self, rng: &mut dyn Random) -> u32 {
        let places = cast::number(self.table.len());
        let mut place = || Some(cast::index(rng.below(places).into())).filter(|i| self.table[*i]);
        let index = place().or_else(&mut place).or_else(&mut place).unwrap_or(0);
        cast::number(self.table.iter().take(index).filter(|there| **there).count())
    }

    /// Makes the place of the `k`-th packet a hole, and removes holes at the head.
    fn vacate(&mut self, k: u32) {
        let mut packets = self.table.iter_mut().filter(|there| **there);
        if let Some(place) = packets.nth(k as usize) {
            *place = false;
        }
        while self.table.front() == Some(&false) {
            self.table.pop_front();
        }
    }
}

impl Aqm for Choke {
    type Params = Combined<ChokeParams, RedParams>;

    fn new(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self> {
        let mut red = Red::build(&params.inner, env)?;
        if let Some(linux) = &mut red.linux {
            linux.at_counts_below = true;
        }
        Ok(Choke { red, candidates: params.outer.candidates, table: VecDeque::new() })
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        self.red.average(context.now, queue);
        if self.red.avg > self.red.min_th && self.matched(context, queue, packet) {
            return Verdict::Drop;
        }
        self.red.decide(context, packet)
    }

    fn on_overflow(&mut self, now: Time) {
        self.red.on_overflow(now);
    }

    fn on_evict(&mut self, packets: u32) {
        (0..packets).for_each(|_| self.vacate(0));
    }

    fn after_enqueue(&mut self, _packet: &Packet) {
        if self.red.linux.is_some() {
            self.table.push_back(true);
        }
    }

    fn sends_head(&self) -> bool {
        true
    }

    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        let packet = self.red.on_dequeue(context, queue, ecn);
        if packet.is_some() {
            self.vacate(0);
        }
        packet
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + self.red.beyond() + self.table.capacity()
    }

    fn on_idle(&mut self, now: Time) {
        self.red.on_idle(now);
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.red.inspect(visit);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// The average equals the queue, and RED alone drops nothing below 1000 packets. Nine packets
    /// are queued, numbered from 0, the first `own` of them of flow 1; the tenth is the first to be
    /// compared.
    fn nine(own: u32, more: &[(&str, &str)], seed: u64) -> Bench {
        let red = [("w_q", "1"), ("min_th", "8p"), ("max_th", "1000p"), ("max_p", "0")];
        let mut q = Bench::seeded("choke", &[&red[..], more].concat(), seed);
        for i in 0..9 {
            assert!(q.put_flow(if i < own { 1 } else { 2 + i }, i, 100).is_empty());
        }
        q
    }

    #[test]
    fn a_match_drops_both_packets_other_flows_pass() {
        let mut q = nine(9, &[], 1);
        assert_eq!(q.gauge("count"), 0.0, "the ninth found the average at min_th, not above");
        assert!(q.put_flow(2, 9, 100).is_empty());
        assert_eq!(q.gauge("count"), 1.0);
        let mut q = nine(9, &[], 1);
        let dropped = q.put_flow(1, 9, 100);
        assert!(dropped.len() == 2 && dropped[0] < 9 && dropped[1] == 9, "{dropped:?}");
        assert_eq!(q.gauge("count"), 0.0, "a match is not one of RED's packets");
        let left = q.drain();
        assert!(left.len() == 8 && left.is_sorted() && !left.contains(&dropped[0]));
    }

    #[test]
    fn idle_time_decays_the_average_as_that_of_red() {
        let settings = [("w_q", "0.5"), ("packet", "1000B"), ("min_th", "8p"), ("max_th", "9p")];
        let mut q = Bench::new("choke", &settings);
        (0..3).for_each(|i| drop(q.put(i, 1000)));
        assert_eq!(q.gauge("avg"), 1.25, "0, then half of 1, and half of that and of 2");
        q.drain();
        q.at_ms(2);
        q.put(3, 1000);
        assert_eq!(q.gauge("avg"), 1.25 / 8.0, "two packets of 1 ms, and this one");
    }

    #[test]
    fn a_match_is_as_likely_as_the_share_of_the_queue() {
        // With 6 of 9 packets its own, a flow's packet survives m candidates with (1/3)^m.
        for (m, survival) in [("1", 1.0 / 3.0), ("2", 1.0 / 9.0)] {
            let passes = |seed| nine(6, &[("candidates", m)], seed).put_flow(1, 9, 100).is_empty();
            let passed = (0..4000).filter(|seed| passes(*seed)).count();
            // Three standard errors are at most 0.023.
            assert!((passed as f64 / 4000.0 - survival).abs() < 0.023, "{m}: {passed}");
        }
    }

    #[test]
    fn every_candidate_that_matches_is_dropped_and_the_arrival_once() {
        let mut q = nine(9, &[("candidates", "3")], 1);
        let dropped = q.put_flow(1, 9, 100);
        assert!(dropped.len() == 4 && dropped[3] == 9, "{dropped:?}");
        assert_eq!(q.drain().len(), 6);
        let mut q = nine(9, &[("candidates", "16")], 1);
        assert_eq!(q.put_flow(1, 9, 100).len(), 10, "no packet is left to be drawn");
    }

    #[test]
    fn a_tail_drop_restarts_the_count_of_red() {
        let mut q = nine(9, &[("limit", "10p")], 1);
        assert!(q.put_flow(2, 9, 100).is_empty());
        assert_eq!(q.gauge("count"), 1.0);
        assert_eq!(q.put_flow(3, 10, 100), [10], "the buffer is full");
        assert_eq!(q.gauge("count"), 0.0);
    }

    #[test]
    fn a_match_is_dropped_even_where_ecn_marks() {
        let mut q = nine(9, &[("ecn", "true")], 1);
        q.ect();
        assert_eq!(q.put_flow(1, 9, 100).len(), 2);
        assert_eq!(q.marked(), 0);
    }

    #[test]
    fn on_linux_a_hole_is_drawn_again_twice_and_then_gives_the_head() {
        use super::*;
        struct Script(Vec<u32>);
        impl Random for Script {
            fn uniform(&mut self) -> f64 {
                0.5
            }
            fn below(&mut self, n: u32) -> u32 {
                assert_eq!(n, 4, "holes count");
                self.0.remove(0)
            }
        }
        let settings = [("variant", crate::Setting::Text("linux"))];
        let mut params = <Choke as Aqm>::Params::default();
        settings.iter().for_each(|(k, v)| crate::params::Params::set(&mut params, k, *v).unwrap());
        let mut choke = Choke::build(&params, &Env::new(crate::Rate(8_000_000))).unwrap();
        (0..4).for_each(|_| choke.after_enqueue(&Packet::default()));
        choke.vacate(1);
        let drawn = |places: &[u32]| choke.drawn(&mut Script(places.to_vec()));
        assert_eq!(drawn(&[0]), 0);
        assert_eq!(drawn(&[2]), 1);
        assert_eq!(drawn(&[1, 1, 3]), 2);
        assert_eq!(drawn(&[1, 1, 1]), 0);
        choke.vacate(0);
        assert_eq!(choke.table, [true, true], "no hole is left at the head");
    }

    #[test]
    fn on_linux_a_match_drops_both_packets_and_departures_keep_the_table() {
        let linux = [("variant", "linux"), ("w_q", "0.5"), ("min_th", "1p"), ("limit", "50p")];
        let mut q = Bench::new("choke", &[&linux[..], &[("max_th", "1000p")]].concat());
        let mut dropped = vec![];
        for i in 0..200 {
            dropped.extend(q.put_flow(i % 2, i, 100));
            if i % 4 == 3 {
                q.get();
            }
        }
        assert!(dropped.len() > 50, "{}", dropped.len());
        let sent = q.drain();
        assert!(sent.is_sorted() && sent.iter().all(|body| !dropped.contains(body)));
    }
}
