//! HTB: a tree of classes, each with a rate of its own, that borrow unused rates of other classes.
//!
//! **Source** M. Devera, "HTB Linux queuing discipline manual", 2002; Linux sch_htb; tc-htb(8).
//!
//! **Decides** on departure: the next class, and when it may send; on arrival if a buffer is full.
//!
//! **Measures** the bytes of each class.
//!
//! **Symbols** `rates` is rate, `ceils` is ceil, `bursts` is burst, `quanta` is quantum.
//!
//! **Algorithm** Class i, counted from 1, has `rates`_i, which it may send at any time, and
//! `ceils`_i, which it may not exceed. Its `parents`_i is an earlier class, or 0 for none. Each has
//! two token buckets, one for the rate and one for the ceiling, of `bursts`_i bytes. A class *may
//! send* while neither is overdrawn. If only the rate bucket is overdrawn, the class may *borrow*:
//! it sends if its parent may send or borrow. If the ceiling bucket is overdrawn, the class does
//! not send, and classes below it do not borrow through it.
//!
//! Classes without children are *leaves*, each with a FIFO queue. A packet goes to the leaf of its
//! class, or to `default` if there is no such leaf. Leaves that may send are ordered by the level
//! from which they borrow, lowest first, then by `prios`_i. Equal leaves take turns by deficit
//! round robin with `quanta`_i bytes. A packet is charged to the ceilings of its leaf and of all
//! classes above it, and to the rates of the class that lends and of all above that.
//!
//! The rates are guaranteed if the children's rates add up to at most the parent's rate. The rate
//! that a class does not use goes to its siblings, by priority and in proportion to their quanta.
//!
//! **Departures** (1) Classes have numbers in place of handles, and packets state their class;
//! there are no filters. (2) Leaves have FIFO queues with `limits`. (3) A leaf of any lender takes
//! part in one round per level and priority; Linux has a round for each lender. (4) An overdraft is
//! not limited to a minute. (5) Packets of no class are not sent past the tree.
//!
//! **Cost** 1440 bytes of state for three classes; O(n) per packet for n classes.

use crate::aqm::fits;
use crate::build::{Build, Env};
use crate::cast;
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::{Fifo, Pool};
use crate::packet::Packet;
use crate::params::{Checked, nth};
use crate::qdisc::{Backlog, Qdisc};
use crate::sched::bucket::{Bucket, FASTEST};
use crate::units::{Bytes, Rate, Size, Time};
use alloc::format;
use alloc::vec::Vec;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Htb>(
    "htb",
    "a tree of classes with guaranteed and highest rates, which borrow unused rates",
)
.decides("on departure: the next class, and when it may send")
.source("Devera, 2002; Linux sch_htb");

/// Largest depth of a tree, as in Linux.
const DEPTH: u32 = 8;

crate::params! {
    /// Parameters of [`Htb`].
    pub struct HtbParams {
        /// Rate that each class may always send; none for a class with the rate of the link and
        /// two below it with half of that.
        rates: Vec<Rate> = Vec::new(), [[Rate(8)].into() => [FASTEST].into()], "", ["rate"];
        /// Rate that each class may not exceed, the last one applying to all further classes; none
        /// for the rate of the link.
        ceils: Vec<Rate> = Vec::new(), [[Rate(8)].into() => [FASTEST].into()], "", ["ceil"];
        /// Parent of each class, 0 for none, the last one applying to all further classes; none
        /// for the first class as parent of all others.
        parents: Vec<u64> = Vec::new(), [[0].into() => [1024].into()], "", ["parent"];
        /// Priority of each class, 0 first; the last one applies to all further classes.
        prios: Vec<u64> = [0].into(), [[0].into() => [7].into()], "", ["prio"];
        /// Size of the buckets of each class; the last one applies to all further classes.
        bursts: Vec<Bytes> = [Bytes(1600)].into(),
            [[Bytes(0)].into() => [Bytes(1_000_000_000_000)].into()], "", ["burst"];
        /// Bytes of each class per round, the last one applying to all further classes; none for
        /// a tenth of a second's bytes at its rate, from 1000 to 200000.
        quanta: Vec<Bytes> = Vec::new(),
            [[Bytes(1)].into() => [Bytes(1_000_000_000)].into()], "", ["quantum"];
        /// Class of packets whose own class is not a leaf; 0 for the first leaf.
        default: u64 = 0, [0 => 1024], "", [];
        /// Buffer size of each class; the last one applies to all further classes.
        limits: Vec<Size> = [Size::Packets(1000)].into(),
            [[Size::Packets(1)].into() => [Size::Packets(1_000_000_000_000)].into()], "", [];
        /// Size of the buffer of all classes together; auto: no other than theirs.
        limit: Option<Size> = None,
            [Some(Size::Packets(1)) => Some(Size::Packets(1_000_000_000_000))], "", ["buffer"];
    }
}

