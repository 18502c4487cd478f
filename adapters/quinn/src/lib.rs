//! quinn-proto in virtual time: hosts of quinn that two links of sojourn join, one per direction.
//!
//! [`Network`] lets hosts send, advances the time to the next event, and delivers datagrams.

use bytes::BytesMut;
use quinn_proto::{ClientConfig, Connection, ConnectionHandle};
use quinn_proto::{DatagramEvent, EcnCodepoint, Endpoint};
use sojourn_aqm::{Clock, Ecn, FiveTuple, Packet, Time, TimedLink};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

const HEADERS: u32 = 28; // of IPv4 and UDP, bytes

/// Datagram on a link.
#[derive(Clone, Debug)]
pub struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// Endpoint of quinn with its connections.
#[derive(Debug)]
struct Host {
    address: SocketAddr,
    /// Link over which it sends.
    link: usize,
    endpoint: Endpoint,
    connections: BTreeMap<usize, (ConnectionHandle, Connection)>,
}

/// Hosts, and the two links between them.
#[derive(Debug)]
pub struct Network {
    /// One per direction.
    pub links: [TimedLink<Datagram>; 2],
    hosts: Vec<Host>,
    clock: Clock,
    /// Current time.
    pub now: Time,
}

impl Network {
    /// Creates a network without hosts. `start` is time 0 of the links: any instant, as nothing
    /// reads the clock of the machine.
    pub fn new(links: [TimedLink<Datagram>; 2], start: Instant) -> Network {
        Network { links, hosts: Vec::new(), clock: Clock::new(start), now: Time::ZERO }
    }

    /// Current time as quinn has it.
    fn instant(&self) -> Instant {
        self.clock.instant(self.now).expect("the clock reaches some minutes")
    }

    /// Adds a host that sends over `links[link]`. Returns its number.
    pub fn add_host(&mut self, address: SocketAddr, link: usize, endpoint: Endpoint) -> usize {
        self.hosts.push(Host { address, link, endpoint, connections: BTreeMap::new() });
        self.hosts.len() - 1
    }

    /// Connects a host to the server `name` at `to`.
    pub fn connect(&mut self, host: usize, config: ClientConfig, to: SocketAddr, name: &str) {
        let now = self.instant();
        let Host { endpoint, connections, .. } = &mut self.hosts[host];
        let (handle, connection) = endpoint.connect(now, config, to, name).expect("a valid name");
        connections.insert(handle.0, (handle, connection));
    }

    /// Runs until `end`. `app` is the application: it is called with the number of a host and one
    /// of its connections whenever something may have changed.
    pub fn run_until(&mut self, end: Time, app: &mut dyn FnMut(usize, &mut Connection)) {
        loop {
            (0..self.hosts.len()).for_each(|host| self.transmit(host, app));
            let next = self.next_event().max(self.now);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            (0..self.links.len()).for_each(|link| self.deliver(link));
        }
    }

    /// Time of the next timer or arrival.
    fn next_event(&mut self) -> Time {
        let connections = self.hosts.iter_mut().flat_map(|host| host.connections.values_mut());
        let timers = connections.filter_map(|(_, c)| Some(self.clock.time(c.poll_timeout()?)));
        let arrivals = self.links.iter().filter_map(TimedLink::next_poll);
        timers.chain(arrivals).min().unwrap_or(Time::NEVER)
    }

    /// Runs the timers and the application of a host, and sends its datagrams.
    fn transmit(&mut self, number: usize, app: &mut dyn FnMut(usize, &mut Connection)) {
        let now = self.instant();
        let Host { address, link, endpoint, connections } = &mut self.hosts[number];
        for (handle, connection) in connections.values_mut() {
            if connection.poll_timeout().is_some_and(|at| at <= now) {
                connection.handle_timeout(now);
            }
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            app(number, connection);
            let mut bytes = Vec::new();
            while let Some(transmit) = connection.poll_transmit(now, 1, &mut bytes) {
                let (from, to) = (*address, transmit.destination);
                let ecn = Ecn::from_bits(transmit.ecn.map_or(0, |ecn| ecn as u8));
                let body = Datagram { from, to, bytes: std::mem::take(&mut bytes) };
                let len = u32::try_from(body.bytes.len()).expect("a datagram") + HEADERS;
                let packet = flow(from, to).identify(0, Packet { len, ecn, ..Packet::default() });
                self.links[*link].push(self.now, packet, body).expect("time goes on");
            }
        }
    }

    /// Delivers the datagrams that have arrived over a link.
    fn deliver(&mut self, link: usize) {
        let now = self.instant();
        while let Some(delivery) = self.links[link].poll(self.now).expect("time goes on") {
            let Datagram { from, to, bytes } = delivery.body;
            let ecn = EcnCodepoint::from_bits(delivery.packet.ecn.bits());
            let host = self.hosts.iter_mut().find(|host| host.address == to);
            let Some(Host { endpoint, connections, .. }) = host else { continue };
            let (data, mut buffer) = (BytesMut::from(&bytes[..]), Vec::new());
            match endpoint.handle(now, from, None, ecn, data, &mut buffer) {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    if let Some((_, known)) = connections.get_mut(&handle.0) {
                        known.handle_event(event);
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let new = endpoint.accept(incoming, now, &mut buffer, None).ok();
                    connections.extend(new.map(|(handle, new)| (handle.0, (handle, new))));
                }
                _ => {}
            }
        }
    }
}

/// Identifier of the flow from a socket to another.
fn flow(from: SocketAddr, to: SocketAddr) -> FiveTuple {
    let (source, destination) = (from.ip(), to.ip());
    let (source_port, destination_port) = (from.port(), to.port());
    FiveTuple { source, destination, protocol: 17, source_port, destination_port }
}
