//! Check of impairments that a program sets.

use super::{Chance, Impairments, LossModel};
use crate::error::Result;
use crate::params::checked;

impl Impairments {
    /// Checks that all probabilities and correlations are from 0 to 1, and gaps at least 1.
    ///
    /// # Errors
    /// A value that is out of range, with its path.
    pub fn check(&self) -> Result<()> {
        if let Some(jitter) = &self.jitter {
            share("jitter.correlation", jitter.correlation)?;
        }
        if let Some(reorder) = &self.reorder {
            chance(reorder.chance).map_err(|e| e.at("reorder"))?;
            checked(reorder.gap, Some((1, u64::MAX))).map_err(|e| e.at("reorder.gap"))?;
        }
        self.loss.check().map_err(|e| e.at("loss"))?;
        chance(self.duplicate).map_err(|e| e.at("duplicate"))?;
        chance(self.corrupt).map_err(|e| e.at("corrupt"))
    }
}

impl LossModel {
    fn check(&self) -> Result<()> {
        match *self {
            LossModel::Random(probability) => share("probability", probability),
            LossModel::Correlated(correlated) => chance(correlated),
            LossModel::Bursts { p, r, bad_loss, good_loss } => {
                share("p", p)?;
                share("r", r)?;
                share("bad_loss", bad_loss)?;
                share("good_loss", good_loss)
            }
            LossModel::States { p13, p31, p32, p23, p14 } => {
                share("p13", p13)?;
                share("p31", p31)?;
                share("p32", p32)?;
                share("p23", p23)?;
                share("p14", p14)
            }
        }
    }
}

fn chance(chance: Chance) -> Result<()> {
    share("probability", chance.probability)?;
    share("correlation", chance.correlation)
}

fn share(name: &str, value: f64) -> Result<()> {
    checked(value, Some((0.0, 1.0))).map(drop).map_err(|e| e.at(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;
    use crate::wire::{Jitter, Reorder};
    use std::prelude::v1::*;

    #[test]
    fn values_out_of_range_are_refused_with_their_path() {
        let path = |change: &dyn Fn(&mut Impairments)| {
            let mut impairments = Impairments::default();
            change(&mut impairments);
            impairments.check().err().map(|e| e.path().to_string())
        };
        assert_eq!(path(&|_| ()), None);
        assert_eq!(path(&|i| i.loss = LossModel::Random(1.0)), None);
        let bursts = LossModel::Bursts { p: 0.1, r: -0.1, bad_loss: 1.0, good_loss: 0.0 };
        let states = LossModel::States { p13: 0.1, p31: 0.5, p32: 0.0, p23: 1.0, p14: 2.0 };
        let wrong = Chance::correlated(0.5, 1.5);
        let jitter = Jitter { correlation: 2.0, ..Jitter::new(Span::ms(1)) };
        for (loss, expected) in [
            (LossModel::Random(f64::NAN), "probability"),
            (LossModel::Correlated(wrong), "correlation"),
            (bursts, "r"),
            (states, "p14"),
        ] {
            assert_eq!(path(&|i| i.loss = loss), Some(format!("loss.{expected}")));
        }
        assert_eq!(path(&|i| i.jitter = Some(jitter.clone())).unwrap(), "jitter.correlation");
        assert_eq!(path(&|i| i.duplicate = wrong).unwrap(), "duplicate.correlation");
        assert_eq!(path(&|i| i.corrupt = Chance::new(-1.0)).unwrap(), "corrupt.probability");
        let reorder = Reorder { gap: 0, ..Reorder::new(Chance::new(0.5)) };
        assert_eq!(path(&|i| i.reorder = Some(reorder)).unwrap(), "reorder.gap");
        let reorder = Reorder::new(Chance::new(5.0));
        assert_eq!(path(&|i| i.reorder = Some(reorder)).unwrap(), "reorder.probability");
    }
}
