//! Video and calls in whole runs: rates, stalls and delays that follow from the line.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]

mod common;
use common::{flow, num, run};
use serde_json::{Value, json};
use sojourn_sim::{Column, Outcome, Scenario};

/// A line of this rate, 10 ms each way, with a buffer of 100 ms at 10 Mbit/s.
fn line(rate: &str, source: &Value, changes: &Value) -> Outcome {
    run(&json!({
        "duration": "120s", "warmup": "40s",
        "links": {"l": {"rate": rate, "delay": "10ms", "qdisc": {"name": "droptail",
            "limit": "125kB"}}},
        "flows": [{"name": "f", "path": ["l"], "rtt": "20ms", "source": source}],
        "changes": changes
    }))
}

/// Rates of 1, 2, 4 and 8 Mbit/s; buffer of 40 s, of which 10 s are the reservoir.
fn video() -> Value {
    json!({"name": "video", "lowest": "1mbit", "highest": "8mbit", "levels": 4, "buffer": "40s",
        "reservoir": "10s", "cushion": "20s"})
}

fn column(out: &Outcome, name: &str) -> Vec<f64> {
    match out.columns.iter().find(|(n, _)| n == name) {
        Some((_, Column::F64(values))) => values.clone(),
        Some((_, Column::U64(values))) => values.iter().map(|n| *n as f64).collect(),
        _ => panic!("no {name}"),
    }
}

#[test]
fn a_fast_line_carries_the_highest_rate() {
    let out = line("20mbit", &video(), &json!([]));
    let film = flow(&out, "f");
    assert_eq!(num(film, "video_rate_bps"), 8e6);
    assert_eq!((num(film, "video_stalls"), num(film, "video_stalled_s")), (0.0, 0.0));
    assert_eq!(num(film, "video_switches"), 0.0, "the rate is reached in the warm-up");
    // One segment of 4 s at a time fits: 80 s of measured time.
    assert!((19.0..=21.0).contains(&num(film, "video_segments")));
    assert!((num(film, "goodput_bps") / 8e6 - 1.0).abs() < 0.06);
    // The first segment, 500 kB, takes the handshake, slow start and 0.2 s at the line's rate.
    assert!((0.2..0.5).contains(&num(film, "video_startup_s")));
}

/// A line of 3.4 Mbit/s carries 3.3 of payload, between the rates 2 and 4: the player alternates
/// between them, and its buffer stays where the map has both, without a stall.
#[test]
fn the_rate_follows_the_line() {
    let out = line("3400kbit", &video(), &json!([]));
    let film = flow(&out, "f");
    let rate = num(film, "video_rate_bps");
    assert!((2.9e6..3.5e6).contains(&rate), "{rate}");
    assert_eq!(num(film, "video_stalls"), 0.0);
    let sizes = column(&out, "fct/bytes");
    let late = &sizes[sizes.len() / 2..];
    assert!(late.iter().all(|b| [1e6, 2e6].contains(b)), "{late:?}");
    assert!(num(film, "video_switches") >= 2.0);
}

/// At 60 s the line falls to 0.5 Mbit/s, below the lowest rate, 1 Mbit/s. From then on a segment of
/// the lowest rate takes 500 kB * (1500/1460) * 8 / 0.5 Mbit/s = 8.2 s and lasts 4 s: each is
/// followed by a stall of 4.2 s, once the buffer is empty.
#[test]
fn a_drop_of_the_rate_leads_to_stalls_of_the_computed_length() {
    let source = json!({"name": "video", "lowest": "1mbit", "levels": 1, "buffer": "12s",
        "reservoir": "4s", "cushion": "4s"});
    let drop = json!([{"at": "60s", "links": {"l": {"rate": "500kbit"}}}]);
    let out = line("10mbit", &source, &drop);
    let film = flow(&out, "f");
    let (starts, took) = (column(&out, "fct/start_s"), column(&out, "fct/duration_s"));
    let slow: Vec<f64> =
        starts.iter().zip(&took).filter(|(s, _)| **s > 64.0).map(|(_, t)| *t).collect();
    let expected = 500_000.0 * 1500.0 / 1460.0 * 8.0 / 500e3;
    assert!(slow.iter().all(|t| (t / expected - 1.0).abs() < 0.03), "{slow:?}, {expected}");
    // Playback by hand: the segments arrive when the transfers complete.
    let (mut buffer, mut now, mut stalled, mut stalls) = (0.0f64, 0.0, 0.0, 0);
    for (s, t) in starts.iter().zip(&took) {
        let at = s + t;
        if now > 0.0 && at - now > buffer {
            stalled += at - now - buffer;
            stalls += 1;
            buffer = 0.0;
        } else {
            buffer -= at - now;
        }
        (buffer, now) = (buffer.max(0.0) + 4.0, at);
    }
    let rest = (120.0 - now - buffer).max(0.0);
    assert!(stalls >= 5, "{stalls}");
    assert!((num(film, "video_stalled_s") - stalled - rest).abs() < 1e-6);
    assert_eq!(num(film, "video_stalls") as i32, stalls + i32::from(rest > 0.0));
    let each = stalled / f64::from(stalls);
    assert!((each - (expected - 4.0)).abs() < 1.0, "{each} s each");
}

