//! A simulation that is watched while it runs: frames of numbers, and the packets of a queue.

use serde_json::{Map, Value as Json, json};
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::units::{Span, Time};
use sojourn_aqm::{Ecn, LogEntry, Packet, TcpFlags};
use sojourn_sim::{FlowState, LinkState, Outcome, Scenario, Simulation};
use std::collections::VecDeque;

/// Largest number of packets that left a link which [`Player::packets`] returns; earlier ones are
/// forgotten.
const RECENT: usize = 512;

/// Packets of one group of flows that left the queue of a link since the last frame.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    bytes: u64,
    packets: u64,
    /// Sum and largest of the times in the queue of packets that were sent, seconds.
    sojourn_s: (f64, f64),
    dropped: u64,
    marked: u64,
}

impl Left {
    fn add(&mut self, row: &LogEntry) {
        if row.why.is_some() {
            self.dropped += 1;
            return;
        }
        let sojourn = (row.left - row.packet.arrived).as_secs();
        self.bytes += u64::from(row.packet.len);
        self.packets += 1;
        self.sojourn_s = (self.sojourn_s.0 + sojourn, self.sojourn_s.1.max(sojourn));
        self.marked += u64::from(row.packet.ecn == Ecn::Ce);
    }

    fn values(&self) -> [f64; 5] {
        let mean = self.sojourn_s.0 / self.packets as f64;
        let counts = [self.dropped as f64, self.marked as f64];
        [self.bytes as f64, mean, self.sojourn_s.1, counts[0], counts[1]]
    }
}

/// Columns of [`Left::values`].
const LEFT: [&str; 5] =
    ["departed_bytes", "sojourn_s", "sojourn_max_s", "dropped_packets", "marked_packets"];
/// Columns of a link, before its variables.
const LINK: [&str; 3] = ["rate_bps", "queue_packets", "queue_bytes"];
/// Columns of a group of flows. Counts are totals.
const GROUP: [&str; 5] =
    ["delivered_bytes", "cwnd_packets", "srtt_s", "retransmitted_packets", "timeouts"];

/// Simulation with the state of its frames.
#[derive(Debug)]
pub struct Player {
    simulation: Simulation,
    links: Vec<String>,
    groups: Vec<String>,
    /// Variables of the discipline of each link.
    gauges: Vec<Vec<&'static str>>,
    /// For each link and group.
    left: Vec<Vec<Left>>,
    /// For each link, packets that left it since they were last asked for.
    recent: Vec<VecDeque<(usize, LogEntry)>>,
}

fn time(ms: f64, what: &str) -> Result<Time> {
    if (0.0..=1e12).contains(&ms) {
        return Ok(Time(cast::trunc((ms * 1e6).round())));
    }
    Err(Error::new(format!("{ms} ms, allowed: 0 to 1e12")).at(what))
}

impl Player {
    /// Creates a simulation of the scenario in `text`, which is JSON.
    ///
    /// # Errors
    /// An invalid scenario, or one that logs its packets.
    pub fn new(text: &str) -> Result<Player> {
        let scenario = Scenario::from_json(text)?;
        let links: Vec<String> = scenario.links().iter().map(|l| l.name().into()).collect();
        let groups: Vec<String> = scenario.flows().iter().map(|f| f.name().into()).collect();
        let mut simulation = Simulation::changeable(scenario);
        simulation.watch_packets()?;
        let names = |state: LinkState| state.gauges.iter().map(|(name, _)| *name).collect();
        let gauges =
            links.iter().map(|link| simulation.link(link).map(names)).collect::<Result<_>>()?;
        let left = vec![vec![Left::default(); groups.len()]; links.len()];
        let recent = vec![VecDeque::new(); links.len()];
        Ok(Player { simulation, links, groups, gauges, left, recent })
    }

