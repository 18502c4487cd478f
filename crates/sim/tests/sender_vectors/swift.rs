//! Swift and csg-htsim.

use super::{Case, Compared, cases, compare, control, deliver};
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::internals::{CongestionControl, Swift};
use sojourn_sim::tcp::{SwiftParams, Window};

fn params(case: &Case) -> SwiftParams {
    SwiftParams {
        target: case.ns("base_ns"),
        hops: case.whole("hops"),
        hop_delay: case.ns("hop_ns"),
        ai: case.number("ai"),
        beta: case.number("beta"),
        max_mdf: case.number("max_mdf"),
        fs_range: case.ns("range_ns"),
        min_cwnd: case.number("min_bytes") / case.number("mss"),
        ..SwiftParams::default()
    }
}

/// The window after each ack, to a byte: htsim keeps whole bytes, so each step starts from its
/// window.
pub fn compared() -> Vec<Compared> {
    let run = |case: &Case| {
        let mss = case.whole("mss");
        let mut swift: Swift = control(&params(case));
        let mut seq = 1;
        compare(
            "swift",
            case,
            |_| 1.0,
            |step| {
                let [now, rtt, acked, before] = step.inputs[..] else { panic!("four inputs") };
                let mut window = Window { cwnd: before, ssthresh: u64::MAX, mss };
                swift.initial_window(Time(now), &window, None);
                window.cwnd = before.max(mss);
                deliver(&mut swift, &mut window, Time(now), Span(rtt), [seq, seq + acked]);
                seq += acked;
                vec![[swift.fractional_window() * mss as f64, step.outputs[0]]]
            },
        )
    };
    cases("swift").iter().map(run).collect()
}

/// In case 6 the flow scaling differs: htsim cuts the window to whole packets for it.
#[test]
fn swift_updates_as_in_htsim() {
    let compared = compared();
    for c in &compared[..5] {
        assert_eq!(c.equal, c.steps, "case {}", c.case);
    }
    assert!(compared[5].equal < 300 && compared[5].equal > 2, "{}", compared[5].equal);
}
