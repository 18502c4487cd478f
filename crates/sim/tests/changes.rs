//! Paths that change: random loss, links and flows that change during a run, and their time series.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

mod common;
use common::{flow, num, run};
use serde_json::{Value, json};
use sojourn_sim::{Column, Outcome};

fn f64s<'a>(out: &'a Outcome, name: &str) -> &'a [f64] {
    match column(out, name) {
        Column::F64(v) => v,
        _ => panic!("{name} holds quantities"),
    }
}

fn u64s<'a>(out: &'a Outcome, name: &str) -> &'a [u64] {
    match column(out, name) {
        Column::U64(v) => v,
        _ => panic!("{name} holds counts"),
    }
}

fn column<'a>(out: &'a Outcome, name: &str) -> &'a Column {
    &out.columns.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// One flow over a fast link with random loss.
fn lossy(loss: impl Into<Value>, tcp: &str) -> Value {
    json!({
        "duration": "4000s", "warmup": "50s",
        "links": {"air": {"rate": "1gbit", "delay": "50ms", "loss": loss.into()}},
        "flows": [{"name": "f", "path": ["air"], "rtt": "100ms", "tcp": {"name": tcp,
            "packet": "1000B", "delayed_ack": false}}]
    })
}

#[test]
fn random_loss_gives_the_window_of_the_square_root_law() {
    // Mathis et al., CCR 27(3), 1997: a constant between 1.2 and 1.4 over sqrt(p) for SACK without
    // delayed acks.
    let p = 0.001;
    let out = run(&lossy(p, "sack"));
    let link = &out.summary["links"]["air"];
    let sent = num(link, "departed_packets");
    let lost = num(link, "lost_on_wire_packets") / sent;
    let sigma = (p * (1.0 - p) / sent).sqrt();
    assert!((lost - p).abs() < 4.0 * sigma, "{lost} of {sent} packets");
    let per_rtt = sent / 3950.0 * 0.1 * p.sqrt();
    assert!((1.2..=1.4).contains(&per_rtt), "{per_rtt} over the root of p");
    assert_eq!(num(link, "dropped_packets"), 0.0, "no queue drops");
}

#[test]
fn losses_come_in_bursts() {
    // Datagrams, so that the sending rate does not depend on losses.
    let mut all = lossy(json!({"p": 0.01, "r": 0.2, "1-h": 0.5, "1-k": 0.01}), "sack");
    all["flows"] = json!([{"name": "call", "path": ["air"], "source": "cbr"}]);
    let out = run(&all);
    let link = &out.summary["links"]["air"];
    let lost = num(link, "lost_on_wire_packets") / num(link, "departed_packets");
    let b = 0.01 / 0.21;
    let share = 0.5 * b + 0.01 * (1.0 - b);
    assert!((lost / share - 1.0).abs() < 0.05, "{lost}, not {share}");
    assert!((num(flow(&out, "call"), "loss_rate") - lost).abs() < 1e-3);
    // One packet in ten thousand: loss events five times as rare give a window sqrt(5) as large.
    let share: f64 = 1e-4;
    let random = run(&lossy(share, "sack"));
    let bursts = run(&lossy(json!({"p": share / 5.0 / (1.0 - share), "r": 0.2}), "sack"));
    let goodput = |out: &Outcome| num(flow(out, "f"), "goodput_bps");
    let ratio = goodput(&bursts) / goodput(&random);
    println!("the same share in runs of five: {ratio:.3} of the goodput");
    assert!((1.8..2.6).contains(&ratio), "one reduction per burst");
}

#[test]
fn a_loss_rate_of_one_delivers_nothing() {
    let mut all = lossy(1.0, "newreno");
    all["duration"] = json!("60s");
    all["flows"].as_array_mut().unwrap().push(json!({"name": "call", "path": ["air"],
        "source": "cbr"}));
    let out = run(&all);
    assert_eq!(num(flow(&out, "f"), "goodput_bps"), 0.0);
    assert_eq!(num(flow(&out, "call"), "loss_rate"), 1.0);
}

#[test]
fn a_flow_follows_changes_of_the_rate() {
    let out = run(&json!({
        "duration": "40s", "sample": "1s",
        "links": {"up": {"rate": "10mbit", "delay": "10ms", "qdisc": {"name": "droptail",
            "limit": "50kB"}}},
        "flows": [{"name": "f", "path": ["up"], "rtt": "20ms"}],
        "changes": [{"at": "10s", "links": {"up": {"rate": "2mbit"}}},
            {"at": "20s", "links": {"up": {"rate": "0bit"}}},
            {"at": "22s", "links": {"up": {"rate": "20mbit", "delay": "40ms"}}}]
    }));
    let sent = u64s(&out, "links/up/departed_bytes");
    let mbit = |from: usize, to: usize| {
        sent[from..to].iter().sum::<u64>() as f64 * 8e-6 / (to - from) as f64
    };
    assert!((9.9..=10.1).contains(&mbit(3, 10)), "{}", mbit(3, 10));
    assert!((1.95..=2.02).contains(&mbit(11, 20)), "{}", mbit(11, 20));
    assert!(mbit(20, 22) < 0.02, "at most the packet in transmission: {}", mbit(20, 22));
    assert!(mbit(30, 40) > 15.0, "{}", mbit(30, 40));
}

