//! Time series for figures: links, groups of flows and flows, sampled once per interval. Sampling
//! does not affect the simulation.

use crate::config::flows::FlowConfig;
use crate::config::scenario::Scenario;
use crate::config::switches::SwitchConfig;
use crate::engine::flow::{Endpoints, Flow};
use crate::engine::gauges::{GaugeColumns, GaugeSums, Gauges};
use crate::output::outcome::Column;
use sojourn_aqm::Link;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::Time;

/// Names of the columns that hold differences of a link's counters.
const COUNTS: [&str; 8] = [
    "arrived_packets",
    "departed_packets",
    "departed_bytes",
    "dropped_full_packets",
    "dropped_early_packets",
    "dropped_late_packets",
    "marked_packets",
    // Of links that share a buffer.
    "dropped_buffer_packets",
];

/// Counters of a link: as in [`COUNTS`], then used and offered capacity, and the total sojourn
/// time of departed packets in ns.
type LinkCounters = ([u64; COUNTS.len() + 2], u128);

fn running(link: &mut Link) -> LinkCounters {
    let [used, offered] = link.usage();
    let t = link.stats();
    let [full, early, late, buffer] = t.drops();
    let [arrived, departed, bytes] = [t.arrived_packets, t.departed_packets, t.departed_bytes];
    let marked = t.marks.all();
    let counts = [arrived, departed, bytes, full, early, late, marked, buffer, used, offered];
    (counts, t.sojourn.sum_ns())
}

/// Samples of a link. Rows can be taken while sampling continues.
#[derive(Clone, Debug, Default, Snapshot)]
pub struct LinkSeries {
    queue_bytes: Vec<u64>,
    queue_packets: Vec<u64>,
    sojourn_s: Vec<f64>,
    utilisation: Vec<f64>,
    counts: [Vec<u64>; COUNTS.len()],
    /// True if the link shares a buffer.
    is_port: bool,
    gauges: Vec<(String, Vec<f64>)>,
    /// Counters at the last sample.
    last: LinkCounters,
}

impl LinkSeries {
    /// Differences since the last sample, with wrapping arithmetic because the counters restart at
    /// zero after the warm-up.
    fn since_last(&mut self, link: &mut Link) -> LinkCounters {
        let now = running(link);
        let last = std::mem::replace(&mut self.last, now);
        let counts = std::array::from_fn(|i| now.0[i].wrapping_sub(last.0[i]));
        (counts, now.1.wrapping_sub(last.1))
    }

    /// Prepares for a reset of the link's counters: what they counted since the last sample is
    /// added to the next one.
    pub fn before_stats_reset(&mut self, link: &mut Link) {
        let (counts, sojourn_ns) = self.since_last(link);
        self.last = (counts.map(u64::wrapping_neg), sojourn_ns.wrapping_neg());
    }

    /// Samples the link at `now`.
    pub fn sample(&mut self, now: Time, link: &mut Link) {
        link.advance(now);
        let (counts, sojourn_ns) = self.since_last(link);
        let [_, sent, .., used, offered] = counts;
        self.sojourn_s.push(sojourn_ns as f64 / sent as f64 / 1e9);
        self.utilisation.push(used as f64 / offered as f64);
        self.counts.iter_mut().zip(counts).for_each(|(column, n)| column.push(n));
        let (packets, bytes) = link.stats().backlog();
        self.queue_bytes.push(bytes);
        self.queue_packets.push(packets);
        let gauges = &mut self.gauges;
        let mut i = 0;
        link.inspect(&mut |name, value| {
            if i == gauges.len() {
                gauges.push((name.to_string(), Vec::new()));
            }
            gauges[i].1.push(value);
            i += 1;
        });
    }

    /// Takes the rows sampled so far; later rows continue from them.
    pub fn take(&mut self) -> LinkSeries {
        let LinkSeries { last, is_port, .. } = *self;
        std::mem::replace(self, LinkSeries { last, is_port, ..LinkSeries::default() })
    }

