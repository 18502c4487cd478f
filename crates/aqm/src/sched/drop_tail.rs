//! DropTail: a FIFO queue that drops packets only when it is full.
//!
//! **Source** Tail drop: folklore; random drop: E. Hashem, MIT LCS/TR-465, 1989; drop from front:
//! T. V. Lakshman, A. Neidhardt, T. Ott, INFOCOM 1996.
//!
//! **Decides** on arrival.
//!
//! **Measures** the queue, in bytes or packets.
//!
//! **Symbols** `limit` is B.
//!
//! **Algorithm** A packet that fits is enqueued. Otherwise `policy` selects the packets to drop:
//! the arriving packet, packets from the head until it fits, or packets drawn uniformly from the
//! queued packets and the arriving one.
//!
//! **Departures** A packet larger than the whole buffer is dropped without affecting the others.
//!
//! **Cost** 64 bytes of state; O(1) per packet; a random drop moves up to half of the queue.

use crate::aqm::{exceeds, fits};
use crate::build::{Build, Env};
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::SingleFifo;
use crate::packet::Packet;
use crate::params::Checked;
use crate::qdisc::{Backlog, Peek, Qdisc};
use crate::snapshot::Snapshot;
use crate::units::Size;
use alloc::boxed::Box;
use core::any::Any;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry =
    QdiscEntry::new::<DropTail>("droptail", "a FIFO queue that drops packets only when it is full")
        .aliases(&["fifo", "taildrop", "tail_drop", "drop_tail", "pfifo", "bfifo"])
        .decides("on arrival, when the buffer is full: the packet to drop")
        .source("folklore; random drop: Hashem, MIT LCS/TR-465, 1989");

crate::choice! {
    /// Packet to drop when the buffer is full.
    pub enum Policy {
        /// The arriving packet.
        Tail = "tail",
        /// The packets at the head.
        Head = "head",
        /// A random packet.
        Random = "random",
    }
}

crate::params! {
    /// Parameters of [`DropTail`].
    pub struct DropTailParams {
        /// Buffer size, in bytes or packets. The packet in transmission is not counted.
        limit: Size = Size::Packets(1000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "B", ["buffer"];
        /// Packet to drop when the buffer is full: the arriving one, those at the head, or a random
        /// one.
        policy: Policy = Policy::Tail, [], "", ["drop"];
    }
}

/// The DropTail discipline.
#[derive(Clone, Debug, Snapshot)]
pub struct DropTail {
    fifo: SingleFifo,
    params: DropTailParams,
}

impl Build for DropTail {
    type Params = DropTailParams;

    fn new(params: Checked<'_, DropTailParams>, _env: &Env) -> Result<Self> {
        Ok(DropTail { fifo: SingleFifo::default(), params: (*params).clone() })
    }
}

impl DropTail {
    fn full_for(&self, packet: &Packet) -> bool {
        !fits(self.params.limit, self.fifo.packets(), self.fifo.bytes().0, packet)
    }
}

impl Qdisc for DropTail {
    #[inline(always)]
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        context.check_arrival(&packet);
        let hopeless = exceeds(self.params.limit, &packet);
        while self.full_for(&packet) {
            let victim = match self.params.policy {
                Policy::Tail => None,
                _ if hopeless => None,
                Policy::Head => Some(0),
                Policy::Random => {
                    let k = context.rng.below(self.fifo.packets() + 1);
                    (k < self.fifo.packets()).then_some(k)
                }
            };
            match victim.and_then(|k| self.fifo.remove(k)) {
                Some(victim) => context.drop(victim, DropReason::Full),
                None => return context.drop(packet, DropReason::Full),
            }
        }
        self.fifo.push(packet);
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        self.fifo.pop()
    }

    fn peek(&mut self, _context: &mut Context<'_>) -> Peek {
        Peek::of(self.fifo.front())
    }

    fn decides_at_enqueue(&self) -> bool {
        self.params.policy == Policy::Tail
    }

    fn reconfigure(&mut self, fresh: Box<dyn Qdisc + Send>) -> bool {
        let Ok(fresh) = (fresh as Box<dyn Any>).downcast::<Self>() else { return false };
        self.params = fresh.params;
        true
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.fifo.packets(), bytes: self.fifo.bytes().0 }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn tail_loses_the_arrival() {
        let mut q = Bench::new("droptail", &[("limit", "2p")]);
        assert_eq!(
            [q.put(1, 100), q.put(2, 100), q.put(3, 100)],
            [[0; 0].to_vec(), vec![], vec![3]]
        );
        assert_eq!(q.drain(), [1, 2]);
    }

    #[test]
    fn head_makes_room_in_bytes() {
        let mut q = Bench::new("droptail", &[("limit", "1000B"), ("policy", "head")]);
        q.put(1, 400);
        q.put(2, 400);
        assert_eq!(q.put(3, 900), [1, 2]);
        assert_eq!(q.put(4, 1001), [4], "larger than the buffer: no other packet is dropped");
        assert_eq!(q.drain(), [3]);
    }

    #[test]
    fn random_spares_nobody() {
        let mut hits = [0; 4];
        for seed in 0..400 {
            let mut q = Bench::seeded("droptail", &[("limit", "3p"), ("policy", "random")], seed);
            (0..3).for_each(|i| drop(q.put(i, 100)));
            hits[q.put(3, 100)[0] as usize] += 1;
        }
        assert!(hits.iter().all(|h| (70..130).contains(h)), "{hits:?}");
    }

    #[test]
    fn only_tail_drop_decides_about_the_arrival_alone() {
        for (policy, expected) in [("tail", true), ("head", false), ("random", false)] {
            let settings = [("policy", crate::Setting::Text(policy))];
            let built = crate::build("droptail", &settings, crate::Rate(8_000_000)).unwrap();
            assert_eq!(built.qdisc.decides_at_enqueue(), expected, "{policy}");
        }
    }
}