#[test]
fn a_trace_of_rates_repeats() {
    let out = run(&json!({
        "duration": "20s", "sample": "500ms",
        "links": {"air": {"rate": "8mbit", "trace": {"t_ns": [0, 500_000_000u64],
            "rate_bps": [8_000_000, 2_000_000], "repeat": "1s"}}},
        "flows": [{"name": "c", "path": ["air"], "source": {"name": "cbr", "rate": "12mbit",
            "packet": "1000B"}}]
    }));
    // 500 packets in every odd half second and 125 in every even one, plus or minus the one in
    // transmission at the change.
    let sent = u64s(&out, "links/air/departed_packets");
    for (i, n) in sent.iter().enumerate().skip(1) {
        let due = [500, 125][i % 2];
        assert!(n.abs_diff(due) <= 3, "{n} packets in half second {i}");
    }
}

#[test]
fn flows_join_and_leave_at_once() {
    let out = run(&json!({
        "duration": "60s", "sample": "1s",
        "links": {"up": {"rate": "10mbit", "delay": "10ms", "qdisc": {"name": "droptail",
            "limit": "60p"}}},
        "flows": [{"name": "old", "path": ["up"], "rtt": "40ms"},
            {"name": "new", "count": 4, "path": ["up"], "return_path": [], "rtt": "40ms",
             "source": {"name": "bulk", "start": "1s", "stop": "100s"}},
            {"name": "call", "path": ["up"], "source": {"name": "cbr", "rate": "1mbit"}}],
        "changes": [{"at": "20s", "join": ["new"]}, {"at": "40s", "leave": ["new", "call"]}]
    }));
    let new = u64s(&out, "groups/new/delivered_bytes");
    assert_eq!(new[..21].iter().sum::<u64>(), 0, "it starts one second after joining");
    assert!(new[23..40].iter().all(|n| *n > 200_000), "{new:?}");
    assert_eq!(new[40..].iter().sum::<u64>(), 0, "{new:?}");
    let call = u64s(&out, "groups/call/delivered_bytes");
    assert!(call[39] > 90_000 && call[41] == 0, "{call:?}");
    let old = u64s(&out, "groups/old/delivered_bytes");
    let mean = old[45..].iter().sum::<u64>() / 15;
    assert!(mean > 1_150_000, "the whole link, without headers: {mean} bytes a second");
}

#[test]
fn no_transfer_starts_after_leaving() {
    let out = run(&json!({
        "duration": "30s",
        "links": {"up": {"rate": "10mbit", "delay": "10ms"}},
        "flows": [{"name": "web", "count": 3, "path": ["up"], "rtt": "40ms", "source":
            {"name": "transfers", "size": "20kB", "gap": "exponential(100ms)"}}],
        "changes": [{"at": "10s", "leave": ["web"]}]
    }));
    let (start, took) = (f64s(&out, "fct/start_s"), f64s(&out, "fct/duration_s"));
    assert!(start.len() > 50);
    assert!(start.iter().zip(took).all(|(s, t)| s + t < 10.0));
}

#[test]
fn a_class_is_on_every_packet() {
    let out = run(&json!({
        "duration": "5s", "packet_log": true,
        "links": {"up": {"rate": "10mbit"}, "back": {"rate": "10mbit"}},
        "flows": [{"name": "a", "path": ["up"], "return_path": ["back"], "rtt": "40ms",
            "class": 65_535}, {"name": "b", "path": ["up"], "source": "cbr"}]
    }));
    for (link, n) in [("up", 2), ("back", 1)] {
        let (Column::U32(class), Column::U32(flow)) = (
            column(&out, &format!("packet_log/{link}/class")),
            column(&out, &format!("packet_log/{link}/flow")),
        ) else {
            panic!("numbers")
        };
        assert!(class.iter().zip(flow).all(|(c, f)| *c == [65_535, 0][*f as usize]));
        assert_eq!(flow.iter().collect::<std::collections::BTreeSet<_>>().len(), n);
    }
}

