//! Network of links: packets of the hosts at one end cross a path of links and a delay to the peer
//! host at the other end, and return on a path of their own. It is passed the time and reads no
//! clock.
//!
//! Senders (end 0) have the addresses 198.18.x.y, receivers (end 1) 198.19.x.y, where x.y is the
//! number of the host plus [`FIRST_HOST`]. RFC 2544 reserves both ranges for tests of networks. The
//! addresses of a packet thus determine its path.

use crate::corrupt::corrupt;
use crate::direction::DeliveryStats;
use crate::ip::{self, HostPacket};
use crate::pool::BufferPool;
use crate::pump::{Framing, Transport};
use crate::timed_link::{Departure, TimedLink};
use sojourn_aqm::cast;
use sojourn_aqm::{Ecn, Packet, Span, Time, random};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Lower 16 bits of the address of the first host.
pub const FIRST_HOST: u32 = 16;
/// Maximum number of hosts per end.
pub const HOSTS_MAX: usize = 65_000;
/// Upper 16 bits of the addresses at each end.
const ADDRESS_PREFIXES: [u32; 2] = [0xc612, 0xc613];

/// Route from one end to the other.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// Indices of the links in order.
    pub path: Vec<usize>,
    /// Additional propagation delay after the last link.
    pub delay: Span,
}

/// Pair of peer hosts, one at each end, and the routes between them.
#[derive(Clone, Debug, Default)]
pub struct HostPair {
    /// Routes from sender to receiver, and back.
    pub routes: [Route; 2],
    /// Traffic class of their packets.
    pub class: u16,
    /// Keys of the hosts at the two ends.
    pub hosts: [u32; 2],
}

/// Configuration of a network.
#[derive(Debug)]
pub struct NetworkConfig {
    /// Links.
    pub links: Vec<TimedLink>,
    /// Host pairs.
    pub pairs: Vec<HostPair>,
    /// Start of the measured interval.
    pub warm: Time,
    /// End of the run; later arrivals are discarded.
    pub end: Time,
    /// Sampling interval of the received bytes, if sampled.
    pub sample: Option<Span>,
    /// Key of the flow hash.
    pub salt: u64,
}

/// Counters of a host pair in the measured interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairStats {
    /// Packets with payload that were sent.
    pub packets: u64,
    /// Retransmissions among them.
    pub retransmitted: u64,
    /// Packets among them dropped by a queue or by random loss.
    pub lost: u64,
}

/// Packet that has left its last link.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// Due time.
    pub at: Time,
    place: u32,
}

/// Connection: its host pair, and per direction the highest sequence number sent.
#[derive(Debug)]
struct Connection {
    pair: u32,
    edge: [Option<u32>; 2],
}

/// State of the packet in a pool entry.
#[derive(Clone, Copy, Debug, Default)]
struct Body {
    pair: u32,
    /// Number of links still to cross.
    left: u32,
    /// End at which it entered.
    end: usize,
    len: u16,
    /// True if it has payload.
    payload: bool,
    /// True if it has payload and was sent in the measured interval.
    counts: bool,
}

/// Network of links.
#[derive(Debug)]
pub struct Network {
    spec: NetworkConfig,
    pool: BufferPool,
    /// Pool entry into which the next packet is read.
    next: u32,
    /// By pool entry.
    bodies: Vec<Body>,
    /// Packets after their last link, ordered by arrival time, then by departure.
    travelling: BinaryHeap<Reverse<(Time, u64, u32)>>,
    set_out: u64,
    connections: Vec<Connection>,
    by_key: BTreeMap<u64, u32>,
    sent: Vec<PairStats>,
    counts: DeliveryStats,
    /// Bytes of packets with payload that left the last link of their route, by host pair.
    received: Vec<u64>,
    /// Samples of `received`, one row after the other, and the time of the next sample.
    samples: (Vec<u64>, Time),
}

impl Network {
    /// Creates an empty network at time zero.
    ///
    /// # Panics
    /// If there are more than [`HOSTS_MAX`] host pairs.
    pub fn new(spec: NetworkConfig) -> Network {
        assert!(spec.pairs.len() <= HOSTS_MAX, "at most HOSTS_MAX host pairs");
        let mut pool = BufferPool::default();
        let next = pool.allocate().expect("the first place");
        let sent = vec![PairStats::default(); spec.pairs.len()];
        let received = vec![0; spec.pairs.len()];
        let samples = (Vec::new(), spec.sample.map_or(Time::NEVER, |every| Time::ZERO + every));
        Network {
            spec,
            received,
            samples,
            pool,
            next,
            bodies: Vec::new(),
            travelling: BinaryHeap::new(),
            set_out: 0,
            connections: Vec::new(),
            by_key: BTreeMap::new(),
            sent,
            counts: DeliveryStats::default(),
        }
    }

