//! Links from the trees of devices.
//!
//! A link has one rate, one delay, one loss and one discipline. This module follows the tree from
//! the root to one queue. What is not on this way is named as lost: here a tree can become a
//! discipline with children.

use super::convert::Discipline;
use super::device::{Below, Device, Id, Qdisc, id};
use super::netem;
pub use super::netem::Loss;
use super::place::Handle;
use super::table::{Arg, Line, Ours};
use crate::error::{Error, Result};
use crate::units::{Bytes, Rate, Span};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Link that the qdiscs of a device make.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedLink {
    /// Name of the device.
    pub dev: String,
    /// Rate of the shaper, if there is one.
    pub rate: Option<Rate>,
    /// Burst of the shaper, if it has one of several packets.
    pub burst: Option<Bytes>,
    /// Delay of netem, if given.
    pub delay: Option<Span>,
    /// Loss of netem, if given.
    pub loss: Option<Loss>,
    /// Discipline.
    pub qdisc: Option<Discipline>,
    /// Words that are not represented, each with the reason.
    pub lost: Vec<String>,
    /// Classes of the device that can be chosen.
    pub classes: Vec<String>,
    /// True if one of them was chosen.
    pub chosen: bool,
}

/// Burst in bytes that tc takes if none is given, without the bytes of a clock tick.
const BURST: u64 = 1600;

/// Clock ticks per second of the slowest kernel.
const TICKS: u64 = 100;

/// Way from the root to one queue.
pub(super) struct Way<'a> {
    pub(super) device: &'a Device,
    class: Option<Handle>,
    pub(super) link: ImportedLink,
    /// Qdiscs and classes on the way.
    pub(super) passed: Vec<Id>,
    pub(super) classes: Vec<Handle>,
}

/// Link of a device; none if it has no queue.
///
/// # Errors
/// A qdisc for which there is no discipline; classes of which none was chosen.
pub(super) fn link(
    device: &Device,
    all: &[Device],
    class: Option<Handle>,
) -> Result<Option<ImportedLink>> {
    let Some(root) = device.root else { return Ok(None) };
    let link = ImportedLink {
        dev: device.site.name(),
        classes: choices(device),
        ..ImportedLink::default()
    };
    let mut way = Way { device, class, link, passed: Vec::new(), classes: Vec::new() };
    let mut next = Some(root);
    while let Some(id) = next {
        let Some(qdisc) = device.qdiscs.get(&id) else { break };
        if matches!(qdisc.line.kind.name, "noqueue" | "ingress" | "clsact") {
            return Ok(None);
        }
        way.passed.push(id);
        if !qdisc.stab.is_empty() {
            way.lose(format!("{}: a link counts the bytes of the packets", qdisc.stab));
        }
        next = way.step(qdisc)?;
    }
    way.rest(all);
    Ok(Some(way.link))
}

/// Classes that can be chosen: those without classes below, and those with a qdisc.
fn choices(device: &Device) -> Vec<String> {
    let mut names = Vec::new();
    for id_of in device.below_root() {
        let qdisc = &device.qdiscs[&id_of];
        let minors = qdisc.classes.iter().map(|class| class.minor);
        let leaves = minors.filter(|minor| !qdisc.is_inner(*minor));
        let bands = qdisc.leaves.keys().copied().filter(|minor| qdisc.class(*minor).is_none());
        if qdisc.below() != Below::One {
            names.extend(leaves.chain(bands).map(|minor| id((qdisc.handle, minor))));
        }
    }
    names
}

