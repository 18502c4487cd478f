//! BLUE: a drop probability that overflow raises and an idle link lowers, without measuring the
//! queue.
//!
//! **Source** W. Feng, D. Kandlur, D. Saha, K. Shin, "BLUE: A New Class of Active Queue Management
//! Algorithms", UM CSE-TR-387-99, 1999; IEEE/ACM ToN 10(4), 2002.
//!
//! **Decides** on arrival.
//!
//! **Measures** overflow and idle time of the link only.
//!
//! **Symbols** `pm`, `d1`, `d2`, `freeze` (freeze_time), `threshold` (L).
//!
//! **Algorithm** Every packet is dropped with probability `pm`. An overflow (or a queue above
//! `threshold`) adds `d1` to `pm`, an idle link subtracts `d2`, at least `freeze` after the last
//! change.
//!
//! **Departures** (1) The paper's idle event happens once; here it repeats every `freeze` while the
//! link stays idle, so that `pm` also falls while no packet arrives. (2) The buffer is checked
//! first: a packet that does not fit raises `pm`, even if it would also have been dropped by `pm`.
//! (3) A change is allowed exactly `freeze` after the last one, not only later.
//!
//! **Cost** 168 bytes of state, one random number per arrival; idle time is caught up in one step.

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::units::{Size, Span, Time};
use alloc::format;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Blue>>(
    "blue",
    "a drop probability that overflow raises and an idle link lowers",
)
.decides("on arrival: a drop probability that does not depend on the queue")
.source("Feng, Kandlur, Saha and Shin, IEEE/ACM ToN 10(4), 2002");

crate::choice! {
    /// Reference of the time since the last change.
    pub enum Clocks {
        /// The last change in either direction (the paper).
        One = "one",
        /// The last change in the same direction (the authors' code for ns-1.1).
        Two = "two",
    }
}

crate::params! {
    /// Parameters of [`Blue`].
    pub struct BlueParams {
        /// Increase of the drop probability by an overflow.
        d1: f64 = 0.0025, [0.0 => 1.0], "d1", ["increment"];
        /// Decrease of the drop probability by an idle link; about a tenth of d1.
        d2: f64 = 0.00025, [1e-5 => 1.0], "d2", ["decrement"];
        /// Minimum time between two changes.
        freeze: Span = Span::ms(100),
            [Span::us(1) => Span::ms(500)], "freeze_time", ["freeze_time"];
        /// Queue above which an arrival raises the drop probability; auto: at overflow only.
        threshold: Option<Size> = None,
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "L",
            ["l"];
        /// Reference of freeze: the last change in either direction (one), or in the same direction
        /// (two).
        clocks: Clocks = Clocks::One, [], "", [];
    }
}

/// State of BLUE.
#[derive(Clone, Debug, Snapshot)]
pub struct Blue {
    params: BlueParams,
    /// Drop probability, 0 to 1.
    pm: f64,
    /// Times of the last increase and decrease; equal with one clock.
    last: [Option<Time>; 2],
    /// Time at which the link became idle, or of the last decrease since then.
    idle_since: Option<Time>,
}

const UP: usize = 0;
const DOWN: usize = 1;

impl Blue {
    /// Adds `step` to the drop probability unless it changed less than `freeze` ago.
    fn change(&mut self, now: Time, direction: usize, step: f64) {
        let frozen = |last: Time| now.since(last) < self.params.freeze;
        if self.last[direction].is_some_and(frozen) {
            return;
        }
        self.pm = (self.pm + step).clamp(0.0, 1.0);
        match self.params.clocks {
            Clocks::One => self.last = [Some(now); 2],
            Clocks::Two => self.last[direction] = Some(now),
        }
    }

    fn raise(&mut self, now: Time) {
        self.change(now, UP, self.params.d1);
    }
}

impl Aqm for Blue {
    type Params = BlueParams;

    fn new(params: Checked<'_, BlueParams>, env: &Env) -> Result<Self> {
        if let Some(l) = params.threshold.filter(|l| l.in_bytes() != env.limit.in_bytes()) {
            let text = format!("{l} is in another unit than limit ({})", env.limit);
            return Err(Error::new(text).at("threshold"));
        }
        Ok(Blue { params: (*params).clone(), pm: 0.0, last: [None; 2], idle_since: None })
    }

    fn reconfigure(&mut self, fresh: &Self) -> bool {
        self.params = fresh.params.clone();
        true
    }

    fn on_update(&mut self, now: Time, queue: &QueueView<'_>) {
        let BlueParams { d2, freeze, .. } = self.params;
        if queue.packets() > 0 {
            self.idle_since = None;
        }
        let Some(since) = self.idle_since else { return };
        let events = now.since(since).0 / freeze.0;
        if events > 0 {
            let at = since + Span(events * freeze.0);
            // All but the last in one step; none of them is blocked by freeze.
            self.pm = (self.pm - (events - 1) as f64 * d2).max(0.0);
            self.last[DOWN] = None;
            self.change(at, DOWN, -d2);
            self.idle_since = Some(at);
        }
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _packet: &Packet,
    ) -> Verdict {
        if self.params.threshold.is_some_and(|l| queue.held(l) > l.number()) {
            self.raise(context.now);
        }
        if context.rng.bernoulli(self.pm) { Verdict::Mark } else { Verdict::Pass }
    }

    fn on_overflow(&mut self, now: Time) {
        self.raise(now);
    }

    fn on_dequeue(
        &mut self,
        _context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _ecn: bool,
    ) -> Option<Packet> {
        let packet = queue.pop();
        if packet.is_some() {
            self.idle_since = None;
        }
        packet
    }

