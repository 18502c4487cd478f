//! Random packet loss on a link: independent, or in bursts (Gilbert-Elliott).
//!
//! **Source**: E. N. Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical Journal 39
//! (1960); E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", ibid. 42
//! (1963); the names are from tc-netem(8), `loss gemodel p r 1-h 1-k`.
//!
//! The channel is good or bad and starts good. A packet is lost with the loss probability of the
//! current state; after each packet a good channel turns bad with probability p and a bad one good
//! with probability r. State changes are per packet, not per unit of time. The loss rate is `(1-h)
//! b + (1-k) (1-b)` with `b = p / (p + r)`. If a bad channel loses every packet and a good one
//! none, the mean burst length is 1/r packets.

use crate::parsing::keys::{KeyType, table};
use crate::parsing::parse::{self, KeyReader};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value as Json, json};
use sojourn_aqm::error::Result;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;

table! {
    /// Losses in bursts (Gilbert-Elliott model, gemodel in tc-netem). The link is in a good or a
    /// bad state, starts in the good one, and may change it after every packet.
    static LOSS at "links.NAME.loss";

    /// Probability of a change from good to bad after a packet.
    p: f64, required, ["0" => "1"], "0.02";

    /// Probability of a change from bad to good after a packet; the bad state lasts 1/r packets on
    /// average.
    r: f64, optional "1 - p", ["0" => "1"], "0.25";

    /// Loss probability in the bad state.
    bad_loss = "1-h": f64, default "1", ["0" => "1"], "0.8";

    /// Loss probability in the good state.
    good_loss = "1-k": f64, default "0", ["0" => "1"], "0.001";
}

/// Loss model of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum LossModel {
    /// Independent losses with this probability.
    Random(f64),
    /// Gilbert-Elliott bursts.
    Bursts {
        /// Probability that a good channel turns bad after a packet.
        p: f64,
        /// Probability that a bad channel turns good after a packet.
        r: f64,
        /// Loss probability in the bad state: 1-h.
        bad_loss: f64,
        /// Loss probability in the good state: 1-k.
        good_loss: f64,
    },
}

impl LossModel {
    /// Parses the `loss` of a link: a probability (0.02 or `"2%"`), or a table of the
    /// Gilbert-Elliott parameters.
    ///
    /// # Errors
    /// If a key is unknown or missing, or a value is not a probability.
    pub fn parse(json: &Json) -> Result<LossModel> {
        if !json.is_object() {
            let chance = params::read_checked(parse::to_setting(json)?, Some((0.0, 1.0)))?;
            return Ok(LossModel::Random(chance));
        }
        let fields = KeyReader::new(json, &LOSS)?;
        let p = fields.read_or_default("p")?;
        let r = fields.read("r")?.unwrap_or(1.0 - p);
        Ok(LossModel::Bursts {
            p,
            r,
            bad_loss: fields.read_or_default("1-h")?,
            good_loss: fields.read_or_default("1-k")?,
        })
    }

    /// Canonical JSON form.
    pub fn canonical(self) -> Json {
        match self {
            LossModel::Random(chance) => chance.to_json(),
            LossModel::Bursts { p, r, bad_loss: bad, good_loss: good } => {
                let [p, r, bad, good] = [p, r, bad, good].map(KeyType::to_json);
                json!({"p": p, "r": r, "1-h": bad, "1-k": good})
            }
        }
    }

    /// True if no packet is ever lost.
    pub fn is_lossless(self) -> bool {
        self == LossModel::Random(0.0)
    }
}

/// State of a lossy channel.
#[derive(Clone, Debug)]
pub struct LossProcess {
    loss: LossModel,
    in_bad_state: bool,
    rng: Pcg64Mcg,
    /// Packets lost among those that arrived at the link in the measured interval; updated by the
    /// owner.
    pub lost: u64,
}

impl LossProcess {
    /// Creates a channel with its own random stream.
    pub fn new(loss: LossModel, rng: Pcg64Mcg) -> LossProcess {
        LossProcess { loss, in_bad_state: false, rng, lost: 0 }
    }

