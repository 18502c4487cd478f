//! FIFO queues of packets. All [`Fifo`]s of a discipline share the memory of one [`Pool`], so that
//! a discipline with a thousand queues allocates once, and a packet costs no allocation. A
//! discipline with one queue has a [`SingleFifo`], which is a ring. An AQM algorithm sees either as
//! a [`QueueView`].

use crate::cast;
use crate::packet::Packet;
use crate::snapshot::Snapshot;
use crate::units::Bytes;
use alloc::vec::Vec;

mod single;
mod view;

pub use single::SingleFifo;
pub use view::QueueView;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Snapshot)]
struct Node {
    packet: Packet,
    next: u32,
    prev: u32,
}

/// Memory of all FIFO queues of a discipline. It grows to the largest backlog.
#[derive(Clone, Debug, Default, Snapshot)]
pub struct Pool {
    nodes: Vec<Node>,
    /// Number of free entries; the one that has been free longest and the last one, linked by
    /// `next`.
    free: usize,
    first_free: usize,
    last_free: usize,
}

impl Pool {
    fn put(&mut self, packet: Packet, prev: u32) -> u32 {
        let node = Node { packet, next: NONE, prev };
        if self.free > 0 {
            let i = self.first_free;
            self.first_free = self.nodes[i].next as usize;
            self.free -= 1;
            self.nodes[i] = node;
            return cast::index32(i);
        }
        self.nodes.push(node);
        cast::index32(self.nodes.len()) - 1
    }

    /// Frees entry `i`, to be reused after all other free entries. So the packets of a queue are
    /// stored in order, which the prefetcher of the processor exploits.
    #[inline]
    fn free(&mut self, i: u32) {
        if self.free == 0 {
            self.first_free = i as usize;
        } else {
            self.nodes[self.last_free].next = i;
        }
        self.last_free = i as usize;
        self.free += 1;
    }
}

/// A FIFO queue with its length in packets and bytes.
#[derive(Clone, Copy, Debug, Snapshot)]
pub struct Fifo {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u64,
}

impl Default for Fifo {
    fn default() -> Self {
        Fifo { head: NONE, tail: NONE, packets: 0, bytes: 0 }
    }
}

