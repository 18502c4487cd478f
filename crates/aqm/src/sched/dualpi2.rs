//! DualPI2: two coupled queues for L4S and Classic packets under one PI controller.
//!
//! **Source** K. De Schepper, B. Briscoe, G. White, RFC 9332, 2023 (sections 2 and 4, appendix A).
//! Variant `linux`: sch_dualpi2 of Linux 6.17.
//!
//! **Decides** on departure; with `drop_enqueue` the coupled signals on arrival.
//!
//! **Measures** the age of the oldest packet, at every update; the sojourn time of L packets.
//!
//! **Symbols** parameters have the words of tc-dualpi2(8); the names of the RFC are accepted: `k`
//! (`coupling_factor`), `step` (`step_thresh`), `t_update` (`tupdate`), `th_len` (`min_qlen_step`).
//! `p_prime`, `p_c` and `p_cl` are its p', p_C and p_CL.
//!
//! **Algorithm** Packets with ECT(1) or CE join the queue L, all others the queue C. Every
//! `tupdate`, p' changes by `alpha (q - target) + beta (q - q_prev)`, where q is the delay of the
//! older of the two heads. C packets are dropped, or marked if they are ECN-capable, with
//! probability p'^2. L packets are marked with probability `max(p'_L, k p')`, where p'_L grows from
//! 0 to 1 while their own delay grows from `min_th` to `min_th + range`. Both probabilities are
//! applied without random numbers: each queue adds its probability to an accumulator, and signals
//! when it exceeds 1. If k p' reaches 1 (overload), both queues drop with probability p'^2, and the
//! L packets that are left are all marked.
//!
//! **Departures** (1) p_CL is limited to 1 before it is accumulated. The pseudocode does not limit
//! it, and then drops more L packets in overload than p'^2. (2) p'_L uses the sojourn time of the
//! packet that leaves (the text); the pseudocode reads the delay after removing it. (3) `limit` is
//! 10000 packets unless set; the RFC says 250 ms at the highest rate. (4) With `drop_on_overload =
//! false` p' is limited to 1/k, as on Linux: the buffer limits the delay in overload. (5) The
//! weighted round robin is as in Linux, with the weight 1/16. (6) Time-shifted FIFO serves C if L
//! is empty, whatever the age; the pseudocode would return nothing. (7) If the queue does not
//! change for more than 65,536 updates, only the last 65,536 are made.
//!
//! **Linux** (`variant = "linux"`, `sch_dualpi2`) (1) p' is an integer of 32 bits, and the gains
//! are integers per 64 ns: 44 and 879 by default. (2) Random numbers in place of accumulators; C
//! draws two, both at most p'. (3) A step in place of the ramp: L packets older than `step_thresh`
//! are marked, independently of k p'. (4) The step applies to a packet that found at least
//! `min_qlen_step` packets in L when it arrived; the RFC looks at those left behind when it
//! departs. (5) No signal by k p' or p'^2 while both queues hold less than two packets of size
//! `link_mtu`. (6) The limit is in packets; `memlimit` counts the memory of packets in the kernel.
//! (7) C has 10 % of the bytes while both queues wait. (8) Overload begins above 1, not at 1. (9)
//! `drop_enqueue` is possible. (10) Of the size of a change of p', in units of 2^-32, the lower 32
//! bits count: when a delay of more than 312 ms ends within one update, p' falls by less than the
//! equation says.
//!
//! **Cost** 400 bytes of state; O(1) per packet; no random numbers, in the variant linux one for an
//! L packet, up to two for a C packet or in overload.

pub mod linux;

use super::dual::{CoupledAqm, Dual, DualParams, Lane, Queues};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::packet::Packet;
use crate::params::Checked;
use crate::qdisc::Backlog;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Span, Threshold, Time};
use linux::LinuxPi2;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Dual<DualPi2>>(
    "dualpi2",
    "two coupled queues for L4S and Classic packets under one PI controller",
)
.aliases(&["dualq", "dualq_coupled"])
.decides("on departure: the queue, and a drop or mark with p'^2 in C, k p' or a delay ramp in L")
.source("RFC 9332");

