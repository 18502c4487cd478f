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
    fn knows(_: &str) -> bool {
        false
    }
    fn table(&self) -> Vec<ParamRow> {
        Vec::new()
    }
    fn check(&self) -> Result<()> {
        Ok(())
    }
    fn assign(&mut self, name: &str, value: Setting<'_>) -> Result<()> {
        self.set(name, value)
    }
}

/// Two sets as one: those of the discipline, then those of its AQM algorithm. A name that both have
/// belongs to the discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Combined<F, L> {
    /// Parameters of the discipline.
    pub frame: F,
    /// Parameters of the AQM algorithm.
    pub aqm: L,
}

impl<F: Params, L: Params> Params for Combined<F, L> {
    fn set(&mut self, name: &str, value: Setting<'_>) -> Result<()> {
        if F::knows(name) {
            self.frame.set(name, value)
        } else if L::knows(name) {
            self.aqm.set(name, value)
        } else {
            Err(unknown(&self.table(), name))
        }
    }

    fn knows(name: &str) -> bool {
        F::knows(name) || L::knows(name)
    }

    fn table(&self) -> Vec<ParamRow> {
        let mut rows = self.frame.table();
        let aqm = self.aqm.table();
        rows.extend(
            aqm.into_iter().filter(|r| !self.frame.table().iter().any(|f| f.name == r.name)),
        );
        rows
    }

    fn check(&self) -> Result<()> {
        self.frame.check()?;
        self.aqm.check()
    }

    fn assign(&mut self, name: &str, value: Setting<'_>) -> Result<()> {
        if F::knows(name) { self.frame.assign(name, value) } else { self.aqm.assign(name, value) }
    }
}
