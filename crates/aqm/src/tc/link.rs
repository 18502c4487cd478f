//! Links from the trees of devices.
//!
//! A link has one rate, one delay, impairments and one discipline. This module follows the tree
//! from the root to the first qdisc with several classes, which becomes a discipline with children
//! ([`branch`]), or to one queue. What is not on this way is named as lost.

use super::branch::shapes::{self, BURST, default_leaf};
use super::branch::{self, Branch};
use super::device::{Below, Device, Id, Qdisc, id};
use super::framing::Frame;
use super::imported_link::ImportedLink;
use super::place::{Handle, Place};
use super::table::{Arg, Line};
use super::{choice, ingress, netem};
use crate::error::{Error, Result};
use crate::units::{Bytes, Rate, Span};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

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
    /// Filters that are represented, by their place in the device.
    pub(super) filters: Vec<usize>,
}

/// Links of a device: one for its queue, and one for its policer.
///
/// # Errors
/// A qdisc for which there is no discipline.
pub(super) fn links(
    device: &Device,
    all: &[Device],
    class: Option<Handle>,
) -> Result<Vec<ImportedLink>> {
    let (policed, filters) = ingress::links(device);
    let queue = queue(device, all, class, filters)?;
    Ok(queue.into_iter().chain(policed).collect())
}

