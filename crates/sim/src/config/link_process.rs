//! Random rates and delays of a link over time: a random walk, or new values in each interval.
//!
//! **Source**: the walk is the rate process of Winstein, Sivaraman and Balakrishnan, "Stochastic
//! Forecasts Achieve High Throughput and Low Delay over Cellular Networks", NSDI 2013, section 3.1:
//! Brownian motion, here reflected at both ends, so that the rate is uniform between them in the
//! long run. New values in each interval model reallocations, as each 15 s on Starlink.

use super::link_trace::{CHANGES_MAX, LinkChange};
use crate::parsing::keys::{KeyType, table};
use crate::parsing::parse::KeyReader;
use crate::random_stream::random_stream;
use rand_distr::{Distribution as _, StandardNormal};
use serde_json::{Map, Value as Json};
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::Value;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Rate, Span, Time};
use sojourn_aqm::{Pcg, Snapshot};

table! {
    /// Random rate, delay or both, which change at regular times. The values depend on the seed of
    /// the scenario and the name of the link only.
    static PROCESS at "links.NAME.process";

    /// Time between two changes; the first values apply from the start.
    every: Span, required, ["1us" => "100000s"], "\"15s\"";

    /// Least rate.
    rate_min: Rate, optional "the rate of the link", ["0bit" => "100tbit"], "\"5mbit\"";

    /// Greatest rate. Between the two, the rate is uniformly distributed.
    rate_max: Rate, optional "the rate of the link", ["0bit" => "100tbit"], "\"20mbit\"";

    /// Standard deviation of the change of the rate within 1 s: the rate is a random walk between
    /// rate_min and rate_max, at which it is reflected.
    walk: Rate, optional "each rate is drawn anew", ["1bit" => "100tbit"], "\"2mbit\"";

    /// Least one-way delay.
    delay_min: Span, optional "the delay of the link", ["0s" => "100000s"], "\"10ms\"";

    /// Greatest one-way delay. Each delay is drawn anew, uniformly between the two.
    delay_max: Span, optional "the delay of the link", ["0s" => "100000s"], "\"20ms\"";
}

/// Random rates, delays or both of a link over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProcess {
    every: Span,
    rate: Option<(Rate, Rate)>,
    walk: Option<Rate>,
    delay: Option<(Span, Span)>,
}

impl LinkProcess {
    /// Creates a process whose values change each `every`: the rate and the delay are uniform
    /// between two values, which are constant if they are equal. With `walk`, the rate is a random
    /// walk whose change within 1 s has this standard deviation.
    ///
    /// # Errors
    /// As [`LinkProcess::parse`].
    pub fn new(
        every: Span,
        rate: Option<(Rate, Rate)>,
        walk: Option<Rate>,
        delay: Option<(Span, Span)>,
    ) -> Result<LinkProcess> {
        LinkProcess::parse(&LinkProcess { every, rate, walk, delay }.canonical())
    }

    /// Parses the `process` of a link.
    ///
    /// # Errors
    /// If a key is unknown, missing or out of range, the greatest value is below the least, or
    /// neither rate nor delay varies.
    pub fn parse(json: &Json) -> Result<LinkProcess> {
        let fields = KeyReader::new(json, &PROCESS)?;
        fields.require("every")?;
        let every: Span = fields.read("every")?.unwrap_or_default();
        let rate = pair(&fields, "rate_min", "rate_max")?;
        let delay = pair(&fields, "delay_min", "delay_max")?;
        let walk = fields.read("walk")?;
        if walk.is_some() && rate.is_none() {
            return Err(Error::new("requires rate_min and rate_max").at("walk"));
        }
        if rate.is_none() && delay.is_none() {
            return Err(Error::new(
                "has neither rate_min and rate_max nor delay_min and delay_max",
            ));
        }
        Ok(LinkProcess { every, rate, walk, delay })
    }

    /// Checks that the process does not cause too many changes in a run of this length.
    ///
    /// # Errors
    /// If there are more than 100,000,000.
    pub(crate) fn check_changes(&self, duration: Span) -> Result<()> {
        let changes = duration.0 / self.every.0 + 1;
        if changes > CHANGES_MAX {
            let text = format!("{} makes {changes} changes, allowed: {CHANGES_MAX}", self.every);
            return Err(Error::new(text).at("every"));
        }
        Ok(())
    }

