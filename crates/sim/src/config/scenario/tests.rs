use super::*;
use sojourn_aqm::Ecn;

const GOOD: &str = r#"{"duration": "10s", "links": {"up": {"rate": "10mbit", "delay": "5ms",
    "qdisc": "fifo"}},
    "flows": [{"name": "ftp", "count": 2, "path": ["up"], "rtt": "uniform(10ms, 20ms)"}]}"#;

fn refusal(from: &str, to: &str) -> String {
    let text = GOOD.replace(from, to);
    assert_ne!(text, GOOD, "{from:?} is in the scenario");
    Scenario::from_json(&text).unwrap_err().to_string()
}

#[test]
fn canonical_form_is_complete_and_round_trips() {
    let once = Scenario::from_json(GOOD).unwrap().canonical();
    assert_eq!(once["links"]["up"]["qdisc"]["name"], "droptail");
    assert_eq!(once["links"]["up"]["qdisc"]["limit"], "1000p");
    assert_eq!(once["flows"][0]["tcp"]["name"], "cubic");
    assert_eq!(once["flows"][0]["tcp"]["profile"], "linux");
    let twice = Scenario::from_json(&once.to_string()).unwrap().canonical();
    assert_eq!(once, twice);
}

#[test]
fn canonical_form_is_written_as_it_is() {
    let scenario = GOOD.replace("\"links\": {", "\"links\": {\"back\": {\"rate\": \"1mbit\"},");
    let scenario = Scenario::from_json(&scenario).unwrap();
    let mut text = String::new();
    scenario.write_canonical(&mut text).unwrap();
    assert_eq!((scenario.links.len(), text), (2, scenario.canonical().to_string()));
}

