//! Many links at once: what the hosts at one end send crosses a path of links and a delay to the
//! host of the same number at the other end, and what it answers comes back by a way of its own.
//! It is told the time, and reads no clock.
//!
//! The senders are at end 0 and have the addresses 198.18.x.y, the receivers at end 1 and have
//! 198.19.x.y, in which x.y is the number of the host from [`FIRST`] on: RFC 2544 sets both aside
//! for testing networks. So a packet says itself which way it goes.

use crate::hop::Counts;
use crate::ip::{self, Between};
use crate::line::Line;
use crate::pool::Pool;
use crate::pump::Carrier;
use sojourn_aqm::cast;
use sojourn_aqm::{Ecn, Packet, Span, Time, dice};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The last two bytes of the first host's address, as a number.
pub const FIRST: u32 = 16;
/// The most hosts at an end.
pub const HOSTS_MAX: usize = 65_000;
/// The first two bytes of the addresses at each end.
const ENDS: [u32; 2] = [0xc612, 0xc613];

/// How packets get from one end to the other.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// The links that they cross, by number, in order.
    pub path: Vec<usize>,
    /// How long they travel after that.
    pub delay: Span,
}

/// A host at each end, and the ways between the two.
#[derive(Clone, Debug, Default)]
pub struct Pair {
    /// From the sender to the receiver, and back.
    pub ways: [Way; 2],
    /// The traffic class of their packets.
    pub class: u16,
}

/// What a network is made of.
pub struct NetSpec {
    /// Its links.
    pub lines: Vec<Line>,
    /// Its hosts.
    pub pairs: Vec<Pair>,
    /// When counting begins.
    pub warm: Time,
    /// When it ends: what arrives later is gone.
    pub end: Time,
    /// Time between looks at what the receivers got, if there are any.
    pub sample: Option<Span>,
    /// Keys the hashes of flows.
    pub salt: u64,
}

/// What is counted of a pair of hosts, from the end of the warm-up on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets with payload that were sent.
    pub packets: u64,
    /// Of those, the ones that had been sent before.
    pub retransmitted: u64,
    /// Of those, the ones that a queue or a wire lost.
    pub lost: u64,
}

/// A packet that has crossed.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// When it was due.
    pub at: Time,
    place: u32,
}

/// A connection: its hosts, and of either direction the end of what was sent.
struct Connection {
    pair: u32,
    edge: [Option<u32>; 2],
}

/// What is known of the packet at a place.
#[derive(Clone, Copy, Debug, Default)]
struct Body {
    pair: u32,
    /// Number of links that it has still to cross.
    left: u32,
    /// The end that it came from.
    end: usize,
    len: u16,
    /// Whether it has payload.
    payload: bool,
    /// Whether it has payload and is counted.
    counts: bool,
}

/// The network.
pub struct Net {
    spec: NetSpec,
    pool: Pool,
    /// The place that the next packet is read into.
    next: u32,
    /// By place.
    bodies: Vec<Body>,
    /// Packets on their last leg, in the order in which they arrive and, of those at the same
    /// moment, set out.
    travelling: BinaryHeap<Reverse<(Time, u64, u32)>>,
    set_out: u64,
    connections: Vec<Connection>,
    by_key: BTreeMap<u64, u32>,
    sent: Vec<Sent>,
    counts: Counts,
    /// Bytes of packets with payload that crossed the last link of their way, by pair.
    received: Vec<u64>,
    /// The same at each look, one row after the other, and the time of the next look.
    looks: (Vec<u64>, Time),
}

impl Net {
    /// A network with nothing on it, at time zero.
    pub fn new(spec: NetSpec) -> Net {
        assert!(spec.pairs.len() <= HOSTS_MAX, "each host has an address");
        let mut pool = Pool::default();
        let next = pool.take().expect("the first place");
        let sent = vec![Sent::default(); spec.pairs.len()];
        let received = vec![0; spec.pairs.len()];
        let looks = (Vec::new(), spec.sample.map_or(Time::NEVER, |every| Time::ZERO + every));
        Net {
            spec,
            received,
            looks,
            pool,
            next,
            bodies: Vec::new(),
            travelling: BinaryHeap::new(),
            set_out: 0,
            connections: Vec::new(),
            by_key: BTreeMap::new(),
            sent,
            counts: Counts::default(),
        }
    }

