//! Both stacks through tail drop and CoDel: goodput and delay, and equal runs.

use sojourn_aqm::Span;
use sojourn_quic_study::{Outcome, Setup, quinn, s2n};

type Run = fn(&Setup) -> sojourn_aqm::Result<Outcome>;

fn setup(qdisc: &str, flows: usize) -> Setup {
    Setup {
        qdisc: qdisc.into(),
        control: "cubic".into(),
        flows,
        seed: 1,
        warmup: Span::s(3),
        measured: Span::s(10),
    }
}

/// Checks a stack: 10 Mbit/s, 40 ms, and a queue of 250 ms at most.
fn check(run: Run) {
    let [tail, codel] = ["droptail", "codel"].map(|qdisc| run(&setup(qdisc, 1)).unwrap());
    println!("{tail:?}\n{codel:?}");
    assert!(tail.goodput_bps[0] > 8.5e6 && tail.p50_s > 0.1, "{tail:?}");
    assert!(codel.goodput_bps[0] > 7e6 && codel.p50_s < 0.03, "{codel:?}");
    assert!(codel.dropped > 0.0 && codel.dropped < 0.02, "{codel:?}");
}

#[test]
fn codel_keeps_the_delay_of_quinn_short() {
    check(quinn::run);
}

#[test]
fn codel_keeps_the_delay_of_s2n_quic_short() {
    check(s2n::run);
}

#[test]
fn runs_are_equal() {
    for run in [quinn::run as Run, s2n::run] {
        let short = Setup { warmup: Span::s(2), measured: Span::s(4), ..setup("fq_codel", 2) };
        let [first, second] = [run(&short).unwrap(), run(&short).unwrap()];
        assert_eq!(first, second);
        let other = run(&Setup { seed: 2, ..short }).unwrap();
        assert_ne!(first, other);
        assert!(first.goodput_bps.iter().all(|bps| (3e6..6e6).contains(bps)), "{first:?}");
    }
}
