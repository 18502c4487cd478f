//! Default generator.

use super::stream_key;
use crate::cast;
use crate::error;
use crate::snapshot::{Reader, Snapshot, Writer};
use alloc::format;
use core::convert::Infallible;
use rand_core::{SeedableRng, TryRng};

/// PCG XSL RR 128/64 with a multiplicative congruential generator: the default generator of an
/// embedded link. Fast and small (16 bytes); not for secrets.
///
/// **Source**: M. E. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good
/// Algorithms for Random Number Generation", HMC-CS-2014-0905, 2014. It gives the same numbers as
/// `Pcg64Mcg` of the crate `rand_pcg`, and it can be saved in a [snapshot](crate::snapshot). The
/// simulator uses it.
///
/// ```
/// use sojourn_aqm::{Link, LinkSpec, Pcg, Rate, Span, build_text};
///
/// let spec = LinkSpec::new(Rate(10_000_000), Span::ms(25));
/// let qdisc = build_text("codel(target=15ms)", spec.rate)?.qdisc;
/// let link = Link::new(spec, qdisc, Pcg::new(1))?;
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pcg {
    state: u128,
}

impl Pcg {
    /// Creates a generator. Equal seeds give equal numbers, on every platform.
    pub fn new(seed: u64) -> Pcg {
        Pcg::stream(seed, "")
    }

    /// Creates the generator of the component `name` under `seed`. Components with other names have
    /// independent numbers.
    pub fn stream(seed: u64, name: &str) -> Pcg {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&stream_key(seed, name)[..16]);
        Pcg::from_seed(bytes)
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645);
        let [high, low] = [self.state >> 64, self.state & u128::from(u64::MAX)].map(cast::saturate);
        (high ^ low).rotate_right(cast::low32(high >> 58))
    }
}

/// A new seed of the reader gives the stream that the saved state and this seed determine.
impl Snapshot for Pcg {
    fn layout() -> u64 {
        41
    }

    fn layout_of(&self) -> u64 {
        Pcg::layout()
    }

    fn save_to(&self, out: &mut Writer) -> error::Result<()> {
        self.state.save_to(out)
    }

    fn load_from(&mut self, input: &mut Reader<'_>) -> error::Result<()> {
        *self = Pcg::create_from(input)?;
        Ok(())
    }

    fn create_from(input: &mut Reader<'_>) -> error::Result<Pcg> {
        let state = u128::create_from(input)?;
        Ok(match input.new_seed() {
            None => Pcg { state },
            Some(seed) => Pcg::stream(seed, &format!("{state:032x}")),
        })
    }
}

impl SeedableRng for Pcg {
    type Seed = [u8; 16];

    fn from_seed(seed: [u8; 16]) -> Pcg {
        // The state of a multiplicative generator is odd.
        Pcg { state: u128::from_le_bytes(seed) | 1 }
    }
}

impl TryRng for Pcg {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(cast::low32(self.next_bits()))
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next_bits())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        rand_core::utils::fill_bytes_via_next_word(bytes, || self.try_next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Random;
    use super::*;
    use rand_core::Rng;
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn numbers_equal_those_of_rand_pcg() {
        for seed in [0, 1, 7, u64::MAX] {
            let mut ours = Pcg::stream(seed, "links.up");
            let key = stream_key(seed, "links.up");
            let mut theirs = Pcg64Mcg::from_seed(key[..16].try_into().unwrap());
            for _ in 0..1000 {
                assert_eq!(ours.next_bits(), theirs.next_u64());
            }
            assert_eq!(ours.next_u32(), theirs.next_u32());
            let mut bytes = [[0; 13]; 2];
            ours.fill_bytes(&mut bytes[0]);
            theirs.fill_bytes(&mut bytes[1]);
            assert_eq!(bytes[0], bytes[1]);
            assert_eq!(ours.uniform().to_bits(), Random::uniform(&mut theirs).to_bits());
        }
        let mut theirs = Pcg64Mcg::seed_from_u64(9);
        assert_eq!(Pcg::seed_from_u64(9).next_u64(), theirs.next_u64());
        assert_ne!(Pcg::new(1), Pcg::new(2));
        assert_ne!(Pcg::stream(1, "a"), Pcg::stream(1, "b"));
    }

    #[test]
    fn another_seed_gives_a_stream_that_state_and_seed_determine() {
        let reseeded = |seed: u64, stream: &Pcg| {
            let mut all = [stream.clone()];
            crate::snapshot::reseed(&mut all, seed).unwrap();
            let [stream] = all;
            stream
        };
        let mut one = Pcg::stream(1, "a");
        let other = Pcg::stream(1, "b");
        assert_eq!(reseeded(2, &one), reseeded(2, &one));
        let different = [reseeded(2, &one), reseeded(3, &one), reseeded(2, &other), one.clone()];
        one.next_bits();
        let later = reseeded(2, &one);
        for (i, stream) in different.iter().enumerate() {
            assert!(different[..i].iter().all(|earlier| earlier != stream) && later != *stream);
            assert_eq!(stream.state % 2, 1, "the state of a multiplicative generator is odd");
        }
    }
}
