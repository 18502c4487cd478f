//! PowerTCP: a rate from the product of arrival rate and queue of a link, its power, which links
//! report (INT); or, as theta-PowerTCP, from round-trip times.
//!
//! **Source**: V. Addanki, O. Michel, S. Schmid, "PowerTCP: Pushing the Performance Limits of
//! Datacenter Networks", NSDI 2022, algorithms 1 and 2; values and order of the updates as in the
//! authors' simulator (inet-tub/ns3-datacenter).
//!
//! **Symbols** `gamma`, `beta` (here the rate `rate_ai`), tau (here `base_rtt`) as in the paper;
//! `eta` of the simulator; the reference is a rate R and not a window.
//!
//! **Algorithm** With each ack:
//!
//! 1. For each link of rate C, the power is max(rate of arrivals, C / 2) x (queue + C x T), and P
//!    is the largest power / (C x C T) of all links, over the time since the last ack's packet left
//!    that link. With `variant = "theta"`, P = max(1 + change of the round-trip time / time between
//!    the acks, 1 / 2) x RTT / (1.05 T), where T is the least round-trip time.
//! 2. P_avg = P_avg (1 - time / T) + P time / T, with at most T; it starts at 1.
//! 3. rate = `gamma` (R / (P_avg / `eta`) + `rate_ai`) + (1 - `gamma`) R; without `eta` in theta.
//! 4. The first ack of a packet that was sent after the last change of R sets R to the rate.
//! 5. The window is rate x T, in whole packets rounded up. A connection starts at the line rate.
//!
//! **Departures**: the first ack changes no rate, since there is no state of the links to compare
//! with. Arrivals are computed from the sent bytes, the packet and the queue behind it, so that
//! dropped packets do not count; the simulator's switches count bytes that entered the queue. Links
//! that report, header, changes of the path and losses are as in [`hpcc`](hpcc.md). The round-trip
//! time of retransmitted data is not used. Acks are not delayed unless `delayed_ack` is set.
//!
//! **Cost**: as [`hpcc`](hpcc.md); with `theta` one record per segment in flight.

use super::reference_rate::ReferenceRate;
use super::sending_rate::SendingRate;
use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, ProcessedAck, RateEstimator,
    SentSegment, TcpEntry, Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use crate::endpoint::telemetry::{PathTelemetry, bits, bits_per_second};
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Rate, Span, Time};
use sojourn_aqm::{HopTelemetry, Snapshot, choice, params};

choice! {
    /// Measurements of PowerTCP.
    pub enum PowerTcpVariant {
        /// Queue and rate of every link, which the links report (INT).
        Int = "int",
        /// Round-trip times: theta-PowerTCP.
        Theta = "theta" | "delay",
    }
}

params! {
    /// Parameters of [`PowerTcp`].
    pub struct PowerTcpParams {
        /// Queue and rate of the links (int), or round-trip times (theta).
        variant: PowerTcpVariant = PowerTcpVariant::Int, [], "", [];
        /// Weight of the new rate; auto: 0.9, with theta 0.7.
        gamma: Option<f64> = None, [0.001 => 1.0], "gamma", [];
        /// Power that the sender aims at; not with theta.
        eta: f64 = 0.95, [0.01 => 1.0], "eta", ["u_target"];
        /// Additive increase.
        rate_ai: Rate = Rate(150_000_000), [Rate(1_000) => Rate(1_000_000_000_000)], "beta", [];
        /// Lower bound of the rate; auto: 1 % of the line rate, as in the simulator of HPCC's
        /// authors at 100 Gbit/s. The window remains at least a packet.
        min_rate: Option<Rate> = None, [Rate(1_000) => Rate(10_000_000_000_000)], "", [];
        /// Line rate, with which a connection starts; auto: the rate of the first link of the path.
        max_rate: Option<Rate> = None, [Rate(1_000) => Rate(10_000_000_000_000)], "",
            ["line_rate"];
        /// Round-trip time without queues; auto: the propagation delay, a full packet on each link
        /// of the path and an ack on each link back. With theta, a shorter round-trip time that is
        /// measured replaces it.
        base_rtt: Option<Span> = None, [Span(1) => Span::s(10)], "tau", ["T"];
    }
}

/// Factor of T in the power of theta-PowerTCP: the queueing delay that it leaves.
const THETA_SLACK: f64 = 1.05;

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "powertcp",
    aliases: &["power_tcp"],
    about: "data centres: a rate from the power of links (INT), or from RTTs; profile rfc only",
    source: "Addanki, Michel, Schmid, PowerTCP, NSDI 2022",
    profile: Profile::Rfc,
    recovery: LossRecovery::Sack,
    control: || ControlParams::PowerTcp(PowerTcpParams::default()),
};

/// PowerTCP state.
#[derive(Clone, Debug, Snapshot)]
pub struct PowerTcp {
    params: PowerTcpParams,
    rate: ReferenceRate,
    gamma: f64,
    /// Telemetry of the last ack.
    last: Option<Box<PathTelemetry>>,
    /// Round-trip times of theta.
    rates: RateEstimator,
    /// Last round-trip time, and the time of its ack.
    last_rtt: Option<(Span, Time)>,
    /// Sequence number up to which the current ack covers all data, and the next one to send.
    sequence: [u64; 2],
}

impl PowerTcp {
    /// Rate on the wire, bit/s.
    pub fn rate_bps(&self) -> f64 {
        self.rate.bits()
    }

    /// Average power, in units of the power of a full link without a queue.
    pub fn power(&self) -> f64 {
        self.rate.load()
    }

    /// True if the control measures round-trip times.
    fn is_theta(&self) -> bool {
        self.params.variant == PowerTcpVariant::Theta
    }

