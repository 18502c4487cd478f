//! DRR: deficit round robin.
//!
//! **Source** M. Shreedhar, G. Varghese, "Efficient Fair Queueing Using Deficit Round Robin",
//! SIGCOMM 1995. **Decides** on departure; on arrival when the shared buffer is full.
//! **Measures** the bytes of each flow. **Symbols** `quantum` is Q, `deficit` is DC.
//! **The law** each turn a flow may send what its deficit counter allows; the counter gains a
//! quantum per turn and is forgotten when the flow runs empty.
//! **Departures** one buffer for all flows; who overflows it loses from the flow with the most
//! bytes (the paper's buffer stealing), at its head or its tail; of equal ones, the nearest to its
//! turn.
//! **Cost** 37032 bytes of state: 36 per flow. O(1) per packet while `quantum` is not below the
//! largest packet, else at most a few looks at every active flow; an overflow looks at each.

use crate::aqm::fits;
use crate::cx::{Cx, Why};
use crate::error::Result;
use crate::fifo::{Fifo, Pool};
use crate::packet::Packet;
use crate::sched::{Backlog, Build, Env, Qdisc};
use crate::units::{Bytes, Size};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

crate::choice! {
    /// Which packet of the longest flow is lost.
    pub enum End {
        /// The one that waited longest, so that its sender hears early.
        Head = "head",
        /// The one that came last.
        Tail = "tail",
    }
}

