//! Any congestion control, with optional pacer, PRR and HyStart++. The sender uses it for all flows
//! except plain Reno.

use super::cubic::CubicVariant;
use super::*;
use crate::endpoint::common_params::CommonParams;
use crate::endpoint::telemetry::TelemetryStore;
use sojourn_aqm::Snapshot;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};

/// Congestion control with optional extensions.
#[derive(Clone, Debug, Snapshot)]
pub struct AnyControl {
    algorithm: ControlAlgorithm,
    pacer: Option<Pacer>,
    /// True if the pacer sends bursts, as in Linux.
    sends_bursts: bool,
    prr: Option<Prr>,
    hystart: Option<HyStart>,
    /// Payload bytes delivered as of the last ack.
    delivered: u64,
    /// Telemetry on its way back, if the algorithm uses it.
    telemetry: Option<Box<TelemetryStore>>,
}

impl AnyControl {
    /// Active algorithm.
    pub fn algorithm(&self) -> &ControlAlgorithm {
        &self.algorithm
    }

    /// Pacing rate in bytes of payload per second; None if pacing is off.
    pub fn pacing_rate(&self) -> Option<f64> {
        self.pacer.as_ref().map(Pacer::rate)
    }

    /// Keeps the telemetry of a packet that the receiver has; returns its number, 0 if the
    /// algorithm uses none.
    pub(crate) fn store_telemetry(&mut self, telemetry: &PathTelemetry) -> u32 {
        self.telemetry.as_mut().map_or(0, |store| store.add(telemetry))
    }

    /// Sets the rate of the pacer and the size of its bursts. A control without a rate of its own
    /// is paced by its window.
    fn pace(&mut self, window: &Window, srtt: Option<Span>, min_rtt: Option<Span>) {
        if self.pacer.is_none() {
            return;
        }
        let rate = self.own_pacing_rate().or_else(|| bursts::rate_of(window, srtt));
        let burst =
            (self.sends_bursts && self.paces_bursts()).then(|| self.burst(window, srtt, min_rtt));
        let Some(pacer) = &mut self.pacer else { return };
        if let Some(rate) = rate {
            pacer.set(rate);
        }
        if let Some(segments) = burst {
            pacer.set_burst(segments);
        }
    }
}

impl CongestionControl for AnyControl {
    const HOOKED: bool = true;

    type Params = ControlParams;

    fn new(control: &ControlParams, common: &CommonParams, rng: &mut dyn Random) -> AnyControl {
        let algorithm = ControlAlgorithm::new(control, common, rng);
        let unpaced = dispatch_to!(&algorithm, c => c.unpaced_segments());
        let pacer = (common.pacing == Some(true)).then(|| Pacer::new(unpaced));
        let sends_bursts = common.linux_acks;
        let prr = common.prr.then(Prr::default);
        let own = matches!(control, ControlParams::Cubic(c) if c.variant == CubicVariant::Linux);
        let hystart = (common.hystart == Some(true) && !own).then(HyStart::default);
        let telemetry = control.wants_telemetry().then(Box::default);
        AnyControl { algorithm, pacer, sends_bursts, prr, hystart, delivered: 0, telemetry }
    }

