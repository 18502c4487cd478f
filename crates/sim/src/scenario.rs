//! Parser and validation of a scenario's JSON. A parsed scenario is valid: nothing that uses it can
//! fail.

use crate::changes::{self, Change};
use crate::crowd;
use crate::dist::Distribution;
use crate::keys;
pub use crate::link_def::LinkConfig;
use crate::link_def::parse_links;
use crate::memory;
use crate::read::{self, KeyReader, NamedParams};
use crate::slots::EventQueue;
use crate::source::Source;
use crate::tcp::{self, TcpParams};
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::Value;
use sojourn_aqm::units::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Links crossed by the data of a flow, and those crossed on the return path.
pub type Route = [Vec<usize>; 2];

/// Placeholder for the number of a flow in the names of its links.
const NUMBER: &str = "{i}";

/// Parsed definition of a group of flows.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// Name.
    pub name: String,
    /// Number of flows.
    pub count: u64,
    /// Traffic source.
    pub source: Source,
    /// TCP; None means UDP.
    pub tcp: Option<TcpParams>,
    /// Links crossed by each flow, by index, in order: path and return path, the latter empty for a
    /// pure delay. A single entry if all flows cross the same links.
    pub routes: Vec<Route>,
    /// Path and return path as written.
    pub written: [Vec<String>; 2],
    /// Round-trip propagation delay; None for that of the links.
    pub rtt: Option<Distribution<Span>>,
    /// Traffic class of the packets.
    pub class: u16,
    /// Time at which the group joins, set by the scenario's changes; None for the start.
    pub joins: Option<Span>,
    /// Time at which the group leaves, set by the scenario's changes; None for never.
    pub leaves: Option<Span>,
}

/// Valid scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name, for titles.
    pub name: String,
    /// Simulated time.
    pub duration: Span,
    /// Time before the measured interval.
    pub warmup: Span,
    /// Seed of all random streams.
    pub seed: u64,
    /// Sampling interval of the time series; None for no series.
    pub sample: Option<Span>,
    /// True if every packet is logged.
    pub tape: bool,
    /// Links, sorted by name.
    pub links: Vec<LinkConfig>,
    /// Groups of flows, as declared.
    pub flows: Vec<FlowConfig>,
    /// Scheduled changes, as declared.
    pub changes: Vec<Change>,
    /// True if each flow has time series, not only links and groups.
    pub sample_flows: bool,
}

/// Maximum number of flows.
const FLOWS_MAX: u64 = 1_000_000;
/// The most links on all paths: one per link, path and flow with a path of its own.
const HOPS_MAX: u64 = 50_000_000;
/// The most numbers that series may hold.
const SAMPLES_MAX: u64 = 100_000_000;

impl Scenario {
    /// Parse a scenario.
    ///
    /// # Errors
    /// If a key is unknown or missing, or a value has the wrong unit or is out of range; with its
    /// path.
    pub fn from_json(text: &str) -> Result<Scenario> {
        let json: Json = serde_json::from_str(text)
            .map_err(|e| Error::new(format!("the scenario is not JSON: {e}")))?;
        Scenario::parse(&json)
    }