#[derive(Clone, Debug)]
struct Class {
    parent: Option<usize>,
    /// 0 for a leaf; higher for classes nearer to the root.
    level: u32,
    prio: u64,
    rate: Bucket,
    ceil: Bucket,
    quantum: i64,
    /// Bytes left of its turns on each level.
    deficits: [i64; DEPTH as usize],
    limit: Size,
    fifo: Fifo,
}

/// The HTB discipline.
#[derive(Clone, Debug)]
pub struct Htb {
    classes: Vec<Class>,
    default: usize,
    limit: Option<Size>,
    /// Next leaf of each level and priority.
    turns: [[usize; 8]; DEPTH as usize],
    pool: Pool,
    backlog: Backlog,
}

impl Build for Htb {
    type Params = HtbParams;

    fn new(params: Checked<'_, HtbParams>, env: &Env) -> Result<Self> {
        let HtbParams { rates, ceils, parents, prios, bursts, quanta, limits, .. } = &*params;
        let half = Rate((env.rate.0 / 2).max(8));
        let three = [env.rate.max(Rate(8)), half, half];
        let rates = if rates.is_empty() { &three[..] } else { rates };
        let depths = depths(rates.len(), parents)?;
        for (name, values) in [
            ("ceils", ceils.len()),
            ("parents", parents.len()),
            ("prios", prios.len()),
            ("bursts", bursts.len()),
            ("quanta", quanta.len()),
            ("limits", limits.len()),
        ] {
            let required = matches!(name, "prios" | "bursts" | "limits");
            if values > rates.len() || (required && values == 0) {
                let text = format!("{values} values for {} classes", rates.len());
                return Err(Error::new(text).at(name));
            }
        }
        let is_parent = |i: usize| (0..rates.len()).any(|k| parent_of(parents, k) == Some(i));
        let class = |(i, rate): (usize, &Rate)| {
            let burst = nth(bursts, i).unwrap_or(Bytes(1600));
            let own = Bytes((rate.0 / 80).clamp(1000, 200_000));
            Class {
                parent: parent_of(parents, i),
                level: if is_parent(i) { DEPTH - depths[i] } else { 0 },
                prio: nth(prios, i).unwrap_or(0),
                rate: Bucket::new(*rate, burst),
                ceil: Bucket::new(nth(ceils, i).unwrap_or(env.rate.max(*rate)), burst),
                quantum: nth(quanta, i).unwrap_or(own).0.cast_signed(),
                deficits: [0; DEPTH as usize],
                limit: nth(limits, i).unwrap_or(Size::Packets(1000)),
                fifo: Fifo::default(),
            }
        };
        let classes: Vec<Class> = rates.iter().enumerate().map(class).collect();
        let first = classes.iter().position(|class| class.level == 0).unwrap_or(0);
        let default = cast::index(params.default).checked_sub(1).unwrap_or(first);
        if classes.get(default).is_none_or(|class| class.level > 0) {
            let text = format!("class {} is no leaf", params.default);
            return Err(Error::new(text).at("default"));
        }
        Ok(Htb {
            classes,
            default,
            limit: params.limit,
            turns: [[0; 8]; DEPTH as usize],
            pool: Pool::default(),
            backlog: Backlog::default(),
        })
    }
}

