//! Reading of a qdisc: `fq_codel limit 1000 target 5ms`.

use super::kinds::{self, CLASSES, KINDS};
use super::table::{Arg, Becomes, Change, Kind, Line, Unit, Word};
use crate::error::{Error, Result};
use crate::registry;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Origin of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Arguments of a command.
    Command,
    /// Output of `tc qdisc show`, which also has units that no command takes.
    Shown,
}

impl Line {
    /// Reads the name of a qdisc and its words, as they follow `tc qdisc add dev eth0 root`.
    ///
    /// # Errors
    /// An unknown qdisc or word, or a value that tc would refuse; the path is `QDISC.WORD`.
    pub fn parse(text: &str, form: Form) -> Result<Line> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let name = words.first().ok_or_else(|| Error::new("there is no qdisc"))?;
        Line::parse_words(name, &words[1..], form)
    }

    /// As [`Line::parse`], for words that are already split.
    ///
    /// # Errors
    /// As [`Line::parse`].
    pub fn parse_words(name: &str, words: &[&str], form: Form) -> Result<Line> {
        Line::read(name, words, form)?.completed(form)
    }

    /// Reads the words of a qdisc, without those that tc computes from them.
    ///
    /// # Errors
    /// An unknown qdisc or word, or a value that tc would refuse.
    pub fn read(name: &str, words: &[&str], form: Form) -> Result<Line> {
        let kind = find(name)?;
        let mut line = Line::new(kind);
        if let (Becomes::Nothing(_), []) = (kind.becomes, kind.words) {
            line.unread = words.join(" ");
            return Ok(line);
        }
        line.read_all(words, form)
    }

    /// Reads the words of a class, `htb rate 20mbit`, as [`Line::read`].
    ///
    /// # Errors
    /// A qdisc that has no classes here, or as [`Line::read`].
    pub fn read_class(name: &str, words: &[&str], form: Form) -> Result<Line> {
        let kind = CLASSES.iter().copied().find(|kind| kind.name == name);
        let Some(kind) = kind else {
            let absent = KINDS.iter().find(|kind| kind.name == name);
            if let Some(Kind { becomes: Becomes::Nothing(why), .. }) = absent {
                return Err(Error::new(format!("{name} {why}")));
            }
            return Err(Error::unknown("class", name, CLASSES.iter().map(|kind| kind.name)));
        };
        Line::new(kind).read_all(words, form)
    }

    /// True if the qdisc called `name` has classes with words.
    pub fn has_classes(name: &str) -> bool {
        CLASSES.iter().any(|kind| kind.name == name)
    }

    fn read_all(mut self, words: &[&str], form: Form) -> Result<Line> {
        let shown;
        let mut rest = words;
        let text: Vec<&str>;
        if form == Form::Shown {
            shown = (self.kind.rules.shown)(words);
            text = shown.iter().map(String::as_str).collect();
            rest = &text;
        }
        while !rest.is_empty() {
            let used = self.read_word(rest, form).map_err(|e| e.at(self.kind.name))?;
            rest = &rest[used..];
        }
        Ok(self)
    }

    /// Completes the line as tc and the kernel do, and checks words that depend on each other.
    ///
    /// # Errors
    /// Words that tc or the kernel would refuse.
    pub fn completed(self, form: Form) -> Result<Line> {
        if form == Form::Command {
            (self.kind.rules.check)(&self).map_err(|e| e.at(self.kind.name))?;
        }
        self.finished(form)
    }

    fn finished(mut self, form: Form) -> Result<Line> {
        if form == Form::Shown {
            // The output names ecn if it is on, and nothing if it is off.
            for (word, arg) in self.kind.words.iter().zip(&mut self.args) {
                let off = match word.unit {
                    Unit::Choice(choices) => choices.iter().find(|(w, _)| *w == "noecn"),
                    _ => None,
                };
                *arg = arg.take().or(off.map(|(w, _)| Arg::Word(w)));
            }
        }
        (self.kind.rules.complete)(&mut self).map_err(|e| e.at(self.kind.name))?;
        Ok(self)
    }

    /// The line after a change to the words of `new`, as the kernel keeps the others.
    ///
    /// # Errors
    /// A change that tc or the kernel would refuse.
    pub fn changed(&self, new: Line) -> Result<Line> {
        let name = self.kind.name;
        let reset: &[&str] = match self.kind.rules.change {
            Change::Refused => {
                let text = "cannot be changed while it runs: delete it first";
                return Err(Error::new(text).at(name));
            }
            Change::All => return new.completed(Form::Command),
            Change::Named(reset, fixed) => {
                if let Some(word) = fixed.iter().find(|word| new.given(word).is_some()) {
                    let text = "cannot be changed while it runs: delete the qdisc first";
                    return Err(Error::new(text).at(word).at(name));
                }
                reset
            }
        };
        (self.kind.rules.check)(&new).map_err(|e| e.at(name))?;
        let new = (self.kind.rules.merge)(self, new).map_err(|e| e.at(name))?;
        let words = self.kind.words.iter().zip(&new.args).filter(|(_, arg)| arg.is_some());
        let named: Vec<&str> = words.map(|(word, _)| word.name).collect();
        let mut line = Line { kind: self.kind, ..new };
        for ((word, arg), old) in self.kind.words.iter().zip(&mut line.args).zip(&self.args) {
            let ended = |by: &&str| self.kind.ended_by(by).contains(&word.name);
            let replaced = named.iter().any(ended);
            if arg.is_none() && !reset.contains(&word.name) && !replaced {
                arg.clone_from(old);
            }
        }
        line.finished(Form::Command)
    }

    /// Reads one word with its argument; returns how many words of `rest` it takes.
    fn read_word(&mut self, rest: &[&str], form: Form) -> Result<usize> {
        let (index, taken) = self.find_word(rest, form)?;
        let word = &self.kind.words[index];
        if self.kind.rules.once && form == Form::Command && self.args[index].is_some() {
            return Err(Error::new("is given twice").at(word.name));
        }
        for other in self.kind.ended_by(word.name) {
            self.unset(other);
        }
        if let Unit::Choice(_) = word.unit {
            let (arg, used) = word.unit.read(rest)?;
            self.args[index] = Some(arg);
            return Ok(used);
        }
        if let Unit::Words(known) = word.unit {
            let arguments = known.iter().find(|(w, _)| *w == rest[0]).map_or(0, |(_, n)| *n);
            let used = 1 + arguments;
            let words = rest.get(..used).ok_or_else(|| Error::new("has no value").at(rest[0]))?;
            let before = match self.args[index].take() {
                Some(Arg::Text(before)) => before + " ",
                _ => String::new(),
            };
            self.args[index] = Some(Arg::Text(before + &words.join(" ")));
            return Ok(used);
        }
        let values = &rest[taken..];
        let shown: Vec<&str>;
        let values = if form == Form::Shown {
            shown = values.iter().map(|v| without_shown_unit(word.unit, v)).collect();
            &shown
        } else {
            values
        };
        // The output has units where the command takes milliseconds without one.
        let unit = match (word.unit, form) {
            (Unit::Millis, Form::Shown) => Unit::Time,
            (Unit::PlainBytes, Form::Shown) => Unit::Bytes,
            (unit, _) => unit,
        };
        let (arg, used) = unit.read(values).map_err(|e| e.at(word.name))?;
        word.check(&arg).map_err(|e| e.at(word.name))?;
        self.args[index] = Some(arg);
        Ok(taken + used)
    }

    /// Index of the word at the start of `rest`, and the number of words that name it.
    fn find_word(&self, rest: &[&str], form: Form) -> Result<(usize, usize)> {
        let two = rest.get(1).map(|second| format!("{} {second}", rest[0]));
        for (name, taken) in [(two.as_deref(), 2), (Some(rest[0]), 1)] {
            let called = |w: &Word| {
                name.is_some_and(|name| w.is_called(name))
                    && (form == Form::Shown || !w.output_only)
            };
            if let Some(index) = self.kind.words.iter().position(called) {
                return Ok((index, taken));
            }
        }
        // tc reads abbreviations of some qdiscs: the first word in the order of its source.
        let starts = |w: &Word| !w.output_only && w.begins_with(rest[0]);
        if self.kind.rules.abbreviates
            && let Some(index) = self.kind.words.iter().position(starts)
        {
            return Ok((index, 1));
        }
        Err(self.unknown(rest[0]))
    }

    fn unknown(&self, word: &str) -> Error {
        let names = words_of(self.kind);
        // tc accepts abbreviations in some places only; a full word is clearer everywhere.
        let mut starts = names.iter().filter(|name| name.starts_with(word));
        match (starts.next(), starts.next()) {
            (Some(whole), None) => {
                Error::new(format!("{word:?} is abbreviated, write {whole:?} in full"))
            }
            _ if names.is_empty() => Error::new(format!("unknown word {word:?}; it takes none")),
            _ => Error::unknown("word", word, names),
        }
    }
}

