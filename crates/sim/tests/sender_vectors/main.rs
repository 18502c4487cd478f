//! Senders of data centres compared value by value with other simulators, on fixed random acks
//! (`lab/vectors/README-senders.md`).

mod dcqcn;
mod swift;
mod timely;

use flate2::read::GzDecoder;
use rand_core::SeedableRng;
use sojourn_aqm::units::{Rate, Span, Time};
use sojourn_sim::internals::{CongestionControl, SentSegment};
use sojourn_sim::tcp::{CommonParams, ProcessedAck, Window};
use std::collections::BTreeMap;
use std::io::Read;

/// Case of a vector: parameters, and events with the state after each.
pub struct Case {
    id: u64,
    params: BTreeMap<String, f64>,
    steps: Vec<Step>,
}

/// Event with the state of the other simulator after it.
pub struct Step {
    kind: String,
    inputs: Vec<u64>,
    outputs: Vec<f64>,
}

impl Case {
    fn number(&self, name: &str) -> f64 {
        *self.params.get(name).unwrap_or_else(|| panic!("case {} has no {name}", self.id))
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole numbers")]
    fn whole(&self, name: &str) -> u64 {
        let number = self.number(name);
        assert!(number >= 0.0 && number.fract() == 0.0, "{name} {number}");
        number as u64
    }

    fn rate(&self, name: &str) -> Rate {
        Rate(self.whole(name))
    }

    fn ns(&self, name: &str) -> Span {
        Span(self.whole(name))
    }
}

/// Reads the cases of a vector.
fn cases(name: &str) -> Vec<Case> {
    let path = format!("{}/../../lab/vectors/senders/{name}.txt.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(&path).expect(&path)).read_to_string(&mut text).unwrap();
    let mut cases: Vec<Case> = vec![];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "case" {
            let value = |pair: &[&str]| (pair[0].to_string(), pair[1].parse().unwrap());
            let params = words[2..].chunks(2).map(value).collect();
            cases.push(Case { id: words[1].parse().unwrap(), params, steps: vec![] });
            continue;
        }
        let split = words.iter().position(|word| *word == "=").expect("a state");
        let inputs = words[1..split].iter().map(|word| word.parse().unwrap()).collect();
        let outputs = words[split + 1..].iter().map(|word| word.parse().unwrap()).collect();
        let step = Step { kind: words[0].to_string(), inputs, outputs };
        cases.last_mut().expect("a case first").steps.push(step);
    }
    assert!(cases.len() > 2, "{path}");
    cases
}

/// Result of one case.
pub struct Compared {
    vector: &'static str,
    case: u64,
    /// Steps of the vector, and those before the first difference.
    steps: usize,
    equal: usize,
    /// Largest difference among the equal steps, as a share of the value.
    largest: f64,
}

/// Compares states step by step until they differ by more than `tolerance(theirs)`.
fn compare(
    vector: &'static str,
    case: &Case,
    tolerance: impl Fn(f64) -> f64,
    mut ours: impl FnMut(&Step) -> Vec<[f64; 2]>,
) -> Compared {
    let (mut equal, mut largest) = (0, 0.0f64);
    for step in &case.steps {
        let pairs = ours(step);
        assert!(pairs.iter().flatten().all(|x| x.is_finite()), "case {}: {pairs:?}", case.id);
        if pairs.iter().any(|[ours, theirs]| (ours - theirs).abs() > tolerance(*theirs)) {
            break;
        }
        equal += 1;
        let shares =
            pairs.iter().map(|[ours, theirs]| (ours - theirs).abs() / theirs.abs().max(1e-9));
        largest = shares.fold(largest, f64::max);
    }
    Compared { vector, case: case.id, steps: case.steps.len(), equal, largest }
}

/// Control with the default parameters of all TCPs.
fn control<C: CongestionControl>(params: &C::Params) -> C {
    let mut rng = sojourn_aqm::Pcg::seed_from_u64(1);
    C::new(params, &CommonParams::default(), &mut rng)
}

/// Delivers `bytes` from `seq` on, which were sent at `now - rtt`, with a full window.
fn deliver(
    c: &mut impl CongestionControl,
    window: &mut Window,
    now: Time,
    rtt: Span,
    seq: [u64; 2],
) {
    let [seq, end] = seq;
    let sent = Time(now.0 - rtt.0);
    c.on_sent(&SentSegment { now: sent, seq, end, was_idle: true, ..SentSegment::default() });
    c.on_delivered(now, seq, end);
    let flight = window.cwnd;
    c.on_ack_processed(window, &ProcessedAck { now, flight, ..ProcessedAck::default() });
}

/// Prints the comparison with `--nocapture`; `lab/sojourn_lab/validation/datacentre.py` reads it.
#[test]
fn table() {
    for c in timely::compared().into_iter().chain(dcqcn::compared()).chain(swift::compared()) {
        println!("{},{},{},{},{:.1e}", c.vector, c.case, c.steps, c.equal, c.largest);
    }
}
