//! Delay, impairments, rate and framing of a link from the words of netem.

use super::framing::Frame;
use super::table::{Arg, Line};
use crate::overhead::{Framing, Overhead};
use crate::units::Span;
use crate::wire::{
    Chance, Distribution, Impairments, Jitter, LossModel, Reorder, SlotDelay, Slots,
};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Limit of netem from which on it does not matter: an exported netem has it.
pub(super) const UNLIMITED: u64 = 10_000;

/// Effects of netem on the packets of a link.
#[derive(Debug, Default)]
pub(super) struct Path {
    /// Delay in nanoseconds.
    pub delay: Option<u64>,
    /// Impairments, with the limit of packets in flight.
    pub impairments: Impairments,
    /// Rate in bit/s; 0 if none is given.
    pub rate: u64,
    /// Framing of the rate.
    pub overhead: Option<Overhead>,
    /// Words that are not represented, each with the reason.
    pub lost: Vec<String>,
}

/// Reads the words of netem.
pub(super) fn path(line: &Line) -> Path {
    let mut path = Path::default();
    let (loss, ecn) = loss(line);
    path.impairments.loss = loss;
    path.impairments.loss_ecn = ecn;
    rate(line, &mut path);
    delay(line, &mut path);
    if let Some(parts) = parts(line, "reorder") {
        let mut reorder = Reorder::new(chance(parts));
        reorder.gap = line.whole("gap").max(1);
        path.impairments.reorder = Some(reorder);
    }
    path.impairments.duplicate = parts(line, "duplicate").map_or_else(Chance::default, chance);
    path.impairments.corrupt = parts(line, "corrupt").map_or_else(Chance::default, chance);
    slots(line, &mut path);
    let Impairments { jitter, slots, .. } = &path.impairments;
    let holds = path.delay.is_some_and(|ns| ns > 0) || jitter.is_some() || slots.is_some();
    let limit = line.whole("limit");
    path.impairments.limit = Some(limit).filter(|limit| holds && *limit < UNLIMITED);
    path
}

fn delay(line: &Line, path: &mut Path) {
    let Some(parts) = parts(line, "delay") else { return };
    path.delay = parts.first().map(whole);
    let size = parts.get(1).map_or(0, whole);
    if size == 0 {
        return;
    }
    let mut jitter = Jitter::new(Span(size));
    jitter.correlation = share(parts.get(2), 0.0);
    // With a rate, netem sends packets one after the other.
    jitter.reorders = path.rate == 0;
    if let Some(Arg::Text(name)) = line.given("distribution") {
        jitter.distribution = distribution(name, "jitter", &mut path.lost);
    }
    path.impairments.jitter = Some(jitter);
}

/// Distribution of tc with that name; a file is named as lost.
fn distribution(name: &str, key: &str, lost: &mut Vec<String>) -> Distribution {
    match name {
        "uniform" => Distribution::Uniform,
        "normal" => Distribution::Normal,
        "pareto" => Distribution::Pareto,
        "paretonormal" => Distribution::ParetoNormal,
        _ => {
            let text = format!("distribution {name}: give the file {name}.dist of tc");
            lost.push(format!("{text} as {key}.distribution"));
            Distribution::Uniform
        }
    }
}

/// Losses, and true if packets are marked instead.
fn loss(line: &Line) -> (LossModel, bool) {
    let ecn = line.says("ecn", "ecn");
    let numbers = |name: &str| {
        parts(line, name).map(|parts| parts.iter().map(|p| share(Some(p), 0.0)).collect::<Vec<_>>())
    };
    if let Some([p13, p31, p32, p23, p14]) = numbers("loss state").as_deref() {
        let [p13, p31, p32, p23, p14] = [*p13, *p31, *p32, *p23, *p14];
        return (LossModel::States { p13, p31, p32, p23, p14 }, ecn);
    }
    if let Some([p, r, bad_loss, good_loss]) = numbers("loss gemodel").as_deref() {
        let [p, r, bad_loss, good_loss] = [*p, *r, *bad_loss, *good_loss];
        return (LossModel::Bursts { p, r, bad_loss, good_loss }, ecn);
    }
    match parts(line, "loss").map(chance) {
        Some(Chance { probability, correlation: 0.0 }) => (LossModel::Random(probability), ecn),
        Some(chance) => (LossModel::Correlated(chance), ecn),
        None => (LossModel::default(), false),
    }
}

