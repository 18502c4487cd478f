//! The generator xorshift32, with which recordings of other implementations were made.

use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::random::Random;

/// Generator xorshift32 (Marsaglia, 2003) with the shifts 13, 17 and 5: the new state is the number
/// drawn. Every comparison uses one number of 32 bits.
#[derive(Clone, Debug)]
pub(super) struct Xorshift32(u32);

impl Xorshift32 {
    /// Creates the generator with this state.
    ///
    /// # Errors
    /// A state of 0, from which all numbers would be 0.
    pub(super) fn new(seed: u32) -> Result<Xorshift32> {
        if seed == 0 {
            return Err(Error::new("xorshift32:0 is not allowed, its numbers would all be 0"));
        }
        Ok(Xorshift32(seed))
    }
}

impl Random for Xorshift32 {
    fn uniform(&mut self) -> f64 {
        f64::from(self.draw32()) / 4_294_967_296.0
    }

    fn draw32(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_definition() {
        // Computed by hand from the state 1: 1 -> 0x2001 -> 0x2001 -> 0x42021.
        let mut rng = Xorshift32::new(1).unwrap();
        assert_eq!(rng.draw32(), 0x0004_2021);
        assert!(!rng.at_most(0), "the second number is not 0");
        assert!(rng.at_most(u64::from(u32::MAX)));
        assert!((0.0..1.0).contains(&rng.uniform()));
        assert!(Xorshift32::new(0).is_err());
    }
}
