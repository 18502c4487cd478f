//! The language of Linux's `tc`: qdiscs with their words, units and defaults, and their
//! translation to disciplines of this library and back.
//!
//! ```
//! use sojourn_aqm::{Rate, Setting, tc};
//!
//! // A bare time is in microseconds, as in tc.
//! let found = tc::parse("fq_codel limit 1000 target 20000")?;
//! assert_eq!(found.name, "fq_codel");
//! let settings: Vec<_> =
//!     found.settings.iter().map(|(k, v)| (k.as_str(), Setting::Text(v.as_str()))).collect();
//! assert!(settings.contains(&("target", Setting::Text("20ms"))));
//!
//! let built = sojourn_aqm::build(found.name, &settings, Rate(10_000_000))?;
//! let back = tc::export(found.name, &built.params, None)?;
//! assert_eq!(back.line.write(), "fq_codel limit 1000 target 20ms");
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```
//!
//! [`units`] reads numbers as tc does. [`kinds`] has a table per qdisc, from which everything else
//! follows. [`table::Line`] is a qdisc as its words say it, [`convert`] translates it, [`command`]
//! reads whole commands, [`tree`] makes links of them, and [`shown`] prints as `tc qdisc show`.

mod argument;
mod branch;
mod choice;
mod classes;
pub mod command;
pub mod convert;
mod curve;
pub mod device;
mod framing;
mod header;
mod imported_link;
mod ingress;
mod kernel;
mod keys;
pub mod kinds;
pub mod line;
pub mod link;
mod load;
mod netem;
pub mod output;
mod parameters;
mod place;
mod police;
mod prefix;
mod rest;
mod rule;
pub mod script;
pub mod shown;
mod state;
pub mod table;
pub mod tree;
mod tree_export;
pub mod units;

pub use convert::{Discipline, Exported, export};
pub use imported_link::ImportedLink;
pub use line::{Form, find, without_prefix};
pub use table::Line;
pub use tree::{Options, import};
pub use tree_export::{ExportedTree, TreeCommand, export_tree};

use crate::error::Result;

/// Reads a qdisc with its words, or a script of tc for one device, and translates it to a
/// discipline. Parameters that are not given have the defaults of Linux.
///
/// # Errors
/// An unknown qdisc or word, a value that tc would refuse, a qdisc for which this library has no
/// discipline; a script of several devices.
pub fn parse(text: &str) -> Result<Discipline> {
    if tree::is_script(without_prefix(text).unwrap_or(text)) {
        return tree::discipline(without_prefix(text).unwrap_or(text));
    }
    Line::parse(without_prefix(text).unwrap_or(text), Form::Command)?.discipline()
}
