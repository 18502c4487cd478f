//! Whole runs with hand-computed numbers: links in series and in a star, acks as real packets,
//! flows that come and go.

mod common;
use common::{flow, num, run};
use serde_json::json;
use sojourn_sim::Column;

#[test]
fn datagrams_take_their_transmission_and_propagation() {
    // 1000 B at 8 mbit take 1 ms on each of two links of 5 and 7 ms: 14 ms without queueing.
    let out = run(&json!({
        "duration": "20s", "warmup": "10s",
        "links": {"a": {"rate": "8mbit", "delay": "5ms"}, "b": {"rate": "8mbit", "delay": "7ms"}},
        "flows": [{"name": "call", "path": ["a", "b"],
                   "source": {"name": "cbr", "rate": "800kbit", "packet": "1000B"}}]
    }));
    let call = flow(&out, "call");
    assert_eq!(num(call, "delay_max_s"), 0.014);
    assert_eq!(num(call, "delay_p50_s"), 0.014);
    assert_eq!(num(call, "jitter_s"), 0.0);
    assert_eq!(num(call, "sent_packets"), 1000.0);
    let received = num(call, "received_packets");
    assert!((998.0..=1000.0).contains(&received), "two may be in flight at the end: {received}");
    assert_eq!(num(call, "goodput_bps"), 972.0 * 8.0 * 100.0, "28 of 1000 bytes are headers");
    let link = &out.summary["links"]["b"];
    assert_eq!((num(link, "utilisation"), num(link, "loss_rate")), (0.1, 0.0));
    assert_eq!(link["mark_rate"], 0.0);
}

#[test]
fn overload_drops_the_excess() {
    let out = run(&json!({
        "duration": "110s", "warmup": "10s",
        "links": {"l": {"rate": "1mbit", "qdisc": {"name": "droptail", "limit": "10p"}}},
        "flows": [{"name": "flood", "count": 2, "path": ["l"],
                   "source": {"name": "cbr", "rate": "1mbit", "packet": "1000B"}}]
    }));
    let link = &out.summary["links"]["l"];
    assert!((num(link, "loss_rate") - 0.5).abs() < 0.001);
    assert_eq!(num(link, "utilisation"), 1.0);
    // Ten in the queue, or nine just after a departure: each 8 ms.
    assert!((0.07..=0.08).contains(&num(link, "sojourn_mean_s")));
    let [a, b] = ["flood.0", "flood.1"].map(|n| flow(&out, n));
    let lost = num(a, "lost_packets") + num(b, "lost_packets");
    assert!((num(link, "dropped_packets") - lost).abs() <= 2.0);
    assert_eq!(num(a, "sent_packets"), 12_500.0);
    let accounted = num(a, "received_packets") + num(a, "lost_packets");
    assert!((12_489.0..=12_500.0).contains(&accounted), "except queued packets: {accounted}");
}

#[test]
fn acks_of_an_earlier_connection_do_not_count() {
    // At 1 mbit a SYN and an ACK of 40 B take 0.32 ms each, and 1500 B take 12 ms. A timeout of 5
    // ms sends the data at 0.64, 5.64 and 10.64 ms; it is acknowledged at 12.96 ms. The second copy
    // arrives at 24.64 ms, when the second transfer starts: its ACK must not count for the new
    // connection.
    let out = run(&json!({
        "duration": "1s",
        "links": {"up": {"rate": "1mbit"}, "down": {"rate": "1mbit"}},
        "flows": [{"name": "f", "path": ["up"], "return_path": ["down"],
                   "tcp": {"name": "reno", "profile": "rfc", "delayed_ack": false, "rto_min": "5ms",
                           "rto_initial": "5ms", "rto_max": "5ms"},
                   "source": {"name": "transfers", "size": "1460B", "gap": "11680us",
                              "number": 2}}]
    }));
    let Some((_, Column::F64(startup))) = out.columns.iter().find(|c| c.0 == "fct/startup_s")
    else {
        panic!("start-up times are floats");
    };
    // The second SYN is queued behind the third copy of the first transfer's data until 36.64 ms.
    assert_eq!(startup, &[0.00064, 0.01264]);
}

