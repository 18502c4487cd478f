//! Parser and validation of a scenario's JSON. A parsed scenario is valid: nothing that uses it can
//! fail.

use super::flows::{FlowConfig, parse_flows};
use super::links::{LinkConfig, parse_links_with};
use super::registries::Registries;
use super::senders::FlowText;
use super::switches::{SwitchConfig, parse_switches};
use crate::collections::event_queue::EventQueue;
use crate::collections::link_queue::LinkQueue;
use crate::config::changes::{self, Change};
use crate::config::memory;
use crate::config::warm_from::WarmFrom;
use crate::parsing::keys::table;
use crate::parsing::parse::{self, KeyReader};
use serde_json::Value as Json;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::Value;
use sojourn_aqm::units::Span;
use std::sync::Arc;

table! {
    /// Duration, recording, links, flows and changes of the experiment.
    static SCENARIO at "", struct ScenarioKeys of Scenario, setters scenario_setters;

    /// Name of the scenario, shown in titles: printable text.
    name: "text", default "scenario", [], "\"home-uplink\"";

    /// Simulated time.
    duration: Span, required, ["1ns" => "10000000s"], "\"60s\"";

    /// Time at the start that is left out of the measurements; shorter than duration.
    warmup: Span, default "0s", [], "\"10s\"";

    /// Seed of all random numbers: equal scenarios with equal seeds give equal results.
    seed: u64, default "1", ["0" => "9007199254740992"], "7";

    /// Sampling interval of the time series, from 1us to duration.
    sample: Span, optional "no time series", [], "\"100ms\"";

    /// True to record time series of each flow, false for links and groups only.
    sample_flows: bool, default "true", [], "false";

    /// True to record a packet log: one row per packet and link.
    packet_log: bool, default "false", [], "true";

    /// Links by name. A name has 1 to 64 letters, digits, "_" and "-".
    links: "table of links", required, [], "{ up = { rate = \"10mbit\" } }";

    /// Switches by name: links whose queues share a buffer.
    switches: "table of switches", optional "none: each link has a buffer of its own", [],
        "{ tor = { buffer = \"4MB\", ports = [\"up\"] } }";

    /// Groups of flows; the flows of a group have the same settings.
    flows: "list of flows", required, [], "[{ name = \"upload\", path = [\"up\"] }]";

    /// Changes during the run.
    changes: "list of changes", optional "no changes", [],
        "[{ at = \"30s\", leave = [\"upload\"] }]";

    /// Another seed up to a time, so that runs with different seeds have a common past: written for
    /// runs that start from a warm state.
    warm_from: "table", optional "the seed applies from the start", [],
        "{ at = \"2s\", seed = 7 }";
}

/// Valid scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name, for titles.
    pub(crate) name: String,
    /// Duration, seed and recording.
    pub(crate) keys: ScenarioKeys,
    /// Links, sorted by name.
    pub(crate) links: Arc<[LinkConfig]>,
    /// Switches, sorted by name.
    pub(crate) switches: Arc<[SwitchConfig]>,
    /// Groups of flows, as declared.
    pub(crate) flows: Arc<[FlowConfig]>,
    /// Scheduled changes, as declared.
    pub(crate) changes: Vec<Change>,
    /// Seed up to a time; kept if it equals the seed, for [`Scenario::with_seed`].
    pub(crate) warm_from: Option<WarmFrom>,
}

/// Maximum number of flows that groups declare: all pairs of 1,400 hosts.
const FLOWS_MAX: u64 = 2_000_000;
/// Number of flows above which those that sources may open must fit into memory.
const UNCHECKED_FLOWS: u64 = 1_000_000;
/// Maximum seed: the largest integer up to which JSON numbers are exact.
const SEED_MAX: u64 = 1 << 53;
/// Maximum number of values in time series.
const SAMPLES_MAX: u64 = 100_000_000;

