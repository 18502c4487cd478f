//! Qdiscs of Linux: the table of each, by family.
//!
//! To add a qdisc, write its [`Kind`] in the file of its family and name it in
//! [`KINDS`].

pub mod absent;
pub mod cake;
pub mod cbs;
pub mod codel;
pub mod dualpi2;
pub mod fifo;
pub mod flows;
pub mod gred;
pub mod pie;
pub mod qfq;
pub mod queues;
pub mod red;
pub mod sfb;
pub mod sfq;
pub mod shaper;

use super::table::Kind;

/// All qdiscs. Of several for one discipline, the first that fits is exported; of several with one
/// name, the first is read.
pub static KINDS: &[&Kind] = &[
    &fifo::PFIFO,
    &fifo::BFIFO,
    &fifo::PFIFO_HEAD_DROP,
    &fifo::PRIO,
    &fifo::PFIFO_FAST,
    &fifo::SKBPRIO,
    &fifo::DRR,
    &qfq::QFQ,
    &queues::MULTIQ,
    &queues::MQ,
    &red::RED,
    &red::ADAPTIVE,
    &red::CHOKE,
    &sfb::SFB,
    &sfq::SFQ,
    &codel::CODEL,
    &codel::FQ_CODEL,
    &pie::PIE,
    &pie::FQ_PIE,
    &cake::CAKE,
    &dualpi2::DUALPI2,
    &flows::FQ,
    &flows::ETS,
    &flows::HHF,
    &gred::GRED,
    &shaper::TBF,
    &cbs::CBS,
    &shaper::NETEM,
    &shaper::HTB,
    &shaper::HFSC,
    &absent::MQPRIO,
    &absent::NOQUEUE,
    &absent::INGRESS,
    &absent::CLSACT,
    &absent::CBQ,
    &absent::DSMARK,
    &absent::ATM,
    &absent::BLACKHOLE,
    &absent::PLUG,
    &absent::ETF,
    &absent::TAPRIO,
];

/// Classes of classful qdiscs.
pub static CLASSES: &[&Kind] = &[
    &shaper::HTB_CLASS,
    &shaper::HFSC_CLASS,
    &fifo::DRR_CLASS,
    &qfq::QFQ_CLASS,
    &flows::ETS_CLASS,
];

/// Disciplines of this library that have another name in tc.
pub static NATIVE: &[(&str, &str)] = &[
    ("droptail", "pfifo"),
    ("fifo", "pfifo"),
    ("taildrop", "pfifo"),
    ("drop_tail", "pfifo"),
    ("ared", "red ... adaptive"),
    ("adaptive_red", "red ... adaptive"),
    ("fqcodel", "fq_codel"),
    ("fqpie", "fq_pie"),
    ("priority", "prio"),
    ("cobalt", "cake"),
];
