//! New impairments of a link during a run.

use super::impairments::{self, parse_key};
use super::loss;
use crate::parsing::parse::KeyReader;
use serde_json::{Map, Value as Json};
use sojourn_aqm::error::Result;
use sojourn_aqm::wire::Impairments;

/// Keys of a link that a change can set, apart from rate, delay and discipline.
const KEYS: [&str; 7] =
    ["loss", "jitter", "reorder", "duplicate", "corrupt", "slot", "in_flight_limit"];

/// New values of some impairments.
#[derive(Clone, Debug, PartialEq)]
pub struct NewImpairments {
    /// Keys that are set.
    keys: Vec<&'static str>,
    /// Values of these keys; others are at their default.
    values: Impairments,
}

impl NewImpairments {
    /// Reads the keys of a change; `None` if it sets no impairment.
    ///
    /// # Errors
    /// If a value is invalid, with its path.
    pub(super) fn parse(fields: &KeyReader<'_>) -> Result<Option<NewImpairments>> {
        let mut new = NewImpairments { keys: Vec::new(), values: Impairments::default() };
        let values = &mut new.values;
        for key in KEYS {
            let Some(json) = fields.get(key) else { continue };
            if key == "loss" {
                let loss = loss::parse(json).map_err(|e| e.at(key))?;
                (values.loss, values.loss_ecn) = loss;
            } else {
                parse_key(key, json, values).map_err(|e| e.at(key))?;
            }
            new.keys.push(key);
        }
        Ok(Some(new).filter(|new| !new.keys.is_empty()))
    }

    /// Sets the new values in `all`.
    pub fn apply(&self, all: &mut Impairments) {
        let new = self.values.clone();
        for key in &self.keys {
            match *key {
                "loss" => (all.loss, all.loss_ecn) = (new.loss, new.loss_ecn),
                "jitter" => all.jitter.clone_from(&new.jitter),
                "reorder" => all.reorder = new.reorder,
                "duplicate" => all.duplicate = new.duplicate,
                "corrupt" => all.corrupt = new.corrupt,
                "slot" => all.slots.clone_from(&new.slots),
                _ => all.limit = new.limit,
            }
        }
    }

    /// Adds the canonical form of the values to a change.
    pub(super) fn write(&self, json: &mut Json) {
        let mut values = Map::new();
        impairments::write(&self.values, &mut values);
        values.insert("loss".into(), loss::canonical(self.values.loss, self.values.loss_ecn));
        for key in &self.keys {
            // An event that does not happen is not written.
            json[*key] = values.remove(*key).unwrap_or_else(|| 0.0.into());
        }
    }
}
