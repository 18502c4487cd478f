//! Text form of the random losses of a link: `loss` of a scenario. The models and their sources are
//! in [`sojourn_aqm::wire::LossModel`].

use crate::parsing::keys::{KeyType, table};
use crate::parsing::object::object;
use crate::parsing::parse::{self, KeyReader};
use serde_json::{Value as Json, json};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params;
use sojourn_aqm::wire::{Chance, LossModel};

table! {
    /// Random losses, by one of three models of tc-netem: random (probability, correlation);
    /// gemodel, bursts by Gilbert and Elliott (p, r, 1-h, 1-k): the link is in a good or a bad
    /// state, starts in the good one, and may change it after every packet; state (p13, p31, p32,
    /// p23, p14): packets are delivered in a gap (1) or within a burst (2), or lost within a burst
    /// (3) or alone in a gap (4). Any of them with ecn.
    static LOSS at "links.NAME.loss";

    /// random: probability that a packet is lost.
    probability: f64, optional "another model", ["0" => "1"], "0.02";

    /// random: correlation with the previous packet. It makes losses rarer, as in netem: with 0.25,
    /// a probability of 0.1 gives 1.8 % loss.
    correlation: f64, optional "0", ["0" => "1"], "0.25";

    /// gemodel: probability of a change from good to bad after a packet.
    p: f64, optional "another model", ["0" => "1"], "0.02";

    /// gemodel: probability of a change from bad to good after a packet; the bad state lasts 1/r
    /// packets on average.
    r: f64, optional "1 - p", ["0" => "1"], "0.25";

    /// gemodel: loss probability in the bad state.
    bad_loss = "1-h": f64, default "1", ["0" => "1"], "0.8";

    /// gemodel: loss probability in the good state.
    good_loss = "1-k": f64, default "0", ["0" => "1"], "0.001";

    /// state: probability that a gap ends, with the first loss of a burst.
    p13: f64, optional "another model", ["0" => "1"], "0.02";

    /// state: probability that a burst ends after a loss.
    p31: f64, optional "1 - p13", ["0" => "1"], "0.3";

    /// state: probability that a packet is delivered after a loss within a burst.
    p32: f64, optional "0", ["0" => "1"], "0.2";

    /// state: probability of a loss after a packet that is delivered within a burst.
    p23: f64, optional "1", ["0" => "1"], "0.4";

    /// state: probability of an isolated loss in a gap.
    p14: f64, optional "0", ["0" => "1"], "0.01";

    /// Mark ECN-capable packets with CE instead of losing them.
    ecn: bool, optional "false", [], "true";
}

/// Keys of the models, the key that is required first.
const RANDOM: [&str; 2] = ["probability", "correlation"];
const GEMODEL: [&str; 4] = ["p", "r", "1-h", "1-k"];
const STATE: [&str; 5] = ["p13", "p31", "p32", "p23", "p14"];

/// Parses the `loss` of a link: a probability (0.02 or `"2%"`), or a table. The second value is
/// true if packets are marked instead.
///
/// # Errors
/// If a key is unknown or missing, keys of two models are mixed, or a value is not a probability.
pub(crate) fn parse(json: &Json) -> Result<(LossModel, bool)> {
    if !json.is_object() {
        let chance = params::read_checked(parse::to_setting(json)?, Some((0.0, 1.0)))?;
        return Ok((LossModel::Random(chance), false));
    }
    let fields = KeyReader::new(json, &LOSS)?;
    let models = [RANDOM.as_slice(), &GEMODEL, &STATE];
    let present = models.map(|keys| keys.iter().find(|key| fields.get(key).is_some()));
    let mut present = present.into_iter().flatten();
    if let (Some(key), Some(other)) = (present.next(), present.next()) {
        let text = format!("cannot be combined with {key}, a key of another model");
        return Err(Error::new(text).at(other));
    }
    let any = |keys: &[&str]| keys.iter().any(|key| fields.get(key).is_some());
    let model = if any(&STATE) {
        states(&fields)?
    } else if any(&GEMODEL) {
        let p = required(&fields, "p")?;
        LossModel::Bursts {
            p,
            r: fields.read("r")?.unwrap_or(1.0 - p),
            bad_loss: fields.read_or_default("1-h")?,
            good_loss: fields.read_or_default("1-k")?,
        }
    } else {
        let probability = required(&fields, "probability")?;
        match fields.read("correlation")?.unwrap_or(0.0) {
            0.0 => LossModel::Random(probability),
            correlation => LossModel::Correlated(Chance::correlated(probability, correlation)),
        }
    };
    Ok((model, fields.read("ecn")?.unwrap_or(false)))
}

fn required(fields: &KeyReader<'_>, key: &str) -> Result<f64> {
    match fields.read(key)? {
        Some(value) => Ok(value),
        None => fields.require(key).map(|_| 0.0),
    }
}

