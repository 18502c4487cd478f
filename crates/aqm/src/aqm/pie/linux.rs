//! PIE as in Linux (`sch_pie`, Linux 5.6 and later): the same controller in whole numbers, with
//! Linux's bounds.
//!
//! Times are in units of 64 ns, probabilities in units of 2^-56. All sums wrap, as they do there.

use super::{Latency, PieParams, Verdict};
use crate::cast;
use crate::context::Context;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::units::{Span, Time};

/// Probability 1.
const MAX_PROB: u64 = u64::MAX >> 8;
/// Nanoseconds per unit of time, as a power of two.
const SHIFT: u32 = 6;
/// Units of time per second.
const PER_SECOND: u64 = 1_000_000_000 >> SHIFT;
/// Delay above which the probability grows by 2 % per update in addition: 250 ms.
const LONG_DELAY: u64 = 250_000_000 >> SHIFT;
/// Bytes over which the departure rate is measured.
const QUEUE_THRESHOLD: u64 = 16_384;
/// Binary digits after the point of the departure rate, bytes per unit of time.
const RATE_SHIFT: u32 = 8;

/// Controller of one queue.
#[derive(Clone, Debug)]
pub(super) struct LinuxPie {
    /// Drop probability.
    prob: u64,
    /// Sum of the drop probabilities since the last drop.
    accu_prob: u64,
    /// Rest of the burst allowance.
    burst_time: u64,
    /// Queueing delay: of the last departure, or at the last update.
    qdelay: u64,
    /// Queueing delay at the last update.
    qdelay_old: u64,
    /// Time of the last departure, or of the start of a measurement of the rate.
    dq_tstamp: Option<u64>,
    /// Bytes that departed in a measurement of the rate.
    dq_count: Option<u64>,
    /// Departure rate; 0 before the first measurement.
    avg_dq_rate: u32,
    target: u64,
    max_burst: u64,
    /// Gains in sixteenths, as tc takes them.
    gains: (u64, u64),
    mtu: u64,
    estimates_rate: bool,
    byte_mode: bool,
    ecn: bool,
    /// Largest probability at which packets are marked.
    ecn_most: u64,
}

fn units(span: Span) -> u64 {
    span.0 >> SHIFT
}

impl LinuxPie {
    pub(super) fn new(params: &PieParams, ecn: bool) -> LinuxPie {
        let sixteenths = |gain: f64| cast::trunc(gain * 16.0 + 0.5);
        LinuxPie {
            prob: 0,
            accu_prob: 0,
            burst_time: units(params.max_burst),
            qdelay: 0,
            qdelay_old: 0,
            dq_tstamp: None,
            dq_count: None,
            avg_dq_rate: 0,
            target: units(Span(params.target.0 / 1000 * 1000)),
            max_burst: units(params.max_burst),
            gains: (sixteenths(params.alpha), sixteenths(params.beta)),
            mtu: params.mtu.0,
            estimates_rate: params.latency == Latency::Rate,
            byte_mode: params.byte_mode,
            ecn,
            ecn_most: MAX_PROB / 100 * cast::trunc(params.mark_ecnth * 100.0 + 0.5),
        }
    }

    /// Drop probability.
    pub(super) fn p(&self) -> f64 {
        self.prob as f64 / MAX_PROB as f64
    }

    /// Queueing delay at the last update.
    pub(super) fn qdelay_old(&self) -> Span {
        Span(self.qdelay_old << SHIFT)
    }

    /// Rest of the burst allowance.
    pub(super) fn burst(&self) -> Span {
        Span(self.burst_time << SHIFT)
    }

    /// Sum of the drop probabilities since the last drop.
    pub(super) fn accu(&self) -> f64 {
        self.accu_prob as f64 / MAX_PROB as f64
    }

    /// Departure rate, bytes per second.
    pub(super) fn dq_rate(&self) -> f64 {
        f64::from(self.avg_dq_rate) * PER_SECOND as f64 / f64::from(1u32 << RATE_SHIFT)
    }

    /// Handles a drop of an arrival.
    pub(super) fn on_drop(&mut self) {
        self.accu_prob = 0;
    }

