//! One direction: a link and the bytes of the packets in it. Like a link it is passed the time and
//! reads no clock.

use crate::capture::{After, Capture};
use crate::corrupt::corrupt;
use crate::ip;
use crate::pool::BufferPool;
use crate::pump::{Framing, Pump, PumpThread, Start, Transport};
use crate::timed_link::{Departure, LinkCallback, TimedLink};
use sojourn_aqm::cast;
use sojourn_aqm::wire::WireStats;
use sojourn_aqm::{DropReason, Ecn, FlowHeader, Histogram, Link, Packet, Span, Time};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Deliveries later than this are counted as late.
pub const LATE: Span = Span::ms(1);

/// Number of flows of which headers are kept, for filters that read them; a power of two.
const FLOWS: u32 = 1 << 16;

/// Configuration of a direction.
#[derive(Debug)]
pub struct DirectionConfig {
    /// Link.
    pub timed_link: TimedLink,
    /// Key of the flow hash.
    pub hash_key: u64,
    /// Bytes in front of the IP header. They are forwarded unchanged and not counted in the packet
    /// length.
    pub framing: Framing,
}

/// Counters of a direction, without the counters of its link.
#[derive(Clone, Debug, Default)]
pub struct DeliveryStats {
    /// Malformed packets; they do not reach the link.
    pub malformed: u64,
    /// Packets dropped because the pool is exhausted; they do not reach the link.
    pub no_memory: u64,
    /// Delivered packets.
    pub delivered: u64,
    /// Packets that left the link but were refused by the destination device.
    pub refused: u64,
    /// Time between the due time of a packet and its delivery.
    pub lateness: Histogram,
    /// Number of packets later than [`LATE`].
    pub late: u64,
}

impl DeliveryStats {
    /// Records that a packet due at `due` was written at `now`, or `refused` by the device.
    pub fn written(&mut self, due: Time, now: Time, refused: bool) {
        let lateness = now.since(due);
        self.lateness.add(lateness);
        self.late += u64::from(lateness > LATE);
        if refused {
            self.refused += 1;
        } else {
            self.delivered += 1;
        }
    }
}

/// Packet that has left the link.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// Due time.
    pub at: Time,
    packet: Packet,
}

/// One direction.
#[derive(Debug)]
pub struct Direction {
    timed_link: TimedLink,
    pool: BufferPool,
    /// Pool entry into which the next packet is read.
    next_buffer: u32,
    salt: u64,
    framing: Framing,
    capture: Option<Capture>,
    arrivals: Option<Vec<Packet>>,
    counts: DeliveryStats,
}

impl Direction {
    /// Creates an empty direction at time zero.
    pub fn new(spec: DirectionConfig) -> Direction {
        let DirectionConfig { timed_link, hash_key: salt, framing } = spec;
        let mut pool = BufferPool::default();
        Direction {
            timed_link,
            next_buffer: pool.allocate().expect("the first place"),
            pool,
            salt,
            framing,
            capture: None,
            arrivals: None,
            counts: DeliveryStats::default(),
        }
    }

    /// Calls `see` with the link once per `every`; the first call is at time `every`.
    pub fn sample_every(&mut self, every: Span, see: LinkCallback) {
        self.timed_link.sample_every(every, see);
    }

    /// Records every packet in `capture`.
    pub fn capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Log every arrival, and every packet that leaves the queue.
    pub fn enable_packet_log(&mut self) {
        self.arrivals = Some(Vec::new());
        self.timed_link.link.enable_packet_log();
    }

    /// Arrivals as logged since [`Direction::enable_packet_log`].
    pub fn arrivals(&self) -> &[Packet] {
        self.arrivals.as_deref().unwrap_or_default()
    }

    /// Link.
    pub fn link(&mut self) -> &mut Link {
        &mut self.timed_link.link
    }

    /// Number of packets lost after the queue.
    pub fn lost_on_wire(&self) -> u64 {
        self.timed_link.lost_on_wire()
    }

    /// Counters of the wire, if there is one.
    pub fn wire_stats(&self) -> Option<&WireStats> {
        self.timed_link.wire_stats()
    }

    /// Counters.
    pub fn counts(&self) -> &DeliveryStats {
        &self.counts
    }

    /// Number of packets in the queue or in flight.
    pub fn packets_held(&self) -> usize {
        self.pool.in_use() - 1
    }

    /// Buffer for the next packet, for [`Direction::accept`].
    pub fn receive_buffer(&mut self) -> &mut [u8] {
        self.pool.get_mut(self.next_buffer)
    }

