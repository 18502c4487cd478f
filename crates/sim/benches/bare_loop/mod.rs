//! Bare loop: S1 written by hand, as a measuring stick for the engine.
//!
//! One link with gentle RED, NewReno in whole packets with one ACK per packet, three events per
//! packet: end of transmission, arrival at the receiver, arrival of the ACK. Nothing is general:
//! no other discipline, TCP, path or packet length, no statistics but two counters. The event queue
//! is the engine's, with two slots per flow.

use sojourn_aqm::units::Time;
use sojourn_sim::internals::EventQueue;
use std::collections::VecDeque;

const PACKET: u64 = 500;
/// Transmission of a packet at 45 Mbit/s, ns.
const TRANSMISSION: u64 = 88_889;
/// Propagation delay of the link, ns.
const DELAY: u64 = 1_000_000;
const LIMIT: u64 = 300_000;
const NEVER: u64 = u64::MAX;

/// Random numbers (xorshift64, Marsaglia 2003).
struct Rng(u64);

impl Rng {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Gentle RED on bytes, thresholds 75 and 150 kB.
#[derive(Default)]
struct Red {
    average: f64,
    count: f64,
    idle_since: u64,
}

impl Red {
    /// True if the packet that arrives at a queue of `queued` bytes is accepted.
    fn accepts(&mut self, now: u64, queued: u64, rng: &mut Rng) -> bool {
        const W_Q: f64 = 0.002;
        if queued == 0 {
            let packets = now.saturating_sub(self.idle_since) as f64 / TRANSMISSION as f64;
            self.average *= (1.0 - W_Q).powf(packets);
            self.idle_since = now;
        }
        self.average += W_Q * (queued as f64 - self.average);
        if self.average < 75_000.0 {
            self.count = -1.0;
            return queued + PACKET <= LIMIT;
        }
        let p = match self.average {
            low if low < 150_000.0 => 0.1 * (low - 75_000.0) / 75_000.0,
            high => 0.1 + 0.9 * (high - 150_000.0) / 150_000.0,
        };
        self.count += 1.0;
        let left = 1.0 - self.count * p;
        let dropped = left <= 0.0 || rng.uniform() * left < p || queued + PACKET > LIMIT;
        if dropped {
            self.count = 0.0;
        }
        !dropped
    }
}

/// NewReno sender and receiver, and the packets on the way between them.
struct Flow {
    rtt: u64,
    una: u64,
    next: u64,
    highest: u64,
    recover: u64,
    cwnd: f64,
    ssthresh: f64,
    dup_acks: u32,
    recovering: bool,
    /// Packet being timed, and when it was sent.
    timed: Option<(u64, u64)>,
    srtt: f64,
    rttvar: f64,
    rto: u64,
    timer: u64,
    expected: u64,
    /// Out-of-order packets at the receiver: bit i stands for `expected` + i.
    held: u128,
    data: VecDeque<(u64, u64)>,
    acks: VecDeque<(u64, u64)>,
}

impl Flow {
    fn new(rtt: u64, start: u64) -> Flow {
        Flow {
            rtt,
            una: 0,
            next: 0,
            highest: 0,
            recover: 0,
            cwnd: 2.0,
            ssthresh: 1e9,
            dup_acks: 0,
            recovering: false,
            timed: None,
            srtt: 0.0,
            rttvar: 0.0,
            rto: 1_000_000_000,
            timer: start,
            expected: 0,
            held: 0,
            data: VecDeque::new(),
            acks: VecDeque::new(),
        }
    }

    fn receive(&mut self, seq: u64) -> u64 {
        if seq >= self.expected && seq - self.expected < 128 {
            self.held |= 1 << (seq - self.expected);
            let whole = self.held.trailing_ones();
            self.expected += u64::from(whole);
            self.held = self.held.checked_shr(whole).unwrap_or(0);
        }
        self.expected
    }

    /// Processes an ACK; returns true if `una` must be retransmitted.
    fn on_ack(&mut self, now: u64, ack: u64) -> bool {
        if ack > self.una {
            let acked = (ack - self.una) as f64;
            if let Some((_, sent)) = self.timed.take_if(|(seq, _)| *seq < ack) {
                self.sample((now - sent) as f64);
            }
            (self.una, self.next) = (ack, self.next.max(ack));
            self.timer = now + self.rto;
            if self.recovering && ack < self.recover {
                self.cwnd = (self.cwnd - acked + 1.0).max(1.0);
                return true;
            }
            if self.recovering {
                (self.recovering, self.cwnd) = (false, self.ssthresh);
            } else {
                self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
            }
            self.dup_acks = 0;
            return false;
        }
        if self.next == self.una {
            return false;
        }
        self.dup_acks += 1;
        if self.recovering {
            self.cwnd += 1.0;
        } else if self.dup_acks == 3 && self.una >= self.recover {
            self.ssthresh = ((self.next - self.una) as f64 / 2.0).max(2.0);
            (self.recovering, self.recover, self.timed) = (true, self.highest, None);
            (self.cwnd, self.timer) = (self.ssthresh + 3.0, now + self.rto);
            return true;
        }
        false
    }

