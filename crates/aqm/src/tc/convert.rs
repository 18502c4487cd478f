//! Translation between the words of a qdisc and the parameters of a discipline.

use super::kinds::KINDS;
use super::table::{Arg, Becomes, Kind, Line, Ours, Params, Unit, Word};
use super::units::write_percent;
use crate::cast;
use crate::error::{Error, Result};
use crate::params::ParamRow;
use crate::registry::{self, QdiscEntry};
use crate::units::{Bytes, Rate, Size, Span};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Bytes of a packet on Ethernet, by which packets and bytes are converted: 1500 and the header.
pub const MTU: u64 = 1514;

/// Discipline as a qdisc of Linux describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Discipline {
    /// Name in the registry.
    pub name: &'static str,
    /// Parameters that differ from the defaults of this library.
    pub settings: Vec<(String, String)>,
    /// Words that are not represented, each with the reason.
    pub lost: Vec<String>,
}

/// Qdisc that comes nearest to a discipline.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// Qdisc with its words.
    pub line: Line,
    /// Features that Linux does not have, one sentence each.
    pub lost: Vec<String>,
}

impl Line {
    /// Translates the qdisc to a discipline with parameters. Defaults are Linux's.
    ///
    /// # Errors
    /// If sojourn has no such discipline; the message names a substitute.
    pub fn discipline(&self) -> Result<Discipline> {
        let name = self.kind.name;
        let entry = match self.kind.becomes {
            Becomes::Discipline(ours) => registry::find(ours).map_err(|e| lacking(name, &e))?,
            Becomes::Link => {
                let text = "is a property of a link, not a discipline; write rate, delay and loss \
                            of the link, or use sojourn tc import";
                return Err(Error::new(text).at(name));
            }
            Becomes::Nothing(why) => return Err(Error::new(why).at(name)),
        };
        let defaults = entry.params();
        let has = |name: &str| defaults.iter().any(|row| row.name == name);
        let (mut settings, mut lost) = (Vec::new(), Vec::new());
        for (word, arg) in self.kind.words.iter().zip(&self.args) {
            match word.ours {
                Ours::To(ours) | Ours::Scaled(ours, _) if has(ours) => {
                    let value = arg.clone().or_else(|| word.default_arg());
                    settings.extend(value.and_then(|v| word.value(&v)).map(|v| (ours, v)));
                }
                Ours::Computed => {}
                Ours::Harmless => lost.extend(word.idle(arg.as_ref())),
                Ours::To(_) | Ours::Scaled(..) => {
                    lost.extend(word.lost(arg.as_ref(), "sojourn has no such parameter"));
                }
                Ours::Lost(why) => lost.extend(word.lost(arg.as_ref(), why)),
            }
        }
        settings.extend((self.kind.rules.settings)(self));
        let rules = defaults.iter().find(|row| row.name == "variant");
        if rules.is_some_and(|row| row.kind.split('|').any(|word| word == "linux")) {
            settings.push(("variant", "linux".to_string()));
        }
        let fixed = self.kind.fixed.iter().filter(|f| has(f.name) && f.name != "variant");
        settings.extend(fixed.map(|f| (f.name, f.linux.to_string())));
        // The buffer is always named: a comparison would otherwise choose it.
        let differs = |(n, v): &(&str, String)| {
            *n == "limit" || !defaults.iter().any(|r| r.name == *n && r.value == *v)
        };
        let settings = settings.into_iter().filter(differs);
        let settings = settings.map(|(n, v)| (n.to_string(), v)).collect();
        Ok(Discipline { name: entry.name, settings, lost })
    }

    /// Words given that have no counterpart here, each with the reason.
    pub fn lost_words(&self) -> Vec<String> {
        let words = self.kind.words.iter().zip(&self.args);
        let lost = |(word, arg): (&Word, &Option<Arg>)| match word.ours {
            Ours::Lost(why) => word.lost(arg.as_ref(), why),
            _ => None,
        };
        words.filter_map(lost).collect()
    }

    /// Words given that have no effect here.
    pub fn idle_words(&self) -> Vec<String> {
        let words = self.kind.words.iter().zip(&self.args);
        let harmless = words.filter(|(word, _)| word.ours == Ours::Harmless);
        harmless.filter_map(|(word, arg)| word.idle(arg.as_ref())).collect()
    }
}

/// Error for a qdisc of Linux that sojourn does not have.
fn lacking(name: &str, error: &Error) -> Error {
    let text = error.text();
    let reason = text.split_once(") is not available").map_or(text, |(_, rest)| rest);
    Error::new(format!("sojourn has no such discipline{}", reason.replacen(';', ":", 1))).at(name)
}

