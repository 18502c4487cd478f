use super::*;
use crate::config::scenario::Scenario;
use serde_json::json;

const MBIT: u64 = 1_000_000;

fn walk() -> LinkProcess {
    let ends = Some((Rate(MBIT), Rate(11 * MBIT)));
    LinkProcess::new(Span::ms(20), ends, Some(Rate(2 * MBIT)), None).unwrap()
}

fn rates(process: LinkProcess, seed: u64, count: usize) -> Vec<f64> {
    let changes = process.link_changes(seed, "down").take(count);
    changes.map(|(_, change)| change.rate.unwrap().0 as f64 / 1e6).collect()
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    (mean, libm::sqrt(variance))
}

#[test]
fn a_walk_is_uniform_and_forgets_in_the_time_of_theory() {
    let rates = rates(walk(), 1, 2_000_000); // 40,000 s
    let (mean, deviation) = moments(&rates);
    assert!((mean - 6.0).abs() < 0.1, "{mean}");
    assert!((deviation - 10.0 / libm::sqrt(12.0)).abs() < 0.05, "{deviation}");
    for decile in 0..10 {
        let low = 1.0 + f64::from(decile);
        let inside = rates.iter().filter(|x| (low..low + 1.0).contains(*x)).count();
        let share = inside as f64 / rates.len() as f64;
        assert!((share - 0.1).abs() < 0.01, "{low}: {share}");
    }
    // Inside, a step of 20 ms is normal with deviation 2 Mbit/s times the root of 0.02.
    let steps = rates.windows(2).filter(|pair| (4.0..8.0).contains(&pair[0]));
    let (drift, step) = moments(&steps.map(|pair| pair[1] - pair[0]).collect::<Vec<_>>());
    assert!(drift.abs() < 0.002, "{drift}");
    assert!((step / (2.0 * libm::sqrt(0.02)) - 1.0).abs() < 0.01, "{step}");
    // Reflected Brownian motion: the slowest mode decays in 2 width^2 / (pi^2 walk^2), 5.07 s here,
    // and has 96 / pi^4 of the variance.
    let lag = 253; // 5.06 s
    let pairs = rates.iter().zip(&rates[lag..]);
    let covariance =
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / (rates.len() - lag) as f64;
    let correlation = covariance / (deviation * deviation);
    assert!((correlation - 0.986 * libm::exp(-1.0)).abs() < 0.03, "{correlation}");
}

#[test]
fn values_drawn_anew_are_uniform_and_independent() {
    let rate = Some((Rate(50 * MBIT), Rate(150 * MBIT)));
    let delay = Some((Span::ms(10), Span::ms(20)));
    let process = LinkProcess::new(Span::s(15), rate, None, delay).unwrap();
    let changes: Vec<_> = process.link_changes(3, "down").take(100_000).collect();
    let rates: Vec<_> = changes.iter().map(|c| c.1.rate.unwrap().0 as f64 / 1e6).collect();
    let delays: Vec<_> = changes.iter().map(|c| c.1.delay.unwrap().0 as f64 / 1e6).collect();
    assert!(changes.iter().enumerate().all(|(i, c)| c.0 == Time(i as u64 * 15_000_000_000)));
    for (values, low, width) in [(&rates, 50.0, 100.0), (&delays, 10.0, 10.0)] {
        let (mean, deviation) = moments(values);
        assert!((mean - low - width / 2.0).abs() < 0.01 * width, "{mean}");
        assert!((deviation - width / libm::sqrt(12.0)).abs() < 0.01 * width, "{deviation}");
        assert!(values.iter().all(|x| (low..=low + width).contains(x)));
    }
    let (mean, deviation) = moments(&rates);
    let pairs = rates.windows(2).map(|p| (p[0] - mean) * (p[1] - mean));
    let next = pairs.sum::<f64>() / rates.len() as f64 / (deviation * deviation);
    assert!(next.abs() < 0.01, "{next}");
}

#[test]
fn values_depend_on_seed_and_name_only_and_are_pinned() {
    let first = |seed, name| walk().link_changes(seed, name).take(3).collect::<Vec<_>>();
    assert_eq!(first(7, "down"), first(7, "down"));
    assert_ne!(first(7, "down"), first(8, "down"));
    assert_ne!(first(7, "down"), first(7, "up"));
    let bps: Vec<u64> = first(7, "down").iter().map(|c| c.1.rate.unwrap().0).collect();
    assert_eq!(bps, PINNED, "the bytes of every machine and version");
}

const PINNED: [u64; 3] = [5_571_490, 5_799_994, 5_725_258];

#[test]
fn equal_ends_are_constant() {
    let ends = Some((Rate(MBIT), Rate(MBIT)));
    let process = LinkProcess::new(Span::ms(1), ends, Some(Rate(MBIT)), None).unwrap();
    assert_eq!(rates(process, 1, 100), [1.0; 100]);
}

