//! Recorded rates and delays of a link over time.

use crate::parsing::keys::table;
use crate::parsing::parse::{self, KeyReader};
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::Value;
use sojourn_aqm::units::{Rate, Span, Time};

table! {
    /// Recorded link as columns of integers: rates, delays or both, or delivery opportunities
    /// alone.
    static TRACE at "links.NAME.trace";

    /// Start of each row, in ns, ascending.
    t_ns: "list of integers", optional "required, unless opportunities_ms is given", [],
        "[0, 2000000000]";

    /// Rate from t_ns on, in bit/s; 0 stops the link.
    rate_bps: "list of integers", optional "the rate of the link", [], "[10000000, 2000000]";

    /// One-way delay from t_ns on, in ns.
    delay_ns: "list of integers", optional "the delay of the link", [], "[20000000, 35000000]";

    /// Period after which the trace repeats; longer than its last row's t_ns.
    repeat: Span, optional "the last row applies until the end", [], "\"4s\"";

    /// Times in ms, ascending, at which the link can deliver 1504 bytes, as in mahimahi. They
    /// repeat after the last one. Excludes the other keys.
    opportunities_ms: "list of integers", optional "the link sends at its rate", [], "[1, 3, 3, 8]";
}

/// Maximum link rate.
pub(crate) const RATE_MAX: Rate = Rate(100_000_000_000_000);
/// Maximum propagation delay of a link.
pub(crate) const DELAY_MAX: Span = Span::s(100_000);
/// Maximum number of rows of a trace, and of changes.
pub(super) const ROWS_MAX: usize = 1_000_000;
/// Maximum number of changes by a repeated trace, or by a process, in one run.
pub(super) const CHANGES_MAX: u64 = 100_000_000;

/// New properties of a link; None keeps the old value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkChange {
    /// New rate; zero stops the link.
    pub rate: Option<Rate>,
    /// New one-way delay.
    pub delay: Option<Span>,
}

impl LinkChange {
    /// Canonical JSON form.
    pub(super) fn canonical(self) -> Json {
        let mut map = Map::new();
        if let Some(rate) = self.rate {
            map.insert("rate".into(), rate.write().into());
        }
        if let Some(delay) = self.delay {
            map.insert("delay".into(), delay.write().into());
        }
        map.into()
    }
}

/// Recorded rates, delays or both of a link over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTrace {
    /// Start of each row.
    pub(crate) at: Vec<Span>,
    /// Rate from then on; None if only delays were recorded.
    pub(crate) rate: Option<Vec<Rate>>,
    /// Delay from then on; None if only rates were recorded.
    pub(crate) delay: Option<Vec<Span>>,
    /// Time after which the trace starts again.
    pub(crate) repeat: Option<Span>,
}

impl LinkTrace {
    /// Creates the trace whose rows start at the times `at`, with these rates and delays, which
    /// starts again after `repeat`.
    ///
    /// # Errors
    /// As [`LinkTrace::parse`].
    pub fn new(
        at: Vec<Span>,
        rate: Option<Vec<Rate>>,
        delay: Option<Vec<Span>>,
        repeat: Option<Span>,
    ) -> Result<LinkTrace> {
        LinkTrace::parse(&LinkTrace { at, rate, delay, repeat }.canonical())
    }

    /// Parses the trace of a link: columns of integers.
    ///
    /// # Errors
    /// If a column is missing, unsorted, too long or of another length, or a value is out of range.
    pub fn parse(json: &Json) -> Result<LinkTrace> {
        let fields = KeyReader::new(json, &TRACE)?;
        fields.require("t_ns")?;
        let at = column(&fields, "t_ns", u64::MAX >> 1)?.unwrap_or_default();
        let rate = column(&fields, "rate_bps", RATE_MAX.0)?;
        let delay = column(&fields, "delay_ns", DELAY_MAX.0)?;
        check_row_count(at.len()).map_err(|e| e.at("t_ns"))?;
        if let Some(i) = (1..at.len()).find(|i| at[*i] <= at[*i - 1]) {
            let text = format!("{} does not come after {}", at[i], at[i - 1]);
            return Err(Error::new(text).at(i).at("t_ns"));
        }
        for (name, other) in [("rate_bps", &rate), ("delay_ns", &delay)] {
            if let Some(n) = other.as_ref().map(Vec::len).filter(|n| *n != at.len()) {
                let text = format!("{n} values for {} times", at.len());
                return Err(Error::new(text).at(name));
            }
        }
        if rate.is_none() && delay.is_none() {
            return Err(Error::new("has neither rate_bps nor delay_ns"));
        }
        let repeat: Option<Span> = fields.read("repeat")?;
        if let Some(repeat) = repeat.filter(|r| r.0 <= at[at.len() - 1]) {
            let text = format!("{repeat} is not after the last row");
            return Err(Error::new(text).at("repeat"));
        }
        let spans = |ns: Vec<u64>| ns.into_iter().map(Span).collect();
        Ok(LinkTrace {
            at: spans(at),
            rate: rate.map(|bps| bps.into_iter().map(Rate).collect()),
            delay: delay.map(spans),
            repeat,
        })
    }

