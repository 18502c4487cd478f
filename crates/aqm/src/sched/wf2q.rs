//! WF2Q+: worst-case fair weighted fair queueing.
//!
//! **Source** J. Bennett, H. Zhang, "Hierarchical Packet Fair Queueing Algorithms", IEEE/ACM ToN
//! 5(5), 1997.
//!
//! **Decides** on departure: the next queue.
//!
//! **Measures** the bytes of each queue.
//!
//! **Symbols** `V`, `S_i`, `F_i`, `W`.
//!
//! **Algorithm** Only the packet at the head of a queue has tags: `S_i = F_i` of the previous
//! packet, or `max(V, F_i)` if the packet arrived at an empty queue; `F_i = S_i + L / w_i`. Of the
//! heads that have started (`S_i <= V`), the one with the smallest finish tag is sent. V grows with
//! the bytes sent, including the part sent so far of the packet in transmission, at 1 / W, where W
//! is the sum of the weights of all queues. It never falls behind the smallest `S_i` of the queued
//! packets. No packet ends later than at a server of its own with rate `C w_i / W` by more than one
//! largest packet, and none is far ahead.
//!
//! **Departures** W is the sum of the weights of all configured queues: set `flows` to their actual
//! number. A dropped packet passes its tags on to the one that takes its place.
//!
//! **Cost** 2400 bytes of state for 16 queues; O(log n) per packet.

use crate::aqm::NoAqm;
use crate::build::Env;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::params::{Checked, Nothing};
use crate::sched::fair::Fair;
use crate::sched::scheduler::{DropPosition, Item, Scheduler};
use crate::sched::tree::{OUT, Tree, key};
use crate::snapshot::Snapshot;
use crate::units::Time;
use alloc::vec;
use alloc::vec::Vec;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry =
    QdiscEntry::new::<Fair<Wf2q, NoAqm>>("wf2q", "worst-case fair weighted fair queueing (WF2Q+)")
        .aliases(&["wf2q+", "wf2q_plus"])
        .preset(&[("flows", "16")])
        .decides("on departure: the smallest finish tag of the packets that have started")
        .source("Bennett and Zhang, IEEE/ACM ToN 5(5), 1997");

/// The WF2Q+ scheduler.
#[derive(Clone, Debug, Snapshot)]
pub struct Wf2q {
    weights: Vec<f64>,
    /// Tags of the head of each queue, and the busy period to which they belong.
    tags: Vec<(f64, f64, u32)>,
    busy: u32,
    /// Queues whose heads have not started, by start tag; queues whose heads have started, by
    /// finish tag.
    waiting: Tree,
    started: Tree,
    /// W, and C in bytes per nanosecond.
    w: f64,
    c: f64,
    /// V when the packet in transmission was selected, the time of that, and the packet's bytes.
    v: f64,
    at: Time,
    sending: f64,
}

impl Wf2q {
    /// Returns V at `now`.
    fn v(&self, now: Time) -> f64 {
        self.v + self.sending.min(now.since(self.at).0 as f64 * self.c) / self.w
    }

    /// Tags the head of queue `i`, of `len` bytes.
    fn tag(&mut self, i: u32, start: f64, len: u32) {
        let finish = start + f64::from(len) / self.weights[i as usize];
        self.tags[i as usize] = (start, finish, self.busy);
        self.started.set(i, OUT);
        self.waiting.set(i, key(start));
    }

    fn finish(&self, i: u32) -> f64 {
        let (_, finish, busy) = self.tags[i as usize];
        if busy == self.busy { finish } else { 0.0 }
    }

    fn out(&mut self, i: u32) {
        self.waiting.set(i, OUT);
        self.started.set(i, OUT);
    }
}

impl Scheduler for Wf2q {
    type Params = Nothing;

    fn new(_: Checked<'_, Nothing>, env: &Env, weights: &[f64]) -> Result<Self> {
        Ok(Wf2q {
            weights: weights.to_vec(),
            tags: vec![(0.0, 0.0, 0); weights.len()],
            busy: 0,
            waiting: Tree::new(weights.len()),
            started: Tree::new(weights.len()),
            w: weights.iter().sum(),
            c: env.rate.0 as f64 / 8e9,
            v: 0.0,
            at: Time::ZERO,
            sending: 0.0,
        })
    }

    fn on_enqueued(&mut self, now: Time, i: u32, packet: Item, first: bool) {
        if first {
            self.tag(i, self.v(now).max(self.finish(i)), packet.len);
        }
    }

    fn select(&mut self, now: Time, _head: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        (self.v, self.at, self.sending) = (self.v(now), now, 0.0);
        if self.started.first().is_none()
            && let Some((_, least)) = self.waiting.first()
        {
            self.v = self.v.max(f64::from_bits(least));
        }
        while let Some((i, start)) = self.waiting.first()
            && f64::from_bits(start) <= self.v
        {
            self.waiting.set(i, OUT);
            self.started.set(i, key(self.tags[i as usize].1));
        }
        self.started.first().map(|(i, _)| i)
    }

