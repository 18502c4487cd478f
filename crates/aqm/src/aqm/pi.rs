//! PI: proportional integral controller of the queue length.
//!
//! **Source** C. Hollot, V. Misra, D. Towsley, W. Gong, "On Designing Improved Controllers for AQM
//! Routers Supporting TCP Flows", INFOCOM 2001.
//!
//! **Decides** on arrival.
//!
//! **Measures** the queue, `w` times a second, in packets. With `q_ref` in bytes it measures bytes
//! and converts them to packets of `packet` bytes.
//!
//! **Symbols** `a`, `b`, `w`, `q_ref`, `p`, `q_old`; `flows` is the paper's N-, `rtt` its R+,
//! `beta` the crossover frequency times R+.
//!
//! **Algorithm** Every 1/`w` seconds `p += a (q - q_ref) - b (q_old - q_ref)`, limited to [0, 1].
//! Each arrival is dropped with probability `p`. With `flows` and `rtt` the gains are computed as
//! in the paper: the controller's zero cancels the pole of the window of `flows` flows at `rtt`,
//! the loop gain is 1 at that pole (or at `beta / rtt`), and the bilinear transform yields `a` and
//! `b`.
//!
//! **Departures** (1) Samples count from the first arrival: the first one is taken 1/`w` later. At
//! the same instant a sample comes before an arrival or a departure. (2) Several samples of a
//! constant queue are computed in one step: a product replaces the sum of equal terms, and may
//! differ from it in the last bits. (3) A design without phase margin is rejected. (4) The random
//! number is drawn even if the buffer turns out to be full.
//!
//! **Cost** 160 bytes of state; a random number per arrival; O(1) after any idle time.

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::timer::{Period, Timer};
use crate::units::{Bytes, Size, Span, Time};
use alloc::format;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Pi>>(
    "pi",
    "proportional integral controller of the queue length",
)
.aliases(&["pic"])
.decides("on arrival: a drop probability that integrates the deviation of the queue from q_ref")
.source("Hollot, Misra, Towsley and Gong, INFOCOM 2001");

crate::params! {
    /// Parameters of [`Pi`].
    pub struct PiParams {
        /// Gain of the current sample, per packet; auto is computed from flows and rtt or, without
        /// these, the paper's value (0.00001822: 60 flows, 246 ms, 3750 packets per second).
        a: Option<f64> = None, [1e-15 => 1.0], "a", [];
        /// Gain of the previous sample, per packet; auto as for a (0.00001816).
        b: Option<f64> = None, [1e-15 => 1.0], "b", [];
        /// Samples per second.
        w: f64 = 170.0, [0.1 => 1_000_000.0], "f_s", ["frequency", "hz"];
        /// Reference of the queue. Its unit, packets or bytes, is that in which the queue is
        /// measured.
        q_ref: Size = Size::Packets(50),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "q_ref", ["qref"];
        /// For computing the gains: smallest number of long flows.
        flows: Option<f64> = None, [0.01 => 1e9], "N-", ["n_min"];
        /// For computing the gains: largest round-trip time, including the queueing delay at q_ref.
        rtt: Option<Span> = None, [Span::us(1) => Span::s(100)], "R+", ["rtt_max"];
        /// For computing the gains: crossover frequency times rtt; auto is the pole of the window.
        beta: Option<f64> = None, [0.001 => 0.86], "beta", [];
        /// Mean packet size, for the link rate in packets, a queue in bytes, and byte_mode.
        packet: Bytes = Bytes(500),
            [Bytes(1) => Bytes(1_000_000)], "s", ["mean_packet", "mean_pktsize"];
        /// True if the drop probability is scaled by packet length / packet.
        byte_mode: bool = false, [], "", ["bytes"];
        /// Initial drop probability.
        p_init: f64 = 0.0, [0.0 => 1.0], "", ["initial_p"];
    }
}

/// Gains as printed (rounded) in the paper, and the crossover for which they were designed.
const PAPER: Gains = Gains { a: 1.822e-5, b: 1.816e-5, crossover: 0.13 };

