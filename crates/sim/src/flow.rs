//! The two ends of a flow: a TCP sender and receiver, or a UDP source and sink, with the
//! application that drives them.

mod absent;
mod arrivals;
mod lent;
mod packets;

pub use lent::Told;
pub use packets::{Arrival, Outbox};

use crate::acks::Acks;
use crate::pace::Pace;
use crate::scenario::FlowDef;
use crate::source::{Source, Transfers};
use crate::tcp::{Ack, Receiver, Segment, Stats, Tcp, UNLIMITED};
use crate::udp::UdpEnds;
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::cast;
use sojourn_aqm::dice;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// A generator for the component `name` under `seed`.
pub fn stream(seed: u64, name: &str) -> Pcg64Mcg {
    let key = dice::key(seed, name);
    Pcg64Mcg::from_seed(key[..16].try_into().expect("half of 32 bytes"))
}

/// A transfer that was received in full.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// When it started.
    pub start: Time,
    /// How long it took, until its last byte was received in order.
    pub took: Span,
    /// How long it took until its first byte could be sent.
    pub startup: Span,
    /// Its payload.
    pub bytes: u64,
}

/// A flow.
pub struct Flow {
    /// Its name.
    pub name: String,
    /// The group it belongs to, as an index of the scenario's flows.
    pub group: u32,
    /// Which of the world's routes it takes.
    pub route: u32,
    /// What tells it apart in hashed queues.
    pub hash: u32,
    /// The traffic class of its packets.
    pub class: u16,
    /// Propagation of its whole loop.
    pub rtt: Span,
    /// What the loop has beyond its links; every ack waits that long before it reaches the sender.
    lag: Span,
    /// Whether acks cross links on their way back.
    pub acks_cross_links: bool,
    /// Whether the receiver is asked as soon as it is known what will reach it and when. Where acks
    /// come back by a pure delay nobody but the sender can tell, and it learns of each at its time:
    /// so a packet costs no event of its own, only an ack does.
    early: bool,
    /// What reaches the far end and when, in order, where it is not asked early.
    inbox: VecDeque<(Time, u32, Arrival)>,
    /// Payload that an early receiver got in order by the next look; later totals are in `later`.
    delivered: u64,
    /// Bytes on the wire that reached the far end by the next look, duplicates included.
    received: u64,
    /// The same of an early receiver, with all arrivals that are known.
    foreseen: u64,
    /// Totals delivered and received of an early receiver, with their times from the next look on.
    later: VecDeque<(Time, u64, u64)>,
    /// Acks on the last leg to the sender.
    acks: Acks,
    /// The connection; what belongs to an earlier one is ignored.
    pub connection: u32,
    /// When the application next does something.
    due: Time,
    stop: Time,
    /// The two ends.
    pub ends: Ends,
}

/// The two ends of a flow.
#[expect(clippy::large_enum_variant, reason = "TCP is the rule, and one look at memory less")]
pub enum Ends {
    /// TCP.
    Tcp(TcpEnds),
    /// UDP.
    Udp(Box<UdpEnds>),
}

/// A TCP sender and receiver with their application.
pub struct TcpEnds {
    /// The sender.
    pub sender: Tcp,
    /// The receiver.
    pub receiver: Receiver,
    app: App,
    /// Transfers completed.
    pub completions: Vec<Completion>,
    /// What the sender had done and the receiver had got when counting began.
    base: (Stats, u64),
}

enum App {
    Bulk {
        open: bool,
    },
    Transfers(Box<Repeat>),
    /// Writes into one connection at times of its own.
    Paced(Box<Paced>),
    /// What a crowd has asked for.
    Lent(Box<Told>),
}

/// The state of an application with a pace.
struct Paced {
    pace: Pace,
    rng: Pcg64Mcg,
    /// How long after the start the first write follows; none once the connection is open.
    first: Option<Span>,
}

/// The state of repeated transfers.
struct Repeat {
    params: Transfers,
    rng: Pcg64Mcg,
    left: u64,
    /// The transfer under way: its start, its size, and whether it has been received.
    started: Time,
    size: u64,
    received: bool,
}

