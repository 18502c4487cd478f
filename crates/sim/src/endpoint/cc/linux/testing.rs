//! Acks for the tests of controls.

use super::{Acked, Segments, State};

/// Ack of one segment of 1000 bytes at `now` ms, with a round-trip time of `rtt_us`, in a window
/// that was full.
pub(crate) fn acked(now: u64, rtt_us: u64) -> Acked {
    Acked {
        now,
        now_us: 1_000 * now,
        segments: 1,
        rtt_us: Some(rtt_us),
        srtt_8us: 8 * rtt_us,
        delivered: 1_000,
        bytes: 1_000,
        una: 1,
        next: 1,
        mss: 1_000,
        sacked: false,
        full: true,
        state: State::Open,
    }
}

/// Window of `cwnd` segments with a threshold of `ssthresh`.
pub(crate) fn window(cwnd: u64, ssthresh: u64) -> Segments {
    Segments { cwnd, ssthresh, cnt: 0 }
}
