//! Whole commands, `tc qdisc add dev eth0 root fq_codel`, and lines of `tc qdisc show`.

use super::line::{Form, parse_class};
use super::table::Line;
use super::units;
use crate::error::{Error, Result};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Major and minor number of a qdisc or class.
pub type Handle = (u16, u16);

/// Action of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Adds, or replaces.
    Add,
    /// Changes the words that are given.
    Change,
    /// Deletes.
    Delete,
}

/// Command of tc for a qdisc or a class.
#[derive(Clone, Debug)]
pub struct Command {
    /// Action.
    pub verb: Verb,
    /// Device; empty if none is named.
    pub dev: String,
    /// Class that it is attached to; none for the root.
    pub parent: Option<Handle>,
    /// Handle of the qdisc, or identifier of the class.
    pub handle: Option<Handle>,
    /// True for a class.
    pub is_class: bool,
    /// Qdisc or class; none if the command names none.
    pub line: Option<Line>,
}

/// Splits a script into commands: at ends of lines, `;`, `&&` and `||`. Comments are removed, and
/// lines that end in a backslash are joined. Returns each command with its line number.
pub fn statements(script: &str) -> Vec<(usize, String)> {
    let mut statements: Vec<(usize, String)> = Vec::new();
    let mut joins = false;
    for (i, raw) in script.lines().enumerate() {
        let raw = raw.trim_end_matches('\r');
        let text = raw.split(" #").next().unwrap_or(raw);
        let text = if text.trim_start().starts_with('#') { "" } else { text };
        let (text, more) = match text.strip_suffix('\\') {
            Some(text) => (text, true),
            None => (text, false),
        };
        for (k, part) in text.replace("&&", ";").replace("||", ";").split(';').enumerate() {
            match statements.last_mut().filter(|_| joins && k == 0) {
                Some((_, before)) => *before = format!("{before} {part}"),
                None => statements.push((i + 1, part.to_string())),
            }
        }
        joins = more;
    }
    statements.retain(|(_, text)| !text.trim().is_empty());
    statements
}

/// Reads one command, or one line of `tc qdisc show`. Returns none if it concerns neither a qdisc
/// nor a class: filters, other programs, statistics.
///
/// # Errors
/// A command that tc would refuse.
pub fn parse(text: &str) -> Result<Option<Command>> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    // `2>/dev/null`, `> file`, `| grep x`
    let redirected = |w: &&str| w.contains('>') || *w == "|" || *w == "&";
    if let Some(end) = words.iter().position(redirected) {
        words.truncate(end);
    }
    let is_tc = |w: &&str| {
        let name = w.rsplit('/').next().unwrap_or(w).trim_matches('"');
        matches!(name, "tc" | "$TC" | "${TC}" | "$tc" | "tc_d")
    };
    let start = match words.iter().position(is_tc) {
        Some(at) => at + 1,
        None if matches!(words.first(), Some(&("qdisc" | "class"))) => 0,
        None => return Ok(None),
    };
    let words: Vec<&str> =
        words[start..].iter().copied().skip_while(|w| w.starts_with('-')).collect();
    let (object, rest) = match words.split_first() {
        Some((object, rest)) => (*object, rest),
        None => return Ok(None),
    };
    let is_class = match object {
        "qdisc" | "qd" | "q" => false,
        "class" | "cl" | "c" => true,
        _ => return Ok(None),
    };
    let verb = match rest.first().copied() {
        Some("add" | "replace" | "link" | "a" | "r") => Verb::Add,
        Some("change" | "c") => Verb::Change,
        Some("del" | "delete" | "d") => Verb::Delete,
        Some("show" | "list" | "ls" | "lst" | "get" | "help" | "s") | None => return Ok(None),
        Some(_) => return shown(is_class, rest).map(Some),
    };
    if let Some(word) = rest.iter().find(|w| w.contains('$') || w.contains('`')) {
        // The device may be a variable: its name does not matter.
        let device =
            rest.iter().position(|w| *w == "dev").is_some_and(|i| rest.get(i + 1) == Some(word));
        if !device {
            return Err(Error::new(format!(
                "{word:?} is a variable of the shell: write its value"
            )));
        }
    }
    command(verb, is_class, &rest[1..]).map(Some)
}

/// Takes the word after a keyword.
fn value<'a>(words: &mut core::slice::Iter<'_, &'a str>, key: &str) -> Result<&'a str> {
    words.next().copied().ok_or_else(|| Error::new("has no value").at(key))
}

/// Reads what follows the verb.
fn command(verb: Verb, is_class: bool, rest: &[&str]) -> Result<Command> {
    let mut command =
        Command { verb, dev: String::new(), parent: None, handle: None, is_class, line: None };
    let mut words = rest.iter();
    while let Some(&word) = words.next() {
        let at = |e: Error| e.at(word);
        match word {
            "dev" => command.dev = value(&mut words, word)?.trim_matches(['"', '\'']).to_string(),
            "root" => command.parent = None,
            "parent" => command.parent = Some(units::handle(value(&mut words, word)?).map_err(at)?),
            "handle" | "classid" => {
                command.handle = Some(units::handle(value(&mut words, word)?).map_err(at)?);
            }
            "estimator" => {
                value(&mut words, word)?;
                value(&mut words, word)?;
            }
            "ingress_block" | "egress_block" => {
                value(&mut words, word)?;
            }
            // Size tables change the counted length; they end at the name of the qdisc.
            "stab" => {
                let known = ["overhead", "linklayer", "mtu", "mpu", "tsize"];
                while words.as_slice().first().is_some_and(|w| known.contains(w)) {
                    words.next();
                    value(&mut words, word)?;
                }
            }
            _ => {
                let line = read(is_class, word, words.as_slice(), Form::Command)?;
                command.line = Some(line);
                break;
            }
        }
    }
    if command.dev.is_empty() && verb != Verb::Delete {
        return Err(Error::new("there is no device: write dev eth0"));
    }
    if command.line.is_none() && verb == Verb::Add {
        return Err(Error::new("there is no qdisc after the device and its place"));
    }
    Ok(command)
}

fn read(is_class: bool, name: &str, words: &[&str], form: Form) -> Result<Line> {
    if is_class { parse_class(name, words, form) } else { Line::parse_words(name, words, form) }
}

/// Reads a line of `tc qdisc show` or `tc class show`, from the name of the qdisc on.
fn shown(is_class: bool, rest: &[&str]) -> Result<Command> {
    let (kind, rest) = (rest[0], &rest[1..]);
    let mut command = Command {
        verb: Verb::Add,
        dev: String::new(),
        parent: None,
        handle: None,
        is_class,
        line: None,
    };
    let mut words = rest.iter();
    command.handle = words.next().and_then(|w| units::handle(w).ok());
    if command.handle.is_none() {
        let verbs = ["add", "change", "replace", "del", "show"];
        return Err(Error::unknown("command", kind, verbs));
    }
    loop {
        let after = words.clone();
        match words.next().copied() {
            Some("dev") => command.dev = value(&mut words, "dev")?.to_string(),
            Some("parent") => command.parent = units::handle(value(&mut words, "parent")?).ok(),
            Some("leaf" | "refcnt") => drop(value(&mut words, "refcnt")?),
            Some("root" | "offloaded" | "[Unknown") => {}
            _ => {
                words = after;
                break;
            }
        }
    }
    let line = read(is_class, kind, words.as_slice(), Form::Shown)?;
    command.line = Some(line);
    Ok(command)
}