/// Translates a discipline with all its parameters to the nearest qdisc of Linux.
///
/// # Errors
/// An unknown discipline, or one that has no counterpart in Linux.
pub fn export(name: &str, rows: &[ParamRow], rate: Option<Rate>) -> Result<Exported> {
    let entry = registry::find(name)?;
    let params = Params { rows, rate };
    let same = |kind: &&'static Kind| kind.becomes == Becomes::Discipline(entry.name);
    let kind = KINDS.iter().copied().filter(same).find(|kind| (kind.rules.fits)(&params));
    let Some(kind) = kind else {
        let text = if KINDS.iter().any(|kind| kind.name == entry.name) {
            format!("{} has classes, each with a command of its own", entry.name)
        } else {
            format!("Linux has no qdisc for {}: {}", entry.name, entry.about)
        };
        return Err(Error::new(text).at(entry.name));
    };
    let mut line = Line::new(kind);
    let mut lost = Vec::new();
    for (word, arg) in kind.words.iter().zip(&mut line.args) {
        let (Ours::To(ours) | Ours::Scaled(ours, _)) = word.ours else { continue };
        if let Some(row) = rows.iter().find(|row| row.name == ours) {
            *arg = word.argument(&row.value, &mut lost);
        }
    }
    lost.extend((kind.rules.words)(&params, &mut line));
    lost.extend(beyond(kind, entry, rows));
    Ok(Exported { line, lost })
}

/// Parameters that no word of `kind` expresses and that are not as in Linux.
fn beyond(kind: &Kind, entry: &QdiscEntry, rows: &[ParamRow]) -> Vec<String> {
    let words = kind.words.iter().filter_map(Word::parameter);
    let translated: Vec<&str> = words.chain(kind.rules.parameters.iter().copied()).collect();
    let linux = rows.iter().any(|row| row.value == "linux");
    let defaults = entry.params();
    let mut lost = Vec::new();
    for row in rows.iter().filter(|row| !translated.contains(&row.name)) {
        let fixed = kind.fixed.iter().find(|fixed| fixed.name == row.name);
        let default = defaults.iter().find(|d| d.name == row.name).map_or("", |d| &d.value);
        match fixed {
            // A discipline with the rules of Linux is as in Linux.
            _ if row.value == "linux" => {}
            Some(fixed) if fixed.linux == row.value => {}
            // It decides as Linux whatever these say.
            Some(_) if linux && row.value == default => {}
            Some(fixed) => lost.push(format!("{} = {}: {}", row.name, row.value, fixed.why)),
            None if row.value == default => {}
            None => lost.push(format!("{} = {}: tc has no word for it", row.name, row.value)),
        }
    }
    lost
}

