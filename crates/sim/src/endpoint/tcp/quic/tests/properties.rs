//! Properties under random loss, reordering and marks: the receiver gets every byte once, and every
//! packet is either delivered or lost.

use super::*;
use sojourn_aqm::random::Random;

/// A sender and a receiver with a random path between them.
struct Pair {
    tcp: Tcp,
    receiver: Receiver,
    /// Segments and acks on the way, with their arrival times.
    segments: Vec<(Time, Segment)>,
    acks: Vec<(Time, Ack)>,
    rng: Pcg,
    loss: f64,
    ack_loss: f64,
    now: Time,
    lost: u64,
    received: u64,
}

impl Pair {
    fn new(name: &str, seed: u64, loss: f64, ack_loss: f64) -> Pair {
        let tcp = params(name, &[]);
        let mut rng = Pcg::seed_from_u64(seed);
        Pair {
            tcp: Tcp::new(&tcp, &mut rng),
            receiver: Receiver::new(&tcp, &mut rng),
            segments: Vec::new(),
            acks: Vec::new(),
            rng,
            loss,
            ack_loss,
            now: Time::ZERO,
            lost: 0,
            received: 0,
        }
    }

    /// Time of arrival: 20 ms, and up to 5 ms of reordering.
    fn arrival(&mut self) -> Time {
        let late = if self.rng.bernoulli(0.05) { 5e6 * self.rng.uniform() } else { 0.0 };
        self.now + Span(20 * MS + cast::trunc(late))
    }

    fn carry(&mut self, out: &mut Vec<Segment>) {
        for segment in out.drain(..) {
            if self.rng.bernoulli(self.loss) {
                self.lost += 1;
            } else {
                let at = self.arrival();
                self.segments.push((at, segment));
            }
        }
    }

    fn answer(&mut self, ack: Option<Ack>) {
        if let Some(ack) = ack
            && !self.rng.bernoulli(self.ack_loss)
        {
            let at = self.arrival();
            self.acks.push((at, ack));
        }
    }

    /// Processes the next event.
    fn step(&mut self, out: &mut Vec<Segment>) {
        let earliest = |list: &mut dyn Iterator<Item = Time>| list.min().unwrap_or(Time::NEVER);
        let segment = earliest(&mut self.segments.iter().map(|s| s.0));
        let ack = earliest(&mut self.acks.iter().map(|a| a.0));
        let timer = self.tcp.next_timer();
        self.now = self.now.max(segment.min(ack).min(timer).min(self.receiver.timer()));
        assert!(self.now < Time::NEVER, "nothing is due, and the transfer is not complete");
        if let Some(i) = self.segments.iter().position(|s| s.0 <= self.now) {
            let (at, segment) = self.segments.remove(i);
            self.received += 1;
            let answer = self.receiver.on_segment(at, &segment, false).copied();
            self.answer(answer);
        } else if let Some(i) = self.acks.iter().position(|a| a.0 <= self.now) {
            let ack = self.acks.remove(i).1;
            self.tcp.on_ack(self.now, &ack, out);
        } else if self.receiver.timer() <= self.now {
            let answer = self.receiver.on_timer(self.now).copied();
            self.answer(answer);
        } else {
            self.tcp.on_timer(self.now, out);
        }
        self.carry(out);
    }
}

#[test]
fn every_byte_arrives_once_whatever_is_lost() {
    let mut retransmitted = 0;
    for seed in 0..60 {
        let name = ["newreno", "cubic", "bbr"][seed as usize % 3];
        let loss = [0.0, 0.01, 0.1, 0.3][seed as usize % 4];
        let ack_loss = [0.0, 0.2][seed as usize % 2];
        let mut pair = Pair::new(name, seed, loss, ack_loss);
        let mut out = Vec::new();
        let bytes = 300_000 + u64::from(pair.rng.below(2_000));
        pair.tcp.open(pair.now, &mut out);
        // Two writes: the second one starts in the middle of a packet's worth of data.
        pair.tcp.write(pair.now, 1_234, &mut out);
        pair.tcp.write(pair.now, bytes - 1_234, &mut out);
        pair.carry(&mut out);
        while !pair.tcp.is_done() {
            pair.step(&mut out);
            assert!(pair.now < Time(3_600_000 * MS), "{name} {seed}");
            assert!(pair.receiver.received_in_connection() <= bytes);
        }
        let what = format!("{name}, seed {seed}, loss {loss}");
        assert_eq!(pair.receiver.received_in_connection(), bytes, "{what}");
        assert_eq!(pair.tcp.acked_bytes(), bytes, "{what}");
        let on_the_way = pair.segments.len() as u64;
        assert_eq!(pair.tcp.stats().sent_packets, pair.received + pair.lost + on_the_way, "{what}");
        retransmitted += pair.tcp.stats().retransmitted_packets;
    }
    assert!(retransmitted > 1_000, "{retransmitted}");
}

#[test]
fn a_second_connection_starts_as_the_first() {
    let run = |pair: &mut Pair| {
        let mut out = Vec::new();
        let (start, before) = (pair.now, *pair.tcp.stats());
        pair.receiver.reset();
        pair.tcp.open(pair.now, &mut out);
        pair.tcp.write(pair.now, 50_000, &mut out);
        pair.carry(&mut out);
        while !(pair.tcp.is_done() && pair.segments.is_empty() && pair.acks.is_empty()) {
            pair.step(&mut out);
        }
        (pair.now - start, pair.tcp.stats().sent_packets - before.sent_packets)
    };
    let mut pair = Pair::new("newreno", 1, 0.0, 0.0);
    let mut once = || {
        pair.rng = Pcg::seed_from_u64(5);
        run(&mut pair)
    };
    assert_eq!(once(), once());
}
