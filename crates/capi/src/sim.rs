//! Whole simulations: a scenario, run in steps or in one go, with its result as JSON.

use crate::border::{
    Failure, Handle, Message, Outcome, Quick, SJ_EARLIER, SJ_INVALID, call, code, handle, read,
};
use crate::snapshot::{load, save};
use crate::structs::SJ_NEVER;
use sojourn_aqm::Time;
use sojourn_sim::{Scenario, Simulation};
use std::ffi::{CString, c_char, c_int};

/// Simulation.
#[derive(Debug)]
pub struct sj_sim(Handle<State>);

#[derive(Clone, Debug)]
struct State {
    simulation: Simulation,
    /// Result that was returned last.
    result: CString,
    /// Snapshot that was returned last.
    snapshot: Vec<u8>,
}

impl State {
    fn new(simulation: Simulation) -> State {
        State { simulation, result: CString::default(), snapshot: Vec::new() }
    }

    fn save(&mut self) -> Outcome<&[u8]> {
        self.snapshot = self.simulation.save()?;
        Ok(&self.snapshot)
    }
}

fn invalid(text: impl Into<String>) -> Failure {
    Failure { code: SJ_INVALID, text: text.into() }
}

/// Reads a scenario, JSON if it begins with `{`, otherwise TOML.
fn scenario(text: &str) -> Outcome<Scenario> {
    if text.trim_start().starts_with('{') {
        return Ok(Scenario::from_json(text)?);
    }
    let value: serde_json::Value = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
        invalid(format!("line {}: {}", before.matches('\n').count() + 1, error.message()))
    })?;
    Ok(Scenario::from_json(&value.to_string())?)
}

/// Creates a simulation at time 0 from a scenario: TOML or JSON, as for `sojourn run`, except that
/// a scenario names no files. Returns NULL on an error, and writes the message into `error`, which
/// has `error_bytes` bytes.
///
/// # Safety
/// `text` ends with a null character; `error` is NULL or has `error_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_sim_new(
    text: *const c_char,
    error: *mut c_char,
    error_bytes: usize,
) -> *mut sj_sim {
    let built = call(|| {
        // SAFETY: the caller promises the null character.
        let scenario = scenario(unsafe { read(text) }?)?;
        let state = State::new(Simulation::new(scenario));
        Outcome::Ok(Box::into_raw(Box::new(sj_sim(Handle::new(state)))))
    });
    let message = Message { start: error, bytes: error_bytes };
    message.report(built).unwrap_or(std::ptr::null_mut())
}

/// Returns a copy that continues in the same way; NULL if `sim` is NULL or has panicked.
///
/// # Safety
/// `sim` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_sim_clone(sim: *mut sj_sim) -> *mut sj_sim {
    // SAFETY: the caller promises a handle.
    let copy = unsafe { handle(sim) }.ok().and_then(|sim| sim.0.copy());
    copy.map_or(std::ptr::null_mut(), |copy| Box::into_raw(Box::new(sj_sim(copy))))
}

/// Frees a simulation. NULL is allowed.
///
/// # Safety
/// `sim` is NULL, or a handle that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_sim_free(sim: *mut sj_sim) {
    if !sim.is_null() {
        // SAFETY: the handle was made by `Box::into_raw`, and is not used again.
        drop(unsafe { Box::from_raw(sim) });
    }
}

/// Simulates everything before `until`, in ns; at the end of the run, also what is due then. A time
/// after the end, such as SJ_NEVER, is the end. Returns 0, or SJ_EARLIER for a time in the past.
///
/// # Safety
/// `sim` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_sim_run_until(sim: *mut sj_sim, until: u64) -> c_int {
    // SAFETY: the caller promises a handle.
    code(unsafe { handle(sim) }.and_then(|sim| {
        sim.0.call(|State { simulation, .. }| {
            if Time(until) < simulation.now() {
                return Err(SJ_EARLIER);
            }
            let until = Time(until).min(simulation.end());
            simulation.run_until(until, &mut |_| true).map(|_| 0).map_err(|_| SJ_INVALID)
        })
    }))
}

