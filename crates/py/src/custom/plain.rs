//! AQM algorithm that is a Python object; every decision calls a method of it.

use super::borrowed::{is_kept, lend};
use super::compiled::Native;
use super::decision::{ALLOWED, BROKEN_PROMISE, Decision, Hook, dequeue, enqueue, is_promised};
use super::failure;
use super::intern;
use super::views::{PacketView, QueueStateView};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use sojourn_aqm::aqm::{Aqm, Verdict};
use sojourn_aqm::fifo::QueueView;
use sojourn_aqm::{Context, Packet, Time};
use std::sync::Arc;

/// Object as `sojourn.custom.border.make` returns it.
#[derive(FromPyObject)]
pub struct Made {
    object: Py<PyAny>,
    gauges: Vec<String>,
    pub decides_at_enqueue: bool,
    /// Native code of the class, if the discipline is compiled.
    pub native: Option<Native>,
}

/// Constant part of a discipline.
struct Fixed {
    name: &'static str,
    gauges: Vec<&'static str>,
    /// True if packets may be marked.
    ecn: bool,
    decides_at_enqueue: bool,
}

/// AQM algorithm that is a Python object.
pub struct PlainAqm {
    fixed: Arc<Fixed>,
    object: Py<PyAny>,
    /// Bound method of each hook; `None` if the class does not define it.
    methods: [Option<Py<PyAny>>; 5],
    packet: Py<PacketView>,
    queue: Py<QueueStateView>,
    /// True after an exception: every packet passes until the run ends.
    failed: bool,
}

impl PlainAqm {
    /// # Errors
    /// A gauge that is not a number.
    pub fn new(py: Python<'_>, name: &'static str, made: Made, ecn: bool) -> PyResult<PlainAqm> {
        let gauges = made.gauges.iter().map(|gauge| intern(gauge)).collect();
        let fixed = Fixed { name, gauges, ecn, decides_at_enqueue: made.decides_at_enqueue };
        let aqm = PlainAqm::of(py, fixed.into(), made.object)?;
        aqm.read_gauges(py, &mut |_, _| {})?;
        Ok(aqm)
    }

    fn of(py: Python<'_>, fixed: Arc<Fixed>, object: Py<PyAny>) -> PyResult<PlainAqm> {
        let mut methods = [const { None }; 5];
        for (hook, method) in Hook::ALL.into_iter().zip(&mut methods) {
            *method = object.bind(py).getattr_opt(hook.name())?.map(Bound::unbind);
        }
        let packet = Py::new(py, PacketView::default())?;
        let queue = Py::new(py, QueueStateView::default())?;
        Ok(PlainAqm { fixed, object, methods, packet, queue, failed: false })
    }

    fn copy(&self, py: Python<'_>) -> PyResult<PlainAqm> {
        let object = py.import("copy")?.call_method1("deepcopy", (&self.object,))?;
        let copy = PlainAqm::of(py, self.fixed.clone(), object.unbind())?;
        Ok(PlainAqm { failed: self.failed, ..copy })
    }