/// Words of `kind` as they are written.
pub fn words_of(kind: &'static Kind) -> Vec<&'static str> {
    let mut names = Vec::new();
    for word in kind.words.iter().filter(|word| !word.output_only) {
        match word.unit {
            Unit::Choice(choices) => {
                names.extend(choices.iter().map(|(w, _)| *w).filter(|w| !w.is_empty()));
            }
            Unit::Words(words) => names.extend(words.iter().map(|(w, _)| *w)),
            _ => names.push(word.name),
        }
    }
    names
}

/// Words of the qdisc called `name` as they are written; none if there is no such qdisc.
pub fn words_of_name(name: &str) -> Vec<&'static str> {
    find(name).map(words_of).unwrap_or_default()
}

/// Returns the qdisc called `name`.
///
/// # Errors
/// An unknown name; the message suggests the nearest.
pub fn find(name: &str) -> Result<&'static Kind> {
    if let Some(kind) = KINDS.iter().copied().find(|kind| kind.name == name) {
        return Ok(kind);
    }
    // Two kinds have the name red.
    let known = KINDS.iter().map(|kind| kind.name).filter(|name| *name != "red");
    let known = known.chain(["red"]);
    if registry::TC_COMMANDS.contains(&name) {
        return Err(Error::new(format!("{name:?} {}", registry::NOT_A_COMMAND)));
    }
    let folded = name.to_lowercase().replace('-', "_");
    let native = kinds::NATIVE.iter().find(|(ours, _)| *ours == folded);
    match native {
        Some((ours, tc)) => {
            Err(Error::new(format!("{name:?} is sojourn's name, in tc it is {tc:?}")).at(ours))
        }
        None if !known.clone().any(|one| one == folded)
            && crate::registry::find(name).is_ok_and(|entry| entry.name == folded) =>
        {
            let text = format!("{name:?} is a discipline of sojourn, but no qdisc of Linux");
            Err(Error::new(format!("{text}; write it without \"tc:\"")))
        }
        None => Err(Error::unknown("qdisc", name, known)),
    }
}

