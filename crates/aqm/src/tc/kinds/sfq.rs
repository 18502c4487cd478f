//! SFQ.

use super::super::table::Ours::{Computed, Lost, To};
use super::super::table::{Arg, Becomes, Kind, Line, Params, Rules, Unit, Word};
use crate::error::{Error, Result};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

const RED: &str = "sojourn's sfq has no RED in its queues";
/// Number of flows in Linux if not given.
const FLOWS: u64 = 128;

/// `sfq`.
pub static SFQ: Kind = Kind {
    name: "sfq",
    becomes: Becomes::Discipline("sfq"),
    words: &[
        Word::new("limit", Unit::Packets, "127", To("limit")).within(2, u32::MAX as u64),
        Word::new("quantum", Unit::Bytes, "1514", To("quantum")).within(1, 1 << 20),
        Word::new("depth", Unit::Integer, "127", To("depth")).within(1, 127),
        Word::new("headdrop", Unit::Choice(&[("", "tail"), ("headdrop", "head")]), "", To("drop")),
        Word::new("divisor", Unit::Integer, "1024", Computed).within(1, 65_536),
        Word::new("perturb", Unit::Seconds, "0", To("perturb")),
        Word::new("flows", Unit::Integer, "128", Lost("sojourn does not limit active flows"))
            .within(1, 65_408),
        Word::new("redflowlimit", Unit::Bytes, "", Lost(RED)),
        // With redflowlimit, in `tc -d`.
        Word::new("ewma", Unit::Integer, "", Lost(RED)).output_only(),
        Word::new("min", Unit::Bytes, "", Lost(RED)),
        Word::new("max", Unit::Bytes, "", Lost(RED)),
        Word::new("avpkt", Unit::Bytes, "", Lost(RED)),
        Word::new("burst", Unit::Integer, "", Lost(RED)),
        Word::new("probability", Unit::Probability, "", Lost(RED)),
        Word::new("ecn", Unit::Choice(&[("", ""), ("ecn", "")]), "", Lost(RED)),
        Word::new("harddrop", Unit::Choice(&[("", ""), ("harddrop", "")]), "", Lost(RED)),
    ],
    fixed: &[],
    rules: Rules {
        parameters: &["flows"],
        complete,
        settings: |line| [("flows", format!("{}", line.whole("divisor")))].into(),
        words,
        ..Rules::FIXED
    },
    differs: "",
};

/// Checks the divisor, and cuts the limit as the kernel does.
fn complete(line: &mut Line) -> Result<()> {
    let divisor = line.whole("divisor");
    if !divisor.is_power_of_two() {
        let near = divisor.next_power_of_two();
        let text = format!("{divisor} is not a power of two, like {near}");
        return Err(Error::new(text).at("divisor"));
    }
    let most = most(line);
    if line.whole("limit") > most {
        line.set("limit", Arg::Whole(most));
    }
    Ok(())
}

/// Largest limit that the kernel keeps: depth times the number of flows, of which there are not
/// more than queues.
fn most(line: &Line) -> u64 {
    (line.whole("depth") * line.whole("flows").min(line.whole("divisor"))).max(2)
}

fn words(params: &Params<'_>, line: &mut Line) -> Vec<String> {
    let mut lost = Vec::new();
    let queues: u64 = params.text("flows").parse().unwrap_or(1024);
    let divisor = queues.next_power_of_two().min(65_536);
    if divisor != queues {
        lost.push(format!("flows = {queues}: tc takes powers of two up to 65536, here {divisor}"));
    }
    line.set("divisor", Arg::Whole(divisor));
    let (limit, depth) = (line.whole("limit"), line.whole("depth").max(1));
    if limit > depth * FLOWS {
        line.set("flows", Arg::Whole(limit.div_ceil(depth).min(65_408)));
    }
    let most = most(line);
    if limit > most {
        lost.push(format!("limit = {limit}p: Linux keeps at most depth times flows, {most}"));
        line.set("limit", Arg::Whole(most));
    }
    lost
}
