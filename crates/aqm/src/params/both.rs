//! Combined sets of parameters: none, and two as one.

use super::{ParamRow, Params, Setting, unknown};
use crate::error::Result;
use alloc::vec::Vec;

/// Empty set of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Nothing;

impl Params for Nothing {
    fn set(&mut self, name: &str, _: Setting<'_>) -> Result<()> {
        Err(unknown(&[], name))
    }
    fn knows(&self, _: &str) -> bool {
        false
    }
    fn table(&self) -> Vec<ParamRow> {
        Vec::new()
    }
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// Two sets of parameters as one. A name that is in both sets belongs to `outer`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Combined<O, I> {
    /// Parameters of the discipline, or of the algorithm that adapts another one.
    pub outer: O,
    /// Parameters of the scheduler, the AQM algorithm, or the adapted algorithm inside it.
    pub inner: I,
}

impl<O: Params, I: Params> Params for Combined<O, I> {
    fn set(&mut self, name: &str, value: Setting<'_>) -> Result<()> {
        if self.outer.knows(name) {
            self.outer.set(name, value)
        } else if self.inner.knows(name) {
            self.inner.set(name, value)
        } else {
            Err(unknown(&self.table(), name))
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.outer.knows(name) || self.inner.knows(name)
    }

    fn table(&self) -> Vec<ParamRow> {
        let mut rows = self.outer.table();
        let inner = self.inner.table().into_iter();
        rows.extend(inner.filter(|row| !self.outer.knows(row.name)));
        rows
    }

    fn check(&self) -> Result<()> {
        self.outer.check()?;
        self.inner.check()
    }

    fn assign(&mut self, name: &str, value: Setting<'_>) -> Result<()> {
        if self.outer.knows(name) {
            self.outer.assign(name, value)
        } else {
            self.inner.assign(name, value)
        }
    }
}
