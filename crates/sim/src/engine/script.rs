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
use crate::engine::flow::Flow;
use crate::engine::sessions::SessionGroup;
use crate::output::outcome::{self, Column, Completions, flow_summary_head};
use crate::random_stream::random_stream;
use crate::traffic::application::{Amount, App, AppAction, SequentialTransfers};
use crate::traffic::transfer::{Completion, OpenRequest, Transfer};
use crate::traffic::video::VideoPlayer;
use serde_json::Value as Json;
use sojourn_aqm::cast;
use sojourn_aqm::sorting::sort_by_key;
use sojourn_aqm::units::{Span, Time};

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
        amount: Amount,
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

/// Flow with its own source.
#[derive(Debug)]
struct SingleFlow {
    group: usize,
    /// Time of its next action.
    due: Time,
    stop: Time,
    source: SingleSource,
    /// Time at which its connection was established.
    established: Time,
    /// Completed transfers.
    completions: Vec<Completion>,
}

/// Parts of a flow that carries a video.
struct VideoFlow<'a> {
    player: &'a mut VideoPlayer,
    due: &'a mut Time,
    completions: &'a mut Vec<Completion>,
    established: &'a mut Time,
}

#[derive(Debug)]
enum SingleSource {
    Tcp(App),
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
        let rng = random_stream(seed, &format!("flows.{}.source", def.flow_name(i)));
        let mut due = def.source_start(i, seed);
        let source = if def.tcp.is_some() {
            SingleSource::Tcp(App::new(&def.source, due, rng))
        } else {
            let udp = UdpEndpoints::new(&def.source, i, due, rng);
            due = udp.first;
            SingleSource::Udp(Box::new(udp))
        };
        let (stop, established, completions) = (def.source_stop(), Time::ZERO, Vec::new());
        SingleFlow { group, due, stop, source, established, completions }
    }

    /// Performs the action that is due for row `row`, which is this one.
    fn act(&mut self, row: u32) -> Option<Action> {
        let now = std::mem::replace(&mut self.due, Time::NEVER);
        match &mut self.source {
            SingleSource::Udp(_) if now >= self.stop => None,
            SingleSource::Udp(udp) => {
                let (bytes, due) = udp.send(now);
                self.due = due;
                Some(Action::Datagram(row, bytes.into()))
            }
            SingleSource::Tcp(app) => {
                let (action, due) = app.act(now, self.stop);
                self.due = due;
                action.map(|action| match action {
                    AppAction::Open(amount) => {
                        Action::Open { flow: row, row, amount, request: false, keep: false }
                    }
                    AppAction::Write(bytes) => Action::Write(row, bytes),
                    AppAction::Fetch(bytes) => {
                        let amount = Amount::Bytes(bytes);
                        Action::Open { flow: row, row, amount, request: false, keep: true }
                    }
                    AppAction::Stop => Action::Stop(row),
                })
            }
        }
    }
}

