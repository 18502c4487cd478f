//! Completed transfers, and transfers between a session group, which requests them, and the pooled
//! flow that carries them.

use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};

/// Completed transfer.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub struct Completion {
    /// Start time.
    pub start: Time,
    /// Duration until the last byte was received in order.
    pub duration: Span,
    /// Duration until the first byte could be sent.
    pub startup: Span,
    /// Payload, bytes.
    pub bytes: u64,
}

/// Connection to be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct OpenRequest {
    /// Member of the group that sends (for a request: that is asked).
    pub host: u32,
    /// Payload, bytes.
    pub bytes: u64,
    /// Identifier within the session group.
    pub id: u32,
    /// Start of the user's wait.
    pub requested_at: Time,
    /// True for a request, which crosses the return path.
    pub request: bool,
    /// True if an existing connection is reused.
    pub reuse_connection: bool,
}

/// Transfer that a session group requested from a flow, and its progress.
#[derive(Clone, Copy, Debug, Snapshot)]
pub struct Transfer {
    /// The request.
    pub open: OpenRequest,
    /// Payload received in this connection once the transfer is complete, bytes.
    pub(crate) target: u64,
    /// Time of the last byte's arrival, possibly in the future; the session group takes it.
    pub received: Option<Time>,
    /// Time from the request until the first byte could be sent; set on reception.
    pub startup: Span,
    /// True if all data is acknowledged and the session group has not been notified.
    pub acked: bool,
    pub(crate) busy: bool,
}

impl Transfer {
    /// Creates the record of a transfer that has just started.
    pub fn new(open: OpenRequest) -> Transfer {
        let (target, startup) = (u64::MAX, Span::ZERO);
        Transfer { open, target, received: None, startup, acked: false, busy: true }
    }
}
