//! s2n-quic in virtual time: a network for the testing provider of s2n-quic, whose queue is a link
//! of sojourn.
//!
//! The provider has a model with jitter and losses, but without a queue. A [`Bottleneck`] replaces
//! it: datagrams to servers share one link, datagrams from servers another.

use s2n_quic::provider::io::testing::network::{Buffers, Network, Packet as Datagram};
use s2n_quic::provider::io::testing::{spawn, time};
use s2n_quic::provider::tls::Provider;
use s2n_quic_core::crypto::tls::null;
use s2n_quic_core::inet::ExplicitCongestionNotification;
use s2n_quic_core::time::Timestamp;
use sojourn_aqm::{Ecn, FiveTuple, Packet, Result, Span, Time, TimedLink};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Headers of IPv4 and UDP, bytes.
const HEADERS: u32 = 28;

/// Link with the time of its scheduled poll.
struct Direction {
    link: TimedLink<Datagram>,
    wakes: Option<Time>,
}

/// Two links between hosts of s2n-quic, one per direction. A copy refers to the same links.
#[derive(Clone)]
pub struct Bottleneck {
    directions: Arc<[Mutex<Direction>; 2]>,
    is_server: fn(SocketAddr) -> bool,
    /// Time of the executor that is 0 for the links.
    start: Arc<OnceLock<Timestamp>>,
}

impl Bottleneck {
    /// Creates a network: `links[0]` is for datagrams to servers, `links[1]` for those from
    /// servers. `is_server` recognises the address of a server.
    pub fn new(links: [TimedLink<Datagram>; 2], is_server: fn(SocketAddr) -> bool) -> Bottleneck {
        let directions = links.map(|link| Mutex::new(Direction { link, wakes: None }));
        Bottleneck { directions: Arc::new(directions), is_server, start: Arc::default() }
    }

    /// Calls `work` with a link: to read its counters, or to change it.
    pub fn with_link<R>(
        &self,
        number: usize,
        work: impl FnOnce(Time, &mut TimedLink<Datagram>) -> R,
    ) -> R {
        work(self.now(), &mut self.lock(number).link)
    }

    /// Current time of the links, 0 at the first call.
    fn now(&self) -> Time {
        let (now, start) = (time::now(), self.start.get_or_init(time::now));
        Time::ZERO + Span::from(now.saturating_duration_since(*start))
    }

    fn lock(&self, number: usize) -> MutexGuard<'_, Direction> {
        self.directions[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers what has arrived over a link, and schedules the next poll.
    fn poll(&self, number: usize, buffers: &Buffers) -> Result<()> {
        let mut direction = self.lock(number);
        while let Some(delivery) = direction.link.poll(self.now())? {
            let mut datagram = delivery.body;
            datagram.ecn = ExplicitCongestionNotification::new(delivery.packet.ecn.bits());
            datagram.switch(); // the receiver's address becomes the local one
            buffers.rx(*datagram.path.local_address, |queue| queue.enqueue(datagram));
        }
        let next = direction.link.next_poll();
        if next.is_some_and(|at| direction.wakes.is_none_or(|wakes| at < wakes)) {
            direction.wakes = next;
            let (network, buffers) = (self.clone(), buffers.clone());
            spawn(async move { network.wake(number, next, &buffers).await });
        }
        Ok(())
    }

    /// Polls a link at `at`, unless it is polled earlier.
    async fn wake(self, number: usize, at: Option<Time>, buffers: &Buffers) {
        let Some(due) = at else { return };
        // The executor counts microseconds. A late poll changes no decision of a link.
        time::delay(Duration::from_micros(due.since(self.now()).0.div_ceil(1000))).await;
        let is_next = self.lock(number).wakes == at;
        if is_next {
            self.lock(number).wakes = None;
            self.poll(number, buffers).expect("time goes on");
        }
    }
}

impl Network for Bottleneck {
    fn execute(&mut self, buffers: &Buffers) -> usize {
        let mut datagrams = Vec::new();
        buffers.drain_pending_transmissions(|datagram| {
            datagrams.push((SocketAddr::from(datagram.path.local_address.0), datagram));
            Ok(())
        });
        // Hosts are drained in an order that differs from run to run.
        datagrams.sort_by_key(|(from, _)| *from);
        let count = datagrams.len();
        for (from, datagram) in datagrams {
            let to = SocketAddr::from(datagram.path.remote_address.0);
            let flow = FiveTuple {
                source: from.ip(),
                destination: to.ip(),
                protocol: 17,
                source_port: from.port(),
                destination_port: to.port(),
            };
            let len = u32::try_from(datagram.payload.len()).expect("a datagram") + HEADERS;
            let ecn = Ecn::from_bits(datagram.ecn as u8);
            let packet = flow.identify(0, Packet { len, ecn, ..Packet::default() });
            let number = usize::from((self.is_server)(from));
            self.lock(number).link.push(self.now(), packet, datagram).expect("time goes on");
        }
        if count > 0 {
            (0..2).for_each(|number| self.poll(number, buffers).expect("time goes on"));
        }
        count
    }
}

/// TLS provider without cryptography, which makes runs quick to build and equal in every byte.
#[derive(Clone, Copy, Debug)]
pub struct NoTls;

impl Provider for NoTls {
    type Server = null::Endpoint;
    type Client = null::Endpoint;
    type Error = Infallible;

    fn start_server(self) -> std::result::Result<null::Endpoint, Infallible> {
        Ok(null::Endpoint::new(None))
    }

    fn start_client(self) -> std::result::Result<null::Endpoint, Infallible> {
        Ok(null::Endpoint::new(None))
    }
}
