//! Congestion controls that are not in the registry: a program finds them by name.

mod acks;

pub use acks::{MarkedAck, RatedAck, TelemetryAck};

use super::{
    CongestionControl, CongestionSignal, NewDataAck, ProcessedAck, RateEstimator, RateSample,
    RecoveryState, SentSegment, Window, pacer,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery};
use crate::endpoint::telemetry::PathTelemetry;
use crate::external_state::{external_state, not_saved};
use rand_core::SeedableRng;
use sojourn_aqm::Pcg;
use sojourn_aqm::Snapshot;
use sojourn_aqm::error::Result;
use sojourn_aqm::params::{ParamRows, Setting, answers, unknown};
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use std::fmt;
use std::sync::Arc;

/// Congestion control of one flow, written outside of this crate. A control needs
/// [`reset`](ExternalControl::reset), [`on_ack`](ExternalControl::on_ack),
/// [`on_congestion`](ExternalControl::on_congestion) and [`copy`](ExternalControl::copy);
/// `examples/own_control.rs` is a complete one.
///
/// The sender detects losses, retransmits and paces. What a control cannot do yet: decide what
/// follows a reduction that was not justified.
pub trait ExternalControl: Send {
    /// Resets to the state before a connection.
    fn reset(&mut self);

    /// Handles the ack of the SYN; `rtt` is its round-trip time, if the SYN was not retransmitted.
    fn on_established(&mut self, _now: Time, _window: &Window, _rtt: Option<Span>) {}

    /// Returns the window with which the connection starts; called after
    /// [`ExternalControl::on_established`].
    fn initial_window(&mut self, window: &Window) -> u64 {
        window.cwnd
    }

    /// Grows the window for an ack of new data. Not called in fast recovery, nor for an ack that
    /// carries an ECN echo.
    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck, rng: &mut dyn Random);

    /// Returns the slow-start threshold after a reduction, with `flight` bytes outstanding. Called
    /// at most once per window of data. The sender sets the window to it, or to one segment after a
    /// timeout.
    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
        rng: &mut dyn Random,
    ) -> u64;

    /// Handles the ECN feedback of an ack. Called for every ack, before anything else that the ack
    /// causes, if [`ExternalMaker::uses_marks`] is true.
    fn on_ecn_feedback(&mut self, _: &mut Window, _ack: &MarkedAck, _rng: &mut dyn Random) {}

    /// Handles the telemetry of the path of a packet, of which an ack arrives. Called before
    /// anything else that the ack causes but its ECN feedback, if [`ExternalMaker::uses_telemetry`]
    /// is true.
    fn on_telemetry(
        &mut self,
        _window: &mut Window,
        _ack: &TelemetryAck<'_>,
        _rng: &mut dyn Random,
    ) {
    }

    /// True if [`ExternalControl::on_delivered`] is used.
    fn uses_delivered(&self) -> bool {
        false
    }

    /// Handles an ack that reports delivered data, in order or not, after all else that the ack
    /// causes. Called during loss recovery as well. The bytes are newly delivered, and the
    /// round-trip time is of the segment that was sent last among them, unless it was sent again.
    fn on_delivered(
        &mut self,
        _window: &mut Window,
        _delivered: &NewDataAck,
        _rng: &mut dyn Random,
    ) {
    }

    /// True if [`ExternalControl::on_rate_sample`] is used. The window is then kept after an idle
    /// period, as Linux keeps it for BBR.
    fn uses_rate_samples(&self) -> bool {
        false
    }

    /// Handles an ack with its delivery rate sample, after all else that the ack causes. Called for
    /// every ack, also if it delivers nothing. Returns true if the control itself keeps the rate
    /// below the rate of the path, as BBR does in ProbeRTT: the sender then counts as
    /// application-limited until all data in flight is delivered.
    fn on_rate_sample(
        &mut self,
        _window: &mut Window,
        _ack: &RatedAck,
        _rng: &mut dyn Random,
    ) -> bool {
        false
    }

    /// True if [`ExternalControl::on_recovered`] is used.
    fn uses_recovered(&self) -> bool {
        false
    }

    /// Handles the end of a loss recovery.
    fn on_recovered(&mut self, _window: &mut Window, _ack: &ProcessedAck, _rng: &mut dyn Random) {}

    /// Pacing rate that the control sets, bytes of payload per second; `None` if it follows from
    /// the window.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// Calls `visit` with the name and value of each variable that is recorded in time series.
    fn inspect(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}

    /// Returns a copy with the state.
    fn copy(&self) -> Box<dyn ExternalControl>;

    /// Returns the state as bytes, for a snapshot of the simulation.
    ///
    /// # Errors
    /// Always, unless it is implemented: such a simulation cannot be saved.
    fn save(&self) -> Result<Vec<u8>> {
        Err(not_saved("congestion control"))
    }

    /// Takes the state that [`ExternalControl::save`] returned.
    ///
    /// # Errors
    /// Bytes that are not a state of this control.
    fn load(&mut self, _bytes: &[u8]) -> Result<()> {
        Err(not_saved("congestion control"))
    }
}