impl Script {
    /// Creates the script of `scenario`.
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
            for member in 0..def.count() {
                let of_links = def.links_delay(&scenario.links, member);
                let rtt = Flow::rtt_of(def, member, of_links, scenario.seed());
                rows.push(Row { name: def.flow_name(member), group, member, rtt });
                own.push((!of_crowd).then(|| SingleFlow::new(def, group, member, scenario.seed())));
            }
        }
        sort_by_key(&mut leaves, |leave| std::cmp::Reverse(*leave));
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

    /// Performs the earliest action due by `now`, at its due time. Returns what the caller must do,
    /// if anything. Call until nothing is due.
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

    /// Opens a connection of a session group.
    fn open(&mut self, g: usize, open: OpenRequest) -> Action {
        let first_pooled = cast::number(self.rows.len());
        let SessionRows { sessions, first } = &mut self.groups[g];
        let flow = sessions.take_idle_flow(&open).unwrap_or_else(|| {
            self.pooled.push(PooledFlow { group: g, host: open.host, transfer: None });
            first_pooled + cast::number(self.pooled.len()) - 1
        });
        self.pooled[(flow - first_pooled) as usize].transfer = Some(Transfer::new(open));
        let OpenRequest { bytes, request, reuse_connection: keep, .. } = open;
        let amount = Amount::Bytes(bytes);
        Action::Open { flow, row: *first + open.host, amount, request, keep }
    }

    fn remove_group(&mut self, group: usize, now: Time) -> Action {
        for own in self.own.iter_mut().flatten().filter(|own| own.group == group) {
            (own.due, own.stop) = (Time::NEVER, own.stop.min(now));
            own.completions.retain(|c| c.start + c.duration < now);
            if let SingleSource::Tcp(App::Video(player)) = &mut own.source {
                player.leave(now);
            }
        }
        for sessions in self.groups.iter_mut().map(|group| &mut group.sessions) {
            if sessions.group == group {
                sessions.leave(now);
            }
        }
        let first = cast::number(self.rows.iter().take_while(|row| row.group < group).count());
        Action::Leave(first, first + cast::saturate32(self.scenario.flows[group].count()))
    }

    /// Pooled flow with this number.
    fn pooled_flow(&mut self, flow: u32) -> Option<&mut PooledFlow> {
        self.pooled.get_mut((flow as usize).checked_sub(self.rows.len())?)
    }

    /// Flow with this number, if it has its own source and repeats transfers.
    fn sequential_transfers(
        &mut self,
        flow: u32,
    ) -> Option<(&mut SequentialTransfers, &mut Time, &mut Vec<Completion>)> {
        let SingleFlow { source, due, completions, .. } =
            self.own.get_mut(flow as usize)?.as_mut()?;
        match source {
            SingleSource::Tcp(App::Transfers(all)) => Some((all, due, completions)),
            _ => None,
        }
    }

    /// Flow with this number, if it has its own source and carries a video.
    fn video(&mut self, flow: u32) -> Option<VideoFlow<'_>> {
        let SingleFlow { source, due, completions, established, .. } =
            self.own.get_mut(flow as usize)?.as_mut()?;
        match source {
            SingleSource::Tcp(App::Video(player)) => {
                Some(VideoFlow { player, due, completions, established })
            }
            _ => None,
        }
    }

    /// Reports that the connection of a flow is established: its first byte can be sent.
    pub fn established(&mut self, flow: u32, at: Time) {
        if let Some(transfer) = self.pooled_flow(flow).and_then(|pooled| pooled.transfer.as_mut()) {
            transfer.startup = at.since(transfer.open.requested_at);
        } else if let Some((all, ..)) = self.sequential_transfers(flow) {
            all.current.startup = at.since(all.current.start);
        } else if let Some(video) = self.video(flow)
            && video.completions.is_empty()
        {
            *video.established = at;
        }
    }

    /// Reports that all bytes of a transfer were received.
    pub fn received(&mut self, flow: u32, at: Time) {
        if let Some(PooledFlow { group, host, transfer: Some(transfer) }) = self.pooled_flow(flow) {
            let (group, host, transfer) = (*group, *host, *transfer);
            self.groups[group].sessions.on_received(&transfer, host, at);
        } else if let Some((all, _, completions)) = self.sequential_transfers(flow) {
            completions.push(all.complete(at));
        } else if let Some(VideoFlow { player, completions, established, .. }) = self.video(flow) {
            player.on_received(at);
            let (start, bytes) = player.last_request();
            let (duration, startup) = (at.since(start), established.since(start));
            completions.push(Completion { start, duration, startup, bytes });
        }
    }

    /// Reports that all bytes of a transfer were acknowledged.
    pub fn acked(&mut self, flow: u32, at: Time) {
        if let Some(pooled) = self.pooled_flow(flow) {
            let (group, host, transfer) = (pooled.group, pooled.host, pooled.transfer.take());
            let Some(transfer) = transfer else { return };
            self.groups[group].sessions.on_acked(&transfer, host, flow, at);
        } else if let Some((all, due, _)) = self.sequential_transfers(flow) {
            *due = all.next_start(at);
        } else if let Some(video) = self.video(flow) {
            *video.due = video.player.next_request(at);
        }
    }

    /// Returns the results of the rows at the end of the run, without rates and packet counts: a
    /// summary per row, and the columns of completions.
    pub fn finish(mut self) -> (Vec<Json>, Vec<(String, Column)>) {
        let (scenario, mut all) = (&self.scenario, Completions::default());
        let (end, warm) = (Time::ZERO + scenario.duration(), Time::ZERO + scenario.warmup());
        for SessionRows { sessions, .. } in &mut self.groups {
            sessions.done.retain(|d| d.start + d.took < end);
            sessions.queries.retain(|(start, took)| *start + *took < end);
        }
        let mut summaries = Vec::new();
        for (i, row) in (0u32..).zip(&self.rows) {
            let def = &scenario.flows[row.group];
            let mut map = flow_summary_head(&row.name, &def.name, 0.0, row.rtt.as_secs());
            let group = self.groups.iter().find(|group| group.sessions.group == row.group);
            match (&mut self.own[i as usize], group) {
                (Some(SingleFlow { completions: done, source, stop, .. }), _) => {
                    done.retain(|c| c.start + c.duration < end);
                    if let SingleSource::Tcp(App::Video(player)) = source {
                        outcome::insert_video(&player.stats(warm, end, *stop), &mut map);
                    }
                    let since = done.iter().filter(|c| c.start >= warm);
                    let mut took: Vec<f64> = since.map(|c| c.duration.as_secs()).collect();
                    outcome::insert_completions(&mut took, &mut map);
                    if let SingleSource::Tcp(App::Transfers(all)) = source {
                        map.insert("unfinished".into(), all.unfinished(done).into());
                    }
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
                (None, None) => unreachable!("a row is a flow or a host of a session group"),
            }
            summaries.push(Json::Object(map));
        }
        let mut columns = Vec::new();
        let queries = self.groups.iter().any(|group| group.sessions.has_queries());
        all.columns(queries, &mut columns);
        (summaries, columns)
    }
}