    /// Makes `n` updates without an arrival or departure between them.
    pub(super) fn update_often(&mut self, mut n: u64, backlog: u64) {
        let backlog = cast::low32(backlog);
        while n > 0 {
            let state =
                |p: &LinuxPie| (p.prob, p.qdelay, p.qdelay_old, p.burst_time, p.avg_dq_rate);
            let before = state(self);
            self.update(backlog);
            n -= 1;
            // Bounded: equal steps are made at once, and the decay ends within 3,000 updates.
            if state(self) == before {
                break;
            }
            let decays = self.qdelay == 0 && backlog == 0;
            if self.qdelay == self.qdelay_old && !decays {
                n -= self.leap(n);
            }
        }
    }

    /// Makes as many of `n` updates as have equal steps, at a constant delay; returns their number.
    fn leap(&mut self, n: u64) -> u64 {
        let delta = self.delta(self.qdelay, self.qdelay);
        let step = delta.unsigned_abs();
        let bounds = (1..=6).rev().map(|digits| MAX_PROB / 10u64.pow(digits));
        if delta > 0 {
            // A sum that overflows is set to 1, over and over again.
            let period = (u64::MAX - MAX_PROB) / step + 1;
            if self.prob == MAX_PROB && n >= period {
                return n - n % period;
            }
            let last = bounds.clone().find(|end| *end > self.prob).map_or(u64::MAX, |end| end - 1);
            let k = n.min((last - self.prob) / step);
            self.prob += k * step;
            return k;
        }
        let first = bounds.rev().find(|start| *start <= self.prob).unwrap_or(0);
        let k = (self.prob - first).checked_div(step).unwrap_or(n).min(n);
        self.prob -= k * step;
        k
    }

    /// Updates the probability.
    fn update(&mut self, backlog: u32) {
        let (qdelay, qdelay_old) = if self.estimates_rate {
            self.qdelay_old = self.qdelay;
            let delay = (backlog << RATE_SHIFT).checked_div(self.avg_dq_rate);
            (u64::from(delay.unwrap_or(0)), self.qdelay_old)
        } else {
            (self.qdelay, self.qdelay_old)
        };
        let mut decays = !(qdelay == 0 && backlog != 0);
        let delta = self.delta(qdelay, qdelay_old);
        let before = self.prob;
        self.prob = before.wrapping_add_signed(delta);
        if delta > 0 && self.prob < before {
            (self.prob, decays) = (MAX_PROB, false);
        } else if delta <= 0 && self.prob > before {
            self.prob = 0;
        }
        if qdelay == 0 && qdelay_old == 0 && decays {
            self.prob -= self.prob / 64;
        }
        self.qdelay = qdelay;
        let short = |delay: u64| delay < self.target / 2;
        let measured = !self.estimates_rate || self.avg_dq_rate > 0;
        if short(self.qdelay) && short(self.qdelay_old) && self.prob == 0 && measured {
            (self.burst_time, self.dq_tstamp, self.dq_count) = (self.max_burst, None, None);
            (self.accu_prob, self.avg_dq_rate) = (0, 0);
        }
        if !self.estimates_rate {
            self.qdelay_old = qdelay;
        }
    }

    /// Returns the change of the probability.
    fn delta(&self, qdelay: u64, qdelay_old: u64) -> i64 {
        let (alpha, beta) = self.scaled_gains();
        let error = alpha.wrapping_mul(qdelay.wrapping_sub(self.target));
        let change = beta.wrapping_mul(qdelay.wrapping_sub(qdelay_old));
        let mut delta = error.wrapping_add(change).cast_signed();
        if delta > (MAX_PROB / 50).cast_signed() && self.prob >= MAX_PROB / 10 {
            delta = (MAX_PROB / 100 * 2).cast_signed();
        }
        if qdelay > LONG_DELAY {
            delta = delta.wrapping_add((MAX_PROB / 50).cast_signed());
        }
        delta
    }

    /// Gains of delay and change of delay, per unit of time, scaled down if the probability is low.
    fn scaled_gains(&self) -> (u64, u64) {
        let gain = |sixteenths: u64| (sixteenths * (MAX_PROB / PER_SECOND)) >> 4;
        let (mut alpha, mut beta) = (gain(self.gains.0), gain(self.gains.1));
        if self.prob < MAX_PROB / 10 {
            (alpha, beta) = (alpha >> 1, beta >> 1);
            let mut power = 100;
            while power <= 1_000_000 && self.prob < MAX_PROB / power {
                (alpha, beta, power) = (alpha >> 2, beta >> 2, power * 10);
            }
        }
        (alpha, beta)
    }

