//! Claims about `cake` in whole runs: hosts share fairly, and an ACK filter lets a slow uplink
//! acknowledge a fast downlink.

mod common;
use common::{flow, num, run};
use serde_json::json;

#[test]
fn an_ack_filter_lets_a_slow_uplink_acknowledge_a_fast_downlink() {
    // 100 Mbit/s down, 1 Mbit/s up: 8,333 ACKs/s of 40 bytes need 2.7 Mbit/s.
    let goodput = |ack_filter: &str| {
        let cake = json!({"name": "cake", "bandwidth": "1mbit", "ack_filter": ack_filter});
        let out = run(&json!({
            "duration": "30s", "warmup": "10s",
            "links": {"down": {"rate": "100mbit", "delay": "10ms", "qdisc": "fq_codel"},
                      "up": {"rate": "10mbit", "delay": "10ms", "qdisc": cake}},
            "flows": [{"name": "ftp", "path": ["down"], "return_path": ["up"],
                       "tcp": {"name": "cubic", "profile": "rfc", "packet": "1500B",
                               "delayed_ack": false}}]
        }));
        num(flow(&out, "ftp"), "goodput_bps") / 1e6
    };
    let [off, on, aggressive] = ["off", "on", "aggressive"].map(goodput);
    assert!(off < 60.0, "{off} Mbit/s without");
    assert!(on > 90.0 && aggressive > 90.0, "{on}, {aggressive} Mbit/s");
}

#[test]
fn a_host_with_eight_downloads_gets_as_much_as_one_with_one() {
    let shares = |isolation: &str| {
        let cake = json!({"name": "cake", "bandwidth": "20mbit", "isolation": isolation});
        let group = |name: &str, count: u64| {
            json!({"name": name, "count": count, "path": ["down"], "rtt": "40ms",
                   "receiver": name, "tcp": {"name": "cubic", "profile": "rfc"}})
        };
        let out = run(&json!({
            "duration": "40s", "warmup": "10s",
            "links": {"down": {"rate": "25mbit", "delay": "10ms", "qdisc": cake}},
            "flows": [group("busy", 8), group("calm", 1)]
        }));
        let calm = num(flow(&out, "calm"), "goodput_bps");
        let busy = (0..8).map(|i| num(flow(&out, &format!("busy.{i}")), "goodput_bps"));
        calm / (calm + busy.sum::<f64>())
    };
    let [triple, flows] = ["triple_isolate", "flows"].map(shares);
    assert!((triple - 0.5).abs() < 0.05, "{triple} of the rate");
    assert!((flows - 1.0 / 9.0).abs() < 0.03, "{flows} of the rate");
}
