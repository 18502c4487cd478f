//! REM: random exponential marking, driven by a price.
//!
//! **Source** S. Athuraliya, S. Low, V. Li, Q. Yin, "REM: Active Queue Management", IEEE Network
//! 15(3), 2001.
//!
//! **Decides** on arrival.
//!
//! **Measures** the queue and the arrivals per `period`, in packets. With `b_star` in bytes it
//! measures bytes and converts them to packets of `packet` bytes.
//!
//! **Symbols** `gamma`, `phi`, `alpha`, `b_star`, `mu` the price, `x` the arrivals and `c` the
//! capacity of the link, both per period.
//!
//! **Algorithm** `mu = max(0, mu + gamma (alpha (q - b_star) + x - c))`. An arrival is dropped with
//! probability `1 - phi^(-mu)`. In the queue form, the growth of the queue replaces `x - c`: `mu +=
//! gamma (q - (1 - alpha) q_old - alpha b_star)`.
//!
//! **Departures** (1) The first period begins with the first arrival. At the same instant the end
//! of a period comes before an arrival or a departure. (2) `x` can be smoothed with the weight
//! `inw`, as in ns-2; 1 means no smoothing. It counts all arrivals, dropped or not, except packets
//! larger than the buffer. (3) Periods without a packet are computed in one step, in closed form.
//! (4) The random number is drawn even if the buffer turns out to be full.
//!
//! **Cost** 232 bytes of state; a random number per arrival, a power per period with packets in it;
//! O(1) after any idle time.

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::timer::{Period, Timer};
use crate::units::{Bytes, Size, Span, Time};

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry =
    QdiscEntry::new::<SingleQueue<Rem>>("rem", "random exponential marking by a price of the link")
        .decides("on arrival: a drop probability by a price, the integral of queue and excess rate")
        .source("Athuraliya, Low, Li and Yin, IEEE Network 15(3), 2001");

crate::choice! {
    /// Measure of the difference between arrivals and capacity.
    pub enum Form {
        /// Counted arrivals less the capacity.
        Rate = "rate",
        /// Growth of the queue.
        Queue = "queue",
    }
}

crate::params! {
    /// Parameters of [`Rem`].
    pub struct RemParams {
        /// Step of the price, per packet.
        gamma: f64 = 0.001, [0.0 => 1.0], "gamma", [];
        /// Base of the drop probability, 1 - phi^-price.
        phi: f64 = 1.001, [1.000_000_1 => 100.0], "phi", [];
        /// Weight of the queue relative to the weight of the rate.
        alpha: f64 = 0.1, [0.0 => 10.0], "alpha", [];
        /// Reference of the queue. Its unit, packets or bytes, is that in which queue and arrivals
        /// are counted.
        b_star: Size = Size::Packets(20),
            [Size::Packets(0) => Size::Packets(1_000_000_000_000)], "b*", ["bstar", "pbo"];
        /// Time between updates of the price.
        period: Span = Span::ms(2), [Span::us(1) => Span::s(100)], "T", ["pupdtime", "t"];
        /// Measure of the excess rate: counted arrivals (rate), or growth of the queue (queue).
        form: Form = Form::Rate, [], "", [];
        /// Weight of one period in the average of the arrivals; 1 for no averaging.
        inw: f64 = 1.0, [1e-6 => 1.0], "inw", [];
        /// Mean packet size, for the link rate in packets, bytes in packets, and byte_mode.
        packet: Bytes = Bytes(1000),
            [Bytes(1) => Bytes(1_000_000)], "s", ["mean_packet", "mean_pktsize"];
        /// True if the drop probability is scaled by packet length / packet.
        byte_mode: bool = false, [], "", ["bytes"];
    }
}

/// State of REM.
#[derive(Clone, Debug, Snapshot)]
pub struct Rem {
    params: RemParams,
    /// Reference of the queue, packets.
    b_star: f64,
    /// Packets that the link can send in a period.
    c: f64,
    /// Arrivals in this period, packets or bytes.
    count: u64,
    /// Smoothed arrivals per period, packets.
    x: f64,
    /// Queue at the last update, packets.
    q_old: f64,
    /// Price.
    mu: f64,
    /// Drop probability at that price.
    p: f64,
    periods: Timer,
}

