//! Random numbers that can be drawn again.

use super::borrowed::Generator;
use sojourn_aqm::random::Random;

/// Number of recorded numbers of a call.
const KEPT: usize = 4;

/// Numbers that a call of native code has drawn. Native code reports only that there was an
/// exception: the plain method is called again with the same numbers, and raises it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drawn {
    numbers: [f64; KEPT],
    /// Number of draws, of which the first are recorded.
    count: usize,
}

impl Drawn {
    /// The recorded numbers.
    pub fn numbers(&self) -> &[f64] {
        &self.numbers[..self.count.min(KEPT)]
    }

    /// Generator that repeats the recorded numbers, and then gives 0.5.
    pub fn again(&self) -> Again<'_> {
        Again(self.numbers().iter())
    }
}

/// Generator that records what it draws.
pub struct Recording<'a> {
    pub from: Generator<'a>,
    pub drawn: &'a mut Drawn,
}

impl Random for Recording<'_> {
    #[inline]
    fn uniform(&mut self) -> f64 {
        let number = self.from.uniform();
        if let Some(place) = self.drawn.numbers.get_mut(self.drawn.count) {
            *place = number;
        }
        self.drawn.count += 1;
        number
    }
}

/// Generator that repeats recorded numbers.
pub struct Again<'a>(std::slice::Iter<'a, f64>);

impl Random for Again<'_> {
    fn uniform(&mut self) -> f64 {
        self.0.next().copied().unwrap_or(0.5)
    }
}
