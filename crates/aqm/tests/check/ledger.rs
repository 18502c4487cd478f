//! A discipline under watch: every operation is entered into a ledger, and after each one all that
//! must hold of any discipline is checked.

use crate::cases::{Case, limit, value};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::sched::{Backlog, Qdisc};
use sojourn_aqm::{Cx, Dice, Ecn, Lost, Marks, Packet, Size, Span, Time, Why};
use std::collections::BTreeMap;

/// Where a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Held,
    Sent,
    Lost,
}

/// What happened, in order: the trace that must be the same for the same seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    Sent(Time, Packet),
    Lost(Lost),
    Gauge(&'static str, u64),
}

/// Dice that count how often they are thrown.
struct Counted {
    rng: Pcg64Mcg,
    throws: u64,
}

impl Dice for Counted {
    fn uniform(&mut self) -> f64 {
        self.throws += 1;
        self.rng.uniform()
    }
}

/// The discipline and what is known of every packet that went in; the body of a packet is its
/// place in `packets`.
pub struct Ledger {
    qdisc: Box<dyn Qdisc + Send>,
    limit: Size,
    may_mark: bool,
    /// What the discipline promises of all packets, and which ones were marked as they came.
    pub settles_on_arrival: bool,
    /// Whether a packet that had been accepted was dropped, marked or overtaken.
    pub decided_later: bool,
    marked_at_once: Vec<bool>,
    last_sent: Option<u32>,
    pub now: Time,
    dice: Counted,
    /// Throws that a packet may cost, those of the losses aside.
    throws: u64,
    lost: Vec<Lost>,
    packets: Vec<(Packet, State)>,
    held: Backlog,
    /// The last body sent of each flow.
    last: BTreeMap<u32, u32>,
    marks: Marks,
    seen_marked: u64,
    pub trace: Vec<Event>,
}

impl Ledger {
    pub fn new(case: &Case, seed: u64) -> Ledger {
        let made = case.build();
        // CHOKe draws that many packets from the queue.
        let candidates = value(&made, "candidates").map_or(0, |n| n.parse().unwrap());
        Ledger {
            throws: 4 + candidates,
            limit: limit(&made),
            may_mark: value(&made, "ecn") == Some("true"),
            settles_on_arrival: made.qdisc.settles_on_arrival(),
            decided_later: false,
            marked_at_once: Vec::new(),
            last_sent: None,
            qdisc: made.qdisc,
            now: Time::ZERO,
            dice: Counted { rng: Pcg64Mcg::seed_from_u64(seed), throws: 0 },
            lost: Vec::new(),
            packets: Vec::new(),
            held: Backlog::default(),
            last: BTreeMap::new(),
            marks: Marks::default(),
            seen_marked: 0,
            trace: Vec::new(),
        }
    }

    pub fn wait(&mut self, span: Span) {
        self.now += span;
    }

    pub fn backlog(&self) -> Backlog {
        self.held
    }

    /// Packets lost so far.
    pub fn losses(&self) -> usize {
        self.packets.iter().filter(|(_, state)| *state == State::Lost).count()
    }

