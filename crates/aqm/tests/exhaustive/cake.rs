//! CAKE with one tin and a queue per flow: shaper, rotation, COBALT and memory.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::random::mix;
use sojourn_aqm::sched::cake::Cake;
use sojourn_aqm::{DropReason, Packet, Span};

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Sparse,
    SparseWait,
    Bulk,
    Decaying,
}

/// tc-cake(8) and the description of sch_cake: one list of queues in the order of their turns.
#[derive(Clone)]
struct PlainCake {
    flows: Vec<Flow>,
    /// Numbers of the flows in the three lists.
    order: Vec<usize>,
    clocks: Option<[u64; 2]>,
    byte_ns: f64,
    quantum: u64,
    target: u64,
    interval: u64,
    mtu_time: u64,
    limit: u64,
    dither: Option<u64>,
}

#[derive(Clone)]
struct Flow {
    hash: u32,
    queue: Vec<Packet>,
    state: State,
    deficit: i64,
    count: u32,
    /// 2^32 over the square root of the count; 0 before the first change of the count.
    root: u64,
    drop_next: u64,
    dropping: bool,
    p_blue: f64,
    blue_at: Option<u64>,
}

/// 2^32 over the square root of `count`, by a Newton step from the root of the count before; exact
/// for small counts.
fn root(last: u64, count: u32) -> u64 {
    let step = |root: u64, count: u64| {
        let rest = (3u64 << 32) - count * ((root * root) >> 32);
        ((rest >> 2) * root) >> 31
    };
    if count >= 16 {
        return step(last, count.into());
    }
    let exact = 4_294_967_296.0 / f64::from(count.max(1)).sqrt();
    (exact as u64).min(u32::MAX.into())
}

impl PlainCake {
    /// The time one interval over the square root of the count after `from`.
    fn after(&self, from: u64, flow: &Flow) -> u64 {
        from + ((u128::from(self.interval) * u128::from(flow.root)) >> 32) as u64
    }

    /// Sets the count and plans the next signal or decrement.
    fn change(&self, flow: &mut Flow, count: u32) {
        (flow.count, flow.root) = (count, root(flow.root, count));
        flow.drop_next = self.after(flow.drop_next, flow);
    }

    fn credit(&mut self) -> i64 {
        let state = self.dither.unwrap().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.dither = Some(state);
        ((self.quantum * 65_535 + (mix(state) >> 48)) >> 16) as i64
    }

    fn first(&self, states: &[State]) -> Option<usize> {
        self.order.iter().copied().find(|f| states.contains(&self.flows[*f].state))
    }

    fn move_last(&mut self, f: usize, state: State) {
        self.flows[f].state = state;
        self.order.retain(|other| *other != f);
        self.order.push(f);
    }

    fn may_change_blue(&self, f: usize, now: u64) -> bool {
        self.flows[f].blue_at.is_none_or(|at| now - at > self.target)
    }

    /// True if COBALT drops a packet of `f` that has waited since `arrived`.
    fn drops(&mut self, f: usize, now: u64, arrived: u64, u: f64) -> bool {
        let waited = now - arrived;
        let over = waited > self.target && waited > 4 * self.mtu_time;
        let flow = &self.flows[f];
        let due = flow.count > 0 && now >= flow.drop_next;
        let mut flow = flow.clone();
        let mut late = now > flow.drop_next;
        if over && !flow.dropping {
            flow.drop_next = self.after(now, &flow);
        }
        if over {
            flow.count = flow.count.max(1);
        }
        flow.dropping = over;
        let mut drop = false;
        if due && over {
            drop = true;
            let count = flow.count + 1;
            self.change(&mut flow, count);
            late = now > flow.drop_next;
        }
        while due && !over && flow.count > 0 && now >= flow.drop_next {
            let count = flow.count - 1;
            self.change(&mut flow, count);
            late = now > flow.drop_next;
        }
        drop = drop || u < flow.p_blue;
        if flow.count == 0 {
            flow.drop_next = now + self.interval;
        } else if late && !drop {
            flow.drop_next = now;
        }
        self.flows[f] = flow;
        drop
    }

    fn on_empty(&mut self, f: usize, now: u64) {
        let may = self.may_change_blue(f, now);
        let mut flow = self.flows[f].clone();
        if flow.p_blue > 0.0 && may {
            flow.p_blue = (flow.p_blue - 1.0 / 4096.0).max(0.0);
            flow.blue_at = Some(now);
        }
        flow.dropping = false;
        if flow.count > 0 && now >= flow.drop_next {
            let count = flow.count - 1;
            self.change(&mut flow, count);
        }
        let active = flow.p_blue > 0.0 || flow.count > 0 || now < flow.drop_next;
        self.flows[f] = flow;
        if active {
            self.move_last(f, State::Decaying);
        } else {
            self.order.retain(|other| *other != f);
        }
    }
}

