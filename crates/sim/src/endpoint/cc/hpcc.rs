//! HPCC: a rate and a window computed from what every link of the path reports of its queue and its
//! rate (INT), so that queues stay empty and links full to 95 %.
//!
//! **Source**: Y. Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1;
//! order of the updates and values as in the authors' simulator.
//!
//! **Symbols** `eta`, `maxStage` (here `max_stage`), `W_AI` (here the rate `rate_ai`), T (here
//! `base_rtt`), U, W, Wc as in the paper; the reference is a rate R and not a window Wc.
//!
//! **Algorithm** With each ack, which brings time, sent bytes, queue and rate of each link:
//!
//! 1. For each link, u = sent rate / link rate + min(queue, last queue) x line rate / (link rate x
//!    W0), where W0 is what the line rate sends in T. U is the largest u, over the time tau since
//!    the last ack's packet left that link, at most T.
//! 2. U_avg = U_avg (1 - tau / T) + U tau / T; it starts at 1.
//! 3. If U_avg >= `eta`, or after `max_stage` increases in a row: rate = R / (U_avg / `eta`) +
//!    `rate_ai`. Otherwise rate = R + `rate_ai`.
//! 4. The first ack of a packet that was sent after the last change of R sets R to the rate, and
//!    counts an increase, or sets their number to 0.
//! 5. The window is W0 x rate / line rate, in whole packets rounded up. A connection starts at the
//!    line rate.
//!
//! **Departures**: every link of the path reports, also the first one, which is the sender's own.
//! Time, bytes and queues are exact; the paper's header rounds them to ns, 128 bytes and 80 bytes.
//! The header of INT, 42 bytes in the paper, is part of `header`, not added to it: set `header =
//! "82B"` for its cost. If the path of the packets changes, or a packet has overtaken another one,
//! the ack changes no rate. The network may lose packets, and a loss changes no rate either. Acks
//! are not delayed unless `delayed_ack` is set.
//!
//! **Cost**: 264 bytes per packet in flight; links of the path do not compute departures at
//! enqueue.

use super::reference_rate::ReferenceRate;
use super::sending_rate::SendingRate;
use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, ProcessedAck, TcpEntry, Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use crate::endpoint::telemetry::{PathTelemetry, bits, bits_per_second};
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Rate, Span, Time};
use sojourn_aqm::{HopTelemetry, Snapshot, params};

