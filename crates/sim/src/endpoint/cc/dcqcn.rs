//! DCQCN: a rate that falls with congestion notifications and rises with timers, as in QCN.
//!
//! **Source**: Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015;
//! values and order of the updates as in the authors' simulator (bobzhuyb/ns3-rdma). Variant `nic`:
//! HPCC's simulator (alibaba-edu/High-Precision-Congestion-Control).
//!
//! **Symbols** RC, RT, `alpha`, `g`, `F`, `R_AI`, `R_HAI`, `T`, `B`, `K` (here `alpha_timer`),
//! `N` (here `cnp_interval`) as in the paper.
//!
//! **Algorithm**
//!
//! 1. A congestion notification (CNP) is an ack that reports a marked packet, at least
//!    `cnp_interval` after the last one. It sets RT = RC, alpha = (1 - g) alpha + g, RC = RC (1 -
//!    alpha / 2), and restarts the timers and counters.
//! 2. From the first notification on, each `alpha_timer` without one: alpha = (1 - g) alpha.
//! 3. Each expiry of the timer T and of the byte counter B increases its stage, and the rate: with
//!    both stages below F, RC = (RC + RT) / 2. With one or both beyond, RT += `R_AI` first; with
//!    both above F, RT += i `R_HAI`, where i is the smaller stage less F.
//!
//! Variant `nic`: every marked ack is a notification. Each `alpha_timer` alpha = (1 - g) alpha,
//! plus g if there was one since the last time; each `cnp_interval` RC = RC (1 - alpha / 2) if
//! there was one. RT = RC then only if the rate has grown since the last reduction. The first F
//! expiries of T recover, the next adds `R_AI`, all others add `R_HAI`. There is no byte counter.
//!
//! **Departures**: the receiver sends no notifications; acks count the marks, and the sender keeps
//! the interval between two that it reacts to. That is the same if acks and notifications take the
//! same time. The counter B counts payload. RT is at most the line rate. In the authors' simulator
//! hyper increase starts at F, with i one larger, and halves T and B. The first rate is not the
//! line rate, which a flow does not know, unless `initial_rate` is set. The network may lose
//! packets: a loss or a timeout halves RC with alpha = 1, and sets RT to it. Acks are not delayed
//! unless `delayed_ack` is set.
//!
//! **Cost**: constant work per ack, and per expiry of a timer.

use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, ProcessedAck, SendingRate,
    SentSegment, TcpEntry, Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Bytes, Rate, Span, Time};
use sojourn_aqm::{choice, params};

choice! {
    /// Variant of DCQCN.
    pub enum DcqcnVariant {
        /// As in the paper: each notification reduces the rate.
        Paper = "paper",
        /// As in network adapters and the simulator of HPCC: timers look for notifications.
        Nic = "nic",
    }
}

params! {
    /// Parameters of [`Dcqcn`].
    pub struct DcqcnParams {
        /// Variant: paper, or nic (as in network adapters and the simulator of HPCC, where timers
        /// look for notifications).
        variant: DcqcnVariant = DcqcnVariant::Paper, [], "", [];
        /// Rate on the wire with which a connection starts; auto: the initial window per round-trip
        /// time of the handshake. In the paper the line rate.
        initial_rate: Option<Rate> = None, [Rate(1_000) => Rate(10_000_000_000_000)], "", [];
        /// Lower bound of the rate.
        min_rate: Rate = Rate(1_000_000), [Rate(1_000) => Rate(10_000_000_000_000)], "", [];
        /// Upper bound of the rate: the line rate; auto: the rate of the first link of the path.
        max_rate: Option<Rate> = None, [Rate(1_000) => Rate(10_000_000_000_000)], "",
            ["line_rate"];
        /// Weight of a notification in the moving average.
        g: f64 = 0.00390625, [1e-6 => 1.0], "g", [];
        /// Initial value of the moving average; 1 makes the first reduction a half.
        alpha: f64 = 1.0, [0.0 => 1.0], "alpha", ["initial_alpha"];
        /// Least time between two notifications; in nic, between two reductions.
        cnp_interval: Span = Span::us(50), [Span(1) => Span::s(1)], "N", [];
        /// Time without a notification after which the average decays; in nic, time between two
        /// updates of the average.
        alpha_timer: Span = Span::us(55), [Span(1) => Span::s(1)], "K", [];
        /// Time between two increases of the rate by the timer.
        timer: Span = Span::us(60), [Span(1) => Span::s(1)], "T", [];
        /// Bytes between two increases of the rate by the byte counter; no effect in nic.
        byte_counter: Bytes = Bytes(300_000_000), [Bytes(1_000) => Bytes(1_000_000_000_000)],
            "B", [];
        /// Number of stages of fast recovery.
        f: u64 = 5, [1 => 1_000], "F", ["stages"];
        /// Additive increase of the target rate.
        rate_ai: Rate = Rate(40_000_000), [Rate(100_000) => Rate(1_000_000_000_000)], "R_AI", [];
        /// Hyper increase of the target rate, per stage beyond F; in nic, of every stage.
        rate_hai: Rate = Rate(200_000_000), [Rate(100_000) => Rate(1_000_000_000_000)], "R_HAI",
            [];
    }
}

