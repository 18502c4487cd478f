//! Sampling interval of the time series of a figure.

use super::flows::FlowConfig;
use super::scenario::{Scenario, check_range};
use sojourn_aqm::cast;
use sojourn_aqm::error::Result;
use sojourn_aqm::units::Span;

/// Number of samples for a figure.
const SAMPLES: u64 = 1000;

/// Largest number of values of such series: 1.4 GB while they are written.
const VALUES: u64 = 30_000_000;

impl Scenario {
    /// The scenario with a sampling interval for figures, if it has none. It is a thousandth of the
    /// duration, or longer if many flows would use too much memory.
    ///
    /// # Errors
    /// If the duration is shorter than the smallest interval, or the series take too much memory.
    pub fn with_sample(&self) -> Result<Scenario> {
        if self.sample().is_some() {
            return Ok(self.clone());
        }
        let members: u64 = self.flows.iter().map(FlowConfig::count).sum();
        let groups = 12 * self.links.len() + 4 * self.flows.len();
        let columns = groups as u64 + if self.sample_flows() { 3 * members } else { 0 };
        let samples = (VALUES / columns).clamp(1, SAMPLES);
        let us = (self.duration().as_secs() / samples as f64 * 1e6).round_ties_even();
        let sample = Span::us(cast::trunc(us).max(1));
        check_range(sample, Span::us(1), self.duration()).map_err(|e| e.at("sample"))?;
        let mut scenario = self.clone();
        scenario.keys.sample = Some(sample);
        scenario.check_memory()?;
        Ok(scenario)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample(duration: &str, count: u64, sample_flows: bool) -> Option<Span> {
        let scenario = json!({
            "duration": duration, "sample_flows": sample_flows,
            "links": {"up": {"rate": "10mbit"}},
            "flows": [{"name": "bulk", "path": ["up"], "count": count}],
        });
        let scenario = Scenario::from_json(&scenario.to_string()).unwrap();
        assert_eq!(scenario.sample(), None);
        scenario.with_sample().ok().and_then(|scenario| scenario.sample())
    }

    #[test]
    fn interval_follows_from_duration_and_number_of_flows() {
        assert_eq!(sample("3s", 2, true), Some(Span::us(3000)));
        assert_eq!(sample("2500us", 2, true), Some(Span::us(2)));
        // 300,016 columns: 99 samples.
        assert_eq!(sample("3s", 100_000, true), Some(Span::us(30_303)));
        assert_eq!(sample("3s", 100_000, false), Some(Span::us(3000)));
        assert_eq!(sample("10ns", 1, true), None, "shorter than 1us");
    }

    #[test]
    fn interval_that_is_set_stays() {
        let text = r#"{"duration": "2s", "sample": "1s", "links": {"up": {"rate": "1mbit"}},
            "flows": [{"name": "a", "path": ["up"]}]}"#;
        let scenario = Scenario::from_json(text).unwrap();
        assert_eq!(scenario.with_sample().unwrap().canonical(), scenario.canonical());
    }
}
