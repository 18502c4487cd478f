//! Trace-driven link: packets leave at recorded delivery opportunities instead of at a rate.
//!
//! **Source**: mahimahi's mm-link (R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for
//! HTTP", USENIX ATC 2015). Each opportunity carries up to a fixed number of bytes. Short packets
//! share an opportunity. A packet that does not fit continues at the next one and arrives with its
//! last byte. Capacity is wasted while the queue is empty. The trace repeats after its last moment.
//!
//! Each packet may also need some bytes of framing. mm-link reads packets from a TUN device that
//! puts 4 bytes before the IP header, and counts them: its opportunities of 1504 bytes carry
//! exactly one IP packet of 1500 bytes.

use super::Link;
use crate::cast;
use crate::error::{Error, Result};
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};
use alloc::format;
use alloc::vec::Vec;

/// Delivery opportunities of a link: a repeating list of times, and the bytes carried at each.
#[derive(Clone, Debug, PartialEq, Eq, Snapshot)]
pub struct Opportunities {
    /// Sorted; the last one is also the period of the trace.
    moments: Vec<Span>,
    bytes: u64,
    /// Framing per packet, counted against an opportunity in addition to the packet length.
    header: u64,
    /// Number of opportunities so far, including the current one; they are numbered through all
    /// periods.
    taken: u64,
    /// Bytes that the current opportunity can still carry.
    left: u64,
    /// Opportunity that carries the last byte of the packet sent last, numbered as `taken`, and
    /// the bytes left in it after that packet. They change only when a packet is sent, while
    /// `taken` and `left` also move on an idle link.
    last: u64,
    last_left: u64,
    /// At the start of the measured interval: number of opportunities so far, and unsent bytes of
    /// the packet in transmission.
    before: u64,
    owed: u64,
}

impl Opportunities {
    /// Creates a trace that carries up to `bytes` at each of the `moments` and repeats after the
    /// last of them. Each packet takes `header` bytes in addition to its length.
    ///
    /// # Errors
    /// If `moments` is empty, is not sorted or ends at zero, or if `bytes` is zero.
    pub fn new(moments: Vec<Span>, bytes: u32, header: u32) -> Result<Opportunities> {
        if let Some(i) = (1..moments.len()).find(|i| moments[*i] < moments[*i - 1]) {
            let text = format!("{} comes before {}", moments[i], moments[i - 1]);
            return Err(Error::new(text).at(i));
        }
        if moments.last().is_none_or(|last| last.0 == 0) {
            return Err(Error::new("the last opportunity is at 0: the period must not be zero"));
        }
        if bytes == 0 {
            return Err(Error::new("an opportunity delivers at least a byte"));
        }
        let (bytes, header) = (bytes.into(), header.into());
        let (taken, left, last, last_left, before, owed) = (0, 0, 0, 0, 0, 0);
        Ok(Opportunities { moments, bytes, header, taken, left, last, last_left, before, owed })
    }

    /// Times of one period.
    pub fn times(&self) -> &[Span] {
        &self.moments
    }

    fn period(&self) -> u64 {
        self.moments.last().map_or(1, |last| last.0)
    }

    /// Returns the number of opportunities up to `at`.
    fn by(&self, at: Time) -> u64 {
        let (laps, within) = (at.0 / self.period(), at.0 % self.period());
        let of_this = self.moments.partition_point(|moment| moment.0 <= within);
        laps * self.moments.len() as u64 + of_this as u64
    }

    /// Advances to the next opportunity; returns its time.
    fn take(&mut self) -> Time {
        let n = self.moments.len() as u64;
        let (lap, i) = (self.taken / n, self.taken % n);
        self.taken += 1;
        self.left = self.bytes;
        Time(lap * self.period()) + self.moments[cast::index(i)]
    }

    /// Advances to the first opportunity after `now`; the rest of earlier ones is lost.
    pub(super) fn seek(&mut self, now: Time) -> Time {
        self.taken = self.by(now);
        self.take()
    }

    /// Sends a packet of `len` bytes plus framing, starting with the current opportunity, at `at`.
    /// Returns when its last byte leaves and when the next packet can start.
    #[cold]
    pub(super) fn deliver(&mut self, mut at: Time, len: u32) -> (Time, Time) {
        let mut len = u64::from(len) + self.header;
        while len > self.left {
            len -= self.left;
            at = self.take();
        }
        self.left -= len;
        (self.last, self.last_left) = (self.taken, self.left);
        (at, if self.left > 0 { at } else { self.take() })
    }

