//! Names that most programs need: `use sojourn_sim::prelude::*;`.

pub use crate::config::{
    Distribution, FlowBuilder, LinkBuilder, LinkChange, LinkProcess, LinkTrace, LossModel,
};
pub use crate::tcp::TcpParams;
pub use crate::traffic::{Bulk, Call, Cbr, Incast, OnOff, Poisson, Sessions, Source, Transfers};
pub use crate::traffic::{Video, Web};
pub use crate::{
    Column, Outcome, Progress, Registries, Scenario, Simulation, run, run_with_progress,
};
pub use sojourn_aqm::{Bytes, Rate, Size, Span, Time};