#[test]
fn datagrams_are_marked_if_their_flow_is_ecn_capable() {
    let flow = |name, ecn: &str| {
        let mut flow = json!({"name": name, "path": ["up"],
            "source": {"name": "cbr", "rate": "3500kbit", "packet": "1000B"}});
        if !ecn.is_empty() {
            flow["ecn"] = json!(ecn);
        }
        flow
    };
    let fates = |qdisc: &str| {
        let out = run(&json!({
            "duration": "20s", "packet_log": true,
            "links": {"up": {"rate": "10mbit", "qdisc": {"name": qdisc, "ecn": true}}},
            "flows": [flow("not", ""), flow("classic", "ect0"), flow("l4s", "ect1")]
        }));
        let rows = |name: &str| match column(&out, &format!("packet_log/up/{name}")) {
            Column::U32(all) => all.clone(),
            Column::U8(all) => all.iter().map(|&x| x.into()).collect(),
            Column::Bool(all) => all.iter().map(|&x| x.into()).collect(),
            _ => panic!("no count"),
        };
        let (flow, fate, marked) = (rows("flow"), rows("fate"), rows("marked"));
        [0, 1, 2].map(|f| {
            let of = || flow.iter().zip(&fate).zip(&marked).filter(move |((x, _), _)| **x == f);
            (of().any(|((_, fate), _)| *fate == 3), of().any(|(_, marked)| *marked == 1))
        })
    };
    assert_eq!(fates("codel"), [(true, false), (false, true), (false, true)]);
}

#[test]
fn series_add_up_to_the_summary() {
    let out = run(&json!({
        "duration": "20s", "sample": "100ms",
        "links": {"up": {"rate": "4mbit", "delay": "5ms", "qdisc": {"name": "red",
            "limit": "40p", "ecn": false}}},
        "flows": [{"name": "ftp", "count": 12, "path": ["up"], "rtt": "uniform(20ms, 60ms)"},
            {"name": "call", "path": ["up"], "source": "cbr"}]
    }));
    let link = &out.summary["links"]["up"];
    for what in ["arrived", "departed", "dropped", "dropped_full", "dropped_early", "marked"] {
        let sum: u64 = u64s(&out, &format!("links/up/{what}_packets")).iter().sum();
        assert_eq!(link[format!("{what}_packets")], sum, "{what}");
    }
    assert!(num(link, "dropped_early_packets") > 100.0);
    let timeouts: f64 = (0..12).map(|i| num(flow(&out, &format!("ftp.{i}")), "timeouts")).sum();
    let counted: u64 = u64s(&out, "groups/ftp/timeouts").iter().sum();
    assert!(timeouts > 10.0 && counted as f64 == timeouts, "{counted} of {timeouts}");
    for k in [3, 150] {
        let each = (0..12).map(|i| u64s(&out, &format!("flows/ftp.{i}/delivered_bytes"))[k]);
        assert_eq!(each.sum::<u64>(), u64s(&out, "groups/ftp/delivered_bytes")[k]);
    }
}

#[test]
fn group_series_do_not_depend_on_flow_series() {
    let scenario = |each: bool| {
        run(&json!({
            "duration": "5s", "sample": "100ms", "sample_flows": each,
            "links": {"up": {"rate": "4mbit", "delay": "5ms"}},
            "flows": [{"name": "ftp", "count": 5, "path": ["up"], "rtt": "20ms"}]
        }))
    };
    let (with, without) = (scenario(true), scenario(false));
    assert!(without.columns.iter().all(|(name, _)| !name.starts_with("flows/")));
    let kept = |(name, _): &&(String, Column)| !name.starts_with("flows/");
    assert!(with.columns.iter().filter(kept).eq(without.columns.iter()));
}

#[test]
fn a_flow_that_waits_for_its_timer_is_stalled() {
    // The link stops at 1 s for 10 s with its buffer of two packets full; nothing is lost
    // afterwards. The flow is not stalled while packets are queued on the link.
    let out = run(&json!({
        "duration": "30s", "sample": "100ms",
        "links": {"up": {"rate": "10mbit", "delay": "10ms", "loss": 0.0}},
        "flows": [{"name": "f", "path": ["up"], "rtt": "40ms", "tcp": {"name": "newreno",
            "receive_window": "20kB"}}],
        "changes": [{"at": "1s", "links": {"up": {"rate": "0bit"}}},
            {"at": "11s", "links": {"up": {"rate": "10mbit"}}}]
    }));
    let stalled = u64s(&out, "groups/f/stalled_flows");
    assert!(stalled.iter().all(|n| *n == 0), "queued packets are in flight: {stalled:?}");
    // A link with a loss rate of 1: from the first loss on the flow waits for its timer, except
    // while something is in transmission.
    let mut dead = lossy(1.0, "newreno");
    dead["duration"] = json!("30s");
    dead["warmup"] = json!("0s");
    dead["sample"] = json!("70ms");
    let out = run(&dead);
    let stalled = u64s(&out, "groups/f/stalled_flows");
    assert_eq!(stalled.iter().sum::<u64>() as usize, stalled.len(), "{stalled:?}");
}

