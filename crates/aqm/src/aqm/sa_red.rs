//! SA-RED: statistical adaptive RED, tuned from the mean and the deviation of its queue.
//!
//! **Source** Chen, Min, Zhang, on statistical adapting RED, GLOBECOM 2012;
//! reconstructed (see Departures).
//!
//! **Decides** on arrival, as RED.
//!
//! **Measures** RED's average, and samples of the queue itself.
//!
//! **Symbols** as in RED and ARED; `Ts` window, `mu` and `sd` mean and standard deviation of the
//! queue over it, `qt` = (min_th + max_th) / 2, `d` = max_th - min_th.
//!
//! **Algorithm** At the end of every window: if mu is further than 0.1 d from qt, max_p makes a
//! step as in ARED. If sd is above 0.25 d, the queue oscillates: w_q is halved, for a slower
//! average, and max_p decreases by 5 %, for a flatter slope. If sd is below 0.1 d, w_q grows by a
//! quarter. w_q stays between 1e-6 and 0.002.
//!
//! **Departures** (1) The paper's formulas were not available to us; the rules and constants above
//! are a reconstruction. (2) The decrease by 5 % applies only above `bottom`,
//! like every step down. Otherwise a lasting oscillation would reduce max_p to almost 0, from where
//! steps of a quarter hardly recover. (3) The slope above max_th follows max_p. (4) Samples count
//! from the first arrival: the first one is taken `sample` later.
//!
//! **Cost** 352 bytes of state; as RED, plus constant work per window. After an idle time only
//! windows that change something are processed (about ten thousand at most).

use super::ared::{Step, target_band};
use super::red::{Red, RedParams, Tune, Tuned, not_in_linux};
use super::{Aqm, SingleQueue};
use crate::build::Env;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::params::{Checked, Combined};
use crate::snapshot::Snapshot;
use crate::timer::{Period, Timer};
use crate::units::{Span, Time};
use alloc::format;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Tuned<SaRed>>>(
    "sa_red",
    "RED tuned from the mean and the deviation of its queue",
)
.decides("on arrival: RED's drop probability; max_p and w_q change after every window")
.source("Chen, Min and Zhang, GLOBECOM 2012, reconstructed");

crate::params! {
    /// Parameters of [`SaRed`], in addition to RED's.
    pub struct SaRedParams {
        /// Length of a window, a multiple of sample.
        interval: Span = Span::ms(500), [Span::us(2) => Span::s(100)], "Ts", ["ts"];
        /// Time between two samples of the queue.
        sample: Span = Span::ms(5), [Span::us(1) => Span::s(10)], "", [];
        /// Largest increase of max_p in one step.
        alpha: f64 = 0.01, [1e-4 => 1.0], "alpha", [];
        /// Factor by which max_p decreases in one step.
        beta: f64 = 0.9, [0.01 => 0.99], "beta", [];
        /// Lower bound: max_p decreases only while it is above this.
        bottom: f64 = 0.01, [1e-6 => 1.0], "bottom", [];
        /// Upper bound: max_p increases only while it is below this.
        top: f64 = 0.5, [1e-4 => 1.0], "top", [];
    }
}

/// Smallest and largest w_q.
const W_Q: [f64; 2] = [1e-6, 0.002];
/// Largest number of samples in a window: the sum of their squares, 10^6 times 2^80, fits in 128
/// bits.
const SAMPLES: u64 = 1_000_000;

/// State of SA-RED, in addition to RED's.
#[derive(Clone, Debug, Snapshot)]
pub struct SaRed {
    step: Step,
    /// Samples in a window.
    samples: u64,
    taken: Timer,
    /// Samples taken in this window, their sum and the sum of their squares.
    n: u64,
    sum: u128,
    squares: u128,
    /// Mean and standard deviation over the last window, in the unit of min_th.
    mu: f64,
    sd: f64,
    /// RED's weight, for inspection.
    w_q: f64,
}

impl SaRed {
    /// Adapts `red` at the end of a window.
    fn tune(&mut self, red: &mut Red) {
        let n = u128::from(self.n);
        // n^2 times the variance, a whole number.
        let spread = n * self.squares - self.sum * self.sum;
        self.mu = self.sum as f64 / self.n as f64;
        self.sd = libm::sqrt(spread as f64) / self.n as f64;
        (self.n, self.sum, self.squares) = (0, 0, 0);
        let d = red.max_th - red.min_th;
        if let Some(max_p) = self.step.from(red.max_p, self.mu, target_band(red)) {
            red.max_p = max_p;
        }
        if self.sd > 0.25 * d {
            red.w_q = (red.w_q / 2.0).max(W_Q[0]);
            if red.max_p > self.step.bottom {
                red.max_p *= 0.95;
            }
        } else if self.sd < 0.1 * d {
            red.w_q = (red.w_q * 1.25).min(W_Q[1]);
        }
        red.gentle_max_p = red.max_p;
        self.w_q = red.w_q;
    }
}

