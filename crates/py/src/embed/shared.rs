//! Bodies on a link, which copies and saves them.

use super::Body;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sojourn_aqm::snapshot::{Reader, Snapshot, Writer};
use sojourn_aqm::{Error, Result};

/// Body that the link can copy, for impairments that duplicate packets: both refer to one object.
pub(super) struct Shared(pub(super) Body);

impl Clone for Shared {
    fn clone(&self) -> Shared {
        Shared(Python::attach(|py| self.0.clone_ref(py)))
    }
}

// As a `Vec<u8>`, so that programs in Rust with such bodies have the same snapshots.
impl Snapshot for Shared {
    fn layout() -> u64 {
        Vec::<u8>::layout()
    }

    fn layout_of(&self) -> u64 {
        Vec::<u8>::layout()
    }

    fn save_to(&self, out: &mut Writer) -> Result<()> {
        let bytes = Python::attach(|py| self.0.extract::<Vec<u8>>(py));
        bytes.map_err(|_| Error::new("a body is not bytes"))?.save_to(out)
    }

    fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
        *self = Shared::create_from(input)?;
        Ok(())
    }

    fn create_from(input: &mut Reader<'_>) -> Result<Shared> {
        let bytes = Vec::<u8>::create_from(input)?;
        Ok(Python::attach(|py| Shared(PyBytes::new(py, &bytes).into_any().unbind())))
    }
}