#[test]
fn a_flow_is_stalled_before_every_timeout() {
    // Twenty senders at once into a buffer of 20 packets, repeatedly: rounds that lose their tails.
    // Queueing delays are far below the minimum timeout, so no timer expires while a packet is in
    // flight.
    let flows: Vec<Value> = (0..20)
        .map(|i| {
            json!({"name": format!("s{i}"), "path": ["port"], "rtt": "10ms", "source": {"name":
                "transfers", "size": "50kB", "gap": "exponential(100ms)"}, "tcp": {"name":
                "newreno", "rto_min": "200ms", "delayed_ack": false}})
        })
        .collect();
    let out = run(&json!({
        "duration": "20s", "sample": "2ms",
        "links": {"port": {"rate": "50mbit", "qdisc": {"name": "droptail", "limit": "20p"}}},
        "flows": flows
    }));
    let (mut expiries, mut stalls, mut all) = (0, 0, 0);
    for i in 0..20 {
        let expired = u64s(&out, &format!("groups/s{i}/timeouts"));
        let stalled = u64s(&out, &format!("groups/s{i}/stalled_flows"));
        for k in (1..expired.len()).filter(|k| expired[*k] > 0) {
            assert_eq!(stalled[k - 1], 1, "s{i} at {} ms", 2 * k);
            expiries += 1;
        }
        stalls += stalled.windows(2).filter(|w| w == &[0, 1]).count();
        all += stalled.iter().sum::<u64>();
    }
    assert!(expiries > 300, "{expiries} expiries");
    // A stall may end in a second timeout, but never without one.
    assert!(stalls <= expiries && stalls > expiries / 2, "{stalls} stalls, {expiries} expiries");
    assert!(all < 20 * 10_000 / 2, "most flows are not stalled most of the time: {all}");
}

#[test]
fn received_bytes_match_the_departures_of_the_link() {
    // Retransmissions fill gaps, so in-order delivery has bursts above the link rate; bytes on the
    // wire have not. Covers receivers processed early and late, new connections, datagrams, a
    // session group, and a group that leaves.
    let out = run(&json!({
        "duration": "8s", "sample": "10ms",
        "links": {"l": {"rate": "10mbit", "delay": "10ms", "qdisc": {"name": "droptail",
                        "limit": "60kB"}},
                  "back": {"rate": "100mbit", "delay": "1ms"}},
        "flows": [{"name": "early", "count": 2, "path": ["l"], "rtt": "30ms", "tcp": "newreno"},
                  {"name": "late", "path": ["l"], "return_path": ["back"], "rtt": "40ms",
                   "source": {"name": "transfers", "size": "80kB", "gap": "1ms"}},
                  {"name": "crowd", "count": 2, "path": ["l"], "rtt": "30ms",
                   "source": {"name": "poisson", "interval": "100ms", "size": "10kB"}},
                  {"name": "udp", "path": ["l"],
                   "source": {"name": "cbr", "rate": "1mbit", "packet": "1kB"}}],
        "changes": [{"at": "5s", "leave": ["early"]}]
    }));
    let names = ["early", "late", "crowd", "udp"];
    let groups = names.map(|name| u64s(&out, &format!("groups/{name}/received_bytes")));
    let sums = |columns: &[&[u64]]| -> Vec<u64> {
        (0..columns[0].len()).map(|k| columns.iter().map(|c| c[k]).sum()).collect()
    };
    let received = sums(&groups);
    let sent = u64s(&out, "links/l/departed_bytes");
    let so_far = |x: &[u64], k: usize| x[..k].iter().sum::<u64>();
    for k in 2..=sent.len() {
        // A packet takes the propagation delay of 10 ms and a shorter transmission time.
        let bounds = so_far(sent, k - 2)..=so_far(sent, k - 1);
        assert!(bounds.contains(&so_far(&received, k)), "{k}");
    }
    assert!(received.iter().all(|b| *b <= 12_500 + 1500), "at most the link rate");
    let payload = u64s(&out, "groups/early/delivered_bytes");
    assert!(payload.iter().any(|b| *b > 3 * 12_500), "in-order delivery has bursts");
    let early = [0, 1].map(|i| u64s(&out, &format!("flows/early.{i}/received_bytes")));
    assert_eq!(sums(&early), groups[0]);
}