/// Time up to which everything has happened, in ns; SJ_NEVER if `sim` is NULL or has panicked.
///
/// # Safety
/// `sim` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_sim_now(sim: *mut sj_sim) -> u64 {
    // SAFETY: the caller promises a handle.
    let now = unsafe { handle(sim) }
        .and_then(|sim| sim.0.call(|state| Quick::Ok(state.simulation.now().0)));
    now.unwrap_or(SJ_NEVER)
}

/// End of the run, in ns; SJ_NEVER if `sim` is NULL or has panicked.
///
/// # Safety
/// `sim` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_sim_end(sim: *mut sj_sim) -> u64 {
    // SAFETY: the caller promises a handle.
    let end = unsafe { handle(sim) }
        .and_then(|sim| sim.0.call(|state| Quick::Ok(state.simulation.end().0)));
    end.unwrap_or(SJ_NEVER)
}

/// Returns the result so far as JSON, with the keys of `sojourn run --json`: `links`, `flows`,
/// `scenario`. The text is valid until the next call with `sim`. Returns NULL on an error, such as
/// a time within the warm-up, and writes the message into `error`, which has `error_bytes` bytes.
///
/// # Safety
/// `sim` is NULL or a handle; `error` is NULL or has `error_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_sim_result(
    sim: *mut sj_sim,
    error: *mut c_char,
    error_bytes: usize,
) -> *const c_char {
    // SAFETY: the caller promises a handle.
    let result = unsafe { handle(sim) }.map_err(Failure::from).and_then(|sim| {
        sim.0.call(|state| {
            let outcome = state.simulation.result()?;
            let text = CString::new(outcome.summary.to_string());
            state.result = text.map_err(|_| invalid("the result has a null character"))?;
            Outcome::Ok(state.result.as_ptr())
        })
    });
    let message = Message { start: error, bytes: error_bytes };
    message.report(result).unwrap_or(std::ptr::null())
}

/// Saves the simulation: writes the start and the number of the bytes of a snapshot into `*start`
/// and `*count`. The bytes are valid until `sim` is saved again or freed; copy them into a file,
/// for example. Returns 0 or an error, and writes the message into `error`, which has `error_bytes`
/// bytes.
///
/// # Safety
/// `sim` is NULL or a handle; `start` and `count` are NULL or can be written; `error` is NULL or
/// has `error_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_sim_save(
    sim: *mut sj_sim,
    start: *mut *const u8,
    count: *mut usize,
    error: *mut c_char,
    error_bytes: usize,
) -> c_int {
    // SAFETY: the caller promises a handle.
    let sim = unsafe { handle(sim) }.map(|sim| &mut sim.0);
    let message = Message { start: error, bytes: error_bytes };
    // SAFETY: the caller promises that both can be written.
    unsafe { save(sim, State::save, start, count, message) }
}

/// Creates the simulation of a snapshot in `*sim`. It continues as the saved one, on any machine,
/// with the same results to the last byte. Returns 0, or an error and NULL in `*sim`:
/// SJ_BAD_SNAPSHOT for bytes that are not a snapshot of a simulation, that are damaged or
/// incomplete, or that another version of the library wrote. Load only snapshots that you wrote: a
/// checksum finds accidents only. Writes the message into `error`, which has `error_bytes` bytes.
///
/// # Safety
/// `sim` is NULL or can be written; `start` is NULL or has `count` bytes; `error` is NULL or has
/// `error_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_sim_load(
    sim: *mut *mut sj_sim,
    start: *const u8,
    count: usize,
    error: *mut c_char,
    error_bytes: usize,
) -> c_int {
    let create = |snapshot: &[u8]| Ok(sj_sim(Handle::new(State::new(Simulation::load(snapshot)?))));
    // SAFETY: the caller promises both.
    unsafe { load(sim, start, count, create, Message { start: error, bytes: error_bytes }) }
}
