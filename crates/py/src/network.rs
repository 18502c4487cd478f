//! Python bindings of a live network: a scenario's links and paths between two descriptors.

use crate::live::{LinkChanges, fidelity, timed_link};
use crate::scenario::ParsedScenario;
use crate::{InputError, array, custom};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustix::fd::AsFd;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Map, json};
use sojourn_aqm::wire::{Stream, Wire};
use sojourn_aqm::{Link, Span, Time, cast, random};
use sojourn_live::network::{HOSTS_MAX, HostPair};
use sojourn_live::timed_link::WireChangeFn;
use sojourn_live::{Network as Carrier, NetworkConfig, PumpThread, Route, Start, TimedLink, pump};
use sojourn_sim::config::{FlowConfig, NewImpairments};
use sojourn_sim::internals::{
    ChangeSchedule, DueChange, Flow, LinkSeries, link_may_change, random_stream,
};
use sojourn_sim::{Column, Scenario, internals::outcome};
use std::sync::{Arc, Mutex, PoisonError};

/// Moves the calling thread into the network namespace of a descriptor.
///
/// # Errors
/// If the process lacks CAP_SYS_ADMIN in the namespace.
#[pyfunction]
pub fn enter_network(namespace: i32) -> PyResult<()> {
    let fd = pump::duplicate(namespace)?;
    let entered = move_into_link_name_space(fd.as_fd(), Some(LinkNameSpaceType::Network));
    entered.map_err(|e| PyOSError::new_err(e.to_string()))
}

/// Changes of a wire in order of time.
type WireChanges = Vec<(Time, Arc<NewImpairments>)>;

/// For each link, all changes of its rate and delay, by its trace and by the scenario; `None` for
/// links whose rate and delay never change. And all changes of its impairments.
fn link_changes(scenario: &Scenario) -> Vec<(Option<LinkChanges>, WireChanges)> {
    let mut table = ChangeSchedule::new(scenario);
    let mut all: Vec<Vec<_>> = vec![Vec::new(); scenario.links().len()];
    let mut wires: Vec<WireChanges> = vec![Vec::new(); scenario.links().len()];
    let end = Time::ZERO + scenario.duration();
    while table.next() <= end {
        let at = table.next();
        while let Some(step) = table.pop_due(at) {
            match step {
                DueChange::Link(l, change) => all[l].push((at, change)),
                DueChange::Wire(l, change) => wires[l].push((at, change)),
                DueChange::Qdisc(..) | DueChange::Leave(_) | DueChange::Outage(..) => {}
            }
        }
    }
    let changes = all.into_iter().zip(link_may_change(scenario));
    changes
        .map(|(changes, may)| may.then(|| Box::new(changes.into_iter()) as LinkChanges))
        .zip(wires)
        .collect()
}

/// Change of a wire of link `l` to new impairments.
fn wire_change(scenario: &Scenario, l: usize, new: Arc<NewImpairments>) -> WireChangeFn {
    let (seed, key) = (scenario.seed(), format!("links.{}", scenario.links()[l].name()));
    Box::new(move |at, wire: &mut Wire| {
        let mut impairments = wire.impairments();
        new.apply(&mut impairments);
        let stream =
            |name: &str| -> Stream { Box::new(random_stream(seed, &format!("{key}.{name}"))) };
        wire.change(at, &impairments, stream);
    })
}

/// Creates link `l` with its scheduled events; samples go into `series`.
fn scheduled_link(
    scenario: &Scenario,
    l: usize,
    (changes, wires): (Option<LinkChanges>, WireChanges),
    series: &Arc<Mutex<LinkSeries>>,
) -> TimedLink {
    let mut timed_link = timed_link(&scenario.links()[l], scenario.seed(), changes);
    let wires = wires.into_iter().map(|(at, new)| (at, wire_change(scenario, l, new)));
    timed_link.schedule_wire_changes(wires.collect());
    if scenario.packet_log() {
        timed_link.link.enable_packet_log();
    }
    let look = series.clone();
    if let Some(every) = scenario.sample() {
        let see = move |now: Time, link: &mut Link| {
            look.lock().unwrap_or_else(PoisonError::into_inner).sample(now, link);
        };
        timed_link.sample_every(every, Box::new(see));
    }
    let begin = series.clone();
    let see = move |_: Time, link: &mut Link| {
        begin.lock().unwrap_or_else(PoisonError::into_inner).before_stats_reset(link);
    };
    timed_link.reset_stats_at(Time::ZERO + scenario.warmup(), Box::new(see));
    timed_link
}

