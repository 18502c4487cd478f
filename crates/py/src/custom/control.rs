//! Congestion control of a class in Python.

use super::borrowed::lend;
use super::compiled_control::CompiledControl;
use super::connection::ConnectionView;
use super::failure;
use super::gauge::show_attributes;
use super::module;
use super::seen::{HOOKS, Hook, Seen};
use super::snapshot::{in_place, load_object, save_object};
use super::values::{Access, RateValues, Values};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use sojourn_aqm::error::Result;
use sojourn_aqm::random::Random;
use sojourn_aqm::snapshot::{Reader, Writer};
use sojourn_aqm::{Snapshot, Span, Time};
use sojourn_sim::tcp::{
    CongestionSignal, ExternalControl, MarkedAck, NewDataAck, ProcessedAck, RatedAck,
    RecoveryState, TelemetryAck, Window,
};
use std::sync::Arc;

/// Methods of a class.
#[derive(Snapshot)]
pub(super) enum Code {
    Plain(PlainControl),
    /// Native code with the state of the object.
    Native(CompiledControl),
}

in_place!(PlainControl, 55, |plain, out| save_object(&plain.object, out), |plain, input| {
    load_object(&plain.object, input)
});

/// Python object.
pub(super) struct PlainControl {
    object: Py<PyAny>,
    /// Bound method of each hook; `None` if the class does not define it.
    methods: [Option<Py<PyAny>>; HOOKS.len()],
    /// Attributes that are recorded.
    gauges: Arc<[&'static str]>,
}

impl Code {
    pub(super) fn plain(
        py: Python<'_>,
        object: Py<PyAny>,
        gauges: Arc<[&'static str]>,
    ) -> PyResult<Code> {
        let mut methods = [const { None }; HOOKS.len()];
        for (hook, method) in HOOKS.into_iter().zip(&mut methods) {
            *method = object.bind(py).getattr_opt(hook)?.map(Bound::unbind);
        }
        Ok(Code::Plain(PlainControl { object, methods, gauges }))
    }

    fn defines(&self, hook: Hook) -> bool {
        match self {
            Code::Plain(plain) => plain.methods[hook as usize].is_some(),
            Code::Native(native) => native.defines(hook as usize),
        }
    }
}

/// Congestion control of one flow, and the connection that it sees.
pub(super) struct Control {
    name: &'static str,
    code: Code,
    pub(super) connection: Py<ConnectionView>,
    /// True before the first call.
    fresh: bool,
    /// True after an exception: no method is called until the run ends.
    failed: bool,
}

impl Control {
    pub(super) fn of(py: Python<'_>, name: &'static str, code: Code) -> PyResult<Control> {
        let connection = Py::new(py, ConnectionView::default())?;
        Ok(Control { name, code, connection, fresh: true, failed: false })
    }

    /// Control that calls no method.
    pub(super) fn failed(py: Python<'_>, name: &'static str) -> Control {
        let (object, methods, gauges) = (py.None(), [const { None }; HOOKS.len()], Arc::default());
        let control = Control::of(py, name, Code::Plain(PlainControl { object, methods, gauges }));
        Control { failed: true, ..control.expect("memory for a small object") }
    }

    fn copied(&self, py: Python<'_>) -> PyResult<Control> {
        let code = match &self.code {
            Code::Plain(plain) => {
                let copy = py.import("copy")?.call_method1("deepcopy", (&plain.object,))?;
                Code::plain(py, copy.unbind(), Arc::clone(&plain.gauges))?
            }
            Code::Native(native) => Code::Native(native.clone()),
        };
        let copy = Control::of(py, self.name, code)?;
        *copy.connection.get().values() = *self.connection.get().values();
        Ok(Control { fresh: self.fresh, failed: self.failed, ..copy })
    }

    /// Calls a method that sees `seen`, and returns the connection after it. Returns `None` if the
    /// class does not define the method, or if an exception has ended the run.
    fn call<'a>(
        &mut self,
        hook: Hook,
        seen: impl Into<Seen<'a>>,
        rng: Option<&mut dyn Random>,
    ) -> Option<Values> {
        let seen = seen.into();
        self.fresh = false;
        if self.failed || !self.code.defines(hook) {
            return None;
        }
        let done = match &mut self.code {
            Code::Plain(plain) => {
                let method = plain.methods[hook as usize].as_ref()?;
                Control::call_plain(&self.connection, (hook, method), seen, rng)
            }
            Code::Native(native) => {
                let after = native.call(hook, seen, rng);
                after.inspect(|after| {
                    let mut kept = self.connection.get().values();
                    *kept = Values { access: Access::Outside, ..*after };
                })
            }
        };
        done.map_err(|error| {
            self.failed = true;
            let now = Time(seen.values.now);
            failure::report_in(error, self.name, HOOKS[hook as usize], Some(now));
        })
        .ok()
    }

