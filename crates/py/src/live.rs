//! Python bindings of the live link: takes descriptors and a description, returns rows while it
//! runs and a report at the end.

use crate::{InputError, array, custom, links, refused};
use numpy::IntoPyArray;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value as Json, json};
use sojourn_aqm::random;
use sojourn_aqm::wire::{LossProcess, Wire};
use sojourn_aqm::{Ecn, Histogram, Link, Packet, Span, Time, TokenBucket};
use sojourn_live::capture::{self, Writer};
use sojourn_live::direction::DeliveryStats;
use sojourn_live::pump::Framing;
use sojourn_live::timed_link::{LossFn, TimedLink};
use sojourn_live::{Capture, Direction, DirectionConfig, Report, Start, pump};
use sojourn_sim::config::{LinkChange, LinkConfig};
use sojourn_sim::internals::{LinkSeries, random_stream};
use sojourn_sim::{Column, internals::outcome};
use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

/// Names of the directions.
const NAMES: [&str; 2] = ["up", "down"];

/// Time over which percentiles of the sojourn time are computed.
const WINDOW: Span = Span::s(1);

/// Samples of a direction not yet fetched.
#[derive(Default)]
struct PendingSamples {
    time_s: Vec<f64>,
    series: LinkSeries,
    /// Median and 99th percentile of the sojourn time, seconds.
    sojourn_s: [Vec<f64>; 2],
    past: VecDeque<(Time, Histogram)>,
}

impl PendingSamples {
    fn look(&mut self, now: Time, link: &mut Link) {
        self.time_s.push(now.0 as f64 / 1e9);
        self.series.sample(now, link);
        let sojourn = &link.stats().sojourn;
        while self.past.get(1).is_some_and(|(at, _)| *at + WINDOW <= now) {
            self.past.pop_front();
        }
        let within = self.past.front().map(|(_, past)| sojourn.since(past));
        let within = within.as_ref().unwrap_or(sojourn);
        for (column, q) in self.sojourn_s.iter_mut().zip([0.5, 0.99]) {
            column.push(within.quantile_s(q).unwrap_or(f64::NAN));
        }
        self.past.push_back((now, sojourn.clone()));
    }

    /// Takes the samples so far; later ones continue from them.
    fn take(&mut self) -> PendingSamples {
        let series = self.series.take();
        let (time_s, sojourn_s) =
            (std::mem::take(&mut self.time_s), std::mem::take(&mut self.sojourn_s));
        PendingSamples { time_s, series, sojourn_s, past: VecDeque::new() }
    }

    fn columns(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let columns = PyDict::new(py);
        let mut result = columns.set_item("time_s", self.time_s.into_pyarray(py));
        self.series.columns(&mut |name, column| {
            if result.is_ok() {
                result = columns.set_item(name, array(py, column));
            }
        });
        let [p50, p99] = self.sojourn_s;
        columns.set_item("sojourn_p50_s", p50.into_pyarray(py))?;
        columns.set_item("sojourn_p99_s", p99.into_pyarray(py))?;
        result.map(|()| columns)
    }
}

/// Scheduled changes of a link, in order of time.
pub type LinkChanges = Box<dyn Iterator<Item = (Time, LinkChange)> + Send>;

/// Creates a link as described, with its scheduled changes; it has the random streams of the
/// link of that name in a simulation.
pub fn timed_link(def: &LinkConfig, seed: u64, changes: Option<LinkChanges>) -> TimedLink {
    let key = format!("links.{}", def.name());
    let link = Link::new(def.spec(), def.build().qdisc, random_stream(seed, &key));
    let mut timed_link = TimedLink::new(link.expect("its rate was checked"));
    if let Some(changes) = changes {
        let mut spec = def.spec();
        timed_link.schedule_changes(Box::new(changes.map(move |(at, change)| {
            spec.rate = change.rate.unwrap_or(spec.rate);
            spec.delay = change.delay.unwrap_or(spec.delay);
            (at, spec)
        })));
    }
    if let Some(burst) = def.burst() {
        timed_link.link.set_bucket(TokenBucket::new(burst));
    }
    if let Some(overhead) = def.overhead() {
        timed_link.link.set_overhead(overhead);
    }
    if let Some(opportunities) = def.opportunities() {
        timed_link.link.set_opportunities(opportunities.clone());
    }
    let stream = |name: &str| random_stream(seed, &format!("{key}.{name}"));
    if def.has_wire() {
        let wire = Wire::new(def.impairments(), |name| Box::new(stream(name)));
        timed_link.set_wire(wire);
    } else if !def.loss().is_lossless() {
        let mut wire = LossProcess::new(def.loss(), stream("loss"));
        timed_link.set_loss(Box::new(move || wire.next_is_lost()) as LossFn);
    }
    timed_link
}

/// Creates a direction as described.
fn hop(def: &LinkConfig, seed: u64, framing: Framing) -> Direction {
    let salt = random::mix(seed ^ u64::from(random::hash(def.name())));
    Direction::new(DirectionConfig {
        timed_link: timed_link(def, seed, def.link_changes(seed)),
        hash_key: salt,
        framing,
    })
}