crate::params! {
    /// Parameters of [`Drr`].
    pub struct DrrParams {
        /// Most that may wait in all flows together, in bytes or packets.
        limit: Size = Size::Packets(1000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", ["buffer"];
        /// Bytes a flow may send per turn.
        quantum: Bytes = Bytes(1500), [Bytes(64) => Bytes(1_000_000_000)], "Q", [];
        /// Queues; flow i has queue i modulo this many.
        flows: u64 = 1024, [1 => 1_048_576], "n", ["buckets"];
        /// Which packet of the longest flow is lost on overflow.
        drop: End = End::Head, [], "", [];
    }
}

#[derive(Clone, Default)]
struct Queue {
    line: Fifo,
    deficit: u64,
}

/// The discipline.
pub struct Drr {
    params: DrrParams,
    queues: Vec<Queue>,
    pool: Pool,
    /// The flows with packets, in the order of their turns; the first one has it.
    active: VecDeque<u32>,
    /// Whether the first one has had its quantum for this turn.
    served: bool,
    backlog: Backlog,
}

impl Build for Drr {
    type Params = DrrParams;

    fn build(params: &DrrParams, _env: &Env) -> Result<Self> {
        let n = params.flows as usize;
        Ok(Drr {
            params: params.clone(),
            queues: vec![Queue::default(); n],
            pool: Pool::default(),
            active: VecDeque::with_capacity(n),
            served: false,
            backlog: Backlog::default(),
        })
    }
}

/// How many whole rounds pass before the first of some queues has made up what it is `short` of,
/// where each gets a quantum per round: they can be given at once, so that the work for a packet is
/// two rounds at most, however much larger than a quantum it is.
pub(super) fn idle_rounds(short: impl Iterator<Item = u64>, quantum: u64) -> u64 {
    short.map(|bytes| bytes.div_ceil(quantum)).min().map_or(0, |rounds| rounds.saturating_sub(1))
}

impl Drr {
    /// A whole round has sent nothing.
    fn skip(&mut self) {
        let Drr { params, queues, pool, active, .. } = self;
        let short = active.iter().map(|i| {
            let Queue { line, deficit } = &queues[*i as usize];
            line.front(pool).map_or(0, |p| u64::from(p.len).saturating_sub(*deficit))
        });
        let credit = idle_rounds(short, params.quantum.0) * params.quantum.0;
        active.iter().for_each(|i| queues[*i as usize].deficit += credit);
    }

    /// Loses one packet of the flow with the most bytes.
    fn steal(&mut self, cx: &mut Cx<'_>) {
        let bytes = |i: &u32| self.queues[*i as usize].line.bytes();
        let fattest = self.active.iter().enumerate().rev().max_by_key(|(_, i)| bytes(i));
        let (turn, i) = fattest.map(|(k, i)| (k, *i)).expect("someone fills the buffer");
        let queue = &mut self.queues[i as usize];
        let victim = match self.params.drop {
            End::Head => queue.line.pop(&mut self.pool),
            End::Tail => queue.line.pop_back(&mut self.pool),
        };
        let victim = victim.expect("an active flow has packets");
        if queue.line.is_empty() {
            queue.deficit = 0;
            self.active.remove(turn);
            self.served &= turn != 0;
        }
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(victim.len);
        cx.drop(victim, Why::Full);
    }
}

impl Qdisc for Drr {
    fn enqueue(&mut self, cx: &mut Cx<'_>, packet: Packet) {
        if !fits(self.params.limit, 0, 0, &packet) {
            return cx.drop(packet, Why::Full);
        }
        let i = packet.flow % self.queues.len() as u32;
        let queue = &mut self.queues[i as usize];
        if queue.line.is_empty() {
            queue.deficit = 0;
            self.active.push_back(i);
        }
        queue.line.push(&mut self.pool, packet);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.len);
        while !self.params.limit.holds(self.backlog.packets, self.backlog.bytes) {
            self.steal(cx);
        }
    }

    fn dequeue(&mut self, _cx: &mut Cx<'_>) -> Option<Packet> {
        let mut turns = 0;
        loop {
            let queue = &mut self.queues[*self.active.front()? as usize];
            if !self.served {
                queue.deficit += self.params.quantum.0;
                self.served = true;
            }
            let len = u64::from(queue.line.front(&self.pool)?.len);
            if len > queue.deficit {
                // Its turn is over.
                self.active.rotate_left(1);
                self.served = false;
                turns += 1;
                if turns == self.active.len() {
                    self.skip(); // bounded: in the round after this, somebody sends
                }
                continue;
            }
            let packet = queue.line.pop(&mut self.pool)?;
            queue.deficit -= len;
            if queue.line.is_empty() {
                queue.deficit = 0;
                self.active.pop_front();
                self.served = false;
            }
            self.backlog.packets -= 1;
            self.backlog.bytes -= len;
            return Some(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.queues) + self.active.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn the_papers_figure_two() {
        // Quantum 500; queue 1 holds 200, 750, 20; queue 2 holds 500, 500. Turn by turn: 200 leaves
        // 300 in queue 1's counter, which is not enough for 750 until its next turn.
        let mut q = Bench::new("drr", &[("quantum", "500B")]);
        for (flow, body, len) in
            [(1, 11, 200), (1, 12, 750), (1, 13, 20), (2, 21, 500), (2, 22, 500)]
        {
            q.put_flow(flow, body, len);
        }
        assert_eq!(q.drain(), [11, 21, 12, 13, 22]);
    }

    #[test]
    fn bytes_are_shared_whatever_the_packet_size() {
        let mut q = Bench::new("drr", &[("quantum", "1500B"), ("limit", "10000p")]);
        (0..100).for_each(|i| drop(q.put_flow(1, i, 1500)));
        (0..1500).for_each(|i| drop(q.put_flow(2, 1000 + i, 100)));
        let (mut big, mut small) = (0, 0);
        for _ in 0..16 * 50 {
            match q.get().0.unwrap() {
                0..1000 => big += 1500,
                _ => small += 100,
            }
        }
        assert_eq!((big, small), (75_000, 75_000));
    }

    #[test]
    fn rounds_in_which_nobody_sends_are_not_gone_through_one_by_one() {
        // A packet of a billion bytes takes 15 million quanta of 64 bytes; the other flow, of 10
        // bytes more, sends one round later.
        let mut q = Bench::new("drr", &[("quantum", "64B"), ("limit", "1000GB")]);
        for body in 0..200 {
            q.put_flow(1, body, 1_000_000_000);
            q.put_flow(2, 1000 + body, 1_000_000_010);
        }
        let sent = q.drain();
        assert_eq!(sent[..6], [0, 1000, 1, 1001, 2, 1002]);
        assert_eq!(sent.len(), 400);
    }

    #[test]
    fn the_longest_flow_pays() {
        let mut q = Bench::new("drr", &[("limit", "1000B")]);
        (0..3).for_each(|i| drop(q.put_flow(1, i, 300)));
        assert_eq!(q.put_flow(2, 9, 200), [0], "the head of the longest");
        assert_eq!(q.put_flow(3, 10, 1001), [10], "what can never fit");
        let mut q = Bench::new("drr", &[("limit", "1000B"), ("drop", "tail")]);
        (0..3).for_each(|i| drop(q.put_flow(1, i, 300)));
        assert_eq!(q.put_flow(2, 9, 200), [2]);
    }
}
