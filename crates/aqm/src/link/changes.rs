//! Changes of the rate or delay of a link in operation.

use super::{Link, LinkSpec};
use crate::flow_header::FlowHeader;
use crate::qdisc::Qdisc;
use crate::units::Time;
use alloc::boxed::Box;

impl Link {
    /// Declares, before the first packet, that rate or delay may change: [`Link::change`] needs it
    /// with every discipline. No departure is then computed in advance: each packet is put in
    /// flight when its transmission starts.
    ///
    /// # Panics
    /// If a packet has already arrived.
    pub fn may_change(&mut self) {
        assert!(self.is_unused(), "`may_change` must be called before the first packet");
        let transmitter = &mut self.transmitter;
        (transmitter.computes_departures, transmitter.may_change) = (false, true);
    }

    /// True if the discipline needs [`Link::describe_flow`]: see [`Qdisc::reads_headers`].
    pub fn reads_headers(&self) -> bool {
        self.qdisc.reads_headers()
    }

    /// States the header fields of a flow: see [`Qdisc::describe_flow`].
    pub fn describe_flow(&mut self, flow: u32, header: &FlowHeader) {
        self.qdisc.describe_flow(flow, header);
    }

    /// True if no packet has arrived.
    pub(super) fn is_unused(&self) -> bool {
        self.transmitter.now == Time::ZERO && self.transmitter.in_flight.is_empty()
    }

    /// True if [`Link::may_change`] was called.
    pub(super) fn changes_are_declared(&self) -> bool {
        self.transmitter.may_change
    }

    /// True if the link sends at delivery opportunities.
    pub(super) fn has_opportunities(&self) -> bool {
        self.transmitter.opportunities.is_some()
    }

    /// Takes the parameters of `fresh` for the discipline at `now`, before any other event of this
    /// time (see [`Qdisc::reconfigure`]). Packets and state are kept. Returns false, and changes
    /// nothing, if the discipline cannot change them.
    ///
    /// # Panics
    /// If `now` is earlier than in a previous call.
    pub fn reconfigure(&mut self, now: Time, fresh: Box<dyn Qdisc + Send>) -> bool {
        let Link { qdisc, transmitter } = self;
        qdisc.link_advance(transmitter, Time(now.0.saturating_sub(1)).max(transmitter.now));
        // The link computes departures at enqueue, or it does not.
        fresh.decides_at_enqueue() == qdisc.decides_at_enqueue() && qdisc.reconfigure(fresh)
    }