    /// Links.
    pub fn links(&mut self) -> &mut [TimedLink] {
        &mut self.spec.links
    }

    /// Counters of malformed, discarded and written packets.
    pub fn counts(&self) -> &DeliveryStats {
        &self.counts
    }

    /// Counters per host pair.
    pub fn sent_by_pair(&self) -> &[PairStats] {
        &self.sent
    }

    /// Bytes on the wire received between samples: one row per sample, one number per host pair.
    /// Packets without payload do not count.
    pub fn received_by_sample(&self) -> Vec<Vec<u64>> {
        let mut before = vec![0; self.received.len()];
        let rows = self.samples.0.chunks(self.received.len().max(1));
        let since = |row: &[u64]| {
            let last = std::mem::replace(&mut before, row.to_vec());
            row.iter().zip(last).map(|(now, last)| now - last).collect()
        };
        rows.map(since).collect()
    }

    /// Takes the samples due by `now`; events at `now` itself are not included.
    fn sample_every(&mut self, now: Time) {
        let Some(every) = self.spec.sample else { return };
        while self.samples.1 <= now {
            self.samples.0.extend_from_slice(&self.received);
            self.samples.1 += every;
        }
    }

    /// Host pair of each flow in the packet logs of the links.
    pub fn host_pair_of_flow(&self) -> Vec<u32> {
        self.connections.iter().map(|connection| connection.pair).collect()
    }

    /// Number of packets in queues or in flight.
    pub fn packets_held(&self) -> usize {
        self.pool.in_use() - 1
    }

    /// Host pair of a packet from `end`, if its addresses are valid.
    fn host_pair_of(&self, end: usize, between: &HostPacket) -> Option<usize> {
        let HostPacket { from, to, .. } = between;
        let right = from >> 16 == ADDRESS_PREFIXES[end] && to >> 16 == ADDRESS_PREFIXES[1 - end];
        let same = from & 0xffff == to & 0xffff;
        let pair = (from & 0xffff).checked_sub(FIRST_HOST)? as usize;
        (right && same && pair < self.spec.pairs.len()).then_some(pair)
    }

    /// Connection number of a packet, and true if the packet is a retransmission.
    fn connection(&mut self, pair: usize, end: usize, between: &HostPacket) -> (u32, bool) {
        let ports = if end == 0 { between.ports } else { between.ports.rotate_left(16) };
        let key = (pair as u64) << 32 | u64::from(ports);
        let number = *self.by_key.entry(key).or_insert_with(|| {
            self.connections.push(Connection { pair: cast::number(pair), edge: [None; 2] });
            cast::number(self.connections.len()) - 1
        });
        let Some((sequence, payload)) = between.segment else { return (number, false) };
        let edge = &mut self.connections[number as usize].edge[end];
        // Sequence numbers wrap around; compared as in RFC 9293 §3.4.
        let before = |a: u32, b: u32| a.wrapping_sub(b).cast_signed() < 0;
        if between.opens {
            *edge = None; // the ports are reused
        }
        let again = edge.is_some_and(|edge| before(sequence, edge));
        let ends = sequence.wrapping_add(payload);
        if payload > 0 && edge.is_none_or(|edge| before(edge, ends)) {
            *edge = Some(ends);
        }
        (number, again)
    }

    /// Accepts a packet from an end at `now`.
    fn accept(&mut self, end: usize, now: Time, between: HostPacket, pair: usize, spare: u32) {
        let place = std::mem::replace(&mut self.next, spare);
        let (flow, again) = self.connection(pair, end, &between);
        let counts = between.payload && now >= self.spec.warm;
        if counts {
            self.sent[pair].packets += 1;
            self.sent[pair].retransmitted += u64::from(again);
        }
        let to = &self.spec.pairs[pair];
        let left = cast::number(to.routes[end].path.len());
        let len = between.len;
        let payload = between.payload;
        let body = Body { pair: cast::number(pair), end, left, len, payload, counts };
        if self.bodies.len() <= place as usize {
            self.bodies.resize(place as usize + 1, Body::default());
        }
        self.bodies[place as usize] = body;
        let hash = cast::low32(random::mix(self.spec.salt ^ u64::from(flow)));
        // Acks hash differently from data, as with swapped addresses and ports.
        let hash = if end == 0 { hash } else { !hash };
        let (len, class, ecn) = (len.into(), to.class, between.ecn);
        let (body, ip::Segment { ack, tcp }) = (place, between.ack);
        let [source, destination] = [to.hosts[end], to.hosts[1 - end]];
        let arrived = now;
        let packet =
            Packet { arrived, len, flow, hash, body, source, destination, ack, class, ecn, tcp };
        self.forward(now, packet);
    }