/// Crossover times rtt at which the phase margin is 0: 90 degrees = x + atan(x).
const NO_MARGIN: f64 = 0.860_333_589;

/// Gains of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
pub(super) struct Gains {
    pub a: f64,
    pub b: f64,
    /// Crossover frequency times the largest round-trip time.
    pub crossover: f64,
}

/// Returns the gains, given or computed, and true if the crossover follows from a design.
pub(super) fn gains(params: &PiParams, env: &Env) -> Result<(Gains, bool)> {
    let PiParams { a, b, w, flows, rtt, beta, packet, .. } = *params;
    let design = match (flows, rtt) {
        (Some(flows), Some(rtt)) => {
            let cp = env.rate.packets_per_sec(packet);
            Some(design(flows, rtt.as_secs(), cp, w, beta)?)
        }
        (None, Some(_)) => return Err(Error::new("is required if rtt is given").at("flows")),
        (Some(_), None) => return Err(Error::new("is required if flows is given").at("rtt")),
        (None, None) => None,
    };
    let gains = match (a, b) {
        (None, None) => return Ok((design.unwrap_or(PAPER), true)),
        (Some(_), None) => return Err(Error::new("is required if a is given").at("b")),
        (None, Some(_)) => return Err(Error::new("is required if b is given").at("a")),
        (Some(a), Some(b)) => Gains { a, b, crossover: design.map_or(0.0, |d| d.crossover) },
    };
    if gains.a <= gains.b {
        let text = format!("{} is not above b ({}): p would never rise", gains.a, gains.b);
        return Err(Error::new(text).at("a"));
    }
    Ok((gains, design.is_some()))
}

/// Computes the paper's gains for at least `n` flows of at most `r` seconds over `cp` packets per
/// second.
fn design(n: f64, r: f64, cp: f64, w: f64, beta: Option<f64>) -> Result<Gains> {
    let (window, t) = (2.0 * n / (r * cp), 1.0 / w);
    let z = window / r;
    let crossover = beta.unwrap_or(window);
    // Written so that NaN is rejected as well.
    if !(crossover > 0.0 && crossover < NO_MARGIN) {
        let text = format!("{crossover:.3} (the window's pole) is unstable, allowed: below 0.86");
        return Err(Error::new(text).at("beta"));
    }
    let (pipe, halved) = (r * cp, 2.0 * n);
    let gain = pipe * pipe * pipe / (halved * halved);
    let k = crossover / r * libm::sqrt(1.0 + crossover * crossover) / gain;
    let (a, b) = (k * (1.0 / z + t / 2.0), k * (1.0 / z - t / 2.0));
    if b <= 0.0 {
        let text = format!("{w} samples per second are too few for a zero at {z:.3} rad/s");
        return Err(Error::new(text).at("w"));
    }
    Ok(Gains { a, b, crossover })
}

/// State of PI.
#[derive(Clone, Debug, Snapshot)]
pub struct Pi {
    /// Gains per packet.
    a: f64,
    b: f64,
    /// Reference of the queue, packets.
    q_ref: f64,
    /// True if the queue is measured in bytes.
    in_bytes: bool,
    /// Mean packet size, bytes.
    packet: f64,
    byte_mode: bool,
    /// Drop probability.
    p: f64,
    /// Previous sample of the queue, packets.
    q_old: f64,
    samples: Timer,
}

impl Pi {
    /// Takes the samples that are due at `now`. The gains are multiplied by `factor` of the
    /// distance between the queue and its reference, relative to the reference.
    pub(super) fn sample(&mut self, now: Time, queue: &QueueView<'_>, factor: impl Fn(f64) -> f64) {
        let n = self.samples.due(now);
        if n == 0 {
            return;
        }
        let packets = f64::from(queue.packets());
        let q = if self.in_bytes { queue.bytes() as f64 / self.packet } else { packets };
        let (e, e_old) = (q - self.q_ref, self.q_old - self.q_ref);
        let m = factor(e.abs() / self.q_ref);
        self.p = (self.p + m * (self.a * e - self.b * e_old)).clamp(0.0, 1.0);
        // From the second sample on the queue is unchanged: all steps are equal.
        self.p = (self.p + (n - 1) as f64 * (m * (self.a - self.b) * e)).clamp(0.0, 1.0);
        self.q_old = q;
    }

