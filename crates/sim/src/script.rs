//! What the applications of a scenario do and when, for who plays them over other transports than
//! those of the simulator: the same sources and the same dice.
//!
//! A player asks [`Script::next`] when there is something to do, has it told by [`Script::wake`],
//! and tells in return what became of each connection. A connection goes by the number of its flow:
//! first come the rows of the result, then flows that are lent to crowds, which serve one
//! connection after the other.

use crate::crowd::{self, Crowd, Open};
use crate::flow::{Completion, Flow, Told, stream};
use crate::outcome::{self, Column, Completions, head};
use crate::pace::Pace;
use crate::scenario::{FlowDef, Scenario};
use crate::source::{Source, Transfers};
use crate::udp::UdpEnds;
use rand_pcg::Pcg64Mcg;
use serde_json::Value as Json;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};

/// What a connection has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Always more.
    Endless,
    /// So many bytes.
    Bytes(u64),
    /// What will be written.
    Written,
}

/// What an application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cue {
    /// It opens a connection, or sends more on the last one of that flow if it has one to keep.
    Open {
        /// The flow.
        flow: u32,
        /// The row that it is counted for, which is also its pair of hosts.
        row: u32,
        /// What it sends.
        load: Load,
        /// Whether the receiver opens it and sends.
        request: bool,
        /// Whether the connection is kept for the next transfer of the flow.
        keep: bool,
    },
    /// It writes so many bytes into the connection of that flow.
    Write(u32, u64),
    /// It sends a datagram of so many bytes, headers included.
    Datagram(u32, u64),
    /// It gives that flow nothing more to send.
    Stop(u32),
    /// The rows from the first to before the second are gone, whatever they were doing.
    Leave(u32, u32),
}

/// A row of the result: a flow, or a host of a crowd.
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its group, as an index of the scenario's flows.
    pub group: usize,
    /// Its number in the group.
    pub member: u64,
    /// Propagation of its whole loop.
    pub rtt: Span,
}

/// A flow with an application of its own.
struct Own {
    group: usize,
    due: Time,
    stop: Time,
    app: App,
    /// Whether a connection was opened.
    open: bool,
}

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
        pace: Pace,
        rng: Pcg64Mcg,
        first: Span,
    },
    Udp(Box<UdpEnds>),
}

/// A crowd, and where its rows begin.
struct Group {
    crowd: Crowd,
    first: u32,
}

/// A flow that was lent: its crowd, its host, its transfer.
struct Lease {
    group: usize,
    host: u32,
    told: Option<Told>,
}

/// The applications of a scenario.
pub struct Script {
    scenario: Scenario,
    rows: Vec<Row>,
    /// By row; none where that is a host of a crowd.
    own: Vec<Option<Own>>,
    groups: Vec<Group>,
    leases: Vec<Lease>,
    /// Groups that leave, the last one first.
    leaves: Vec<(Time, usize)>,
}

impl Own {
    fn new(def: &FlowDef, group: usize, i: u64, seed: u64) -> Own {
        let stream = |what: &str| stream(seed, &format!("flows.{}.{what}", def.name_of(i)));
        let joins = Time::ZERO + def.joins.unwrap_or_default();
        let start = joins + def.source.start().sample(&mut stream("start"));
        let mut rng = stream("source");
        let (mut due, nothing) = (start, Span::ZERO);
        let app = match (&def.source, &def.tcp) {
            (source, None) => {
                let udp = UdpEnds::new(source, i, start, rng);
                due = udp.first;
                App::Udp(Box::new(udp))
            }
            (Source::Transfers(params), _) => {
                let (params, left) = (params.clone(), params.number.unwrap_or(u64::MAX));
                let now = Completion { start, took: nothing, startup: nothing, bytes: 0 };
                App::Transfers { params, rng, left, now, done: Vec::new() }
            }
            (source, _) => match Pace::of(source, &mut rng) {
                Some((pace, first)) => App::Paced { pace, rng, first },
                None => App::Bulk,
            },
        };
        let stop = def.source.stop().map_or(Time::NEVER, |s| joins + s);
        Own { group, due, stop, app, open: false }
    }

