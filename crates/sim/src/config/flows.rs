//! Groups of flows of a scenario, and the links that they cross.

mod reading;

pub(super) use reading::parse_flows;

use super::flow_routes::{Hosts, RoutePair, delay_of};
use super::links::LinkConfig;
use super::spread::Spread;
use crate::endpoint::tcp::{Profile, TcpParams};
use crate::parsing::distribution::Distribution;
use crate::parsing::keys::table;
use crate::parsing::object::insert;
use crate::random_stream::random_stream;
use crate::traffic::session_params::Poisson;
use crate::traffic::source::Source;
use serde_json::{Map, Value as Json};
use sojourn_aqm::params::Value;
use sojourn_aqm::random::hash;
use sojourn_aqm::units::{Rate, Span, Time};
use sojourn_aqm::{Ecn, FlowHeader, Protocol, cast, choice};
use std::sync::Arc;

choice! {
    /// ECN field of packets that can be marked.
    pub enum Capable {
        /// ECN-capable, classic.
        Ect0 = "ect0",
        /// ECN-capable, low latency (RFC 9331).
        Ect1 = "ect1",
    }
}

table! {
    /// Group of flows with the same settings: traffic source, TCP (or UDP), links crossed.
    static FLOW at "flows", struct FlowKeys of FlowConfig, setters flow_setters;

    /// Name of the group: 1 to 64 letters, digits, "_" and "-".
    name: "text", required, [], "\"upload\"";

    /// Number of flows, 0 for none; if the source opens connections itself, number of hosts.
    count: u64, default "1", ["0" => "2000000"], "3";

    /// Traffic source: NAME, NAME(KEY=VALUE, ...), or a table with name and parameters.
    source: "name or table", default "bulk", [],
        "{ name = \"transfers\", size = \"100kB\", gap = \"exponential(1s)\" }";

    /// TCP: NAME, NAME(KEY=VALUE, ...), or a table with name and parameters. The sources cbr,
    /// onoff, trace and those in Python use UDP unless this key is given.
    tcp: "name or table", default "cubic", [], "{ name = \"reno\", ecn = true }";

    /// Links crossed by the data, in order. {i} in a name stands for the index of the flow in its
    /// group, from 0. A list of such lists has the links of each flow of the group. Required unless
    /// the group has spread.
    path: "names of links", optional "with spread, a shortest path from sender to receiver", [],
        "[\"up\"]";

    /// Links crossed by the acknowledgements, in order, like path.
    return_path: "names of links", optional "no queue on the return path, only delay", [],
        "[\"down\"]";

    /// Round-trip propagation time, drawn per flow if random. It is at least the sum of the delays
    /// of the links on path and return_path. If it is longer, acknowledgements have the difference
    /// as a further delay, without a queue, after the links of return_path. Data packets do not.
    rtt: "duration, or uniform|exponential|pareto|lomax|lognormal|cdf(...)",
        optional "the delays of the links crossed", [],
        "\"uniform(40ms, 200ms)\"";

    /// Traffic class of the packets, used by disciplines that separate classes. It is the DSCP for
    /// cake, pfifo_fast, fq and the priomap of prio and ets, the priority for skbprio; for the
    /// others, the number of a queue.
    class: "integer", default "0", ["0" => "65535"], "2";

    /// DSCP of the packets, 0 to 63, or one of the names CS0 to CS7, AF11 to AF43, EF, VA, LE:
    /// another way to write class.
    dscp: "integer or name", optional "from class", [], "\"EF\"";

    /// ECN field of the packets of a UDP source, ECT(0) or ECT(1), so that disciplines mark them
    /// instead of dropping them. The source does not react to marks. TCP has the parameters ecn and
    /// ect1 for it.
    ecn: "ect0|ect1", optional "packets are not ECN-capable", [], "\"ect1\"";

    /// Host that sends the data, for disciplines that share a link among hosts. {i} stands for the
    /// index of the flow in its group, from 0. A list has the host of each flow of the group.
    sender: "text or list", optional "a host of its own for each flow", [], "\"server\"";

    /// Host that receives the data, like sender.
    receiver: "text or list", optional "a host of its own for each flow", [], "\"laptop-{i}\"";

    /// Port of the host that sends the data, for filters of disciplines.
    sender_port: "integer", optional "none", ["1" => "65535"], "443";

    /// Port of the host that receives the data, for filters.
    receiver_port: "integer", optional "none", ["1" => "65535"], "50000";

    /// Mark of the packets in both directions, fwmark in Linux, for filters.
    mark: "integer", optional "none", ["0" => "4294967295"], "16";

    /// Packets take any of the shortest paths between the ends of path, over links that are called
    /// by their ends (h3-s20) and are up. Each connection, or each flowlet, which follows a gap,
    /// has a path by a hash in every switch; each packet has one drawn at random (packet), or in
    /// turn (round-robin).
    spread: "name or table", optional "all packets take path", [], "\"flowlet(gap=100us)\"";

    /// Hash functions of the switches, with spread: one in each, or the same in all, so that a
    /// switch chooses as the one before it did.
    hash: "per-switch|shared", optional "per-switch", [], "\"shared\"";
}