crate::choice! {
    /// Implementation that is followed.
    pub enum Variant {
        /// Appendix A of RFC 9332.
        Rfc = "rfc",
        /// Linux's sch_dualpi2.
        Linux = "linux",
    }
}

crate::params! {
    /// Parameters of [`DualPi2`].
    pub struct DualPi2Params {
        /// Implementation that is followed.
        variant: Variant = Variant::Rfc, [], "", [];
        /// Target delay of the PI controller; auto: 15ms, or typical_rtt if one of the round-trip
        /// times is set.
        target: Option<Span> = None, [Span::us(1) => Span::s(10)], "target", [];
        /// Time between updates of p'; auto: the smaller of target and a third of max_rtt, under
        /// the variant linux 16ms unless a round-trip time is set.
        tupdate: Option<Span> = None,
            [Span::us(1) => Span::s(10)], "Tupdate", ["t_update"];
        /// Gain of the difference between delay and target, 1/s; auto: 0.1 tupdate / max_rtt^2,
        /// under the variant linux 41/256 unless a round-trip time is set.
        alpha: Option<f64> = None, [0.0 => 1e6], "alpha", [];
        /// Gain of the change of the delay, 1/s; auto: 0.3 / max_rtt, under the variant linux
        /// 819/256 unless a round-trip time is set.
        beta: Option<f64> = None, [0.0 => 1e6], "beta", [];
        /// Largest round-trip time for which the controller is stable; auto: 100ms, or 6 times
        /// typical_rtt.
        max_rtt: Option<Span> = None, [Span::us(1) => Span::s(10)], "RTT_max", [];
        /// Typical round-trip time; auto: a sixth of max_rtt.
        typical_rtt: Option<Span> = None, [Span::us(1) => Span::s(10)], "RTT_typ", [];
        /// Coupling factor: mark probability in L divided by p'.
        coupling_factor: f64 = 2.0, [0.1 => 255.0], "k", ["k"];
        /// Delay in L at which the ramp of the native AQM starts; auto: 800us (rfc).
        min_th: Option<Span> = None, [Span(1) => Span::s(10)], "minTh", [];
        /// Length of the ramp; auto: 400us (rfc).
        range: Option<Span> = None, [Span(1) => Span::s(10)], "range", [];
        /// Threshold above which every L packet is marked, a delay or a number of packets in L;
        /// auto: none (the ramp applies), under the variant linux 1ms.
        step_thresh: Option<Threshold> = None, [], "", ["step"];
        /// Number of packets in L up to which the native AQM does not mark: left behind at
        /// departure (rfc; auto: 1); under the variant linux, the native AQM marks a packet that
        /// found at least as many on arrival (auto: 0).
        min_qlen_step: Option<u64> = None, [0 => 1_000_000], "Th_len", ["th_len"];
        /// If true, both queues drop in overload; if false, they grow up to the limit.
        drop_on_overload: bool = true, [], "", [];
        /// If true, coupled signals are decided at enqueue (linux only).
        drop_enqueue: bool = false, [], "", [];
        /// Limit on the memory of the queued packets as Linux counts it (linux only); auto: two
        /// packets of size link_mtu per packet of limit.
        memlimit: Option<Bytes> = None,
            [Bytes(1) => Bytes(1_000_000_000_000)], "", ["memory_limit"];
    }
}

/// Settings of a PI controller.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
struct Gains {
    target: Span,
    period: Span,
    /// Per second.
    alpha: f64,
    beta: f64,
}

