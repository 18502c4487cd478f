//! Gentle: Reno that keeps three quarters of its window after a loss.
//!
//! **Source**: `tests/test_additions.py`.

use super::{CongestionControl, CongestionSignal, ControlParams, NewDataAck, Reno, TcpEntry, Window};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::Time;

params! {
    /// Parameters of [`Gentle`].
    pub struct GentleParams {
        /// Share of the window that is left after a loss.
        keep: f64 = 0.75, [0.5 => 1.0], "", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "gentle",
    aliases: &[],
    about: "gives up a quarter of the window",
    source: "tests/test_additions.py",
    profile: Profile::Rfc,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Gentle(GentleParams::default()),
};

/// State of Gentle.
#[derive(Clone, Debug, Snapshot)]
pub struct Gentle {
    reno: Reno,
    keep: f64,
}

impl CongestionControl for Gentle {
    type Params = GentleParams;

    fn new(params: &GentleParams, common: &CommonParams, _: &mut dyn Random) -> Gentle {
        Gentle { reno: Reno::with_params(common.abc_limit), keep: params.keep }
    }

    fn reset(&mut self) {
        self.reno.reset();
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck) {
        self.reno.on_ack(window, acked);
    }

    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
    ) -> u64 {
        let half = self.reno.on_congestion(now, window, flight, cause);
        half.max(cast::trunc(flight as f64 * self.keep))
    }
}
