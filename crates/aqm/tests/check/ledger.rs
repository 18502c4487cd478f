//! Discipline whose every operation is recorded in a ledger. `CheckedQdisc` checks the contract of
//! any discipline, the ledger the rest: order, limits, marks, gauges and random numbers.

use crate::cases::{Case, limit, value};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::registry::Built;
use sojourn_aqm::{
    Backlog, CheckedQdisc, Context, DropReason, Dropped, Ecn, Marks, Packet, Qdisc, Random, Size,
    Span, Time,
};
use std::collections::BTreeMap;

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Held,
    Sent,
    Lost,
}

/// Event of a trace, which must be equal for equal seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    Sent(Time, Packet),
    Lost(Dropped),
    Gauge(&'static str, u64),
}

/// Generator that counts the numbers drawn.
struct Counted {
    rng: Pcg64Mcg,
    throws: u64,
}

impl Random for Counted {
    fn uniform(&mut self) -> f64 {
        self.throws += 1;
        self.rng.uniform()
    }
}

/// Discipline with the state of every packet that entered it; the body of a packet is its index in
/// `packets`.
pub struct Ledger {
    qdisc: CheckedQdisc,
    limit: Size,
    may_mark: bool,
    /// True if the class of queued packets is cleared.
    washes: bool,
    /// Value of `settles_on_arrival`, and the packets marked at enqueue.
    pub settles_on_arrival: bool,
    /// True if an accepted packet was dropped, marked or overtaken.
    pub decided_later: bool,
    marked_at_once: Vec<bool>,
    last_sent: Option<u32>,
    pub now: Time,
    rng: Counted,
    /// Maximum number of random numbers per packet, besides those for drops.
    throws: u64,
    dropped: Vec<Dropped>,
    packets: Vec<(Packet, State)>,
    held: Backlog,
    /// Body of the last packet sent, by flow, and by ECN field if that selects the queue.
    last: BTreeMap<(u32, Option<u8>), u32>,
    by_ecn: bool,
    /// True if the classes have disciplines.
    children: bool,
    /// True if a flow may be moved to another queue while it has packets.
    moves_flows: bool,
    marks: Marks,
    seen_marked: u64,
    pub trace: Vec<Event>,
}

impl Ledger {
    pub fn new(case: &Case, seed: u64) -> Ledger {
        Ledger::of(case.build(), seed)
    }

