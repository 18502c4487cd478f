//! Definition of a link in a scenario.

use super::disciplines::{Discipline, Disciplines};
use super::link_process::LinkProcess;
use super::link_trace::{self, LinkChange, LinkTrace, TRACE};
use super::shared::Alike;
use super::{impairments, loss};
use crate::parsing::keys::table;
use crate::parsing::object::insert;
use crate::parsing::parse::{self, KeyReader};
use rand_core::SeedableRng;
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::Overhead;
use sojourn_aqm::Pcg;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{self, ParamRow, Setting};
use sojourn_aqm::registry::{QdiscEntry, Registry};
use sojourn_aqm::units::{Bytes, Rate, Span, Time};
use sojourn_aqm::wire::{Impairments, LossModel};
use sojourn_aqm::{Built, Env, Link, LinkSpec, Opportunities};
use std::sync::{Arc, LazyLock};

table! {
    /// One-way link: a discipline with its queue, a transmitter, and a propagation delay.
    static LINK at "links.NAME", struct LinkKeys of LinkConfig, setters link_setters;

    /// Rate of the transmitter. A trace of rates replaces it from its first row on. With delivery
    /// opportunities it only sets defaults of disciplines.
    rate: Rate, required, ["1bit" => "100tbit"], "\"10mbit\"";

    /// One-way propagation delay.
    delay: Span, default "0s", ["0s" => "100000s"], "\"20ms\"";

    /// Size of a token bucket in place of the transmitter, as behind HTB or TBF: a packet leaves at
    /// once unless the bucket is overdrawn, so that after an idle time the burst and one packet
    /// more leave together.
    burst: Bytes, optional "none: a transmission takes its time at the rate", ["0B" => "1GB"],
        "\"1514B\"";

    /// Overhead of the link layer, in the words of tc-cake: bytes that are added to each packet,
    /// with mpu BYTES, atm or ptm, or a name like pppoe-ptm, docsis, ethernet. Transmissions take
    /// the time of the framed packet; counters of bytes are without it.
    overhead: Overhead, optional "none", [], "\"44 atm\"";

    /// Discipline: NAME, NAME(KEY=VALUE, ...), or a table with name and parameters. The parameter
    /// limit is the buffer: packets, bytes or a time; by default 1000p for most.
    qdisc: "name or table", default "droptail", [],
        "{ name = \"codel\", limit = \"300kB\", target = \"5ms\" }";

    /// Probability that a packet is lost in transmission, like 0.01 or "1%"; a table for correlated
    /// losses, losses in bursts, and marks in place of losses.
    loss: "number or table", default "0", ["0" => "1"], "\"1%\"";

    /// Random part of the delay of each packet: its greatest difference from the delay, or a table
    /// with a distribution. Packets can overtake others.
    jitter: "duration or table", optional "none", [], "\"5ms\"";

    /// Probability that a packet is sent without the delay of the link, so that it overtakes
    /// others, like "25%", or a table.
    reorder: "number or table", optional "none", [], "\"25%\"";

    /// Probability that a packet arrives twice, or a table.
    duplicate: "number or table", optional "none", [], "\"1%\"";

    /// Probability that a packet arrives with a wrong bit, or a table.
    corrupt: "number or table", optional "none", [], "\"0.1%\"";

    /// Times at which every packet is lost: a list of intervals, or a table with the lengths of
    /// alternating intervals.
    outages: "list or table", optional "none", [], "[\"10s..10.5s\", \"30s..31s\"]";

    /// Times at which packets can arrive.
    slot: "table", optional "packets arrive at any time", [], "{ min = \"10ms\", max = \"20ms\" }";

    /// Packets between the transmitter and the far end from which on further packets are lost, as
    /// `limit` of tc-netem, which is 1000p there.
    in_flight_limit: "packets", optional "no limit", [], "\"1000p\"";

    /// Recorded rates, delays or delivery opportunities: a file, or columns.
    trace: "file or table", optional "rate and delay are constant", [],
        "{ t_ns = [0, 2000000000], rate_bps = [10000000, 2000000] }";

    /// Random rate, delay or both over time, in place of a trace.
    process: "table", optional "rate and delay are constant", [],
        "{ every = \"15s\", rate_min = \"5mbit\", rate_max = \"20mbit\" }";
}

