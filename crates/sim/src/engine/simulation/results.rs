//! Results of a simulation. A row is a flow or, for a group of sessions, one of its hosts with all
//! pooled flows of that host.

use super::{Progress, Simulation, may_continue};
use crate::endpoint::tcp::SenderStats;
use crate::endpoint::udp::UdpEndpoints;
use crate::engine::flow::{Endpoints, Flow};
use crate::engine::gauges::{Gauges, gauges_of};
use crate::engine::series::FlowSample;
use crate::engine::sessions::SessionGroup;
use crate::output::outcome::{self, Column, Completions, Outcome, Summary, flow_summary_head};
use crate::parsing::object::insert_all;
use serde_json::{Map, Value as Json};
use sojourn_aqm::sorting::sort_by_key;
use sojourn_aqm::units::Time;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Row of the result: a flow, or a host of a group of sessions, by index.
#[derive(Clone, Copy)]
enum ResultRow {
    Flow(usize),
    Host(usize, usize),
}

/// Pooled flows and completions of a host, by index.
#[derive(Clone, Default)]
struct HostContents {
    flows: Vec<usize>,
    done: Vec<u32>,
}

impl Simulation {
    /// Sample of each row, in the order of the series.
    pub(super) fn sample_rows(&self) -> Vec<FlowSample> {
        let each = self.scenario.sample_flows();
        let own = self.flows[..self.unpooled_flows].iter().map(|flow| {
            let (cwnd_packets, gauges) = match &flow.ends {
                Endpoints::Tcp(tcp) if each => {
                    (Some(tcp.sender.cwnd_packets()), gauges_of(&tcp.sender))
                }
                Endpoints::Tcp(tcp) => (Some(tcp.sender.cwnd_packets()), Gauges::new()),
                Endpoints::Udp(_) | Endpoints::Absent => (None, Gauges::new()),
            };
            let (delivered, received) = (flow.delivered_bytes(), flow.received_bytes());
            FlowSample { delivered, received, cwnd_packets, gauges }
        });
        let mut rows: Vec<FlowSample> = own.collect();
        let hosts = self.first_host_rows();
        rows.resize(rows.len() + hosts.last().copied().unwrap_or(0), FlowSample::default());
        for (flow, lease) in self.flows[self.unpooled_flows..].iter().zip(&self.pooled_owners) {
            let row = hosts[lease.sessions as usize] + lease.host as usize;
            let look = &mut rows[self.unpooled_flows + row];
            look.delivered += flow.delivered_bytes();
            look.received += flow.received_bytes();
        }
        rows
    }

    /// First row of each group of sessions among all hosts, and the total number of hosts.
    fn first_host_rows(&self) -> Vec<usize> {
        let mut begin = vec![0];
        for sessions in &self.sessions {
            begin.push(begin[begin.len() - 1] + sessions.hosts.len());
        }
        begin
    }

    /// The result of the run; `None` if `progress` returned `false`.
    pub(super) fn outcome(mut self, progress: &mut dyn FnMut(Progress) -> bool) -> Option<Outcome> {
        let so_far =
            Progress { share: 1.0, packets: self.departed_in_warmup + self.departed_packets() };
        let shared = Arc::clone(&self.scenario);
        let scenario = &*shared;
        // Arrivals after the end of the run may be known already; they do not count.
        let end = Time::ZERO + scenario.duration();
        for flow in &mut self.flows {
            if let Endpoints::Tcp(tcp) = &mut flow.ends {
                tcp.completions.retain(|c| c.start + c.duration < end);
            }
        }
        for sessions in &mut self.sessions {
            sessions.done.retain(|d| d.start + d.took < end);
            sessions.queries.retain(|(start, took)| *start + *took < end);
        }
        let window_s = scenario.duration().as_secs() - scenario.warmup().as_secs();
        let bps = |bytes: u64| bytes as f64 * 8.0 / window_s;
        // Rows are in order of declaration.
        let own =
            (0..self.unpooled_flows).map(|f| (self.flows[f].group as usize, ResultRow::Flow(f)));
        let hosts = self.sessions.iter().enumerate().flat_map(|(c, sessions)| {
            (0..sessions.hosts.len()).map(move |h| (sessions.group, ResultRow::Host(c, h)))
        });
        let mut order: Vec<(usize, ResultRow)> = own.chain(hosts).collect();
        order.retain(|(group, _)| scenario.flows[*group].takes_part(scenario.duration()));
        sort_by_key(&mut order, |(group, _)| *group);
        let rows: Vec<ResultRow> = order.into_iter().map(|(_, row)| row).collect();

        let (held, goodput) = (self.host_contents(), self.goodput_of_links());
        // A link is freed as soon as it is reported, if its packets were not logged.
        let (links, mut logged) = (std::mem::take(&mut self.links), Vec::new());
        let mut delays = Vec::new();
        let (progress, stopped) = (RefCell::new(progress), Cell::new(false));
        let goes_on = |i: usize| {
            let goes_on = !stopped.get() && may_continue(i, so_far, &mut **progress.borrow_mut());
            stopped.set(!goes_on);
            goes_on
        };
        let of_flows = (0..)
            .zip(&rows)
            .map_while(|(i, row)| goes_on(i).then(|| self.summary(*row, &held, &bps)));
        let of_links = (0..).zip(links).zip(goodput).map_while(|((l, mut link), bytes)| {
            let def = &scenario.links[l];
            let mut row =
                goes_on(l).then(|| outcome::link_summary(def.qdisc, &mut link, bps(bytes)))?;
            row["lost_on_wire_packets"] = 0.into();
            if let Some(Some(impaired)) = self.impaired.get(l) {
                impaired.summarise(&mut row);
            }
            self.switches.summarise_port(l, &mut link, &mut row);
            let table = format!("sojourn/{}", def.name);
            outcome::delay_columns(&table, [&link.stats().sojourn], &mut delays);
            logged.extend(scenario.packet_log().then_some(link));
            Some((&*def.name, row))
        });
        let summary = Summary::new(of_flows, of_links, self.switches.summaries(scenario), scenario);
        self.links = logged;
        (!stopped.get()).then(|| {
            self.delays_of_groups(&mut delays);
            let mut columns = self.columns(&rows);
            columns.extend(delays);
            Outcome { columns, summary }
        })
    }

