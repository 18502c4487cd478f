//! AQM algorithm of a class in Python, plain or compiled.

use super::decision::{BROKEN_PROMISE, Decision, Hook, is_promised};
use super::failure;
use super::params::ClassParams;
use super::{error_of, module};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_aqm::aqm::{Aqm, Verdict};
use sojourn_aqm::error::Result;
use sojourn_aqm::params::Checked;
use sojourn_aqm::{Context, DropReason, Env, Packet, QueueView, Snapshot, Time};

/// Methods of an object, with its state.
pub trait Methods: Clone + Send + Snapshot + 'static {
    /// Returns the methods of `object`, of the class called `class`.
    ///
    /// # Errors
    /// An exception of Python.
    fn new(py: Python<'_>, class: &'static str, object: ClassObject) -> PyResult<Self>;

    /// True if the class defines the method.
    fn defines(&self, hook: Hook) -> bool;

    /// Calls a method about `packet`, with the random numbers of `context`.
    ///
    /// # Errors
    /// An exception, or an answer that is not a decision.
    fn decide(
        &mut self,
        hook: Hook,
        context: &mut Context<'_>,
        queue: &QueueView<'_>,
        packet: &Packet,
        markable: bool,
    ) -> PyResult<Decision>;

    /// Calls a method about the queue alone. Without `queue` the queue is as at the last call.
    ///
    /// # Errors
    /// An exception.
    fn notify(&mut self, hook: Hook, queue: Option<&QueueView<'_>>, now: Time) -> PyResult<()>;

    /// Shows the recorded part of the state.
    ///
    /// # Errors
    /// A value that is not a number any more.
    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) -> PyResult<()>;

    /// Takes the parameters of `fresh` and keeps the state. Returns false, and changes nothing, if
    /// the class is another one, or if the state that `start` assigns depends on a changed
    /// parameter.
    ///
    /// # Errors
    /// An exception.
    fn reconfigure(&mut self, fresh: &Self) -> PyResult<bool>;

    /// Size of the state on the heap, bytes.
    fn heap(&self) -> usize {
        0
    }
}

/// AQM algorithm that calls the methods of an object.
#[derive(Clone, Snapshot)]
pub struct PythonAqm<M> {
    #[snapshot(skip)]
    name: &'static str,
    /// True if packets may be marked.
    ecn: bool,
    decides_at_enqueue: bool,
    methods: M,
    /// True after an exception: every packet passes until the run ends.
    failed: bool,
}

/// Object as `sojourn.custom.border.make` returns it.
#[derive(FromPyObject)]
pub struct ClassObject {
    pub object: Py<PyAny>,
    pub gauges: Vec<String>,
    pub decides_at_enqueue: bool,
}

impl ClassObject {
    /// Has Python make an object of a class for a queue of a link.
    fn new(py: Python<'_>, params: &ClassParams, env: &Env) -> PyResult<ClassObject> {
        let values = PyDict::new(py);
        for (name, value) in &params.values {
            values.set_item(name, value.to_object(py)?)?;
        }
        let rate = env.rate.0.cast_signed();
        let arguments = (params.class, &params.source, values, rate);
        module(py)?.call_method1("make", arguments)?.extract()
    }
}

impl<M: Methods> PythonAqm<M> {
    fn with(py: Python<'_>, params: &ClassParams, env: &Env) -> PyResult<Self> {
        let object = ClassObject::new(py, params, env)?;
        let decides_at_enqueue = object.decides_at_enqueue;
        let methods = M::new(py, params.class, object)?;
        Ok(PythonAqm {
            name: params.class,
            ecn: env.ecn,
            decides_at_enqueue,
            methods,
            failed: false,
        })
    }

    fn calls(&self, hook: Hook) -> bool {
        !self.failed && self.methods.defines(hook)
    }

    #[inline]
    fn decide(
        &mut self,
        hook: Hook,
        context: &mut Context<'_>,
        queue: &QueueView<'_>,
        packet: &Packet,
    ) -> Decision {
        if !self.calls(hook) {
            return Decision::Pass;
        }
        let markable = self.ecn && packet.ecn.capable();
        let error = match self.methods.decide(hook, context, queue, packet, markable) {
            Ok(decision) if is_promised(hook, decision, self.decides_at_enqueue) => {
                return decision;
            }
            Ok(_) => PyTypeError::new_err(BROKEN_PROMISE),
            Err(error) => error,
        };
        self.fail(error, hook, context.now);
        Decision::Pass
    }

    fn notify(&mut self, hook: Hook, queue: Option<&QueueView<'_>>, now: Time) {
        if !self.calls(hook) {
            return;
        }
        if let Err(error) = self.methods.notify(hook, queue, now) {
            self.fail(error, hook, now);
        }
    }

    #[cold]
    fn fail(&mut self, error: PyErr, hook: Hook, now: Time) {
        self.failed = true;
        failure::report_in(error, self.name, hook.name(), Some(now));
    }
}

impl<M: Methods> Aqm for PythonAqm<M> {
    type Params = ClassParams;

    fn new(params: Checked<'_, ClassParams>, env: &Env) -> Result<Self> {
        Python::attach(|py| PythonAqm::with(py, &params, env)).map_err(|e| error_of(&e))
    }

    fn on_update(&mut self, now: Time, queue: &QueueView<'_>) {
        self.notify(Hook::Update, Some(queue), now);
    }

    fn has_updates(&self) -> bool {
        self.methods.defines(Hook::Update)
    }

    /// DROP_HEAD drops the packet at the head and passes the arriving one; in an empty queue that
    /// is the arriving packet.
    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        match self.decide(Hook::Enqueue, context, queue, packet) {
            Decision::Pass => Verdict::Pass,
            Decision::Mark => Verdict::Mark,
            Decision::Drop => Verdict::Drop,
            Decision::DropHead => match queue.pop() {
                Some(head) => {
                    context.drop(head, DropReason::AfterEnqueue);
                    Verdict::Pass
                }
                None => Verdict::Drop,
            },
        }
    }

    fn on_overflow(&mut self, now: Time) {
        self.notify(Hook::Overflow, None, now);
    }

    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        // Bounded: each turn removes a packet from the queue.
        loop {
            let head = *queue.front()?;
            let decision = self.decide(Hook::Dequeue, context, queue, &head);
            let mut head = queue.pop()?;
            let sent = match decision {
                Decision::Pass => true,
                Decision::Mark => ecn && context.mark(&mut head),
                Decision::Drop | Decision::DropHead => false,
            };
            if sent {
                return Some(head);
            }
            context.drop(head, DropReason::AfterEnqueue);
        }
    }

    fn on_idle(&mut self, now: Time) {
        self.notify(Hook::Idle, None, now);
    }

    fn decides_at_enqueue(&self) -> bool {
        self.decides_at_enqueue
    }

    /// An exception in `start` refuses the change.
    fn reconfigure(&mut self, fresh: &Self) -> bool {
        let done = self.methods.reconfigure(&fresh.methods).unwrap_or(false);
        if done {
            self.ecn = fresh.ecn;
        }
        done
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        if let Err(error) = self.methods.gauges(visit) {
            failure::report_in(error, self.name, "the gauges", None);
        }
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + self.methods.heap()
    }
}
