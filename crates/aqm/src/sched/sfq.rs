//! SFQ: stochastic fairness queueing.
//!
//! **Source** P. McKenney, "Stochastic Fairness Queueing", INFOCOM 1990; quanta in bytes, limits
//! and names as in Linux tc-sfq(8).
//!
//! **Decides** on departure; on arrival if the buffer is full.
//!
//! **Measures** the packets of each hash queue.
//!
//! **Symbols** `flows` is the number of hash queues, `perturb` the interval between changes of the
//! hash.
//!
//! **Algorithm** Flows are hashed to queues, and the queues are served in turn, `quantum` bytes
//! each. On overflow the longest queue drops a packet.
//!
//! **Departures** Quanta are in bytes, not packets. When the hash changes, packets move to their
//! new queues and keep the order within each flow. No packet is dropped, so a queue may exceed
//! `depth` until it has sent. `perturb` counts from the first arrival. Of equally long queues the
//! one that is next in turn drops a packet.
//!
//! **Linux** With `variant = "linux"`, as `sch_sfq`: (1) Of equally long queues the one whose
//! length changed last drops a packet; if all have one packet, the one that is next in turn.
//!
//! **Cost** 45256 bytes of state: 44 per queue. O(1) per packet; an overflow examines every busy
//! queue, a change of the hash every packet.

use crate::build::{Build, Env};
use crate::cast;
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::{Fifo, Pool};
use crate::packet::Packet;
use crate::params::Checked;
use crate::qdisc::{Backlog, Qdisc};
use crate::random::mix;
use crate::sched::{drr::idle_rounds, fair::End};
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Size, Span, Time};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry =
    QdiscEntry::new::<Sfq>("sfq", "stochastic fairness queueing: round robin over hashed queues")
        .decides("on departure: the next queue; on overflow: drops from the longest queue")
        .source("McKenney, INFOCOM 1990");

crate::choice! {
    /// Rule for the queue that drops on overflow, if several are equally long.
    pub enum Variant {
        /// Next in turn.
        Paper = "paper",
        /// Last change of its length, as on Linux.
        Linux = "linux",
    }
}

crate::params! {
    /// Parameters of [`Sfq`].
    pub struct SfqParams {
        /// Buffer size of all queues together, packets.
        limit: Size = Size::Packets(127),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", ["buffer"];
        /// Largest number of packets in one queue.
        depth: u64 = 127, [1 => 1_000_000_000], "", [];
        /// Bytes that a queue may send per round.
        quantum: Bytes = Bytes(1500), [Bytes(64) => Bytes(1_000_000_000)], "", [];
        /// Number of hash queues.
        flows: u64 = 1024, [1 => 1_048_576], "", ["divisor", "buckets"];
        /// Time between two changes of the hash; 0s for none.
        perturb: Span = Span::ZERO, [Span::ZERO => Span::s(86_400)], "", [];
        /// End of the longest queue at which it drops on overflow.
        drop: End = End::Tail, [], "", [];
        /// Rule for the queue that drops on overflow, if several are equally long.
        variant: Variant = Variant::Paper, [], "", [];
    }
}

#[derive(Clone, Debug, Default, Snapshot)]
struct Queue {
    fifo: Fifo,
    /// Rest of its quantum, bytes; at or below zero the turn is over.
    allot: i64,
    /// Number of the last change of its length.
    changed: u64,
}

/// The SFQ discipline.
#[derive(Clone, Debug, Snapshot)]
pub struct Sfq {
    params: SfqParams,
    queues: Vec<Queue>,
    pool: Pool,
    /// Busy queues, in the order of service.
    active: VecDeque<u32>,
    backlog: Backlog,
    /// Number of changes of the length of a queue.
    changes: u64,
    salt: u64,
    /// Time of the next change of the hash; never before the first arrival.
    perturb_next: Time,
}

impl Build for Sfq {
    type Params = SfqParams;

    fn new(params: Checked<'_, SfqParams>, env: &Env) -> Result<Self> {
        let n = cast::index(params.flows);
        Ok(Sfq {
            params: (*params).clone(),
            queues: vec![Queue::default(); n],
            pool: Pool::default(),
            active: VecDeque::with_capacity(n),
            backlog: Backlog::default(),
            changes: 0,
            salt: 0,
            perturb_next: env.first_update.unwrap_or(Time::NEVER),
        })
    }
}

impl Sfq {
    fn slot(&self, packet: &Packet) -> u32 {
        let hash = u64::from(packet.hash);
        // Before the first change, the hash of the packet is used unchanged.
        let hash = if self.salt == 0 { hash } else { mix(hash ^ self.salt) };
        cast::low32(hash % self.queues.len() as u64)
    }

    /// Records a change of the length of queue `i`.
    fn change(&mut self, i: u32) {
        self.changes += 1;
        self.queues[i as usize].changed = self.changes;
    }

