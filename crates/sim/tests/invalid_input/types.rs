//! Every key of a scenario rejects JSON types that it does not accept, with the path of the key.

use crate::body;
use serde_json::{Value, json};
use sojourn_sim::Scenario;
use sojourn_sim::internals::{TABLES, Table};

/// JSON types that a key accepts, as the letters of [`letter`].
struct Key {
    /// Location as a JSON pointer.
    place: String,
    /// Location as shown in messages.
    path: String,
    takes: String,
}

/// Letter that stands for the type of `value`.
fn type_letter(value: &Value) -> char {
    match value {
        Value::Null => '0',
        Value::Bool(_) => 'b',
        Value::Number(_) => 'n',
        Value::String(_) => 't',
        Value::Array(_) => 'l',
        Value::Object(_) => 'o',
    }
}

/// Types accepted by a parameter: its own, and the documented conversions (see `read::setting`).
fn types_of_parameter(kind: &str) -> String {
    match kind {
        "list of discipline" | "list of filter" => "lnto".to_string(),
        "list of flag" => "lbt".to_string(),
        list if list.starts_with("list of") => "lnt".to_string(),
        other => types_of_key(other),
    }
}

/// Types accepted by a key of a scenario.
fn types_of_key(kind: &str) -> String {
    let own = match kind.split([',', ' ']).next().expect("a word") {
        "number" if kind.ends_with("or table") => "not",
        "duration" if kind.ends_with("or table") => "to",
        "list" if kind.ends_with("or table") => "lo",
        "name" | "text" if kind.ends_with("or list") => "lt",
        // A list, or a list for each flow.
        "names" => "l",
        "number" | "integer" | "overhead" => "nt",
        "flag" => "bt",
        "list" => "l",
        "table" | "file" => "o",
        "name" => "to",
        // Some choices accept the words true and false.
        words if words.contains('|') => "bt",
        _ => "t",
    };
    own.to_string()
}

/// Values of every type, including the old value in a list and in a table.
fn replacements(old: &Value) -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(false),
        json!(0),
        json!(3),
        json!(-7),
        json!(2.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("no such word"),
        json!([]),
        json!([old]),
        json!([old, old]),
        json!(["x"]),
        json!([[1]]),
        json!({}),
        json!({ "name": old }),
        json!({ "x": 1 }),
    ]
}

/// Replaces the value of every key, and checks that only accepted types pass. Returns the number of
/// rejected values.
fn mistyped(good: &Value, keys: &[Key]) -> usize {
    let mut refused = 0;
    for key in keys {
        let old = good.pointer(&key.place).unwrap_or_else(|| panic!("no {}", key.place));
        for new in replacements(old) {
            let mut all = good.clone();
            *all.pointer_mut(&key.place).expect("as above") = new.clone();
            let taken = key.takes.contains(type_letter(&new));
            match Scenario::from_json(&all.to_string()) {
                Ok(_) => assert!(taken, "{} = {new} was accepted", key.path),
                Err(e) => {
                    refused += 1;
                    let (text, path) = (e.to_string(), &key.path);
                    assert!(text.chars().count() < 1200, "{text}");
                    let names = |end: &str| text.starts_with(&format!("{path}{end}"));
                    assert!(
                        taken || names(": ") || names("."),
                        "{path} = {new}: the message is about another key: {text}"
                    );
                }
            }
        }
    }
    refused
}

/// Key at `place` (`path` in messages) that accepts these types.
fn key(place: &str, path: &str, name: &str, takes: String) -> Key {
    let dot = if path.is_empty() { "" } else { "." };
    Key { place: format!("{place}/{name}"), path: format!("{path}{dot}{name}"), takes }
}

