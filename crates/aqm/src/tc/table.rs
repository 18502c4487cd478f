//! Types of the tables of tc's words, and a qdisc as its words say it.

pub use super::parameters::Params;
use crate::error::{Error, Result};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Kind of argument that a word takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// Number of packets, without a unit.
    Packets,
    /// Number of packets, read like a size: `1k` is 1024 packets.
    Count,
    /// Whole number.
    Integer,
    /// Whole number that may be negative; the argument is its text.
    Signed,
    /// Size in bytes.
    Bytes,
    /// Number of bytes, without a unit.
    PlainBytes,
    /// Time; a bare number is in microseconds.
    Time,
    /// Time; a bare number is in nanoseconds.
    Nanos,
    /// Whole number of milliseconds, without a unit.
    Millis,
    /// Whole number of seconds, without a unit.
    Seconds,
    /// Rate.
    Rate,
    /// Number that is not negative.
    Number,
    /// Probability from 0 to 1.
    Probability,
    /// Percentage; the sign may be omitted.
    Percent,
    /// Whole percentage without a sign.
    Hundredths,
    /// No argument: the word itself is one of these, each with the value of the parameter here. An
    /// empty word means that none is given.
    Choice(&'static [(&'static str, &'static str)]),
    /// List of whole numbers, as many as follow.
    Numbers,
    /// Time, or a number of packets like `5p`.
    Threshold,
    /// Any single word.
    Text,
    /// Any of these words, in any number and order, each with that many arguments. The name of the
    /// word is not written.
    Words(&'static [(&'static str, usize)]),
    /// The first argument, and further ones as long as numbers follow.
    Several(&'static [Unit]),
    /// Service curve of hfsc: rate of the first slope in bit/s, its length in nanoseconds, and rate
    /// of the second slope, as a list.
    Curve,
}

/// Argument of a word; quantities in packets, bytes, bit/s or nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// Whole quantity.
    Whole(u64),
    /// Number, or share of 1.
    Number(f64),
    /// Word of a choice.
    Word(&'static str),
    /// List of whole numbers.
    List(Vec<u64>),
    /// Uninterpreted word.
    Text(String),
    /// Arguments of [`Unit::Several`].
    Several(Vec<Arg>),
}

/// Meaning of a word in this library.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ours {
    /// The parameter of that name.
    To(&'static str),
    /// The parameter of that name, times this factor.
    Scaled(&'static str, f64),
    /// Computed by the functions of the qdisc, together with other words.
    Computed,
    /// No counterpart; the reason.
    Lost(&'static str),
    /// Without effect here.
    Harmless,
}

/// Word of a qdisc.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// Name. For [`Unit::Choice`] it is not written.
    pub name: &'static str,
    /// Other names, also the names in `tc qdisc show`.
    pub also: &'static [&'static str],
    /// Kind of the argument.
    pub unit: Unit,
    /// Value that tc sends or the kernel takes if the word is not given, in tc's notation; empty if
    /// there is none.
    pub default: &'static str,
    /// Smallest and largest whole value that tc and the kernel accept.
    pub range: Option<(u64, u64)>,
    /// Meaning here.
    pub ours: Ours,
    /// True if only `tc qdisc show` has the word.
    pub output_only: bool,
}

impl Word {
    /// Word without range and other names.
    pub const fn new(name: &'static str, unit: Unit, default: &'static str, ours: Ours) -> Word {
        Word { name, also: &[], unit, default, range: None, ours, output_only: false }
    }

    /// The same word, for `tc qdisc show` only.
    pub const fn output_only(self) -> Word {
        Word { output_only: true, ..self }
    }