/// Checks a sampling interval before a link starts.
///
/// # Errors
/// InputError as for a link.
#[pyfunction]
pub fn check_sample(text: &str) -> PyResult<()> {
    interval(text).map(drop)
}

/// Parses the sampling interval.
fn interval(text: &str) -> PyResult<Span> {
    let sample: Span = text.parse().map_err(|e: sojourn_aqm::Error| refused(e.at("sample")))?;
    if sample < Span::ms(1) {
        let text = format!("sample: {sample} is out of range, allowed: from 1ms");
        return Err(InputError::new_err(text));
    }
    Ok(sample)
}

/// Opens a capture file for both directions.
fn captures(path: &str, epoch_ns: u64) -> PyResult<([Capture; 2], Writer)> {
    let file = File::create(path)
        .map_err(|e| InputError::new_err(format!("{path}: {}", e.to_string().to_lowercase())))?;
    Ok(capture::open(file, epoch_ns))
}

/// Running live link.
#[pyclass]
pub struct Pump {
    pump: Option<pump::Pump<Direction>>,
    qdiscs: [&'static str; 2],
    seen: [Arc<Mutex<PendingSamples>>; 2],
    /// Capture and its writer, if a capture is written.
    capture: Option<(Capture, Writer)>,
    /// True if every packet is logged.
    packet_log: bool,
}

#[pymethods]
impl Pump {
    /// Start moving packets between two descriptors, which stay open for the caller: from `near` to
    /// `far` through the link "up", and back through "down".
    ///
    /// `sample` is the interval of the time series, None for no series; `pcap` is the path of the
    /// packet capture; `framing` names the bytes in front of each IP header: "ip" (none),
    /// "ethernet" or "vnet"; `packet_log` logs every packet.
    #[new]
    #[pyo3(signature =
        (near, far, links_json, seed, sample=None, pcap=None, framing="ip", packet_log=false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    fn new(
        near: i32,
        far: i32,
        links_json: &str,
        seed: u64,
        sample: Option<&str>,
        pcap: Option<&str>,
        framing: &str,
        packet_log: bool,
    ) -> PyResult<Pump> {
        let defs = links(links_json)?;
        custom::refuse_live(&defs)?;
        let unknown = ["source", "destination", "mark"];
        let mut keys = defs.iter().filter_map(|def| Some((def, def.filter_key(&unknown)?)));
        if let Some((def, key)) = keys.next() {
            let what = if key == "mark" { "marks" } else { "hosts by name" };
            let text = format!(
                "{}.qdisc: a filter has {key}, and packets of a real link have no {what} here: \
                 use protocol, source_port, destination_port, dscp, ecn, max_length or pure_ack",
                def.name()
            );
            return Err(InputError::new_err(text));
        }
        let find = |name: &str| {
            let def = defs.iter().find(|def| def.name() == name);
            def.ok_or_else(|| InputError::new_err(format!("{name}: is missing")))
        };
        let defs = [find("up")?, find("down")?];
        let sample = sample.map(interval).transpose()?;
        let framing = match framing {
            "ip" => Framing::Ip,
            "ethernet" => Framing::Ethernet,
            "vnet" => Framing::Vnet,
            _ => return Err(PyValueError::new_err(format!("unknown framing {framing:?}"))),
        };
        let seen: [Arc<Mutex<PendingSamples>>; 2] = Default::default();
        let start = Start::now();
        let capture = pcap.map(|path| captures(path, start.epoch_ns)).transpose()?;
        let [up, down] = [0, 1].map(|i| {
            let mut hop = hop(defs[i], seed, framing);
            if let Some(sample) = sample {
                let into = seen[i].clone();
                let see = move |now: Time, link: &mut Link| {
                    into.lock().unwrap_or_else(PoisonError::into_inner).look(now, link);
                };
                hop.sample_every(sample, Box::new(see));
            }
            if packet_log {
                hop.enable_packet_log();
            }
            if let Some((captures, _)) = &capture {
                hop.capture(captures[i].clone());
            }
            hop
        });
        let pump = || {
            let (near, far) = (pump::duplicate(near)?, pump::duplicate(far)?);
            pump::Pump::start_bidirectional(near, far, up, down, start)
        };
        let pump = pump().map_err(|e| PyOSError::new_err(e.to_string()))?;
        let capture = capture.map(|([up, _], writer)| (up, writer));
        Ok(Pump {
            pump: Some(pump),
            qdiscs: defs.map(|def| def.qdisc()),
            seen,
            capture,
            packet_log,
        })
    }

    /// Returns the samples since the last call, one table per direction.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let rows = PyDict::new(py);
        for (name, seen) in NAMES.iter().zip(&self.seen) {
            // Release the lock before calling Python: the pump may wait for it.
            let taken = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
            rows.set_item(name, taken.columns(py)?)?;
        }
        Ok(rows)
    }