impl Word {
    /// Parameter that the word sets, if it sets one.
    fn parameter(&self) -> Option<&'static str> {
        match self.ours {
            Ours::To(name) | Ours::Scaled(name, _) => Some(name),
            _ => None,
        }
    }

    /// Returns a note about the omitted word, if it is set and not at its default.
    fn lost(&self, arg: Option<&Arg>, why: &str) -> Option<String> {
        let arg = arg.filter(|arg| Some((*arg).clone()) != self.default_arg())?;
        Some(format!("{}: {why}", self.write(arg).trim_start()))
    }

    /// Returns a note about a word without an effect here, if it is set and not at its default.
    fn idle(&self, arg: Option<&Arg>) -> Option<String> {
        if self.output_only { None } else { self.lost(arg, "has no effect here") }
    }

    /// Returns the text of `arg` as a value of the parameter.
    fn value(&self, arg: &Arg) -> Option<String> {
        if let (Arg::Number(share), Ours::Scaled(..), Unit::Percent) = (arg, self.ours, self.unit) {
            return Some(write_percent(*share).replace('%', ""));
        }
        if let (Arg::Word(word), Unit::Choice(choices)) = (arg, self.unit) {
            return choices.iter().find(|(w, _)| w == word).map(|(_, v)| (*v).to_string());
        }
        let scale = if let Ours::Scaled(_, scale) = self.ours { scale } else { 1.0 };
        Some(match (arg, self.unit) {
            (Arg::Whole(n), Unit::Packets | Unit::Count) => Size::Packets(*n).to_string(),
            (Arg::Whole(n), Unit::Bytes | Unit::PlainBytes) => Bytes(*n).to_string(),
            (Arg::Whole(n), Unit::Time | Unit::Nanos | Unit::Millis | Unit::Seconds) => {
                Span(*n).to_string()
            }
            (Arg::Whole(n), Unit::Rate) => Rate(*n).to_string(),
            (Arg::Whole(n), _) if scale != 1.0 => (*n as f64 * scale).to_string(),
            (Arg::Number(x), _) if scale != 1.0 => (x * scale).to_string(),
            (Arg::Number(x), _) => x.to_string(),
            (arg, unit) => unit.write(arg),
        })
    }

    /// Returns the value `text` of the parameter as an argument, and adds a change of the value to
    /// `lost`.
    fn argument(&self, text: &str, lost: &mut Vec<String>) -> Option<Arg> {
        let name = self.parameter().unwrap_or(self.name);
        if let Unit::Choice(choices) = self.unit {
            let word = choices.iter().find(|(_, value)| *value == text);
            if word.is_none() {
                lost.push(format!("{name} = {text}: tc has no word for it"));
            }
            return word.map(|(word, _)| Arg::Word(word));
        }
        let exact = self.exact_argument(text);
        let arg = exact.clone().or_else(|| self.near_argument(text))?;
        let arg = self.clamped(arg);
        if exact.as_ref() != Some(&arg) {
            let unit = if self.unit == Unit::Packets { " packets" } else { "" };
            let near = self.unit.write(&arg);
            lost.push(format!("{name} = {text}: the nearest value of tc is {near}{unit}"));
        }
        Some(arg)
    }

    /// Argument that says `text` exactly.
    fn exact_argument(&self, text: &str) -> Option<Arg> {
        if let (Ours::Scaled(..), Unit::Percent) = (self.ours, self.unit) {
            return format!("{text}e-2").parse().ok().map(Arg::Number);
        }
        if let (Ours::Scaled(_, scale), Ok(value)) = (self.ours, text.parse::<f64>()) {
            let units = libm::round(value / scale);
            return (units * scale == value).then_some(Arg::Whole(cast::trunc(units)));
        }
        let whole_of = |unit: u64, n: u64| n.is_multiple_of(unit).then_some(Arg::Whole(n));
        match self.unit {
            Unit::Packets | Unit::Count => match text.parse().ok()? {
                Size::Packets(n) => Some(Arg::Whole(n)),
                Size::Bytes(_) => None,
            },
            Unit::Bytes | Unit::PlainBytes => match text.parse().ok()? {
                Size::Bytes(n) => Some(Arg::Whole(n)),
                Size::Packets(_) => None,
            },
            Unit::Time => whole_of(1_000, text.parse::<Span>().ok()?.0),
            Unit::Millis => whole_of(1_000_000, text.parse::<Span>().ok()?.0),
            Unit::Seconds => whole_of(1_000_000_000, text.parse::<Span>().ok()?.0),
            Unit::Nanos => whole_of(1, text.parse::<Span>().ok()?.0),
            Unit::Rate => whole_of(8, text.parse::<Rate>().ok()?.0),
            Unit::Integer => text.parse().ok().map(Arg::Whole),
            Unit::Hundredths => {
                let share: f64 = text.parse().ok()?;
                let hundredths = libm::round(share * 100.0);
                (hundredths / 100.0 == share).then_some(Arg::Number(share))
            }
            Unit::Number | Unit::Probability | Unit::Percent => text.parse().ok().map(Arg::Number),
            Unit::Threshold if text == "auto" => None,
            _ => Some(Arg::Text(text.to_string())),
        }
    }

    /// Argument that comes nearest to `text`: packets for bytes, or a coarser unit.
    fn near_argument(&self, text: &str) -> Option<Arg> {
        let down = |unit: u64, n: u64| Some(Arg::Whole((n / unit).max(1) * unit));
        match self.unit {
            _ if matches!(self.ours, Ours::Scaled(..)) => {
                let Ours::Scaled(_, scale) = self.ours else { return None };
                let units = libm::round(text.parse::<f64>().ok()? / scale);
                Some(Arg::Whole(cast::trunc(units)))
            }
            Unit::Packets | Unit::Count => {
                Some(Arg::Whole((text.parse::<Size>().ok()?.number() / MTU).max(1)))
            }
            Unit::Bytes | Unit::PlainBytes => {
                Some(Arg::Whole(text.parse::<Size>().ok()?.number().saturating_mul(MTU)))
            }
            Unit::Time => down(1_000, text.parse::<Span>().ok()?.0),
            Unit::Millis => down(1_000_000, text.parse::<Span>().ok()?.0),
            Unit::Seconds => down(1_000_000_000, text.parse::<Span>().ok()?.0),
            Unit::Rate => down(8, text.parse::<Rate>().ok()?.0),
            Unit::Integer => Some(Arg::Whole(cast::trunc(libm::round(text.parse().ok()?)))),
            Unit::Hundredths => {
                Some(Arg::Number(libm::round(text.parse::<f64>().ok()? * 100.0) / 100.0))
            }
            _ => None,
        }
    }

    /// Moves a whole quantity into the range of the word.
    fn clamped(&self, arg: Arg) -> Arg {
        match (arg, self.range) {
            (Arg::Whole(n), Some((least, most))) => Arg::Whole(n.clamp(least, most)),
            // 32 bits is the most that tc and the kernel take.
            (Arg::Whole(n), None) if !matches!(self.unit, Unit::Rate) => {
                Arg::Whole(n.min(self.unit.most()))
            }
            (arg, _) => arg,
        }
    }
}

impl Unit {
    /// Largest whole quantity that tc sends.
    fn most(self) -> u64 {
        let most = u64::from(u32::MAX);
        match self {
            Unit::Time => most / 1_000_000 * 1_000_000_000,
            Unit::Millis => most / 1_000 * 1_000_000_000,
            Unit::Seconds => i32::MAX as u64 * 1_000_000_000,
            Unit::Nanos => u64::MAX >> 1,
            _ => most,
        }
    }
}
