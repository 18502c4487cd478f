//! Results of a simulation. A row of the flows is a flow or, for a crowd, one of its hosts with all
//! pooled flows of that host.

use super::World;
use crate::crowd::Crowd;
use crate::flow::{Ends, Flow};
use crate::outcome::{self, Column, Completions, Outcome, Summary, head};
use crate::series::Look;
use crate::tcp::Stats;
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::units::Time;

/// Row of the result: a flow, or a host of a crowd, by index.
#[derive(Clone, Copy)]
enum Row {
    Own(usize),
    Host(usize, usize),
}

/// Pooled flows and completions of a host, by index.
#[derive(Clone, Default)]
struct Held {
    flows: Vec<usize>,
    done: Vec<u32>,
}

impl World<'_> {
    /// Sample of each row, in the order of the series.
    pub(super) fn looked_at(&self) -> Vec<Look> {
        let own = self.flows[..self.own].iter().map(|flow| {
            let cwnd_packets = match &flow.ends {
                Ends::Tcp(tcp) => Some(tcp.sender.cwnd_packets()),
                Ends::Udp(_) => None,
            };
            let (delivered, received) = (flow.delivered_bytes(), flow.received_bytes());
            Look { delivered, received, cwnd_packets }
        });
        let mut rows: Vec<Look> = own.collect();
        let hosts = self.rows_of_hosts();
        rows.resize(rows.len() + hosts.last().copied().unwrap_or(0), Look::default());
        for (flow, lease) in self.flows[self.own..].iter().zip(&self.leases) {
            let row = hosts[lease.crowd as usize] + lease.host as usize;
            let look = &mut rows[self.own + row];
            look.delivered += flow.delivered_bytes();
            look.received += flow.received_bytes();
        }
        rows
    }

    /// First row of each crowd among all hosts, and the total number of hosts.
    fn rows_of_hosts(&self) -> Vec<usize> {
        let mut begin = vec![0];
        for crowd in &self.crowds {
            begin.push(begin[begin.len() - 1] + crowd.hosts.len());
        }
        begin
    }

    /// The result of the run.
    pub(super) fn outcome(mut self) -> Outcome {
        let scenario = self.scenario;
        // Arrivals after the end of the run may be known already; they do not count.
        let end = Time::ZERO + scenario.duration;
        for flow in &mut self.flows {
            if let Ends::Tcp(tcp) = &mut flow.ends {
                tcp.completions.retain(|c| c.start + c.took < end);
            }
        }
        for crowd in &mut self.crowds {
            crowd.done.retain(|d| d.start + d.took < end);
            crowd.queries.retain(|(made, took)| *made + *took < end);
        }
        let window_s = scenario.duration.as_secs() - scenario.warmup.as_secs();
        let bps = |bytes: u64| bytes as f64 * 8.0 / window_s;
        // Rows are in order of declaration.
        let own = (0..self.own).map(|f| (self.flows[f].group as usize, Row::Own(f)));
        let hosts = self.crowds.iter().enumerate().flat_map(|(c, crowd)| {
            (0..crowd.hosts.len()).map(move |h| (crowd.group, Row::Host(c, h)))
        });
        let mut order: Vec<(usize, Row)> = own.chain(hosts).collect();
        order.sort_by_key(|(group, _)| *group);
        let rows: Vec<Row> = order.into_iter().map(|(_, row)| row).collect();

        let mut links = Map::new();
        for (l, def) in scenario.links.iter().enumerate() {
            let crossing = |f: &&Flow| self.routes.all[f.route as usize][0].contains(&l);
            let bytes = self.flows.iter().filter(crossing).map(Flow::goodput_bytes).sum();
            let mut link = outcome::link(def.qdisc, &mut self.links[l], bps(bytes));
            let wire = self.wires.get(l).and_then(Option::as_ref);
            link["lost_on_wire_packets"] = wire.map_or(0, |wire| wire.lost).into();
            links.insert(def.name.clone(), link);
        }
        let held = self.held_by_hosts();
        let flows = rows.iter().map(|row| self.summary(*row, &held, &bps));
        let mut members = Map::new();
        members.insert("links".into(), Json::Object(links));
        members.insert("scenario".into(), scenario.canonical());
        let summary = Summary::new(("flows", flows), members);
        Outcome { columns: self.columns(&rows), summary }
    }

    /// Flows and completions of each host, by crowd and host.
    fn held_by_hosts(&self) -> Vec<Vec<Held>> {
        let of_crowd = |crowd: &Crowd| {
            let mut held = vec![Held::default(); crowd.hosts.len()];
            (0..).zip(&crowd.done).for_each(|(i, d)| held[d.host as usize].done.push(i));
            held
        };
        let mut all: Vec<Vec<Held>> = self.crowds.iter().map(of_crowd).collect();
        for (i, lease) in self.leases.iter().enumerate() {
            all[lease.crowd as usize][lease.host as usize].flows.push(self.own + i);
        }
        all
    }

    fn summary(&self, row: Row, held: &[Vec<Held>], bps: &dyn Fn(u64) -> f64) -> Json {
        let scenario = self.scenario;
        let warm = Time::ZERO + scenario.warmup;
        match row {
            Row::Own(f) => {
                let flow = &self.flows[f];
                let group = &scenario.flows[flow.group as usize].name;
                summary(flow, group, bps(flow.goodput_bytes()), warm)
            }
            Row::Host(c, h) => {
                let crowd = &self.crowds[c];
                let def = &scenario.flows[crowd.group];
                let flows = || held[c][h].flows.iter().map(|f| &self.flows[*f]);
                let bytes = flows().map(Flow::goodput_bytes).sum();
                let of_links = def.delay_of_links(&scenario.links, h as u64);
                let rtt = Flow::rtt_of(def, h as u64, of_links, scenario.seed);
                let mut map = head(&crowd.hosts[h].name, &def.name, bps(bytes), rtt.as_secs());
                let mut all = Stats::default();
                for flow in flows() {
                    if let Ends::Tcp(tcp) = &flow.ends {
                        let stats = tcp.stats();
                        all.sent_packets += stats.sent_packets;
                        all.retransmitted_packets += stats.retransmitted_packets;
                        all.timeouts += stats.timeouts;
                    }
                }
                of_tcp(&all, &mut map);
                let done = held[c][h].done.iter().map(|i| crowd.done[*i as usize]);
                crowd.tell(h, done.collect(), warm, &mut map);
                Json::Object(map)
            }
        }
    }

    fn columns(self, rows: &[Row]) -> Vec<(String, Column)> {
        let mut columns = Vec::new();
        let mut all = Completions::default();
        let hosts = self.rows_of_hosts();
        // Index of each flow, then of each host, in the result.
        let mut place = vec![0u32; self.own + hosts[hosts.len() - 1]];
        for (i, row) in (0..).zip(rows) {
            match *row {
                Row::Own(f) => place[f] = i,
                Row::Host(c, h) => place[self.own + hosts[c] + h] = i,
            }
        }
        for row in rows {
            match *row {
                Row::Own(f) => {
                    if let Ends::Tcp(tcp) = &self.flows[f].ends {
                        let done = &tcp.completions;
                        done.iter()
                            .for_each(|c| all.add(place[f], c.start, [c.took, c.startup], c.bytes));
                    }
                }
                // All completions of a crowd go with its first host, in order of completion.
                Row::Host(c, 0) => {
                    let base = self.own + hosts[c];
                    for d in &self.crowds[c].done {
                        let flow = place[base + d.host as usize];
                        all.add(flow, d.start, [d.took, d.startup], d.bytes);
                    }
                    all.answers(place[base], &self.crowds[c].queries);
                }
                Row::Host(..) => {}
            }
        }
        all.columns(self.crowds.iter().any(Crowd::queries_are_made), &mut columns);
        let lent = self.leases.iter().map(|l| self.own + hosts[l.crowd as usize] + l.host as usize);
        let of_flow: Vec<u32> = (0..self.own).chain(lent).map(|i| place[i]).collect();
        if let Some(series) = self.series {
            let own = self.flows[..self.own].iter().map(|f| f.name.as_str());
            let hosts = self.crowds.iter().flat_map(|c| c.hosts.iter().map(|h| h.name.as_str()));
            let names: Vec<&str> = own.chain(hosts).collect();
            series.columns(self.scenario, &names, &mut columns);
        }
        if self.scenario.tape {
            for (link, def) in self.links.iter().zip(&self.scenario.links) {
                outcome::tape(&def.name, link, &of_flow, &mut columns);
            }
        }
        columns
    }
}

