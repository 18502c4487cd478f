//! Buffer that the queues of a switch share, with dynamic thresholds.
//!
//! **Source**: Choudhury, Hahne: Dynamic Queue Length Thresholds for Shared-Memory Packet Switches,
//! IEEE/ACM Transactions on Networking 6(2), 1998. A queue may hold at most alpha times the free
//! bytes. If queues with alphas a_1 to a_n want more, queue i holds a_i B / (1 + a_1 + ... + a_n)
//! bytes of a buffer of B bytes, and B / (1 + a_1 + ... + a_n) bytes stay free for the first
//! packets of other queues. An alpha per traffic class is as in switches, and in the threshold of
//! ABM without its rate: Addanki, Apostolaki, Ghobadi, Schmid, Vanbever: ABM: Active Buffer
//! Management in Datacenters, SIGCOMM 2022. Reserves are as in switches: bytes that only one queue
//! can use, which are not a part of the shared pool.

use crate::error::{Error, Result};
use crate::params::checked;
use crate::snapshot::Snapshot;
use crate::units::Bytes;
use alloc::format;
use alloc::vec::Vec;

/// Threshold and reserve of a queue of a [`SharedBuffer`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct QueueShare {
    /// Bytes that the queue may hold above its reserve, in relation to those that are free.
    pub alpha: f64,
    /// Part of the buffer that only this queue can use.
    pub reserve: Bytes,
}

impl QueueShare {
    /// Creates the share of a queue.
    pub const fn new(alpha: f64, reserve: Bytes) -> QueueShare {
        QueueShare { alpha, reserve }
    }
}

/// A buffer that several queues share: the ports of a switch, or the traffic classes of its ports.
///
/// It only counts. The owner asks [`SharedBuffer::admits`] before it enqueues a packet at the
/// discipline of a port, drops the packet if the answer is false (on a [`Link`](crate::Link) with
/// [`Link::refuse`](crate::Link::refuse)), and calls [`SharedBuffer::set_held`] after every enqueue
/// and dequeue. A discipline may drop further packets for its own reasons. For the bytes of each
/// class in the queue of a link see [`Link::count_by_class`](crate::Link::count_by_class).
///
/// A packet is admitted if its queue then holds no more than its reserve, or if the bytes above the
/// reserve are then at most alpha times the bytes that are free in the shared pool before. The pool
/// is the buffer without all reserves.
///
/// ```
/// use sojourn_aqm::{Bytes, QueueShare, SharedBuffer};
///
/// let mut buffer = SharedBuffer::new(Bytes(4_000_000), 1.0, &[Bytes(0); 3])?;
/// buffer.set_held(0, 2_000_000);
/// assert!(!buffer.admits(0, 1500), "queue 0 holds as much as is free");
/// assert!(buffer.admits(1, 1500));
///
/// // Two ports with two classes: port 0 has the queues 0 and 1, port 1 has the queues 2 and 3.
/// let classes = [QueueShare::new(8.0, Bytes(0)), QueueShare::new(1.0, Bytes(0))];
/// let mut buffer = SharedBuffer::with_shares(Bytes(4_000_000), &[classes, classes].concat())?;
/// buffer.set_held(1, 2_000_000);
/// assert!(!buffer.admits(1, 1500));
/// assert!(buffer.admits(0, 1500), "the other class of the port may hold 8 times the free bytes");
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
#[derive(Clone, Debug, Snapshot)]
pub struct SharedBuffer {
    /// Size of the pool that is shared: the buffer without all reserves, bytes.
    pool: u64,
    /// Bytes of the pool that are used.
    used: u64,
    /// Bytes in all queues.
    held: u64,
    /// Largest value of `held`.
    peak: u64,
    queues: Vec<Queue>,
}

/// Threshold and bytes of one queue.
#[derive(Clone, Copy, Debug, Snapshot)]
struct Queue {
    alpha: f64,
    reserve: u64,
    held: u64,
    /// Largest value of `held`.
    peak: u64,
}

impl Queue {
    /// Bytes of the pool that the queue uses if it holds `held` bytes.
    #[inline]
    fn share(&self, held: u64) -> u64 {
        held.saturating_sub(self.reserve)
    }
}

impl SharedBuffer {
    /// Largest size of a buffer.
    pub const SIZE_MAX: Bytes = Bytes(1_000_000_000_000);
    /// Smallest and largest alpha.
    pub const ALPHA: [f64; 2] = [0.0001, 10_000.0];

