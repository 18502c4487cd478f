//! Wires that lose packets: each by itself, or in bursts.
//!
//! **Source**: E. N. Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical Journal 39
//! (1960); E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", ibid. 42
//! (1963); the names are those of tc-netem(8), `loss gemodel p r 1-h 1-k`.
//!
//! A wire is good or bad, and begins good. A packet is lost with the chance of the state that it
//! finds; after a packet a good wire becomes bad with the chance p, a bad one good with r. So time
//! is counted in packets. The share of losses is `(1-h) b + (1-k) (1-b)` with `b = p / (p + r)`,
//! and where a bad wire loses everything and a good one nothing, 1/r packets are lost in a row.

use crate::keys;
use crate::read::{self, Fields};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value as Json, json};
use sojourn_aqm::dice::Dice;
use sojourn_aqm::error::Result;
use sojourn_aqm::params;

/// How a wire loses packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each with this chance, whatever became of the others; at 0 none.
    Random(f64),
    /// In bursts, after Gilbert and Elliott.
    Bursts {
        /// The chance that a good wire becomes bad after a packet.
        p: f64,
        /// The chance that a bad one becomes good.
        r: f64,
        /// The chance of a loss on a bad wire: 1-h.
        bad: f64,
        /// And on a good one: 1-k.
        good: f64,
    },
}

impl Loss {
    /// Reads the `loss` of a link: a probability (0.02 or `"2%"`), or a table of them.
    pub fn of(json: &Json) -> Result<Loss> {
        if !json.is_object() {
            let chance = params::read_checked(read::setting(json)?, Some((0.0, 1.0)))?;
            return Ok(Loss::Random(chance));
        }
        let fields = Fields::of(json, &keys::LOSS)?;
        let p = fields.value("p")?;
        let r = fields.read("r")?.unwrap_or(1.0 - p);
        Ok(Loss::Bursts { p, r, bad: fields.value("1-h")?, good: fields.value("1-k")? })
    }

    /// The same as it would be written.
    pub fn canonical(self) -> Json {
        match self {
            Loss::Random(chance) => chance.into(),
            Loss::Bursts { p, r, bad, good } => json!({"p": p, "r": r, "1-h": bad, "1-k": good}),
        }
    }

    /// Whether nothing is ever lost.
    pub fn never(self) -> bool {
        self == Loss::Random(0.0)
    }
}

/// A wire that loses packets.
pub struct Wire {
    loss: Loss,
    is_bad: bool,
    dice: Pcg64Mcg,
    /// Packets lost of those that arrived at the link in the measured interval; the owner counts.
    pub lost: u64,
}

impl Wire {
    /// A wire that loses as `loss` says, with dice of its own.
    pub fn new(loss: Loss, dice: Pcg64Mcg) -> Wire {
        Wire { loss, is_bad: false, dice, lost: 0 }
    }

    /// Whether the next packet is lost.
    pub fn loses(&mut self) -> bool {
        let chance = match self.loss {
            Loss::Random(chance) => chance,
            Loss::Bursts { p, r, bad, good } => {
                let (found, turns) = if self.is_bad { (bad, r) } else { (good, p) };
                self.is_bad ^= self.dice.chance(turns);
                found
            }
        };
        self.dice.chance(chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    const PACKETS: usize = 1_000_000;

    fn losses(loss: Loss) -> Vec<bool> {
        let mut wire = Wire::new(loss, Pcg64Mcg::seed_from_u64(1));
        let lost: Vec<bool> = (0..PACKETS).map(|_| wire.loses()).collect();
        lost
    }

    /// The share of losses, and how many there are in a row.
    fn measured(loss: Loss) -> (f64, f64) {
        let lost = losses(loss);
        let all = lost.iter().filter(|l| **l).count() as f64;
        let runs = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count() as f64;
        (all / PACKETS as f64, all / runs)
    }

    fn close(said: f64, expected: f64, share: f64) {
        assert!((said / expected - 1.0).abs() < share, "{said}, not {expected}");
    }

    #[test]
    fn shares_and_runs_of_losses_are_those_of_the_formulas() {
        for (p, r, bad, good) in
            [(0.01, 0.25, 1.0, 0.0), (0.002, 0.1, 0.7, 0.001), (0.3, 0.4, 0.9, 0.1)]
        {
            let b = p / (p + r);
            let share = bad * b + good * (1.0 - b);
            // That the next packet is lost too, whichever state this one found.
            let both = b * bad * ((1.0 - r) * bad + r * good)
                + (1.0 - b) * good * ((1.0 - p) * good + p * bad);
            let (lost, run) = measured(Loss::Bursts { p, r, bad, good });
            close(lost, share, 0.05);
            close(run, 1.0 / (1.0 - both / share), 0.02);
        }
    }

    #[test]
    fn gilberts_runs_are_geometric() {
        let lost = losses(Loss::Bursts { p: 0.05, r: 0.5, bad: 1.0, good: 0.0 });
        let runs: Vec<usize> =
            lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect();
        for n in 1..6 {
            let share = runs.iter().filter(|run| **run == n).count() as f64 / runs.len() as f64;
            close(share, 1.0 / f64::from(1u32 << n), 0.05);
        }
    }

    #[test]
    fn where_r_is_the_rest_of_p_bursts_are_chance() {
        // What netem makes of `gemodel p` alone: the state forgets what it was.
        let (lost, run) = measured(Loss::of(&json!({"p": 0.1})).unwrap());
        close(lost, 0.1, 0.02);
        close(run, 1.0 / 0.9, 0.01);
        let (lost, run) = measured(Loss::Random(0.1));
        close(lost, 0.1, 0.02);
        close(run, 1.0 / 0.9, 0.01);
    }

    #[test]
    fn a_percentage_is_the_same_number() {
        let read = |json: Json| Loss::of(&json).unwrap();
        for (text, share) in [("2%", 0.02), (" 0.1 %", 0.001), ("100%", 1.0), ("0%", 0.0)] {
            assert_eq!(read(json!(text)), Loss::Random(share), "{text}");
        }
        assert_eq!(read(json!({"p": "1%", "r": "25%"})), read(json!({"p": 0.01, "r": 0.25})));
        for (text, why) in [
            ("150%", "1.5 is out of range"),
            ("-1%", "-0.01 is out of range"),
            ("%", "\"%\" is not a percentage"),
            ("1e1%", "is not a percentage"),
            ("2%%", "is not a percentage"),
        ] {
            let error = Loss::of(&json!(text)).unwrap_err().to_string();
            assert!(error.contains(why), "{error:?} for {text:?}");
        }
    }

    #[test]
    fn refusals_carry_their_path() {
        let refused = |json: Json| Loss::of(&json).unwrap_err().to_string();
        assert!(refused(json!({"r": 0.1})).starts_with("p: is missing"));
        assert!(refused(json!({"p": 1.5})).starts_with("p: 1.5 is out of range"));
        assert!(refused(json!({"p": 0.1, "1-g": 1})).starts_with("1-g: unknown key"));
        assert!(refused(json!({"p": "x"})).starts_with("p: \"x\" is not"));
        assert!(refused(json!([1])).starts_with("[1] is not a single value"));
    }
}