/// Small scenario with every key that is not a parameter and not a single value.
fn small() -> Value {
    json!({
        "name": "all", "duration": "2s", "warmup": "500ms", "seed": 7, "sample": "100ms",
        "warm_from": {"at": "500ms", "seed": 3},
        "links": {
            "up": {"rate": "10mbit", "burst": "1514B", "delay": "5ms",
                "qdisc": {"name": "codel"}, "loss": 0.01, "slot": {"min": "10ms"}},
            "air": {"rate": "10mbit",
                "loss": {"p": 0.1, "r": 0.2, "1-h": 0.5, "1-k": 0.01, "ecn": true},
                "trace": {"t_ns": [0, 5], "rate_bps": [10, 20], "delay_ns": [1, 2],
                    "repeat": "1s"}},
            "cell": {"rate": "10mbit", "trace": {"opportunities_ms": [1, 2]}},
            "rough": {"rate": "10mbit", "loss": {"probability": 0.1, "correlation": 0.2},
                "jitter": {"size": "5ms"}, "reorder": {"gap": 5},
                "duplicate": {"probability": 0.1}, "corrupt": {"probability": 0.1},
                "outages": {"up": "10s", "down": "1s"}, "slot": {"min": "10ms", "max": "20ms",
                "packets": 20, "bytes": "64kB"}},
            "radio": {"rate": "10mbit",
                "loss": {"p13": 0.1, "p31": 0.3, "p32": 0.2, "p23": 0.4, "p14": 0.01},
                "slot": {"distribution": "normal", "delay": "15ms", "jitter": "3ms"}},
            "sky": {"rate": "10mbit",
                "process": {"every": "1s", "rate_min": "5mbit", "rate_max": "20mbit",
                    "delay_min": "10ms", "delay_max": "20ms"}},
            "h0-h1": {"rate": "1mbit"}, "h1-h0": {"rate": "1mbit"}
        },
        "switches": {"tor": {"buffer": "4MB", "ports": ["up", "air"], "classes": {"EF": {}}}},
        "flows": [
            {"name": "bulk", "count": 2, "source": {"name": "bulk"}, "tcp": {"name": "reno"},
             "path": ["up", "air"], "return_path": ["cell"], "rtt": "40ms", "class": 3},
            {"name": "trace", "path": ["up"], "source": {"name": "trace", "time_s": [0.1, 0.2],
             "size_bytes": [100, 200], "flow": [0, 0]}},
            {"name": "call", "path": ["up"], "source": {"name": "cbr"}, "dscp": "EF", "ecn": "ect1",
             "sender": "server", "receiver": "laptop"},
            {"name": "web", "sender": "h0", "receiver": "h1", "spread": {"name": "flowlet",
             "gap": "1ms"}, "hash": "shared"}
        ],
        "changes": [{"at": "1s", "join": ["trace"], "leave": ["bulk"],
            "links": {"up": {"rate": "1mbit", "delay": "1ms", "up": false, "queued": "hold",
            "slot": {"min": "20ms"},
            "qdisc": {"target": "9ms"}}}}]
    })
}

/// Places of a table in the small scenario: JSON pointer, and path in messages.
fn places(table: &Table) -> &'static [(&'static str, &'static str)] {
    match table.path {
        "" => &[("", "")],
        "links.NAME" => {
            &[("/links/up", "links.up"), ("/links/air", "links.air"), ("/links/sky", "links.sky")]
        }
        "links.NAME.loss" => &[
            ("/links/air/loss", "links.air.loss"),
            ("/links/rough/loss", "links.rough.loss"),
            ("/links/radio/loss", "links.radio.loss"),
        ],
        "links.NAME.jitter" => &[("/links/rough/jitter", "links.rough.jitter")],
        "links.NAME.reorder" => &[("/links/rough/reorder", "links.rough.reorder")],
        "links.NAME.duplicate" => &[("/links/rough/duplicate", "links.rough.duplicate")],
        "links.NAME.corrupt" => &[("/links/rough/corrupt", "links.rough.corrupt")],
        "links.NAME.outages" => &[("/links/rough/outages", "links.rough.outages")],
        "links.NAME.slot" => {
            &[("/links/rough/slot", "links.rough.slot"), ("/links/radio/slot", "links.radio.slot")]
        }
        "links.NAME.process" => &[("/links/sky/process", "links.sky.process")],
        "links.NAME.trace" => {
            &[("/links/air/trace", "links.air.trace"), ("/links/cell/trace", "links.cell.trace")]
        }
        "warm_from" => &[("/warm_from", "warm_from")],
        "switches.NAME" => &[("/switches/tor", "switches.tor")],
        "switches.NAME.classes.CLASS" => &[("/switches/tor/classes/EF", "switches.tor.classes.EF")],
        "flows" => {
            &[("/flows/0", "flows.bulk"), ("/flows/2", "flows.call"), ("/flows/3", "flows.web")]
        }
        "changes" => &[("/changes/0", "changes.0")],
        "changes.links.NAME" => &[("/changes/0/links/up", "changes.0.links.up")],
        other => panic!("{other} is missing in the small scenario"),
    }
}

/// The small scenario with the examples of the keys that it does not have.
fn complete() -> Value {
    let mut all = small();
    for table in TABLES {
        let places = places(table);
        for row in table.keys {
            let is_there =
                |(place, _): &(&str, &str)| all.pointer(&format!("{place}/{}", row.name)).is_some();
            if !places.iter().any(is_there) {
                let example = serde_json::from_str(row.example).expect("a single value");
                all.pointer_mut(places[0].0).expect("a table")[row.name] = example;
            }
        }
    }
    all
}

