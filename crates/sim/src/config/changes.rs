//! Changes during a run: flows join and leave, links change rate or delay, as given by the
//! scenario's `[[changes]]` or a link's `trace`.
//!
//! A change precedes all other events of the same time. A new rate or delay applies to
//! transmissions that start from then on (see [`sojourn_aqm::Link::change`]); the discipline keeps
//! its parameters, including those derived from the link rate. New parameters of a discipline apply
//! to its decisions from then on; it keeps its packets and its state.

use super::flow_routes::by_name;
use super::flows::FlowConfig;
use super::impairment_changes::NewImpairments;
use super::link_process::LinkProcess;
use super::link_trace::{LinkChange, ROWS_MAX};
use super::links::{LinkConfig, NewParam, new_params};
use crate::parsing::keys::table;
use crate::parsing::object::object;
use crate::parsing::parse::{self, KeyReader, display};
use serde_json::{Value as Json, json};
use sojourn_aqm::choice;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{ParamRow, Value};
use sojourn_aqm::sorting::sort_by_key;
use sojourn_aqm::units::{Rate, Span};
use std::collections::BTreeMap;
use std::sync::Arc;

table! {
    /// Change at a point in time, applied before all other events of that time. At least one of
    /// join, leave and links is required.
    static CHANGE at "changes";

    /// Time of the change, before the end of the run.
    at: Span, required, [], "\"30s\"";

    /// Groups of flows that start at this time; start and stop of their source are relative to it.
    join: "list of names", optional "none", [], "[\"upload\"]";

    /// Groups of flows that stop at this time, even in the middle of a transfer.
    leave: "list of names", optional "none", [], "[\"upload\"]";

    /// New settings of links, by name.
    links: "table of links", optional "none", [], "{ up = { rate = \"5mbit\" } }";
}

table! {
    /// New settings of a link, for transmissions that start from that time on.
    static LINK_CHANGE at "changes.links.NAME";

    /// New rate; 0bit stops the link.
    rate: Rate, optional "unchanged", ["0bit" => "100tbit"], "\"0bit\"";

    /// New one-way delay.
    delay: Span, optional "unchanged", ["0s" => "100000s"], "\"40ms\"";

    /// False: the link goes down; true: it comes up again. Groups with spread choose among the
    /// paths whose links are up, from that time on. The current transmission ends, and packets on
    /// the way arrive. A packet that reaches a link that is down is queued there.
    up: bool, optional "unchanged", [], "false";

    /// With up = false, the fate of packets in the queue of the link, now and until it comes up:
    /// they are dropped, or wait.
    queued: "drop|hold", optional "drop", [], "\"hold\"";

    /// New loss, as `loss` of a link; 0 ends it.
    loss: "number or table", optional "unchanged", [], "0.02";

    /// New jitter, as `jitter` of a link; 0s ends it.
    jitter: "duration or table", optional "unchanged", [], "\"5ms\"";

    /// New reordering, as `reorder` of a link; 0 ends it.
    reorder: "number or table", optional "unchanged", [], "0.01";

    /// New duplication, as `duplicate` of a link; 0 ends it.
    duplicate: "number or table", optional "unchanged", [], "0.01";

    /// New corruption, as `corrupt` of a link; 0 ends it.
    corrupt: "number or table", optional "unchanged", [], "0.001";

    /// New slots, as `slot` of a link.
    slot: "table", optional "unchanged", [], "{ min = \"10ms\", max = \"20ms\" }";

    /// New limit of packets in flight. Packets in flight are not dropped.
    in_flight_limit: "packets", optional "unchanged", [], "\"1000p\"";

    /// New parameters of the discipline, which keeps its packets and its state: codel, pie, red,
    /// pi, droptail, skbprio, htb, fq_codel, fq_pie and fq_red. prio, drr, ets and qfq can
    /// change their children, and qfq with children its `weights` and `maxpkt`.
    qdisc: "table of parameters", optional "unchanged", [], "{ limit = \"50p\" }";
}