    fn on_sent(&mut self, now: Time, i: u32, len: u32, next: Option<Item>) {
        (self.at, self.sending) = (now, f64::from(len));
        // By the packet that is sent, which is not the one that was tagged if that was dropped.
        let tags = &mut self.tags[i as usize];
        let finish = tags.0 + f64::from(len) / self.weights[i as usize];
        (tags.0, tags.1) = (finish, finish);
        match next {
            Some(next) => self.tag(i, finish, next.len),
            None => self.out(i),
        }
    }

    fn on_dropped(&mut self, i: u32, loss: DropPosition, next: Option<Item>) {
        let start = self.tags[i as usize].0;
        match next {
            Some(next) if matches!(loss, DropPosition::Head(_)) => self.tag(i, start, next.len),
            Some(_) => {}
            None => {
                self.tags[i as usize].1 = start;
                self.out(i);
            }
        }
    }

    fn on_idle(&mut self) {
        (self.v, self.sending) = (0.0, 0.0);
        self.busy = self.busy.wrapping_add(1);
    }

    fn state_bytes(&self) -> usize {
        let trees = self.waiting.state_bytes() + self.started.state_bytes();
        size_of_val(&*self.weights) + size_of_val(&*self.tags) + trees
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Virtual time, bytes per weight.
        visit("V", self.v);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;
    use crate::testing::Bench;
    use crate::units::Rate;
    use std::prelude::v1::*;

    #[test]
    fn heavy_queues_alternate_with_the_others() {
        let mut q = Bench::new("wf2q", &[("flows", "11"), ("weights", "10 1")]);
        (0..11).for_each(|i| drop(q.put_flow(0, i, 1000)));
        (1..11).for_each(|flow| drop(q.put_flow(flow, 100 + flow, 1000)));
        let mut sent = Vec::new();
        for ms in 0..21 {
            q.at_ms(ms);
            sent.push(q.get().0.unwrap() < 11);
        }
        assert!(sent.chunks(2).take(10).all(|pair| pair == [true, false]), "{sent:?}");
    }

    #[test]
    fn time_within_a_packet_counts() {
        // W = 2; flow 0 sends 1000 B from 0 on. Half way, V = 250: flow 1 starts there.
        let mut q = Bench::new("wf2q", &[("flows", "2"), ("limit", "100p")]);
        q.put_flow(0, 1, 1000);
        q.put_flow(0, 2, 1000);
        assert_eq!(q.get().0, Some(1)); // the next of flow 0: S = 1000, F = 2000
        q.at_ms(1);
        q.put_flow(1, 3, 1000); // V = 500: S = 500, F = 1500
        assert_eq!(q.get().0, Some(3));
        assert_eq!(q.gauge("V"), 500.0);
        q.at_ms(2);
        assert_eq!(q.get().0, Some(2));
        assert_eq!(q.gauge("V"), 1000.0);
    }

    /// WF2Q+ at 1000 bytes per ms.
    fn wf2q(weights: &[f64]) -> Wf2q {
        Wf2q::new(Nothing.checked().unwrap(), &Env::new(Rate(8_000_000)), weights).unwrap()
    }

    #[test]
    fn tags_by_hand() {
        let mut s = wf2q(&[2.0, 2.0]);
        s.on_enqueued(Time(0), 0, Item { place: 0, len: 2000 }, true);
        assert_eq!(s.tags[0], (0.0, 1000.0, 0));
        assert_eq!(s.select(Time(0), |_| None), Some(0));
        s.on_sent(Time(0), 0, 2000, None);
        // Half of the packet has been sent at 1 ms: V = 1000 / W.
        assert_eq!([1, 2, 3].map(|ms| s.v(Time(ms * 1_000_000))), [250.0, 500.0, 500.0]);
        // F_0 = 1000 is above V.
        s.on_enqueued(Time(1_000_000), 0, Item { place: 0, len: 500 }, true);
        s.on_enqueued(Time(1_000_000), 1, Item { place: 1, len: 500 }, true);
        assert_eq!((s.tags[0], s.tags[1]), ((1000.0, 1250.0, 0), (250.0, 500.0, 0)));
        // A new busy period begins with V = F = 0.
        s.on_idle();
        s.on_enqueued(Time(9_000_000), 0, Item { place: 0, len: 500 }, true);
        assert_eq!((s.v(Time(9_000_000)), s.tags[0]), (0.0, (0.0, 250.0, 1)));
    }

    #[test]
    fn a_dropped_head_passes_its_start_tag_on() {
        let mut s = wf2q(&[1.0]);
        s.on_enqueued(Time(0), 0, Item { place: 0, len: 1000 }, true);
        s.on_dropped(0, DropPosition::Head(1000), Some(Item { place: 1, len: 300 }));
        assert_eq!(s.tags[0], (0.0, 300.0, 0));
        s.on_dropped(0, DropPosition::Tail(1), None);
        assert_eq!((s.tags[0], s.select(Time(0), |_| None)), ((0.0, 0.0, 0), None));
    }
}
