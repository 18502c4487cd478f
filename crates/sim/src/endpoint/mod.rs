//! Transport protocols at the two ends of a path.

pub(crate) mod ack_queue;
pub(crate) mod call;
pub(crate) mod cc;
pub(crate) mod common_params;
pub(crate) mod gcc;
pub mod tcp;
pub(crate) mod telemetry;
pub(crate) mod udp;
