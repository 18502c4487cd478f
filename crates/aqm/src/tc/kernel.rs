//! Commands for qdiscs as the kernel executes them.
//!
//! **Source**: tc(8), and the kernel's answers to random sequences of commands
//! (`tests/test_tc_sequences.py`).

use super::command::{Command, Place, Verb};
use super::device::{Below, Device, Id, Qdisc, id};
use super::kinds;
use super::line::Form;
use super::table::Line;
use crate::error::{Error, Result};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

/// Source of handles that the kernel chooses: 8001: and on, common to all devices.
#[derive(Clone, Debug)]
pub struct Handles(u16);

impl Default for Handles {
    fn default() -> Handles {
        Handles(0x8000)
    }
}

impl Handles {
    /// Next handle that `device` does not use.
    fn next(&mut self, device: &Device) -> u16 {
        loop {
            self.0 = if self.0 >= 0xfffe { 0x8000 } else { self.0 + 1 };
            if device.find(self.0).is_none() {
                return self.0;
            }
        }
    }
}

/// Place of a qdisc in the tree: the root, the ingress, or a class of a qdisc.
#[derive(Clone, Copy, Debug)]
enum Spot {
    Root,
    Ingress,
    Below(Id, u16),
}

impl Device {
    /// Executes a command for a qdisc.
    ///
    /// # Errors
    /// A command that the kernel would refuse.
    pub(super) fn qdisc(&mut self, command: &Command, handles: &mut Handles) -> Result<()> {
        if command.verb == Verb::Delete {
            return self.delete(command);
        }
        let creates = creates(command);
        if creates && command.verb == Verb::Link {
            let command = Command { verb: Verb::Replace, ..command.clone() };
            return self.qdisc(&command, handles);
        }
        let handle = command.handle.map_or(0, |h| h.0);
        let Some(place) = command.place else {
            if handle == 0 {
                return Err(Error::new("there is no place: write root, or parent 1:10"));
            }
            let id = self.find(handle).ok_or_else(|| no_qdisc(handle))?;
            return self.change(id, command);
        };
        let spot = self.spot(place)?;
        let here = spot.and_then(|spot| self.at(spot)).filter(|id| self.qdiscs[id].handle != 0);
        match here {
            // The same handle: a change.
            Some(id) if handle != 0 && self.qdiscs[&id].handle == handle => {
                self.change(id, command)
            }
            _ if handle != 0 => {
                if here.is_some() && !matches!(command.verb, Verb::Replace | Verb::Link) {
                    return Err(self.exists(here, place));
                }
                match self.find(handle) {
                    Some(other) => Err(self.elsewhere(other, spot, command)),
                    None => self.create(place, spot, handle, command, handles),
                }
            }
            Some(id) => {
                // Without a handle, another kind takes the place, even with add and change.
                let other = |line: &Line| !same_kind(line, &self.qdiscs[&id].line);
                let changes = command.verb == Verb::Change && creates;
                if command.verb != Verb::Link
                    && !changes
                    && command.line.as_ref().is_some_and(other)
                {
                    return self.create_at(place, spot, 0, command, handles);
                }
                if command.verb == Verb::Add {
                    return Err(self.exists(here, place));
                }
                self.change(id, command)
            }
            None => self.create(place, spot, 0, command, handles),
        }
    }

    /// Finds a place; none if the class does not exist, which matters once a qdisc is attached.
    fn spot(&self, place: Place) -> Result<Option<Spot>> {
        match place {
            Place::Root => Ok(Some(Spot::Root)),
            Place::Ingress => Ok(Some(Spot::Ingress)),
            Place::Class((major, minor)) => {
                let parent = self.find(major).ok_or_else(|| no_qdisc(major))?;
                let slot = self.qdiscs[&parent].slot(minor);
                Ok(slot.map(|slot| Spot::Below(parent, slot)))
            }
        }
    }

    fn at(&self, spot: Spot) -> Option<Id> {
        match spot {
            Spot::Root => self.root,
            Spot::Ingress => self.ingress,
            Spot::Below(parent, slot) => self.qdiscs[&parent].leaves.get(&slot).copied(),
        }
    }

    fn exists(&self, here: Option<Id>, place: Place) -> Error {
        let name = here.map_or_else(Default::default, |id| self.qdiscs[&id].name());
        let place = match place {
            Place::Root => "at the root".into(),
            Place::Ingress => "at the ingress".into(),
            Place::Class(class) => format!("below {}", id(class)),
        };
        Error::new(format!("there is a qdisc {place}, {name}: write replace, or delete it first"))
    }

