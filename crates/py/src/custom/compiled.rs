//! Methods that Numba compiled from a Python class; a decision is a call of native code.

use super::aqm::{ClassObject, Methods};
use super::borrowed::{Generator, NativeMethod};
use super::decision::{Decision, Hook};
use super::gauge::{Gauge, Layout};
use super::module;
use super::recorded::{Drawn, Recording};
use super::records::{PacketRecord, QueueRecord};
use super::snapshot::{in_place, load_words};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use sojourn_aqm::{Context, Packet, QueueView, Snapshot, Time};
use std::sync::Arc;

/// Compiled class as `sojourn.custom.border.compile_object` returns it.
#[derive(FromPyObject)]
struct Native {
    /// Addresses of the methods, 0 for those that the class does not define.
    methods: [usize; 5],
    /// State after `start`, in whole words.
    state: Vec<u64>,
    gauges: Vec<Layout>,
    /// Owner of the native code.
    owner: Py<PyAny>,
}

/// Constant part of a compiled class.
struct Fixed {
    methods: [Option<NativeMethod<QueueRecord>>; 5],
    gauges: Vec<Gauge>,
    /// Owner of the native code, which lives as long as this.
    owner: Py<PyAny>,
}

/// Native code of a class, and the state of an object as an array.
#[derive(Clone)]
pub struct CompiledMethods {
    fixed: Arc<Fixed>,
    state: Vec<u64>,
    /// Queue as it was shown last.
    queue: QueueRecord,
}

impl CompiledMethods {
    /// Calls a method; `rng` is the source of its random numbers.
    #[inline]
    fn call(
        &mut self,
        hook: Hook,
        rng: Option<Generator<'_>>,
        packet: &mut PacketRecord,
        queue: Option<&QueueView<'_>>,
        now: Time,
    ) -> PyResult<i64> {
        let Some(method) = self.fixed.methods[hook as usize] else { return Ok(0) };
        self.queue.now = now.0.cast_signed();
        if let Some(queue) = queue {
            self.queue.bytes = queue.bytes().cast_signed();
            self.queue.packets = queue.packets().into();
        }
        let mut drawn = Drawn::default();
        let mut recording = rng.map(|from| Recording { from, drawn: &mut drawn });
        let rng = recording.as_mut().map(|rng| rng as Generator<'_>);
        let answer = method.call(rng, packet, &mut self.queue, &mut self.state);
        if self.queue.error == 0 { Ok(answer) } else { Err(self.exception(hook, *packet, drawn)) }
    }

    /// Exception of a method. Compiled code reports only that there was one: the plain method is
    /// called with the same state and random numbers, and raises it.
    #[cold]
    fn exception(&self, hook: Hook, packet: PacketRecord, drawn: Drawn) -> PyErr {
        let (p, q) = (packet, self.queue);
        let packet = [p.size, p.flow, p.hash, p.class, p.ecn, p.arrived, p.sojourn];
        let queue = [q.now, q.bytes, q.packets];
        let owner = &self.fixed.owner;
        let numbers = drawn.numbers().to_vec();
        let called = (owner, hook.name(), packet, p.markable, queue, &self.state, numbers);
        let text = "an exception in compiled code; it does not occur without compiled=True";
        Python::attach(|py| module(py)?.call_method1("repeat", called).map(drop))
            .err()
            .unwrap_or_else(|| PyRuntimeError::new_err(text))
    }
}

in_place!(
    CompiledMethods,
    52,
    |methods, out| {
        methods.state.save_to(out)?;
        let QueueRecord { now, bytes, packets, rng: _, error } = methods.queue;
        [now, bytes, packets, error].save_to(out)
    },
    |methods, input| {
        load_words(&mut methods.state, input)?;
        let [now, bytes, packets, error] = Snapshot::create_from(input)?;
        methods.queue = QueueRecord { now, bytes, packets, rng: 0, error };
        Ok(())
    }
);

impl Methods for CompiledMethods {
    /// Compiles the class.
    fn new(py: Python<'_>, _class: &'static str, object: ClassObject) -> PyResult<CompiledMethods> {
        let compiled = module(py)?.call_method1("compile_object", (object.object,))?;
        let native: Native = compiled.extract()?;
        let fixed = Fixed {
            methods: native.methods.map(NativeMethod::at),
            gauges: Gauge::of(&native.gauges),
            owner: native.owner,
        };
        let queue = QueueRecord::default();
        Ok(CompiledMethods { fixed: fixed.into(), state: native.state, queue })
    }

    fn defines(&self, hook: Hook) -> bool {
        self.fixed.methods[hook as usize].is_some()
    }

    #[inline]
    fn decide(
        &mut self,
        hook: Hook,
        context: &mut Context<'_>,
        queue: &QueueView<'_>,
        packet: &Packet,
        markable: bool,
    ) -> PyResult<Decision> {
        let mut seen = PacketRecord {
            size: packet.len.into(),
            flow: packet.flow.into(),
            hash: packet.hash.into(),
            class: packet.class.into(),
            ecn: (packet.ecn as u8).into(),
            arrived: packet.arrived.0.cast_signed(),
            sojourn: context.now.since(packet.arrived).0.cast_signed(),
            markable,
        };
        let number =
            self.call(hook, Some(&mut *context.rng), &mut seen, Some(queue), context.now)?;
        Decision::from_number(number).ok_or_else(|| Decision::refusal(number))
    }

    fn notify(&mut self, hook: Hook, queue: Option<&QueueView<'_>>, now: Time) -> PyResult<()> {
        self.call(hook, None, &mut PacketRecord::default(), queue, now).map(drop)
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) -> PyResult<()> {
        self.fixed.gauges.iter().for_each(|gauge| gauge.show(&self.state, visit));
        Ok(())
    }

    fn reconfigure(&mut self, fresh: &Self) -> PyResult<bool> {
        let new: Option<Vec<u64>> = Python::attach(|py| {
            let (own, other) = (&self.fixed.owner, &fresh.fixed.owner);
            let arguments = (own, &self.state, other, &fresh.state);
            module(py)?.call_method1("reconfigure_compiled", arguments)?.extract()
        })?;
        Ok(new.map(|state| self.state = state).is_some())
    }

    fn heap(&self) -> usize {
        size_of_val(&*self.state)
    }
}