choice! {
    /// Fate of the packets in the queue of a link that goes down.
    pub enum Queued {
        /// They are dropped, as are those that arrive while it is down.
        Drop = "drop",
        /// They wait.
        Hold = "hold",
    }
}

/// A link goes down, or comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpOrDown {
    /// It comes up.
    Up,
    /// It goes down.
    Down(Queued),
}

/// Scheduled change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Time of the change.
    pub at: Span,
    /// Changed links, by index.
    pub links: Vec<(usize, LinkChange)>,
    /// Links that go down or come up, by index.
    pub outages: Vec<(usize, UpOrDown)>,
    /// Changed impairments, by link.
    pub wires: Vec<(usize, Arc<NewImpairments>)>,
    /// Changed parameters of disciplines, by link.
    pub qdiscs: Vec<(usize, Arc<[NewParam]>)>,
    /// Groups of flows that join, by index.
    pub join: Vec<usize>,
    /// Groups of flows that leave, by index.
    pub leave: Vec<usize>,
}

/// The indices of links and of groups of flows by name.
struct Names<'a> {
    links: BTreeMap<&'a str, usize>,
    groups: BTreeMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn of(links: &'a [LinkConfig], flows: &'a [FlowConfig]) -> Names<'a> {
        Names {
            links: by_name(links.iter().map(|link| link.name.as_str()).collect()),
            groups: by_name(flows.iter().map(|flow| flow.name.as_str()).collect()),
        }
    }
}

/// Reads the changes of a scenario, and tells the flows when they join and leave.
pub(crate) fn read(
    json: &Json,
    duration: Span,
    links: &[LinkConfig],
    flows: &mut [FlowConfig],
) -> Result<Vec<Change>> {
    let list = parse::list(json)?;
    if list.len() > ROWS_MAX {
        return Err(Error::new(format!("{} changes, allowed: {ROWS_MAX}", list.len())));
    }
    let mut changes = Vec::new();
    let names = Names::of(links, flows);
    for (i, json) in list.iter().enumerate() {
        changes.push(Change::of(json, duration, links, &names).map_err(|e| e.at(i))?);
    }
    // In order of time, not of declaration.
    let mut order: Vec<usize> = (0..changes.len()).collect();
    sort_by_key(&mut order, |i| changes[*i].at);
    check_qdiscs(&changes, &order, links)?;
    for i in order {
        changes[i].set_flow_times(flows).map_err(|e| e.at(i))?;
    }
    Ok(changes)
}

/// Removes groups without flows, also from changes, and changes that consist of them only.
pub(super) fn leave_out_empty(flows: &mut Vec<FlowConfig>, changes: &mut Vec<Change>) {
    if flows.iter().all(|flow| flow.count() > 0) {
        return;
    }
    let kept: Vec<usize> = (0..flows.len()).filter(|g| flows[*g].count() > 0).collect();
    for change in changes.iter_mut() {
        for groups in [&mut change.join, &mut change.leave] {
            *groups = groups.iter().filter_map(|g| kept.binary_search(g).ok()).collect();
        }
    }
    changes.retain(|c| !(c.changes_no_link() && c.join.is_empty() && c.leave.is_empty()));
    flows.retain(|flow| flow.count() > 0);
}

impl Change {
    fn of(json: &Json, duration: Span, links: &[LinkConfig], names: &Names<'_>) -> Result<Change> {
        let fields = KeyReader::new(json, &CHANGE)?;
        let at: Span = fields.read_or_default("at")?;
        if at >= duration {
            return Err(Error::new(format!("{at} is not before the end at {duration}")).at("at"));
        }
        let groups = |key: &str| match fields.get(key) {
            Some(json) => parse_groups(json, names).map_err(|e| e.at(key)),
            None => Ok(Vec::new()),
        };
        let (join, leave) = (groups("join")?, groups("leave")?);
        let (links_changed, outages, wires, qdiscs) = Default::default();
        let mut change = Change { at, links: links_changed, outages, wires, qdiscs, join, leave };
        if let Some(json) = fields.get("links") {
            change.parse_links(json, links, names).map_err(|e| e.at("links"))?;
        }
        if change.changes_no_link() && change.join.is_empty() && change.leave.is_empty() {
            return Err(Error::new("changes nothing: give join, leave or links"));
        }
        Ok(change)
    }