    /// The same for a discipline that is already built.
    pub fn of(built: Built, seed: u64) -> Ledger {
        // CHOKe draws this many packets from the queue, on Linux with up to three numbers for each.
        let candidates: u64 = value(&built, "candidates").map_or(0, |n| n.parse().unwrap());
        let numbers = if value(&built, "variant") == Some("linux") { 3 } else { 1 };
        let has = |name| value(&built, name).is_some_and(|value| !value.is_empty());
        // The disciplines of several classes may be asked for one packet.
        let (children, filters) = (has("children"), has("filters"));
        Ledger {
            throws: 4 + numbers * candidates + if children { 50 } else { 0 },
            limit: limit(&built),
            // A list has a value for each virtual queue.
            may_mark: value(&built, "ecn").is_some_and(|all| all.split(' ').any(|on| on == "true"))
                || value(&built, "ce_threshold").is_some_and(|value| value != "auto")
                || children,
            by_ecn: value(&built, "any_ect").is_some(),
            children,
            // HHF: when a flow becomes a heavy hitter. Filters may separate packets of a flow, and
            // so may the discipline of a class.
            moves_flows: value(&built, "admit_bytes").is_some() || children || filters,
            washes: value(&built, "wash") == Some("true"),
            settles_on_arrival: built.qdisc.decides_at_enqueue(),
            decided_later: false,
            marked_at_once: Vec::new(),
            last_sent: None,
            qdisc: CheckedQdisc::new(built.qdisc),
            now: Time::ZERO,
            rng: Counted { rng: Pcg64Mcg::seed_from_u64(seed), throws: 0 },
            dropped: Vec::new(),
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

    /// Number of dropped packets.
    pub fn losses(&self) -> usize {
        self.packets.iter().filter(|(_, state)| *state == State::Lost).count()
    }

    /// Calls the discipline, and checks random numbers and drops.
    fn call<T>(&mut self, f: impl FnOnce(&mut dyn Qdisc, &mut Context<'_>) -> T) -> T {
        self.rng.throws = 0;
        let (now, dropped, marks) = (self.now, &mut self.dropped, &mut self.marks);
        let out = f(&mut self.qdisc, &mut Context { now, rng: &mut self.rng, dropped, marks });
        let most = self.throws + 2 * self.dropped.len() as u64;
        assert!(self.rng.throws <= most, "{} random numbers for one packet", self.rng.throws);
        out
    }

    /// Enqueues a packet; fills in its body and arrival time.
    pub fn put(&mut self, packet: Packet) {
        let body = self.packets.len() as u32;
        let packet = Packet { body, arrived: self.now, ..packet };
        self.packets.push((packet, State::Held));
        self.held.packets += 1;
        self.held.bytes += u64::from(packet.len);
        let marked = self.marks.packets;
        self.call(|qdisc, context| qdisc.enqueue(context, packet));
        self.marked_at_once.push(self.marks.packets > marked);
        self.settle(Some(body));
    }

    /// Dequeues the next packet.
    pub fn get(&mut self) -> Option<Packet> {
        let before = self.held;
        let out = self.call(|qdisc, context| qdisc.dequeue(context));
        if let Some(packet) = out {
            self.leave(packet, State::Sent);
            let ecn = self.packets[packet.body as usize].0.ecn;
            let key = (packet.flow, self.by_ecn.then_some(ecn as u8));
            let last = self.last.insert(key, packet.body);
            let ordered = last < Some(packet.body) || self.moves_flows;
            assert!(ordered, "{packet:?} comes after {last:?} of its flow");
            let last = self.last_sent.replace(packet.body);
            let overtaken = last > Some(packet.body);
            assert!(!overtaken || !self.settles_on_arrival, "{packet:?} comes after {last:?}");
            let later = self.marked_at_once[packet.body as usize] != (packet.ecn != ecn);
            assert!(!later || !self.settles_on_arrival, "{packet:?} was not decided at enqueue");
            self.decided_later |= overtaken || later;
            self.trace.push(Event::Sent(self.now, packet));
        }
        self.settle(None);
        assert!(before.packets > 0 || out.is_none(), "a packet from an empty queue");
        out
    }

    /// Dequeues all packets and checks that each was accounted for once.
    pub fn drain(&mut self) {
        while self.get().is_some() || self.held != Backlog::default() {
            // A shaper: None would have been refused by `get`.
            self.now = self.now.max(self.qdisc.ready_at().unwrap_or(self.now));
        }
        assert!(self.packets.iter().all(|(_, state)| *state != State::Held), "a packet is missing");
        assert_eq!(self.marks.packets, self.seen_marked, "marks counted and marks seen");
    }

    /// Records a departing packet: it must be in the queue, and unchanged except for a mark.
    fn leave(&mut self, packet: Packet, to: State) {
        let (original, state) = &mut self.packets[packet.body as usize];
        assert_eq!(*state, State::Held, "{packet:?} comes out twice");
        let class = if self.washes { 0 } else { original.class };
        let same = Packet { ecn: packet.ecn, class, ..*original };
        assert!(packet == same || packet == *original, "the packet was altered");
        if packet.ecn != original.ecn {
            let allowed = self.may_mark && original.ecn.capable() && packet.ecn == Ecn::Ce;
            assert!(allowed, "{:?} became {:?}", original.ecn, packet.ecn);
            self.seen_marked += 1;
        }
        *state = to;
        self.held.packets -= 1;
        self.held.bytes -= u64::from(packet.len);
    }

    /// Records the drops of a call with packet `arrival`, and checks all totals.
    fn settle(&mut self, arrival: Option<u32>) {
        for dropped in std::mem::take(&mut self.dropped) {
            let itself = arrival == Some(dropped.packet.body);
            assert!(itself || !self.settles_on_arrival, "{dropped:?} had been accepted");
            self.decided_later |= !itself;
            match dropped.reason {
                DropReason::Full => assert!(arrival.is_some(), "overflow happens only at enqueue"),
                DropReason::AtEnqueue => assert!(itself, "an early drop is of the arriving packet"),
                // hfsc dequeues the head in advance when it arrives.
                DropReason::AfterEnqueue => {
                    assert!(!itself || self.children, "a late drop is of a queued packet");
                }
                other => panic!("{other:?} is not tested"),
            }
            self.leave(dropped.packet, State::Lost);
            self.trace.push(Event::Lost(dropped));
        }
        let Backlog { packets, bytes } = self.held;
        assert!(self.limit.holds(packets, bytes), "{packets}p, {bytes}B over {:?}", self.limit);
        let trace = &mut self.trace;
        self.qdisc.inspect(&mut |name, value| {
            assert!(value.is_finite(), "{name} is {value}");
            trace.push(Event::Gauge(name, value.to_bits()));
        });
    }
}
