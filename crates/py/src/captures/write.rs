//! Python binding of runs whose packets are written to a capture.

use super::PyFile;
use super::headers::Headers;
use crate::scenario::{ParsedScenario, outcome};
use crate::{InputError, interruptible};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_aqm::{DropReason, Time};
use sojourn_live::pcapng::{self, CapturedPacket, Direction};
use sojourn_sim::{Fate, TappedContent, TappedFlow, TappedPacket};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, PoisonError};

/// Number of packets that are held back, so that they can be written in order of time: a packet is
/// known when its fate is, and those that arrived after it may leave before it.
const HELD: usize = 1 << 16;

/// Place of a packet in the file: its time; those that do not pass the link come first at the same
/// time, since packets of an endpoint answer them; then the sequence number of a segment, since
/// dropped packets of a burst are known before the others; then the order in which they are known.
type Place = (Time, bool, u64, u64);

/// Capture of the packets that pass a link, and of those in the opposite direction.
struct Capture {
    file: BufWriter<PyFile>,
    /// True if the time of a packet is its departure, false if it is its arrival.
    departures: bool,
    held: BTreeMap<Place, (TappedPacket, TappedFlow)>,
    headers: Headers,
    known: u64,
    /// Buffers for a packet and its block.
    bytes: Vec<u8>,
    block: Vec<u8>,
}

impl Capture {
    fn new(file: PyFile, link: &str, departures: bool) -> io::Result<Capture> {
        let mut file = BufWriter::with_capacity(1 << 18, file);
        file.write_all(&pcapng::file_header(link))?;
        Ok(Capture {
            file,
            departures,
            held: BTreeMap::new(),
            headers: Headers::default(),
            known: 0,
            bytes: Vec::new(),
            block: Vec::new(),
        })
    }

    /// Takes a packet whose fate is known.
    fn add(&mut self, packet: &TappedPacket, flow: &TappedFlow) -> io::Result<()> {
        let at = if self.departures { packet.left } else { packet.arrived };
        let number = match packet.content {
            TappedContent::Segment(segment) => segment.seq,
            _ => 0,
        };
        self.known += 1;
        self.held.insert((at, packet.passes, number, self.known), (*packet, *flow));
        if self.held.len() > HELD { self.write_first() } else { Ok(()) }
    }

    /// Writes the packets that were held back.
    fn finish(&mut self) -> io::Result<()> {
        while !self.held.is_empty() {
            self.write_first()?;
        }
        self.file.flush()
    }

    fn write_first(&mut self) -> io::Result<()> {
        let Some((place, (packet, flow))) = self.held.pop_first() else { return Ok(()) };
        let Capture { bytes, block, .. } = self;
        bytes.clear();
        block.clear();
        let ns = place.0.0;
        let length = self.headers.write(&packet, &flow, ns / 1_000_000, bytes);
        let direction = if packet.passes { Direction::Outbound } else { Direction::Inbound };
        let captured = CapturedPacket { ns, direction, bytes, length };
        let later = packet.left.since(packet.arrived).0;
        let (ms, part) = (later / 1_000_000, later % 1_000_000);
        let fate = match packet.fate {
            Fate::Sent => "left",
            Fate::Lost => "dropped: lost on the wire",
            Fate::Dropped(DropReason::Full) => "dropped: the buffer is full",
            Fate::Dropped(DropReason::AtEnqueue) => "dropped: by the AQM, on arrival",
            Fate::Dropped(DropReason::AfterEnqueue) => "dropped: by the AQM, at the head",
            Fate::Dropped(DropReason::SharedBuffer) => "dropped: the shared buffer is full",
            _ => "dropped: by the AQM",
        };
        match (packet.passes, self.departures) {
            (false, _) => pcapng::packet(block, &captured, format_args!("")),
            // The reader of captures subtracts a time after "after".
            (true, true) => {
                pcapng::packet(block, &captured, format_args!("{fate}, after {ms}.{part:06} ms"));
            }
            (true, false) => {
                pcapng::packet(block, &captured, format_args!("{fate}, {ms}.{part:06} ms later"));
            }
        }
        self.file.write_all(block)
    }
}

/// Runs the scenario as `ParsedScenario.simulate` does, on one thread, and writes the packets that
/// pass the link named `link` to a file object that takes bytes, as pcapng.
///
/// The time of a packet is the time of its arrival at the link, or of its departure if `departures`
/// is true. A comment gives its fate. Packets of the same connections in the opposite
/// direction are written as well.
///
/// # Errors
/// InputError if there is no such link; an exception of the file object; otherwise as `simulate`.
#[pyfunction]
#[pyo3(signature = (parsed, file, link, departures=false, progress=None))]
pub fn simulate_captured<'py>(
    py: Python<'py>,
    parsed: &ParsedScenario,
    file: Py<PyAny>,
    link: &str,
    departures: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let scenario = Arc::clone(&parsed.scenario);
    let index = scenario.links().iter().position(|one| one.name() == link);
    let index = index.ok_or_else(|| InputError::new_err(format!("there is no link {link:?}")))?;
    let file = PyFile::new(file);
    let error = Arc::clone(&file.error);
    let logs = scenario.packet_log();
    let result = interruptible(py, progress.as_ref(), parsed.calls_python(), logs, |ask| {
        let mut capture = Capture::new(file, link, departures).ok()?;
        let mut add = |packet: &_, flow: &_| capture.add(packet, flow).is_ok();
        let outcome = sojourn_sim::run_tapped(scenario, index, &mut add, ask)?;
        capture.finish().ok()?;
        Some(outcome)
    });
    match error.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(error),
        None => outcome(py, result?),
    }
}
