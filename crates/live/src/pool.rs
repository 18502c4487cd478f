//! Places for the bytes of packets: taken and given back, never freed, so that after a warm-up no
//! packet allocates anything.

use sojourn_aqm::cast;

/// Bytes of a place: an Ethernet MTU and to spare.
pub const PLACE: usize = 2048;
/// The most places: half a gigabyte.
pub const PLACES_MAX: u32 = 1 << 18;
/// Places are made by so many at once.
const CHUNK: u32 = 256;

/// The places.
#[derive(Default)]
pub struct Pool {
    chunks: Vec<Box<[u8]>>,
    free: Vec<u32>,
}

impl Pool {
    /// A free place; none if [`PLACES_MAX`] are taken.
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

    /// Gives a place back.
    pub fn give(&mut self, place: u32) {
        self.free.push(place);
    }

    /// The bytes of a place.
    pub fn at(&mut self, place: u32) -> &mut [u8] {
        let start = (place % CHUNK) as usize * PLACE;
        &mut self.chunks[(place / CHUNK) as usize][start..start + PLACE]
    }

    /// How many places are taken.
    pub fn taken(&self) -> usize {
        self.chunks.len() * CHUNK as usize - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_apart_and_used_again() {
        let mut pool = Pool::default();
        let taken: Vec<u32> = (0..1000).map(|_| pool.take().unwrap()).collect();
        taken.iter().for_each(|i| pool.at(*i).fill(*i as u8));
        assert!(taken.iter().all(|i| *pool.at(*i) == [*i as u8; PLACE]));
        taken.iter().for_each(|i| pool.give(*i));
        assert_eq!((pool.take(), pool.taken()), (Some(999), 1));
    }

    #[test]
    fn there_is_an_end() {
        let mut pool = Pool::default();
        assert_eq!((0..PLACES_MAX + 5).filter_map(|_| pool.take()).count(), PLACES_MAX as usize);
    }
}
