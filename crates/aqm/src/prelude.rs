//! Names that most programs need: `use sojourn_aqm::prelude::*;`.

pub use crate::aqm::{Aqm, SingleQueue, Verdict};
pub use crate::build::{Build, Builder, Env};
pub use crate::context::Context;
pub use crate::fifo::QueueView;
pub use crate::link::{Link, LinkSpec};
pub use crate::packet::{Ecn, Packet};
pub use crate::params::{Checked, Params, Setting};
pub use crate::qdisc::Qdisc;
pub use crate::registry::{QdiscEntry, Registry};
pub use crate::snapshot::Snapshot;
pub use crate::units::{Bytes, Rate, Size, Span, Time};
