//! CBS.

use super::super::table::Ours::{Computed, Harmless};
use super::super::table::{Arg, Becomes, Kind, Line, Params, Rules, Unit, Word};
use crate::units::{Bytes, Rate, Size};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// `cbs`: credit-based shaper.
pub static CBS: Kind = Kind {
    name: "cbs",
    becomes: Becomes::Discipline("cbs"),
    words: &[
        Word::new("hicredit", Unit::Signed, "0", Computed),
        Word::new("locredit", Unit::Signed, "0", Computed),
        Word::new("sendslope", Unit::Signed, "0", Computed),
        Word::new("idleslope", Unit::Signed, "0", Computed),
        Word::new("offload", Unit::Integer, "0", Harmless).within(0, 255),
    ],
    fixed: &[],
    rules: Rules {
        parameters: &["hicredit", "locredit", "sendslope", "idleslope", "limit"],
        settings,
        words,
        once: true,
        abbreviates: true,
        ..Rules::ALL
    },
    differs: "sendslope is for the rate of the link, in Linux for the speed of the device; slopes \
              and credits of the wrong sign are 0; Linux can have another qdisc below it",
};

/// Value of `word` in the direction of `sign`; 0 in the other one.
fn magnitude(line: &Line, word: &str, sign: i64) -> u64 {
    let value = match line.get(word) {
        Some(Arg::Text(text)) => text.parse().unwrap_or(0),
        _ => 0,
    };
    (sign * value).max(0).cast_unsigned()
}

fn settings(line: &Line) -> Vec<(&'static str, String)> {
    let slope = |word, sign| Rate(1000 * magnitude(line, word, sign)).to_string();
    let credit = |word, sign| Bytes(magnitude(line, word, sign)).to_string();
    [
        ("hicredit", credit("hicredit", 1)),
        ("locredit", credit("locredit", -1)),
        ("sendslope", slope("sendslope", -1)),
        ("idleslope", slope("idleslope", 1)),
        ("limit", Size::Packets(1000).to_string()),
    ]
    .into()
}

fn words(params: &Params<'_>, line: &mut Line) -> Vec<String> {
    let rate = params.rate.map(|rate| rate.0);
    let slope = |name| params.text(name).parse().ok().map(|slope: Rate| slope.0);
    let idle = slope("idleslope").or(rate.map(|rate| rate / 4 * 3));
    let rest = || rate.zip(idle).map(|(rate, idle)| rate.saturating_sub(idle));
    let send = slope("sendslope").or_else(rest);
    let credit = |name, slope: Option<u64>| {
        let share = || rate.zip(slope).map(|(rate, slope)| crate::sched::cbs::share(slope, rate));
        params.text(name).parse().ok().or_else(share).map(|credit: Bytes| credit.0)
    };
    let mut lost = Vec::new();
    for (word, sign, unit, value) in [
        ("hicredit", "", 1, credit("hicredit", idle)),
        ("locredit", "-", 1, credit("locredit", send)),
        ("sendslope", "-", 1000, send),
        ("idleslope", "", 1000, idle),
    ] {
        let Some(value) = value else {
            lost.push(format!("{word} = auto: tc has no word for the rate of the link"));
            continue;
        };
        let units = (value / unit).min(i32::MAX as u64);
        if units * unit != value {
            let near = Rate(units * unit);
            lost.push(format!("{word} = {}: the nearest value of tc is {near}", Rate(value)));
        }
        let sign = if units == 0 { "" } else { sign };
        line.set(word, Arg::Text(format!("{sign}{units}")));
    }
    let limit = params.text("limit");
    if limit != "1000p" {
        lost.push(format!("limit = {limit}: add a qdisc pfifo or bfifo with its limit below cbs"));
    }
    lost
}