#[test]
fn acks_are_real_packets_where_the_return_path_is_a_link() {
    let scenario = |rate: &str| {
        run(&json!({
            "duration": "30s", "warmup": "10s",
            "links": {"up": {"rate": "10mbit", "delay": "10ms", "qdisc": {"name": "droptail",
                "limit": "60kB"}},
                      "down": {"rate": rate, "delay": "10ms"}},
            "flows": [{"name": "f", "path": ["up"], "return_path": ["down"],
                       "tcp": {"name": "newreno", "profile": "ns2", "packet": "1000B"}}]
        }))
    };
    let wide = scenario("10mbit");
    let (up, down) = (&wide.summary["links"]["up"], &wide.summary["links"]["down"]);
    assert!(num(up, "utilisation") > 0.99, "{}", num(up, "utilisation"));
    let ratio = num(down, "arrived_packets") / num(up, "departed_packets");
    assert!((0.999..1.001).contains(&ratio), "an ack per packet: {ratio}");
    assert_eq!(num(down, "arrived_bytes"), 40.0 * num(down, "arrived_packets"));
    assert_eq!(num(flow(&wide, "f"), "rtt_s"), 0.02);
    // Acks of 40 B for 1000 B: a return link 50 times slower is the bottleneck.
    let narrow = scenario("200kbit");
    let share = num(&narrow.summary["links"]["up"], "utilisation");
    assert!((0.48..0.53).contains(&share), "the ack clock sets the pace: {share}");
}

#[test]
fn two_way_traffic_compresses_acks() {
    // The acks of each direction queue behind the data of the other: the link is not fully used
    // (Zhang et al. 1991).
    let out = run(&json!({
        "duration": "100s", "warmup": "20s",
        "links": {"east": {"rate": "2mbit", "delay": "20ms", "qdisc": {"name": "droptail",
            "limit": "20p"}},
                  "west": {"rate": "2mbit", "delay": "20ms", "qdisc": {"name": "droptail",
                      "limit": "20p"}}},
        "flows": [
            {"name": "e", "path": ["east"], "return_path": ["west"], "tcp": "sack"},
            {"name": "w", "path": ["west"], "return_path": ["east"], "tcp": "sack"}]
    }));
    for link in ["east", "west"] {
        let link = &out.summary["links"][link];
        assert!(num(link, "utilisation") > 0.6);
    }
    let both = num(flow(&out, "e"), "goodput_bps") + num(flow(&out, "w"), "goodput_bps");
    assert!((2.0e6..3.9e6).contains(&both), "{both}");
}

#[test]
fn a_parking_lot_favours_short_paths() {
    let link = json!({"rate": "10mbit", "delay": "5ms", "qdisc": {"name": "red", "limit": "100p"}});
    let cross =
        |name: &str, link: &str| json!({"name": name, "count": 4, "path": [link], "rtt": "40ms"});
    let out = run(&json!({
        "duration": "60s", "warmup": "10s",
        "links": {"l1": link, "l2": link, "l3": link},
        "flows": [{"name": "long", "count": 4, "path": ["l1", "l2", "l3"], "rtt": "40ms"},
                  cross("x1", "l1"), cross("x2", "l2"), cross("x3", "l3")]
    }));
    let goodput = |name: &str| {
        (0..4).map(|i| num(flow(&out, &format!("{name}.{i}")), "goodput_bps")).sum::<f64>()
    };
    let long = goodput("long");
    assert!(long > 0.5e6, "the long flow makes progress: {long}");
    for name in ["x1", "x2", "x3"] {
        let short = goodput(name);
        assert!(short > 1.5 * long, "three queues cost more than one: {short} {long}");
        assert!((7.5e6..9.74e6).contains(&(short + long)), "{name}: {}", short + long);
    }
}

#[test]
fn a_star_shares_its_centre() {
    // Eight senders, each with its own access link, share one port.
    let mut links = serde_json::Map::new();
    links.insert(
        "port".into(),
        json!({"rate": "100mbit", "delay": "50us", "qdisc": {"name": "droptail", "limit": "200p"}}),
    );
    let flows: Vec<_> = (0..8)
        .map(|i| {
            links.insert(format!("nic{i}"), json!({"rate": "100mbit", "delay": "50us"}));
            json!({"name": format!("s{i}"), "path": [format!("nic{i}"), "port"], "rtt": "300us",
                   "source": {"name": "transfers", "size": "100kB", "number": 1},
                   "tcp": {"name": "sack", "rto_min": "10ms", "rto_initial": "10ms",
                       "tick": "100us"}})
        })
        .collect();
    let out = run(&json!({"duration": "5s", "links": links, "flows": flows}));
    for i in 0..8 {
        let f = flow(&out, &format!("s{i}"));
        assert_eq!(num(f, "completed"), 1.0);
        // All eight take at least 8 * 100 kB / 100 mbit in total; a single one would take 8.6 ms.
        assert!((0.0086..1.0).contains(&num(f, "fct_mean_s")), "{f}");
    }
    let port = &out.summary["links"]["port"];
    assert!(num(port, "departed_bytes") >= 800_000.0 * 1500.0 / 1460.0);
}

