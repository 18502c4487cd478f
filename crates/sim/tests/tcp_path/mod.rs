//! Minimal path for TCP tests: hops with a rate, a delay and a FIFO buffer in packets, one event
//! per packet and hop. Losses and marks are scripted.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

use sojourn_aqm::params::Setting;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::internals::tcp::{self, Ack, Receiver, Segment, Tcp};
use sojourn_sim::tcp::TcpParams;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Generator that always returns the same number.
pub struct Fixed(pub f64);

impl Random for Fixed {
    fn uniform(&mut self) -> f64 {
        self.0
    }
}

/// Parameters from text, in the profile `rfc` unless `settings` name another one.
pub fn params(name: &str, settings: &[(&str, &str)]) -> TcpParams {
    let settings = [("profile", "rfc")].iter().chain(settings);
    tcp::parse(name, settings.map(|&(k, v)| (k, Setting::Text(v)))).unwrap()
}

/// Link: FIFO, rate, delay.
pub struct Hop {
    ns_per_byte: u64,
    delay: u64,
    /// Buffer size in packets, without the one in transmission.
    room: usize,
    free: u64,
    /// Start of transmission of each queued packet.
    starts: VecDeque<u64>,
}

impl Hop {
    /// Creates a hop of `ns_per_byte` and `delay` with a buffer of `room` packets.
    pub fn new(ns_per_byte: u64, delay: Span, room: usize) -> Hop {
        Hop { ns_per_byte, delay: delay.0, room, free: 0, starts: VecDeque::new() }
    }

    /// Time at which a packet that enters at `now` leaves; `None` if it is dropped.
    fn pass(&mut self, now: u64, wire: u32) -> Option<u64> {
        while self.starts.front().is_some_and(|&s| s <= now) {
            self.starts.pop_front();
        }
        if self.starts.len() >= self.room {
            return None;
        }
        let start = self.free.max(now);
        if start > now {
            self.starts.push_back(start);
        }
        self.free = start + u64::from(wire) * self.ns_per_byte;
        Some(self.free + self.delay)
    }
}

/// Event of a flow, as in ns-2's traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Time.
    pub now: Time,
    /// `s` sent, `d` dropped, `a` ack received, `x` timer expired.
    pub event: char,
    /// Sequence number; for an ack, the next expected one.
    pub seq: u64,
    /// Bytes on the wire.
    pub wire: u32,
    /// Window after the event, packets.
    pub cwnd: f64,
    /// Slow-start threshold after the event, packets.
    pub ssthresh: f64,
    /// Duplicate acks after the event.
    pub dup: u32,
    /// True for a retransmission.
    pub again: bool,
}

/// Packet in flight.
#[derive(Clone, Copy)]
enum Cargo {
    Segment(Segment, bool),
    Ack(Ack),
}

/// Fate of a segment at the entrance of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    Pass,
    Lose,
    Mark,
}

/// One flow over one path.
pub struct Path<F> {
    /// Sender.
    pub sender: Tcp,
    /// Receiver.
    pub receiver: Receiver,
    hops: Vec<Hop>,
    back: Vec<Hop>,
    /// Called for every segment with its number in order of transmission, from 0.
    fate: F,
    /// Every n-th ack is lost (0: none).
    pub lose_acks: u64,
    /// Events.
    pub rows: Vec<Row>,
    /// Segments and acks in flight: time, order and index in `cargo`.
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    cargo: Vec<(Cargo, usize)>,
    spare: Vec<u32>,
    order: u64,
    /// True if `rows` are recorded; long runs omit them.
    pub quiet: bool,
    sent: u64,
    acks: u64,
    /// Current time.
    pub now: Time,
    /// Outbox of the sender; kept for its capacity.
    out: Vec<Segment>,
}

impl<F: FnMut(u64, &Segment) -> Fate> Path<F> {
    /// Creates a path of `hops` and, for acks, `back`.
    pub fn new(params: &TcpParams, phase: f64, hops: Vec<Hop>, back: Vec<Hop>, fate: F) -> Self {
        Path {
            sender: Tcp::new(params, &mut Fixed(phase)),
            receiver: Receiver::new(params, &mut Fixed(phase)),
            hops,
            back,
            fate,
            lose_acks: 0,
            rows: Vec::new(),
            heap: BinaryHeap::new(),
            cargo: Vec::new(),
            spare: Vec::new(),
            order: 0,
            quiet: false,
            sent: 0,
            acks: 0,
            now: Time::ZERO,
            out: Vec::new(),
        }
    }