#[test]
fn reflections_fold_into_the_range() {
    for (x, expected) in
        [(3.0, 3.0), (-3.0, 3.0), (10.0, 10.0), (12.0, 8.0), (21.0, 1.0), (-12.0, 8.0), (35.0, 5.0)]
    {
        assert_eq!(reflected(x, 10.0).to_bits(), f64::to_bits(expected), "{x}");
    }
}

/// Canonical process of a link, or the error of the scenario.
fn parsed(process: Json) -> std::result::Result<Json, String> {
    let scenario = json!({
        "duration": "1000s", "links": {"up": {"rate": "10mbit", "process": process}},
        "flows": [{"name": "f", "path": ["up"]}],
    });
    let scenario = Scenario::from_json(&scenario.to_string()).map_err(|e| e.to_string())?;
    Ok(scenario.canonical()["links"]["up"]["process"].clone())
}

#[test]
fn the_canonical_form_is_parsed_to_the_same() {
    for process in [
        json!({"every": "20ms", "rate_min": "1mbit", "rate_max": "12mbit", "walk": "2mbit"}),
        json!({"every": "15s", "delay_min": "10ms", "delay_max": "20ms"}),
        json!({"every": "15s", "rate_min": "0bit", "rate_max": "1mbit", "delay_min": "0s",
            "delay_max": "0s"}),
    ] {
        assert_eq!(parsed(process.clone()).unwrap(), process);
    }
}

#[test]
fn errors_name_their_path() {
    for (process, text) in [
        (json!({}), "links.up.process.every: is missing"),
        (json!({"every": "1s"}), "links.up.process: has neither rate_min"),
        (json!({"every": 15}), "links.up.process.every: 15 has no unit"),
        (json!({"every": "0s", "rate_min": "1mbit"}), "links.up.process.every: 0s is out of"),
        (json!({"every": "1s", "rate_min": "1mbit"}), "links.up.process.rate_max: is missing"),
        (json!({"every": "1s", "delay_max": "1ms"}), "links.up.process.delay_min: is missing"),
        (
            json!({"every": "1s", "rate_min": "2mbit", "rate_max": "1mbit"}),
            "links.up.process.rate_max: 1mbit is below rate_min, 2mbit",
        ),
        (
            json!({"every": "1s", "walk": "1mbit", "delay_min": "1ms", "delay_max": "2ms"}),
            "links.up.process.walk: requires rate_min and rate_max",
        ),
        (
            json!({"every": "1us", "delay_min": "1ms", "delay_max": "2ms"}),
            "links.up.process.every: 1us makes 1000000001 changes, allowed",
        ),
        (json!({"evry": "1s"}), "links.up.process.evry: unknown key"),
    ] {
        let error = parsed(process).unwrap_err();
        assert!(error.starts_with(text), "{error}");
    }
    let both = json!({
        "duration": "1s", "flows": [{"name": "f", "path": ["up"]}],
        "links": {"up": {"rate": "1mbit", "trace": {"opportunities_ms": [1]},
            "process": {"every": "1s", "delay_min": "1ms", "delay_max": "2ms"}}},
    });
    let error = Scenario::from_json(&both.to_string()).unwrap_err().to_string();
    assert!(error.starts_with("links.up.process: cannot be combined with trace"), "{error}");
    let changed = |key: &str, value: &str| {
        let scenario = json!({
            "duration": "10s", "flows": [{"name": "f", "path": ["up"]}],
            "links": {"up": {"rate": "1mbit", "process": {"every": "1s", "rate_min": "1mbit",
                "rate_max": "2mbit"}}},
            "changes": [{"at": "1s", "links": {"up": {key: value}}}],
        });
        Scenario::from_json(&scenario.to_string()).map_err(|e| e.to_string())
    };
    assert!(changed("delay", "1ms").is_ok());
    let error = changed("rate", "1mbit").unwrap_err();
    assert_eq!(error, "changes.0.links.up.rate: is set by the process of the link");
}

#[test]
fn a_run_has_the_rates_of_the_process() {
    let scenario = json!({
        "duration": "100s", "seed": 5, "links": {"up": {"rate": "10mbit", "process": {
            "every": "10s", "rate_min": "1mbit", "rate_max": "20mbit"}}},
        "flows": [{"name": "f", "path": ["up"],
            "source": {"name": "cbr", "rate": "40mbit", "packet": "1500B"}}],
    });
    let scenario = Scenario::from_json(&scenario.to_string()).unwrap();
    let sent = |seed| {
        let outcome = crate::run(scenario.with_seed(seed).unwrap());
        outcome.summary["links"]["up"]["goodput_bps"].as_f64().unwrap()
    };
    for seed in [5, 6] {
        let process = scenario.links()[0].process().unwrap();
        let changes = process.link_changes(seed, "up").take(10);
        let mean = changes.map(|(_, c)| c.rate.unwrap().0 as f64).sum::<f64>() / 10.0;
        // Of 1,500 bytes, 28 are headers.
        assert!((sent(seed) / mean - 1472.0 / 1500.0).abs() < 0.01, "{} {mean}", sent(seed));
    }
    assert!((sent(5) - sent(6)).abs() > 1e4, "each seed has its own rates");
}
