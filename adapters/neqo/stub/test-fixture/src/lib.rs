//! The trait of neqo's simulator that the adapter implements, for its test.

/// Simulator.
pub mod sim {
    use neqo_common::Datagram;
    use neqo_transport::Output;
    use std::fmt::Debug;
    use std::time::Instant;

    /// Part of a ring, which passes datagrams to the next part.
    pub trait Node: Debug {
        /// Takes a datagram of the node before, and returns one, or the time to wait.
        fn process(&mut self, datagram: Option<Datagram>, now: Instant) -> Output;

        /// Called when all nodes are set up.
        fn prepare(&mut self, _now: Instant) {}

        /// True if the simulation may end.
        fn done(&self) -> bool {
            true
        }

        /// Prints a summary.
        fn print_summary(&self, _test_name: &str) {}
    }
}