    /// Returns the verdict on an arrival.
    pub(super) fn on_arrival(
        &mut self,
        context: &mut Context<'_>,
        line: &QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        if !self.hits(context, line, packet.len) {
            return Verdict::Pass;
        }
        if self.ecn && packet.ecn.capable() && self.prob <= self.ecn_most {
            return Verdict::Signal;
        }
        self.accu_prob = 0;
        Verdict::Drop
    }

    /// True if an arrival of `len` bytes is to be dropped or marked.
    fn hits(&mut self, context: &mut Context<'_>, line: &QueueView<'_>, len: u32) -> bool {
        let quiet = self.qdelay < self.target / 2 && self.prob < MAX_PROB / 5;
        if self.burst_time > 0 || quiet || line.bytes() < 2 * self.mtu {
            return false;
        }
        let len = u64::from(len);
        let scaled = self.byte_mode && len <= self.mtu;
        let p = if scaled { len * (self.prob / self.mtu) } else { self.prob };
        self.accu_prob = if p == 0 { 0 } else { self.accu_prob.wrapping_add(p) };
        if self.accu_prob < MAX_PROB / 100 * 85 {
            return false;
        }
        if self.accu_prob >= MAX_PROB / 2 * 17 {
            return true;
        }
        let hit = context.rng.bernoulli(p as f64 / MAX_PROB as f64);
        if hit {
            self.accu_prob = 0;
        }
        hit
    }

