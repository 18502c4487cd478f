//! ARED: adaptive RED, which adapts max_p to keep the average between the thresholds.
//!
//! **Source** S. Floyd, R. Gummadi, S. Shenker, "Adaptive RED: An Algorithm for Increasing the
//! Robustness of RED's Active Queue Management", 2001.
//!
//! **Decides** on arrival, as RED.
//!
//! **Measures** RED's average of the queue.
//!
//! **Symbols** as in RED; `alpha`, `beta`, `interval`, `target_delay`, `Cp` (link rate in packets
//! per second).
//!
//! **Algorithm** Gentle RED with an adaptive max_p. The first arrival more than `interval` after
//! the last change (initially: after the first arrival) adapts it. With d = max_th - min_th: if avg
//! < min_th + 0.4 d, max_p is multiplied by `beta`; if avg > max_th - 0.4 d, it grows by `alpha`,
//! or by a quarter of itself if that is less. Defaults follow from the link: w_q = 1 - exp(-1/Cp),
//! min_th = max(5, target_delay Cp/2) packets, max_th = 3 min_th.
//!
//! **Departures** (1) `top` is checked before a step up and `bottom` before a step down, as in
//! every implementation we know. So max_p can end one step outside these bounds, but never above 1.
//! (2) The slope above max_th follows max_p, unless `stale_gentle` is set. In ns-2 it keeps the
//! initial max_p, and the drop probability jumps at max_th.
//!
//! **Linux** With `variant = "linux"`, as `sch_red` with the flag `adaptive`: (1) RED as in Linux.
//! (2) A timer adapts max_p every `interval`, also in idle times, towards an average in the middle
//! fifth between the thresholds: by up to 1 %, or to nine tenths, while max_p is between 1 % and 50
//! %. `alpha`, `beta`, `bottom`, `top`, `gentle` and `stale_gentle` have no effect. (3) Linux's
//! timers are late by up to eight ticks, those here are not. Since Linux 5.11 the flag as iproute2
//! sends it has no effect: the algorithm is then `red`.
//!
//! **Cost** 264 bytes of state; as RED, plus a comparison of times per arrival.

use super::SingleQueue;
use super::red::{Red, RedParams, Tune, Tuned, one_unit};
use crate::build::Env;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::params::{Checked, Combined};
use crate::snapshot::Snapshot;
use crate::units::{Rate, Size, Span, Time};
use alloc::format;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Tuned<Ared>>>(
    "ared",
    "adaptive RED: adapts max_p to keep the average queue between the thresholds",
)
.aliases(&["adaptive_red"])
.preset(&[("gentle", "two_max_th")])
.decides("on arrival: RED's drop probability; max_p changes every half second at most")
.source("Floyd, Gummadi and Shenker, 2001");

crate::params! {
    /// Parameters of [`Ared`], in addition to RED's; `auto` is computed from the link.
    pub struct AredParams {
        /// Average queue below which no packet is dropped; auto is half of target_delay times the
        /// link rate, at least 5 packets.
        min_th: Option<Size> = None,
            [Size::Packets(0) => Size::Packets(1_000_000_000_000)],
            "min_th", ["minth", "min", "thresh"];
        /// Average queue above which the drop probability rises faster; auto is three times min_th.
        max_th: Option<Size> = None,
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)],
            "max_th", ["maxth", "max", "maxthresh"];
        /// Weight of one arrival in the average; auto gives the average a time constant of one
        /// second.
        w_q: Option<f64> = None, [1e-9 => 1.0],
            "w_q", ["wq", "weight", "q_weight"];
        /// Queueing delay from which min_th auto is computed.
        target_delay: Span = Span::ms(5), [Span::us(1) => Span::s(10)],
            "target", ["targetdelay", "target"];
        /// Minimum time between two changes of max_p.
        interval: Span = Span::ms(500), [Span::us(1) => Span::s(100)], "interval", [];
        /// Largest increase of max_p in one step.
        alpha: f64 = 0.01, [1e-4 => 1.0], "alpha", [];
        /// Factor by which max_p decreases in one step.
        beta: f64 = 0.9, [0.01 => 0.99], "beta", [];
        /// Lower bound: max_p decreases only while it is above this; auto is 0.01 or, on a fast
        /// link, 1 / (number of 1000 B packets that it sends in 100 ms), as in ns-2 since 2004.
        bottom: Option<f64> = Some(0.01), [1e-6 => 1.0], "bottom", [];
        /// Upper bound: max_p increases only while it is below this.
        top: f64 = 0.5, [1e-4 => 1.0], "top", [];
        /// True if the gentle slope keeps the initial max_p, as in ns-2.
        stale_gentle: bool = false, [], "", [];
    }
}

