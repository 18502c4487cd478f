//! Random networks: switches in a random tree with a few more cables, and hosts.

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use serde_json::{Map, Value, json};
use sojourn_aqm::random::Random;
use std::collections::VecDeque;

/// Generator of a scenario.
pub struct Topology {
    seed: u64,
    rng: Pcg64Mcg,
    switches: usize,
    hosts: usize,
    qdisc: Option<String>,
    tcp: Option<String>,
    rates: [&'static str; 2],
}

impl Topology {
    pub fn new(seed: u64) -> Topology {
        let mut rng = Pcg64Mcg::seed_from_u64(seed ^ 0x7070);
        let (switches, hosts) = (3 + rng.below(6) as usize, 8 + rng.below(10) as usize);
        Topology { seed, rng, switches, hosts, qdisc: None, tcp: None, rates: ["4mbit", "8mbit"] }
    }

    /// Lets every link between switches have this discipline.
    pub fn with_qdisc(mut self, name: &str) -> Topology {
        self.qdisc = Some(name.into());
        self
    }

    /// Lets every TCP flow use this TCP.
    pub fn with_tcp(mut self, name: &str) -> Topology {
        self.tcp = Some(name.into());
        self
    }

    /// Lets every link have one of these rates.
    pub fn with_rates(mut self, rates: [&'static str; 2]) -> Topology {
        self.rates = rates;
        self
    }

    fn pick(&mut self, n: usize) -> usize {
        self.rng.below(n as u32) as usize
    }

    /// Neighbours of every switch.
    fn cables(&mut self) -> Vec<Vec<usize>> {
        let mut near = vec![Vec::new(); self.switches];
        let mut connect = |a: usize, b: usize| {
            if a != b && !near[a].contains(&b) {
                near[a].push(b);
                near[b].push(a);
            }
        };
        for s in 1..self.switches {
            let other = self.rng.below(s as u32) as usize;
            connect(s, other);
        }
        for _ in 0..self.switches / 2 {
            let [a, b] = [0; 2].map(|_| self.rng.below(self.switches as u32) as usize);
            connect(a, b);
        }
        near
    }

    /// A shortest path between two switches.
    fn path(near: &[Vec<usize>], from: usize, to: usize) -> Vec<usize> {
        let mut previous = vec![None; near.len()];
        let mut queue = VecDeque::from([to]);
        while let Some(s) = queue.pop_front() {
            for next in &near[s] {
                if previous[*next].is_none() && *next != to {
                    previous[*next] = Some(s);
                    queue.push_back(*next);
                }
            }
        }
        let mut path = vec![from];
        while path[path.len() - 1] != to {
            path.push(previous[path[path.len() - 1]].expect("the switches are connected"));
        }
        path
    }

    /// Links of both directions of a cable.
    fn add(&mut self, links: &mut Map<String, Value>, a: &str, b: &str, qdisc: &Value) {
        // Few values, so that many packets arrive at the same time.
        let delay = ["1ms", "2ms", "5ms"][self.pick(3)];
        for name in [format!("{a}-{b}"), format!("{b}-{a}")] {
            let rate = self.rates[self.pick(2)];
            let mut link = json!({"rate": rate, "delay": delay, "qdisc": qdisc});
            if self.pick(12) == 0 {
                link["loss"] = json!(0.01);
            }
            links.insert(name, link);
        }
    }

    fn source(&mut self) -> Option<Value> {
        let until = ["received", "acked"][self.pick(2)];
        Some(match self.pick(9) {
            0 => json!({"name": "poisson", "size": "uniform(1kB, 40kB)", "load": "1mbit",
                "until": until, "most": 6}),
            1 => json!({"name": "sessions", "interval": "exponential(200ms)", "transfers": 3,
                "size": "lomax(mean=8kB, shape=1.2)", "gap": "exponential(50ms)",
                "until": until}),
            2 => json!({"name": "web", "sessions": 3, "launch": "exponential(50ms)", "pages": 5,
                "page_gap": "exponential(200ms)", "request": true, "parallel": 2,
                "objects": "pareto(mean=3, shape=1.5)", "object_gap": "exponential(20ms)",
                "until": until}),
            3 => json!({"name": "transfers", "size": "uniform(1kB, 60kB)",
                "gap": "exponential(50ms)"}),
            4 => json!({"name": "onoff", "rate": "1mbit", "packet": "1000B"}),
            5 => json!({"name": "poisson", "size": "1500B", "load": "300kbit", "until": until}),
            _ => return None,
        })
    }

    pub fn scenario(mut self) -> Value {
        let near = self.cables();
        let mut links = Map::new();
        let qdisc = match &self.qdisc {
            Some(name) => json!(name),
            None => json!(["codel", "fq_codel", "red", "droptail", "pie", "drr"][self.pick(6)]),
        };
        for (a, near) in near.iter().enumerate() {
            for b in near.iter().filter(|b| **b > a) {
                self.add(&mut links, &format!("s{a}"), &format!("s{b}"), &qdisc);
            }
        }
        let places: Vec<usize> = (0..self.hosts).map(|_| self.pick(self.switches)).collect();
        for (h, s) in places.iter().enumerate() {
            let droptail = json!({"name": "droptail", "limit": "30p"});
            self.add(&mut links, &format!("h{h}"), &format!("s{s}"), &droptail);
        }
        let route = |from: usize, to: usize| -> Vec<String> {
            let switches = Topology::path(&near, places[from], places[to]);
            let mut nodes = vec![format!("h{from}")];
            nodes.extend(switches.iter().map(|s| format!("s{s}")));
            nodes.push(format!("h{to}"));
            nodes.windows(2).map(|pair| format!("{}-{}", pair[0], pair[1])).collect()
        };
        let mut flows = Vec::new();
        for i in 0..self.hosts + 4 {
            let from = i % self.hosts;
            let to = (from + 1 + self.pick(self.hosts - 1)) % self.hosts;
            let mut flow = json!({"name": format!("f{i:02}"), "path": route(from, to)});
            flow["return_path"] = json!(route(to, from));
            match self.pick(10) {
                0 => flow["source"] = json!({"name": "call", "initial": "400kbit"}),
                1 => {
                    flow["source"] = json!({"name": "cbr", "rate": "300kbit", "packet": "500B"});
                    flow["return_path"] = json!([]);
                }
                _ => {
                    let tcp = match &self.tcp {
                        Some(name) => name.clone(),
                        None => ["newreno", "cubic", "dctcp", "bbr", "sack"][self.pick(5)].into(),
                    };
                    flow["tcp"] = json!(tcp);
                    if let Some(source) = self.source() {
                        flow["source"] = source;
                    }
                }
            }
            flows.push(flow);
        }
        let last = flows.len() - 1;
        let mut all = json!({"duration": "2500ms", "warmup": "500ms", "seed": self.seed,
            "packet_log": true, "links": links, "flows": flows});
        if self.pick(2) == 0 {
            all["sample"] = json!("100ms");
        }
        if self.pick(3) == 0 {
            all["changes"] = json!([{"at": "1200ms", "leave": ["f00", format!("f{last:02}")],
                "links": {"h0-s0": {"rate": "2mbit"}}}]);
            if places[0] != 0 {
                all["changes"][0].as_object_mut().expect("a table").remove("links");
            }
        }
        all
    }
}
