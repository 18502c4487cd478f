//! Predicted memory of a scenario: what would not fit is refused before it is built.

use crate::link_def::LinkConfig;
use crate::scenario::{FlowConfig, Scenario};
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::stats::Histogram;

/// Bytes of an idle link without the state of its discipline: the link itself takes below 2 kB, its
/// description, its parsed JSON and its part of the report the rest.
pub const LINK_BYTES: usize = 10_000;
/// Bytes of a flow before its first packet, with its part of the report.
const FLOW_BYTES: usize = 2_500;
/// Most bytes that the links and flows of a scenario may take.
const MEMORY_MAX: usize = 4_000_000_000;

/// Checks that `count` links fit, which take `bytes`.
///
/// # Errors
/// More than [`MEMORY_MAX`].
pub fn links_fit(count: usize, bytes: usize) -> Result<()> {
    if bytes <= MEMORY_MAX {
        return Ok(());
    }
    let text = format!(
        "{count} links with their disciplines take {} MB of memory, allowed: {} MB",
        mb(bytes),
        mb(MEMORY_MAX)
    );
    Err(Error::new(text))
}

/// Checks that the links and flows of `scenario` fit, packets and series apart.
///
/// Delays are counted in histograms, whose memory follows the longest delay. No delay is longer
/// than the run, so the prediction is an upper bound.
///
/// # Errors
/// More than [`MEMORY_MAX`].
pub fn fits(scenario: &Scenario) -> Result<()> {
    let histogram = Histogram::bytes_up_to(scenario.duration);
    let links = scenario.links.iter().map(link_bytes).fold(0, usize::saturating_add);
    let mut crossed = vec![false; scenario.links.len()];
    for l in scenario.flows.iter().flat_map(|f| &f.routes).flatten().flatten() {
        crossed[*l] = true;
    }
    let crossed = crossed.into_iter().filter(|crossed| *crossed).count();
    let members = |flows: &mut dyn Iterator<Item = &FlowConfig>| {
        flows.fold(0usize, |sum, f| sum.saturating_add(cast::index(f.count)))
    };
    let flows = members(&mut scenario.flows.iter());
    let udp = members(&mut scenario.flows.iter().filter(|f| f.tcp.is_none()));
    let parts = [
        (scenario.links.len(), "links with their disciplines", links),
        (crossed, "links that flows cross", crossed.saturating_mul(histogram)),
        (flows, "flows", flows.saturating_mul(FLOW_BYTES)),
        (udp, "delays of UDP flows", udp.saturating_mul(histogram)),
    ];
    let bytes = parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.2));
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

/// Bytes that `link` takes while no packet crosses it.
pub fn link_bytes(link: &LinkConfig) -> usize {
    LINK_BYTES.saturating_add(link.state)
}

fn mb(bytes: usize) -> usize {
    bytes.div_ceil(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_def::parse_links;
    use serde_json::{Value as Json, json};

    fn refusal(count: usize, qdisc: Json) -> Option<String> {
        let link = json!({"rate": "1mbit", "qdisc": qdisc});
        let map = (0..count).map(|i| (format!("l{i}"), link.clone())).collect();
        parse_links(&Json::Object(map)).err().map(|e| e.to_string())
    }

    #[test]
    fn links_are_limited_by_the_memory_that_they_take() {
        let many = refusal(400_001, json!("droptail")).expect("too many");
        assert!(
            many.ends_with(
                "400001 links with their disciplines take 4001 MB of memory, allowed: 4000 MB"
            ),
            "{many}"
        );
        let large = refusal(800, json!({"name": "fq_codel", "flows": 65_536})).expect("too large");
        assert!(large.contains("800 links with their disciplines take "), "{large}");
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
        assert!(text.starts_with("the scenario can take 31"), "{text}");
        assert!(text.contains("1000000 delays of UDP flows: 286"), "{text}");
    }
}
