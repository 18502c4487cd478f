//! HPCC, PowerTCP and theta-PowerTCP compared with the functions of their authors' simulators
//! (`lab/vectors/README-senders.md`).

use super::hpcc::{Hpcc, HpccParams};
use super::powertcp::{PowerTcp, PowerTcpParams, PowerTcpVariant};
use super::reference_rate::ReferenceRate;
use super::{CongestionControl, Window};
use crate::endpoint::common_params::CommonParams;
use crate::endpoint::telemetry::PathTelemetry;
use flate2::read::GzDecoder;
use sojourn_aqm::HopTelemetry;
use sojourn_aqm::units::{Rate, Span, Time};
use std::io::Read;

const WINDOW: Window = Window { cwnd: 1, ssthresh: u64::MAX, mss: 1 };

/// Parameters of a case.
struct Case<'a>(Vec<&'a str>);

impl Case<'_> {
    fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(&self, key: &str) -> T {
        let place = self.0.iter().position(|word| *word == key).expect(key);
        self.0[place + 1].parse().unwrap()
    }

    fn rate(&self, key: &str) -> Rate {
        Rate(self.number(key))
    }

    fn base_rtt(&self) -> Option<Span> {
        Some(Span(self.number("base_rtt_ns")))
    }
}

/// An ack, and the state after it.
struct Ack {
    is_first: bool,
    now: Time,
    sequence: [u64; 2],
    rtt: Span,
    telemetry: PathTelemetry,
    /// Rate, reference, window, and average.
    expected: [f64; 4],
    stage: u64,
    base_rtt: Span,
}

impl Ack {
    /// Reads a line; the bytes of a link are those that have entered its queue if `received`.
    fn read(line: &str, received: bool) -> Ack {
        let (before, after) = line.split_once(" = ").expect(line);
        let words: Vec<&str> = before.split(' ').collect();
        let numbers: Vec<u64> = words[1..].iter().map(|word| word.parse().unwrap()).collect();
        let mut telemetry = PathTelemetry::default();
        for hop in numbers[5..].chunks(4) {
            let sent_bytes = if received { hop[1] - hop[2] } else { hop[1] };
            let (queue_bytes, packet_bytes) = (u32::try_from(hop[2]).unwrap(), 0);
            let (at, rate) = (Time(hop[0]), Rate(hop[3]));
            telemetry.push(HopTelemetry { at, sent_bytes, queue_bytes, packet_bytes, rate });
        }
        let after: Vec<f64> = after.split(' ').map(|word| word.parse().unwrap()).collect();
        Ack {
            is_first: words[0] == "first",
            now: Time(numbers[0]),
            sequence: [numbers[1], numbers[2]],
            rtt: Span(numbers[3]),
            telemetry,
            expected: [after[0], after[1], after[2], after[3]],
            stage: after[4] as u64,
            base_rtt: Span(after[6] as u64),
        }
    }

    /// Compares a state with the expected one. The simulators cut rates to whole bit/s after each
    /// operation, which adds up over many references, and windows to whole bytes.
    fn compare(&self, rate: &ReferenceRate, line: &str) {
        let window = rate.window(WINDOW.mss) as f64;
        let state = [rate.bits(), rate.reference(), window, rate.load()];
        for (i, (ours, theirs)) in state.into_iter().zip(self.expected).enumerate() {
            let tolerance = [10.0_f64, 10.0, 1.0, 1e-12][i].max(theirs * 1e-8);
            assert!((ours - theirs).abs() <= tolerance, "{i}: {ours}, not {theirs}, after {line}");
        }
        assert_eq!(rate.base_rtt(), self.base_rtt, "{line}");
    }
}

/// Feeds the acks of the file `name` to a sender per case. Returns the number of acks.
fn compare<C: CongestionControl>(
    name: &str,
    new: impl Fn(&Case<'_>) -> C::Params,
    on_ack: impl Fn(&mut C, &Ack),
    state: impl Fn(&C) -> (&ReferenceRate, u64),
) -> usize {
    let path = format!("{}/../../lab/vectors/senders/{name}.txt.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(&path).expect(&path)).read_to_string(&mut text).unwrap();
    let (mut sender, mut count) = (None, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with("case") {
            let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
            let params = new(&Case(line.split(' ').collect()));
            let mut fresh = C::new(&params, &CommonParams::default(), &mut rng);
            fresh.on_established(Time(0), &WINDOW, Some(Span::s(1)));
            sender = Some(fresh);
            continue;
        }
        let sender = sender.as_mut().expect("a case comes first");
        let ack = Ack::read(line, name == "powertcp");
        on_ack(sender, &ack);
        let (rate, stage) = state(sender);
        ack.compare(rate, line);
        assert_eq!(stage, ack.stage, "{line}");
        count += 1;
    }
    count
}

#[test]
fn hpcc_computes_the_rates_of_its_simulator() {
    let params = |case: &Case<'_>| HpccParams {
        eta: case.number("eta"),
        max_stage: case.number("max_stage"),
        rate_ai: Some(case.rate("ai_bps")),
        min_rate: Some(case.rate("min_bps")),
        max_rate: Some(case.rate("nic_bps")),
        base_rtt: case.base_rtt(),
    };
    let on_ack = |sender: &mut Hpcc, ack: &Ack| {
        sender.on_telemetry(Time(1), &mut WINDOW.clone(), &ack.telemetry, ack.sequence);
    };
    assert_eq!(compare("hpcc", params, on_ack, |sender| (sender.rate(), sender.stage())), 480);
}

/// Parameters of a case of PowerTCP.
fn powertcp(case: &Case<'_>, variant: PowerTcpVariant) -> PowerTcpParams {
    PowerTcpParams {
        variant,
        gamma: None,
        eta: case.number("eta"),
        rate_ai: case.rate("ai_bps"),
        min_rate: Some(case.rate("min_bps")),
        max_rate: Some(case.rate("nic_bps")),
        base_rtt: case.base_rtt(),
    }
}

#[test]
fn powertcp_computes_the_rates_of_its_simulator() {
    let params = |case: &Case<'_>| powertcp(case, PowerTcpVariant::Int);
    let on_ack = |sender: &mut PowerTcp, ack: &Ack| {
        assert_eq!(sender.has_telemetry(), !ack.is_first);
        sender.on_telemetry(Time(1), &mut WINDOW.clone(), &ack.telemetry, ack.sequence);
    };
    assert_eq!(compare("powertcp", params, on_ack, |sender| (sender.rate(), 0)), 480);
}

#[test]
fn theta_powertcp_computes_the_rates_of_its_simulator() {
    let params = |case: &Case<'_>| powertcp(case, PowerTcpVariant::Theta);
    let on_ack = |sender: &mut PowerTcp, ack: &Ack| {
        sender.start_theta_at(Time(100_000));
        sender.on_ecn_feedback(ack.sequence[0], 0, 0, ack.sequence[1]);
        sender.on_rtt(ack.now, ack.rtt);
    };
    assert_eq!(compare("theta", params, on_ack, |sender| (sender.rate(), 0)), 480);
}
