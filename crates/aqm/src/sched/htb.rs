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
//! A leaf has a FIFO queue, or a discipline of `children`. If that holds packets back, the leaf is
//! not in the round until the discipline may send.
//!
//! **Departures** (1) Classes have numbers in place of handles. Packets state their class, or
//! `filters` do, which name leaves only. (2) A leaf whose discipline holds packets back leaves the
//! round; Linux asks it at each turn and warns. (3) A leaf of any lender takes part in one round
//! per level and priority; Linux has a round for each lender. (4) An overdraft is not limited to a
//! minute. (5) Packets of no class are not sent past the tree.
//!
//! **Cost** 1600 bytes of state for three classes; O(log n) per packet for n classes, and one bit
//! per leaf below each class of the packet that begins or ends to lend.

mod borrowing;

use crate::aqm::fits;
use crate::bucket::{Bucket, FASTEST};
use crate::build::{Build, Env};
use crate::cast;
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::{Fifo, Pool};
use crate::flow_header::FlowHeader;
use crate::packet::Packet;
use crate::params::{Checked, nth};
use crate::qdisc::{Backlog, Qdisc};
use crate::sched::child::{Child, Leaf, Leaves, child_of};
use crate::sched::filter::{Filter, Filters, check_classes};
use crate::sched::tree::{OUT, Tree};
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Rate, Size, Time};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use borrowing::{Borrowing, Class, DEPTH, PRIO_MAX};
use core::any::Any;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Htb>(
    "htb",
    "a tree of classes with guaranteed and highest rates, which borrow unused rates",
)
.decides("on departure: the next class, and when it may send")
.source("Devera, 2002; Linux sch_htb");

/// Largest number of classes; a packet states its class in 16 bits.
const CLASSES_MAX: u64 = 65_535;

crate::params! {
    /// Parameters of [`Htb`].
    pub struct HtbParams {
        /// Rate that each class may always send; none for a class with the rate of the link and
        /// two below it with half of that.
        rates: Vec<Rate> = Vec::new(), [Rate(8) => FASTEST], "", ["rate"];
        /// Rate that each class may not exceed, the last one applying to all further classes; none
        /// for the rate of the link.
        ceils: Vec<Rate> = Vec::new(), [Rate(8) => FASTEST], "", ["ceil"];
        /// Parent of each class, 0 for none, the last one applying to all further classes; none
        /// for the first class as parent of all others.
        parents: Vec<u64> = Vec::new(), [0 => CLASSES_MAX], "", ["parent"];
        /// Priority of each class, 0 first; the last one applies to all further classes.
        prios: Vec<u64> = [0].into(), [0 => PRIO_MAX], "", ["prio"];
        /// Size of the buckets of each class; the last one applies to all further classes.
        bursts: Vec<Bytes> = [Bytes(1600)].into(),
            [Bytes(0) => Bytes(1_000_000_000_000)], "", ["burst"];
        /// Bytes of each class per round, the last one applying to all further classes; none for
        /// a tenth of a second's bytes at its rate, from 1000 to 200000.
        quanta: Vec<Bytes> = Vec::new(),
            [Bytes(1) => Bytes(1_000_000_000)], "", ["quantum"];
        /// Class of packets whose own class is not a leaf, or that no filter matches; 0 for the
        /// first leaf.
        default: u64 = 0, [0 => CLASSES_MAX], "", [];
        /// Buffer size of each class; the last one applies to all further classes.
        limits: Vec<Size> = [Size::Packets(1000)].into(),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", [];
        /// Size of the buffer of all classes together; auto: no other than theirs.
        limit: Option<Size> = None,
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", ["buffer"];
        /// Discipline of each leaf in the order of the classes, the last one applying to all
        /// further leaves; none for FIFO queues with `limits`.
        children: Vec<Child> = Vec::new(), [], "", ["child"];
        /// Filters in order. The first one that matches a packet states its class; other packets
        /// go to the default class. None: the class of a packet is its own.
        filters: Vec<Filter> = Vec::new(), [], "", ["filter"];
    }
}

