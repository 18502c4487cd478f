use super::*;
use crate::config::links::LinkConfig;
use crate::config::parse_links;

/// Links of the line called `name`: down, up.
fn links(name: &str) -> [LinkConfig; 2] {
    parse_links(&line(name).unwrap().links()).unwrap().try_into().unwrap()
}

#[test]
fn every_line_has_valid_links_with_sources() {
    for line in LINES {
        let [down, up] = links(line.name);
        assert_eq!((down.name(), up.name()), ("down", "up"), "{}", line.name);
        for text in [line.about, line.model, line.omits] {
            assert!(!text.is_empty(), "{}", line.name);
        }
        assert!(line.rows.iter().all(|row| !row.source.is_empty()), "{}", line.name);
        let again = parse_links(&line.links()).unwrap();
        assert_eq!(again[0].canonical(), down.canonical());
    }
}

#[test]
fn an_unknown_line_is_refused_with_the_nearest_name() {
    let error = line("starlnik").unwrap_err().to_string();
    assert!(error.contains("did you mean \"starlink\"?"), "{error}");
}

/// Mean and standard deviation of the rate (Mbit/s) and mean of the delay (ms) of 100,000 changes.
fn statistics(link: &LinkConfig, seed: u64) -> [f64; 3] {
    let changes: Vec<_> = link.link_changes(seed).unwrap().take(100_000).collect();
    let n = changes.len() as f64;
    let rates = || changes.iter().map(|(_, c)| c.rate.unwrap().0 as f64 / 1e6);
    let delays = changes.iter().map(|(_, c)| c.delay.map_or(0.0, |d| d.0 as f64 / 1e6));
    let mean = rates().sum::<f64>() / n;
    let variance = rates().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / n;
    [mean, libm::sqrt(variance), delays.sum::<f64>() / n]
}

#[test]
fn rates_and_delays_have_the_statistics_of_the_text() {
    let [down, up] = links("starlink");
    let [mean, deviation, delay] = statistics(&down, 1);
    assert!((mean - 100.0).abs() < 0.5 && (deviation - 28.87).abs() < 0.2, "{mean} {deviation}");
    assert!((delay + statistics(&up, 1)[2] - 30.0).abs() < 0.1, "{delay}");
    assert!((statistics(&up, 1)[0] - 10.0).abs() < 0.05);
    // 2,000 s, 430 times the time in which the walk forgets: the mean of 8 runs is within 3 %.
    let runs: Vec<_> = (1..=8).map(|seed| statistics(&links("lte")[0], seed)).collect();
    let mean_of = |k: usize| runs.iter().map(|run| run[k]).sum::<f64>() / runs.len() as f64;
    assert!((mean_of(0) - 6.3).abs() < 0.2, "{}", mean_of(0));
    assert!((mean_of(1) - 3.29).abs() < 0.1, "{}", mean_of(1));
}

#[test]
fn the_walk_of_lte_falls_to_1_over_e_in_4_6_s() {
    let [down, _] = links("lte");
    let changes = down.link_changes(1).unwrap().take(1_000_000); // 20,000 s
    let rates: Vec<f64> = changes.map(|(_, c)| c.rate.unwrap().0 as f64 / 1e6 - 6.3).collect();
    let lag = 230; // 4.6 s
    let pairs = rates.iter().zip(&rates[lag..]).map(|(a, b)| a * b);
    let correlation = pairs.sum::<f64>() / rates.iter().map(|x| x * x).sum::<f64>();
    assert!((correlation - 0.37).abs() < 0.05, "{correlation}");
}

#[test]
fn a_full_packet_uses_the_stated_share_of_dsl() {
    let overhead = links("dsl")[1].overhead().unwrap();
    let share = 1492.0 / overhead.wire_len(1492, 0) as f64;
    assert!((share - 0.963).abs() < 0.0005, "{share}");
}