    fn changes_no_link(&self) -> bool {
        let Change { links, outages, wires, qdiscs, .. } = self;
        links.is_empty() && outages.is_empty() && wires.is_empty() && qdiscs.is_empty()
    }

    /// Parses a change at the time `at` of a run of length `duration` and tells the flows when they
    /// leave. The change has no key `at`; a group that has not joined at that time cannot leave.
    ///
    /// # Errors
    /// As for a change of a scenario.
    pub(crate) fn while_running(
        json: &Json,
        [at, duration]: [Span; 2],
        links: &[LinkConfig],
        flows: &mut [FlowConfig],
    ) -> Result<Change> {
        let mut table = parse::table(json)?.clone();
        if table.contains_key("at") {
            return Err(Error::new("is the current time: leave it out").at("at"));
        }
        if let Some(join) = table.get("join") {
            let text = format!("{} can join by a change of the scenario only", display(join));
            return Err(Error::new(text).at("join"));
        }
        table.insert("at".into(), at.write().into());
        let change = Change::of(&table.into(), duration, links, &Names::of(links, flows))?;
        for (i, group) in change.leave.iter().enumerate() {
            let flow = &flows[*group];
            let text = match (flow.joins, flow.leaves) {
                (Some(joins), _) if joins > at => format!("{:?} joins at {joins} only", flow.name),
                (_, Some(leaves)) if leaves > at => {
                    format!("{:?} leaves at {leaves} by the scenario", flow.name)
                }
                _ => continue,
            };
            return Err(Error::new(text).at(i).at("leave"));
        }
        change.set_flow_times(flows)?;
        Ok(change)
    }

    /// Parses the changes of links, a table by name.
    fn parse_links(&mut self, json: &Json, links: &[LinkConfig], names: &Names<'_>) -> Result<()> {
        for (name, json) in parse::table(json)? {
            let unknown = || Error::unknown("link", name, names.links.keys().copied()).at(name);
            let l = *names.links.get(name.as_str()).ok_or_else(unknown)?;
            let fields = KeyReader::new(json, &LINK_CHANGE).map_err(|e| e.at(name))?;
            let change = parse_link_change(&fields, &links[l]).map_err(|e| e.at(name))?;
            self.links.extend(change.map(|change| (l, change)));
            let outage = parse_outage(&fields, &links[l]).map_err(|e| e.at(name))?;
            self.outages.extend(outage.map(|outage| (l, outage)));
            let wire = NewImpairments::parse(&fields).map_err(|e| e.at(name))?;
            self.wires.extend(wire.map(|wire| (l, Arc::new(wire))));
            if let Some(json) = fields.get("qdisc") {
                let new = new_params(json, &links[l]).map_err(|e| e.at("qdisc").at(name))?;
                self.qdiscs.push((l, new));
            }
        }
        Ok(())
    }

    fn set_flow_times(&self, flows: &mut [FlowConfig]) -> Result<()> {
        for (i, group) in self.join.iter().enumerate() {
            let flow = &mut flows[*group];
            if flow.joins.is_some() || flow.leaves.is_some() {
                let text = format!(
                    "{:?} has already joined or left; a group can join only once",
                    flow.name
                );
                return Err(Error::new(text).at(i).at("join"));
            }
            flow.joins = Some(self.at);
        }
        for (i, group) in self.leave.iter().enumerate() {
            let flow = &mut flows[*group];
            if flow.leaves.is_some() || flow.joins == Some(self.at) {
                let text = format!("{:?} has already left, or joins at the same time", flow.name);
                return Err(Error::new(text).at(i).at("leave"));
            }
            flow.leaves = Some(self.at);
        }
        Ok(())
    }

