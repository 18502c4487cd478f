//! The type of neqo-transport that the adapter uses, for its test.

use neqo_common::Datagram;
use std::time::Duration;

/// Result of processing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Nothing to do.
    None,
    /// A datagram for the next node.
    Datagram(Datagram),
    /// Process again after this time.
    Callback(Duration),
}
