//! Rates, curves and quanta of classes as parameters of disciplines.

use super::super::device::{Class, Qdisc, id};
use super::super::table::{Arg, Line, Ours};
use super::{Branch, trimmed};
use crate::params::Value;
use crate::sched::hfsc::ServiceCurve;
use crate::units::{Bytes, Rate, Span};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Burst in bytes that tc takes if none is given, without the bytes of a clock tick.
pub(in crate::tc) const BURST: u64 = 1600;

/// Bytes by which an output can differ from a burst at `rate`: tc counts the time of a burst in
/// whole microseconds, and the kernel in ticks.
fn slack(rate: u64) -> u64 {
    rate / 8 / 1_000_000 * 2 + 8
}

type Settings = Vec<(String, String)>;

/// Parameters of the classes of htb.
pub(in crate::tc) fn htb(branch: &mut Branch<'_>, qdisc: &Qdisc, classes: &[&Class]) -> Settings {
    let number = |line: &Line, word: &str| line.whole(word);
    let rates: Vec<Rate> = classes.iter().map(|c| Rate(number(&c.line, "rate"))).collect();
    let ceils: Vec<Rate> = classes.iter().map(|c| Rate(number(&c.line, "ceil"))).collect();
    let leaf = |class: &Class| !qdisc.is_inner(class.minor);
    let prios = classes.iter().map(|c| if leaf(c) { number(&c.line, "prio").min(7) } else { 0 });
    let bursts: Vec<Bytes> =
        classes.iter().map(|class| Bytes(burst(branch, &class.line))).collect();
    let r2q = number(&qdisc.line, "r2q").max(1);
    // The quantum that the kernel computes, which an output shows, too.
    let usual =
        |class: &Class, r2q: u64| (number(&class.line, "rate") / 8 / r2q).clamp(1000, 200_000);
    let quantum = |class: &&Class| match class.line.given("quantum") {
        Some(Arg::Whole(bytes)) if leaf(class) => Bytes((*bytes).max(1)),
        _ => Bytes(usual(class, r2q)),
    };
    let quanta: Vec<Bytes> = classes.iter().map(quantum).collect();
    let own = classes.iter().zip(&quanta).any(|(class, quantum)| quantum.0 != usual(class, 10));
    let mut settings = Settings::new();
    // The list has an entry per class, also if they are the same.
    settings.push(("rates".to_string(), list(&rates)));
    settings.push(("ceils".to_string(), list(&trimmed(ceils))));
    let prios: Vec<u64> = trimmed(prios.collect());
    if prios != [0] {
        settings.push(("prios".to_string(), list(&prios)));
    }
    let bursts = trimmed(bursts);
    if bursts != [Bytes(BURST)] {
        settings.push(("bursts".to_string(), list(&bursts)));
    }
    if own {
        settings.push(("quanta".to_string(), list(&trimmed(quanta))));
    }
    for class in classes {
        let name = id((qdisc.handle, class.minor));
        for lost in class.line.lost_words() {
            branch.lose(format!("{name} {lost}"));
        }
        for word in ["prio", "quantum"] {
            let arg = class.line.given(word).filter(|_| !leaf(class) && !matches!(word, "prio"));
            if let Some(Arg::Whole(n)) = arg {
                branch.lose(format!("{name} {word} {n}: the class has classes below it"));
            }
        }
    }
    settings
}

/// Burst of a class, which is one for its rate and its ceiling here.
fn burst(branch: &mut Branch<'_>, line: &Line) -> u64 {
    let mtu = match line.given("mtu") {
        Some(Arg::Whole(bytes)) => *bytes,
        _ => BURST,
    };
    let bucket = |word: &str, rate: u64| match line.given(word) {
        Some(Arg::Whole(bytes)) if bytes.abs_diff(mtu) > slack(rate) => *bytes,
        _ => mtu,
    };
    let (rate, ceil) = (line.whole("rate"), line.whole("ceil"));
    let (burst, cburst) = (bucket("burst", rate), bucket("cburst", ceil));
    let (kept, dropped) =
        if rate == ceil { (burst.min(cburst), burst.max(cburst)) } else { (burst, cburst) };
    if kept.abs_diff(dropped) > slack(ceil) {
        let (name, bytes) = if dropped == cburst { ("cburst", cburst) } else { ("burst", burst) };
        let default = if line.given(name).is_none() { " (by default)" } else { "" };
        let text = format!("{name} {bytes}{default}: a class has one burst here, {kept} bytes");
        branch.lose(text);
    }
    kept
}

