//! Commands for classes as the kernel executes them.

use super::command::{Command, Place, Verb};
use super::device::{Below, Class, Device, Id, Qdisc, id};
use super::kernel::no_qdisc;
use super::line::Form;
use super::table::Line;
use crate::error::{Error, Result};
use alloc::format;

/// Levels of classes that htb takes.
const DEPTH: usize = 8;
/// Largest sum of the weights of the classes of qfq.
const WEIGHTS: u64 = 65_536;

impl Device {
    /// Executes a command for a class.
    ///
    /// # Errors
    /// A command that the kernel would refuse.
    pub(super) fn class(&mut self, command: &Command) -> Result<()> {
        let (major, minor) = command.handle.unwrap_or_default();
        let parent = match command.place {
            Some(Place::Class(parent)) => Some(parent),
            Some(Place::Ingress) => return Err(Error::new("the ingress has no classes")),
            Some(Place::Root) | None => None,
        };
        let above = parent.map_or(0, |parent| parent.0);
        if major != 0 && above != 0 && major != above {
            let text = format!("{} is a class of {above:x}:, not of {major:x}:", id((above, 0)));
            return Err(Error::new(format!("{text}: write one major number")));
        }
        let major = [major, above].into_iter().find(|m| *m != 0);
        let qdisc = match major {
            Some(major) => self.find(major).ok_or_else(|| no_qdisc(major))?,
            None => self.root.ok_or_else(|| Error::new("there is no qdisc at the root"))?,
        };
        let kind = self.qdiscs[&qdisc].line.kind.name;
        let exists = self.qdiscs[&qdisc].slot(minor).is_some() && minor != 0;
        match (self.qdiscs[&qdisc].below(), command.verb) {
            (Below::Classes, _) => {}
            (_, Verb::Add) if exists => return Err(Error::new("the class exists")),
            (Below::Bands(_), Verb::Change | Verb::Replace) if kind == "ets" && exists => {
                return self.band_of_ets(qdisc, minor, command);
            }
            _ => return Err(Error::new(format!("{kind} has no classes to add, change or delete"))),
        }
        match command.verb {
            Verb::Delete => self.delete_class(qdisc, minor),
            Verb::Add if exists => {
                let text = format!("class {} exists", id((self.qdiscs[&qdisc].handle, minor)));
                Err(Error::new(format!("{text}: write replace, or delete it first")))
            }
            Verb::Change | Verb::Link if !exists => {
                Err(self.no_class(self.qdiscs[&qdisc].handle, minor))
            }
            Verb::Link => Ok(()),
            _ if exists => self.change_class(qdisc, minor, parent, command),
            _ => self.add_class(qdisc, minor, command, parent),
        }
    }

    fn add_class(
        &mut self,
        id_of: Id,
        minor: u16,
        command: &Command,
        parent: Option<(u16, u16)>,
    ) -> Result<()> {
        let qdisc = &self.qdiscs[&id_of];
        let kind = qdisc.line.kind.name;
        if minor == 0 {
            return Err(Error::new("is required, like classid 1:10").at("classid"));
        }
        let line = command.line.clone();
        let line = line.ok_or_else(|| Error::new(format!("there is no {kind} with its words")))?;
        if line.kind.name != kind {
            let text = format!(
                "{} is a class of {kind}, not of {}",
                id((qdisc.handle, minor)),
                line.kind.name
            );
            return Err(Error::new(text));
        }
        let above = parent.map(|parent| parent.1).filter(|minor| *minor != 0);
        let above = match kind {
            "hfsc" if matches!(command.place, Some(Place::Root)) => {
                let text = "a class of hfsc is below the qdisc: write parent 1: in place of root";
                return Err(Error::new(text));
            }
            "hfsc" if above.is_some_and(|above| qdisc.class(above).is_none()) => {
                return Err(self.no_class(qdisc.handle, above.unwrap_or(0)));
            }
            // The kernel takes a class of htb without a known parent as one of the qdisc.
            "htb" => above.filter(|above| qdisc.class(*above).is_some()),
            "hfsc" => above,
            _ => None,
        };
        let line = line.completed(Form::Command)?;
        if kind == "hfsc" && ["rt", "ls", "sc"].iter().all(|word| line.given(word).is_none()) {
            return Err(Error::new("requires rt, ls or sc: write ls m2 5mbit").at("hfsc"));
        }
        if kind == "htb" && levels(qdisc, above) >= DEPTH {
            return Err(Error::new(format!("htb has up to {DEPTH} levels of classes")));
        }
        check_weights(qdisc, minor, &line)?;
        let qdisc = self.qdiscs.get_mut(&id_of).expect("the qdisc exists");
        let first = above.is_some_and(|above| !qdisc.is_inner(above));
        // A class of hfsc that gets a class below it also needs a share of the link.
        if kind == "hfsc"
            && let Some(class) = qdisc.classes.iter_mut().find(|c| Some(c.minor) == above)
            && let Some(curve) = class.line.given("rt").cloned()
            && class.line.given("ls").is_none()
        {
            class.line.unset("rt");
            class.line.set("sc", curve);
        }
        qdisc.classes.push(Class { minor, parent: above, line });
        // A class of htb that gets a class below it loses its queue.
        if kind == "htb"
            && first
            && let Some(leaf) = above.and_then(|above| qdisc.leaves.remove(&above))
        {
            self.release(leaf);
        }
        Ok(())
    }

