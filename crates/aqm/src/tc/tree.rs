//! Qdiscs of a device as a tree, and the link that they make.

use super::command::{self, Command, Handle, Verb};
use super::convert::Discipline;
use super::table::{Arg, Becomes, Line};
use crate::error::{Error, Result};
use crate::units::{Rate, Span};
use alloc::format;
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

/// Link that the qdiscs of a device make.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedLink {
    /// Name of the device.
    pub dev: String,
    /// Rate of the shaper, if there is one.
    pub rate: Option<Rate>,
    /// Delay of netem, if given.
    pub delay: Option<Span>,
    /// Loss of netem, if given.
    pub loss: Option<Loss>,
    /// Discipline.
    pub qdisc: Option<Discipline>,
    /// Words that are not represented, each with the reason.
    pub lost: Vec<String>,
}

/// Device with its qdiscs and classes.
#[derive(Debug, Default)]
struct Device {
    name: String,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    parent: Option<Handle>,
    handle: Option<Handle>,
    is_class: bool,
    line: Line,
}

/// Reads a script of tc commands, or the output of `tc qdisc show`, and returns a link for each
/// device. `class` chooses one of several classes.
///
/// # Errors
/// A command that tc would refuse, with its line number; a qdisc for which there is no discipline;
/// classes of which none was chosen; no command at all.
pub fn import(script: &str, class: Option<Handle>) -> Result<Vec<ImportedLink>> {
    let mut devices: Vec<Device> = Vec::new();
    for (number, text) in command::statements(script) {
        let command = command::parse(&text).map_err(|e| e.at(format!("line {number}")))?;
        let Some(command) = command else { continue };
        let name = if command.dev.is_empty() { "link" } else { &command.dev };
        let at = devices.iter().position(|device| device.name == *name);
        let index = at.unwrap_or_else(|| {
            devices.push(Device { name: name.to_string(), nodes: Vec::new() });
            devices.len() - 1
        });
        devices[index].apply(command);
    }
    let links = devices.iter().filter(|device| !device.nodes.is_empty());
    let links = links.map(|device| device.link(class).map_err(|e| e.at(&device.name)));
    let links = links.filter_map(Result::transpose).collect::<Result<Vec<ImportedLink>>>()?;
    if links.is_empty() {
        return Err(Error::new(
            "there is no qdisc of a device, like tc qdisc add dev eth0 root pie",
        ));
    }
    Ok(links)
}

impl Device {
    fn apply(&mut self, command: Command) {
        let Command { verb, parent, handle, is_class, line, .. } = command;
        let same = |node: &Node| {
            node.is_class == is_class
                && if is_class { node.handle == handle } else { node.parent == parent }
        };
        let before = self.nodes.iter().position(same);
        let Some(mut line) = line else {
            // A deleted root takes everything below with it.
            if verb == Verb::Delete && parent.is_none() && !is_class {
                self.nodes.clear();
            } else if let Some(index) = before.filter(|_| verb == Verb::Delete) {
                self.nodes.remove(index);
            }
            return;
        };
        if verb == Verb::Delete {
            self.nodes.clear();
            return;
        }
        if let Some(index) = before {
            let old = self.nodes.remove(index);
            let same_kind = core::ptr::eq(old.line.kind, line.kind);
            if verb == Verb::Change && same_kind {
                for (arg, old) in line.args.iter_mut().zip(old.line.args) {
                    *arg = arg.take().or(old);
                }
            }
        }
        self.nodes.push(Node { parent, handle, is_class, line });
    }

    /// Qdisc at the root, or at a class.
    fn qdisc_at(&self, parent: Option<Handle>) -> Option<&Node> {
        self.nodes.iter().find(|node| !node.is_class && node.parent == parent)
    }

    /// Qdisc below the qdisc `node`, whatever its class.
    fn below(&self, node: &Node) -> Option<&Node> {
        let major = node.handle?.0;
        let child = |n: &&Node| !n.is_class && n.parent.is_some_and(|parent| parent.0 == major);
        self.nodes.iter().find(child)
    }

    /// Link of the device; none if it has no queue.
    fn link(&self, class: Option<Handle>) -> Result<Option<ImportedLink>> {
        let mut link = ImportedLink { dev: self.name.clone(), ..ImportedLink::default() };
        let lone = |n: &&Node| {
            !n.is_class
                && !self.nodes.iter().any(|p| {
                    p.handle.is_some()
                        && p.handle.map(|h| h.0) == n.parent.map(|h| h.0)
                        && !core::ptr::eq(*n, p)
                })
        };
        let Some(mut node) = self.qdisc_at(None).or_else(|| self.nodes.iter().find(lone)) else {
            return Err(Error::new("there is no qdisc at the root"));
        };
        for _ in &self.nodes {
            let line = &node.line;
            let child = match line.kind.name {
                "htb" | "hfsc" => self.shaped(node, class, &mut link)?,
                "tbf" => {
                    link.narrow(line.whole("rate"));
                    let limit = line.whole("limit");
                    let leaf = self.below(node);
                    if leaf.is_none() {
                        let fifo = format!("bfifo limit {limit}");
                        link.qdisc = Some(super::parse(&fifo)?);
                    }
                    link.lose(line);
                    leaf
                }
                "netem" => {
                    link.emulate(line)?;
                    self.below(node)
                }
                "mq" | "mqprio" | "multiq" => {
                    link.lost.push(format!(
                        "{}: the queues of the hardware are one link",
                        line.kind.name
                    ));
                    self.below(node)
                }
                "ingress" | "clsact" | "noqueue" => return Ok(None),
                _ => {
                    let mut discipline = line.discipline()?;
                    link.lost.append(&mut discipline.lost);
                    if self.below(node).is_some() && line.kind.becomes != Becomes::Link {
                        link.lost.push("the qdiscs of the classes".to_string());
                    }
                    link.qdisc = Some(discipline);
                    None
                }
            };
            match child {
                Some(below) => node = below,
                None => return Ok(Some(link)),
            }
        }
        Err(below_itself(node))
    }

