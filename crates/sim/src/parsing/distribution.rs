//! Random distributions of scenario parameters: `"5ms"`, `"uniform(40ms, 200ms)"`,
//! `"exponential(1s)"`,
//! `"pareto(mean=10kB, shape=1.2)"`, `"lomax(mean=10kB, shape=1.2)"`,
//! `"lognormal(mean=1ms, sigma=2)"`, `"cdf(0B 0, 10kB 0.5, 1MB 1)"`, `"web_search"`.
//!
//! **Source**: the exponential and the normal distribution behind the log-normal are taken from
//! `rand_distr`; the others apply the inverse distribution function to a uniform draw (Devroye,
//! "Non-Uniform Random Variate Generation", 1986, chapter II). Named empirical distributions are in
//! [`crate::parsing::distribution::tables`].

mod empirical;
mod tables;

pub use empirical::Cdf;
use rand_core::Rng;
use rand_distr::{Distribution as _, Exp1, StandardNormal};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Setting, Value};
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Bytes, Span};
pub use tables::{EmpiricalTable, SIZE_TABLES};

/// Quantity counted in whole grains (nanoseconds, bytes, or items).
pub trait Countable: Value + Copy + 'static {
    /// Named empirical distributions of this quantity.
    const TABLES: &'static [tables::EmpiricalTable] = &[];
    /// Converts from grains.
    fn of(grains: u64) -> Self;
    /// Converts to grains.
    fn grains(self) -> u64;
}

impl Countable for u64 {
    fn of(grains: u64) -> u64 {
        grains
    }
    fn grains(self) -> u64 {
        self
    }
}

impl Countable for Span {
    fn of(grains: u64) -> Span {
        Span(grains)
    }
    fn grains(self) -> u64 {
        self.0
    }
}

impl Countable for Bytes {
    const TABLES: &'static [tables::EmpiricalTable] = SIZE_TABLES;
    fn of(grains: u64) -> Bytes {
        Bytes(grains)
    }
    fn grains(self) -> u64 {
        self.0
    }
}

/// Distribution of a quantity.
#[derive(Clone, Debug, PartialEq, Snapshot)]
#[non_exhaustive]
pub enum Distribution<T> {
    /// Constant value.
    Constant(T),
    /// Uniform from the first value up to, not including, the second.
    Uniform(T, T),
    /// Exponential with this mean.
    Exponential(T),
    /// Pareto with this mean and shape; the minimum is `mean (shape - 1) / shape`.
    Pareto(T, f64),
    /// Lomax (Pareto type II, starting at 0) with this mean and shape.
    Lomax(T, f64),
    /// Empirical: linear interpolation of a cumulative distribution function.
    Empirical(Cdf),
    /// Log-normal with this mean; the second value is the standard deviation of the logarithm.
    LogNormal(T, f64),
}

impl<T> From<T> for Distribution<T> {
    fn from(value: T) -> Distribution<T> {
        Distribution::Constant(value)
    }
}

impl<T: Countable> Distribution<T> {
    /// Draws a sample, truncated to whole grains. Uses one random number, none for a constant.
    #[inline]
    pub fn sample(&self, rng: &mut impl Rng) -> T {
        T::of(cast::trunc(self.sample_f64(rng)))
    }

    /// Draws a sample in grains, with fraction. Uses one random number, none for a constant.
    pub(crate) fn sample_f64(&self, rng: &mut impl Rng) -> f64 {
        match self {
            Distribution::Constant(x) => x.grains() as f64,
            Distribution::Uniform(lo, hi) => {
                let width = hi.grains().saturating_sub(lo.grains()) as f64;
                lo.grains() as f64 + libm::trunc(rng.uniform() * width)
            }
            Distribution::Exponential(mean) => {
                let e: f64 = Exp1.sample(rng);
                mean.grains() as f64 * e
            }
            Distribution::Pareto(mean, shape) => {
                let least = mean.grains() as f64 * (shape - 1.0) / shape;
                least * libm::pow(1.0 - rng.uniform(), -1.0 / shape)
            }
            Distribution::Lomax(mean, shape) => {
                let scale = mean.grains() as f64 * (shape - 1.0);
                scale * (libm::pow(1.0 - rng.uniform(), -1.0 / shape) - 1.0)
            }
            Distribution::LogNormal(mean, sigma) => {
                let normal: f64 = StandardNormal.sample(rng);
                mean.grains() as f64 * libm::exp(sigma * (normal - sigma / 2.0))
            }
            Distribution::Empirical(cdf) => cdf.quantile(rng.uniform()),
        }
    }