/// Hosts and routes of the `i`-th flow of a group.
fn host_pair(scenario: &Scenario, def: &FlowConfig, i: u64) -> HostPair {
    let of_links = def.links_delay(scenario.links(), i);
    let rtt = Flow::rtt_of(def, i, of_links, scenario.seed());
    let [there, back] = def.route(i).clone();
    let lag = Span(rtt.0 - of_links.0);
    let there = Route { path: there, delay: Span::ZERO };
    let routes = [there, Route { path: back, delay: lag }];
    HostPair { routes, class: def.class(), hosts: def.host_keys(i) }
}

/// Rows whose flows cross link `l` on their forward path.
fn rows_crossing(scenario: &Scenario, l: usize) -> Vec<usize> {
    let each = |def: &FlowConfig| -> Vec<bool> {
        (0..def.count()).map(|i| def.route(i)[0].contains(&l)).collect()
    };
    let crosses = scenario.flows().iter().flat_map(each).enumerate();
    crosses.filter_map(|(row, crosses)| crosses.then_some(row)).collect()
}

/// Columns of received bytes: of every group and, if the scenario asks for it, of every row.
fn received_columns(scenario: &Scenario, looks: &[Vec<u64>]) -> Vec<(String, Column)> {
    let (mut columns, mut first) = (Vec::new(), 0);
    let mut put = |kind: &str, name: &str, from: usize, to: usize| {
        let sums = looks.iter().map(|row| row[from..to].iter().sum()).collect();
        columns.push((format!("{kind}/{name}/received_bytes"), Column::U64(sums)));
    };
    for def in scenario.flows().iter().filter(|_| scenario.sample().is_some()) {
        let end = first + cast::index(def.count());
        put("groups", def.name(), first, end);
        for i in 0..if scenario.sample_flows() { def.count() } else { 0 } {
            let row = first + cast::index(i);
            put("flows", &def.flow_name(i), row, row + 1);
        }
        first = end;
    }
    columns
}

/// Refuses filters by header fields, which packets of this engine do not take from the scenario:
/// the kernel chooses their ports.
///
/// # Errors
/// If a link has one.
fn refuse_header_filters(scenario: &Scenario) -> PyResult<()> {
    let keys = ["protocol", "source_port", "destination_port", "mark"];
    let mut links = scenario.links().iter();
    match links.find_map(|def| Some((def.name(), def.filter_key(&keys)?))) {
        None => Ok(()),
        Some((name, key)) => Err(InputError::new_err(format!(
            "links.{name}.qdisc: a filter has {key}, which packets of the live engine do not take \
             from the scenario: use class, dscp, source or destination, or simulate it"
        ))),
    }
}

/// Running network of real packets.
#[pyclass]
pub struct Network {
    pump: Option<pump::Pump<Carrier>>,
    scenario: Scenario,
    series: Vec<Arc<Mutex<LinkSeries>>>,
    start: Start,
}

