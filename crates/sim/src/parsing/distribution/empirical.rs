//! Empirical distributions: points of the cumulative distribution function with linear
//! interpolation, and the two flow-size tables used in papers on data centres.
//!
//! **Source**: web search: Alizadeh et al., "Data Center TCP", SIGCOMM 2010; data mining: Greenberg
//! et al., "VL2", SIGCOMM 2009; flow sizes in bytes.

use crate::parsing::distribution::Countable;
use sojourn_aqm::Snapshot;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Setting, Value};
use std::sync::Arc;

/// Named distribution.
#[derive(Debug)]
pub struct EmpiricalTable {
    /// Name.
    pub name: &'static str,
    /// Value in grains and the cumulative probability at it.
    points: &'static [(u64, f64)],
}

/// Flow-size distributions, in bytes.
pub(super) const TABLES: &[EmpiricalTable] = &[
    // Mean 1.711 MB.
    EmpiricalTable {
        name: "web_search",
        points: &[
            (0, 0.0),
            (10_000, 0.15),
            (20_000, 0.2),
            (30_000, 0.3),
            (50_000, 0.4),
            (80_000, 0.53),
            (200_000, 0.6),
            (1_000_000, 0.7),
            (2_000_000, 0.8),
            (5_000_000, 0.9),
            (10_000_000, 0.97),
            (30_000_000, 1.0),
        ],
    },
    // Mean 12.66 MB. The variant counted in packets differs above the 95th percentile.
    EmpiricalTable {
        name: "data_mining",
        points: &[
            (0, 0.0),
            (180, 0.1),
            (216, 0.2),
            (560, 0.3),
            (900, 0.4),
            (1_100, 0.5),
            (1_870, 0.6),
            (3_160, 0.7),
            (10_000, 0.8),
            (400_000, 0.9),
            (3_160_000, 0.95),
            (100_000_000, 0.98),
            (1_000_000_000, 1.0),
        ],
    },
];

/// Empirical distribution. Nothing in it changes.
#[derive(Clone, Debug, PartialEq, Snapshot)]
pub struct Cdf {
    /// Name, if it is one of [`TABLES`].
    #[snapshot(skip)]
    name: Option<&'static str>,
    /// File of the points, as it was named; it does not affect the distribution.
    #[snapshot(skip)]
    file: Option<Arc<str>>,
    /// Values in grains and cumulative probabilities; both non-decreasing, the latter from 0 to 1.
    #[snapshot(skip)]
    points: Arc<[(u64, f64)]>,
}

impl Cdf {
    /// Distribution of a named table.
    pub fn from_named(table: &EmpiricalTable) -> Cdf {
        Cdf { name: Some(table.name), file: None, points: table.points.into() }
    }

    /// Parses points such as `10kB 0.5`. The first one may follow the name of a file and a colon.
    ///
    /// # Errors
    /// If a point has the wrong form, the points are not sorted, or the probabilities do not go
    /// from 0 to 1.
    pub fn read<T: Countable>(points: &[&str]) -> Result<Cdf> {
        let form = || {
            Error::new(
                "an empirical distribution is written cdf(a 0, b 0.5, c 1): values with their \
                 units, and cumulative shares (a percentage / 100), or cdf(FILE)",
            )
        };
        let mut read: Vec<(u64, f64)> = Vec::with_capacity(points.len());
        let labelled = points.first().and_then(|point| point.split_once(':'));
        let (file, first) = labelled.map_or((None, None), |(file, point)| {
            (Some(Arc::from(file.trim())), Some(point.trim()))
        });
        let skipped = usize::from(first.is_some());
        for point in first.iter().chain(points.iter().skip(skipped)) {
            let (value, share) = point.split_once(char::is_whitespace).ok_or_else(form)?;
            let value = T::read(Setting::Text(value))?.grains();
            let share = f64::read(Setting::Text(share.trim()))?;
            if read.last().is_some_and(|last| value < last.0 || share < last.1) {
                return Err(Error::new(format!("the point {point:?} is below the one before it")));
            }
            read.push((value, share));
        }
        match (read.first(), read.last()) {
            (Some(&(_, 0.0)), Some(&(_, 1.0))) => Ok(Cdf { name: None, file, points: read.into() }),
            _ => Err(Error::new("the probabilities of a cdf must start at 0 and end at 1")),
        }
    }

    /// Formats as text that [`Cdf::read`] accepts.
    pub fn write<T: Countable>(&self) -> String {
        if let Some(name) = self.name {
            return name.to_string();
        }
        let points = self.points.iter().map(|(v, share)| format!("{} {share}", T::of(*v).write()));
        let file = self.file.iter().map(|file| format!("{file}: "));
        format!("cdf({}{})", file.collect::<String>(), points.collect::<Vec<_>>().join(", "))
    }

    /// Quantile in grains at probability `u` in [0, 1).
    pub fn quantile(&self, u: f64) -> f64 {
        let next = self.points.partition_point(|p| p.1 <= u).clamp(1, self.points.len() - 1);
        let ((v0, p0), (v1, p1)) = (self.points[next - 1], self.points[next]);
        let (v0, v1) = (v0 as f64, v1 as f64);
        if p1 > p0 { v0 + (v1 - v0) * (u - p0) / (p1 - p0) } else { v0 }
    }

    /// Mean, in grains.
    pub fn mean(&self) -> f64 {
        let pairs = self.points.windows(2);
        pairs.map(|w| (w[1].1 - w[0].1) * (w[0].0 as f64 + w[1].0 as f64) / 2.0).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_aqm::units::Bytes;

    #[test]
    fn tables_have_the_published_means() {
        let means: Vec<f64> = TABLES.iter().map(|t| Cdf::from_named(t).mean() / 1e6).collect();
        assert!((means[0] - 1.711).abs() < 0.001 && (means[1] - 12.66).abs() < 0.01, "{means:?}");
    }

    #[test]
    fn interpolates_linearly_and_keeps_steps() {
        let cdf = Cdf::read::<Bytes>(&["100B 0", "200B 0.5", "200B 0.7", "1kB 1"]).unwrap();
        let at = [0.0, 0.25, 0.5, 0.6, 0.7, 0.85].map(|u| cdf.quantile(u));
        assert_eq!(at[..5], [100.0, 150.0, 200.0, 200.0, 200.0]);
        assert!((at[5] - 600.0).abs() < 1e-9);
        assert!((cdf.mean() - (75.0 + 40.0 + 180.0)).abs() < 1e-9);
        assert_eq!(cdf.write::<Bytes>(), "cdf(100B 0, 200B 0.5, 200B 0.7, 1kB 1)");
        let of_file = Cdf::read::<Bytes>(&["sizes.txt: 0B 0", "1kB 1"]).unwrap();
        assert_eq!(of_file.write::<Bytes>(), "cdf(sizes.txt: 0B 0, 1kB 1)");
        assert_eq!(of_file.mean(), 500.0);
    }
}
