//! State of congestion controls and sources of other crates in a snapshot: bytes that they write
//! and read themselves.

use sojourn_aqm::Error;

/// Error for a congestion control or a source (`what`) without `save` and `load`.
pub(crate) fn not_saved(what: &str) -> Error {
    Error::new(format!("this {what} cannot be saved: it does not implement `save` and `load`"))
}

/// Implements `Snapshot` for boxed objects of a trait with `save` and `load`.
macro_rules! external_state {
    ($Trait:ident) => {
        impl sojourn_aqm::Snapshot for Box<dyn $Trait> {
            fn layout() -> u64 {
                40
            }

            fn layout_of(&self) -> u64 {
                40
            }

            fn save_to(&self, out: &mut sojourn_aqm::snapshot::Writer) -> Result<()> {
                if out.is_in_place() {
                    return Ok(());
                }
                let state = (**self).save()?;
                out.length(state.len());
                out.bytes(&state);
                Ok(())
            }

            fn load_from(&mut self, input: &mut sojourn_aqm::snapshot::Reader<'_>) -> Result<()> {
                if input.new_seed().is_some() {
                    return Ok(());
                }
                let length = input.length()?;
                (**self).load(input.bytes(length)?)
            }

            fn create_from(input: &mut sojourn_aqm::snapshot::Reader<'_>) -> Result<Self> {
                Err(input.not_created(stringify!($Trait)))
            }
        }
    };
}
pub(crate) use external_state;
