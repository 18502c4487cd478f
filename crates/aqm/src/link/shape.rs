//! Token bucket and overhead of the link layer, which few links have in place of a transmitter that
//! sends each packet with its length.

use super::transmission::transmission_end;
use super::{Link, TokenBucket};
use crate::cast;
use crate::overhead::Overhead;
use crate::snapshot::Snapshot;
use crate::units::{Rate, Span, Time};
use alloc::boxed::Box;

/// Token bucket and overhead of a link.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct Shape {
    pub(super) bucket: Option<TokenBucket>,
    overhead: Option<Overhead>,
}

impl Shape {
    /// Sends a packet of `len` bytes at `at`; `carry` is the rest of the last transmission. Returns
    /// when its last byte leaves, and when the next packet can start.
    #[cold]
    pub(super) fn send(&mut self, at: Time, len: u32, rate: Rate, carry: &mut u64) -> (Time, Time) {
        let len = self.overhead.map_or(len, |overhead| cast::saturate32(overhead.wire_len(len, 0)));
        match &mut self.bucket {
            Some(bucket) => (at, bucket.send(at, len, rate)),
            None => {
                let end = transmission_end(at, len, rate, carry);
                (end, end)
            }
        }
    }

    /// Starts the measured interval.
    pub(super) fn begin(&mut self, now: Time) {
        if let Some(bucket) = &mut self.bucket {
            bucket.begin(now);
        }
    }

    /// Time of the measured interval in which the bucket was not full, if there is one.
    pub(super) fn used(&self, now: Time) -> Option<Span> {
        self.bucket.as_ref().map(|bucket| bucket.used(now))
    }
}

impl Link {
    /// Adds the overhead of a link layer to the length of each packet, as cake does: a transmission
    /// takes the time of the framed packet. To be called before the first packet. No departure is
    /// computed in advance. Counters of bytes are without overhead.
    ///
    /// # Panics
    /// If a packet has already arrived, or the link has [`Opportunities`](super::Opportunities).
    pub fn set_overhead(&mut self, overhead: Overhead) {
        self.may_change();
        assert!(self.transmitter.opportunities.is_none(), "a link with opportunities has no rate");
        self.shape().overhead = Some(overhead);
    }

    /// Token bucket and overhead, to be set.
    pub(super) fn shape(&mut self) -> &mut Shape {
        self.transmitter.shape.get_or_insert_with(|| Box::new(Shape::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkSpec;
    use crate::packet::Packet;
    use crate::params::{Setting, Value};
    use crate::units::Bytes;
    use rand_core::SeedableRng;
    use std::prelude::v1::*;

    /// Times in us at which packets of these lengths, sent together, arrive at the end of a link of
    /// 8 Mbit/s: a byte takes 1 us.
    fn arrivals(overhead: &str, bucket: Option<u64>, lens: &[u32]) -> (Vec<u64>, f64) {
        let built = crate::build("droptail", &[("limit", Setting::Text("100p"))], Rate(8_000_000));
        let rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let spec = LinkSpec::new(Rate(8_000_000), Span::ZERO);
        let mut link = Link::new(spec, built.unwrap().qdisc, rng).unwrap();
        if let Some(burst) = bucket {
            link.set_bucket(TokenBucket::new(Bytes(burst)));
        }
        link.set_overhead(Overhead::read(Setting::Text(overhead)).unwrap());
        for len in lens {
            link.push(Time::ZERO, Packet { len: *len, ..Packet::default() });
        }
        link.advance(Time(10_000_000));
        let used = link.utilisation().unwrap();
        let arrived = core::iter::from_fn(|| link.pop_in_flight());
        (arrived.map(|(at, _)| at.0 / 1000).collect(), used)
    }

    #[test]
    fn a_transmission_takes_the_time_of_the_framed_packet() {
        assert_eq!(arrivals("38 mpu 84", None, &[1500, 40]), (vec![1538, 1622], 0.1622));
        assert_eq!(arrivals("-20", None, &[1500, 40]).0, [1480, 1500]);
        assert_eq!(arrivals("raw", None, &[1500, 40]).0, [1500, 1540]);
        // 1540 bytes are 33 cells, 80 bytes are two.
        assert_eq!(arrivals("40 atm", None, &[1500, 40]).0, [1749, 1855]);
        assert_eq!(arrivals("-64", None, &[40]).0, [0], "not below zero");
    }

    #[test]
    fn a_bucket_gives_the_tokens_of_the_framed_packet() {
        let (at, _) = arrivals("40 atm", Some(0), &[1500, 40, 40]);
        assert_eq!(at, [0, 1749, 1855]);
    }
}