    /// Accepts a packet at `now`: the first `len` bytes of [`Direction::receive_buffer`].
    pub fn accept(&mut self, now: Time, len: usize) {
        let read = &self.pool.get(self.next_buffer)[..len];
        let packet = read.get(self.framing.bytes()..).unwrap_or_default();
        let len = cast::number(packet.len());
        let Ok(header) = ip::read(packet, self.salt) else {
            self.counts.malformed += 1;
            return;
        };
        let Some(spare) = self.pool.allocate() else {
            self.counts.no_memory += 1;
            return;
        };
        let body = std::mem::replace(&mut self.next_buffer, spare);
        self.advance(now);
        let ip::Header { ecn, class, hash, hosts: [source, destination], segment, .. } = header;
        let ip::Segment { ack, tcp } = segment;
        let (arrived, mut flow) = (now, hash);
        let link = &mut self.timed_link.link;
        if link.reads_headers() {
            // Flows may share a number: each packet states the header before it arrives.
            flow &= FLOWS - 1;
            let ip::Header { protocol, ports, .. } = header;
            link.describe_flow(flow, &FlowHeader { protocol, source, ports, mark: 0 });
        }
        let packet =
            Packet { arrived, len, flow, hash, body, source, destination, ack, class, ecn, tcp };
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.push(packet);
        }
        self.timed_link.link.push(now, packet);
        self.free_dropped();
    }

    /// Processes everything due up to `now`, each event at its own time.
    pub fn advance(&mut self, now: Time) {
        let Direction { timed_link, pool, .. } = self;
        timed_link.advance(now, &mut |body| pool.copy(body));
        self.free_dropped();
    }

    /// Time of the next event; None if there is none.
    pub fn next_event_time(&mut self) -> Option<Time> {
        self.timed_link.next_event_time()
    }

    /// Next packet that has left the link by `now`. Return it with [`Direction::on_written`].
    pub fn next_delivery(&mut self, now: Time) -> Option<Due> {
        self.advance(now);
        while let Some(Departure { at, packet, lost, wrong_bit }) = self.timed_link.poll(now) {
            if !lost {
                let end = self.framing.bytes() + packet.len as usize;
                let bytes = &mut self.pool.get_mut(packet.body)[..end];
                if packet.ecn == Ecn::Ce {
                    ip::mark(&mut bytes[self.framing.bytes()..]);
                }
                if let Some(bit) = wrong_bit {
                    corrupt(bytes, self.framing, bit);
                }
                return Some(Due { at, packet });
            }
            self.capture_packet(at, packet, "dropped: lost on the wire, ");
            self.pool.free(packet.body);
        }
        None
    }

    /// Bytes of a packet that has left the link, including those in front of the IP header.
    pub fn delivery_bytes(&self, due: &Due) -> &[u8] {
        &self.pool.get(due.packet.body)[..self.framing.bytes() + due.packet.len as usize]
    }

    /// Records that a packet was written at `now`, or `refused` by the device, and frees it.
    pub fn on_written(&mut self, due: Due, now: Time, refused: bool) {
        self.counts.written(due.at, now, refused);
        let comment = if refused {
            "left the link, but the destination device refused it, "
        } else {
            "delivered "
        };
        self.capture_packet(due.at, due.packet, comment);
        self.pool.free(due.packet.body);
    }

    /// Frees the packets that the link dropped.
    fn free_dropped(&mut self) {
        let Direction { timed_link, pool, capture, framing, .. } = self;
        for lost in timed_link.link.take_dropped() {
            if let Some(capture) = capture {
                let why = match lost.reason {
                    DropReason::Full => "the buffer is full",
                    DropReason::AtEnqueue => "by the AQM, on arrival",
                    DropReason::AfterEnqueue => "by the AQM, at the head",
                    _ => "by the AQM",
                };
                let after = After(lost.at.since(lost.packet.arrived));
                let bytes =
                    &pool.get(lost.packet.body)[framing.bytes()..][..lost.packet.len as usize];
                capture.packet(lost.at, bytes, format_args!("dropped: {why}, {after}"));
            }
            pool.free(lost.packet.body);
        }
    }

    fn capture_packet(&mut self, at: Time, packet: Packet, comment: &str) {
        if let Some(capture) = &self.capture {
            let bytes = &self.pool.get(packet.body)[self.framing.bytes()..][..packet.len as usize];
            let after = After(at.since(packet.arrived));
            capture.packet(at, bytes, format_args!("{comment}{after}"));
        }
    }
}

impl Transport for Direction {
    type Due = Due;

    fn framing(&self) -> Framing {
        self.framing
    }

    fn receive_buffer(&mut self) -> &mut [u8] {
        self.receive_buffer()
    }

    fn accept(&mut self, _end: usize, now: Time, len: usize) {
        self.accept(now, len);
    }

    fn advance(&mut self, now: Time) {
        self.advance(now);
    }

    fn next_event_time(&mut self) -> Option<Time> {
        self.next_event_time()
    }

    fn next_delivery(&mut self, now: Time) -> Option<Due> {
        self.next_delivery(now)
    }

    fn delivery_bytes(&self, due: &Due) -> (usize, &[u8]) {
        (0, self.delivery_bytes(due))
    }

    fn on_written(&mut self, due: Due, now: Time, refused: bool) {
        self.on_written(due, now, refused);
    }
}

impl Pump<Direction> {
    /// Starts moving packets between two ends, from `near` to `far` through `up` and back through
    /// `down`, with one thread per direction. `start` is time zero.
    ///
    /// # Errors
    /// As for [`Pump::start`].
    pub fn start_bidirectional(
        near: OwnedFd,
        far: OwnedFd,
        up: Direction,
        down: Direction,
        start: Start,
    ) -> std::io::Result<Pump<Direction>> {
        let (near, far) = (Arc::new(near), Arc::new(far));
        let lane = |name, carrier, from: &Arc<OwnedFd>, to: &Arc<OwnedFd>| PumpThread {
            name,
            carrier,
            from: vec![from.clone()],
            to: vec![to.clone()],
        };
        Pump::start(vec![lane("up", up, &near, &far), lane("down", down, &far, &near)], start)
    }
}