#[test]
fn every_key_rejects_the_wrong_type() {
    let good = complete();
    assert!(Scenario::from_json(&good.to_string()).is_ok());
    let mut all = vec![
        key("/links/up/qdisc", "links.up.qdisc", "name", "t".to_string()),
        key("/flows/0/source", "flows.bulk.source", "name", "t".to_string()),
        key("/flows/0/tcp", "flows.bulk.tcp", "name", "t".to_string()),
    ];
    all.extend(
        ["time_s", "size_bytes", "flow"]
            .map(|column| key("/flows/1/source", "flows.trace.source", column, "l".to_string())),
    );
    for table in TABLES {
        let places = places(table);
        for row in table.keys {
            let holds = |(place, _): &&(&str, &str)| {
                good.pointer(&format!("{place}/{}", row.name)).is_some()
            };
            let before = all.len();
            all.extend(places.iter().filter(holds).map(|(place, path)| {
                // A flow without a valid name is identified by its index.
                let path = match *path {
                    "flows.bulk" if row.name == "name" => "flows.0",
                    "flows.call" if row.name == "name" => "flows.2",
                    "flows.web" if row.name == "name" => "flows.3",
                    path => path,
                };
                key(place, path, row.name, types_of_key(row.kind))
            }));
            assert!(all.len() > before, "{}.{} is not in the small scenario", table.path, row.name);
        }
    }
    assert!(mistyped(&good, &all) > 500);
}

/// Keys of `name` in its canonical form at `place`.
fn parameters(place: &str, path: &str, spec: &Value, canonical: &Value) -> Vec<Key> {
    let rows = spec["params"].as_array().expect("a list").iter();
    let rows = rows.filter(|row| {
        let name = row["name"].as_str().expect("a name");
        canonical.pointer(place).is_some_and(|at| at.get(name).is_some())
    });
    rows.map(|row| {
        let (name, kind) = (row["name"].as_str().expect("a name"), row["kind"].as_str());
        key(place, path, name, types_of_parameter(kind.expect("a kind")))
    })
    .collect()
}

#[test]
fn every_parameter_rejects_the_wrong_type() {
    let specs = sojourn_sim::registry_json();
    let (mut tried, mut refused) = (0, 0);
    for (kind, place, path) in [
        ("disciplines", "/links/up/qdisc", "links.up.qdisc"),
        ("tcp", "/flows/0/tcp", "flows.f.tcp"),
        ("sources", "/flows/0/source", "flows.f.source"),
    ] {
        for spec in specs[kind].as_array().expect("a list") {
            let mut all = json!({"duration": "1s", "links": {"up": {"rate": "10mbit"},
                "back": {"rate": "10mbit"}}, "flows": [{"name": "f", "path": ["up"],
                "return_path": ["back"]}]});
            let named = &mut all.pointer_mut(&place[..place.rfind('/').expect("one")]).unwrap();
            named[place.rsplit('/').next().unwrap()] = if spec["name"] == "trace" {
                body::valid_scenario()["flows"].as_array().unwrap().last().unwrap()["source"]
                    .clone()
            } else {
                json!({ "name": spec["name"] })
            };
            let canonical = Scenario::from_json(&all.to_string()).expect("good").canonical();
            let keys = parameters(place, path, spec, &canonical);
            tried += keys.len();
            refused += mistyped(&canonical, &keys);
        }
    }
    assert!(tried > 300 && refused > 10 * tried, "{tried} keys, {refused} refusals");
}

#[test]
fn a_seed_is_exact_or_rejected_with_its_digits() {
    let with = |seed: &str| {
        let text = small().to_string().replace("\"seed\":7", &format!("\"seed\":{seed}"));
        assert!(text.contains(seed));
        Scenario::from_json(&text).map(|s| s.seed()).map_err(|e| e.to_string())
    };
    assert_eq!(with("9007199254740991"), Ok((1 << 53) - 1));
    assert_eq!(with("9007199254740992"), Ok(1 << 53));
    for seed in ["9007199254740993", "18446744073709551615", "\"9007199254740993\""] {
        let bare = seed.trim_matches('"');
        let message = format!("seed: {bare} is out of range, allowed: 0 to 9007199254740992");
        assert_eq!(with(seed), Err(message));
    }
    let message = "seed: -9007199254740993 is not a whole number from 0 up";
    assert_eq!(with("-9007199254740993"), Err(message.to_string()));
    let message = "seed: \"18446744073709551616\" is too large";
    assert_eq!(with("\"18446744073709551616\""), Err(message.to_string()));
}
