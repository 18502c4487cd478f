//! A discipline, for programs in Python with a transmitter of their own.

use super::packet::{QueuedPacket, descriptor, reason};
use super::{Body, build, get, number, parse_link, text_form};
use crate::{InputError, refused};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_aqm::{
    Context, Dropped, Error, Marks, Packet, Pcg, Rate, Registry, Served, Span, Time,
};
use std::collections::VecDeque;
use std::sync::Mutex;

/// Discipline with bodies. One thread at a time can use it.
#[pyclass(frozen, module = "sojourn._sojourn")]
pub struct Qdisc(Mutex<State>);

struct State {
    qdisc: Box<dyn Served + Send>,
    rate: Rate,
    rng: Pcg,
    marks: Marks,
    now: Time,
    bodies: Vec<Option<Body>>,
    free: Vec<u32>,
    dropped: Vec<Dropped>,
    /// Dropped packets that the program has not taken; `None` if they are freed.
    undelivered: Option<VecDeque<QueuedPacket>>,
    counters: Counters,
}

/// Counters of packets and bytes.
#[derive(Default)]
struct Counters {
    arrived: [u64; 2],
    departed: [u64; 2],
    dropped_packets: u64,
    dropped_full_packets: u64,
    sojourn_ns: u128,
}

impl State {
    /// Calls `work` with the discipline at `now`, then takes the dropped packets.
    fn at<R>(
        &mut self,
        now: Time,
        work: impl FnOnce(&mut (dyn Served + Send), &mut Context<'_>) -> R,
    ) -> R {
        self.now = now;
        let (rng, dropped, marks) = (&mut self.rng, &mut self.dropped, &mut self.marks);
        let result = work(&mut *self.qdisc, &mut Context { now, rng, dropped, marks });
        for Dropped { packet, reason: why, at } in std::mem::take(&mut self.dropped) {
            let body = self.remove(packet.body);
            self.counters.dropped_packets += 1;
            let full = why == sojourn_aqm::DropReason::Full;
            self.counters.dropped_full_packets += u64::from(full);
            if let Some(list) = &mut self.undelivered {
                let reason = Some(reason(Some(why)));
                list.push_back(QueuedPacket { reason, ..QueuedPacket::new(packet, body, at) });
            }
        }
        result
    }

    fn insert(&mut self, body: Body) -> PyResult<u32> {
        let index = self.free.pop().or_else(|| {
            let index = u32::try_from(self.bodies.len()).ok()?;
            self.bodies.push(None);
            Some(index)
        });
        let full = || InputError::new_err("the queue has more than 4294967295 packets");
        let index = index.ok_or_else(full)?;
        self.bodies[index as usize] = Some(body);
        Ok(index)
    }

    fn remove(&mut self, index: u32) -> Body {
        self.free.push(index);
        self.bodies[index as usize].take().expect("the index is in use")
    }

    /// Reads a time that is not before the last one.
    fn time(&self, now: &Bound<'_, PyAny>) -> PyResult<Time> {
        let now = Time(number(now, "now_ns", u64::MAX)?);
        if now >= self.now {
            return Ok(now);
        }
        let text = format!("{} ns is earlier than the last call at {} ns", now.0, self.now.0);
        Err(refused(Error::new(text).at("now_ns")))
    }
}

#[pymethods]
impl Qdisc {
    /// Creates an empty discipline: the one of the only link of `links_json`, with its rate.
    #[new]
    fn new(links_json: &str, seed: u64, keep_dropped: bool) -> PyResult<Qdisc> {
        let def = parse_link(links_json)?;
        Ok(Qdisc(Mutex::new(State {
            qdisc: build(&def, true, Span::ZERO)?.qdisc,
            rate: def.spec().rate,
            rng: Pcg::stream(seed, "qdisc"),
            marks: Marks::default(),
            now: Time::ZERO,
            bodies: Vec::new(),
            free: Vec::new(),
            dropped: Vec::new(),
            undelivered: keep_dropped.then(VecDeque::new),
            counters: Counters::default(),
        })))
    }