    /// Returns the turn of the queue that drops a packet on overflow.
    fn payer(&self) -> usize {
        let key = |i: &u32| {
            let Queue { fifo, changed, .. } = &self.queues[*i as usize];
            let tie = if self.params.variant == Variant::Linux && fifo.packets() > 1 {
                *changed
            } else {
                0
            };
            (fifo.packets(), tie)
        };
        // Of equal ones the first in turn.
        let longest = self.active.iter().enumerate().rev().max_by_key(|(_, i)| key(i));
        longest.expect("a full buffer has packets").0
    }

    fn push(&mut self, packet: Packet) {
        let i = self.slot(&packet);
        let queue = &mut self.queues[i as usize];
        if queue.fifo.is_empty() {
            queue.allot = self.params.quantum.0.cast_signed();
            self.active.push_back(i);
        }
        queue.fifo.push(&mut self.pool, packet);
        self.change(i);
    }

    /// Changes the hash if it is due, and moves every packet to its new queue.
    fn perturb(&mut self, context: &mut Context<'_>) {
        if self.params.perturb == Span::ZERO || context.now < self.perturb_next {
            return;
        }
        self.perturb_next = context.now + self.params.perturb;
        self.salt = 1 + u64::from(context.rng.below(u32::MAX));
        let mut moved = Fifo::default();
        while let Some(i) = self.active.pop_front() {
            while let Some(p) = self.queues[i as usize].fifo.pop(&mut self.pool) {
                moved.push(&mut self.pool, p);
            }
        }
        while let Some(p) = moved.pop(&mut self.pool) {
            self.push(p);
        }
    }

    /// Credits the rounds in which no queue can send.
    fn skip(&mut self) {
        let Sfq { params, queues, active, .. } = self;
        let short = active.iter().map(|i| (1 - queues[*i as usize].allot).max(0).cast_unsigned());
        let credit = idle_rounds(short.map(|s| (s, params.quantum.0))) * params.quantum.0;
        active.iter().for_each(|i| queues[*i as usize].allot += credit.cast_signed());
    }

    /// Drops one packet of the `turn`-th busy queue.
    fn lose(&mut self, context: &mut Context<'_>, turn: usize) {
        let i = self.active[turn];
        let fifo = &mut self.queues[i as usize].fifo;
        let victim = match self.params.drop {
            End::Head => fifo.pop(&mut self.pool),
            End::Tail => fifo.pop_back(&mut self.pool),
        };
        if fifo.is_empty() {
            self.active.remove(turn);
        }
        self.change(i);
        let victim = victim.expect("a busy queue has packets");
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(victim.len);
        context.drop(victim, DropReason::Full);
    }
}

