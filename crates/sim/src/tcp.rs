//! TCPs: parameters, congestion controls, and controls of another crate.
//!
//! [`TcpParams`] is a TCP with its parameters: [`CommonParams`], which every TCP has, and the
//! parameters of its congestion control, [`ControlParams`]. [`TCPS`] lists all by name, and
//! [`parse`] reads the text form. A control of another crate implements [`ExternalControl`] and is
//! found by [`Registries::with_controls`](crate::Registries::with_controls).
//!
//! ```
//! use sojourn_sim::tcp::{CommonParams, ControlParams, CubicParams, TcpParams};
//!
//! let common = CommonParams { ecn: Some(true), ..CommonParams::default() };
//! let cubic = ControlParams::Cubic(CubicParams { beta: 0.8, ..CubicParams::default() });
//! assert_eq!(TcpParams::new("cubic", common, Some(cubic))?.name(), "cubic");
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```

pub use crate::endpoint::cc::bbr::BbrVariant;
pub use crate::endpoint::cc::bbr3::Bbr3Variant;
pub use crate::endpoint::cc::cubic::CubicVariant;
pub use crate::endpoint::cc::dcqcn::DcqcnVariant;
pub use crate::endpoint::cc::params::*;
pub use crate::endpoint::cc::powertcp::PowerTcpVariant;
pub use crate::endpoint::cc::reno::RenoVariant;
pub use crate::endpoint::cc::{
    CongestionSignal, ControlParams, ExternalControl, ExternalMaker, FindExternalControl,
    MarkedAck, NewDataAck, ProcessedAck, RatedAck, RecoveryState, TCPS, TcpEntry, TelemetryAck,
    Window,
};
pub use crate::endpoint::common_params::{CommonParams, EcnFeedback, LossRecovery, Profile};
pub use crate::endpoint::tcp::{TcpParams, parse, parse_with};
pub use crate::endpoint::telemetry::HOPS_MAX as TELEMETRY_LINKS;