/// Parent of class `i`, counted from 0.
fn parent_of(parents: &[u64], i: usize) -> Option<usize> {
    if parents.is_empty() {
        return (i > 0).then_some(0);
    }
    nth(parents, i).and_then(|parent| cast::index(parent).checked_sub(1))
}

/// Returns the depth of each class: 1 at the root.
///
/// # Errors
/// A parent that is not an earlier class, or a tree that is too deep.
fn depths(n: usize, parents: &[u64]) -> Result<Vec<u32>> {
    let mut depths: Vec<u32> = Vec::new();
    for i in 0..n {
        let depth = match parent_of(parents, i) {
            None => 1,
            Some(parent) if parent < i => depths[parent] + 1,
            Some(parent) => {
                let text = format!("class {} has the parent {}", i + 1, parent + 1);
                return Err(Error::new(format!("{text}, which is no earlier class")).at("parents"));
            }
        };
        if depth > DEPTH {
            return Err(Error::new(format!("the tree has more than {DEPTH} levels")).at("parents"));
        }
        depths.push(depth);
    }
    Ok(depths)
}

impl Htb {
    /// Returns the first time, not before `now`, at which leaf `i` may send, and the level from
    /// which it borrows then.
    fn ready(&self, i: usize, now: Time) -> (Time, u32) {
        let (mut ceiling, mut best) = (now, (Time::NEVER, 0));
        let mut class = Some(i);
        while let Some(k) = class {
            let Class { rate, ceil, level, parent, .. } = &self.classes[k];
            ceiling = ceiling.max(ceil.ready(0));
            let at = ceiling.max(rate.ready(0));
            if at < best.0 {
                best = (at, *level);
            }
            class = *parent;
        }
        best
    }

    /// Selects the leaf to serve at `now`, and the level from which it borrows.
    fn select(&self, now: Time) -> Option<(usize, u32)> {
        let n = self.classes.len();
        let candidates = (0..n).filter(|i| !self.classes[*i].fifo.is_empty());
        let candidates = candidates.filter_map(|i| {
            let (at, level) = self.ready(i, now);
            let prio = self.classes[i].prio;
            let turn = self.turns[level as usize][cast::index(prio)];
            (at <= now).then_some((level, prio, (i + n - turn) % n, i))
        });
        candidates.min().map(|(level, _, _, i)| (i, level))
    }

    /// Charges `bytes` to leaf `i`, which borrows from `level`, and ends its turn if it is over.
    fn charge(&mut self, now: Time, i: usize, level: u32, bytes: u32) {
        let mut class = Some(i);
        while let Some(k) = class {
            let one = &mut self.classes[k];
            if one.level >= level {
                one.rate.take(now, bytes);
            }
            one.ceil.take(now, bytes);
            class = one.parent;
        }
        let n = self.classes.len();
        let Class { deficits, quantum, prio, .. } = &mut self.classes[i];
        let deficit = &mut deficits[level as usize];
        *deficit -= i64::from(bytes);
        let over = *deficit < 0;
        // One quantum per turn, as in Linux, however large the packet.
        *deficit += if over { *quantum } else { 0 };
        let turn = &mut self.turns[level as usize][cast::index(*prio)];
        *turn = if over { (i + 1) % n } else { i };
    }
}