    /// Adds the distributions of the delays of each group of UDP flows, and of its frames.
    fn delays_of_groups(&self, columns: &mut Vec<(String, Column)>) {
        let mut of_group: BTreeMap<u32, Vec<&UdpEndpoints>> = BTreeMap::new();
        for flow in &self.flows {
            if let Endpoints::Udp(udp) = &flow.ends {
                of_group.entry(flow.group).or_default().push(udp);
            }
        }
        for (group, all) in of_group {
            let name = &self.scenario.flows[group as usize].name;
            let delays = all.iter().map(|udp| &udp.delay);
            outcome::delay_columns(&format!("delay/{name}"), delays, columns);
            let frames = all.iter().filter_map(|udp| udp.call()).map(|call| &call.frame_delay);
            outcome::delay_columns(&format!("frame_delay/{name}"), frames, columns);
        }
    }

    /// For each link, the payload delivered to flows whose path crosses it, in bytes.
    fn goodput_of_links(&self) -> Vec<u64> {
        let mut of_routes = vec![0; self.routes.all.len()];
        let mut of_links = vec![0; self.links.len()];
        for (f, flow) in self.flows.iter().enumerate() {
            match &self.routing {
                Some(routing) if routing.spreads(flow) => {
                    routing.add_payload_of_last_path(f, flow, &mut of_links);
                }
                _ => of_routes[flow.route as usize] += flow.goodput_bytes(),
            }
        }
        if let Some(routing) = &self.routing {
            routing.add_payload(&mut of_links);
        }
        for (route, bytes) in self.routes.all.iter().zip(of_routes) {
            route[0].iter().for_each(|l| of_links[*l] += bytes);
        }
        of_links
    }

    /// Flows and completions of each host, by group of sessions and host.
    fn host_contents(&self) -> Vec<Vec<HostContents>> {
        let of_sessions = |sessions: &SessionGroup| {
            let mut held = vec![HostContents::default(); sessions.hosts.len()];
            (0..).zip(&sessions.done).for_each(|(i, d)| held[d.host as usize].done.push(i));
            held
        };
        let mut all: Vec<Vec<HostContents>> = self.sessions.iter().map(of_sessions).collect();
        for (i, lease) in self.pooled_owners.iter().enumerate() {
            all[lease.sessions as usize][lease.host as usize].flows.push(self.unpooled_flows + i);
        }
        all
    }

    fn summary(
        &self,
        row: ResultRow,
        held: &[Vec<HostContents>],
        bps: &dyn Fn(u64) -> f64,
    ) -> Json {
        let scenario = &*self.scenario;
        let warm = Time::ZERO + scenario.warmup();
        match row {
            ResultRow::Flow(f) => {
                let flow = &self.flows[f];
                let group = &scenario.flows[flow.group as usize].name;
                let end = Time::ZERO + scenario.duration();
                summary(flow, group, bps(flow.goodput_bytes()), [warm, end])
            }
            ResultRow::Host(c, h) => {
                let sessions = &self.sessions[c];
                let def = &scenario.flows[sessions.group];
                let flows = || held[c][h].flows.iter().map(|f| &self.flows[*f]);
                let bytes = flows().map(Flow::goodput_bytes).sum();
                let of_links =
                    self.routes.delay(self.routes.index(sessions.group, h as u64, false));
                let rtt = Flow::rtt_of(def, h as u64, of_links, scenario.first_seed());
                let mut map = flow_summary_head(
                    &sessions.hosts[h].name,
                    &def.name,
                    bps(bytes),
                    rtt.as_secs(),
                );
                let mut all = SenderStats::default();
                for flow in flows() {
                    if let Endpoints::Tcp(tcp) = &flow.ends {
                        let stats = tcp.stats();
                        all.sent_packets += stats.sent_packets;
                        all.retransmitted_packets += stats.retransmitted_packets;
                        all.timeouts += stats.timeouts;
                    }
                }
                insert_tcp_stats(&all, &mut map);
                let done = held[c][h].done.iter().map(|i| sessions.done[*i as usize]);
                sessions.insert_results(h, done.collect(), warm, &mut map);
                Json::Object(map)
            }
        }
    }