    /// The same word with other names.
    pub const fn also(self, also: &'static [&'static str]) -> Word {
        Word { also, ..self }
    }

    /// The same word with a range.
    pub const fn within(self, least: u64, most: u64) -> Word {
        Word { range: Some((least, most)), ..self }
    }

    /// Default as an argument, if there is one.
    ///
    /// # Panics
    /// If the table has a default that tc would not read; a test visits all of them.
    pub fn default_arg(&self) -> Option<Arg> {
        if let Unit::Choice(words) = self.unit {
            return words.iter().find(|(w, _)| *w == self.default).map(|(w, _)| Arg::Word(w));
        }
        let words: Vec<&str> = self.default.split_whitespace().collect();
        let read = self.unit.read(&words).map(|(arg, _)| arg);
        (!words.is_empty()).then(|| read.unwrap_or_else(|e| panic!("{}: {e}", self.name)))
    }
}

/// Parameter of a discipline for which tc has no word.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// Parameter.
    pub name: &'static str,
    /// Value that does what Linux does.
    pub linux: &'static str,
    /// Behaviour of Linux.
    pub why: &'static str,
}

/// Counterpart of a qdisc of Linux.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Becomes {
    /// The discipline of that name, if the registry has it.
    Discipline(&'static str),
    /// Rate, delay or loss of a link.
    Link,
    /// Nothing; the reason.
    Nothing(&'static str),
}

/// Effect of a change on the words of a qdisc that it does not name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The qdisc cannot be changed.
    Refused,
    /// tc sends all words: those that are not named return to their defaults.
    All,
    /// They are kept, except these; the words of the second list cannot be changed.
    Named(&'static [&'static str], &'static [&'static str]),
}

/// Functions of a qdisc whose words are not translated one by one.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Parameters here that the functions translate, or that make no difference in Linux.
    pub parameters: &'static [&'static str],
    /// Checks a line, and adds the arguments that tc computes from others.
    pub complete: fn(&mut Line) -> Result<()>,
    /// Settings of the words that are [`Ours::Computed`].
    pub settings: fn(&Line) -> Vec<(&'static str, String)>,
    /// Sets the words that are [`Ours::Computed`]; returns what tc cannot say.
    pub words: fn(&Params<'_>, &mut Line) -> Vec<String>,
    /// True if this qdisc is the one to export a discipline with these parameters to.
    pub fits: fn(&Params<'_>) -> bool,
    /// Effect of a change.
    pub change: Change,
    /// Checks that tc makes on the words of one command.
    pub check: fn(&Line) -> Result<()>,
    /// Prepares the new words of a change that depend on the old line.
    pub merge: fn(&Line, Line) -> Result<Line>,
    /// Rewrites words of `tc qdisc show` to words of a command.
    pub shown: fn(&[&str]) -> Vec<String>,
    /// Words that end the effect of others, given before them.
    pub ends: &'static [(&'static str, &'static [&'static str])],
    /// True if tc refuses a word that is given twice.
    pub once: bool,
    /// True if tc reads abbreviations of the words.
    pub abbreviates: bool,
}

impl Rules {
    /// Rules of a qdisc whose words are all translated one by one.
    pub const NONE: Rules = Rules {
        parameters: &[],
        complete: |_| Ok(()),
        settings: |_| Vec::new(),
        words: |_, _| Vec::new(),
        fits: |_| true,
        change: Change::Named(&[], &[]),
        check: |_| Ok(()),
        merge: |_, new| Ok(new),
        shown: |words| words.iter().map(|w| (*w).to_string()).collect(),
        ends: &[],
        once: false,
        abbreviates: false,
    };

    /// Rules of a qdisc of which tc sends all words with every change.
    pub const ALL: Rules = Rules { change: Change::All, ..Rules::NONE };

    /// Rules of a qdisc that cannot be changed.
    pub const FIXED: Rules = Rules { change: Change::Refused, ..Rules::NONE };
}

/// Qdisc of Linux.
#[derive(Debug)]
pub struct Kind {
    /// Name.
    pub name: &'static str,
    /// Meaning here.
    pub becomes: Becomes,
    /// Words in their usual order.
    pub words: &'static [Word],
    /// Parameters here for which there is no word.
    pub fixed: &'static [Fixed],
    /// Further rules.
    pub rules: Rules,
    /// Differences to Linux that no parameter expresses; empty if none.
    pub differs: &'static str,
}

