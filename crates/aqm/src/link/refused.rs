//! Links whose buffer is shared with other links: what their owner asks and tells.

use super::{LEN_MAX, Link};
use crate::context::DropReason;
use crate::packet::Packet;
use crate::units::Time;

impl Link {
    /// Drops `packet`, which arrives at `now`, because a [`SharedBuffer`](crate::SharedBuffer) does
    /// not admit it. The discipline does not see it; counters, packet log and
    /// [`Link::take_dropped`] have it, with the reason [`DropReason::SharedBuffer`].
    ///
    /// ```
    /// use sojourn_aqm::{Bytes, Link, LinkSpec, Packet, Pcg, Rate, SharedBuffer, Span, Time};
    ///
    /// let mut buffer = SharedBuffer::new(Bytes(10_000), 1.0, &[Bytes(0); 2])?;
    /// let rate = Rate(8_000_000);
    /// let port = || {
    ///     let droptail = sojourn_aqm::build("droptail", &[], rate)?;
    ///     Link::new(LinkSpec::new(rate, Span::ZERO), droptail.qdisc, Pcg::new(1))
    /// };
    /// let mut ports = [port()?, port()?];
    ///
    /// let now = Time::ZERO; // nine packets arrive for port 0
    /// for _ in 0..9 {
    ///     for (i, port) in ports.iter_mut().enumerate() {
    ///         port.advance(now); // frees the bytes of packets that were sent since
    ///         buffer.set_held(i, port.queued_bytes());
    ///     }
    ///     let packet = Packet { len: 1000, ..Packet::default() };
    ///     if buffer.admits(0, packet.len) {
    ///         ports[0].push(now, packet);
    ///     } else {
    ///         ports[0].refuse(now, packet);
    ///     }
    ///     buffer.set_held(0, ports[0].queued_bytes());
    /// }
    /// // One is being sent; five wait, as five times 1000 bytes are free.
    /// assert_eq!(ports[0].stats().backlog(), (5, 5000));
    /// assert_eq!(ports[0].take_dropped().count(), 3);
    /// # Ok::<(), sojourn_aqm::Error>(())
    /// ```
    ///
    /// # Panics
    /// If `now` is earlier than in a previous call, or the packet has [`LEN_MAX`] bytes or more.
    pub fn refuse(&mut self, now: Time, packet: Packet) {
        assert!(packet.len < LEN_MAX, "a packet is shorter than 2^30 bytes");
        self.advance(now);
        self.transmitter
            .drop_at_arrival(Packet { arrived: now, ..packet }, DropReason::SharedBuffer);
    }

    /// Bytes in the queue at the time of the last call, without the packet in transmission.
    #[inline]
    pub fn queued_bytes(&self) -> u64 {
        self.transmitter.stats.backlog().1
    }

    /// Time before which no packet leaves the queue, unless the link is called: the end of the
    /// transmission, or later with a shaper or delivery opportunities. [`Time::NEVER`] if none is
    /// in the queue, or while the rate is zero.
    #[inline]
    pub fn next_dequeue(&self) -> Time {
        if self.queued_bytes() > 0 { self.transmitter.free_at } else { Time::NEVER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkSpec;
    use crate::units::{Rate, Span};
    use std::prelude::v1::*;

    /// A link of 8 Mbit/s: a byte takes 1 us.
    fn link(qdisc: &str) -> Link {
        let rate = Rate(8_000_000);
        let qdisc = crate::build(qdisc, &[], rate).unwrap().qdisc;
        Link::new(LinkSpec::new(rate, Span::ZERO), qdisc, crate::Pcg::new(1)).unwrap()
    }

    fn packet(body: u32) -> Packet {
        Packet { body, len: 1000, ..Packet::default() }
    }

    #[test]
    fn a_refused_packet_is_counted_logged_and_returned() {
        for qdisc in ["droptail", "codel"] {
            let mut link = link(qdisc);
            link.enable_packet_log();
            (0..3).for_each(|body| link.push(Time(0), packet(body)));
            link.refuse(Time(1_500_000), packet(3));
            link.refuse(Time(1_500_000), packet(4));
            link.push(Time(1_600_000), packet(5));
            link.advance(Time(10_000_000));
            let bodies: Vec<u32> = link.take_dropped().map(|lost| lost.packet.body).collect();
            assert_eq!(bodies, [3, 4], "{qdisc}");
            let stats = link.stats();
            assert_eq!(stats.dropped_for(DropReason::SharedBuffer), 2);
            assert_eq!([stats.arrived_packets, stats.departed_packets, stats.dropped()], [6, 4, 2]);
            assert_eq!((stats.dropped_bytes, stats.consecutive_loss()), (2000, vec![0, 1]));
            let rows = link.packet_log().iter();
            let rows = rows.map(|row| (row.packet.body, row.left.0 / 1000, row.why));
            let why = Some(DropReason::SharedBuffer);
            let sent = |body: u32| (body, u64::from(body) * 1000, None);
            let expected =
                [sent(0), sent(1), (3, 1500, why), (4, 1500, why), sent(2), (5, 3000, None)];
            assert!(rows.eq(expected), "{qdisc}");
        }
    }

    #[test]
    fn the_next_dequeue_is_the_end_of_the_transmission() {
        let mut link = link("droptail");
        assert_eq!((link.next_dequeue(), link.queued_bytes()), (Time::NEVER, 0));
        link.push(Time(0), packet(0));
        assert_eq!(link.next_dequeue(), Time::NEVER, "it is in transmission, nothing is queued");
        link.push(Time(0), packet(1));
        assert_eq!((link.next_dequeue(), link.queued_bytes()), (Time(1_000_000), 1000));
        link.advance(Time(999_999));
        assert_eq!(link.queued_bytes(), 1000);
        link.advance(link.next_dequeue());
        assert_eq!((link.next_dequeue(), link.queued_bytes()), (Time::NEVER, 0));
    }

    #[test]
    fn a_refused_packet_does_not_start_an_idle_link() {
        let mut link = link("droptail");
        link.refuse(Time(5), packet(0));
        assert_eq!((link.next_poll(), link.queued_bytes()), (None, 0));
        link.push(Time(7), packet(1));
        assert_eq!(link.next_poll(), Some(Time(1_000_007)));
    }
}
