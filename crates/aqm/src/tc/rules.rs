//! Functions of a qdisc whose words are not translated one by one, and the parameters they read.

use super::table::Line;
use crate::error::Result;
use crate::params::ParamRow;
use crate::units::{Rate, Size, Span};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Effect of a change on the words of a qdisc that it does not name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The qdisc cannot be changed.
    Refused,
    /// tc sends all words: those that are not named return to their defaults.
    All,
    /// They are kept, except these; the words of the second list cannot be changed.
    Named(&'static [&'static str], &'static [&'static str]),
}

/// Functions of a qdisc whose words are not translated one by one.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Parameters here that the functions translate, or that make no difference in Linux.
    pub parameters: &'static [&'static str],
    /// Checks a line, and adds the arguments that tc computes from others.
    pub complete: fn(&mut Line) -> Result<()>,
    /// Settings of the words that are [`Ours::Computed`].
    pub settings: fn(&Line) -> Vec<(&'static str, String)>,
    /// Sets the words that are [`Ours::Computed`]; returns what tc cannot say.
    pub words: fn(&Params<'_>, &mut Line) -> Vec<String>,
    /// True if this qdisc is the one to export a discipline with these parameters to.
    pub fits: fn(&Params<'_>) -> bool,
    /// Effect of a change.
    pub change: Change,
    /// Checks that tc makes on the words of one command.
    pub check: fn(&Line) -> Result<()>,
    /// Prepares the new words of a change that depend on the old line.
    pub merge: fn(&Line, Line) -> Result<Line>,
    /// Rewrites words of `tc qdisc show` to words of a command.
    pub shown: fn(&[&str]) -> Vec<String>,
    /// Words that end the effect of others, given before them.
    pub ends: &'static [(&'static str, &'static [&'static str])],
    /// True if tc refuses a word that is given twice.
    pub once: bool,
    /// True if tc reads abbreviations of the words.
    pub abbreviates: bool,
}

impl Rules {
    /// Rules of a qdisc whose words are all translated one by one.
    pub const NONE: Rules = Rules {
        parameters: &[],
        complete: |_| Ok(()),
        settings: |_| Vec::new(),
        words: |_, _| Vec::new(),
        fits: |_| true,
        change: Change::Named(&[], &[]),
        check: |_| Ok(()),
        merge: |_, new| Ok(new),
        shown: |words| words.iter().map(|w| (*w).to_string()).collect(),
        ends: &[],
        once: false,
        abbreviates: false,
    };

    /// Rules of a qdisc of which tc sends all words with every change.
    pub const ALL: Rules = Rules { change: Change::All, ..Rules::NONE };

    /// Rules of a qdisc that cannot be changed.
    pub const FIXED: Rules = Rules { change: Change::Refused, ..Rules::NONE };
}

/// Parameters of a discipline of this library, which are to be exported.
#[derive(Clone, Copy, Debug)]
pub struct Params<'a> {
    /// All parameters with their values.
    pub rows: &'a [ParamRow],
    /// Rate of the link, if known.
    pub rate: Option<Rate>,
}

impl Params<'_> {
    /// Text of parameter `name`; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.rows.iter().find(|row| row.name == name).map_or("", |row| &row.value)
    }

    /// Number of parameter `name`; 0 if it is not a number.
    pub fn number(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }

    /// Parameter `name` as a size, if it is one.
    pub fn size(&self, name: &str) -> Option<Size> {
        self.text(name).parse().ok()
    }

    /// Parameter `name` as a time in nanoseconds; 0 if it is not one.
    pub fn nanos(&self, name: &str) -> u64 {
        self.text(name).parse().map_or(0, |span: Span| span.0)
    }
}