impl Rem {
    fn packets(&self, packets: u64, bytes: u64) -> f64 {
        if self.params.b_star.in_bytes() {
            bytes as f64 / self.params.packet.0 as f64
        } else {
            packets as f64
        }
    }

    /// Ends a period with `count` arrivals, and `more` periods without any, with a queue of `q` at
    /// the end of each.
    fn update(&mut self, q: f64, more: f64) {
        let RemParams { gamma, alpha, form, inw, .. } = self.params;
        let (first, rest) = match form {
            Form::Queue => {
                let first = q - (1.0 - alpha) * self.q_old - alpha * self.b_star;
                (first, more * alpha * (q - self.b_star))
            }
            Form::Rate => {
                self.x = (1.0 - inw) * self.x + inw * self.packets(self.count, self.count);
                let excess = alpha * (q - self.b_star) - self.c;
                // x is multiplied by 1 - inw per period: `kept` is its share after the last of
                // them, `sum` the sum of all shares.
                let faded = if more > 0.0 { -libm::expm1(more * libm::log1p(-inw)) } else { 0.0 };
                let (kept, sum) = (1.0 - faded, (1.0 - inw) * faded / inw);
                let rest = self.x * sum + more * excess;
                let first = excess + self.x;
                self.x *= kept;
                (first, rest)
            }
        };
        self.mu = (self.mu + gamma * first).max(0.0);
        // The remaining terms never grow, so a sum that ends above 0 never was below.
        self.mu = (self.mu + gamma * rest).max(0.0);
        self.q_old = q;
        self.p = 1.0 - libm::pow(self.params.phi, -self.mu);
    }

    /// Returns the drop probability of a packet of `len` bytes.
    fn probability(&self, len: u32) -> f64 {
        let RemParams { packet, byte_mode, .. } = self.params;
        let share = if byte_mode { f64::from(len) / packet.0 as f64 } else { 1.0 };
        (self.p * share).min(1.0)
    }
}

impl Aqm for Rem {
    type Params = RemParams;

    fn new(params: Checked<'_, RemParams>, env: &Env) -> Result<Self> {
        let unit = if params.b_star.in_bytes() { params.packet.0 as f64 } else { 1.0 };
        Ok(Rem {
            b_star: params.b_star.number() as f64 / unit,
            c: env.rate.packets_per_sec(params.packet) * params.period.as_secs(),
            params: (*params).clone(),
            count: 0,
            x: 0.0,
            q_old: 0.0,
            mu: 0.0,
            p: 0.0,
            periods: Timer::new(env, Period::Every(params.period)),
        })
    }

    fn on_first_packet(&mut self, now: Time) {
        self.periods.start(now);
    }