    /// Canonical JSON form.
    pub(crate) fn canonical(&self, links: &[LinkConfig], flows: &[FlowConfig]) -> Json {
        let names = |groups: &[usize]| groups.iter().map(|g| flows[*g].name.clone()).collect();
        let (join, leave): (Vec<String>, Vec<String>) = (names(&self.join), names(&self.leave));
        let mut json = json!({ "at": self.at.write() });
        if !join.is_empty() {
            json["join"] = join.into();
        }
        if !leave.is_empty() {
            json["leave"] = leave.into();
        }
        for (l, change) in &self.links {
            json["links"][&links[*l].name] = change.canonical();
        }
        for (l, outage) in &self.outages {
            let link = &mut json["links"][&links[*l].name];
            link["up"] = (*outage == UpOrDown::Up).into();
            if let UpOrDown::Down(queued) = outage {
                link["queued"] = queued.write().into();
            }
        }
        for (l, new) in &self.wires {
            new.write(&mut json["links"][&links[*l].name]);
        }
        for (l, new) in &self.qdiscs {
            let rows = new.iter().map(|param| (param.name.into(), param.value.as_str().into()));
            json["links"][&links[*l].name]["qdisc"] = object(rows);
        }
        json
    }
}

/// Parses a list of names of groups of flows.
fn parse_groups(json: &Json, names: &Names<'_>) -> Result<Vec<usize>> {
    let mut groups = Vec::new();
    for (i, json) in parse::list(json)?.iter().enumerate() {
        let name = parse::text(json).map_err(|e| e.at(i))?;
        let unknown = || Error::unknown("flow", name, names.groups.keys().copied()).at(i);
        groups.push(*names.groups.get(name).ok_or_else(unknown)?);
    }
    Ok(groups)
}

fn parse_link_change(fields: &KeyReader<'_>, link: &LinkConfig) -> Result<Option<LinkChange>> {
    let has = |key: &str| fields.get(key).is_some();
    if !has("rate") && !has("delay") {
        return if LINK_CHANGE.keys.iter().any(|key| has(key.name)) {
            Ok(None)
        } else {
            Err(Error::new("changes nothing: give rate, delay, up, an impairment or qdisc"))
        };
    }
    let trace = link.trace.as_ref();
    let rated = trace.is_some_and(|t| t.rate.is_some()) || link.opportunities.is_some();
    let process = link.process.as_ref();
    if has("rate") && process.is_some_and(LinkProcess::sets_rate) {
        return Err(Error::new("is set by the process of the link").at("rate"));
    }
    if has("delay") && process.is_some_and(LinkProcess::sets_delay) {
        return Err(Error::new("is set by the process of the link").at("delay"));
    }
    if has("rate") && rated {
        return Err(Error::new("is set by the trace of the link").at("rate"));
    }
    if has("delay") && trace.is_some_and(|t| t.delay.is_some()) {
        return Err(Error::new("is set by the trace of the link").at("delay"));
    }
    Ok(Some(LinkChange { rate: fields.read("rate")?, delay: fields.read("delay")? }))
}

fn parse_outage(fields: &KeyReader<'_>, link: &LinkConfig) -> Result<Option<UpOrDown>> {
    let (up, queued): (Option<bool>, Option<Queued>) = (fields.read("up")?, fields.read("queued")?);
    if queued.is_some() && up != Some(false) {
        return Err(Error::new("goes with up = false").at("queued"));
    }
    if up.is_some() && link.opportunities.is_some() {
        let text = "is for links with a rate: this one has delivery opportunities";
        return Err(Error::new(text).at("up"));
    }
    Ok(up.map(|up| if up { UpOrDown::Up } else { UpOrDown::Down(queued.unwrap_or(Queued::Drop)) }))
}