    /// Emits the columns by name.
    pub fn columns(self, put: &mut dyn FnMut(&str, Column)) {
        let [_, _, _, full, early, late, _, buffer] = &self.counts;
        let lost = full.iter().zip(early).zip(late).zip(buffer);
        let lost = lost.map(|(((a, b), c), d)| a + b + c + d).collect();
        put("queue_bytes", Column::U64(self.queue_bytes));
        put("queue_packets", Column::U64(self.queue_packets));
        put("sojourn_s", Column::F64(self.sojourn_s));
        put("utilisation", Column::F64(self.utilisation));
        put("dropped_packets", Column::U64(lost));
        let shown = COUNTS.len() - usize::from(!self.is_port);
        for (name, n) in COUNTS[..shown].iter().zip(self.counts) {
            put(name, Column::U64(n));
        }
        for (name, values) in self.gauges {
            put(&format!("gauge/{name}"), Column::F64(values));
        }
    }
}

/// Samples of a flow.
#[derive(Clone, Debug, Default, Snapshot)]
struct FlowSeries {
    delivered_bytes: Vec<u64>,
    received_bytes: Vec<u64>,
    cwnd_packets: Vec<f64>,
    gauges: GaugeColumns,
    /// Bytes delivered and received at the last sample.
    last: (u64, u64),
}

/// State of a flow at a sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowSample {
    /// Payload delivered in order since the start, bytes.
    pub delivered: u64,
    /// Bytes on the wire received since the start.
    pub received: u64,
    /// Congestion window in packets, if the flow has one.
    pub cwnd_packets: Option<f64>,
    /// Variables of its congestion control.
    pub gauges: Gauges,
}

/// Samples of a group of flows.
#[derive(Clone, Debug, Default, Snapshot)]
struct GroupSeries {
    delivered_bytes: Vec<u64>,
    received_bytes: Vec<u64>,
    cwnd_packets: Vec<f64>,
    timeouts: Vec<u64>,
    stalled_flows: Vec<u64>,
    /// Means over the flows of the variables of their congestion control.
    gauges: GaugeColumns,
    /// True if the flows use TCP.
    tcp: bool,
    /// Sums over the flows for the current sample; empty between samples.
    #[snapshot(skip)]
    sums: GroupSums,
}

#[derive(Clone, Debug, Default)]
struct GroupSums {
    delivered: u64,
    received: u64,
    /// Sum and number of congestion windows.
    windows: (f64, u64),
    timeouts: u64,
    stalled: u64,
    gauges: GaugeSums,
}

impl GroupSeries {
    fn sample(&mut self) {
        let sums = std::mem::take(&mut self.sums);
        self.delivered_bytes.push(sums.delivered);
        self.received_bytes.push(sums.received);
        if self.tcp {
            self.gauges.push(self.cwnd_packets.len(), sums.gauges.means());
            self.cwnd_packets.push(sums.windows.0 / sums.windows.1 as f64);
            self.timeouts.push(sums.timeouts);
            self.stalled_flows.push(sums.stalled);
        }
    }

    fn columns(self, put: &mut dyn FnMut(&str, Column)) {
        put("delivered_bytes", Column::U64(self.delivered_bytes));
        put("received_bytes", Column::U64(self.received_bytes));
        if self.tcp {
            put("cwnd_packets", Column::F64(self.cwnd_packets));
            put("timeouts", Column::U64(self.timeouts));
            put("stalled_flows", Column::U64(self.stalled_flows));
            self.gauges.columns().for_each(|(name, values)| put(&name, Column::F64(values)));
        }
    }
}

/// State of a flow at the last sample.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct PreviousSample {
    delivered: u64,
    received: u64,
    timeouts: u64,
    /// Connection and acknowledged payload at the start of the current stall.
    stalled: Option<(u32, u64)>,
}

/// Recorder of time series.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct Series {
    time_s: Vec<f64>,
    links: Vec<LinkSeries>,
    groups: Vec<GroupSeries>,
    /// Empty if flows are not sampled individually.
    flows: Vec<FlowSeries>,
    last: Vec<PreviousSample>,
}

impl Series {
    /// Creates a recorder for a scenario with `rows` flows and hosts.
    pub(crate) fn new(scenario: &Scenario, rows: usize) -> Series {
        let each = if scenario.sample_flows() { rows } else { 0 };
        let group =
            |def: &FlowConfig| GroupSeries { tcp: def.tcp.is_some(), ..GroupSeries::default() };
        let mut links = vec![LinkSeries::default(); scenario.links.len()];
        for l in scenario.switches.iter().flat_map(SwitchConfig::ports) {
            links[*l].is_port = true;
        }
        Series {
            time_s: Vec::new(),
            links,
            groups: scenario.flows.iter().map(group).collect(),
            flows: (0..each).map(|_| FlowSeries::default()).collect(),
            last: Vec::new(),
        }
    }

