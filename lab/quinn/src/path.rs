//! Path between two peers: a link of sojourn with random loss behind it, and a pure delay back.

use crate::peers::{Peer, pair};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use serde_json::Value;
use sojourn_aqm::random::{Random, stream_key};
use sojourn_aqm::{Link, LinkSpec, Packet, Rate, Setting, Span, Time, build};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Headers of IPv4 and UDP, bytes.
const HEADERS: usize = 28;

/// Two peers and what is between them.
pub struct Path {
    link: Link,
    /// Datagrams on the link, in the order of their arrival there; a dropped one is taken out.
    bodies: Vec<Option<Vec<u8>>>,
    free: Vec<u32>,
    back: VecDeque<(Time, Vec<u8>)>,
    delay: Span,
    loss: f64,
    rng: Pcg64Mcg,
    peers: [Peer; 2],
    origin: Instant,
    now: Time,
    /// Packets lost behind the link.
    lost: u64,
}

/// Measurements after the warm-up.
pub struct Outcome {
    pub goodput_bps: f64,
    pub arrived: u64,
    pub dropped: u64,
    pub lost: u64,
    pub declared_lost: u64,
    pub delay_s: f64,
    pub congestion_events: u64,
}

impl Path {
    /// Creates the path of a set-up.
    pub fn new(setup: &Value) -> Path {
        let number = |key: &str| setup[key].as_f64().unwrap_or_else(|| panic!("{key}: a number"));
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        let seed = setup["seed"].as_u64().expect("seed: a whole number");
        let settings: Vec<_> = setup["settings"].as_object().into_iter().flatten().collect();
        let settings: Vec<_> = settings.iter().map(|(key, value)| (*key, text(value))).collect();
        let settings: Vec<_> =
            settings.iter().map(|(k, v)| (k.as_str(), Setting::Text(v.as_str()))).collect();
        let rate = Rate(number("rate_bps") as u64);
        let delay = Span((number("rtt_s") * 0.5e9) as u64);
        let rng = |name| Pcg64Mcg::from_seed(stream_key(seed, name)[..16].try_into().unwrap());
        let built = build(&text(&setup["qdisc"]), &settings, rate).expect("a valid discipline");
        let link = Link::new(LinkSpec::new(rate, delay), built.qdisc, rng("links.link"));
        let origin = Instant::now();
        Path {
            link: link.expect("a valid rate"),
            bodies: Vec::new(),
            free: Vec::new(),
            back: VecDeque::new(),
            delay,
            loss: number("loss"),
            rng: rng("links.link.loss"),
            peers: pair(&text(&setup["control"]), seed, origin),
            origin,
            now: Time::ZERO,
            lost: 0,
        }
    }

    /// Runs until `end` seconds; measures after `warmup` seconds.
    pub fn run(&mut self, warmup: f64, end: f64) -> Outcome {
        self.run_until(warmup);
        let (read, lost, before) = (self.peers[1].read, self.lost, self.peers[0].losses());
        self.link.reset_stats(self.now);
        self.run_until(end);
        let after = self.peers[0].losses();
        let stats = self.link.stats();
        Outcome {
            goodput_bps: (self.peers[1].read - read) as f64 * 8.0 / (end - warmup),
            arrived: stats.arrived_packets,
            dropped: stats.dropped(),
            delay_s: stats.sojourn.mean_s().unwrap_or(0.0),
            lost: self.lost - lost,
            declared_lost: after[0] - before[0],
            congestion_events: after[1] - before[1],
        }
    }

    fn run_until(&mut self, seconds: f64) {
        let end = Time((seconds * 1e9) as u64);
        loop {
            self.transmit();
            let next = self.next();
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            self.deliver();
        }
    }

    fn instant(&self) -> Instant {
        self.origin + Duration::from_nanos(self.now.0)
    }

    /// Time of the next event.
    fn next(&mut self) -> Time {
        let origin = self.origin;
        let mut next = self.link.next_poll().unwrap_or(Time::NEVER);
        next = next.min(self.back.front().map_or(Time::NEVER, |(at, _)| *at));
        for peer in &mut self.peers {
            if let Some(at) = peer.timeout() {
                let nanos = at.saturating_duration_since(origin).as_nanos();
                next = next.min(Time(u64::try_from(nanos).unwrap_or(u64::MAX)));
            }
        }
        next.max(self.now)
    }

    /// Lets both peers send.
    fn transmit(&mut self) {
        let at = self.instant();
        for body in self.peers[0].transmit(at, true) {
            let len = u32::try_from(body.len() + HEADERS).expect("a datagram");
            let place = self.free.pop().unwrap_or_else(|| {
                self.bodies.push(None);
                u32::try_from(self.bodies.len() - 1).expect("few datagrams")
            });
            self.bodies[place as usize] = Some(body);
            self.link.push(self.now, Packet { len, body: place, ..Packet::default() });
            self.forget_dropped();
        }
        for body in self.peers[1].transmit(at, false) {
            self.back.push_back((self.now + self.delay, body));
        }
    }

    fn forget_dropped(&mut self) {
        for dropped in self.link.take_dropped() {
            let place = dropped.packet.body;
            self.bodies[place as usize] = None;
            self.free.push(place);
        }
    }

    /// Delivers what has arrived.
    fn deliver(&mut self) {
        let at = self.instant();
        while let Some(packet) = self.link.poll(self.now) {
            let body = self.bodies[packet.body as usize].take().expect("on the link");
            self.free.push(packet.body);
            if self.loss > 0.0 && self.rng.bernoulli(self.loss) {
                self.lost += 1;
            } else {
                self.peers[1].receive(at, &body);
            }
        }
        self.forget_dropped();
        while self.back.front().is_some_and(|(at, _)| *at <= self.now) {
            let (_, body) = self.back.pop_front().expect("checked");
            self.peers[0].receive(at, &body);
        }
    }
}
