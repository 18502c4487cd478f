//! Validation of one part of a scenario by itself.

use super::flows::FlowConfig;
use super::links::LinkConfig;
use super::registries::Registries;
use crate::endpoint::tcp;
use crate::parsing::parse::{NamedParams, with_qdisc};
use crate::traffic::source::Source;
use serde_json::Value as Json;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::units::Rate;

/// Validates a part of a scenario: `kind` is `qdisc`, `tcp`, `source`, `link` or `flow`.
///
/// The messages are those for a scenario, with shorter paths. A discipline is checked parameter by
/// parameter: how they depend on each other is checked with the link. A flow is checked without its
/// links.
///
/// # Errors
/// If a name is unknown, a value is invalid, or the kind is.
pub fn check(kind: &str, json: &Json) -> Result<()> {
    check_with(&Registries::standard(), kind, json)
}

/// Validates a part of a scenario, as [`check`], with the names of `registries`.
///
/// # Errors
/// As [`check`].
pub fn check_with(registries: &Registries, kind: &str, json: &Json) -> Result<()> {
    match kind {
        "qdisc" => {
            // Any rate: the sizes that a time means are not looked at here.
            let rate = Rate(1_000_000_000);
            with_qdisc(json, rate, &registries.qdiscs, |entry, settings| entry.check(settings))
        }
        "tcp" => {
            let named = NamedParams::of(json)?;
            let settings = named.settings.iter().copied();
            tcp::parse_with(registries.controls, named.name, settings).map(drop)
        }
        "source" => {
            let named = NamedParams::with_lists(json)?;
            Source::for_source_with(registries.sources, &named).map(drop)
        }
        "link" => LinkConfig::parse("", json, &registries.qdiscs).map(drop),
        "flow" => FlowConfig::check(json, registries),
        _ => Err(Error::unknown("kind", kind, ["qdisc", "tcp", "source", "link", "flow"])),
    }
}
