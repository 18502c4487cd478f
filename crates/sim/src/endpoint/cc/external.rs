//! Congestion controls that are not in the registry: a program finds them by name.

use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, ProcessedAck, RecoveryState,
    Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::error::Result;
use sojourn_aqm::params::{ParamRows, Setting};
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use std::fmt;
use std::sync::Arc;

/// Congestion control of one flow, written outside of this crate.
pub trait ExternalControl: Send {
    /// Reset to the state before a connection.
    fn reset(&mut self);

    /// As [`CongestionControl::on_established`].
    fn on_established(&mut self, now: Time, window: &Window, rtt: Option<Span>);

    /// As [`CongestionControl::on_ack`].
    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck, rng: &mut dyn Random);

    /// As [`CongestionControl::on_congestion`].
    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
        rng: &mut dyn Random,
    ) -> u64;

    /// True if [`ExternalControl::on_recovered`] is used.
    fn uses_recovered(&self) -> bool;

    /// Handle the end of a loss recovery.
    fn on_recovered(&mut self, window: &mut Window, ack: &ProcessedAck, rng: &mut dyn Random);

    /// As [`CongestionControl::own_pacing_rate`].
    fn pacing_rate(&self) -> Option<f64>;

    /// Call `see` with the name and value of each variable that is recorded in time series.
    fn inspect(&self, _see: &mut dyn FnMut(&'static str, f64)) {}

    /// Copy with the state.
    fn copy(&self) -> Box<dyn ExternalControl>;
}

/// Builder of the controls of a group of flows.
pub trait ExternalMaker: fmt::Debug + Send + Sync {
    /// Create a control in the state before a connection.
    fn make(&self, common: &CommonParams) -> Box<dyn ExternalControl>;
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

impl PartialEq for ExternalParams {
    fn eq(&self, other: &ExternalParams) -> bool {
        let rows = |p: &ExternalParams| -> Vec<_> {
            p.rows.iter().map(|row| (row.name, row.value.clone())).collect()
        };
        self.name == other.name && rows(self) == rows(other)
    }
}

/// Function that finds an external control by name and reads its parameters; `None` if the name is
/// not that of an external control.
pub type FindExternalControl = fn(&str, &[(&str, Setting<'_>)]) -> Option<Result<ExternalParams>>;

/// External control in a sender, with its random stream.
pub struct External {
    control: Box<dyn ExternalControl>,
    rng: Pcg64Mcg,
    /// True from the start of a loss recovery to its end.
    recovering: bool,
}

impl Clone for External {
    fn clone(&self) -> External {
        External {
            control: self.control.copy(),
            rng: self.rng.clone(),
            recovering: self.recovering,
        }
    }
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("External").field("recovering", &self.recovering).finish_non_exhaustive()
    }
}

impl CongestionControl for External {
    fn new(control: &ControlParams, common: &CommonParams, rng: &mut dyn Random) -> External {
        let ControlParams::External(own) = control else { unreachable!("chosen by name") };
        let seed = rng.uniform().to_bits();
        External {
            control: own.maker.make(common),
            rng: Pcg64Mcg::seed_from_u64(seed),
            recovering: false,
        }
    }

    fn reset(&mut self) {
        self.recovering = false;
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

    fn uses_delivery_hooks(&self) -> bool {
        self.control.uses_recovered()
    }

    fn own_pacing_rate(&self) -> Option<f64> {
        self.control.pacing_rate()
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, f64)) {
        self.control.inspect(see);
    }

    fn on_ack_processed(&mut self, window: &mut Window, ack: &ProcessedAck) {
        let was = std::mem::replace(&mut self.recovering, ack.state != RecoveryState::Open);
        if was && !self.recovering && self.control.uses_recovered() {
            self.control.on_recovered(window, ack, &mut self.rng);
        }
    }
}
