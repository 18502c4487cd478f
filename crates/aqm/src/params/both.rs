//! Combined sets of parameters: none, and two as one.

use super::{ParamRow, Params, Setting, unknown};
use crate::error::Result;
use alloc::vec::Vec;

/// Empty set of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Nothing;

impl Params for Nothing {
    fn assign(&mut self, name: &str, _: Setting<'_>, _: bool) -> Result<()> {
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

impl<O: Params, I: Params> Combined<O, I> {
    fn sets(&self) -> [&dyn Params; 2] {
        [&self.outer, &self.inner]
    }
}

impl<O: Params, I: Params> Params for Combined<O, I> {
    fn assign(&mut self, name: &str, value: Setting<'_>, checks: bool) -> Result<()> {
        assign([&mut self.outer, &mut self.inner], name, value, checks)
    }

    fn knows(&self, name: &str) -> bool {
        knows(self.sets(), name)
    }

    fn table(&self) -> Vec<ParamRow> {
        table(self.sets())
    }

    // Not by `dyn Params`: its table of methods has those that read and write texts.
    fn check(&self) -> Result<()> {
        self.outer.check()?;
        self.inner.check()
    }
}

// The methods of `Combined`, compiled once for all sets.

fn assign(
    [outer, inner]: [&mut dyn Params; 2],
    name: &str,
    value: Setting<'_>,
    checks: bool,
) -> Result<()> {
    if outer.knows(name) {
        outer.assign(name, value, checks)
    } else if inner.knows(name) {
        inner.assign(name, value, checks)
    } else {
        Err(unknown(&table([outer, inner]), name))
    }
}

fn knows(sets: [&dyn Params; 2], name: &str) -> bool {
    sets.iter().any(|set| set.knows(name))
}

fn table([outer, inner]: [&dyn Params; 2]) -> Vec<ParamRow> {
    let mut rows = outer.table();
    rows.extend(inner.table().into_iter().filter(|row| !outer.knows(row.name)));
    rows
}