/// Parameters of the classes of hfsc.
pub(in crate::tc) fn hfsc(branch: &mut Branch<'_>, qdisc: &Qdisc, classes: &[&Class]) -> Settings {
    let mut settings = Settings::new();
    for name in ["ls", "rt", "ul"] {
        let mut curves: Vec<ServiceCurve> = Vec::new();
        for class in classes {
            let both = class.line.given("sc").filter(|_| name != "ul");
            let mut curve = match class.line.given(name).or(both) {
                Some(Arg::List(parts)) if parts.len() == 3 => {
                    let (m1, m2) = (Rate(parts[0]), Rate(parts[2]));
                    // One rate has no first piece.
                    let flat = parts[1] == 0 || m1 == m2;
                    let m1 = if flat { Rate(0) } else { m1 };
                    ServiceCurve { m1, d: Span(if flat { 0 } else { parts[1] }), m2 }
                }
                _ => ServiceCurve::default(),
            };
            if name == "rt" && curve.is_some() && qdisc.is_inner(class.minor) {
                curve = ServiceCurve::default();
                if class.line.given("rt").is_some() {
                    let class = id((qdisc.handle, class.minor));
                    branch.lose(format!("{class} rt: the class has classes below it"));
                }
            }
            curves.push(curve);
        }
        let is_some = curves.iter().any(ServiceCurve::is_some);
        if is_some || name == "ls" {
            settings.push((name.to_string(), list(&curves)));
        }
    }
    settings
}

/// Quantum and weights of a round whose queues have these quanta.
pub(in crate::tc) fn quanta(quanta: &[u64]) -> Vec<(&'static str, String)> {
    let first = quanta.iter().copied().find(|q| *q >= 64).unwrap_or(1514);
    let weight = |quantum: &u64| {
        let mut weight = *quantum as f64 / first as f64;
        // The quantum is cut to whole bytes.
        while crate::cast::trunc(first as f64 * weight) < *quantum {
            weight = weight.next_up();
        }
        weight
    };
    let weights = trimmed(quanta.iter().map(weight).collect::<Vec<f64>>());
    let mut settings = Vec::from([("quantum", Bytes(first).to_string())]);
    if weights != [1.0] {
        let texts = weights.iter().map(f64::to_string).collect::<Vec<_>>();
        settings.push(("weights", texts.join(" ")));
    }
    settings
}

/// Weights and `maxpkt` of the classes of qfq.
pub(in crate::tc) fn weights(weights: Vec<u64>, maxpkt: Vec<u64>) -> Vec<(&'static str, String)> {
    let maxpkt = maxpkt.into_iter().map(Bytes).collect();
    Vec::from([("weights", list(&trimmed(weights))), ("maxpkt", list(&trimmed(maxpkt)))])
}

fn list<T: Value>(values: &[T]) -> String {
    values.iter().map(Value::write).collect::<Vec<_>>().join(" ")
}

/// Minor number of the default class.
pub(in crate::tc) fn default_class(line: &Line) -> Option<u16> {
    let Some(Arg::Text(text)) = line.get("default") else { return Some(0) };
    let digits = text.strip_prefix("0x").unwrap_or(&text);
    u16::from_str_radix(digits, 16).ok()
}

/// Minor number of the default class, if it is a leaf. Old versions of tc print it in decimal.
pub(in crate::tc) fn default_leaf(shown: bool, qdisc: &Qdisc) -> Option<u16> {
    let default = default_class(&qdisc.line)?;
    let is_leaf = |minor: &u16| qdisc.class(*minor).is_some() && !qdisc.is_inner(*minor);
    let decimal = format!("{default:x}").parse::<u16>().ok().filter(|_| shown);
    Some(default).filter(is_leaf).or(decimal.filter(is_leaf))
}

/// Words of a class that have no effect on a link with this class alone.
pub(in crate::tc) fn idle_words(line: &Line) -> Vec<String> {
    let alone = |name: &str| match name {
        "burst" => "Linux sends up to cburst at the ceiling",
        _ => "the class is alone on its link",
    };
    let mut lost = Vec::new();
    for (word, arg) in line.kind.words.iter().zip(&line.args) {
        let same = word.name == "burst" && line.given("burst") == line.given("cburst");
        if let Some(arg) = arg.as_ref().filter(|_| word.ours == Ours::Harmless && !same)
            && word.name != "cburst"
        {
            lost.push(format!("{}: {}", word.write(arg).trim_start(), alone(word.name)));
        }
    }
    lost
}
