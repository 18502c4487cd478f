//! Arguments of words: reading and formatting by the kind of argument.

use super::curve;
use super::table::{Arg, Unit};
use super::units;
use crate::error::{Error, Result};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

impl Unit {
    /// Formats `arg` as [`Unit::read`] reads it.
    pub fn write(self, arg: &Arg) -> String {
        match (arg, self) {
            (Arg::Whole(n), Unit::Time | Unit::Nanos) => units::write_time(*n),
            (Arg::Whole(n), Unit::Millis) => (n / 1_000_000).to_string(),
            (Arg::Whole(n), Unit::Seconds) => (n / 1_000_000_000).to_string(),
            (Arg::Whole(n), Unit::Rate) => units::write_rate(*n),
            (Arg::Whole(n), _) => n.to_string(),
            (Arg::Number(x), Unit::Percent) => units::write_percent(*x),
            (Arg::Number(x), Unit::Hundredths) => units::write_percent(*x).replace('%', ""),
            (Arg::Number(x), _) => x.to_string(),
            (Arg::Word(word), _) => (*word).to_string(),
            (Arg::Text(text), _) => text.clone(),
            (Arg::List(curve), Unit::Curve) => curve::write(curve),
            (Arg::List(list), _) => list.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
            (Arg::Several(args), Unit::Several(kinds)) => {
                let words = args.iter().zip(kinds).map(|(arg, kind)| kind.write(arg));
                words.collect::<Vec<_>>().join(" ")
            }
            (Arg::Several(_), _) => String::new(),
        }
    }

    /// Reads the argument at the start of `words`; returns it and the number of words it takes.
    ///
    /// # Errors
    /// No argument, or one of another kind.
    pub fn read(self, words: &[&str]) -> Result<(Arg, usize)> {
        if let Unit::Choice(choices) = self {
            // `bandwidth unlimited` is one choice.
            let matches = |c: &&(&str, &str)| {
                c.0.split(' ').count() <= words.len()
                    && c.0.split(' ').zip(words).all(|(c, w)| c == *w)
            };
            let choice = choices.iter().find(matches);
            let choice = choice.map(|(c, _)| (Arg::Word(c), c.split(' ').count()));
            return choice.ok_or_else(|| Error::new("is no choice"));
        }
        if let Unit::Words(_) = self {
            return Ok((Arg::Text(words.join(" ")), words.len()));
        }
        let numeric = |w: &&&str| {
            let digits = w.strip_prefix('-').unwrap_or(w);
            digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        };
        if let Unit::Several(kinds) = self {
            let further = words.iter().skip(1).take(kinds.len() - 1);
            let count = 1 + further.take_while(numeric).count();
            let parts = kinds.iter().take(count).enumerate();
            let args =
                parts.map(|(i, kind)| kind.read(words.get(i..).unwrap_or(&[])).map(|(arg, _)| arg));
            return Ok((Arg::Several(args.collect::<Result<_>>()?), count));
        }
        if self == Unit::Curve {
            return curve::read(words);
        }
        if self == Unit::Numbers {
            let list = words.iter().map_while(|w| units::integer(w).ok()).collect::<Vec<u64>>();
            let count = list.len();
            return if count == 0 {
                Err(Error::new("has no number"))
            } else {
                Ok((Arg::List(list), count))
            };
        }
        let word = words.first().ok_or_else(|| Error::new("has no value"))?;
        self.read_one(word).map(|arg| (arg, 1))
    }

    fn read_one(self, word: &str) -> Result<Arg> {
        Ok(match self {
            Unit::Packets | Unit::Integer | Unit::PlainBytes => Arg::Whole(units::integer(word)?),
            Unit::Count => Arg::Whole(units::bytes(word)?),
            Unit::Bytes => {
                // A bucket may have the size of a cell after a slash.
                let cell = |c: &str| !c.is_empty() && c.bytes().all(|b| b.is_ascii_digit());
                let size = word.split_once('/').filter(|(_, rest)| cell(rest));
                Arg::Whole(units::bytes(size.map_or(word, |(size, _)| size))?)
            }
            Unit::Time => Arg::Whole(units::time(word)?),
            Unit::Nanos => Arg::Whole(units::nanos(word)?),
            Unit::Millis => Arg::Whole(units::integer(word)? * 1_000_000),
            Unit::Seconds => Arg::Whole(units::integer(word)? * 1_000_000_000),
            Unit::Rate => Arg::Whole(units::rate(word)?),
            Unit::Number => Arg::Number(units::number(word)?),
            Unit::Probability => Arg::Number(units::probability(word)?),
            Unit::Percent => Arg::Number(units::percent(word)?),
            Unit::Hundredths => {
                units::integer(word)?;
                Arg::Number(units::percent(word)?)
            }
            Unit::Threshold => Arg::Text(units::threshold(word)?),
            Unit::Signed => match word.parse::<i32>() {
                Ok(number) => Arg::Text(number.to_string()),
                Err(_) => Arg::Text(units::integer(word)?.to_string()),
            },
            Unit::Text
            | Unit::Choice(_)
            | Unit::Numbers
            | Unit::Several(_)
            | Unit::Curve
            | Unit::Words(_) => Arg::Text(word.into()),
        })
    }

    /// Name of the kind of argument, for a page.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Packets => "packets",
            Unit::Count => "packets (k is 1024)",
            Unit::Integer | Unit::Signed => "integer",
            Unit::Bytes => "size",
            Unit::PlainBytes => "bytes",
            Unit::Time => "time",
            Unit::Nanos => "time (bare: ns)",
            Unit::Millis => "milliseconds",
            Unit::Seconds => "seconds",
            Unit::Rate => "rate",
            Unit::Number => "number",
            Unit::Probability => "probability",
            Unit::Percent => "percentage",
            Unit::Hundredths => "percent",
            Unit::Choice(_) => "word",
            Unit::Numbers => "integers",
            Unit::Threshold => "time or packets",
            Unit::Text => "text",
            Unit::Words(_) => "words",
            Unit::Several(_) => "values",
            Unit::Curve => "service curve",
        }
    }
}
