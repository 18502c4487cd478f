//! Arrivals at the far end of a flow, and totals of delivered and received bytes.

use super::{ArrivedPacket, Endpoints, Flow, Outbox};
use crate::endpoint::tcp::Segment;
use sojourn_aqm::units::Time;

impl Flow {
    /// Schedules an arrival at the far end at `at`, not earlier than in the previous call.
    /// Returns the time at which the flow must be woken for it.
    pub fn schedule_arrival(&mut self, at: Time, connection: u32, arrival: ArrivedPacket) -> Time {
        self.inbox.push_back((at, connection, arrival));
        at
    }

    /// As [`Flow::schedule_arrival`] for a segment, which the receiver processes ahead of time if
    /// it can. `look` is the time of the next sample.
    #[inline]
    pub fn schedule_segment(
        &mut self,
        at: Time,
        connection: u32,
        segment: &Segment,
        ce: bool,
        look: Time,
    ) -> Time {
        if !self.processes_early {
            return self.schedule_arrival(at, connection, ArrivedPacket::Segment(*segment, ce));
        }
        if connection == self.connection {
            self.receive_ahead(at, segment, ce, look);
            return self.next_ack_time();
        }
        // Packets of an earlier connection still count as received.
        let delivered = self.later_totals.back().map_or(self.delivered, |l| l.1);
        self.count_received(at, delivered, segment.wire_bytes.into(), look);
        Time::NEVER
    }

    /// Lets the receiver process a segment that arrives at `at`, if it may do so ahead of time; not
    /// earlier than in the previous call. `look` is the time of the next sample.
    #[inline(always)]
    pub fn receive_ahead(&mut self, at: Time, segment: &Segment, ce: bool, look: Time) {
        let Endpoints::Tcp(tcp) = &mut self.ends else { return };
        // The acks have one constant delay, so they stay in order.
        let timer = tcp.receiver.timer();
        if timer < at
            && let Some(ack) = tcp.receiver.on_timer(timer)
        {
            self.acks.push(timer + self.extra_delay, self.connection, ack);
        }
        if let Some(ack) = tcp.receiver.before_segment(segment, ce) {
            self.acks.push(at + self.extra_delay, self.connection, ack);
        }
        if let Some(ack) = tcp.receive(at, segment, ce) {
            self.acks.push(at + self.extra_delay, self.connection, ack);
        }
        let delivered = tcp.receiver.delivered_bytes();
        self.count_received(at, delivered, segment.wire_bytes.into(), look);
    }

    /// Counts a segment of `bytes` bytes received at `at`; `delivered` bytes of payload were
    /// delivered by then.
    #[inline]
    fn count_received(&mut self, at: Time, delivered: u64, bytes: u32, look: Time) {
        self.received_known += u64::from(bytes);
        if at < look {
            // Rarely anything is left of a time before the last sample.
            if !self.later_totals.is_empty() {
                self.later_totals.clear();
            }
            (self.delivered, self.received) = (delivered, self.received_known);
        } else {
            self.later_totals.push_back((at, delivered, self.received_known));
        }
    }

    /// Arrivals in the inbox that are due by `now`: time, connection and packet.
    pub fn arrivals_due(&self, now: Time) -> impl Iterator<Item = &(Time, u32, ArrivedPacket)> {
        self.inbox.iter().take_while(move |arrival| arrival.0 <= now)
    }

    /// Processes the first arrival of the inbox.
    pub(super) fn process_arrival(&mut self, out: &mut Outbox) {
        let Some((at, connection, arrival)) = self.inbox.pop_front() else { return };
        self.received += match arrival {
            ArrivedPacket::Segment(segment, _) => u64::from(segment.wire_bytes),
            ArrivedPacket::Datagram(datagram) => u64::from(datagram.len),
        };
        match (&mut self.ends, arrival) {
            (Endpoints::Tcp(tcp), ArrivedPacket::Segment(segment, ce))
                if connection == self.connection =>
            {
                out.acks.extend(tcp.receiver.before_segment(&segment, ce));
                out.acks.extend(tcp.receive(at, &segment, ce));
            }
            (Endpoints::Udp(udp), ArrivedPacket::Datagram(datagram)) => {
                // A receiver reports only as long as its sender takes part.
                let report = udp.receive(at, &datagram).filter(|_| at < self.stop);
                match report {
                    Some(report) if self.acks_cross_links => out.reports.push(report),
                    Some(report) => udp.schedule_report(at + self.extra_delay, report),
                    None => {}
                }
            }
            _ => {} // packet of an earlier connection
        }
    }

    /// Advances the totals of delivered and received bytes to `now`.
    pub fn advance_totals(&mut self, now: Time) {
        while let Some((_, delivered, received)) = self.later_totals.front().filter(|l| l.0 <= now)
        {
            (self.delivered, self.received) = (*delivered, *received);
            self.later_totals.pop_front();
        }
    }

    /// Payload delivered in order since the start, bytes; duplicates count once.
    pub fn delivered_bytes(&self) -> u64 {
        match &self.ends {
            Endpoints::Tcp(_) if self.processes_early => self.delivered,
            Endpoints::Tcp(tcp) => tcp.receiver.delivered_bytes(),
            Endpoints::Udp(udp) => udp.delivered_bytes,
            Endpoints::Absent => 0,
        }
    }

    /// Bytes on the wire received since the start, including headers, duplicates and packets of
    /// earlier connections.
    pub fn received_bytes(&self) -> u64 {
        self.received
    }
}
