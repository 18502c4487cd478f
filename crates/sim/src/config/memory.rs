//! Predicted memory of a scenario, which is refused if it would not fit.

use super::flows::FlowConfig;
use super::links::{LinkConfig, MEMORY_MAX, link_bytes, mb};
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
mod tests {
    use crate::config::links::parse_links;
    use crate::config::scenario::Scenario;
    use crate::output::outcome::Column;
    use serde_json::{Value as Json, json};

    fn refusal(count: usize, qdisc: Json) -> Option<String> {
        let link = json!({"rate": "1mbit", "qdisc": qdisc});
        let map = (0..count).map(|i| (format!("l{i}"), link.clone())).collect();
        parse_links(&Json::Object(map)).err().map(|e| e.to_string())
    }

    #[test]
    fn links_are_limited_by_the_memory_that_they_take() {
        let many = refusal(800_001, json!("droptail")).expect("too many");
        assert!(
            many.ends_with(
                "800001 links with their disciplines take 4001 MB of memory, allowed: 4000 MB"
            ),
            "{many}"
        );
        let large = refusal(800, json!({"name": "fq_codel", "flows": 65_536})).expect("too large");
        assert!(large.contains("800 links with their disciplines take "), "{large}");
        // To build all of them would take minutes.
        let large = refusal(200_000, json!({"name": "fq_codel", "flows": 65_536}));
        let large = large.expect("too large");
        assert!(large.contains("200000 links with their disciplines take 188"), "{large}");
        assert_eq!(refusal(100, json!("droptail")), None);
    }

    #[test]
    fn flows_are_limited_by_the_memory_that_they_take() {
        let fit = |count: u64, source: &str, duration: &str| {
            let scenario = json!({
                "duration": duration,
                "links": {"up": {"rate": "1gbit", "qdisc": "droptail"}},
                "flows": [{"name": "a", "count": count, "path": ["up"], "source": source}],
            });
            Scenario::from_json(&scenario.to_string()).err().map(|e| e.to_string())
        };
        assert_eq!(fit(1_000_000, "bulk", "10s"), None);
        assert_eq!(fit(100_000, "cbr", "10s"), None);
        let text = fit(1_000_000, "cbr", "10s").expect("too many histograms");
        assert!(text.starts_with("the scenario can take 16"), "{text}");
        assert!(text.contains("1000000 delays of UDP flows: 143"), "{text}");
    }

    /// Runs of sources with a rate of their own, then of bulk transfers as well, over one to three
    /// links.
    fn small_scenarios() -> Vec<Scenario> {
        let flows = [
            json!({"source": {"name": "cbr", "rate": "700kbit", "packet": "40B"}, "count": 2}),
            json!({"source": {"name": "cbr", "rate": "1mbit", "stop": "500ms"}}),
            json!({"source": {"name": "onoff", "rate": "3mbit", "packet": "100B"}, "count": 5}),
            json!({"source": "bulk", "count": 3}),
            json!({"source": {"name": "bulk", "stop": "300ms"}, "tcp": "bbr"}),
        ];
        let paths = [
            (json!(["a"]), json!([])),
            (json!(["a", "b"]), json!(["c"])),
            (json!(["b"]), json!(["a", "c"])),
        ];
        let mut scenarios = Vec::new();
        for qdisc in ["droptail", "codel", "fq_codel", "cake", "htb", "dualpi2"] {
            for (k, (path, back)) in paths.iter().enumerate() {
                for n in 1..=flows.len() {
                    let group = |(i, flow): (usize, &Json)| {
                        let mut flow = flow.clone();
                        flow["name"] = json!(format!("f{i}"));
                        flow["path"] = path.clone();
                        flow["rtt"] = json!("10ms");
                        if flow["source"].get("name").is_none_or(|name| name == "bulk") {
                            flow["return_path"] = back.clone();
                        }
                        flow
                    };
                    let scenario = json!({
                        "duration": "800ms", "sample": "7ms", "packet_log": true,
                        "sample_flows": k != 1,
                        "links": {
                            "a": {"rate": "5mbit", "qdisc": qdisc},
                            "b": {"rate": "20mbit", "qdisc": "codel"},
                            "c": {"rate": "2mbit"},
                        },
                        "flows": flows.iter().take(n).enumerate().map(group).collect::<Vec<_>>(),
                    });
                    scenarios.push(Scenario::from_json(&scenario.to_string()).expect("valid"));
                }
            }
        }
        scenarios
    }

