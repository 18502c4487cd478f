//! Kinds of session groups: arrival processes, sessions, queries, web pages.

use super::Host;
use super::event_heap::{EventHeap, SessionEvent};
use crate::collections::slab::Slab;
use crate::traffic::application::LARGEST_WRITE;
use crate::traffic::cluster::Cluster;
use crate::traffic::external::ArrivalSchedule;
use crate::traffic::packet_trace::PacketTrace;
use crate::traffic::session_params::{Incast, Poisson, Sessions, Web};
use crate::traffic::source::Source;
use crate::traffic::transfer::OpenRequest;
use crate::traffic::transfer::Transfer;
use sojourn_aqm::Pcg;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};

/// Source with its state.
#[derive(Clone, Debug, Snapshot)]
pub(super) enum SessionSource {
    /// Parameters, and number of flows still to arrive.
    Poisson(Poisson, u64),
    /// Partition/aggregate queries.
    Incast(IncastQueries),
    /// Sessions: number still to arrive, and transfers left in each active session.
    Sessions { params: Sessions, left: u64, here: Slab<u64> },
    /// Web users.
    Web(Box<WebUsers>),
    /// Recorded flows, with the index of the next row.
    Trace { trace: PacketTrace, start: Time, next: usize },
    /// Arrivals of an external source.
    External(ArrivalSchedule),
    /// None: the group is in another part of the simulation.
    Absent,
    /// Flows of a cluster: parameters, arrivals still to come, and the fraction of a nanosecond
    /// that the gaps have left.
    Cluster { params: Box<Cluster>, left: u64, carry: f64 },
}

/// State of partition/aggregate queries.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct IncastQueries {
    params: Incast,
    left: u64,
    /// Start of the current query.
    made: Time,
    /// Number of outstanding answers.
    waiting: usize,
    /// Time of the latest answer.
    last: Time,
}

/// State of web users.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct WebUsers {
    params: Web,
    /// Pages left per user.
    left: Vec<u64>,
    pages: Slab<Page>,
    objects: Slab<Object>,
}

#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct Page {
    user: u32,
    host: u32,
    /// Objects not yet requested.
    left: u64,
    /// Objects in transfer.
    open_connections: u64,
    /// True if the next object is due and waits until one in transfer ends.
    waits: bool,
}

#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct Object {
    page: u32,
    bytes: u64,
    requested_at: Time,
}

/// Draws a host uniformly. Uses one random number, none if there is one host.
fn draw_host(hosts: &[Host], rng: &mut Pcg) -> u32 {
    if hosts.len() == 1 { 0 } else { rng.below(cast::number(hosts.len())) }
}

impl SessionSource {
    /// Creates the state of `source` and schedules its first event.
    pub(super) fn new(
        source: &Source,
        [joins, start]: [Time; 2],
        events: &mut EventHeap,
        rng: &mut Pcg,
    ) -> SessionSource {
        match source {
            Source::Web(p) => {
                let users = WebUsers::new(p.clone(), [joins, start], events, rng);
                SessionSource::Web(Box::new(users))
            }
            Source::Poisson(p) => {
                events.push(start + p.arrivals().sample(rng), SessionEvent::Arrive);
                SessionSource::Poisson(
                    Poisson { interval: Some(p.arrivals()), ..p.clone() },
                    p.number.unwrap_or(u64::MAX),
                )
            }
            Source::Cluster(p) => {
                let (left, mut carry) = (p.number.unwrap_or(u64::MAX), 0.0);
                events.push(start + p.gap(&mut carry, rng), SessionEvent::Arrive);
                SessionSource::Cluster { params: Box::new(p.clone()), left, carry }
            }
            Source::Sessions(p) => {
                events.push(start + p.interval.sample(rng), SessionEvent::Arrive);
                let left = p.number.unwrap_or(u64::MAX);
                SessionSource::Sessions { params: p.clone(), left, here: Slab::new() }
            }
            Source::Incast(p) => {
                events.push(start, SessionEvent::Arrive);
                SessionSource::Incast(IncastQueries {
                    params: p.clone(),
                    left: p.number.unwrap_or(u64::MAX),
                    made: start,
                    waiting: 0,
                    last: start,
                })
            }
            Source::Trace(t) => {
                events.push(
                    t.rows.first().map_or(Time::NEVER, |r| start + r.at),
                    SessionEvent::Arrive,
                );
                SessionSource::Trace { trace: t.clone(), start, next: 0 }
            }
            Source::External(external) => {
                let schedule = ArrivalSchedule::new(external, start, LARGEST_WRITE, rng);
                events.push(schedule.next_time(), SessionEvent::Arrive);
                SessionSource::External(schedule)
            }
            _ => unreachable!("other sources do not use sessions"),
        }
    }

