//! Outage of a link in operation: it goes down, and comes up again.

use super::transmitter::Transmitter;
use super::{Link, LinkSpec};
use crate::context::{DropReason, Dropped};
use crate::qdisc::Qdisc;
use crate::units::{Rate, Time};

impl Link {
    /// Takes the link down at `now`: its rate becomes 0. With `drops`, the queued packets are
    /// dropped, as are those that arrive while it is down; otherwise they wait. The discipline
    /// keeps its state. The current transmission ends, and packets in flight arrive.
    ///
    /// # Panics
    /// As [`Link::change`].
    pub fn take_down(&mut self, now: Time, drops: bool) {
        self.transmitter.drops_while_down = drops;
        self.change(now, LinkSpec { rate: Rate(0), ..self.spec() });
        if drops {
            self.transmitter.discard(&mut *self.qdisc, now);
            self.transmitter.now = now;
        }
    }

    /// Brings the link up at `now`, with `rate`.
    ///
    /// # Panics
    /// As [`Link::change`].
    pub fn bring_up(&mut self, now: Time, rate: Rate) {
        self.transmitter.drops_while_down = false;
        self.change(now, LinkSpec { rate, ..self.spec() });
    }
}

impl Transmitter {
    /// Drops all packets that `qdisc` would send at `at`.
    #[cold]
    pub(super) fn discard<Q: Qdisc + ?Sized>(&mut self, qdisc: &mut Q, at: Time) {
        let before = self.dropped.len();
        while let Some(packet) = qdisc.dequeue(&mut self.context(at)) {
            self.dropped.push(Dropped { packet, reason: DropReason::AfterEnqueue, at });
        }
        self.count_dropped(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::units::Span;
    use rand_core::SeedableRng;
    use std::prelude::v1::*;

    const BUSY: u64 = 8_000_000;

    /// Returns a link of 8 Mbit/s without delay, with ten packets of 1000 bytes: one per
    /// millisecond.
    fn busy(name: &str) -> Link {
        let built = crate::build(name, &[], Rate(BUSY)).unwrap();
        let rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let mut link = Link::new(LinkSpec::new(Rate(BUSY), Span::ZERO), built.qdisc, rng).unwrap();
        link.may_change();
        (0..10).for_each(|body| link.push(Time(0), packet(body)));
        link
    }

    fn packet(body: u32) -> Packet {
        Packet { body, hash: body, flow: body, len: 1000, ..Packet::default() }
    }

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// Bodies of the dropped and of the sent packets by `now`.
    fn fates(link: &mut Link, now: Time) -> [Vec<u32>; 2] {
        link.advance(now);
        let mut dropped: Vec<u32> = link.take_dropped().map(|d| d.packet.body).collect();
        dropped.sort_unstable();
        let sent = core::iter::from_fn(|| link.pop_in_flight()).map(|(_, p)| p.body).collect();
        [dropped, sent]
    }

    #[test]
    fn a_link_that_drops_loses_what_is_queued_and_what_arrives() {
        for name in ["droptail", "codel", "fq_codel", "red", "drr"] {
            let mut link = busy(name);
            link.take_down(Time(2_500_000), true); // the third packet is being sent
            assert_eq!(link.stats().backlog(), (0, 0), "{name}");
            link.push(ms(5), packet(10));
            let [dropped, sent] = fates(&mut link, ms(20));
            assert_eq!(dropped, [3, 4, 5, 6, 7, 8, 9, 10], "{name}");
            assert_eq!(sent.len(), 3, "{name}");
            assert_eq!(link.stats().dropped(), 8, "{name}");
            link.bring_up(ms(30), Rate(BUSY));
            link.push(ms(31), packet(11));
            assert_eq!(fates(&mut link, ms(40)), [vec![], vec![11]], "{name}");
        }
    }

    #[test]
    fn a_link_that_holds_sends_it_later() {
        let mut link = busy("droptail");
        link.take_down(Time(2_500_000), false);
        link.push(ms(5), packet(10));
        assert_eq!(fates(&mut link, ms(20)), [vec![], vec![0, 1, 2]]);
        link.bring_up(ms(30), Rate(BUSY));
        assert_eq!(fates(&mut link, ms(34)), [vec![], vec![3, 4, 5, 6, 7]]);
        assert_eq!(link.stats().backlog(), (3, 3000));
    }

    #[test]
    fn a_shaper_loses_its_packets_when_they_may_leave() {
        let built = crate::build(
            "tbf",
            &[
                ("rate", crate::params::Setting::Text("4mbit")),
                ("burst", crate::params::Setting::Text("1000B")),
            ],
            Rate(BUSY),
        );
        let rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let spec = LinkSpec::new(Rate(BUSY), Span::ZERO);
        let mut link = Link::new(spec, built.unwrap().qdisc, rng).unwrap();
        link.may_change();
        (0..4).for_each(|body| link.push(Time(0), packet(body)));
        link.take_down(Time(500_000), true);
        assert_eq!(fates(&mut link, ms(20)), [vec![1, 2, 3], vec![0]]);
    }
}
