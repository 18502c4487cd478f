//! Leaving flows, and detection of stalled flows.

use super::{ArrivedPacket, Endpoints, Flow};
use crate::traffic::application::App;
use sojourn_aqm::units::Time;

impl Flow {
    /// Leave at `now`: nothing is sent from then on, packets in flight to either end are ignored,
    /// and unreceived data stays undelivered. Datagrams in flight still arrive.
    pub fn leave(&mut self, now: Time) {
        self.advance_totals(Time(now.0.saturating_sub(1)));
        (self.next_action, self.stop) = (Time::NEVER, self.stop.min(now));
        if let Endpoints::Tcp(tcp) = &mut self.ends {
            let delivered = self.delivered;
            self.later_totals.iter_mut().for_each(|l| l.1 = delivered);
            self.connection += 1;
            tcp.sender.abort();
            tcp.receiver.reset();
            tcp.completions.retain(|c| c.start + c.duration < now);
            if let App::Pooled(transfer) = &mut tcp.app {
                (transfer.received, transfer.acked, transfer.busy) = (None, false, false);
            }
            if let App::Video(player) = &mut tcp.app {
                player.leave(now);
            }
        }
    }

    /// True if data is unacknowledged and no packet of the connection is in flight, given that none
    /// is on links unless `on_links`. Only the retransmission timer can then continue the transfer.
    pub fn stalled(&self, on_links: bool) -> bool {
        let Endpoints::Tcp(tcp) = &self.ends else { return false };
        let outstanding = tcp.sender.next_timer() < Time::NEVER && !tcp.sender.is_done();
        let arrives = || {
            self.inbox.iter().any(|(_, of, packet)| {
                let answered = !matches!(packet, ArrivedPacket::Segment(s, _) if s.is_pure_ack());
                answered && *of == self.connection
            })
        };
        let answers = || tcp.receiver.timer() < Time::NEVER || self.acks.contains(self.connection);
        outstanding && !on_links && !answers() && !arrives()
    }
}
