//! SFB.

use super::super::table::Ours::{Computed, To};
use super::super::table::{Arg, Becomes, Fixed, Kind, Line, Params, Rules, Unit, Word};
use crate::error::Result;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// `sfb`.
pub static SFB: Kind = Kind {
    name: "sfb",
    becomes: Becomes::Discipline("sfb"),
    words: &[
        Word::new("limit", Unit::Packets, "1000", Computed),
        Word::new("rehash", Unit::Millis, "600000", To("rehash_interval")),
        Word::new("db", Unit::Millis, "60000", To("warmup")),
        Word::new("max", Unit::Packets, "", Computed),
        Word::new("target", Unit::Packets, "", Computed),
        Word::new("increment", Unit::Probability, "0.0005", To("d1")),
        Word::new("decrement", Unit::Probability, "0.00005", To("d2")),
        Word::new("penalty_rate", Unit::Integer, "10", To("penalty_rate")),
        Word::new("penalty_burst", Unit::Integer, "20", To("penalty_burst")),
    ],
    fixed: &[
        Fixed { name: "ecn", linux: "true", why: "Linux always marks ECN-capable packets" },
        Fixed { name: "levels", linux: "8", why: "Linux has 8 levels" },
        Fixed { name: "bins", linux: "16", why: "Linux has 16 bins per level" },
    ],
    rules: Rules {
        parameters: &["limit", "max", "bin_size"],
        complete,
        settings,
        words,
        ..Rules::ALL
    },
    differs: "tc sends 0.0005 and 0.00005, not the kernel's own defaults, which are sojourn's; the \
              kernel rounds both to multiples of 1/65535, as does `variant = \"linux\"`, which a \
              tc line sets",
};

/// Fills in `max` and `target` as tc does, and the limit for 0: the queue length of the device.
fn complete(line: &mut Line) -> Result<()> {
    let length = |line: &Line, name| Some(line.whole(name)).filter(|n| *n > 0);
    let (max, target) = match (length(line, "max"), length(line, "target")) {
        (Some(max), Some(target)) => (max, target),
        (None, Some(target)) => ((target * 5 + 1) / 4, target),
        (Some(max), None) => (max, (max * 4 + 3) / 5),
        (None, None) => (25, 20),
    };
    line.set("max", Arg::Whole(max));
    line.set("target", Arg::Whole(target));
    if line.whole("limit") == 0 {
        line.set("limit", Arg::Whole(1000));
    }
    Ok(())
}

fn settings(line: &Line) -> Vec<(&'static str, String)> {
    [
        ("limit", line.whole("limit").to_string() + "p"),
        ("max", line.whole("max").to_string()),
        ("bin_size", line.whole("target").to_string()),
    ]
    .into()
}

fn words(params: &Params<'_>, line: &mut Line) -> Vec<String> {
    line.set("max", Arg::Whole(params.text("max").parse().unwrap_or(25)));
    line.set("target", Arg::Whole(params.text("bin_size").parse().unwrap_or(20)));
    let (packets, lost) = super::red::packets(params, "limit", 1514);
    line.set("limit", Arg::Whole(packets));
    lost
}
