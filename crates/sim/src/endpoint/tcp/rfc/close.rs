//! Packets of the `rfc` sender without payload: the ack of the handshake, the FIN, and the ack of
//! the receiver's FIN.
//!
//! **Source**: RFC 9293 §3.5 and §3.6; with `fin`, Linux 6.18 `tcp_rcv_synsent_state_process`,
//! `tcp_send_fin` and `tcp_fin`.
//!
//! **Rule** The FIN takes the sequence number after the data, so that it counts in the window, is
//! acknowledged, and is sent again like data. It is a packet of its own if all data was sent when
//! the application closed the connection; otherwise the last data carries it, which changes
//! nothing on the wire. The receiver answers the FIN with its own at once, as an application does
//! that reads until the end. Packets without payload are not ECN-capable (RFC 3168 §6.1.4), except
//! with controls that require ECN.
//!
//! **Departures**: the receiver's FIN is part of its ack, and is not sent again if the last ack is
//! lost. A stream without end that is stopped has no FIN.

use super::super::Segment;
use super::RfcSender;
use crate::endpoint::cc::CongestionControl;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::Time;

/// Progress of the end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
enum Progress {
    #[default]
    Open,
    /// The application has closed, and the connection is not established.
    Pending,
    /// The FIN has this sequence number, or is carried by the last data.
    Sent(Option<u64>),
    /// The receiver's FIN is acknowledged. The FIN had this sequence number.
    Ended(Option<u64>),
}

/// End of a connection, if it has packets without payload.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub(super) struct Closing {
    on: bool,
    progress: Progress,
}

impl Closing {
    /// Returns the state of a new connection.
    pub(super) fn new(on: bool) -> Closing {
        Closing { on, progress: Progress::Open }
    }

    /// True if the connection has packets without payload.
    pub(super) fn is_on(self) -> bool {
        self.on
    }

    /// Sequence number of the FIN, if it is a packet of its own.
    fn fin(self) -> Option<u64> {
        match self.progress {
            Progress::Sent(fin) | Progress::Ended(fin) => fin,
            Progress::Open | Progress::Pending => None,
        }
    }
}

impl<C: CongestionControl> RfcSender<C> {
    /// See [`super::super::Tcp::close`].
    pub fn close(&mut self, now: Time, out: &mut Vec<Segment>) {
        let Some(order) = self.rack.as_mut().filter(|order| order.closing.on) else { return };
        order.closing.progress = Progress::Pending;
        if self.snd_una > 0 {
            self.send_fin(now, out);
        }
    }

    /// Sends the FIN, if the application has closed the connection.
    pub(super) fn send_fin(&mut self, now: Time, out: &mut Vec<Segment>) {
        let pending = |closing: &Closing| closing.progress == Progress::Pending;
        let Some(order) = self.rack.as_mut().filter(|order| pending(&order.closing)) else {
            return;
        };
        let own_packet = self.snd_nxt == self.write_end;
        order.closing.progress = Progress::Sent(own_packet.then_some(self.write_end));
        if own_packet {
            self.write_end += 1;
            self.send(now, out);
        }
    }

    /// Makes the last segment of `out` a FIN, if `seq` is the sequence number of one.
    #[inline]
    pub(super) fn make_fin(&mut self, seq: u64, out: &mut [Segment]) {
        let fin = self.rack.as_ref().and_then(|order| order.closing.fin());
        if fin == Some(seq)
            && let Some(last) = out.last_mut()
        {
            self.cwr |= last.cwr; // for the next data
            self.stats.sent_packets -= 1;
            self.stats.retransmitted_packets -= u64::from(last.retransmission);
            let empty = self.without_payload(last.timestamp);
            let retransmission = last.retransmission;
            *last = Segment { len: 1, fin: true, push: true, retransmission, seq, ..empty };
        }
    }

    /// Sends the ack of the handshake.
    pub(super) fn acknowledge_syn(&mut self, now: Time, out: &mut Vec<Segment>) {
        if self.rack.as_ref().is_some_and(|order| order.closing.on) {
            out.push(self.without_payload(super::timestamp(now)));
        }
    }

    /// Acknowledges the receiver's FIN, which comes with the ack of everything.
    pub(super) fn acknowledge_fin(&mut self, now: Time, out: &mut Vec<Segment>) {
        let ended = self.snd_una >= self.write_end;
        let Some(order) = self.rack.as_mut().filter(|_| ended) else { return };
        if let Progress::Sent(fin) = order.closing.progress {
            order.closing.progress = Progress::Ended(fin);
            out.push(self.without_payload(super::timestamp(now)));
        }
    }

    /// True if a FIN of its own is acknowledged.
    pub(super) fn is_fin_acked(&self) -> bool {
        let fin = self.rack.as_ref().and_then(|order| order.closing.fin());
        fin.is_some_and(|fin| fin < self.snd_una)
    }

    /// Returns an ack of the sender.
    fn without_payload(&self, timestamp: u32) -> Segment {
        #[expect(clippy::cast_possible_truncation, reason = "a header is at most 1,000 bytes")]
        let wire_bytes = self.header_bytes as u16;
        let ect = self.ecn && self.control.reacts_to_mark_fraction();
        Segment { seq: self.snd_nxt, wire_bytes, timestamp, ect, ..Segment::default() }
    }
}