    fn on_update(&mut self, now: Time, queue: &QueueView<'_>) {
        let due = self.periods.due(now);
        if due > 0 {
            let q = self.packets(u64::from(queue.packets()), queue.bytes());
            self.update(q, (due - 1) as f64);
            self.count = 0;
        }
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        _line: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        self.count += if self.params.b_star.in_bytes() { u64::from(packet.len) } else { 1 };
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
        visit("mu", self.mu);
        visit("x", self.x);
        visit("q_old", self.q_old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Params, Setting};
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// On the bench a period of 10 ms is worth 10 packets of 1000 bytes.
    const BASE: [(&str, &str); 5] = [
        ("gamma", "0.01"),
        ("phi", "1.01"),
        ("alpha", "0.1"),
        ("b_star", "10p"),
        ("period", "10ms"),
    ];

    fn near(x: f64, y: f64) -> bool {
        (x - y).abs() < 1e-12
    }

    fn aqm(settings: &[(&str, &str)]) -> Rem {
        let mut p = RemParams::default();
        BASE.iter().chain(settings).for_each(|(k, v)| p.set(k, Setting::Text(v)).unwrap());
        Rem::build(&p, &Env::new(crate::units::Rate(8_000_000))).unwrap()
    }

    #[test]
    fn prices_by_hand() {
        let mut q = Bench::new("rem", &BASE);
        (0..40).for_each(|i| assert!(q.put(i, 1000).is_empty()));
        q.at_ms(10);
        q.get();
        // 0.01 (0.1 (40 - 10) + 40 - 10) = 0.33, and the probability is 1 - 1.01^-0.33.
        assert!(near(q.gauge("mu"), 0.33));
        assert!(near(q.gauge("p"), 1.0 - libm::pow(1.01, -0.33)));
        // Nothing arrives, 39 wait: 0.33 + 0.01 (2.9 - 10).
        q.at_ms(20);
        q.get();
        assert!(near(q.gauge("mu"), 0.259));
        // Two periods at 38 and three at 38: 0.259 + 5 * 0.01 (2.8 - 10) < 0.
        q.at_ms(70);
        q.get();
        assert_eq!((q.gauge("mu"), q.gauge("p")), (0.0, 0.0));
    }

    #[test]
    fn the_queue_form_follows_the_growth_of_the_queue() {
        let mut q = Bench::new("rem", &[&BASE[..], &[("form", "queue")]].concat());
        (0..40).for_each(|i| drop(q.put(i, 1000)));
        q.at_ms(10);
        q.get();
        // 0.01 (40 - 0.9 * 0 - 1) = 0.39.
        assert!(near(q.gauge("mu"), 0.39));
        q.at_ms(30);
        q.get();
        // 39 at 20 ms, 39 at 30 ms: 0.01 (39 - 36 - 1 + 0.1 * 29).
        assert!(near(q.gauge("mu"), 0.39 + 0.049));
    }

    #[test]
    fn periods_taken_at_once_are_those_taken_one_by_one() {
        for settings in [
            [("inw", "0.02"), ("form", "rate")],
            [("inw", "1"), ("form", "rate")],
            [("inw", "0.3"), ("form", "queue")],
        ] {
            for (start, q, n) in [(3.0, 4.0, 30), (0.5, 12.0, 200), (0.0, 150.0, 7), (2.0, 2.0, 1)]
            {
                let [mut once, mut singly] = [(); 2].map(|()| aqm(&settings));
                for rem in [&mut once, &mut singly] {
                    (rem.mu, rem.x, rem.q_old, rem.count) = (start, 14.0, 3.0, 25);
                }
                once.update(q, f64::from(n));
                for _ in 0..=n {
                    singly.update(q, 0.0);
                    singly.count = 0;
                }
                let (a, b) = (once.mu, singly.mu);
                assert!((a - b).abs() < 1e-9 && (once.x - singly.x).abs() < 1e-9, "{a} {b}");
            }
        }
    }

    #[test]
    fn a_day_of_idle_forgets_the_price_and_a_day_of_queue_makes_it_certain() {
        let mut q = Bench::new("rem", &[&BASE[..], &[("inw", "0.02")]].concat());
        (0..150).for_each(|i| drop(q.put(i, 1000)));
        q.at_ms(86_400_000);
        // 0.1 (150 - 10) - 10 = 4 a period, 8.64 million periods.
        assert_eq!(q.put(150, 1000), [150]);
        assert_eq!(q.gauge("p"), 1.0);
        q.drain();
        q.at_ms(2 * 86_400_000);
        assert!(q.put(151, 1000).is_empty());
        assert_eq!((q.gauge("p"), q.gauge("mu")), (0.0, 0.0));
        assert!(q.gauge("x") < 1e-9);
    }

    #[test]
    fn bytes_are_reckoned_in_mean_packets() {
        let settings = [&BASE[..3], &[("period", "10ms"), ("b_star", "10kB")]].concat();
        let mut q = Bench::new("rem", &settings);
        // 80 x 500 bytes are 40 packets of 1000: as in packets.
        (0..80).for_each(|i| drop(q.put(i, 500)));
        q.at_ms(10);
        q.get();
        assert!(near(q.gauge("mu"), 0.33));
    }

    #[test]
    fn small_packets_are_spared_in_byte_mode() {
        for (byte_mode, expected) in [("false", [0.5, 0.5, 0.5]), ("true", [0.05, 0.5, 1.0])] {
            let mut rem = aqm(&[("byte_mode", byte_mode)]);
            rem.p = 0.5;
            assert_eq!([100, 1000, 3000].map(|len| rem.probability(len)), expected);
        }
    }
}
