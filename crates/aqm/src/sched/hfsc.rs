//! HFSC: a tree of classes with guaranteed delays and rates, and shares of the rest.
//!
//! **Source** I. Stoica, H. Zhang, T. S. E. Ng, "A hierarchical fair service curve algorithm for
//! link-sharing, real-time and priority services", SIGCOMM 1997; Linux sch_hfsc; tc-hfsc(7).
//!
//! **Decides** on departure: the next class, and when it may send; on arrival if a buffer is full.
//!
//! **Measures** the bytes of each class, in all and by real-time.
//!
//! **Symbols** `rt` is R, the real-time curve; `ls` F, the link-share curve; `ul` U, the upper
//! limit.
//!
//! **Algorithm** A *service curve* is the service due to a class after a time of activity: the
//! rate m1 for the time d, then the rate m2. Class i, counted from 1, has up to three: a real-time
//! curve `rt`_i (leaves only), a link-share curve `ls`_i and an upper limit `ul`_i. Its
//! `parents`_i is an earlier class, or 0 for the root.
//!
//! *Real time.* The real-time curve of a leaf gives its head a deadline d, the time at which the
//! curve reaches the end of the packet, and an eligible time e, from which on the packet must be
//! sent to keep later deadlines as well. If a leaf is eligible, the one with the earliest deadline
//! sends.
//!
//! *Link sharing.* Otherwise each level, from the root down, selects the active class with the
//! smallest virtual time v, at which the link-share curve reaches its total service, among those
//! with a fit time f that has come. The fit time follows from the upper limit of the class and of
//! the classes below it. A class that becomes active gets the mean of the smallest and the largest
//! virtual time of its siblings, or its old one if that is larger in the same period.
//!
//! A leaf has a FIFO queue, or a discipline of `children`. If that holds packets back, the leaf is
//! not active until the discipline may send.
//!
//! **Departures** (1) Classes have numbers in place of handles. Packets state their class, or
//! `filters` do, which name leaves only. (2) Real-time curves of classes that have children are
//! refused; Linux ignores them. (3) Time has ticks of 64 ns and slopes are rounded as in Linux.
//! (4) Packets of no class go to `default`; Linux drops them if there is no default. (5) m2 is at
//! least 8 bit/s; in Linux it may be 0.
//!
//! **Cost** 3128 bytes of state for three classes; O(n) per packet for n active classes.

mod classes;
mod curve;

pub use curve::ServiceCurve;

use crate::aqm::fits;
use crate::bucket::FASTEST;
use crate::build::{Build, Env};
use crate::cast;
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::{Error, ErrorKind, Result};
use crate::flow_header::FlowHeader;
use crate::packet::Packet;
use crate::params::{Checked, Setting, nth};
use crate::qdisc::{Backlog, Qdisc};
use crate::sched::child::{Child, Leaf, Leaves};
use crate::sched::filter::{Filter, Filters, check_classes};
use crate::sched::tree::{OUT, Tree};
use crate::snapshot::Snapshot;
use crate::units::{Rate, Size, Span, Time};
use alloc::format;
use alloc::vec::Vec;
use classes::Classes;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Hfsc>(
    "hfsc",
    "a tree of classes with service curves: guaranteed delays and rates, and shares of the rest",
)
.decides("on departure: the next class, and when it may send")
.source("Stoica, Zhang and Ng, SIGCOMM 1997; Linux sch_hfsc");

/// Largest number of classes; a packet states its class in 16 bits.
const CLASSES_MAX: u64 = 65_535;
/// Largest depth of a tree.
const DEPTH_MAX: u32 = 64;

/// Longest first segment of a curve.
const SEGMENT_MAX: Span = Span(1_000_000_000_000);

crate::params! {
    /// Parameters of [`Hfsc`].
    pub struct HfscParams {
        /// Link-share curve of each class, none for a class without; empty for a class with the
        /// rate of the link and two below it with half of that.
        ls: Vec<ServiceCurve> = Vec::new(), [], "F", ["linkshare"];
        /// Real-time curve of each leaf, none for a class without.
        rt: Vec<ServiceCurve> = Vec::new(), [], "R", ["realtime"];
        /// Upper limit of each class, none for a class without.
        ul: Vec<ServiceCurve> = Vec::new(), [], "U", ["upperlimit"];
        /// Parent of each class, 0 for the root, the last one applying to all further classes; none
        /// for the first class as parent of all others.
        parents: Vec<u64> = Vec::new(), [0 => CLASSES_MAX], "", ["parent"];
        /// Class of packets whose own class is not a leaf, or that no filter matches; 0 for the
        /// first leaf.
        default: u64 = 0, [0 => CLASSES_MAX], "", [];
        /// Size of the buffer of all classes together; auto: no other than theirs.
        limit: Option<Size> = None,
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", ["buffer"];
        /// Discipline of each leaf in the order of the classes, the last one applying to all
        /// further leaves; none for FIFO queues of 1000 packets.
        children: Vec<Child> = Vec::new(), [], "", ["child"];
        /// Filters in order. The first one that matches a packet states its class; other packets
        /// go to the default class. None: the class of a packet is its own.
        filters: Vec<Filter> = Vec::new(), [], "", ["filter"];
    }
}

