//! Table of how many small flows pass the stages of a match-hit cache, and how many large flows are
//! kept out, by the number of stages. See `reports/fairness.md`.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::sched::hold::Hold;

/// EWFQ's case: 5 mbit, three classes, intervals of 1 s, packets of 1000 bytes.
const PACKETS: u32 = 625;
const LEN: u32 = 1000;
const P: f64 = 3.3e-5;
const RUNS: u64 = 2000;
/// Intervals before the measured one.
const BEFORE: u32 = 10;

/// With `k` stages: fraction of intervals in which a flow with `share` of the packets is missed,
/// and mean number of small flows (one packet each) that are found.
fn run(k: u64, share: f64) -> (f64, f64) {
    let (mut missed, mut small) = (0, 0);
    for seed in 0..RUNS {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut hold = Hold::new(4096, 100, k, P, true);
        // Fill the cache with previous intervals and discard what was found in them.
        for interval in 0..=BEFORE {
            for i in 0..PACKETS {
                let large = f64::from(rng.next_u32()) < share * f64::from(u32::MAX);
                let id = if large { 0 } else { 1 + i + interval * PACKETS };
                hold.record(&mut rng, (id, 1.0), LEN, 0.1, f64::from(LEN));
            }
            if interval < BEFORE {
                hold.end_interval(|_, _| false);
            }
        }
        let hit = usize::from(hold.get(0).is_some());
        missed += 1 - hit;
        small += hold.found() - hit;
    }
    (missed as f64 / RUNS as f64, small as f64 / RUNS as f64)
}

/// Prints the table.
fn main() {
    println!(
        "| stages k | fair share (1/3) missed | a fifth above it missed | small flows found |"
    );
    println!("|---|---|---|---|");
    for k in 0..4 {
        let ((fair, small), (above, _)) = (run(k, 1.0 / 3.0), run(k, 0.4));
        println!("| {k} | {:.1} % | {:.1} % | {small:.2} |", fair * 100.0, above * 100.0);
    }
}
