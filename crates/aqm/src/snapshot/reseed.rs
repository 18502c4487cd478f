//! Other random numbers for a running link or simulation.

use super::{Reader, Snapshot, Writer};
use crate::error::Result;

/// Reseeds every random stream in `value`: its numbers depend on its state and on `seed`. Equal
/// streams with equal seeds stay equal, all others become independent. Everything else stays.
///
/// ```
/// use sojourn_aqm::{Pcg, snapshot::reseed};
///
/// let mut streams = vec![Pcg::stream(1, "a"), Pcg::stream(1, "b")];
/// let before = streams.clone();
/// reseed(&mut streams, 2)?;
/// assert!(streams[0] != before[0] && streams[0] != streams[1]);
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
///
/// # Errors
/// A state that cannot be saved, unless its type has no streams and skips an
/// [in-place](Writer::is_in_place) copy. The state of `value` is then unspecified.
pub fn reseed<T: Snapshot + ?Sized>(value: &mut T, seed: u64) -> Result<()> {
    let mut out = Writer { in_place: true, ..Writer::default() };
    value.save_to(&mut out)?;
    let mut input = Reader { rest: &out.bytes, new_seed: Some(seed) };
    value.load_from(&mut input)?;
    input.finish()
}
