//! A congestion control of your own, simulated next to built-in ones:
//! `cargo run --release -p sojourn-sim --example own_control`.

use sojourn_aqm::params::Setting;
use sojourn_aqm::{Random, Result};
use sojourn_sim::tcp::{
    CommonParams, CongestionSignal, ExternalControl, ExternalMaker, ExternalParams, LossRecovery,
    NewDataAck, Window,
};
use sojourn_sim::{Registries, Scenario};
use std::sync::Arc;

/// Slow start, then a segment per round trip; a loss or mark takes a tenth of the window.
#[derive(Clone, Debug)]
pub struct Tenth;

impl ExternalControl for Tenth {
    fn reset(&mut self) {}

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck, _rng: &mut dyn Random) {
        window.cwnd += if window.is_in_slow_start() {
            acked.bytes.min(window.mss)
        } else {
            acked.bytes * window.mss / window.cwnd
        };
    }

    fn on_congestion(
        &mut self,
        _now: sojourn_aqm::Time,
        window: &Window,
        flight: u64,
        _cause: CongestionSignal,
        _rng: &mut dyn Random,
    ) -> u64 {
        (flight * 9 / 10).max(2 * window.mss)
    }

    fn copy(&self) -> Box<dyn ExternalControl> {
        Box::new(self.clone())
    }
}

/// Builder of the control, which has no parameters.
impl ExternalMaker for Tenth {
    fn make(&self, _common: &CommonParams) -> Box<dyn ExternalControl> {
        self.copy()
    }
}

/// Returns the control if `name` is its name.
fn find(name: &str, _settings: &[(&str, Setting<'_>)]) -> Option<Result<ExternalParams>> {
    let (recovery, rows, maker) = (LossRecovery::Sack, Vec::new(), Arc::new(Tenth));
    (name == "tenth").then_some(Ok(ExternalParams { name: "tenth", recovery, rows, maker }))
}

/// Simulates a flow with each control. Returns its name, its goodput in bit/s and the number of
/// packets that it sent again.
///
/// # Errors
/// If a name is not known.
pub fn compare() -> Result<Vec<(&'static str, f64, f64)>> {
    let registries = Registries::standard().with_controls(find);
    let simulate = |tcp: &'static str| {
        let scenario = serde_json::json!({
            "duration": "30s",
            "warmup": "5s",
            "links": {"up": {"rate": "20mbit", "delay": "10ms", "qdisc": "codel"}},
            "flows": [{"name": "upload", "path": ["up"], "rtt": "80ms", "tcp": tcp}],
        });
        let scenario = Scenario::from_json_with(&registries, &scenario.to_string())?;
        let outcome = sojourn_sim::run(&scenario);
        let flow = &outcome.summary["flows"][0];
        let number = |key: &str| flow[key].as_f64().expect("the flow was measured");
        Ok((tcp, number("goodput_bps"), number("retransmitted_packets")))
    };
    ["newreno", "cubic", "tenth"].into_iter().map(simulate).collect()
}

/// Prints a table.
///
/// # Errors
/// As [`compare`].
pub fn main() -> Result<()> {
    for (tcp, goodput, again) in compare()? {
        println!("{tcp:8} {:.1} Mbit/s, {again} packets sent again", goodput / 1e6);
    }
    Ok(())
}
