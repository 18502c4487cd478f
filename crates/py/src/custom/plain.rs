//! Methods of a Python object; every decision is a call of Python.

use super::aqm::{ClassObject, Methods};
use super::borrowed::{is_kept, lend};
use super::decision::{Decision, Hook};
use super::failure;
use super::gauge::show_attributes;
use super::snapshot::{in_place, load_object, save_object};
use super::views::{PacketView, QueueStateView};
use super::{intern, module};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use sojourn_aqm::{Context, Packet, QueueView, Time};
use std::sync::Arc;

/// Bound methods of a Python object.
pub struct PlainMethods {
    name: &'static str,
    gauges: Arc<[&'static str]>,
    object: Py<PyAny>,
    /// Bound method of each hook; `None` if the class does not define it.
    methods: [Option<Py<PyAny>>; 5],
    packet: Py<PacketView>,
    queue: Py<QueueStateView>,
}

impl PlainMethods {
    fn of(
        py: Python<'_>,
        name: &'static str,
        gauges: Arc<[&'static str]>,
        object: Py<PyAny>,
    ) -> PyResult<PlainMethods> {
        let mut methods = [const { None }; 5];
        for (hook, method) in Hook::ALL.into_iter().zip(&mut methods) {
            *method = object.bind(py).getattr_opt(hook.name())?.map(Bound::unbind);
        }
        let packet = Py::new(py, PacketView::default())?;
        let queue = Py::new(py, QueueStateView::default())?;
        Ok(PlainMethods { name, gauges, object, methods, packet, queue })
    }

    fn copy(&self, py: Python<'_>) -> PyResult<PlainMethods> {
        let object = py.import("copy")?.call_method1("deepcopy", (&self.object,))?;
        PlainMethods::of(py, self.name, self.gauges.clone(), object.unbind())
    }

    fn read_gauges(
        &self,
        py: Python<'_>,
        visit: &mut dyn FnMut(&'static str, f64),
    ) -> PyResult<()> {
        show_attributes(self.object.bind(py), &self.gauges, visit)
    }
}

/// Copies the object by `copy.deepcopy`. If that fails, the copy calls no method.
impl Clone for PlainMethods {
    fn clone(&self) -> Self {
        Python::attach(|py| {
            self.copy(py).unwrap_or_else(|error| {
                failure::report_in(error, self.name, "a copy", None);
                PlainMethods {
                    name: self.name,
                    gauges: self.gauges.clone(),
                    object: self.object.clone_ref(py),
                    methods: [const { None }; 5],
                    packet: self.packet.clone_ref(py),
                    queue: self.queue.clone_ref(py),
                }
            })
        })
    }
}

in_place!(PlainMethods, 51, |methods, out| save_object(&methods.object, out), |methods, input| {
    load_object(&methods.object, input)
});

impl Methods for PlainMethods {
    /// Refuses a gauge that is not a number.
    fn new(py: Python<'_>, class: &'static str, object: ClassObject) -> PyResult<PlainMethods> {
        let gauges = object.gauges.iter().map(|gauge| intern(gauge)).collect();
        let methods = PlainMethods::of(py, class, gauges, object.object)?;
        methods.read_gauges(py, &mut |_, _| {})?;
        Ok(methods)
    }

    fn defines(&self, hook: Hook) -> bool {
        self.methods[hook as usize].is_some()
    }

    fn decide(
        &mut self,
        hook: Hook,
        context: &mut Context<'_>,
        queue: &QueueView<'_>,
        packet: &Packet,
        markable: bool,
    ) -> PyResult<Decision> {
        Python::attach(|py| {
            // A method may keep its arguments: it then owns these, and this call has new ones.
            if is_kept(py, &self.packet) {
                self.packet = Py::new(py, PacketView::default())?;
            }
            if is_kept(py, &self.queue) {
                self.queue = Py::new(py, QueueStateView::default())?;
            }
            let (seen, view) = (self.packet.get(), self.queue.get());
            seen.set(packet, context.now, markable);
            view.set(Some(queue), context.now);
            let Some(method) = &self.methods[hook as usize] else { return Ok(Decision::Pass) };
            let call = || method.bind(py).call1((&self.packet, &self.queue));
            let answer = lend(py, &view.random, context.rng, call)?;
            if answer.is_none() {
                return Ok(Decision::Pass);
            }
            let number = answer.extract().ok().filter(|_| !answer.is_instance_of::<PyBool>());
            number.and_then(Decision::from_number).ok_or_else(|| Decision::refusal(&answer))
        })
    }

    fn notify(&mut self, hook: Hook, queue: Option<&QueueView<'_>>, now: Time) -> PyResult<()> {
        Python::attach(|py| {
            self.queue.get().set(queue, now);
            let Some(method) = &self.methods[hook as usize] else { return Ok(()) };
            method.bind(py).call1((&self.queue,)).map(drop)
        })
    }

    fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) -> PyResult<()> {
        Python::attach(|py| self.read_gauges(py, visit))
    }

    fn reconfigure(&mut self, fresh: &Self) -> PyResult<bool> {
        Python::attach(|py| {
            let objects = (&self.object, &fresh.object);
            module(py)?.call_method1("reconfigure", objects)?.extract()
        })
    }
}
