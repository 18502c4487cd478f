//! Snapshot of a generator behind a pointer, which must be a [`Pcg`].

use super::{CloneRandom, Pcg};
use crate::error::{Error, Result};
use crate::snapshot::{Reader, Snapshot, Writer};
use alloc::boxed::Box;

/// Error for a generator that is not a [`Pcg`].
fn no_pcg() -> Error {
    Error::fixed(
        "the random number generator of the link is not `sojourn_aqm::Pcg`, so its state \
                cannot be saved",
    )
}

impl Snapshot for Box<dyn CloneRandom + Send> {
    fn layout() -> u64 {
        Pcg::layout()
    }

    fn layout_of(&self) -> u64 {
        Pcg::layout()
    }

    fn save_to(&self, out: &mut Writer) -> Result<()> {
        (**self).as_any().downcast_ref::<Pcg>().ok_or_else(no_pcg)?.save_to(out)
    }

    fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
        (**self).as_any_mut().downcast_mut::<Pcg>().ok_or_else(no_pcg)?.load_from(input)
    }

    fn create_from(input: &mut Reader<'_>) -> Result<Self> {
        Pcg::create_from(input).map(|pcg| Box::new(pcg) as _)
    }
}
