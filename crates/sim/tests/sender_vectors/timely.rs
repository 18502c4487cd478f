//! TIMELY and HPCC's simulator.

use super::{Case, Compared, cases, compare, control, deliver};
use sojourn_aqm::units::{Bytes, Span, Time};
use sojourn_sim::internals::{CongestionControl, Timely};
use sojourn_sim::tcp::{TimelyParams, Window};

const MSS: u64 = 1_460;

/// Our parameters: hyperactive increase is from the sixth increase on.
fn params(case: &Case) -> TimelyParams {
    TimelyParams {
        initial_rate: Some(case.rate("nic_bps")),
        min_rate: case.rate("min_bps"),
        max_rate: case.rate("nic_bps"),
        delta: case.rate("ai_bps"),
        beta: case.number("beta"),
        alpha: case.number("alpha"),
        t_low: case.ns("t_low_ns"),
        t_high: case.ns("t_high_ns"),
        min_rtt: case.ns("min_rtt_ns"),
        n: case.number("hai_bps") / case.number("ai_bps"),
        n_after: 6,
        segment: Bytes(MSS),
    }
}

/// The rate after each ack; acks that are not updates there are left out here.
pub fn compared() -> Vec<Compared> {
    let run = |case: &Case| {
        let mut timely: Timely = control(&params(case));
        let mut window = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS };
        timely.on_established(Time(1), &window, None);
        let mut seq = 1;
        compare(
            "timely",
            case,
            |rate| 1e-7 * rate,
            |step| {
                if step.outputs[0] == 1.0 {
                    // TIMELY has no clock but round-trip times; segments do not overlap.
                    let (now, rtt) = (Time(1_000_000 * seq), Span(step.inputs[3]));
                    deliver(&mut timely, &mut window, now, rtt, [seq, seq + MSS]);
                    seq += MSS;
                }
                vec![[timely.rate_bps(), step.outputs[1]]]
            },
        )
    };
    cases("timely").iter().map(run).collect()
}

/// Case 5 has round-trip times below `T_low` and hyperactive increase: HPCC's simulator counts
/// every increase in a row, the paper (and ours) only increases by a gradient of at most 0.
#[test]
fn timely_updates_as_in_hpccs_simulator() {
    let compared = compared();
    for c in &compared[..4] {
        assert_eq!((c.equal, c.steps), (300, 300), "case {}", c.case);
    }
    assert!(compared[4].equal < 300 && compared[4].equal > 10, "{}", compared[4].equal);
}
