//! Traffic sources and TCPs of groups of flows. Equal texts are parsed once.

use super::flows::FLOW;
use super::registries::Registries;
use super::shared::Shared;
use crate::endpoint::tcp::{self, TcpParams};
use crate::parsing::parse::NamedParams;
use crate::traffic::source::Source;
use serde_json::Value as Json;
use sojourn_aqm::error::Result;
use std::borrow::Cow;
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
    sources: Shared<Option<&'a Json>, Arc<Source>>,
    tcps: Shared<Option<&'a Json>, Arc<TcpParams>>,
}

impl<'a> Senders<'a> {
    pub(super) fn new(registries: &'a Registries) -> Senders<'a> {
        Senders { registries, sources: Shared::default(), tcps: Shared::default() }
    }

    /// Returns the source in `json`, or the default.
    pub(super) fn source(&mut self, json: Option<&'a Json>) -> Result<Arc<Source>> {
        self.sources.get(json, || {
            let json = json.map_or_else(|| Cow::Owned(FLOW.default_of("source")), Cow::Borrowed);
            let named = NamedParams::with_lists(&json)?;
            Source::for_source_with(self.registries.sources, &named).map(Arc::new)
        })
    }

    /// Returns the TCP in `json`, or the default.
    pub(super) fn tcp(&mut self, json: Option<&'a Json>) -> Result<Arc<TcpParams>> {
        self.tcps.get(json, || {
            let json = json.map_or_else(|| Cow::Owned(FLOW.default_of("tcp")), Cow::Borrowed);
            let named = NamedParams::of(&json)?;
            let settings = named.settings.iter().copied();
            tcp::parse_with(self.registries.controls, named.name, settings).map(Arc::new)
        })
    }
}