    /// Forwards a packet to its next link, or after the last one to its destination.
    fn forward(&mut self, at: Time, packet: Packet) {
        let body = &mut self.bodies[packet.body as usize];
        let route = &self.spec.pairs[body.pair as usize].routes[body.end];
        if body.left == 0 {
            self.received[body.pair as usize] += u64::from(body.payload) * u64::from(body.len);
            self.travelling.push(Reverse((at + route.delay, self.set_out, packet.body)));
            self.set_out += 1;
            return;
        }
        let l = route.path[route.path.len() - body.left as usize];
        body.left -= 1;
        self.advance_link(l, at);
        self.spec.links[l].link.push(at, Packet { arrived: at, ..packet });
        self.free_dropped(l);
    }

    /// Advances link `l` to `at`, and copies the packets that it duplicates.
    fn advance_link(&mut self, l: usize, at: Time) {
        let Network { spec, pool, bodies, .. } = self;
        spec.links[l].advance(at, &mut |body| {
            let copy = pool.copy(body)?;
            if bodies.len() <= copy as usize {
                bodies.resize(copy as usize + 1, Body::default());
            }
            // The copy is not lost if the original is.
            bodies[copy as usize] = Body { counts: false, ..bodies[body as usize] };
            Some(copy)
        });
    }

    /// Frees the packets that a link dropped.
    fn free_dropped(&mut self, l: usize) {
        let Network { spec, pool, bodies, sent, .. } = self;
        for lost in spec.links[l].link.take_dropped() {
            let body = &bodies[lost.packet.body as usize];
            sent[body.pair as usize].lost += u64::from(body.counts);
            pool.free(lost.packet.body);
        }
    }

    /// Earliest event of all links, and its link.
    fn earliest_event(&mut self) -> Option<(Time, usize)> {
        let links = self.spec.links.iter_mut().enumerate();
        links.filter_map(|(l, timed_link)| timed_link.next_event_time().map(|at| (at, l))).min()
    }

    /// Forwards the packets that have left link `l` by `at`.
    fn forward_from_link(&mut self, l: usize, at: Time) {
        self.advance_link(l, at);
        self.free_dropped(l);
        while let Some(departure) = self.spec.links[l].poll(at) {
            let Departure { packet, lost, wrong_bit, .. } = departure;
            if lost {
                let body = &self.bodies[packet.body as usize];
                self.sent[body.pair as usize].lost += u64::from(body.counts);
                self.pool.free(packet.body);
                continue;
            }
            if packet.ecn == Ecn::Ce {
                ip::mark(self.pool.get_mut(packet.body));
            }
            if let Some(bit) = wrong_bit {
                corrupt(self.pool.get_mut(packet.body), Framing::Ip, bit);
            }
            self.forward(at, packet);
        }
    }
}

impl Transport for Network {
    type Due = Due;

    fn framing(&self) -> Framing {
        Framing::Ip
    }

    fn receive_buffer(&mut self) -> &mut [u8] {
        self.pool.get_mut(self.next)
    }

    fn accept(&mut self, end: usize, now: Time, len: usize) {
        if now >= self.spec.end {
            return;
        }
        let between = ip::parse_between_hosts(&self.pool.get_mut(self.next)[..len]);
        let route = between.and_then(|between| Some((between, self.host_pair_of(end, &between)?)));
        let Some((between, pair)) = route else {
            self.counts.malformed += 1;
            return;
        };
        let Some(spare) = self.pool.allocate() else {
            self.counts.no_memory += 1;
            return;
        };
        self.advance(now);
        self.accept(end, now, between, pair, spare);
    }

    fn advance(&mut self, now: Time) {
        let now = now.min(self.spec.end);
        while let Some((at, l)) = self.earliest_event().filter(|(at, _)| *at <= now) {
            self.sample_every(at);
            self.forward_from_link(l, at);
        }
        self.sample_every(now);
        for l in 0..self.spec.links.len() {
            self.advance_link(l, now);
            self.free_dropped(l);
        }
    }

    fn next_event_time(&mut self) -> Option<Time> {
        let timed_link = self.earliest_event().map(|(at, _)| at);
        let travelling = self.travelling.peek().map(|Reverse((at, ..))| *at);
        timed_link.into_iter().chain(travelling).min().filter(|at| *at <= self.spec.end)
    }

    fn next_delivery(&mut self, now: Time) -> Option<Due> {
        self.advance(now);
        let Reverse((at, _, place)) = *self.travelling.peek()?;
        if at > now.min(self.spec.end) {
            return None;
        }
        self.travelling.pop();
        Some(Due { at, place })
    }

    fn delivery_bytes(&self, due: &Due) -> (usize, &[u8]) {
        let body = self.bodies[due.place as usize];
        (1 - body.end, &self.pool.get(due.place)[..body.len.into()])
    }

    fn on_written(&mut self, due: Due, now: Time, refused: bool) {
        self.counts.written(due.at, now, refused);
        self.pool.free(due.place);
    }
}