    fn parse(json: &Json) -> Result<Scenario> {
        let fields = KeyReader::new(json, &keys::SCENARIO)?;
        let duration: Span = fields.read_or_default("duration")?;
        let warmup: Span = fields.read_or_default("warmup")?;
        if warmup >= duration {
            let text = format!("{warmup} is not shorter than the duration, {duration}");
            return Err(Error::new(text).at("warmup"));
        }
        let sample: Option<Span> = fields.read("sample")?;
        let sample = sample.map(|s| in_range(s, Span::us(1), duration)).transpose();
        let links = parse_links(fields.require("links")?).map_err(|e| e.at("links"))?;
        for link in &links {
            let bounded =
                link.trace.as_ref().map_or(Ok(()), |trace| trace.check_repetitions(duration));
            bounded.map_err(|e| e.at("trace").at(&link.name).at("links"))?;
        }
        let mut flows = flows(fields.require("flows")?, &links).map_err(|e| e.at("flows"))?;
        let changes = match fields.get("changes") {
            Some(json) => changes::read(json, duration, &links, &mut flows),
            None => Ok(Vec::new()),
        };
        let scenario = Scenario {
            name: fields.text("name")?,
            duration,
            warmup,
            seed: fields.read_or_default("seed")?,
            sample: sample.map_err(|e| e.at("sample"))?,
            tape: fields.read_or_default("tape")?,
            links,
            flows,
            changes: changes.map_err(|e| e.at("changes"))?,
            sample_flows: fields.read_or_default("sample_flows")?,
        };
        scenario.check_memory()?;
        Ok(scenario)
    }

    /// Check that the scenario fits into memory.
    fn check_memory(&self) -> Result<()> {
        let flows: u64 = self.flows.iter().map(|f| f.count + crowd::max_flows(f)).sum();
        if flows > FLOWS_MAX {
            return Err(
                Error::new(format!("{flows} flows in all, allowed: {FLOWS_MAX}")).at("flows")
            );
        }
        memory::fits(self)?;
        let longest = Span(EventQueue::max_time(cast::index(flows) + self.links.len()).0 - 1);
        if self.duration > longest {
            let text = format!(
                "{} is too long for {flows} flows, allowed: {} s",
                self.duration,
                longest.0 / 1_000_000_000
            );
            return Err(Error::new(text).at("duration"));
        }
        let Some(sample) = self.sample else { return Ok(()) };
        let of_flows = if self.sample_flows { flows * 2 } else { 0 };
        let others = self.links.len() * 12 + self.flows.len() * 4;
        let numbers = (self.duration.0 / sample.0).saturating_mul(of_flows + others as u64);
        if numbers > SAMPLES_MAX {
            let text =
                format!("{sample} gives {numbers} values in time series, allowed: {SAMPLES_MAX}");
            return Err(Error::new(text).at("sample"));
        }
        Ok(())
    }

    /// Canonical JSON form: canonical names, all defaults explicit.
    pub fn canonical(&self) -> Json {
        let links: Map<String, Json> =
            self.links.iter().map(|l| (l.name.clone(), l.canonical())).collect();
        let flows: Vec<Json> = self
            .flows
            .iter()
            .map(|f| {
                let mut flow = json!({
                    "name": f.name,
                    "count": f.count,
                    "source": f.source.canonical(),
                    "path": f.written[0],
                    "return_path": f.written[1],
                });
                if let Some(tcp) = &f.tcp {
                    flow["tcp"] = read::canonical(tcp.name(), &tcp.table());
                }
                if let Some(rtt) = &f.rtt {
                    flow["rtt"] = rtt.write().into();
                }
                flow["class"] = f.class.into();
                flow
            })
            .collect();
        let mut all = json!({
            "name": self.name,
            "duration": self.duration.write(),
            "warmup": self.warmup.write(),
            "seed": self.seed,
            "tape": self.tape,
            "links": links,
            "flows": flows,
        });
        if let Some(sample) = self.sample {
            all["sample"] = sample.write().into();
            all["sample_flows"] = self.sample_flows.into();
        }
        if !self.changes.is_empty() {
            let changes = self.changes.iter().map(|c| c.canonical(&self.links, &self.flows));
            all["changes"] = changes.collect();
        }
        all
    }
}