/// The HTB discipline.
#[derive(Clone, Debug, Snapshot)]
pub struct Htb {
    filters: Filters,
    /// Disciplines of the leaves, the last one applying to all further leaves.
    children: Vec<Child>,
    limit: Option<Size>,
    borrowing: Borrowing,
    queues: Vec<Queue>,
    default: usize,
    /// Times at which the disciplines of leaves that hold packets back may send, nanoseconds.
    asleep: Tree,
    pool: Pool,
    backlog: Backlog,
}

/// Queue of a class.
#[derive(Clone, Debug, Snapshot)]
enum Queue {
    /// FIFO queue with its limit.
    Fifo(Fifo, Size),
    /// Discipline.
    Child(Leaf),
    /// None: the class has children.
    None,
}

impl Build for Htb {
    type Params = HtbParams;

    fn new(params: Checked<'_, HtbParams>, env: &Env) -> Result<Self> {
        let HtbParams { rates, ceils, parents, prios, bursts, quanta, .. } = &*params;
        let half = Rate((env.rate.0 / 2).max(8));
        let three = [env.rate.max(Rate(8)), half, half];
        let rates = if rates.is_empty() { &three[..] } else { rates };
        check_lengths(&params, rates.len())?;
        let depths = depths(rates.len(), parents)?;
        let mut is_parent = alloc::vec![false; rates.len()];
        (0..rates.len()).filter_map(|i| parent_of(parents, i)).for_each(|k| is_parent[k] = true);
        let class = |(i, rate): (usize, &Rate)| {
            let burst = nth(bursts, i).unwrap_or(Bytes(1600));
            let ceil = nth(ceils, i).unwrap_or(env.rate.max(*rate));
            let buckets = [*rate, ceil].map(|rate| Bucket::new(rate, burst));
            let level = if is_parent[i] { DEPTH - depths[i] } else { 0 };
            let prio = nth(prios, i).unwrap_or(0);
            let own = Bytes((rate.0 / 80).clamp(1000, 200_000));
            let mut class = Class::new(parent_of(parents, i), level, prio, buckets);
            class.quantum = nth(quanta, i).unwrap_or(own).0.cast_signed();
            class
        };
        let classes: Vec<Class> = rates.iter().enumerate().map(class).collect();
        let first = classes.iter().position(|class| class.level == 0).unwrap_or(0);
        let default = cast::index(params.default).checked_sub(1).unwrap_or(first);
        if classes.get(default).is_none_or(|class| class.level > 0) {
            let text = format!("class {} is no leaf", params.default);
            return Err(Error::new(text).at("default"));
        }
        let is_leaf = |to| leaf_of(&classes, to).is_some();
        check_classes(&params.filters, is_leaf)?;
        let queues = queues(&params, rates, &classes, env)?;
        let child = |queue: &Queue| matches!(queue, Queue::Child(leaf) if leaf.reads_headers());
        let below = queues.iter().any(child);
        Ok(Htb {
            filters: Filters::new(params.filters.clone(), below),
            children: params.children.clone(),
            limit: params.limit,
            queues,
            default,
            asleep: Tree::new(classes.len()),
            borrowing: Borrowing::new(classes),
            pool: Pool::default(),
            backlog: Backlog::default(),
        })
    }
}

