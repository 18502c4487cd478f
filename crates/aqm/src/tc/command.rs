//! Whole commands: `tc -n NS qdisc add dev eth0 root fq_codel`.

use super::line::Form;
use super::output::{self, Shown};
use super::place::place;
pub use super::place::{Handle, Object, Place, Site};
use super::prefix::after_tc;
use super::script::Statement;
use super::table::Line;
use super::units;
use crate::error::{Error, Result};
use crate::units::Rate;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Action of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Creates; refused if it exists.
    Add,
    /// Changes the words that are given; refused if it does not exist.
    Change,
    /// Changes, or creates if it does not exist or is of another kind.
    Replace,
    /// Changes an existing qdisc.
    Link,
    /// Deletes.
    Delete,
}

/// Command of tc for a qdisc, a class or a filter.
#[derive(Clone, Debug)]
pub struct Command {
    /// Device.
    pub site: Site,
    /// Action.
    pub verb: Verb,
    /// Object.
    pub object: Object,
    /// Place, if named.
    pub place: Option<Place>,
    /// Handle of the qdisc, with minor number 0, or identifier of the class.
    pub handle: Option<Handle>,
    /// Qdisc or class with the words that are given; none if the command names none.
    pub line: Option<Line>,
    /// True if words follow the name of the qdisc.
    pub has_words: bool,
    /// Size table, `stab` with its words.
    pub stab: Option<String>,
    /// Other words without a counterpart; for a filter all of its words.
    pub other: Vec<String>,
}

/// Meaning of a statement.
#[derive(Clone, Debug)]
pub enum Item {
    /// A command.
    Command(Command),
    /// A line of output.
    Shown(Shown),
    /// A command of tc that is not modelled.
    Lost(String),
    /// Nothing that concerns queues.
    Nothing,
}

