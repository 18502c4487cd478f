//! A tree of qdiscs and classes as a discipline with children and filters.

pub(crate) mod shapes;

use super::choice::{self, Choice};
use super::convert::Discipline;
use super::device::{Below, Class, Device, Id, Qdisc, id};
use super::parameters::trimmed;
use super::place::Handle;
use super::table::Line;
use crate::error::{Error, Result};
use crate::params::call_text;
use crate::sched::filter::Filter;
use crate::units::Size;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use shapes::{default_class, default_leaf};

/// Most disciplines inside each other.
const DEPTH: usize = 16;

/// Discipline of a class without a qdisc.
const LEAF: &str = "droptail(limit=1000p)";

/// Conversion of the tree below a qdisc.
pub(super) struct Branch<'a> {
    device: &'a Device,
    /// Qdiscs and classes that are represented.
    pub passed: Vec<Id>,
    pub classes: Vec<Handle>,
    /// Filters that were looked at, by their place in the device.
    pub filters: Vec<usize>,
    /// Delays of classes, with the class.
    pub netems: Vec<(String, Line)>,
    /// Disciplines around the current one.
    depth: usize,
    /// Number of classes with a queue.
    pub leaves: usize,
    /// Words that are not represented, each with the reason.
    pub lost: Vec<String>,
    /// Numbers of the classes of the first qdisc.
    pub numbers: Vec<(String, u64)>,
}

/// True if the qdisc has classes that are more than one queue.
pub(super) fn is_tree(device: &Device, qdisc: &Qdisc) -> bool {
    match qdisc.below() {
        Below::Classes => !qdisc.classes.is_empty(),
        Below::Bands(_) => {
            let handle = qdisc.handle;
            let mut filters = choice::rules(device, |filter| match filter.place {
                Some(super::place::Place::Class((major, _))) => major == handle,
                Some(super::place::Place::Ingress) => false,
                _ => qdisc.parent == super::place::Place::Root,
            });
            !qdisc.leaves.is_empty() || filters.pop().is_some()
        }
        Below::One | Below::Nothing => false,
    }
}

/// Classes in the order of their minor numbers, but none before its parent.
pub(super) fn ordered(qdisc: &Qdisc) -> Vec<&Class> {
    let mut waiting: BTreeMap<u16, &Class> = BTreeMap::new();
    waiting.extend(qdisc.classes.iter().map(|class| (class.minor, class)));
    let mut order: Vec<&Class> = Vec::new();
    while !waiting.is_empty() {
        let is_ready = |class: &Class| class.parent.is_none_or(|p| !waiting.contains_key(&p));
        let Some(minor) = waiting.values().find(|class| is_ready(class)).map(|c| c.minor) else {
            break; // a circle, which is refused when it is read
        };
        order.extend(waiting.remove(&minor));
    }
    order
}

