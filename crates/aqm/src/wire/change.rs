//! Changes of a wire in operation, as `tc qdisc change` makes them to netem.
//!
//! **Source**: Linux, `net/sched/sch_netem.c`, netem_change.

use super::chance::{Events, Stream};
use super::jitter::{Jitter, JitterProcess};
use super::slots::SlotProcess;
use super::{Impairments, Reorder, Wire};
use crate::units::{Span, Time};

impl Wire {
    /// Impairments as they are now.
    pub fn impairments(&self) -> Impairments {
        Impairments {
            jitter: self.jitter.as_ref().map(|process| process.jitter.clone()),
            reorder: self.reorder.as_ref().map(|(reorder, _)| *reorder),
            loss: self.loss.model(),
            loss_ecn: self.loss_ecn,
            outages: self.outages.as_ref().map(|process| process.outages().clone()),
            duplicate: self.duplicate.chance(),
            corrupt: self.corrupt.chance(),
            slots: self.slots.as_ref().map(|process| process.slots().clone()),
            limit: Some(self.limit).filter(|limit| *limit < u64::MAX),
        }
    }

    /// Changes the impairments at `now` to `to`, apart from the outages, which stay.
    /// Packets on the wire keep their times of arrival. An impairment that differs from before
    /// starts anew, with the next numbers of its random stream; `stream` returns the stream of an
    /// impairment that the wire did not have, as in [`Wire::new`].
    pub fn change(&mut self, now: Time, to: &Impairments, mut stream: impl FnMut(&str) -> Stream) {
        // Packets that are due before leave by the old slots.
        self.advance(Time(now.0.saturating_sub(1)));
        let from = self.impairments();
        let none = Jitter::new(Span::ZERO);
        match (&mut self.jitter, to.jitter.as_ref()) {
            (Some(process), jitter) => process.change(jitter.unwrap_or(&none)),
            (None, Some(jitter)) => {
                self.jitter = Some(JitterProcess::new(jitter, stream("jitter")));
            }
            (None, None) => {}
        }
        if from.reorder != to.reorder {
            let reorder = to.reorder.unwrap_or(Reorder::new(super::Chance::default()));
            match &mut self.reorder {
                Some((old, events)) => {
                    events.change(reorder.chance);
                    *old = reorder;
                }
                None => {
                    let events = Events::new(reorder.chance, stream("reorder"));
                    self.reorder = Some((reorder, events));
                }
            }
            self.delayed = 0;
        }
        self.loss.change(to.loss);
        self.loss_ecn = to.loss_ecn;
        self.duplicate.change(to.duplicate);
        self.corrupt.change(to.corrupt);
        if from.slots != to.slots {
            self.slots = match (self.slots.take(), &to.slots) {
                (_, None) => None,
                (None, Some(slots)) => Some(SlotProcess::begin(slots, now, stream("slot"))),
                (Some(process), Some(slots)) => {
                    Some(SlotProcess::begin(slots, now, process.into_stream()))
                }
            };
        }
        self.limit = to.limit.unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arrival, Chance, LossModel, Slots};
    use super::*;
    use crate::packet::Packet;
    use crate::random::stream_key;
    use rand_core::SeedableRng;
    use rand_pcg::Pcg64Mcg;
    use std::boxed::Box;
    use std::prelude::v1::*;

    const DELAY: Span = Span::ms(20);
    const HALF: u32 = 500;

    fn streams(name: &str) -> Stream {
        let key = stream_key(7, name);
        Box::new(Pcg64Mcg::from_seed(key[..16].try_into().unwrap()))
    }

    fn with(change: impl FnOnce(&mut Impairments)) -> Impairments {
        let mut impairments = Impairments::default();
        change(&mut impairments);
        impairments
    }

    /// Sends packets `from` to `to`, one per millisecond.
    fn send(wire: &mut Wire, from: u32, to: u32) {
        for body in from..to {
            let now = Time::ZERO + Span::ms(body.into());
            let packet = Packet { arrived: now, len: 1000, body, ..Packet::default() };
            wire.send(now, now + DELAY, packet, &mut |body| Some(body + 1_000_000));
        }
    }

    /// Bodies and times of all packets on the wire.
    fn rest(wire: &mut Wire) -> Vec<(u32, Time)> {
        let mut arrivals: Vec<Arrival> = Vec::new();
        while let Some(at) = wire.next_event() {
            arrivals.extend(wire.poll(at));
        }
        let mut rows: Vec<_> = arrivals.iter().map(|a| (a.packet.body, a.at)).collect();
        rows.sort_unstable();
        rows
    }

    fn each() -> Vec<(&'static str, Impairments)> {
        let states = LossModel::Bursts { p: 0.1, r: 0.3, bad_loss: 1.0, good_loss: 0.0 };
        let tied = Chance::correlated(0.3, 0.5);
        vec![
            ("jitter", with(|i| i.jitter = Some(Jitter::new(Span::ms(9))))),
            ("reorder", with(|i| i.reorder = Some(Reorder::new(tied)))),
            ("loss", with(|i| i.loss = LossModel::Random(0.3))),
            ("bursts", with(|i| i.loss = states)),
            ("tied", with(|i| i.loss = LossModel::Correlated(tied))),
            ("duplicate", with(|i| i.duplicate = Chance::new(0.4))),
            ("corrupt", with(|i| i.corrupt = tied)),
            ("limit", with(|i| i.limit = Some(7))),
        ]
    }

