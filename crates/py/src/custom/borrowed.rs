//! The border to code without lifetimes: random numbers for Python and for native code, calls of
//! native code, and the count of references. The only unsafe code of the bindings.
//!
//! # Safety
//! **Random numbers for Python.** Python objects have no lifetimes, so the generator is passed as
//! an address. [`lend`] is the only place that makes one, from a `&mut` that it holds until it
//! returns; it passes the address to a [`Slot`] and clears the slot before it returns, also when it
//! unwinds. [`Slot::draw`] is the only place that uses the address. Both run with the GIL held
//! (they ask for the token), so no two threads use the generator at a time, and the engine does not
//! use it while [`lend`] runs. An address in a slot therefore always points to a generator that is
//! alive and not in use.
//!
//! **Native code.** `sojourn.custom.native` compiles a class with Numba. It derives the types from
//! the records [`PacketRecord`] and `QueueRecord`, and from the state that it passes with the
//! addresses; every index of an array is checked. The code so reads and writes only within the
//! three records, which are `&mut` during the call and have these layouts (`#[repr(C)]`, and words
//! of the size of the state). A congestion control has a `ConnectionRecord` in place of the queue
//! and a `LinksRecord` in place of the packet, a traffic source an `ArrivalRecord`. No exception
//! leaves it, and it calls nothing but the methods of the class and [`draw`]. `CompiledMethods`,
//! `CompiledControl` and `CompiledSource` own the objects that own the code, so the addresses stay
//! valid.
//!
//! **Random numbers for native code.** [`NativeMethod::call`] stores the address of the generator
//! in the record of queue, connection or flow and clears it when the code returns. The code passes
//! it to [`draw`] and keeps no copy: the compiler refuses classes that name the field.
#![allow(unsafe_code)]

use super::records::{Draws, PacketRecord};
use pyo3::{Py, Python};
use sojourn_aqm::random::Random;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Reference to a generator; has an address of one word.
pub type Generator<'a> = &'a mut dyn Random;

/// Place for the address of a generator; null outside of calls.
#[derive(Debug, Default)]
pub struct Slot(AtomicPtr<Generator<'static>>);

impl Slot {
    /// Draws a number in [0, 1) from the generator; `None` outside of calls.
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

/// Puts `generator` into `slot` during `call`.
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

/// Method of a class that Numba compiled; `S` is the record of what it sees, with the packet `P`.
#[derive(Debug)]
pub struct NativeMethod<S, P = PacketRecord>(Address<S, P>);

impl<S, P> Clone for NativeMethod<S, P> {
    fn clone(&self) -> NativeMethod<S, P> {
        *self
    }
}

impl<S, P> Copy for NativeMethod<S, P> {}

/// Signature of the compiled method.
type Address<S, P> = unsafe extern "C" fn(*mut P, *mut S, *mut u64) -> i64;

impl<S: Draws, P> NativeMethod<S, P> {
    /// Method at an address that `sojourn.custom.native` returned; `None` for address 0. The class
    /// was compiled for records of this type.
    pub fn at(address: usize) -> Option<NativeMethod<S, P>> {
        let code = std::ptr::with_exposed_provenance::<()>(address);
        // SAFETY: see the top of the file; a function of this type is at the address.
        (!code.is_null())
            .then(|| NativeMethod(unsafe { std::mem::transmute::<*const (), Address<S, P>>(code) }))
    }

    /// Calls the method; `rng` is the source of its random numbers.
    #[inline]
    pub fn call(
        self,
        mut rng: Option<Generator<'_>>,
        packet: &mut P,
        seen: &mut S,
        state: &mut [u64],
    ) -> i64 {
        *seen.rng() = rng.as_mut().map_or(0, |rng| (&raw mut *rng).expose_provenance());
        // SAFETY: see the top of the file.
        let answer = unsafe { (self.0)(packet, seen, state.as_mut_ptr()) };
        *seen.rng() = 0;
        answer
    }
}

/// Draw a number in [0, 1); `address` is the field `rng` of the record during a call.
pub extern "C" fn draw(address: usize) -> f64 {
    let generator = std::ptr::with_exposed_provenance_mut::<Generator<'static>>(address);
    // SAFETY: see the top of the file.
    unsafe { (*generator).uniform() }
}