impl Gains {
    // RFC 9332 Fig. 2. Returns the settings, and whether a round-trip time was set.
    fn of(params: &DualPi2Params) -> Result<(Gains, bool)> {
        let DualPi2Params { max_rtt, typical_rtt, .. } = params;
        let set = max_rtt.is_some() || typical_rtt.is_some();
        let max = max_rtt.or(typical_rtt.map(|t| Span(6 * t.0))).unwrap_or(Span::ms(100));
        let typical = typical_rtt.unwrap_or(Span(max.0 / 6));
        if typical > max {
            let text = alloc::format!("{typical} is above max_rtt ({max})");
            return Err(Error::new(text).at("typical_rtt"));
        }
        let target = params.target.unwrap_or(if set { typical } else { Span::ms(15) });
        let period = params.tupdate.unwrap_or(Span(target.0.min(max.0 / 3).max(1)));
        let rtt = max.as_secs();
        let alpha = params.alpha.unwrap_or(0.1 * period.as_secs() / (rtt * rtt));
        let beta = params.beta.unwrap_or(0.3 / rtt);
        Ok((Gains { target, period, alpha, beta }, set))
    }
}

/// Times of the updates. Between two of them a packet costs one comparison.
#[derive(Clone, Debug, Snapshot)]
struct Updates {
    next: Time,
    period: Span,
}

/// Number of updates that are made after a long time without a packet.
const UPDATES_MAX: u64 = 65_536;

impl Updates {
    fn new(env: &Env, period: Span) -> Updates {
        Updates { next: env.first_update.unwrap_or(Time::NEVER), period }
    }

    fn start(&mut self, now: Time) {
        if self.next == Time::NEVER {
            self.next = now + self.period;
        }
    }

    /// Makes the updates of `controller` that are due at `now`; the queues did not change since the
    /// last call.
    #[inline]
    fn run(&mut self, now: Time, queues: &Queues, controller: &mut impl Controller) {
        if now >= self.next && self.next != Time::NEVER {
            self.catch_up(now, queues, controller);
        }
    }

    fn catch_up(&mut self, now: Time, queues: &Queues, controller: &mut impl Controller) {
        let n = 1 + (now - self.next).0 / self.period.0;
        let first = self.next;
        let time = |i: u64| first + Span(i.saturating_mul(self.period.0));
        match queues.oldest() {
            None => {
                controller.update(Span::ZERO);
                controller.update_idle(n - 1);
            }
            Some(arrived) => {
                for i in n.saturating_sub(UPDATES_MAX)..n {
                    // The delay grows by a period per update, so that p' stays at its maximum.
                    let late = controller.update(time(i).since(arrived));
                    if late && i > 0 {
                        controller.update(time(n - 1).since(arrived));
                        break;
                    }
                }
            }
        }
        self.next = time(n);
    }
}

/// PI controller of a delay.
trait Controller {
    /// Updates at a delay; returns true if p' is at its maximum and did not fall.
    fn update(&mut self, delay: Span) -> bool;
    /// `n` updates at a delay of 0, after one at a delay of 0.
    fn update_idle(&mut self, n: u64);
}

/// State of DualPI2 for both queues.
#[derive(Clone, Debug, Snapshot)]
pub enum DualPi2 {
    /// RFC 9332.
    Rfc(RfcPi2),
    /// Linux.
    Linux(LinuxPi2),
}

impl Dual<DualPi2> {
    /// Makes one periodic update at `at`, in addition to the scheduled ones. For the replay of a
    /// recording whose update times are known.
    #[doc(hidden)]
    pub fn update_at(&mut self, at: Time) {
        let delay = self.queues.oldest().map_or(Span::ZERO, |arrived| at.since(arrived));
        match &mut self.aqm {
            DualPi2::Rfc(rfc) => rfc.pi.update(delay),
            DualPi2::Linux(linux) => linux.pi.update(delay),
        };
    }
}

impl CoupledAqm for DualPi2 {
    type Params = DualPi2Params;

