//! View that an AQM algorithm has of its queue.

use super::SingleFifo;
#[cfg(feature = "fair")]
use super::{Fifo, Pool};
use crate::packet::Packet;
use crate::units::Size;

/// A FIFO queue as an AQM algorithm sees it.
#[derive(Debug)]
pub struct QueueView<'a> {
    queue: Queue<'a>,
    /// Bytes in the other queues of the discipline.
    pub others: u64,
}

#[derive(Debug)]
enum Queue<'a> {
    /// The only queue of its discipline.
    Single(&'a mut SingleFifo),
    /// One of several queues that share a pool.
    #[cfg(feature = "fair")]
    Pooled(&'a mut Fifo, &'a mut Pool),
}

// Inlining is forced: where a discipline calls its algorithm, the kind of the queue is known.
impl<'a> QueueView<'a> {
    /// Returns the view of the only queue of a discipline.
    #[inline(always)]
    pub fn single(queue: &'a mut SingleFifo) -> QueueView<'a> {
        QueueView { queue: Queue::Single(queue), others: 0 }
    }

    /// Returns the view of a queue in `pool`; the other queues of the discipline have `others`
    /// bytes.
    #[cfg(feature = "fair")]
    #[inline(always)]
    pub fn pooled(queue: &'a mut Fifo, pool: &'a mut Pool, others: u64) -> QueueView<'a> {
        QueueView { queue: Queue::Pooled(queue, pool), others }
    }

    /// Number of packets.
    #[inline(always)]
    pub fn packets(&self) -> u32 {
        match &self.queue {
            Queue::Single(queue) => queue.packets(),
            #[cfg(feature = "fair")]
            Queue::Pooled(queue, _) => queue.packets(),
        }
    }

    /// Number of bytes.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        match &self.queue {
            Queue::Single(queue) => queue.bytes().0,
            #[cfg(feature = "fair")]
            Queue::Pooled(queue, _) => queue.bytes().0,
        }
    }

    /// Backlog in the unit of `limit`, for comparison with thresholds in that unit.
    #[inline(always)]
    pub fn held(&self, limit: Size) -> u64 {
        if limit.in_bytes() { self.bytes() } else { u64::from(self.packets()) }
    }

    /// Packet at the head.
    #[inline(always)]
    pub fn front(&self) -> Option<&Packet> {
        match &self.queue {
            Queue::Single(queue) => queue.front(),
            #[cfg(feature = "fair")]
            Queue::Pooled(queue, pool) => queue.front(pool),
        }
    }

    /// Removes the packet at the head.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Packet> {
        match &mut self.queue {
            Queue::Single(queue) => queue.pop(),
            #[cfg(feature = "fair")]
            Queue::Pooled(queue, pool) => queue.pop(pool),
        }
    }

    /// Packet at the head, to be marked; its length must stay.
    #[inline(always)]
    pub fn front_mut(&mut self) -> Option<&mut Packet> {
        match &mut self.queue {
            Queue::Single(queue) => queue.front_mut(),
            #[cfg(feature = "fair")]
            Queue::Pooled(queue, pool) => queue.front_mut(pool),
        }
    }

    /// Returns the `k`-th packet, counted from 0 at the head.
    pub fn get(&self, k: u32) -> Option<&Packet> {
        match &self.queue {
            Queue::Single(queue) => queue.get(k),
            #[cfg(feature = "fair")]
            Queue::Pooled(queue, pool) => queue.get(pool, k),
        }
    }

    /// Removes the `k`-th packet, counted from 0 at the head. Work is proportional to its distance
    /// from the nearer end.
    pub fn remove(&mut self, k: u32) -> Option<Packet> {
        match &mut self.queue {
            Queue::Single(queue) => queue.remove(k),
            #[cfg(feature = "fair")]
            Queue::Pooled(queue, pool) => queue.remove(pool, k),
        }
    }

    /// Calls `each` with every packet, from head to tail.
    pub fn for_each(&self, mut each: impl FnMut(&Packet)) {
        match &self.queue {
            Queue::Single(queue) => queue.iter().for_each(&mut each),
            #[cfg(feature = "fair")]
            Queue::Pooled(queue, pool) => queue.iter(pool).for_each(&mut each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cast;
    use std::prelude::v1::*;

    #[test]
    fn both_kinds_of_queue_look_the_same() {
        for remove in 0..5 {
            let (mut single, mut fifo, mut pool) =
                (SingleFifo::default(), Fifo::default(), Pool::default());
            for body in 0..5 {
                let packet = Packet { body, len: 100 + body, ..Packet::default() };
                single.push(packet);
                fifo.push(&mut pool, packet);
            }
            let seen = |mut queue: QueueView<'_>| {
                let mut seen = vec![queue.get(remove).copied(), queue.get(5).copied()];
                seen.extend([queue.remove(remove), queue.remove(4)]);
                queue.for_each(|packet| seen.push(Some(*packet)));
                queue.front_mut().unwrap().class = 7;
                seen.extend([queue.front().copied(), queue.pop()]);
                let limits = [Size::Bytes(1), Size::Packets(1)];
                (seen, queue.packets(), queue.bytes(), limits.map(|limit| queue.held(limit)))
            };
            let of_single = seen(QueueView::single(&mut single));
            assert_eq!(of_single, seen(QueueView::pooled(&mut fifo, &mut pool, 7)));
            let (packets, bytes) = (of_single.1, of_single.2);
            assert_eq!((packets, of_single.3), (3, [bytes, 3]));
            assert_eq!(of_single.0[0].map(|p| p.body), Some(remove));
            assert_eq!(of_single.0.last().unwrap().map(|p| p.class), Some(7));
            assert!(!single.is_empty() && cast::index32(single.iter().count()) == packets);
            while single.pop().is_some() {}
            assert!(single.is_empty());
        }
    }
}
