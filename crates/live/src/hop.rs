//! One direction: a link, the bytes of the packets on it, and what happens to them. It is told the
//! time, as a link is, and reads no clock.

use crate::capture::{self, Capture};
use crate::ip;
use crate::line::{Line, See};
use crate::pool::Pool;
use crate::pump::Carrier;
use sojourn_aqm::cast;
use sojourn_aqm::tally::Histogram;
use sojourn_aqm::{Ecn, Link, Packet, Span, Time, Why};

/// A delivery that is later than this is counted as late.
pub const LATE: Span = Span::ms(1);

/// What a direction is made of.
pub struct HopSpec {
    /// Its link.
    pub line: Line,
    /// Keys the hashes of flows.
    pub salt: u64,
    /// Bytes before the IP header: 0 on a TUN device, 14 on a veth. They cross as they are, and do
    /// not count.
    pub head: usize,
}

/// What a direction counts that a link does not.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Packets that were no IP packets; they reach no link.
    pub malformed: u64,
    /// Packets for which there was no memory; they reach no link.
    pub no_memory: u64,
    /// Packets that were delivered.
    pub delivered: u64,
    /// Packets that crossed the link and that the far end refused.
    pub refused: u64,
    /// How much later than due packets were written.
    pub lateness: Histogram,
    /// How many were later than [`LATE`].
    pub late: u64,
}

impl Counts {
    /// A packet that was due at `due` was written at `now`, or the far end `refused` it.
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

/// A packet that has crossed the link.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// When it was due.
    pub at: Time,
    packet: Packet,
}

/// One direction.
pub struct Hop {
    line: Line,
    pool: Pool,
    /// The place that the next packet is read into.
    next: u32,
    salt: u64,
    head: usize,
    capture: Option<Capture>,
    arrivals: Option<Vec<Packet>>,
    counts: Counts,
}

impl Hop {
    /// A direction with nothing on it, at time zero.
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

    /// Has `see` look at the link once per `every`, first after that time.
    pub fn look(&mut self, every: Span, see: See) {
        self.line.look(every, see);
    }

    /// Has every packet written into `capture`.
    pub fn capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Keeps a row for every arrival, and for every packet that leaves the queue.
    pub fn record(&mut self) {
        self.arrivals = Some(Vec::new());
        self.line.link.record();
    }

    /// The tickets that arrived, as they arrived, if [`Hop::record`] asked for them.
    pub fn arrivals(&self) -> &[Packet] {
        self.arrivals.as_deref().unwrap_or_default()
    }

    /// The link.
    pub fn link(&mut self) -> &mut Link {
        &mut self.line.link
    }

    /// Packets that the wire lost.
    pub fn lost_on_wire(&self) -> u64 {
        self.line.lost_on_wire
    }

    /// What was counted.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How many packets are in the queue or on the wire.
    pub fn held(&self) -> usize {
        self.pool.taken() - 1
    }

    /// Where the next packet is to be put, for [`Hop::arrive`].
    pub fn room(&mut self) -> &mut [u8] {
        self.pool.at(self.next)
    }

    /// A packet arrives at `now`: the first `len` bytes of [`Hop::room`].
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

    /// Does all that was due up to `now`, at the moments when it was due.
    pub fn advance(&mut self, now: Time) {
        self.line.advance(now);
        self.losses();
    }

    /// When there will next be something to do; none while there is nothing.
    pub fn wake(&mut self) -> Option<Time> {
        self.line.wake()
    }

    /// The next packet that has crossed by `now`. It must be given back by [`Hop::sent`].
    pub fn next(&mut self, now: Time) -> Option<Due> {
        self.advance(now);
        while let Some((at, packet, lost)) = self.line.poll(now) {
            if !lost {
                if packet.ecn == Ecn::Ce {
                    ip::mark(&mut self.pool.at(packet.body)[self.head..]);
                }
                return Some(Due { at, packet });
            }
            self.note(at, packet, "dropped: the wire lost it");
            self.pool.give(packet.body);
        }
        None
    }

    /// The bytes of a packet that has crossed, with what was before its header.
    pub fn bytes(&mut self, due: &Due) -> &[u8] {
        &self.pool.at(due.packet.body)[..self.head + due.packet.len as usize]
    }

    /// A packet was written at `now`, or the far end `refused` it.
    pub fn sent(&mut self, due: Due, now: Time, refused: bool) {
        self.counts.written(due.at, now, refused);
        let comment = if refused { "crossed, but the far end refused it" } else { "" };
        self.note(due.at, due.packet, comment);
        self.pool.give(due.packet.body);
    }

    /// Frees what the link has lost.
    fn losses(&mut self) {
        let Hop { line, pool, capture, head, .. } = self;
        for lost in line.link.lost() {
            if let Some(capture) = capture {
                let why = match lost.why {
                    Why::Full => "the buffer is full",
                    Why::Early => "by the law, on arrival",
                    Why::Late => "by the law, at the head",
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