/// Checks the numbers of values for `n` classes.
///
/// # Errors
/// A list that is too long, or empty where a value is required.
fn check_lengths(params: &HtbParams, n: usize) -> Result<()> {
    let HtbParams { ceils, parents, prios, bursts, quanta, limits, children, .. } = params;
    for (name, values) in [
        ("ceils", ceils.len()),
        ("parents", parents.len()),
        ("prios", prios.len()),
        ("bursts", bursts.len()),
        ("quanta", quanta.len()),
        ("limits", limits.len()),
        ("children", children.len()),
    ] {
        let required = matches!(name, "prios" | "bursts" | "limits");
        if values > n || (required && values == 0) {
            return Err(Error::new(format!("{values} values for {n} classes")).at(name));
        }
    }
    if n as u64 > CLASSES_MAX {
        return Err(Error::new(format!("{n} classes, allowed: {CLASSES_MAX}")).at("rates"));
    }
    if !children.is_empty() && *limits != <HtbParams as Default>::default().limits {
        let text = "does not go with children, which have buffers of their own";
        return Err(Error::new(text).at("limits"));
    }
    Ok(())
}

/// Creates the queues of `classes`.
///
/// # Errors
/// Parameters of a discipline that contradict each other or the rate of the class.
fn queues(params: &HtbParams, rates: &[Rate], classes: &[Class], env: &Env) -> Result<Vec<Queue>> {
    let mut built = Leaves::new(&params.children, env);
    let mut leaves = 0..;
    let queue = |(i, class): (usize, &Class)| {
        if class.level > 0 {
            return Ok(Queue::None);
        }
        let limit = nth(&params.limits, i).unwrap_or(Size::Packets(1000));
        let leaf = leaves.next().and_then(|leaf| built.build(leaf, rates[i]).transpose());
        leaf.map_or(Ok(Queue::Fifo(Fifo::default(), limit)), |leaf| leaf.map(Queue::Child))
    };
    classes.iter().enumerate().map(queue).collect()
}

/// Index of the class number `to` if it is a leaf.
#[inline]
fn leaf_of(classes: &[Class], to: u64) -> Option<usize> {
    let i = cast::index(to).wrapping_sub(1);
    classes.get(i).filter(|class| class.level == 0).map(|_| i)
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
    /// Leaf of `packet`.
    #[inline]
    fn leaf(&self, packet: &Packet) -> usize {
        let stated = match self.filters.classify(packet) {
            Some(to) => to,
            None if self.filters.is_empty() => packet.class.into(),
            None => 0,
        };
        leaf_of(self.borrowing.classes(), stated).unwrap_or(self.default)
    }

    /// Dequeues from leaf `i`.
    fn pop(&mut self, context: &mut Context<'_>, i: usize) -> Option<Packet> {
        let (packet, left) = match &mut self.queues[i] {
            Queue::Fifo(fifo, _) => {
                let packet = fifo.pop(&mut self.pool)?;
                self.backlog.packets -= 1;
                self.backlog.bytes -= u64::from(packet.len);
                (Some(packet), !fifo.is_empty())
            }
            Queue::Child(leaf) => {
                let before = leaf.backlog();
                let packet = leaf.dequeue(context);
                let after = leaf.backlog();
                self.backlog.packets = self.backlog.packets + after.packets - before.packets;
                self.backlog.bytes = self.backlog.bytes + after.bytes - before.bytes;
                let wakes = leaf.ready_after(context.now).filter(|_| packet.is_none());
                self.asleep.set(cast::index32(i), wakes.map_or(OUT, |at| at.0.min(OUT - 1)));
                (packet, packet.is_some() && after.packets > 0)
            }
            Queue::None => return None,
        };
        if !left {
            self.borrowing.deactivate(i);
        }
        packet
    }
}

