//! Pooled flows of a session group: each carries one transfer after the other, on request.

use super::{Endpoints, Flow, Outbox, TcpEndpoints, hash_of_connection};
use crate::config::flows::FlowConfig;
use crate::random_stream::random_stream;
use crate::traffic::application::App;
use crate::traffic::transfer::OpenRequest;
use crate::traffic::transfer::Transfer;
use sojourn_aqm::random;
use sojourn_aqm::units::{Span, Time};

impl Flow {
    /// Creates a pooled flow for host `i` of a session group: the `n`-th one for answers or, with
    /// `request`, for requests. Its RTT and its hash have the seed of the start, the first
    /// one, and its sender has the current one.
    pub fn pooled(
        def: &FlowConfig,
        group: usize,
        (i, n, request): (u64, u32, bool),
        of_links: Span,
        [seed, current]: [u64; 2],
    ) -> Flow {
        let kind = if request { "requests" } else { "answers" };
        let key = format!("flows.{}.{kind}.{n}", def.flow_name(i));
        let transfer = Transfer {
            open: OpenRequest::default(),
            target: 0,
            received: None,
            startup: Span::ZERO,
            acked: false,
            busy: false,
        };
        let app = App::Pooled(Box::new(transfer));
        let rtt = || Flow::rtt_of(def, i, of_links, seed);
        let mut rng = random_stream(current, &format!("{key}.tcp"));
        let ends = TcpEndpoints::new(def, rtt, app, &mut rng);
        let mut flow =
            Flow::from_parts(def, group, i, of_links, seed, Time::NEVER, Endpoints::Tcp(ends));
        let hash = random::stream_key(seed, &format!("{key}.hash"));
        flow.hash = u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]);
        if request {
            flow.hosts.reverse();
        }
        let back = &def.routes[def.route_index(i)][usize::from(!request)];
        flow.acks_cross_links = !back.is_empty();
        flow.processes_early = back.is_empty();
        flow.delayed_ack_lag = if back.is_empty() { flow.extra_delay } else { Span::ZERO };
        flow
    }

    /// Starts a transfer, on a new connection or, if `open.keep` is set, on the existing one.
    pub fn start_transfer(&mut self, now: Time, open: OpenRequest, out: &mut Outbox) {
        let Endpoints::Tcp(tcp) = &mut self.ends else { return };
        let App::Pooled(transfer) = &mut tcp.app else { return };
        if !open.reuse_connection || self.connection == 0 {
            self.connection += 1;
            self.hash = hash_of_connection(self.hash, self.connection);
            tcp.receiver.reset();
            tcp.sender.open(now, &mut out.segments);
        }
        let target = tcp.receiver.received_in_connection() + open.bytes;
        **transfer = Transfer {
            open,
            target,
            received: None,
            startup: Span::ZERO,
            acked: false,
            busy: true,
        };
        tcp.sender.write(now, open.bytes, &mut out.segments);
        if !open.reuse_connection {
            tcp.sender.close(now, &mut out.segments);
        }
    }

    /// Transfer with news for the session group, if there is one.
    pub fn pending_transfer(&mut self) -> Option<&mut Transfer> {
        let Endpoints::Tcp(tcp) = &mut self.ends else { return None };
        let App::Pooled(transfer) = &mut tcp.app else { return None };
        (transfer.received.is_some() || transfer.acked).then_some(transfer)
    }
}
