//! State of classes in Python in a snapshot: attributes of objects as text, and words of compiled
//! objects. Loading executes no code of the snapshot.

use super::error_of;
use pyo3::prelude::*;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::snapshot::{Reader, Snapshot, Writer};

fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("sojourn.custom.snapshot")
}

/// Appends the attributes of `object`.
///
/// # Errors
/// An attribute that cannot be saved.
pub fn save_object(object: &Py<PyAny>, out: &mut Writer) -> Result<()> {
    let text =
        Python::attach(|py| module(py)?.call_method1("save", (object,))?.extract::<String>());
    out.text(&text.map_err(|e| error_of(&e))?);
    Ok(())
}

/// Replaces the attributes of `object` by saved ones.
///
/// # Errors
/// Bytes that are not attributes.
pub fn load_object(object: &Py<PyAny>, input: &mut Reader<'_>) -> Result<()> {
    let text = input.text()?;
    Python::attach(|py| module(py)?.call_method1("load", (object, text)).map(drop))
        .map_err(|e| error_of(&e))
}

/// Replaces the state of a compiled object. Its native code reads as many words as it has.
///
/// # Errors
/// A state with another number of words.
pub fn load_words(state: &mut Vec<u64>, input: &mut Reader<'_>) -> Result<()> {
    let words = Vec::<u64>::create_from(input)?;
    if words.len() != state.len() {
        return Err(Error::new("the state in the snapshot is of another version of the class"));
    }
    *state = words;
    Ok(())
}

/// Implements [`Snapshot`] for a type of this crate, which is loaded in place: `save` and `load`.
macro_rules! in_place {
    ($Type:ty, $number:literal, $save:expr, $load:expr) => {
        impl sojourn_aqm::Snapshot for $Type {
            fn layout() -> u64 {
                $number
            }

            fn layout_of(&self) -> u64 {
                $number
            }

            fn save_to(&self, out: &mut sojourn_aqm::snapshot::Writer) -> sojourn_aqm::Result<()> {
                // No object has a random stream.
                if out.is_in_place() {
                    return Ok(());
                }
                let save: fn(&Self, &mut sojourn_aqm::snapshot::Writer) -> _ = $save;
                save(self, out)
            }

            fn load_from(
                &mut self,
                input: &mut sojourn_aqm::snapshot::Reader<'_>,
            ) -> sojourn_aqm::Result<()> {
                if input.new_seed().is_some() {
                    return Ok(());
                }
                let load: fn(&mut Self, &mut sojourn_aqm::snapshot::Reader<'_>) -> _ = $load;
                load(self, input)
            }

            fn create_from(
                input: &mut sojourn_aqm::snapshot::Reader<'_>,
            ) -> sojourn_aqm::Result<Self> {
                Err(input.not_created("a class in Python"))
            }
        }
    };
}
pub(super) use in_place;
