//! Predicted memory of a scenario, which is refused if it would not fit.

use super::flows::FlowConfig;
use super::links::{LinkConfig, link_bytes};
pub(super) use super::links::{MEMORY_MAX, mb};
use crate::endpoint::cc::ControlParams;
use crate::traffic::source::Source;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::units::{Bytes, Rate, Span};
use sojourn_aqm::{Histogram, LogEntry};
use std::mem::size_of;

/// Bytes of a flow before its first packet, with its part of the report.
const FLOW_BYTES: usize = 2_500;

/// Bytes of a value of a time series while it is recorded. Tables that are written take more: up to
/// 45 bytes were measured.
const VALUE_BYTES: usize = 12;

/// Bytes of a row of a packet log: the entry, and the columns into which it is copied.
const LOG_BYTES: usize = size_of::<LogEntry>() + 34;

/// Variables of a congestion control that is written outside of this crate.
const EXTERNAL_GAUGES: usize = 8;

/// Contents of a scenario that take memory.
pub(crate) struct Contents<'a> {
    /// Simulated time.
    pub duration: Span,
    /// Sampling interval of the time series; None for no series.
    pub sample: Option<Span>,
    /// True if each flow has time series, not only links and groups.
    pub sample_flows: bool,
    /// True if every packet is logged.
    pub packet_log: bool,
    /// Links.
    pub links: &'a [LinkConfig],
    /// Groups of flows.
    pub flows: &'a [FlowConfig],
}

/// Part of the prediction: number of things, what they are, and their bytes.
type Part = (usize, &'static str, usize);

/// Checks that a scenario fits, packets in queues and completed transfers apart.
///
/// Delays are counted in histograms, whose memory follows the longest delay. No delay is longer
/// than the run, so the prediction is an upper bound.
///
/// # Errors
/// More than [`MEMORY_MAX`].
pub(crate) fn fits(scenario: &Contents<'_>) -> Result<()> {
    let parts = forecast(scenario);
    let bytes = total(&parts);
    if bytes <= MEMORY_MAX {
        return Ok(());
    }
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, _, bytes)| mb(*bytes) > 1)
        .map(|(count, what, bytes)| format!("{count} {what}: {} MB", mb(*bytes)))
        .collect();
    let text = format!(
        "the scenario can take {} MB of memory, allowed: {} MB ({})",
        mb(bytes),
        mb(MEMORY_MAX),
        parts.join(", ")
    );
    Err(Error::new(text))
}

/// Checks that the packet logs of a run fit after `packets` packets.
///
/// # Errors
/// More than [`MEMORY_MAX`].
pub(crate) fn log_fits(packets: u64) -> Result<()> {
    let bytes = cast::index(packets).saturating_mul(LOG_BYTES);
    if bytes <= MEMORY_MAX {
        return Ok(());
    }
    let text = format!(
        "{packets} packets so far take {} MB of memory, allowed: {} MB; shorten the duration",
        mb(bytes),
        mb(MEMORY_MAX)
    );
    Err(Error::new(text).at("packet_log"))
}

/// Number of values in the time series of a scenario.
pub(crate) fn values(scenario: &Contents<'_>) -> u64 {
    let Some(sample) = scenario.sample else { return 0 };
    let of_links: usize = scenario.links.iter().map(|link| 12 + link.gauges).sum();
    let gauges = |flow: &FlowConfig| match flow.tcp.as_deref() {
        Some(tcp) if matches!(tcp.control(), ControlParams::External(_)) => EXTERNAL_GAUGES,
        _ => 0,
    };
    let of_flow = |flow: &FlowConfig| {
        let each = if scenario.sample_flows { cast::index(flow.count()) } else { 0 };
        (5 + gauges(flow)).saturating_add(each.saturating_mul(3 + gauges(flow)))
    };
    let of_flows = scenario.flows.iter().map(of_flow).fold(0, usize::saturating_add);
    (scenario.duration.0 / sample.0).saturating_mul((1 + of_links + of_flows) as u64)
}