    /// Stops both directions; returns a summary per direction as JSON, and the packet log of each,
    /// if there is one.
    fn stop<'py>(&mut self, py: Python<'py>) -> PyResult<(String, Bound<'py, PyDict>)> {
        let Some(pump) = self.pump.take() else {
            return Err(PyRuntimeError::new_err("the live link is already stopped"));
        };
        let reports = py.detach(|| pump.stop());
        let (mut out, packet_logs) = (json!({}), PyDict::new(py));
        for ((name, qdisc), report) in NAMES.iter().zip(self.qdiscs).zip(reports) {
            let mut report = report
                .ok_or_else(|| PyRuntimeError::new_err(format!("{name}: the thread panicked")))?;
            if self.packet_log {
                packet_logs.set_item(name, packet_log_columns(py, &mut report.carrier)?)?;
            }
            out[name] = summary(qdisc, report);
        }
        if let Some((capture, writer)) = self.capture.take() {
            capture.flush();
            out["uncaptured_packets"] = capture.missed().into();
            drop(capture); // the last one: the writer ends
            let written = py.detach(|| writer.join());
            let failed = written.ok().and_then(Result::err);
            out["capture_failed"] = failed.map(|e| e.to_string()).into();
        }
        Ok((out.to_string(), packet_logs))
    }
}

/// Packet log of a direction: arrival time, flow, size and ECN field of each packet, and its fate.
/// A packet still in the queue counts as neither dropped nor marked.
fn packet_log_columns<'py>(py: Python<'py>, hop: &mut Direction) -> PyResult<Bound<'py, PyDict>> {
    let key = |packet: &Packet| (packet.arrived, packet.body);
    let rows = hop.link().packet_log().iter();
    let mut fates: Vec<_> = rows.map(|row| (key(&row.packet), *row)).collect();
    fates.sort_unstable_by_key(|(key, _)| *key);
    let fate = |packet: &Packet| {
        let place = fates.binary_search_by_key(&key(packet), |(key, _)| *key);
        place.ok().map(|i| fates[i].1)
    };
    let (mut dropped, mut marked) = (Vec::new(), Vec::new());
    for packet in hop.arrivals() {
        let row = fate(packet);
        dropped.push(row.is_some_and(|row| row.why.is_some()));
        marked.push(row.is_some_and(|row| row.packet.ecn == Ecn::Ce && packet.ecn != Ecn::Ce));
    }
    let each = |value: fn(&Packet) -> u64| hop.arrivals().iter().map(value).collect();
    let columns = PyDict::new(py);
    columns.set_item("t_ns", array(py, Column::U64(each(|p| p.arrived.0))))?;
    columns.set_item("flow", array(py, Column::U64(each(|p| p.flow.into()))))?;
    columns.set_item("size_B", array(py, Column::U64(each(|p| p.len.into()))))?;
    columns.set_item("ecn", array(py, Column::U64(each(|p| p.ecn as u64))))?;
    columns.set_item("dropped", array(py, Column::Bool(dropped)))?;
    columns.set_item("marked", array(py, Column::Bool(marked)))?;
    Ok(columns)
}

/// Accuracy of the packet transport, and packets that were not delivered; `ran` is the duration,
/// `cpu` the processor time.
pub fn fidelity(
    counts: &DeliveryStats,
    ran: Span,
    cpu: Span,
    failed: Option<std::io::Error>,
) -> Json {
    let quantile = |q| counts.lateness.quantile_s(q);
    json!({
        "delivered_packets": counts.delivered,
        "refused_packets": counts.refused,
        "malformed_packets": counts.malformed,
        "no_memory_packets": counts.no_memory,
        "lateness_p50_s": quantile(0.5),
        "lateness_p99_s": quantile(0.99),
        "lateness_max_s": counts.lateness.max_s(),
        "late_share": outcome::ratio(counts.late as f64, counts.lateness.count() as f64),
        "cpu_share": outcome::ratio(cpu.as_secs(), ran.as_secs()),
        "failed": failed.map(|e| e.to_string()),
    })
}

/// Summary of one direction: as for a simulated link, without goodput, and the accuracy report.
fn summary(qdisc: &str, report: Report<Direction>) -> Json {
    let Report { carrier: mut hop, ran, cpu, failed } = report;
    let mut link = outcome::link_summary(qdisc, hop.link(), 0.0);
    if let Some(link) = link.as_object_mut() {
        link.remove("goodput_bps"); // unknown without inspecting acks
    }
    let counts = hop.counts();
    let sent_bits = link["departed_bytes"].as_f64().unwrap_or(0.0) * 8.0;
    let more = json!({
        "sent_bps": outcome::ratio(sent_bits, ran.as_secs()),
        "lost_on_wire_packets": hop.lost_on_wire(),
        "duration_s": ran.as_secs(),
    });
    let fidelity = fidelity(counts, ran, cpu, failed);
    if let Some(stats) = hop.wire_stats() {
        outcome::insert_wire_stats(stats, &mut link);
    }
    for (key, value) in more.as_object().into_iter().chain(fidelity.as_object()).flatten() {
        link[key] = value.clone();
    }
    link
}