    /// Runs one call of the discipline and checks what it threw and lost.
    fn call<T>(&mut self, f: impl FnOnce(&mut dyn Qdisc, &mut Cx<'_>) -> T) -> T {
        self.dice.throws = 0;
        let (now, lost, marks) = (self.now, &mut self.lost, &mut self.marks);
        let out = f(&mut *self.qdisc, &mut Cx { now, dice: &mut self.dice, lost, marks });
        let most = self.throws + 2 * self.lost.len() as u64;
        assert!(self.dice.throws <= most, "{} throws for one packet", self.dice.throws);
        out
    }

    /// A packet arrives; its body and time of arrival are filled in.
    pub fn put(&mut self, packet: Packet) {
        let body = self.packets.len() as u32;
        let packet = Packet { body, arrived: self.now, ..packet };
        self.packets.push((packet, State::Held));
        self.held.packets += 1;
        self.held.bytes += u64::from(packet.len);
        let marked = self.marks.packets;
        self.call(|qdisc, cx| qdisc.enqueue(cx, packet));
        self.marked_at_once.push(self.marks.packets > marked);
        self.settle(Some(body));
    }

    /// The next packet is asked for.
    pub fn get(&mut self) -> Option<Packet> {
        let before = self.held;
        let out = self.call(|qdisc, cx| qdisc.dequeue(cx));
        if let Some(packet) = out {
            self.leave(packet, State::Sent);
            let last = self.last.insert(packet.flow, packet.body);
            assert!(last < Some(packet.body), "{packet:?} comes after {last:?} of its flow");
            let last = self.last_sent.replace(packet.body);
            let overtaken = last > Some(packet.body);
            assert!(!overtaken || !self.settles_on_arrival, "{packet:?} comes after {last:?}");
            let ecn = self.packets[packet.body as usize].0.ecn;
            let later = self.marked_at_once[packet.body as usize] != (packet.ecn != ecn);
            assert!(!later || !self.settles_on_arrival, "{packet:?} was not settled as it came");
            self.decided_later |= overtaken || later;
            self.trace.push(Event::Sent(self.now, packet));
        }
        self.settle(None);
        if out.is_none() {
            assert_eq!(self.held, Backlog::default(), "nothing is given, though packets wait");
        }
        assert!(before.packets > 0 || out.is_none(), "something comes out of nothing");
        out
    }

    /// Takes out everything, and checks that every packet was accounted for once.
    pub fn drain(&mut self) {
        while self.get().is_some() {}
        assert!(self.packets.iter().all(|(_, state)| *state != State::Held), "a packet is missing");
        assert_eq!(self.marks.packets, self.seen_marked, "marks counted and marks seen");
    }

    /// `packet` comes out: it must be one that is held, unchanged but for a mark.
    fn leave(&mut self, packet: Packet, to: State) {
        let (original, state) = &mut self.packets[packet.body as usize];
        assert_eq!(*state, State::Held, "{packet:?} comes out twice");
        assert_eq!(packet, Packet { ecn: packet.ecn, ..*original }, "the ticket was altered");
        if packet.ecn != original.ecn {
            let allowed = self.may_mark && original.ecn.capable() && packet.ecn == Ecn::Ce;
            assert!(allowed, "{:?} became {:?}", original.ecn, packet.ecn);
            self.seen_marked += 1;
        }
        *state = to;
        self.held.packets -= 1;
        self.held.bytes -= u64::from(packet.len);
    }

    /// Enters the losses of a call in which `arrival` came, and checks the books.
    fn settle(&mut self, arrival: Option<u32>) {
        for lost in std::mem::take(&mut self.lost) {
            assert_eq!(lost.at, self.now, "the time of a loss");
            let itself = arrival == Some(lost.packet.body);
            assert!(itself || !self.settles_on_arrival, "{lost:?} had been accepted");
            self.decided_later |= !itself;
            match lost.why {
                Why::Full => assert!(arrival.is_some(), "room is short only when a packet arrives"),
                Why::Early => assert!(itself, "an early loss is that of the arrival"),
                Why::Late => assert!(!itself, "a late loss has waited"),
            }
            self.leave(lost.packet, State::Lost);
            self.trace.push(Event::Lost(lost));
        }
        assert_eq!(self.qdisc.backlog(), self.held, "the backlog is what is held");
        let Backlog { packets, bytes } = self.held;
        assert!(self.limit.holds(packets, bytes), "{packets}p, {bytes}B over {:?}", self.limit);
        let trace = &mut self.trace;
        self.qdisc.gauges(&mut |name, value| {
            assert!(value.is_finite(), "{name} is {value}");
            trace.push(Event::Gauge(name, value.to_bits()));
        });
    }
}
