//! Linux's way from the DSCP of a packet to a band: its priority, and `priomap`.

use crate::cast;
use crate::error::{Error, Result};
use crate::snapshot::Snapshot;
use alloc::format;

/// Linux's `priomap`: the band of each of the 16 priorities.
pub(crate) const PRIOMAP: [u64; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

/// Linux's priority of each value of the last three bits of a DSCP (`rt_tos2priority`): best
/// effort, bulk, interactive, and interactive bulk.
const PRIORITIES: [u8; 8] = [0, 0, 2, 2, 6, 6, 4, 4];

/// Band of each value of the last three bits of a DSCP, or none: the class is the band.
#[derive(Clone, Copy, Debug, Snapshot)]
pub(crate) struct PriorityMap(Option<[u32; 8]>);

impl PriorityMap {
    /// Every class is a band of its own.
    pub const NONE: PriorityMap = PriorityMap(None);

    /// Creates the map of a `priomap` for this many bands. Priorities without an entry have the
    /// entry of `rest`; entries of bands that do not exist mean the last band. An empty `priomap`
    /// is [`PriorityMap::NONE`].
    ///
    /// # Errors
    /// More than 16 entries.
    pub fn new(priomap: &[u64], rest: &[u64; 16], bands: usize) -> Result<PriorityMap> {
        if priomap.len() > PRIOMAP.len() {
            let text = format!("{} bands for 16 priorities", priomap.len());
            return Err(Error::new(text).at("priomap"));
        }
        let last = bands.saturating_sub(1) as u64;
        let band = |priority: u8| {
            let i = usize::from(priority);
            let band = priomap.get(i).unwrap_or(&rest[i]);
            cast::index32(cast::index((*band).min(last)))
        };
        Ok(PriorityMap((!priomap.is_empty()).then(|| PRIORITIES.map(band))))
    }

    /// Returns the band of packets of the DSCP `class`.
    #[inline]
    pub fn band(self, class: u16) -> Option<u32> {
        self.0.map(|bands| bands[usize::from(class & 7)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    fn bands(priomap: &[u64], of: usize, classes: [u16; 6]) -> Vec<u32> {
        let map = PriorityMap::new(priomap, &PRIOMAP, of).unwrap();
        classes.iter().map(|class| map.band(*class).unwrap()).collect()
    }

    #[test]
    fn the_default_is_that_of_linux() {
        // Best effort, EF, CS6, AF11, AF12, AF42.
        assert_eq!(bands(&PRIOMAP, 3, [0, 46, 48, 10, 12, 36]), [1, 1, 1, 2, 0, 0]);
    }

    #[test]
    fn a_short_map_is_completed_and_a_band_that_is_missing_is_the_last_one() {
        assert_eq!(bands(&[2], 3, [0, 46, 48, 10, 12, 36]), [2, 1, 2, 2, 0, 0]);
        assert_eq!(bands(&[9, 9, 9, 9, 9, 9, 9], 2, [0, 46, 48, 10, 12, 36]), [1; 6]);
        assert_eq!(PriorityMap::new(&[], &PRIOMAP, 3).unwrap().band(46), None);
        let error = PriorityMap::new(&[0; 17], &PRIOMAP, 3).unwrap_err();
        assert_eq!(error.to_string(), "priomap: 17 bands for 16 priorities");
    }
}
