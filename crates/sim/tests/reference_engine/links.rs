//! Links of the reference engine: one event at the end of a transmission, or at every delivery
//! opportunity.

use crate::{Event, Load, Plain};
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Rate, Span, Time};
use sojourn_aqm::{Context, DropReason, Dropped, Packet, Qdisc};
use sojourn_sim::Scenario;
use sojourn_sim::config::{LinkConfig, LossModel};
use sojourn_sim::internals::random_stream;
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub struct PlainLink {
    pub qdisc: Box<dyn Qdisc + Send>,
    pub rng: sojourn_aqm::Pcg,
    /// Bytes in the queue by class.
    pub held: BTreeMap<u16, u64>,
    pub rate: Rate,
    pub delay: Span,
    /// Loss probabilities in the good and in the bad state, and transition probabilities from each.
    pub loss: [f64; 2],
    pub turns: [f64; 2],
    /// End of the warm-up.
    warm: Time,
    /// True in the bad state; the random stream; and lost packets among those that arrived since
    /// the warm-up.
    pub wire: (usize, sojourn_aqm::Pcg, u64),
    /// Arrival time of the last packet sent.
    pub last_arrival: Time,
    pub owed: u64,
    pub sending: Option<Packet>,
    /// Arrival time of the packet in transmission; None if it will be lost.
    pub arrives: Option<Time>,
    /// Delivery opportunities to come, in reverse order; and the packet in transmission with its
    /// bytes left, its propagation delay, and true if it will be lost.
    pub recorded: bool,
    pub idle: bool,
    pub moments: Vec<Time>,
    pub partly: Option<(Packet, u32, Span, bool)>,
    /// When each packet left and how: body, nanoseconds, fate.
    pub rows: Vec<(u64, u64, u8)>,
}

impl PlainLink {
    pub fn new(s: &Scenario, def: &LinkConfig) -> PlainLink {
        let (loss, turns) = match def.loss() {
            LossModel::Random(chance) => ([chance; 2], [0.0; 2]),
            LossModel::Bursts { p, r, bad_loss: bad, good_loss: good } => ([good, bad], [p, r]),
            other => panic!("{other:?} is not in this engine"),
        };
        PlainLink {
            qdisc: def.build().qdisc,
            rng: random_stream(s.seed(), &format!("links.{}", def.name())),
            held: BTreeMap::new(),
            rate: def.spec().rate,
            delay: def.spec().delay,
            loss,
            turns,
            warm: Time::ZERO + s.warmup(),
            wire: (0, random_stream(s.seed(), &format!("links.{}.loss", def.name())), 0),
            last_arrival: Time::ZERO,
            owed: 0,
            sending: None,
            arrives: None,
            recorded: def.opportunities().is_some(),
            idle: true,
            moments: moments(def, s.duration()),
            partly: None,
            rows: vec![],
        }
    }
}

impl PlainLink {
    /// Subtracts a packet that leaves the queue.
    fn leave(&mut self, packet: Packet) {
        *self.held.get_mut(&packet.class).expect("it was enqueued") -= u64::from(packet.len);
    }
}

/// All delivery opportunities of a link in a run of `duration`, in reverse order.
fn moments(def: &LinkConfig, duration: Span) -> Vec<Time> {
    let Some(recorded) = def.opportunities() else { return vec![] };
    let lap = recorded.times().last().expect("one at least").0;
    let laps = (0..=duration.0 / lap).map(|k| Time(k * lap));
    let all = laps.flat_map(|began| recorded.times().iter().map(move |at| began + *at));
    let mut all: Vec<Time> = all.collect();
    all.reverse();
    all
}

