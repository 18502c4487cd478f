//! COBALT: CoDel combined with BLUE.
//!
//! **Source** J. Morton, in the queue CAKE of Linux (T. Hoeiland-Joergensen, D. Taht, J. Morton,
//! "Piece of CAKE", LANMAN 2018); J. Palmei et al., "Design and Evaluation of COBALT Queue
//! Discipline", LANMAN 2019.
//!
//! **Decides** on departure.
//!
//! **Measures** the sojourn time of the packet at the head, and overflow.
//!
//! **Symbols** as CoDel's; `p_blue`, `p_inc`, `p_dec` of BLUE.
//!
//! **Algorithm** CoDel's schedule of drops. When the queue is under control again, `count` is not
//! reset but decremented at each time at which a drop would have been due. A drop by overflow adds
//! `p_inc` to `p_blue`, an empty queue subtracts `p_dec`, at most once per `target`. Every packet
//! is dropped with probability `p_blue`, ECN-capable or not, since a flow that fills the buffer
//! does not respond to marks.
//!
//! **Departures** (1) The square root is exact, not computed by Newton steps. (2) On overflow CAKE
//! drops from the longest queue; here the arriving packet is dropped. (3) CAKE raises `target` to
//! 1.5 times the transmission time of a packet at low rates. Here the sojourn time must also exceed
//! the transmission time of four packets of `mtu`, which is stricter. (4) ns-3 raises `p_blue` at
//! sojourn times above 400 ms; CAKE does not, and neither does this.
//!
//! **Linux** With `variant = "linux"`, as in a queue of `sch_cake`: (1) The inverse square root is
//! a fraction of 2^32, from a table below 16, above it from one Newton step per change of `count`.
//! It starts at 0, so that the first signal comes with the second packet over target, not an
//! interval later. (2) `target` is at least 1.5 times the transmission time of a packet of `mtu`,
//! and `interval` is longer by as much. (3) On overflow packets at the head are dropped, until the
//! arriving packet fits.
//!
//! **Cost** 248 bytes of state; one random number per dequeue while `p_blue` is above 0; each
//! decrement of `count` matches one drop.

pub(crate) mod linux;

use crate::snapshot::Snapshot;
use linux::{Cobalt as FixedCobalt, Settings};

use super::{Aqm, SingleQueue, Verdict, codel::control_law, fits};
use crate::build::Env;
use crate::cast;
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::units::{Bytes, Size, Span, Time};

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Cobalt>>(
    "cobalt",
    "CoDel, combined with BLUE against unresponsive flows",
)
.decides("on departure: as CoDel, plus a drop probability that overflow raises")
.source("Hoeiland-Joergensen, Taht and Morton, LANMAN 2018; Palmei et al., LANMAN 2019");

crate::choice! {
    /// Variant of the algorithm.
    pub enum Variant {
        /// The paper: an exact square root, and the arriving packet is dropped on overflow.
        Paper = "paper",
        /// Linux: the arithmetic of CAKE, and packets at the head are dropped on overflow.
        Linux = "linux",
    }
}

crate::params! {
    /// Parameters of [`Cobalt`].
    pub struct CobaltParams {
        /// Target queueing delay: acceptable minimum over an interval.
        target: Span = Span::ms(5), [Span::us(1) => Span::s(10)], "TARGET", [];
        /// Time in which a good queue drains at least once; about the largest round-trip time.
        interval: Span = Span::ms(100), [Span::us(1) => Span::s(100)], "INTERVAL", [];
        /// Increase of BLUE's drop probability by an overflow.
        p_inc: f64 = 1.0 / 256.0, [0.0 => 1.0], "p_inc", ["increment"];
        /// Decrease of BLUE's drop probability by an empty queue.
        p_dec: f64 = 1.0 / 4096.0, [1e-9 => 1.0], "p_dec", ["decrement"];
        /// Largest packet size: sojourn times below the transmission time of four of these are
        /// never above target.
        mtu: Bytes = Bytes(1514), [Bytes(1) => Bytes(1_000_000)], "MTU", [];
        /// Variant of the algorithm.
        variant: Variant = Variant::Paper, [], "", [];
    }
}

