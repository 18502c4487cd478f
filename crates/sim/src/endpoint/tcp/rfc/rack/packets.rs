//! Counting of packets: a segment of any size counts as a full one, in the window, in flight and
//! in the delivered data. An application that writes little at a time fills its window sooner.
//!
//! **Source**: Linux, where `snd_cwnd`, `packets_out`, `sacked_out`, `lost_out` and `delivered`
//! count packets. Here they are bytes; a short segment has padding up to a full one.
//!
//! **Cost**: one entry per short segment in flight.

use sojourn_aqm::Snapshot;
use std::collections::VecDeque;

/// Segment that is shorter than a full one.
#[derive(Clone, Copy, Debug, Snapshot)]
struct ShortSegment {
    start: u64,
    end: u64,
    delivered: bool,
}

/// Padding of the outstanding segments of a connection.
#[derive(Clone, Debug, Default, Snapshot)]
pub(crate) struct PacketCount {
    /// Payload of a full segment; 0 if bytes are counted, not packets.
    full: u64,
    /// Short segments in sequence, until they are cumulatively acknowledged.
    short: VecDeque<ShortSegment>,
    /// Padding of those that are not delivered, of those that are, and of all delivered ones in
    /// this connection.
    missing: u64,
    sacked: u64,
    delivered: u64,
}

impl PacketCount {
    /// Returns the count of a new connection; without `full`, the payload of a full segment, bytes
    /// are counted.
    pub(crate) fn new(full: Option<u64>) -> PacketCount {
        PacketCount { full: full.unwrap_or(0), ..PacketCount::default() }
    }

    /// True if packets are counted.
    pub(crate) fn is_on(&self) -> bool {
        self.full > 0
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.short.clear();
        (self.missing, self.sacked, self.delivered) = (0, 0, 0);
    }

    /// Bytes for which the segment `start..end` counts.
    pub(crate) fn weight(&self, start: u64, end: u64) -> u64 {
        (end - start).max(self.full)
    }

    /// Padding of the segment `start..end`, bytes.
    pub(crate) fn padding(&self, start: u64, end: u64) -> u64 {
        self.full.saturating_sub(end - start)
    }

    /// Notes the first transmission of `start..end`.
    pub(crate) fn on_sent(&mut self, start: u64, end: u64) {
        if end - start < self.full {
            self.short.push_back(ShortSegment { start, end, delivered: false });
            self.missing += self.full - (end - start);
        }
    }

    /// Notes that `from..to` was delivered.
    pub(crate) fn on_delivered(&mut self, from: u64, to: u64) {
        let first = self.short.partition_point(|s| s.start < from);
        let range = self.short.range_mut(first..).take_while(|s| s.end <= to);
        for segment in range.filter(|s| !s.delivered) {
            segment.delivered = true;
            let padding = self.full.saturating_sub(segment.end - segment.start);
            self.missing -= padding;
            self.sacked += padding;
            self.delivered += padding;
        }
    }

    /// Padding of the segments below `una`, which are not yet removed.
    pub(crate) fn below(&self, una: u64) -> u64 {
        let short = self.short.iter().take_while(|s| s.end <= una);
        short.map(|s| self.full - (s.end - s.start)).sum()
    }

    /// Removes the delivered segments below `una`; returns their padding.
    pub(crate) fn remove_below(&mut self, una: u64) -> u64 {
        let padding = self.below(una);
        self.short.drain(..self.short.partition_point(|s| s.end <= una));
        self.sacked -= padding;
        padding
    }

    /// Padding of the outstanding segments that are not delivered.
    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    /// Padding of the segments that are selectively acknowledged.
    pub(crate) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Padding of all segments delivered in this connection.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_segments_count_as_full_ones() {
        let mut count = PacketCount::new(Some(1_000));
        for (start, end) in [(1, 201), (201, 1_201), (1_201, 1_501), (1_501, 1_502)] {
            count.on_sent(start, end);
        }
        assert_eq!((count.weight(1, 201), count.weight(201, 1_201)), (1_000, 1_000));
        assert_eq!(count.missing(), 800 + 700 + 999);
        count.on_delivered(1_201, 1_501);
        count.on_delivered(1_201, 1_501);
        assert_eq!((count.missing(), count.sacked(), count.delivered()), (1_799, 700, 700));
        count.on_delivered(1, 1_201);
        assert_eq!((count.below(1_200), count.below(1_501)), (800, 1_500));
        assert_eq!(count.remove_below(1_501), 1_500);
        assert_eq!((count.missing(), count.sacked(), count.delivered()), (999, 0, 1_500));
        count.clear();
        assert_eq!((count.missing(), count.delivered()), (0, 0));
    }

    #[test]
    fn bytes_have_no_padding() {
        let mut count = PacketCount::new(None);
        count.on_sent(1, 2);
        assert_eq!((count.weight(1, 2), count.missing(), count.is_on()), (1, 0, false));
    }
}