    fn sample(&mut self, rtt: f64) {
        if self.srtt == 0.0 {
            (self.srtt, self.rttvar) = (rtt, rtt / 2.0);
        } else {
            self.rttvar += ((rtt - self.srtt).abs() - self.rttvar) / 4.0;
            self.srtt += (rtt - self.srtt) / 8.0;
        }
        self.rto = ((self.srtt + 4.0 * self.rttvar) as u64).max(200_000_000);
    }

    fn on_timeout(&mut self, now: u64) {
        self.ssthresh = ((self.next - self.una) as f64 / 2.0).max(2.0);
        (self.cwnd, self.next, self.recover) = (2.0, self.una, self.highest);
        (self.recovering, self.dup_acks, self.timed) = (false, 0, None);
        self.rto = (2 * self.rto).min(60_000_000_000);
        self.timer = now + self.rto;
    }

    fn next_event(&self) -> Time {
        Time(self.acks.front().map_or(NEVER, |ack| ack.0).min(self.timer))
    }
}

/// State of the loop: slot 0 of the event queue is the link; then two slots per flow, for arrivals
/// at the receiver and for events of the sender.
struct Bare {
    flows: Vec<Flow>,
    queue: VecDeque<(usize, u64)>,
    red: Red,
    rng: Rng,
    events: EventQueue,
}

impl Bare {
    fn send(&mut self, f: usize, seq: u64, now: u64) {
        let flow = &mut self.flows[f];
        if seq >= flow.highest {
            flow.highest = seq + 1;
            flow.timed.get_or_insert((seq, now));
        }
        // The packet in transmission is at the head, and not counted.
        let queued = self.queue.len().saturating_sub(1) as u64 * PACKET;
        if self.red.accepts(now, queued, &mut self.rng) {
            if self.queue.is_empty() {
                self.events.schedule(0, Time(now + TRANSMISSION));
            }
            self.queue.push_back((f, seq));
        }
    }

    /// The packet at the head has been sent.
    fn on_departure(&mut self, now: u64) {
        let Some((f, seq)) = self.queue.pop_front() else { return };
        let next = if self.queue.is_empty() { NEVER } else { now + TRANSMISSION };
        self.events.schedule(0, Time(next));
        let flow = &mut self.flows[f];
        flow.data.push_back((now + DELAY, seq));
        if flow.data.len() == 1 {
            self.events.schedule(1 + 2 * f, Time(now + DELAY));
        }
    }

    fn on_arrival(&mut self, f: usize, now: u64) {
        let flow = &mut self.flows[f];
        let Some((_, seq)) = flow.data.pop_front() else { return };
        let ack = flow.receive(seq);
        flow.acks.push_back((now + flow.rtt - DELAY, ack));
        let next = flow.data.front().map_or(NEVER, |packet| packet.0);
        self.events.schedule(1 + 2 * f, Time(next));
        self.events.schedule_earlier(2 + 2 * f, flow.next_event());
    }

    fn on_sender_event(&mut self, f: usize, now: u64) {
        let flow = &mut self.flows[f];
        if flow.acks.front().is_some_and(|ack| ack.0 <= now)
            && let Some((_, ack)) = flow.acks.pop_front()
        {
            if flow.on_ack(now, ack) {
                let una = flow.una;
                self.send(f, una, now);
            }
        } else {
            flow.on_timeout(now);
        }
        loop {
            let flow = &mut self.flows[f];
            if flow.next >= flow.una + (flow.cwnd as u64).min(120) {
                break;
            }
            flow.next += 1;
            let seq = flow.next - 1;
            self.send(f, seq, now);
        }
        self.events.schedule(2 + 2 * f, self.flows[f].next_event());
    }
}

/// Runs `flows` flows for `seconds`; returns the number of packets sent by the link.
pub fn run(flows: usize, seconds: u64) -> u64 {
    let mut rng = Rng(88_172_645_463_325_252);
    let flow = |_| {
        let rtt = 40_000_000.0 + 160_000_000.0 * rng.uniform();
        Flow::new(rtt as u64, (rng.uniform() * 1e9) as u64)
    };
    let flows: Vec<Flow> = (0..flows).map(flow).collect();
    let mut events = EventQueue::new(1 + 2 * flows.len());
    for (f, flow) in flows.iter().enumerate() {
        events.schedule(2 + 2 * f, flow.next_event());
    }
    let (queue, red) = (VecDeque::new(), Red::default());
    let mut bare = Bare { flows, queue, red, rng, events };
    let (mut sent, end) = (0, seconds * 1_000_000_000);
    loop {
        let (slot, Time(now)) = bare.events.earliest();
        match slot {
            _ if now >= end => return sent,
            0 => {
                sent += 1;
                bare.on_departure(now);
            }
            _ if slot % 2 == 1 => bare.on_arrival(slot / 2, now),
            _ => bare.on_sender_event(slot / 2 - 1, now),
        }
    }
}