    /// Returns a copy, which continues in the same way.
    pub fn fork(&self) -> Player {
        let Player { simulation, links, groups, gauges, left, recent } = self;
        Player {
            simulation: simulation.fork(),
            links: links.clone(),
            groups: groups.clone(),
            gauges: gauges.clone(),
            left: left.clone(),
            recent: recent.clone(),
        }
    }

    /// Names of the columns of a frame: `time_s`, then for each link its state and variables and
    /// what left it for each group, then the state of each group.
    pub fn layout(&self) -> Vec<String> {
        let mut names = vec!["time_s".to_string()];
        for (link, gauges) in self.links.iter().zip(&self.gauges) {
            names.extend(LINK.iter().map(|what| format!("links/{link}/{what}")));
            names.extend(gauges.iter().map(|what| format!("links/{link}/gauge/{what}")));
            for group in &self.groups {
                names.extend(LEFT.iter().map(|what| format!("links/{link}/{group}/{what}")));
            }
        }
        for group in &self.groups {
            names.extend(GROUP.iter().map(|what| format!("groups/{group}/{what}")));
        }
        names
    }

    /// Simulates up to `until_ms`, at most to the end of the run, and returns a frame for each
    /// multiple of `frame_ms` that was passed.
    ///
    /// # Errors
    /// A time in the past or out of range.
    pub fn advance(&mut self, until_ms: f64, frame_ms: f64) -> Result<Vec<u8>> {
        let until = time(until_ms, "until_ms")?.min(self.simulation.end());
        let every = time(frame_ms, "frame_ms")?.0.max(1_000_000);
        let mut bytes = Vec::new();
        loop {
            let next = Time((self.simulation.now().0 / every + 1) * every);
            let to = next.min(until);
            self.simulation.run_until(to, &mut |_| true)?;
            self.collect()?;
            if to == next {
                let frame = self.frame()?;
                bytes.extend(frame.iter().flat_map(|value| value.to_le_bytes()));
            }
            if to == until {
                return Ok(bytes);
            }
        }
    }

    /// Counts the packets that left the links.
    fn collect(&mut self) -> Result<()> {
        for (l, link) in self.links.iter().enumerate() {
            let recent = &mut self.recent[l];
            for (group, row) in self.simulation.take_packets(link)? {
                self.left[l][group].add(&row);
                if recent.len() == RECENT {
                    recent.pop_front();
                }
                recent.push_back((group, row));
            }
        }
        Ok(())
    }

    /// Values of the columns of [`Player::layout`]; NaN for one that has no value.
    fn frame(&mut self) -> Result<Vec<f64>> {
        let mut values = vec![self.simulation.now().0 as f64 / 1e9];
        for (l, link) in self.links.iter().enumerate() {
            let state = self.simulation.link(link)?;
            let counts = [state.rate.0, state.queue_packets, state.queue_bytes];
            values.extend(counts.map(|n| n as f64));
            let gauge = |i: usize| state.gauges.get(i).map_or(f64::NAN, |(_, value)| *value);
            values.extend((0..self.gauges[l].len()).map(gauge));
            for left in &mut self.left[l] {
                values.extend(std::mem::take(left).values());
            }
        }
        for group in &self.groups {
            let state = self.simulation.flow(group)?;
            let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
            values.push(state.delivered_bytes as f64);
            values.extend([or_nan(state.cwnd_packets), or_nan(state.srtt_s)]);
            values.extend([state.retransmitted_packets, state.timeouts].map(|n| n as f64));
        }
        Ok(values)
    }

