//! WebAssembly border of the simulator. The module has no imports: no clock, no random numbers and
//! no output; everything comes in and goes out through its memory. `playground/split.mjs` splits it
//! in two for the page.
//!
//! Text goes in through [`input`]: it returns the place for so many bytes, which the next call
//! reads as UTF-8. A call leaves its bytes at [`output`], [`output_len`] of them, until the next
//! one. Numbers are little-endian. A call that can fail returns 0 and leaves a message that starts
//! with the path of the value. After a panic the module has trapped and must not be called again,
//! except for [`failure`], which has the message.
//!
//! `playground/src/engine/module.ts` is the typed border on the other side.

#![cfg_attr(not(target_family = "wasm"), forbid(unsafe_code))]
#![cfg_attr(target_family = "wasm", allow(unsafe_code, reason = "names of exports"))]

mod encode;
pub mod failure;
mod player;

use player::Player;

use serde_json::{Value as Json, json};
use sojourn_aqm::cast;
use sojourn_sim::Scenario;
use std::cell::RefCell;

/// Bytes of the last input and output, and the simulations by handle.
#[derive(Default)]
struct Border {
    input: Vec<u8>,
    output: Vec<u8>,
    /// Handle `h` is at `h - 1`.
    players: Vec<Option<Player>>,
}

thread_local! {
    static BORDER: RefCell<Border> = RefCell::default();
}

/// Result of a call before it crosses the border.
type Answer = Result<Vec<u8>, String>;

fn refused(error: sojourn_aqm::Error) -> String {
    error.to_string()
}

/// Reads JSON.
fn json(text: &str) -> Result<Json, String> {
    serde_json::from_str(text).map_err(|e| format!("not valid JSON: {e}"))
}

/// Calls `work` with the border and the input, stores what it returns, and returns 1, or 0 for an
/// error.
fn call(work: impl FnOnce(&mut Border, &str) -> Answer) -> u32 {
    failure::set_hook();
    BORDER.with_borrow_mut(|border| {
        let input = std::mem::take(&mut border.input);
        let answer = match std::str::from_utf8(&input) {
            Ok(text) => work(border, text),
            Err(_) => Err("not UTF-8".to_string()),
        };
        let done = answer.is_ok();
        border.output = answer.unwrap_or_else(String::into_bytes);
        u32::from(done)
    })
}

/// As [`call`], with the simulation of a handle.
fn with(handle: u32, work: impl FnOnce(&mut Player, &str) -> Answer) -> u32 {
    call(|border, text| {
        let i = (handle as usize).wrapping_sub(1);
        let player = border.players.get_mut(i).and_then(Option::as_mut);
        player.map_or_else(|| Err(format!("handle: there is no {handle}")), |p| work(p, text))
    })
}

/// Stores a simulation and returns its handle as the output of a call.
fn store(border: &mut Border, player: Player) -> Vec<u8> {
    let vacant = border.players.iter().position(Option::is_none);
    let i = vacant.unwrap_or(border.players.len());
    border.players.resize_with(border.players.len().max(i + 1), || None);
    border.players[i] = Some(player);
    cast::number(i + 1).to_le_bytes().to_vec()
}

/// Makes room for `len` bytes of input and returns their place.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn input(len: usize) -> *mut u8 {
    BORDER.with_borrow_mut(|border| {
        border.input = vec![0; len];
        border.input.as_mut_ptr()
    })
}

/// Place of the output of the last call.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn output() -> *const u8 {
    BORDER.with_borrow(|border| border.output.as_ptr())
}

/// Number of bytes of the output of the last call.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn output_len() -> usize {
    BORDER.with_borrow(|border| border.output.len())
}

/// Version of the package. No input.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn version() -> u32 {
    call(|_, _| Ok(env!("CARGO_PKG_VERSION").into()))
}

