//! A script or an output of tc as devices with their trees, and as links.

use super::command::{Command, Handle, Item, Object, Place, Verb};
use super::convert::Discipline;
use super::device::{Device, Filter};
use super::imported_link::ImportedLink;
use super::kernel::Handles;
use super::link::links;
use super::output::Shown;
use super::script::{When, statements};
pub use super::state::{Executed, State};
use super::{command, load};
use crate::error::{Error, Result};
use crate::params::Value;
use crate::units::Rate;
use crate::wire::Impairments;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Choices for the execution of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Class that becomes the link, if a device has several.
    pub class: Option<Handle>,
    /// True to accept a qdisc whose parent is not in the text, as the first one of a device.
    pub parts: bool,
    /// Speed of the devices, of which `rate 10%` is a share.
    pub speed: Option<Rate>,
}

/// Executes a script, or reads an output of tc.
///
/// # Errors
/// Lines of an output that contradict each other.
pub fn run(script: &str, options: &Options) -> Result<State> {
    let mut state = State::default();
    let mut handles = Handles::default();
    let mut shown: Vec<(usize, Shown)> = Vec::new();
    let statements = statements(script);
    let mut before: Option<bool> = None;
    for (i, statement) in statements.iter().enumerate() {
        let skipped = match (statement.when, before) {
            (When::Accepted, Some(accepted)) => !accepted,
            (When::Refused, Some(accepted)) => accepted,
            _ => false,
        };
        if skipped {
            continue;
        }
        let item = command::parse(statement, options.speed);
        before = match item {
            Ok(Item::Command(command)) => {
                let result = state.execute(&command, &mut handles, options.parts);
                let followed = statements.get(i + 1).is_some_and(|next| next.when == When::Refused);
                Some(state.note(statement, result, followed || command.verb == Verb::Delete))
            }
            Ok(Item::Shown(line)) => {
                shown.push((statement.line, line));
                None
            }
            Ok(Item::Lost(text)) => {
                state.lost.push(text);
                None
            }
            Ok(Item::Nothing) => None,
            Err(error) => Some(state.note(statement, Err(error), false)),
        };
    }
    load::load(shown, &mut state)?;
    Ok(state)
}

impl State {
    fn execute(&mut self, command: &Command, handles: &mut Handles, parts: bool) -> Result<()> {
        let device = self.device(&command.site);
        match command.object {
            Object::Qdisc if parts => device.qdisc_of_part(command, handles)?,
            Object::Qdisc => device.qdisc(command, handles)?,
            Object::Class => device.class(command)?,
            Object::Filter => device.filter(command)?,
        }
        if command.object != Object::Filter {
            device.lost.extend(command.other.iter().cloned());
        }
        Ok(())
    }
}

impl Device {
    /// Executes a command for a qdisc. In a part of a script, the place may be unknown.
    fn qdisc_of_part(&mut self, command: &Command, handles: &mut Handles) -> Result<()> {
        match command.place {
            Some(Place::Class(class))
                if self.qdiscs.is_empty() && matches!(command.verb, Verb::Add | Verb::Replace) =>
            {
                let place = super::device::id(class);
                let root = Command { place: Some(Place::Root), ..command.clone() };
                self.qdisc(&root, handles)?;
                self.lost.push(format!("parent {place}: this class is not in the text"));
                Ok(())
            }
            _ => self.qdisc(command, handles),
        }
    }

    /// Adds or deletes a filter.
    fn filter(&mut self, command: &Command) -> Result<()> {
        let place = command.place;
        match command.verb {
            Verb::Delete => {
                let all = command.other.len() < 2;
                let same = |filter: &Filter| {
                    let words = command.other.iter();
                    filter.place == place
                        && (all || words.clone().all(|word| filter.words.contains(word)))
                };
                self.filters.retain(|filter| !same(filter));
                Ok(())
            }
            _ => {
                if let Some(Place::Class((major, _))) = place
                    && !self.qdiscs.is_empty()
                    && major != 0xffff
                    && self.find(major).is_none()
                {
                    return Err(super::kernel::no_qdisc(major));
                }
                self.filters.push(Filter { place, words: command.other.clone() });
                Ok(())
            }
        }
    }
}

