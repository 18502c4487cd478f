//! The line of tc that is nearest to a discipline, and what is said about the difference.

use sojourn_aqm::tc::export;
use sojourn_aqm::{Rate, Setting};

const RATE: Rate = Rate(20_000_000);

/// Returns the line, and the notes on what it cannot say.
fn nearest(name: &str, settings: &[(&str, &str)]) -> (String, Vec<String>) {
    let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, Setting::Text(v))).collect();
    let built = sojourn_aqm::build(name, &settings, RATE).unwrap();
    let out = export(name, &built.params, Some(RATE)).unwrap();
    (out.line.write(), out.lost)
}

const LINUX: (&str, &str) = ("variant", "linux");

/// Checks the line, and that its notes start with these words, one for each note.
fn check(name: &str, settings: &[(&str, &str)], line: &str, notes: &[&str]) {
    let (written, lost) = nearest(name, settings);
    assert_eq!(written, line, "{name} {settings:?}");
    let as_expected = lost.iter().zip(notes).all(|(lost, note)| lost.starts_with(note));
    assert!(as_expected && lost.len() == notes.len(), "{name} {settings:?}: {lost:?}");
}

#[test]
fn values_between_two_of_tc_are_rounded_with_a_note() {
    let rounded = "target = 5000500ns: the nearest value of tc is 5ms";
    check("codel", &[LINUX], "codel", &[]);
    check("codel", &[LINUX, ("target", "5000500ns")], "codel", &[rounded]);
    check("codel", &[LINUX, ("target", "7000500ns")], "codel target 7ms", &["target = 7000500ns"]);
    // Gains in sixteenths, a share in percent.
    check("pie", &[LINUX, ("alpha", "0.25")], "pie alpha 4", &[]);
    check("pie", &[LINUX, ("alpha", "0.2")], "pie alpha 3", &["alpha = 0.2: the nearest"]);
    let share = ("mark_ecnth", "0.125");
    check(
        "fq_pie",
        &[LINUX, share],
        "fq_pie ecn_prob 13 ecn",
        &["mark_ecnth = 0.125: the nearest"],
    );
    check("fq_pie", &[LINUX, ("mark_ecnth", "0.25")], "fq_pie ecn_prob 25 ecn", &[]);
    let cake = [("rtt", "50000500ns"), ("memory", "truesize")];
    check("cake", &cake, "cake rtt 50ms", &["rtt = 50000500ns: the nearest"]);
    check("cake", &[("rtt", "50ms"), cake[1]], "cake rtt 50ms", &[]);
}

/// The default of mtu matters with peakrate only, and tc has none.
#[test]
fn tbf_names_mtu_with_peakrate_alone() {
    let plain = "tbf limit 1514000 burst 15140 rate 20mbit";
    let note = "limit = 1000p: the nearest value of tc is 1514000";
    check("tbf", &[], plain, &[note]);
    let peak = format!("{plain} mtu 1514 peakrate 30mbit");
    check("tbf", &[("peakrate", "30mbit")], &peak, &[note]);
}

/// Thresholds that are `auto`: half of the 12,500 bytes of 5 ms at 20 Mbit/s, and three times that.
#[test]
fn thresholds_of_adaptive_red_are_computed_from_the_rate() {
    let line = "red limit 500000 min 6250 max 18750 avpkt 500 burst 311 probability 0.1 \
                bandwidth 20mbit adaptive";
    let notes = [
        "auto: computed for a link of 20mbit",
        "limit = 1000p: tc counts bytes, taken as 1000 x 500",
        "w_q = 0.0001999",
    ];
    check("ared", &[LINUX], line, &notes);
}

#[test]
fn a_limit_in_bytes_becomes_packets_of_1514_bytes() {
    let note = "limit = 400kB: the nearest value of tc is 264 packets";
    check("pie", &[LINUX, ("limit", "400000B")], "pie limit 264", &[note]);
    // The kernel has 32 bits for it.
    let note = "limit = 5000000000p: the nearest value of tc is 4294967295 packets";
    check("codel", &[LINUX, ("limit", "5000000000p")], "codel limit 4294967295", &[note]);
}

#[test]
fn parameters_without_a_word_are_named() {
    let notes = ["dq_weight = 0.25: ", "derandomise = false: ", "packet = 1500B: "];
    check("pie", &[], "pie", &notes);
    check("pie", &[LINUX, ("dq_weight", "0.5")], "pie", &["dq_weight = 0.5: "]);
    let prio = [("flows", "3"), ("limits", "1000p"), ("drop", "tail"), ("by", "class")];
    check("prio", &[&prio[..], &[("limit", "3000p")]].concat(), "prio", &[]);
    check("prio", &prio, "prio", &["limits = 1000p: add a qdisc"]);
    let same = [&prio[..], &[("limit", "3000p")]].concat();
    let mapped = |map| [&same[..], &[("priomap", map)]].concat();
    let line = "prio priomap 1 1 1 1 0 2 0 0 1 1 1 1 1 1 1 1";
    check("prio", &mapped("1 1 1 1 0"), line, &[]);
    check("prio", &mapped(""), "prio", &["priomap is empty: Linux needs a tc filter"]);
    let (_, lost) = nearest("drr", &[("flows", "8")]);
    assert!(lost[0].starts_with("flows = 8: Linux needs a class per queue"), "{lost:?}");
}

#[test]
fn an_overhead_is_written_without_a_smallest_packet_of_0() {
    let memory = ("memory", "truesize");
    for (overhead, written) in [("18", "overhead 18"), ("18 mpu 64", "overhead 18 mpu 64")] {
        let line = format!("cake noatm {written}");
        check("cake", &[("overhead", overhead), memory], &line, &[]);
    }
}
