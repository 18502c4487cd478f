//! Congestion control of the `rfc` profile: growth and reduction of the window. The sender
//! (`tcp/rfc.rs`), which is the same for all controls, decides when either happens and what is
//! sent.
//!
//! To add a control, write one file with its parameters, its entry `TCP` and its type, and add its
//! `mod` line and its line of `controls!` below. Controls of Linux implement `Algorithm` of
//! `linux.rs`, not [`CongestionControl`]. [`Reno`] can be used directly, so that the most common
//! flows pay nothing for the others; [`AnyControl`] is every control, with optional pacer, PRR and
//! HyStart++.

pub(crate) mod bbr;
pub(crate) mod bbr3;
mod bbr_aggregation;
mod bbr_filter;
mod bbr_policer;
mod bic;
mod bursts;
mod cdg;
pub(crate) mod compound;
mod controls;
pub(crate) mod cubic;
pub(crate) mod dcqcn;
pub(crate) mod dctcp;
mod dispatch;
mod external;
mod highspeed;
pub(crate) mod hpcc;
mod htcp;
mod hybla;
mod hystart;
mod illinois;
mod ledbat;
mod ledbatpp;
mod linux;
mod nv;
mod pacer;
pub(crate) mod powertcp;
pub(crate) mod prague;
mod prr;
mod queueing_delay;
mod rate;
mod reference_rate;
#[cfg(test)]
mod reference_vectors;
pub(crate) mod reno;
mod scalable;
mod sending_rate;
pub(crate) mod swift;
#[cfg(test)]
mod testing;
pub(crate) mod timely;
mod vegas;
mod veno;
mod westwood;
mod window_usage;
mod xcp;
mod yeah;

pub use controls::TcpEntry;
pub(crate) use dispatch::AnyControl;
#[cfg(test)]
pub(crate) use external::testing as external_testing;
pub use external::{
    ExternalControl, ExternalMaker, FindExternalControl, MarkedAck, RatedAck, TelemetryAck,
};
pub(crate) use hystart::HyStart;
pub(crate) use linux::Linux;
pub(crate) use pacer::Pacer;
pub(crate) use prr::Prr;
pub(crate) use rate::{RateEstimator, RateSample};
pub(crate) use sending_rate::SendingRate;
pub(crate) use window_usage::WindowUsage;

use crate::endpoint::common_params::CommonParams;
use crate::endpoint::telemetry::PathTelemetry;
use sojourn_aqm::Snapshot;
use sojourn_aqm::error::Result;
use sojourn_aqm::params::{ParamRows, Params, Setting};
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};

controls::controls! {
    ($)
    bbr::{Bbr, BbrParams}: Bbr, [TCP];
    bbr3::{Bbr3, Bbr3Params}: Bbr3, [TCP];
    bic::{Bic, BicParams}: Linux<Bic>, [TCP];
    cdg::{Cdg, CdgParams}: Linux<Cdg>, [TCP];
    compound::{Compound, CompoundParams}: Compound, [TCP];
    cubic::{Cubic, CubicParams}: Cubic, [TCP];
    dcqcn::{Dcqcn, DcqcnParams}: Dcqcn, [TCP];
    dctcp::{Dctcp, DctcpParams}: Dctcp, [TCP];
    external::{External, ExternalParams}: External, [];
    highspeed::{HighSpeed, HighSpeedParams}: Linux<HighSpeed>, [TCP];
    hpcc::{Hpcc, HpccParams}: Hpcc, [TCP];
    htcp::{Htcp, HtcpParams}: Linux<Htcp>, [TCP];
    hybla::{Hybla, HyblaParams}: Linux<Hybla>, [TCP];
    illinois::{Illinois, IllinoisParams}: Linux<Illinois>, [TCP];
    ledbat::{Ledbat, LedbatParams}: Ledbat, [TCP];
    ledbatpp::{LedbatPp, LedbatPpParams}: LedbatPp, [TCP];
    nv::{Nv, NvParams}: Linux<Nv>, [TCP];
    powertcp::{PowerTcp, PowerTcpParams}: PowerTcp, [TCP];
    prague::{Prague, PragueParams}: Prague, [TCP];
    reno::{Reno, RenoParams}: Reno, [TCP, NEWRENO, SACK, TAHOE];
    scalable::{Scalable, ScalableParams}: Linux<Scalable>, [TCP];
    swift::{Swift, SwiftParams}: Swift, [TCP];
    timely::{Timely, TimelyParams}: Timely, [TCP];
    vegas::{Vegas, VegasParams}: Vegas, [TCP];
    veno::{Veno, VenoParams}: Linux<Veno>, [TCP];
    westwood::{Westwood, WestwoodParams}: Linux<Westwood>, [TCP];
    xcp::{Xcp, XcpParams}: Xcp, [TCP];
    yeah::{Yeah, YeahParams}: Linux<Yeah>, [TCP];
}