    #[test]
    fn the_forecast_of_logs_and_series_is_an_upper_bound_within_reason() {
        for scenario in small_scenarios() {
            let text = scenario.canonical().to_string();
            let (logged, values) =
                (super::logged_packets(&scenario.contents()), super::values(&scenario.contents()));
            let outcome = crate::run(scenario);
            let len = |column: &Column| match column {
                Column::F64(v) => v.len(),
                Column::U64(v) => v.len(),
                Column::U32(v) => v.len(),
                Column::U8(v) => v.len(),
                Column::Bool(v) => v.len(),
            };
            let sum = |is: &dyn Fn(&str) -> bool| -> usize {
                outcome.columns.iter().filter(|(name, _)| is(name)).map(|(_, c)| len(c)).sum()
            };
            let rows = sum(&|name| name.starts_with("packet_log/") && name.ends_with("/left_s"));
            let known = !text.contains("bulk"); // the number of its packets is not predicted
            assert!(
                rows > 0 && (rows <= logged || !known),
                "{rows} rows, predicted {logged}: {text}"
            );
            assert!(logged <= 6 * rows, "{rows} rows, predicted {logged}: {text}");
            let series = ["series/", "links/", "groups/", "flows/"];
            let recorded = sum(&|name| series.iter().any(|kind| name.starts_with(kind))) as u64;
            assert!(
                recorded > 0 && recorded <= values,
                "{recorded} values, predicted {values}: {text}"
            );
            assert!(values <= 2 * recorded, "{recorded} values, predicted {values}: {text}");
        }
    }

    #[test]
    fn packet_logs_and_series_are_part_of_the_forecast() {
        let refusal = |extra: Json| {
            let mut scenario = json!({
                "duration": "1s",
                "links": {"a": {"rate": "100gbit"}},
                "flows": [{"name": "f", "path": ["a"],
                    "source": {"name": "cbr", "rate": "100gbit", "packet": "40B"}}],
            });
            let extra = extra.as_object().expect("a table");
            extra.iter().for_each(|(key, value)| scenario[key] = value.clone());
            Scenario::from_json(&scenario.to_string()).err().map(|e| e.to_string())
        };
        assert_eq!(refusal(json!({})), None);
        let text = refusal(json!({"packet_log": true})).expect("312.5 million packets");
        assert!(text.contains("(312500001 packets in logs: 28"), "{text}");
        assert_eq!(refusal(json!({"packet_log": true, "duration": "100ms"})), None);
        let text = refusal(json!({"packet_log": true, "sample": "100us"})).expect("both");
        assert!(text.contains("210000 values in time series: 3 MB"), "{text}");
    }

    #[test]
    fn too_many_flows_name_the_parameter_that_bounds_them() {
        let refusal = |count: u64, source: Json| {
            let scenario = json!({
                "duration": "1s",
                "links": {"a": {"rate": "1gbit"}},
                "flows": [{"name": "f", "path": ["a"], "count": count, "source": source}],
            });
            Scenario::from_json(&scenario.to_string()).expect_err("too many flows").to_string()
        };
        assert_eq!(
            refusal(600_000, json!({"name": "poisson", "most": 500_000})),
            "flows: 1100000 flows in all, allowed: 1000000: 600000 and 500000 that sources may \
             have open at a time (the sum of `most` of the groups; set a smaller one)"
        );
        let text = refusal(1_000_001, json!("bulk"));
        assert!(!text.contains("most"), "{text}");
    }

    #[test]
    fn packet_logs_are_limited_during_the_run() {
        assert_eq!(Scenario::packet_log_fits(40_000_000), Ok(()));
        let text = Scenario::packet_log_fits(50_000_000).expect_err("too many").to_string();
        assert!(text.starts_with("packet_log: 50000000 packets so far take 4"), "{text}");
    }
}
