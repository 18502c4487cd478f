//! What a world tells when its run is over.

use super::World;
use crate::flow::{Ends, Flow};
use crate::outcome::{self, Column, Outcome};
use crate::scenario::Scenario;
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::units::Time;

impl World {
    /// Summaries and columns.
    pub(super) fn outcome(mut self, scenario: &Scenario) -> Outcome {
        // What is on the last wire is known, but it has not arrived.
        let end = Time::ZERO + scenario.duration;
        for flow in &mut self.flows {
            if let Ends::Tcp(tcp) = &mut flow.ends {
                tcp.completions.retain(|c| c.start + c.took < end);
            }
        }
        let window_s = scenario.duration.as_secs() - scenario.warmup.as_secs();
        let bps = |bytes: u64| bytes as f64 * 8.0 / window_s;
        // Flows go back in the order in which they were declared.
        let mut order: Vec<usize> = (0..self.flows.len()).collect();
        order.sort_by_key(|f| self.flows[*f].group);
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(i, f)| place[*f] = i as u32);

        let warm = Time::ZERO + scenario.warmup;
        let flows: Vec<Json> = order
            .iter()
            .map(|f| {
                let flow = &self.flows[*f];
                summary(flow, &scenario.flows[flow.group].name, bps(flow.goodput_bytes()), warm)
            })
            .collect();
        let mut links = Map::new();
        for (l, def) in scenario.links.iter().enumerate() {
            let crossing = |f: &&Flow| self.routes[f.group][0].contains(&l);
            let bytes = self.flows.iter().filter(crossing).map(Flow::goodput_bytes).sum();
            let mut link = outcome::link(def.qdisc, &mut self.links[l], bps(bytes));
            let wire = self.wires.get(l).and_then(Option::as_ref);
            link["lost_on_wire_packets"] = wire.map_or(0, |wire| wire.lost).into();
            links.insert(def.name.clone(), link);
        }
        let summary = json!({ "scenario": scenario.canonical(), "links": links, "flows": flows });
        Outcome { columns: self.columns(scenario, &order, &place), summary }
    }

    fn columns(self, scenario: &Scenario, order: &[usize], place: &[u32]) -> Vec<(String, Column)> {
        let mut columns = Vec::new();
        let (mut flow, mut start, mut took, mut bytes) = (vec![], vec![], vec![], vec![]);
        for f in order {
            if let Ends::Tcp(tcp) = &self.flows[*f].ends {
                for c in &tcp.completions {
                    flow.push(place[*f]);
                    start.push(c.start.0 as f64 / 1e9);
                    took.push(c.took.as_secs());
                    bytes.push(c.bytes);
                }
            }
        }
        columns.push(("fct/flow".into(), Column::U32(flow)));
        columns.push(("fct/start_s".into(), Column::F64(start)));
        columns.push(("fct/duration_s".into(), Column::F64(took)));
        columns.push(("fct/bytes".into(), Column::U64(bytes)));
        if let Some(series) = self.series {
            series.columns(scenario, &self.flows, &mut columns);
        }
        if scenario.tape {
            for (link, def) in self.links.iter().zip(&scenario.links) {
                outcome::tape(&def.name, link, place, &mut columns);
            }
        }
        columns
    }
}

/// The summary of a flow.
fn summary(flow: &Flow, group: &str, goodput_bps: f64, warm: Time) -> Json {
    let mut map = Map::new();
    let mut put = |key: &str, value: Json| map.insert(key.into(), value);
    put("name", json!(flow.name));
    put("group", json!(group));
    put("goodput_bps", json!(goodput_bps));
    put("rtt_s", json!(flow.rtt.as_secs()));
    match &flow.ends {
        Ends::Tcp(tcp) => {
            let stats = tcp.stats();
            put("kind", json!("tcp"));
            put("sent_packets", json!(stats.sent_packets));
            put("retransmitted_packets", json!(stats.retransmitted_packets));
            put("timeouts", json!(stats.timeouts));
            let since = tcp.completions.iter().filter(|c| c.start >= warm);
            let mut took: Vec<f64> = since.map(|c| c.took.as_secs()).collect();
            outcome::completions(&mut took, &mut map);
        }
        Ends::Udp(udp) => {
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