impl Scenario {
    /// Parses a scenario.
    ///
    /// # Errors
    /// If a key is unknown or missing, or a value has the wrong unit or is out of range; with its
    /// path.
    pub fn from_json(text: &str) -> Result<Scenario> {
        Scenario::from_json_with(&Registries::standard(), text)
    }

    /// Parses a scenario that uses the names of `registries`.
    ///
    /// # Errors
    /// As [`Scenario::from_json`].
    pub fn from_json_with(registries: &Registries, text: &str) -> Result<Scenario> {
        let json: Json = serde_json::from_str(text)
            .map_err(|e| Error::new(format!("the scenario is not JSON: {e}")))?;
        Scenario::parse(&json, registries)
    }

    pub(super) fn parse(json: &Json, registries: &Registries) -> Result<Scenario> {
        let fields = KeyReader::new(json, &SCENARIO)?;
        let keys = ScenarioKeys::read(&fields)?;
        let ScenarioKeys { duration, warmup, .. } = keys;
        if warmup >= duration {
            let text = format!("{warmup} is not shorter than the duration, {duration}");
            return Err(Error::new(text).at("warmup"));
        }
        let sample = keys.sample.map_or(Ok(()), |s| check_range(s, Span::us(1), duration));
        sample.map_err(|e| e.at("sample"))?;
        let mut links = parse_links_with(fields.require("links")?, &registries.qdiscs)
            .map_err(|e| e.at("links"))?;
        for link in &links {
            let bounded =
                link.trace.as_ref().map_or(Ok(()), |trace| trace.check_repetitions(duration));
            bounded.map_err(|e| e.at("trace").at(&link.name).at("links"))?;
            let bounded = link.process.map_or(Ok(()), |process| process.check_changes(duration));
            bounded.map_err(|e| e.at("process").at(&link.name).at("links"))?;
        }
        let switches = match fields.get("switches") {
            Some(json) => parse_switches(json, &links).map_err(|e| e.at("switches"))?,
            None => Vec::new(),
        };
        let texts = parse::list(fields.require("flows")?);
        let flows =
            texts.and_then(|texts| parse_flows(texts.iter().map(FlowText::of), &links, registries));
        let mut flows = flows.map_err(|e| e.at("flows"))?;
        let changes = match fields.get("changes") {
            Some(json) => changes::read(json, duration, &links, &mut flows),
            None => Ok(Vec::new()),
        };
        let mut changes = changes.map_err(|e| e.at("changes"))?;
        for (l, _) in changes.iter().flat_map(|change| &change.wires) {
            links[*l].changes_wire = true;
        }
        changes::leave_out_empty(&mut flows, &mut changes);
        if flows.is_empty() {
            return Err(Error::new("there is no flow: every count is 0").at("flows"));
        }
        let warm_from = fields.get("warm_from").map(|json| WarmFrom::parse(json, duration));
        let warm_from = warm_from.transpose().map_err(|e| e.at("warm_from"))?;
        let (name, switches) = (title(&fields)?, switches.into());
        let (links, flows) = (links.into(), flows.into());
        let scenario = Scenario { name, keys, links, switches, flows, changes, warm_from };
        scenario.check_memory()?;
        Ok(scenario)
    }

