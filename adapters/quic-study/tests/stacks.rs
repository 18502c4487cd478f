//! Both stacks through tail drop and CoDel: goodput and delay, and equal runs.

use sojourn_aqm::Span;
use sojourn_quic_study::{Control, Outcome, Setup, quinn, s2n};
use std::io::Write;
use std::process::{Command, Stdio};

type Run = fn(&Setup) -> sojourn_aqm::Result<Outcome>;

fn setup(qdisc: &str, flows: usize) -> Setup {
    Setup {
        qdisc: qdisc.into(),
        control: Control::Cubic,
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

/// BBR of quinn does not pace: CoDel drops a quarter of its packets. BBR of s2n-quic slows down for
/// losses, and less for marks (reports/quic-study.md).
#[test]
fn bbr_of_both_stacks_misbehaves_as_the_study_says() {
    let bbr = |qdisc| Setup { control: Control::Bbr, ..setup(qdisc, 1) };
    let dropped = quinn::run(&bbr("codel")).unwrap().dropped;
    assert!((0.15..0.35).contains(&dropped), "{dropped}");
    let [marks, drops] =
        ["fq_codel", "fq_codel(ecn=false)"].map(|qdisc| s2n::run(&bbr(qdisc)).unwrap());
    assert!(marks.marked > 0.1 && marks.dropped == 0.0, "{marks:?}");
    assert!(drops.dropped < 0.06 && drops.p50_s < marks.p50_s, "{drops:?} {marks:?}");
}

/// Runs the program with lines of standard input; returns its status and both outputs.
fn program(lines: &str) -> (bool, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sojourn-quic-study"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.success(), out, err)
}

#[test]
fn the_program_prints_a_line_per_run_and_refuses_unknown_words() {
    let (succeeds, out, err) = program("quinn cubic 2 1 1 2 codel\ns2n-quic bbr 1 2 1 2 pie\n");
    assert!(succeeds && out.lines().count() == 2, "{out} {err}");
    assert!(out.lines().all(|line| line.starts_with("{\"goodput_bps\": [")), "{out}");
    for (line, message) in [
        ("quinn reno 1 1 1 2 codel", "control: \\\"reno\\\" is not known, allowed: cubic, bbr"),
        ("quin cubic 1 1 1 2 codel", "stack: \\\"quin\\\" is not known"),
        ("quinn cubic 1 1 1 2 codle", "did you mean \\\"codel\\\"?"),
        ("quinn cubic 1 1 1", "does not have seven fields"),
    ] {
        let (succeeds, out, err) = program(line);
        assert!(!succeeds && out.is_empty() && err.contains(message), "{line}: {err}");
    }
}
