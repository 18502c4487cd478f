//! What the sender of profile `rfc` tells a control that asks for more than acks and losses.
//!
//! **Source**: [`Control`]. A control without hooks has none of this in its code.

use super::Ack;
use super::params::Recovery;
use super::rfc::Rfc;
use crate::cc::{Control, Settled};
use sojourn_aqm::units::Time;

impl<C: Control> Rfc<C> {
    /// Before anything is made of an ack: what it echoes, and what it says the receiver has.
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

    /// After everything was made of an ack.
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

    /// Before anything is sent: whether there is anything to send at all.
    pub(super) fn note_starved(&mut self) {
        self.control.unblock();
        if self.una > 0 && self.nxt >= self.end {
            let flight = self.in_network();
            if flight < self.window.cwnd {
                self.control.starved(flight);
            }
        }
    }

    /// Bytes believed to be in the network.
    pub(super) fn in_network(&self) -> u64 {
        match (self.recovery, &self.order) {
            (_, Some(order)) => self.nxt - self.una - self.board.covered() - order.lost_bytes(),
            (Recovery::Sack, None) => self.board.pipe(self.una, self.nxt, self.lost()),
            (_, None) => self.nxt - self.una,
        }
    }
}
