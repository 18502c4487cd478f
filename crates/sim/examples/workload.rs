//! Runs a canonical scenario: `workload FILE` prints one line of JSON with the number of
//! packet-hops, the processor time in seconds of reading the scenario and of the run (set-up and
//! outcome included), and the largest memory in kB before and after the run. See
//! `lab/sojourn_lab/speed/workloads.py`.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use serde_json::json;
use sojourn_sim::Scenario;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Instant;

/// Processor time of this thread in seconds where Linux reports it; wall-clock time elsewhere.
fn clock() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    std::thread::yield_now(); // Linux updates the time at ticks of some ms and at switches only.
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = text.and_then(|t| t.split(' ').next()?.parse::<f64>().ok());
    ns.map_or_else(|| START.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

/// Largest resident memory of this process so far in kB; `None` except on Linux.
fn peak_kb() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn main() {
    let path = std::env::args().nth(1).expect("the first argument is the file of a scenario");
    let text = std::fs::read_to_string(path).expect("the file can be read");
    let start = clock();
    let scenario = Scenario::from_json(&text).expect("the scenario is valid");
    let read_s = clock() - start;
    drop(text);
    let read_kb = peak_kb();
    let mut hops = 0u64;
    let start = clock();
    let outcome = sojourn_sim::run_with_progress(scenario, &mut |so_far| {
        hops = hops.max(so_far.packets);
        true
    });
    let run_s = clock() - start;
    black_box(&outcome);
    let line = json!({"hops": hops, "read_s": read_s, "run_s": run_s, "read_kb": read_kb,
        "run_kb": peak_kb()});
    println!("{line}");
}