    /// Returns the drop probability of a packet of `len` bytes.
    fn probability(&self, len: u32) -> f64 {
        let share = if self.byte_mode { f64::from(len) / self.packet } else { 1.0 };
        (self.p * share).min(1.0)
    }
}

impl Aqm for Pi {
    type Params = PiParams;

    fn new(params: Checked<'_, PiParams>, env: &Env) -> Result<Self> {
        let (Gains { a, b, .. }, _) = gains(&params, env)?;
        let PiParams { w, q_ref, packet, byte_mode, p_init: p, .. } = *params;
        let (in_bytes, packet) = (q_ref.in_bytes(), packet.0 as f64);
        let unit = if in_bytes { packet } else { 1.0 };
        let q_ref = q_ref.number() as f64 / unit;
        let samples = Timer::new(env, Period::PerSecond(w));
        Ok(Pi { a, b, q_ref, in_bytes, packet, byte_mode, p, q_old: 0.0, samples })
    }

    // The times of the samples follow from w: it stays.
    fn reconfigure(&mut self, fresh: &Self) -> bool {
        let same =
            fresh.samples.period() == self.samples.period() && fresh.in_bytes == self.in_bytes;
        if same {
            let samples = self.samples.clone();
            *self = Pi { p: self.p, q_old: self.q_old, samples, ..fresh.clone() };
        }
        same
    }

    fn on_first_packet(&mut self, now: Time) {
        self.samples.start(now);
    }

    fn on_update(&mut self, now: Time, queue: &QueueView<'_>) {
        self.sample(now, queue, |_| 1.0);
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        _line: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        if context.rng.bernoulli(self.probability(packet.len)) {
            Verdict::Mark
        } else {
            Verdict::Pass
        }
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("p", self.p);
        visit("q_old", self.q_old);
        // Gain of the current sample, per packet.
        visit("a", self.a);
        // Gain of the previous sample, per packet.
        visit("b", self.b);
    }
}

#[cfg(test)]
mod tests {
    use super::{Aqm, Env, Pi, PiParams};
    use crate::error::Result;
    use crate::params::{Params, Setting};
    use crate::testing::Bench;
    use crate::units::Rate;
    use std::prelude::v1::*;

    fn aqm(rate: u64, settings: &[(&str, &str)]) -> Result<Pi> {
        let mut p = PiParams::default();
        settings.iter().for_each(|(k, v)| p.set(k, Setting::Text(v)).unwrap());
        Pi::build(&p, &Env::new(Rate(rate)))
    }

    /// Equal to six digits.
    fn six(x: f64, y: f64) -> bool {
        (x / y - 1.0).abs() < 5e-6
    }

    #[test]
    fn gains_of_the_published_designs() {
        // Packets of 500 bytes: 3750, 11250 and 2500 per second. The paper prints 1.822e-5 and
        // 1.816e-5 for the first, since it rounds K to 9.64e-6 on the way.
        for (rate, flows, rtt, w, a, b) in [
            (15_000_000, "60", "246ms", "160", 1.85278e-5, 1.84667e-5),
            (45_000_000, "100", "200ms", "160", 3.53040e-6, 3.52061e-6),
            (10_000_000, "30", "100ms", "100", 2.39786e-4, 2.34099e-4),
        ] {
            let pi = aqm(rate, &[("flows", flows), ("rtt", rtt), ("w", w)]).unwrap();
            assert!(six(pi.a, a) && six(pi.b, b), "{} {}", pi.a, pi.b);
        }
        let pi = aqm(15_000_000, &[]).unwrap();
        assert_eq!((pi.a, pi.b), (1.822e-5, 1.816e-5));
        let explicit = [("a", "2e-5"), ("b", "1e-5"), ("flows", "60"), ("rtt", "246ms")];
        let pi = aqm(15_000_000, &explicit).unwrap();
        assert_eq!((pi.a, pi.b), (2e-5, 1e-5), "gains that are given count");
    }