impl Kind {
    /// Words whose effect the word `name` ends.
    fn ended_by(&self, name: &str) -> &'static [&'static str] {
        self.rules.ends.iter().find(|(by, _)| *by == name).map_or(&[], |(_, ended)| *ended)
    }
}

impl Word {
    /// True if the word, or a word of its choice, is written as `name`.
    fn is_called(&self, name: &str) -> bool {
        match self.unit {
            Unit::Choice(choices) => choices.iter().any(|(w, _)| *w == name && !w.is_empty()),
            Unit::Words(words) => words.iter().any(|(w, _)| *w == name),
            _ => self.name == name || self.also.contains(&name),
        }
    }

    /// True if `start` abbreviates the word.
    fn begins_with(&self, start: &str) -> bool {
        let choices: Vec<&str> = match self.unit {
            Unit::Choice(choices) => choices.iter().map(|(w, _)| *w).collect(),
            _ => [self.name].into_iter().chain(self.also.iter().copied()).collect(),
        };
        !start.is_empty() && choices.iter().any(|w| w.starts_with(start))
    }

    /// Checks that a whole quantity is in the range of the word.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self, arg: &Arg) -> Result<()> {
        let (Some((least, most)), Arg::Whole(n)) = (self.range, arg) else { return Ok(()) };
        if (least..=most).contains(n) {
            return Ok(());
        }
        let write = |n| self.unit.write(&Arg::Whole(n));
        let (n, least, most) = (write(*n), write(least), write(most));
        Err(Error::new(format!("{n} is out of range, allowed: {least} to {most}")))
    }
}

/// Removes the unit that `tc qdisc show` adds, and that the command does not take.
fn without_shown_unit(unit: Unit, word: &str) -> &str {
    let suffixes: &[&str] = match unit {
        Unit::Packets | Unit::Integer | Unit::Count => &["pps", "p"],
        Unit::Seconds => &["sec", "s"],
        Unit::Hundredths => &["%"],
        _ => return word,
    };
    // sfq shows active and hashed flows, `128/1024`.
    let word = if unit == Unit::Integer { word.split('/').next().unwrap_or(word) } else { word };
    let digits = |w: &&str| w.ends_with(|c: char| c.is_ascii_digit());
    suffixes.iter().find_map(|s| word.strip_suffix(s)).filter(digits).unwrap_or(word)
}

/// Returns `text` without `tc:` at its start, if it has that.
pub fn without_prefix(text: &str) -> Option<&str> {
    let (prefix, rest) = text.trim_start().split_once(':')?;
    prefix.trim_end().eq_ignore_ascii_case("tc").then(|| rest.trim())
}