/// Parsed definition of a link.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Name.
    pub(crate) name: String,
    /// Rate, propagation delay and token bucket.
    pub(crate) keys: LinkKeys,
    /// Canonical name of the discipline.
    pub(crate) qdisc: &'static str,
    /// All parameters of the discipline; links with equal parameters share them.
    pub(crate) params: Arc<[ParamRow]>,
    /// Impairments after the queue; random loss alone or none for most links.
    pub(crate) impairments: Arc<Impairments>,
    /// True if the scenario changes its impairments, so that it has a wire from the start.
    pub(crate) changes_wire: bool,
    /// Recorded changes of rate or delay.
    pub(crate) trace: Option<Arc<LinkTrace>>,
    /// Random changes of rate or delay.
    pub(crate) process: Option<LinkProcess>,
    /// Recorded delivery opportunities, which replace the rate.
    pub(crate) opportunities: Option<Box<Opportunities>>,
    /// State of the discipline without packets, bytes.
    pub(crate) state: usize,
    /// Number of variables that the discipline shows.
    pub(crate) gauges: usize,
    /// Entry of the discipline in the registry.
    pub(super) entry: Arc<QdiscEntry>,
}

/// Capacity of a delivery opportunity in mahimahi's mm-link, bytes: an IP packet of 1500 bytes and
/// its framing.
pub(crate) const OPPORTUNITY_BYTES: u32 = 1504;
/// Framing per packet in mm-link, bytes: the TUN header in front of the IP header.
pub(crate) const OPPORTUNITY_HEADER_BYTES: u32 = 4;
/// Latest delivery opportunity of a trace, milliseconds.
const MOMENT_MAX: u64 = 10_000_000_000;

/// Shares `impairments`; links without any have one object together.
fn shared(impairments: Impairments) -> Arc<Impairments> {
    static NONE: LazyLock<Arc<Impairments>> = LazyLock::new(Arc::default);
    if impairments == **NONE { NONE.clone() } else { impairments.into() }
}

impl LinkConfig {
    pub(crate) fn parse(name: &str, json: &Json, registry: &Registry) -> Result<LinkConfig> {
        LinkConfig::parse_one(name, json, &mut Disciplines::new(registry, LINK.default_of("qdisc")))
    }