/// Prediction of the memory of a scenario.
fn forecast(scenario: &Contents<'_>) -> Vec<Part> {
    let Contents { duration, links, flows, .. } = scenario;
    let histogram = Histogram::bytes_up_to(*duration);
    let of_links = links.iter().map(link_bytes).fold(0, usize::saturating_add);
    let mut crossed = vec![false; links.len()];
    for l in flows.iter().flat_map(|f| &f.routes).flatten().flatten() {
        crossed[*l] = true;
    }
    let crossed = crossed.into_iter().filter(|crossed| *crossed).count();
    let members = |flows: &mut dyn Iterator<Item = &FlowConfig>| {
        flows.fold(0usize, |sum, f| sum.saturating_add(cast::index(f.count())))
    };
    let count = members(&mut flows.iter());
    let udp = members(&mut flows.iter().filter(|f| f.tcp.is_none()));
    let calls = members(&mut flows.iter().filter(|f| matches!(*f.source, Source::Call(_))));
    let values = cast::index(values(scenario));
    let logged = if scenario.packet_log { logged_packets(scenario) } else { 0 };
    vec![
        (links.len(), "links with their disciplines", of_links),
        (crossed, "links that flows cross", crossed.saturating_mul(histogram)),
        (count, "flows", count.saturating_mul(FLOW_BYTES)),
        (udp, "delays of UDP flows", udp.saturating_mul(histogram)),
        (calls, "delays of frames", calls.saturating_mul(histogram)),
        (values, "values in time series", values.saturating_mul(VALUE_BYTES)),
        (logged, "packets in logs", logged.saturating_mul(LOG_BYTES)),
    ]
}

fn total(parts: &[Part]) -> usize {
    parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.2))
}

/// Packets that the links of a scenario log, of sources with a rate of their own (cbr and onoff
/// over UDP).
///
/// How much other sources send follows from the run: [`log_fits`] limits their packets then.
fn logged_packets(scenario: &Contents<'_>) -> usize {
    let mut logged = 0u64;
    for flow in scenario.flows {
        let active = active(flow, scenario.duration);
        let own = match (&*flow.source, &flow.tcp) {
            (Source::Cbr(cbr), None) => packets(cbr.rate, active, cbr.packet),
            (Source::OnOff(on_off), None) => packets(on_off.rate, active, on_off.packet),
            _ => 0,
        };
        // The flows of a group share a route, or have one each.
        let each = own.saturating_mul(flow.count() / flow.routes.len().max(1) as u64);
        let hops: usize = flow.routes.iter().map(|[path, _]| path.len()).sum();
        logged = logged.saturating_add(each.saturating_mul(hops as u64));
    }
    cast::index(logged)
}

/// Maximum number of pooled flows of all groups: connections that sessions have open at a time, or
/// open in all where these are fewer.
pub(super) fn pooled_flows(scenario: &Contents<'_>) -> u64 {
    let of_group = |flow: &FlowConfig| {
        let in_all = match &*flow.source {
            Source::Poisson(poisson) => poisson.max_arrivals(active(flow, scenario.duration)),
            Source::Cluster(cluster) => cluster.max_arrivals(active(flow, scenario.duration)),
            Source::Incast(incast) => {
                incast.number.map_or(u64::MAX, |queries| queries.saturating_mul(flow.count()))
            }
            _ => u64::MAX,
        };
        flow.max_open_connections().min(in_all)
    };
    scenario.flows.iter().map(of_group).fold(0, u64::saturating_add)
}

/// Bytes that a scenario takes, with `pooled` flows.
pub(super) fn with_pooled_flows(scenario: &Contents<'_>, pooled: u64) -> usize {
    let of_pooled = cast::index(pooled).saturating_mul(FLOW_BYTES);
    total(&forecast(scenario)).saturating_add(of_pooled)
}

/// Longest time for which a group sends.
fn active(flow: &FlowConfig, duration: Span) -> Span {
    let joins = flow.joins.unwrap_or(Span::ZERO);
    let stop = flow.source.stop().map_or(duration, |stop| Span(joins.0.saturating_add(stop.0)));
    let end = duration.min(stop).min(flow.leaves.unwrap_or(duration));
    Span(end.0.saturating_sub(joins.0))
}

/// Packets of a size that a rate sends in a time.
fn packets(rate: Rate, time: Span, size: Bytes) -> u64 {
    let bits = u128::from(rate.0) * u128::from(time.0) / 1_000_000_000;
    cast::saturate(bits / (8 * u128::from(size.0.max(1)))).saturating_add(1)
}

#[cfg(test)]
mod tests;