/// State of COBALT.
#[derive(Clone, Debug, Snapshot)]
pub struct Cobalt {
    params: CobaltParams,
    /// Sojourn time above which a packet is over target.
    over: Span,
    /// Drops since the queue was last under control, less the decrements.
    count: u32,
    /// Time of the next drop, while dropping; of the next decrement, while not.
    drop_next: Time,
    /// True in the dropping state.
    dropping: bool,
    /// BLUE's drop probability.
    p_blue: f64,
    /// Time of its last change.
    blue_t: Option<Time>,
    /// State of the variant of Linux, in place of the above.
    linux: Option<LinuxCobalt>,
}

/// State of COBALT as in Linux.
#[derive(Clone, Debug, Snapshot)]
struct LinuxCobalt {
    fixed: FixedCobalt,
    settings: Settings,
    /// Buffer size.
    limit: Size,
}

impl LinuxCobalt {
    fn new(params: &CobaltParams, env: &Env) -> LinuxCobalt {
        let share = |p: f64| cast::saturate32(cast::trunc(p * 4_294_967_296.0));
        let mtu_time = cast::saturate(
            u128::from(params.mtu.0) * 8_000_000_000 / u128::from(env.rate.0.max(1)),
        );
        let settings = Settings {
            p_inc: share(params.p_inc),
            p_dec: share(params.p_dec),
            ..Settings::new(params.target, params.interval, Span(mtu_time))
        };
        LinuxCobalt { fixed: FixedCobalt::default(), settings, limit: env.limit }
    }
}

impl Cobalt {
    /// Returns the time of the drop after one at `t`; 1/sqrt(0) counts as 1.
    fn control(&self, t: Time) -> Time {
        control_law(t, self.params.interval, self.count.max(1))
    }

    fn due(&self, now: Time) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    /// Decrements `count` and schedules the next decrement.
    fn step_back(&mut self) {
        self.count -= 1;
        self.drop_next = self.control(self.drop_next);
    }

    /// Makes all decrements that are due.
    fn decay(&mut self, now: Time) {
        // The sum of 1/sqrt(k) up to n is less than 2 sqrt(n): later than that, all are due.
        let all = 2.0 * libm::sqrt(f64::from(self.count)) + 1.0;
        if now.since(self.drop_next).0 as f64 > all * self.params.interval.0 as f64 {
            self.count = 0;
        }
        while self.due(now) {
            self.step_back();
        }
    }

    /// True if the dequeued `packet` must be dropped.
    fn should_drop(&mut self, context: &mut Context<'_>, packet: &mut Packet, ecn: bool) -> bool {
        if let Some(LinuxCobalt { fixed, settings, .. }) = &mut self.linux {
            return fixed.should_drop(context, packet, settings, 0, ecn);
        }
        let now = context.now;
        let due = self.due(now);
        let over = now.since(packet.arrived) > self.over;
        if over && !self.dropping {
            self.drop_next = self.control(now);
            self.count = self.count.max(1);
        }
        self.dropping = over;
        let mut drop = false;
        if due && over {
            drop = !(ecn && context.mark(packet));
            self.count = self.count.saturating_add(1);
            self.drop_next = self.control(self.drop_next);
        } else if due {
            self.decay(now);
        }
        if !drop && self.p_blue > 0.0 {
            drop = context.rng.bernoulli(self.p_blue);
        }
        if self.count == 0 {
            self.drop_next = now + self.params.interval;
        } else if !drop {
            self.drop_next = self.drop_next.max(now);
        }
        drop
    }

