//! A link that carries objects of Python.

use super::packet::{QueuedPacket, descriptor, reason};
use super::shared::Shared;
use super::{Body, get, number, parse_link, snapshot, text_form};
use crate::{InputError, refused};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sojourn_aqm::{DropReason, Error, LinkSpec, Span, Time};
use sojourn_sim::config::LinkConfig;
use std::sync::Mutex;

/// Link with bodies. One thread at a time can use it.
#[pyclass(frozen, module = "sojourn._sojourn")]
pub struct TimedLink(Mutex<sojourn_aqm::TimedLink<Shared>>);

/// Refuses keys of a link that this one lacks.
fn check_keys(def: &LinkConfig) -> PyResult<()> {
    let present = [
        ("trace", def.trace().is_some() || def.opportunities().is_some()),
        ("burst", def.burst().is_some()),
        ("overhead", def.overhead().is_some()),
    ];
    match present.into_iter().find(|(_, present)| *present) {
        None => Ok(()),
        Some((key, _)) => {
            let text = "is not available in an embedded link; `change` sets rate and delay";
            Err(refused(Error::new(text).at(key).at(def.name())))
        }
    }
}

#[pymethods]
impl TimedLink {
    /// Creates an idle link at time 0: the only one of `links_json`. Unless the discipline is
    /// `sized`, it holds at most `buffer_ns`.
    #[new]
    fn new(
        links_json: &str,
        sized: bool,
        buffer_ns: u64,
        seed: u64,
        keep_undelivered: bool,
    ) -> PyResult<TimedLink> {
        let def = parse_link(links_json)?;
        check_keys(&def)?;
        let LinkSpec { rate, delay, .. } = def.spec();
        let mut builder = sojourn_aqm::TimedLink::builder(&text_form(&def, sized), rate, delay)
            .buffer(Span(buffer_ns))
            .impairments(def.impairments().clone())
            .clone_duplicates()
            .seed(seed);
        if keep_undelivered {
            builder = builder.keep_undelivered();
        }
        let link = builder.build().map_err(|error| refused(error.at(def.name())))?;
        Ok(TimedLink(Mutex::new(link)))
    }

    /// Enqueues or drops a packet that arrives at `now_ns`.
    #[expect(clippy::too_many_arguments, reason = "the fields of a packet")]
    fn push(
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
        let now = time(now_ns)?;
        let packet = descriptor(now, &[size, flow, flow_hash, class_, ecn, source, destination])?;
        get(&self.0)?.push(now, packet, Shared(body)).map_err(early)
    }

    /// Returns the next packet that has reached the far end by `now_ns`; None if there is none.
    fn poll(&self, now_ns: &Bound<'_, PyAny>) -> PyResult<Option<QueuedPacket>> {
        let delivery = get(&self.0)?.poll(time(now_ns)?).map_err(early)?;
        Ok(delivery.map(|delivery| {
            let wrong_bit = delivery.wrong_bit;
            let packet = QueuedPacket::new(delivery.packet, delivery.body.0, delivery.at);
            QueuedPacket { wrong_bit, ..packet }
        }))
    }

    /// Next time to poll, ns; None while no packet is on the link. May be early.
    #[getter]
    fn next_poll_ns(&self) -> PyResult<Option<u64>> {
        Ok(get(&self.0)?.next_poll().map(|at| at.0))
    }

    /// Returns the next dropped or lost packet; None if there is none.
    fn next_undelivered(&self) -> PyResult<Option<QueuedPacket>> {
        Ok(get(&self.0)?.next_undelivered().map(|lost| QueuedPacket {
            reason: Some(reason(lost.reason)),
            ..QueuedPacket::new(lost.packet, lost.body.0, lost.at)
        }))
    }

    /// Number of packets on the link: queued, and on the way to the far end.
    #[getter]
    fn packets(&self) -> PyResult<usize> {
        Ok(get(&self.0)?.packets())
    }

    /// Rate in bit/s and delay in ns.
    #[getter]
    fn spec(&self) -> PyResult<(u64, u64)> {
        let link = get(&self.0)?;
        let spec = link.link().spec();
        Ok((spec.rate.0, spec.delay.0))
    }