    fn new(params: Checked<'_, DualPi2Params>, dual: &DualParams, env: &Env) -> Result<Self> {
        Ok(match params.variant {
            Variant::Rfc => DualPi2::Rfc(RfcPi2::new(&params, dual, env)?),
            Variant::Linux => DualPi2::Linux(LinuxPi2::new(&params, dual, env)?),
        })
    }

    fn classic_protection(&self) -> f64 {
        match self {
            DualPi2::Rfc(_) => 6.25,
            DualPi2::Linux(_) => 10.0,
        }
    }

    fn on_first_packet(&mut self, now: Time) {
        match self {
            DualPi2::Rfc(rfc) => rfc.updates.start(now),
            DualPi2::Linux(linux) => linux.updates.start(now),
        }
    }

    #[inline]
    fn on_update(&mut self, now: Time, queues: &Queues) {
        match self {
            DualPi2::Rfc(rfc) => rfc.updates.run(now, queues, &mut rfc.pi),
            DualPi2::Linux(linux) => linux.updates.run(now, queues, &mut linux.pi),
        }
    }

    fn fits(&self, dual: &DualParams, queues: &Queues, packet: &Packet, ahead: Backlog) -> bool {
        let queued = queues.backlog() + ahead;
        match self {
            DualPi2::Rfc(_) => super::dual::fits_with_spare(dual, queued, packet),
            DualPi2::Linux(linux) => linux.fits(dual, queued, packet),
        }
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queues: &Queues,
        lane: Lane,
        packet: &mut Packet,
    ) -> bool {
        match self {
            DualPi2::Rfc(_) => true,
            DualPi2::Linux(linux) => linux.on_enqueue(context, queues, lane, packet),
        }
    }

    #[inline]
    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queues: &Queues,
        lane: Lane,
        packet: &mut Packet,
    ) -> bool {
        match self {
            DualPi2::Rfc(rfc) => rfc.on_dequeue(context, queues, lane, packet),
            DualPi2::Linux(linux) => linux.on_dequeue(context, queues, lane, packet),
        }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let (p_prime, k, q_prev) = match self {
            DualPi2::Rfc(rfc) => (rfc.pi.p_prime, rfc.k, rfc.pi.q_prev),
            DualPi2::Linux(linux) => (linux.pi.share(), linux.k as f64, linux.pi.q_prev),
        };
        // Output of the controller: square root of the drop probability in C.
        visit("p_prime", p_prime);
        // Drop probability in C.
        visit("p_c", p_prime * p_prime);
        // Mark probability in L by coupling, at most 1.
        visit("p_cl", (k * p_prime).min(1.0));
        // Delay at the last update, seconds.
        visit("q_prev", q_prev.as_secs());
    }

    fn heap(&self) -> usize {
        match self {
            DualPi2::Rfc(_) => 0,
            DualPi2::Linux(linux) => linux.heap(),
        }
    }
}

/// PI controller in real numbers.
#[derive(Clone, Debug, Snapshot)]
struct Pi {
    gains: Gains,
    p_prime: f64,
    /// Largest p'.
    p_max: f64,
    q_prev: Span,
}

impl Controller for Pi {
    // RFC 9332 Fig. 8
    fn update(&mut self, delay: Span) -> bool {
        let Gains { target, alpha, beta, .. } = self.gains;
        let (q, old) = (delay.as_secs(), self.q_prev.as_secs());
        let change = alpha * (q - target.as_secs()) + beta * (q - old);
        self.p_prime = (self.p_prime + change).clamp(0.0, self.p_max);
        self.q_prev = delay;
        self.p_prime >= self.p_max && change >= 0.0
    }

    fn update_idle(&mut self, n: u64) {
        let fall = n as f64 * self.gains.alpha * self.gains.target.as_secs();
        self.p_prime = (self.p_prime - fall).max(0.0);
    }
}

/// Native AQM of the queue L: probability by the delay or the length.
#[derive(Clone, Copy, Debug, Snapshot)]
enum Native {
    Ramp { start: Span, range: Span },
    Step(Threshold),
}

