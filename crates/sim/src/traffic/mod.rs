//! Traffic sources: when an application sends, and how much.
//!
//! [`Source`] is a source with its parameters; [`SOURCES`] lists all by name. A source of another
//! crate implements [`ExternalArrivals`] and is found by
//! [`Registries::with_sources`](crate::Registries::with_sources).

pub(crate) mod application;
pub(crate) mod call;
pub(crate) mod cluster;
pub(crate) mod external;
pub(crate) mod on_off;
pub(crate) mod pacing;
pub(crate) mod packet_trace;
pub(crate) mod session_params;
pub(crate) mod source;
pub(crate) mod transfer;
pub(crate) mod video;

pub use call::Call;
pub use cluster::Cluster;
pub use external::{
    ExternalArrivals, ExternalSource, ExternalSourceMaker, ExternalTimes, FindExternalSource,
};
pub use on_off::OnOff;
pub use packet_trace::{PacketTrace, TraceParams, TraceRow};
pub use session_params::{CompletionRule, Incast, Poisson, Sessions, Web};
pub use source::{Bulk, Cbr, SOURCES, Source, SourceEntry, Transfers};
pub use video::Video;
