//! Buffer that the ports of a switch share, with a dynamic threshold.
//!
//! **Source**: Choudhury, Hahne: Dynamic Queue Length Thresholds for Shared-Memory Packet Switches,
//! IEEE/ACM Transactions on Networking 6(2), 1998. A queue may hold at most alpha times the free
//! bytes. If n queues want more, each holds alpha B / (1 + alpha n) bytes of a buffer of B bytes,
//! and B / (1 + alpha n) bytes stay free for the first packets of other queues. Reserves are as in
//! switches: bytes that only one port can use, which are not a part of the shared pool.

use crate::error::{Error, Result};
use crate::params::checked;
use crate::snapshot::Snapshot;
use crate::units::Bytes;
use alloc::format;
use alloc::vec::Vec;

/// A buffer that several queues, the ports of a switch, share.
///
/// It only counts. The owner asks [`SharedBuffer::admits`] before it enqueues a packet at the
/// discipline of a port, drops the packet if the answer is false (on a [`Link`](crate::Link) with
/// [`Link::refuse`](crate::Link::refuse)), and calls [`SharedBuffer::set_held`] after every enqueue
/// and dequeue. A discipline may drop further packets for its own reasons.
///
/// A packet is admitted if its port then holds no more than its reserve, or if the bytes above the
/// reserve are then at most alpha times the bytes that are free in the shared pool before. The pool
/// is the buffer without all reserves.
///
/// ```
/// use sojourn_aqm::{Bytes, SharedBuffer};
///
/// let mut buffer = SharedBuffer::new(Bytes(4_000_000), 1.0, &[Bytes(0); 3])?;
/// buffer.set_held(0, 2_000_000);
/// assert!(!buffer.admits(0, 1500), "port 0 holds as much as is free");
/// assert!(buffer.admits(1, 1500));
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
#[derive(Clone, Debug, Snapshot)]
pub struct SharedBuffer {
    /// Size of the pool that is shared: the buffer without all reserves, bytes.
    pool: u64,
    /// Bytes of the pool that are used.
    used: u64,
    alpha: f64,
    /// Bytes in the queues of all ports.
    held: u64,
    /// Largest value of `held`.
    peak: u64,
    ports: Vec<Port>,
}

/// Bytes of one port.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct Port {
    reserve: u64,
    held: u64,
    /// Largest value of `held`.
    peak: u64,
}

impl Port {
    /// Bytes of the pool that the port uses if it holds `held` bytes.
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

    /// Creates an empty buffer of `size` for a port per entry of `reserves`.
    ///
    /// # Errors
    /// A size above [`SharedBuffer::SIZE_MAX`], an alpha outside of [`SharedBuffer::ALPHA`], no
    /// port, or reserves that are larger than the buffer together.
    pub fn new(size: Bytes, alpha: f64, reserves: &[Bytes]) -> Result<SharedBuffer> {
        checked(size, Some((Bytes(1), SharedBuffer::SIZE_MAX))).map_err(|e| e.at("size"))?;
        let [least, most] = SharedBuffer::ALPHA;
        checked(alpha, Some((least, most))).map_err(|e| e.at("alpha"))?;
        if reserves.is_empty() {
            return Err(Error::new("a shared buffer has at least one port"));
        }
        let reserved = reserves.iter().fold(0, |sum: u64, reserve| sum.saturating_add(reserve.0));
        let Some(pool) = size.0.checked_sub(reserved) else {
            let text = format!("{} in all exceed the buffer of {size}", Bytes(reserved));
            return Err(Error::new(text).at("reserve"));
        };
        let ports = reserves.iter().map(|reserve| Port { reserve: reserve.0, ..Port::default() });
        Ok(SharedBuffer { pool, used: 0, alpha, held: 0, peak: 0, ports: ports.collect() })
    }

    /// True if a packet of `len` bytes is admitted to the queue of `port`.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn admits(&self, port: usize, len: u32) -> bool {
        let port = &self.ports[port];
        let (now, then) = (port.share(port.held), port.share(port.held + u64::from(len)));
        // The product is below 2^54, and a fraction of a byte does not count.
        then == 0 || (then - now <= self.free() && then as f64 <= self.alpha * self.free() as f64)
    }

    /// Sets the number of bytes in the queue of `port`.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn set_held(&mut self, port: usize, bytes: u64) {
        let port = &mut self.ports[port];
        self.held = self.held - port.held + bytes;
        self.used = self.used - port.share(port.held) + port.share(bytes);
        port.held = bytes;
        port.peak = port.peak.max(bytes);
        self.peak = self.peak.max(self.held);
    }

    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Bytes of the shared pool that are free.
    #[inline]
    pub fn free(&self) -> u64 {
        self.pool.saturating_sub(self.used)
    }

    /// Bytes in the queues of all ports.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Bytes in the queue of `port`.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn held_by(&self, port: usize) -> u64 {
        self.ports[port].held
    }

    /// Largest number of bytes in the queues of all ports together.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Largest number of bytes in the queue of `port`.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn peak_of(&self, port: usize) -> u64 {
        self.ports[port].peak
    }

    /// Starts the peaks anew, at the bytes that are held now.
    pub fn reset_peaks(&mut self) {
        self.peak = self.held;
        self.ports.iter_mut().for_each(|port| port.peak = port.held);
    }
}

#[cfg(test)]
mod tests;
