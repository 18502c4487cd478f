//! Applications: when they send, and how much.

pub mod call;
pub mod external;
pub mod on_off;
pub(crate) mod pacing;
pub mod packet_trace;
pub mod session_params;
pub mod source;
pub mod video;