/// Reads one statement. `speed` is the rate of which `rate 10%` is a share.
///
/// # Errors
/// A command that tc would refuse.
pub fn parse(statement: &Statement, speed: Option<Rate>) -> Result<Item> {
    let words: Vec<&str> = statement.words.iter().map(String::as_str).collect();
    // The output of mqprio and taprio has a word tc.
    if let Some(&("qdisc" | "class" | "filter")) = words.first() {
        return object("", &words, speed);
    }
    let Some((space, mut rest)) = after_tc(&words) else {
        let of_queue = ["flowid", "classid", "qdisc", "parent", "police"];
        if words.first().is_some_and(|word| word.starts_with('$'))
            && words.iter().any(|word| of_queue.contains(word))
        {
            let text =
                "write the command in place of the variable, or import the output of bash -x";
            return Ok(Item::Lost(format!("{}: {text}", statement.text())));
        }
        return match words.first() {
            Some(_) => Ok(output::continuation(&words).map_or(Item::Nothing, Item::Shown)),
            None => Ok(Item::Nothing),
        };
    };
    let mut space = space;
    while let Some(option) = rest.first().and_then(|w| w.strip_prefix('-')) {
        let option = option.trim_start_matches('-');
        rest = &rest[1..];
        let takes = |name: &str| !option.is_empty() && name.starts_with(option);
        if takes("netns") {
            let (name, after) = rest.split_first().ok_or_else(|| no_value("-netns"))?;
            (space, rest) = (name.to_string(), after);
        } else if takes("batch") && statement.here {
            return Ok(Item::Nothing); // the commands follow
        } else if takes("batch") {
            let file = rest.first().copied().unwrap_or("-");
            return Ok(Item::Lost(format!("tc -batch {file}: import the commands of that file")));
        } else if takes("conf") && option.len() > 1 {
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    object(&space, rest, speed)
}

fn no_value(key: &str) -> Error {
    Error::new("has no value").at(key)
}

/// Reads the words from the object on.
fn object(space: &str, words: &[&str], speed: Option<Rate>) -> Result<Item> {
    let Some((name, rest)) = words.split_first() else { return Ok(Item::Nothing) };
    let starts = |whole: &str| !name.is_empty() && whole.starts_with(name);
    let object = match *name {
        _ if starts("qdisc") => Object::Qdisc,
        _ if starts("class") => Object::Class,
        _ if starts("filter") => Object::Filter,
        "actions" | "action" | "chain" => {
            return Ok(Item::Lost(format!("{}: sojourn has no actions", words.join(" "))));
        }
        _ => return Ok(Item::Nothing),
    };
    let Some((word, rest)) = rest.split_first() else { return Ok(Item::Nothing) };
    if let Some(shown) = output::line(object, word, rest)? {
        return Ok(Item::Shown(Shown {
            site: Site { space: space.into(), ..shown.site },
            ..shown
        }));
    }
    let verbs = [
        ("add", Some(Verb::Add)),
        ("change", Some(Verb::Change)),
        ("replace", Some(Verb::Replace)),
        ("link", Some(Verb::Link)),
        ("delete", Some(Verb::Delete)),
        ("get", None),
        ("list", None),
        ("show", None),
        ("lst", None),
        ("help", None),
    ];
    let verb = match verbs.iter().find(|(name, _)| !word.is_empty() && name.starts_with(word)) {
        Some((_, Some(verb))) => *verb,
        Some((_, None)) => return Ok(Item::Nothing),
        None => {
            let names = verbs.iter().map(|(name, _)| *name);
            return Err(Error::unknown("command", word, names));
        }
    };
    without_variables(rest)?;
    let site = Site { space: space.to_string(), dev: String::new() };
    let mut command = Command {
        site,
        verb,
        object,
        place: None,
        handle: None,
        line: None,
        has_words: false,
        stab: None,
        other: Vec::new(),
    };
    let rest = shares(rest, speed)?;
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    match object {
        Object::Filter => filter(&mut command, &rest)?,
        _ => qdisc_or_class(&mut command, &rest)?,
    }
    if command.site.dev.is_empty() {
        return Err(Error::new("there is no device: write dev eth0"));
    }
    if command.site.dev.starts_with('$') {
        command.site.dev = command.site.dev.trim_matches(['$', '{', '}']).to_string();
    }
    Ok(Item::Command(command))
}

/// Returns an error for a variable of the shell, except as the name of the device.
fn without_variables(words: &[&str]) -> Result<()> {
    for (i, word) in words.iter().enumerate() {
        let device = i > 0 && words[i - 1] == "dev" && !word.contains(['(', '`']);
        if word.contains(['$', '`']) && !device {
            let text = format!("{word:?} is a variable of the shell: write its value");
            return Err(Error::new(format!("{text}, or import the output of bash -x SCRIPT")));
        }
    }
    Ok(())
}

/// Replaces rates like `10%` by that share of `speed`.
fn shares(words: &[&str], speed: Option<Rate>) -> Result<Vec<String>> {
    let keys = ["rate", "ceil", "peakrate", "bandwidth", "maxrate", "m1", "m2"];
    let mut out: Vec<String> = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let rate = i > 0 && keys.contains(&words[i - 1]) && word.ends_with('%');
        match (rate, speed) {
            (false, _) => out.push((*word).to_string()),
            (true, Some(speed)) => {
                let share = units::percent(word).map_err(|e| e.at(words[i - 1]))?;
                let bits = crate::cast::trunc(share * speed.0 as f64);
                out.push(format!("{bits}bit"));
            }
            (true, None) => {
                let text = format!("{word} is a share of the speed of the device");
                return Err(Error::new(format!("{text}: give it with --rate")).at(words[i - 1]));
            }
        }
    }
    Ok(out)
}

/// Takes the word after a keyword.
fn value<'a>(words: &mut core::slice::Iter<'_, &'a str>, key: &str) -> Result<&'a str> {
    words.next().copied().ok_or_else(|| no_value(key))
}

impl Command {
    fn set_place(&mut self, place: Option<Place>) -> Result<()> {
        if self.place.is_some() {
            return Err(Error::new("there are two places: write root or a parent, not both"));
        }
        self.place = place;
        Ok(())
    }
}

/// Reads what follows the verb of a qdisc or class.
fn qdisc_or_class(command: &mut Command, rest: &[&str]) -> Result<()> {
    let is_class = command.object == Object::Class;
    let mut words = rest.iter();
    while let Some(&word) = words.next() {
        let at = |e: Error| e.at(word);
        match word {
            "dev" => command.site.dev = value(&mut words, word)?.to_string(),
            "root" => command.set_place(Some(Place::Root))?,
            "parent" => {
                let place = place(value(&mut words, word)?).map_err(at)?;
                command.set_place(place)?;
            }
            "classid" if is_class => {
                let id = units::class_id(value(&mut words, word)?).map_err(at)?;
                command.handle = Some(id).filter(|id| *id != (0, 0));
            }
            "handle" if is_class => {
                return Err(Error::new("a class has a classid: write classid").at(word));
            }
            "handle" => {
                let text = value(&mut words, word)?;
                let major = if text == "none" { 0 } else { units::handle(text).map_err(at)? };
                command.handle = Some((major, 0)).filter(|_| major != 0);
            }
            "ingress" | "clsact" if !is_class => {
                command.set_place(Some(Place::Ingress))?;
                command.handle = Some((0xffff, 0));
                command.line = Some(Line::read(word, &[], Form::Command)?);
                if let Some(extra) = words.next() {
                    return Err(Error::new(format!("unknown word {extra:?}; it takes none")));
                }
            }
            "ingress_block" | "egress_block" if !is_class => {
                let block = value(&mut words, word)?;
                command.other.push(format!("{word} {block}: sojourn has no shared filters"));
            }
            _ if "estimator".starts_with(word) => {
                let times = [value(&mut words, word)?, value(&mut words, word)?];
                for time in times {
                    units::time(time).map_err(at)?; // statistics only
                }
            }
            _ if !is_class && "stab".starts_with(word) => command.read_stab(&mut words)?,
            _ => {
                command.line = Some(if is_class {
                    Line::read_class(word, words.as_slice(), Form::Command)?
                } else {
                    Line::read(word, words.as_slice(), Form::Command)?
                });
                command.has_words = !words.as_slice().is_empty();
                break;
            }
        }
    }
    let named = command.line.is_some() || is_class;
    if !named && matches!(command.verb, Verb::Add | Verb::Replace) && command.handle.is_none() {
        return Err(Error::new("there is no qdisc after the device and its place"));
    }
    Ok(())
}

impl Command {
    /// Reads the words of a size table, which end at the name of the qdisc.
    fn read_stab(&mut self, words: &mut core::slice::Iter<'_, &str>) -> Result<()> {
        let known = ["overhead", "linklayer", "mtu", "mpu", "tsize"];
        let mut stab = String::from("stab");
        while let Some(word) = words.as_slice().first().filter(|w| known.contains(w)) {
            words.next();
            stab += &format!(" {word} {}", value(words, word)?);
        }
        self.stab = Some(stab);
        Ok(())
    }
}

/// Words of every filter that have a value.
const OF_FILTERS: [&str; 9] =
    ["protocol", "prio", "pref", "preference", "priority", "handle", "chain", "block", "estimator"];

/// Reads what follows the verb of a filter: its place, anywhere before its kind.
fn filter(command: &mut Command, rest: &[&str]) -> Result<()> {
    let mut words = rest.iter();
    while let Some(&word) = words.next() {
        match word {
            "dev" => command.site.dev = value(&mut words, word)?.to_string(),
            "root" => command.place = Some(Place::Root),
            "ingress" | "egress" => {
                command.place = Some(Place::Ingress);
                command.other.insert(0, word.to_string());
            }
            "parent" => {
                let text = value(&mut words, word)?;
                command.place = place(text).map_err(|e| e.at(word))?;
            }
            _ if OF_FILTERS.contains(&word) => {
                command.other.push(word.to_string());
                command.other.push(value(&mut words, word)?.to_string());
            }
            _ => {
                command.other.push(word.to_string());
                command.other.extend(words.map(|w| (*w).to_string()));
                break;
            }
        }
    }
    Ok(())
}