impl Fifo {
    /// Number of packets.
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Number of bytes.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }

    /// True if the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, pool: &mut Pool, packet: Packet) {
        let i = pool.put(packet, self.tail);
        match self.tail {
            NONE => self.head = i,
            tail => pool.nodes[tail as usize].next = i,
        }
        self.tail = i;
        self.packets += 1;
        self.bytes += u64::from(packet.len);
    }

    /// Index in the pool of the packet at the head; constant while it is queued.
    pub fn head(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    /// Index in the pool of the packet at the tail.
    pub fn tail(&self) -> Option<u32> {
        (self.tail != NONE).then_some(self.tail)
    }

    /// Removes the packet at the head.
    #[inline]
    pub fn pop(&mut self, pool: &mut Pool) -> Option<Packet> {
        (self.head != NONE).then(|| self.unlink(pool, self.head))
    }

    /// Packet at the head.
    #[inline]
    pub fn front<'p>(&self, pool: &'p Pool) -> Option<&'p Packet> {
        (self.head != NONE).then(|| &pool.nodes[self.head as usize].packet)
    }

    /// Packet at the head, to be changed; its length must stay.
    pub fn front_mut<'p>(&self, pool: &'p mut Pool) -> Option<&'p mut Packet> {
        (self.head != NONE).then(|| &mut pool.nodes[self.head as usize].packet)
    }

    /// Removes the packet at the tail.
    pub fn pop_back(&mut self, pool: &mut Pool) -> Option<Packet> {
        (self.tail != NONE).then(|| self.unlink(pool, self.tail))
    }

    /// Returns the `k`-th packet, counted from 0 at the head. Walks the queue from the nearer end.
    pub fn get<'p>(&self, pool: &'p Pool, k: u32) -> Option<&'p Packet> {
        (k < self.packets).then(|| &pool.nodes[self.place(pool, k) as usize].packet)
    }

    /// Removes the `k`-th packet, counted from 0 at the head. Walks the queue from the nearer end.
    pub fn remove(&mut self, pool: &mut Pool, k: u32) -> Option<Packet> {
        (k < self.packets).then(|| self.unlink(pool, self.place(pool, k)))
    }

    /// Returns the index in the pool of the `k`-th packet.
    fn place(&self, pool: &Pool, k: u32) -> u32 {
        if k <= self.packets / 2 {
            (0..k).fold(self.head, |i, _| pool.nodes[i as usize].next)
        } else {
            (k + 1..self.packets).fold(self.tail, |i, _| pool.nodes[i as usize].prev)
        }
    }

    /// Iterates over all packets, from head to tail.
    pub fn iter<'p>(&self, pool: &'p Pool) -> impl Iterator<Item = &'p Packet> + use<'p> {
        let first = (self.head != NONE).then(|| &pool.nodes[self.head as usize]);
        let next = |node: &&'p Node| (node.next != NONE).then(|| &pool.nodes[node.next as usize]);
        core::iter::successors(first, next).map(|node| &node.packet)
    }

    #[inline]
    fn unlink(&mut self, pool: &mut Pool, i: u32) -> Packet {
        let Node { packet, next, prev } = pool.nodes[i as usize];
        match prev {
            NONE => self.head = next,
            p => pool.nodes[p as usize].next = next,
        }
        match next {
            NONE => self.tail = prev,
            n => pool.nodes[n as usize].prev = prev,
        }
        pool.free(i);
        self.packets -= 1;
        self.bytes -= u64::from(packet.len);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn filled(pool: &mut Pool, n: u32) -> Fifo {
        let mut fifo = Fifo::default();
        (0..n).for_each(|body| {
            fifo.push(pool, Packet { body, len: 100 + body, ..Packet::default() })
        });
        fifo
    }

    fn bodies(fifo: &mut Fifo, pool: &mut Pool) -> Vec<u32> {
        core::iter::from_fn(|| fifo.pop(pool)).map(|p| p.body).collect()
    }

    #[test]
    fn order_and_lengths_survive_removals() {
        let mut pool = Pool::default();
        for k in 0..5 {
            let mut fifo = filled(&mut pool, 5);
            assert_eq!(fifo.get(&pool, k).unwrap().body, k);
            assert_eq!(fifo.remove(&mut pool, k).unwrap().body, k);
            assert_eq!(u64::from(k), 510 - 100 - fifo.bytes().0);
            let rest: Vec<u32> = (0..5).filter(|b| *b != k).collect();
            assert!(fifo.iter(&pool).map(|p| p.body).eq(rest.iter().copied()));
            assert_eq!(bodies(&mut fifo, &mut pool), rest);
            assert!(fifo.iter(&pool).next().is_none());
            assert!(fifo.is_empty() && fifo.bytes() == Bytes(0));
        }
        assert!(filled(&mut pool, 3).get(&pool, 3).is_none());
        assert!(filled(&mut pool, 3).remove(&mut pool, 3).is_none());
    }

    #[test]
    fn lines_share_a_pool_and_places_are_used_again() {
        let mut pool = Pool::default();
        let (mut a, mut b) = (filled(&mut pool, 3), filled(&mut pool, 2));
        assert_eq!(a.pop_back(&mut pool).unwrap().body, 2);
        assert_eq!(a.pop(&mut pool).unwrap().body, 0);
        b.push(&mut pool, Packet { body: 9, ..Packet::default() });
        assert_eq!(bodies(&mut b, &mut pool), vec![0, 1, 9]);
        assert_eq!(bodies(&mut a, &mut pool), vec![1]);
        assert_eq!(pool.nodes.len(), 5);
    }
}
