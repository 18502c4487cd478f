//! Predicted memory of a scenario, which is refused if it would not fit.

use super::flows::FlowConfig;
use super::links::{LinkConfig, MEMORY_MAX, link_bytes, mb};
use crate::traffic::source::Source;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::stats::Histogram;
use sojourn_aqm::units::Span;

/// Bytes of a flow before its first packet, with its part of the report.
const FLOW_BYTES: usize = 2_500;

/// Checks that the links and flows of a scenario fit, packets and series apart.
///
/// Delays are counted in histograms, whose memory follows the longest delay. No delay is longer
/// than the run, so the prediction is an upper bound.
///
/// # Errors
/// More than [`MEMORY_MAX`].
pub fn fits(duration: Span, links: &[LinkConfig], flows: &[FlowConfig]) -> Result<()> {
    let histogram = Histogram::bytes_up_to(duration);
    let of_links = links.iter().map(link_bytes).fold(0, usize::saturating_add);
    let mut crossed = vec![false; links.len()];
    for l in flows.iter().flat_map(|f| &f.routes).flatten().flatten() {
        crossed[*l] = true;
    }
    let crossed = crossed.into_iter().filter(|crossed| *crossed).count();
    let members = |flows: &mut dyn Iterator<Item = &FlowConfig>| {
        flows.fold(0usize, |sum, f| sum.saturating_add(cast::index(f.count)))
    };
    let count = members(&mut flows.iter());
    let udp = members(&mut flows.iter().filter(|f| f.tcp.is_none()));
    let calls = members(&mut flows.iter().filter(|f| matches!(f.source, Source::Call(_))));
    let parts = [
        (links.len(), "links with their disciplines", of_links),
        (crossed, "links that flows cross", crossed.saturating_mul(histogram)),
        (count, "flows", count.saturating_mul(FLOW_BYTES)),
        (udp, "delays of UDP flows", udp.saturating_mul(histogram)),
        (calls, "delays of frames", calls.saturating_mul(histogram)),
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

#[cfg(test)]
mod tests {
    use crate::config::links::parse_links;
    use crate::config::scenario::Scenario;
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