    /// What row `row`, this one, does now that it is due.
    fn act(&mut self, row: u32) -> Option<Cue> {
        let now = std::mem::replace(&mut self.due, Time::NEVER);
        let open = |load| Some(Cue::Open { flow: row, row, load, request: false, keep: false });
        if now >= self.stop {
            let streams = matches!(self.app, App::Bulk | App::Paced { .. });
            return (streams && self.open).then_some(Cue::Stop(row));
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
                *this = Completion { start, took: Span::ZERO, startup: Span::ZERO, bytes };
                open(Load::Bytes(bytes))
            }
            App::Paced { first, .. } if !self.open => {
                (self.open, self.due) = (true, now + *first);
                open(Load::Written)
            }
            App::Paced { pace, rng, .. } => {
                let (bytes, gap) = pace.send(rng);
                self.due = now + gap;
                Some(Cue::Write(row, bytes))
            }
            App::Udp(udp) => {
                let (bytes, due) = udp.send(now);
                self.due = due;
                Some(Cue::Datagram(row, bytes.into()))
            }
        }
    }
}

impl Script {
    /// That of `scenario`.
    pub fn new(scenario: Scenario) -> Script {
        let (mut rows, mut own, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        let mut leaves = Vec::new();
        for (group, def) in scenario.flows.iter().enumerate() {
            leaves.extend(def.leaves.map(|at| (Time::ZERO + at, group)));
            let of_crowd = crowd::is_crowd(def);
            if of_crowd {
                let crowd = Crowd::new(&scenario, group);
                groups.push(Group { crowd, first: cast::number(rows.len()) });
            }
            for member in 0..def.count {
                let of_links = def.delay_of_links(&scenario.links, member);
                let rtt = Flow::rtt_of(def, member, of_links, scenario.seed);
                rows.push(Row { name: def.name_of(member), group, member, rtt });
                own.push((!of_crowd).then(|| Own::new(def, group, member, scenario.seed)));
            }
        }
        leaves.sort_by_key(|leave| std::cmp::Reverse(*leave));
        Script { scenario, rows, own, groups, leases: Vec::new(), leaves }
    }

    /// The rows of the result.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// When there is next something to do; [`Time::NEVER`] if there will be nothing.
    pub fn next(&self) -> Time {
        let own = self.own.iter().flatten().map(|own| own.due);
        let crowds = self.groups.iter().map(|group| group.crowd.next());
        let leave = self.leaves.last().map_or(Time::NEVER, |leave| leave.0);
        own.chain(crowds).fold(leave, Time::min)
    }

    /// Does the first thing that is due by `now`, as if at the moment when it was due; gives what
    /// the player has to do for it, if anything. It must be called until nothing is due.
    pub fn wake(&mut self, now: Time) -> Option<Cue> {
        let at = self.next();
        if at > now {
            return None;
        }
        if self.leaves.last().is_some_and(|leave| leave.0 == at) {
            return self.leaves.pop().map(|(at, group)| self.leave(group, at));
        }
        let due = |own: &Option<Own>| own.as_ref().is_some_and(|own| own.due == at);
        if let Some(row) = self.own.iter().position(due) {
            return self.own[row].as_mut().and_then(|own| own.act(cast::number(row)));
        }
        let group = self.groups.iter().position(|group| group.crowd.next() == at)?;
        let open = self.groups[group].crowd.wake(at)?;
        Some(self.open(group, open))
    }

    /// A crowd opens a connection.
    fn open(&mut self, g: usize, open: Open) -> Cue {
        let first_lent = cast::number(self.rows.len());
        let Group { crowd, first } = &mut self.groups[g];
        let flow = crowd.lend(&open).unwrap_or_else(|| {
            self.leases.push(Lease { group: g, host: open.host, told: None });
            first_lent + cast::number(self.leases.len()) - 1
        });
        self.leases[(flow - first_lent) as usize].told = Some(Told::new(open));
        let Open { bytes, request, keep, .. } = open;
        Cue::Open { flow, row: *first + open.host, load: Load::Bytes(bytes), request, keep }
    }

    fn leave(&mut self, group: usize, now: Time) -> Cue {
        for own in self.own.iter_mut().flatten().filter(|own| own.group == group) {
            (own.due, own.stop) = (Time::NEVER, own.stop.min(now));
            if let App::Transfers { done, .. } = &mut own.app {
                done.retain(|c| c.start + c.took < now);
            }
        }
        for crowd in self.groups.iter_mut().map(|group| &mut group.crowd) {
            if crowd.group == group {
                crowd.leave(now);
            }
        }
        let first = cast::number(self.rows.iter().take_while(|row| row.group < group).count());
        Cue::Leave(first, first + cast::saturate32(self.scenario.flows[group].count))
    }

    /// The lease of a flow, if it is lent.
    fn lease(&mut self, flow: u32) -> Option<&mut Lease> {
        self.leases.get_mut((flow as usize).checked_sub(self.rows.len())?)
    }

    /// The repeated transfers of a flow, if it has such: the one under way, and those done.
    fn transfers(&mut self, flow: u32) -> Option<(&mut Completion, &mut Vec<Completion>)> {
        match &mut self.own.get_mut(flow as usize)?.as_mut()?.app {
            App::Transfers { now, done, .. } => Some((now, done)),
            _ => None,
        }
    }

    /// The connection of a flow stands: its first byte can be sent.
    pub fn established(&mut self, flow: u32, at: Time) {
        if let Some(told) = self.lease(flow).and_then(|lease| lease.told.as_mut()) {
            told.startup = at.since(told.open.since);
        } else if let Some((now, _)) = self.transfers(flow) {
            now.startup = at.since(now.start);
        }
    }

    /// All bytes of a transfer were received.
    pub fn received(&mut self, flow: u32, at: Time) {
        if let Some(Lease { group, host, told: Some(told) }) = self.lease(flow) {
            let (group, host, told) = (*group, *host, *told);
            self.groups[group].crowd.received(&told, host, at);
        } else if let Some((now, done)) = self.transfers(flow) {
            done.push(Completion { took: at.since(now.start), ..*now });
        }
    }

    /// The sender knows that all bytes of a transfer were received.
    pub fn acked(&mut self, flow: u32, at: Time) {
        if let Some(lease) = self.lease(flow) {
            let (group, host, told) = (lease.group, lease.host, lease.told.take());
            let Some(told) = told else { return };
            self.groups[group].crowd.acked(&told, host, flow, at);
        } else if let Some(Some(own)) = self.own.get_mut(flow as usize)
            && let App::Transfers { params, rng, .. } = &mut own.app
        {
            own.due = at + params.gap.sample(rng);
        }
    }

    /// What the rows have to tell at the end of the run, rates and packets apart: a summary of
    /// each, and the columns of completions.
    pub fn finish(mut self) -> (Vec<Json>, Vec<(String, Column)>) {
        let (scenario, mut all) = (&self.scenario, Completions::default());
        let (end, warm) = (Time::ZERO + scenario.duration, Time::ZERO + scenario.warmup);
        for Group { crowd, .. } in &mut self.groups {
            crowd.done.retain(|d| d.start + d.took < end);
            crowd.queries.retain(|(made, took)| *made + *took < end);
        }
        let mut told = Vec::new();
        for (i, row) in (0u32..).zip(&self.rows) {
            let def = &scenario.flows[row.group];
            let mut map = head(&row.name, &def.name, 0.0, row.rtt.as_secs());
            let group = self.groups.iter().find(|group| group.crowd.group == row.group);
            match (&mut self.own[i as usize], group) {
                (Some(Own { app: App::Transfers { done, .. }, .. }), _) => {
                    done.retain(|c| c.start + c.took < end);
                    let since = done.iter().filter(|c| c.start >= warm);
                    let mut took: Vec<f64> = since.map(|c| c.took.as_secs()).collect();
                    outcome::completions(&mut took, &mut map);
                    done.iter().for_each(|c| all.add(i, c.start, [c.took, c.startup], c.bytes));
                }
                (None, Some(Group { crowd, first })) => {
                    let host = i - first;
                    let done = crowd.done.iter().filter(|d| d.host == host).copied();
                    crowd.tell(host as usize, done.collect(), warm, &mut map);
                    if host == 0 {
                        for d in &crowd.done {
                            all.add(first + d.host, d.start, [d.took, d.startup], d.bytes);
                        }
                        all.answers(i, &crowd.queries);
                    }
                }
                _ => outcome::completions(&mut [], &mut map),
            }
            told.push(Json::Object(map));
        }
        let mut columns = Vec::new();
        let queries = self.groups.iter().any(|group| group.crowd.queries_are_made());
        all.columns(queries, &mut columns);
        (told, columns)
    }
}