    fn parse_one<'a>(
        name: &str,
        json: &'a Json,
        disciplines: &mut Disciplines<'a>,
    ) -> Result<LinkConfig> {
        let fields = KeyReader::new(json, &LINK)?;
        let keys = LinkKeys::read(&fields)?;
        let impairments = shared(impairments::parse(&fields)?);
        let (trace, opportunities) = match fields.get("trace") {
            Some(trace) => parse_trace(trace).map_err(|e| e.at("trace"))?,
            None => (None, None),
        };
        let process = fields.get("process").map(LinkProcess::parse).transpose();
        let process = process.map_err(|e| e.at("process"))?;
        if process.is_some() && (trace.is_some() || opportunities.is_some()) {
            return Err(Error::new("cannot be combined with trace").at("process"));
        }
        if keys.burst.is_some() && opportunities.is_some() {
            let text = "cannot be combined with delivery opportunities, which replace the rate";
            return Err(Error::new(text).at("burst"));
        }
        if keys.overhead.is_some() && opportunities.is_some() {
            let text = "cannot be combined with delivery opportunities, which have their own";
            return Err(Error::new(text).at("overhead"));
        }
        let discipline = disciplines.parse(fields.get("qdisc"), keys.rate);
        let Discipline { entry, params, state, gauges } = discipline.map_err(|e| e.at("qdisc"))?;
        Ok(LinkConfig {
            name: name.to_string(),
            keys,
            qdisc: entry.name,
            params,
            impairments,
            changes_wire: false,
            trace: trace.map(Arc::new),
            process,
            opportunities: opportunities.map(Box::new),
            state,
            gauges,
            entry,
        })
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Rate and propagation delay.
    pub fn spec(&self) -> LinkSpec {
        LinkSpec::new(self.keys.rate, self.keys.delay)
    }

    /// Canonical name of the discipline.
    pub fn qdisc(&self) -> &'static str {
        self.qdisc
    }

    /// All parameters of the discipline.
    pub fn params(&self) -> &[ParamRow] {
        &self.params
    }

    /// Returns the first of `keys` that a filter of the discipline, or of one inside it, has.
    pub fn filter_key(&self, keys: &[&'static str]) -> Option<&'static str> {
        let lists = || self.params.iter().filter(|row| row.kind.starts_with("list of "));
        let has = |key: &&&str| lists().any(|row| row.value.contains(&format!("{key}=")));
        keys.iter().find(has).copied()
    }

    /// Random loss after the queue.
    pub fn loss(&self) -> LossModel {
        self.impairments.loss
    }

    /// True if it has impairments after the queue.
    pub(crate) fn is_impaired(&self) -> bool {
        self.has_wire() || !self.impairments.loss.is_lossless()
    }

    /// True if it has a wire: impairments other than random losses, now or by a change of the
    /// scenario.
    pub fn has_wire(&self) -> bool {
        self.changes_wire || !self.impairments.only_lose()
    }

    /// Impairments after the queue, random loss included.
    pub fn impairments(&self) -> &Impairments {
        &self.impairments
    }

    /// Recorded changes of rate or delay.
    pub fn trace(&self) -> Option<&LinkTrace> {
        self.trace.as_deref()
    }

    /// Random changes of rate or delay.
    pub fn process(&self) -> Option<&LinkProcess> {
        self.process.as_ref()
    }

    /// All changes of rate and delay by the trace or the process of the link in a run with `seed`,
    /// in order of time; None if it has neither.
    pub fn link_changes(
        &self,
        seed: u64,
    ) -> Option<Box<dyn Iterator<Item = (Time, LinkChange)> + Send>> {
        match (&self.process, &self.trace) {
            (Some(process), _) => Some(Box::new(process.link_changes(seed, &self.name))),
            (None, Some(trace)) => Some(Box::new(LinkTrace::clone(trace).link_changes())),
            (None, None) => None,
        }
    }

    /// Recorded delivery opportunities, which replace the rate.
    pub fn opportunities(&self) -> Option<&Opportunities> {
        self.opportunities.as_deref()
    }

    /// Builds a new instance of the discipline.
    pub fn build(&self) -> Built {
        let settings: Vec<_> =
            self.params.iter().map(|r| (r.name, Setting::Text(&r.value))).collect();
        self.entry
            .build(&settings, &Env::new(self.keys.rate))
            .expect("the definition was validated by a first build")
    }

    /// Builds the discipline with the parameters `now`, changed by `new`, to replace the parameters
    /// of a running discipline.
    ///
    /// # Errors
    /// If the values contradict each other, or the discipline cannot change them while it runs.
    pub(crate) fn reconfigured(&self, now: &[ParamRow], new: &[NewParam]) -> Result<Built> {
        let build = |new: &[NewParam]| {
            let old = now.iter().map(|row| (row.name, Setting::Text(&row.value)));
            let new = new.iter().map(|param| (param.name, Setting::Text(&param.value)));
            self.entry.build(&old.chain(new).collect::<Vec<_>>(), &Env::new(self.keys.rate))
        };
        let built = build(new).map_err(|e| e.at("qdisc"))?;
        let mut link = Link::new(self.spec(), build(&[])?.qdisc, Pcg::seed_from_u64(0))?;
        if !link.reconfigure(Time::ZERO, built.qdisc.clone()) {
            let names: Vec<&str> = new.iter().map(|param| param.name).collect();
            let why = if link.reconfigure(Time::ZERO, build(&[])?.qdisc) {
                "its state depends on them; others can be changed"
            } else {
                "all its parameters are fixed when it is built"
            };
            let names = names.join(", ");
            let text = format!("{} cannot change {names} while it runs: {why}", self.qdisc);
            return Err(Error::new(text).at("qdisc"));
        }
        Ok(built)
    }

    /// Canonical JSON form with all parameters.
    pub fn canonical(&self) -> Json {
        let mut link = self.canonical_keys();
        insert(&mut link, "qdisc", self.canonical_qdisc());
        link.into()
    }

    /// Canonical JSON form of the discipline.
    pub(super) fn canonical_qdisc(&self) -> Json {
        parse::canonical(self.qdisc, &self.params)
    }

    /// Canonical JSON form with null in place of the discipline.
    pub(super) fn canonical_keys(&self) -> Map<String, Json> {
        let mut link = Map::new();
        insert(&mut link, "qdisc", Json::Null);
        let Impairments { loss, loss_ecn, .. } = &*self.impairments;
        insert(&mut link, "loss", loss::canonical(*loss, *loss_ecn));
        self.keys.write(&mut link);
        impairments::write(&self.impairments, &mut link);
        if let Some(trace) = &self.trace {
            insert(&mut link, "trace", trace.canonical());
        }
        if let Some(process) = &self.process {
            insert(&mut link, "process", process.canonical());
        }
        if let Some(opportunities) = &self.opportunities {
            let ms = opportunities.times().iter().map(|moment| moment.0 / 1_000_000);
            insert(&mut link, "trace", json!({ "opportunities_ms": ms.collect::<Vec<_>>() }));
        }
        link
    }
}

/// New value of a parameter of a discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewParam {
    /// Canonical name.
    pub name: &'static str,
    /// Value as text.
    pub value: String,
}

