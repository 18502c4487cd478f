//! Groups of traffic classes, for queues of a shared buffer.

use crate::error::{Error, Result};
use crate::snapshot::Snapshot;
use alloc::format;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// Groups of traffic classes ([`Packet::class`](crate::Packet::class)), each of which has a queue
/// of its own in a [`SharedBuffer`](crate::SharedBuffer). Group 0 has all classes that are in no
/// other group.
///
/// ```
/// use sojourn_aqm::ClassGroups;
///
/// let groups = ClassGroups::new(&[46..=46, 32..=39])?; // EF; the code points from CS4 on
/// assert_eq!([0, 46, 34].map(|class| groups.group_of(class)), [0, 1, 2]);
/// assert_eq!(groups.count(), 3);
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Snapshot)]
pub struct ClassGroups {
    /// First and last class of each group from 1 on.
    ranges: Vec<(u16, u16)>,
}

impl ClassGroups {
    /// Largest number of ranges.
    pub const RANGES_MAX: usize = 64;

    /// Creates a group per entry of `ranges`, from 1 on, and group 0 with all other classes.
    ///
    /// # Errors
    /// An empty range, two ranges with a class in common, or more than [`ClassGroups::RANGES_MAX`]
    /// ranges. The path is the index of the range.
    pub fn new(ranges: &[RangeInclusive<u16>]) -> Result<ClassGroups> {
        if ranges.len() > ClassGroups::RANGES_MAX {
            let text = format!("{} groups, allowed: up to {}", ranges.len(), Self::RANGES_MAX);
            return Err(Error::new(text));
        }
        for (i, range) in ranges.iter().enumerate() {
            let (first, last) = (range.start(), range.end());
            if range.is_empty() {
                return Err(Error::new(format!("{first} to {last} has no class")).at(i));
            }
            let meets =
                |other: &&RangeInclusive<u16>| other.start() <= last && first <= other.end();
            if let Some(other) = ranges[..i].iter().find(meets) {
                let common = first.max(other.start());
                return Err(Error::new(format!("class {common} is in two groups")).at(i));
            }
        }
        let ranges = ranges.iter().map(|range| (*range.start(), *range.end())).collect();
        Ok(ClassGroups { ranges })
    }

    /// Number of groups, including group 0.
    pub fn count(&self) -> usize {
        self.ranges.len() + 1
    }

    /// Group of `class`.
    #[inline]
    pub fn group_of(&self, class: u16) -> usize {
        let holds = |(first, last): &(u16, u16)| (*first..=*last).contains(&class);
        self.ranges.iter().position(holds).map_or(0, |i| i + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn every_class_is_in_one_group() {
        let groups = ClassGroups::new(&[5..=9, 0..=0, 65_535..=65_535, 10..=10]).unwrap();
        let expected = [(0, 2), (1, 0), (4, 0), (5, 1), (9, 1), (10, 4), (11, 0), (65_535, 3)];
        for (class, group) in expected {
            assert_eq!(groups.group_of(class), group, "class {class}");
        }
        assert_eq!(groups.count(), 5);
        let none = ClassGroups::new(&[]).unwrap();
        assert_eq!((none.count(), none.group_of(7)), (1, 0));
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges, reason = "it is refused")]
    fn bad_groups_are_refused_with_the_index() {
        let refused = |ranges: &[RangeInclusive<u16>]| {
            let error = ClassGroups::new(ranges).unwrap_err();
            (error.path().to_string(), error.text().to_string())
        };
        assert_eq!(refused(&[3..=3, 9..=8]), ("1".into(), "9 to 8 has no class".into()));
        for ranges in [[4..=9, 0..=0, 9..=20], [9..=20, 0..=0, 4..=9], [0..=99, 100..=100, 9..=9]] {
            assert_eq!(refused(&ranges), ("2".into(), "class 9 is in two groups".into()));
        }
        let many = vec![1..=1; ClassGroups::RANGES_MAX + 1];
        assert_eq!(refused(&many).1, "65 groups, allowed: up to 64");
    }
}
