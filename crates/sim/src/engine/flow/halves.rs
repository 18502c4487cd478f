//! Flows whose endpoints are in different parts of a simulation: each part has a flow of which only
//! one endpoint is in use.

use super::{Endpoints, Flow, PathFeedback};
use crate::endpoint::ack_queue::AckQueue;
use crate::traffic::application::App;
use crate::traffic::transfer::{OpenRequest, Transfer};
use sojourn_aqm::Ecn;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

impl Flow {
    /// Flow in place of one of which no endpoint is here: nothing ever happens in it.
    pub fn absent() -> Flow {
        Flow {
            name: String::new(),
            group: 0,
            route: 0,
            direct_link: None,
            hash: 0,
            class: 0,
            ect: Ecn::NotEct,
            hosts: [0; 2],
            ack_ecn: Ecn::NotEct,
            feedback: PathFeedback::None,
            rtt: Span::ZERO,
            extra_delay: Span::ZERO,
            delayed_ack_lag: Span::ZERO,
            acks_cross_links: false,
            processes_early: false,
            inbox: VecDeque::new(),
            delivered: 0,
            received: 0,
            received_known: 0,
            later_totals: VecDeque::new(),
            acks: AckQueue::default(),
            connection: 0,
            next_action: Time::NEVER,
            stop: Time::NEVER,
            ends: Endpoints::Absent,
        }
    }

    /// True if no endpoint is here.
    pub fn is_absent(&self) -> bool {
        matches!(self.ends, Endpoints::Absent)
    }

    /// Divides the flow, whose acks cross links: returns one whose receiver is in use, and keeps
    /// the sender. [`Flow::unite`] reverts this.
    pub fn divide(&mut self) -> Flow {
        let mut half = self.clone();
        half.acks = AckQueue::default();
        half.next_action = Time::NEVER;
        if let Endpoints::Tcp(tcp) = &mut half.ends {
            tcp.sender.abort();
            if let App::Pooled(transfer) = &mut tcp.app {
                (transfer.busy, transfer.acked) = (false, false);
            }
        }
        self.inbox.clear();
        if let Endpoints::Tcp(tcp) = &mut self.ends {
            tcp.receiver.reset();
        }
        half
    }

    /// Takes the receiver back from `half`.
    pub fn unite(&mut self, half: Flow) {
        let startup = self.startup_of_transfer();
        let (Endpoints::Tcp(tcp), Endpoints::Tcp(of_half)) = (&mut self.ends, half.ends) else {
            return;
        };
        tcp.receiver = of_half.receiver;
        if let (App::Pooled(transfer), App::Pooled(of_half)) = (&mut tcp.app, of_half.app) {
            transfer.target = of_half.target;
            if transfer.target == u64::MAX {
                transfer.startup = startup;
            }
        }
        (self.inbox, self.received) = (half.inbox, half.received);
    }

    /// Prepares the receiver for a connection that the sender, elsewhere, has opened: for its
    /// request and target if the flow is pooled.
    pub fn open_receiver(
        &mut self,
        connection: u32,
        hash: u32,
        transfer: Option<(OpenRequest, u64)>,
    ) {
        (self.connection, self.hash) = (connection, hash);
        let Endpoints::Tcp(tcp) = &mut self.ends else { return };
        tcp.receiver.reset();
        if let (App::Pooled(current), Some((open, target))) = (&mut tcp.app, transfer) {
            **current = Transfer { target, busy: false, ..Transfer::new(open) };
        }
    }

    /// Transfer of a pooled flow.
    pub fn transfer(&self) -> Option<&Transfer> {
        match &self.ends {
            Endpoints::Tcp(tcp) => match &tcp.app {
                App::Pooled(transfer) => Some(transfer),
                _ => None,
            },
            _ => None,
        }
    }

    /// Time from the request of the transfer of a pooled flow until the first byte could be sent.
    pub fn startup_of_transfer(&self) -> Span {
        match (&self.ends, self.transfer()) {
            (Endpoints::Tcp(tcp), Some(transfer)) => {
                tcp.sender.established().since(transfer.open.requested_at)
            }
            _ => Span::ZERO,
        }
    }
}
