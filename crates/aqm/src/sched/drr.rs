//! DRR: deficit round robin.
//!
//! **Source** M. Shreedhar, G. Varghese, "Efficient Fair Queueing Using Deficit Round Robin",
//! SIGCOMM 1995.
//!
//! **Decides** on departure: the next queue.
//!
//! **Measures** the bytes of each queue.
//!
//! **Symbols** `quantum` is Q, `deficit` is DC.
//!
//! **Algorithm** In each round a queue may send up to its deficit counter. The counter grows by
//! `quantum` times its weight per round and is reset when the queue becomes empty.
//!
//! **Departures** None. The paper's buffer stealing is `full = "longest"`; of equally long queues
//! it drops from the one next in the round.
//!
//! **Linux** `sch_drr` decides the same, packet by packet, so that there is no variant. Each of its
//! classes has a buffer of its own (`limits`), and none is shared; a packet that no filter assigns
//! to a class is dropped.
//!
//! **Cost** 90472 bytes of state: 88 per queue. O(1) per packet if `quantum` is at least the
//! largest packet, otherwise a few passes over the busy queues.

#[cfg(feature = "codel")]
use crate::aqm::codel::CoDel;
use crate::build::Env;
use crate::cast;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::params::Checked;
use crate::sched::classful::Classful;
use crate::sched::fair::Fair;
use crate::sched::ring::Ring;
use crate::sched::scheduler::{DropPosition, Item, Scheduler};
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Time};
use alloc::vec;
use alloc::vec::Vec;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry =
    QdiscEntry::new::<Classful<Drr>>("drr", "deficit round robin over a queue per flow or class")
        .decides(
            "on departure: the next queue; on overflow: drops from the flow with the most bytes",
        )
        .source("Shreedhar and Varghese, SIGCOMM 1995");

/// Entry of `drr_codel` in the registry.
#[cfg(feature = "codel")]
pub(crate) const DRR_CODEL: QdiscEntry = QdiscEntry::new::<Fair<Drr, CoDel>>(
    "drr_codel",
    "deficit round robin with CoDel in every queue",
)
.preset(&[("ecn", "true")])
.decides("on departure: the next queue, and CoDel's drops in it")
.source("Shreedhar and Varghese, SIGCOMM 1995; RFC 8289");

crate::params! {
    /// Parameters of [`Drr`].
    pub struct DrrParams {
        /// Bytes that a queue of weight 1 may send per round.
        quantum: Bytes = Bytes(1500), [Bytes(64) => Bytes(1_000_000_000)], "Q", [];
    }
}

/// The DRR scheduler.
#[derive(Clone, Debug, Snapshot)]
pub struct Drr {
    /// Quantum and deficit counter of each queue, bytes. An AQM algorithm can replace the head by a
    /// longer packet during the queue's turn; the counter is then overdrawn, and later turns pay
    /// for it.
    quanta: Vec<u64>,
    deficits: Vec<i64>,
    /// Queues with packets.
    active: Ring,
    /// True if the first queue has received its quantum for this turn.
    served: bool,
}

/// Returns the number of whole rounds after which the first of the queues, given as `(short,
/// quantum)`, has its missing bytes. They can be credited at once, which bounds the work per packet
/// by two rounds, even if the packet is much larger than a quantum.
pub(super) fn idle_rounds(queues: impl Iterator<Item = (u64, u64)>) -> u64 {
    queues.map(|(short, quantum)| short.div_ceil(quantum)).min().map_or(0, |n| n.saturating_sub(1))
}

impl Drr {
    /// Creates a scheduler for queues with these quanta, in bytes.
    pub(super) fn with_quanta(quanta: Vec<u64>) -> Drr {
        Drr {
            deficits: vec![0; quanta.len()],
            active: Ring::new(quanta.len()),
            quanta,
            served: false,
        }
    }

    /// Credits the rounds in which no queue can send.
    #[cold]
    #[inline(never)]
    fn skip(&mut self, head: impl Fn(u32) -> Option<u32>) {
        let Drr { quanta, deficits, active, .. } = self;
        let short = |i: u32| {
            let short = head(i).map_or(0, i64::from) - deficits[i as usize];
            (short.max(0).cast_unsigned(), quanta[i as usize])
        };
        let rounds = idle_rounds(active.iter().map(short));
        active
            .iter()
            .for_each(|i| deficits[i as usize] += (rounds * quanta[i as usize]).cast_signed());
    }

    /// Removes the empty queue `i` from the round.
    fn leave(&mut self, i: u32) {
        self.served &= self.active.first() != Some(i);
        self.deficits[i as usize] = 0;
        self.active.remove(i);
    }
}

impl Scheduler for Drr {
    type Params = DrrParams;
    const HAS_DEFAULT: bool = false;

    fn new(params: Checked<'_, DrrParams>, _env: &Env, weights: &[f64]) -> Result<Self> {
        // At most 1e9 bytes times 1e6: fits easily into the deficit.
        let quantum = |w: &f64| cast::trunc(params.quantum.0 as f64 * w).max(1);
        Ok(Drr::with_quanta(weights.iter().map(quantum).collect()))
    }

    #[inline]
    fn on_enqueued(&mut self, _now: Time, i: u32, _packet: Item, first: bool) {
        if first {
            self.active.push(i);
        }
    }

    fn select(&mut self, _now: Time, head: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let mut turns = 0;
        loop {
            let i = self.active.first()?;
            let deficit = &mut self.deficits[i as usize];
            if !self.served {
                *deficit += self.quanta[i as usize].cast_signed();
                self.served = true;
            }
            if i64::from(head(i)?) <= *deficit {
                return Some(i);
            }
            // The turn of this queue is over.
            self.active.rotate();
            self.served = false;
            turns += 1;
            if turns == self.active.len() {
                self.skip(&head); // bounded: in the following round a queue can send
            }
        }
    }

    fn on_sent(&mut self, _now: Time, i: u32, len: u32, next: Option<Item>) {
        self.deficits[i as usize] -= i64::from(len);
        if next.is_none() {
            self.leave(i);
        }
    }

    fn on_dropped(&mut self, i: u32, _loss: DropPosition, next: Option<Item>) {
        if next.is_none() && self.active.contains(i) {
            self.leave(i);
        }
    }

    fn nearest(&self, tied: &dyn Fn(u32) -> bool) -> Option<u32> {
        self.active.iter().find(|i| tied(*i))
    }

    fn state_bytes(&self) -> usize {
        size_of_val(&*self.quanta) + size_of_val(&*self.deficits) + self.active.state_bytes()
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
        assert_eq!(q.put_flow(3, 10, 1001), [10], "a packet that can never fit");
        let mut q = Bench::new("drr", &[("limit", "1000B"), ("drop", "tail")]);
        (0..3).for_each(|i| drop(q.put_flow(1, i, 300)));
        assert_eq!(q.put_flow(2, 9, 200), [2]);
    }
}