/// Window state shared by sender and congestion control; bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold.
    pub ssthresh: u64,
    /// Payload of a full segment (SMSS).
    pub mss: u64,
}

impl Window {
    /// True in slow start.
    pub fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// Ack of new data, as a congestion control sees it.
#[derive(Clone, Copy, Debug, Snapshot)]
pub struct NewDataAck {
    /// Arrival time of the ack.
    pub at: Time,
    /// Payload bytes newly acknowledged.
    pub bytes: u64,
    /// Bytes outstanding before the ack; in the profile of Linux, at most in this round trip.
    pub flight: u64,
    /// Round-trip time sample, if the ack gave one.
    pub rtt: Option<Span>,
    /// Smoothed round-trip time, once there is a sample.
    pub srtt: Option<Span>,
    /// True while data declared lost by a timeout is being retransmitted.
    pub after_timeout: bool,
}

impl NewDataAck {
    /// True if the window was full before the ack, so that it may grow. In slow start half full is
    /// enough, because the window can double before the sender has used it.
    pub fn window_was_full(&self, window: &Window) -> bool {
        let half = window.is_in_slow_start() && 2 * self.flight > window.cwnd;
        half || self.flight + window.mss >= window.cwnd
    }
}

/// Reason for a reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub enum CongestionSignal {
    /// Loss detected by duplicate acks.
    Loss,
    /// ECN echo.
    Mark,
    /// Retransmission timeout.
    Timeout,
}

/// Loss recovery state of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub enum RecoveryState {
    /// No known losses.
    #[default]
    Open,
    /// Fast recovery, until `recover` is acknowledged (Reno: until any new data is acknowledged).
    Recovery,
    /// Retransmitting after a timeout (or, in Tahoe, any loss), until `recover` is acknowledged.
    Loss,
}

/// Segment that has just been sent.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub struct SentSegment {
    /// Time of transmission.
    pub now: Time,
    /// Sequence number of the first byte.
    pub seq: u64,
    /// Sequence number after the last byte.
    pub end: u64,
    /// Bytes that it lacks of a full segment, if packets are counted; otherwise 0.
    pub padding: u64,
    /// True for a retransmission.
    pub retransmission: bool,
    /// True if nothing else was outstanding.
    pub was_idle: bool,
    /// Loss recovery state.
    pub state: RecoveryState,
}

impl SentSegment {
    /// Bytes for which it counts in the window and in delivery rates.
    pub fn weight(&self) -> u64 {
        self.end - self.seq + self.padding
    }
}

/// Ack after loss detection and window update, before anything is sent in response.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub struct ProcessedAck {
    /// Arrival time of the ack.
    pub now: Time,
    /// Payload bytes of this connection known to be received, in order or not.
    pub delivered: u64,
    /// Estimate of the payload bytes in the network.
    pub flight: u64,
    /// Smoothed round-trip time, once there is a sample.
    pub srtt: Option<Span>,
    /// Round-trip time of the last segment that the ack delivers, of its echoed timestamp if that
    /// was sent again; `None` without samples per ack.
    pub rtt: Option<Span>,
    /// Time until the pacer lets the next segment go.
    pub pacing_delay: Span,
    /// Least round-trip time of this connection; `None` without RACK.
    pub min_rtt: Option<Span>,
    /// Loss recovery state.
    pub state: RecoveryState,
    /// Payload bytes of this connection declared lost so far, retransmissions included; 0 without
    /// RACK.
    pub lost: u64,
    /// Payload bytes among these that this ack showed to be lost.
    pub newly_lost: u64,
}

/// Congestion control algorithm.
pub trait CongestionControl {
    /// True if the hooks (the methods from [`CongestionControl::on_established`] on) are used. If
    /// false, the sender skips the work of preparing their arguments, and has neither RACK nor
    /// timestamps.
    const HOOKED: bool = false;

    /// Parameters of the control.
    type Params;