    /// Handles the departure of a packet that arrived at `arrived`, has `len` bytes and leaves
    /// `backlog` bytes behind.
    pub(super) fn on_departure(&mut self, now: Time, arrived: Time, len: u32, backlog: u64) {
        let now = now.0 >> SHIFT;
        if !self.estimates_rate {
            self.qdelay = if backlog == 0 { 0 } else { now - (arrived.0 >> SHIFT) };
            let since = self.dq_tstamp.replace(now).map_or(0, |last| now - last);
            self.burst_time = self.burst_time.saturating_sub(since);
            return;
        }
        if backlog >= QUEUE_THRESHOLD && self.dq_count.is_none() {
            (self.dq_tstamp, self.dq_count) = (Some(now), Some(0));
        }
        let Some(count) = &mut self.dq_count else { return };
        *count += u64::from(len);
        let took = now - self.dq_tstamp.unwrap_or(now);
        if *count < QUEUE_THRESHOLD || took == 0 {
            return;
        }
        let rate = cast::low32(((*count << RATE_SHIFT) & u64::from(u32::MAX)) / took);
        let old = self.avg_dq_rate;
        self.avg_dq_rate = if old == 0 { rate } else { old - (old >> 3) + (rate >> 3) };
        if backlog < QUEUE_THRESHOLD {
            self.dq_count = None;
        } else {
            (self.dq_count, self.dq_tstamp) = (Some(0), Some(now));
        }
        self.burst_time = self.burst_time.saturating_sub(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fifo::SingleFifo;
    use crate::packet::Ecn;
    use crate::params::{Params, Setting};
    use std::prelude::v1::*;

    fn pie(settings: &[(&str, &str)]) -> LinuxPie {
        let mut params = PieParams::default();
        settings.iter().for_each(|(k, v)| params.set(k, Setting::Text(v)).unwrap());
        LinuxPie::new(&params, false)
    }

    #[test]
    fn many_updates_are_those_one_by_one() {
        let probabilities = [0, 1, MAX_PROB / 300_000, MAX_PROB / 70, MAX_PROB / 2, MAX_PROB];
        for settings in [&[][..], &[("alpha", "0.0625")], &[("alpha", "2"), ("target", "1ms")]] {
            for delay_ms in [0, 1, 14, 15, 16, 40, 249, 251, 900] {
                for (prob, backlog) in probabilities.into_iter().flat_map(|p| [(p, 0), (p, 5000)]) {
                    let start = || {
                        let mut pie = pie(settings);
                        (pie.prob, pie.qdelay) = (prob, units(Span::ms(delay_ms)));
                        pie
                    };
                    for n in [1, 2, 3, 50, 20_000] {
                        let (mut once, mut singly) = (start(), start());
                        once.update_often(n, backlog);
                        (0..n).for_each(|_| singly.update(cast::low32(backlog)));
                        let shown = |p: &LinuxPie| (p.prob, p.qdelay, p.qdelay_old, p.burst_time);
                        assert_eq!(shown(&once), shown(&singly), "{n} at {delay_ms} ms, {prob}");
                    }
                }
            }
        }
    }

    #[test]
    fn any_number_of_updates_ends() {
        for (delay, prob) in [(Span::ms(900), 0), (Span::us(15_001), MAX_PROB), (Span::ZERO, 1)] {
            for backlog in [0, 1500] {
                let mut pie = pie(&[("alpha", "0.0625"), ("beta", "0")]);
                (pie.qdelay, pie.prob) = (units(delay), prob);
                pie.update_often(u64::MAX, backlog);
            }
        }
    }

    #[test]
    fn a_leap_from_a_bound_of_the_gains_ends_below_the_next() {
        // 16 ms are 15,625 units above the target; alpha is 2/16, halved below a tenth.
        let step = ((2 * (MAX_PROB / PER_SECOND)) >> 5) * 15_625;
        let mut pie = pie(&[]);
        (pie.prob, pie.qdelay) = (MAX_PROB / 100, units(Span::ms(16)));
        let k = pie.leap(u64::MAX);
        assert_eq!(k, (MAX_PROB / 10 - 1 - MAX_PROB / 100) / step);
        assert_eq!(pie.prob, MAX_PROB / 100 + k * step);
    }

    #[test]
    fn gauges_are_in_seconds_and_shares() {
        let mut pie = pie(&[]);
        (pie.qdelay_old, pie.burst_time) = (100, 3);
        (pie.accu_prob, pie.avg_dq_rate) = (MAX_PROB / 4, 512);
        assert_eq!((pie.qdelay_old(), pie.burst()), (Span(6400), Span(192)));
        assert!((pie.accu() - 0.25).abs() < 1e-9);
        // Two bytes per 64 ns.
        assert_eq!(pie.dq_rate(), 31_250_000.0);
        pie.on_drop();
        assert_eq!(pie.accu_prob, 0);
    }

    #[test]
    fn gains_are_halved_below_a_tenth_and_quartered_with_each_further_digit() {
        // 2/16 and 20/16 of 2^56 per second.
        let (alpha, beta) = (576_460_752, 5_764_607_522);
        for (prob, digits) in [
            (MAX_PROB / 10, 0),
            (MAX_PROB / 10 - 1, 1),
            (MAX_PROB / 100, 1),
            (MAX_PROB / 100 - 1, 3),
            (MAX_PROB / 1000, 3),
            (MAX_PROB / 1_000_000, 9),
            (MAX_PROB / 1_000_000 - 1, 11),
            (0, 11),
        ] {
            let mut pie = pie(&[]);
            pie.prob = prob;
            assert_eq!(pie.scaled_gains(), (alpha >> digits, beta >> digits), "{prob}");
        }
    }

    #[test]
    fn a_delay_above_250_ms_adds_two_percent() {
        let pie = pie(&[("alpha", "0"), ("beta", "0")]);
        let step = |us| pie.delta(units(Span::us(us)), 0);
        assert_eq!((step(250_000), step(250_001)), (0, (MAX_PROB / 50).cast_signed()));
    }

    #[test]
    fn the_burst_allowance_is_restored_below_half_the_target_once_the_rate_is_known() {
        // The target is 234,375 units.
        for (old, delay, prob, restored) in [
            (117_186, 117_186, 0, true),
            (117_187, 117_186, 0, false),
            (117_186, 117_187, 0, false),
            (117_186, 117_186, 1, false),
        ] {
            let mut pie = pie(&[("alpha", "0"), ("beta", "0")]);
            (pie.burst_time, pie.prob, pie.qdelay_old, pie.qdelay) = (5, prob, old, delay);
            pie.update(1000);
            assert_eq!(pie.burst_time, if restored { 2_343_750 } else { 5 }, "{old} {delay}");
        }
        for (rate, burst) in [(0, 5), (256, 2_343_750)] {
            let mut pie = pie(&[("latency", "rate")]);
            (pie.burst_time, pie.avg_dq_rate) = (5, rate);
            pie.update(0);
            assert_eq!(pie.burst_time, burst, "{rate}");
        }
    }

    struct Shown(f64);

    impl crate::Random for Shown {
        fn uniform(&mut self) -> f64 {
            self.0
        }
    }

    /// Verdict on a packet that arrives at `backlog` bytes, if the random number is `u`.
    fn verdict(pie: &mut LinuxPie, backlog: u32, u: f64, ecn: Ecn) -> Verdict {
        let mut fifo = SingleFifo::default();
        fifo.push(Packet { len: backlog, ..Packet::default() });
        let line = QueueView::single(&mut fifo);
        let (mut rng, mut lost, mut marks) = (Shown(u), vec![], crate::Marks::default());
        let now = Time::ZERO;
        let mut context = Context { now, rng: &mut rng, lost: &mut lost, marks: &mut marks };
        pie.on_arrival(&mut context, &line, &Packet { len: 500, ecn, ..Packet::default() })
    }

    /// A queue with a delay of the target, without a burst allowance, about to drop.
    fn late(prob: u64) -> LinuxPie {
        let mut pie = pie(&[]);
        (pie.prob, pie.qdelay, pie.burst_time) = (prob, pie.target, 0);
        pie.accu_prob = MAX_PROB;
        pie
    }

    #[test]
    fn packets_are_marked_up_to_a_chance_if_both_ends_can() {
        let most = MAX_PROB / 100 * 10;
        for (on, ecn, prob, expected) in [
            (true, Ecn::Ect0, most, Verdict::Signal),
            (true, Ecn::Ect0, most + 1, Verdict::Drop),
            (true, Ecn::NotEct, most, Verdict::Drop),
            (false, Ecn::Ect0, most, Verdict::Drop),
        ] {
            let mut pie = late(prob);
            pie.ecn = on;
            assert_eq!(verdict(&mut pie, 10_000, 0.0, ecn), expected, "{on} {ecn:?} {prob}");
        }
    }

    #[test]
    fn nothing_is_dropped_in_a_burst_a_short_queue_or_while_delay_and_probability_are_low() {
        let fifth = MAX_PROB / 5;
        for (prob, delay, burst, backlog, expected) in [
            (fifth - 1, 117_187, 0, 3000, Verdict::Drop),
            (fifth - 1, 117_186, 0, 3000, Verdict::Pass),
            (fifth, 117_186, 0, 3000, Verdict::Drop),
            (fifth, 117_187, 1, 3000, Verdict::Pass),
            (fifth, 117_187, 0, 2999, Verdict::Pass),
        ] {
            let mut pie = late(prob);
            (pie.qdelay, pie.burst_time, pie.mtu) = (delay, burst, 1500);
            assert_eq!(verdict(&mut pie, backlog, 0.0, Ecn::NotEct), expected, "{prob} {delay}");
        }
    }

    #[test]
    fn the_sum_of_the_chances_keeps_drops_apart() {
        let p = MAX_PROB / 4;
        let (first, last) = (MAX_PROB / 100 * 85, MAX_PROB / 2 * 17);
        for (sum, u, expected) in [
            (first - 1, 0.0, Verdict::Pass),
            (first, 0.0, Verdict::Drop),
            (last - 1, 0.9, Verdict::Pass),
            (last, 0.9, Verdict::Drop),
        ] {
            let mut pie = late(p);
            pie.accu_prob = sum - p;
            assert_eq!(verdict(&mut pie, 10_000, u, Ecn::NotEct), expected, "{sum}");
        }
    }

    #[test]
    fn the_time_between_departures_uses_the_burst_allowance_up() {
        let mut pie = pie(&[]);
        pie.burst_time = 1000;
        let mut leave = |at: u64| {
            pie.on_departure(Time(at << SHIFT), Time(0), 1000, 5000);
            (pie.burst_time, pie.qdelay)
        };
        assert_eq!([leave(200), leave(300), leave(2000)], [(1000, 200), (900, 300), (0, 2000)]);
    }

    #[test]
    fn the_rate_is_measured_over_16384_bytes() {
        let mut pie = pie(&[("latency", "rate")]);
        pie.burst_time = 1000;
        let mut leave = |at: u64, len, backlog| {
            pie.on_departure(Time(at << SHIFT), Time(0), len, backlog);
            (pie.avg_dq_rate, pie.dq_count, pie.burst_time)
        };
        assert_eq!(leave(50, 8192, 16_383), (0, None, 1000));
        assert_eq!(leave(100, 8192, 16_384), (0, Some(8192), 1000));
        // 16,384 bytes in 100 units, and 256 units of rate per byte.
        assert_eq!(leave(200, 8192, 16_384), (41_943, Some(0), 900));
        assert_eq!(leave(250, 16_383, 16_384), (41_943, Some(16_383), 900));
        // An eighth of 16,384 * 256 / 100 again, and of the old average.
        assert_eq!(leave(300, 1, 16_383), (41_943, None, 800));
    }
}
