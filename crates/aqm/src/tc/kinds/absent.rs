//! Qdiscs for which this library has no discipline.

use super::super::table::{Becomes, Kind, Rules};

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
/// `dsmark`.
pub static DSMARK: Kind = opaque("dsmark", "left Linux in 6.3; set the DSCP of the flows");
/// `atm`.
pub static ATM: Kind =
    opaque("atm", "left Linux in 6.3; for the cells of ATM use stab, or cake atm");
/// `blackhole`.
pub static BLACKHOLE: Kind = opaque("blackhole", "drops each packet; use loss = 1 on the link");
/// `plug`.
pub static PLUG: Kind = opaque("plug", "stops a device on command; use a trace on the link");
/// `etf`.
pub static ETF: Kind = opaque("etf", CLOCKED);
/// `taprio`.
pub static TAPRIO: Kind = opaque("taprio", CLOCKED);