    /// The links.
    pub fn lines(&mut self) -> &mut [Line] {
        &mut self.spec.lines
    }

    /// What was counted of packets that were not sent by hosts, or written.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What was counted of each pair of hosts.
    pub fn sent_by_pair(&self) -> &[Sent] {
        &self.sent
    }

    /// Bytes on the wire that reached the other end between two looks: for each look, a number per
    /// pair of hosts. Packets without payload do not count.
    pub fn received_by_look(&self) -> Vec<Vec<u64>> {
        let mut before = vec![0; self.received.len()];
        let rows = self.looks.0.chunks(self.received.len().max(1));
        let since = |row: &[u64]| {
            let last = std::mem::replace(&mut before, row.to_vec());
            row.iter().zip(last).map(|(now, last)| now - last).collect()
        };
        rows.map(since).collect()
    }

    /// Makes the looks that are due by `now`; what crosses a link at `now` itself is not seen.
    fn look(&mut self, now: Time) {
        let Some(every) = self.spec.sample else { return };
        while self.looks.1 <= now {
            self.looks.0.extend_from_slice(&self.received);
            self.looks.1 += every;
        }
    }

    /// The pair of hosts of each flow on the links' tapes.
    pub fn pair_of_flow(&self) -> Vec<u32> {
        self.connections.iter().map(|connection| connection.pair).collect()
    }

    /// How many packets are in a queue or on the way.
    pub fn held(&self) -> usize {
        self.pool.taken() - 1
    }

    /// The pair of hosts that a packet from that end is of.
    fn pair(&self, end: usize, between: &Between) -> Option<usize> {
        let Between { from, to, .. } = between;
        let right = from >> 16 == ENDS[end] && to >> 16 == ENDS[1 - end];
        let same = from & 0xffff == to & 0xffff;
        let pair = (from & 0xffff).checked_sub(FIRST)? as usize;
        (right && same && pair < self.spec.pairs.len()).then_some(pair)
    }

    /// The number of the connection that a packet is of, and whether it brings nothing new.
    fn connection(&mut self, pair: usize, end: usize, between: &Between) -> (u32, bool) {
        let ports = if end == 0 { between.ports } else { between.ports.rotate_left(16) };
        let key = (pair as u64) << 32 | u64::from(ports);
        let number = *self.by_key.entry(key).or_insert_with(|| {
            self.connections.push(Connection { pair: cast::number(pair), edge: [None; 2] });
            cast::number(self.connections.len()) - 1
        });
        let Some((sequence, payload)) = between.segment else { return (number, false) };
        let edge = &mut self.connections[number as usize].edge[end];
        // Sequence numbers wrap; RFC 9293 section 3.4 compares them so.
        let before = |a: u32, b: u32| a.wrapping_sub(b).cast_signed() < 0;
        if between.opens {
            *edge = None; // the ports are used again
        }
        let again = edge.is_some_and(|edge| before(sequence, edge));
        let ends = sequence.wrapping_add(payload);
        if payload > 0 && edge.is_none_or(|edge| before(edge, ends)) {
            *edge = Some(ends);
        }
        (number, again)
    }

    /// A packet was accepted from an end at `now`.
    fn accept(&mut self, end: usize, now: Time, between: Between, pair: usize, spare: u32) {
        let place = std::mem::replace(&mut self.next, spare);
        let (flow, again) = self.connection(pair, end, &between);
        let counts = between.payload && now >= self.spec.warm;
        if counts {
            self.sent[pair].packets += 1;
            self.sent[pair].retransmitted += u64::from(again);
        }
        let to = &self.spec.pairs[pair];
        let left = cast::number(to.ways[end].path.len());
        let len = between.len;
        let payload = between.payload;
        let body = Body { pair: cast::number(pair), end, left, len, payload, counts };
        if self.bodies.len() <= place as usize {
            self.bodies.resize(place as usize + 1, Body::default());
        }
        self.bodies[place as usize] = body;
        let hash = cast::low32(dice::mix(self.spec.salt ^ u64::from(flow)));
        // Acks are hashed apart from the data, as addresses and ports the other way round are.
        let hash = if end == 0 { hash } else { !hash };
        let (len, class, ecn) = (len.into(), to.class, between.ecn);
        let packet = Packet { arrived: now, len, flow, hash, body: place, class, ecn };
        self.onward(now, packet);
    }

