//! Feng's RED: self-configuring RED, which changes max_p each time the average crosses a threshold.
//!
//! **Source** W. Feng, D. Kandlur, D. Saha, K. Shin, "A Self-Configuring RED Gateway", INFOCOM
//! 1999.
//!
//! **Decides** on arrival, as RED.
//!
//! **Measures** RED's average of the queue.
//!
//! **Symbols** as in RED; `alpha`, `beta`, `status`.
//!
//! **Algorithm** The status of the average is below min_th, between the thresholds, or above
//! max_th. When it becomes below, RED was too aggressive, and max_p is divided by `alpha`. When it
//! becomes above, RED was not aggressive enough, and max_p is multiplied by `beta`. A return to
//! between changes nothing, but the next crossing of either threshold counts again.
//!
//! **Departures** (1) max_p stays between `floor` and 1. The paper sets no bounds; without them
//! max_p vanishes in a period of many short bursts. (2) The initial status is between, as in ns-2
//! (in ns-3: above). The first packet of a run finds an empty queue and so divides max_p. (3) The
//! slope above max_th follows max_p, unless `stale_gentle` is set, as in ARED.
//!
//! **Cost** 248 bytes of state; as RED, plus a comparison per arrival.

use super::red::{Red, RedParams, Tune, Tuned, not_in_linux};
use super::{Aqm, SingleQueue};
use crate::build::Env;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::params::{Checked, Combined};
use crate::snapshot::Snapshot;
use crate::units::Time;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Tuned<FengRed>>>(
    "feng_red",
    "self-configuring RED: changes max_p when the average queue crosses a threshold",
)
.aliases(&["self_configuring_red", "feng_ared"])
.decides("on arrival: RED's drop probability; max_p changes once per crossing")
.source("Feng, Kandlur, Saha and Shin, INFOCOM 1999");

crate::params! {
    /// Parameters of [`FengRed`], in addition to RED's.
    pub struct FengParams {
        /// Divisor of max_p when the average falls below min_th.
        alpha: f64 = 3.0, [1.0 => 100.0], "alpha", [];
        /// Factor of max_p when the average rises above max_th.
        beta: f64 = 2.0, [1.0 => 100.0], "beta", [];
        /// Smallest max_p.
        floor: f64 = 1e-5, [1e-9 => 1.0], "", [];
        /// True if the gentle slope keeps the initial max_p, as in ns-2.
        stale_gentle: bool = false, [], "", [];
    }
}

/// Position of the average relative to the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
enum Status {
    Below,
    Between,
    Above,
}

/// State of Feng's RED, in addition to RED's.
#[derive(Clone, Debug, Snapshot)]
pub struct FengRed {
    params: FengParams,
    /// Position of the average at the last arrival.
    status: Status,
}

impl Tune for FengRed {
    type Params = Combined<FengParams, RedParams>;

    fn tuned(params: Checked<'_, Self::Params>, env: &Env) -> Result<Tuned<Self>> {
        not_in_linux(&params.inner, "feng_red")?;
        let tuner = FengRed { params: params.outer.clone(), status: Status::Between };
        Ok(Tuned { red: Red::build(&params.inner, env)?, tuner })
    }

    fn on_average(&mut self, _now: Time, red: &mut Red) {
        let FengParams { alpha, beta, floor, stale_gentle } = self.params;
        let status = match red.avg {
            avg if avg <= red.min_th => Status::Below,
            avg if avg >= red.max_th => Status::Above,
            _ => Status::Between,
        };
        if status == self.status {
            return;
        }
        self.status = status;
        red.max_p = match status {
            Status::Below => (red.max_p / alpha).max(floor),
            Status::Between => red.max_p,
            Status::Above => (red.max_p * beta).clamp(floor, 1.0),
        };
        if !stale_gentle {
            red.gentle_max_p = red.max_p;
        }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Position of the average at the last arrival: -1 below min_th, 0 between, 1 above max_th.
        visit("status", f64::from(self.status as i8 - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use crate::units::Rate;
    use std::prelude::v1::*;

    /// max_p after the average was at each of `averages`, from 0.1.
    fn walk(params: FengParams, averages: &[f64]) -> Vec<f64> {
        let params = Combined { outer: params, inner: RedParams::default() };
        let mut aqm = Tuned::<FengRed>::build(&params, &Env::new(Rate(8_000_000))).unwrap();
        let mut after = |avg: &f64| {
            aqm.red.avg = *avg;
            aqm.tuner.on_average(Time::ZERO, &mut aqm.red);
            assert_eq!(aqm.red.gentle_max_p == aqm.red.max_p, !aqm.tuner.params.stale_gentle);
            aqm.red.max_p
        };
        averages.iter().map(&mut after).collect()
    }

    #[test]
    fn a_step_per_excursion_whatever_its_length() {
        let (down, up) = (0.1 / 3.0, 0.1 / 3.0 * 2.0);
        // The thresholds are 5 and 15, and lie outside the band between them.
        let averages = [7.0, 5.0, 4.0, 3.0, 5.1, 14.9, 15.0, 40.0, 14.0, 15.0, 2.0];
        let expected = [0.1, down, down, down, down, down, up, up, up, 2.0 * up, 2.0 * up / 3.0];
        assert_eq!(walk(FengParams::default(), &averages), expected);
        // From one side to the other at once is a crossing too.
        assert_eq!(walk(FengParams::default(), &[20.0, 0.0, 20.0]), [0.2, 0.2 / 3.0, 0.4 / 3.0]);
    }

    #[test]
    fn max_p_keeps_between_floor_and_one() {
        let high: Vec<f64> = [20.0, 10.0].repeat(10);
        assert_eq!(walk(FengParams::default(), &high).pop(), Some(1.0));
        let low: Vec<f64> = [0.0, 10.0].repeat(10);
        assert_eq!(walk(FengParams::default(), &low).pop(), Some(1e-5));
        let floor = FengParams { floor: 0.05, ..FengParams::default() };
        assert_eq!(walk(floor, &low).pop(), Some(0.05));
    }

    #[test]
    fn the_gentle_slope_can_stay_where_it_began() {
        let stale = FengParams { stale_gentle: true, ..FengParams::default() };
        assert_eq!(walk(stale, &[0.0]), [0.1 / 3.0]);
    }

    #[test]
    fn the_first_packet_and_a_day_of_idle_are_one_step() {
        let mut q = Bench::new("feng_red", &[("w_q", "0.5"), ("min_th", "2p"), ("max_th", "6p")]);
        q.put(0, 100);
        assert_eq!((q.gauge("max_p"), q.gauge("status")), (0.1 / 3.0, -1.0));
        for i in 1..10 {
            q.put(i, 100);
        }
        assert_eq!((q.gauge("max_p"), q.gauge("status")), (0.2 / 3.0, 1.0));
        q.drain();
        q.at_ms(86_400_000);
        q.put(20, 100);
        assert_eq!((q.gauge("max_p"), q.gauge("status")), (0.2 / 9.0, -1.0));
    }
}
