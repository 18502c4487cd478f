//! Memory of `cake`: its limit, and the longest queue, which drops its head on overflow.

use super::flows::QUEUES;
use super::tin::Tin;
use crate::cast;
use crate::qdisc::Backlog;
use crate::sched::tree::{OUT, Tree};
use crate::snapshot::Snapshot;
use crate::units::Size;

crate::choice! {
    /// Bytes that a packet counts against the limit.
    pub enum Accounting {
        /// Lengths of the packets.
        Wire = "wire",
        /// Memory that Linux takes for a packet: 2304 bytes for one of 1514, 832 for one of 100.
        Truesize = "truesize",
    }
}

/// Size of a small buffer in Linux, bytes.
const SMALL: u64 = 576;

impl Accounting {
    /// Bytes that a packet of `len` bytes counts.
    pub fn of(self, len: u32) -> u64 {
        let len = u64::from(len);
        match self {
            Accounting::Wire => len,
            // The buffer with its headroom in lines of 64 bytes, and its trailer; from the cache of
            // small buffers or of a power of two; and the descriptor. Kernels that are built for
            // links with long headers have larger small buffers than 576 bytes.
            Accounting::Truesize => {
                let buffer = (len + 48).next_multiple_of(64) + 320;
                256 + if buffer <= SMALL { SMALL } else { buffer.next_power_of_two() }
            }
        }
    }
}

/// Memory of the discipline.
#[derive(Clone, Debug, Snapshot)]
pub struct Memory {
    accounting: Accounting,
    /// Bytes in use.
    pub used: u64,
    /// Limit in bytes or packets.
    pub limit: Size,
    /// Queues by length, kept up to date for some time after an overflow.
    longest: Tree,
    /// Departures until `longest` is abandoned; 0 if it is not up to date.
    current: u32,
}

/// Departures without overflow for which the order of the queues is kept up to date.
const KEPT: u32 = 65_535;

impl Memory {
    /// Creates an empty memory for `tins` tins.
    pub fn new(accounting: Accounting, tins: usize) -> Memory {
        let longest = Tree::new(tins * QUEUES);
        Memory { accounting, used: 0, limit: Size::Bytes(0), longest, current: 0 }
    }

    /// Counts a packet of `len` bytes that joins queue `i` of tin `t`, which is now `bytes` long.
    #[inline]
    pub fn add(&mut self, len: u32, (t, i): (usize, u32), bytes: u64) {
        self.used += self.accounting.of(len);
        self.record((t, i), bytes);
    }

    /// Counts a packet of `len` bytes that leaves the queue.
    #[inline]
    pub fn remove(&mut self, len: u32, queue: (usize, u32), bytes: u64) {
        self.used -= self.accounting.of(len);
        self.record(queue, bytes);
    }

    /// Counts a departure.
    #[inline]
    pub fn on_departure(&mut self) {
        self.current = self.current.saturating_sub(1);
    }

    #[inline]
    fn record(&mut self, (t, i): (usize, u32), bytes: u64) {
        if self.current > 0 {
            self.longest.set(cast::index32(t * QUEUES) + i, OUT - bytes);
        }
    }

    /// True if the packets of `queued`, with their memory, and those that a parent has dequeued
    /// `ahead` are over the limit. Linux does not count the memory of the latter.
    pub fn is_over(&self, queued: Backlog, ahead: Backlog) -> bool {
        let bytes = if self.accounting == Accounting::Wire { ahead.bytes } else { 0 };
        !self.limit.holds(queued.packets + ahead.packets, self.used + bytes)
    }

    /// Queue with the most bytes: its tin and its number.
    pub fn longest(&mut self, tins: &[Tin]) -> (usize, u32) {
        if self.current == 0 {
            for (t, tin) in tins.iter().enumerate() {
                for (i, flow) in tin.flows.flows.iter().enumerate() {
                    self.longest.set(cast::index32(t * QUEUES + i), OUT - flow.fifo.bytes().0);
                }
            }
        }
        self.current = KEPT;
        let (slot, _) = self.longest.first().expect("a queue has the packets that are too many");
        (slot as usize / QUEUES, slot % cast::index32(QUEUES))
    }

    /// Size of the order of queues in bytes.
    pub fn state_bytes(&self) -> usize {
        self.longest.state_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_take_a_small_buffer_or_a_power_of_two() {
        // 208 and 48 bytes of headroom are four lines of 64; with the trailer of 320, they are 576.
        let sizes = [64, 208, 209, 1514].map(|len| Accounting::Truesize.of(len));
        assert_eq!(sizes, [832, 832, 1280, 2304]);
        assert_eq!(Accounting::Wire.of(209), 209);
    }
}
