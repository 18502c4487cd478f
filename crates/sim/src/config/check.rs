//! Validation of one part of a scenario by itself.

use super::flows::FlowConfig;
use super::links::LinkConfig;
use crate::endpoint::tcp;
use crate::parsing::parse::{NamedParams, with_qdisc};
use crate::traffic::source::Source;
use serde_json::Value as Json;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::registry::Registry;

/// Validate a part of a scenario: `kind` is `qdisc`, `tcp`, `source`, `link` or `flow`.
///
/// The messages are those for a scenario, with shorter paths. A discipline is checked parameter by
/// parameter: how they depend on each other is checked with the link. A flow is checked without its
/// links.
///
/// # Errors
/// If a name is unknown, a value is invalid, or the kind is.
pub fn check(kind: &str, json: &Json) -> Result<()> {
    check_with(&Registry::standard(), kind, json)
}

/// Validate a part of a scenario, as [`check`], with the disciplines of `registry`.
///
/// # Errors
/// As [`check`].
pub fn check_with(registry: &Registry, kind: &str, json: &Json) -> Result<()> {
    match kind {
        "qdisc" => with_qdisc(json, registry, |entry, settings| entry.check(settings)),
        "tcp" => {
            let named = NamedParams::of(json)?;
            tcp::parse(named.name, named.settings.iter().copied()).map(drop)
        }
        "source" => Source::for_source(&NamedParams::with_lists(json)?).map(drop),
        "link" => LinkConfig::parse("", json, registry).map(drop),
        "flow" => FlowConfig::check(json),
        _ => Err(Error::unknown("kind", kind, ["qdisc", "tcp", "source", "link", "flow"])),
    }
}