/// The HFSC discipline.
#[derive(Clone, Debug, Snapshot)]
pub struct Hfsc {
    classes: Classes,
    /// Queues of the leaves.
    queues: Vec<Option<Leaf>>,
    filters: Filters,
    default: usize,
    limit: Option<Size>,
    /// Times at which the disciplines of leaves that hold packets back may send, nanoseconds.
    asleep: Tree,
    backlog: Backlog,
}

/// Index of the parent of class `i`, counted from 0.
fn parent_of(parents: &[u64], i: usize) -> Option<usize> {
    if parents.is_empty() {
        return (i > 0).then_some(0);
    }
    nth(parents, i).and_then(|parent| cast::index(parent).checked_sub(1))
}

/// Returns the parent of each of `n` classes.
///
/// # Errors
/// A parent that is not an earlier class, or a tree that is too deep.
fn parents(n: usize, parents: &[u64]) -> Result<Vec<Option<usize>>> {
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
        if depth > DEPTH_MAX {
            let text = format!("the tree has more than {DEPTH_MAX} levels");
            return Err(Error::new(text).at("parents"));
        }
        depths.push(depth);
    }
    Ok((0..n).map(|i| parent_of(parents, i)).collect())
}

/// Curves of a class: real-time, link-share and upper limit.
type Curves = [Option<ServiceCurve>; 3];

/// Returns the curves of each class.
///
/// # Errors
/// Curves that contradict each other or the tree.
fn curves(params: &HfscParams, n: usize, is_parent: &[bool]) -> Result<Vec<Curves>> {
    let HfscParams { rt, ls, ul, parents, children, .. } = params;
    for (name, values) in [
        ("rt", rt.len()),
        ("ul", ul.len()),
        ("parents", parents.len()),
        ("children", children.len()),
    ] {
        if values > n {
            return Err(Error::new(format!("{values} values for {n} classes")).at(name));
        }
    }
    let curve =
        |list: &[ServiceCurve], i: usize| list.get(i).copied().filter(ServiceCurve::is_some);
    let curves = (0..n).map(|i| [rt, ls, ul].map(|list| curve(list, i)));
    let curves: Vec<Curves> = curves.collect();
    for (i, all) in curves.iter().enumerate() {
        let class = i + 1;
        for (curve, name) in all.iter().zip(["rt", "ls", "ul"]) {
            let Some(ServiceCurve { m1, d, m2 }) = curve else { continue };
            let text = if m2.0 < 8 {
                format!("class {class} has an m2 below 8 bit/s, so it may wait forever")
            } else if m1.0.max(m2.0) > FASTEST.0 || d.0 > SEGMENT_MAX.0 {
                format!("class {class} has a curve above {FASTEST} or {SEGMENT_MAX}")
            } else {
                continue;
            };
            return Err(Error::new(text).at(name).of_kind(ErrorKind::OutOfRange));
        }
        let [rt, ls, ul] = all;
        let (name, text) = match (is_parent[i], rt, ls, ul) {
            (true, Some(_), ..) => {
                ("rt", format!("class {class} has children, and a real-time curve"))
            }
            (true, _, None, _) => {
                ("ls", format!("class {class} has children, and no link-share curve"))
            }
            (_, None, None, _) => ("ls", format!("class {class} has no curve")),
            (_, _, None, Some(_)) => {
                ("ul", format!("class {class} has an upper limit, and no link-share curve"))
            }
            _ => continue,
        };
        return Err(Error::new(text).at(name));
    }
    Ok(curves)
}

impl Build for Hfsc {
    type Params = HfscParams;

    fn new(params: Checked<'_, HfscParams>, env: &Env) -> Result<Self> {
        let mut params = (*params).clone();
        let rate = env.rate.max(Rate(8));
        if params.ls.is_empty() && params.rt.is_empty() {
            let half = Rate((rate.0 / 2).max(8));
            params.ls = [rate, half, half].map(ServiceCurve::linear).into();
        }
        let n = params.ls.len().max(params.rt.len());
        if n as u64 > CLASSES_MAX {
            return Err(Error::new(format!("{n} classes, allowed: {CLASSES_MAX}")).at("ls"));
        }
        let parents = parents(n, &params.parents)?;
        let mut is_parent = alloc::vec![false; n];
        parents.iter().flatten().for_each(|k| is_parent[*k] = true);
        let curves = curves(&params, n, &is_parent)?;
        let first = is_parent.iter().position(|parent| !parent).unwrap_or(0);
        let default = cast::index(params.default).checked_sub(1).unwrap_or(first);
        if is_parent.get(default) != Some(&false) {
            let text = format!("class {} is no leaf", params.default);
            return Err(Error::new(text).at("default"));
        }
        let leaf = |to: u64| is_parent.get(cast::index(to).wrapping_sub(1)) == Some(&false);
        check_classes(&params.filters, leaf)?;
        let fifo = [Child::new("droptail", &[("limit", Setting::Text("1000p"))])?];
        let children = if params.children.is_empty() { &fifo[..] } else { &params.children };
        let mut built = Leaves::new(children, env);
        let mut leaves = 0..;
        let queue = |i: usize| {
            if is_parent[i] {
                return Ok(None);
            }
            let [rt, ls, _] = curves[i];
            let of_class = ls.or(rt).map_or(rate, |curve| curve.m2.max(curve.m1).max(Rate(8)));
            built.build(leaves.next().unwrap_or(0), of_class)
        };
        let queues = (0..n).map(queue).collect::<Result<Vec<_>>>()?;
        let below = queues.iter().flatten().any(Leaf::reads_headers);
        Ok(Hfsc {
            classes: Classes::new(&parents, &curves),
            queues,
            filters: Filters::new(params.filters, below),
            default,
            limit: params.limit,
            asleep: Tree::new(n),
            backlog: Backlog::default(),
        })
    }
}