    /// Adds `step` to BLUE's drop probability unless it changed less than a target ago.
    fn blue(&mut self, now: Time, step: f64) {
        if self.blue_t.is_none_or(|t| now.since(t) > self.params.target) {
            self.p_blue = (self.p_blue + step).clamp(0.0, 1.0);
            self.blue_t = Some(now);
        }
    }
}

impl Aqm for Cobalt {
    type Params = CobaltParams;

    fn new(params: Checked<'_, CobaltParams>, env: &Env) -> Result<Self> {
        let mtu_ns = 8e9 * params.mtu.0 as f64 / env.rate.0.max(1) as f64;
        Ok(Cobalt {
            over: params.target.max(Span(cast::trunc(4.0 * mtu_ns))),
            params: (*params).clone(),
            count: 0,
            drop_next: Time::ZERO,
            dropping: false,
            p_blue: 0.0,
            blue_t: None,
            linux: (params.variant == Variant::Linux).then(|| LinuxCobalt::new(&params, env)),
        })
    }

    fn reconfigure(&mut self, fresh: &Self) -> bool {
        let same = self.linux.is_none() && fresh.linux.is_none();
        if same {
            (self.params, self.over) = (fresh.params.clone(), fresh.over);
        }
        same
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        let Some(LinuxCobalt { fixed, settings, limit }) = &mut self.linux else {
            return Verdict::Pass;
        };
        // Bounded: each turn removes a packet from the queue.
        while !fits(*limit, queue.packets(), queue.bytes(), packet)
            && let Some(head) = queue.pop()
        {
            fixed.on_overflow(context.now, settings);
            context.drop(head, DropReason::Full);
        }
        Verdict::Pass
    }

    fn on_overflow(&mut self, now: Time) {
        self.blue(now, self.params.p_inc);
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        // Bounded: each turn removes a packet from the queue.
        while let Some(mut packet) = queue.pop() {
            let drop = self.should_drop(context, &mut packet, ecn);
            if !drop || queue.packets() == 0 {
                return Some(packet); // the last packet may be marked, but is never dropped
            }
            context.drop(packet, DropReason::AfterEnqueue);
        }
        None
    }