impl Tune for SaRed {
    type Params = Combined<SaRedParams, RedParams>;

    fn tuned(params: Checked<'_, Self::Params>, env: &Env) -> Result<Tuned<Self>> {
        not_in_linux(&params.inner, "sa_red")?;
        let SaRedParams { interval, sample, alpha, beta, bottom, top } = params.outer;
        let samples = interval.0 / sample.0;
        if !(2..=SAMPLES).contains(&samples) {
            let text = format!("{sample} is not a half to a millionth of interval ({interval})");
            return Err(Error::new(text).at("sample"));
        }
        let step = Step { alpha, beta, bottom, top }.checked()?;
        let red = Red::build(&params.inner, env)?;
        let w_q = red.w_q;
        let (sum, squares, mu, sd) = (0, 0, 0.0, 0.0);
        let taken = Timer::new(env, Period::Every(sample));
        Ok(Tuned { red, tuner: SaRed { step, samples, taken, n: 0, sum, squares, mu, sd, w_q } })
    }

    fn on_first_packet(&mut self, now: Time) {
        self.taken.start(now);
    }

    fn on_update(&mut self, now: Time, queue: &QueueView<'_>, red: &mut Red) {
        // All samples that are due now see the same queue: it has not changed since the last call.
        let mut samples = self.taken.due(now);
        let q = if red.in_bytes { queue.bytes() } else { u64::from(queue.packets()) };
        let q = u128::from(q);
        while samples > 0 {
            let here = samples.min(self.samples - self.n);
            self.n += here;
            self.sum += q * u128::from(here);
            self.squares += q * q * u128::from(here);
            samples -= here;
            if self.n < self.samples {
                return;
            }
            let before = (red.max_p, red.w_q);
            self.tune(red);
            // If a window of this queue alone changes nothing, the following ones change nothing
            // either.
            if here == self.samples && (red.max_p, red.w_q) == before {
                samples %= self.samples;
            }
        }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Mean of the queue over the last window, in the unit of min_th.
        visit("mu", self.mu);
        // Standard deviation of the queue over the last window, in the same unit.
        visit("sd", self.sd);
        // Weight of one arrival in the average.
        visit("w_q", self.w_q);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fifo::SingleFifo;
    use crate::packet::Packet;
    use crate::params::{Params, Setting};
    use crate::units::Rate;
    use std::prelude::v1::*;

    /// SA-RED between 5 and 15 packets, on a queue of a given length.
    struct Trial {
        aqm: Tuned<SaRed>,
        now: Time,
    }

    impl Trial {
        fn new(settings: &[(&str, &str)]) -> Trial {
            let mut p = Combined::<SaRedParams, RedParams>::default();
            settings.iter().for_each(|(k, v)| p.set(k, Setting::Text(v)).unwrap());
            let mut aqm = Tuned::<SaRed>::build(&p, &Env::new(Rate(8_000_000))).unwrap();
            aqm.tuner.on_first_packet(Time::ZERO);
            Trial { aqm, now: Time::ZERO }
        }

        /// Keeps `q` packets queued for `span`; returns max_p and w_q after that.
        fn hold(&mut self, q: u32, span: Span) -> [f64; 2] {
            let mut fifo = SingleFifo::default();
            (0..q).for_each(|_| fifo.push(Packet { len: 500, ..Packet::default() }));
            self.now += span;
            let queue = QueueView::single(&mut fifo);
            self.aqm.tuner.on_update(self.now, &queue, &mut self.aqm.red);
            [self.aqm.red.max_p, self.aqm.red.w_q]
        }

        /// Runs a window, half of it with `a` packets queued, half with `b`.
        fn swing(&mut self, a: u32, b: u32) -> [f64; 2] {
            self.hold(a, Span::ms(250));
            self.hold(b, Span::ms(250))
        }
    }

    #[test]
    fn a_window_moves_max_p_by_its_mean_and_w_q_by_its_deviation() {
        // qt and d are 10: max_p reacts if the mean is off by more than 1, w_q if the deviation is
        // above 2.5 or below 1.
        let mut t = Trial::new(&[("w_q", "0.001")]);
        assert_eq!(t.hold(10, Span::ms(499)), [0.1, 0.001], "the window is not over");
        assert_eq!(t.hold(10, Span::ms(1)), [0.1, 0.00125], "calm, and in the middle");
        assert_eq!(t.swing(8, 12), [0.1, 0.00125], "a deviation of 2 is neither");
        assert_eq!((t.aqm.tuner.mu, t.aqm.tuner.sd), (10.0, 2.0));
        assert_eq!(t.swing(10, 14), [0.11, 0.00125], "a mean of 12 is too much");
        assert_eq!(t.swing(7, 10), [0.11 * 0.9, 0.00125], "8.5 too little");
        let max_p = 0.11 * 0.9;
        assert_eq!(t.swing(4, 16), [max_p * 0.95, 0.000_625], "a deviation of 6: it oscillates");
        assert_eq!(t.swing(0, 24), [(max_p * 0.95 + 0.01) * 0.95, 0.000_312_5], "both");
        assert_eq!(t.aqm.red.gentle_max_p, t.aqm.red.max_p);
    }

    #[test]
    fn the_queue_of_a_link_is_sampled() {
        let mut q = crate::testing::Bench::new("sa_red", &[]);
        (0..14).for_each(|i| drop(q.put(i, 500)));
        q.at_ms(500);
        q.put(14, 500);
        assert_eq!((q.gauge("mu"), q.gauge("sd"), q.gauge("max_p")), (14.0, 0.0, 0.11));
    }

    #[test]
    fn w_q_and_max_p_keep_their_bounds() {
        let mut t = Trial::new(&[]);
        for _ in 0..200 {
            t.swing(0, 20);
        }
        let [max_p, w_q] = [t.aqm.red.max_p, t.aqm.red.w_q];
        assert_eq!(w_q, 1e-6);
        assert!((0.0095..=0.01).contains(&max_p), "at most one step below bottom: {max_p}");
        let mut t = Trial::new(&[("w_q", "0.0019")]);
        assert_eq!(t.hold(10, Span::ms(500)), [0.1, 0.002]);
        assert_eq!(t.hold(10, Span::ms(500)), [0.1, 0.002]);
    }

    #[test]
    fn catching_up_at_once_is_as_sample_by_sample() {
        for q in [0, 9, 10, 40] {
            let settings = [("w_q", "0.00001"), ("interval", "37ms"), ("sample", "10ms")];
            let (mut prompt, mut late) = (Trial::new(&settings), Trial::new(&settings));
            for t in [&mut prompt, &mut late] {
                t.hold(3, Span::ms(25));
            }
            for _ in 0..90_000 {
                prompt.hold(q, Span::ms(1));
            }
            assert_eq!(late.hold(q, Span::s(90)), prompt.hold(q, Span::ZERO));
            assert_eq!(late.aqm.tuner.n, prompt.aqm.tuner.n);
            let tuner =
                |t: &Trial| (t.aqm.tuner.sum, t.aqm.tuner.squares, t.aqm.tuner.taken.clone());
            assert_eq!(tuner(&late), tuner(&prompt));
        }
    }

    #[test]
    fn a_day_of_idle_is_bounded_work() {
        // The slowest way to the fixed point: 10^4 steps up, then 1400 down. Without the shortcut
        // this would be 43 billion windows.
        let slow = [
            ("interval", "2us"),
            ("sample", "1us"),
            ("alpha", "0.0001"),
            ("beta", "0.99"),
            ("bottom", "0.000001"),
            ("top", "1"),
            ("w_q", "0.000001"),
        ];
        let mut t = Trial::new(&slow);
        assert_eq!(t.hold(100, Span::s(86_400)), [1.0, 0.002]);
        let [max_p, w_q] = t.hold(0, Span::s(86_400));
        assert!((0.99e-6..=1e-6).contains(&max_p) && w_q == 0.002, "{max_p}");
    }

    #[test]
    fn windows_are_whole_samples() {
        let refusal = |settings: &[(&str, &str)]| {
            let settings: Vec<_> =
                settings.iter().map(|(k, v)| (*k, crate::Setting::Text(v))).collect();
            crate::build("sa_red", &settings, Rate(1_000_000)).unwrap_err().to_string()
        };
        assert!(refusal(&[("sample", "251ms")]).starts_with("sample: 251ms is not a half"));
        assert!(refusal(&[("interval", "2s"), ("sample", "1us")]).starts_with("sample:"));
        assert!(refusal(&[("bottom", "0.5")]).starts_with("top: 0.5 is not above bottom"));
    }

    #[test]
    fn deviations_count_beyond_a_quarter_and_below_a_tenth_of_the_band() {
        // d is 10. The mean is within 1 of the target, 10.
        for (a, b, w_q) in [(8, 13, 0.001), (9, 11, 0.001), (10, 11, 0.00125), (7, 13, 0.0005)] {
            let mut t = Trial::new(&[("w_q", "0.001")]);
            assert_eq!(t.swing(a, b)[1], w_q, "{a} {b}");
        }
        let mut t = Trial::new(&[]);
        let bottom = t.aqm.tuner.step.bottom;
        t.aqm.red.max_p = bottom;
        assert_eq!(t.swing(5, 15)[0], bottom);
    }

    #[test]
    fn windows_that_change_nothing_end_at_their_times() {
        let mut t = Trial::new(&[]);
        t.aqm.red.w_q = W_Q[1];
        // Ten windows and a fifth of one.
        t.hold(10, Span::ms(5100));
        assert_eq!(t.aqm.tuner.n * 5, t.aqm.tuner.samples);
    }
}