    /// Creates an infinitely fast path with an RTT of `rtt`.
    pub fn wide(params: &TcpParams, rtt: Span, fate: F) -> Self {
        let half = || vec![Hop::new(0, Span(rtt.0 / 2), usize::MAX)];
        Path::new(params, 0.5, half(), half(), fate)
    }

    /// Opens a connection at time `at` and writes `amount`.
    pub fn start(&mut self, at: Time, amount: u64) {
        self.now = at;
        self.receiver.reset();
        self.sender.open(at, &mut self.out);
        self.sender.write(at, amount, &mut self.out);
        self.launch();
    }

    /// Drops all segments and acks in flight.
    pub fn drop_in_flight(&mut self) {
        self.heap.clear();
        self.cargo.clear();
        self.spare.clear();
    }

    /// Writes more data now.
    pub fn write(&mut self, amount: u64) {
        self.sender.write(self.now, amount, &mut self.out);
        self.launch();
    }

    /// Runs until no event is left before `end`.
    pub fn run(&mut self, end: Time) {
        loop {
            let arrival = self.heap.peek().map_or(Time::NEVER, |r| Time(r.0.0));
            let timers = self.sender.next_timer().min(self.receiver.timer());
            let next = arrival.min(timers);
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next;
            // Timers precede arrivals at the same time.
            if self.sender.next_timer() == next {
                self.row('x', 0, 0, false);
                self.sender.on_timer(next, &mut self.out);
                self.launch();
            } else if self.receiver.timer() == next {
                let ack = self.receiver.on_timer(next).copied();
                self.reply(ack);
            } else {
                let Reverse((_, _, place)) = self.heap.pop().unwrap();
                let (cargo, hop) = self.cargo[place as usize];
                self.spare.push(place);
                self.arrive(cargo, hop);
            }
        }
    }

    fn row(&mut self, event: char, seq: u64, wire: u32, again: bool) {
        if self.quiet {
            return;
        }
        let s = &self.sender;
        let (cwnd, ssthresh, dup) = (s.cwnd_packets(), s.ssthresh_packets(), s.dup_acks());
        self.rows.push(Row { now: self.now, event, seq, wire, cwnd, ssthresh, dup, again });
    }

    fn launch(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        for seg in out.drain(..) {
            self.row('s', seg.seq, seg.wire_bytes.into(), seg.retransmission);
            let fate = (self.fate)(self.sent, &seg);
            self.sent += 1;
            if fate == Fate::Lose {
                self.row('d', seg.seq, seg.wire_bytes.into(), seg.retransmission);
            } else {
                self.arrive(Cargo::Segment(seg, fate == Fate::Mark && seg.ect), 0);
            }
        }
        self.out = out;
    }

    /// Processes the arrival of `cargo` at hop number `hop`, or at its destination.
    fn arrive(&mut self, cargo: Cargo, hop: usize) {
        let (line, wire) = match cargo {
            Cargo::Segment(seg, _) => (&mut self.hops, seg.wire_bytes.into()),
            Cargo::Ack(ack) => (&mut self.back, ack.wire.into()),
        };
        let Some(link) = line.get_mut(hop) else { return self.deliver(cargo) };
        match link.pass(self.now.0, wire) {
            Some(at) => {
                let place = self.spare.pop().unwrap_or(self.cargo.len() as u32);
                self.cargo.resize(self.cargo.len().max(place as usize + 1), (cargo, 0));
                self.cargo[place as usize] = (cargo, hop + 1);
                self.order += 1;
                self.heap.push(Reverse((at, self.order, place)));
            }
            None => {
                let Cargo::Segment(seg, _) = cargo else { panic!("acks are not dropped") };
                self.row('d', seg.seq, seg.wire_bytes.into(), seg.retransmission);
            }
        }
    }

    fn deliver(&mut self, cargo: Cargo) {
        match cargo {
            Cargo::Segment(mut seg, ce) => {
                // No router of the path changes the header of XCP.
                if let Some(header) = self.sender.xcp_header() {
                    seg.timestamp = header.delta_throughput.cast_unsigned();
                }
                let held = self.receiver.before_segment(&seg, ce).copied();
                self.reply(held);
                let ack = self.receiver.on_segment(self.now, &seg, ce).copied();
                self.reply(ack);
            }
            Cargo::Ack(ack) => {
                self.sender.on_ack(self.now, &ack, &mut self.out);
                self.row('a', ack.ack, ack.wire.into(), false);
                self.launch();
            }
        }
    }

    fn reply(&mut self, ack: Option<Ack>) {
        let Some(ack) = ack else { return };
        self.acks += 1;
        if self.lose_acks == 0 || ack.syn || !self.acks.is_multiple_of(self.lose_acks) {
            self.arrive(Cargo::Ack(ack), 0);
        }
    }
}
