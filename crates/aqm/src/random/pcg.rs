//! Default generator.

use super::{Random, stream_key};
use crate::cast;

/// PCG XSL RR 128/64 with a multiplicative congruential generator: the default generator of an
/// embedded link. Fast and small (16 bytes); not for secrets.
///
/// **Source**: M. E. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good
/// Algorithms for Random Number Generation", HMC-CS-2014-0905, 2014. It gives the same numbers as
/// `Pcg64Mcg` of the crate `rand_pcg`, which the simulator uses.
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
        // The state of a multiplicative generator is odd.
        Pcg { state: u128::from_le_bytes(bytes) | 1 }
    }

    /// Returns the next 64 random bits.
    pub fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645);
        let [high, low] = [self.state >> 64, self.state & u128::from(u64::MAX)].map(cast::saturate);
        (high ^ low).rotate_right(cast::low32(high >> 58))
    }
}

impl Random for Pcg {
    fn uniform(&mut self) -> f64 {
        (self.next_bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
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
            assert_eq!(ours.uniform().to_bits(), Random::uniform(&mut theirs).to_bits());
        }
        assert_ne!(Pcg::new(1), Pcg::new(2));
        assert_ne!(Pcg::stream(1, "a"), Pcg::stream(1, "b"));
    }
}
