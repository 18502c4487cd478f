//! The random number generator of a link, borrowed by a discipline for one call, and the count
//! of references. The only unsafe code of the bindings.
//!
//! # Safety
//! Python objects have no lifetimes, so the generator is passed as an address. [`lend`] is the only
//! place that makes one, from a `&mut` that it holds until it returns; it passes the address to a
//! [`Slot`] and clears the slot before it returns, also when it unwinds. [`Slot::draw`] is the only
//! place that uses the address. Both run with the GIL held (they ask for the token), so no two
//! threads use the generator at a time, and the engine does not use it while [`lend`] runs. An
//! address in a slot therefore always points to a generator that is alive and not in use.
#![allow(unsafe_code)]

use pyo3::{Py, Python};
use sojourn_aqm::random::Random;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Reference to a generator; has an address of one word.
type Generator<'a> = &'a mut dyn Random;

/// Place for the address of a generator; null outside of calls.
#[derive(Debug, Default)]
pub struct Slot(AtomicPtr<Generator<'static>>);

impl Slot {
    /// Draw a number in [0, 1) from the generator; `None` outside of calls.
    pub fn draw(&self, _py: Python<'_>) -> Option<f64> {
        let generator = self.0.load(Ordering::Acquire);
        if generator.is_null() {
            return None;
        }
        // SAFETY: see the top of the file; the reference ends before the GIL is released.
        let generator = unsafe { &mut *generator };
        Some(generator.uniform())
    }
}

/// Clears a slot.
struct Clear<'a>(&'a Slot);

impl Drop for Clear<'_> {
    fn drop(&mut self) {
        self.0.0.store(std::ptr::null_mut(), Ordering::Release);
    }
}

/// Put `generator` into `slot` during `call`.
pub fn lend<T>(
    _py: Python<'_>,
    slot: &Slot,
    mut generator: Generator<'_>,
    call: impl FnOnce() -> T,
) -> T {
    let address: *mut Generator<'_> = &raw mut generator;
    let _clear = Clear(slot);
    slot.0.store(address.cast(), Ordering::Release);
    call()
}

/// True if Python has a reference to `object` besides this one.
pub fn is_kept<T>(_py: Python<'_>, object: &Py<T>) -> bool {
    // SAFETY: the object is alive, because `object` owns a reference, and the GIL is held.
    let references = unsafe { pyo3::ffi::Py_REFCNT(object.as_ptr()) };
    references > 1
}
