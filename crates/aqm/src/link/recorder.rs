//! Records of the packets of a link: rows of the packet log, telemetry, and bytes by class.

use super::Link;
#[cfg(feature = "class-bytes")]
use super::class_bytes::ClassBytes;
#[cfg(feature = "class-bytes")]
use crate::class_groups::ClassGroups;
use crate::context::Dropped;
use crate::packet::Packet;
use crate::packet_log::{LogEntry, PacketLog};
use crate::snapshot::Snapshot;
use crate::units::{Rate, Time};
#[cfg(feature = "telemetry")]
use alloc::collections::VecDeque;

/// Telemetry of a link at a dequeue: what a switch with in-band network telemetry (INT) writes into
/// the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct HopTelemetry {
    /// Start of the transmission.
    pub at: Time,
    /// Bytes that the link has sent before, since its start.
    pub sent_bytes: u64,
    /// Bytes in the queue behind the packet.
    pub queue_bytes: u32,
    /// Length of the packet.
    pub packet_bytes: u32,
    /// Rate of the link.
    pub rate: Rate,
}

impl HopTelemetry {
    /// Bytes that had entered the queue by then, without those that were dropped.
    pub fn received_bytes(&self) -> u64 {
        self.sent_bytes + u64::from(self.packet_bytes) + u64::from(self.queue_bytes)
    }
}

/// Telemetry of the packets in flight.
#[cfg(feature = "telemetry")]
#[derive(Clone, Debug, Default, Snapshot)]
struct HopQueue {
    sent_bytes: u64,
    hops: VecDeque<HopTelemetry>,
}

/// Records of a link.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct Recorder {
    log: Option<PacketLog>,
    #[cfg(feature = "telemetry")]
    telemetry: Option<HopQueue>,
    /// Bytes in the queue by class.
    #[cfg(feature = "class-bytes")]
    classes: Option<ClassBytes>,
}

impl Recorder {
    /// Counts `packet`, which arrives at `now` at a discipline that may change its class if
    /// `changes_class`.
    #[cfg(feature = "class-bytes")]
    pub(super) fn on_enqueue(&mut self, now: Time, packet: &Packet, changes_class: bool) {
        if let Some(classes) = &mut self.classes {
            classes.on_enqueue(now, packet, changes_class);
        }
    }

    /// Logs `packet`, whose transmission starts at `at`.
    pub(super) fn on_departure(&mut self, at: Time, packet: &Packet) {
        #[cfg(feature = "class-bytes")]
        if let Some(classes) = &mut self.classes {
            classes.on_leave(packet);
        }
        if let Some(log) = &mut self.log {
            log.push(LogEntry { packet: *packet, left: at, why: None });
        }
    }

    /// Records the telemetry of a packet whose transmission starts at `at`, with `queued` bytes
    /// behind it.
    #[cfg(feature = "telemetry")]
    pub(super) fn stamp(&mut self, at: Time, packet: &Packet, queued: u64, rate: Rate) {
        if let Some(HopQueue { sent_bytes, hops }) = &mut self.telemetry {
            let queue_bytes = u32::try_from(queued).unwrap_or(u32::MAX);
            let (sent_bytes, packet_bytes) =
                (core::mem::replace(sent_bytes, *sent_bytes + u64::from(packet.len)), packet.len);
            hops.push_back(HopTelemetry { at, sent_bytes, queue_bytes, packet_bytes, rate });
        }
    }

    /// Records a drop.
    pub(super) fn on_drop(&mut self, dropped: &Dropped) {
        #[cfg(feature = "class-bytes")]
        if let Some(classes) = &mut self.classes {
            classes.on_leave(&dropped.packet);
        }
        if let Some(log) = &mut self.log {
            let Dropped { packet, at, reason } = *dropped;
            log.push(LogEntry { packet, left: at, why: Some(reason) });
        }
    }

    /// Packet log, if there is one.
    pub(super) fn log(&self) -> Option<&PacketLog> {
        self.log.as_ref()
    }

    /// Packet log, if there is one.
    pub(super) fn log_mut(&mut self) -> Option<&mut PacketLog> {
        self.log.as_mut()
    }
}

impl Link {
    /// Starts to log every packet that leaves the queue.
    pub fn enable_packet_log(&mut self) {
        self.transmitter.recorder.get_or_insert_default().log.get_or_insert_default();
    }

    /// Packet log so far.
    pub fn packet_log(&self) -> &[LogEntry] {
        let log = self.transmitter.recorder.as_deref().and_then(Recorder::log);
        log.map_or(&[], |log| log.as_slice())
    }

    /// Removes all rows of the packet log; logging goes on.
    pub fn clear_packet_log(&mut self) {
        if let Some(log) = self.transmitter.recorder.as_deref_mut().and_then(Recorder::log_mut) {
            log.clear();
        }
    }

    /// Starts to record the state of the link at each dequeue. The link then [computes no
    /// departures at enqueue](Link::computes_departures). [`Link::pop_telemetry`] must be called
    /// for each packet. Needs the feature `telemetry`.
    ///
    /// # Panics
    /// As [`Link::may_change`].
    #[cfg(feature = "telemetry")]
    pub fn enable_telemetry(&mut self) {
        self.may_change();
        self.transmitter.recorder.get_or_insert_default().telemetry.get_or_insert_default();
    }