impl Qdisc for Htb {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        context.check_arrival(&packet);
        let stated = usize::from(packet.class).wrapping_sub(1);
        let is_leaf = self.classes.get(stated).is_some_and(|class| class.level == 0);
        let class = &mut self.classes[if is_leaf { stated } else { self.default }];
        let Backlog { packets, bytes } = self.backlog;
        let whole = self.limit.is_none_or(|limit| fits(limit, packets, bytes, &packet));
        if !whole || !fits(class.limit, class.fifo.packets(), class.fifo.bytes().0, &packet) {
            return context.drop(packet, DropReason::Full);
        }
        class.fifo.push(&mut self.pool, packet);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.len);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let (i, level) = self.select(context.now)?;
        let packet = self.classes[i].fifo.pop(&mut self.pool)?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.len);
        self.charge(context.now, i, level, packet.len);
        Some(packet)
    }

    fn ready_at(&self) -> Option<Time> {
        let busy = (0..self.classes.len()).filter(|i| !self.classes[*i].fifo.is_empty());
        busy.map(|i| self.ready(i, Time::ZERO).0).min()
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// Bytes per second of each class while packets of 1000 bytes wait in the `busy` ones, over
    /// 10 s of a link of 8 Mbit/s (a packet per ms).
    fn shares(settings: &[(&str, &str)], busy: &[u16]) -> Vec<u64> {
        let settings = [settings, &[("limits", "20000p")]].concat();
        let mut q = Bench::new("htb", &settings);
        for class in busy {
            (0..12_000).for_each(|_| drop(q.put_class(*class, (*class).into(), 1000)));
        }
        let mut bytes = [0; 8];
        for ms in 0..10_000 {
            q.at_ms(ms);
            if let Some(class) = q.get().0 {
                bytes[class as usize] += 1000;
            }
        }
        bytes.iter().map(|b| b / 10).collect()
    }

    fn near(bytes: &[u64], expected: &[u64]) {
        let close = |(a, b): (&u64, &u64)| a.abs_diff(*b) <= b / 50 + 1000;
        assert!(bytes.iter().zip(expected).all(close), "{bytes:?}, not {expected:?}");
    }

    #[test]
    fn the_example_of_the_manual() {
        // The user guide of HTB: 100 kB/s in all, of which A has 40 (10 for mail and 30 for the
        // web) and B has 60. The unused rate of a class goes to its sibling first.
        let tree = [
            ("rates", "800kbit 320kbit 480kbit 80kbit 240kbit"),
            ("ceils", "800kbit"),
            ("parents", "0 1 1 2 2"),
            ("quanta", "1500B 1500B 6000B 1000B 3000B"),
            ("default", "3"),
        ];
        near(&shares(&tree, &[3, 4, 5])[3..6], &[60_000, 10_000, 30_000]);
        near(&shares(&tree, &[3, 4])[3..6], &[60_000, 40_000, 0]);
        near(&shares(&tree, &[4, 5])[3..6], &[0, 25_000, 75_000]);
        near(&shares(&tree, &[5])[3..6], &[0, 0, 100_000]);
    }

    #[test]
    fn a_ceiling_holds_and_priority_decides_who_borrows() {
        let tree = [
            ("rates", "800kbit 80kbit 80kbit"),
            ("ceils", "800kbit 800kbit 400kbit"),
            ("parents", "0 1 1"),
            ("default", "2"),
        ];
        near(&shares(&tree, &[3])[2..4], &[0, 50_000]);
        let prios = |prios: &'static str| [&tree[..], &[("prios", prios)]].concat();
        near(&shares(&prios("0 0 1"), &[2, 3])[2..4], &[90_000, 10_000]);
        near(&shares(&prios("0 1 0"), &[2, 3])[2..4], &[50_000, 50_000]);
    }

    #[test]
    fn classes_without_parameters_have_half_the_rate_and_a_tenth_of_a_second() {
        // Neither takes the rate of the other, whatever its priority.
        near(&shares(&[("prios", "0 0 1")], &[2, 3])[2..4], &[500_000, 500_000]);
        // Quanta of 1000 and 3000 bytes: 60 kB/s are lent by these weights.
        let tree = [("rates", "800kbit 80kbit 240kbit"), ("ceils", "800kbit"), ("default", "2")];
        near(&shares(&tree, &[2, 3])[2..4], &[25_000, 75_000]);
    }

    #[test]
    fn a_class_within_its_rate_comes_before_one_that_borrows() {
        let tree =
            [("rates", "800kbit 80kbit 80kbit"), ("bursts", "100kB 1600B"), ("prios", "0 1 0")];
        let mut q = Bench::new("htb", &tree);
        q.put_class(3, 1, 2000);
        assert_eq!(q.get().0, Some(1), "class 3 is overdrawn now");
        q.at_ms(1);
        q.put_class(3, 2, 1000);
        q.put_class(2, 3, 1000);
        assert_eq!(q.drain(), [3, 2], "of the lower priority, but within its rate");
    }

    #[test]
    fn a_turn_ends_when_its_credit_is_below_zero() {
        let roots = [("rates", "4mbit 4mbit"), ("parents", "0"), ("bursts", "1MB")];
        let mut q = Bench::new("htb", &[&roots[..], &[("quanta", "2000B 2000B")]].concat());
        for class in [1, 2] {
            (0..4).for_each(|_| drop(q.put_class(class, class.into(), 1000)));
        }
        assert_eq!(q.drain(), [1, 2, 1, 1, 2, 2, 1, 2]);
    }

    #[test]
    fn packets_without_a_leaf_go_to_the_default() {
        let mut q = Bench::new("htb", &[("rates", "8mbit"), ("limits", "3p")]);
        for (class, body) in [(0, 1), (9, 2), (1, 3)] {
            assert_eq!(q.put_class(class, body, 1000), [0; 0]);
        }
        assert_eq!(q.put_class(1, 4, 1000), [4], "its buffer is full");
        assert_eq!([q.get().0, q.get().0], [Some(1), Some(2)], "1600 bytes may be overdrawn");
        assert_eq!(q.get().0, None);
        assert_eq!((q.backlog(), q.bytes()), (1, 1000));
        assert_eq!(q.ready_at(), Some(Time(400_000)), "400 bytes too many at 8 Mbit/s");
        q.at_ms(1);
        assert_eq!(q.get().0, Some(3));
        assert_eq!((q.backlog(), q.bytes(), q.ready_at()), (0, 0, None));
    }

    #[test]
    fn trees_that_are_none_are_refused() {
        let error = |settings: &[(&str, &str)]| {
            let settings: Vec<_> =
                settings.iter().map(|(k, v)| (*k, crate::Setting::Text(v))).collect();
            crate::build("htb", &settings, Rate(8_000)).unwrap_err().to_string()
        };
        assert_eq!(
            error(&[("rates", "1mbit 1mbit"), ("parents", "2 0")]),
            "parents: class 1 has the parent 2, which is no earlier class"
        );
        assert_eq!(
            error(&[("rates", "1mbit"), ("parents", "1")]),
            "parents: class 1 has the parent 1, which is no earlier class"
        );
        assert_eq!(
            error(&[("rates", "1mbit 1mbit"), ("default", "1")]),
            "default: class 1 is no leaf"
        );
        assert_eq!(
            error(&[("rates", "1mbit"), ("ceils", "1mbit 2mbit")]),
            "ceils: 2 values for 1 classes"
        );
        assert_eq!(
            error(&[
                ("rates", "1mbit 1mbit 1mbit 1mbit 1mbit 1mbit 1mbit 1mbit 1mbit"),
                ("parents", "0 1 2 3 4 5 6 7 8")
            ]),
            "parents: the tree has more than 8 levels"
        );
        let settings = [
            ("rates", "1mbit 1mbit 1mbit 1mbit 1mbit 1mbit 1mbit 1mbit"),
            ("parents", "0 1 2 3 4 5 6 7"),
        ];
        let mut q = Bench::new("htb", &settings);
        q.put(1, 1000);
        assert_eq!(q.get().0, Some(1), "8 levels are allowed");
    }
}