    /// Creates an empty buffer of `size` for a queue per entry of `reserves`, all with the same
    /// alpha.
    ///
    /// # Errors
    /// As [`SharedBuffer::with_shares`].
    pub fn new(size: Bytes, alpha: f64, reserves: &[Bytes]) -> Result<SharedBuffer> {
        let shares = reserves.iter().map(|reserve| QueueShare::new(alpha, *reserve));
        SharedBuffer::with_shares(size, &shares.collect::<Vec<_>>())
    }

    /// Creates an empty buffer of `size` for a queue per entry of `shares`.
    ///
    /// # Errors
    /// A size above [`SharedBuffer::SIZE_MAX`], an alpha outside of [`SharedBuffer::ALPHA`], no
    /// queue, or reserves that are larger than the buffer together.
    pub fn with_shares(size: Bytes, shares: &[QueueShare]) -> Result<SharedBuffer> {
        checked(size, Some((Bytes(1), SharedBuffer::SIZE_MAX))).map_err(|e| e.at("size"))?;
        let [least, most] = SharedBuffer::ALPHA;
        for QueueShare { alpha, .. } in shares {
            checked(*alpha, Some((least, most))).map_err(|e| e.at("alpha"))?;
        }
        if shares.is_empty() {
            return Err(Error::new("a shared buffer has at least one queue"));
        }
        let sum = |sum: u64, share: &QueueShare| sum.saturating_add(share.reserve.0);
        let reserved = shares.iter().fold(0, sum);
        let Some(pool) = size.0.checked_sub(reserved) else {
            let text = format!("{} in all exceed the buffer of {size}", Bytes(reserved));
            return Err(Error::new(text).at("reserve"));
        };
        let queue = |share: &QueueShare| Queue {
            alpha: share.alpha,
            reserve: share.reserve.0,
            held: 0,
            peak: 0,
        };
        let queues = shares.iter().map(queue).collect();
        Ok(SharedBuffer { pool, used: 0, held: 0, peak: 0, queues })
    }

    /// True if a packet of `len` bytes is admitted to `queue`.
    ///
    /// # Panics
    /// If there is no such queue.
    #[inline]
    pub fn admits(&self, queue: usize, len: u32) -> bool {
        let queue = &self.queues[queue];
        let (now, then) = (queue.share(queue.held), queue.share(queue.held + u64::from(len)));
        // The product is below 2^54, and a fraction of a byte does not count.
        then == 0 || (then - now <= self.free() && then as f64 <= queue.alpha * self.free() as f64)
    }

    /// Sets the number of bytes in `queue`.
    ///
    /// # Panics
    /// If there is no such queue.
    #[inline]
    pub fn set_held(&mut self, queue: usize, bytes: u64) {
        self.set(queue, bytes);
        self.peak = self.peak.max(self.held);
    }

    /// Sets the number of bytes in the queues from `first` on, in one step: only the sum afterwards
    /// counts for the peak of the buffer. For a port with a queue per class,
    /// [`Link::queued_bytes_by_class`](crate::Link::queued_bytes_by_class) has the numbers.
    ///
    /// # Panics
    /// If there is no such queue.
    #[inline]
    pub fn set_held_from(&mut self, first: usize, bytes: &[u64]) {
        for (queue, bytes) in (first..).zip(bytes) {
            self.set(queue, *bytes);
        }
        self.peak = self.peak.max(self.held);
    }

    #[inline(always)]
    fn set(&mut self, queue: usize, bytes: u64) {
        let queue = &mut self.queues[queue];
        self.held = self.held - queue.held + bytes;
        self.used = self.used - queue.share(queue.held) + queue.share(bytes);
        queue.held = bytes;
        queue.peak = queue.peak.max(bytes);
    }

    /// Number of queues.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Bytes of the shared pool that are free.
    #[inline]
    pub fn free(&self) -> u64 {
        self.pool.saturating_sub(self.used)
    }

    /// Bytes in all queues.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Bytes in `queue`.
    ///
    /// # Panics
    /// If there is no such queue.
    pub fn held_by(&self, queue: usize) -> u64 {
        self.queues[queue].held
    }

    /// Largest number of bytes in all queues together.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Largest number of bytes in `queue`.
    ///
    /// # Panics
    /// If there is no such queue.
    pub fn peak_of(&self, queue: usize) -> u64 {
        self.queues[queue].peak
    }

    /// Starts the peaks anew, at the bytes that are held now.
    pub fn reset_peaks(&mut self) {
        self.peak = self.held;
        self.queues.iter_mut().for_each(|queue| queue.peak = queue.held);
    }
}

#[cfg(test)]
mod tests;
