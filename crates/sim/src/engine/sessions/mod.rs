//! Session group: a group of hosts that opens many short connections, several at a time.
//!
//! A session group has its own slot in the event queue. It decides when a connection is opened, on
//! which of its hosts (the members of the group, each with its own RTT), and its size. Connections
//! run on pooled flows: an idle one of that host or, if all are busy, a new one. Memory thus
//! depends on the maximum number of concurrent connections, not on their total.
//!
//! All random numbers of a group come from one stream, in the order of its events. Events are based
//! on what the *sender* knows. The only exception is the completion of an answer, which the
//! receiver reports early; no random number is drawn for it.

mod arrivals;
mod event_heap;

use crate::config::scenario::Scenario;
use crate::output::outcome;
use crate::random_stream::random_stream;
use crate::traffic::session_params::CompletionRule;
use crate::traffic::source::Source;
use crate::traffic::transfer::{OpenRequest, Transfer};
use arrivals::SessionSource;
use event_heap::EventHeap;
use serde_json::{Map, Value as Json};
use sojourn_aqm::Pcg;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};

/// Delay after which a connection beyond the limit is retried: the timeout of a lost SYN (RFC 6298
/// §2.1).
const AGAIN: Span = Span::s(1);

/// Completed transfer.
#[derive(Clone, Copy, Debug, Snapshot)]
pub struct CompletedTransfer {
    /// Start time.
    pub start: Time,
    /// Duration.
    pub took: Span,
    /// Time until the first byte could be sent; part of `took`.
    pub startup: Span,
    /// Payload, bytes.
    pub bytes: u64,
    /// Member of the group that sent it.
    pub host: u32,
}

/// Member of the group.
#[derive(Clone, Debug, Default, Snapshot)]
pub struct Host {
    /// Name.
    pub name: String,
    /// Idle pooled flows: for answers, and for requests.
    idle: [Vec<u32>; 2],
    /// Number of pooled flows created: for answers, and for requests.
    pub pooled: [u32; 2],
    /// Number of transfers started.
    pub started: u64,
    /// Number of connections deferred because too many were open.
    pub deferred: u64,
}

/// Group of hosts with its traffic source.
#[derive(Clone, Debug, Snapshot)]
pub struct SessionGroup {
    /// Index of the group in the scenario's flows.
    pub group: usize,
    /// Members.
    pub hosts: Vec<Host>,
    /// Indices of the flows of the pool that it holds.
    pub flows: Vec<u32>,
    /// Completed transfers, in the order in which completion became known.
    pub done: Vec<CompletedTransfer>,
    /// Completed queries: start time and duration until the last answer.
    pub queries: Vec<(Time, Span)>,
    kind: SessionSource,
    events: EventHeap,
    rng: Pcg,
    stop: Time,
    until: CompletionRule,
    reuse_connection: bool,
    max_open: u64,
    open_connections: u64,
}

impl SessionGroup {
    /// Creates the session group of the group of flows with this index.
    pub fn new(scenario: &Scenario, group: usize) -> SessionGroup {
        let def = &scenario.flows[group];
        let own_stream = |what: &str| {
            random_stream(scenario.first_seed(), &format!("flows.{}.{what}", def.name))
        };
        // Times of the source are relative to the join.
        let joins = Time::ZERO + def.joins.unwrap_or_default();
        let start = joins + def.source.start().sample(&mut own_stream("start"));
        let mut rng = own_stream("source");
        let mut events = EventHeap::default();
        let kind = SessionSource::new(&def.source, [joins, start], &mut events, &mut rng);
        let until = match &*def.source {
            Source::Poisson(p) => p.until,
            Source::Incast(p) => p.until,
            Source::Sessions(p) => p.until,
            Source::Cluster(p) => p.until,
            Source::Web(p) => p.until,
            _ => CompletionRule::Received,
        };
        let host = |i| Host { name: def.flow_name(i), ..Host::default() };
        SessionGroup {
            group,
            hosts: (0..def.count()).map(host).collect(),
            flows: Vec::new(),
            done: Vec::new(),
            queries: Vec::new(),
            kind,
            events,
            rng,
            stop: def.source.stop().map_or(Time::NEVER, |s| joins + s),
            until,
            reuse_connection: matches!(&*def.source, Source::Incast(p) if p.persistent),
            max_open: def.max_open_connections(),
            open_connections: 0,
        }
    }

