//! CoDel and FQ-CoDel.

use super::super::table::Ours::{Lost, To};
use super::super::table::{Becomes, Change, Fixed, Kind, Rules, Unit, Word};

const RFC: Fixed =
    Fixed { name: "variant", linux: "rfc", why: "Linux has the rules of RFC 8289 only" };

const CLOCK: &str = "tc shows 5ms as 4.999ms, since Linux measures time in units of 1.024 us; \
                     `variant = \"linux\"`, which a tc line sets, does the same";

/// `codel`.
pub static CODEL: Kind = Kind {
    name: "codel",
    becomes: Becomes::Discipline("codel"),
    words: &[
        Word::new("limit", Unit::Packets, "1000", To("limit")),
        Word::new("target", Unit::Time, "5ms", To("target")),
        Word::new("interval", Unit::Time, "100ms", To("interval")),
        Word::new("ecn", Unit::Choice(&[("noecn", "false"), ("ecn", "true")]), "noecn", To("ecn")),
        Word::new("ce_threshold", Unit::Time, "", To("ce_threshold")),
    ],
    fixed: &[RFC],
    rules: Rules::NONE,
    differs: CLOCK,
};

/// `fq_codel`.
pub static FQ_CODEL: Kind = Kind {
    name: "fq_codel",
    becomes: Becomes::Discipline("fq_codel"),
    words: &[
        Word::new("limit", Unit::Packets, "10240", To("limit")),
        Word::new("flows", Unit::Integer, "1024", To("flows")).within(1, 65_536),
        Word::new("quantum", Unit::Bytes, "1514", To("quantum")).within(256, 1 << 20),
        Word::new("target", Unit::Time, "5ms", To("target")),
        Word::new("interval", Unit::Time, "100ms", To("interval")),
        Word::new("memory_limit", Unit::Bytes, "32m", Lost(MEMORY)),
        Word::new("ecn", Unit::Choice(&[("noecn", "false"), ("ecn", "true")]), "ecn", To("ecn")),
        Word::new("drop_batch", Unit::Integer, "64", To("drop_batch")).within(1, 65_536),
        Word::new("ce_threshold", Unit::Time, "", To("ce_threshold")),
        Word::new("ce_threshold_selector", Unit::Text, "0x0/0x0", To("ce_threshold_selector")),
    ],
    fixed: &[RFC],
    rules: Rules { change: Change::Named(&[], &["flows"]), ..Rules::NONE },
    differs: CLOCK,
};

/// Reason why `memory_limit` is not represented.
pub const MEMORY: &str =
    "Linux counts the memory of packets, about 2304 bytes for 1514; here limit counts their length";