#[test]
fn a_video_that_stops_or_leaves_does_not_stall() {
    let mut source = video();
    source["stop"] = json!("50s");
    let film = line("20mbit", &source, &json!([]));
    assert_eq!(num(flow(&film, "f"), "video_stalls"), 0.0);
    let leave = json!([{"at": "50s", "leave": ["f"]}, {"at": "45s", "links": {"l":
        {"rate": "100kbit"}}}]);
    let out = line("20mbit", &video(), &leave);
    assert_eq!(num(flow(&out, "f"), "video_stalls"), 0.0, "32 s are in the buffer at 45 s");
}

/// Between two wide links, so that the line itself is the only queue.
fn call(rate: &str, qdisc: &Value, call: &Value, changes: &Value) -> Outcome {
    run(&json!({
        "duration": "180s", "warmup": "60s", "sample": "100ms",
        "links": {"l": {"rate": rate, "delay": "20ms", "qdisc": qdisc},
            "back": {"rate": "10mbit", "delay": "20ms"}},
        "flows": [{"name": "f", "path": ["l"], "return_path": ["back"], "source": call}],
        "changes": changes
    }))
}

fn droptail() -> Value {
    json!({"name": "droptail", "limit": "1MB"})
}

/// A line of 10 Mbit/s carries the highest rate: each frame of 2.5 Mbit/s / 30 has nine packets,
/// which leave within 1 / 2.5 of a frame interval, 13.3 ms, less the last gap; the last one takes
/// 0.93 ms to send and 20 ms to arrive.
#[test]
fn a_call_on_an_idle_line_has_the_highest_rate_and_the_delay_of_its_pacer() {
    let out = call("10mbit", &droptail(), &json!({"name": "call"}), &json!([]));
    let f = flow(&out, "f");
    let payload = (1157.0 - 28.0) / 1157.0;
    assert!((num(f, "goodput_bps") / (2.5e6 * payload) - 1.0).abs() < 0.002);
    assert_eq!(num(f, "lost_frames"), 0.0);
    assert!((3599.0..=3601.0).contains(&num(f, "frames")));
    let expected = 0.020 + 8.0 / 9.0 / 75.0 + 1157.0 * 8.0 / 10e6;
    for quantile in ["frame_delay_p50_s", "frame_delay_p99_s"] {
        assert!((num(f, quantile) / expected - 1.0).abs() < 0.02, "{quantile}, {expected}");
    }
    // The reports are packets on the return path: one per second.
    let back = &out.summary["links"]["back"];
    assert!((119.0..=122.0).contains(&num(back, "arrived_packets")));
    assert_eq!(num(back, "arrived_bytes"), 84.0 * num(back, "arrived_packets"));
}

/// A line of 1 Mbit/s with a buffer of a second: the call stays below the line's rate, and its
/// queue is empty most of the time.
#[test]
fn a_call_settles_below_the_rate_of_the_line_without_a_standing_queue() {
    let limit = json!({"name": "droptail", "limit": "125kB"});
    let out = call("1mbit", &limit, &json!({"name": "call"}), &json!([]));
    let (f, link) = (flow(&out, "f"), &out.summary["links"]["l"]);
    let rate = num(f, "goodput_bps");
    assert!((0.7e6..1e6).contains(&rate), "{rate}");
    assert!((0.75..1.0).contains(&num(link, "utilisation")));
    assert!(num(link, "sojourn_p50_s") < 0.020, "{link}");
    assert!(num(link, "sojourn_p99_s") < 0.150, "{link}");
    assert_eq!(num(f, "lost_frames"), 0.0);
}

