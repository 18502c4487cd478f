//! Random quantities of a scenario: `"5ms"`, `"uniform(40ms, 200ms)"`, `"exponential(1s)"`,
//! `"pareto(mean=10kB, shape=1.2)"`.

use rand_core::Rng;
use rand_distr::{Distribution, Exp1};
use sojourn_aqm::dice::Dice;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Setting, Value};
use sojourn_aqm::units::{Bytes, Span};

/// A quantity that is counted in whole grains (nanoseconds, bytes).
pub trait Grains: Value + Copy {
    /// That many grains.
    fn of(grains: u64) -> Self;
    /// How many grains.
    fn grains(self) -> u64;
}

impl Grains for Span {
    fn of(grains: u64) -> Span {
        Span(grains)
    }
    fn grains(self) -> u64 {
        self.0
    }
}

impl Grains for Bytes {
    fn of(grains: u64) -> Bytes {
        Bytes(grains)
    }
    fn grains(self) -> u64 {
        self.0
    }
}

/// A distribution of a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dist<T> {
    /// Always the same.
    Constant(T),
    /// Each value from the first up to the second as likely.
    Uniform(T, T),
    /// Exponential with this mean.
    Exponential(T),
    /// Pareto with this mean and shape; its least value is `mean (shape - 1) / shape`.
    Pareto(T, f64),
}

impl<T: Grains> Dist<T> {
    /// One sample: one draw of the generator, none for a constant.
    pub fn sample(&self, rng: &mut impl Rng) -> T {
        match *self {
            Dist::Constant(x) => x,
            Dist::Uniform(lo, hi) => {
                let width = (hi.grains() - lo.grains()) as f64;
                T::of(lo.grains() + (rng.uniform() * width) as u64)
            }
            Dist::Exponential(mean) => {
                let e: f64 = Exp1.sample(rng);
                T::of((mean.grains() as f64 * e) as u64)
            }
            Dist::Pareto(mean, shape) => {
                let least = mean.grains() as f64 * (shape - 1.0) / shape;
                T::of((least * libm::pow(1.0 - rng.uniform(), -1.0 / shape)) as u64)
            }
        }
    }

    /// The least value that a sample can have.
    pub fn least(&self) -> T {
        match *self {
            Dist::Constant(x) | Dist::Uniform(x, _) => x,
            Dist::Exponential(_) => T::of(0),
            Dist::Pareto(mean, shape) => {
                T::of((mean.grains() as f64 * (shape - 1.0) / shape) as u64)
            }
        }
    }
}

const FORMS: [&str; 3] = ["uniform", "exponential", "pareto"];

impl<T: Grains> Value for Dist<T> {
    fn kind() -> String {
        format!("{}, or {}(...)", T::kind(), FORMS.join("|"))
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        let Setting::Text(text) = setting else {
            return T::read(setting).map(Dist::Constant);
        };
        let Some((form, rest)) = text.split_once('(') else {
            return T::read(setting).map(Dist::Constant);
        };
        let bad = |form: &str| {
            Error::new(format!("{text:?} is not a distribution; write it like {form}"))
        };
        let rest = rest.trim_end().strip_suffix(')').ok_or_else(|| bad("uniform(a, b)"))?;
        let args: Vec<&str> = rest.split(',').map(str::trim).collect();
        let quantity = |arg: &str| T::read(Setting::Text(arg));
        match (form.trim(), args.as_slice()) {
            ("uniform", [lo, hi]) => {
                let (lo, hi) = (quantity(lo)?, quantity(hi)?);
                if lo.grains() > hi.grains() {
                    return Err(Error::new(format!("{text:?} has its bounds the wrong way round")));
                }
                Ok(Dist::Uniform(lo, hi))
            }
            ("exponential", [mean]) => {
                quantity(mean.trim_start_matches("mean=")).map(Dist::Exponential)
            }
            ("pareto", [mean, shape]) => {
                let mean = quantity(mean.trim_start_matches("mean="))?;
                let shape = f64::read(Setting::Text(shape.trim_start_matches("shape=")))?;
                if shape <= 1.0 {
                    return Err(Error::new(format!(
                        "{text:?} has no mean: its shape must exceed 1"
                    )));
                }
                Ok(Dist::Pareto(mean, shape))
            }
            ("uniform", _) => Err(bad("uniform(a, b)")),
            ("exponential", _) => Err(bad("exponential(mean)")),
            ("pareto", _) => Err(bad("pareto(mean=m, shape=a)")),
            (other, _) => Err(Error::unknown("distribution", other, FORMS)),
        }
    }

    fn write(&self) -> String {
        match self {
            Dist::Constant(x) => x.write(),
            Dist::Uniform(lo, hi) => format!("uniform({}, {})", lo.write(), hi.write()),
            Dist::Exponential(mean) => format!("exponential({})", mean.write()),
            Dist::Pareto(mean, shape) => format!("pareto(mean={}, shape={shape})", mean.write()),
        }
    }

    /// Of a random quantity, what must lie in the range is its mean.
    fn within(&self, lo: &Self, hi: &Self) -> bool {
        let mean = |d: &Self| match *d {
            Dist::Constant(x) | Dist::Exponential(x) | Dist::Pareto(x, _) => x.grains(),
            Dist::Uniform(a, b) => a.grains() / 2 + b.grains() / 2,
        };
        (mean(lo)..=mean(hi)).contains(&mean(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    fn mean_ms(text: &str) -> f64 {
        let d: Dist<Span> = Value::read(Setting::Text(text)).unwrap();
        assert_eq!(d.write(), text);
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let n = 200_000;
        (0..n).map(|_| d.sample(&mut rng).as_secs() * 1e3).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn means_are_as_asked() {
        assert_eq!(mean_ms("5ms"), 5.0);
        assert!((mean_ms("uniform(40ms, 200ms)") - 120.0).abs() < 0.5);
        assert!((mean_ms("exponential(1s)") - 1000.0).abs() < 10.0);
        assert!((mean_ms("pareto(mean=10ms, shape=3)") - 10.0).abs() < 0.1);
    }

    #[test]
    fn bad_forms_say_what_is_due() {
        let refusal = |t: &str| <Dist<Span>>::read(Setting::Text(t)).unwrap_err().to_string();
        assert!(refusal("unifrom(1ms, 2ms)").contains("did you mean \"uniform\""));
        assert!(refusal("uniform(1ms)").contains("uniform(a, b)"));
        assert!(refusal("uniform(2ms, 1ms)").contains("wrong way round"));
        assert!(refusal("uniform(1, 2)").contains("no unit"));
        assert!(refusal("pareto(mean=1ms, shape=1)").contains("exceed 1"));
        assert!(refusal("uniform(1ms, 2ms").contains("uniform(a, b)"));
    }
}
