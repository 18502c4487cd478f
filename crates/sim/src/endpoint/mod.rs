//! Transport protocols at the two ends of a path.

pub(crate) mod ack_queue;
pub mod call;
pub mod cc;
pub mod common_params;
pub mod gcc;
pub mod tcp;
pub mod udp;