/// Line rate of a sender outside of a scenario.
const UNKNOWN_LINE: Rate = Rate(100_000_000_000);

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "dcqcn",
    aliases: &[],
    about: "data centres: a rate that falls with ECN marks and rises with timers; not in ns2",
    source: "Zhu et al., DCQCN, SIGCOMM 2015",
    profile: Profile::Rfc,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Dcqcn(DcqcnParams::default()),
};

/// DCQCN state.
#[derive(Clone, Debug, Snapshot)]
pub struct Dcqcn {
    params: DcqcnParams,
    /// Current rate, RC.
    rate: SendingRate,
    /// Target rate, RT, bit/s.
    target: f64,
    alpha: f64,
    /// True if the ack being processed reports a mark.
    marked: bool,
    /// Time of the last notification.
    notified: Option<Time>,
    /// Next decay of alpha, and next expiry of the timer.
    decay_at: Time,
    timer_at: Time,
    /// State of the variant nic.
    nic: Option<Nic>,
    /// Payload sent since the last expiry of the byte counter.
    bytes: u64,
    /// Stages of timer and byte counter.
    stages: [u64; 2],
}

/// Notifications that the timers of the variant nic have not seen.
#[derive(Clone, Debug, Default, Snapshot)]
struct Nic {
    /// Time of the next check for a reduction; `None` before the first notification.
    check_at: Option<Time>,
    /// True if the next update of alpha counts a notification, and the next check reduces the rate.
    alpha_is_due: bool,
    reduction_is_due: bool,
}

/// Returns the number of times that a timer at `at` of period `period` has expired by `now`, and
/// sets its next expiry.
fn expiries(at: &mut Time, now: Time, period: Span) -> u64 {
    let count = if now < *at { 0 } else { (now - *at).0 / period.0 + 1 };
    *at += Span(count * period.0);
    count
}

impl Dcqcn {
    /// Rate on the wire, bit/s.
    pub fn rate_bps(&self) -> f64 {
        self.rate.bits()
    }

    /// Moving average of notifications.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Handles a marked ack at `now` (rule 1).
    fn on_mark(&mut self, now: Time) {
        if let Some(nic) = &mut self.nic {
            nic.reduction_is_due = true;
            nic.alpha_is_due = nic.check_at.is_some();
            if nic.check_at.is_none() {
                // After the update of alpha at the same time.
                nic.check_at = Some(now + self.params.cnp_interval + Span(1));
                self.decay_at = now + self.params.alpha_timer;
                self.target = self.rate.bits();
            }
        } else if self.notified.is_none_or(|at| now - at >= self.params.cnp_interval) {
            self.alpha += self.params.g * (1.0 - self.alpha);
            self.target = self.rate.bits();
            self.notified = Some(now);
            self.decay_at = now + self.params.alpha_timer;
            self.reduce(now);
        }
    }

    /// Reduces the rate by half of alpha, and restarts timer and byte counter.
    fn reduce(&mut self, now: Time) {
        self.rate.set(self.rate.bits() * (1.0 - self.alpha / 2.0));
        self.timer_at = now + self.params.timer;
        (self.bytes, self.stages) = (0, [0, 0]);
    }