impl Qdisc for Sfq {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.enqueue_behind(context, packet, Backlog::default());
    }

    fn enqueue_behind(&mut self, context: &mut Context<'_>, packet: Packet, ahead: Backlog) {
        context.check_arrival(&packet);
        if self.perturb_next == Time::NEVER {
            self.perturb_next = context.now + self.params.perturb;
        }
        self.perturb(context);
        if crate::aqm::exceeds(self.params.limit, &packet) {
            return context.drop(packet, DropReason::Full);
        }
        let i = self.slot(&packet);
        let deep = u64::from(self.queues[i as usize].fifo.packets()) >= self.params.depth;
        if deep && self.params.drop == End::Tail {
            return context.drop(packet, DropReason::Full);
        }
        let changed = self.queues[i as usize].changed;
        self.push(packet);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.len);
        if deep {
            // Determined only now, so that a queue of one packet keeps its turn.
            let turn = self.active.iter().position(|a| *a == i).expect("a deep queue is busy");
            self.lose(context, turn);
            self.queues[i as usize].changed = changed; // one in, one out
        }
        while !(self.backlog + ahead).is_within(self.params.limit) {
            self.lose(context, self.payer());
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.perturb(context);
        let mut turns = 0;
        loop {
            let i = *self.active.front()?;
            let queue = &mut self.queues[i as usize];
            if queue.allot <= 0 {
                queue.allot += self.params.quantum.0.cast_signed();
                self.active.rotate_left(1);
                turns += 1;
                if turns == self.active.len() {
                    self.skip(); // bounded: in the following two rounds a queue can send
                }
                continue;
            }
            let packet = queue.fifo.pop(&mut self.pool)?;
            queue.allot -= i64::from(packet.len);
            if queue.fifo.is_empty() {
                self.active.pop_front();
            }
            self.change(i);
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(packet.len);
            return Some(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.queues) + self.active.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn queues_take_turns_and_newcomers_join_the_end() {
        let mut q = Bench::new("sfq", &[("quantum", "1000B")]);
        for (flow, body) in [(1, 10), (1, 11), (1, 12), (2, 20), (2, 21), (3, 30)] {
            q.put_flow(flow, body, 1000);
        }
        assert_eq!((q.get().0, q.bytes()), (Some(10), 5000));
        assert_eq!(q.drain(), [20, 30, 11, 21, 12]);
    }

    #[test]
    fn the_longest_queue_loses_and_depth_bounds_each() {
        let mut q = Bench::new("sfq", &[("limit", "4p")]);
        (0..3).for_each(|i| drop(q.put_flow(1, i, 100)));
        q.put_flow(2, 20, 100);
        assert_eq!(q.put_flow(2, 21, 100), [2]);
        assert_eq!(q.bytes(), 400);
        let mut q = Bench::new("sfq", &[("depth", "2")]);
        assert_eq!((0..4).flat_map(|i| q.put(i, 100)).collect::<Vec<_>>(), [2, 3]);
        let mut q = Bench::new("sfq", &[("depth", "2"), ("drop", "head")]);
        assert_eq!((0..4).flat_map(|i| q.put(i, 100)).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn of_equally_long_queues_the_next_in_turn_loses_and_on_linux_the_last_changed() {
        for (variant, of_two, of_one) in [("paper", 11, 10), ("linux", 21, 10)] {
            let mut q = Bench::new("sfq", &[("limit", "4p"), ("variant", variant)]);
            for (flow, body) in [(1, 10), (1, 11), (2, 20), (2, 21)] {
                assert_eq!(q.put_flow(flow, body, 100), []);
            }
            assert_eq!(q.put_flow(3, 30, 100), [of_two], "{variant}");
            let mut q = Bench::new("sfq", &[("limit", "2p"), ("variant", variant)]);
            [(1, 10), (2, 20)].into_iter().for_each(|(flow, i)| drop(q.put_flow(flow, i, 100)));
            assert_eq!(q.put_flow(3, 30, 100), [of_one], "{variant}");
        }
    }

    #[test]
    fn a_queue_of_one_packet_keeps_its_turn_when_it_loses_its_head() {
        let mut q = Bench::new("sfq", &[("depth", "1"), ("drop", "head")]);
        q.put_flow(1, 10, 100);
        q.put_flow(2, 20, 100);
        assert_eq!(q.put_flow(1, 11, 100), [10]);
        assert_eq!(q.drain(), [11, 20]);
    }

    #[test]
    fn a_new_hash_parts_flows_that_collided_and_keeps_their_order() {
        let mut q = Bench::new("sfq", &[("flows", "64"), ("perturb", "10s"), ("quantum", "100B")]);
        (0..4).for_each(|i| drop(q.put_flow(1, 10 + i, 100)));
        (0..4).for_each(|i| drop(q.put_flow(65, 20 + i, 100)));
        q.at_ms(9_999);
        assert_eq!([q.get().0, q.get().0], [Some(10), Some(11)], "one queue, as they came");
        q.at_ms(10_000);
        let rest = q.drain();
        assert_eq!(rest, [12, 20, 13, 21, 22, 23], "two queues in turn, each in order");
    }

    #[test]
    fn a_new_hash_maps_different_hashes_to_different_numbers() {
        // The 100 flows use the last 7 bits of the hash alone.
        let settings = [("flows", "1048576"), ("limit", "1000p"), ("perturb", "10s")];
        let mut q = Bench::new("sfq", &[&settings[..], &[("quantum", "100B")]].concat());
        q.put_flow(0, 0, 100);
        q.get();
        q.at_ms(10_000);
        for body in [0, 100] {
            (0..100).for_each(|flow| drop(q.put_flow(flow, body + flow, 100)));
        }
        assert_eq!(q.drain(), (0..200).collect::<Vec<_>>(), "each flow has a queue of its own");
    }

    #[test]
    fn packets_of_many_quanta_cost_no_round_each() {
        // Round by round, each packet of 10^9 bytes would take 15 million rounds.
        let mut q = Bench::new("sfq", &[("quantum", "64B"), ("limit", "3000p"), ("depth", "2000")]);
        for i in 0..1000 {
            q.put_flow(1, i, 1_000_000_000);
            q.put_flow(2, 1000 + 2 * i, 500_000_000);
            q.put_flow(2, 1001 + 2 * i, 500_000_000);
        }
        let sent = q.drain();
        let large = |n: usize| sent[..n].iter().filter(|body| **body < 1000).count();
        assert_eq!([6, 12, 30, 60].map(large), [2, 4, 10, 20], "half of the bytes");
    }

    #[test]
    fn queues_wait_for_whole_turns() {
        // After its first packet, flow 1 waits for one turn more than flow 2.
        let mut q = Bench::new("sfq", &[("quantum", "64B")]);
        for (flow, body, len) in
            [(1, 10, 1_000_000_064), (2, 20, 1_000_000_063), (1, 11, 100), (2, 21, 100)]
        {
            q.put_flow(flow, body, len);
        }
        assert_eq!(q.drain(), [10, 20, 21, 11]);
    }
}