/// Qdisc with its words, as `tc` reads them.
#[derive(Clone)]
pub struct Line {
    /// Qdisc.
    pub kind: &'static Kind,
    /// Argument of each word of the kind, if given.
    pub args: Vec<Option<Arg>>,
    /// Words of a qdisc that is known by its name only.
    pub unread: String,
}

impl PartialEq for Line {
    fn eq(&self, other: &Line) -> bool {
        core::ptr::eq(self.kind, other.kind)
            && self.args == other.args
            && self.unread == other.unread
    }
}

impl core::fmt::Debug for Line {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.write())
    }
}

impl Line {
    /// Qdisc without any word.
    pub fn new(kind: &'static Kind) -> Line {
        let args = kind.words.iter().map(|_| None).collect();
        Line { kind, args, unread: String::new() }
    }

    /// Index of word `name`.
    ///
    /// # Panics
    /// If the qdisc has no such word, which is a fault of its table.
    fn index(&self, name: &str) -> usize {
        let index = self.kind.words.iter().position(|word| word.name == name);
        index.unwrap_or_else(|| panic!("{} has no word {name}", self.kind.name))
    }

    /// Argument of word `name` as given.
    pub fn given(&self, name: &str) -> Option<&Arg> {
        self.args[self.index(name)].as_ref()
    }

    /// Argument of word `name`, or its default.
    pub fn get(&self, name: &str) -> Option<Arg> {
        let index = self.index(name);
        self.args[index].clone().or_else(|| self.kind.words[index].default_arg())
    }

    /// Whole quantity of word `name` or its default; 0 if there is none.
    pub fn whole(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(Arg::Whole(n)) => n,
            _ => 0,
        }
    }

    /// Number of word `name` or its default; 0 if there is none.
    pub fn number(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(Arg::Number(x)) => x,
            _ => 0.0,
        }
    }

    /// True if the word of choice `name`, given or by default, is `word`.
    pub fn says(&self, name: &str, word: &str) -> bool {
        self.get(name).is_some_and(|arg| {
            arg == Arg::Text(word.into()) || matches!(arg, Arg::Word(w) if w == word)
        })
    }

    /// Sets the argument of word `name`.
    pub fn set(&mut self, name: &str, arg: Arg) {
        let index = self.index(name);
        self.args[index] = Some(arg);
    }

    /// Removes word `name`.
    pub fn unset(&mut self, name: &str) {
        let index = self.index(name);
        self.args[index] = None;
    }

    /// Returns the error for a required word that is not given, if it is not.
    ///
    /// # Errors
    /// If it is missing.
    pub fn require(&self, name: &str, example: &str) -> Result<()> {
        if self.get(name).is_some() {
            return Ok(());
        }
        Err(Error::new(format!("is required, like {example}")).at(name))
    }

    /// Formats the qdisc as tc reads it, without the words that are at their default.
    pub fn write(&self) -> String {
        self.write_words(|arg, word| Some(arg.clone()) != word.default_arg())
    }

    /// Formats the qdisc with every word that is given.
    pub fn write_given(&self) -> String {
        self.write_words(|_, _| true)
    }

    fn write_words(&self, wanted: impl Fn(&Arg, &Word) -> bool) -> String {
        let mut text = self.kind.name.to_string();
        for (word, arg) in self.kind.words.iter().zip(&self.args) {
            if let Some(arg) = arg.as_ref().filter(|arg| wanted(arg, word) && !word.output_only) {
                text += &word.write(arg);
            }
        }
        if !self.unread.is_empty() {
            text = format!("{text} {}", self.unread);
        }
        text
    }
}

impl Word {
    /// Formats the word with `arg`, with a space before it; empty for the empty word of a choice.
    pub fn write(&self, arg: &Arg) -> String {
        match arg {
            Arg::Word("") => String::new(),
            Arg::Word(word) => format!(" {word}"),
            Arg::Text(text) if matches!(self.unit, Unit::Words(_)) => format!(" {text}"),
            _ => format!(" {} {}", self.name, self.unit.write(arg)),
        }
    }
}