    /// Rate, for comparison with vectors.
    #[cfg(test)]
    pub(super) fn rate(&self) -> &ReferenceRate {
        &self.rate
    }

    /// True after the first ack.
    #[cfg(test)]
    pub(super) fn has_telemetry(&self) -> bool {
        self.last.is_some()
    }

    /// Pretends that an ack has arrived at `at`, unless one has.
    #[cfg(test)]
    pub(super) fn start_theta_at(&mut self, at: Time) {
        self.last_rtt.get_or_insert((self.rate.base_rtt(), at));
    }

    /// Power of a link between the packets of two acks (rule 1).
    fn link_power(&self, old: &HopTelemetry, new: &HopTelemetry) -> f64 {
        let rate = bits(new.rate);
        let bytes = new.received_bytes().saturating_sub(old.received_bytes());
        let arrivals = bits_per_second(bytes, old, new).max(rate / 2.0);
        let capacity = rate * self.rate.base_rtt().0 as f64 / 1e9;
        arrivals * (f64::from(new.queue_bytes) * 8.0 + capacity) / (rate * capacity)
    }

    /// Updates the rate with a power that was measured over `time` (rules 2 to 4).
    fn update(&mut self, power: f64, time: Span, [acked, next]: [u64; 2]) {
        let target = if self.is_theta() { 1.0 } else { self.params.eta };
        let (reference, gamma) = (self.rate.reference(), self.gamma);
        let wanted = reference / (self.rate.average(power, time) / target);
        let wanted = wanted + self.params.rate_ai.0 as f64;
        let due = self.rate.is_due(acked);
        self.rate.set(gamma * wanted + (1.0 - gamma) * reference, due);
        if due {
            self.rate.update_after(next);
        }
    }

    /// Handles the round-trip time `rtt` of an ack at `now` (theta).
    pub(super) fn on_rtt(&mut self, now: Time, rtt: Span) {
        self.rate.lower_base_rtt(rtt);
        let base = self.rate.base_rtt();
        let (gradient, time) = match self.last_rtt {
            None => (0.0, base),
            Some((_, at)) if at == now => return,
            Some((last, at)) => {
                let change = rtt.0 as f64 - last.0 as f64;
                (change / (now - at).0 as f64, now - at)
            }
        };
        self.last_rtt = Some((rtt, now));
        let power = (gradient + 1.0).max(0.5) * rtt.0 as f64 / (THETA_SLACK * base.0 as f64);
        self.update(power, time, self.sequence);
    }
}

impl CongestionControl for PowerTcp {
    type Params = PowerTcpParams;

    fn new(params: &PowerTcpParams, common: &CommonParams, _: &mut dyn Random) -> PowerTcp {
        let bounds = (params.min_rate, params.max_rate);
        let theta = params.variant == PowerTcpVariant::Theta;
        PowerTcp {
            rate: ReferenceRate::new(common, bounds, params.base_rtt),
            gamma: params.gamma.unwrap_or(if theta { 0.7 } else { 0.9 }),
            params: params.clone(),
            last: None,
            rates: RateEstimator::default(),
            last_rtt: None,
            sequence: [0; 2],
        }
    }

    fn reset(&mut self) {
        self.rates.reset();
        (self.last, self.last_rtt, self.sequence) = (None, None, [0; 2]);
    }

    fn on_ack(&mut self, _: &mut Window, _: &NewDataAck) {}

    fn on_congestion(&mut self, _: Time, window: &Window, _: u64, _: CongestionSignal) -> u64 {
        self.rate.window(window.mss)
    }

    fn sending_rate(&self) -> Option<&SendingRate> {
        Some(self.rate.sending_rate())
    }

    fn on_established(&mut self, _: Time, window: &Window, rtt: Option<Span>) {
        self.rate.start(window, rtt);
    }

    fn initial_window(&mut self, _: Time, window: &Window, _: Option<Span>) -> u64 {
        self.rate.window(window.mss)
    }

    fn on_ecn_feedback(&mut self, ack: u64, _: u64, _: u64, next: u64) {
        self.sequence = [ack, next];
    }

    fn uses_explicit_feedback(&self) -> bool {
        !self.is_theta()
    }

    fn on_telemetry(
        &mut self,
        _: Time,
        _: &mut Window,
        telemetry: &PathTelemetry,
        sequence: [u64; 2],
    ) {
        let Some(mut last) = self.last.take() else {
            self.last = Some(Box::new(*telemetry));
            return;
        };
        let links = telemetry.since(&last);
        if let Some(links) = links {
            let (mut power, mut time) = (0.0, Span::ZERO);
            for (old, new) in links {
                let of_link = self.link_power(old, new);
                if of_link > power {
                    (power, time) = (of_link, new.at - old.at);
                }
            }
            self.update(power, time, sequence);
            *last = *telemetry;
        } else if telemetry.path != last.path {
            *last = *telemetry;
        }
        self.last = Some(last);
    }

    fn uses_delivery_hooks(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, now: Time, from: u64, to: u64) {
        if self.is_theta() {
            self.rates.on_delivered(now, from, to);
        }
    }

    fn on_ack_processed(&mut self, window: &mut Window, ack: &ProcessedAck) {
        if self.is_theta()
            && let Some(rtt) = self.rates.take_sample(ack.now).and_then(|sample| sample.rtt)
        {
            self.on_rtt(ack.now, rtt);
        }
        window.cwnd = self.rate.window(window.mss);
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        if self.is_theta() {
            self.rates.on_sent(sent);
        }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("rate_bps", self.rate.bits());
        visit("power", self.rate.load());
    }
}

#[cfg(test)]
mod tests;