    /// Changes the words of a qdisc.
    fn change(&mut self, id: Id, command: &Command) -> Result<()> {
        let qdisc = &self.qdiscs[&id];
        if command.verb == Verb::Add {
            let text = format!("{} exists: write replace, or delete it first", qdisc.name());
            return Err(Error::new(text));
        }
        let Some(line) = &command.line else { return Ok(()) };
        if !same_kind(line, &qdisc.line) {
            let (new, old) = (line.kind.name, qdisc.line.kind.name);
            let text = format!("the handle {:x}: belongs to {old}, which", qdisc.handle);
            return Err(Error::new(format!("{text} cannot become {new}: delete it first")));
        }
        if !command.has_words && sends_nothing(line) {
            return Ok(());
        }
        let mut line = qdisc.line.changed(line.clone())?;
        line.unread.clone_from(&qdisc.line.unread);
        self.check_duplication(&line, Some(id))?;
        self.qdiscs.get_mut(&id).expect("the qdisc exists").line = line;
        self.after_change(id);
        Ok(())
    }

    /// A netem that duplicates packets must be the only one of a device.
    fn check_duplication(&self, line: &Line, id: Option<Id>) -> Result<()> {
        if line.kind.name != "netem" {
            return Ok(());
        }
        let others = self.below_root().into_iter().filter(|other| Some(*other) != id);
        let others: Vec<&Line> = others.map(|other| &self.qdiscs[&other].line).collect();
        let netems = others.iter().filter(|other| other.kind.name == "netem");
        let duplicates = |line: &Line| line.given("duplicate").is_some();
        if netems.clone().any(|other| duplicates(line) || duplicates(other)) {
            let text = "excludes other netem qdiscs on the device";
            return Err(Error::new(text).at("duplicate").at("netem"));
        }
        Ok(())
    }

    /// Changes the qdiscs below a changed one, as the kernel does.
    fn after_change(&mut self, id: Id) {
        let qdisc = self.qdiscs.get_mut(&id).expect("the qdisc exists");
        let mut gone: Vec<Id> = Vec::new();
        match (qdisc.line.kind.name, qdisc.below()) {
            // They get a new FIFO queue.
            ("red" | "sfb", _) => gone.extend(core::mem::take(&mut qdisc.leaves).into_values()),
            ("tbf", _) => {
                let limit = qdisc.line.given("limit").cloned();
                let leaf = qdisc.leaves.get(&1).copied();
                if let (Some(limit), Some(leaf)) = (limit, leaf)
                    && let Some(child) = self.qdiscs.get_mut(&leaf)
                    && matches!(child.line.kind.name, "pfifo" | "bfifo")
                {
                    child.line.set("limit", limit);
                }
            }
            (_, Below::Bands(bands)) => {
                let beyond: Vec<u16> =
                    qdisc.leaves.keys().copied().filter(|band| *band > bands).collect();
                gone.extend(beyond.iter().filter_map(|band| qdisc.leaves.remove(band)));
            }
            _ => {}
        }
        for id in gone {
            self.release(id);
        }
    }

    /// Error for the handle of a qdisc that is elsewhere: Linux moves no qdisc.
    fn elsewhere(&self, other: Id, spot: Option<Spot>, command: &Command) -> Error {
        let qdisc = &self.qdiscs[&other];
        let (handle, name) = (qdisc.handle, qdisc.name());
        let line = command.line.as_ref().filter(|line| !same_kind(line, &qdisc.line));
        match (line, spot) {
            _ if command.verb == Verb::Add => {
                Error::new(format!("the handle {handle:x}: is used by {name}"))
            }
            (Some(line), _) => {
                let text = format!("the handle {handle:x}: belongs to {name}");
                Error::new(format!("{text}, not to a {}", line.kind.name))
            }
            (_, Some(Spot::Below(parent, _))) if self.reaches(other, parent) => {
                Error::new(format!("{name} would be below itself"))
            }
            _ => Error::new(format!("{name} cannot be moved: delete it, and add it here")),
        }
    }

    /// Creates a qdisc and attaches it.
    fn create(
        &mut self,
        place: Place,
        spot: Option<Spot>,
        handle: u16,
        command: &Command,
        handles: &mut Handles,
    ) -> Result<()> {
        if !matches!(command.verb, Verb::Add | Verb::Replace) && !creates(command) {
            return Err(Error::new("there is no qdisc at this place: write add or replace"));
        }
        self.create_at(place, spot, handle, command, handles)
    }

    fn create_at(
        &mut self,
        place: Place,
        spot: Option<Spot>,
        handle: u16,
        command: &Command,
        handles: &mut Handles,
    ) -> Result<()> {
        let Some(line) = &command.line else {
            return Err(Error::new("there is no qdisc after the device and its place"));
        };
        let hook = matches!(line.kind.name, "ingress" | "clsact");
        if matches!(place, Place::Ingress) != hook {
            let text =
                "the ingress takes the qdiscs ingress and clsact only, and nothing else does";
            return Err(Error::new(text));
        }
        if line.kind.name == "mq" && !matches!(place, Place::Root) {
            return Err(Error::new("mq is for the root of a device only").at("mq"));
        }
        let handle = match (hook, handle) {
            (true, _) => 0xffff,
            (_, 0) => handles.next(self),
            (_, handle) => handle,
        };
        let mut line = line.clone().completed(Form::Command)?;
        self.check_duplication(&line, None)?;
        if line.kind.name == "hhf" && line.given("hh_limit").is_some() {
            line.unset("hh_limit");
            self.lost.push("hh_limit: Linux takes it with tc qdisc change only".into());
        }
        let qdisc = Qdisc {
            handle,
            parent: place,
            line,
            classes: Vec::new(),
            leaves: BTreeMap::new(),
            stab: command.stab.clone().unwrap_or_default(),
        };
        let new = self.insert(qdisc);
        self.attach(place, spot, Some(new)).inspect_err(|_| self.release(new))
    }

