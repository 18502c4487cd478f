//! AQM algorithm that Numba compiled from a Python class; a decision calls native code.

use super::borrowed::{Generator, NativeMethod};
use super::decision::{Decision, Hook, dequeue, enqueue, is_promised};
use super::records::{PacketRecord, QueueRecord};
use super::{failure, intern, module};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use sojourn_aqm::aqm::{Aqm, Verdict};
use sojourn_aqm::fifo::QueueView;
use sojourn_aqm::{Context, Packet, Time};
use std::sync::Arc;

/// Compiled class as `sojourn.custom.native.compile_class` returns it.
#[derive(FromPyObject)]
pub struct Native {
    /// Addresses of the methods, 0 for those that the class does not define.
    methods: [usize; 5],
    /// State after `start`, in whole words.
    state: Vec<u64>,
    /// Gauges: name, offset in bytes, type.
    gauges: Vec<(String, usize, String)>,
    /// Objects that own the native code.
    owner: Py<PyAny>,
}

/// Part of the state that is recorded.
#[derive(Clone, Copy, Debug)]
struct Gauge {
    name: &'static str,
    offset: usize,
    kind: GaugeKind,
}

#[derive(Clone, Copy, Debug)]
enum GaugeKind {
    Real,
    Integer,
    Flag,
}

impl Gauge {
    fn read(self, state: &[u64]) -> f64 {
        let word = state.get(self.offset / 8).copied().unwrap_or(0);
        match self.kind {
            GaugeKind::Real => f64::from_bits(word),
            GaugeKind::Integer => word.cast_signed() as f64,
            GaugeKind::Flag => f64::from(word.to_ne_bytes()[self.offset % 8] != 0),
        }
    }
}

/// Constant part of a discipline.
struct Fixed {
    name: &'static str,
    source: String,
    methods: [Option<NativeMethod>; 5],
    gauges: Vec<Gauge>,
    ecn: bool,
    decides_at_enqueue: bool,
    /// Owner of the native code, which lives as long as this.
    _owner: Py<PyAny>,
}

/// AQM algorithm whose methods are native code and whose state is an array.
#[derive(Clone)]
pub struct CompiledAqm {
    fixed: Arc<Fixed>,
    state: Vec<u64>,
    /// Queue as it was shown last.
    queue: QueueRecord,
    /// True after an exception: every packet passes until the run ends.
    failed: bool,
}

impl CompiledAqm {
    pub fn new(
        name: &'static str,
        source: &str,
        native: Native,
        ecn: bool,
        decides_at_enqueue: bool,
    ) -> CompiledAqm {
        let gauges = native.gauges.iter().map(|(gauge, offset, kind)| Gauge {
            name: intern(gauge),
            offset: *offset,
            kind: match kind.as_str() {
                "f" => GaugeKind::Real,
                "b" => GaugeKind::Flag,
                _ => GaugeKind::Integer,
            },
        });
        let fixed = Fixed {
            name,
            source: source.into(),
            methods: native.methods.map(NativeMethod::at),
            gauges: gauges.collect(),
            ecn,
            decides_at_enqueue,
            _owner: native.owner,
        };
        let queue = QueueRecord::default();
        CompiledAqm { fixed: fixed.into(), state: native.state, queue, failed: false }
    }

    fn show(&mut self, line: Option<&QueueView<'_>>, now: Time) {
        self.queue.now = now.0.cast_signed();
        if let Some(line) = line {
            self.queue.bytes = line.bytes().cast_signed();
            self.queue.packets = line.packets().into();
        }
    }

    #[inline]
    fn decide(
        &mut self,
        hook: Hook,
        context: &mut Context<'_>,
        line: &QueueView<'_>,
        packet: &Packet,
    ) -> Decision {
        let Some(method) = self.fixed.methods[hook as usize].filter(|_| !self.failed) else {
            return Decision::Pass;
        };
        self.show(Some(line), context.now);
        let mut seen = PacketRecord {
            size: packet.len.into(),
            flow: packet.flow.into(),
            hash: packet.hash.into(),
            class: packet.class.into(),
            ecn: (packet.ecn as u8).into(),
            arrived: packet.arrived.0.cast_signed(),
            sojourn: context.now.since(packet.arrived).0.cast_signed(),
            markable: self.fixed.ecn && packet.ecn.capable(),
        };
        let rng: Generator<'_> = &mut *context.rng;
        let number = method.call(Some(rng), &mut seen, &mut self.queue, &mut self.state);
        let decision = Decision::from_number(number).filter(|_| self.queue.error == 0);
        match decision {
            Some(decision) if is_promised(hook, decision, self.fixed.decides_at_enqueue) => {
                decision
            }
            _ => {
                self.fail(hook, context.now, seen);
                Decision::Pass
            }
        }
    }

    fn notify(&mut self, hook: Hook, line: Option<&QueueView<'_>>, now: Time) {
        let Some(method) = self.fixed.methods[hook as usize].filter(|_| !self.failed) else {
            return;
        };
        self.show(line, now);
        let mut none = PacketRecord::default();
        method.call(None, &mut none, &mut self.queue, &mut self.state);
        if self.queue.error != 0 {
            self.fail(hook, now, none);
        }
    }

    /// Report a fault. Compiled code cannot say what it was: the plain method is called with the
    /// same state, and raises the exception.
    #[cold]
    fn fail(&mut self, hook: Hook, now: Time, packet: PacketRecord) {
        self.failed = true;
        let Fixed { name, source, .. } = &*self.fixed;
        Python::attach(|py| {
            let repeated = || {
                let (p, q) = (packet, self.queue);
                let packet = [p.size, p.flow, p.hash, p.class, p.ecn, p.arrived, p.sojourn];
                let queue = [q.now, q.bytes, q.packets];
                let called = (*name, source, hook.name(), packet, p.markable, queue, &self.state);
                module(py)?.call_method1("repeat", called)
            };
            let error = match repeated() {
                Ok(_) => PyRuntimeError::new_err(
                    "an exception in compiled code; it does not occur without compiled=True",
                ),
                Err(error) => error,
            };
            failure::report_in(py, error, name, hook.name(), Some(now));
        });
    }
}

impl Aqm for CompiledAqm {
    fn advance(&mut self, now: Time, line: &QueueView<'_>) {
        self.notify(Hook::Update, Some(line), now);
    }

    fn has_updates(&self) -> bool {
        self.fixed.methods[Hook::Update as usize].is_some()
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
        self.fixed.gauges.iter().for_each(|gauge| see(gauge.name, gauge.read(&self.state)));
    }

    fn state(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.state)
    }
}