/// Step of max_p up or down, shared with SA-RED.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct Step {
    pub alpha: f64,
    pub beta: f64,
    pub bottom: f64,
    pub top: f64,
}

impl Step {
    /// Checks that the range of max_p is not empty.
    pub fn checked(self) -> Result<Step> {
        let Step { bottom, top, .. } = self;
        if bottom < top {
            return Ok(self);
        }
        Err(Error::new(format!("{top} is not above bottom ({bottom})")).at("top"))
    }

    /// Returns `max_p` after a step that moves `avg` towards the band `[low, high]`, or `None` if
    /// no step is due.
    pub fn from(&self, max_p: f64, avg: f64, [low, high]: [f64; 2]) -> Option<f64> {
        if avg < low && max_p > self.bottom {
            Some(max_p * self.beta)
        } else if avg > high && max_p < self.top {
            Some((max_p + self.alpha.min(max_p / 4.0)).min(1.0))
        } else {
            None
        }
    }
}

/// Target band of the average: the middle fifth between the thresholds.
pub(super) fn target_band(red: &Red) -> [f64; 2] {
    let part = 0.4 * (red.max_th - red.min_th);
    [red.min_th + part, red.max_th - part]
}

/// State of ARED, in addition to RED's.
#[derive(Clone, Debug, Snapshot)]
pub struct Ared {
    step: Step,
    interval: Span,
    stale_gentle: bool,
    /// Time after which max_p may change, in Linux the time of the next update; never before the
    /// first arrival.
    locked: Time,
}

/// Least max_p for `bottom = auto`.
fn bottom_auto(rate: Rate) -> f64 {
    (80_000.0 / rate.0.max(1) as f64).min(0.01)
}

impl Tune for Ared {
    type Params = Combined<AredParams, RedParams>;

    fn tuned(params: Checked<'_, Self::Params>, env: &Env) -> Result<Tuned<Self>> {
        let own = &params.outer;
        // Cp. A link of rate 0 has no automatic settings, but must not cause a division by zero.
        let per_second = env.rate.packets_per_sec(params.inner.packet).max(1e-9);
        if let (Some(min_th), Some(max_th)) = (own.min_th, own.max_th) {
            one_unit(min_th, max_th)?;
        }
        let in_bytes = own.min_th.or(own.max_th).is_some_and(Size::in_bytes);
        let unit = if in_bytes { params.inner.packet.0 as f64 } else { 1.0 };
        let number = |th: Option<Size>| th.map(|th| th.number() as f64);
        let auto = (own.target_delay.as_secs() * per_second / 2.0).max(5.0) * unit;
        let min_th = number(own.min_th).unwrap_or(auto);
        let max_th = number(own.max_th).unwrap_or(3.0 * min_th);
        let w_q = own.w_q.unwrap_or(-libm::expm1(-1.0 / per_second));
        let AredParams { alpha, beta, top, interval, stale_gentle, .. } = *own;
        let bottom = own.bottom.unwrap_or(bottom_auto(env.rate));
        let red = RedParams { w_q, ..params.inner.clone() };
        let red = Red::with(&red, [min_th, max_th], in_bytes, env)?;
        let step = Step { alpha, beta, bottom, top }.checked()?;
        let locked = env.first_update.unwrap_or(Time::NEVER);
        Ok(Tuned { red, tuner: Ared { step, interval, stale_gentle, locked } })
    }

    fn on_first_packet(&mut self, now: Time) {
        if self.locked == Time::NEVER {
            self.locked = now + self.interval;
        }
    }

    fn on_update(&mut self, now: Time, _line: &QueueView<'_>, red: &mut Red) {
        let Some(linux) = &mut red.linux else { return };
        while self.locked <= now {
            let steady = linux.adapt(self.locked);
            let due = (now - self.locked).0 / self.interval.0;
            self.locked += Span(self.interval.0 * if steady { due + 1 } else { 1 });
        }
    }

