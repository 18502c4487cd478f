//! F-RTO: after a timeout, new data is sent before lost data is, so that the next acks show whether
//! the timeout was justified.
//!
//! **Source**: RFC 5682 §3.1 (SACK-enhanced); Linux `tcp_process_loss`.

use super::super::Ack;
use super::RfcSender;
use super::rack::Delivery;
use crate::endpoint::cc::CongestionControl;

impl<C: CongestionControl> RfcSender<C> {
    /// Processes an ack in state Loss; `duplicate` is true for a duplicate ack without DSACK.
    pub(super) fn try_frto(&mut self, ack: &Ack, delivery: &Delivery, duplicate: bool) {
        let Some(order) = self.rack.as_mut().filter(|order| order.frto.undecided) else { return };
        let (advanced, ends) = (ack.ack > self.snd_una, ack.ack >= self.recover);
        if delivery.original {
            // Step 3 (b): data that was not retransmitted has arrived.
            order.frto.undecided = false;
            self.undo_reduction(true, false);
        } else if self.snd_nxt > self.recover {
            // Step 3 (a): the answer to new data shows that the timeout was justified.
            order.frto.undecided &= !delivery.sacked && !duplicate;
        } else if advanced && !ends {
            // Step 2 (b).
            self.recover = self.snd_nxt;
            let more = self.write_end > self.snd_nxt && self.snd_nxt < ack.ack + self.rwnd;
            (order.frto.undecided, order.frto.new_first) = (more, more);
        }
    }
}
