//! Snapshots of what is behind a pointer: disciplines and random number generators. Their types
//! are not in the bytes, so they are loaded in place.

use super::{Reader, Snapshot, Writer};
use crate::error::{Error, Result};
use crate::link::Served;
use crate::random::{CloneRandom, Pcg};
use alloc::boxed::Box;

impl Snapshot for Box<dyn Served + Send> {
    fn layout() -> u64 {
        30
    }

    fn layout_of(&self) -> u64 {
        (**self).layout_of()
    }

    fn save_to(&self, out: &mut Writer) -> Result<()> {
        out.bytes(&self.layout_of().to_le_bytes());
        (**self).save_to(out)
    }

    fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
        if input.bytes(8)? != self.layout_of().to_le_bytes() {
            return Err(Error::new("the snapshot is of a link with another discipline"));
        }
        (**self).load_from(input)
    }

    fn create_from(input: &mut Reader<'_>) -> Result<Self> {
        Err(input.not_created("a discipline"))
    }
}

/// Error for a generator that is not a [`Pcg`].
fn no_pcg() -> Error {
    Error::new(
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