impl Hfsc {
    /// Leaf of `packet`.
    fn leaf(&self, packet: &Packet) -> usize {
        let stated = match self.filters.classify(packet) {
            Some(to) => to,
            None if self.filters.is_empty() => packet.class.into(),
            None => 0,
        };
        let i = cast::index(stated).wrapping_sub(1);
        let is_leaf = self.queues.get(i).is_some_and(Option::is_some);
        if is_leaf { i } else { self.default }
    }

    /// Calls `f` with the queue of leaf `i`, and accounts for what it sends and drops.
    fn with<T>(&mut self, i: usize, f: impl FnOnce(&mut Leaf) -> T) -> Option<T> {
        let leaf = self.queues[i].as_mut()?;
        let before = leaf.backlog();
        let result = f(leaf);
        let after = leaf.backlog();
        self.backlog.packets = self.backlog.packets + after.packets - before.packets;
        self.backlog.bytes = self.backlog.bytes + after.bytes - before.bytes;
        Some(result)
    }

    /// Length of the next packet of leaf `i`, which has packets; None if it has none now. Only a
    /// real-time curve needs the length: other packets stay with the discipline until they are
    /// sent.
    fn next(&mut self, context: &mut Context<'_>, i: usize) -> Option<u32> {
        if self.classes.is_timed(i) {
            return self.with(i, |leaf| leaf.peek(context)).flatten();
        }
        self.queues[i].as_ref().filter(|leaf| leaf.backlog().packets > 0).map(|_| 0)
    }

    /// Makes leaf `i` active if it has a packet to send, or else lets it sleep.
    fn wake(&mut self, context: &mut Context<'_>, i: usize) {
        let now = context.now;
        if let Some(len) = self.next(context, i) {
            self.asleep.set(cast::index32(i), OUT);
            self.classes.activate(now, i, len);
        } else {
            self.sleep(now, i);
        }
    }

    /// Notes when leaf `i` may send, which has no packet to send at `now`.
    fn sleep(&mut self, now: Time, i: usize) {
        let wakes = self.queues[i].as_ref().and_then(|leaf| leaf.ready_after(now));
        self.asleep.set(cast::index32(i), wakes.map_or(OUT, |at| at.0.min(OUT - 1)));
    }
}

impl Qdisc for Hfsc {
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
        self.with(i, |leaf| leaf.enqueue(context, packet));
        if !self.classes.is_active(i) {
            self.wake(context, i);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let now = context.now;
        while let Some((i, at)) = self.asleep.first()
            && at <= now.0
        {
            self.wake(context, i as usize);
        }
        loop {
            let (i, real_time) = self.classes.select(now)?;
            let packet = self.with(i, |leaf| leaf.dequeue(context)).flatten();
            let next = packet.and_then(|_| self.next(context, i));
            let len = packet.map_or(0, |packet| packet.len);
            self.classes.charge(i, len, real_time, next);
            if next.is_none() {
                self.sleep(now, i);
            }
            if packet.is_some() {
                return packet;
            }
        }
    }

    fn ready_at(&self) -> Option<Time> {
        let wakes = self.asleep.first().map(|(_, at)| Time(at));
        [self.classes.ready_at(), wakes].into_iter().flatten().min()
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn changes_class(&self) -> bool {
        self.queues.iter().flatten().any(Leaf::changes_class)
    }

    fn reads_headers(&self) -> bool {
        self.filters.reads_headers()
    }

    fn describe_flow(&mut self, flow: u32, header: &FlowHeader) {
        self.filters.describe_flow(flow, header);
        if self.filters.below_compare {
            self.queues.iter_mut().flatten().for_each(|leaf| leaf.describe_flow(flow, header));
        }
    }

    fn state_bytes(&self) -> usize {
        let queues: usize = self.queues.iter().flatten().map(Leaf::state_bytes).sum();
        size_of_val(self)
            + size_of_val(&*self.queues)
            + queues
            + self.classes.state_bytes()
            + self.asleep.state_bytes()
    }
}

#[cfg(test)]
mod tests;
