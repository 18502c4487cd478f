//! PIE and FQ-PIE.

use super::super::table::Ours::{Lost, Scaled, To};
use super::super::table::{Becomes, Change, Fixed, Kind, Rules, Unit, Word};
use super::codel::MEMORY;

/// Gains are whole sixteenths.
const SIXTEENTH: f64 = 0.0625;

const LIMIT: Word = Word::new("limit", Unit::Packets, "1000", To("limit"));
const TARGET: Word = Word::new("target", Unit::Time, "15ms", To("target"));
const TUPDATE: Word = Word::new("tupdate", Unit::Time, "15ms", To("t_update"));
const ALPHA: Word =
    Word::new("alpha", Unit::Integer, "2", Scaled("alpha", SIXTEENTH)).within(1, 32);
const BETA: Word = Word::new("beta", Unit::Integer, "20", Scaled("beta", SIXTEENTH)).within(1, 32);
const ECN: Word =
    Word::new("ecn", Unit::Choice(&[("noecn", "false"), ("ecn", "true")]), "noecn", To("ecn"));
const BYTEMODE: Word = Word::new(
    "bytemode",
    Unit::Choice(&[("nobytemode", "false"), ("bytemode", "true")]),
    "nobytemode",
    To("byte_mode"),
);
const ESTIMATOR: Word = Word::new(
    "dq_rate_estimator",
    Unit::Choice(&[("no_dq_rate_estimator", "timestamp"), ("dq_rate_estimator", "rate")]),
    "no_dq_rate_estimator",
    To("latency"),
);

const FIXED: &[Fixed] = &[
    Fixed { name: "max_burst", linux: "150ms", why: "Linux allows bursts of 150 ms" },
    Fixed { name: "hold", linux: "false", why: "in Linux p changes during a burst, too" },
    Fixed { name: "derandomise", linux: "true", why: "Linux spaces drops out" },
    Fixed { name: "dq_threshold", linux: "16384B", why: "Linux measures over 16384 bytes" },
    Fixed { name: "dq_weight", linux: "0.125", why: "Linux averages with a weight of 1/8" },
    Fixed { name: "packet", linux: "1514B", why: "Linux takes the MTU of the device" },
    Fixed { name: "mark_ecnth", linux: "0.1", why: "Linux drops ECN-capable packets above 0.1" },
];
/// Fixed words of fq_pie: all but the last, for which it has the word `ecn_prob`.
const FQ_FIXED: &[Fixed] = FIXED.split_at(6).0;

const JIFFIES: &str = "Linux rounds tupdate up to its clock tick, whose rate is `hz` here";

/// `pie`.
pub static PIE: Kind = Kind {
    name: "pie",
    becomes: Becomes::Discipline("pie"),
    words: &[LIMIT, TARGET, TUPDATE, ALPHA, BETA, ECN, BYTEMODE, ESTIMATOR],
    fixed: FIXED,
    rules: Rules::NONE,
    differs: JIFFIES,
};

/// `fq_pie`.
pub static FQ_PIE: Kind = Kind {
    name: "fq_pie",
    becomes: Becomes::Discipline("fq_pie"),
    words: &[
        Word::new("limit", Unit::Packets, "10240", To("limit")),
        Word::new("flows", Unit::Integer, "1024", To("flows")).within(1, 65_536),
        TARGET,
        TUPDATE,
        ALPHA,
        BETA,
        Word::new("quantum", Unit::Bytes, "1514", To("quantum")).within(1, 1 << 20),
        Word::new("memory_limit", Unit::Bytes, "32m", Lost(MEMORY)),
        Word::new("ecn_prob", Unit::Hundredths, "10", To("mark_ecnth")),
        ECN,
        BYTEMODE,
        ESTIMATOR,
    ],
    fixed: FQ_FIXED,
    // One packet is dropped on overflow.
    rules: Rules {
        parameters: &["drop_batch"],
        change: Change::Named(&[], &["flows"]),
        ..Rules::NONE
    },
    differs: JIFFIES,
};
