//! Groups whose arrivals open many short connections at the same time.
//!
//! A crowd has its own slot in the order of events. It decides when a connection is opened, to
//! which of its hosts (the members of the group, each with its own RTT) and for how much; the
//! world lends it a flow: one of that host whose last connection is over, or, when more are open
//! than ever before, a new one. So memory follows the most that were open at once, not how many
//! there were.
//!
//! All draws of a group come from one stream, in the order in which its events happen. What
//! happens is told when the *sender* knows it; the only thing that a receiver tells early is that
//! an answer is complete, and nothing is drawn then.

mod agenda;
mod kinds;
pub mod params;

use crate::flow::{Told, stream};
use crate::outcome;
use crate::scenario::{FlowDef, Scenario};
use crate::source::Source;
use agenda::Agenda;
use kinds::Kind;
use params::Until;
use rand_pcg::Pcg64Mcg;
use serde_json::{Map, Value as Json};
use sojourn_aqm::units::{Span, Time};

/// How long a connection beyond the most waits before it asks again: a lost SYN's timeout
/// (RFC 6298 §2.1).
const AGAIN: Span = Span::s(1);

/// A connection to be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Which member of the group sends (of a request: is asked).
    pub host: u32,
    /// Payload.
    pub bytes: u64,
    /// What the crowd knows it by.
    pub tag: u32,
    /// Since when it is waited for.
    pub since: Time,
    /// Whether it is a request, which crosses the return path.
    pub request: bool,
    /// Whether the last connection is kept if there is one.
    pub keep: bool,
}

/// A transfer that is complete.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Since when it was waited for.
    pub start: Time,
    /// For how long.
    pub took: Span,
    /// How long of that until its first byte could be sent.
    pub startup: Span,
    /// Its payload.
    pub bytes: u64,
    /// The member of the group that sent it.
    pub host: u32,
}

/// A member of the group.
#[derive(Default)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Flows that were lent for answers and are free again; then those for requests.
    free: [Vec<u32>; 2],
    /// How many were lent at any time: the number of the next.
    pub lent: [u32; 2],
    /// How many transfers it has begun.
    pub started: u64,
    /// How often one was put off because too many were open.
    pub refused: u64,
}

/// A group of hosts with what makes their connections.
pub struct Crowd {
    /// The group, as an index of the scenario's flows.
    pub group: usize,
    /// Its members.
    pub hosts: Vec<Host>,
    /// What is complete, in the order in which it became known.
    pub done: Vec<Done>,
    /// Queries that are answered: when they were made, and how long the last answer took.
    pub queries: Vec<(Time, Span)>,
    kind: Kind,
    agenda: Agenda,
    rng: Pcg64Mcg,
    stop: Time,
    until: Until,
    keep: bool,
    most: u64,
    open: u64,
}

/// Whether the group `def` is a crowd.
pub fn is_crowd(def: &FlowDef) -> bool {
    match &def.source {
        Source::Poisson(_) | Source::Incast(_) | Source::Sessions(_) | Source::Web(_) => true,
        Source::Trace(_) => def.tcp.is_some(),
        _ => false,
    }
}

/// The most flows that may be lent to the group `def`.
pub fn most(def: &FlowDef) -> u64 {
    match &def.source {
        Source::Poisson(p) => p.most,
        Source::Incast(p) => p.most,
        Source::Sessions(p) => p.most,
        Source::Web(p) => p.most * (1 + u64::from(p.request)),
        Source::Trace(p) => p.most(),
        _ => 0,
    }
}