/// Parsed definition of a group of flows.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// Name.
    pub(crate) name: String,
    /// Values of the keys with a type.
    pub(crate) keys: FlowKeys,
    /// Traffic source; groups whose sources are written alike share it.
    pub(crate) source: Arc<Source>,
    /// TCP; None means UDP. Groups whose TCPs are written alike share it.
    pub(crate) tcp: Option<Arc<TcpParams>>,
    /// Links crossed by each flow, by index, in order: path and return path, the latter empty for a
    /// pure delay. A single entry if all flows cross the same links.
    pub(crate) routes: Vec<RoutePair>,
    /// Names of the links of path and return path as written; None if each flow has its own.
    pub(crate) written: [Option<Vec<String>>; 2],
    /// Rate of the first link of the first path.
    pub(crate) line_rate: Rate,
    /// Time of the transmissions of a full packet over the first path, and of its ack back.
    pub(crate) transmission: Span,
    /// Round-trip propagation delay; None for the delay of the links.
    pub(crate) rtt: Option<Distribution<Span>>,
    /// Traffic class of the packets; their DSCP, where a discipline reads one.
    pub(crate) class: u16,
    /// ECN field of the packets over UDP; None for Not-ECT.
    pub(crate) ecn: Option<Capable>,
    /// Names of the hosts that send and receive the data, as written.
    pub(crate) hosts: [Hosts; 2],
    /// Ports of these hosts, and the mark, where they are stated.
    pub(crate) labels: [Option<u64>; 3],
    /// Spread of the packets over the shortest paths; None if all take the path.
    pub(crate) spread: Option<Spread>,
    /// Time at which the group joins, set by the scenario's changes; None for the start.
    pub(crate) joins: Option<Span>,
    /// Time at which the group leaves, set by the scenario's changes; None for never.
    pub(crate) leaves: Option<Span>,
}

/// Keys of [`FlowConfig::labels`].
const LABELS: [&str; 3] = ["sender_port", "receiver_port", "mark"];

impl FlowConfig {
    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Traffic source.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// TCP; None means UDP.
    pub fn tcp(&self) -> Option<&TcpParams> {
        self.tcp.as_deref()
    }

    /// Round-trip propagation delay; None for the delay of the links.
    pub fn rtt(&self) -> Option<&Distribution<Span>> {
        self.rtt.as_ref()
    }

    /// Traffic class of the packets.
    pub fn class(&self) -> u16 {
        self.class
    }

    /// ECN field of the packets over UDP; what a TCP sends depends on the TCP.
    pub fn ecn(&self) -> Ecn {
        match self.ecn {
            None => Ecn::NotEct,
            Some(Capable::Ect0) => Ecn::Ect0,
            Some(Capable::Ect1) => Ecn::Ect1,
        }
    }

    /// Spread of the packets over the shortest paths; None if all take the path.
    pub fn spread(&self) -> Option<Spread> {
        self.spread
    }

    /// Canonical JSON form.
    pub(crate) fn canonical(&self, links: &[LinkConfig]) -> Json {
        let mut flow = self.canonical_keys(links);
        flow.insert("source".into(), self.source.canonical());
        if let Some(tcp) = &self.tcp {
            flow.insert("tcp".into(), tcp.canonical());
        }
        flow.into()
    }

    /// Canonical JSON form with null in place of the source and the TCP.
    pub(super) fn canonical_keys(&self, links: &[LinkConfig]) -> Map<String, Json> {
        let mut flow = Map::new();
        let mut set = |key: &str, value: Json| insert(&mut flow, key, value);
        set("name", self.name.as_str().into());
        set("source", Json::Null);
        set("path", self.canonical_way(0, links));
        set("return_path", self.canonical_way(1, links));
        set("class", self.class.into());
        if self.tcp.is_some() {
            set("tcp", Json::Null);
        }
        if let Some(rtt) = &self.rtt {
            set("rtt", rtt.write().into());
        }
        if let Some(ecn) = &self.ecn {
            set("ecn", ecn.write().into());
        }
        for (key, hosts) in ["sender", "receiver"].into_iter().zip(&self.hosts) {
            if let Some(names) = hosts.canonical() {
                set(key, names);
            }
        }
        self.keys.write(&mut flow);
        if let Some(spread) = self.spread {
            insert(&mut flow, "spread", spread.unit.canonical());
            insert(&mut flow, "hash", spread.hash.write().into());
        }
        for (key, label) in LABELS.into_iter().zip(self.labels) {
            if let Some(label) = label {
                insert(&mut flow, key, label.into());
            }
        }
        flow
    }