impl<'a> Branch<'a> {
    /// Starts at a device.
    pub fn of(device: &'a Device) -> Branch<'a> {
        Branch {
            device,
            passed: Vec::new(),
            classes: Vec::new(),
            filters: Vec::new(),
            netems: Vec::new(),
            depth: 0,
            leaves: 0,
            lost: Vec::new(),
            numbers: Vec::new(),
        }
    }

    pub(super) fn lose(&mut self, text: String) {
        if !self.lost.contains(&text) {
            self.lost.push(text);
        }
    }

    /// Discipline of a qdisc with all that is below it.
    ///
    /// # Errors
    /// A qdisc for which there is no discipline; too many inside each other.
    pub fn discipline(&mut self, id_of: Id) -> Result<Discipline> {
        let device = self.device;
        let qdisc = &device.qdiscs[&id_of];
        if self.depth == DEPTH {
            let text = format!("is below {DEPTH} others with classes, which is the most");
            return Err(Error::new(text).at(qdisc.name()));
        }
        self.passed.push(id_of);
        self.depth += 1;
        let discipline = self.of_kind(qdisc);
        self.depth -= 1;
        discipline
    }

    fn of_kind(&mut self, qdisc: &'a Qdisc) -> Result<Discipline> {
        let device = self.device;
        let kind = qdisc.line.kind.name;
        let one = qdisc.below() == Below::One && kind != "tbf";
        let below = qdisc.leaves.values().next().filter(|_| one);
        if let Some(below) = below
            && !self.passed.contains(below)
        {
            let line = device.qdiscs[below].line.write_given();
            self.passed.push(*below);
            self.lose(format!("qdisc {line} below {kind}: in a class, {kind} has a FIFO queue"));
        }
        match kind {
            "tbf" if !qdisc.leaves.is_empty() => self.bucket(qdisc),
            "htb" | "hfsc" | "drr" | "qfq" if qdisc.classes.is_empty() => {
                if device.shown {
                    let show = format!("tc class show parent {:x}:", qdisc.handle);
                    return Err(Error::new(format!("has no class; add {show}")).at(qdisc.name()));
                }
                match kind {
                    "drr" | "qfq" => self.queue(qdisc),
                    _ => super::parse("pfifo limit 1000"),
                }
            }
            "htb" | "hfsc" => self.shaper(qdisc),
            "drr" | "qfq" => self.shares(qdisc),
            _ if is_tree(device, qdisc) => self.bands(qdisc),
            _ => self.queue(qdisc),
        }
    }

    /// Discipline of a qdisc without classes.
    fn queue(&mut self, qdisc: &Qdisc) -> Result<Discipline> {
        let mut discipline = qdisc.line.discipline()?;
        for lost in core::mem::take(&mut discipline.lost) {
            self.lose(lost);
        }
        if qdisc.line.kind.name == "multiq" && qdisc.queues(self.device) == 0 {
            self.lose("multiq: the device is taken to have 4 transmit queues".to_string());
        }
        Ok(discipline)
    }

    /// Text of the discipline of class `minor`, and its buffer in packets if it has one.
    fn leaf(&mut self, qdisc: &Qdisc, minor: u16) -> Result<(String, Option<u64>)> {
        let mut below = qdisc.leaves.get(&minor).copied();
        let mut alone = None;
        while let Some(id_of) = below {
            let child = &self.device.qdiscs[&id_of];
            if child.line.kind.name != "netem" {
                break;
            }
            self.passed.push(id_of);
            self.netems.push((id((qdisc.handle, minor)), child.line.clone()));
            alone = Some(child.line.whole("limit"));
            below = child.leaves.get(&1).copied();
        }
        let Some(id_of) = below else {
            self.leaves += 1;
            let limit = alone.unwrap_or(1000);
            return Ok((LEAF.replace("1000", &limit.to_string()), Some(limit)));
        };
        let before = self.leaves;
        let discipline = self.discipline(id_of)?;
        self.leaves = self.leaves.max(before + 1);
        let limit = discipline.settings.iter().find(|(name, _)| name == "limit");
        let limit =
            limit.and_then(|(_, value)| value.parse::<Size>().ok()).map(|size| match size {
                Size::Packets(n) => n,
                // Packets of the least length.
                Size::Bytes(n) => n / 20 + 1,
            });
        Ok((discipline.text(), limit))
    }

    /// Texts of the disciplines of classes, as `children`; empty if all have a plain queue.
    fn children(&mut self, qdisc: &Qdisc, minors: &[u16]) -> Result<(Vec<String>, u64)> {
        let mut texts = Vec::new();
        let mut sum = 0u64;
        for minor in minors {
            let (text, limit) = self.leaf(qdisc, *minor)?;
            texts.push(text);
            sum = sum.saturating_add(limit.unwrap_or(1_000_000));
        }
        if texts.iter().all(|text| text == LEAF) {
            texts.clear();
        }
        Ok((trimmed(texts), sum))
    }

    /// Filters of a qdisc, whose classes have the numbers `number`.
    fn filters(
        &mut self,
        qdisc: &Qdisc,
        number: &dyn Fn(u16) -> Option<u64>,
        default: Option<u64>,
    ) -> Vec<Filter> {
        let choice = Choice::of(self.device, qdisc, number, default);
        let Choice { filters, used, lost, .. } = choice;
        self.filters.extend(used);
        for text in lost {
            self.lose(text);
        }
        filters
    }

    fn number(&mut self, qdisc: &Qdisc, minor: u16, number: u64) {
        self.classes.push((qdisc.handle, minor));
        if self.passed.len() == 1 {
            self.numbers.push((id((qdisc.handle, minor)), number));
        }
    }

    /// `tbf` with another qdisc in place of its FIFO queue.
    fn bucket(&mut self, qdisc: &Qdisc) -> Result<Discipline> {
        let mut discipline = self.queue(qdisc)?;
        discipline.settings.retain(|(name, _)| name != "limit");
        let line = &qdisc.line;
        if line.given("latency").is_none() {
            let limit = line.whole("limit");
            self.lose(format!("limit {limit}: the qdisc below tbf has its own limit"));
        }
        let (child, _) = self.leaf(qdisc, 1)?;
        discipline.set("children", child);
        Ok(discipline)
    }

    /// `prio`, `ets`, `multiq` and others with bands.
    fn bands(&mut self, qdisc: &Qdisc) -> Result<Discipline> {
        let mut discipline = self.queue(qdisc)?;
        let kind = qdisc.line.kind.name;
        let bands = match qdisc.below() {
            _ if matches!(kind, "mq" | "multiq") => qdisc.queues(self.device),
            Below::Bands(bands) => bands,
            _ => return Err(Error::new("has no classes here").at(kind)),
        };
        let minors: Vec<u16> = (1..=bands).collect();
        for minor in &minors {
            self.number(qdisc, *minor, u64::from(*minor) - 1);
        }
        let (children, sum) = self.children(qdisc, &minors)?;
        let number = |minor: u16| (1..=bands).contains(&minor).then(|| u64::from(minor) - 1);
        let filters = self.filters(qdisc, &number, None);
        if matches!(kind, "mq" | "multiq") {
            self.queues(qdisc, bands, &mut discipline);
        }
        discipline.set_classes(children, sum, &filters);
        Ok(discipline)
    }

    /// Sets the number of transmit queues, and the buffers of queues without a qdisc.
    fn queues(&mut self, qdisc: &Qdisc, n: u16, discipline: &mut Discipline) {
        discipline.set("flows", n.to_string());
        discipline.set("limits", "1000p".to_string());
        discipline.set("limit", Size::Packets(1000 * u64::from(n)).to_string());
        let kind = qdisc.line.kind.name;
        if kind == "mq"
            && let Some(minor) = (1..=n).find(|minor| !qdisc.leaves.contains_key(minor))
        {
            let queue = id((qdisc.handle, minor));
            self.lose(format!(
                "mq: {queue} has the default qdisc of Linux, here a FIFO queue of 1000 packets"
            ));
        }
        if !self.device.shown {
            self.lose(format!("{kind}: the device is taken to have {n} transmit queues"));
        }
    }

    /// `drr` and `qfq`, whose classes have a quantum, or a weight and a `maxpkt` each.
    fn shares(&mut self, qdisc: &Qdisc) -> Result<Discipline> {
        let mut discipline = self.queue(qdisc)?;
        let classes = ordered(qdisc);
        let minors: Vec<u16> = classes.iter().map(|class| class.minor).collect();
        let own = |name: &str| matches!(name, "quantum" | "weights" | "maxpkt" | "limits");
        discipline.settings.retain(|(name, _)| !own(name));
        discipline.set("flows", classes.len().to_string());
        let words = |word| classes.iter().map(|class| class.line.whole(word)).collect::<Vec<_>>();
        let shares = match qdisc.line.kind.name {
            "qfq" => shapes::weights(words("weight"), words("maxpkt")),
            _ => shapes::quanta(&words("quantum")),
        };
        for (name, value) in shares {
            discipline.set(name, value);
        }
        for (i, minor) in minors.iter().enumerate() {
            self.number(qdisc, *minor, i as u64);
        }
        let (children, sum) = self.children(qdisc, &minors)?;
        if children.is_empty() {
            discipline.set("limits", "1000p".to_string());
            discipline.set("limit", Size::Packets(1000 * classes.len() as u64).to_string());
        }
        let number = |minor: u16| minors.iter().position(|one| *one == minor).map(|i| i as u64);
        let filters = self.filters(qdisc, &number, None);
        discipline.set_classes(children, sum, &filters);
        Ok(discipline)
    }

    /// `htb` and `hfsc`, a tree of classes with rates or curves.
    fn shaper(&mut self, qdisc: &Qdisc) -> Result<Discipline> {
        let name = qdisc.line.kind.name;
        let classes = ordered(qdisc);
        let minors: Vec<u16> = classes.iter().map(|class| class.minor).collect();
        let number = |minor: u16| minors.iter().position(|one| *one == minor).map(|i| i as u64 + 1);
        let parents = classes.iter().map(|class| class.parent.and_then(number).unwrap_or(0));
        let parents: Vec<u64> = parents.collect();
        let mut settings = if name == "htb" {
            shapes::htb(self, qdisc, &classes)
        } else {
            shapes::hfsc(self, qdisc, &classes)
        };
        let usual: Vec<u64> = (0..parents.len()).map(|i| u64::from(i > 0)).collect();
        if parents != usual {
            let list = trimmed(parents).iter().map(u64::to_string).collect::<Vec<_>>();
            settings.push(("parents".to_string(), list.join(" ")));
        }
        for (i, minor) in minors.iter().enumerate() {
            self.number(qdisc, *minor, i as u64 + 1);
        }
        let leaves: Vec<u16> = minors.iter().copied().filter(|m| !qdisc.is_inner(*m)).collect();
        let default = default_leaf(self.device.shown, qdisc);
        if let Some(default) = default.and_then(number)
            && Some(default) != leaves.first().copied().and_then(number)
        {
            settings.push(("default".to_string(), default.to_string()));
        }
        if !self.device.shown {
            for lost in qdisc.line.idle_words() {
                self.lose(lost);
            }
        }
        let (children, _) = self.children(qdisc, &leaves)?;
        let leaf = |minor: u16| leaves.contains(&minor).then(|| number(minor)).flatten();
        let filters = self.filters(qdisc, &leaf, default.and_then(number));
        if default.is_none() {
            self.lose(without_default(qdisc, leaves[0]));
        }
        let registered = if name == "htb" { "htb" } else { "hfsc" };
        let mut discipline = Discipline { name: registered, settings, lost: Vec::new() };
        discipline.set_classes(children, 0, &filters);
        Ok(discipline)
    }
}

/// Returns the note about packets that neither a filter nor a default assigns to a class.
fn without_default(qdisc: &Qdisc, leaf: u16) -> String {
    let kind = qdisc.line.kind.name;
    let default = default_class(&qdisc.line).unwrap_or(0);
    let happens = if kind == "htb" { "pass unshaped" } else { "are dropped" };
    let leaf = id((qdisc.handle, leaf));
    format!(
        "default {default:x}: in Linux packets that no filter matches {happens}, here they are in \
         class {leaf}"
    )
}

impl Discipline {
    /// Text form, `NAME(KEY=VALUE, ...)`.
    pub fn text(&self) -> String {
        call_text(
            self.name,
            self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())),
        )
    }

    pub(super) fn set(&mut self, name: &str, value: String) {
        match self.settings.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.settings.push((name.to_string(), value)),
        }
    }

    /// Sets `children` and `filters`, with a common buffer that the children never fill.
    fn set_classes(&mut self, children: Vec<String>, sum: u64, filters: &[Filter]) {
        if !children.is_empty() {
            // The disciplines of the classes have buffers of their own.
            self.settings.retain(|(name, _)| !matches!(name.as_str(), "limits" | "drop"));
            if sum > 0 {
                self.set("limit", Size::Packets(sum).to_string());
            }
            self.set("children", children.join(" "));
        }
        if !filters.is_empty() {
            self.set("filters", choice::text(filters));
        }
    }
}
