//! Parser and validation of a scenario's JSON. A parsed scenario is valid: nothing that uses it can
//! fail.

use super::flows::{FlowConfig, parse_flows};
use super::links::{LinkConfig, parse_links_with};
use super::registries::Registries;
use crate::collections::event_queue::EventQueue;
use crate::config::changes::{self, Change};
use crate::config::memory;
use crate::parsing::keys;
use crate::parsing::parse::{self, KeyReader};
use serde_json::{Value as Json, json};
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::Value;
use sojourn_aqm::units::Span;
use std::fmt;
use std::sync::Arc;

/// Valid scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name, for titles.
    pub(crate) name: String,
    /// Simulated time.
    pub(crate) duration: Span,
    /// Time before the measured interval.
    pub(crate) warmup: Span,
    /// Seed of all random streams.
    pub(crate) seed: u64,
    /// Sampling interval of the time series; None for no series.
    pub(crate) sample: Option<Span>,
    /// True if every packet is logged.
    pub(crate) packet_log: bool,
    /// Links, sorted by name.
    pub(crate) links: Vec<LinkConfig>,
    /// Groups of flows, as declared.
    pub(crate) flows: Vec<FlowConfig>,
    /// Scheduled changes, as declared.
    pub(crate) changes: Vec<Change>,
    /// True if each flow has time series, not only links and groups.
    pub(crate) sample_flows: bool,
}

/// Maximum number of flows.
const FLOWS_MAX: u64 = 1_000_000;
/// Maximum seed: the largest integer up to which JSON numbers are exact.
const SEED_MAX: u64 = 1 << 53;
/// Maximum number of values in time series.
const SAMPLES_MAX: u64 = 100_000_000;

impl Scenario {
    /// Parse a scenario.
    ///
    /// # Errors
    /// If a key is unknown or missing, or a value has the wrong unit or is out of range; with its
    /// path.
    pub fn from_json(text: &str) -> Result<Scenario> {
        Scenario::from_json_with(&Registries::standard(), text)
    }

    /// Parse a scenario that uses the names of `registries`.
    ///
    /// # Errors
    /// As [`Scenario::from_json`].
    pub fn from_json_with(registries: &Registries, text: &str) -> Result<Scenario> {
        let json: Json = serde_json::from_str(text)
            .map_err(|e| Error::new(format!("the scenario is not JSON: {e}")))?;
        Scenario::parse(&json, registries)
    }

    pub(super) fn parse(json: &Json, registries: &Registries) -> Result<Scenario> {
        let fields = KeyReader::new(json, &keys::SCENARIO)?;
        let duration: Span = fields.read_or_default("duration")?;
        let warmup: Span = fields.read_or_default("warmup")?;
        if warmup >= duration {
            let text = format!("{warmup} is not shorter than the duration, {duration}");
            return Err(Error::new(text).at("warmup"));
        }
        let sample: Option<Span> = fields.read("sample")?;
        let sample = sample.map(|s| in_range(s, Span::us(1), duration)).transpose();
        let links = parse_links_with(fields.require("links")?, &registries.qdiscs)
            .map_err(|e| e.at("links"))?;
        for link in &links {
            let bounded =
                link.trace.as_ref().map_or(Ok(()), |trace| trace.check_repetitions(duration));
            bounded.map_err(|e| e.at("trace").at(&link.name).at("links"))?;
        }
        let flows = parse_flows(fields.require("flows")?, &links, registries);
        let mut flows = flows.map_err(|e| e.at("flows"))?;
        let changes = match fields.get("changes") {
            Some(json) => changes::read(json, duration, &links, &mut flows),
            None => Ok(Vec::new()),
        };
        let mut changes = changes.map_err(|e| e.at("changes"))?;
        changes::leave_out_empty(&mut flows, &mut changes);
        if flows.is_empty() {
            return Err(Error::new("there is no flow: every count is 0").at("flows"));
        }
        let scenario = Scenario {
            name: title(&fields)?,
            duration,
            warmup,
            seed: fields.read_or_default("seed")?,
            sample: sample.map_err(|e| e.at("sample"))?,
            packet_log: fields.read_or_default("packet_log")?,
            links,
            flows,
            changes,
            sample_flows: fields.read_or_default("sample_flows")?,
        };
        scenario.check_memory()?;
        Ok(scenario)
    }

