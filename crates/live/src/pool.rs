//! Pool of packet buffers: buffers are reused and never freed, so that no packet allocates after a
//! warm-up.

use sojourn_aqm::cast;

/// Size of a buffer in bytes: more than an Ethernet MTU.
pub const PLACE: usize = 2048;
/// Maximum number of buffers: half a gigabyte.
pub const PLACES_MAX: u32 = 1 << 18;
/// Number of buffers allocated at once.
const CHUNK: u32 = 256;

/// Pool of packet buffers.
#[derive(Default)]
pub struct Pool {
    chunks: Vec<Box<[u8]>>,
    free: Vec<u32>,
}

impl Pool {
    /// Take a free buffer; None if [`PLACES_MAX`] are in use.
    pub fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            let made = cast::number(self.chunks.len()) * CHUNK;
            if made == PLACES_MAX {
                return None;
            }
            self.chunks.push(vec![0; CHUNK as usize * PLACE].into());
            self.free.reserve((made + CHUNK) as usize);
            self.free.extend((made..made + CHUNK).rev());
        }
        self.free.pop()
    }

    /// Return a buffer.
    pub fn give(&mut self, place: u32) {
        self.free.push(place);
    }

    /// Bytes of a buffer.
    pub fn at(&mut self, place: u32) -> &mut [u8] {
        let start = (place % CHUNK) as usize * PLACE;
        &mut self.chunks[(place / CHUNK) as usize][start..start + PLACE]
    }

    /// Number of buffers in use.
    pub fn taken(&self) -> usize {
        self.chunks.len() * CHUNK as usize - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_disjoint_and_reused() {
        let mut pool = Pool::default();
        let taken: Vec<u32> = (0..1000).map(|_| pool.take().unwrap()).collect();
        taken.iter().for_each(|i| pool.at(*i).fill(*i as u8));
        assert!(taken.iter().all(|i| *pool.at(*i) == [*i as u8; PLACE]));
        taken.iter().for_each(|i| pool.give(*i));
        assert_eq!((pool.take(), pool.taken()), (Some(999), 1));
    }

    #[test]
    fn the_number_of_buffers_is_limited() {
        let mut pool = Pool::default();
        assert_eq!((0..PLACES_MAX + 5).filter_map(|_| pool.take()).count(), PLACES_MAX as usize);
    }
}
