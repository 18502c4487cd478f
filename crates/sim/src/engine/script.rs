//! Actions of a scenario's applications over time, for real transports instead of the simulated
//! ones. Sources and random numbers are the same as in the simulation.
//!
//! The caller polls [`Script::next`] for the time of the next action, gets it from
//! [`Script::pop_action`], and reports the progress of each connection. A connection is identified
//! by the number of its flow: first the rows of the result, then pooled flows of session groups,
//! each of which serves one connection after the other.

use crate::config::flows::FlowConfig;
use crate::config::scenario::Scenario;
use crate::endpoint::udp::UdpEndpoints;
use crate::engine::flow::{Completion, Flow};
use crate::engine::random_stream::random_stream;
use crate::engine::sessions::SessionGroup;
use crate::engine::transfer::OpenRequest;
use crate::engine::transfer::Transfer;
use crate::output::outcome::{self, Column, Completions, flow_summary_head};
use crate::traffic::pacing::PacketSchedule;
use crate::traffic::source::{Source, Transfers};
use rand_pcg::Pcg64Mcg;
use serde_json::Value as Json;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};

/// Amount of data of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Unlimited.
    Endless,
    /// Fixed number of bytes.
    Bytes(u64),
    /// Determined by later [`Action::Write`]s.
    Written,
}

/// Action of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a connection, or send more on the last one of the flow if that is kept.
    Open {
        /// Flow number.
        flow: u32,
        /// Row of the result that it counts for, which is also its pair of hosts.
        row: u32,
        /// Amount of data.
        load: Load,
        /// True if the receiver opens the connection and sends.
        request: bool,
        /// True if the connection is kept for the next transfer of the flow.
        keep: bool,
    },
    /// Write this many bytes into the connection of this flow.
    Write(u32, u64),
    /// Send a datagram of this many bytes, including headers, on this flow.
    Datagram(u32, u64),
    /// Stop giving data to this flow.
    Stop(u32),
    /// Abort all activity of the rows from the first up to, not including, the second.
    Leave(u32, u32),
}

/// Row of the result: a flow, or a host of a session group.
#[derive(Debug)]
pub struct Row {
    /// Name.
    pub name: String,
    /// Index of its group in the scenario's flows.
    pub group: usize,
    /// Number within the group.
    pub member: u64,
    /// Round-trip propagation delay.
    pub rtt: Span,
}

/// Flow with its own application.
#[derive(Debug)]
struct SingleFlow {
    group: usize,
    due: Time,
    stop: Time,
    app: App,
    /// True if a connection has been opened.
    open: bool,
}

#[derive(Debug)]
enum App {
    Bulk,
    Transfers {
        params: Transfers,
        rng: Pcg64Mcg,
        left: u64,
        now: Completion,
        done: Vec<Completion>,
    },
    Paced {
        pace: PacketSchedule,
        rng: Pcg64Mcg,
        first: Span,
    },
    Udp(Box<UdpEndpoints>),
}

/// Session group and its first row.
#[derive(Debug)]
struct SessionRows {
    sessions: SessionGroup,
    first: u32,
}

/// Pooled flow: its session group, host and current transfer.
#[derive(Debug)]
struct PooledFlow {
    group: usize,
    host: u32,
    transfer: Option<Transfer>,
}

/// Applications of a scenario.
#[derive(Debug)]
pub struct Script {
    scenario: Scenario,
    rows: Vec<Row>,
    /// Per row; None if the row is a host of a session group.
    own: Vec<Option<SingleFlow>>,
    groups: Vec<SessionRows>,
    pooled: Vec<PooledFlow>,
    /// Groups that leave, in descending order of time.
    leaves: Vec<(Time, usize)>,
}

impl SingleFlow {
    fn new(def: &FlowConfig, group: usize, i: u64, seed: u64) -> SingleFlow {
        let own_stream =
            |what: &str| random_stream(seed, &format!("flows.{}.{what}", def.flow_name(i)));
        let joins = Time::ZERO + def.joins.unwrap_or_default();
        let start = joins + def.source.start().sample(&mut own_stream("start"));
        let mut rng = own_stream("source");
        let (mut due, nothing) = (start, Span::ZERO);
        let app = match (&def.source, &def.tcp) {
            (source, None) => {
                let udp = UdpEndpoints::new(source, i, start, rng);
                due = udp.first;
                App::Udp(Box::new(udp))
            }
            (Source::Transfers(params), _) => {
                let (params, left) = (params.clone(), params.number.unwrap_or(u64::MAX));
                let now = Completion { start, duration: nothing, startup: nothing, bytes: 0 };
                App::Transfers { params, rng, left, now, done: Vec::new() }
            }
            (source, _) => match PacketSchedule::for_source(source, &mut rng) {
                Some((pace, first)) => App::Paced { pace, rng, first },
                None => App::Bulk,
            },
        };
        let stop = def.source.stop().map_or(Time::NEVER, |s| joins + s);
        SingleFlow { group, due, stop, app, open: false }
    }