    /// Puts a qdisc, or none, at a place, and releases the one before it.
    fn attach(&mut self, place: Place, spot: Option<Spot>, new: Option<Id>) -> Result<()> {
        let old = match spot {
            Some(Spot::Root) => core::mem::replace(&mut self.root, new),
            Some(Spot::Ingress) => core::mem::replace(&mut self.ingress, new),
            Some(Spot::Below(parent, slot)) => {
                let qdisc = self.qdiscs.get_mut(&parent).expect("the qdisc exists");
                let inner = match slot {
                    0 => qdisc.classes.iter().any(|class| class.parent.is_none()),
                    _ => qdisc.is_inner(slot),
                };
                if qdisc.below() == Below::Classes && inner {
                    let class = id((qdisc.handle, slot));
                    let text = format!("class {class} has classes below it, so it has no queue");
                    return Err(Error::new(text));
                }
                match new {
                    Some(new) => qdisc.leaves.insert(slot, new),
                    None => qdisc.leaves.remove(&slot),
                }
            }
            None => {
                let Place::Class((major, minor)) = place else {
                    return Err(Error::new("there is no such place"));
                };
                return Err(self.no_class(major, minor));
            }
        };
        if let Some(old) = old.filter(|old| Some(*old) != new) {
            self.release(old);
        }
        Ok(())
    }

    /// Error for a class that does not exist.
    pub(super) fn no_class(&self, major: u16, minor: u16) -> Error {
        let Some(qdisc) = self.find(major).map(|id| &self.qdiscs[&id]) else {
            return no_qdisc(major);
        };
        if qdisc.below() == Below::Nothing {
            return Error::new(format!("{} takes no qdisc below it", qdisc.name()));
        }
        if let Below::Bands(bands) = qdisc.below() {
            let text =
                format!("{} has the classes {major:x}:1 to {major:x}:{bands:x}", qdisc.name());
            return Error::new(format!("{text}, not {}", id((major, minor))));
        }
        if qdisc.classes.is_empty() {
            return Error::new(format!("there is no class {}", id((major, minor))));
        }
        let names: Vec<_> = qdisc.classes.iter().map(|class| id((major, class.minor))).collect();
        Error::unknown("class", &id((major, minor)), names.iter().map(|name| name.as_str()))
    }

    fn delete(&mut self, command: &Command) -> Result<()> {
        let Some(place) = command.place else {
            return Err(Error::new("there is no place: write root, or parent 1:10"));
        };
        let spot = match place {
            Place::Class((0xffff, _)) => Some(Spot::Ingress),
            _ => self.spot(place)?,
        };
        let here = spot.and_then(|spot| self.at(spot));
        let here = here.filter(|id| self.qdiscs[id].handle != 0);
        let here = here.ok_or_else(|| Error::new("there is no qdisc to delete at this place"))?;
        let qdisc = &self.qdiscs[&here];
        if command.handle.is_some_and(|handle| handle.0 != qdisc.handle) {
            return Err(Error::new(format!("the qdisc at this place is {}", qdisc.name())));
        }
        if command.line.as_ref().is_some_and(|line| !same_kind(line, &qdisc.line)) {
            return Err(Error::new(format!("the qdisc at this place is {}", qdisc.name())));
        }
        self.attach(place, spot, None)
    }
}

/// True if the command creates a qdisc even if it is a change: tc asks so for the setup of gred.
fn creates(command: &Command) -> bool {
    command.line.as_ref().is_some_and(kinds::gred::is_setup)
}

/// True if two lines are of the same qdisc of Linux; RED has two tables.
fn same_kind(a: &Line, b: &Line) -> bool {
    a.kind.name == b.kind.name
}

/// True if tc sends nothing for a qdisc without words, so that a change has no effect.
fn sends_nothing(line: &Line) -> bool {
    matches!(
        line.kind.name,
        "pfifo"
            | "bfifo"
            | "pfifo_head_drop"
            | "tbf"
            | "drr"
            | "pfifo_fast"
            | "qfq"
            | "ingress"
            | "clsact"
            | "mq"
            | "mqprio"
            | "codel"
            | "fq_codel"
            | "fq"
            | "pie"
            | "fq_pie"
            | "cake"
            | "hhf"
            | "noqueue"
            | "skbprio"
    )
}

/// Error for a handle that no qdisc has.
pub(super) fn no_qdisc(handle: u16) -> Error {
    Error::new(format!("there is no qdisc {handle:x}:"))
}