impl FlowConfig {
    /// Check the values of a group of flows that do not depend on links.
    ///
    /// # Errors
    /// As for a scenario, except for the name and the links.
    pub(crate) fn check(json: &Json) -> Result<()> {
        let fields = KeyReader::new(json, &keys::FLOW)?;
        fields.read_or_default::<u64>("count")?;
        let source = fields.get_or_default("source");
        let source = NamedParams::with_lists(&source);
        source.and_then(|n| Source::for_source(&n)).map_err(|e| e.at("source"))?;
        let tcp = fields.get_or_default("tcp");
        let named = NamedParams::of(&tcp).map_err(|e| e.at("tcp"))?;
        tcp::parse(named.name, named.settings.iter().copied()).map_err(|e| e.at("tcp"))?;
        fields.read::<Distribution<Span>>("rtt")?;
        fields.read_or_default::<u64>("class").map(drop)
    }

    fn of(name: &str, json: &Json, links: &Links<'_>, hops_left: &mut u64) -> Result<FlowConfig> {
        let fields = KeyReader::new(json, &keys::FLOW)?;
        let count = fields.read_or_default("count")?;
        let source = fields.get_or_default("source");
        let source = NamedParams::with_lists(&source);
        let source = source.and_then(|n| Source::for_source(&n)).map_err(|e| e.at("source"))?;
        let tcp = match fields.get("tcp") {
            None if source.defaults_to_udp() => None,
            _ => {
                let tcp = fields.get_or_default("tcp");
                let named = NamedParams::of(&tcp).map_err(|e| e.at("tcp"))?;
                let parsed = tcp::parse(named.name, named.settings.iter().copied());
                Some(parsed.map_err(|e| e.at("tcp"))?)
            }
        };
        if let Source::Trace(trace) = &source {
            trace.validate(count, tcp.is_none()).map_err(|e| e.at("source"))?;
        }
        let path = names(fields.require("path")?).map_err(|e| e.at("path"))?;
        if path.is_empty() {
            return Err(Error::new("names no link").at("path"));
        }
        let none = Json::Array(Vec::new());
        let back = fields.get("return_path").unwrap_or(&none);
        let written = [path, names(back).map_err(|e| e.at("return_path"))?];
        let routes = routes(&written, count, links, hops_left)?;
        if matches!(&source, Source::Web(w) if w.request) && written[1].is_empty() {
            let text = "needs a return_path, which requests cross; name one or leave request out";
            return Err(Error::new(text).at("request").at("source"));
        }
        let rtt: Option<Distribution<Span>> = fields.read("rtt")?;
        let flow = FlowConfig {
            name: name.to_string(),
            count,
            source,
            tcp,
            routes,
            written,
            rtt,
            class: u16::try_from(fields.read_or_default::<u64>("class")?)
                .expect("its range is that of u16"),
            joins: None,
            leaves: None,
        };
        let delays = flow.routes.iter().map(|route| delay_of(route, links.all));
        let of_links = delays.max().unwrap_or_default();
        if let Some(rtt) = flow.rtt.as_ref().filter(|rtt| rtt.min() < of_links) {
            let text = format!("{:?} can be below the {of_links} of its links", rtt.write());
            return Err(Error::new(text).at("rtt"));
        }
        Ok(flow)
    }

    /// Index of the route of the `i`-th flow.
    pub fn route_index(&self, i: u64) -> usize {
        if self.routes.len() == 1 { 0 } else { cast::index(i) }
    }

    /// Propagation delay of all links of the `i`-th flow's route, there and back.
    pub fn links_delay(&self, links: &[LinkConfig], i: u64) -> Span {
        delay_of(&self.routes[self.route_index(i)], links)
    }

    /// Name of the `i`-th flow.
    pub fn flow_name(&self, i: u64) -> String {
        if self.count == 1 { self.name.clone() } else { format!("{}.{i}", self.name) }
    }
}

/// Propagation delay of all links of `route`, there and back.
pub(crate) fn delay_of(route: &Route, links: &[LinkConfig]) -> Span {
    route.iter().flatten().fold(Span::ZERO, |sum, l| sum + links[*l].spec.delay)
}

/// The links of a scenario, and their indices by name.
struct Links<'a> {
    all: &'a [LinkConfig],
    by_name: BTreeMap<&'a str, usize>,
}