    /// Perform the action that is due for row `row`, which is this one.
    fn act(&mut self, row: u32) -> Option<Action> {
        let now = std::mem::replace(&mut self.due, Time::NEVER);
        let open = |load| Some(Action::Open { flow: row, row, load, request: false, keep: false });
        if now >= self.stop {
            let streams = matches!(self.app, App::Bulk | App::Paced { .. });
            return (streams && self.open).then_some(Action::Stop(row));
        }
        match &mut self.app {
            App::Bulk => {
                (self.open, self.due) = (true, self.stop);
                open(Load::Endless)
            }
            App::Transfers { left: 0, .. } => None,
            App::Transfers { params, rng, left, now: this, .. } => {
                *left -= 1;
                let (start, bytes) = (now, params.size.sample(rng).0.max(1));
                *this = Completion { start, duration: Span::ZERO, startup: Span::ZERO, bytes };
                open(Load::Bytes(bytes))
            }
            App::Paced { first, .. } if !self.open => {
                (self.open, self.due) = (true, now + *first);
                open(Load::Written)
            }
            App::Paced { pace, rng, .. } => {
                let (bytes, gap) = pace.next_packet(rng);
                self.due = now + gap;
                Some(Action::Write(row, bytes))
            }
            App::Udp(udp) => {
                let (bytes, due) = udp.send(now);
                self.due = due;
                Some(Action::Datagram(row, bytes.into()))
            }
        }
    }
}

