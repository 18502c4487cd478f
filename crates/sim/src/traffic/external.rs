//! Traffic sources that are not in the registry: a program finds them by name.

use crate::external_state::{external_state, not_saved};
use crate::parsing::distribution::Distribution;
use crate::parsing::parse::{self, NamedParams};
use serde_json::Value as Json;
use sojourn_aqm::Pcg;
use sojourn_aqm::Snapshot;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params;
use sojourn_aqm::params::{ParamRows, Params, Setting};
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use std::fmt;
use std::sync::Arc;

params! {
    /// Parameters of every external source.
    pub struct ExternalTimes {
        /// Start time.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Stop time; auto means never.
        stop: Option<Span> = None, [], "", [];
    }
}

/// Arrivals of one source, written outside of this crate.
pub trait ExternalArrivals: Send {
    /// Returns the next arrival: its time, at or after `now`, and its size in bytes, at least 1;
    /// `None` if there is none. `now` is the time of the previous arrival, at first of the start.
    fn next_arrival(&mut self, now: Time, rng: &mut dyn Random) -> Option<(Time, u64)>;

    /// Returns a copy with the state.
    fn copy(&self) -> Box<dyn ExternalArrivals>;

    /// Returns the state as bytes, for a snapshot of the simulation.
    ///
    /// # Errors
    /// Always, unless it is implemented: such a simulation cannot be saved.
    fn save(&self) -> Result<Vec<u8>> {
        Err(not_saved("source"))
    }

    /// Takes the state that [`ExternalArrivals::save`] returned.
    ///
    /// # Errors
    /// Bytes that are not a state of this source.
    fn load(&mut self, _bytes: &[u8]) -> Result<()> {
        Err(not_saved("source"))
    }
}

external_state!(ExternalArrivals);

/// Builder of the sources of a group of flows.
pub trait ExternalSourceMaker: fmt::Debug + Send + Sync {
    /// Creates a source whose arrivals have at most this many bytes.
    fn make(&self, largest: u64) -> Box<dyn ExternalArrivals>;
}

/// External source with its parameters.
#[derive(Clone, Debug)]
pub struct ExternalSource {
    /// Name that scenarios have for it.
    pub name: &'static str,
    /// Start and stop.
    pub times: ExternalTimes,
    /// True if each arrival is a transfer on a new TCP connection; otherwise it is a datagram, or a
    /// write on the connection of the flow.
    pub connections: bool,
    /// Its own parameters with their values.
    pub rows: ParamRows,
    /// Builder.
    pub maker: Arc<dyn ExternalSourceMaker>,
}

impl PartialEq for ExternalSource {
    fn eq(&self, other: &ExternalSource) -> bool {
        self.canonical() == other.canonical()
    }
}

impl ExternalSource {
    /// Every parameter with its value.
    pub fn table(&self) -> ParamRows {
        let mut rows = self.times.table();
        rows.extend(self.rows.iter().cloned());
        rows
    }

    /// Canonical JSON form with all parameters.
    pub(crate) fn canonical(&self) -> Json {
        parse::canonical(self.name, &self.table())
    }
}

/// Function that finds an external source by name and reads its parameters, except start and stop;
/// `None` if the name is not the name of an external source.
pub type FindExternalSource = fn(&str, &[(&str, Setting<'_>)]) -> Option<Result<ExternalSource>>;

/// Parses an external source; `None` if the name belongs to a built-in source or to none.
pub(crate) fn parse_external(
    find: FindExternalSource,
    named: &NamedParams<'_>,
) -> Option<Result<ExternalSource>> {
    let mut times = ExternalTimes::default();
    let (of_all, own): (Vec<_>, Vec<_>) =
        named.settings.iter().partition(|(key, _)| times.knows(key));
    let result = find(named.name, &own)?;
    Some(result.and_then(|source| {
        if let Some((key, _)) = named.lists.first() {
            return Err(Error::new("is a list").at(key));
        }
        of_all.into_iter().try_for_each(|(key, value)| times.set(key, value))?;
        Ok(ExternalSource { times, ..source })
    }))
}

/// Arrivals of an external source in order, of which the next one is known.
#[derive(Snapshot)]
pub(crate) struct ArrivalSchedule {
    source: Box<dyn ExternalArrivals>,
    /// Next arrival; at [`Time::NEVER`] if there is none.
    next: (Time, u64),
}

impl Clone for ArrivalSchedule {
    fn clone(&self) -> ArrivalSchedule {
        ArrivalSchedule { source: self.source.copy(), next: self.next }
    }
}

impl fmt::Debug for ArrivalSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrivalSchedule").field("next", &self.next).finish_non_exhaustive()
    }
}

impl ArrivalSchedule {
    /// Creates the arrivals of a source that starts at `start`.
    pub(crate) fn new(
        source: &ExternalSource,
        start: Time,
        largest: u64,
        rng: &mut Pcg,
    ) -> ArrivalSchedule {
        let source = source.maker.make(largest);
        let mut schedule = ArrivalSchedule { source, next: (start, 0) };
        schedule.pop(rng);
        schedule
    }

    /// Time of the next arrival; [`Time::NEVER`] if there is none.
    pub(crate) fn next_time(&self) -> Time {
        self.next.0
    }

    /// Removes the next arrival; returns its time and size.
    pub(crate) fn pop(&mut self, rng: &mut Pcg) -> (Time, u64) {
        let last = self.next;
        self.next = self.source.next_arrival(last.0, rng).unwrap_or((Time::NEVER, 0));
        last
    }
}