/// Runs a scenario, given as JSON. Output: its result, as `encode.rs` says.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn run() -> u32 {
    call(|_, text| {
        let scenario = Scenario::from_json(text).map_err(refused)?;
        Ok(encode::outcome(&sojourn_sim::run(scenario)))
    })
}

/// Creates a simulation of a scenario, given as JSON, at time zero. Output: its handle, 32 bits.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn create() -> u32 {
    call(|border, text| {
        let player = Player::new(text).map_err(refused)?;
        Ok(store(border, player))
    })
}

/// Removes a simulation.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn remove(handle: u32) -> u32 {
    call(|border, _| {
        if let Some(place) = border.players.get_mut((handle as usize).wrapping_sub(1)) {
            *place = None;
        }
        Ok(Vec::new())
    })
}

/// Copies a simulation, which continues in the same way. Output: the handle of the copy.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn fork(handle: u32) -> u32 {
    call(|border, _| {
        let player = border.players.get((handle as usize).wrapping_sub(1)).and_then(Option::as_ref);
        let player =
            player.map(Player::fork).ok_or_else(|| format!("handle: there is no {handle}"))?;
        Ok(store(border, player))
    })
}

/// Names of the columns of a frame, as a JSON list; see [`advance`].
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn layout(handle: u32) -> u32 {
    with(handle, |player, _| Ok(Json::from(player.layout()).to_string().into()))
}

/// Simulates up to the time `until_ms`, at most to the end of the run. Output: a frame for each
/// multiple of `frame_ms` that was passed, a number of 64 bits for each column of [`layout`].
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn advance(handle: u32, until_ms: f64, frame_ms: f64) -> u32 {
    with(handle, |player, _| player.advance(until_ms, frame_ms).map_err(refused))
}

/// Packets of a link, given by its name, see [`Player::packets`].
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn packets(handle: u32) -> u32 {
    with(handle, |player, link| player.packets(link).map_err(refused))
}

/// Applies a change, given as JSON, at the current time; see [`sojourn_sim::Simulation::change`].
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn change(handle: u32) -> u32 {
    with(handle, |player, text| {
        player.change(&json(text)?).map_err(refused)?;
        Ok(Vec::new())
    })
}

/// State of all links and groups of flows, as JSON; see [`Player::inspect`].
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn inspect(handle: u32) -> u32 {
    with(handle, |player, _| Ok(player.inspect().map_err(refused)?.to_string().into()))
}

/// The scenario with the changes made so far, as canonical JSON.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn scenario(handle: u32) -> u32 {
    with(handle, |player, _| Ok(player.scenario().into_bytes()))
}

/// Result so far, in the form of [`run`].
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn result(handle: u32) -> u32 {
    with(handle, |player, _| Ok(encode::outcome(&player.result().map_err(refused)?)))
}

/// Translates a discipline to the nearest qdisc of Linux. Input and output are JSON: `qdisc` and
/// `rate`, and what `sojourn tc export` says.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn tc_export() -> u32 {
    call(|_, text| {
        let request = json(text)?;
        let rate = request["rate"].as_str();
        let texts = sojourn_sim::internals::tc::export(&request["qdisc"], rate, 1);
        Ok(texts.map_err(refused)?.to_string().into())
    })
}

/// Reads commands of tc. Output: the links as JSON, as `sojourn tc import` reads them.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn tc_import() -> u32 {
    call(|_, text| {
        let links = sojourn_sim::internals::import_tc(text, None, None).map_err(refused)?;
        Ok(links.to_string().into())
    })
}

/// Parameters of a discipline at a rate, with its defaults there. Input: JSON with `qdisc` and
/// `rate`; output: a JSON table of names and values.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn parameters() -> u32 {
    call(|_, text| {
        let link = json(text)?;
        let links = json!({ "link": link });
        let links = sojourn_sim::config::parse_links(&links).map_err(refused)?;
        Ok(links[0].canonical()["qdisc"].to_string().into())
    })
}
