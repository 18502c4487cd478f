//! The border of a live network: a scenario's links and paths between two descriptors.

use crate::live::{Turns, fidelity, line};
use crate::{InputError, array, refused};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustix::fd::AsFd;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Map, json};
use sojourn_aqm::{Link, Span, Time, cast, dice};
use sojourn_live::net::{HOSTS_MAX, Pair};
use sojourn_live::{Lane, Line, Net, NetSpec, Start, Way, pump};
use sojourn_sim::flow::Flow;
use sojourn_sim::scenario::FlowDef;
use sojourn_sim::series::LinkSeries;
use sojourn_sim::timetable::{Step, Timetable, may_change};
use sojourn_sim::{Column, Scenario, outcome};
use std::sync::{Arc, Mutex, PoisonError};

/// Puts the thread that calls into the network namespace that a descriptor stands for.
///
/// # Errors
/// No right to it (CAP_SYS_ADMIN there).
#[pyfunction]
pub fn enter_network(namespace: i32) -> PyResult<()> {
    let fd = pump::duplicate(namespace)?;
    let entered = move_into_link_name_space(fd.as_fd(), Some(LinkNameSpaceType::Network));
    entered.map_err(|e| PyOSError::new_err(e.to_string()))
}

/// All that link `l` changes by, by its trace and by the scenario's changes.
fn turns(scenario: &Scenario, l: usize) -> Option<Turns> {
    if !may_change(scenario, l) {
        return None;
    }
    let (mut table, mut all) = (Timetable::new(scenario), Vec::new());
    let end = Time::ZERO + scenario.duration;
    while table.next() <= end {
        let at = table.next();
        while let Some(step) = table.step(at) {
            all.extend(match step {
                Step::Link(link, turn) if link == l => Some((at, turn)),
                _ => None,
            });
        }
    }
    Some(Box::new(all.into_iter()))
}

/// Link `l` with all that is planned for it; what is seen of it goes into `series`.
fn planned(scenario: &Scenario, l: usize, series: &Arc<Mutex<LinkSeries>>) -> Line {
    let mut line = line(&scenario.links[l], scenario.seed, turns(scenario, l));
    if scenario.tape {
        line.link.record();
    }
    let look = series.clone();
    if let Some(every) = scenario.sample {
        let see = move |now: Time, link: &mut Link| {
            look.lock().unwrap_or_else(PoisonError::into_inner).look(now, link);
        };
        line.look(every, Box::new(see));
    }
    let begin = series.clone();
    let see = move |_: Time, link: &mut Link| {
        begin.lock().unwrap_or_else(PoisonError::into_inner).begin(link);
    };
    line.begin(Time::ZERO + scenario.warmup, Box::new(see));
    line
}

/// The hosts of the `i`-th flow of a group.
fn pair(scenario: &Scenario, def: &FlowDef, i: u64) -> Pair {
    let of_links = def.delay_of_links(&scenario.links, i);
    let rtt = Flow::rtt_of(def, i, of_links, scenario.seed);
    let [there, back] = def.routes[def.route_of(i)].clone();
    let lag = Span(rtt.0 - of_links.0);
    let there = Way { path: there, delay: Span::ZERO };
    Pair { ways: [there, Way { path: back, delay: lag }], class: def.class }
}

/// The rows whose flows cross link `l` on their way there.
fn crossing(scenario: &Scenario, l: usize) -> Vec<usize> {
    let each = |def: &FlowDef| -> Vec<bool> {
        (0..def.count).map(|i| def.routes[def.route_of(i)][0].contains(&l)).collect()
    };
    let crosses = scenario.flows.iter().flat_map(each).enumerate();
    crosses.filter_map(|(row, crosses)| crosses.then_some(row)).collect()
}

/// The columns of bytes received: of every group and, where the scenario asks for it, every row.
fn received(scenario: &Scenario, looks: &[Vec<u64>]) -> Vec<(String, Column)> {
    let (mut columns, mut first) = (Vec::new(), 0);
    let mut put = |kind: &str, name: &str, from: usize, to: usize| {
        let sums = looks.iter().map(|row| row[from..to].iter().sum()).collect();
        columns.push((format!("{kind}/{name}/received_bytes"), Column::U64(sums)));
    };
    for def in scenario.flows.iter().filter(|_| scenario.sample.is_some()) {
        let end = first + cast::index(def.count);
        put("groups", &def.name, first, end);
        for i in 0..if scenario.sample_flows { def.count } else { 0 } {
            let row = first + cast::index(i);
            put("flows", &def.name_of(i), row, row + 1);
        }
        first = end;
    }
    columns
}