fn states(fields: &KeyReader<'_>) -> Result<LossModel> {
    let p13 = required(fields, "p13")?;
    let p31 = fields.read("p31")?.unwrap_or(1.0 - p13);
    let p32 = fields.read("p32")?.unwrap_or(0.0);
    let p23 = fields.read("p23")?.unwrap_or(1.0);
    let p14 = fields.read("p14")?.unwrap_or(0.0);
    for (key, sum) in [("p14", p13 + p14), ("p32", p31 + p32)] {
        if sum > 1.0 {
            let other = if key == "p14" { "p13" } else { "p31" };
            let text = format!("{other} and {key} add up to {sum}, allowed: up to 1");
            return Err(Error::new(text).at(key));
        }
    }
    Ok(LossModel::States { p13, p31, p32, p23, p14 })
}

/// Canonical JSON form.
pub(crate) fn canonical(model: LossModel, ecn: bool) -> Json {
    let pairs: Vec<(&str, f64)> = match model {
        LossModel::Random(chance) if !ecn => return chance.to_json(),
        LossModel::Random(chance) => vec![("probability", chance)],
        LossModel::Correlated(chance) => {
            RANDOM.into_iter().zip([chance.probability, chance.correlation]).collect()
        }
        LossModel::Bursts { p, r, bad_loss, good_loss } => {
            GEMODEL.into_iter().zip([p, r, bad_loss, good_loss]).collect()
        }
        LossModel::States { p13, p31, p32, p23, p14 } => {
            STATE.into_iter().zip([p13, p31, p32, p23, p14]).collect()
        }
        other => unreachable!("{other:?} has a text form"),
    };
    let ecn = ecn.then(|| ("ecn".to_string(), json!(true)));
    object(pairs.into_iter().map(|(key, value)| (key.to_string(), value.to_json())).chain(ecn))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(json: &Json) -> LossModel {
        parse(json).unwrap().0
    }

    #[test]
    fn percentages_equal_fractions() {
        for (text, share) in [("2%", 0.02), (" 0.1 %", 0.001), ("100%", 1.0), ("0%", 0.0)] {
            assert_eq!(model(&json!(text)), LossModel::Random(share), "{text}");
        }
        let bursts = json!({"p": "1%", "r": "25%"});
        assert_eq!(model(&bursts), model(&json!({"p": 0.01, "r": 0.25})));
        for (text, why) in [
            ("150%", "1.5 is out of range"),
            ("-1%", "-0.01 is out of range"),
            ("%", "\"%\" is not a percentage"),
            ("1e1%", "is not a percentage"),
            ("2%%", "is not a percentage"),
        ] {
            let error = parse(&json!(text)).unwrap_err().to_string();
            assert!(error.contains(why), "{error:?} for {text:?}");
        }
    }

    #[test]
    fn the_keys_choose_the_model() {
        let bursts = LossModel::Bursts { p: 0.1, r: 0.9, bad_loss: 1.0, good_loss: 0.0 };
        assert_eq!(model(&json!({"p": 0.1})), bursts);
        let states = LossModel::States { p13: 0.1, p31: 0.9, p32: 0.0, p23: 1.0, p14: 0.0 };
        assert_eq!(model(&json!({"p13": 0.1})), states);
        let random = json!({"probability": 0.1, "correlation": "25%"});
        assert_eq!(model(&random), LossModel::Correlated(Chance::correlated(0.1, 0.25)));
        let marked = parse(&json!({"probability": 0.1, "ecn": true})).unwrap();
        assert_eq!(marked, (LossModel::Random(0.1), true));
    }

    #[test]
    fn the_canonical_form_is_parsed_to_the_same() {
        for json in [
            json!(0.25),
            json!({"probability": 0.25, "ecn": true}),
            json!({"probability": 0.25, "correlation": 0.5}),
            json!({"p": 0.1, "r": 0.3, "1-h": 0.5, "1-k": 0.25, "ecn": true}),
            json!({"p13": 0.1, "p31": 0.3, "p32": 0.5, "p23": 0.25, "p14": 0.125}),
        ] {
            let (model, ecn) = parse(&json).unwrap();
            assert_eq!(canonical(model, ecn), json);
        }
    }

    #[test]
    fn errors_name_their_path() {
        let refused = |json: Json| parse(&json).unwrap_err().to_string();
        assert!(refused(json!({"r": 0.1})).starts_with("p: is missing"));
        assert!(refused(json!({"p": 1.5})).starts_with("p: 1.5 is out of range"));
        assert!(refused(json!({"p": 0.1, "1-g": 1})).starts_with("1-g: unknown key"));
        assert!(refused(json!({"p": "x"})).starts_with("p: \"x\" is not"));
        assert!(refused(json!([1])).starts_with("[1] is not a single value"));
        assert!(refused(json!({})).starts_with("probability: is missing"));
        assert!(refused(json!({"correlation": 0.5})).starts_with("probability: is missing"));
        assert!(refused(json!({"p14": 0.5})).starts_with("p13: is missing"));
        let mixed = refused(json!({"p": 0.5, "p13": 0.1}));
        assert!(mixed.starts_with("p13: cannot be combined with p"), "{mixed}");
        let sum = refused(json!({"p13": 0.75, "p14": 0.5}));
        assert!(sum.starts_with("p14: p13 and p14 add up to 1.25"), "{sum}");
    }
}