    #[test]
    fn a_slower_crossover_lowers_both_gains_alike() {
        // K goes with x sqrt(1 + x^2), x the crossover: 0.1 in place of 0.44444 * 0.2 = 0.088889.
        let base = [("flows", "100"), ("rtt", "200ms"), ("w", "160")];
        let at_pole = aqm(45_000_000, &base).unwrap();
        let faster = aqm(45_000_000, &[&base[..], &[("beta", "0.1")]].concat()).unwrap();
        let ratio = 0.1 * 1.01f64.sqrt() / (0.088_888_9 * (1.0 + 0.007_901_23f64).sqrt());
        assert!(six(faster.a / at_pole.a, ratio) && six(faster.b / at_pole.b, ratio));
    }

    #[test]
    fn designs_and_gains_that_cannot_be_are_refused() {
        let refusal = |settings: &[(&str, &str)]| aqm(8_000_000, settings).unwrap_err();
        let message = |settings: &[(&str, &str)]| refusal(settings).to_string();
        assert!(message(&[("flows", "10")]).starts_with("rtt:"));
        assert!(message(&[("rtt", "100ms")]).starts_with("flows:"));
        assert!(message(&[("a", "0.1")]).starts_with("b:"));
        assert!(message(&[("b", "0.1")]).starts_with("a:"));
        assert!(message(&[("a", "0.1"), ("b", "0.1")]).starts_with("a: 0.1 is not above b"));
        // 2000 packets per second: at 10 ms the pipe holds 20, less than two per flow.
        assert!(message(&[("flows", "15"), ("rtt", "10ms")]).starts_with("beta: 1.5"));
        // The zero is at 2 * 15 / 20 / 0.01 = 150 rad/s: 1/z = 6.7 ms, half a period is 50.
        let slow = [("flows", "15"), ("rtt", "10ms"), ("beta", "0.5"), ("w", "10")];
        assert!(message(&slow).starts_with("w: 10 samples"));
    }

    /// Ten samples a second; gains of 0.002 and 0.001.
    const SLOW: [(&str, &str); 4] = [("a", "0.002"), ("b", "0.001"), ("w", "10"), ("q_ref", "4p")];

    #[test]
    fn samples_by_hand() {
        let mut q = Bench::new("pi", &SLOW);
        // Ten packets: none is dropped, p is 0. The samples at 100 and 200 ms are due at 250 ms:
        // 0.002 (10 - 4) - 0.001 (0 - 4) = 0.016, then 0.016 + (0.002 - 0.001) 6 = 0.022.
        assert!((0..10).all(|i| q.put(i, 1000).is_empty()));
        q.at_ms(250);
        q.get();
        assert!((q.gauge("p") - 0.022).abs() < 1e-15);
        // The next at 300 ms sees 9: 0.022 + 0.002 * 5 - 0.001 * 6 = 0.026.
        q.at_ms(299);
        q.get();
        assert!((q.gauge("p") - 0.022).abs() < 1e-15);
        q.put(10, 1000);
        q.at_ms(300);
        q.get();
        assert!((q.gauge("p") - 0.026).abs() < 1e-15);
        assert_eq!(q.gauge("q_old"), 9.0);
    }

    #[test]
    fn the_controller_starts_at_the_initial_probability() {
        let mut q = Bench::new("pi", &[&SLOW[..], &[("p_init", "0.15")]].concat());
        (0..10).for_each(|i| drop(q.put(i, 1000)));
        assert_eq!(q.gauge("p"), 0.15);
        let queued = f64::from(q.backlog());
        q.at_ms(100);
        q.get();
        let p = 0.15 + 0.002 * (queued - 4.0) + 0.001 * 4.0;
        assert!((q.gauge("p") - p).abs() < 1e-15, "{} {p}", q.gauge("p"));
    }