params! {
    /// Parameters of [`Hpcc`].
    pub struct HpccParams {
        /// Utilisation that the sender aims at.
        eta: f64 = 0.95, [0.01 => 1.0], "eta", ["u_target"];
        /// Increases in a row after which the rate follows the utilisation again; with 0 it always
        /// does. The paper says 5, the authors' simulations have 0.
        max_stage: u64 = 0, [0 => 1_000], "maxStage", ["mi_thresh"];
        /// Additive increase; auto: 1/2500 of the line rate, 40 Mbit/s at 100 Gbit/s.
        rate_ai: Option<Rate> = None, [Rate(1_000) => Rate(1_000_000_000_000)], "W_AI", [];
        /// Lower bound of the rate; auto: 1 % of the line rate, as in the simulator of HPCC's
        /// authors at 100 Gbit/s. The window remains at least a packet.
        min_rate: Option<Rate> = None, [Rate(1_000) => Rate(10_000_000_000_000)], "", [];
        /// Line rate, with which a connection starts; auto: the rate of the first link of the path.
        max_rate: Option<Rate> = None, [Rate(1_000) => Rate(10_000_000_000_000)], "",
            ["line_rate"];
        /// Round-trip time without queues; auto: the propagation delay, a full packet on each link
        /// of the path and an ack on each link back. The simulator has the largest of all paths.
        base_rtt: Option<Span> = None, [Span(1) => Span::s(10)], "T", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "hpcc",
    aliases: &[],
    about: "data centres: a rate from queues and rates that links report (INT); profile rfc only",
    source: "Li et al., HPCC, SIGCOMM 2019",
    profile: Profile::Rfc,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Hpcc(HpccParams::default()),
};

/// HPCC state.
#[derive(Clone, Debug, Snapshot)]
pub struct Hpcc {
    params: HpccParams,
    rate: ReferenceRate,
    /// Additive increase, bit/s.
    rate_ai: f64,
    /// Increases in a row, of the reference.
    stage: u64,
    /// Telemetry of the last ack.
    last: Option<Box<PathTelemetry>>,
}

impl Hpcc {
    /// Rate on the wire, bit/s.
    pub fn rate_bps(&self) -> f64 {
        self.rate.bits()
    }

    /// Average utilisation U of the most loaded link.
    pub fn utilisation(&self) -> f64 {
        self.rate.load()
    }

    /// Rate, for comparison with vectors.
    #[cfg(test)]
    pub(super) fn rate(&self) -> &ReferenceRate {
        &self.rate
    }

    /// Increases in a row.
    #[cfg(test)]
    pub(super) fn stage(&self) -> u64 {
        self.stage
    }

    /// Utilisation of a link between the packets of two acks (rule 1).
    fn link_utilisation(&self, old: &HopTelemetry, new: &HopTelemetry) -> f64 {
        let rate = bits(new.rate);
        let sent = bits_per_second(new.sent_bytes.saturating_sub(old.sent_bytes), old, new);
        let queue = f64::from(old.queue_bytes.min(new.queue_bytes));
        sent / rate + queue * self.rate.line() / rate / self.rate.line_window()
    }

    /// Updates the rate with the state of the links at the last ack and now (rules 1 to 4); `due`
    /// is true if the reference changes.
    fn update<'a>(
        &mut self,
        links: impl Iterator<Item = (&'a HopTelemetry, &'a HopTelemetry)>,
        due: bool,
    ) {
        let (mut load, mut time) = (0.0, Span::ZERO);
        for (old, new) in links {
            let of_link = self.link_utilisation(old, new);
            if of_link > load {
                (load, time) = (of_link, new.at - old.at);
            }
        }
        let excess = self.rate.average(load, time) / self.params.eta;
        let follows = excess >= 1.0 || self.stage >= self.params.max_stage;
        let base = self.rate.reference() / if follows { excess } else { 1.0 };
        self.rate.set(base + self.rate_ai, due);
        if due {
            self.stage = if follows { 0 } else { self.stage + 1 };
        }
    }
}

impl CongestionControl for Hpcc {
    type Params = HpccParams;

    fn new(params: &HpccParams, common: &CommonParams, _: &mut dyn Random) -> Hpcc {
        let bounds = (params.min_rate, params.max_rate);
        let rate = ReferenceRate::new(common, bounds, params.base_rtt);
        let rate_ai = params.rate_ai.map_or(rate.line() / 2500.0, |ai| ai.0 as f64);
        Hpcc { params: params.clone(), rate, rate_ai, stage: 0, last: None }
    }

    fn reset(&mut self) {
        (self.stage, self.last) = (0, None);
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

    fn uses_explicit_feedback(&self) -> bool {
        true
    }

    fn on_telemetry(
        &mut self,
        _: Time,
        _: &mut Window,
        telemetry: &PathTelemetry,
        [acked, next]: [u64; 2],
    ) {
        let Some(mut last) = self.last.take() else {
            self.rate.update_after(next);
            self.last = Some(Box::new(*telemetry));
            return;
        };
        let links = telemetry.since(&last);
        if let Some(links) = links {
            let due = self.rate.is_due(acked);
            self.update(links, due);
            if due {
                self.rate.update_after(next);
            }
            *last = *telemetry;
        } else if telemetry.path != last.path {
            *last = *telemetry;
        }
        self.last = Some(last);
    }

    fn uses_delivery_hooks(&self) -> bool {
        true
    }

    fn on_ack_processed(&mut self, window: &mut Window, _: &ProcessedAck) {
        window.cwnd = self.rate.window(window.mss);
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("rate_bps", self.rate.bits());
        visit("u", self.rate.load());
    }
}

#[cfg(test)]
mod tests;