    fn columns(self, rows: &[ResultRow]) -> Vec<(String, Column)> {
        let mut columns = Vec::new();
        let mut all = Completions::default();
        let hosts = self.first_host_rows();
        // Index of each flow, then of each host, in the result.
        let mut place = vec![0u32; self.unpooled_flows + hosts[hosts.len() - 1]];
        for (i, row) in (0..).zip(rows) {
            match *row {
                ResultRow::Flow(f) => place[f] = i,
                ResultRow::Host(c, h) => place[self.unpooled_flows + hosts[c] + h] = i,
            }
        }
        for row in rows {
            match *row {
                ResultRow::Flow(f) => {
                    if let Endpoints::Tcp(tcp) = &self.flows[f].ends {
                        let done = &tcp.completions;
                        done.iter().for_each(|c| {
                            all.add(place[f], c.start, [c.duration, c.startup], c.bytes)
                        });
                    }
                }
                // The first host of a group has all its completions, in order.
                ResultRow::Host(c, 0) => {
                    let base = self.unpooled_flows + hosts[c];
                    for d in &self.sessions[c].done {
                        let flow = place[base + d.host as usize];
                        all.add(flow, d.start, [d.took, d.startup], d.bytes);
                    }
                    all.add_queries(place[base], &self.sessions[c].queries);
                }
                ResultRow::Host(..) => {}
            }
        }
        all.columns(self.sessions.iter().any(SessionGroup::has_queries), &mut columns);
        let pooled = self
            .pooled_owners
            .iter()
            .map(|l| self.unpooled_flows + hosts[l.sessions as usize] + l.host as usize);
        let of_flow: Vec<u32> = (0..self.unpooled_flows).chain(pooled).map(|i| place[i]).collect();
        if let Some(series) = self.series {
            let own = self.flows[..self.unpooled_flows].iter();
            let own = own.map(|flow| (flow.group as usize, flow.name.as_str()));
            let hosts = self.sessions.iter().flat_map(|sessions| {
                sessions.hosts.iter().map(|host| (sessions.group, host.name.as_str()))
            });
            let names: Vec<(usize, &str)> = own.chain(hosts).collect();
            series.columns(&self.scenario, &names, &mut columns);
        }
        if self.scenario.packet_log() {
            for (link, def) in self.links.iter().zip(self.scenario.links.iter()) {
                outcome::packet_log_columns(&def.name, link, &of_flow, &mut columns);
            }
        }
        columns
    }
}

fn insert_tcp_stats(stats: &SenderStats, map: &mut Map<String, Json>) {
    insert_all(
        map,
        &mut [
            ("kind", "tcp".into()),
            ("sent_packets", stats.sent_packets.into()),
            ("retransmitted_packets", stats.retransmitted_packets.into()),
            ("timeouts", stats.timeouts.into()),
        ],
    );
}

/// Summary of a flow.
fn summary(flow: &Flow, group: &str, goodput_bps: f64, [warm, end]: [Time; 2]) -> Json {
    let mut map = flow_summary_head(&flow.name, group, goodput_bps, flow.rtt.as_secs());
    match &flow.ends {
        Endpoints::Absent => {}
        Endpoints::Tcp(tcp) => {
            insert_tcp_stats(&tcp.stats(), &mut map);
            let since = tcp.completions.iter().filter(|c| c.start >= warm);
            let mut took: Vec<f64> = since.map(|c| c.duration.as_secs()).collect();
            outcome::insert_completions(&mut took, &mut map);
            if let Some(unfinished) = tcp.unfinished() {
                map.insert("unfinished".into(), unfinished.into());
            }
            if let Some(video) = flow.video_stats(warm, end) {
                outcome::insert_video(&video, &mut map);
            }
        }
        Endpoints::Udp(udp) => {
            let sent = udp.lost + udp.delay.count();
            insert_all(
                &mut map,
                &mut [
                    ("kind", "udp".into()),
                    ("sent_packets", udp.sent.into()),
                    ("retransmitted_packets", 0.into()),
                    ("timeouts", 0.into()),
                    ("received_packets", udp.delay.count().into()),
                    ("lost_packets", udp.lost.into()),
                    ("loss_rate", outcome::ratio(udp.lost as f64, sent as f64)),
                    ("delay_mean_s", udp.delay.mean_s().into()),
                    ("delay_p50_s", udp.delay.quantile_s(0.5).into()),
                    ("delay_p95_s", udp.delay.quantile_s(0.95).into()),
                    ("delay_p99_s", udp.delay.quantile_s(0.99).into()),
                    ("delay_max_s", udp.delay.max_s().into()),
                    ("jitter_s", udp.jitter_s().into()),
                ],
            );
            if let Some(call) = udp.call() {
                outcome::insert_call(call, &mut map);
            }
            outcome::insert_completions(&mut [], &mut map);
        }
    }
    Json::Object(map)
}