    /// Processes event `what` at `now`; returns the connection to open, if any.
    pub(super) fn process_event(
        &mut self,
        now: Time,
        what: SessionEvent,
        stop: Time,
        hosts: &[Host],
        events: &mut EventHeap,
        rng: &mut Pcg,
    ) -> Option<OpenRequest> {
        if let SessionEvent::Open(open) = what {
            return Some(open);
        }
        if now >= stop && what == SessionEvent::Arrive {
            return None;
        }
        let open = |host, bytes: u64, tag| OpenRequest {
            host,
            bytes: bytes.max(1),
            id: tag,
            requested_at: now,
            request: false,
            reuse_connection: false,
        };
        match self {
            SessionSource::Poisson(p, left) => {
                *left -= 1;
                let bytes = p.size.sample(rng).0;
                let host = draw_host(hosts, rng);
                if let Some(interval) = p.interval.as_ref().filter(|_| *left > 0) {
                    events.push(now + interval.sample(rng), SessionEvent::Arrive);
                }
                Some(open(host, bytes, 0))
            }
            SessionSource::Cluster { params, left, carry } => {
                *left -= 1;
                let members = params.draw_members(hosts.len() as u64, rng);
                for &member in &members[1..] {
                    let bytes = params.size.sample(rng).0;
                    events.push(now, SessionEvent::Open(open(member, bytes, 0)));
                }
                let bytes = params.size.sample(rng).0;
                if *left > 0 {
                    events.push(now + params.gap(carry, rng), SessionEvent::Arrive);
                }
                Some(open(members[0], bytes, 0))
            }
            SessionSource::Sessions { params, left, here } => {
                let session = match what {
                    SessionEvent::Next(session) => session,
                    _ => {
                        *left -= 1;
                        if *left > 0 {
                            events.push(now + params.interval.sample(rng), SessionEvent::Arrive);
                        }
                        here.insert(params.transfers)
                    }
                };
                let host = draw_host(hosts, rng);
                Some(open(host, params.size.sample(rng).0, session))
            }
            SessionSource::Trace { trace, start, next } => {
                let row = trace.rows[*next];
                *next += 1;
                if let Some(row) = trace.rows.get(*next) {
                    events.push(*start + row.at, SessionEvent::Arrive);
                }
                Some(open(row.flow, row.bytes, 0))
            }
            SessionSource::External(schedule) => {
                let host = draw_host(hosts, rng);
                let (_, bytes) = schedule.pop(rng);
                if schedule.next_time() < Time::NEVER {
                    events.push(schedule.next_time(), SessionEvent::Arrive);
                }
                Some(open(host, bytes, 0))
            }
            SessionSource::Incast(queries) => {
                queries.send_query(now, cast::number(hosts.len()), events, rng);
                None
            }
            SessionSource::Web(users) => users.act(now, what, stop, hosts, events, rng),
            SessionSource::Absent => None,
        }
    }

    /// Handles the end of a connection.
    pub(super) fn on_connection_end(
        &mut self,
        now: Time,
        transfer: &Transfer,
        events: &mut EventHeap,
        rng: &mut Pcg,
    ) {
        match self {
            SessionSource::Sessions { params, here, .. } => {
                let left = here.get_mut(transfer.open.id);
                *left -= 1;
                if *left == 0 {
                    here.remove(transfer.open.id);
                } else {
                    events.push(now + params.gap.sample(rng), SessionEvent::Next(transfer.open.id));
                }
            }
            SessionSource::Web(users) => users.ended(now, &transfer.open, events, rng),
            SessionSource::Poisson(..)
            | SessionSource::Cluster { .. }
            | SessionSource::Incast(_)
            | SessionSource::Trace { .. }
            | SessionSource::External(_)
            | SessionSource::Absent => {}
        }
    }