impl Script {
    /// Create the script of `scenario`.
    pub fn new(scenario: Scenario) -> Script {
        let (mut rows, mut own, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        let mut leaves = Vec::new();
        for (group, def) in scenario.flows.iter().enumerate() {
            leaves.extend(def.leaves.map(|at| (Time::ZERO + at, group)));
            let of_crowd = def.uses_sessions();
            if of_crowd {
                let sessions = SessionGroup::new(&scenario, group);
                groups.push(SessionRows { sessions, first: cast::number(rows.len()) });
            }
            for member in 0..def.count {
                let of_links = def.links_delay(&scenario.links, member);
                let rtt = Flow::rtt_of(def, member, of_links, scenario.seed);
                rows.push(Row { name: def.flow_name(member), group, member, rtt });
                own.push((!of_crowd).then(|| SingleFlow::new(def, group, member, scenario.seed)));
            }
        }
        leaves.sort_by_key(|leave| std::cmp::Reverse(*leave));
        Script { scenario, rows, own, groups, pooled: Vec::new(), leaves }
    }

    /// Rows of the result.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Time of the next action; [`Time::NEVER`] if there is none.
    pub fn next(&self) -> Time {
        let own = self.own.iter().flatten().map(|own| own.due);
        let sessions = self.groups.iter().map(|group| group.sessions.next());
        let leave = self.leaves.last().map_or(Time::NEVER, |leave| leave.0);
        own.chain(sessions).fold(leave, Time::min)
    }

    /// Perform the earliest action due by `now`, at its due time. Returns the cue for the caller,
    /// if any. Call until nothing is due.
    pub fn pop_action(&mut self, now: Time) -> Option<Action> {
        let at = self.next();
        if at > now {
            return None;
        }
        if self.leaves.last().is_some_and(|leave| leave.0 == at) {
            return self.leaves.pop().map(|(at, group)| self.remove_group(group, at));
        }
        let due = |own: &Option<SingleFlow>| own.as_ref().is_some_and(|own| own.due == at);
        if let Some(row) = self.own.iter().position(due) {
            return self.own[row].as_mut().and_then(|own| own.act(cast::number(row)));
        }
        let group = self.groups.iter().position(|group| group.sessions.next() == at)?;
        let open = self.groups[group].sessions.process_next_event(at)?;
        Some(self.open(group, open))
    }

    /// Open a connection of a session group.
    fn open(&mut self, g: usize, open: OpenRequest) -> Action {
        let first_pooled = cast::number(self.rows.len());
        let SessionRows { sessions, first } = &mut self.groups[g];
        let flow = sessions.take_idle_flow(&open).unwrap_or_else(|| {
            self.pooled.push(PooledFlow { group: g, host: open.host, transfer: None });
            first_pooled + cast::number(self.pooled.len()) - 1
        });
        self.pooled[(flow - first_pooled) as usize].transfer = Some(Transfer::new(open));
        let OpenRequest { bytes, request, reuse_connection: keep, .. } = open;
        Action::Open { flow, row: *first + open.host, load: Load::Bytes(bytes), request, keep }
    }

    fn remove_group(&mut self, group: usize, now: Time) -> Action {
        for own in self.own.iter_mut().flatten().filter(|own| own.group == group) {
            (own.due, own.stop) = (Time::NEVER, own.stop.min(now));
            if let App::Transfers { done, .. } = &mut own.app {
                done.retain(|c| c.start + c.duration < now);
            }
        }
        for sessions in self.groups.iter_mut().map(|group| &mut group.sessions) {
            if sessions.group == group {
                sessions.leave(now);
            }
        }
        let first = cast::number(self.rows.iter().take_while(|row| row.group < group).count());
        Action::Leave(first, first + cast::saturate32(self.scenario.flows[group].count))
    }

    /// Pooled flow with this number.
    fn pooled_flow(&mut self, flow: u32) -> Option<&mut PooledFlow> {
        self.pooled.get_mut((flow as usize).checked_sub(self.rows.len())?)
    }

    /// Current and completed transfers of a flow with repeated transfers.
    fn sequential_transfers(
        &mut self,
        flow: u32,
    ) -> Option<(&mut Completion, &mut Vec<Completion>)> {
        match &mut self.own.get_mut(flow as usize)?.as_mut()?.app {
            App::Transfers { now, done, .. } => Some((now, done)),
            _ => None,
        }
    }

    /// Report that the connection of a flow is established: its first byte can be sent.
    pub fn established(&mut self, flow: u32, at: Time) {
        if let Some(transfer) = self.pooled_flow(flow).and_then(|lease| lease.transfer.as_mut()) {
            transfer.startup = at.since(transfer.open.requested_at);
        } else if let Some((now, _)) = self.sequential_transfers(flow) {
            now.startup = at.since(now.start);
        }
    }

    /// Report that all bytes of a transfer were received.
    pub fn received(&mut self, flow: u32, at: Time) {
        if let Some(PooledFlow { group, host, transfer: Some(transfer) }) = self.pooled_flow(flow) {
            let (group, host, transfer) = (*group, *host, *transfer);
            self.groups[group].sessions.on_received(&transfer, host, at);
        } else if let Some((now, done)) = self.sequential_transfers(flow) {
            done.push(Completion { duration: at.since(now.start), ..*now });
        }
    }

    /// Report that all bytes of a transfer were acknowledged.
    pub fn acked(&mut self, flow: u32, at: Time) {
        if let Some(lease) = self.pooled_flow(flow) {
            let (group, host, transfer) = (lease.group, lease.host, lease.transfer.take());
            let Some(transfer) = transfer else { return };
            self.groups[group].sessions.on_acked(&transfer, host, flow, at);
        } else if let Some(Some(own)) = self.own.get_mut(flow as usize)
            && let App::Transfers { params, rng, .. } = &mut own.app
        {
            own.due = at + params.gap.sample(rng);
        }
    }

    /// Return the results of the rows at the end of the run, without rates and packet counts: a
    /// summary per row, and the columns of completions.
    pub fn finish(mut self) -> (Vec<Json>, Vec<(String, Column)>) {
        let (scenario, mut all) = (&self.scenario, Completions::default());
        let (end, warm) = (Time::ZERO + scenario.duration, Time::ZERO + scenario.warmup);
        for SessionRows { sessions, .. } in &mut self.groups {
            sessions.done.retain(|d| d.start + d.took < end);
            sessions.queries.retain(|(made, took)| *made + *took < end);
        }
        let mut summaries = Vec::new();
        for (i, row) in (0u32..).zip(&self.rows) {
            let def = &scenario.flows[row.group];
            let mut map = flow_summary_head(&row.name, &def.name, 0.0, row.rtt.as_secs());
            let group = self.groups.iter().find(|group| group.sessions.group == row.group);
            match (&mut self.own[i as usize], group) {
                (Some(SingleFlow { app: App::Transfers { done, .. }, .. }), _) => {
                    done.retain(|c| c.start + c.duration < end);
                    let since = done.iter().filter(|c| c.start >= warm);
                    let mut took: Vec<f64> = since.map(|c| c.duration.as_secs()).collect();
                    outcome::insert_completions(&mut took, &mut map);
                    done.iter().for_each(|c| all.add(i, c.start, [c.duration, c.startup], c.bytes));
                }
                (None, Some(SessionRows { sessions, first })) => {
                    let host = i - first;
                    let done = sessions.done.iter().filter(|d| d.host == host).copied();
                    sessions.insert_results(host as usize, done.collect(), warm, &mut map);
                    if host == 0 {
                        for d in &sessions.done {
                            all.add(first + d.host, d.start, [d.took, d.startup], d.bytes);
                        }
                        all.add_queries(i, &sessions.queries);
                    }
                }
                _ => outcome::insert_completions(&mut [], &mut map),
            }
            summaries.push(Json::Object(map));
        }
        let mut columns = Vec::new();
        let queries = self.groups.iter().any(|group| group.sessions.has_queries());
        all.columns(queries, &mut columns);
        (summaries, columns)
    }
}