    fn reset(&mut self) {
        dispatch_to!(&mut self.algorithm, c => c.reset());
        let unpaced = self.unpaced_segments();
        self.pacer = self.pacer.as_ref().map(|_| Pacer::new(unpaced));
        self.prr = self.prr.as_ref().map(|_| Prr::default());
        self.hystart = self.hystart.as_ref().map(|_| HyStart::default());
        self.delivered = 0;
        if let Some(store) = &mut self.telemetry {
            store.clear();
        }
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck) {
        if self.prr.as_ref().is_some_and(Prr::reduces_for_mark) {
            return;
        }
        let before = window.cwnd;
        dispatch_to!(&mut self.algorithm, c => c.on_ack(window, acked));
        if let Some(prr) = &mut self.prr
            && dispatch_to!(&mut self.algorithm, c => c.takes_reduction())
        {
            prr.on_congestion(before, CongestionSignal::Mark);
        }
        if let Some(hystart) = &mut self.hystart {
            hystart.on_window_growth(window, before, acked.at);
        }
    }

    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
    ) -> u64 {
        let ssthresh =
            dispatch_to!(&mut self.algorithm, c => c.on_congestion(now, window, flight, cause));
        if let Some(prr) = &mut self.prr {
            prr.on_congestion(flight, cause);
        }
        if let Some(hystart) = &mut self.hystart {
            hystart.end();
        }
        ssthresh
    }

    fn reacts_to_mark_fraction(&self) -> bool {
        dispatch_to!(&self.algorithm, c => c.reacts_to_mark_fraction())
    }

    fn reduces_for_loss_after_mark(&self) -> bool {
        dispatch_to!(&self.algorithm, c => c.reduces_for_loss_after_mark())
    }

    fn grows_when_recovered(&self) -> bool {
        dispatch_to!(&self.algorithm, c => c.grows_when_recovered())
    }

    fn keeps_window_when_idle(&self) -> bool {
        dispatch_to!(&self.algorithm, c => c.keeps_window_when_idle())
    }

    fn on_established(&mut self, now: Time, window: &Window, rtt: Option<Span>) {
        dispatch_to!(&mut self.algorithm, c => c.on_established(now, window, rtt));
        self.pace(window, rtt, rtt);
    }

    fn initial_window(&mut self, now: Time, window: &Window, rtt: Option<Span>) -> u64 {
        dispatch_to!(&mut self.algorithm, c => c.initial_window(now, window, rtt))
    }

    fn on_ecn_feedback(&mut self, ack: u64, bytes: u64, marked: u64, next: u64) {
        dispatch_to!(&mut self.algorithm, c => c.on_ecn_feedback(ack, bytes, marked, next));
        if let Some(prr) = &mut self.prr {
            prr.on_feedback(ack, next);
        }
        if let Some(hystart) = self.hystart.as_mut().filter(|_| bytes > 0) {
            hystart.on_ack(ack, next);
        }
    }

    fn uses_explicit_feedback(&self) -> bool {
        dispatch_to!(&self.algorithm, c => c.uses_explicit_feedback())
    }

    fn uses_ack_feedback(&self) -> bool {
        dispatch_to!(&self.algorithm, c => c.uses_ack_feedback())
    }

    fn on_marked_ack(&mut self, window: &mut Window, ack: &MarkedAck) {
        dispatch_to!(&mut self.algorithm, c => c.on_marked_ack(window, ack));
    }

    fn on_explicit_feedback(&mut self, window: &mut Window, feedback: i32, srtt: Span) {
        dispatch_to!(&mut self.algorithm, c => c.on_explicit_feedback(window, feedback, srtt));
    }

    fn on_telemetry_echo(
        &mut self,
        now: Time,
        window: &mut Window,
        number: u32,
        sequence: [u64; 2],
    ) {
        if let Some(telemetry) = self.telemetry.as_mut().and_then(|store| store.take(number)) {
            let (c, telemetry) = (&mut self.algorithm, &telemetry);
            dispatch_to!(c, c => c.on_telemetry(now, window, telemetry, sequence));
        }
    }

    fn uses_delivery_hooks(&self) -> bool {
        let own = dispatch_to!(&self.algorithm, c => c.uses_delivery_hooks());
        own || self.pacer.is_some() || self.prr.is_some()
    }

    fn on_delivered(&mut self, now: Time, from: u64, to: u64) {
        dispatch_to!(&mut self.algorithm, c => c.on_delivered(now, from, to));
    }

    fn own_pacing_rate(&self) -> Option<f64> {
        dispatch_to!(&self.algorithm, c => c.own_pacing_rate())
    }

    fn burst_at(&self, rate: f64, min_rtt: Option<Span>, mss: u64) -> u64 {
        dispatch_to!(&self.algorithm, c => c.burst_at(rate, min_rtt, mss))
    }

    fn unpaced_segments(&self) -> u32 {
        dispatch_to!(&self.algorithm, c => c.unpaced_segments())
    }

    fn paces_bursts(&self) -> bool {
        dispatch_to!(&self.algorithm, c => c.paces_bursts())
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        dispatch_to!(&self.algorithm, c => c.inspect(visit));
    }

    fn on_ack_processed(&mut self, window: &mut Window, ack: &ProcessedAck) {
        dispatch_to!(&mut self.algorithm, c => c.on_ack_processed(window, ack));
        let news = ack.delivered - self.delivered;
        self.delivered = ack.delivered;
        if let Some(prr) = &mut self.prr {
            let recovered = prr.on_ack_processed(window, ack, news);
            if recovered && self.grows_when_recovered() {
                let (at, flight) = (ack.now, window.cwnd);
                let (rtt, srtt, after_timeout) = (None, ack.srtt, false);
                let acked = NewDataAck { at, bytes: news, flight, rtt, srtt, after_timeout };
                dispatch_to!(&mut self.algorithm, c => c.on_ack(window, &acked));
            }
        }
        self.pace(window, ack.srtt, ack.min_rtt);
    }

    fn on_timeout_losses(&mut self, window: &Window, lost: u64) {
        dispatch_to!(&mut self.algorithm, c => c.on_timeout_losses(window, lost));
    }

    fn recovers_within_window(&self) -> bool {
        dispatch_to!(&self.algorithm, c => c.recovers_within_window())
    }

    fn on_undo(&mut self, window: &mut Window, prior_cwnd: u64) {
        dispatch_to!(&mut self.algorithm, c => c.on_undo(window, prior_cwnd));
        if let Some(prr) = &mut self.prr {
            prr.stop();
        }
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        dispatch_to!(&mut self.algorithm, c => c.on_sent(sent));
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(sent.now, sent.seq, sent.end);
        }
        if let Some(hystart) = self.hystart.as_mut().filter(|_| !sent.retransmission) {
            hystart.on_sent(sent.now, sent.end);
        }
        if let Some(prr) = &mut self.prr {
            prr.on_sent(sent.state, sent.weight());
        }
    }

    fn may_send(&mut self, now: Time, seq: u64) -> bool {
        self.pacer.as_mut().is_none_or(|pacer| pacer.may_send(now, seq))
    }

    fn clear_held(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            pacer.clear_held();
        }
    }

    fn release_time(&self) -> Time {
        self.pacer.as_ref().map_or(Time::NEVER, Pacer::release_time)
    }

    fn pacing_delay(&self, now: Time) -> Span {
        self.pacer.as_ref().map_or(Span::ZERO, |pacer| pacer.delay(now))
    }

    fn on_app_limited(&mut self, flight: u64) {
        dispatch_to!(&mut self.algorithm, c => c.on_app_limited(flight));
    }
}