    fn on_idle(&mut self, now: Time) {
        if let Some(LinuxCobalt { fixed, settings, .. }) = &mut self.linux {
            return fixed.on_empty(now, settings);
        }
        if self.p_blue > 0.0 {
            self.blue(now, -self.params.p_dec);
        }
        self.dropping = false;
        if self.due(now) {
            self.step_back();
        }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let Cobalt { count, dropping, drop_next, p_blue, .. } = *self;
        let paper = (count, dropping, drop_next, p_blue);
        let (count, dropping, drop_next, p_blue) = self.linux.as_ref().map_or(paper, |linux| {
            let FixedCobalt { count, dropping, drop_next, p_blue, .. } = linux.fixed;
            (count, dropping, drop_next, f64::from(p_blue) / 4_294_967_296.0)
        });
        // Drops since the queue was last under control, less the decrements.
        visit("count", f64::from(count));
        // 1 in the dropping state, otherwise 0.
        visit("dropping", f64::from(u8::from(dropping)));
        // Time of the next drop, while dropping, otherwise of the next decrement; seconds.
        visit("drop_next", drop_next.0 as f64 / 1e9);
        // Drop probability of BLUE.
        visit("p_blue", p_blue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// Keeps a queue at 1 ms per packet, each 20 ms old when it leaves, until 400 ms; returns the
    /// milliseconds of the drops.
    fn losses(q: &mut Bench) -> Vec<u64> {
        let mut dropped = vec![];
        for ms in 0..400 {
            q.at_ms(ms);
            q.put(ms as u32, 1000);
            if ms >= 20 {
                dropped.extend(q.get().1.into_iter().map(|_| ms));
            }
        }
        dropped
    }

    #[test]
    fn drops_are_those_of_codel_and_count_goes_back_one_by_one() {
        let mut q = Bench::new("cobalt", &[]);
        // Over target from 20 ms; 100 ms later and then 70.7, 57.7, 50, 44.7, 40.8 ms: here count
        // rises before the next drop is planned.
        assert_eq!(losses(&mut q), [120, 191, 249, 299, 344, 384]);
        assert_eq!(q.gauge("count"), 7.0);
        q.drain();
        // Due at 421.8, then 40.8, 44.7, 50 and 57.7 ms later; the last of these is not yet.
        q.at_ms(600);
        q.put(0, 1000);
        assert_eq!(q.get(), (Some(0), vec![]));
        assert_eq!((q.gauge("count"), q.gauge("dropping")), (3.0, 0.0));
        q.at_ms(86_400_000);
        q.put(0, 1000);
        q.get();
        assert_eq!(q.gauge("count"), 0.0);
    }

    #[test]
    fn skipping_the_steps_back_is_taking_them_all() {
        let env = Env::new(crate::Rate(8_000_000));
        for count in [1, 2, 3, 10, 1000, 100_000] {
            let aqm = |t: u64| {
                let mut aqm = Cobalt::build(&CobaltParams::default(), &env).unwrap();
                (aqm.count, aqm.drop_next) = (count, Time(t));
                aqm
            };
            let mut plain = aqm(7);
            (0..count).for_each(|_| plain.step_back());
            // The last step is due an interval before the place to which it leads.
            let end = Time(plain.drop_next.0 - plain.params.interval.0);
            for (now, left) in [(Time(end.0 - 1), 1), (end, 0), (end + Span::s(86_400), 0)] {
                let mut aqm = aqm(7);
                aqm.decay(now);
                assert_eq!(aqm.count, left, "{count}");
            }
        }
    }

    #[test]
    fn marks_in_place_of_drops_but_not_in_place_of_blues() {
        let mut q = Bench::new("cobalt", &[("ecn", "true")]);
        q.ect();
        assert_eq!(losses(&mut q), []);
        assert_eq!(q.marked(), 6);
        let mut q = Bench::new("cobalt", &[("ecn", "true"), ("limit", "3p"), ("p_inc", "1")]);
        q.ect();
        (0..4).for_each(|i| drop(q.put(i, 1000)));
        assert_eq!(q.get(), (Some(2), vec![0, 1]), "the last one is spared");
        assert_eq!(q.marked(), 0);
    }

    #[test]
    fn blue_moves_once_per_target() {
        let mut q = Bench::new("cobalt", &[("limit", "2p"), ("target", "5ms")]);
        let blue = |q: &Bench| q.gauge("p_blue") * 4096.0;
        (0..4).for_each(|i| drop(q.put(i, 1000)));
        assert_eq!(blue(&q), 16.0, "two found no room, but at once");
        q.at_ms(6);
        q.put(5, 1000);
        assert_eq!(blue(&q), 32.0);
        q.at_ms(12);
        q.drain();
        assert_eq!(blue(&q), 31.0);
        q.drain();
        assert_eq!(blue(&q), 31.0);
        q.at_ms(18);
        q.drain();
        assert_eq!(blue(&q), 30.0);
    }

    #[test]
    fn blue_moves_after_more_than_a_target_and_an_idle_link_at_zero_is_no_move() {
        let after = |ms| {
            let mut q = Bench::new("cobalt", &[("limit", "1p"), ("target", "5ms")]);
            q.drain();
            (0..2).for_each(|i| drop(q.put(i, 1000)));
            q.at_ms(ms);
            q.put(3, 1000);
            q.gauge("p_blue") * 256.0
        };
        assert_eq!([0, 5, 6].map(after), [1.0, 1.0, 2.0]);
    }

    #[test]
    fn over_target_is_more_than_target() {
        for (ms, count) in [(5, 0.0), (6, 1.0)] {
            let mut q = Bench::new("cobalt", &[("target", "5ms"), ("mtu", "1000B")]);
            (0..2).for_each(|i| drop(q.put(i, 1000)));
            q.at_ms(ms);
            q.get();
            assert_eq!(q.gauge("count"), count, "{ms} ms");
        }
    }

    /// Ten packets that arrive at 0; at 20 ms the first of them leaves, and the next drop is
    /// planned at 120 ms.
    fn waiting(settings: &[(&str, &str)]) -> Bench {
        let mut q = Bench::new("cobalt", settings);
        q.ect();
        (0..10).for_each(|i| drop(q.put(i, 1000)));
        q.at_ms(20);
        assert_eq!(q.get(), (Some(0), vec![]));
        assert_eq!(q.gauge("drop_next"), 0.120);
        q
    }

    #[test]
    fn late_drops_are_made_up_for_and_late_marks_are_not() {
        // Due at 120, 190.7, 248.4 and 298.4 ms; the fifth at 343.2 ms.
        let mut q = waiting(&[]);
        q.at_ms(300);
        assert_eq!(q.get(), (Some(5), vec![1, 2, 3, 4]));
        assert!((q.gauge("drop_next") - 0.343_167_1).abs() < 1e-6);
        let mut q = waiting(&[("ecn", "true")]);
        q.at_ms(300);
        assert_eq!((q.get(), q.marked()), ((Some(1), vec![]), 1));
        assert_eq!(q.gauge("drop_next"), 0.300, "not 190.7 ms, which is over");
    }

    #[test]
    fn blue_does_not_save_a_packet_that_is_due() {
        // An overflow in the dropping state makes the next drop due at once. BLUE is at 1e-9.
        let mut q = waiting(&[("limit", "10p"), ("p_inc", "1e-9")]);
        q.put(10, 1000);
        assert_eq!(q.put(11, 1000), [11]);
        assert_eq!(q.gauge("p_blue"), 1e-9);
        assert_eq!(q.get(), (Some(2), vec![1]));
    }

    #[test]
    fn four_packets_are_no_queue() {
        // 20 ms are less than the time of four packets of 5100 bytes.
        let mut q = Bench::new("cobalt", &[("mtu", "5100B")]);
        assert_eq!(losses(&mut q), []);
        let mut q = Bench::new("cobalt", &[("mtu", "4900B")]);
        assert_eq!(losses(&mut q)[0], 120);
    }

    #[test]
    fn on_linux_the_first_signal_comes_with_the_second_packet_over_target() {
        let mut q = Bench::new("cobalt", &[("variant", "linux")]);
        // From 20 ms on, 1/sqrt(count) of an interval apart; count is 2 after the first signal.
        let drops = losses(&mut q);
        assert_eq!(drops[..4], [21, 91, 149, 199], "{drops:?}");
    }

    #[test]
    fn on_linux_overflow_drops_packets_at_the_head_and_raises_blue_once_per_target() {
        let mut q = Bench::new("cobalt", &[("variant", "linux"), ("limit", "2p")]);
        q.put(0, 1000);
        q.put(1, 1000);
        assert_eq!(q.put(2, 1000), [0]);
        assert_eq!(q.put(3, 1000), [1]);
        assert_eq!(q.gauge("p_blue") * 4096.0, 16.0);
        assert_eq!((q.gauge("count"), q.gauge("dropping")), (1.0, 1.0));
    }

    #[test]
    fn on_linux_target_is_at_least_one_and_a_half_packets() {
        let env = Env { limit: Size::Packets(9), ..Env::new(crate::Rate(1_000_000)) };
        let params = CobaltParams { variant: Variant::Linux, ..CobaltParams::default() };
        let settings = Cobalt::build(&params, &env).unwrap().linux.unwrap().settings;
        // 1514 bytes take 12.112 ms.
        assert_eq!((settings.target, settings.interval), (Span::us(18_168), Span::us(113_168)));
    }
}