external_state!(ExternalControl);

/// Builder of the controls of a group of flows.
pub trait ExternalMaker: fmt::Debug + Send + Sync {
    /// Creates a control in the state before a connection.
    fn make(&self, common: &CommonParams) -> Box<dyn ExternalControl>;

    /// True if packets collect telemetry of their path, for [`ExternalControl::on_telemetry`].
    fn uses_telemetry(&self) -> bool {
        false
    }

    /// True if the control reacts to the fraction of marks, in
    /// [`ExternalControl::on_ecn_feedback`], as DCTCP does. Then the parameter `ecn` is on and
    /// `ecn_feedback` is `rfc8257` by default, all packets are ECN-capable (SYNs and
    /// retransmissions as well), and a mark neither raises the window nor pauses the sender.
    fn uses_marks(&self) -> bool {
        false
    }

    /// True if the control has a rate for every segment, as senders of data centres do. Then the
    /// parameter `pacing` is on, the first segments of a connection are paced as well, the window
    /// is kept after an idle period, and every packet is acknowledged unless `delayed_ack` is set.
    fn is_paced(&self) -> bool {
        false
    }

    /// Default of the parameter `pacing`.
    fn default_pacing(&self) -> bool {
        self.is_paced()
    }
}

/// External control with its parameters.
#[derive(Clone, Debug)]
pub struct ExternalParams {
    /// Name that scenarios have for it.
    pub name: &'static str,
    /// Loss recovery algorithm of the sender.
    pub recovery: LossRecovery,
    /// Its own parameters with their values.
    pub rows: ParamRows,
    /// Builder.
    pub maker: Arc<dyn ExternalMaker>,
}

impl ExternalParams {
    /// Rejects every parameter: the parameters of an external control are read when it is found.
    ///
    /// # Errors
    /// Always.
    pub fn set(&mut self, name: &str, _: Setting<'_>) -> Result<()> {
        Err(unknown(&self.rows, name))
    }

    /// As [`ExternalParams::set`].
    #[cfg(test)]
    pub(super) fn assign(&mut self, name: &str, value: Setting<'_>, _: bool) -> Result<()> {
        self.set(name, value)
    }

    /// True if the control has a parameter of that name.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.rows.iter().any(|row| answers(row, name))
    }

    /// Accepts the values, which were checked when they were read.
    ///
    /// # Errors
    /// Never.
    pub fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Parameters with their values.
    pub fn table(&self) -> ParamRows {
        self.rows.clone()
    }
}

impl PartialEq for ExternalParams {
    fn eq(&self, other: &ExternalParams) -> bool {
        let rows = |p: &ExternalParams| -> Vec<_> {
            p.rows.iter().map(|row| (row.name, row.value.clone())).collect()
        };
        self.name == other.name && rows(self) == rows(other)
    }
}

