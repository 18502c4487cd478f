//! Topologies with ties for both engines: many links of one rate, delays of whole microseconds, and
//! senders that start together, so that packets of many links are due at the same nanosecond.

use rand_core::SeedableRng;
use serde_json::{Value, json};
use sojourn_aqm::random::Random;

/// Hosts of a fat tree with switches of four ports.
const TREE_HOSTS: usize = 16;
/// Hosts of a star.
const STAR_HOSTS: usize = 20;

type Pick<'a> = &'a mut dyn FnMut(usize) -> usize;

/// A small fat tree for even seeds, a star for odd ones. Every seed has one discipline; on every
/// third seed the links of hosts have another one.
pub fn tied(seed: u64) -> Value {
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed ^ 0x7133);
    let mut pick = |n: usize| rng.below(n as u32) as usize;
    let tree = seed.is_multiple_of(2);
    let hosts = if tree { TREE_HOSTS } else { STAR_HOSTS };
    let qdiscs = [
        json!({"name": "droptail", "limit": "12p"}),
        json!({"name": "red", "limit": "30p", "ecn": true}),
        json!({"name": "codel", "ecn": true}),
        json!({"name": "droptail", "limit": "9kB"}),
    ];
    let (qdisc, other) = (pick(4), pick(4));
    let delay = ["0s", "1us", "10us"][pick(3)];
    let mut links = serde_json::Map::new();
    for name in if tree { tree_links() } else { star_links() } {
        let of_host = name.contains('h') && seed.is_multiple_of(3);
        let qdisc = &qdiscs[if of_host { other } else { qdisc }];
        links.insert(name, json!({"rate": "1mbit", "delay": delay, "qdisc": qdisc}));
    }
    let (shift, acks_cross_links) = (1 + pick(hosts - 1), pick(4) > 0);
    let flows: Vec<Value> = (0..hosts)
        .map(|from| {
            // One in four goes to the first host, where packets of many links meet.
            let to = if from > 0 && pick(4) == 0 { 0 } else { (from + shift) % hosts };
            let route = |from, to, pick: Pick<'_>| {
                if tree { tree_path(from, to, pick) } else { star_path(from, to) }
            };
            let mut flow =
                json!({"name": format!("f{from:02}"), "path": route(from, to, &mut pick)});
            if pick(4) == 0 {
                flow["source"] = json!({"name": "cbr", "rate": "200kbit", "packet": "1000B"});
                return flow;
            }
            let back = if acks_cross_links { route(to, from, &mut pick) } else { vec![] };
            flow["return_path"] = json!(back);
            flow["rtt"] = json!("20ms");
            let tcp = ["newreno", "dctcp", "cubic"][pick(3)];
            flow["tcp"] = json!({"name": tcp, "packet": "1000B", "ecn": true});
            if pick(3) == 0 {
                flow["source"] = json!({"name": "poisson", "size": "uniform(1kB, 30kB)",
                    "load": "200kbit", "most": 5});
            }
            flow
        })
        .collect();
    json!({"duration": "6s", "warmup": "1s", "seed": seed, "packet_log": true, "links": links,
        "flows": flows})
}

/// A topology of [`tied`] whose switches have shared buffers. On every fourth seed the links change
/// their rates, so that one of them stops for a time.
pub fn switched(seed: u64) -> Value {
    let mut all = tied(seed);
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed ^ 0x5a1f);
    let mut pick = |n: usize| rng.below(n as u32) as usize;
    let alpha = [0.125, 0.5, 1.0, 4.0][pick(4)];
    // Bytes of the buffer per port, and the reserve of each.
    let (each, reserve) = ([2_000, 4_000, 10_000][pick(3)], ["0B", "1000B", "1500B"][pick(3)]);
    let links = all["links"].as_object().expect("a table");
    let names: Vec<String> = links.keys().cloned().collect();
    let mut switches = serde_json::Map::new();
    for name in &names {
        let node = name.split('-').next().expect("a link is called by its ends");
        if !node.starts_with('h') {
            let new = || json!({"alpha": alpha, "reserve": reserve, "ports": []});
            let switch = switches.entry(node).or_insert_with(new);
            let ports = switch["ports"].as_array_mut().expect("a list");
            ports.push(json!(name));
            let buffer = each * ports.len();
            switch["buffer"] = json!(format!("{buffer}B"));
        }
    }
    all["switches"] = switches.into();
    if seed.is_multiple_of(4) {
        let name = &names[pick(names.len())];
        let change = |at: &str, rate: &str| json!({"at": at, "links": {name: {"rate": rate}}});
        all["changes"] =
            json!([change("2s", "0bit"), change("2.5s", "500kbit"), change("4s", "1mbit")]);
    }
    all
}