impl Naive for PlainCake {
    fn enqueue(&mut self, now: u64, u: f64, p: Packet, dropped: &mut Losses) {
        self.dither.get_or_insert(u.to_bits());
        if self.held().0 == 0 && self.clocks.is_none_or(|[next, _]| next < now) {
            self.clocks = Some([now; 2]);
        }
        let f = self.flows.iter().position(|f| f.hash == p.hash).unwrap();
        self.flows[f].queue.push(p);
        let listed = self.order.contains(&f);
        match self.flows[f].state {
            State::SparseWait if listed => self.flows[f].state = State::Bulk,
            State::Sparse | State::Bulk if listed => {}
            _ => {
                self.move_last(f, State::Sparse);
                self.flows[f].deficit = self.credit();
            }
        }
        while self.held().1 > self.limit {
            let most = self.flows.iter().map(|f| bytes(&f.queue)).max().unwrap();
            let f = self.flows.iter().position(|f| bytes(&f.queue) == most).unwrap();
            let may = self.may_change_blue(f, now);
            let flow = &mut self.flows[f];
            dropped.push((flow.queue.remove(0), DropReason::Full));
            if may {
                flow.p_blue += 1.0 / 256.0;
                flow.blue_at = Some(now);
            }
            (flow.dropping, flow.drop_next, flow.count) = (true, now, flow.count.max(1));
        }
    }

    fn dequeue(&mut self, now: u64, dropped: &mut Losses) -> Option<Packet> {
        let mut decaying_first = true;
        loop {
            let [next, failsafe] = self.clocks?;
            if self.held().0 == 0 || next.min(failsafe) > now {
                return None;
            }
            let decaying = self.first(&[State::Decaying]).filter(|_| decaying_first);
            decaying_first = false;
            let new = || self.first(&[State::Sparse]);
            let old = || self.first(&[State::SparseWait, State::Bulk]);
            let f = decaying.or_else(new).or_else(old).unwrap();
            if self.flows[f].deficit <= 0 {
                let state = match (self.flows[f].state, self.flows[f].queue.is_empty()) {
                    (State::Sparse, true) => State::SparseWait,
                    (State::Sparse, false) => State::Bulk,
                    (other, _) => other,
                };
                self.move_last(f, state);
                self.flows[f].deficit += self.credit();
                continue;
            }
            while !self.flows[f].queue.is_empty() {
                let p = self.flows[f].queue.remove(0);
                let drop = self.drops(f, now, p.arrived.0, 0.5);
                if drop && !self.flows[f].queue.is_empty() {
                    dropped.push((p, DropReason::AfterEnqueue));
                    continue;
                }
                self.flows[f].deficit -= i64::from(p.len);
                let ns = (f64::from(p.len) * self.byte_ns) as u64;
                self.clocks = Some([next + ns, failsafe + ns + ns / 2]);
                return Some(p);
            }
            self.on_empty(f, now);
        }
    }

    fn held(&self) -> (usize, u64) {
        let queues = || self.flows.iter().map(|f| &f.queue);
        (queues().map(Vec::len).sum(), queues().map(|queue| bytes(queue)).sum())
    }
}

/// At `mbit`, with intervals of `rtt_ns` and a buffer of `limit` bytes.
fn both(mbit: u64, rtt_ns: u64, limit: u64) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let settings = [
        ("bandwidth", format!("{mbit}mbit")),
        ("rtt", format!("{rtt_ns}ns")),
        ("limit", format!("{limit}B")),
        ("tins", "besteffort".to_string()),
        ("isolation", "flows".to_string()),
        ("ecn", "false".to_string()),
    ];
    let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
    let build = real::<Cake>(&settings);
    let byte_ns = 8000.0 / mbit as f64;
    let mtu_time = (1514.0 * byte_ns) as u64;
    let wanted = (rtt_ns / 20).max(1000);
    let target = wanted.max(mtu_time * 3 / 2);
    let flow = |hash| Flow {
        hash,
        queue: vec![],
        state: State::Sparse,
        deficit: 0,
        count: 0,
        root: 0,
        drop_next: 0,
        dropping: false,
        p_blue: 0.0,
        blue_at: None,
    };
    let plain = PlainCake {
        // In the order of their queues, by which the first of equally long ones is chosen.
        flows: (0..8).map(flow).collect(),
        order: vec![],
        clocks: None,
        byte_ns,
        quantum: ((mbit * 125_000) >> 12).clamp(300, 1514),
        target,
        interval: (rtt_ns + target - wanted).max(2 * target),
        mtu_time,
        limit,
        dither: None,
    };
    move || (build(), Box::new(plain.clone()))
}

#[test]
fn cake_in_every_short_interleaving() {
    let ops = [Op::Put(1, 400, 0.5), Op::Put(2, 900, 0.5), Op::Get, Op::Wait(Span(400_003))];
    let busy = [1, 2, 1, 2, 1, 1, 2, 3].map(|flow| Op::Put(flow, 400 + flow, 0.5));
    let busy = [&busy[..], &[Op::Wait(Span::ms(9)), Op::Get, Op::Get]].concat();
    for (mbit, rtt_ns, limit) in [(8, 1_000_003, 3000), (100, 2_000_003, 100_000)] {
        every(7, &ops, &[], false, both(mbit, rtt_ns, limit));
        let slow = [ops[0], Op::Put(3, 100, 0.5), Op::Get, Op::Wait(Span(2_000_001))];
        every(7, &slow, &busy, false, both(mbit, rtt_ns, limit));
    }
}

#[test]
fn cake_over_long_random_arrivals() {
    for seed in 0..40 {
        for (mbit, rtt_ns, limit) in [
            (8, 100_000_007, 1_000_000),
            (8, 1_000_003, 20_000),
            (100, 10_000_019, 9_000),
            (1, 1000, 50_000),
        ] {
            let (real, naive) = both(mbit, rtt_ns, limit)();
            long(seed, 3000, real, naive);
        }
    }
}