    /// Samples the links at `now`.
    pub(crate) fn sample_links(&mut self, now: Time, links: &mut [Link]) {
        self.time_s.push(now.0 as f64 / 1e9);
        self.links.iter_mut().zip(links).for_each(|(of, link)| of.sample(now, link));
    }

    /// Samples row `i` of the flows.
    pub(crate) fn sample_flow(&mut self, i: usize, look: FlowSample) {
        let Some(of) = self.flows.get_mut(i) else { return };
        of.gauges.push(of.delivered_bytes.len(), look.gauges);
        of.delivered_bytes.push(look.delivered - of.last.0);
        of.received_bytes.push(look.received - of.last.1);
        of.last = (look.delivered, look.received);
        of.cwnd_packets.extend(look.cwnd_packets);
    }

    /// Samples the groups by summing over their flows, pooled flows included; `on_links` is true
    /// for flows with packets on links.
    pub(crate) fn sample_groups(&mut self, flows: &[Flow], on_links: &[bool]) {
        self.last.resize(flows.len(), PreviousSample::default());
        for (f, flow) in flows.iter().enumerate() {
            let (last, sums) = (&mut self.last[f], &mut self.groups[flow.group as usize].sums);
            let (delivered, received) = (flow.delivered_bytes(), flow.received_bytes());
            sums.delivered += delivered - std::mem::replace(&mut last.delivered, delivered);
            sums.received += received - std::mem::replace(&mut last.received, received);
            let Endpoints::Tcp(tcp) = &flow.ends else { continue };
            let timeouts = tcp.sender.stats().timeouts;
            sums.windows.0 += tcp.sender.cwnd_packets();
            sums.windows.1 += 1;
            sums.gauges.add(&tcp.sender);
            sums.timeouts += timeouts - std::mem::replace(&mut last.timeouts, timeouts);
            // A stall ends when new data is acknowledged, not when data is retransmitted.
            let here = (flow.connection, tcp.sender.acked_bytes());
            if flow.stalled(on_links[f]) {
                last.stalled = Some(here);
            } else if last.stalled != Some(here) || tcp.sender.is_done() {
                last.stalled = None;
            }
            sums.stalled += u64::from(last.stalled.is_some());
        }
        self.groups.iter_mut().for_each(GroupSeries::sample);
    }

    /// Prepares for a reset of the links' counters: what they counted since the last sample is
    /// added to the next one.
    pub(crate) fn begin(&mut self, links: &mut [Link]) {
        self.links.iter_mut().zip(links).for_each(|(of, link)| of.before_stats_reset(link));
    }

    /// Appends all columns; `names` are the flows, with their groups and names. Groups that join
    /// after the end are left out.
    pub(crate) fn columns(
        self,
        scenario: &Scenario,
        names: &[(usize, &str)],
        columns: &mut Vec<(String, Column)>,
    ) {
        let takes_part = |group: &FlowConfig| group.takes_part(scenario.duration());
        columns.push(("series/time_s".into(), Column::F64(self.time_s)));
        for (of, link) in self.links.into_iter().zip(scenario.links.iter()) {
            of.columns(&mut |what, column| {
                columns.push((format!("links/{}/{what}", link.name), column));
            });
        }
        let groups = self.groups.into_iter().zip(scenario.flows.iter());
        for (of, group) in groups.filter(|(_, group)| takes_part(group)) {
            of.columns(&mut |what, column| {
                columns.push((format!("groups/{}/{what}", group.name), column));
            });
        }
        let flows = self.flows.into_iter().zip(names);
        for (of, (_, name)) in flows.filter(|(_, (g, _))| takes_part(&scenario.flows[*g])) {
            let mut put = |what: &str, column| {
                columns.push((format!("flows/{name}/{what}"), column));
            };
            put("delivered_bytes", Column::U64(of.delivered_bytes));
            put("received_bytes", Column::U64(of.received_bytes));
            if !of.cwnd_packets.is_empty() {
                put("cwnd_packets", Column::F64(of.cwnd_packets));
            }
            of.gauges.columns().for_each(|(name, values)| put(&name, Column::F64(values)));
        }
    }
}