impl Qdisc for Htb {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.enqueue_behind(context, packet, Backlog::default());
    }

    fn enqueue_behind(&mut self, context: &mut Context<'_>, packet: Packet, ahead: Backlog) {
        context.check_arrival(&packet);
        let i = self.leaf(&packet);
        let Backlog { packets, bytes } = self.backlog + ahead;
        if self.limit.is_some_and(|limit| !fits(limit, packets, bytes, &packet)) {
            return context.drop(packet, DropReason::Full);
        }
        let held = match &mut self.queues[i] {
            Queue::Fifo(fifo, limit) => {
                if !fits(*limit, fifo.packets(), fifo.bytes().0, &packet) {
                    return context.drop(packet, DropReason::Full);
                }
                fifo.push(&mut self.pool, packet);
                self.backlog.packets += 1;
                self.backlog.bytes += u64::from(packet.len);
                true
            }
            Queue::Child(leaf) => {
                let before = leaf.backlog();
                leaf.enqueue(context, packet);
                let after = leaf.backlog();
                self.backlog.packets = self.backlog.packets + after.packets - before.packets;
                self.backlog.bytes = self.backlog.bytes + after.bytes - before.bytes;
                // A discipline that held packets back may send the new one now.
                self.asleep.set(cast::index32(i), OUT);
                after.packets > 0
            }
            Queue::None => false,
        };
        if held && !self.borrowing.is_active(i) {
            self.borrowing.activate(context.now, i);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        while let Some((i, at)) = self.asleep.first()
            && at <= context.now.0
        {
            self.asleep.set(i, OUT);
            self.borrowing.activate(context.now, i as usize);
        }
        loop {
            let (i, level) = self.borrowing.select(context.now)?;
            if let Some(packet) = self.pop(context, i) {
                self.borrowing.charge(context.now, i, level, packet.len);
                return Some(packet);
            }
        }
    }

    fn ready_at(&self) -> Option<Time> {
        let wakes = self.asleep.first().map(|(_, at)| Time(at));
        [self.borrowing.ready_at(), wakes].into_iter().flatten().min()
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn changes_class(&self) -> bool {
        let changes = |queue: &Queue| matches!(queue, Queue::Child(leaf) if leaf.changes_class());
        self.queues.iter().any(changes)
    }

    fn reads_headers(&self) -> bool {
        self.filters.reads_headers()
    }

    fn describe_flow(&mut self, flow: u32, header: &FlowHeader) {
        self.filters.describe_flow(flow, header);
        let queues = if self.filters.below_compare { &mut self.queues[..] } else { &mut [] };
        for queue in queues {
            if let Queue::Child(leaf) = queue {
                leaf.describe_flow(flow, header);
            }
        }
    }

    fn reconfigure(&mut self, fresh: Box<dyn Qdisc + Send>) -> bool {
        let Ok(fresh) = (fresh as Box<dyn Any>).downcast::<Self>() else { return false };
        let tree = |htb: &Htb| {
            let classes = htb.borrowing.classes().iter();
            classes.map(|class| (class.parent, class.level, class.prio)).collect::<Vec<_>>()
        };
        if tree(self) != tree(&fresh) {
            return false;
        }
        let Htb { filters, children, limit, borrowing, queues, default, .. } = *fresh;
        let mut changed = self.queues.clone();
        let mut leaves = 0..;
        for (queue, fresh) in changed.iter_mut().zip(queues) {
            let i = if matches!(queue, Queue::None) { 0 } else { leaves.next().unwrap_or(0) };
            let same = child_of(&self.children, i) == child_of(&children, i);
            let fits = match (queue, fresh) {
                (Queue::Fifo(_, limit), Queue::Fifo(_, fresh)) => {
                    *limit = fresh;
                    true
                }
                (Queue::Child(leaf), Queue::Child(fresh)) => same || leaf.reconfigure(fresh),
                (Queue::None, Queue::None) => true,
                _ => false,
            };
            if !fits {
                return false;
            }
        }
        self.borrowing.take_parameters(&borrowing);
        (self.filters, self.children, self.limit) = (filters, children, limit);
        (self.queues, self.default) = (changed, default);
        true
    }

    fn state_bytes(&self) -> usize {
        let child =
            |queue: &Queue| if let Queue::Child(leaf) = queue { leaf.state_bytes() } else { 0 };
        let children: usize = self.queues.iter().map(child).sum();
        size_of_val(self)
            + size_of_val(&*self.queues)
            + children
            + self.borrowing.state_bytes()
            + self.asleep.state_bytes()
    }
}

#[cfg(test)]
mod tests;
