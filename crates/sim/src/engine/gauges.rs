//! Variables of congestion controls, in time series and in the state of flows.

use crate::endpoint::tcp::Tcp;
use sojourn_aqm::Snapshot;

/// Variables by name, in the order in which they are shown.
pub(super) type Gauges = Vec<(&'static str, f64)>;

/// Variables that the congestion control of `sender` shows.
pub(super) fn gauges_of(sender: &Tcp) -> Gauges {
    let mut gauges = Gauges::new();
    sender.inspect(&mut |name, value| gauges.push((name, value)));
    gauges
}

/// Sums of variables over several flows.
#[derive(Clone, Debug, Default)]
pub(super) struct GaugeSums(Vec<(&'static str, f64, u32)>);

impl GaugeSums {
    /// Adds the variables of a flow.
    pub(super) fn add(&mut self, sender: &Tcp) {
        sender.inspect(
            &mut |name, value| match self.0.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, sum, n)) => (*sum, *n) = (*sum + value, *n + 1),
                None => self.0.push((name, value, 1)),
            },
        );
    }

    /// Means over the flows that have each variable.
    pub(super) fn means(self) -> Gauges {
        self.0.into_iter().map(|(name, sum, n)| (name, sum / f64::from(n))).collect()
    }
}

/// Samples of variables: a column each, NaN where a sample has none.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct GaugeColumns(Vec<(String, Vec<f64>)>);

impl GaugeColumns {
    /// Appends a sample after `rows` earlier ones.
    pub(super) fn push(&mut self, rows: usize, sample: Gauges) {
        for (name, value) in sample {
            if !self.0.iter().any(|(known, _)| *known == name) {
                self.0.push((name.to_string(), Vec::new()));
            }
            if let Some((_, column)) = self.0.iter_mut().find(|(known, _)| *known == name) {
                column.resize(rows, f64::NAN);
                column.push(value);
            }
        }
        self.0.iter_mut().for_each(|(_, column)| column.resize(rows + 1, f64::NAN));
    }

    /// Name and values of each column.
    pub(super) fn columns(self) -> impl Iterator<Item = (String, Vec<f64>)> {
        self.0.into_iter().map(|(name, values)| (format!("gauge/{name}"), values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_a_value_per_sample() {
        let mut columns = GaugeColumns::default();
        columns.push(0, vec![("a", 1.0)]);
        columns.push(1, vec![]);
        columns.push(2, vec![("b", 2.0), ("a", 3.0)]);
        let texts: Vec<_> = columns.columns().map(|(n, v)| format!("{n} {v:?}")).collect();
        assert_eq!(texts, ["gauge/a [1.0, NaN, 3.0]", "gauge/b [NaN, NaN, 2.0]"]);
    }
}