#[test]
fn transfers_repeat_on_new_connections() {
    let out = run(&json!({
        "duration": "60s",
        "links": {"l": {"rate": "10mbit", "delay": "10ms"}},
        "flows": [{"name": "web", "path": ["l"], "rtt": "50ms",
                   "source": {"name": "transfers", "size": "10kB", "gap": "450ms"},
                   "tcp": {"name": "newreno", "profile": "ns2", "packet": "1040B"}}]
    }));
    let web = flow(&out, "web");
    // With 0.832 ms a packet and 0.032 ms a SYN: the SYN's ack arrives at 50.03 ms, the acks of the
    // first two packets at 100.86 and 101.70, the acks of the next four at 151.70, 152.53, ...; the
    // last four are sent back to back from 151.70 and the last of them is received at 165.02 ms.
    // Its ack arrives at 205.02, so the next transfer starts 655.02 ms after this one.
    let fct = num(web, "fct_mean_s");
    assert!((0.16502..0.16503).contains(&fct), "{fct}");
    assert_eq!(num(web, "completed"), 92.0);
    assert_eq!(num(web, "retransmitted_packets"), 0.0);
    assert_eq!(num(web, "sent_packets"), 92.0 * 11.0, "the last one was complete by the end");
}

#[test]
fn a_bulk_flow_starts_and_stops_on_time() {
    let out = run(&json!({
        "duration": "30s", "sample": "1s",
        "links": {"l": {"rate": "10mbit", "delay": "10ms", "qdisc": "codel"}},
        "flows": [{"name": "f", "path": ["l"], "source": {"name": "bulk", "start": "10s",
            "stop": "20s"}}]
    }));
    let column = out.columns.iter().find(|(name, _)| name == "flows/f/delivered_bytes").unwrap();
    let sojourn_sim::Column::U64(per_second) = &column.1 else { panic!("bytes are counts") };
    assert_eq!(per_second.len(), 30);
    assert!(per_second[..10].iter().all(|b| *b == 0));
    assert!(per_second[11..19].iter().all(|b| *b > 900_000));
    assert!(per_second[22..].iter().all(|b| *b == 0));
}

#[test]
fn marks_replace_drops() {
    let scenario = |ecn: bool| {
        run(&json!({
            "duration": "60s", "warmup": "10s",
            "links": {"l": {"rate": "10mbit", "delay": "10ms", "qdisc": {"name": "codel",
                "ecn": true}}},
            "flows": [{"name": "f", "count": 4, "path": ["l"], "rtt": "40ms",
                "tcp": {"name": "sack", "ecn": ecn}}]
        }))
    };
    let (marking, dropping) = (scenario(true), scenario(false));
    let link = |o: &sojourn_sim::Outcome, key: &str| num(&o.summary["links"]["l"], key);
    assert_eq!(link(&marking, "dropped_packets"), 0.0);
    assert!(link(&marking, "marked_packets") > 50.0);
    assert_eq!(num(flow(&marking, "f.2"), "retransmitted_packets"), 0.0);
    assert_eq!(link(&dropping, "marked_packets"), 0.0);
    assert!(link(&dropping, "dropped_packets") > 50.0);
    assert!(link(&marking, "sojourn_p50_s") < 0.02 && link(&marking, "utilisation") > 0.95);
}

/// Two senders of equal rate whose packets reach a full queue at the same times, with room for one
/// each time. The sender that was idle before goes first, whatever its name.
#[test]
fn ties_between_links_go_to_the_least_recently_served() {
    for late in ["a", "b"] {
        let nic = json!({"rate": "8mbit", "delay": "1ms"});
        let source = |name: &str| {
            let first = if name == late { 50 } else { 0 };
            let times: Vec<f64> = (first..150).map(|ms| f64::from(ms) / 1e3).collect();
            let sizes = vec![1000; times.len()];
            json!({"name": name, "path": [name, "port"],
                   "source": {"name": "trace", "time_s": times, "size_bytes": sizes}})
        };
        let out = run(&json!({
            "duration": "120ms", "warmup": "100ms",
            "links": {"a": nic, "b": nic,
                      "port": {"rate": "8mbit", "qdisc": {"name": "droptail", "limit": "10p"}}},
            "flows": [source("a"), source("b")]
        }));
        // Of 20 sent in the last 20 ms: 12 are in the queue or in transmission, one on a link
        // before.
        let received = ["a", "b"].map(|name| num(flow(&out, name), "received_packets"));
        let expected = if late == "a" { [7.0, 0.0] } else { [0.0, 7.0] };
        assert_eq!(received, expected, "{late} began later");
    }
}