/// A topology of [`switched`] with queues per class at the ports. On every third seed the links
/// have strict priority, or DRR, among the classes.
pub fn classed(seed: u64) -> Value {
    let mut all = switched(seed);
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed ^ 0xc1a5);
    let mut pick = |n: usize| rng.below(n as u32) as usize;
    let classes = match pick(3) {
        0 => json!({"EF": {"alpha": 8}}),
        1 => json!({"46": {"alpha": 2, "reserve": "300B"}, "8-15": {}, "0": {"reserve": "1kB"}}),
        _ => json!({"0": {"alpha": 0.25}, "9-46": {"alpha": 4, "reserve": "0B"}}),
    };
    for switch in all["switches"].as_object_mut().expect("a table").values_mut() {
        switch["classes"] = classes.clone();
        // Reserves of four queues in place of one.
        switch["reserve"] = json!("200B");
    }
    for flow in all["flows"].as_array_mut().expect("a list") {
        flow["class"] = json!([0, 9, 10, 46][pick(4)]);
    }
    if seed.is_multiple_of(3) {
        let name = ["prio", "drr"][pick(2)];
        let filters = json!([{"to": 0, "class": "46"}, {"to": 2, "class": "8-15"}, {"to": 1}]);
        let qdisc = json!({"name": name, "flows": 3, "limit": "20p", "filters": filters});
        for link in all["links"].as_object_mut().expect("a table").values_mut() {
            link["qdisc"] = qdisc.clone();
        }
    }
    all
}

/// Both links between every host and the switch.
fn star_links() -> Vec<String> {
    (0..STAR_HOSTS).flat_map(|h| [format!("h{h}-s"), format!("s-h{h}")]).collect()
}

fn star_path(from: usize, to: usize) -> Vec<String> {
    vec![format!("h{from}-s"), format!("s-h{to}")]
}

/// Both links of every cable: hosts to edge switches, edge to aggregation, aggregation to core.
fn tree_links() -> Vec<String> {
    let hosts = (0..TREE_HOSTS).map(|h| (format!("h{h}"), format!("e{}", h / 2)));
    let edges = (0..8).flat_map(|e| (0..2).map(move |i| (e, e / 2 * 2 + i)));
    let edges = edges.map(|(e, a)| (format!("e{e}"), format!("a{a}")));
    let cores = (0..8).flat_map(|a| (0..2).map(move |j| (a, a % 2 * 2 + j)));
    let cores = cores.map(|(a, c)| (format!("a{a}"), format!("c{c}")));
    let cables = hosts.chain(edges).chain(cores);
    cables.flat_map(|(a, b)| [format!("{a}-{b}"), format!("{b}-{a}")]).collect()
}

/// A shortest path, over a random one of the switches in each layer.
fn tree_path(from: usize, to: usize, pick: Pick<'_>) -> Vec<String> {
    let (edge, far_edge) = (from / 2, to / 2);
    let (pod, far_pod) = (edge / 2, far_edge / 2);
    let (i, j) = (pick(2), pick(2));
    let mut nodes = vec![format!("h{from}"), format!("e{edge}")];
    if edge != far_edge {
        nodes.push(format!("a{}", pod * 2 + i));
    }
    if pod != far_pod {
        nodes.extend([format!("c{}", i * 2 + j), format!("a{}", far_pod * 2 + i)]);
    }
    if edge != far_edge {
        nodes.push(format!("e{far_edge}"));
    }
    nodes.push(format!("h{to}"));
    nodes.windows(2).map(|pair| format!("{}-{}", pair[0], pair[1])).collect()
}