    /// Contents for the forecast of memory.
    pub(super) fn contents(&self) -> memory::Contents<'_> {
        memory::Contents {
            duration: self.duration,
            sample: self.sample,
            sample_flows: self.sample_flows,
            packet_log: self.packet_log,
            links: &self.links,
            flows: &self.flows,
        }
    }

    /// Check that the scenario fits into memory.
    fn check_memory(&self) -> Result<()> {
        let declared: u64 = self.flows.iter().map(|f| f.count).sum();
        let pooled: u64 = self.flows.iter().map(FlowConfig::max_pooled_flows).sum();
        let flows = declared + pooled;
        if flows > FLOWS_MAX {
            let most = format!(
                ": {declared} and {pooled} that sources may have open at a time (the sum of `most` \
                 of the groups; set a smaller one)"
            );
            let most = if pooled > 0 { most } else { String::new() };
            let text = format!("{flows} flows in all, allowed: {FLOWS_MAX}{most}");
            return Err(Error::new(text).at("flows"));
        }
        let values = memory::values(&self.contents());
        if let Some(sample) = self.sample.filter(|_| values > SAMPLES_MAX) {
            let text =
                format!("{sample} gives {values} values in time series, allowed: {SAMPLES_MAX}");
            return Err(Error::new(text).at("sample"));
        }
        memory::fits(&self.contents())?;
        let longest = Span(EventQueue::max_time(cast::index(flows) + self.links.len()).0 - 1);
        if self.duration > longest {
            let text = format!(
                "{} is too long for {flows} flows, allowed: {} s",
                self.duration,
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

    /// Simulated time.
    pub fn duration(&self) -> Span {
        self.duration
    }

    /// Time before the measured interval.
    pub fn warmup(&self) -> Span {
        self.warmup
    }

    /// Seed of all random streams.
    pub fn seed(&self) -> u64 {
        self.seed
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
        Ok(Scenario { seed, ..self.clone() })
    }

    /// Sampling interval of the time series; None for no series.
    pub fn sample(&self) -> Option<Span> {
        self.sample
    }

    /// True if each flow has time series, not only links and groups.
    pub fn sample_flows(&self) -> bool {
        self.sample_flows
    }

    /// True if every packet is logged.
    pub fn packet_log(&self) -> bool {
        self.packet_log
    }

    /// Links, sorted by name.
    pub fn links(&self) -> &[LinkConfig] {
        &self.links
    }

    /// Groups of flows, as declared.
    pub fn flows(&self) -> &[FlowConfig] {
        &self.flows
    }

    /// Scheduled changes, as declared.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Canonical JSON form: canonical names, all defaults explicit.
    pub fn canonical(&self) -> Json {
        let mut all = self.canonical_without_links();
        all["links"] = self.links.iter().map(|l| (l.name.clone(), l.canonical())).collect();
        all
    }

    /// Write the canonical form as text. Links are converted one by one: their trees together would
    /// take twice the memory of the links.
    pub(crate) fn write_canonical(&self, text: &mut impl fmt::Write) -> fmt::Result {
        let Json::Object(all) = self.canonical_without_links() else { return Ok(()) };
        let links = || self.links.iter().map(|l| (&*l.name, l.canonical()));
        for (i, (key, value)) in all.iter().enumerate() {
            write!(text, "{}\"{key}\":", if i > 0 { ',' } else { '{' })?;
            match key.as_str() {
                "links" => write_object(text, links())?,
                _ => write!(text, "{value}")?,
            }
        }
        text.write_char('}')
    }

    /// Canonical JSON form with null in place of the links.
    fn canonical_without_links(&self) -> Json {
        let flows: Vec<Json> = self
            .flows
            .iter()
            .filter(|f| f.takes_part(self.duration))
            .map(|f| {
                let mut flow = json!({
                    "name": f.name,
                    "count": f.count,
                    "source": f.source.canonical(),
                    "path": f.written[0],
                    "return_path": f.written[1],
                });
                if let Some(tcp) = &f.tcp {
                    flow["tcp"] = parse::canonical(tcp.name(), &tcp.table());
                }
                if let Some(rtt) = &f.rtt {
                    flow["rtt"] = rtt.write().into();
                }
                flow["class"] = f.class.into();
                if let Some(ecn) = &f.ecn {
                    flow["ecn"] = ecn.write().into();
                }
                for (key, name) in ["sender", "receiver"].into_iter().zip(&f.hosts) {
                    if let Some(name) = name {
                        flow[key] = name.as_str().into();
                    }
                }
                flow
            })
            .collect();
        let mut all = json!({
            "name": self.name,
            "duration": self.duration.write(),
            "warmup": self.warmup.write(),
            "seed": self.seed,
            "packet_log": self.packet_log,
            "links": null,
            "flows": flows,
        });
        if let Some(sample) = self.sample {
            all["sample"] = sample.write().into();
            all["sample_flows"] = self.sample_flows.into();
        }
        let changes = self.changes.iter().filter(|c| c.at < self.duration);
        let changes: Vec<Json> = changes.map(|c| c.canonical(&self.links, &self.flows)).collect();
        if !changes.is_empty() {
            all["changes"] = changes.into();
        }
        all
    }
}

/// A copy, for functions that take a scenario by reference, by value or in an `Arc`.
impl From<&Scenario> for Arc<Scenario> {
    fn from(scenario: &Scenario) -> Arc<Scenario> {
        Arc::new(scenario.clone())
    }
}

/// Write a JSON object with at least one of `members`.
pub(crate) fn write_object<'a>(
    text: &mut impl fmt::Write,
    members: impl Iterator<Item = (&'a str, Json)>,
) -> fmt::Result {
    for (i, (name, value)) in members.enumerate() {
        write!(text, "{}{}:{value}", if i > 0 { ',' } else { '{' }, json!(name))?;
    }
    text.write_char('}')
}

/// Name of the scenario.
fn title(fields: &KeyReader) -> Result<String> {
    let name = fields.text("name")?;
    parse::check_title(&name).map_err(|e| e.at("name"))?;
    Ok(name)
}

fn in_range<T: Value>(value: T, lo: T, hi: T) -> Result<T> {
    sojourn_aqm::params::checked(value, Some((lo, hi)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_aqm::Ecn;

    const GOOD: &str = r#"{"duration": "10s", "links": {"up": {"rate": "10mbit", "delay": "5ms",
        "qdisc": "fifo"}},
        "flows": [{"name": "ftp", "count": 2, "path": ["up"], "rtt": "uniform(10ms, 20ms)"}]}"#;

    fn refusal(from: &str, to: &str) -> String {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD, "{from:?} is in the scenario");
        Scenario::from_json(&text).unwrap_err().to_string()
    }

    #[test]
    fn canonical_form_is_complete_and_round_trips() {
        let once = Scenario::from_json(GOOD).unwrap().canonical();
        assert_eq!(once["links"]["up"]["qdisc"]["name"], "droptail");
        assert_eq!(once["links"]["up"]["qdisc"]["limit"], "1000p");
        assert_eq!(once["flows"][0]["tcp"]["name"], "cubic");
        assert_eq!(once["flows"][0]["tcp"]["profile"], "linux");
        let twice = Scenario::from_json(&once.to_string()).unwrap().canonical();
        assert_eq!(once, twice);
    }

    #[test]
    fn canonical_form_is_written_as_it_is() {
        let scenario = GOOD.replace("\"links\": {", "\"links\": {\"back\": {\"rate\": \"1mbit\"},");
        let scenario = Scenario::from_json(&scenario).unwrap();
        let mut text = String::new();
        scenario.write_canonical(&mut text).unwrap();
        assert_eq!((scenario.links.len(), text), (2, scenario.canonical().to_string()));
    }

    #[test]
    fn a_flow_has_a_code_point_and_hosts() {
        let flow = |keys: &str| {
            let json = GOOD.replace("\"count\": 2", &format!("\"count\": 2, {keys}"));
            let parsed = Scenario::from_json(&json);
            parsed.map(|s| {
                let again = Scenario::from_json(&s.canonical().to_string()).unwrap();
                assert_eq!(s.canonical(), again.canonical());
                again.flows[0].clone()
            })
        };
        assert_eq!(flow(r#""dscp": "EF""#).unwrap().class, 46);
        assert_eq!(flow(r#""dscp": 8"#).unwrap().class, 8);
        let error = |keys| flow(keys).unwrap_err().to_string();
        assert!(error(r#""dscp": 64"#).starts_with("flows.ftp.dscp: 64 is out of range"));
        assert!(error(r#""dscp": 8, "class": 8"#).starts_with("flows.ftp.dscp: sets the class"));
        assert!(error(r#""sender": 8"#).starts_with("flows.ftp.sender: "));
        let ecn = |keys: &str| flow(&format!(r#""source": "cbr", {keys}"#)).map(|f| f.ecn());
        assert_eq!(ecn(r#""class": 0"#).unwrap(), Ecn::NotEct);
        assert_eq!(ecn(r#""ecn": "ect0""#).unwrap(), Ecn::Ect0);
        let wrong = ecn(r#""ecn": "ect""#).unwrap_err().to_string();
        assert!(wrong.starts_with("flows.ftp.ecn: unknown choice \"ect\""), "{wrong}");
        assert_eq!(ecn(r#""ecn": "ect1""#).unwrap(), Ecn::Ect1);
        assert!(error(r#""ecn": "ect1""#).ends_with("set ecn or ect1 of tcp instead"));
        let keys = |flow: &FlowConfig| [flow.host_keys(0), flow.host_keys(1)];
        let [[a, b], [c, d]] = keys(&flow(r#""count": 2"#).unwrap());
        assert!(a != b && a != c && b != d, "each flow has hosts of its own");
        let home = flow(r#""sender": "server", "receiver": "pc-{i}""#).unwrap();
        let [[a, b], [c, d]] = keys(&home);
        assert!(a == c && b != d && a != b);
    }

    #[test]
    fn text_form_and_table_are_the_same_scenario() {
        let canonical = |qdisc: &str| {
            Scenario::from_json(&GOOD.replace("\"fifo\"", qdisc)).unwrap().canonical()
        };
        for (text, table) in [
            (
                r#""codel(target=15ms, ecn=true)""#,
                r#"{"name": "codel", "target": "15ms", "ecn": true}"#,
            ),
            (
                r#""red(max_p=5%, min_th='9p')""#,
                r#"{"name": "red", "max_p": 0.05, "min_th": "9p"}"#,
            ),
            (r#""wfq(weights=[3, 50.5])""#, r#"{"name": "wfq", "weights": [3, 50.5]}"#),
            (r#""ewfq(responsive=50% 1)""#, r#"{"name": "ewfq", "responsive": [0.5, 1]}"#),
            (r#""fq_codel(flows=64)""#, r#"{"name": "fq_codel", "flows": 64}"#),
        ] {
            assert_eq!(canonical(text), canonical(table), "{text}");
        }
    }

    #[test]
    fn another_seed_is_the_same_as_parsing_again() {
        let parsed = Scenario::from_json(GOOD).unwrap();
        for seed in [0, 7, SEED_MAX] {
            let again = GOOD.replacen('{', &format!("{{\"seed\": {seed}, "), 1);
            let again = Scenario::from_json(&again).unwrap();
            assert_eq!(parsed.with_seed(seed).unwrap().canonical(), again.canonical());
        }
        let refused = parsed.with_seed(SEED_MAX + 1).unwrap_err().to_string();
        assert!(refused.starts_with("seed: 9007199254740993 is out of range"), "{refused}");
    }

    #[test]
    fn errors_name_their_path() {
        let cases = [
            ("10mbit", "10mbps", "links.up.rate: \"10mbps\" is ambiguous"),
            ("\"rate\"", "\"rtae\"", "links.up.rtae: unknown key \"rtae\", did you mean \"rate\"?"),
            (
                "\"fifo\"",
                "\"codle\"",
                "links.up.qdisc: unknown discipline \"codle\", did you mean \"codel\"?",
            ),
            (
                "\"fifo\"",
                r#"{"name": "red", "min_ht": "5p"}"#,
                "links.up.qdisc.min_ht: unknown parameter",
            ),
            (
                "\"fifo\"",
                "\"codel(targte=15ms)\"",
                "links.up.qdisc.targte: unknown parameter \"targte\", did you mean \"target\"?",
            ),
            (
                "\"fifo\"",
                "\"codel(target=15ms\"",
                "links.up.qdisc: \"codel(target=15ms\" does not end with",
            ),
            ("\"fifo\"", "\"codel(target=15)\"", "links.up.qdisc.target: \"15\" has no unit"),
            ("\"fifo\"", "\"codel(target=5%)\"", "links.up.qdisc.target: \"5%\" is not a duration"),
            ("\"fifo\"", "\"red(max_p=150%)\"", "links.up.qdisc.max_p: 1.5 is out of range"),
            (
                "\"fifo\"",
                "\"pie(alpha=5%)\"",
                "links.up.qdisc.alpha: \"5%\" is a percentage; a plain number is due",
            ),
            (
                "[\"up\"]",
                "[\"upp\"]",
                "flows.ftp.path.0: unknown link \"upp\", did you mean \"up\"?",
            ),
            ("10ms", "1ms", "flows.ftp.rtt: \"uniform(1ms, 20ms)\" can be below the 5ms"),
            ("\"count\": 2", "\"count\": 1e9", "flows.ftp.count: 1000000000 is out of range"),
            ("\"count\": 2", "\"count\": 0", "flows: there is no flow: every count is 0"),
            ("\"10s\"", "10", "duration: 10 has no unit"),
            (
                "\"10s\"",
                "\"10s\", \"warmup\": \"10s\"",
                "warmup: 10s is not shorter than the duration",
            ),
            ("\"10s\"", "\"10s\", \"sample\": \"1us\"", "sample: 1us gives"),
        ];
        for (from, to, start) in cases {
            let text = refusal(from, to);
            assert!(text.starts_with(start), "{text}");
        }
    }
}
