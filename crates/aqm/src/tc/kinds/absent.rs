//! Qdiscs for which this library has no discipline.

use super::super::table::Ours::Harmless;
use super::super::table::{Becomes, Kind, Rules, Unit, Word};

const fn flag(name: &'static str, words: &'static [(&'static str, &'static str)]) -> Word {
    Word::new(name, Unit::Choice(words), words[0].0, Harmless)
}

/// `gred`: RED with thresholds per class.
pub static GRED: Kind = Kind {
    name: "gred",
    becomes: Becomes::Nothing(
        "has a command for each virtual queue, which are not read; write the discipline gred with \
         vqs, min_th, max_th and w_q",
    ),
    words: &[
        flag("setup", &[("", ""), ("setup", "")]),
        Word::new("vqs", Unit::Integer, "", Harmless).also(&["DPs"]).within(1, 16),
        Word::new("default", Unit::Integer, "", Harmless),
        flag("grio", &[("", ""), ("grio", "")]),
        Word::new("vq", Unit::Integer, "", Harmless).also(&["DP"]),
        Word::new("prio", Unit::Integer, "", Harmless),
        Word::new("limit", Unit::Bytes, "", Harmless),
        Word::new("min", Unit::Bytes, "", Harmless),
        Word::new("max", Unit::Bytes, "", Harmless),
        Word::new("avpkt", Unit::Bytes, "", Harmless),
        Word::new("burst", Unit::Integer, "", Harmless),
        Word::new("probability", Unit::Probability, "", Harmless),
        Word::new("bandwidth", Unit::Rate, "", Harmless),
        flag("ecn", &[("", ""), ("ecn", "")]),
        flag("harddrop", &[("", ""), ("harddrop", "")]),
    ],
    fixed: &[],
    rules: Rules::NONE,
    differs: "",
};

/// Qdisc that is known by its name only; its words are not read.
const fn opaque(name: &'static str, why: &'static str) -> Kind {
    let becomes = Becomes::Nothing(why);
    Kind { name, becomes, words: &[], fixed: &[], rules: Rules::NONE, differs: "" }
}

const HARDWARE: &str = "is a parent of one qdisc per hardware queue; a link has one transmitter";
const CLOCKED: &str = "needs a clock that all senders share, which sojourn does not have";
const HOOK: &str = "is a place for filters, not a queue";

/// `mqprio`.
pub static MQPRIO: Kind = opaque("mqprio", HARDWARE);
/// `noqueue`.
pub static NOQUEUE: Kind = opaque("noqueue", "has no queue; leave out the link");
/// `ingress`.
pub static INGRESS: Kind = opaque("ingress", HOOK);
/// `clsact`.
pub static CLSACT: Kind = opaque("clsact", HOOK);
/// `cbq`.
pub static CBQ: Kind = opaque("cbq", "left Linux in 6.3; use htb, or the rate of the link");
/// `qfq`.
pub static QFQ: Kind = opaque("qfq", "has no discipline here; use wfq or wf2q with weights");
/// `plug`.
pub static PLUG: Kind = opaque("plug", "stops a device on command; use a trace on the link");
/// `etf`.
pub static ETF: Kind = opaque("etf", CLOCKED);
/// `taprio`.
pub static TAPRIO: Kind = opaque("taprio", CLOCKED);
