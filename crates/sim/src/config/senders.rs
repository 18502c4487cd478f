//! Traffic sources and TCPs of groups of flows. Equal texts are parsed once.

use super::registries::Registries;
use super::shared::Shared;
use crate::endpoint::tcp::{self, TcpParams};
use crate::parsing::parse::NamedParams;
use crate::traffic::source::Source;
use serde_json::Value as Json;
use sojourn_aqm::error::Result;
use std::sync::Arc;

/// Group of flows as it is written.
pub(super) struct FlowText<'a> {
    /// All keys, or all but `source` and `tcp`.
    pub keys: &'a Json,
    /// Value of `source`.
    pub source: Option<&'a Json>,
    /// Value of `tcp`.
    pub tcp: Option<&'a Json>,
}

impl<'a> FlowText<'a> {
    pub(super) fn of(json: &'a Json) -> FlowText<'a> {
        FlowText { keys: json, source: json.get("source"), tcp: json.get("tcp") }
    }
}

/// Parser of the sources and TCPs of groups.
pub(super) struct Senders<'a> {
    registries: &'a Registries,
    /// Default source and TCP.
    defaults: [Json; 2],
    sources: Shared<Option<&'a Json>, Arc<Source>>,
    tcps: Shared<Option<&'a Json>, Arc<TcpParams>>,
}

impl<'a> Senders<'a> {
    /// Creates a parser with this default source and TCP.
    pub(super) fn new(registries: &'a Registries, defaults: [Json; 2]) -> Senders<'a> {
        Senders { registries, defaults, sources: Shared::default(), tcps: Shared::default() }
    }

    /// Returns the source in `json`, or the default.
    pub(super) fn source(&mut self, json: Option<&'a Json>) -> Result<Arc<Source>> {
        let Senders { registries, defaults: [default, _], sources, .. } = self;
        sources.get(json, || {
            let named = NamedParams::with_lists(json.unwrap_or(default))?;
            Source::for_source_with(registries.sources, &named).map(Arc::new)
        })
    }

    /// Returns the TCP in `json`, or the default.
    pub(super) fn tcp(&mut self, json: Option<&'a Json>) -> Result<Arc<TcpParams>> {
        let Senders { registries, defaults: [_, default], tcps, .. } = self;
        tcps.get(json, || {
            let named = NamedParams::of(json.unwrap_or(default))?;
            let settings = named.settings.iter().copied();
            tcp::parse_with(registries.controls, named.name, settings).map(Arc::new)
        })
    }
}