    /// Start of each row.
    pub fn times(&self) -> &[Span] {
        &self.at
    }

    /// Time after which the trace starts again.
    pub fn repeat(&self) -> Option<Span> {
        self.repeat
    }

    /// Checks that the trace does not cause too many changes in a run of this length.
    ///
    /// # Errors
    /// If there are more than 100,000,000.
    pub(crate) fn check_repetitions(&self, duration: Span) -> Result<()> {
        let Some(repeat) = self.repeat else { return Ok(()) };
        let changes = (duration.0 / repeat.0 + 1).saturating_mul(self.at.len() as u64);
        if changes > CHANGES_MAX {
            let text = format!("{repeat} makes {changes} changes, allowed: {CHANGES_MAX}");
            return Err(Error::new(text).at("repeat"));
        }
        Ok(())
    }

    /// Canonical JSON form.
    pub fn canonical(&self) -> Json {
        let numbers = |spans: &[Span]| spans.iter().map(|s| s.0).collect::<Vec<_>>();
        let mut json = json!({ "t_ns": numbers(&self.at) });
        if let Some(rate) = &self.rate {
            json["rate_bps"] = rate.iter().map(|r| r.0).collect();
        }
        if let Some(delay) = &self.delay {
            json["delay_ns"] = numbers(delay).into();
        }
        if let Some(repeat) = self.repeat {
            json["repeat"] = repeat.write().into();
        }
        json
    }

    /// Iterates over times and changes; endless if the trace repeats.
    pub fn link_changes(self) -> impl Iterator<Item = (Time, LinkChange)> + Send {
        (0..).map_while(move |n| self.nth_change(n))
    }

    /// Time and change number `n`, from 0; None after the last one of a trace that does not repeat.
    pub(crate) fn nth_change(&self, n: u64) -> Option<(Time, LinkChange)> {
        let rows = self.at.len() as u64;
        let (lap, row) = (n / rows, cast::index(n % rows));
        let length = if lap == 0 { Span::ZERO } else { self.repeat? };
        let begins = Time(lap.saturating_mul(length.0));
        Some((begins + self.at[row], self.link_change(row)))
    }

    /// Returns the change made by row `i`.
    pub fn link_change(&self, i: usize) -> LinkChange {
        LinkChange {
            rate: self.rate.as_ref().map(|r| r[i]),
            delay: self.delay.as_ref().map(|d| d[i]),
        }
    }
}

/// Checks the number of rows of a trace.
///
/// # Errors
/// If there is none, or more than 1,000,000.
pub(crate) fn check_row_count(rows: usize) -> Result<()> {
    let text = || format!("{rows} rows, allowed: 1 to {ROWS_MAX}");
    if rows == 0 || rows > ROWS_MAX { Err(Error::new(text())) } else { Ok(()) }
}

/// Parses the column `name` of integers up to `most`.
///
/// # Errors
/// If it is not a list of such integers.
pub(crate) fn column(fields: &KeyReader<'_>, name: &str, most: u64) -> Result<Option<Vec<u64>>> {
    let Some(json) = fields.get(name) else { return Ok(None) };
    let value = |(i, json): (usize, &Json)| {
        let bad = || {
            let shown = parse::display(json);
            Error::new(format!("{shown} is not a whole number up to {most}")).at(i)
        };
        json.as_u64().filter(|n| *n <= most).ok_or_else(bad)
    };
    let list = parse::list(json).map_err(|e| e.at(name))?;
    let values: Result<Vec<u64>> = list.iter().enumerate().map(value).collect();
    values.map(Some).map_err(|e| e.at(name))
}
