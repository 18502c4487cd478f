//! Qdiscs for which this library has no discipline, or had none when their table was written. A
//! discipline of the name and with parameters of the names in `To` is used as soon as it exists.

use super::super::table::Ours::{Harmless, To};
use super::super::table::{Becomes, Kind, Rules, Unit, Word};

const fn flag(name: &'static str, words: &'static [(&'static str, &'static str)]) -> Word {
    Word::new(name, Unit::Choice(words), words[0].0, Harmless)
}

/// `fq`: a queue per flow, with pacing.
pub static FQ: Kind = Kind {
    name: "fq",
    becomes: Becomes::Discipline("fq"),
    words: &[
        Word::new("limit", Unit::Packets, "10000", To("limit")),
        Word::new("flow_limit", Unit::Packets, "100", To("flow_limit")),
        Word::new("quantum", Unit::Bytes, "3028", To("quantum")),
        Word::new("initial_quantum", Unit::Bytes, "15140", To("initial_quantum")),
        Word::new("maxrate", Unit::Rate, "", To("maxrate")),
        Word::new("defrate", Unit::Rate, "", Harmless),
        Word::new("buckets", Unit::Integer, "1024", To("buckets")),
        flag("pacing", &[("pacing", ""), ("nopacing", "")]),
        Word::new("refill_delay", Unit::Time, "40ms", To("refill_delay")),
        Word::new("bands", Unit::Integer, "3", To("bands")),
        Word::new("priomap", Unit::Numbers, "", Harmless),
        Word::new("weights", Unit::Numbers, "", Harmless),
        Word::new("low_rate_threshold", Unit::Rate, "550kbit", Harmless),
        Word::new("orphan_mask", Unit::Integer, "1023", Harmless),
        Word::new("timer_slack", Unit::Nanos, "10us", Harmless),
        Word::new("ce_threshold", Unit::Time, "", To("ce_threshold")),
        Word::new("horizon", Unit::Time, "10s", To("horizon")),
        flag("horizon_drop", &[("horizon_drop", ""), ("horizon_cap", "")]),
        Word::new("offload_horizon", Unit::Time, "0", Harmless),
    ],
    fixed: &[],
    rules: Rules::NONE,
    differs: "",
};

/// `ets`: strict bands, then weighted ones.
pub static ETS: Kind = Kind {
    name: "ets",
    becomes: Becomes::Discipline("ets"),
    words: &[
        Word::new("bands", Unit::Integer, "", To("bands")).within(1, 16),
        Word::new("strict", Unit::Integer, "0", To("strict")),
        Word::new("quanta", Unit::Numbers, "", To("quanta")),
        Word::new("priomap", Unit::Numbers, "", Harmless),
    ],
    fixed: &[],
    rules: Rules::NONE,
    differs: "",
};

/// `hhf`: heavy-hitter filter.
pub static HHF: Kind = Kind {
    name: "hhf",
    becomes: Becomes::Discipline("hhf"),
    words: &[
        Word::new("limit", Unit::Packets, "1000", To("limit")),
        Word::new("quantum", Unit::Bytes, "1514", To("quantum")),
        Word::new("hh_limit", Unit::Integer, "2048", To("hh_limit")),
        Word::new("reset_timeout", Unit::Time, "40ms", To("reset_timeout")),
        Word::new("admit_bytes", Unit::Bytes, "131072", To("admit_bytes")),
        Word::new("evict_timeout", Unit::Time, "1s", To("evict_timeout")),
        Word::new("non_hh_weight", Unit::Integer, "2", To("non_hh_weight")),
    ],
    fixed: &[],
    rules: Rules::NONE,
    differs: "",
};

/// `gred`: RED with thresholds per class.
pub static GRED: Kind = Kind {
    name: "gred",
    becomes: Becomes::Discipline("gred"),
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

/// `mq`.
pub static MQ: Kind = opaque("mq", HARDWARE);
/// `mqprio`.
pub static MQPRIO: Kind = opaque("mqprio", HARDWARE);
/// `multiq`.
pub static MULTIQ: Kind = opaque("multiq", HARDWARE);
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
/// `skbprio`.
pub static SKBPRIO: Kind = opaque("skbprio", "has no discipline here; use prio");
/// `plug`.
pub static PLUG: Kind = opaque("plug", "stops a device on command; use a trace on the link");
/// `etf`.
pub static ETF: Kind = opaque("etf", CLOCKED);
/// `taprio`.
pub static TAPRIO: Kind = opaque("taprio", CLOCKED);
/// `cbs`.
pub static CBS: Kind = opaque("cbs", CLOCKED);
