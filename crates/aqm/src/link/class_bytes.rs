//! Bytes in the queue of a link by group of classes, counted at enqueue, dequeue and drop, so that
//! they are exact with every discipline.

use crate::class_groups::ClassGroups;
use crate::packet::Packet;
use crate::snapshot::Snapshot;
use crate::units::Time;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// Bytes in the queue by group of classes.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct ClassBytes {
    groups: ClassGroups,
    /// Bytes of each group.
    bytes: Vec<u64>,
    /// Arrival time, body and group of each packet in the queue whose class the discipline may have
    /// changed, in the order of arrival.
    changed: VecDeque<(Time, u32, usize)>,
}

impl ClassBytes {
    /// Starts with an empty queue.
    pub(super) fn new(groups: ClassGroups) -> ClassBytes {
        ClassBytes { bytes: vec![0; groups.count()], groups, changed: VecDeque::new() }
    }

    /// Bytes of each group.
    pub(super) fn bytes(&self) -> &[u64] {
        &self.bytes
    }

    /// Counts `packet`, which arrives at `now` at a discipline that may change its class if
    /// `changes_class`.
    pub(super) fn on_enqueue(&mut self, now: Time, packet: &Packet, changes_class: bool) {
        let group = self.groups.group_of(packet.class);
        self.bytes[group] += u64::from(packet.len);
        if changes_class {
            self.changed.push_back((now, packet.body, group));
        }
    }

    /// Stops to count `packet`, which is sent or dropped.
    pub(super) fn on_leave(&mut self, packet: &Packet) {
        let group = self.take(packet).unwrap_or_else(|| self.groups.group_of(packet.class));
        self.bytes[group] -= u64::from(packet.len);
    }

    /// Removes `packet` from `changed` and returns its group; `None` if it is not there.
    fn take(&mut self, packet: &Packet) -> Option<usize> {
        let first = self.changed.partition_point(|(at, ..)| *at < packet.arrived);
        let mut together =
            self.changed.iter().skip(first).take_while(|(at, ..)| *at == packet.arrived);
        let place = together.position(|(_, body, _)| *body == packet.body)?;
        self.changed.remove(first + place).map(|(.., group)| group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Link, LinkSpec};
    use crate::units::{Rate, Span};
    use std::prelude::v1::*;

    /// A link of 8 Mbit/s, a byte per us, that counts EF, the classes 8 to 15, and all others.
    fn link(qdisc: &str) -> Link {
        let rate = Rate(8_000_000);
        let qdisc = crate::build_text(qdisc, rate).unwrap().qdisc;
        let mut link =
            Link::new(LinkSpec::new(rate, Span::ZERO), qdisc, crate::Pcg::new(1)).unwrap();
        link.count_by_class(ClassGroups::new(&[46..=46, 8..=15]).unwrap());
        link
    }

    fn send(link: &mut Link, us: u64, packets: &[(u16, u32)]) {
        for (body, (class, len)) in (0..).zip(packets) {
            let packet = Packet { body, class: *class, len: *len, ..Packet::default() };
            link.push(Time(us * 1000), packet);
        }
    }

    #[test]
    fn bytes_leave_with_their_packets() {
        for qdisc in ["droptail", "codel", "prio", "fq_codel"] {
            let mut link = link(qdisc);
            assert_eq!(link.queued_bytes_by_class(), [0, 0, 0], "{qdisc}");
            send(&mut link, 0, &[(0, 1000), (46, 200), (9, 500), (0, 100), (46, 300)]);
            assert_eq!(link.queued_bytes_by_class(), [100, 500, 500], "{qdisc}");
            link.advance(Time(1_000_000_000));
            assert_eq!(link.queued_bytes_by_class(), [0, 0, 0], "{qdisc}");
        }
    }

    #[test]
    fn dropped_and_refused_packets_are_not_counted() {
        for qdisc in ["droptail(limit=2p)", "droptail(limit=2p, policy=head)"] {
            let mut link = link(qdisc);
            send(&mut link, 0, &[(0, 1000), (0, 100), (46, 200), (8, 300), (9, 400)]);
            let head = qdisc.contains("head");
            assert_eq!(
                link.queued_bytes_by_class(),
                if head { [0, 0, 700] } else { [100, 200, 0] }
            );
            link.refuse(Time(0), Packet { class: 46, len: 700, ..Packet::default() });
            assert_eq!(link.queued_bytes(), link.queued_bytes_by_class().iter().sum());
            link.reset_stats(Time(1));
            assert_eq!(link.queued_bytes(), link.queued_bytes_by_class().iter().sum());
        }
    }

    #[cfg(feature = "cake")]
    #[test]
    fn a_packet_whose_class_is_cleared_counts_as_it_arrived() {
        let mut link = link("cake(wash=true)");
        send(&mut link, 0, &[(0, 1000), (46, 200), (9, 500), (46, 300)]);
        assert_eq!(link.queued_bytes_by_class(), [0, 500, 500]);
        link.advance(Time(1_000_000_000));
        assert_eq!(link.queued_bytes_by_class(), [0, 0, 0]);
        let classes = core::iter::from_fn(|| link.pop_in_flight()).map(|(_, p)| p.class);
        assert!(classes.eq([0; 4]));
    }

    #[test]
    fn a_link_that_does_not_count_has_no_counts() {
        let rate = Rate(8_000_000);
        let qdisc = crate::build_text("droptail", rate).unwrap().qdisc;
        let mut link =
            Link::new(LinkSpec::new(rate, Span::ZERO), qdisc, crate::Pcg::new(1)).unwrap();
        link.enable_packet_log();
        send(&mut link, 0, &[(0, 1000), (46, 200)]);
        assert!(link.queued_bytes_by_class().is_empty());
    }

    #[test]
    #[should_panic(expected = "a packet is shorter than 2^30 bytes")]
    fn a_long_packet_is_refused_as_on_other_links() {
        send(&mut link("droptail"), 0, &[(0, 1 << 30)]);
    }

    #[test]
    #[should_panic(expected = "`count_by_class` must be called before the first packet")]
    fn it_is_too_late_to_count_after_a_packet() {
        let mut link = link("droptail");
        send(&mut link, 1, &[(0, 1000)]);
        link.count_by_class(ClassGroups::new(&[]).unwrap());
    }
}