    /// A packet sets out, or has crossed a link: it goes to the next, or on its last leg.
    fn onward(&mut self, at: Time, packet: Packet) {
        let body = &mut self.bodies[packet.body as usize];
        let way = &self.spec.pairs[body.pair as usize].ways[body.end];
        if body.left == 0 {
            self.received[body.pair as usize] += u64::from(body.payload) * u64::from(body.len);
            self.travelling.push(Reverse((at + way.delay, self.set_out, packet.body)));
            self.set_out += 1;
            return;
        }
        let l = way.path[way.path.len() - body.left as usize];
        body.left -= 1;
        let line = &mut self.spec.lines[l];
        line.advance(at);
        line.link.push(at, Packet { arrived: at, ..packet });
        self.losses(l);
    }

    /// Frees what a link has lost.
    fn losses(&mut self, l: usize) {
        let Net { spec, pool, bodies, sent, .. } = self;
        for lost in spec.lines[l].link.lost() {
            let body = &bodies[lost.packet.body as usize];
            sent[body.pair as usize].lost += u64::from(body.counts);
            pool.give(lost.packet.body);
        }
    }

    /// The first moment at which a link has something to do, and which link.
    fn first(&mut self) -> Option<(Time, usize)> {
        let lines = self.spec.lines.iter_mut().enumerate();
        lines.filter_map(|(l, line)| line.wake().map(|at| (at, l))).min()
    }

    /// A link has crossed what it has by `at`.
    fn cross(&mut self, l: usize, at: Time) {
        self.spec.lines[l].advance(at);
        self.losses(l);
        while let Some((_, packet, lost)) = self.spec.lines[l].poll(at) {
            if lost {
                let body = &self.bodies[packet.body as usize];
                self.sent[body.pair as usize].lost += u64::from(body.counts);
                self.pool.give(packet.body);
                continue;
            }
            if packet.ecn == Ecn::Ce {
                ip::mark(self.pool.at(packet.body));
            }
            self.onward(at, packet);
        }
    }
}

impl Carrier for Net {
    type Due = Due;

    fn room(&mut self) -> &mut [u8] {
        self.pool.at(self.next)
    }

    fn arrive(&mut self, end: usize, now: Time, len: usize) {
        if now >= self.spec.end {
            return;
        }
        let between = ip::between(&self.pool.at(self.next)[..len]);
        let found = between.and_then(|between| Some((between, self.pair(end, &between)?)));
        let Some((between, pair)) = found else {
            self.counts.malformed += 1;
            return;
        };
        let Some(spare) = self.pool.take() else {
            self.counts.no_memory += 1;
            return;
        };
        self.advance(now);
        self.accept(end, now, between, pair, spare);
    }

    fn advance(&mut self, now: Time) {
        let now = now.min(self.spec.end);
        while let Some((at, l)) = self.first().filter(|(at, _)| *at <= now) {
            self.look(at);
            self.cross(l, at);
        }
        self.look(now);
        for l in 0..self.spec.lines.len() {
            self.spec.lines[l].advance(now);
            self.losses(l);
        }
    }

    fn wake(&mut self) -> Option<Time> {
        let line = self.first().map(|(at, _)| at);
        let travelling = self.travelling.peek().map(|Reverse((at, ..))| *at);
        line.into_iter().chain(travelling).min().filter(|at| *at <= self.spec.end)
    }

    fn next(&mut self, now: Time) -> Option<Due> {
        self.advance(now);
        let Reverse((at, _, place)) = *self.travelling.peek()?;
        if at > now.min(self.spec.end) {
            return None;
        }
        self.travelling.pop();
        Some(Due { at, place })
    }

    fn bytes(&mut self, due: &Due) -> (usize, &[u8]) {
        let body = self.bodies[due.place as usize];
        (1 - body.end, &self.pool.at(due.place)[..body.len.into()])
    }

    fn sent(&mut self, due: Due, now: Time, refused: bool) {
        self.counts.written(due.at, now, refused);
        self.pool.give(due.place);
    }
}
