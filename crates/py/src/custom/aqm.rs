//! AQM algorithm of a class in Python, plain or compiled.

use super::decision::{BROKEN_PROMISE, Decision, Hook, is_promised};
use super::failure;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use sojourn_aqm::aqm::{Aqm, Verdict};
use sojourn_aqm::{Context, DropReason, Packet, QueueView, Time};

/// Methods of an object, with its state.
pub trait Methods: Clone + Send + 'static {
    /// True if the class defines the method.
    fn defines(&self, hook: Hook) -> bool;

    /// Call a method about `packet`, with the random numbers of `context`.
    ///
    /// # Errors
    /// An exception, or an answer that is not a decision.
    fn decide(
        &mut self,
        hook: Hook,
        context: &mut Context<'_>,
        line: &QueueView<'_>,
        packet: &Packet,
        markable: bool,
    ) -> PyResult<Decision>;

    /// Call a method about the queue alone. Without `line` the queue is as at the last call.
    ///
    /// # Errors
    /// An exception.
    fn notify(&mut self, hook: Hook, line: Option<&QueueView<'_>>, now: Time) -> PyResult<()>;

    /// Show the recorded part of the state.
    ///
    /// # Errors
    /// A value that is not a number any more.
    fn gauges(&self, see: &mut dyn FnMut(&'static str, f64)) -> PyResult<()>;

    /// Take the parameters of `fresh` and keep the state. False, and nothing changes, if the state
    /// that `start` assigns depends on those that differ, or the class is another one.
    ///
    /// # Errors
    /// An exception.
    fn reconfigure(&mut self, fresh: Self) -> PyResult<bool>;

    /// Size of the state on the heap, bytes.
    fn heap(&self) -> usize {
        0
    }
}

/// AQM algorithm that calls the methods of an object.
#[derive(Clone)]
pub struct PythonAqm<M> {
    name: &'static str,
    /// True if packets may be marked.
    ecn: bool,
    decides_at_enqueue: bool,
    methods: M,
    /// True after an exception: every packet passes until the run ends.
    failed: bool,
}

impl<M: Methods> PythonAqm<M> {
    pub fn new(name: &'static str, methods: M, ecn: bool, decides_at_enqueue: bool) -> Self {
        PythonAqm { name, ecn, decides_at_enqueue, methods, failed: false }
    }

    fn calls(&self, hook: Hook) -> bool {
        !self.failed && self.methods.defines(hook)
    }

    #[inline]
    fn decide(
        &mut self,
        hook: Hook,
        context: &mut Context<'_>,
        line: &QueueView<'_>,
        packet: &Packet,
    ) -> Decision {
        if !self.calls(hook) {
            return Decision::Pass;
        }
        let markable = self.ecn && packet.ecn.capable();
        let error = match self.methods.decide(hook, context, line, packet, markable) {
            Ok(decision) if is_promised(hook, decision, self.decides_at_enqueue) => {
                return decision;
            }
            Ok(_) => PyTypeError::new_err(BROKEN_PROMISE),
            Err(error) => error,
        };
        self.fail(error, hook, context.now);
        Decision::Pass
    }

    fn notify(&mut self, hook: Hook, line: Option<&QueueView<'_>>, now: Time) {
        if !self.calls(hook) {
            return;
        }
        if let Err(error) = self.methods.notify(hook, line, now) {
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
    fn advance(&mut self, now: Time, line: &QueueView<'_>) {
        self.notify(Hook::Update, Some(line), now);
    }

    fn has_updates(&self) -> bool {
        self.methods.defines(Hook::Update)
    }

    /// DROP_HEAD drops the packet at the head and passes the arriving one; in an empty queue that
    /// is the arriving packet.
    fn on_arrival(
        &mut self,
        context: &mut Context<'_>,
        line: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        match self.decide(Hook::Enqueue, context, line, packet) {
            Decision::Pass => Verdict::Pass,
            Decision::Mark => Verdict::Signal,
            Decision::Drop => Verdict::Drop,
            Decision::DropHead => match line.pop() {
                Some(head) => {
                    context.drop(head, DropReason::Late);
                    Verdict::Pass
                }
                None => Verdict::Drop,
            },
        }
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
        // Bounded: each turn removes a packet from the queue.
        loop {
            let head = *line.front()?;
            let decision = self.decide(Hook::Dequeue, context, line, &head);
            let mut head = line.pop()?;
            let sent = match decision {
                Decision::Pass => true,
                Decision::Mark => ecn && context.mark(&mut head),
                Decision::Drop | Decision::DropHead => false,
            };
            if sent {
                return Some(head);
            }
            context.drop(head, DropReason::Late);
        }
    }

    fn on_idle(&mut self, now: Time) {
        self.notify(Hook::Empty, None, now);
    }

    fn decides_at_enqueue(&self) -> bool {
        self.decides_at_enqueue
    }

    /// An exception in `start` refuses the change.
    fn reconfigure(&mut self, fresh: Self) -> bool {
        let done = self.methods.reconfigure(fresh.methods).unwrap_or(false);
        if done {
            self.ecn = fresh.ecn;
        }
        done
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, f64)) {
        if let Err(error) = self.methods.gauges(see) {
            failure::report_in(error, self.name, "the gauges", None);
        }
    }

    fn state(&self) -> usize {
        size_of_val(self) + self.methods.heap()
    }
}