/// Parses new parameters of the discipline of `link`.
///
/// # Errors
/// If one is unknown or out of range, or there is none.
pub(super) fn new_params(json: &Json, link: &LinkConfig) -> Result<Arc<[NewParam]>> {
    let table = parse::table(json)?;
    if table.is_empty() {
        return Err(Error::new("changes nothing: give parameters with their new values"));
    }
    let new = |(key, json): (&String, &Json)| {
        let list = (json.is_array() || json.is_object())
            .then(|| parse::list_to_text(key, json, &link.params))
            .transpose()?;
        let setting = match &list {
            Some(text) => Setting::Text(text),
            None => parse::to_setting(json).map_err(|e| e.at(key))?,
        };
        link.entry.check(&[(key, setting)])?;
        let row = link.params.iter().find(|row| params::answers(row, key));
        let name = row.ok_or_else(|| params::unknown(&link.params, key))?.name;
        let value = match setting {
            Setting::Text(text) => text.to_string(),
            _ => json.to_string(),
        };
        Ok(NewParam { name, value })
    };
    table.iter().map(new).collect()
}

/// Parses a `trace`: delivery opportunities in milliseconds, or rates and delays over time.
fn parse_trace(json: &Json) -> Result<(Option<LinkTrace>, Option<Opportunities>)> {
    let key = "opportunities_ms";
    if json.get(key).is_none() {
        return Ok((Some(LinkTrace::parse(json)?), None));
    }
    let fields = KeyReader::new(json, &TRACE)?;
    if let Some(other) = parse::table(json)?.keys().find(|other| *other != key) {
        return Err(Error::new(format!("cannot be combined with {key}")).at(other));
    }
    let ms = link_trace::column(&fields, key, MOMENT_MAX)?.unwrap_or_default();
    link_trace::check_row_count(ms.len()).map_err(|e| e.at(key))?;
    let moments = ms.into_iter().map(Span::ms).collect();
    let opportunities = Opportunities::new(moments, OPPORTUNITY_BYTES, OPPORTUNITY_HEADER_BYTES)
        .map_err(|e| e.at(key))?;
    Ok((None, Some(opportunities)))
}

/// Bytes of an idle link without the state of its discipline. The link, its definition and its part
/// of the report take 2 kB, parameters that it does not share with another link up to 3 kB.
pub(super) const LINK_BYTES: usize = 5_000;
/// Most bytes that the links and flows of a scenario may take.
pub(super) const MEMORY_MAX: usize = 4_000_000_000;

/// Checks that `count` links fit, which take `bytes`.
///
/// # Errors
/// More than [`MEMORY_MAX`].
pub(super) fn links_fit(count: usize, bytes: usize) -> Result<()> {
    if bytes <= MEMORY_MAX {
        return Ok(());
    }
    let text = format!(
        "{count} links with their disciplines take {} MB of memory, allowed: {} MB",
        mb(bytes),
        mb(MEMORY_MAX)
    );
    Err(Error::new(text))
}

/// Bytes that `link` takes while no packet crosses it.
pub(super) fn link_bytes(link: &LinkConfig) -> usize {
    LINK_BYTES.saturating_add(link.state)
}

pub(super) fn mb(bytes: usize) -> usize {
    bytes.div_ceil(1_000_000)
}

/// Parses the links of a scenario or of a live link: a table by name.
///
/// # Errors
/// If there is no link, a name or a definition is invalid, or the links take too much memory; with
/// the path of the value.
pub fn parse_links(json: &Json) -> Result<Vec<LinkConfig>> {
    parse_links_with(json, &Registry::standard())
}

/// Parses links as [`parse_links`], with the disciplines of `registry`.
///
/// # Errors
/// As [`parse_links`].
pub fn parse_links_with(json: &Json, registry: &Registry) -> Result<Vec<LinkConfig>> {
    let map = parse::table(json)?;
    if map.is_empty() {
        return Err(Error::new("there is no link"));
    }
    // Check before building, which needs this memory.
    links_fit(map.len(), map.len().saturating_mul(LINK_BYTES))?;
    let mut links: Vec<LinkConfig> = Vec::with_capacity(map.len());
    let mut bytes = 0usize;
    let mut alike = Alike::of(map);
    let mut disciplines = Disciplines::new(registry, LINK.default_of("qdisc"));
    for (name, json) in map {
        let link = parse::check_name(name)
            .and_then(|()| LinkConfig::parse_one(name, json, &mut disciplines))
            .map_err(|e| e.at(name))?;
        // Links like this one take the same memory, and need not be built to be refused.
        bytes = bytes.saturating_add(link_bytes(&link).saturating_mul(alike.take(json)));
        links_fit(map.len(), bytes)?;
        links.push(link);
    }
    Ok(links)
}
