//! Queues per class at the ports of a switch. What a packet needs is not inlined, so that ports
//! without classes are as fast as if there were none.

use super::Switch;
use crate::config::switches::SwitchConfig;
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::units::Time;
use sojourn_aqm::{ClassGroups, Ecn, Link, Packet, SharedBuffer, Snapshot};
use std::sync::Arc;

/// Queues per class of all ports of a switch, in the order of the ports. The queues of a port are
/// in the order of the groups.
#[derive(Clone, Snapshot)]
pub(super) struct Classes {
    #[snapshot(skip)]
    groups: Arc<ClassGroups>,
    /// For each port, the largest number of bytes in all its queues.
    peaks: Vec<u64>,
    /// For each queue, packets that were not admitted in the measured interval.
    dropped: Vec<u64>,
}

impl Classes {
    /// Creates the queues of the switch `def`; `None` if each port is one queue.
    pub(super) fn new(def: &SwitchConfig) -> Option<Box<Classes>> {
        if def.classes().is_empty() {
            return None;
        }
        let (groups, ports) = (Arc::new(def.groups()), def.ports().len());
        let dropped = vec![0; ports * groups.count()];
        Some(Box::new(Classes { groups, peaks: vec![0; ports], dropped }))
    }

    /// Groups of classes.
    pub(super) fn groups(&self) -> &ClassGroups {
        &self.groups
    }

    /// Queue of the packets of `class` at the port at `place`.
    #[inline(never)]
    pub(super) fn queue(&self, place: usize, class: u16) -> usize {
        place * self.groups.count() + self.groups.group_of(class)
    }

    /// Notes in `buffer` what the queues of `link`, the port at `place`, hold.
    pub(super) fn note(&mut self, buffer: &mut SharedBuffer, place: usize, link: &Link) {
        buffer.set_held_from(place * self.groups.count(), link.queued_bytes_by_class());
        self.peaks[place] = self.peaks[place].max(link.queued_bytes());
    }

    /// Largest number of bytes at the port at `place`.
    pub(super) fn peak_of(&self, place: usize) -> u64 {
        self.peaks[place]
    }

    /// Starts the measured interval.
    pub(super) fn reset_stats(&mut self, place: usize, link: &Link) {
        self.peaks[place] = link.queued_bytes();
        let count = self.groups.count();
        self.dropped[place * count..][..count].fill(0);
    }

    /// Summary by class: dropped packets at all ports, and the largest queue at any port.
    pub(super) fn summary(&self, def: &SwitchConfig, buffer: &SharedBuffer) -> Json {
        let names = def.classes().iter().map(|class| class.name());
        let names = std::iter::once("others".to_string()).chain(names);
        let mut rows = Map::new();
        for (group, name) in names.enumerate() {
            let queues = (group..self.dropped.len()).step_by(self.groups.count());
            let dropped: u64 = queues.clone().map(|queue| self.dropped[queue]).sum();
            let peak = queues.map(|queue| buffer.peak_of(queue)).max();
            rows.insert(name, json!({"dropped_buffer_packets": dropped, "queue_max_bytes": peak}));
        }
        rows.into()
    }
}

impl Switch {
    /// As [`Switches::admit`](super::Switches::admit), for a port with classes.
    #[inline(never)]
    pub(super) fn admit_by_class(
        &mut self,
        place: usize,
        link: &mut Link,
        now: Time,
        packet: &mut Packet,
    ) {
        if self.admits_by_class(place, packet) {
            link.push_copy(now, packet);
            self.note(place, link);
        } else {
            link.refuse(now, *packet);
        }
    }

    /// As [`Switches::send`](super::Switches::send), for a port with classes.
    #[inline(never)]
    pub(super) fn send_by_class(
        &mut self,
        place: usize,
        link: &mut Link,
        now: Time,
        packet: &mut Packet,
    ) -> Option<(Time, Ecn)> {
        if !self.admits_by_class(place, packet) {
            link.refuse(now, *packet);
            link.take_dropped();
            return None;
        }
        let sent = link.send(now, packet);
        self.note(place, link);
        sent
    }

    /// True if `packet` is admitted at the port at `place`; otherwise it is counted.
    fn admits_by_class(&mut self, place: usize, packet: &Packet) -> bool {
        let Some(classes) = &mut self.classes else { return false };
        let queue = classes.queue(place, packet.class);
        let admitted = self.buffer.admits(queue, packet.len);
        classes.dropped[queue] += u64::from(!admitted);
        admitted
    }
}
