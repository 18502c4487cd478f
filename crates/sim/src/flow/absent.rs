//! Flows that leave, and flows of which nothing is on its way.

use super::{App, Ends, Flow};
use sojourn_aqm::units::Time;

impl Flow {
    /// Leaves at `now`, at once: nothing is sent from then on, what is on its way to either end is
    /// ignored, and what was not received stays so. Datagrams that are on their way arrive.
    pub fn leave(&mut self, now: Time) {
        self.look(Time(now.0.saturating_sub(1)));
        (self.due, self.stop) = (Time::NEVER, self.stop.min(now));
        if let Ends::Tcp(tcp) = &mut self.ends {
            let delivered = self.delivered;
            self.later.iter_mut().for_each(|l| l.1 = delivered);
            self.connection += 1;
            tcp.sender.abort();
            tcp.receiver.reset();
            tcp.completions.retain(|c| c.start + c.took < now);
            if let App::Lent(told) = &mut tcp.app {
                (told.received, told.acked, told.busy) = (None, false, false);
            }
        }
    }

    /// Whether something is unacknowledged and nothing of the connection is on its way but what is
    /// `on_links`: then only the retransmission timer can help.
    pub fn stalled(&self, on_links: bool) -> bool {
        let Ends::Tcp(tcp) = &self.ends else { return false };
        let outstanding = tcp.sender.timer() < Time::NEVER && !tcp.sender.done();
        let arrives = || self.inbox.iter().any(|(_, of, _)| *of == self.connection);
        let answers = || tcp.receiver.timer() < Time::NEVER || self.acks.any_of(self.connection);
        outstanding && !on_links && !answers() && !arrives()
    }
}