/// Reads a script of tc commands, or an output of tc, and returns a link for each device with a
/// queue.
///
/// # Errors
/// A command that tc or the kernel would refuse, with its line number; a qdisc for which there is
/// no discipline; classes of which none was chosen, or a class that does not exist; no command at
/// all.
pub fn import(script: &str, options: &Options) -> Result<Vec<ImportedLink>> {
    let state = run(script, &Options { parts: true, ..*options })?;
    for command in state.commands.iter().filter(|command| !command.forgiven) {
        command.result.clone().map_err(|e| e.at(format!("line {}", command.line)))?;
    }
    let mut links: Vec<ImportedLink> = Vec::new();
    for device in &state.devices {
        let of_device = self::links(device, &state.devices, options.class);
        links.extend(of_device.map_err(|e| e.at(device.site.name()))?);
    }
    let Some(first) = links.first_mut() else {
        let ingress = state.devices.iter().find(|device| device.ingress.is_some());
        return Err(match ingress {
            Some(device) => {
                let text = "has a qdisc at the ingress only, where nothing queues; shape an ifb \
                            device, or give its commands as well";
                Error::new(text).at(device.site.name())
            }
            None => no_qdisc(&state.commands),
        });
    };
    first.lost.extend(state.lost);
    if let Some(class) = options.class
        && !links.iter().any(|link| link.chosen)
    {
        let names: Vec<String> = links.iter().flat_map(|link| link.classes.clone()).collect();
        let name = super::device::id(class);
        return Err(Error::unknown("class", &name, names.iter().map(String::as_str)).at("--class"));
    }
    Ok(links)
}

/// Error for a script after which no device has a qdisc.
fn no_qdisc(commands: &[Executed]) -> Error {
    let deletes = |one: &&Executed| {
        one.result.is_ok() && one.text.split(' ').any(|word| matches!(word, "del" | "delete"))
    };
    match commands.iter().rev().find(deletes) {
        Some(Executed { line, text, .. }) => {
            let text = format!("no qdisc is left after \"{text}\": leave it out");
            Error::new(text).at(format!("line {line}"))
        }
        None => Error::new("there is no qdisc of a device, like tc qdisc add dev eth0 root pie"),
    }
}

/// True if `text` is a script or an output: it names a device.
pub(super) fn is_script(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let starts = words
        .first()
        .is_some_and(|word| matches!(*word, "tc" | "sudo" | "qdisc") || word.ends_with("/tc"));
    starts && words.contains(&"dev")
}

/// Discipline of a script of one device. Its rate, delay and impairments are of a link, so they are
/// named as lost.
///
/// # Errors
/// As [`import`]; or several devices.
pub(super) fn discipline(script: &str) -> Result<Discipline> {
    let mut links = import(script, &Options::default())?;
    let (Some(link), true) = (links.pop(), links.is_empty()) else {
        return Err(Error::new("is a script of several devices: write the lines of one"));
    };
    let no_queue = || Error::new("has no queue; write rate and delay as keys of the link");
    let mut discipline = link.qdisc.ok_or_else(no_queue)?;
    let of_link = [
        ("rate", link.rate.map(|rate| rate.to_string())),
        ("burst", link.burst.map(|burst| burst.to_string())),
        ("delay", link.delay.map(|delay| delay.to_string())),
        ("overhead", link.overhead.map(|overhead| overhead.write())),
    ];
    discipline.lost = link.lost;
    for (key, value) in of_link {
        let note = |value| format!("{key} {value}: write it as {key} of the link");
        discipline.lost.extend(value.map(note));
    }
    if link.impairments != Impairments::default() {
        let text = "netem: write its impairments as keys of the link, as sojourn tc import does";
        discipline.lost.push(text.to_string());
    }
    Ok(discipline)
}