/// Function that finds an external control by name and reads its parameters; `None` if the name is
/// not the name of an external control.
pub type FindExternalControl = fn(&str, &[(&str, Setting<'_>)]) -> Option<Result<ExternalParams>>;

/// External control in a sender, with its random stream.
#[derive(Snapshot)]
pub struct External {
    control: Box<dyn ExternalControl>,
    rng: Pcg,
    /// True from the start of a loss recovery to its end.
    recovering: bool,
    uses_telemetry: bool,
    uses_marks: bool,
    /// True if the control has a rate for every segment.
    paced: bool,
    /// Segments in flight, if the control uses their delivery.
    segments: Option<Box<RateEstimator>>,
    uses_rate_samples: bool,
    /// True if an application-limited sender has sent again after nothing was outstanding, and
    /// nothing was delivered since.
    idle_restart: bool,
}

impl Clone for External {
    fn clone(&self) -> External {
        External {
            control: self.control.copy(),
            rng: self.rng.clone(),
            recovering: self.recovering,
            uses_telemetry: self.uses_telemetry,
            uses_marks: self.uses_marks,
            paced: self.paced,
            segments: self.segments.clone(),
            uses_rate_samples: self.uses_rate_samples,
            idle_restart: self.idle_restart,
        }
    }
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("External").field("recovering", &self.recovering).finish_non_exhaustive()
    }
}

impl CongestionControl for External {
    type Params = ExternalParams;

    fn new(params: &ExternalParams, common: &CommonParams, rng: &mut dyn Random) -> External {
        let seed = rng.uniform().to_bits();
        let control = params.maker.make(common);
        let uses_rate_samples = control.uses_rate_samples();
        let segments = (uses_rate_samples || control.uses_delivered()).then(Box::default);
        External {
            control,
            rng: Pcg::seed_from_u64(seed),
            recovering: false,
            uses_telemetry: params.maker.uses_telemetry(),
            uses_marks: params.maker.uses_marks(),
            paced: params.maker.is_paced(),
            segments,
            uses_rate_samples,
            idle_restart: false,
        }
    }

    fn reset(&mut self) {
        (self.recovering, self.idle_restart) = (false, false);
        if let Some(segments) = &mut self.segments {
            segments.reset();
        }
        self.control.reset();
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck) {
        self.control.on_ack(window, acked, &mut self.rng);
    }

    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
    ) -> u64 {
        self.control.on_congestion(now, window, flight, cause, &mut self.rng)
    }

    fn on_established(&mut self, now: Time, window: &Window, rtt: Option<Span>) {
        self.control.on_established(now, window, rtt);
    }

    fn initial_window(&mut self, _: Time, window: &Window, _: Option<Span>) -> u64 {
        self.control.initial_window(window)
    }

    fn reacts_to_mark_fraction(&self) -> bool {
        self.uses_marks
    }

    fn keeps_window_when_idle(&self) -> bool {
        self.paced || self.uses_rate_samples
    }

    fn unpaced_segments(&self) -> u32 {
        if self.paced { 0 } else { pacer::INITIAL_BURST }
    }

    fn paces_bursts(&self) -> bool {
        !self.paced
    }

    fn uses_explicit_feedback(&self) -> bool {
        self.uses_telemetry
    }

    fn uses_ack_feedback(&self) -> bool {
        self.uses_telemetry || self.uses_marks
    }

    fn on_marked_ack(&mut self, window: &mut Window, ack: &MarkedAck) {
        if self.uses_marks {
            self.control.on_ecn_feedback(window, ack, &mut self.rng);
        }
    }

    fn on_telemetry(
        &mut self,
        now: Time,
        window: &mut Window,
        telemetry: &PathTelemetry,
        [snd_una, snd_nxt]: [u64; 2],
    ) {
        let (path, links) = (telemetry.path, telemetry.hops());
        let ack = TelemetryAck { now, snd_una, snd_nxt, path, links };
        self.control.on_telemetry(window, &ack, &mut self.rng);
    }

    fn uses_delivery_hooks(&self) -> bool {
        self.segments.is_some() || self.control.uses_recovered()
    }

    fn on_delivered(&mut self, now: Time, from: u64, to: u64) {
        if let Some(segments) = &mut self.segments {
            segments.on_delivered(now, from, to);
        }
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        if let Some(segments) = &mut self.segments {
            self.idle_restart |= sent.was_idle && segments.on_app_limited();
            segments.on_sent(sent);
        }
    }

    fn on_app_limited(&mut self, flight: u64) {
        if let Some(segments) = &mut self.segments {
            segments.starve(flight);
        }
    }

    fn own_pacing_rate(&self) -> Option<f64> {
        self.control.pacing_rate()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.control.inspect(visit);
    }

    fn on_ack_processed(&mut self, window: &mut Window, ack: &ProcessedAck) {
        let was = std::mem::replace(&mut self.recovering, ack.state != RecoveryState::Open);
        if was && !self.recovering && self.control.uses_recovered() {
            self.control.on_recovered(window, ack, &mut self.rng);
        }
        let sample = self.segments.as_mut().and_then(|segments| segments.take_sample(ack.now));
        if let Some(sample) = &sample {
            let delivered = NewDataAck {
                at: ack.now,
                bytes: sample.news,
                flight: ack.flight + sample.news,
                rtt: sample.rtt,
                srtt: ack.srtt,
                after_timeout: ack.state == RecoveryState::Loss,
            };
            self.control.on_delivered(window, &delivered, &mut self.rng);
        }
        if self.uses_rate_samples {
            self.report_rate(window, ack, sample.as_ref());
        }
    }
}

impl External {
    /// Reports the delivery rate sample of an ack, if it delivers data.
    fn report_rate(
        &mut self,
        window: &mut Window,
        ack: &ProcessedAck,
        sample: Option<&RateSample>,
    ) {
        let Some(segments) = &mut self.segments else { return };
        let acked = sample.map_or(0, |s| s.news);
        let rated = RatedAck {
            now: ack.now,
            acked,
            flight: ack.flight,
            delivered: segments.delivered(),
            prior_delivered: sample.map_or(0, |s| s.prior_delivered),
            rate: sample.filter(|s| s.interval > Span::ZERO).map(|s| s.rate),
            interval: sample.map_or(Span::ZERO, |s| s.interval),
            rtt: sample.and_then(|s| s.rtt),
            srtt: ack.srtt,
            is_app_limited: sample.is_some_and(|s| s.starved),
            app_limited: segments.on_app_limited(),
            idle_restart: self.idle_restart,
            state: ack.state,
            lost: ack.lost,
            newly_lost: ack.newly_lost,
        };
        if self.control.on_rate_sample(window, &rated, &mut self.rng) {
            segments.starve(ack.flight);
        }
        self.idle_restart &= acked == 0;
    }
}

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests;