    fn read_gauges(&self, py: Python<'_>, see: &mut dyn FnMut(&'static str, f64)) -> PyResult<()> {
        for name in &self.fixed.gauges {
            let value = self.object.bind(py).getattr(*name)?;
            let number = value.extract().map_err(|_| {
                let text = format!("self.{name} was a number at the start and is now {value:?}");
                PyTypeError::new_err(text)
            })?;
            see(name, number);
        }
        Ok(())
    }

    /// Report an exception; the discipline passes all packets from now on.
    fn fail(&mut self, py: Python<'_>, error: PyErr, method: &str, now: Option<Time>) {
        self.failed = true;
        failure::report_in(py, error, self.fixed.name, method, now);
    }

    /// Call the method of `hook` about `packet`, with the random numbers of `context`.
    fn decide(
        &mut self,
        hook: Hook,
        context: &mut Context<'_>,
        line: &QueueView<'_>,
        packet: &Packet,
    ) -> Decision {
        if self.failed || self.methods[hook as usize].is_none() {
            return Decision::Pass;
        }
        Python::attach(|py| {
            self.ask(py, hook, context, line, packet).unwrap_or_else(|error| {
                self.fail(py, error, hook.name(), Some(context.now));
                Decision::Pass
            })
        })
    }

    fn ask(
        &mut self,
        py: Python<'_>,
        hook: Hook,
        context: &mut Context<'_>,
        line: &QueueView<'_>,
        packet: &Packet,
    ) -> PyResult<Decision> {
        // A method may keep its arguments: it then owns these, and this call has new ones.
        if is_kept(py, &self.packet) {
            self.packet = Py::new(py, PacketView::default())?;
        }
        if is_kept(py, &self.queue) {
            self.queue = Py::new(py, QueueStateView::default())?;
        }
        let (seen, queue) = (self.packet.get(), self.queue.get());
        seen.set(packet, context.now, self.fixed.ecn && packet.ecn.capable());
        queue.set(Some(line), context.now);
        let Some(method) = &self.methods[hook as usize] else { return Ok(Decision::Pass) };
        let call = || method.bind(py).call1((&self.packet, &self.queue));
        let answer = lend(py, &queue.random, context.rng, call)?;
        if answer.is_none() {
            return Ok(Decision::Pass);
        }
        let number = answer.extract().ok().filter(|_| !answer.is_instance_of::<PyBool>());
        let decision = number
            .and_then(Decision::from_number)
            .ok_or_else(|| PyTypeError::new_err(format!("returned {answer:?}, {ALLOWED}")))?;
        if !is_promised(hook, decision, self.fixed.decides_at_enqueue) {
            return Err(PyTypeError::new_err(BROKEN_PROMISE));
        }
        Ok(decision)
    }

    /// Call the method of `hook`, which is about the queue alone. Without `line` the queue is as at
    /// the last call.
    fn notify(&mut self, hook: Hook, line: Option<&QueueView<'_>>, now: Time) {
        if self.failed || self.methods[hook as usize].is_none() {
            return;
        }
        Python::attach(|py| {
            self.queue.get().set(line, now);
            let Some(method) = &self.methods[hook as usize] else { return };
            if let Err(error) = method.bind(py).call1((&self.queue,)) {
                self.fail(py, error, hook.name(), Some(now));
            }
        });
    }
}

/// Copies the object by `copy.deepcopy`.
impl Clone for PlainAqm {
    fn clone(&self) -> Self {
        Python::attach(|py| {
            self.copy(py).unwrap_or_else(|error| {
                failure::report_in(py, error, self.fixed.name, "a copy", None);
                PlainAqm {
                    fixed: self.fixed.clone(),
                    object: self.object.clone_ref(py),
                    methods: [const { None }; 5],
                    packet: self.packet.clone_ref(py),
                    queue: self.queue.clone_ref(py),
                    failed: true,
                }
            })
        })
    }
}

impl Aqm for PlainAqm {
    fn advance(&mut self, now: Time, line: &QueueView<'_>) {
        self.notify(Hook::Update, Some(line), now);
    }

    fn has_updates(&self) -> bool {
        self.methods[Hook::Update as usize].is_some()
    }

    fn on_arrival(
        &mut self,
        context: &mut Context<'_>,
        line: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        enqueue(self.decide(Hook::Enqueue, context, line, packet), context, line)
    }

    fn on_overflow(&mut self, now: Time) {
        self.notify(Hook::Overflow, None, now);
    }

    fn dequeue(
        &mut self,
        context: &mut Context<'_>,
        line: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        dequeue(context, line, ecn, |context, line, head| {
            self.decide(Hook::Dequeue, context, line, head)
        })
    }

    fn on_idle(&mut self, now: Time) {
        self.notify(Hook::Empty, None, now);
    }

    fn decides_at_enqueue(&self) -> bool {
        self.fixed.decides_at_enqueue
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, f64)) {
        Python::attach(|py| {
            if let Err(error) = self.read_gauges(py, see) {
                failure::report_in(py, error, self.fixed.name, "the gauges", None);
            }
        });
    }
}