    /// Packets of a link: five numbers of 32 bits for each. First the number of packets in the
    /// queue; then these, in the order in which they would leave; then the last packets that left,
    /// in order, since the last call.
    ///
    /// The numbers are: an identity, different for all packets on the link; the flow; the bytes;
    /// `group | ecn << 16 | fate << 20 | ack << 24`, in which fate is 0 or the reason of the drop;
    /// and the time in the queue so far, microseconds.
    ///
    /// # Errors
    /// An unknown link.
    pub fn packets(&mut self, link: &str) -> Result<Vec<u8>> {
        let queued = self.simulation.queued(link)?;
        let l = self.links.iter().position(|name| name == link).unwrap_or(0);
        let now = self.simulation.now();
        let mut words = vec![cast::number(queued.len())];
        for (group, packet) in &queued {
            words.extend(describe(packet, *group, 0, now.since(packet.arrived)));
        }
        for (group, row) in self.recent[l].drain(..) {
            let fate = row.why.map_or(0, |why| why as u32);
            words.extend(describe(&row.packet, group, fate, row.left.since(row.packet.arrived)));
        }
        Ok(words.into_iter().flat_map(u32::to_le_bytes).collect())
    }

    /// Applies a change at the current time; see [`Simulation::change`].
    ///
    /// # Errors
    /// As that function.
    pub fn change(&mut self, change: &Json) -> Result<()> {
        self.simulation.change(change)
    }

    /// State of all links and groups of flows: `now_s`, `links` and `flows` by name, with the names
    /// of the fields of [`LinkState`] and [`FlowState`].
    ///
    /// # Errors
    /// None; names come from the scenario.
    pub fn inspect(&mut self) -> Result<Json> {
        let (mut links, mut flows) = (Map::new(), Map::new());
        for link in &self.links {
            links.insert(link.clone(), link_state(self.simulation.link(link)?));
        }
        for group in &self.groups {
            flows.insert(group.clone(), flow_state(self.simulation.flow(group)?));
        }
        Ok(json!({
            "now_s": self.simulation.now().0 as f64 / 1e9,
            "end_s": self.simulation.end().0 as f64 / 1e9,
            "packets": self.simulation.packets(),
            "links": links,
            "flows": flows,
        }))
    }

    /// The scenario with the changes made so far, as canonical JSON.
    pub fn scenario(&self) -> String {
        self.simulation.scenario().canonical_text()
    }

    /// Result so far.
    ///
    /// # Errors
    /// If nothing has been measured yet.
    pub fn result(&self) -> Result<Outcome> {
        self.simulation.result()
    }
}

/// The five numbers of a packet.
fn describe(packet: &Packet, group: usize, fate: u32, sojourn: Span) -> [u32; 5] {
    let ack = u32::from(packet.tcp.has(TcpFlags::PURE) && !packet.tcp.has(TcpFlags::TIMED));
    let group = cast::number(group.min(0xffff));
    let kind = group | (packet.ecn as u32) << 16 | fate << 20 | ack << 24;
    [packet.body, packet.flow, packet.len, kind, cast::saturate32(sojourn.0 / 1000)]
}

fn gauges(gauges: Vec<(&'static str, f64)>) -> Json {
    let mut map = Map::new();
    map.extend(gauges.into_iter().map(|(name, value)| (name.into(), json!(value))));
    Json::Object(map)
}

fn link_state(state: LinkState) -> Json {
    json!({
        "rate_bps": state.rate.0,
        "delay_s": state.delay.as_secs(),
        "queue_packets": state.queue_packets,
        "queue_bytes": state.queue_bytes,
        "arrived_packets": state.arrived_packets,
        "departed_packets": state.departed_packets,
        "departed_bytes": state.departed_bytes,
        "sojourn_total_s": state.sojourn_total_s,
        "dropped_packets": state.dropped_packets,
        "dropped_full_packets": state.dropped_full_packets,
        "marked_packets": state.marked_packets,
        "utilisation": state.utilisation,
        "gauges": gauges(state.gauges),
    })
}

fn flow_state(state: FlowState) -> Json {
    json!({
        "flows": state.flows,
        "delivered_bytes": state.delivered_bytes,
        "received_bytes": state.received_bytes,
        "sent_packets": state.sent_packets,
        "retransmitted_packets": state.retransmitted_packets,
        "timeouts": state.timeouts,
        "cwnd_packets": state.cwnd_packets,
        "srtt_s": state.srtt_s,
        "gauges": gauges(state.gauges),
    })
}