    fn on_idle(&mut self, now: Time) {
        if self.idle_since.is_none() {
            self.change(now, DOWN, -self.params.d2);
            self.idle_since = Some(now);
        }
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("pm", self.pm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use std::prelude::v1::*;

    const FAST: [(&str, &str); 4] =
        [("limit", "2p"), ("d1", "0.02"), ("d2", "0.002"), ("freeze", "10ms")];

    /// Keeps two packets queued and adds `n` at `ms`: each overflows, unless it is dropped early.
    fn flood(q: &mut Bench, ms: u64, n: u32) {
        q.at_ms(ms);
        (0..n).for_each(|i| drop(q.put(i, 100)));
    }

    fn near(q: &Bench, pm: f64) -> bool {
        (q.gauge("pm") - pm).abs() < 1e-12
    }

    #[test]
    fn typed_parameters_are_refused_as_text_is() {
        use crate::build::Build;
        use crate::params::{Combined, Params, Setting};
        type Blues = <SingleQueue<Blue> as Build>::Params;
        let env = Env::new(crate::units::Rate(1_000_000));
        let built =
            |inner| SingleQueue::<Blue>::build(&Combined { inner, ..Blues::default() }, &env).err();
        let text = Blues::default().set("freeze", Setting::Text("0s")).err();
        assert!(text.is_some());
        assert_eq!(built(BlueParams { freeze: Span(0), ..BlueParams::default() }), text);
        for d2 in [f64::NAN, -1.0, 0.0, f64::INFINITY] {
            let refused = built(BlueParams { d2, ..BlueParams::default() });
            assert!(refused.is_some_and(|e| e.path() == "d2"), "{d2}");
        }
        assert_eq!(built(BlueParams::default()), None);
    }

    #[test]
    fn overflow_raises_and_idleness_lowers_once_per_freeze() {
        let mut q = Bench::new("blue", &FAST);
        flood(&mut q, 0, 2);
        assert!(near(&q, 0.0), "there was room");
        flood(&mut q, 0, 50);
        assert!(near(&q, 0.02), "the second loss comes too soon");
        flood(&mut q, 9, 50);
        assert!(near(&q, 0.02));
        flood(&mut q, 10, 50);
        assert!(near(&q, 0.04));
        // The decrease must wait for the increase: one clock.
        q.at_ms(15);
        q.drain();
        assert!(near(&q, 0.04));
        // Idle from 15 on: events at 25, 35 and 45.
        q.at_ms(46);
        q.put(1, 100);
        assert!(near(&q, 0.04 - 3.0 * 0.002));
        // The last decrease was at 45.
        flood(&mut q, 54, 50);
        assert!(near(&q, 0.034));
        flood(&mut q, 55, 50);
        assert!(near(&q, 0.054));
    }

    #[test]
    fn new_steps_change_the_probability_from_where_it_is() {
        let mut q = Bench::new("blue", &FAST);
        flood(&mut q, 0, 50);
        assert!(near(&q, 0.02));
        assert!(q.reconfigure("blue", &[&FAST[..], &[("d1", "0.05")]].concat()));
        flood(&mut q, 10, 50);
        assert!(near(&q, 0.07));
    }

    #[test]
    fn two_clocks_do_not_wait_for_each_other() {
        let mut q = Bench::new("blue", &[&FAST[..], &[("clocks", "two")]].concat());
        flood(&mut q, 0, 50);
        q.at_ms(1);
        q.drain();
        assert!(near(&q, 0.018));
        flood(&mut q, 5, 50);
        assert!(near(&q, 0.018), "5 ms after the last rise");
        flood(&mut q, 10, 50);
        assert!(near(&q, 0.038));
    }

    #[test]
    fn a_queue_above_l_counts_as_a_loss_and_signals_do_not() {
        let settings = [("limit", "100p"), ("threshold", "2p"), ("d1", "1"), ("freeze", "1ms")];
        let mut q = Bench::new("blue", &settings);
        // The fourth finds three packets, so it raises the probability to 1 and is dropped by it.
        let dropped: Vec<u32> = (0..5).flat_map(|i| q.put(i, 100)).collect();
        assert_eq!(dropped, [3, 4]);
        let mut q = Bench::new("blue", &[&settings[..], &[("ecn", "true")]].concat());
        q.ect();
        assert!((0..5).all(|i| q.put(i, 100).is_empty()));
        assert_eq!(q.marked(), 2);
    }

    #[test]
    fn a_day_of_idle_forgets_everything_at_once() {
        let mut q = Bench::new("blue", &[&FAST[..], &[("d1", "1"), ("d2", "1e-5")]].concat());
        flood(&mut q, 0, 50);
        assert!(near(&q, 1.0));
        q.drain();
        q.at_ms(86_400_000);
        assert_eq!(q.put(1, 100), []);
        assert!(near(&q, 0.0));
    }

    #[test]
    fn a_link_with_a_waiting_packet_is_not_idle() {
        let mut q = Bench::new("blue", &FAST);
        flood(&mut q, 0, 50);
        q.at_ms(15);
        q.drain();
        q.put(1, 100);
        // The packet arrived at 15 ms and is not sent until 100 ms.
        q.at_ms(100);
        q.put(2, 100);
        assert!(near(&q, 0.02 - 0.002), "lowered once, when the queue became empty");
    }

    #[test]
    fn a_threshold_in_another_unit_is_refused() {
        let settings = [("threshold", crate::Setting::Text("30kB"))];
        let refusal = crate::build("blue", &settings, crate::Rate(1_000_000)).unwrap_err();
        assert!(refusal.to_string().starts_with("threshold: 30kB is in another unit"));
    }
}