fn flows(json: &Json, links: &[LinkConfig]) -> Result<Vec<FlowConfig>> {
    let mut flows: Vec<FlowConfig> = Vec::new();
    let by_name = links.iter().enumerate().map(|(i, l)| (l.name.as_str(), i)).collect();
    let links = Links { all: links, by_name };
    let mut known = BTreeSet::new();
    let mut hops_left = HOPS_MAX;
    for (i, json) in read::list(json)?.iter().enumerate() {
        let fields = KeyReader::new(json, &keys::FLOW).map_err(|e| {
            // Name the flow in the path if its name is known.
            match json.get("name").and_then(Json::as_str) {
                Some(name) => e.at(name),
                None => e.at(i),
            }
        })?;
        let name = fields.require("name").and_then(|n| read::text(n).map_err(|e| e.at("name")));
        let name = name.map_err(|e| e.at(i))?;
        check_name(name).map_err(|e| e.at("name").at(i))?;
        if !known.insert(name) {
            return Err(Error::new(format!("{name:?} names two flows")).at("name").at(i));
        }
        flows.push(FlowConfig::of(name, json, &links, &mut hops_left).map_err(|e| e.at(name))?);
    }
    if flows.is_empty() {
        return Err(Error::new("there is no flow"));
    }
    Ok(flows)
}

fn names(json: &Json) -> Result<Vec<String>> {
    let name = |(i, json)| read::text(json).map(str::to_string).map_err(|e| e.at(i));
    read::list(json)?.iter().enumerate().map(name).collect()
}

/// The routes of the flows of a group: one for all, or where a name has the flow's number in it,
/// one for each.
///
/// Their links are taken from `hops_left`, the number of hops that the scenario may still have.
fn routes(
    written: &[Vec<String>; 2],
    count: u64,
    links: &Links<'_>,
    hops_left: &mut u64,
) -> Result<Vec<Route>> {
    let numbered = written.iter().flatten().any(|name| name.contains(NUMBER));
    let routes = if numbered { count } else { 1 };
    let hops = routes.saturating_mul(written.iter().map(|names| names.len() as u64).sum());
    *hops_left = hops_left.checked_sub(hops).ok_or_else(|| {
        let text = format!("{routes} paths have {hops} links, allowed for all flows: {HOPS_MAX}");
        Error::new(text).at("path")
    })?;
    let each = |i: u64| -> Result<Route> {
        let way = |w: usize, key: &str| path(&written[w], i, &links.by_name).map_err(|e| e.at(key));
        Ok([way(0, "path")?, way(1, "return_path")?])
    };
    (0..routes).map(each).collect()
}

fn path(names: &[String], number: u64, links: &BTreeMap<&str, usize>) -> Result<Vec<usize>> {
    let mut path = Vec::with_capacity(names.len());
    let mut crossed = BTreeSet::new();
    for (i, name) in names.iter().enumerate() {
        let name = name.replace(NUMBER, &number.to_string());
        let at = links.get(name.as_str());
        let at = *at.ok_or_else(|| Error::unknown("link", &name, links.keys().copied()).at(i))?;
        if !crossed.insert(at) {
            return Err(Error::new(format!("link {name:?} is crossed twice")).at(i));
        }
        path.push(at);
    }
    Ok(path)
}

/// Check a name: names appear in paths and file names.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        let text = format!("{name:?} is not a name: 1 to 64 letters, digits, \"_\" and \"-\" are");
        return Err(Error::new(text));
    }
    Ok(())
}

fn in_range<T: Value>(value: T, lo: T, hi: T) -> Result<T> {
    sojourn_aqm::params::checked(value, Some((lo, hi)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(once["flows"][0]["tcp"]["name"], "newreno");
        let twice = Scenario::from_json(&once.to_string()).unwrap().canonical();
        assert_eq!(once, twice);
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
            ("\"count\": 2", "\"count\": 0", "flows.ftp.count: 0 is out of range"),
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