    /// Contents for the forecast of memory.
    pub(super) fn contents(&self) -> memory::Contents<'_> {
        memory::Contents {
            duration: self.duration(),
            sample: self.sample(),
            sample_flows: self.sample_flows(),
            packet_log: self.packet_log(),
            links: &self.links,
            flows: &self.flows,
        }
    }

    /// Checks that the scenario fits into memory.
    pub(super) fn check_memory(&self) -> Result<()> {
        let declared: u64 = self.flows.iter().map(FlowConfig::count).sum();
        if declared > FLOWS_MAX {
            let text = format!("{declared} flows in all, allowed: {FLOWS_MAX}");
            return Err(Error::new(text).at("flows"));
        }
        let pooled = memory::pooled_flows(&self.contents());
        let flows = declared.saturating_add(pooled);
        let bytes = memory::with_pooled_flows(&self.contents(), pooled);
        if flows > UNCHECKED_FLOWS && bytes > memory::MEMORY_MAX {
            let text = format!(
                "{flows} flows can take {} MB of memory with the rest of the scenario, allowed: {} \
                 MB: {declared} and {pooled} that sources may have open at a time (the sum over \
                 the groups of `most`, or of arrivals where these are fewer; set a smaller `most`)",
                memory::mb(bytes),
                memory::mb(memory::MEMORY_MAX)
            );
            return Err(Error::new(text).at("flows"));
        }
        let values = memory::values(&self.contents());
        if let Some(sample) = self.sample().filter(|_| values > SAMPLES_MAX) {
            let text =
                format!("{sample} gives {values} values in time series, allowed: {SAMPLES_MAX}");
            return Err(Error::new(text).at("sample"));
        }
        memory::fits(&self.contents())?;
        let of_links = LinkQueue::max_time(self.links.len());
        let horizon = EventQueue::max_time(cast::index(flows) + self.links.len()).min(of_links);
        let longest = Span(horizon.0 - 1);
        if self.duration() > longest {
            let text = format!(
                "{} is too long for {flows} flows, allowed: {} s",
                self.duration(),
                longest.0 / 1_000_000_000
            );
            return Err(Error::new(text).at("duration"));
        }
        Ok(())
    }

    /// Checks that packet logs of `packets` packets fit into memory.
    ///
    /// # Errors
    /// If they are too large; the path is `packet_log`.
    pub fn packet_log_fits(packets: u64) -> Result<()> {
        memory::log_fits(packets)
    }

    /// Name, for titles.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The scenario with another seed, from 0 to 2^53. Nothing that is validated depends on the
    /// seed, so this is faster than parsing again.
    ///
    /// # Errors
    /// If the seed is out of range.
    pub fn with_seed(&self, seed: u64) -> Result<Scenario> {
        if seed > SEED_MAX {
            let text = format!("{seed} is out of range, allowed: 0 to {SEED_MAX}");
            return Err(Error::new(text).at("seed"));
        }
        Ok(Scenario { keys: ScenarioKeys { seed, ..self.keys }, ..self.clone() })
    }

    /// Seed of the random streams at the start of a run.
    pub(crate) fn first_seed(&self) -> u64 {
        self.warm_from.map_or(self.seed(), |past| past.seed)
    }

    /// Time at which the random streams get the seed, if they have another one before.
    pub(crate) fn reseeding(&self) -> Option<Span> {
        self.warm_from.filter(|past| past.seed != self.seed()).map(|past| past.at)
    }

    /// Links, sorted by name.
    pub fn links(&self) -> &[LinkConfig] {
        &self.links
    }

    /// Switches, sorted by name.
    pub fn switches(&self) -> &[SwitchConfig] {
        &self.switches
    }

    /// Groups of flows, as declared.
    pub fn flows(&self) -> &[FlowConfig] {
        &self.flows
    }

    /// Scheduled changes, as declared.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
}

/// A copy, for functions that take a scenario by reference, by value or in an `Arc`.
impl From<&Scenario> for Arc<Scenario> {
    fn from(scenario: &Scenario) -> Arc<Scenario> {
        Arc::new(scenario.clone())
    }
}

/// Name of the scenario.
fn title(fields: &KeyReader) -> Result<String> {
    let name = fields.text("name")?;
    parse::check_title(&name).map_err(|e| e.at("name"))?;
    Ok(name)
}

pub(super) fn check_range<T: Value>(value: T, lo: T::End, hi: T::End) -> Result<()> {
    sojourn_aqm::params::checked(value, Some((lo, hi))).map(drop)
}

#[cfg(test)]
mod tests;
