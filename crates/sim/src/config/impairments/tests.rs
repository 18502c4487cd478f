use crate::config::scenario::Scenario;
use serde_json::{Value as Json, json};

/// Canonical form of a link with `keys`, or the error.
fn link(keys: Json) -> Result<Json, String> {
    let mut link = json!({"rate": "10mbit"});
    for (key, value) in keys.as_object().unwrap() {
        link[key] = value.clone();
    }
    let scenario = json!({
        "duration": "10s", "links": {"up": link}, "flows": [{"name": "f", "path": ["up"]}],
    });
    let scenario = Scenario::from_json(&scenario.to_string()).map_err(|e| e.to_string())?;
    Ok(scenario.canonical()["links"]["up"].clone())
}

#[test]
fn short_forms_equal_tables() {
    let chance = json!({"probability": 0.25, "correlation": 0.0});
    for (short, whole) in [
        (
            json!({"jitter": "5ms"}),
            json!({"size": "5ms", "distribution": "uniform", "correlation": 0.0, "reorders": true}),
        ),
        (json!({"reorder": "25%"}), json!({"probability": 0.25, "correlation": 0.0, "gap": 1})),
        (json!({"duplicate": "25%"}), chance.clone()),
        (json!({"corrupt": 0.25}), chance),
        (json!({"slot": {"min": "5ms"}}), json!({"min": "5ms", "max": "5ms"})),
    ] {
        let key = short.as_object().unwrap().keys().next().unwrap().clone();
        assert_eq!(link(short).unwrap()[&key], whole, "{key}");
    }
}

#[test]
fn the_canonical_form_is_parsed_to_the_same() {
    for (key, value) in [
        (
            "jitter",
            json!({
                "size": "1500us", "distribution": "pareto", "correlation": 0.5, "reorders": false,
            }),
        ),
        (
            "jitter",
            json!({"size": "1s", "distribution": [-5, 7], "correlation": 0.0, "reorders": true}),
        ),
        ("reorder", json!({"probability": 0.5, "correlation": 0.125, "gap": 5})),
        ("duplicate", json!({"probability": 0.5, "correlation": 0.125})),
        ("outages", json!(["1s..1500ms", "2s..3s"])),
        ("outages", json!({"up": "exponential(10s)", "down": "uniform(1ms, 2ms)"})),
        ("slot", json!({"min": "1ms", "max": "2ms", "packets": 3, "bytes": "3kB"})),
        ("slot", json!({"distribution": "normal", "delay": "20ms", "jitter": "5ms"})),
        ("in_flight_limit", json!("1000p")),
    ] {
        assert_eq!(link(json!({key: value})).unwrap()[key], value, "{key}");
    }
    let plain = link(json!({})).unwrap();
    for key in super::KEYS {
        assert!(plain.get(key).is_none(), "{key} is not written");
    }
}

#[test]
fn errors_name_their_path() {
    for (keys, text) in [
        (json!({"jitter": 5}), "links.up.jitter: 5 has no unit"),
        (json!({"jitter": {"size": "-5ms"}}), "links.up.jitter.size: \"-5ms\""),
        (json!({"jitter": {"distribution": "normal"}}), "links.up.jitter.size: is missing"),
        (
            json!({"jitter": {"size": "5ms", "distribution": "pareta"}}),
            "links.up.jitter.distribution: unknown distribution \"pareta\", did you mean \"par",
        ),
        (
            json!({"jitter": {"size": "5ms", "distribution": [1, 40000]}}),
            "links.up.jitter.distribution.1: 40000 is not a whole number from -32768",
        ),
        (
            json!({"jitter": {"size": "5ms", "distribution": []}}),
            "links.up.jitter.distribution: 0 values, allowed",
        ),
        (json!({"reorder": "120%"}), "links.up.reorder: 1.2 is out of range"),
        (json!({"reorder": {"gap": 0}}), "links.up.reorder.gap: 0 is out of range"),
        (json!({"duplicate": {}}), "links.up.duplicate.probability: is missing"),
        (json!({"duplicate": {"gap": 1}}), "links.up.duplicate.gap: unknown key"),
        (json!({"corrupt": "x"}), "links.up.corrupt: \"x\" is not"),
        (json!({"outages": "1s"}), "links.up.outages: \"1s\" is neither a list"),
        (json!({"outages": ["1s"]}), "links.up.outages.0: \"1s\" is not an interval"),
        (json!({"outages": ["2s..1s"]}), "links.up.outages.0: \"2s..1s\" does not end"),
        (
            json!({"outages": ["1s..3s", "2s..4s"]}),
            "links.up.outages.1: starts at 2s, before the end",
        ),
        (json!({"outages": {"up": "1s"}}), "links.up.outages.down: is missing"),
        (
            json!({"outages": {"up": "pareto(mean=1s, shape=2)", "down": "1s"}}),
            "links.up.outages.up: \"pareto(mean=1s, shape=2)\" is not a duration, uniform",
        ),
        (json!({"slot": {}}), "links.up.slot.min: is missing"),
        (json!({"slot": {"min": "2ms", "max": "1ms"}}), "links.up.slot.max: 1ms is less than min"),
        (json!({"slot": {"min": "2ms", "delay": "1ms"}}), "links.up.slot.min: cannot be combined"),
        (json!({"slot": {"delay": "1ms"}}), "links.up.slot.distribution: is missing"),
        (json!({"slot": {"distribution": "normal"}}), "links.up.slot.delay: is missing"),
        (json!({"in_flight_limit": 1000}), "links.up.in_flight_limit: 1000 has no unit"),
        (json!({"in_flight_limit": "10kB"}), "links.up.in_flight_limit: \"10kB\" is not a number"),
    ] {
        let error = link(keys.clone()).unwrap_err();
        assert!(error.starts_with(text), "{keys}: {error}");
    }
}