/// Link of the queue of a device; none if it has no queue.
fn queue(
    device: &Device,
    all: &[Device],
    class: Option<Handle>,
    filters: Vec<usize>,
) -> Result<Option<ImportedLink>> {
    let Some(root) = device.root else { return Ok(None) };
    let link = ImportedLink {
        dev: device.site.name(),
        classes: choices(device),
        ..ImportedLink::default()
    };
    let mut way = Way { device, class, link, passed: Vec::new(), classes: Vec::new(), filters };
    let mut next = Some(root);
    while let Some(id) = next {
        let Some(qdisc) = device.qdiscs.get(&id) else { break };
        if matches!(qdisc.line.kind.name, "noqueue" | "ingress" | "clsact") {
            return Ok(None);
        }
        way.passed.push(id);
        if let Some(frame) = Frame::of_stab(&qdisc.stab, &mut way.link.lost) {
            way.frame(frame);
        }
        next = way.step(id, qdisc)?;
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

    /// Class of `qdisc` that was chosen, or below which the chosen class is.
    fn chosen(&self, qdisc: &Qdisc) -> Option<u16> {
        let class = self.class?;
        if class.0 == qdisc.handle {
            return Some(class.1);
        }
        let below = self.device.find(class.0)?;
        let leaf = qdisc.leaves.iter().find(|(_, leaf)| self.device.reaches(**leaf, below));
        leaf.map(|(minor, _)| *minor)
    }

    /// Takes over a qdisc; returns the one below it.
    fn step(&mut self, id_of: Id, qdisc: &Qdisc) -> Result<Option<Id>> {
        let line = &qdisc.line;
        let below = qdisc.leaves.values().next().copied();
        match line.kind.name {
            "htb" | "hfsc" => self.shaper(id_of, qdisc),
            "tbf" => {
                self.bucket(line, below.is_none())?;
                Ok(below)
            }
            "netem" => {
                self.emulate(line, below.is_some())?;
                Ok(below)
            }
            "mqprio" => self.one_queue(qdisc, below),
            // A single queue, or none that is known.
            "mq" if qdisc.queues(self.device) < 2 => self.one_queue(qdisc, below),
            "multiq" if qdisc.queues(self.device) == 0 => self.one_queue(qdisc, below),
            _ => match self.band(qdisc)? {
                Some(chosen) => Ok(Some(chosen)),
                None if branch::is_tree(self.device, qdisc) => self.tree(id_of, qdisc),
                None => self.queue(qdisc, below),
            },
        }
    }

    /// Follows one of the transmit queues of a device.
    fn one_queue(&mut self, qdisc: &Qdisc, below: Option<Id>) -> Result<Option<Id>> {
        let kind = qdisc.line.kind.name;
        self.lose(format!("{kind}: the queues of the hardware are one link"));
        let Some(below) = self.band(qdisc)?.or(below) else {
            let text = "has no qdisc below it; add the qdisc of its queues";
            return Err(Error::new(text).at(kind));
        };
        Ok(Some(below))
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

    /// Takes over a qdisc with several classes, and all that is below it.
    fn tree(&mut self, id_of: Id, qdisc: &Qdisc) -> Result<Option<Id>> {
        let mut branch = Branch::of(self.device);
        let discipline = branch.discipline(id_of)?;
        let Branch { passed, classes, filters, netems, leaves, lost, numbers, .. } = branch;
        for below in passed.iter().filter(|below| **below != id_of) {
            let stab = &self.device.qdiscs[below].stab;
            if !stab.is_empty() {
                self.lose(format!("{stab}: a discipline in a class counts the bytes of packets"));
            }
        }
        self.passed.extend(passed);
        self.classes.extend(classes);
        self.filters.extend(filters);
        self.link.numbers = numbers;
        self.narrow(top_rate(qdisc));
        match netems.first() {
            Some((_, line)) if netems.len() == leaves && netems.iter().all(|n| n.1 == *line) => {
                self.emulate(line, true)?;
            }
            _ => {
                for (class, line) in &netems {
                    let text = format!("{} at {class}", line.write_given());
                    self.lose(format!(
                        "{text}: a link has the same wire for all classes; --class {class} has it"
                    ));
                }
            }
        }
        self.link.lost.extend(lost);
        self.link.qdisc = Some(discipline);
        Ok(None)
    }

    /// Takes over the framing of a shaper or a size table.
    fn frame(&mut self, frame: Frame) {
        let Some(overhead) = frame.overhead(&mut self.link.lost) else { return };
        match self.link.overhead {
            Some(first) if first != overhead => {
                self.lose("overhead: a link has one, of the first qdisc".to_string());
            }
            _ => self.link.overhead = Some(overhead),
        }
    }

    /// Takes over the framing of tbf or a class of htb.
    fn frame_of(&mut self, line: &Line) {
        match Frame::of_line(line) {
            Some(frame) => self.frame(frame),
            None => self.link.lost.extend(line.lost_words()),
        }
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
        self.frame_of(line);
        Ok(())
    }

    /// Follows a shaper to the qdisc of its only or chosen leaf class; with several it is a tree.
    fn shaper(&mut self, id_of: Id, qdisc: &Qdisc) -> Result<Option<Id>> {
        let kind = qdisc.line.kind.name;
        let chosen = self.chosen(qdisc);
        let leaves: Vec<u16> = qdisc.classes.iter().map(|class| class.minor).collect();
        let leaves: Vec<u16> = leaves.into_iter().filter(|m| !qdisc.is_inner(*m)).collect();
        if leaves.len() > 1 && chosen.is_none() {
            return self.tree(id_of, qdisc);
        }
        if !self.device.shown {
            self.link.lost.extend(qdisc.line.idle_words());
        }
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
            (_, None) => return self.tree(id_of, qdisc),
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
            self.lose("rt: the class is alone on its link".to_string());
        }
        if kind == "htb" {
            self.frame_of(line);
        } else {
            self.link.lost.extend(line.lost_words());
        }
    }

    /// A shaper without classes shapes nothing: the packets pass its FIFO queue.
    fn without_classes(&mut self, qdisc: &Qdisc) -> Result<Option<Id>> {
        let kind = qdisc.line.kind.name;
        if self.device.shown {
            let text = "has no class; add tc class show to tc qdisc show";
            return Err(Error::new(text).at(kind));
        }
        if kind == "hfsc" && shapes::default_class(&qdisc.line) != Some(0) {
            let text = "has no class, so Linux drops all packets: add its default class";
            return Err(Error::new(text).at(kind));
        }
        self.link.qdisc = Some(super::parse("pfifo limit 1000")?);
        Ok(None)
    }

    /// Names packets that pass the shaper since no filter and no default assigns them to a class.
    /// Filters that say the same as the default are represented.
    fn check_default(&mut self, qdisc: &Qdisc, leaf: u16) {
        let rules = choice::rules(self.device, |filter| match filter.place {
            Some(Place::Class(place)) => place == (qdisc.handle, 0),
            Some(Place::Ingress) => false,
            Some(Place::Root) | None => qdisc.parent == Place::Root,
        });
        if default_leaf(self.device.shown, qdisc) == Some(leaf) {
            let only = |rule: &super::rule::Rule| rule.police.is_none() && rule.action.is_empty();
            let same = rules.iter().filter(|(_, _, rule)| {
                let same = rule.to.is_some_and(|(_, minor)| minor == leaf);
                only(rule) && (same || rule.by_mark)
            });
            self.filters.extend(same.map(|(i, ..)| *i));
            return;
        }
        if !rules.is_empty() {
            return;
        }
        let kind = qdisc.line.kind.name;
        let default = shapes::default_class(&qdisc.line).unwrap_or(0);
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
            self.link.lost.extend(shapes::idle_words(line));
        }
    }

    /// Takes over delay, impairments and rate of netem, and its queue unless another qdisc has it.
    fn emulate(&mut self, line: &Line, queued: bool) -> Result<()> {
        let path = netem::path(line);
        if let Some(delay) = path.delay {
            let before = self.link.delay.map_or(0, |span| span.0);
            self.link.delay = Some(Span(before.saturating_add(delay)));
        }
        let twice = netem::add(&mut self.link.impairments, path.impairments);
        self.link.lost.extend(twice);
        self.narrow(path.rate);
        if let Some(overhead) = path.overhead {
            match self.link.overhead {
                Some(first) if first != overhead => {
                    self.lose("overhead: a link has one, of the first qdisc".to_string());
                }
                _ => self.link.overhead = Some(overhead),
            }
        }
        self.link.lost.extend(path.lost);
        self.link.lost.extend(line.lost_words());
        self.link.lost.extend(line.idle_words());
        if !queued {
            let limit = line.whole("limit");
            self.link.qdisc = Some(super::parse(&format!("pfifo limit {limit}"))?);
        }
        Ok(())
    }
}

/// Rate of all classes of a shaper together in bit/s; 0 if it is not limited.
fn top_rate(qdisc: &Qdisc) -> u64 {
    let tops = qdisc.classes.iter().filter(|class| class.parent.is_none());
    let rate = |line: &Line| match (qdisc.line.kind.name, line) {
        ("htb", line) => Some(line.whole("ceil")),
        ("hfsc", line) => match line.given("ul") {
            Some(Arg::List(curve)) => curve.get(2).copied().filter(|rate| *rate > 0),
            _ => None,
        },
        _ => None,
    };
    let rates: Option<Vec<u64>> = tops.map(|class| rate(&class.line)).collect();
    rates.map_or(0, |rates| rates.iter().fold(0, |sum, rate| sum.saturating_add(*rate)))
}