impl Crowd {
    /// The crowd of the group with that index.
    pub fn new(scenario: &Scenario, group: usize) -> Crowd {
        let def = &scenario.flows[group];
        let stream = |what: &str| stream(scenario.seed, &format!("flows.{}.{what}", def.name));
        // Its own times count from when it joins.
        let joins = Time::ZERO + def.joins.unwrap_or_default();
        let start = joins + def.source.start().sample(&mut stream("start"));
        let mut rng = stream("source");
        let mut agenda = Agenda::default();
        let kind = Kind::new(&def.source, [joins, start], &mut agenda, &mut rng);
        let until = match &def.source {
            Source::Poisson(p) => p.until,
            Source::Incast(p) => p.until,
            Source::Sessions(p) => p.until,
            Source::Web(p) => p.until,
            _ => Until::Received,
        };
        let host = |i| Host { name: def.name_of(i), ..Host::default() };
        Crowd {
            group,
            hosts: (0..def.count).map(host).collect(),
            done: Vec::new(),
            queries: Vec::new(),
            kind,
            agenda,
            rng,
            stop: def.source.stop().map_or(Time::NEVER, |s| joins + s),
            until,
            keep: matches!(&def.source, Source::Incast(p) if p.persistent),
            most: most(def),
            open: 0,
        }
    }

    /// When [`Crowd::wake`] is next due.
    pub fn next(&self) -> Time {
        self.agenda.next()
    }

    /// Does the first thing that is due at `now`; gives the connection that it opens, if it does.
    pub fn wake(&mut self, now: Time) -> Option<Open> {
        let what = self.agenda.pop(now)?;
        let open =
            self.kind.act(now, what, self.stop, &self.hosts, &mut self.agenda, &mut self.rng);
        let open = Open { keep: self.keep, ..open? };
        if self.open >= self.most {
            self.hosts[open.host as usize].refused += 1;
            self.agenda.push(now + AGAIN, agenda::What::Open(open));
            return None;
        }
        self.open += 1;
        let host = &mut self.hosts[open.host as usize];
        host.started += u64::from(!open.request);
        Some(open)
    }

    /// Leaves at `now`: nothing more is asked for, and what is not complete by then will not be.
    /// The flows that were lent to it leave by themselves.
    pub fn leave(&mut self, now: Time) {
        self.stop = self.stop.min(now);
        self.agenda.clear();
        self.done.retain(|d| d.start + d.took < now);
        self.queries.retain(|(made, took)| *made + *took < now);
    }

    /// A flow for that connection: one that is free, or none if a new one must be made.
    pub fn lend(&mut self, open: &Open) -> Option<u32> {
        self.hosts[open.host as usize].free[usize::from(open.request)].pop()
    }

    /// The last byte of `told` was, or will be, received at `at`. Gives when the crowd must be
    /// woken for it.
    pub fn received(&mut self, told: &Told, host: u32, at: Time) -> Time {
        if self.until == Until::Received && !told.open.request {
            self.complete(told, host, at);
        }
        self.next()
    }

    /// Everything of `told` is acknowledged at `now`: the flow `f` is free again.
    pub fn acked(&mut self, told: &Told, host: u32, f: u32, now: Time) -> Time {
        if self.until == Until::Acked && !told.open.request {
            self.complete(told, host, now);
        }
        self.open -= 1;
        self.hosts[host as usize].free[usize::from(told.open.request)].push(f);
        self.kind.ended(now, told, &mut self.agenda, &mut self.rng);
        self.next()
    }

    fn complete(&mut self, told: &Told, host: u32, at: Time) {
        let Open { since, bytes, .. } = told.open;
        self.done.push(Done { start: since, took: at - since, startup: told.startup, bytes, host });
        self.queries.extend(self.kind.answered(at, &mut self.agenda, &mut self.rng));
    }

    /// What its host `h` has to tell of its transfers, of which those are `done`.
    pub(crate) fn tell(&self, h: usize, done: Vec<Done>, warm: Time, map: &mut Map<String, Json>) {
        let since = done.iter().filter(|d| d.start >= warm);
        let mut took: Vec<f64> = since.map(|d| d.took.as_secs()).collect();
        outcome::completions(&mut took, map);
        let Host { started, refused, .. } = self.hosts[h];
        map.insert("started".into(), started.into());
        map.insert("unfinished".into(), (started - done.len() as u64).into());
        map.insert("refused".into(), refused.into());
    }

    /// Whether its transfers are answers to queries.
    pub fn queries_are_made(&self) -> bool {
        matches!(self.kind, Kind::Incast(_))
    }
}
