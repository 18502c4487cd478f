//! The PSH flag as Linux sets it.
//!
//! **Source**: Linux 6.18 `net/ipv4/tcp_output.c` (`tcp_write_xmit`, `tcp_tso_autosize`): what the
//! window allows is sent in bursts, each of at most half a window and of what a pacer would send in
//! 1/1024 s, but of two segments if the window allows. The last segment of a burst has PSH, and so
//! has the last segment of the written data (`tcp_push`). Receivers since Linux 6.6 acknowledge it
//! at once.

use super::super::Segment;
use super::RfcSender;
use crate::endpoint::cc::CongestionControl;
use sojourn_aqm::cast;

impl<C: CongestionControl> RfcSender<C> {
    /// Sets PSH on the last segment of each burst in `out` and of the written data; other single
    /// segments do not have it.
    #[cold]
    pub(super) fn set_push(&self, out: &mut [Segment]) {
        let most = self.burst();
        let mut run = 0;
        for i in 0..out.len() {
            let end = out[i].seq + u64::from(out[i].len);
            let data = |s: &Segment| !s.syn && !s.retransmission;
            let goes_on = out.get(i + 1).is_some_and(|next| next.seq == end);
            run = if data(&out[i]) { run + 1 } else { 0 };
            if !goes_on || run == most {
                out[i].push = run > 1;
                run = 0;
            }
            out[i].push |= !out[i].syn && end == self.write_end;
        }
    }

    /// Largest burst, segments.
    fn burst(&self) -> u64 {
        let w = &self.window;
        let half = (w.cwnd / w.mss / 2).max(1);
        let Some(srtt) = self.rtt.srtt() else { return half };
        let gain = if w.cwnd < w.ssthresh / 2 { 2.0 } else { 1.2 };
        let bytes = cast::trunc(gain * w.cwnd as f64 / srtt.as_secs() / 1024.0);
        half.min((bytes / w.mss).max(2))
    }
}
