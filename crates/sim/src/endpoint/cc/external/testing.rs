//! External congestion control that records its calls, for unit tests.

use super::*;
use sojourn_aqm::params::Params;
use std::sync::Mutex;

/// Calls of the controls of one maker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn add(&self, call: String) {
        self.0.lock().unwrap().push(call);
    }

    /// Returns the calls since the last one of this function.
    pub(crate) fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Control that adds a byte to the window with every ack, and halves the flight.
#[derive(Clone)]
struct Recorder {
    calls: Calls,
    uses_recovered: bool,
}

impl ExternalControl for Recorder {
    fn reset(&mut self) {
        self.calls.add("reset".into());
    }

    fn on_established(&mut self, now: Time, window: &Window, rtt: Option<Span>) {
        self.calls.add(format!("on_established {} {} {rtt:?}", now.0, window.cwnd));
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck, rng: &mut dyn Random) {
        window.cwnd += 1;
        self.calls.add(format!("on_ack {} {}", acked.bytes, rng.uniform()));
    }

    fn on_congestion(
        &mut self,
        now: Time,
        _: &Window,
        flight: u64,
        cause: CongestionSignal,
        rng: &mut dyn Random,
    ) -> u64 {
        self.calls.add(format!("on_congestion {} {cause:?} {}", now.0, rng.uniform()));
        flight / 2
    }

    fn initial_window(&mut self, window: &Window) -> u64 {
        2 * window.cwnd
    }

    fn on_ecn_feedback(&mut self, window: &mut Window, ack: &MarkedAck, rng: &mut dyn Random) {
        window.cwnd += 5;
        let MarkedAck { now, snd_una, snd_nxt, acked, marked } = *ack;
        let text = format!("{} {snd_una} {snd_nxt} {acked} {marked}", now.0);
        self.calls.add(format!("on_ecn_feedback {text} {}", rng.uniform()));
    }

    fn on_telemetry(&mut self, window: &mut Window, ack: &TelemetryAck<'_>, rng: &mut dyn Random) {
        window.cwnd += 3;
        let TelemetryAck { now, snd_una, snd_nxt, path, links } = *ack;
        let text = format!("{} {snd_una} {snd_nxt} {path} {}", now.0, links.len());
        self.calls.add(format!("on_telemetry {text} {}", rng.uniform()));
    }

    fn uses_delivered(&self) -> bool {
        self.uses_recovered
    }

    fn on_delivered(&mut self, window: &mut Window, delivered: &NewDataAck, rng: &mut dyn Random) {
        window.cwnd += 4;
        let NewDataAck { at, bytes, flight, rtt, after_timeout, .. } = *delivered;
        let text = format!("{} {bytes} {flight} {rtt:?} {after_timeout}", at.0);
        self.calls.add(format!("on_delivered {text} {}", rng.uniform()));
    }

    fn uses_rate_samples(&self) -> bool {
        self.uses_recovered
    }

    /// Limits itself at even times.
    fn on_rate_sample(
        &mut self,
        window: &mut Window,
        ack: &RatedAck,
        rng: &mut dyn Random,
    ) -> bool {
        window.cwnd += 6;
        let RatedAck { now, acked, flight, delivered, prior_delivered, rate, interval, .. } = *ack;
        let rate = rate.map(f64::round);
        let sample = format!("{delivered} {prior_delivered} {rate:?} {}", interval.0);
        let flags = [ack.is_app_limited, ack.app_limited, ack.idle_restart].map(u8::from);
        let text = format!("{} {acked} {flight} {sample} {flags:?} {:?}", now.0, ack.rtt);
        self.calls.add(format!("on_rate_sample {text} {}", rng.uniform()));
        now.0.is_multiple_of(2)
    }

    fn uses_recovered(&self) -> bool {
        self.uses_recovered
    }

    fn on_recovered(&mut self, window: &mut Window, ack: &ProcessedAck, rng: &mut dyn Random) {
        window.cwnd += 2;
        self.calls.add(format!("on_recovered {} {}", ack.now.0, rng.uniform()));
    }

    fn pacing_rate(&self) -> Option<f64> {
        Some(125.0)
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("own", 7.0);
    }

    fn copy(&self) -> Box<dyn ExternalControl> {
        Box::new(self.clone())
    }
}

/// Builder of the control, which is paced if it uses the end of recoveries.
#[derive(Debug)]
struct Maker {
    calls: Calls,
    uses_recovered: bool,
}

impl ExternalMaker for Maker {
    fn make(&self, _: &CommonParams) -> Box<dyn ExternalControl> {
        let Maker { calls, uses_recovered } = self;
        Box::new(Recorder { calls: calls.clone(), uses_recovered: *uses_recovered })
    }

    fn uses_marks(&self) -> bool {
        self.uses_recovered
    }

    fn is_paced(&self) -> bool {
        self.uses_recovered
    }
}

/// Returns the control `recorder` with one parameter of its own.
pub(crate) fn recorder(
    calls: &Calls,
    uses_recovered: bool,
    (key, value): (&'static str, &str),
) -> ExternalParams {
    let mut row = CommonParams::default().table().remove(0);
    (row.name, row.aliases, row.value) = (key, &[], value.into());
    let maker = Arc::new(Maker { calls: calls.clone(), uses_recovered });
    ExternalParams { name: "recorder", recovery: LossRecovery::NewReno, rows: vec![row], maker }
}