#[pymethods]
impl Network {
    /// Starts moving packets between two descriptors, which stay open for the caller: the devices
    /// of the senders and of the receivers, along the paths of the scenario.
    #[new]
    fn new(senders: i32, receivers: i32, parsed: &ParsedScenario) -> PyResult<Network> {
        let scenario = Scenario::clone(&parsed.scenario);
        custom::refuse_live(scenario.links())?;
        custom::refuse_live_flows(scenario.flows())?;
        refuse_header_filters(&scenario)?;
        let pairs: Vec<HostPair> = scenario
            .flows()
            .iter()
            .flat_map(|def| (0..def.count()).map(|i| host_pair(&scenario, def, i)))
            .collect();
        if pairs.len() > HOSTS_MAX {
            let text =
                format!("flows: {} in all, allowed with real packets: {HOSTS_MAX}", pairs.len());
            return Err(InputError::new_err(text));
        }
        if let Some(i) = scenario.changes().iter().position(|change| !change.qdiscs.is_empty()) {
            let text = format!("changes.{i}: real packets keep the parameters of a discipline");
            return Err(InputError::new_err(text));
        }
        let series: Vec<Arc<Mutex<LinkSeries>>> =
            scenario.links().iter().map(|_| Default::default()).collect();
        let changes = link_changes(&scenario).into_iter().enumerate();
        let links =
            changes.map(|(l, changes)| scheduled_link(&scenario, l, changes, &series[l])).collect();
        let (warm, end) = (Time::ZERO + scenario.warmup(), Time::ZERO + scenario.duration());
        let salt = random::mix(scenario.seed());
        let sample = scenario.sample();
        let carrier = Carrier::new(NetworkConfig { links, pairs, warm, end, sample, salt });
        let ends = [Arc::new(pump::duplicate(senders)?), Arc::new(pump::duplicate(receivers)?)];
        let (from, to) = (ends.to_vec(), ends.to_vec());
        let start = Start::now();
        let lane = PumpThread { name: "network", carrier, from, to };
        let pump = pump::Pump::start(vec![lane], start)?;
        Ok(Network { pump: Some(pump), scenario, series, start })
    }

    /// Returns time zero of the run on the monotonic clock, nanoseconds.
    #[getter]
    fn start_ns(&self) -> u64 {
        self.start.monotonic_ns
    }

    /// Stops; returns a summary per link, the packets sent per row and the accuracy report as JSON,
    /// and the columns of the links: time series, and packet logs if there are any.
    fn stop<'py>(&mut self, py: Python<'py>) -> PyResult<(String, Bound<'py, PyDict>)> {
        let Some(pump) = self.pump.take() else {
            return Err(PyRuntimeError::new_err("the network is already stopped"));
        };
        let report = py.detach(|| pump.stop()).pop().flatten();
        let report = report.ok_or_else(|| PyRuntimeError::new_err("the network panicked"))?;
        let mut net = report.carrier;
        let (mut links, mut columns) = (Map::new(), Vec::new());
        let rows = net.host_pair_of_flow();
        let pairs = net.links().iter_mut().zip(self.scenario.links()).enumerate();
        for (l, (timed_link, def)) in pairs {
            let mut link = outcome::link_summary(def.qdisc(), &mut timed_link.link, 0.0);
            link["lost_on_wire_packets"] = timed_link.lost_on_wire().into();
            if let Some(stats) = timed_link.wire_stats() {
                outcome::insert_wire_stats(stats, &mut link);
            }
            link["rows"] = rows_crossing(&self.scenario, l).into();
            links.insert(def.name().to_string(), link);
            let table = format!("sojourn/{}", def.name());
            outcome::delay_columns(&table, [&timed_link.link.stats().sojourn], &mut columns);
            if self.scenario.packet_log() {
                outcome::packet_log_columns(def.name(), &timed_link.link, &rows, &mut columns);
            }
        }
        if self.scenario.sample().is_some() {
            for (series, def) in self.series.iter().zip(self.scenario.links()) {
                let seen = series.lock().unwrap_or_else(PoisonError::into_inner).take();
                seen.columns(&mut |what, column: Column| {
                    columns.push((format!("links/{}/{what}", def.name()), column));
                });
            }
        }
        columns.extend(received_columns(&self.scenario, &net.received_by_sample()));
        let sent = net.sent_by_pair().iter();
        let sent: Vec<[u64; 3]> = sent.map(|s| [s.packets, s.retransmitted, s.lost]).collect();
        let pump::Report { ran, cpu, failed, .. } = report;
        let live = fidelity(net.counts(), ran, cpu, failed);
        let report = json!({ "links": links, "sent": sent, "live": live });
        let columns_of_report = PyDict::new(py);
        for (name, column) in columns {
            columns_of_report.set_item(name, array(py, column))?;
        }
        Ok((report.to_string(), columns_of_report))
    }
}
