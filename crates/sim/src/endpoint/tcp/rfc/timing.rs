//! Round-trip times of the `rfc` sender without samples per ack: one segment of new data is timed
//! at once, so that there is a sample per round trip.
//!
//! **Source**: RFC 6298 §3 with Karn's algorithm: a segment that was retransmitted gives no sample.
//!
//! **Rule**: the first new segment after a sample is timed, also during loss recovery. With SACK
//! the sample ends with the selective ack. A retransmission that covers the timed segment cancels
//! its timing, and so does a timeout. Without SACK, a segment that is timed during recovery is
//! acknowledged at the end of recovery, so that its sample contains the rest of it, as in BSD.

use super::RfcSender;
use crate::endpoint::cc::CongestionControl;
use sojourn_aqm::units::Time;

impl<C: CongestionControl> RfcSender<C> {
    /// Ends the timing of the timed segment, if the receiver holds it above missing data. The
    /// cumulative ack would add the time of the recovery to the sample.
    pub(super) fn sample_selective(&mut self, now: Time) {
        let board = &self.scoreboard;
        let timed = self.rtt_segment.take_if(|&mut (end, _)| board.around(end - 1).is_some());
        if let Some((_, sent)) = timed {
            self.rtt.sample(now - sent);
        }
    }

    /// Cancels the timing of the timed segment, if the retransmission of `seq..end` covers a part
    /// of it.
    pub(super) fn cancel_timing(&mut self, seq: u64, end: u64) {
        let mss = self.window.mss;
        self.rtt_segment.take_if(|&mut (timed, _)| seq < timed && timed < end + mss);
    }
}
