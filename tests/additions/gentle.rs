//! Gentle: Reno that gives up a quarter of its window, not half.
//!
//! **Source**: `tests/test_additions.py`.

use super::{CongestionControl, CongestionSignal, ControlParams, NewDataAck, Reno, Window};
use crate::endpoint::common_params::CommonParams;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::Time;

/// State of Gentle.
#[derive(Clone, Debug)]
pub struct Gentle(Reno);

impl CongestionControl for Gentle {
    fn new(_: &ControlParams, common: &CommonParams, _: &mut dyn Random) -> Gentle {
        Gentle(Reno::with_params(common.abc_limit))
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck) {
        self.0.on_ack(window, acked);
    }

    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
    ) -> u64 {
        let half = self.0.on_congestion(now, window, flight, cause);
        half.max(flight / 4 * 3)
    }
}