fn of_tcp(stats: &Stats, map: &mut Map<String, Json>) {
    map.insert("kind".into(), json!("tcp"));
    map.insert("sent_packets".into(), json!(stats.sent_packets));
    map.insert("retransmitted_packets".into(), json!(stats.retransmitted_packets));
    map.insert("timeouts".into(), json!(stats.timeouts));
}

/// Summary of a flow.
fn summary(flow: &Flow, group: &str, goodput_bps: f64, warm: Time) -> Json {
    let mut map = head(&flow.name, group, goodput_bps, flow.rtt.as_secs());
    match &flow.ends {
        Ends::Tcp(tcp) => {
            of_tcp(&tcp.stats(), &mut map);
            let since = tcp.completions.iter().filter(|c| c.start >= warm);
            let mut took: Vec<f64> = since.map(|c| c.took.as_secs()).collect();
            outcome::completions(&mut took, &mut map);
        }
        Ends::Udp(udp) => {
            let mut put = |key: &str, value: Json| map.insert(key.into(), value);
            put("kind", json!("udp"));
            put("sent_packets", json!(udp.sent));
            put("retransmitted_packets", json!(0));
            put("timeouts", json!(0));
            put("received_packets", json!(udp.delay.count()));
            put("lost_packets", json!(udp.lost));
            put(
                "loss_rate",
                outcome::ratio(udp.lost as f64, (udp.lost + udp.delay.count()) as f64),
            );
            put("delay_mean_s", json!(udp.delay.mean_s()));
            put("delay_p50_s", json!(udp.delay.quantile_s(0.5)));
            put("delay_p95_s", json!(udp.delay.quantile_s(0.95)));
            put("delay_p99_s", json!(udp.delay.quantile_s(0.99)));
            put("delay_max_s", json!(udp.delay.max_s()));
            put("jitter_s", json!(udp.jitter_s()));
            outcome::completions(&mut [], &mut map);
        }
    }
    Json::Object(map)
}