impl Plain {
    pub fn with<T>(
        &mut self,
        l: usize,
        f: impl FnOnce(&mut dyn Qdisc, &mut Context<'_>) -> T,
    ) -> T {
        let (mut dropped, mut marks) = (Vec::<Dropped>::new(), sojourn_aqm::Marks::default());
        let link = &mut self.links[l];
        let mut context =
            Context { now: self.now, rng: &mut link.rng, dropped: &mut dropped, marks: &mut marks };
        let out = f(&mut *link.qdisc, &mut context);
        for l in dropped {
            if l.reason != DropReason::SharedBuffer {
                link.leave(l.packet);
            }
            link.rows.push((l.packet.arrived.0, l.at.0, l.reason as u8));
            let body = self.bodies[l.packet.body as usize];
            if let Load::Datagram(datagram) = &body.load {
                self.flows[body.flow].on_datagram_lost(datagram);
            }
        }
        out
    }

    pub fn transmit(&mut self, l: usize) {
        let link = &mut self.links[l];
        if link.rate.0 == 0 && link.qdisc.backlog().packets > 0 {
            (link.sending, link.owed) = (None, 0);
            return;
        }
        let next = self.with(l, |q, context| q.dequeue(context));
        let now = self.now;
        let link = &mut self.links[l];
        link.sending = next;
        let Some(packet) = next else { return link.owed = 0 };
        link.leave(packet);
        link.rows.push((packet.arrived.0, now.0, 0));
        let owed = u64::from(packet.len) * 8_000_000_000 + link.owed;
        link.owed = owed % link.rate.0;
        let end = now + Span(owed / link.rate.0);
        link.last_arrival = link.last_arrival.max(end + link.delay);
        link.arrives = Some(link.last_arrival);
        self.heap.push(Reverse((end, Event::Sent(l))));
        if self.loses(l, packet) {
            self.links[l].arrives = None;
        }
    }

    /// True if the packet whose transmission starts is lost.
    fn loses(&mut self, l: usize, packet: Packet) -> bool {
        let link = &mut self.links[l];
        let (state, rng, count) = &mut link.wire;
        let before = *state;
        if link.turns != [0.0; 2] && rng.uniform() < link.turns[before] {
            *state = 1 - before;
        }
        let lost = rng.uniform() < link.loss[before];
        *count += u64::from(lost && packet.arrived >= link.warm);
        let body = self.bodies[packet.body as usize];
        if let (true, Load::Datagram(datagram)) = (lost, &body.load) {
            self.flows[body.flow].on_datagram_lost(datagram);
        }
        lost
    }

    /// Delivery opportunity of link `l`: up to 1504 bytes, of which each packet takes 4 for its
    /// framing.
    pub fn opportunity(&mut self, l: usize) {
        let next = self.links[l].moments.pop();
        self.heap.extend(next.map(|at| Reverse((at, Event::Sent(l)))));
        let mut bytes = 1504;
        while bytes > 0 {
            if self.links[l].partly.is_none() {
                // Dequeue once from an empty queue: disciplines start their idle time from that
                // call.
                if self.links[l].idle {
                    return;
                }
                let next = self.with(l, |q, context| q.dequeue(context));
                self.links[l].idle = next.is_none();
                let Some(packet) = next else { return };
                let lost = self.loses(l, packet);
                let (now, link) = (self.now, &mut self.links[l]);
                link.leave(packet);
                link.rows.push((packet.arrived.0, now.0, 0));
                link.partly = Some((packet, packet.len + 4, link.delay, lost));
            }
            let link = &mut self.links[l];
            let Some((packet, left, delay, lost)) = &mut link.partly else { return };
            let now = bytes.min(*left);
            (bytes, *left) = (bytes - now, *left - now);
            if *left == 0 {
                link.last_arrival = link.last_arrival.max(self.now + *delay);
                if !*lost {
                    self.tickets.push(*packet);
                    let id = self.tickets.len() as u64 - 1;
                    self.heap.push(Reverse((link.last_arrival, Event::Delivered(l, id))));
                }
                link.partly = None;
            }
        }
    }

    pub fn push(&mut self, l: usize, packet: Packet) {
        let packet = Packet { arrived: self.now, ..packet };
        if !self.admits(l, packet) {
            return self.with(l, |_, context| context.drop(packet, DropReason::SharedBuffer));
        }
        *self.links[l].held.entry(packet.class).or_default() += u64::from(packet.len);
        self.with(l, |q, context| q.enqueue(context, packet));
        self.links[l].idle &= self.links[l].qdisc.backlog().packets == 0;
        if self.links[l].sending.is_none() && !self.links[l].recorded {
            self.transmit(l);
        }
    }
}