    /// Calls a method in Python.
    fn call_plain(
        connection: &Py<ConnectionView>,
        (hook, method): (Hook, &Py<PyAny>),
        seen: Seen<'_>,
        rng: Option<&mut dyn Random>,
    ) -> PyResult<Values> {
        Python::attach(|py| {
            let view = connection.get();
            let arguments = seen.arguments(py, connection, hook)?;
            *view.values() = seen.values;
            let call = || method.bind(py).call1(arguments);
            let answer = match rng {
                Some(rng) => lend(py, &view.random, rng, call),
                None => call(),
            };
            view.values().access = Access::Outside;
            let answer = answer?;
            if !answer.is_none() {
                let text = format!("returned {answer:?}, must return None and set attributes");
                return Err(PyTypeError::new_err(text));
            }
            Ok(*view.values())
        })
    }

    /// Calls a method for an ack that delivers data, which may change the window.
    fn grow(&mut self, hook: Hook, window: &mut Window, acked: &NewDataAck, rng: &mut dyn Random) {
        let mut seen = self.seen(acked.at, window, Access::Window);
        (seen.acked, seen.flight) = (acked.bytes, acked.flight);
        seen.after_timeout = acked.after_timeout;
        seen.rtt = acked.rtt.map(|rtt| rtt.0);
        seen.srtt = acked.srtt.map(|rtt| rtt.0);
        seen.min_rtt = shorter(seen.min_rtt, seen.rtt);
        if let Some(after) = self.call(hook, seen, Some(rng)) {
            (window.cwnd, window.ssthresh) = (after.cwnd, after.ssthresh);
        }
    }

