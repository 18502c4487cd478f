//! Pool of packet buffers: buffers are reused and never freed, so that no packet allocates after a
//! warm-up.

use sojourn_aqm::cast;

/// Size of a buffer in bytes: more than an Ethernet MTU.
pub const BUFFER_BYTES: usize = 2048;
/// Maximum number of buffers: half a gigabyte.
pub const BUFFERS_MAX: u32 = 1 << 18;
/// Number of buffers allocated at once.
const BUFFERS_PER_CHUNK: u32 = 256;

/// Pool of packet buffers.
#[derive(Debug, Default)]
pub struct BufferPool {
    chunks: Vec<Box<[u8]>>,
    free: Vec<u32>,
}

impl BufferPool {
    /// Takes a free buffer; None if [`BUFFERS_MAX`] are in use.
    pub fn allocate(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            let buffers = cast::number(self.chunks.len()) * BUFFERS_PER_CHUNK;
            if buffers == BUFFERS_MAX {
                return None;
            }
            self.chunks.push(vec![0; BUFFERS_PER_CHUNK as usize * BUFFER_BYTES].into());
            self.free.reserve((buffers + BUFFERS_PER_CHUNK) as usize);
            self.free.extend((buffers..buffers + BUFFERS_PER_CHUNK).rev());
        }
        self.free.pop()
    }

    /// Copies a buffer; None if [`BUFFERS_MAX`] are in use.
    pub fn copy(&mut self, place: u32) -> Option<u32> {
        let to = self.allocate()?;
        let bytes: [u8; BUFFER_BYTES] = self.get(place).try_into().ok()?;
        self.get_mut(to).copy_from_slice(&bytes);
        Some(to)
    }

    /// Returns a buffer.
    pub fn free(&mut self, place: u32) {
        self.free.push(place);
    }

    /// Bytes of a buffer.
    pub fn get(&self, place: u32) -> &[u8] {
        let start = (place % BUFFERS_PER_CHUNK) as usize * BUFFER_BYTES;
        &self.chunks[(place / BUFFERS_PER_CHUNK) as usize][start..start + BUFFER_BYTES]
    }

    /// Bytes of a buffer, for writing.
    pub fn get_mut(&mut self, place: u32) -> &mut [u8] {
        let start = (place % BUFFERS_PER_CHUNK) as usize * BUFFER_BYTES;
        &mut self.chunks[(place / BUFFERS_PER_CHUNK) as usize][start..start + BUFFER_BYTES]
    }

    /// Number of buffers in use.
    pub fn in_use(&self) -> usize {
        self.chunks.len() * BUFFERS_PER_CHUNK as usize - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_disjoint_and_reused() {
        let mut pool = BufferPool::default();
        let taken: Vec<u32> = (0..1000).map(|_| pool.allocate().unwrap()).collect();
        taken.iter().for_each(|i| pool.get_mut(*i).fill(*i as u8));
        assert!(taken.iter().all(|i| *pool.get_mut(*i) == [*i as u8; BUFFER_BYTES]));
        taken.iter().for_each(|i| pool.free(*i));
        assert_eq!((pool.allocate(), pool.in_use()), (Some(999), 1));
    }

    #[test]
    fn the_number_of_buffers_is_limited() {
        let mut pool = BufferPool::default();
        assert_eq!(
            (0..BUFFERS_MAX + 5).filter_map(|_| pool.allocate()).count(),
            BUFFERS_MAX as usize
        );
    }
}