#[test]
fn a_flow_has_a_code_point_and_hosts() {
    let flow = |keys: &str| {
        let json = GOOD.replace("\"count\": 2", &format!("\"count\": 2, {keys}"));
        let parsed = Scenario::from_json(&json);
        parsed.map(|s| {
            let again = Scenario::from_json(&s.canonical().to_string()).unwrap();
            assert_eq!(s.canonical(), again.canonical());
            again.flows[0].clone()
        })
    };
    assert_eq!(flow(r#""dscp": "EF""#).unwrap().class, 46);
    assert_eq!(flow(r#""dscp": 8"#).unwrap().class, 8);
    let error = |keys| flow(keys).unwrap_err().to_string();
    assert!(error(r#""dscp": 64"#).starts_with("flows.ftp.dscp: 64 is out of range"));
    assert!(error(r#""dscp": 8, "class": 8"#).starts_with("flows.ftp.dscp: sets the class"));
    assert!(error(r#""sender": 8"#).starts_with("flows.ftp.sender: "));
    let ecn = |keys: &str| flow(&format!(r#""source": "cbr", {keys}"#)).map(|f| f.ecn());
    assert_eq!(ecn(r#""class": 0"#).unwrap(), Ecn::NotEct);
    assert_eq!(ecn(r#""ecn": "ect0""#).unwrap(), Ecn::Ect0);
    let wrong = ecn(r#""ecn": "ect""#).unwrap_err().to_string();
    assert!(wrong.starts_with("flows.ftp.ecn: unknown choice \"ect\""), "{wrong}");
    assert_eq!(ecn(r#""ecn": "ect1""#).unwrap(), Ecn::Ect1);
    assert!(error(r#""ecn": "ect1""#).ends_with("set ecn or ect1 of tcp instead"));
    let keys = |flow: &FlowConfig| [flow.host_keys(0), flow.host_keys(1)];
    let [[a, b], [c, d]] = keys(&flow(r#""count": 2"#).unwrap());
    assert!(a != b && a != c && b != d, "each flow has hosts of its own");
    let home = flow(r#""sender": "server", "receiver": "pc-{i}""#).unwrap();
    let [[a, b], [c, d]] = keys(&home);
    assert!(a == c && b != d && a != b);
}

#[test]
fn text_form_and_table_are_the_same_scenario() {
    let canonical =
        |qdisc: &str| Scenario::from_json(&GOOD.replace("\"fifo\"", qdisc)).unwrap().canonical();
    for (text, table) in [
        (
            r#""codel(target=15ms, ecn=true)""#,
            r#"{"name": "codel", "target": "15ms", "ecn": true}"#,
        ),
        (r#""red(max_p=5%, min_th='9p')""#, r#"{"name": "red", "max_p": 0.05, "min_th": "9p"}"#),
        (r#""wfq(weights=[3, 50.5])""#, r#"{"name": "wfq", "weights": [3, 50.5]}"#),
        (r#""ewfq(responsive=50% 1)""#, r#"{"name": "ewfq", "responsive": [0.5, 1]}"#),
        (r#""fq_codel(flows=64)""#, r#"{"name": "fq_codel", "flows": 64}"#),
    ] {
        assert_eq!(canonical(text), canonical(table), "{text}");
    }
}

#[test]
fn another_seed_is_the_same_as_parsing_again() {
    let parsed = Scenario::from_json(GOOD).unwrap();
    for seed in [0, 7, SEED_MAX] {
        let again = GOOD.replacen('{', &format!("{{\"seed\": {seed}, "), 1);
        let again = Scenario::from_json(&again).unwrap();
        assert_eq!(parsed.with_seed(seed).unwrap().canonical(), again.canonical());
    }
    let refused = parsed.with_seed(SEED_MAX + 1).unwrap_err().to_string();
    assert!(refused.starts_with("seed: 9007199254740993 is out of range"), "{refused}");
}

#[test]
fn errors_name_their_path() {
    let cases = [
        ("10mbit", "10mbps", "links.up.rate: \"10mbps\" is ambiguous"),
        ("\"rate\"", "\"rtae\"", "links.up.rtae: unknown key \"rtae\", did you mean \"rate\"?"),
        (
            "\"fifo\"",
            "\"codle\"",
            "links.up.qdisc: unknown discipline \"codle\", did you mean \"codel\"?",
        ),
        (
            "\"fifo\"",
            r#"{"name": "red", "min_ht": "5p"}"#,
            "links.up.qdisc.min_ht: unknown parameter",
        ),
        (
            "\"fifo\"",
            "\"codel(targte=15ms)\"",
            "links.up.qdisc.targte: unknown parameter \"targte\", did you mean \"target\"?",
        ),
        (
            "\"fifo\"",
            "\"codel(target=15ms\"",
            "links.up.qdisc: \"codel(target=15ms\" does not end with",
        ),
        ("\"fifo\"", "\"codel(target=15)\"", "links.up.qdisc.target: \"15\" has no unit"),
        ("\"fifo\"", "\"codel(target=5%)\"", "links.up.qdisc.target: \"5%\" is not a duration"),
        ("\"fifo\"", "\"red(max_p=150%)\"", "links.up.qdisc.max_p: 1.5 is out of range"),
        (
            "\"fifo\"",
            "\"pie(alpha=5%)\"",
            "links.up.qdisc.alpha: \"5%\" is a percentage; a plain number is due",
        ),
        ("[\"up\"]", "[\"upp\"]", "flows.ftp.path.0: unknown link \"upp\", did you mean \"up\"?"),
        ("10ms", "1ms", "flows.ftp.rtt: \"uniform(1ms, 20ms)\" can be below the 5ms"),
        ("\"count\": 2", "\"count\": 1e9", "flows.ftp.count: 1000000000 is out of range"),
        ("\"count\": 2", "\"count\": 0", "flows: there is no flow: every count is 0"),
        (
            "\"10s\"",
            "10",
            "duration: 10 has no unit; a duration is written like \"10s\" or \"10ms\"",
        ),
        ("\"10s\"", "\"10s\", \"warmup\": \"10s\"", "warmup: 10s is not shorter than the duration"),
        ("\"10s\"", "\"10s\", \"sample\": \"1us\"", "sample: 1us gives"),
    ];
    for (from, to, start) in cases {
        let text = refusal(from, to);
        assert!(text.starts_with(start), "{text}");
    }
}