    /// Enqueues or drops a packet that arrives at `now_ns`.
    #[expect(clippy::too_many_arguments, reason = "the fields of a packet")]
    fn enqueue(
        &self,
        now_ns: &Bound<'_, PyAny>,
        body: Body,
        size: &Bound<'_, PyAny>,
        flow: &Bound<'_, PyAny>,
        flow_hash: &Bound<'_, PyAny>,
        class_: &Bound<'_, PyAny>,
        ecn: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        destination: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut state = get(&self.0)?;
        let now = state.time(now_ns)?;
        let packet = descriptor(now, &[size, flow, flow_hash, class_, ecn, source, destination])?;
        let packet = Packet { body: state.insert(body)?, ..packet };
        state.counters.arrived[0] += 1;
        state.counters.arrived[1] += u64::from(packet.len);
        state.at(now, |qdisc, context| qdisc.enqueue(context, packet));
        Ok(())
    }

    /// Dequeues the next packet to send; None if there is none, or a shaper holds the packets back.
    fn dequeue(&self, now_ns: &Bound<'_, PyAny>) -> PyResult<Option<QueuedPacket>> {
        let mut state = get(&self.0)?;
        let now = state.time(now_ns)?;
        let packet = state.at(now, |qdisc, context| qdisc.dequeue(context));
        Ok(packet.map(|packet| {
            state.counters.departed[0] += 1;
            state.counters.departed[1] += u64::from(packet.len);
            state.counters.sojourn_ns += u128::from(now.since(packet.arrived).0);
            QueuedPacket::new(packet, state.remove(packet.body), now)
        }))
    }

    /// Returns the next dropped packet; None if there is none.
    fn next_dropped(&self) -> PyResult<Option<QueuedPacket>> {
        Ok(get(&self.0)?.undelivered.as_mut().and_then(VecDeque::pop_front))
    }

    /// Time at which to dequeue again after a dequeue without a packet, ns; None if it is empty.
    #[getter]
    fn ready_at_ns(&self) -> PyResult<Option<u64>> {
        Ok(get(&self.0)?.qdisc.ready_at().map(|at| at.0))
    }

    /// Number of packets and bytes in the queue.
    #[getter]
    fn backlog(&self) -> PyResult<(u32, u64)> {
        let backlog = get(&self.0)?.qdisc.backlog();
        Ok((backlog.packets, backlog.bytes))
    }

    /// Sets the parameters of the discipline as the only link of `links_json` has them.
    fn reconfigure(&self, links_json: &str) -> PyResult<()> {
        let def = parse_link(links_json)?;
        let mut state = get(&self.0)?;
        let text = text_form(&def, true);
        let fresh = Registry::standard().build_text(&text, state.rate).map_err(refused)?.qdisc;
        if state.qdisc.reconfigure(fresh) {
            return Ok(());
        }
        let text = "the discipline cannot take these parameters while it runs";
        Err(refused(Error::new(text).at("qdisc")))
    }

    /// Returns the counters by name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = get(&self.0)?;
        let Counters { arrived, departed, dropped_packets, dropped_full_packets, sojourn_ns } =
            state.counters;
        let (all, backlog) = (PyDict::new(py), state.qdisc.backlog());
        all.set_item("arrived_packets", arrived[0])?;
        all.set_item("arrived_bytes", arrived[1])?;
        all.set_item("departed_packets", departed[0])?;
        all.set_item("departed_bytes", departed[1])?;
        all.set_item("dropped_packets", dropped_packets)?;
        all.set_item("dropped_full_packets", dropped_full_packets)?;
        all.set_item("marked_packets", state.marks.all())?;
        all.set_item("queue_packets", backlog.packets)?;
        all.set_item("queue_bytes", backlog.bytes)?;
        let mean = (departed[0] > 0).then(|| sojourn_ns as f64 / departed[0] as f64 / 1e9);
        all.set_item("sojourn_mean_s", mean)?;
        Ok(all)
    }

    /// Returns the internal variables of the discipline by name, in SI units.
    fn inspect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut state = get(&self.0)?;
        let (now, mut variables) = (state.now, Vec::new());
        state.qdisc.inspect_at(now, &mut |name, value| variables.push((name, value)));
        let all = PyDict::new(py);
        variables.into_iter().try_for_each(|(name, value)| all.set_item(name, value))?;
        Ok(all)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(state) = self.0.try_lock() else { return Ok(()) };
        state.bodies.iter().flatten().try_for_each(|body| visit.call(body))?;
        let kept = state.undelivered.iter().flatten();
        kept.into_iter().try_for_each(|packet| visit.call(&packet.body))
    }
}
