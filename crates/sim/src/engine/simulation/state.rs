//! State of links and flows while a simulation runs. Looking changes nothing.

use super::Simulation;
use crate::engine::flow::{Endpoints, Flow};
use crate::engine::gauges::GaugeSums;
use sojourn_aqm::DropReason;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::sorting::sort_by_key;
use sojourn_aqm::units::{Rate, Span, Time};

/// State of a link just before [`Simulation::now`].
///
/// Counters cover the measured interval: they restart at zero when the warm-up ends.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkState {
    /// Rate of the transmitter.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Span,
    /// Packets in the queue.
    pub queue_packets: u64,
    /// Bytes in the queue.
    pub queue_bytes: u64,
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Packets whose transmission started.
    pub departed_packets: u64,
    /// Their bytes.
    pub departed_bytes: u64,
    /// Total time that they spent in the queue, seconds.
    pub sojourn_total_s: f64,
    /// Packets dropped, for any reason.
    pub dropped_packets: u64,
    /// Of these, packets dropped because the buffer was full.
    pub dropped_full_packets: u64,
    /// Packets marked with CE.
    pub marked_packets: u64,
    /// Share of the time in which the link was sending; None if no time has passed.
    pub utilisation: Option<f64>,
    /// Internal variables of the discipline, in SI units.
    pub gauges: Vec<(&'static str, f64)>,
}

/// State of a flow, of a host with sessions, or of a group of flows just before
/// [`Simulation::now`].
///
/// A group, and a host with several connections, has the sums of its flows, and the means of the
/// congestion windows, round-trip times and variables.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FlowState {
    /// Number of flows; connections of sessions are flows.
    pub flows: u64,
    /// Payload delivered in order since the start, bytes.
    pub delivered_bytes: u64,
    /// Bytes on the wire received since the start, duplicates included.
    pub received_bytes: u64,
    /// Segments or datagrams sent since the start; for UDP since the end of the warm-up.
    pub sent_packets: u64,
    /// Retransmitted segments since the start.
    pub retransmitted_packets: u64,
    /// Expiries of the retransmission timer since the start.
    pub timeouts: u64,
    /// Congestion window in packets; None for UDP.
    pub cwnd_packets: Option<f64>,
    /// Smoothed round-trip time, seconds; None for UDP, for the profile `ns2`, and before the first
    /// sample.
    pub srtt_s: Option<f64>,
    /// Variables of the congestion control, if it shows any.
    pub gauges: Vec<(&'static str, f64)>,
}

impl Simulation {
    /// State of the link called `name`.
    ///
    /// # Errors
    /// An unknown name; the message suggests the nearest.
    pub fn link(&mut self, name: &str) -> Result<LinkState> {
        let l = self.link_index(name)?;
        // What is due now has not happened, unless the run is over or the link has just changed.
        let before = Time(self.now.0.saturating_sub(1));
        let link = &mut self.links[l];
        link.advance(before.max(link.now()));
        let (spec, utilisation, mut gauges) = (link.spec(), link.utilisation(), Vec::new());
        link.inspect(&mut |name, value| gauges.push((name, value)));
        let stats = link.stats();
        let (queue_packets, queue_bytes) = stats.backlog();
        Ok(LinkState {
            rate: spec.rate,
            delay: spec.delay,
            queue_packets,
            queue_bytes,
            arrived_packets: stats.arrived_packets,
            departed_packets: stats.departed_packets,
            departed_bytes: stats.departed_bytes,
            sojourn_total_s: stats.sojourn.sum_ns() as f64 / 1e9,
            dropped_packets: stats.dropped(),
            dropped_full_packets: stats.dropped_for(DropReason::Full),
            marked_packets: stats.marks.packets,
            utilisation,
            gauges,
        })
    }

    /// State of the flow, host or group of flows called `name`.
    ///
    /// # Errors
    /// An unknown name; the message suggests the nearest.
    pub fn flow(&mut self, name: &str) -> Result<FlowState> {
        let before = Time(self.now.0.saturating_sub(1));
        let group = self.scenario.flows.iter().position(|def| def.name == name);
        let (mut state, mut windows, mut times) = (FlowState::default(), (0.0, 0), (0.0, 0));
        let mut gauges = GaugeSums::default();
        let of_group = |flow: &Flow| group.map(|g| flow.group as usize == g);
        for flow in &mut self.flows {
            if of_group(flow).unwrap_or_else(|| flow.name == name) {
                flow.advance_totals(before);
                add(flow, &mut state, &mut windows, &mut times);
                if let Endpoints::Tcp(tcp) = &flow.ends {
                    gauges.add(&tcp.sender);
                }
            }
        }
        let host = || self.sessions.iter().flat_map(|s| &s.hosts).any(|host| host.name == name);
        if group.is_none() && state.flows == 0 && !host() {
            let groups = self.scenario.flows.iter().map(|def| def.name.as_str());
            let few = self.flows.iter().take(1000).map(|flow| flow.name.as_str());
            let mut names: Vec<&str> = groups.chain(few).collect();
            sort_by_key(&mut names, |name| *name);
            names.dedup();
            return Err(Error::unknown("flow", name, names));
        }
        let mean = |(sum, n): (f64, u64)| (n > 0).then(|| sum / n as f64);
        (state.cwnd_packets, state.srtt_s) = (mean(windows), mean(times));
        state.gauges = gauges.means();
        Ok(state)
    }

    /// Index of the link called `name`.
    pub(super) fn link_index(&self, name: &str) -> Result<usize> {
        let links = &self.scenario.links;
        let unknown = || Error::unknown("link", name, links.iter().map(|def| def.name.as_str()));
        links.iter().position(|def| def.name == name).ok_or_else(unknown)
    }
}

/// Adds `flow` to `state`, its window to `windows` and its round-trip time to `times`, which have
/// sum and number.
fn add(flow: &Flow, state: &mut FlowState, windows: &mut (f64, u64), times: &mut (f64, u64)) {
    state.flows += 1;
    state.delivered_bytes += flow.delivered_bytes();
    state.received_bytes += flow.received_bytes();
    match &flow.ends {
        Endpoints::Tcp(tcp) => {
            let stats = tcp.sender.stats();
            state.sent_packets += stats.sent_packets;
            state.retransmitted_packets += stats.retransmitted_packets;
            state.timeouts += stats.timeouts;
            *windows = (windows.0 + tcp.sender.cwnd_packets(), windows.1 + 1);
            if let Some(srtt) = tcp.sender.srtt() {
                *times = (times.0 + srtt.as_secs(), times.1 + 1);
            }
        }
        Endpoints::Udp(udp) => state.sent_packets += udp.sent,
        Endpoints::Absent => {}
    }
}