    /// Mean, in grains.
    pub fn mean(&self) -> f64 {
        match self {
            Distribution::Constant(x)
            | Distribution::Exponential(x)
            | Distribution::Pareto(x, _)
            | Distribution::Lomax(x, _)
            | Distribution::LogNormal(x, _) => x.grains() as f64,
            Distribution::Uniform(a, b) => (a.grains() as f64 + b.grains() as f64) / 2.0,
            Distribution::Empirical(cdf) => cdf.mean(),
        }
    }

    /// Minimum of the distribution.
    pub fn min(&self) -> T {
        match self {
            Distribution::Constant(x) | Distribution::Uniform(x, _) => *x,
            Distribution::Exponential(_)
            | Distribution::Lomax(..)
            | Distribution::LogNormal(..) => T::of(0),
            Distribution::Pareto(mean, shape) => {
                T::of(cast::trunc(mean.grains() as f64 * (shape - 1.0) / shape))
            }
            Distribution::Empirical(cdf) => T::of(cast::trunc(cdf.quantile(0.0))),
        }
    }
}

const FORMS: [&str; 6] = ["uniform", "exponential", "pareto", "lomax", "lognormal", "cdf"];

/// Largest standard deviation of the logarithm in a log-normal distribution.
const SIGMA_MAX: f64 = 5.0;

/// Parses the mean and the shape of a distribution that has both.
fn mean_and_shape<T: Countable>(text: &str, mean: &str, shape: &str) -> Result<(T, f64)> {
    let mean = T::read(Setting::Text(mean.trim_start_matches("mean=")))?;
    let shape = f64::read(Setting::Text(shape.trim_start_matches("shape=")))?;
    if shape <= 1.0 {
        return Err(Error::new(format!("{text:?} has no mean: its shape must exceed 1")));
    }
    Ok((mean, shape))
}

/// Parses the mean and the standard deviation of the logarithm of a log-normal distribution.
fn mean_and_sigma<T: Countable>(text: &str, mean: &str, sigma: &str) -> Result<(T, f64)> {
    let mean = T::read(Setting::Text(mean.trim_start_matches("mean=")))?;
    let sigma = f64::read(Setting::Text(sigma.trim_start_matches("sigma=")))?;
    if !(0.0..=SIGMA_MAX).contains(&sigma) {
        return Err(Error::new(format!("{text:?}: sigma must be from 0 to {SIGMA_MAX}")));
    }
    Ok((mean, sigma))
}

/// Error for a name that several tables of `tables` begin with; None for other names.
fn several_tables(tables: &[EmpiricalTable], text: &str) -> Option<Error> {
    let of_name = |name: &str| name.strip_prefix(text).is_some_and(|rest| rest.starts_with('_'));
    let alike: Vec<&str> = tables.iter().map(|t| t.name).filter(|n| of_name(n)).collect();
    let known = alike.join(", ");
    (!alike.is_empty()).then(|| Error::new(format!("{text:?} has several tables: {known}")))
}

impl<T: Countable> Value for Distribution<T> {
    type End = Self;

