//! Delay, loss and rate of a link from the words of netem.

use super::table::{Arg, Line};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Random loss of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Independent losses with that probability.
    Random(f64),
    /// Losses in bursts: p, r, 1-h and 1-k of the Gilbert-Elliott model.
    Bursts([f64; 4]),
}

/// Limit of netem from which on it does not matter: an exported netem has it.
pub(super) const UNLIMITED: u64 = 10_000;

/// Effects of netem on the packets of a link.
#[derive(Debug, Default)]
pub(super) struct Path {
    /// Delay in nanoseconds.
    pub delay: Option<u64>,
    /// Loss.
    pub loss: Option<Loss>,
    /// Rate in bit/s; 0 if none is given.
    pub rate: u64,
    /// Words that are not represented, each with the reason.
    pub lost: Vec<String>,
}

/// Reads the words of netem that a link represents.
pub(super) fn path(line: &Line) -> Path {
    let mut path = Path::default();
    if let Some(Arg::Several(parts)) = line.given("delay") {
        path.delay = parts.first().map(whole);
        if parts.get(1).is_some_and(|jitter| whole(jitter) > 0) {
            path.lost.push("jitter: the delay of a link does not vary".to_string());
        }
    }
    if let Some(Arg::Several(parts)) = line.given("loss") {
        path.loss = parts.first().map(|p| Loss::Random(share(Some(p), 0.0)));
        if share(parts.get(1), 0.0) > 0.0 {
            path.lost.push("correlation of losses: gemodel has bursts".to_string());
        }
    }
    if let Some(Arg::Several(parts)) = line.given("loss gemodel") {
        let p = share(parts.first(), 0.0);
        let r = share(parts.get(1), 1.0 - p);
        let (bad, good) = (share(parts.get(2), 1.0), share(parts.get(3), 0.0));
        path.loss = Some(Loss::Bursts([p, r, bad, good]));
    }
    if let Some(Arg::Several(parts)) = line.given("rate") {
        path.rate = parts.first().map_or(0, whole);
        if parts.iter().skip(1).any(|part| whole(part) > 0) {
            path.lost.push("overhead and cells of rate: a link has none".to_string());
        }
    }
    path
}

fn whole(arg: &Arg) -> u64 {
    if let Arg::Whole(n) = arg { *n } else { 0 }
}

fn share(arg: Option<&Arg>, default: f64) -> f64 {
    if let Some(Arg::Number(x)) = arg { *x } else { default }
}