    /// Connection as it was last, with this window and no ack.
    fn seen(&self, now: Time, window: &Window, access: Access) -> Values {
        let last = *self.connection.get().values();
        let Window { cwnd, ssthresh, mss } = *window;
        Values { access, now: now.0, cwnd, ssthresh, mss, acked: 0, rtt: None, ..last }
    }
}

fn shorter(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

impl ExternalControl for Control {
    fn reset(&mut self) {
        if self.failed || std::mem::replace(&mut self.fresh, true) {
            return;
        }
        let again = match &mut self.code {
            Code::Plain(plain) => {
                Python::attach(|py| module(py)?.call_method1("restart", (&plain.object,)).map(drop))
            }
            Code::Native(native) => {
                native.restart();
                Ok(())
            }
        };
        if let Err(error) = again {
            self.failed = true;
            failure::report_in(error, self.name, "start", None);
        }
        let view = self.connection.get();
        let Values { mss, packet, paced, reads_marks, rates, .. } = *view.values();
        let rates = RateValues { is_read: rates.is_read, ..RateValues::default() };
        *view.values() = Values { mss, packet, paced, reads_marks, rates, ..Values::default() };
    }

    fn on_established(&mut self, now: Time, window: &Window, rtt: Option<Span>) {
        let rtt = rtt.map(|rtt| rtt.0);
        let mut seen = self.seen(now, window, Access::Start);
        (seen.rtt, seen.srtt, seen.min_rtt) = (rtt, rtt, rtt);
        if self.call(Hook::Established, seen, None).is_none() {
            *self.connection.get().values() = Values { access: Access::Outside, ..seen };
        }
    }

    /// Window that `on_established`, which was called last, has left.
    fn initial_window(&mut self, _: &Window) -> u64 {
        self.connection.get().values().cwnd
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck, rng: &mut dyn Random) {
        self.grow(Hook::Ack, window, acked, rng);
    }

    fn on_ecn_feedback(&mut self, window: &mut Window, ack: &MarkedAck, rng: &mut dyn Random) {
        let MarkedAck { now, snd_una, snd_nxt, acked, marked } = *ack;
        let seen = self.seen(now, window, Access::Window);
        let seen = Values { snd_una, snd_nxt, acked, marked, ..seen };
        if let Some(after) = self.call(Hook::EcnFeedback, seen, Some(rng)) {
            (window.cwnd, window.ssthresh) = (after.cwnd, after.ssthresh);
        }
    }

    fn on_telemetry(&mut self, window: &mut Window, ack: &TelemetryAck<'_>, rng: &mut dyn Random) {
        let TelemetryAck { now, snd_una, snd_nxt, path, links } = *ack;
        let seen = self.seen(now, window, Access::Window);
        let values = Values { snd_una, snd_nxt, path: path.into(), ..seen };
        if let Some(after) = self.call(Hook::Telemetry, Seen { values, links }, Some(rng)) {
            (window.cwnd, window.ssthresh) = (after.cwnd, after.ssthresh);
        }
    }

    fn uses_delivered(&self) -> bool {
        self.code.defines(Hook::Delivered)
    }

    fn on_delivered(&mut self, window: &mut Window, delivered: &NewDataAck, rng: &mut dyn Random) {
        self.grow(Hook::Delivered, window, delivered, rng);
    }

    fn uses_rate_samples(&self) -> bool {
        self.code.defines(Hook::RateSample)
    }

    fn on_rate_sample(
        &mut self,
        window: &mut Window,
        ack: &RatedAck,
        rng: &mut dyn Random,
    ) -> bool {
        let mut seen = self.seen(ack.now, window, Access::RateSample);
        (seen.acked, seen.flight) = (ack.acked, ack.flight + ack.acked);
        seen.after_timeout = ack.state == RecoveryState::Loss;
        seen.rtt = ack.rtt.map(|rtt| rtt.0);
        seen.srtt = ack.srtt.map(|rtt| rtt.0);
        seen.min_rtt = shorter(seen.min_rtt, seen.rtt);
        seen.rates = RateValues {
            is_read: true,
            delivered: ack.delivered,
            prior_delivered: ack.prior_delivered,
            delivery_rate: ack.rate.map(|bytes| 8.0 * bytes),
            interval: ack.interval.0,
            lost: ack.lost,
            newly_lost: ack.newly_lost,
            in_fast_recovery: ack.state == RecoveryState::Recovery,
            is_app_limited: ack.is_app_limited,
            app_limited: ack.app_limited,
            limits: false,
            idle_restart: ack.idle_restart,
        };
        let Some(after) = self.call(Hook::RateSample, seen, Some(rng)) else { return false };
        (window.cwnd, window.ssthresh) = (after.cwnd, after.ssthresh);
        after.rates.limits
    }

    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
        rng: &mut dyn Random,
    ) -> u64 {
        let own = match cause {
            CongestionSignal::Loss => Hook::Loss,
            CongestionSignal::Mark => Hook::Mark,
            CongestionSignal::Timeout => Hook::Timeout,
        };
        let hook = if self.code.defines(own) { own } else { Hook::Loss };
        let half = (flight / 2).max(2 * window.mss); // RFC 5681 (4)
        let seen = Values { flight, ssthresh: half, ..self.seen(now, window, Access::Threshold) };
        self.call(hook, seen, Some(rng)).map_or(half, |after| after.ssthresh)
    }

    fn uses_recovered(&self) -> bool {
        self.code.defines(Hook::Recovered)
    }

    fn on_recovered(&mut self, window: &mut Window, ack: &ProcessedAck, rng: &mut dyn Random) {
        let mut seen = self.seen(ack.now, window, Access::Window);
        (seen.flight, seen.srtt) = (ack.flight, ack.srtt.map(|rtt| rtt.0));
        if let Some(after) = self.call(Hook::Recovered, seen, Some(rng)) {
            (window.cwnd, window.ssthresh) = (after.cwnd, after.ssthresh);
        }
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.connection.get().values().pacing_rate.map(|bps| bps / 8.0)
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let shown = match &self.code {
            Code::Plain(plain) => {
                Python::attach(|py| show_attributes(plain.object.bind(py), &plain.gauges, visit))
            }
            Code::Native(native) => {
                native.gauges(visit);
                Ok(())
            }
        };
        if let Err(error) = shown {
            failure::report_in(error, self.name, "the gauges", None);
        }
    }

    fn save(&self) -> Result<Vec<u8>> {
        let mut out = Writer::default();
        self.code.save_to(&mut out).map_err(|e| e.at("tcp"))?;
        let connection = *self.connection.get().values();
        (connection, self.fresh, self.failed).save_to(&mut out)?;
        Ok(out.into_bytes())
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let mut input = Reader::new(bytes);
        self.code.load_from(&mut input)?;
        let (connection, fresh, failed) = Snapshot::create_from(&mut input)?;
        *self.connection.get().values() = connection;
        (self.fresh, self.failed) = (fresh, failed);
        input.finish()
    }

    /// Copies the object by `copy.deepcopy`. If that fails, the run of the copy ends.
    fn copy(&self) -> Box<dyn ExternalControl> {
        Python::attach(|py| {
            Box::new(self.copied(py).unwrap_or_else(|error| {
                failure::report_in(error, self.name, "a copy", None);
                Control::failed(py, self.name)
            }))
        })
    }
}
