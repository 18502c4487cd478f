//! Flows that are lent to crowds: one transfer after the other, each when it is asked for.

use super::{App, Ends, Flow, Outbox, TcpEnds, stream};
use crate::crowd::Open;
use crate::scenario::FlowDef;
use sojourn_aqm::cast;
use sojourn_aqm::dice;
use sojourn_aqm::units::{Span, Time};

/// A transfer that a crowd has asked a flow for, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// What was asked for.
    pub open: Open,
    /// What the receiver will have got in this connection when it has all.
    pub(super) target: u64,
    /// When the last byte was, or will be, received; the crowd takes it.
    pub received: Option<Time>,
    /// How long it took, once received, until its first byte could be sent.
    pub startup: Span,
    /// Whether it is all acknowledged and that has not been told yet.
    pub acked: bool,
    pub(super) busy: bool,
}

impl Told {
    /// A transfer of which nothing is known yet.
    pub fn new(open: Open) -> Told {
        let (target, startup) = (u64::MAX, Span::ZERO);
        Told { open, target, received: None, startup, acked: false, busy: true }
    }
}

impl Flow {
    /// A flow that is lent to a crowd for its host `i`: the `n`-th one made for answers or, with
    /// `request`, for requests.
    pub fn lent(
        def: &FlowDef,
        group: usize,
        (i, n, request): (u64, u32, bool),
        of_links: Span,
        seed: u64,
    ) -> Flow {
        let kind = if request { "requests" } else { "answers" };
        let key = format!("flows.{}.{kind}.{n}", def.name_of(i));
        let told = Told {
            open: Open::default(),
            target: 0,
            received: None,
            startup: Span::ZERO,
            acked: false,
            busy: false,
        };
        let app = App::Lent(Box::new(told));
        let ends = TcpEnds::new(def, app, &mut stream(seed, &format!("{key}.tcp")));
        let mut flow = Flow::with(def, group, i, of_links, seed, Time::NEVER, Ends::Tcp(ends));
        let hash = dice::key(seed, &format!("{key}.hash"));
        flow.hash = u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]);
        let back = &def.routes[def.route_of(i)][usize::from(!request)];
        flow.acks_cross_links = !back.is_empty();
        flow.early = back.is_empty();
        flow
    }

    /// Begins the transfer that a crowd asks for, on a fresh connection or, where that is asked
    /// for and there is one, on the last.
    pub fn begin_transfer(&mut self, now: Time, open: Open, out: &mut Outbox) {
        let Ends::Tcp(tcp) = &mut self.ends else { return };
        let App::Lent(told) = &mut tcp.app else { return };
        if !open.keep || self.connection == 0 {
            self.connection += 1;
            // A connection has ports of its own.
            self.hash =
                cast::low32(dice::mix(u64::from(self.hash) << 32 | u64::from(self.connection)));
            tcp.receiver.reset();
            tcp.sender.open(now, &mut out.segments);
        }
        let target = tcp.receiver.received_in_connection() + open.bytes;
        **told =
            Told { open, target, received: None, startup: Span::ZERO, acked: false, busy: true };
        tcp.sender.write(now, open.bytes, &mut out.segments);
    }

    /// What there is to tell a crowd: a transfer whose end was not told yet.
    pub fn told(&mut self) -> Option<&mut Told> {
        let Ends::Tcp(tcp) = &mut self.ends else { return None };
        let App::Lent(told) = &mut tcp.app else { return None };
        (told.received.is_some() || told.acked).then_some(told)
    }
}