    /// True if it sets the rate.
    pub fn sets_rate(&self) -> bool {
        self.rate.is_some()
    }

    /// True if it sets the delay.
    pub fn sets_delay(&self) -> bool {
        self.delay.is_some()
    }

    /// Canonical JSON form.
    pub fn canonical(&self) -> Json {
        let mut map = Map::new();
        map.insert("every".into(), self.every.write().into());
        if let Some((least, greatest)) = self.rate {
            map.insert("rate_min".into(), least.write().into());
            map.insert("rate_max".into(), greatest.write().into());
        }
        if let Some(walk) = self.walk {
            map.insert("walk".into(), walk.write().into());
        }
        if let Some((least, greatest)) = self.delay {
            map.insert("delay_min".into(), least.write().into());
            map.insert("delay_max".into(), greatest.write().into());
        }
        map.into()
    }

    /// Returns the endless changes of the link called `name` in a run with `seed`.
    pub fn link_changes(self, seed: u64, name: &str) -> ProcessChanges {
        let rng = random_stream(seed, &format!("links.{name}.process"));
        ProcessChanges { process: self, rng, count: 0, bps: 0.0 }
    }
}

/// Iterator over times and changes of a [`LinkProcess`].
#[derive(Clone, Debug, Snapshot)]
pub struct ProcessChanges {
    #[snapshot(skip)]
    process: LinkProcess,
    rng: Pcg,
    /// Number of changes so far.
    count: u64,
    /// Present rate, bit/s.
    bps: f64,
}

impl ProcessChanges {
    /// Time of the next change; None after the last time that can be counted.
    pub fn next_time(&self) -> Option<Time> {
        self.process.every.0.checked_mul(self.count).map(Time)
    }

    /// Next rate between `least` and `greatest`.
    fn next_rate(&mut self, least: Rate, greatest: Rate) -> Rate {
        let (low, width) = (least.0 as f64, (greatest.0 - least.0) as f64);
        self.bps = match self.process.walk {
            Some(walk) if self.count > 0 => {
                let step: f64 = StandardNormal.sample(&mut self.rng);
                let deviation = walk.0 as f64 * libm::sqrt(self.process.every.0 as f64 / 1e9);
                low + reflected(self.bps - low + step * deviation, width)
            }
            _ => low + self.rng.uniform() * width,
        };
        Rate(cast::trunc(self.bps).clamp(least.0, greatest.0))
    }
}

impl Iterator for ProcessChanges {
    type Item = (Time, LinkChange);

    fn next(&mut self) -> Option<(Time, LinkChange)> {
        let at = self.next_time()?;
        let rate = self.process.rate.map(|(least, greatest)| self.next_rate(least, greatest));
        let delay = self.process.delay.map(|(least, greatest)| {
            let width = (greatest.0 - least.0) as f64;
            Span(least.0 + cast::trunc(self.rng.uniform() * width))
        });
        self.count += 1;
        Some((at, LinkChange { rate, delay }))
    }
}

/// Folds `x` into the range from 0 to `width` by reflections at both ends.
fn reflected(x: f64, width: f64) -> f64 {
    if width <= 0.0 {
        return 0.0;
    }
    let rest = x % (2.0 * width);
    let distance = if rest < 0.0 { -rest } else { rest };
    if distance > width { 2.0 * width - distance } else { distance }
}

/// Reads the ends of a range; None if neither is given.
fn pair<T: KeyType + PartialOrd>(
    fields: &KeyReader<'_>,
    least: &'static str,
    greatest: &'static str,
) -> Result<Option<(T, T)>> {
    let ends = (fields.read::<T>(least)?, fields.read::<T>(greatest)?);
    match ends {
        (None, None) => Ok(None),
        (Some(low), Some(high)) if low <= high => Ok(Some((low, high))),
        (Some(low), Some(high)) => {
            let text = format!("{} is below {least}, {}", high.write(), low.write());
            Err(Error::new(text).at(greatest))
        }
        (Some(_), None) => fields.require(greatest).map(|_| None),
        (None, Some(_)) => fields.require(least).map(|_| None),
    }
}

#[cfg(test)]
mod tests;
