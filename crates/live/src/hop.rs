//! One direction: a link and the bytes of the packets in it. Like a link it is passed the time and
//! reads no clock.

use crate::capture::{self, Capture};
use crate::ip;
use crate::line::{Line, See};
use crate::pool::Pool;
use crate::pump::Carrier;
use sojourn_aqm::cast;
use sojourn_aqm::tally::Histogram;
use sojourn_aqm::{Ecn, Link, Packet, Span, Time, Why};

/// Deliveries later than this are counted as late.
pub const LATE: Span = Span::ms(1);

/// Configuration of a direction.
pub struct HopSpec {
    /// Link.
    pub line: Line,
    /// Key of the flow hash.
    pub salt: u64,
    /// Bytes in front of the IP header: 0 on a TUN device, 14 on a veth. They are forwarded
    /// unchanged and not counted in the packet length.
    pub head: usize,
}

/// Counters of a direction besides those of its link.
#[derive(Clone, Debug, Default)]
pub struct Counts {
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

impl Counts {
    /// Record that a packet due at `due` was written at `now`, or `refused` by the device.
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
pub struct Hop {
    line: Line,
    pool: Pool,
    /// Pool entry into which the next packet is read.
    next: u32,
    salt: u64,
    head: usize,
    capture: Option<Capture>,
    arrivals: Option<Vec<Packet>>,
    counts: Counts,
}

impl Hop {
    /// Create an empty direction at time zero.
    pub fn new(spec: HopSpec) -> Hop {
        let HopSpec { line, salt, head } = spec;
        let mut pool = Pool::default();
        Hop {
            line,
            next: pool.take().expect("the first place"),
            pool,
            salt,
            head,
            capture: None,
            arrivals: None,
            counts: Counts::default(),
        }
    }

    /// Call `see` with the link once per `every`; the first call is at time `every`.
    pub fn look(&mut self, every: Span, see: See) {
        self.line.look(every, see);
    }

    /// Record every packet in `capture`.
    pub fn capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Log every arrival, and every packet that leaves the queue.
    pub fn record(&mut self) {
        self.arrivals = Some(Vec::new());
        self.line.link.record();
    }

    /// Arrivals as logged since [`Hop::record`].
    pub fn arrivals(&self) -> &[Packet] {
        self.arrivals.as_deref().unwrap_or_default()
    }

    /// Link.
    pub fn link(&mut self) -> &mut Link {
        &mut self.line.link
    }

    /// Number of packets dropped by random loss.
    pub fn lost_on_wire(&self) -> u64 {
        self.line.lost_on_wire
    }

    /// Counters.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Number of packets in the queue or in flight.
    pub fn held(&self) -> usize {
        self.pool.taken() - 1
    }

    /// Buffer for the next packet, for [`Hop::arrive`].
    pub fn room(&mut self) -> &mut [u8] {
        self.pool.at(self.next)
    }

    /// Accept a packet at `now`: the first `len` bytes of [`Hop::room`].
    pub fn arrive(&mut self, now: Time, len: usize) {
        let packet = self.pool.at(self.next)[..len].get(self.head..).unwrap_or_default();
        let len = cast::number(packet.len());
        let Ok(header) = ip::read(packet, self.salt) else {
            self.counts.malformed += 1;
            return;
        };
        let Some(spare) = self.pool.take() else {
            self.counts.no_memory += 1;
            return;
        };
        let body = std::mem::replace(&mut self.next, spare);
        self.advance(now);
        let ip::Header { ecn, class, hash } = header;
        let packet = Packet { arrived: now, len, flow: hash, hash, body, class, ecn };
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.push(packet);
        }
        self.line.link.push(now, packet);
        self.losses();
    }

    /// Process everything due up to `now`, each event at its own time.
    pub fn advance(&mut self, now: Time) {
        self.line.advance(now);
        self.losses();
    }

    /// Time of the next event; None if there is none.
    pub fn wake(&mut self) -> Option<Time> {
        self.line.wake()
    }

    /// Next packet that has left the link by `now`. Return it with [`Hop::sent`].
    pub fn next(&mut self, now: Time) -> Option<Due> {
        self.advance(now);
        while let Some((at, packet, lost)) = self.line.poll(now) {
            if !lost {
                if packet.ecn == Ecn::Ce {
                    ip::mark(&mut self.pool.at(packet.body)[self.head..]);
                }
                return Some(Due { at, packet });
            }
            self.note(at, packet, "dropped: random loss");
            self.pool.give(packet.body);
        }
        None
    }

    /// Bytes of a packet that has left the link, including the `head` in front of the IP header.
    pub fn bytes(&mut self, due: &Due) -> &[u8] {
        &self.pool.at(due.packet.body)[..self.head + due.packet.len as usize]
    }

    /// Record that a packet was written at `now`, or `refused` by the device, and free it.
    pub fn sent(&mut self, due: Due, now: Time, refused: bool) {
        self.counts.written(due.at, now, refused);
        let comment =
            if refused { "left the link, but the destination device refused it" } else { "" };
        self.note(due.at, due.packet, comment);
        self.pool.give(due.packet.body);
    }

    /// Free the packets that the link dropped.
    fn losses(&mut self) {
        let Hop { line, pool, capture, head, .. } = self;
        for lost in line.link.lost() {
            if let Some(capture) = capture {
                let why = match lost.why {
                    Why::Full => "the buffer is full",
                    Why::Early => "by the AQM, on arrival",
                    Why::Late => "by the AQM, at the head",
                };
                let comment = capture::lost(why, lost.at.since(lost.packet.arrived));
                let bytes = &pool.at(lost.packet.body)[*head..][..lost.packet.len as usize];
                capture.packet(lost.at, bytes, &comment);
            }
            pool.give(lost.packet.body);
        }
    }

    fn note(&mut self, at: Time, packet: Packet, comment: &str) {
        if let Some(capture) = &self.capture {
            let bytes = &self.pool.at(packet.body)[self.head..][..packet.len as usize];
            capture.packet(at, bytes, comment);
        }
    }
}

impl Carrier for Hop {
    type Due = Due;

    fn room(&mut self) -> &mut [u8] {
        self.room()
    }

    fn arrive(&mut self, _end: usize, now: Time, len: usize) {
        self.arrive(now, len);
    }

    fn advance(&mut self, now: Time) {
        self.advance(now);
    }

    fn wake(&mut self) -> Option<Time> {
        self.wake()
    }

    fn next(&mut self, now: Time) -> Option<Due> {
        self.next(now)
    }

    fn bytes(&mut self, due: &Due) -> (usize, &[u8]) {
        (0, self.bytes(due))
    }

    fn sent(&mut self, due: Due, now: Time, refused: bool) {
        self.sent(due, now, refused);
    }
}