    /// Returns the telemetry of the packet that [`Link::pop_in_flight`] returns next; `None` if the
    /// link records none. Call it once for each packet.
    #[cfg(feature = "telemetry")]
    pub fn pop_telemetry(&mut self) -> Option<HopTelemetry> {
        self.transmitter.recorder.as_mut()?.telemetry.as_mut()?.hops.pop_front()
    }
}

#[cfg(feature = "class-bytes")]
impl Link {
    /// Starts to count the bytes in the queue by group of classes, for a
    /// [`SharedBuffer`](crate::SharedBuffer) with a queue per class.
    ///
    /// A packet counts as of the class that it has when it arrives. Packets of a discipline that
    /// [changes classes](crate::Qdisc::changes_class) are recognised by arrival time and body:
    /// those that arrive together must have different bodies.
    ///
    /// ```
    /// use sojourn_aqm::{ClassGroups, Link, LinkSpec, Packet, Pcg, Rate, Span, Time, build_text};
    ///
    /// let spec = LinkSpec::new(Rate(8_000_000), Span::ZERO); // a byte per microsecond
    /// let mut link = Link::new(spec, build_text("droptail", spec.rate)?.qdisc, Pcg::new(1))?;
    /// link.count_by_class(ClassGroups::new(&[46..=46])?);
    /// for (class, len) in [(0, 1000), (46, 200), (8, 1000), (46, 200)] {
    ///     link.push(Time::ZERO, Packet { class, len, ..Packet::default() });
    /// }
    /// // The first packet is in transmission.
    /// assert_eq!(link.queued_bytes_by_class(), [1000, 400]);
    /// link.advance(Time(1_000_000));
    /// assert_eq!(link.queued_bytes_by_class(), [1000, 200]);
    /// # Ok::<(), sojourn_aqm::Error>(())
    /// ```
    ///
    /// # Panics
    /// If a packet has already arrived.
    pub fn count_by_class(&mut self, groups: ClassGroups) {
        assert!(self.is_unused(), "`count_by_class` must be called before the first packet");
        let counts = ClassBytes::new(groups);
        self.transmitter.recorder.get_or_insert_default().classes = Some(counts);
        self.transmitter.record_enqueued();
    }

    /// Bytes in the queue by group of classes at the time of the last call, without the packet in
    /// transmission. Their sum is [`Link::queued_bytes`]. Empty without [`Link::count_by_class`].
    #[inline]
    pub fn queued_bytes_by_class(&self) -> &[u64] {
        let recorder = self.transmitter.recorder.as_deref();
        recorder.and_then(|r| r.classes.as_ref()).map_or(&[], ClassBytes::bytes)
    }
}

#[cfg(all(test, feature = "telemetry"))]
mod tests {
    use super::*;
    use crate::link::LinkSpec;
    use crate::units::Span;
    use std::prelude::v1::*;

    /// A link of 8 Mbit/s, a byte per us, with telemetry.
    fn link(qdisc: &str) -> Link {
        let rate = Rate(8_000_000);
        let qdisc = crate::build(qdisc, &[], rate).unwrap().qdisc;
        let mut link =
            Link::new(LinkSpec::new(rate, Span::ZERO), qdisc, crate::Pcg::new(1)).unwrap();
        link.enable_telemetry();
        link
    }

    fn send(link: &mut Link, us: u64, len: u32) {
        link.push(Time(us * 1000), Packet { len, ..Packet::default() });
    }

    /// Time in us, bytes sent before, and queue of each packet in flight.
    fn hops(link: &mut Link) -> Vec<(u64, u64, u32)> {
        core::iter::from_fn(|| {
            let hop = link.pop_telemetry();
            assert_eq!(link.pop_in_flight().is_some(), hop.is_some());
            hop.map(|hop| (hop.at.0 / 1000, hop.sent_bytes, hop.queue_bytes))
        })
        .collect()
    }

    #[test]
    fn telemetry_is_the_state_at_the_dequeue() {
        for qdisc in ["droptail", "codel", "fq_codel"] {
            let mut link = link(qdisc);
            assert!(!link.computes_departures());
            [1000, 500, 200].iter().for_each(|len| send(&mut link, 0, *len));
            // The second packet leaves at 1000 us, when another one of 300 bytes waits.
            send(&mut link, 900, 300);
            link.reset_stats(Time(950_000));
            link.advance(Time(2_500_000));
            let expected = [(0, 0, 0), (1000, 1000, 500), (1500, 1500, 300), (1700, 1700, 0)];
            assert_eq!(hops(&mut link), expected, "{qdisc}");
        }
    }

    #[test]
    fn received_bytes_are_those_that_have_entered_the_queue() {
        let mut link = link("droptail");
        [1000, 500].iter().for_each(|len| send(&mut link, 0, *len));
        send(&mut link, 400, 300);
        link.advance(Time(1_400_000));
        let [first, second] = [0; 2].map(|_| link.pop_telemetry().unwrap());
        assert_eq!((first.received_bytes(), second.received_bytes()), (1000, 1800));
        assert_eq!((second.packet_bytes, second.rate), (500, Rate(8_000_000)));
        assert_eq!(link.pop_telemetry(), None, "the third packet has not left");
    }

    #[test]
    fn a_link_without_telemetry_has_none() {
        let rate = Rate(8_000_000);
        let qdisc = crate::build("droptail", &[], rate).unwrap().qdisc;
        let mut link =
            Link::new(LinkSpec::new(rate, Span::ZERO), qdisc, crate::Pcg::new(1)).unwrap();
        link.enable_packet_log();
        send(&mut link, 0, 1000);
        assert_eq!(link.pop_telemetry(), None);
    }
}