impl Flow {
    /// The `i`-th flow of the group `def`, which takes the route of that number; its links take
    /// `of_links`.
    pub fn new(def: &FlowDef, group: usize, i: u64, of_links: Span, seed: u64) -> Flow {
        let name = def.name_of(i);
        let stream = |what: &str| stream(seed, &format!("flows.{name}.{what}"));
        // Its own times count from when it joins.
        let joins = Time::ZERO + def.joins.unwrap_or_default();
        let start = joins + def.source.start().sample(&mut stream("start"));
        let app = match (&def.source, &def.tcp) {
            (_, None) => {
                let udp = UdpEnds::new(&def.source, i, start, stream("source"));
                let due = udp.first;
                return Flow::with(def, group, i, of_links, seed, due, Ends::Udp(Box::new(udp)));
            }
            (Source::Transfers(t), _) => App::Transfers(Box::new(Repeat {
                params: t.clone(),
                rng: stream("source"),
                left: t.number.unwrap_or(u64::MAX),
                started: Time::ZERO,
                size: 0,
                received: true,
            })),
            (source, _) => {
                let mut rng = stream("source");
                match Pace::of(source, &mut rng) {
                    Some((pace, first)) => {
                        App::Paced(Box::new(Paced { pace, rng, first: Some(first) }))
                    }
                    None => App::Bulk { open: false },
                }
            }
        };
        let ends = Ends::Tcp(TcpEnds::new(def, app, &mut stream("tcp")));
        Flow::with(def, group, i, of_links, seed, start, ends)
    }

    /// The propagation of the whole loop of the `i`-th flow of `def`, whose links take `of_links`.
    pub fn rtt_of(def: &FlowDef, i: u64, of_links: Span, seed: u64) -> Span {
        let mut dice = stream(seed, &format!("flows.{}.rtt", def.name_of(i)));
        def.rtt.as_ref().map_or(of_links, |d| d.sample(&mut dice))
    }

    fn with(
        def: &FlowDef,
        group: usize,
        i: u64,
        of_links: Span,
        seed: u64,
        due: Time,
        ends: Ends,
    ) -> Flow {
        let name = def.name_of(i);
        let joins = Time::ZERO + def.joins.unwrap_or_default();
        let rtt = Flow::rtt_of(def, i, of_links, seed);
        let hash = dice::key(seed, &format!("flows.{name}.hash"));
        let tcp = def.tcp.is_some();
        let back = &def.routes[def.route_of(i)][1];
        Flow {
            group: cast::number(group),
            route: 0,
            hash: u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]),
            class: def.class,
            rtt,
            lag: Span(rtt.0 - of_links.0),
            acks_cross_links: tcp && !back.is_empty(),
            early: tcp && back.is_empty(),
            inbox: VecDeque::new(),
            delivered: 0,
            received: 0,
            foreseen: 0,
            later: VecDeque::new(),
            acks: Acks::default(),
            connection: 0,
            due,
            stop: def.source.stop().map_or(Time::NEVER, |s| joins + s),
            name,
            ends,
        }
    }

    /// When [`Flow::wake`] is next due.
    pub fn next(&self) -> Time {
        let acks = self.acks.next();
        let inbox = self.inbox.front().map_or(Time::NEVER, |i| i.0);
        match &self.ends {
            Ends::Tcp(tcp) => {
                let late = if self.early { self.lag } else { Span::ZERO };
                let hurry = tcp.receiver.timer() + late;
                acks.min(inbox).min(hurry).min(self.due).min(tcp.sender.timer())
            }
            Ends::Udp(_) => inbox.min(self.due),
        }
    }

    /// Does what is due at `now`: the far end, acks, the sender's timer, the application.
    pub fn wake(&mut self, now: Time, out: &mut Outbox) {
        while self.inbox.front().is_some_and(|i| i.0 <= now) {
            self.receive(out);
        }
        if let Ends::Tcp(tcp) = &mut self.ends {
            let timer = tcp.receiver.timer();
            if timer + (if self.early { self.lag } else { Span::ZERO }) <= now
                && let Some(ack) = tcp.receiver.on_timer(timer)
            {
                if self.early {
                    self.acks.push(timer + self.lag, self.connection, ack);
                } else {
                    out.acks.push(*ack);
                }
            }
        }
        let Flow { ends, acks, connection, .. } = self;
        if let Ends::Tcp(tcp) = ends {
            let mut ack = Ack::default();
            while let Some(of) = acks.pop(now, &mut ack) {
                if of == *connection {
                    tcp.sender.on_ack(now, &ack, &mut out.segments);
                }
            }
            if tcp.sender.timer() <= now {
                tcp.sender.on_timer(now, &mut out.segments);
            }
            match &mut tcp.app {
                App::Transfers(repeat) if self.due == Time::NEVER && tcp.sender.done() => {
                    self.due = now + repeat.params.gap.sample(&mut repeat.rng);
                }
                App::Lent(told) if told.busy && tcp.sender.done() => {
                    (told.busy, told.acked) = (false, true);
                }
                _ => {}
            }
        }
        if self.due <= now {
            self.act(now, out);
        }
    }

    /// Asks for the memory that its next turn will need and that does not lie in it.
    pub fn fetch(&self) {
        self.acks.fetch();
        if let Ends::Tcp(tcp) = &self.ends {
            tcp.receiver.fetch();
        }
    }

    /// The application's turn.
    fn act(&mut self, now: Time, out: &mut Outbox) {
        self.due = Time::NEVER;
        match &mut self.ends {
            Ends::Udp(udp) => {
                if now < self.stop {
                    let (len, due) = udp.send(now);
                    out.datagram = Some(len);
                    self.due = due;
                }
            }
            Ends::Tcp(tcp) => match &mut tcp.app {
                App::Bulk { open } => {
                    if *open {
                        tcp.sender.stop();
                    } else if now < self.stop {
                        *open = true;
                        self.connection += 1;
                        tcp.sender.open(now, &mut out.segments);
                        tcp.sender.write(now, UNLIMITED, &mut out.segments);
                        self.due = self.stop;
                    }
                }
                App::Paced(paced) => {
                    if now >= self.stop {
                        return tcp.sender.stop();
                    }
                    let Paced { pace, rng, first } = &mut **paced;
                    if let Some(first) = first.take() {
                        self.connection += 1;
                        tcp.sender.open(now, &mut out.segments);
                        self.due = now + first;
                    } else {
                        let (bytes, gap) = pace.send(rng);
                        tcp.sender.write(now, bytes, &mut out.segments);
                        self.due = now + gap;
                    }
                }
                App::Lent(_) => {}
                App::Transfers(repeat) => {
                    if now >= self.stop || repeat.left == 0 {
                        return;
                    }
                    if !out.is_empty() {
                        self.due = now; // an outbox holds packets of one connection only
                        return;
                    }
                    repeat.left -= 1;
                    repeat.started = now;
                    repeat.size = repeat.params.size.sample(&mut repeat.rng).0.max(1);
                    repeat.received = false;
                    self.connection += 1;
                    tcp.receiver.reset();
                    tcp.sender.open(now, &mut out.segments);
                    tcp.sender.write(now, repeat.size, &mut out.segments);
                }
            },
        }
    }

    /// An ack will have crossed its links at `at`. Gives the time at which it reaches the sender.
    pub fn ack(&mut self, at: Time, connection: u32, ack: Ack) -> Time {
        self.acks.push(at + self.lag, connection, &ack);
        at + self.lag
    }

    /// A datagram that was sent at `sent` was lost.
    pub fn datagram_lost(&mut self, sent: Time) {
        if let Ends::Udp(udp) = &mut self.ends {
            udp.lose(sent);
        }
    }

    /// Starts counting anew at `now`.
    pub fn begin(&mut self, now: Time) {
        let delivered = self.delivered_bytes();
        match &mut self.ends {
            Ends::Tcp(tcp) => tcp.base = (*tcp.sender.stats(), delivered),
            Ends::Udp(udp) => udp.begin(now),
        }
    }

    /// Payload delivered since counting began, bytes.
    pub fn goodput_bytes(&self) -> u64 {
        match &self.ends {
            Ends::Tcp(tcp) => self.delivered_bytes() - tcp.base.1,
            Ends::Udp(udp) => udp.goodput_bytes(),
        }
    }
}