    /// Sets rate and delay to `spec` at `now`. The discipline and its parameters do not change.
    ///
    /// The change comes before any other event at `now`, and applies to transmissions that start
    /// from then on: the current one keeps its rate and its delay. At a rate of zero no
    /// transmission starts. Packets are never reordered: after a decrease of the delay a packet
    /// arrives no earlier than those sent before it. A rate above
    /// [`LinkSpec::RATE_MAX`] is reduced to it.
    ///
    /// # Panics
    /// If [`Link::may_change`] was not called, if `now` is earlier than in a previous call, or if
    /// the rate of a link with opportunities is changed.
    pub fn change(&mut self, now: Time, spec: LinkSpec) {
        let Link { qdisc, transmitter } = self;
        let recorded = transmitter.opportunities.is_some();
        let old = transmitter.spec.rate;
        assert!(!recorded || spec.rate == old, "a link with opportunities has no rate");
        assert!(transmitter.may_change, "`change` needs `may_change` before the first packet");
        qdisc.link_advance(transmitter, Time(now.0.saturating_sub(1)).max(transmitter.now));
        if spec.rate != old {
            transmitter.carry = 0;
        }
        transmitter.spec = LinkSpec { rate: spec.rate.min(LinkSpec::RATE_MAX), ..spec };
        transmitter.resume(&mut **qdisc, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;
    use crate::params::Setting;
    use crate::units::{Rate, Span};
    use rand_core::SeedableRng;
    use std::prelude::v1::*;

    fn spec(rate: u64, delay_ms: u64) -> LinkSpec {
        LinkSpec::new(Rate(rate), Span::ms(delay_ms))
    }

    /// Returns a link with ten packets of 1000 bytes, at 8 Mbit/s and 10 ms: one per millisecond.
    fn busy() -> Link {
        let built =
            crate::build("droptail", &[("limit", Setting::Text("20p"))], Rate(8_000_000)).unwrap();
        let rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let mut link = Link::new(spec(8_000_000, 10), built.qdisc, rng).unwrap();
        link.may_change();
        (0..10)
            .for_each(|body| link.push(Time(0), Packet { body, len: 1000, ..Packet::default() }));
        link
    }

    /// Arrival time of each packet, in tenths of a millisecond.
    fn arrivals(link: &mut Link) -> Vec<u64> {
        link.advance(Time(1_000_000_000));
        core::iter::from_fn(|| link.pop_in_flight()).map(|(at, _)| at.0 / 100_000).collect()
    }

    #[test]
    fn a_rate_acts_on_the_transmissions_that_start_after_it() {
        let mut link = busy();
        link.change(Time(2_500_000), spec(4_000_000, 10)); // the third is being sent until 3 ms
        link.change(Time(7_000_000), spec(8_000_000, 10)); // before the sixth, due at the same time
        let expected = [110, 120, 130, 150, 170, 180, 190, 200, 210, 220];
        assert_eq!(arrivals(&mut link), expected);
    }

    #[test]
    fn a_change_of_delay_alone_keeps_the_rate_exact() {
        // At 7 Mbit/s a packet takes 1142857 and 1/7 ns, so seven packets take 8 ms.
        let mut link = busy();
        link.change(Time(0), spec(7_000_000, 10));
        link.advance(Time(1_000_000)); // the first packet was started at 8 Mbit/s
        for ms in 2..9 {
            link.change(Time(ms * 1_000_000), spec(7_000_000, 10));
        }
        link.advance(Time(1_000_000_000));
        assert_eq!(link.pop_in_flight().map(|(at, _)| at), Some(Time(11_000_000)));
        assert_eq!((0..7).filter_map(|_| link.pop_in_flight()).last().unwrap().0, Time(19_000_000));
    }

    #[test]
    fn a_remainder_of_the_old_rate_is_no_time_at_the_new_one() {
        let mut link = busy();
        link.change(Time(0), spec(7_000_000, 10)); // from the second packet on
        link.change(Time(2_000_000), spec(8_000, 10)); // from the third, 1 s per packet
        link.advance(Time(5_000_000_000));
        let at: Vec<u64> =
            core::iter::from_fn(|| link.pop_in_flight()).map(|(at, _)| at.0).collect();
        assert_eq!(at[1..4], [1, 2, 3].map(|n| 12_142_857 + (n - 1) * 1_000_000_000));
    }

    #[test]
    fn a_change_needs_may_change_with_every_discipline() {
        for name in crate::registry::REGISTRY.iter().map(|entry| entry.name) {
            let changed = |declared| {
                let qdisc = crate::build(name, &[], Rate(8_000_000)).unwrap().qdisc;
                let rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
                let mut link = Link::new(spec(8_000_000, 10), qdisc, rng).unwrap();
                if declared {
                    link.may_change();
                }
                link.change(Time(1), spec(4_000_000, 10));
                link.spec().rate
            };
            assert_eq!(changed(true), Rate(4_000_000), "{name}");
            let panic = std::panic::catch_unwind(|| changed(false)).unwrap_err();
            let text = panic.downcast_ref::<&str>().unwrap();
            assert!(text.contains("`may_change`"), "{name}: {text}");
        }
    }

    #[test]
    #[should_panic(expected = "`may_change` must be called before the first packet")]
    fn after_a_packet_it_is_too_late_to_declare_changes() {
        let codel = crate::build("codel", &[], Rate(8_000_000)).unwrap().qdisc;
        let rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let mut link = Link::new(spec(8_000_000, 10), codel, rng).unwrap();
        link.push(Time(0), Packet { len: 1000, ..Packet::default() });
        link.may_change();
    }

    #[test]
    #[should_panic(expected = "a link was called at 2 ns, after a call at 3 ns")]
    fn a_panic_about_the_time_names_both_times() {
        let mut link = busy();
        link.advance(Time(3));
        link.advance(Time(2));
    }

    #[test]
    fn a_change_at_the_moment_of_a_start_comes_first() {
        let mut link = busy();
        link.change(Time(1_000_000), spec(4_000_000, 10));
        assert_eq!(arrivals(&mut link)[..3], [110, 130, 150]);
    }

    #[test]
    fn at_no_rate_nothing_starts() {
        let mut link = busy();
        link.change(Time(1_500_000), spec(0, 10));
        link.advance(Time(5_000_000));
        assert_eq!((link.next_event(), link.stats().backlog()), (None, (8, 8000)));
        link.push(Time(6_000_000), Packet { body: 10, len: 1000, ..Packet::default() });
        link.change(Time(7_000_000), spec(0, 20));
        link.change(Time(8_000_000), spec(8_000_000, 10));
        let expected = [110, 120, 190, 200, 210, 220, 230, 240, 250, 260, 270];
        assert_eq!(arrivals(&mut link), expected);
        assert_eq!(link.stats().departed_packets, 11);
    }

    #[test]
    fn a_rate_above_the_largest_is_reduced_to_it() {
        let mut link = busy();
        link.change(Time(0), spec(u64::MAX, 10));
        assert_eq!(link.spec(), spec(10u64.pow(18), 10));
    }

    #[test]
    fn a_smaller_limit_acts_on_later_arrivals_and_another_discipline_is_refused() {
        let (mut link, now) = (busy(), Time(2_500_000)); // seven wait
        let mut accepts = |name, settings: &[(&str, Setting<'_>)]| {
            let fresh = crate::build(name, settings, Rate(8_000_000)).unwrap();
            link.reconfigure(now, fresh.qdisc)
        };
        let limit = ("limit", Setting::Text("8p"));
        let head = ("policy", Setting::Text("head"));
        assert!(!accepts("droptail", &[limit, head]), "it no longer decides on arrival");
        assert!(!accepts("avq", &[limit]), "another discipline, which decides on arrival");
        assert!(accepts("droptail", &[limit]));
        for body in 10..13 {
            link.push(now, Packet { body, len: 1000, ..Packet::default() });
        }
        assert_eq!(link.stats().backlog(), (8, 8000));
    }

    #[test]
    fn a_wire_keeps_the_order() {
        let mut link = busy();
        link.change(Time(2_500_000), spec(8_000_000, 7));
        // The third arrives at 13 ms; later ones would arrive at 11, 12, 13, 14 ...
        assert_eq!(arrivals(&mut link), [110, 120, 130, 130, 130, 130, 140, 150, 160, 170]);
    }
}