    /// Group in place of one in another part of the simulation; it has no events. `group`
    /// is the index of its group of flows.
    pub fn absent(group: usize) -> SessionGroup {
        SessionGroup {
            group,
            hosts: Vec::new(),
            flows: Vec::new(),
            done: Vec::new(),
            queries: Vec::new(),
            kind: SessionSource::Absent,
            events: EventHeap::default(),
            rng: Pcg::new(0),
            stop: Time::NEVER,
            until: CompletionRule::Received,
            reuse_connection: false,
            max_open: 0,
            open_connections: 0,
        }
    }

    /// Time at which [`SessionGroup::process_next_event`] is next due.
    pub fn next(&self) -> Time {
        self.events.next()
    }

    /// Processes the first event due at `now`; returns the connection to open, if any.
    pub fn process_next_event(&mut self, now: Time) -> Option<OpenRequest> {
        let what = self.events.pop(now)?;
        let open = self.kind.process_event(
            now,
            what,
            self.stop,
            &self.hosts,
            &mut self.events,
            &mut self.rng,
        );
        let open = OpenRequest { reuse_connection: self.reuse_connection, ..open? };
        if self.open_connections >= self.max_open {
            self.hosts[open.host as usize].deferred += 1;
            self.events.push(now + AGAIN, event_heap::SessionEvent::Open(open));
            return None;
        }
        self.open_connections += 1;
        let host = &mut self.hosts[open.host as usize];
        host.started += u64::from(!open.request);
        Some(open)
    }

    /// Leave at `now`: nothing more is requested, and incomplete transfers stay incomplete. The
    /// pooled flows are made to leave separately.
    pub fn leave(&mut self, now: Time) {
        self.stop = self.stop.min(now);
        self.events.clear();
        self.done.retain(|d| d.start + d.took < now);
        self.queries.retain(|(start, took)| *start + *took < now);
    }

    /// Takes an idle pooled flow for this connection; None if a new one must be created.
    pub fn take_idle_flow(&mut self, open: &OpenRequest) -> Option<u32> {
        self.hosts[open.host as usize].idle[usize::from(open.request)].pop()
    }

    /// Number of pooled flows that the host of `open` has for the same purpose.
    pub fn number_of_next_flow(&self, open: &OpenRequest) -> u32 {
        self.hosts[open.host as usize].pooled[usize::from(open.request)]
    }

    /// Handles the reception of the last byte of `transfer` at `at`, possibly in the future.
    /// Returns the time at which the session group must be woken.
    pub fn on_received(&mut self, transfer: &Transfer, host: u32, at: Time) -> Time {
        if self.until == CompletionRule::Received && !transfer.open.request {
            self.complete(transfer, host, at);
        }
        self.next()
    }

    /// Handles the acknowledgement of all data of `transfer` at `now`: flow `f` becomes idle.
    /// Returns the time at which the session group must be woken.
    pub fn on_acked(&mut self, transfer: &Transfer, host: u32, f: u32, now: Time) -> Time {
        if self.until == CompletionRule::Acked && !transfer.open.request {
            self.complete(transfer, host, now);
        }
        self.open_connections -= 1;
        self.hosts[host as usize].idle[usize::from(transfer.open.request)].push(f);
        self.kind.on_connection_end(now, transfer, &mut self.events, &mut self.rng);
        self.next()
    }

    fn complete(&mut self, transfer: &Transfer, host: u32, at: Time) {
        let OpenRequest { requested_at: since, bytes, .. } = transfer.open;
        self.done.push(CompletedTransfer {
            start: since,
            took: at - since,
            startup: transfer.startup,
            bytes,
            host,
        });
        self.queries.extend(self.kind.on_answer(at, &mut self.events, &mut self.rng));
    }

    /// Adds the results of host `h`, whose completed transfers are `done`, to `map`.
    pub(crate) fn insert_results(
        &self,
        h: usize,
        done: Vec<CompletedTransfer>,
        warm: Time,
        map: &mut Map<String, Json>,
    ) {
        let since = done.iter().filter(|d| d.start >= warm);
        let mut took: Vec<f64> = since.map(|d| d.took.as_secs()).collect();
        outcome::insert_completions(&mut took, map);
        let Host { started, deferred: refused, .. } = self.hosts[h];
        map.insert("started".into(), started.into());
        map.insert("unfinished".into(), (started - done.len() as u64).into());
        map.insert("refused".into(), refused.into());
    }

    /// True if its transfers are answers to queries.
    pub fn has_queries(&self) -> bool {
        matches!(self.kind, SessionSource::Incast(_))
    }
}