impl TcpEnds {
    fn new(def: &FlowDef, app: App, dice: &mut Pcg64Mcg) -> TcpEnds {
        let tcp = def.tcp.as_ref().expect("a scenario gives every other source a TCP");
        TcpEnds {
            sender: Tcp::new(tcp, dice),
            receiver: Receiver::new(tcp),
            app,
            completions: Vec::new(),
            base: (Stats::default(), 0),
        }
    }

    /// A segment reaches the receiver.
    #[inline]
    fn receive(&mut self, at: Time, segment: &Segment, ce: bool) -> Option<&Ack> {
        let calls_for_ack = self.receiver.on_segment(at, segment, ce).is_some();
        match &mut self.app {
            App::Transfers(repeat)
                if !repeat.received && self.receiver.received_in_connection() >= repeat.size =>
            {
                repeat.received = true;
                let (start, bytes) = (repeat.started, repeat.size);
                let startup = self.sender.established().since(start);
                self.completions.push(Completion { start, took: at - start, startup, bytes });
            }
            App::Lent(told) if self.receiver.received_in_connection() >= told.target => {
                told.target = u64::MAX;
                told.received = Some(at);
                told.startup = self.sender.established().since(told.open.since);
            }
            _ => {}
        }
        calls_for_ack.then(|| self.receiver.last())
    }

    /// What the sender did since counting began.
    pub fn stats(&self) -> Stats {
        let (now, base) = (self.sender.stats(), self.base.0);
        Stats {
            sent_packets: now.sent_packets - base.sent_packets,
            retransmitted_packets: now.retransmitted_packets - base.retransmitted_packets,
            timeouts: now.timeouts - base.timeouts,
        }
    }
}