    fn on_average(&mut self, now: Time, red: &mut Red) {
        if now <= self.locked || red.linux.is_some() {
            return;
        }
        if let Some(max_p) = self.step.from(red.max_p, red.avg, target_band(red)) {
            red.max_p = max_p;
            if !self.stale_gentle {
                red.gentle_max_p = max_p;
            }
            self.locked = now + self.interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::Aqm;
    use crate::params::{Params, Setting};
    use crate::testing::Bench;
    use std::prelude::v1::*;

    fn build(rate: Rate, settings: &[(&str, &str)]) -> crate::Result<Tuned<Ared>> {
        let mut p = Combined::<AredParams, RedParams>::default();
        settings.iter().for_each(|(k, v)| p.set(k, Setting::Text(v)).unwrap());
        Tuned::<Ared>::build(&p, &Env { limit: Size::Packets(60), ..Env::new(rate) })
    }

    /// On a link of 8 mbit, the first packet at time 0.
    fn aqm(settings: &[(&str, &str)]) -> Tuned<Ared> {
        let mut aqm = build(Rate(8_000_000), settings).unwrap();
        aqm.tuner.on_first_packet(Time::ZERO);
        aqm
    }

    /// max_p when the average is `avg` at `ms`.
    fn at(aqm: &mut Tuned<Ared>, ms: u64, avg: f64) -> f64 {
        aqm.red.avg = avg;
        aqm.tuner.on_average(Time::ZERO + Span::ms(ms), &mut aqm.red);
        aqm.red.max_p
    }

    /// The thresholds and the weight.
    fn worked_out(rate: Rate, settings: &[(&str, &str)]) -> [f64; 3] {
        let Red { min_th, max_th, w_q, .. } = build(rate, settings).unwrap().red;
        [min_th, max_th, w_q]
    }

    #[test]
    fn what_is_not_given_follows_from_the_link() {
        // 1000 B at 1 gbit: 125,000 per second, 625 in 5 ms, half of them min_th; w_q is
        // 1 / 125,000 = 8e-6.
        let [min_th, max_th, w_q] = worked_out(Rate(1_000_000_000), &[("packet", "1000B")]);
        assert_eq!((min_th, max_th), (312.5, 937.5));
        assert!((w_q - 8e-6).abs() < 4e-11, "{w_q}");
        // At 1 mbit a packet takes longer than the target: five of them.
        let slow = worked_out(Rate(1_000_000), &[("packet", "1000B")]);
        assert_eq!(slow[..2], [5.0, 15.0]);
        assert!((slow[2] - 0.007_968).abs() < 1e-6, "1 - exp(-1/125)");
        // A threshold that is set stays, and sets the unit.
        let bytes = [("packet", "1000B"), ("max_th", "900kB"), ("w_q", "0.01")];
        assert_eq!(worked_out(Rate(1_000_000_000), &bytes), [312_500.0, 900_000.0, 0.01]);
        let low = [("packet", "1000B"), ("min_th", "7p"), ("target_delay", "1ms")];
        assert_eq!(worked_out(Rate(1_000_000_000), &low)[..2], [7.0, 21.0]);
        let delay = [("packet", "1000B"), ("target_delay", "1ms")];
        assert_eq!(worked_out(Rate(1_000_000_000), &delay)[..2], [62.5, 187.5]);
    }

    #[test]
    fn bottom_auto_is_a_packet_in_a_tenth_of_a_second() {
        assert_eq!(bottom_auto(Rate(1_000_000)), 0.01);
        assert_eq!(bottom_auto(Rate(80_000_000)), 0.001);
        assert_eq!(aqm(&[("bottom", "auto")]).tuner.step.bottom, 0.01);
        assert_eq!(aqm(&[]).tuner.step.bottom, 0.01, "as in the paper");
    }

    #[test]
    fn max_p_steps_towards_the_middle_fifth() {
        // The middle fifth of 5 to 15 is 9 to 11. Nothing before half a second has gone by.
        let mut a = aqm(&[]);
        assert_eq!(at(&mut a, 500, 20.0), 0.1);
        assert_eq!(at(&mut a, 501, 20.0), 0.1 + 0.01);
        assert_eq!(at(&mut a, 1001, 20.0), 0.11);
        assert_eq!(at(&mut a, 1002, 8.9), 0.11 * 0.9);
        // The clock starts anew only where max_p moves: inside the band time goes by.
        assert_eq!(at(&mut a, 3000, 9.0), 0.11 * 0.9);
        assert_eq!(at(&mut a, 3001, 11.0), 0.11 * 0.9);
        assert_eq!(at(&mut a, 3002, 8.0), 0.11 * 0.9 * 0.9);
        // A small max_p grows by a quarter of itself.
        let mut a = aqm(&[("max_p", "0.02")]);
        assert_eq!(at(&mut a, 1000, 14.0), 0.025);
    }

    #[test]
    fn max_p_may_end_one_step_outside_its_range() {
        let mut a = aqm(&[("max_p", "0.499")]);
        assert_eq!(at(&mut a, 1000, 14.0), 0.499 + 0.01);
        assert_eq!(at(&mut a, 2000, 14.0), 0.509, "above top it stays");
        let mut a = aqm(&[("max_p", "0.0101")]);
        assert_eq!(at(&mut a, 1000, 6.0), 0.0101 * 0.9);
        assert_eq!(at(&mut a, 2000, 6.0), 0.0101 * 0.9, "below bottom it stays");
        let mut a = aqm(&[("max_p", "0.95"), ("top", "1"), ("alpha", "1")]);
        assert_eq!(at(&mut a, 1000, 14.0), 1.0);
    }

    #[test]
    fn max_p_does_not_leave_its_range_from_a_bound() {
        let mut a = aqm(&[("max_p", "0.01")]);
        assert_eq!(at(&mut a, 1000, 6.0), 0.01);
        let mut a = aqm(&[("max_p", "0.5")]);
        assert_eq!(at(&mut a, 1000, 14.0), 0.5);
    }

    #[test]
    fn the_gentle_slope_follows_max_p_unless_stale() {
        for (stale, expected) in [("false", 0.11), ("true", 0.1)] {
            let mut a = aqm(&[("stale_gentle", stale)]);
            at(&mut a, 1000, 14.0);
            assert_eq!((a.red.max_p, a.red.gentle_max_p), (0.11, expected), "{stale}");
        }
    }

    #[test]
    fn arrivals_move_max_p_and_a_day_of_idle_moves_it_once() {
        let mut q = Bench::new("ared", &[("w_q", "1"), ("min_th", "2p"), ("max_th", "6p")]);
        for i in 0..12 {
            q.put(i, 1000);
        }
        assert_eq!(q.gauge("max_p"), 0.1, "all at time zero");
        q.at_ms(501);
        q.put(12, 1000);
        assert_eq!(q.gauge("max_p"), 0.11);
        q.drain();
        q.at_ms(86_400_000);
        q.put(13, 1000);
        assert_eq!((q.gauge("max_p"), q.gauge("avg")), (0.11 * 0.9, 0.0));
    }

    #[test]
    fn contradictions_are_refused() {
        let refusal = |settings: &[(&str, &str)]| {
            build(Rate(8_000_000), settings).expect_err("a refusal").to_string()
        };
        assert!(refusal(&[("max_th", "5p")]).starts_with("max_th: 5p is not above min_th (5p)"));
        assert!(refusal(&[("min_th", "5p"), ("max_th", "9kB")]).contains("another unit"));
        assert!(refusal(&[("bottom", "0.6")]).starts_with("top: 0.5 is not above bottom (0.6)"));
        assert!(refusal(&[("gentle", "buffer"), ("max_th", "60p")]).starts_with("gentle:"));
    }

    /// RED's, and seen with ns-2's ARED: a burst leaves the average far above the thresholds over
    /// an empty queue. Packets that find one at most, and the first after them, get through.
    #[test]
    fn a_short_queue_is_spared_where_that_is_asked_for() {
        for (spare, expected) in [("false", [1, 1, 1, 1]), ("true", [0, 0, 0, 1])] {
            let settings = [("spare_short", spare), ("w_q", "0.01"), ("min_th", "20p")];
            let mut q = Bench::new("red", &[&settings[..], &[("max_th", "21p")]].concat());
            (0..400).for_each(|i| drop(q.put(i, 1000)));
            q.drain();
            assert!(q.gauge("avg") > 40.0);
            assert_eq!([0, 1, 2, 3].map(|i| q.put(i, 1000).len()), expected, "{spare}");
        }
    }

    /// RED's, as in ns-2: the first arrival that could be signalled is spared, and counts.
    #[test]
    fn the_arrival_that_is_spared_counts() {
        let settings = [("spare_short", "true"), ("w_q", "0.01"), ("min_th", "20p")];
        let mut q = Bench::new("red", &[&settings[..], &[("max_th", "21p")]].concat());
        (0..400).for_each(|i| drop(q.put(i, 1000)));
        q.drain();
        assert_eq!([0, 1, 2].map(|i| (q.put(i, 1000), q.gauge("count")).1), [-1.0, -1.0, 1.0]);
    }

    /// RED's.
    #[test]
    fn byte_mode_mean_lets_small_packets_by_after_a_certain_signal() {
        let certain = [("w_q", "1"), ("min_th", "1p"), ("max_th", "2p"), ("wait", "yes")];
        for (mode, expected) in [("off", [1, 1, 1, 1]), ("mean", [1, 0, 0, 1])] {
            let mut q = Bench::new("red", &[&certain[..], &[("byte_mode", mode)]].concat());
            (0..4).for_each(|i| drop(q.put(i, 500)));
            let sizes = [(5, 500), (6, 200), (7, 200), (8, 200)];
            assert_eq!(sizes.map(|(i, len)| q.put(i, len).len()), expected, "{mode}");
        }
    }
}