    /// Bytes of the packet in transmission that are sent after `now`.
    fn owed(&self, now: Time) -> u64 {
        let ahead = self.last.saturating_sub(self.by(now));
        (ahead * self.bytes).saturating_sub(self.last_left)
    }

    pub(super) fn begin(&mut self, now: Time) {
        (self.before, self.owed) = (self.by(now), self.owed(now));
    }

    /// Returns the bytes used, framing included, and the bytes offered in the measured interval, in
    /// which `packets` packets of `bytes` bytes in total departed.
    pub(super) fn usage(&self, now: Time, packets: u64, bytes: u64) -> [u64; 2] {
        let offered = (self.by(now) - self.before) * self.bytes;
        [bytes + packets * self.header + self.owed - self.owed(now), offered]
    }
}

impl Link {
    /// Replaces the rate by delivery opportunities; to be called before the first packet. A packet
    /// leaves the queue at the opportunity that carries its first byte. No departure is computed in
    /// advance.
    ///
    /// # Panics
    /// If a packet has already arrived.
    pub fn set_opportunities(&mut self, opportunities: Opportunities) {
        self.may_change();
        self.transmitter.opportunities = Some(opportunities.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkSpec;
    use crate::packet::Packet;
    use crate::params::Setting;
    use crate::units::Rate;
    use rand_core::SeedableRng;
    use std::prelude::v1::*;

    /// Returns a link with opportunities of 1500 bytes at these milliseconds, no framing, a delay
    /// of 10 ms, and a buffer of 10 packets.
    fn link(moments: &[u64]) -> Link {
        link_of(moments, 1500, 0)
    }

    fn link_of(moments: &[u64], bytes: u32, header: u32) -> Link {
        let built =
            crate::build("droptail", &[("limit", Setting::Text("10p"))], Rate(1_000_000)).unwrap();
        let spec = LinkSpec::new(Rate(1_000_000), Span::ms(10));
        let mut link = Link::new(spec, built.qdisc, rand_pcg::Pcg64Mcg::seed_from_u64(1)).unwrap();
        let moments = moments.iter().copied().map(Span::ms).collect();
        link.set_opportunities(Opportunities::new(moments, bytes, header).unwrap());
        link
    }

    fn push(link: &mut Link, ms: u64, lens: &[u32]) {
        for len in lens {
            link.push(Time(ms * 1_000_000), Packet { len: *len, ..Packet::default() });
        }
    }

    /// Arrival time of each packet, in milliseconds, and its length.
    fn arrivals(link: &mut Link) -> Vec<(u64, u32)> {
        let next = || link.next_poll().map(|at| (at, link.poll(at)));
        core::iter::from_fn(next).map(|(at, p)| (at.0 / 1_000_000, p.unwrap().len)).collect()
    }

    #[test]
    fn one_packet_goes_at_each_moment_and_the_recording_repeats() {
        let mut l = link(&[3, 3, 8]);
        push(&mut l, 1, &[1500; 7]);
        let expected = [13, 13, 18, 21, 21, 26, 29].map(|ms| (ms, 1500));
        assert_eq!(arrivals(&mut l), expected);
    }

    #[test]
    fn short_packets_share_an_opportunity_and_long_ones_take_several() {
        let mut l = link(&[5, 6, 20]);
        // 1500 at 5: 500 + 600 + 400 of the third, whose other 900 go at 6 with 600 of the fourth;
        // the fourth has 1500 more at 20 and ends at 25 with 900; the fifth shares that one.
        push(&mut l, 0, &[500, 600, 1300, 3000, 600]);
        assert_eq!(arrivals(&mut l), [(15, 500), (15, 600), (16, 1300), (35, 3000), (35, 600)]);
    }

    #[test]
    fn nothing_is_used_while_a_shaper_waits() {
        // One packet of 1500 bytes per 10 ms; the bucket of tbf holds one packet.
        let settings = [("rate", Setting::Text("1200kbit")), ("burst", Setting::Text("1500B"))];
        let built = crate::build("tbf", &settings, Rate(1_200_000)).unwrap();
        let spec = LinkSpec::new(Rate(1_200_000), Span::ms(10));
        let mut l = Link::new(spec, built.qdisc, rand_pcg::Pcg64Mcg::seed_from_u64(1)).unwrap();
        let moments = vec![Span::ms(5), Span::ms(16), Span::ms(100)];
        l.set_opportunities(Opportunities::new(moments, 1500, 0).unwrap());
        push(&mut l, 0, &[1500, 1500]);
        for (ms, used) in [(4, None), (5, Some(1.0)), (15, Some(1.0)), (16, Some(1.0))] {
            l.advance(Time(ms * 1_000_000));
            assert_eq!(l.utilisation(), used, "{ms} ms: the tokens of the second come at 15 ms");
        }
        let sent: Vec<_> = core::iter::from_fn(|| l.pop_in_flight()).map(|(at, _)| at).collect();
        assert_eq!(sent, [15, 26].map(|ms| Time(ms * 1_000_000)));
        l.advance(Time(100_000_000));
        assert_eq!(l.utilisation(), Some(2.0 / 3.0));
    }

    #[test]
    fn framing_takes_bytes_of_an_opportunity_from_every_packet() {
        // As mm-link: a full packet of 1500 bytes takes one opportunity, not 1500/1504 of one.
        let full = &mut link_of(&[1, 2, 3, 4], 1504, 4);
        push(full, 0, &[1500; 4]);
        full.advance(Time(4_000_000));
        assert_eq!(full.utilisation(), Some(1.0));
        assert_eq!(arrivals(full), [11, 12, 13, 14].map(|ms| (ms, 1500)));
        // Ten packets of 150 bytes would fit; with 4 bytes each the last one ends at the next.
        let short = &mut link_of(&[1, 2], 1504, 4);
        push(short, 0, &[150; 10]);
        let times: Vec<u64> = arrivals(short).iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [[11; 9].as_slice(), &[12]].concat());
    }

    #[test]
    fn what_finds_nobody_is_lost() {
        let mut l = link(&[2, 4, 6, 8]);
        push(&mut l, 1, &[100]);
        // The rest of the opportunity at 2, and the one at 4, are lost; a packet that arrives at 6
        // is too late.
        push(&mut l, 6, &[100]);
        push(&mut l, 8, &[1500, 1500]);
        assert_eq!(arrivals(&mut l), [(12, 100), (18, 100), (20, 1500), (22, 1500)]);
        let used = 100.0 + 100.0 + 1500.0 + 1500.0;
        l.advance(Time(24_000_000));
        assert_eq!(l.utilisation(), Some(used / (12.0 * 1500.0)));
    }

    #[test]
    fn a_packet_under_way_counts_as_far_as_it_has_gone() {
        let mut l = link(&[2, 4, 6, 8]);
        push(&mut l, 1, &[4000]);
        l.reset_stats(Time(5_000_000)); // 3000 were sent
        push(&mut l, 5, &[2500]); // 500 of it share the opportunity at 6
        l.advance(Time(8_000_000));
        assert_eq!(l.utilisation(), Some(1.0), "1000 + 500 at 6, 1500 at 8");
        l.advance(Time(14_000_000));
        assert_eq!(l.utilisation(), Some(3500.0 / 7500.0), "1000 at 10");
        assert_eq!(arrivals(&mut l), [(16, 4000), (20, 2500)]);
    }

    #[test]
    fn a_packet_waits_for_the_opportunity_that_has_its_first_byte() {
        let mut l = link(&[2, 4]);
        push(&mut l, 1, &[1500, 1500]);
        l.advance(Time(3_000_000)); // the first packet has used all of the opportunity at 2
        assert_eq!(l.stats().backlog(), (1, 1500));
        l.advance(Time(4_000_000));
        assert_eq!(l.stats().backlog(), (0, 0));
    }

    #[test]
    fn the_moments_are_those_that_were_given() {
        let moments = vec![Span::ms(3), Span::ms(3), Span::ms(8)];
        assert_eq!(Opportunities::new(moments.clone(), 1500, 0).unwrap().times(), moments);
    }

    #[test]
    fn refused_where_it_would_never_end() {
        let refused = |ms: &[u64], bytes| {
            Opportunities::new(ms.iter().copied().map(Span::ms).collect(), bytes, 0)
        };
        assert_eq!(refused(&[5, 4], 1).unwrap_err().to_string(), "1: 4ms comes before 5ms");
        assert!(
            refused(&[], 1).is_err() && refused(&[0, 0], 1).is_err() && refused(&[1], 0).is_err()
        );
    }
}
