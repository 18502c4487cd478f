//! The PSH flag as Linux sets it.
//!
//! **Source**: Linux 6.18 `net/ipv4/tcp_output.c` (`tcp_write_xmit`, `tcp_tso_autosize`): what the
//! window allows is sent in bursts (`cc/bursts.rs`). The last segment of a burst has PSH, and so
//! has the last segment of the written data (`tcp_push`). Receivers since Linux 6.6 acknowledge it
//! at once.

use super::super::Segment;
use super::RfcSender;
use crate::endpoint::cc::CongestionControl;

impl<C: CongestionControl> RfcSender<C> {
    /// Sets PSH on the last segment of each burst in `out` and of the written data; other single
    /// segments do not have it.
    #[cold]
    pub(super) fn set_push(&self, out: &mut [Segment]) {
        let min_rtt = self.rack.as_ref().and_then(|order| order.min_rtt());
        let most = self.control.burst(&self.window, self.rtt.srtt(), min_rtt);
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
}
