//! Random numbers: keys of the random streams, and the interface to the generator.
//!
//! The caller supplies the generator; [`Pcg`] is one.

mod flow_hash;
mod pcg;
mod saved;

pub use flow_hash::{FiveTuple, flow_hash, host_key};
pub use pcg::Pcg;

use crate::cast;
use alloc::boxed::Box;
use core::any::Any;
use rand_core::Rng;

/// Returns the 32-byte seed of the random stream of the component `name` under `seed`.
///
/// The key is a hash of both and does not depend on the order of creation: adding a flow or
/// changing a discipline does not affect the random numbers of any other component.
///
/// ```
/// use sojourn_aqm::random::stream_key;
/// assert_ne!(stream_key(1, "links.up"), stream_key(1, "links.down"));
/// assert_ne!(stream_key(1, "links.up"), stream_key(2, "links.up"));
/// ```
pub fn stream_key(seed: u64, name: &str) -> [u8; 32] {
    // FNV-1a over (lane, seed, name) for four words at once. The lane comes first, so that the
    // words differ.
    let mut words = [0u64, 1, 2, 3].map(|lane| fnv1a(FNV, lane.to_le_bytes().into_iter()));
    for byte in seed.to_le_bytes().into_iter().chain(name.bytes()) {
        words = words.map(|word| step(word, byte));
    }
    let mut bytes = [0; 32];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&mix(word).to_le_bytes());
    }
    bytes
}

/// Returns a 32-bit hash of a name, which identifies flows in hashed queues.
pub fn hash(name: &str) -> u32 {
    cast::low32(mix(fnv1a(FNV, name.bytes())))
}

/// Offset basis of FNV-1a, 64 bits.
const FNV: u64 = 0xcbf2_9ce4_8422_2325;

/// One step of FNV-1a.
fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

fn fnv1a(from: u64, bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(from, step)
}

/// Mixes the bits of `x` (finalizer of MurmurHash3, a bijection).
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// Random numbers for AQM algorithms. Implemented for every [`rand_core::Rng`]; conformance tests
/// implement it with a recording.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no generator of random numbers for `sojourn_aqm`",
    label = "neither a generator of `rand_core` 0.10 nor a `Random`",
    note = "use a generator of `rand_core` 0.10, or implement `sojourn_aqm::Random`"
)]
pub trait Random {
    /// Returns a number in [0, 1) with 53 random bits.
    fn uniform(&mut self) -> f64;

    /// Returns true with probability `p` (clamped to [0, 1]). Draws one number `u` and returns `u <
    /// p`.
    fn bernoulli(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Returns an integer in `0..n`, uniform to within n/2^53. `n` must not be 0.
    fn below(&mut self, n: u32) -> u32 {
        cast::low32(cast::trunc(self.uniform() * f64::from(n)))
    }

    /// Returns 32 random bits.
    fn draw32(&mut self) -> u32 {
        cast::low32(cast::trunc(self.uniform() * 4_294_967_296.0))
    }

    /// Draws 32 random bits and returns true if they are at most `bound`: how Linux compares a
    /// random number with a probability in fixed point.
    fn at_most(&mut self, bound: u64) -> bool {
        u64::from(self.draw32()) <= bound
    }
}

/// Generator that can be copied behind a pointer. Implemented for every generator that is `Clone`.
pub trait CloneRandom: Random {
    /// Returns a copy that continues with the same numbers.
    fn clone_box(&self) -> Box<dyn CloneRandom + Send>;
    /// This generator, to find out its type.
    #[doc(hidden)]
    fn as_any(&self) -> &dyn Any;
    /// As [`CloneRandom::as_any`].
    #[doc(hidden)]
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<R: Random + Clone + Send + 'static> CloneRandom for R {
    fn clone_box(&self) -> Box<dyn CloneRandom + Send> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Clone for Box<dyn CloneRandom + Send> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

// Every method is passed on: a generator may have its own of each.
impl Random for Box<dyn CloneRandom + Send> {
    fn uniform(&mut self) -> f64 {
        (**self).uniform()
    }
    fn bernoulli(&mut self, p: f64) -> bool {
        (**self).bernoulli(p)
    }
    fn below(&mut self, n: u32) -> u32 {
        (**self).below(n)
    }
    fn draw32(&mut self) -> u32 {
        (**self).draw32()
    }
    fn at_most(&mut self, bound: u64) -> bool {
        (**self).at_most(bound)
    }
}

impl<R: Rng> Random for R {
    fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn stream_is_pinned() {
        // A new rand_pcg or a change of the key would change every result; this test detects it.
        let k = stream_key(1, "links.bottleneck");
        let mut rng = Pcg64Mcg::from_seed(k[..16].try_into().unwrap());
        let first: [u32; 4] = core::array::from_fn(|_| rng.below(1000));
        assert_eq!(first, [436, 135, 351, 802]);
    }

    #[test]
    fn below_is_flat() {
        let mut rng = Pcg64Mcg::seed_from_u64(7);
        let mut counts = [0; 5];
        (0..50_000).for_each(|_| counts[rng.below(5) as usize] += 1);
        assert!(counts.iter().all(|c| (9_600..10_400).contains(c)), "{counts:?}");
    }

    /// Generator that always returns the same 32 bits.
    struct Bits(u64);

    impl Random for Bits {
        fn uniform(&mut self) -> f64 {
            self.0 as f64 / 4_294_967_296.0
        }
    }

    /// Computed with another implementation of FNV-1a and of MurmurHash3's finalizer.
    #[test]
    fn keys_and_hashes_are_pinned() {
        assert_eq!(hash("links.up"), 0xb2c7_c7e6);
        let words = [
            0x6086_c656_fe94_a885u64,
            0xbe2f_452e_3d57_5db5,
            0xec53_e162_d3fc_1ef5,
            0x78a0_7f9b_d329_a6c1,
        ];
        let key = words.into_iter().flat_map(u64::to_le_bytes);
        assert!(stream_key(7, "links.up").into_iter().eq(key));
        assert_eq!(mix(1), 0xb456_bcfc_34c2_cb2c);
    }

    #[test]
    fn comparisons_with_a_random_number() {
        let mut half = Bits(1 << 31);
        assert!(half.bernoulli(0.500_001) && !half.bernoulli(0.5) && !half.bernoulli(0.0));
        assert_eq!((half.below(7), half.draw32()), (3, 1 << 31));
        assert!(half.at_most(1 << 31) && !half.at_most((1 << 31) - 1));
        assert_eq!(Bits((1 << 32) - 1).draw32(), u32::MAX);
        let mut rng = Pcg64Mcg::seed_from_u64(7);
        let bits = rng.clone().next_u64() >> 11;
        assert_eq!(Random::uniform(&mut rng) * (1u64 << 53) as f64, bits as f64);
    }
}