#[cfg(test)]
mod tests {
    use super::super::RecoveryState;
    use super::super::testing::processed;
    use super::*;
    use crate::endpoint::tcp::parse;
    use sojourn_aqm::params::Setting::{Flag, Text};

    /// Control of the TCP `name` with the `options` switched on.
    fn control(name: &str, options: &[&'static str]) -> AnyControl {
        let options = options.iter().map(|name| (*name, Flag(true)));
        let params = parse(name, options.chain([("profile", Text("rfc"))])).unwrap();
        let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
        AnyControl::new(&params.control, &params.settings, &mut rng)
    }

    /// Segment `i` of 1000 bytes.
    fn sent(i: u64, retransmission: bool, state: RecoveryState) -> SentSegment {
        let seq = 1 + 1_000 * i;
        let (now, end) = (Time::ZERO, seq + 1_000);
        SentSegment { now, seq, end, retransmission, padding: 0, was_idle: i == 0, state }
    }

    const OPEN: RecoveryState = RecoveryState::Open;
    const WINDOW: Window = Window { cwnd: 10_000, ssthresh: u64::MAX, mss: 1_000 };

    #[test]
    fn traits_of_each_control() {
        for entry in TCPS {
            let c = control(entry.name, &[]);
            let is_one_of = |names: &[&str]| names.contains(&entry.name);
            assert_eq!(c.reacts_to_mark_fraction(), is_one_of(&["dcqcn", "dctcp", "prague"]));
            let keepers = ["bbr", "bbr3", "dcqcn", "hpcc", "powertcp", "prague", "swift", "timely"];
            assert_eq!(c.keeps_window_when_idle(), is_one_of(&keepers));
            assert_eq!(c.reduces_for_loss_after_mark(), is_one_of(&["dcqcn", "prague"]));
            let paced_at_once = ["dcqcn", "hpcc", "powertcp", "swift", "timely"];
            assert_eq!(c.unpaced_segments() == 0, is_one_of(&paced_at_once), "{}", entry.name);
            let mut users = vec!["ledbat", "ledbatpp"];
            users.extend(keepers);
            let linux = entry.source.contains("; Linux tcp_");
            assert_eq!(c.uses_delivery_hooks(), linux || is_one_of(&users), "{}", entry.name);
        }
        assert!(control("sack", &["pacing"]).uses_delivery_hooks());
        assert!(control("sack", &["prr"]).uses_delivery_hooks());
    }

    #[test]
    fn the_pacer_follows_the_window_or_bbr() {
        assert_eq!(control("sack", &[]).pacing_rate(), None);
        for (name, first, second) in [("sack", 200_000.0, 400_000.0), ("bbr", 288_500.0, 288_500.0)]
        {
            let mut c = control(name, &["pacing"]);
            assert_eq!(c.pacing_rate(), Some(f64::INFINITY));
            c.on_established(Time::ZERO, &WINDOW, Some(Span::ms(100)));
            assert_eq!(c.pacing_rate().map(f64::round), Some(first), "{name}");
            (0..10).for_each(|i| c.on_sent(&sent(i, false, OPEN))); // the first ten are not paced
            assert!(!c.may_send(Time(3_000_000), 10_001), "1000 B take 3.5 or 5 ms");
            let gap = (1e12 / c.pacing_rate().unwrap()) as u64;
            assert_eq!(c.release_time(), Time(gap));
            assert!(c.may_send(Time(gap), 10_001));
            let srtt = Some(Span::ms(50));
            let ack = ProcessedAck { srtt, ..processed(Time(1), 0, 1_000, OPEN) };
            c.on_ack_processed(&mut WINDOW.clone(), &ack);
            assert_eq!(c.pacing_rate().map(f64::round), Some(second), "{name}, after an ack");
        }
    }

    #[test]
    fn the_pacer_sends_bursts_as_linux_does() {
        // 2 windows of 30 kB per 100 ms; BBR 2.885. With 1 ms, half a window.
        for (name, rtt, burst) in [("cubic", 100, 2), ("bbr", 100, 2), ("bbr", 1, 15)] {
            let settings = [("pacing", Flag(true)), ("packet", Text("1052B"))];
            let params = parse(name, settings).unwrap();
            let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
            let mut c = AnyControl::new(&params.control, &params.settings, &mut rng);
            let window = Window { cwnd: 30_000, ..WINDOW };
            c.on_established(Time::ZERO, &window, Some(Span::ms(rtt)));
            (0..10).for_each(|i| c.on_sent(&sent(i, false, OPEN)));
            c.clear_held();
            let now = Time(1_000_000_000);
            let sent_at_once = (10..60).take_while(|i| {
                let allowed = c.may_send(now, 1 + 1_000 * i);
                if allowed {
                    c.on_sent(&SentSegment { now, ..sent(*i, false, OPEN) });
                }
                allowed
            });
            assert_eq!(sent_at_once.count(), burst, "{name}, {rtt} ms");
        }
    }

    #[test]
    fn dctcp_learns_of_echoes() {
        let mut c = control("dctcp", &[]);
        c.on_ecn_feedback(1_001, 1_000, 0, 5_001);
        let ControlAlgorithm::Dctcp(dctcp) = c.algorithm() else { unreachable!() };
        assert_eq!(dctcp.alpha(), 15.0 / 16.0);
    }

    #[test]
    fn bbr_learns_that_the_application_is_the_limit() {
        let mut c = control("bbr", &[]);
        c.on_app_limited(5_000);
        assert!(format!("{c:?}").contains("starved_until: 5000"));
    }

    #[test]
    fn variables_of_a_control_of_another_crate_are_shown() {
        let own = super::super::external_testing::recorder(&Default::default(), false, ("g", "1"));
        let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
        let control = ControlParams::External(own);
        let control = AnyControl::new(&control, &CommonParams::default(), &mut rng);
        let mut seen = vec![];
        control.inspect(&mut |name, value| seen.push((name, value)));
        assert_eq!(seen, [("own", 7.0)]);
    }

    #[test]
    fn hystart_sees_first_transmissions_and_acks_of_new_data() {
        let mut c = control("sack", &["hystart"]);
        let shown = |c: &AnyControl| format!("{:?}", c.hystart);
        let first = shown(&c);
        c.on_sent(&sent(0, true, OPEN));
        c.on_ecn_feedback(1, 0, 0, 1_001);
        assert_eq!(shown(&c), first, "a retransmission and a duplicate ack");
        c.on_sent(&sent(0, false, OPEN));
        assert!(shown(&c).contains("sent: [(1001,"), "{}", shown(&c));
        c.on_ecn_feedback(1_001, 1_000, 0, 5_001);
        assert!(shown(&c).contains("sent: [], "), "{}", shown(&c));
        assert!(shown(&c).contains("window_end: 5001"), "{}", shown(&c));
    }

    #[test]
    fn prr_counts_what_is_sent_and_delivered_in_recovery() {
        let mut c = control("sack", &["prr"]);
        let shown = |c: &AnyControl| format!("{:?}", c.prr.as_ref().unwrap());
        c.on_sent(&sent(0, false, OPEN));
        assert!(shown(&c).contains("prr_out: 0"), "not in recovery");
        c.on_congestion(Time(1), &WINDOW, 10_000, CongestionSignal::Loss);
        assert!(shown(&c).contains("recover_fs: 10000"));
        c.on_sent(&sent(3, true, RecoveryState::Recovery));
        assert!(shown(&c).contains("prr_out: 1000"));
        for delivered in [2_000, 5_000] {
            let (state, srtt) = (RecoveryState::Recovery, None);
            let ack = ProcessedAck { srtt, ..processed(Time(1), delivered, 8_000, state) };
            c.on_ack_processed(&mut WINDOW.clone(), &ack);
            assert!(shown(&c).contains(&format!("prr_delivered: {delivered}")), "{}", shown(&c));
        }
    }
}