    /// Creates the control in the state before a connection, with its own parameters and those
    /// common to all TCPs.
    fn new(params: &Self::Params, common: &CommonParams, rng: &mut dyn Random) -> Self;

    /// Resets to the state before a connection.
    fn reset(&mut self);

    /// Grows the window for an ack of new data. Not called in fast recovery, nor for an ack that
    /// carries an ECN echo.
    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck);

    /// Returns the slow-start threshold after a reduction, with `flight` bytes outstanding. Called
    /// at most once per window of data. The sender sets the window to it, or to one segment after a
    /// timeout.
    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
    ) -> u64;

    /// True if the control reacts to the fraction of marked bytes (RFC 8257). All packets are then
    /// ECN-capable, and a mark at the minimum window does not pause the sender.
    fn reacts_to_mark_fraction(&self) -> bool {
        false
    }

    /// True if a loss reduces the window even if a mark has reduced it in the same round trip.
    fn reduces_for_loss_after_mark(&self) -> bool {
        false
    }

    /// True if [`CongestionControl::on_ack`] has reduced the window as for a mark, once; PRR then
    /// spreads the reduction over a round trip.
    fn takes_reduction(&mut self) -> bool {
        false
    }

    /// True if the ack that ends a recovery with PRR counts for the growth of the window, as in
    /// Linux.
    fn grows_when_recovered(&self) -> bool {
        false
    }

    /// Rate of a control that has a rate in place of a window. Such a control paces single segments
    /// from the first on at this rate, and keeps its window after an idle period. It starts with
    /// the receive window unless [`CongestionControl::initial_window`] says otherwise.
    fn sending_rate(&self) -> Option<&SendingRate> {
        None
    }

    /// True if the window is kept after an idle period.
    fn keeps_window_when_idle(&self) -> bool {
        self.sending_rate().is_some()
    }

    /// Handles the ack of the SYN; `rtt` is its round-trip time, if the SYN was not retransmitted.
    fn on_established(&mut self, _now: Time, _window: &Window, _rtt: Option<Span>) {}

    /// Returns the window with which the connection starts; called after
    /// [`CongestionControl::on_established`].
    fn initial_window(&mut self, _now: Time, window: &Window, _rtt: Option<Span>) -> u64 {
        self.sending_rate().map_or(window.cwnd, SendingRate::window)
    }

    /// Handles an ack of everything below `ack`, `bytes` of it new, which reports `marked` bytes as
    /// newly marked (with accurate feedback, full segments for each marked packet); `next` is the
    /// next sequence number to send. Called before any other processing of the ack.
    fn on_ecn_feedback(&mut self, _ack: u64, _bytes: u64, _marked: u64, _next: u64) {}

    /// True if segments carry a congestion header of XCP or collect telemetry, which acks return.
    fn uses_explicit_feedback(&self) -> bool {
        false
    }

    /// True if the control reads what acks report about the path: explicit feedback, or marks in
    /// [`CongestionControl::on_marked_ack`].
    fn uses_ack_feedback(&self) -> bool {
        self.uses_explicit_feedback()
    }

    /// Handles the ECN feedback of an ack, for a control of another crate.
    fn on_marked_ack(&mut self, _: &mut Window, _ack: &MarkedAck) {}

    /// Handles the change of throughput that the routers of the path allow, in bytes per second
    /// (XCP); `srtt` is the smoothed round-trip time.
    fn on_explicit_feedback(&mut self, _window: &mut Window, _feedback: i32, _srtt: Span) {}

    /// Handles the telemetry of the path of a packet; `sequence` has the sequence number up to
    /// which its ack covers all data, and the next one to send.
    fn on_telemetry(
        &mut self,
        _now: Time,
        _: &mut Window,
        _telemetry: &PathTelemetry,
        _sequence: [u64; 2],
    ) {
    }

    /// Handles an ack that returns the `number` of the telemetry of a packet: calls
    /// [`CongestionControl::on_telemetry`].
    fn on_telemetry_echo(&mut self, _now: Time, _: &mut Window, _number: u32, _sequence: [u64; 2]) {
    }

    /// True if the control uses [`CongestionControl::on_delivered`] and
    /// [`CongestionControl::on_ack_processed`], whose arguments are costly to compute.
    fn uses_delivery_hooks(&self) -> bool {
        false
    }

    /// Handles the news that the receiver has `from..to`.
    fn on_delivered(&mut self, _now: Time, _from: u64, _to: u64) {}

    /// Pacing rate that the control sets, bytes of payload per second; `None` if it follows from
    /// the window.
    fn own_pacing_rate(&self) -> Option<f64> {
        self.sending_rate().map(SendingRate::pacing)
    }

    /// Segments of a burst of Linux's sender at a pacing rate, bytes of payload per second.
    fn burst_at(&self, rate: f64, min_rtt: Option<Span>, mss: u64) -> u64 {
        bursts::segments(rate, min_rtt, mss, bursts::LEAST)
    }

    /// Number of segments at the start of a connection that the pacer does not hold.
    fn unpaced_segments(&self) -> u32 {
        if self.sending_rate().is_some() { 0 } else { pacer::INITIAL_BURST }
    }

    /// True if the pacer sends the bursts of Linux's sender; if false, single segments.
    fn paces_bursts(&self) -> bool {
        self.sending_rate().is_none()
    }

    /// Largest burst of Linux's sender, segments: at most half a window.
    fn burst(&self, window: &Window, srtt: Option<Span>, min_rtt: Option<Span>) -> u64 {
        let half = (window.cwnd / window.mss / 2).max(1);
        let paces_bursts = self.paces_bursts();
        let (own, min_rtt) = (self.own_pacing_rate(), min_rtt.filter(|_| paces_bursts));
        let rate = own.filter(|_| paces_bursts).or_else(|| bursts::rate_of(window, srtt));
        rate.map_or(half, |rate| half.min(self.burst_at(rate, min_rtt, window.mss)))
    }

    /// Calls `visit` with the name and value of each variable that is recorded in time series.
    fn inspect(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}

    /// Handles a timeout, after which `lost` bytes of this connection are declared lost.
    fn on_timeout_losses(&mut self, _window: &Window, _lost: u64) {}

    /// True if the first retransmission of a recovery waits for the window and the pacer, as any
    /// other segment.
    fn recovers_within_window(&self) -> bool {
        false
    }

    /// Handles the end of the processing of an ack; the sender may transmit next.
    fn on_ack_processed(&mut self, _window: &mut Window, _ack: &ProcessedAck) {}

    /// Returns to the window before the last reduction, `prior_cwnd`, which was not justified.
    fn on_undo(&mut self, window: &mut Window, prior_cwnd: u64) {
        window.cwnd = window.cwnd.max(prior_cwnd);
    }

    /// Handles the transmission of a segment.
    fn on_sent(&mut self, _sent: &SentSegment) {}

    /// True if the segment from `seq` may be sent now; if false, it is held until
    /// [`CongestionControl::release_time`].
    fn may_send(&mut self, _now: Time, _seq: u64) -> bool {
        true
    }

    /// Clears the held segment and ends a burst; the sender is about to ask again.
    fn clear_held(&mut self) {}

    /// Time at which the held segment may be sent; [`Time::NEVER`] if none is held.
    fn release_time(&self) -> Time {
        Time::NEVER
    }

    /// Time from `now` until the pacer lets a segment go, whether one is held or not.
    fn pacing_delay(&self, _now: Time) -> Span {
        Span::ZERO
    }

    /// Handles the application running out of data while the window has room; `flight` bytes are in
    /// the network.
    fn on_app_limited(&mut self, _flight: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_may_grow_when_full_or_half_full_in_slow_start() {
        let full = |cwnd, ssthresh, flight| {
            let window = Window { cwnd, ssthresh, mss: 1_000 };
            let (at, rtt, srtt) = (Time::ZERO, None, None);
            let acked = NewDataAck { at, bytes: 1_000, flight, rtt, srtt, after_timeout: false };
            acked.window_was_full(&window)
        };
        assert!(full(10_000, 10_001, 5_001), "more than half in slow start");
        assert!(!full(10_000, 10_001, 5_000) && !full(10_000, 10_001, 500));
        assert!(!full(10_000, 10_000, 8_999), "slow start is over");
        assert!(full(10_000, 10_000, 9_000), "no room for another segment");
        assert!(full(10_000, 1_000, 10_000));
    }

    #[test]
    fn a_control_without_hooks_holds_no_segment() {
        let mut reno = Reno::with_params(1);
        assert!(reno.may_send(Time::ZERO, 1) && !reno.uses_delivery_hooks());
        assert_eq!(reno.release_time(), Time::NEVER);
        assert!(!reno.reacts_to_mark_fraction() && !reno.keeps_window_when_idle());
    }
}
