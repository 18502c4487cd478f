//! Empirical distributions: points of the cumulative distribution function with linear
//! interpolation.

use super::tables::EmpiricalTable;
use crate::parsing::distribution::Countable;
use sojourn_aqm::Snapshot;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Setting, Value};
use std::sync::Arc;

/// Empirical distribution. Nothing in it changes.
#[derive(Clone, Debug, PartialEq, Snapshot)]
pub struct Cdf {
    /// Name, if it is one of the named tables.
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
    use crate::parsing::distribution::tables::SIZE_TABLES;
    use sojourn_aqm::units::Bytes;

    /// Means that others computed from the files, bytes.
    const MEANS: [f64; 9] = [
        1_711_250.0,
        12.66e6,
        120_421.0,
        568_755.0,
        609_883.0,
        91_343.0,
        40_870.0,
        39_424.0,
        342.0,
    ];

    #[test]
    fn tables_are_sorted_and_have_the_published_means() {
        assert_eq!(SIZE_TABLES.len(), MEANS.len());
        for (table, mean) in SIZE_TABLES.iter().zip(MEANS) {
            let cdf = Cdf::from_named(table);
            assert!((cdf.mean() / mean - 1.0).abs() < 0.001, "{}: {}", table.name, cdf.mean());
            let rises = |w: &[(u64, f64)]| w[0].0 < w[1].0 && w[0].1 < w[1].1;
            assert!(cdf.points.windows(2).all(rises), "{}", table.name);
            assert_eq!((cdf.points[0], cdf.points[cdf.points.len() - 1].1), ((0, 0.0), 1.0));
        }
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