/// A network of real packets at work.
#[pyclass]
pub struct Network {
    pump: Option<pump::Pump<Net>>,
    scenario: Scenario,
    series: Vec<Arc<Mutex<LinkSeries>>>,
    start: Start,
}

#[pymethods]
impl Network {
    /// Starts to move packets between two descriptors, which stay the caller's: that of the
    /// senders' device and that of the receivers', along the paths of the scenario.
    #[new]
    fn new(senders: i32, receivers: i32, scenario_json: &str) -> PyResult<Network> {
        let scenario = Scenario::from_json(scenario_json).map_err(refused)?;
        let pairs: Vec<Pair> = scenario
            .flows
            .iter()
            .flat_map(|def| (0..def.count).map(|i| pair(&scenario, def, i)))
            .collect();
        if pairs.len() > HOSTS_MAX {
            let text =
                format!("flows: {} in all, allowed with real packets: {HOSTS_MAX}", pairs.len());
            return Err(InputError::new_err(text));
        }
        let series: Vec<Arc<Mutex<LinkSeries>>> =
            scenario.links.iter().map(|_| Default::default()).collect();
        let lines = (0..scenario.links.len()).map(|l| planned(&scenario, l, &series[l])).collect();
        let (warm, end) = (Time::ZERO + scenario.warmup, Time::ZERO + scenario.duration);
        let salt = dice::mix(scenario.seed);
        let sample = scenario.sample;
        let carrier = Net::new(NetSpec { lines, pairs, warm, end, sample, salt });
        let ends = [Arc::new(pump::duplicate(senders)?), Arc::new(pump::duplicate(receivers)?)];
        let (from, to) = (ends.to_vec(), ends.to_vec());
        let start = Start::now();
        let lane = Lane { name: "network", carrier, from, to };
        let pump = pump::Pump::start(vec![lane], start)?;
        Ok(Network { pump: Some(pump), scenario, series, start })
    }

    /// The moment that is the run's zero, by the monotonic clock, in nanoseconds.
    #[getter]
    fn start_ns(&self) -> u64 {
        self.start.monotonic_ns
    }

    /// Ends it: as JSON a summary per link, what was sent by each row, and how faithful it was;
    /// and the columns of links: series, and tapes if there are any.
    fn stop<'py>(&mut self, py: Python<'py>) -> PyResult<(String, Bound<'py, PyDict>)> {
        let Some(pump) = self.pump.take() else {
            return Err(PyRuntimeError::new_err("it was stopped before"));
        };
        let report = py.detach(|| pump.stop()).pop().flatten();
        let report = report.ok_or_else(|| PyRuntimeError::new_err("the network panicked"))?;
        let mut net = report.carrier;
        let (mut links, mut columns) = (Map::new(), Vec::new());
        let rows = net.pair_of_flow();
        let lines = net.lines().iter_mut().zip(&self.scenario.links).enumerate();
        for (l, (line, def)) in lines {
            let mut link = outcome::link(def.qdisc, &mut line.link, 0.0);
            link["lost_on_wire_packets"] = line.lost_on_wire.into();
            link["rows"] = crossing(&self.scenario, l).into();
            links.insert(def.name.clone(), link);
            if self.scenario.tape {
                outcome::tape(&def.name, &line.link, &rows, &mut columns);
            }
        }
        if self.scenario.sample.is_some() {
            for (series, def) in self.series.iter().zip(&self.scenario.links) {
                let seen = series.lock().unwrap_or_else(PoisonError::into_inner).take();
                seen.columns(&mut |what, column: Column| {
                    columns.push((format!("links/{}/{what}", def.name), column));
                });
            }
        }
        columns.extend(received(&self.scenario, &net.received_by_look()));
        let sent = net.sent_by_pair().iter();
        let sent: Vec<[u64; 3]> = sent.map(|s| [s.packets, s.retransmitted, s.lost]).collect();
        let pump::Report { ran, cpu, failed, .. } = report;
        let live = fidelity(net.counts(), ran, cpu, failed);
        let told = json!({ "links": links, "sent": sent, "live": live });
        let found = PyDict::new(py);
        for (name, column) in columns {
            found.set_item(name, array(py, column))?;
        }
        Ok((told.to_string(), found))
    }
}