    /// Draws the fate of the next packet: true if it is lost.
    pub fn next_is_lost(&mut self) -> bool {
        let chance = match self.loss {
            LossModel::Random(chance) => chance,
            LossModel::Bursts { p, r, bad_loss: bad, good_loss: good } => {
                let (loss, transition) = if self.in_bad_state { (bad, r) } else { (good, p) };
                self.in_bad_state ^= self.rng.bernoulli(transition);
                loss
            }
        };
        self.rng.bernoulli(chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    const PACKETS: usize = 1_000_000;

    fn losses(loss: LossModel) -> Vec<bool> {
        let mut wire = LossProcess::new(loss, Pcg64Mcg::seed_from_u64(1));
        let lost: Vec<bool> = (0..PACKETS).map(|_| wire.next_is_lost()).collect();
        lost
    }

    /// Loss rate and mean burst length.
    fn measured(loss: LossModel) -> (f64, f64) {
        let lost = losses(loss);
        let all = lost.iter().filter(|l| **l).count() as f64;
        let runs = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count() as f64;
        (all / PACKETS as f64, all / runs)
    }

    fn close(value: f64, expected: f64, share: f64) {
        assert!((value / expected - 1.0).abs() < share, "{value}, not {expected}");
    }

    #[test]
    fn loss_rate_and_burst_length_match_the_formulas() {
        for (p, r, bad, good) in
            [(0.01, 0.25, 1.0, 0.0), (0.002, 0.1, 0.7, 0.001), (0.3, 0.4, 0.9, 0.1)]
        {
            let b = p / (p + r);
            let share = bad * b + good * (1.0 - b);
            // Probability that two consecutive packets are lost.
            let both = b * bad * ((1.0 - r) * bad + r * good)
                + (1.0 - b) * good * ((1.0 - p) * good + p * bad);
            let (lost, run) = measured(LossModel::Bursts { p, r, bad_loss: bad, good_loss: good });
            close(lost, share, 0.05);
            close(run, 1.0 / (1.0 - both / share), 0.02);
        }
    }

    #[test]
    fn gilbert_burst_lengths_are_geometric() {
        let lost = losses(LossModel::Bursts { p: 0.05, r: 0.5, bad_loss: 1.0, good_loss: 0.0 });
        let runs: Vec<usize> =
            lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect();
        for n in 1..6 {
            let share = runs.iter().filter(|run| **run == n).count() as f64 / runs.len() as f64;
            close(share, 1.0 / f64::from(1u32 << n), 0.05);
        }
    }

    #[test]
    fn losses_are_independent_if_r_is_one_minus_p() {
        // netem's default for `gemodel p` alone: the next state does not depend on the current one.
        let (lost, run) = measured(LossModel::parse(&json!({"p": 0.1})).unwrap());
        close(lost, 0.1, 0.02);
        close(run, 1.0 / 0.9, 0.01);
        let (lost, run) = measured(LossModel::Random(0.1));
        close(lost, 0.1, 0.02);
        close(run, 1.0 / 0.9, 0.01);
    }

    #[test]
    fn percentages_equal_fractions() {
        let read = |json: Json| LossModel::parse(&json).unwrap();
        for (text, share) in [("2%", 0.02), (" 0.1 %", 0.001), ("100%", 1.0), ("0%", 0.0)] {
            assert_eq!(read(json!(text)), LossModel::Random(share), "{text}");
        }
        assert_eq!(read(json!({"p": "1%", "r": "25%"})), read(json!({"p": 0.01, "r": 0.25})));
        for (text, why) in [
            ("150%", "1.5 is out of range"),
            ("-1%", "-0.01 is out of range"),
            ("%", "\"%\" is not a percentage"),
            ("1e1%", "is not a percentage"),
            ("2%%", "is not a percentage"),
        ] {
            let error = LossModel::parse(&json!(text)).unwrap_err().to_string();
            assert!(error.contains(why), "{error:?} for {text:?}");
        }
    }

    #[test]
    fn errors_name_their_path() {
        let refused = |json: Json| LossModel::parse(&json).unwrap_err().to_string();
        assert!(refused(json!({"r": 0.1})).starts_with("p: is missing"));
        assert!(refused(json!({"p": 1.5})).starts_with("p: 1.5 is out of range"));
        assert!(refused(json!({"p": 0.1, "1-g": 1})).starts_with("1-g: unknown key"));
        assert!(refused(json!({"p": "x"})).starts_with("p: \"x\" is not"));
        assert!(refused(json!([1])).starts_with("[1] is not a single value"));
    }
}