/// The line falls from 2 to 0.6 Mbit/s: the call follows within seconds.
#[test]
fn a_call_follows_a_drop_of_the_rate() {
    let limit = json!({"name": "droptail", "limit": "125kB"});
    let drop = json!([{"at": "90s", "links": {"l": {"rate": "600kbit"}}}]);
    let source = json!({"name": "call", "initial": "1mbit"});
    let out = call("2mbit", &limit, &source, &drop);
    let received = column(&out, "groups/f/received_bytes");
    let mean = |from: usize, to: usize| {
        received[from * 10..to * 10].iter().sum::<f64>() * 8.0 / (to - from) as f64
    };
    assert!((1.4e6..2.05e6).contains(&mean(70, 90)), "{}", mean(70, 90));
    assert!((0.4e6..0.6e6).contains(&mean(110, 179)), "{}", mean(110, 179));
    let link = &out.summary["links"]["l"];
    assert!(num(link, "sojourn_p50_s") < 0.05, "{link}");
}

/// A third of the packets is lost at random: the loss-based control goes down to the lowest rate,
/// where a frame is one packet.
#[test]
fn heavy_loss_lowers_the_rate_of_a_call() {
    let out = run(&json!({
        "duration": "180s", "warmup": "60s",
        "links": {"l": {"rate": "10mbit", "delay": "20ms", "loss": 0.33}},
        "flows": [{"name": "f", "path": ["l"], "rtt": "40ms", "source": "call"}]
    }));
    let f = flow(&out, "f");
    assert!(num(f, "goodput_bps") < 50e3);
    let share = num(f, "lost_frames") / num(f, "frames");
    assert!((share - 0.33).abs() < 0.03, "{share}");
    assert!((num(f, "loss_rate") - 0.33).abs() < 0.03);
}

/// Between 70 and 90 s the line carries nothing: no report arrives, and the rate is halved every
/// two seconds until the line is back.
#[test]
fn a_call_without_feedback_backs_off() {
    let cut = json!([{"at": "70s", "links": {"l": {"rate": "0bit"}}},
        {"at": "90s", "links": {"l": {"rate": "2mbit"}}}]);
    let limit = json!({"name": "droptail", "limit": "10MB"});
    let source = json!({"name": "call", "initial": "1mbit"});
    let out = call("2mbit", &limit, &source, &cut);
    let bytes = column(&out, "links/l/queue_bytes");
    // At 1.8 Mbit/s and more, 20 s are 4.5 MB; halved every 2 s, they are less than 1 MB.
    assert!(bytes.iter().copied().fold(0.0, f64::max) < 1e6);
    let received = column(&out, "groups/f/received_bytes");
    let last = received[1690..1790].iter().sum::<f64>() * 8.0 / 10.0;
    assert!(last > 0.3e6, "the call comes back: {last}");
}

#[test]
fn bad_settings_name_their_key() {
    let refused = |flow: Value| {
        let mut flow = flow;
        (flow["name"], flow["path"]) = (json!("f"), json!(["l"]));
        let text = json!({"duration": "1s", "links": {"l": {"rate": "1mbit"}}, "flows": [flow]});
        Scenario::from_json(&text.to_string()).unwrap_err().to_string()
    };
    for (flow, start) in [
        (
            json!({"source": "call", "tcp": "cubic"}),
            "flows.f.tcp: does not go with the source call",
        ),
        (
            json!({"source": {"name": "call", "initial": "5mbit"}}),
            "flows.f.source.initial: must be from lowest, 50kbit, to highest, 2500kbit",
        ),
        (
            json!({"source": {"name": "call", "highest": "40kbit"}}),
            "flows.f.source.highest: is below lowest, 50kbit",
        ),
        (json!({"source": {"name": "call", "fps": 0}}), "flows.f.source.frames: "),
        (
            json!({"source": {"name": "video", "buffer": "100s"}}),
            "flows.f.source.buffer: must be at least the sum of reservoir and cushion, 216s",
        ),
        (json!({"source": {"name": "video", "levels": 0}}), "flows.f.source.levels: "),
        (json!({"source": {"name": "video", "rate": "1mbit"}}), "flows.f.source.rate: "),
    ] {
        let text = refused(flow);
        assert!(text.starts_with(start), "{text}");
    }
}