impl Way<'_> {
    pub(super) fn lose(&mut self, text: String) {
        self.link.lost.push(text);
    }

    /// Class of `qdisc` that was chosen, if one of its classes was.
    fn chosen(&self, qdisc: &Qdisc) -> Option<u16> {
        self.class.filter(|class| class.0 == qdisc.handle).map(|class| class.1)
    }

    /// Takes over a qdisc; returns the one below it.
    fn step(&mut self, qdisc: &Qdisc) -> Result<Option<Id>> {
        let line = &qdisc.line;
        let below = qdisc.leaves.values().next().copied();
        match line.kind.name {
            "htb" | "hfsc" => self.shaper(qdisc),
            "tbf" => {
                self.bucket(line, below.is_none())?;
                Ok(below)
            }
            "netem" => {
                self.emulate(line, below.is_some())?;
                Ok(below)
            }
            "mq" | "mqprio" | "multiq" => {
                self.lose(format!("{}: the queues of the hardware are one link", line.kind.name));
                match (self.band(qdisc)?, below) {
                    (None, None) => {
                        let text = "has no qdisc below it; add the qdisc of its queues";
                        Err(Error::new(text).at(line.kind.name))
                    }
                    (chosen, first) => Ok(chosen.or(first)),
                }
            }
            _ => match self.band(qdisc)? {
                Some(chosen) => Ok(Some(chosen)),
                None => self.queue(qdisc, below),
            },
        }
    }

    /// Qdisc of the band that was chosen.
    fn band(&mut self, qdisc: &Qdisc) -> Result<Option<Id>> {
        let Some(minor) = self.chosen(qdisc) else { return Ok(None) };
        let Some(leaf) = qdisc.leaves.get(&minor) else {
            let names = self.link.classes.iter().map(String::as_str);
            return Err(Error::unknown("class", &id((qdisc.handle, minor)), names));
        };
        self.link.chosen = true;
        self.classes.push((qdisc.handle, minor));
        self.lose(format!("{}: one of its classes was chosen", qdisc.line.write()));
        Ok(Some(*leaf))
    }

    /// Takes over the discipline.
    fn queue(&mut self, qdisc: &Qdisc, below: Option<Id>) -> Result<Option<Id>> {
        let mut discipline = qdisc.line.discipline()?;
        self.link.lost.append(&mut discipline.lost);
        let child = below.and_then(|id| self.device.qdiscs.get(&id).map(|child| (id, child)));
        if let Some((id, child)) = child
            && qdisc.below() == Below::One
            && child.line.kind.name == "netem"
            && child.leaves.is_empty()
        {
            // What netem does to the packets behind the queue.
            self.passed.push(id);
            self.emulate(&child.line, true)?;
        }
        self.link.qdisc = Some(discipline);
        Ok(None)
    }

    /// Takes over the rate and the burst of tbf, and its FIFO queue if nothing is below it.
    fn bucket(&mut self, line: &Line, alone: bool) -> Result<()> {
        self.narrow(line.whole("rate"));
        self.link.burst = Some(Bytes(line.whole("burst")));
        for word in ["peakrate", "mtu"] {
            if let (Some(arg), Some(_)) = (line.given(word), line.given("peakrate")) {
                let text = line.kind.words.iter().find(|w| w.name == word).map(|w| w.write(arg));
                let text = text.unwrap_or_default();
                self.lose(format!("{}: a link has one rate", text.trim_start()));
            }
        }
        if alone {
            let fifo = format!("bfifo limit {}", line.whole("limit"));
            self.link.qdisc = Some(super::parse(&fifo)?);
        } else if line.given("latency").is_none() {
            let limit = line.whole("limit");
            self.lose(format!("limit {limit}: the qdisc below tbf has its own limit"));
        }
        self.link.lost.extend(line.lost_words());
        Ok(())
    }

    /// Follows a shaper with classes to the qdisc of its only, or chosen, leaf class.
    fn shaper(&mut self, qdisc: &Qdisc) -> Result<Option<Id>> {
        let kind = qdisc.line.kind.name;
        let chosen = self.chosen(qdisc);
        if !self.device.shown {
            self.link.lost.extend(qdisc.line.idle_words());
        }
        let leaves: Vec<u16> = qdisc.classes.iter().map(|class| class.minor).collect();
        let leaves: Vec<u16> = leaves.into_iter().filter(|m| !qdisc.is_inner(*m)).collect();
        let name = |minor: &u16| id((qdisc.handle, *minor));
        let leaf = match (leaves.as_slice(), chosen) {
            ([], _) => return self.without_classes(qdisc),
            ([leaf], None) => *leaf,
            (_, Some(minor)) if leaves.contains(&minor) => {
                self.link.chosen = true;
                minor
            }
            (_, Some(minor)) => {
                let names: Vec<String> = leaves.iter().map(name).collect();
                let names = names.iter().map(String::as_str);
                return Err(Error::unknown("class", &name(&minor), names));
            }
            (_, None) => {
                let text = "a link has one discipline: choose one of the classes";
                let names = leaves.iter().map(name).collect::<Vec<_>>().join(", ");
                return Err(Error::new(format!("{text} {names} with --class")));
            }
        };
        if leaves.len() > 1 {
            let others = format!("{} of {} classes", leaves.len() - 1, leaves.len());
            self.lose(format!("{others}: another class was chosen"));
        } else if chosen.is_none() {
            self.check_default(qdisc, leaf);
        }
        let mut class = qdisc.class(leaf);
        while let Some(one) = class {
            self.classes.push((qdisc.handle, one.minor));
            self.class_on_way(kind, &one.line);
            class = one.parent.and_then(|parent| qdisc.class(parent));
        }
        let below = qdisc.leaves.get(&leaf).copied();
        if below.is_none() {
            self.link.qdisc = Some(super::parse("pfifo limit 1000")?);
        }
        Ok(below)
    }

    /// Takes over rate and burst of a class.
    fn class_on_way(&mut self, kind: &str, line: &Line) {
        if kind == "htb" {
            self.narrow(line.whole("ceil"));
            self.class_bursts(line);
        } else if let Some(Arg::List(curve)) = line.given("ul") {
            // The other curves divide the rate between classes.
            self.narrow(curve.get(2).copied().unwrap_or(0));
            if curve[0] > 0 && curve[0] != curve[2] {
                self.lose("m1 and d of ul: a link has one rate".to_string());
            }
        }
        if kind == "hfsc" && line.given("rt").is_some() {
            self.lose("rt: sojourn has no real-time curve".to_string());
        }
        self.link.lost.extend(line.lost_words());
    }

    /// A shaper without classes shapes nothing: the packets pass its FIFO queue.
    fn without_classes(&mut self, qdisc: &Qdisc) -> Result<Option<Id>> {
        let kind = qdisc.line.kind.name;
        if self.device.shown {
            let text = "has no class; add tc class show to tc qdisc show";
            return Err(Error::new(text).at(kind));
        }
        if kind == "hfsc" && default_class(&qdisc.line) != Some(0) {
            let text = "has no class, so Linux drops all packets: add its default class";
            return Err(Error::new(text).at(kind));
        }
        self.link.qdisc = Some(super::parse("pfifo limit 1000")?);
        Ok(None)
    }

    /// Names packets that pass the shaper since no filter and no default assigns them to a class.
    fn check_default(&mut self, qdisc: &Qdisc, leaf: u16) {
        let default = default_class(&qdisc.line);
        // Old versions of tc print the number in decimal.
        let decimal = default.and_then(|default| format!("{default:x}").parse().ok());
        let shown = self.device.shown && decimal == Some(leaf);
        if default == Some(leaf) || shown || !self.device.filters.is_empty() {
            return;
        }
        let kind = qdisc.line.kind.name;
        let default = default.unwrap_or(0);
        let happens = if kind == "htb" { "pass unshaped" } else { "are dropped" };
        let leaf = id((qdisc.handle, leaf));
        self.lose(format!(
            "default {default:x}: in Linux packets without a filter {happens}, here \
             all are in class {leaf}"
        ));
    }

    /// Lowers the rate to `bits` per second.
    fn narrow(&mut self, bits: u64) {
        if bits > 0 {
            let now = self.link.rate.map_or(u64::MAX, |rate| rate.0);
            self.link.rate = Some(Rate(now.min(bits)));
        }
    }

    /// Takes over the burst at the ceiling of a class, and names words without an effect.
    fn class_bursts(&mut self, line: &Line) {
        let burst = line.whole("cburst");
        // The output always has one, which follows from the clock of the kernel.
        let usual = 2 * BURST + line.whole("ceil") / 8 / TICKS;
        let matters = if self.device.shown { burst > usual } else { burst > 0 };
        if matters {
            let now = self.link.burst.map_or(u64::MAX, |burst| burst.0);
            self.link.burst = Some(Bytes(now.min(burst)));
        }
        if !self.device.shown {
            let alone = |name: &str| match name {
                "burst" => "Linux sends up to cburst at the ceiling",
                _ => "the class is alone on its link",
            };
            for (word, arg) in line.kind.words.iter().zip(&line.args) {
                let same = word.name == "burst" && line.given("burst") == line.given("cburst");
                if let Some(arg) = arg.as_ref().filter(|_| word.ours == Ours::Harmless && !same)
                    && word.name != "cburst"
                {
                    self.lose(format!("{}: {}", word.write(arg).trim_start(), alone(word.name)));
                }
            }
        }
    }

    /// Takes over delay, loss and rate of netem, and its queue unless another qdisc has it.
    fn emulate(&mut self, line: &Line, queued: bool) -> Result<()> {
        let path = netem::path(line);
        if let Some(delay) = path.delay {
            let before = self.link.delay.map_or(0, |span| span.0);
            self.link.delay = Some(Span(before.saturating_add(delay)));
        }
        match (path.loss, self.link.loss) {
            (Some(_), Some(_)) => self.lose("loss: a link has one loss, of the first netem".into()),
            (Some(loss), None) => self.link.loss = Some(loss),
            (None, _) => {}
        }
        self.narrow(path.rate);
        self.link.lost.extend(path.lost);
        self.link.lost.extend(line.lost_words());
        self.link.lost.extend(line.idle_words());
        let limit = line.whole("limit");
        if !queued {
            self.link.qdisc = Some(super::parse(&format!("pfifo limit {limit}"))?);
        } else if line.given("limit").is_some() && limit != 1000 && limit < netem::UNLIMITED {
            self.lose(format!("netem limit {limit}: packets in flight do not count here"));
        }
        Ok(())
    }
}

/// Minor number of the default class.
fn default_class(line: &Line) -> Option<u16> {
    let Some(Arg::Text(text)) = line.get("default") else { return Some(0) };
    let digits = text.strip_prefix("0x").unwrap_or(&text);
    u16::from_str_radix(digits, 16).ok()
}
