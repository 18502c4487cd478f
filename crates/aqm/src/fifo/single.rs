//! FIFO queue of a discipline that has no other queue.

use crate::cast;
use crate::packet::Packet;
use crate::snapshot::Snapshot;
use crate::units::Bytes;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A FIFO queue with memory of its own, which grows to the largest backlog. A packet costs half as
/// much as in a `Fifo`.
#[derive(Debug, Default, Snapshot)]
pub struct SingleFifo {
    ring: VecDeque<Packet>,
    bytes: u64,
}

// Two copies of memory; `VecDeque::clone` goes packet by packet.
impl Clone for SingleFifo {
    fn clone(&self) -> Self {
        let (first, second) = self.ring.as_slices();
        let mut packets = Vec::with_capacity(self.ring.len());
        packets.extend_from_slice(first);
        packets.extend_from_slice(second);
        SingleFifo { ring: packets.into(), bytes: self.bytes }
    }
}

impl SingleFifo {
    /// Number of packets.
    #[inline]
    pub fn packets(&self) -> u32 {
        cast::index32(self.ring.len())
    }

    /// Number of bytes.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }

    /// True if the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, packet: Packet) {
        self.bytes += u64::from(packet.len);
        self.ring.push_back(packet);
    }

    /// Packet at the head.
    #[inline]
    pub fn front(&self) -> Option<&Packet> {
        self.ring.front()
    }

    /// Packet at the head, to be changed; its length must stay.
    pub fn front_mut(&mut self) -> Option<&mut Packet> {
        self.ring.front_mut()
    }

    /// Removes the packet at the head.
    #[inline]
    pub fn pop(&mut self) -> Option<Packet> {
        let Some(packet) = self.ring.pop_front() else {
            // Restart at the first entry: a queue that is often empty then uses few cache lines. A
            // link dequeues once from an empty queue, so a busy queue never pays for this.
            self.ring.clear();
            return None;
        };
        self.bytes -= u64::from(packet.len);
        Some(packet)
    }

    /// Returns the `k`-th packet, counted from 0 at the head.
    pub fn get(&self, k: u32) -> Option<&Packet> {
        self.ring.get(k as usize)
    }

    /// Removes the `k`-th packet, counted from 0 at the head. Moves the packets between it and the
    /// nearer end.
    pub fn remove(&mut self, k: u32) -> Option<Packet> {
        let packet = self.ring.remove(k as usize)?;
        self.bytes -= u64::from(packet.len);
        Some(packet)
    }

    /// Iterates over all packets, from head to tail.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.ring.iter()
    }
}