    /// From the change on, the wire is one with the new impairments; packets before it are on the
    /// wire as they were sent.
    #[test]
    fn a_run_with_a_change_is_two_runs() {
        // A loss of 0 draws random numbers as well.
        let draws_later = |new: &Impairments| new.loss == LossModel::default();
        for (name, new) in each().into_iter().filter(|(_, new)| draws_later(new)) {
            let at = Time::ZERO + Span::ms(HALF.into());
            let mut wire = Wire::new(&Impairments::default(), streams);
            send(&mut wire, 0, HALF);
            wire.change(at, &new, streams);
            assert_eq!(wire.impairments(), new, "{name}");
            send(&mut wire, HALF, 2 * HALF);
            let mut first = Wire::new(&Impairments::default(), streams);
            send(&mut first, 0, HALF);
            let mut second = Wire::new(&new, streams);
            // Packets in flight at the change count towards the limit.
            let from = if new.limit.is_some() { HALF - 20 } else { HALF };
            let mut expected = rest(&mut first);
            if new.limit.is_some() {
                let none = Impairments::default();
                second = Wire::new(&none, streams);
                send(&mut second, from, HALF);
                second.change(at, &new, streams);
                expected.truncate(from as usize);
            }
            send(&mut second, HALF, 2 * HALF);
            expected.extend(rest(&mut second));
            expected.sort_unstable();
            assert_eq!(rest(&mut wire), expected, "{name}");
            let plain: Vec<_> = (0..2 * HALF).map(|b| (b, at)).collect();
            let changed = expected.len() != plain.len()
                || expected.iter().any(|(b, at)| *at != Time::ZERO + Span::ms((*b).into()) + DELAY);
            assert!(changed || name == "corrupt", "{name} has an effect");
        }
    }

    #[test]
    fn an_impairment_ends_and_begins_again_with_its_stream() {
        for (name, new) in each() {
            let mut wire = Wire::new(&new, streams);
            send(&mut wire, 0, HALF);
            let at = |ms: u32| Time::ZERO + Span::ms(ms.into());
            let before = wire.stats().to_owned();
            wire.change(at(HALF), &Impairments::default(), streams);
            send(&mut wire, HALF, 2 * HALF);
            let lost = wire.stats().lost + wire.stats().duplicated + wire.stats().corrupted;
            assert_eq!(lost, before.lost + before.duplicated + before.corrupted, "{name}");
            wire.change(at(2 * HALF), &new, streams);
            send(&mut wire, 2 * HALF, 3 * HALF);
            let rows = rest(&mut wire);
            let quiet = rows.iter().filter(|(body, _)| (HALF..2 * HALF).contains(body));
            assert!(quiet.clone().all(|(b, t)| *t == at(*b) + DELAY), "{name}");
            assert_eq!(quiet.count(), HALF as usize, "{name}");
            // The third part has other random numbers than the first.
            let part = |from: u32| -> Vec<(u32, u64)> {
                let here = rows.iter().filter(|(b, _)| (from..from + HALF).contains(b));
                here.map(|(b, t)| (b - from, t.0 - at(from).0)).collect()
            };
            assert!(part(0) != part(2 * HALF) || matches!(name, "corrupt" | "limit" | "duplicate"));
        }
    }

    #[test]
    fn unchanged_impairments_go_on() {
        for (name, new) in each() {
            let run = |changes: bool| {
                let mut wire = Wire::new(&new, streams);
                for i in 0..10 {
                    send(&mut wire, 100 * i, 100 * (i + 1));
                    if changes {
                        let at = Time::ZERO + Span::ms((100 * (i + 1)).into());
                        wire.change(at, &new, streams);
                    }
                }
                (rest(&mut wire), *wire.stats())
            };
            assert_eq!(run(true), run(false), "{name}");
        }
    }

    #[test]
    fn new_slots_begin_with_the_change() {
        let slots = |ms| with(|i| i.slots = Some(Slots::new(Span::ms(ms), Span::ms(ms))));
        let mut wire = Wire::new(&slots(40), streams);
        send(&mut wire, 0, 100);
        let at = Time::ZERO + Span::ms(100);
        wire.change(at, &slots(7), streams);
        send(&mut wire, 100, 200);
        let rows = rest(&mut wire);
        let first = rows.iter().find(|(body, _)| *body == 85).unwrap().1;
        assert!(first >= at + Span::ms(5) && first <= at + Span::ms(14), "{first:?}");
        let mut times: Vec<u64> = rows.iter().map(|(_, at)| at.0 / 1_000_000).collect();
        times.dedup();
        assert!(times.windows(2).all(|w| w[0] < w[1]) && times.len() < 30, "{times:?}");
    }
}