/// Checks the changed parameters of disciplines in order of time, each with those before it.
fn check_qdiscs(changes: &[Change], order: &[usize], links: &[LinkConfig]) -> Result<()> {
    let mut params: Vec<Arc<[ParamRow]>> = links.iter().map(|l| Arc::clone(&l.params)).collect();
    for i in order {
        for (l, new) in &changes[*i].qdiscs {
            let changed = links[*l].reconfigured(&params[*l], new);
            let built = changed.map_err(|e| e.at(&links[*l].name).at("links").at(*i))?;
            params[*l] = built.params.into();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::scenario::Scenario;

    const GOOD: &str = r#"{"duration": "100s", "links": {
        "up": {"rate": "10mbit", "loss": 0.01}, "down": {"rate": "9mbit", "trace":
        {"t_ns": [0, 1000], "rate_bps": [0, 5000000], "repeat": "1s"}}},
        "flows": [{"name": "ftp", "path": ["up"], "class": 7}, {"name": "web", "path": ["down"]}],
        "changes": [{"at": "60s", "leave": ["web"]}, {"at": "50s", "join": ["web"],
        "links": {"up": {"rate": "0bit", "delay": "5ms"}}}]}"#;

    #[test]
    fn canonical_form_has_the_changes_and_round_trips() {
        let once = Scenario::from_json(GOOD).unwrap().canonical();
        assert_eq!(once["changes"][1]["links"]["up"]["rate"], "0bit");
        assert_eq!(once["links"]["down"]["trace"]["rate_bps"][1], 5_000_000);
        assert_eq!(once["flows"][0]["class"], 7);
        assert_eq!(once["links"]["up"]["loss"], 0.01);
        let twice = Scenario::from_json(&once.to_string()).unwrap().canonical();
        assert_eq!(once, twice);
    }

    #[test]
    fn errors_name_their_path() {
        let cases = [
            ("\"at\": \"60s\"", "\"at\": \"100s\"", "changes.0.at: 100s is not before the end"),
            ("\"at\": \"60s\"", "\"at\": 60", "changes.0.at: 60 has no unit"),
            ("\"leave\"", "\"leaves\"", "changes.0.leaves: unknown key \"leaves\", did you mean"),
            ("[\"web\"]}", "[\"wbe\"]}", "changes.0.leave.0: unknown flow \"wbe\", did you mean"),
            (
                "\"at\": \"60s\"",
                "\"at\": \"40s\"",
                "changes.1.join.0: \"web\" has already joined or left",
            ),
            (
                "\"at\": \"60s\"",
                "\"at\": \"50s\"",
                "changes.1.join.0: \"web\" has already joined or left",
            ),
            (", \"leave\": [\"web\"]", "", "changes.0: changes nothing"),
            (
                "{\"up\": {\"rate\": \"0bit\"",
                "{\"pu\": {\"rate\": \"0bit\"",
                "changes.1.links.pu: ",
            ),
            ("\"0bit\"", "\"1\"", "changes.1.links.up.rate: \"1\" has no unit"),
            ("\"5ms\"", "\"200000s\"", "changes.1.links.up.delay: 200000s is out of range"),
            (
                "{\"up\": {\"rate\": \"0bit\"",
                "{\"down\": {\"rate\": \"0bit\"",
                "changes.1.links.down.rate: is set by the trace of the link",
            ),
            ("0.01", "1.5", "links.up.loss: 1.5 is out of range"),
            ("\"class\": 7", "\"class\": 65536", "flows.ftp.class: 65536 is out of range"),
            ("[0, 1000]", "[5, 5]", "links.down.trace.t_ns.1: 5 does not come after 5"),
            ("[0, 1000]", "[0, -1]", "links.down.trace.t_ns.1: -1 is not a whole number"),
            ("[0, 1000]", "[]", "links.down.trace.t_ns: 0 rows, allowed"),
            ("[0, 5000000]", "[1]", "links.down.trace.rate_bps: 1 values for 2 times"),
            ("\"1s\"", "\"1001ns\"", "links.down.trace.repeat: 1001ns makes 199800200 changes"),
            ("\"rate_bps\"", "\"rate_bsp\"", "links.down.trace.rate_bsp: unknown key"),
            (", \"rate_bps\": [0, 5000000]", "", "links.down.trace: has neither rate_bps nor"),
            (
                "\"repeat\": \"1s\"",
                "\"repeat\": \"1us\"",
                "links.down.trace.repeat: 1us is not after",
            ),
        ];
        for (from, to, message) in cases {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD, "{from:?} is in the scenario");
            let error = Scenario::from_json(&text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error:?} for {message:?}");
        }
    }
}