    #[test]
    fn a_day_of_full_or_empty_queue_ends_at_the_bounds() {
        let mut q = Bench::new("pi", &SLOW);
        (0..10).for_each(|i| drop(q.put(i, 1000)));
        q.at_ms(86_400_000);
        assert_eq!(q.put(10, 1000), [10], "p is 1");
        assert_eq!(q.gauge("p"), 1.0);
        q.drain();
        q.at_ms(2 * 86_400_000);
        assert!(q.put(11, 1000).is_empty());
        assert_eq!(q.gauge("p"), 0.0);
        assert_eq!(q.drain(), [11]);
    }

    #[test]
    fn bytes_are_reckoned_in_mean_packets_and_small_packets_are_spared() {
        let settings = [&SLOW[..3], &[("q_ref", "2000B"), ("byte_mode", "true")]].concat();
        let mut q = Bench::new("pi", &settings);
        // 10 x 500 bytes and a reference of 4 x 500: as in packets.
        (0..20).for_each(|i| drop(q.put(i, 250)));
        q.at_ms(250);
        q.get();
        assert!((q.gauge("p") - 0.022).abs() < 1e-15);
        // At p = 0.5, 250 bytes are dropped with probability 0.25, 2000 bytes always.
        let mut pi = aqm(8_000_000, &settings).unwrap();
        pi.p = 0.5;
        assert_eq!([250, 500, 2000].map(|len| pi.probability(len)), [0.25, 0.5, 1.0]);
    }

    #[test]
    fn marks_where_it_may() {
        let mut q = Bench::new("pi", &[&SLOW[..], &[("ecn", "true")]].concat());
        q.ect();
        (0..10).for_each(|i| drop(q.put(i, 1000)));
        q.at_ms(86_400_000);
        assert!(q.put(10, 1000).is_empty());
        assert_eq!(q.marked(), 1);
    }

    #[test]
    fn the_first_sample_is_a_period_after_the_first_arrival() {
        let mut q = Bench::new("pi", &[&SLOW[..2], &[("w", "3"), ("q_ref", "4p")]].concat());
        (0..10).for_each(|i| assert!(q.put(i, 1000).is_empty()));
        q.at_ms(333);
        assert!(q.put(10, 1000).is_empty());
        assert_eq!(q.gauge("q_old"), 0.0);
        q.at_ms(334);
        q.get();
        // 0.002 * 7 + 0.001 * 4
        assert!((q.gauge("p") - 0.018).abs() < 1e-15 && q.gauge("q_old") == 11.0);
    }

    #[test]
    fn new_gains_act_on_the_probability_and_the_sample_before() {
        let of = |a, b, w, q_ref| [("a", a), ("b", b), ("w", w), ("q_ref", q_ref)];
        let mut q = Bench::new("pi", &of("0.002", "0.001", "10", "8p"));
        (0..12).for_each(|i| drop(q.put(i, 1000)));
        q.at_ms(100);
        assert_eq!(q.put(12, 1000), [0; 0]);
        let near = |q: &Bench, p: f64| (q.gauge("p") - p).abs() < 1e-12;
        assert!(near(&q, 0.002 * 4.0 + 0.001 * 8.0), "12 packets, and none before");
        assert!(q.reconfigure("pi", &of("0.001", "0.0005", "10", "8p")));
        assert_eq!((q.gauge("a"), q.gauge("q_old")), (0.001, 12.0));
        q.at_ms(200);
        q.put(13, 1000);
        assert!(near(&q, 0.016 + 0.001 * 5.0 - 0.0005 * 4.0), "13 packets, and 12 before");
        // Neither other times of the samples nor another unit.
        for other in [of("0.1", "0.05", "20", "8p"), of("0.1", "0.05", "10", "8kB")] {
            assert!(!q.reconfigure("pi", &other));
            assert_eq!(q.gauge("a"), 0.001);
        }
    }
}