fn rate(line: &Line, path: &mut Path) {
    let Some(parts) = parts(line, "rate") else { return };
    path.rate = parts.first().map_or(0, whole);
    let number = |i: usize| parts.get(i).map_or(0, signed);
    let (overhead, cell, cell_overhead) = (number(1), number(2), number(3));
    let framing =
        if cell == 0 { Some(Framing::NoAtm) } else { Framing::cells(cell, cell_overhead) };
    let framing = framing.unwrap_or_else(|| {
        let text = format!("cells of {cell} bytes with {cell_overhead} more");
        let most = "up to 65535 bytes with -256 to 256 more, and not none";
        path.lost.push(format!("{text}: a link has cells of {most}"));
        Framing::NoAtm
    });
    if overhead != 0 || framing != Framing::NoAtm {
        path.overhead = Frame { overhead, mpu: 0, framing }.overhead(&mut path.lost);
    }
}

fn slots(line: &Line, path: &mut Path) {
    let mut slots = if let Some(parts) = parts(line, "slot distribution") {
        let [Arg::Text(name), delay, jitter] = parts else { return };
        let named = distribution(name, "slot", &mut path.lost);
        let mut slots = Slots::new(Span(whole(delay)), Span(whole(delay)));
        slots.delay = SlotDelay::Distribution(Span(whole(delay)), Span(whole(jitter)), named);
        slots
    } else if let Some(parts) = parts(line, "slot") {
        let least = parts.first().map_or(0, whole);
        let most = parts.get(1).map_or(least, whole).max(least);
        Slots::new(Span(least), Span(most))
    } else {
        return;
    };
    let number = |name: &str| Some(line.whole(name)).filter(|n| *n > 0);
    (slots.packets, slots.bytes) = (number("packets"), number("bytes"));
    path.impairments.slots = Some(slots);
}

/// Adds the impairments of a second netem to `first`; returns what is lost: a link has each of them
/// once.
pub(super) fn add(first: &mut Impairments, second: Impairments) -> Vec<String> {
    let mut lost = Vec::new();
    let mut twice = |name: &str| lost.push(format!("{name}: the link has one, of the first netem"));
    macro_rules! join {
        ($($field:ident: $empty:expr;)*) => {
            $(if second.$field != $empty {
                if first.$field == $empty {
                    first.$field = second.$field;
                } else {
                    twice(stringify!($field));
                }
            })*
        };
    }
    join! {
        jitter: None;
        reorder: None;
        duplicate: Chance::default();
        corrupt: Chance::default();
        slots: None;
        limit: None;
    }
    if second.loss != LossModel::default() {
        if first.loss == LossModel::default() {
            (first.loss, first.loss_ecn) = (second.loss, second.loss_ecn);
        } else {
            twice("loss");
        }
    }
    lost
}

fn parts<'a>(line: &'a Line, name: &str) -> Option<&'a [Arg]> {
    match line.given(name) {
        Some(Arg::Several(parts)) => Some(parts),
        _ => None,
    }
}

fn chance(parts: &[Arg]) -> Chance {
    Chance::correlated(share(parts.first(), 0.0), share(parts.get(1), 0.0))
}

fn whole(arg: &Arg) -> u64 {
    if let Arg::Whole(n) = arg { *n } else { 0 }
}

/// Number that may be negative, which is kept as text.
fn signed(arg: &Arg) -> i64 {
    match arg {
        Arg::Whole(n) => i64::try_from(*n).unwrap_or(i64::MAX),
        Arg::Text(text) => text.parse().unwrap_or(0),
        _ => 0,
    }
}

fn share(arg: Option<&Arg>, default: f64) -> f64 {
    if let Some(Arg::Number(x)) = arg { *x } else { default }
}