    /// Handles a complete answer at `at`; if it is the last one of a query, returns the query's
    /// start time and duration.
    pub(super) fn on_answer(
        &mut self,
        at: Time,
        events: &mut EventHeap,
        rng: &mut Pcg,
    ) -> Option<(Time, Span)> {
        let SessionSource::Incast(q) = self else { return None };
        q.last = q.last.max(at);
        q.waiting -= 1;
        if q.waiting > 0 {
            return None;
        }
        if q.left > 0 {
            events.push(q.last + q.params.gap.sample(rng), SessionEvent::Arrive);
        }
        Some((q.made, q.last - q.made))
    }
}

impl IncastQueries {
    fn send_query(&mut self, now: Time, servers: u32, events: &mut EventHeap, rng: &mut Pcg) {
        self.left -= 1;
        (self.made, self.last, self.waiting) = (now, now, servers as usize);
        for host in 0..servers {
            let bytes = self.params.size.sample(rng).0.max(1);
            let since = now + self.params.jitter.sample(rng);
            let open = OpenRequest {
                host,
                bytes,
                id: host,
                requested_at: since,
                request: false,
                reuse_connection: false,
            };
            events.push(since, SessionEvent::Open(open));
        }
    }
}

impl WebUsers {
    fn new(
        params: Web,
        [joins, start]: [Time; 2],
        events: &mut EventHeap,
        rng: &mut Pcg,
    ) -> WebUsers {
        let mut launched = Span::ZERO;
        for user in 0..params.sessions {
            // The start of the first user is drawn by the caller.
            let begin = if user == 0 { start } else { joins + params.start.sample(rng) };
            let first = params.first.sample(rng);
            events.push(begin + launched + first, SessionEvent::Next(cast::saturate32(user)));
            launched = launched + params.launch.sample(rng);
        }
        WebUsers {
            left: vec![params.pages.unwrap_or(u64::MAX); cast::index(params.sessions)],
            pages: Slab::new(),
            objects: Slab::new(),
            params,
        }
    }

    fn act(
        &mut self,
        now: Time,
        what: SessionEvent,
        stop: Time,
        hosts: &[Host],
        events: &mut EventHeap,
        rng: &mut Pcg,
    ) -> Option<OpenRequest> {
        let page = match what {
            SessionEvent::Object(page) => page,
            SessionEvent::Next(user) => {
                let left = &mut self.left[user as usize];
                if *left == 0 || now >= stop {
                    return None;
                }
                *left -= 1;
                let host = draw_host(hosts, rng);
                let left = cast::trunc(libm::ceil(self.params.objects.sample_f64(rng)).max(1.0));
                if self.params.overlap {
                    events.push(now + self.params.page_gap.sample(rng), SessionEvent::Next(user));
                }
                self.pages.insert(Page { user, host, left, ..Page::default() })
            }
            SessionEvent::Arrive | SessionEvent::Open(_) => return None,
        };
        let of = self.pages.get_mut(page);
        if self.params.parallel.is_some_and(|most| of.open_connections >= most) {
            of.waits = true;
            return None;
        }
        let bytes = self.params.size.sample(rng).0.max(1);
        let gap = self.params.object_gap.sample(rng);
        of.left -= 1;
        of.open_connections += 1;
        if of.left > 0 {
            events.push(now + gap, SessionEvent::Object(page));
        }
        let host = of.host;
        let tag = self.objects.insert(Object { page, bytes, requested_at: now });
        let request = self.params.request;
        let bytes = if request { 1 } else { bytes };
        Some(OpenRequest {
            host,
            bytes,
            id: tag,
            requested_at: now,
            request,
            reuse_connection: false,
        })
    }

    fn ended(&mut self, now: Time, open: &OpenRequest, events: &mut EventHeap, rng: &mut Pcg) {
        if open.request {
            let Object { bytes, requested_at: since, .. } = *self.objects.get_mut(open.id);
            let answer = OpenRequest { bytes, requested_at: since, request: false, ..*open };
            return events.push(now, SessionEvent::Open(answer));
        }
        let Object { page, .. } = *self.objects.remove(open.id);
        let of = self.pages.get_mut(page);
        of.open_connections -= 1;
        if std::mem::take(&mut of.waits) {
            events.push(now, SessionEvent::Object(page));
        }
        if of.left > 0 || of.open_connections > 0 {
            return;
        }
        let Page { user, .. } = *self.pages.remove(page);
        if !self.params.overlap {
            events.push(now + self.params.page_gap.sample(rng), SessionEvent::Next(user));
        }
    }
}
