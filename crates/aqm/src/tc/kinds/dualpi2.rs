//! DualPI2.

use super::super::table::Ours::{Lost, Scaled, To};
use super::super::table::{Becomes, Fixed, Kind, Rules, Unit, Word};

const fn choice(
    name: &'static str,
    words: &'static [(&'static str, &'static str)],
    ours: &'static str,
) -> Word {
    Word::new(name, Unit::Choice(words), words[0].0, To(ours))
}

/// `dualpi2`. Target, tupdate, alpha, beta, the step and the memory have the defaults of the
/// variant linux of the discipline.
pub static DUALPI2: Kind = Kind {
    name: "dualpi2",
    becomes: Becomes::Discipline("dualpi2"),
    words: &[
        Word::new("limit", Unit::Packets, "10000", To("limit")),
        Word::new("memlimit", Unit::PlainBytes, "", To("memlimit")),
        Word::new("coupling_factor", Unit::Integer, "2", To("coupling_factor")).within(1, 255),
        Word::new("step_thresh", Unit::Threshold, "", To("step_thresh")),
        Word::new("min_qlen_step", Unit::Integer, "", To("min_qlen_step")),
        choice(
            "overload",
            &[("drop_on_overload", "true"), ("overflow", "false")],
            "drop_on_overload",
        ),
        choice("drop", &[("drop_dequeue", "false"), ("drop_enqueue", "true")], "drop_enqueue"),
        Word::new("classic_protection", Unit::Percent, "", Scaled("classic_protection", 100.0)),
        Word::new("max_rtt", Unit::Time, "", To("max_rtt")),
        Word::new("typical_rtt", Unit::Time, "", To("typical_rtt")),
        Word::new("target", Unit::Time, "", To("target")),
        Word::new("tupdate", Unit::Time, "", To("tupdate")),
        Word::new("alpha", Unit::Number, "", To("alpha")),
        Word::new("beta", Unit::Number, "", To("beta")),
        choice("ecn-mask", &[("l4s_ect", "false"), ("any_ect", "true")], "any_ect"),
        Word {
            ours: Lost("packets here are never aggregated"),
            ..choice("gso", &[("split_gso", ""), ("no_split_gso", "")], "")
        },
    ],
    fixed: &[
        Fixed { name: "ecn", linux: "true", why: "Linux always marks ECN-capable packets" },
        Fixed { name: "scheduler", linux: "wrr", why: "Linux serves by weights" },
    ],
    rules: Rules::NONE,
    differs: "",
};
