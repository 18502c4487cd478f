//! Telemetry of a path (INT): what each link wrote into a packet, on its way back to the sender.
//!
//! A packet collects the state of each link at its dequeue. When it arrives, the telemetry moves
//! into the [`TelemetryStore`] of the sender, and the segment gets its number there in place of a
//! timestamp. The receiver returns the number of the last segment in its ack, and the sender looks
//! it up. So packets and acks are as small as in other flows.

use sojourn_aqm::units::Rate;
use sojourn_aqm::{HopTelemetry, Snapshot};
use std::collections::VecDeque;
use std::iter::Zip;
use std::slice::Iter;

/// Largest number of links of a path with telemetry: a fat tree has six.
pub const HOPS_MAX: usize = 8;

/// State of the links of a path, each at the dequeue of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct PathTelemetry {
    /// Key of the path: packets of a flow with the same key crossed the same links.
    pub(crate) path: u32,
    count: u32,
    hops: [HopTelemetry; HOPS_MAX],
}

impl PathTelemetry {
    /// Adds the state of the next link; none beyond [`HOPS_MAX`].
    pub(crate) fn push(&mut self, hop: HopTelemetry) {
        if let Some(place) = self.hops.get_mut(self.count as usize) {
            *place = hop;
            self.count += 1;
        }
    }

    /// Forgets all links.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// State of each link, in the order of the path.
    pub(crate) fn hops(&self) -> &[HopTelemetry] {
        self.hops.get(..self.count as usize).unwrap_or(&self.hops)
    }

    /// For each link, its state at `last`, an earlier packet, and now; `None` if that packet took
    /// another path or did not leave every link earlier.
    pub(crate) fn since<'a>(
        &'a self,
        last: &'a PathTelemetry,
    ) -> Option<Zip<Iter<'a, HopTelemetry>, Iter<'a, HopTelemetry>>> {
        let pairs = || last.hops().iter().zip(self.hops());
        let same = self.path == last.path && self.count == last.count && self.count > 0;
        (same && pairs().all(|(old, new)| old.at < new.at)).then(pairs)
    }
}

/// Bits per second of `bytes` in the time between two records of a link.
pub(crate) fn bits_per_second(bytes: u64, old: &HopTelemetry, new: &HopTelemetry) -> f64 {
    bytes as f64 * 8e9 / (new.at - old.at).0 as f64
}

/// Rate of a link, bit/s.
pub(crate) fn bits(rate: Rate) -> f64 {
    rate.0 as f64
}

/// Telemetry of packets that have arrived, until their acks do.
#[derive(Clone, Debug, Default, Snapshot)]
pub(crate) struct TelemetryStore {
    /// Number of the first record.
    first: u32,
    records: VecDeque<PathTelemetry>,
}

impl TelemetryStore {
    /// Adds `record` and returns its number.
    pub(crate) fn add(&mut self, record: &PathTelemetry) -> u32 {
        if self.records.is_empty() && self.first == 0 {
            self.first = 1; // 0 is the echo of a segment without telemetry
        }
        self.records.push_back(*record);
        self.first.wrapping_add(u32::try_from(self.records.len() - 1).unwrap_or(u32::MAX))
    }

    /// Takes the record `number`, and removes all before it, whose acks were lost or delayed;
    /// `None` if it is not there.
    pub(crate) fn take(&mut self, number: u32) -> Option<PathTelemetry> {
        let place = number.wrapping_sub(self.first) as usize;
        if number == 0 || place >= self.records.len() {
            return None;
        }
        self.first = number.wrapping_add(1);
        self.records.drain(..place);
        self.records.pop_front()
    }

    /// Removes all records. Their numbers are not used again.
    pub(crate) fn clear(&mut self) {
        let count = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        self.first = self.first.wrapping_add(count);
        self.records.clear();
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{HopTelemetry, PathTelemetry};
    use sojourn_aqm::units::{Rate, Time};

    /// State of a link of `gbit` Gbit/s at `us` us, after `sent` bytes, with `queue` bytes behind
    /// the packet.
    pub(crate) fn hop(gbit: u64, us: u64, sent: u64, queue: u32) -> HopTelemetry {
        HopTelemetry {
            at: Time(us * 1000),
            sent_bytes: sent,
            queue_bytes: queue,
            packet_bytes: 1000,
            rate: Rate(gbit * 1_000_000_000),
        }
    }

    /// Telemetry of a path of these links.
    pub(crate) fn path(hops: &[HopTelemetry]) -> PathTelemetry {
        let mut path = PathTelemetry::default();
        hops.iter().for_each(|hop| path.push(*hop));
        path
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{hop, path};
    use super::*;

    #[test]
    fn records_are_taken_once_and_in_order() {
        let mut store = TelemetryStore::default();
        let record = |us| path(&[hop(1, us, 0, 0)]);
        let numbers = [5, 6, 7, 8].map(|us| store.add(&record(us)));
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert_eq!(store.take(0), None, "a segment without telemetry");
        assert_eq!(store.take(2), Some(record(6)));
        assert_eq!([1, 2, 5].map(|number| store.take(number)), [None; 3], "late, again, unknown");
        store.clear();
        assert_eq!((store.take(3), store.add(&record(9))), (None, 5));
        assert_eq!(store.take(5), Some(record(9)));
        store.first = u32::MAX;
        let numbers = [1, 2, 3].map(|us| store.add(&record(us)));
        assert_eq!(numbers, [u32::MAX, 0, 1]);
        assert_eq!(store.take(1), Some(record(3)));
    }

    #[test]
    fn records_are_compared_link_by_link() {
        let old = path(&[hop(1, 10, 0, 0), hop(2, 12, 0, 0)]);
        let new = path(&[hop(1, 20, 500, 0), hop(2, 22, 0, 0)]);
        let pairs: Vec<_> = new.since(&old).unwrap().map(|(o, n)| (n.at - o.at).0).collect();
        assert_eq!(pairs, [10_000, 10_000]);
        assert_eq!(bits_per_second(500, &old.hops[0], &new.hops[0]), 4e8);
        assert!(old.since(&new).is_none(), "it is older");
        assert!(new.since(&new).is_none());
        assert!(new.since(&PathTelemetry { path: 7, ..old }).is_none(), "another path");
        assert!(new.since(&path(&[hop(1, 10, 0, 0)])).is_none());
        assert!(PathTelemetry::default().since(&PathTelemetry::default()).is_none());
        let mut long = new;
        (0..10).for_each(|us| long.push(hop(1, us, 0, 0)));
        assert_eq!(long.hops().len(), HOPS_MAX);
        long.clear();
        assert!(long.hops().is_empty());
    }
}