    /// Canonical JSON form of the path, or with 1 of the return path.
    fn canonical_way(&self, which: usize, links: &[LinkConfig]) -> Json {
        if let Some(names) = &self.written[which] {
            return names.as_slice().into();
        }
        let mut ways = Vec::with_capacity(self.routes.len());
        for route in &self.routes {
            let mut names = Vec::with_capacity(route[which].len());
            for l in &route[which] {
                names.push(Json::from(links[*l].name.as_str()));
            }
            ways.push(Json::Array(names));
        }
        ways.into()
    }

    /// Header fields of the `i`-th flow, whose data come from the host with the key `source`.
    pub(crate) fn header(&self, source: u32) -> FlowHeader {
        let tcp = self.tcp.as_ref().is_some_and(|tcp| tcp.settings().profile != Profile::Quic);
        let [sender, receiver, mark] = self.labels.map(Option::unwrap_or_default);
        let port = |port: u64| u16::try_from(port).expect("its range is the range of u16");
        FlowHeader {
            protocol: Some(if tcp { Protocol::Tcp } else { Protocol::Udp }),
            source,
            ports: [port(sender), port(receiver)],
            mark: cast::low32(mark),
        }
    }

    /// Links of the `i`-th flow, by index.
    ///
    /// # Panics
    /// If the group has no such flow.
    pub fn route(&self, i: u64) -> &RoutePair {
        &self.routes[self.route_index(i)]
    }

    /// Index of the route of the `i`-th flow.
    pub(crate) fn route_index(&self, i: u64) -> usize {
        if self.routes.len() == 1 { 0 } else { cast::index(i) }
    }

    /// Propagation delay of all links of the `i`-th flow's route, there and back.
    pub fn links_delay(&self, links: &[LinkConfig], i: u64) -> Span {
        delay_of(&self.routes[self.route_index(i)], links)
    }

    /// Name of the `i`-th flow.
    pub fn flow_name(&self, i: u64) -> String {
        if self.keys.count == 1 { self.name.clone() } else { format!("{}.{i}", self.name) }
    }

    /// Keys of the hosts that send and receive the data of the `i`-th flow. Hosts of the same name
    /// have the same key.
    pub fn host_keys(&self, i: u64) -> [u32; 2] {
        let name = |end: &str, hosts: &Hosts| hosts.name(i, format!("{}.{end}", self.flow_name(i)));
        [name("sender", &self.hosts[0]), name("receiver", &self.hosts[1])].map(|n| hash(&n))
    }

    /// Time at which the group joins. The times of its source are relative to it.
    fn joins(&self) -> Time {
        Time::ZERO + self.joins.unwrap_or_default()
    }

    /// Start of the source of the `i`-th flow.
    pub(crate) fn source_start(&self, i: u64, seed: u64) -> Time {
        let mut rng = random_stream(seed, &format!("flows.{}.start", self.flow_name(i)));
        self.joins() + self.source.start().sample(&mut rng)
    }

    /// End of the source of each flow; [`Time::NEVER`] without one.
    pub(crate) fn source_stop(&self) -> Time {
        self.source.stop().map_or(Time::NEVER, |stop| self.joins() + stop)
    }

    /// True if the group joins before the end of a run of this length; a group of a parsed scenario
    /// does.
    pub(crate) fn takes_part(&self, duration: Span) -> bool {
        self.joins.is_none_or(|joins| joins < duration)
    }

    /// True if the group is a session group.
    pub fn uses_sessions(&self) -> bool {
        match &*self.source {
            Source::Poisson(_)
            | Source::Incast(_)
            | Source::Sessions(_)
            | Source::Web(_)
            | Source::Cluster(_) => true,
            Source::Trace(_) => self.tcp.is_some(),
            Source::External(external) => external.connections,
            _ => false,
        }
    }

    /// Maximum number of connections of the group that sessions have open.
    pub(crate) fn max_open_connections(&self) -> u64 {
        match &*self.source {
            Source::Poisson(p) => p.most,
            Source::Incast(p) => p.most,
            Source::Sessions(p) => p.most,
            Source::Cluster(p) => p.most,
            Source::Web(p) => p.most * (1 + u64::from(p.request)),
            Source::Trace(p) => p.max_open(),
            Source::External(_) => Poisson::default().most,
            _ => 0,
        }
    }
}