    fn change_class(
        &mut self,
        id_of: Id,
        minor: u16,
        parent: Option<(u16, u16)>,
        command: &Command,
    ) -> Result<()> {
        let qdisc = self.qdiscs.get_mut(&id_of).expect("the qdisc exists");
        let (handle, kind) = (qdisc.handle, qdisc.line.kind.name);
        let Some(class) = qdisc.classes.iter_mut().find(|class| class.minor == minor) else {
            return Ok(());
        };
        if kind == "hfsc" && command.place.is_some() {
            let above = parent.map(|parent| parent.1).filter(|minor| *minor != 0);
            if above != class.parent || matches!(command.place, Some(Place::Root)) {
                let text = format!("class {} has another parent", id((handle, minor)));
                return Err(Error::new(text));
            }
        }
        let Some(line) = &command.line else {
            return Err(Error::new(format!("there is no {kind} with its words")));
        };
        if line.kind.name != kind {
            return Err(Error::new(format!("{} is a class of {kind}", id((handle, minor)))));
        }
        let line = class.line.changed(line.clone())?;
        check_weights(&self.qdiscs[&id_of], minor, &line)?;
        let qdisc = self.qdiscs.get_mut(&id_of).expect("the qdisc exists");
        if let Some(class) = qdisc.classes.iter_mut().find(|class| class.minor == minor) {
            class.line = line;
        }
        Ok(())
    }

    fn delete_class(&mut self, id_of: Id, minor: u16) -> Result<()> {
        let qdisc = self.qdiscs.get_mut(&id_of).expect("the qdisc exists");
        let name = id((qdisc.handle, minor));
        if qdisc.class(minor).is_none() {
            return Err(Error::new(format!("there is no class {name}")));
        }
        if qdisc.is_inner(minor) {
            return Err(Error::new(format!("class {name} has classes below it")));
        }
        qdisc.classes.retain(|class| class.minor != minor);
        if let Some(leaf) = qdisc.leaves.remove(&minor) {
            self.release(leaf);
        }
        Ok(())
    }

    /// Sets the quantum of a band of ets. Without a quantum, Linux changes nothing.
    fn band_of_ets(&mut self, id_of: Id, minor: u16, command: &Command) -> Result<()> {
        let qdisc = self.qdiscs.get_mut(&id_of).expect("the qdisc exists");
        let class = command.line.as_ref().filter(|line| line.kind.name == "ets");
        if class.is_some_and(|line| line.given("quantum").is_none()) {
            return Ok(());
        }
        let quantum = class.map_or(0, |line| line.whole("quantum"));
        super::kinds::flows::set_quantum(&mut qdisc.line, minor, quantum)
    }
}

/// Checks the sum of the weights of the classes of qfq, of which class `minor` becomes `line`.
fn check_weights(qdisc: &Qdisc, minor: u16, line: &Line) -> Result<()> {
    if line.kind.name != "qfq" {
        return Ok(());
    }
    let others = qdisc.classes.iter().filter(|class| class.minor != minor);
    let sum = others.map(|class| class.line.whole("weight")).sum::<u64>() + line.whole("weight");
    if sum > WEIGHTS {
        let text = format!("the weights of all classes are {sum}; they are at most {WEIGHTS}");
        return Err(Error::new(text).at("weight").at("qfq"));
    }
    Ok(())
}

/// Number of classes from `class` up to the qdisc.
fn levels(qdisc: &Qdisc, mut class: Option<u16>) -> usize {
    let mut levels = 0;
    while let Some(minor) = class {
        levels += 1;
        class = qdisc.class(minor).and_then(|class| class.parent);
    }
    levels
}