    fn kind() -> String {
        let tables: String = T::TABLES.iter().map(|t| format!(", {}", t.name)).collect();
        format!("{}, or {}(...){tables}", T::kind(), FORMS.join("|"))
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        let Setting::Text(text) = setting else {
            return T::read(setting).map(Distribution::Constant);
        };
        let Some((form, rest)) = text.split_once('(') else {
            return match T::TABLES.iter().find(|t| t.name == text) {
                Some(table) => Ok(Distribution::Empirical(Cdf::from_named(table))),
                None => several_tables(T::TABLES, text)
                    .map_or_else(|| T::read(setting).map(Distribution::Constant), Err),
            };
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
                    return Err(Error::new(format!(
                        "{text:?} has a lower bound above its upper bound"
                    )));
                }
                Ok(Distribution::Uniform(lo, hi))
            }
            ("exponential", [mean]) => {
                quantity(mean.trim_start_matches("mean=")).map(Distribution::Exponential)
            }
            ("pareto", [mean, shape]) => {
                mean_and_shape(text, mean, shape).map(|(m, a)| Distribution::Pareto(m, a))
            }
            ("lomax", [mean, shape]) => {
                mean_and_shape(text, mean, shape).map(|(m, a)| Distribution::Lomax(m, a))
            }
            ("lognormal", [mean, sigma]) => {
                mean_and_sigma(text, mean, sigma).map(|(m, s)| Distribution::LogNormal(m, s))
            }
            ("cdf", points) => Cdf::read::<T>(points).map(Distribution::Empirical),
            ("uniform", _) => Err(bad("uniform(a, b)")),
            ("exponential", _) => Err(bad("exponential(mean)")),
            ("pareto", _) => Err(bad("pareto(mean=m, shape=a)")),
            ("lomax", _) => Err(bad("lomax(mean=m, shape=a)")),
            ("lognormal", _) => Err(bad("lognormal(mean=m, sigma=s)")),
            (other, _) => Err(Error::unknown("distribution", other, FORMS)),
        }
    }

    fn write(&self) -> String {
        match self {
            Distribution::Constant(x) => x.write(),
            Distribution::Uniform(lo, hi) => format!("uniform({}, {})", lo.write(), hi.write()),
            Distribution::Exponential(mean) => format!("exponential({})", mean.write()),
            Distribution::Pareto(mean, shape) => {
                format!("pareto(mean={}, shape={shape})", mean.write())
            }
            Distribution::Lomax(mean, shape) => {
                format!("lomax(mean={}, shape={shape})", mean.write())
            }
            Distribution::LogNormal(mean, sigma) => {
                format!("lognormal(mean={}, sigma={sigma})", mean.write())
            }
            Distribution::Empirical(cdf) => cdf.write::<T>(),
        }
    }

    /// A random quantity is in range if its mean is.
    fn is_within(&self, lo: &Self::End, hi: &Self::End) -> bool {
        (lo.mean()..=hi.mean()).contains(&self.mean())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use sojourn_aqm::Pcg;

    fn mean_ms(text: &str) -> f64 {
        let d: Distribution<Span> = Value::read(Setting::Text(text)).unwrap();
        assert_eq!(d.write(), text);
        let mut rng = Pcg::seed_from_u64(1);
        let n = 200_000;
        (0..n).map(|_| d.sample(&mut rng).as_secs() * 1e3).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn sample_means_match_the_parameters() {
        assert_eq!(mean_ms("5ms"), 5.0);
        assert!((mean_ms("uniform(40ms, 200ms)") - 120.0).abs() < 0.5);
        assert!((mean_ms("exponential(1s)") - 1000.0).abs() < 10.0);
        assert!((mean_ms("pareto(mean=10ms, shape=3)") - 10.0).abs() < 0.1);
        assert!((mean_ms("lomax(mean=10ms, shape=4)") - 10.0).abs() < 0.1);
        assert!((mean_ms("lognormal(mean=10ms, sigma=1)") - 10.0).abs() < 0.1);
        assert!((mean_ms("cdf(1ms 0, 3ms 0.5, 3ms 0.75, 7ms 1)") - 3.0).abs() < 0.02);
    }

    /// The sample mean of a heavy tail converges too slowly for a test; median and 99th percentile
    /// do not.
    #[test]
    fn heavy_tails_have_their_quantiles() {
        let quantiles = |text: &str| {
            let d: Distribution<Bytes> = Value::read(Setting::Text(text)).unwrap();
            let mut rng = Pcg::seed_from_u64(2);
            let mut all: Vec<f64> = (0..400_000).map(|_| d.sample_f64(&mut rng)).collect();
            all.sort_unstable_by(f64::total_cmp);
            (all[0], all[200_000], all[396_000])
        };
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.03;
        // s u^(-1/a) with s = 10 kB * 0.2 / 1.2 = 1666.7 B: median 2.970 kB, 99 % at 77.36 kB.
        let (least, half, most) = quantiles("pareto(mean=10kB, shape=1.2)");
        assert!(near(least, 1666.7) && near(half, 2969.6) && near(most, 77_358.0));
        // s (u^(-1/a) - 1) with s = 12 kB * 0.2 = 2400 B: median 1.876 kB, 99 % at 109.0 kB.
        let (least, half, most) = quantiles("lomax(mean=12kB, shape=1.2)");
        assert!(least < 10.0 && near(half, 1876.2) && near(most, 108_995.0), "{half} {most}");
        // The median is the mean times exp(-1/2); 99 % at exp(2.326 - 1/2).
        let (_, half, most) = quantiles("lognormal(mean=10kB, sigma=1)");
        assert!(near(half, 6_065.3) && near(most, 62_100.0), "{half} {most}");
        // 0.4 lies at 50 kB and 0.53 at 80 kB; 0.97 at 10 MB and 1 at 30 MB.
        let (_, half, most) = quantiles("web_search");
        assert!(near(half, 73_077.0) && near(most, 23.333e6), "{half} {most}");
    }

    #[test]
    fn a_uniform_count_is_whole_and_others_keep_their_fraction() {
        let mut rng = Pcg::seed_from_u64(3);
        let d: Distribution<u64> = Value::read(Setting::Text("uniform(2, 9)")).unwrap();
        assert!((0..1000).all(|_| libm::fmod(d.sample_f64(&mut rng), 1.0) == 0.0));
        let d: Distribution<u64> = Value::read(Setting::Text("pareto(mean=4, shape=1.2)")).unwrap();
        assert!(
            (0..1000).all(|_| d.sample_f64(&mut rng) >= 4.0 / 6.0 - 1e-9),
            "least 0.667, not 0"
        );
    }

    #[test]
    fn errors_state_the_expected_form() {
        let refusal =
            |t: &str| <Distribution<Span>>::read(Setting::Text(t)).unwrap_err().to_string();
        assert!(refusal("unifrom(1ms, 2ms)").contains("did you mean \"uniform\""));
        assert!(refusal("uniform(1ms)").contains("uniform(a, b)"));
        assert!(refusal("uniform(2ms, 1ms)").contains("lower bound above"));
        assert!(refusal("uniform(1, 2)").contains("no unit"));
        assert!(refusal("pareto(mean=1ms, shape=1)").contains("exceed 1"));
        assert!(refusal("uniform(1ms, 2ms").contains("uniform(a, b)"));
        assert!(refusal("lomax(1ms)").contains("lomax(mean=m, shape=a)"));
        assert!(refusal("web_search").contains("web_search"), "no such distribution of durations");
        assert!(refusal("cdf(1ms 0.5, 2ms 1)").contains("must start at 0 and end at 1"));
        assert!(refusal("cdf(1ms 0, 2ms 0.9)").contains("must start at 0 and end at 1"));
        assert!(refusal("cdf(1ms 0, 3ms 0.5, 2ms 1)").contains("is below the one before it"));
        assert!(
            refusal("cdf(1ms 0, 3ms 0.5, 4ms 0.4, 5ms 1)").contains("is below the one before it")
        );
        assert!(refusal("lognormal(mean=1ms, sigma=6)").contains("sigma must be from 0 to 5"));
        assert!(refusal("lognormal(1ms)").contains("lognormal(mean=m, sigma=s)"));
        let hadoop = <Distribution<Bytes>>::read(Setting::Text("hadoop")).unwrap_err().to_string();
        assert!(hadoop.contains("several tables: hadoop_hpcc, hadoop_parsimon"), "{hadoop}");
        assert!(refusal("cdf(1ms)").contains("cdf(a 0, b 0.5, c 1)"));
        assert!(refusal("cdf(1ms 0, 3 1)").contains("no unit"));
    }
}