    /// Handles the expiries of the timers up to `now`.
    fn advance(&mut self, now: Time) {
        if let Some(at) = self.reduction_by(now) {
            self.run_timers(at);
            if self.stages[0] > 0 {
                self.target = self.rate.bits();
            }
            self.reduce(at);
        }
        self.run_timers(now);
    }

    /// Returns the time of the reduction that the variant nic has to make up to `now`.
    fn reduction_by(&mut self, now: Time) -> Option<Time> {
        let nic = self.nic.as_mut()?;
        let at = nic.check_at.filter(|at| *at <= now)?;
        let interval = self.params.cnp_interval.0;
        nic.check_at = Some(at + Span(((now - at).0 / interval + 1) * interval));
        std::mem::take(&mut nic.reduction_is_due).then_some(at)
    }

    /// Decays alpha and increases the rate up to `now`.
    fn run_timers(&mut self, now: Time) {
        let mut decays = expiries(&mut self.decay_at, now, self.params.alpha_timer);
        if decays > 0 {
            if self.nic.as_mut().is_some_and(|nic| std::mem::take(&mut nic.alpha_is_due)) {
                self.alpha += self.params.g * (1.0 - self.alpha);
                decays -= 1;
            }
            self.alpha *= libm::pow(1.0 - self.params.g, decays as f64);
        }
        for left in (0..expiries(&mut self.timer_at, now, self.params.timer)).rev() {
            self.stages[0] += 1;
            self.increase();
            if self.rate.bits() >= self.rate.most() {
                self.stages[0] += left; // they change nothing else
                break;
            }
        }
    }

    /// Increases the rate after an expiry (rule 3).
    fn increase(&mut self) {
        let (p, [timer, counter]) = (&self.params, self.stages);
        let (more, fewer) = (timer.max(counter), timer.min(counter));
        let growth = if self.nic.is_some() {
            let rates = [0.0, p.rate_ai.0 as f64, p.rate_hai.0 as f64];
            rates[usize::from(timer > p.f) + usize::from(timer > p.f + 1)]
        } else if more < p.f {
            0.0
        } else if fewer > p.f {
            (fewer - p.f) as f64 * p.rate_hai.0 as f64
        } else {
            p.rate_ai.0 as f64
        };
        self.target = (self.target + growth).min(self.rate.most());
        self.rate.set(f64::midpoint(self.rate.bits(), self.target));
    }
}

impl CongestionControl for Dcqcn {
    type Params = DcqcnParams;

    fn new(params: &DcqcnParams, common: &CommonParams, _: &mut dyn Random) -> Dcqcn {
        let line = params.max_rate.unwrap_or(UNKNOWN_LINE);
        let bounds = (params.min_rate.min(line), line);
        Dcqcn {
            rate: SendingRate::new(common, params.initial_rate, bounds),
            target: 0.0,
            alpha: params.alpha,
            nic: (params.variant == DcqcnVariant::Nic).then(Nic::default),
            params: params.clone(),
            marked: false,
            notified: None,
            decay_at: Time::NEVER,
            timer_at: Time::NEVER,
            bytes: 0,
            stages: [0, 0],
        }
    }

    fn reset(&mut self) {
        (self.alpha, self.marked, self.notified) = (self.params.alpha, false, None);
        (self.decay_at, self.timer_at) = (Time::NEVER, Time::NEVER);
        self.nic = self.nic.take().map(|_| Nic::default());
    }

    fn on_ack(&mut self, _: &mut Window, _: &NewDataAck) {}

    fn on_congestion(&mut self, now: Time, _: &Window, _: u64, cause: CongestionSignal) -> u64 {
        if cause != CongestionSignal::Mark {
            self.advance(now);
            self.alpha = 1.0;
            (self.notified, self.decay_at) = (Some(now), now + self.params.alpha_timer);
            self.reduce(now);
            self.target = self.rate.bits(); // the former rate was too high
        }
        self.rate.window()
    }

    fn reacts_to_mark_fraction(&self) -> bool {
        true
    }

    fn reduces_for_loss_after_mark(&self) -> bool {
        true
    }

    fn sending_rate(&self) -> Option<&SendingRate> {
        Some(&self.rate)
    }