impl Native {
    fn new(params: &DualPi2Params) -> Result<Native> {
        let Some(step) = params.step_thresh else {
            return Ok(Native::Ramp {
                start: params.min_th.unwrap_or(Span::us(800)),
                range: params.range.unwrap_or(Span::us(400)),
            });
        };
        let ramp = [("min_th", params.min_th), ("range", params.range)];
        match ramp.into_iter().find(|(_, value)| value.is_some()) {
            Some((name, _)) => Err(Error::new("is not allowed with step_thresh").at(name)),
            None => Ok(Native::Step(step)),
        }
    }

    // RFC 9332 Fig. 5: laqm
    fn probability(self, delay: Span, left: u32) -> f64 {
        match self {
            Native::Ramp { start, range } => {
                let above = delay.0.saturating_sub(start.0);
                (above as f64 / range.0 as f64).min(1.0)
            }
            Native::Step(Threshold::Time(time)) => f64::from(u8::from(delay > time)),
            Native::Step(Threshold::Packets(n)) => f64::from(u8::from(u64::from(left) > n)),
        }
    }
}

/// State of DualPI2 as in RFC 9332.
#[derive(Clone, Debug, Snapshot)]
pub struct RfcPi2 {
    updates: Updates,
    pi: Pi,
    k: f64,
    native: Native,
    th_len: u32,
    drop_on_overload: bool,
    may_mark: bool,
    /// Accumulated probability of each queue since its last signals.
    count_c: f64,
    count_l: f64,
}

// RFC 9332 Fig. 5: adds `likelihood` to `count`; true if a signal is due.
fn recur(count: &mut f64, likelihood: f64) -> bool {
    *count += likelihood;
    let due = *count > 1.0;
    *count -= f64::from(u8::from(due));
    due
}

impl RfcPi2 {
    fn new(params: &DualPi2Params, dual: &DualParams, env: &Env) -> Result<RfcPi2> {
        for (name, set) in
            [("drop_enqueue", params.drop_enqueue), ("memlimit", params.memlimit.is_some())]
        {
            if set {
                return Err(Error::new("needs variant = \"linux\"").at(name));
            }
        }
        let (gains, _) = Gains::of(params)?;
        let k = params.coupling_factor;
        let p_max = if params.drop_on_overload { 1.0 } else { (1.0 / k).min(1.0) };
        Ok(RfcPi2 {
            updates: Updates::new(env, gains.period),
            pi: Pi { gains, p_prime: 0.0, p_max, q_prev: Span::ZERO },
            k,
            native: Native::new(params)?,
            th_len: crate::cast::saturate32(params.min_qlen_step.unwrap_or(1)),
            drop_on_overload: params.drop_on_overload,
            may_mark: dual.ecn,
            count_c: 0.0,
            count_l: 0.0,
        })
    }

    // RFC 9332 Fig. 5
    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queues: &Queues,
        lane: Lane,
        packet: &mut Packet,
    ) -> bool {
        let p_prime = self.pi.p_prime;
        let (p_c, p_cl) = (p_prime * p_prime, (self.k * p_prime).min(1.0));
        if lane == Lane::C {
            let overload = self.drop_on_overload && p_c >= (1.0 / (self.k * self.k)).min(1.0);
            return !recur(&mut self.count_c, p_c)
                || (!overload && self.may_mark && context.mark(packet));
        }
        let signal = if self.drop_on_overload && p_cl >= 1.0 {
            if recur(&mut self.count_l, p_c) {
                return false;
            }
            recur(&mut self.count_l, p_cl)
        } else {
            let left = queues.packets(Lane::L);
            let delay = context.now.since(packet.arrived);
            let native =
                if left > self.th_len { self.native.probability(delay, left) } else { 0.0 };
            recur(&mut self.count_l, native.max(p_cl))
        };
        !signal || context.mark(packet)
    }
}

#[cfg(test)]
mod tests;