    /// Sets rate and delay as the only link of `links_json` has them.
    fn change(&self, now_ns: &Bound<'_, PyAny>, links_json: &str) -> PyResult<()> {
        let spec = parse_link(links_json)?.spec();
        get(&self.0)?.change(time(now_ns)?, spec).map_err(early)
    }

    /// Sets the parameters of the discipline as the only link of `links_json` has them.
    fn reconfigure(&self, now_ns: &Bound<'_, PyAny>, links_json: &str) -> PyResult<()> {
        let text = text_form(&parse_link(links_json)?, true);
        let mut link = get(&self.0)?;
        let now = time(now_ns)?;
        if now < link.link().now() {
            return Err(early(Error::new("is earlier than the last call")));
        }
        link.reconfigure(now, &text).map_err(refused)
    }

    /// Starts the measured interval: resets all counters.
    fn reset_stats(&self, now_ns: &Bound<'_, PyAny>) -> PyResult<()> {
        get(&self.0)?.reset_stats(time(now_ns)?).map_err(early)
    }

    /// Returns the counters by name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut link = get(&self.0)?;
        let lost = link.wire_stats().map_or(0, |wire| wire.lost);
        let utilisation = link.utilisation();
        let backlog = link.link().qdisc().backlog();
        let (all, stats) = (PyDict::new(py), link.stats());
        all.set_item("arrived_packets", stats.arrived_packets)?;
        all.set_item("arrived_bytes", stats.arrived_bytes)?;
        all.set_item("departed_packets", stats.departed_packets)?;
        all.set_item("departed_bytes", stats.departed_bytes)?;
        all.set_item("dropped_packets", stats.dropped())?;
        all.set_item("dropped_full_packets", stats.dropped_for(DropReason::Full))?;
        all.set_item("marked_packets", stats.marks.packets)?;
        all.set_item("lost_packets", lost)?;
        all.set_item("queue_packets", backlog.packets)?;
        all.set_item("queue_bytes", backlog.bytes)?;
        all.set_item("sojourn_mean_s", stats.sojourn.mean_s())?;
        all.set_item("sojourn_p50_s", stats.sojourn.quantile_s(0.5))?;
        all.set_item("sojourn_p99_s", stats.sojourn.quantile_s(0.99))?;
        all.set_item("utilisation", utilisation)?;
        Ok(all)
    }

    /// Returns the internal variables of the discipline by name, in SI units.
    fn inspect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut variables = Vec::new();
        get(&self.0)?.inspect(&mut |name, value| variables.push((name, value)));
        let all = PyDict::new(py);
        variables.into_iter().try_for_each(|(name, value)| all.set_item(name, value))?;
        Ok(all)
    }

    /// Returns a snapshot. `dumps` converts a body to bytes; without it, bodies are bytes already.
    fn snapshot<'py>(
        &self,
        py: Python<'py>,
        dumps: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let copy = get(&self.0)?.clone();
        snapshot::save(copy, dumps, py)
    }

    /// Creates the link of a snapshot. `loads` converts bytes to a body.
    #[staticmethod]
    fn from_snapshot(snapshot: &[u8], loads: Option<&Bound<'_, PyAny>>) -> PyResult<TimedLink> {
        Ok(TimedLink(Mutex::new(snapshot::load(snapshot, loads)?)))
    }

    /// Name of the discipline.
    #[getter]
    fn name(&self) -> PyResult<String> {
        let link = get(&self.0)?;
        let text = link.text().expect("the discipline was built from a text");
        Ok(text.split('(').next().unwrap_or(text).to_string())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(link) = self.0.try_lock() else { return Ok(()) };
        link.bodies().try_for_each(|body| visit.call(&body.0))
    }
}

fn time(now_ns: &Bound<'_, PyAny>) -> PyResult<Time> {
    number(now_ns, "now_ns", u64::MAX).map(Time)
}

/// Refusal of an earlier time than in a previous call.
#[expect(clippy::needless_pass_by_value, reason = "mapped over results")]
fn early(error: Error) -> PyErr {
    let text = error.to_string();
    InputError::new_err(format!("now_ns: {}", text.trim_start_matches("now: ")))
}