    fn on_established(&mut self, now: Time, window: &Window, rtt: Option<Span>) {
        self.rate.start(window, rtt);
        self.target = self.rate.bits();
        self.timer_at = now + self.params.timer;
        (self.bytes, self.stages) = (0, [0, 0]);
    }

    fn on_ecn_feedback(&mut self, _: u64, _: u64, marked: u64, _: u64) {
        self.marked = marked > 0;
    }

    fn uses_delivery_hooks(&self) -> bool {
        true
    }

    fn on_ack_processed(&mut self, window: &mut Window, ack: &ProcessedAck) {
        window.cwnd = self.rate.window();
        self.advance(ack.now);
        if std::mem::take(&mut self.marked) {
            self.on_mark(ack.now);
        }
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        self.advance(sent.now);
        self.bytes += if self.nic.is_some() { 0 } else { sent.end - sent.seq };
        if self.bytes >= self.params.byte_counter.0 {
            self.bytes -= self.params.byte_counter.0;
            self.stages[1] += 1;
            self.increase();
        }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("rate_bps", self.rate.bits());
        visit("alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::super::RecoveryState;
    use super::super::testing::processed;
    use super::*;

    const WINDOW: Window = Window { cwnd: 14_600, ssthresh: u64::MAX, mss: 1_460 };
    const AT: u64 = 1_000_000;

    /// Control at 10 Gbit/s, established at 1 ms, with g = 1/16 and alpha = 1.
    fn dcqcn() -> Dcqcn {
        let (g, initial_rate) = (0.0625, Some(Rate(10_000_000_000)));
        let params = DcqcnParams { g, initial_rate, ..DcqcnParams::default() };
        let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
        let mut d = Dcqcn::new(&params, &CommonParams::default(), &mut rng);
        d.on_established(Time(AT), &WINDOW, Some(Span::us(20)));
        d
    }

    /// Rate in Mbit/s after an ack `us` after the connection was established.
    fn ack(d: &mut Dcqcn, us: u64, marked: u64) -> f64 {
        let mut window = WINDOW;
        d.on_ecn_feedback(1, 1_460, marked, 2);
        let now = Time(AT + us * 1_000);
        d.on_ack_processed(&mut window, &processed(now, 1, 0, RecoveryState::Open));
        assert_eq!(window.cwnd, 1_460_000_000, "the receive window");
        d.rate_bps() / 1e6
    }

    #[test]
    fn a_notification_reduces_the_rate_and_the_timer_recovers_it() {
        let mut d = dcqcn();
        assert_eq!(ack(&mut d, 10, 0), 10_000.0);
        assert_eq!(ack(&mut d, 20, 1_460), 5_000.0, "alpha stays 1");
        // Half of the way to 10,000 each 60 us; alpha decays each 55 us.
        assert_eq!([79, 80, 139, 140].map(|us| ack(&mut d, us, 0)), [5e3, 7.5e3, 7.5e3, 8.75e3]);
        assert!((d.alpha() - 0.9375 * 0.9375).abs() < 1e-12, "{}", d.alpha());
        assert_eq!(ack(&mut d, 260, 0), 9_687.5, "two expiries at once, the fourth stage");
        // The fifth stage adds 40 to the target.
        assert_eq!([320, 380].map(|us| ack(&mut d, us, 0)), [9_863.75, 9_971.875]);
        assert_eq!(d.stages, [6, 0]);
        let before = d.alpha(); // six decays
        assert!((before - libm::pow(0.9375, 6.0)).abs() < 1e-12, "{before}");
        let alpha = before * 0.9375 + 0.0625;
        let rate = ack(&mut d, 380, 1_460);
        assert!((rate - 9_971.875 * (1.0 - alpha / 2.0)).abs() < 1e-6);
        assert!((d.alpha() - alpha).abs() < 1e-12);
        assert_eq!((d.target, d.stages), (9_971.875e6, [0, 0]));
    }

    #[test]
    fn there_is_at_most_one_notification_per_interval() {
        let mut d = dcqcn();
        assert_eq!(ack(&mut d, 0, 1_460), 5_000.0);
        assert_eq!([1, 49].map(|us| ack(&mut d, us, 1_460)), [5_000.0; 2]);
        assert_eq!(ack(&mut d, 50, 0), 5_000.0, "a mark is not kept for later");
        assert_eq!(ack(&mut d, 51, 1_460), 2_500.0);
        assert_eq!(d.target, 5e9);
    }

    #[test]
    fn timer_and_byte_counter_together_increase_faster() {
        let mut d = dcqcn();
        d.params.byte_counter = Bytes(1_460);
        d.rate.set(1e9);
        let sent = |us: u64, i: u64| {
            let (now, seq) = (Time(AT + us * 1_000), 1 + i * 1_460);
            SentSegment { now, seq, end: seq + 1_460, ..SentSegment::default() }
        };
        (d.target, d.params.f) = (1e9, 2);
        let mut rates = vec![];
        for i in 0..3 {
            d.on_sent(&sent(1, i));
            rates.push(d.rate_bps() / 1e6);
        }
        // Stage 1 of 2 recovers, stages 2 and 3 add 40: targets 1040 and 1080.
        assert_eq!(rates, [1_000.0, 1_020.0, 1_050.0]);
        assert_eq!(ack(&mut d, 60, 0), (1_050.0 + 1_120.0) / 2.0, "the timer's first stage");
        assert_eq!(ack(&mut d, 120, 0), (1_085.0 + 1_160.0) / 2.0, "and its second: not above F");
        // Its third: both are above 2 by 1. Then the counter is at 4, the timer still at 3.
        assert_eq!(ack(&mut d, 180, 0), (1_122.5 + 1_360.0) / 2.0);
        d.on_sent(&sent(181, 3));
        assert_eq!(d.rate_bps() / 1e6, (1_241.25 + 1_560.0) / 2.0);
        ack(&mut d, 240, 0);
        assert_eq!(d.target, 1.96e9, "both above by 2");
    }

    #[test]
    fn long_idle_times_take_little_work_and_end_at_the_line_rate() {
        let mut d = dcqcn();
        ack(&mut d, 0, 1_460);
        assert_eq!(ack(&mut d, 3_600_000_000, 0), 100_000.0);
        assert_eq!((d.alpha(), d.stages[0]), (0.0, 60_000_000));
    }

    #[test]
    fn a_loss_halves_the_rate_and_a_mark_is_left_to_the_notification() {
        let mut d = dcqcn();
        d.alpha = 0.2;
        let window = 1_460_000_000;
        let now = Time(AT + 1_000);
        assert_eq!(d.on_congestion(now, &WINDOW, 0, CongestionSignal::Mark), window);
        assert_eq!((d.rate_bps(), d.alpha()), (1e10, 0.2));
        assert_eq!(d.on_congestion(now, &WINDOW, 0, CongestionSignal::Loss), window);
        assert_eq!((d.rate_bps(), d.alpha(), d.target), (5e9, 1.0, 5e9));
        assert_eq!(d.initial_window(now, &WINDOW, None), window);
        assert_eq!(ack(&mut d, 241, 0), 5_000.0, "no way back to the former rate");
        assert_eq!(ack(&mut d, 301, 0), 5_020.0, "the fifth stage");
    }

    #[test]
    fn a_new_connection_starts_afresh() {
        let mut d = dcqcn();
        let fresh = format!("{d:?}");
        ack(&mut d, 500, 1_460);
        d.on_sent(&SentSegment { now: Time(AT + 600_000), end: 9, ..SentSegment::default() });
        d.reset();
        d.on_established(Time(AT), &WINDOW, Some(Span::us(20)));
        assert_eq!(format!("{d:?}"), fresh);
        assert!((d.own_pacing_rate().unwrap() - 1_216_666_666.7).abs() < 1.0);
        assert!(d.keeps_window_when_idle() && !d.paces_bursts() && d.uses_delivery_hooks());
        assert!(d.reacts_to_mark_fraction() && d.reduces_for_loss_after_mark());
        let mut shown = vec![];
        d.inspect(&mut |name, value| shown.push((name, value)));
        assert_eq!((shown, d.unpaced_segments()), (vec![("rate_bps", 1e10), ("alpha", 1.0)], 0));
    }
}
