//! Hooks of the `rfc` sender for congestion controls that need more than acks and losses, see
//! [`Control`]. Not compiled in for a control without hooks.

use super::Ack;
use super::params::Recovery;
use super::rfc::Rfc;
use crate::cc::{Control, Settled};
use sojourn_aqm::units::Time;

impl<C: Control> Rfc<C> {
    /// Report the ECN echo and newly delivered data of an ack, before it is processed.
    pub(super) fn tell_of(&mut self, now: Time, ack: &Ack) {
        if ack.ack < self.una {
            return;
        }
        self.control.echoed(ack.ack, ack.ack - self.una, ack.ece && self.ecn, self.nxt);
        if !self.control.follows_delivery() {
            return;
        }
        let Rfc { board, control, una, .. } = self;
        board.lacked(*una, ack.ack, |from, to| control.delivered(now, from, to));
        if self.recovery == Recovery::Sack {
            for &(start, end) in &ack.sacks[..usize::from(ack.blocks)] {
                let start = start.max(ack.ack);
                self.board.lacked(start, end, |from, to| self.control.delivered(now, from, to));
            }
        }
    }

    /// Report the state after an ack was processed.
    pub(super) fn settle(&mut self, now: Time) {
        if !self.control.follows_delivery() {
            return;
        }
        let settled = Settled {
            now,
            delivered: self.una - 1 + self.board.covered(),
            flight: self.in_network(),
            srtt: self.rtt.srtt(),
            state: self.state,
        };
        self.control.settled(&mut self.window, &settled);
    }

    /// Report if the application limits sending, before anything is sent.
    pub(super) fn note_starved(&mut self) {
        self.control.unblock();
        if self.una > 0 && self.nxt >= self.end {
            let flight = self.in_network();
            if flight < self.window.cwnd {
                self.control.starved(flight);
            }
        }
    }

    /// Estimate of the bytes in the network.
    pub(super) fn in_network(&self) -> u64 {
        match (self.recovery, &self.order) {
            (_, Some(order)) => self.nxt - self.una - self.board.covered() - order.lost_bytes(),
            (Recovery::Sack, None) => self.board.pipe(self.una, self.nxt, self.lost()),
            (_, None) => self.nxt - self.una,
        }
    }
}