    /// Follows a shaper with classes to the qdisc of its only, or chosen, leaf class.
    fn shaped(
        &self,
        node: &Node,
        chosen: Option<Handle>,
        link: &mut ImportedLink,
    ) -> Result<Option<&Node>> {
        let major = node.handle.map_or(0, |h| h.0);
        let classes =
            self.nodes.iter().filter(|n| n.is_class && n.handle.is_some_and(|h| h.0 == major));
        let classes: Vec<&Node> = classes.collect();
        let inner = |class: &Node| classes.iter().any(|other| other.parent == class.handle);
        let leaves: Vec<&Node> = classes.iter().copied().filter(|class| !inner(class)).collect();
        let leaf = match (leaves.as_slice(), chosen) {
            ([], _) if !classes.is_empty() => return Err(below_itself(classes[0])),
            ([], _) => {
                return Err(Error::new("has no class; add tc class show to tc qdisc show")
                    .at(node.line.kind.name));
            }
            ([leaf], None) => *leaf,
            (_, Some(chosen)) => {
                let leaf = leaves.iter().find(|leaf| leaf.handle == Some(chosen));
                let names = names(&leaves);
                let name = write(chosen);
                *leaf.ok_or_else(|| {
                    Error::unknown("class", &name, names.iter().map(String::as_str))
                })?
            }
            (_, None) => {
                let text = "a link has one discipline: choose one of the classes";
                let names = names(&leaves).join(", ");
                return Err(Error::new(format!("{text} {names} with --class")));
            }
        };
        if leaves.len() > 1 {
            let others = format!("{} of {} classes", leaves.len() - 1, leaves.len());
            link.lost.push(format!("{others}: another class was chosen"));
        }
        let mut class = Some(leaf);
        let mut passed = 0;
        while let Some(one) = class {
            passed += 1;
            if passed > classes.len() {
                return Err(below_itself(one));
            }
            link.narrow(rate_of_class(&one.line));
            link.lose(&one.line);
            class = classes.iter().copied().find(|other| other.handle == one.parent);
        }
        let below = self.qdisc_at(leaf.handle);
        if below.is_none() {
            link.qdisc = Some(super::parse("pfifo limit 1000")?);
        }
        Ok(below)
    }
}

/// Most that a class may send, bit/s: a class alone on its device gets its ceiling.
fn rate_of_class(line: &Line) -> u64 {
    let words: &[&str] = if line.kind.name == "htb" {
        &["ceil", "rate"]
    } else {
        &["ul rate", "sc rate", "ls rate"]
    };
    words.iter().map(|word| line.whole(word)).find(|rate| *rate > 0).unwrap_or(0)
}

/// Error for parents that form a circle.
fn below_itself(node: &Node) -> Error {
    let kind = node.line.kind.name;
    let what = match node.handle {
        Some(handle) if node.is_class => format!("{kind} class {}", write(handle)),
        Some(handle) => format!("{kind} {}", write(handle)),
        None => kind.to_string(),
    };
    Error::new("is below itself: a handle or a parent is wrong").at(what)
}

fn write(handle: Handle) -> String {
    format!("{:x}:{:x}", handle.0, handle.1)
}

fn names(nodes: &[&Node]) -> Vec<String> {
    nodes.iter().filter_map(|node| node.handle).map(write).collect()
}

impl ImportedLink {
    /// Lowers the rate to `bits` per second.
    fn narrow(&mut self, bits: u64) {
        if bits > 0 {
            let now = self.rate.map_or(u64::MAX, |rate| rate.0);
            self.rate = Some(Rate(now.min(bits)));
        }
    }

    /// Notes the words of `line` that have no counterpart.
    fn lose(&mut self, line: &Line) {
        self.lost.extend(line.lost_words());
    }

    /// Takes over delay, loss and rate of netem.
    fn emulate(&mut self, line: &Line) -> Result<()> {
        self.lose(line);
        if let Some(Arg::Several(parts)) = line.given("delay") {
            if let Some(Arg::Whole(ns)) = parts.first() {
                self.delay = Some(Span(*ns));
            }
            if parts.len() > 1 {
                self.lost.push("jitter: the delay of a link does not vary".to_string());
            }
        }
        if let Some(Arg::Several(parts)) = line.given("loss") {
            self.loss = parts.first().map(|p| Loss::Random(share(Some(p), 0.0)));
            if parts.len() > 1 && share(parts.get(1), 0.0) > 0.0 {
                self.lost.push("correlation of losses: gemodel has bursts".to_string());
            }
        }
        if let Some(Arg::Several(parts)) = line.given("loss gemodel") {
            let p = share(parts.first(), 0.0);
            let r = share(parts.get(1), 1.0 - p);
            let (bad, good) = (share(parts.get(2), 1.0), share(parts.get(3), 0.0));
            self.loss = Some(Loss::Bursts([p, r, bad, good]));
        }
        if let Some(Arg::Several(parts)) = line.given("rate") {
            if let Some(Arg::Whole(bits)) = parts.first() {
                self.narrow(*bits);
            }
            if parts.len() > 1 {
                self.lost.push("overhead and cells of rate".to_string());
            }
        }
        let limit = line.whole("limit");
        self.qdisc = Some(super::parse(&format!("pfifo limit {limit}"))?);
        Ok(())
    }
}

fn share(arg: Option<&Arg>, default: f64) -> f64 {
    match arg {
        Some(Arg::Number(x)) => *x,
        _ => default,
    }
}
