//! Common past of runs with different seeds: the key `warm_from` of a scenario.

use crate::parsing::keys::table;
use crate::parsing::parse::KeyReader;
use serde_json::{Value as Json, json};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::Value;
use sojourn_aqm::units::Span;

table! {
    /// Common past of runs with different seeds, as of runs that start from a warm state: up to a
    /// time they have the random numbers of one seed, and from then on of their own seed.
    static WARM_FROM at "warm_from";

    /// Time from which on the random numbers come from the scenario's `seed`. Earlier draws stay:
    /// start times, RTTs, arrivals that are scheduled.
    at: Span, required, [], "\"2s\"";

    /// Seed up to that time.
    seed: u64, required, ["0" => "9007199254740992"], "7";
}

/// Past of a run: another seed up to a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WarmFrom {
    /// Time from which on the scenario's seed applies.
    pub at: Span,
    /// Seed before.
    pub seed: u64,
}

impl WarmFrom {
    /// Reads the value of the key in a scenario of length `duration`.
    ///
    /// # Errors
    /// If a key is unknown or missing, a value is out of range, or the build cannot change the
    /// seed of a running simulation.
    pub(super) fn parse(json: &Json, duration: Span) -> Result<WarmFrom> {
        let fields = KeyReader::new(json, &WARM_FROM)?;
        let at: Span = fields.read_or_default("at")?;
        if at >= duration {
            return Err(Error::new(format!("{at} is not before the end at {duration}")).at("at"));
        }
        WarmFrom::check_build()?;
        Ok(WarmFrom { at, seed: fields.read_or_default("seed")? })
    }

    /// Checks that this build can change the seed of a running simulation.
    ///
    /// # Errors
    /// If it lacks the feature `snapshot`.
    pub(crate) fn check_build() -> Result<()> {
        if cfg!(feature = "snapshot") {
            return Ok(());
        }
        let text = "this build cannot change the seed during a run: it lacks the feature snapshot";
        Err(Error::new(text))
    }

    /// Canonical JSON form.
    pub(super) fn canonical(self) -> Json {
        json!({ "at": self.at.write(), "seed": self.seed })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::scenario::Scenario;

    fn scenario(key: &str) -> sojourn_aqm::error::Result<Scenario> {
        Scenario::from_json(&format!(
            r#"{{"duration": "10s", "seed": 7, "links": {{"up": {{"rate": "1mbit"}}}},
            "flows": [{{"name": "f", "path": ["up"]}}], "warm_from": {key}}}"#
        ))
    }

    #[test]
    fn canonical_form_has_it_if_the_seeds_differ() {
        let other = scenario(r#"{"at": "2s", "seed": 1}"#).unwrap();
        assert_eq!(other.canonical()["warm_from"]["at"], "2s");
        assert_eq!(other.canonical()["warm_from"]["seed"], 1);
        let text = other.canonical_text();
        assert_eq!(Scenario::from_json(&text).unwrap().canonical_text(), text);
        assert_eq!(other.with_seed(1).unwrap().canonical().get("warm_from"), None);
        assert_eq!(other.with_seed(8).unwrap().canonical()["warm_from"]["seed"], 1);
    }

    #[test]
    fn errors_name_their_path() {
        let cases = [
            (r#"{"at": "10s", "seed": 1}"#, "warm_from.at: 10s is not before the end at 10s"),
            (r#"{"at": "2", "seed": 1}"#, "warm_from.at: \"2\" has no unit"),
            (r#"{"at": "2s"}"#, "warm_from.seed: is missing"),
            (r#"{"at": "2s", "seed": -1}"#, "warm_from.seed: "),
            (r#"{"at": "2s", "sead": 1}"#, "warm_from.sead: unknown key \"sead\", did you mean"),
            ("\"2s\"", "warm_from: "),
        ];
        for (key, message) in cases {
            let error = scenario(key).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error:?} for {message:?}");
        }
    }
}
