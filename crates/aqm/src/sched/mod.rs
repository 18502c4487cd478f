//! Schedulers: which queue sends next, and the disciplines made of them.

pub mod cake;
pub(crate) mod clocked;
pub mod curvy_red;
pub mod drop_tail;
pub mod drr;
pub mod dual;
pub mod dualpi2;
pub mod ewfq;
pub mod fair;
pub mod fq;
pub mod hold;
pub(crate) mod longest;
pub mod prio;
pub(crate) mod ring;
pub mod scfq;
pub mod scheduler;
pub mod sfq;
pub mod stfq;
pub(crate) mod tags;
pub(crate) mod tree;
pub mod wf2q;
pub mod wfq;
