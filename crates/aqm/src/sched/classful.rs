//! Common part of the classful disciplines: a [`Scheduler`] over classes, each of which has a FIFO
//! queue or a discipline of its own, and filters that select the class of a packet.
//!
//! **Source** Linux sch_prio, sch_drr and sch_ets.
//! **Decides** as its scheduler and the disciplines of its classes do; on arrival if the buffer is
//! full or no filter matches.
//! **Measures** what its scheduler and the disciplines of its classes measure.
//! **Algorithm** The first filter that matches selects the class of a packet. The discipline of
//! the class enqueues it. The scheduler selects a class, and the discipline of that class the
//! packet. A scheduler may need the length of the next packet: a discipline that decides at dequeue
//! then dequeues it in advance. It counts as queued in that discipline until it is sent.
//! **Departures** A class whose discipline holds packets back is not in the round until that
//! discipline may send; in Linux it ends the turn of all classes.
//! **Cost** the scheduler's and the classes'; O(log n) for a class whose discipline holds back.

use crate::aqm::{NoAqm, exceeds, fits};
use crate::build::{Build, Builder, Env};
use crate::cast;
use crate::context::{Context, DropReason};
use crate::error::{Error, Result};
use crate::flow_header::FlowHeader;
use crate::packet::Packet;
use crate::params::{Checked, Combined, Nothing, Params};
use crate::qdisc::{Backlog, Peek, Qdisc};
use crate::sched::child::{Child, Leaf, Leaves, child_of};
use crate::sched::fair::{By, End, Fair, FairParams, Full};
use crate::sched::filter::{Filter, Filters, check_classes};
use crate::sched::scheduler::{DropPosition, Item, Scheduler};
use crate::sched::tree::{OUT, Tree};
use crate::snapshot::Snapshot;
use crate::units::{Size, Time};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::cell::{Cell, RefCell};

crate::params! {
    /// Parameters of every classful discipline, in addition to the parameters of its scheduler.
    pub struct ClassParams {
        /// Discipline of each class, the last one applying to all further classes; none for FIFO
        /// queues.
        children: Vec<Child> = Vec::new(), [], "", ["child"];
        /// Filters in order. The first one that matches a packet states its class.
        filters: Vec<Filter> = Vec::new(), [], "", ["filter"];
    }
}

/// Parameters of [`Classful`].
type AllParams<S> = Combined<Combined<Combined<FairParams, S>, Nothing>, ClassParams>;

impl<Q, S> Builder<Q, AllParams<S>> {
    /// Changes the parameters of the queues.
    #[must_use]
    pub fn fair(mut self, change: impl FnOnce(FairParams) -> FairParams) -> Self {
        self.params.outer.outer.outer = change(self.params.outer.outer.outer);
        self
    }

    /// Changes the parameters of the scheduler.
    #[must_use]
    pub fn scheduler(mut self, change: impl FnOnce(S) -> S) -> Self {
        self.params.outer.outer.inner = change(self.params.outer.outer.inner);
        self
    }

    /// Changes the children and the filters.
    #[must_use]
    pub fn classes(mut self, change: impl FnOnce(ClassParams) -> ClassParams) -> Self {
        self.params.inner = change(self.params.inner);
        self
    }
}

/// A classful discipline with the scheduler `S`.
#[derive(Clone, Debug, Snapshot)]
pub struct Classful<S> {
    filters: Filters,
    classes: Classes<S>,
}

#[derive(Clone, Debug, Snapshot)]
enum Classes<S> {
    Queues(Fair<S, NoAqm>),
    Children(Children<S>),
}

/// Classes with a discipline each.
#[derive(Clone, Debug, Snapshot)]
struct Children<S> {
    scheduler: S,
    /// Disciplines of the classes, the last one applying to all further classes.
    children: Vec<Child>,
    /// Values of the parameters that cannot change while it runs.
    fixed: Vec<String>,
    leaves: Vec<Leaf>,
    by: By,
    limit: Size,
    backlog: Backlog,
    /// Classes that the scheduler knows to have packets.
    active: Vec<bool>,
    /// Times at which the disciplines of the other classes with packets may send, nanoseconds.
    asleep: Tree,
}

impl<S: Scheduler> Build for Classful<S> {
    type Params = AllParams<S::Params>;

    fn new(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self> {
        let ClassParams { children, filters } = &params.inner;
        let queues = params.outer.checked()?;
        let fair = &params.outer.outer.outer;
        // Also checks the parameters of the queues and the scheduler.
        let plain = Fair::<S, NoAqm>::new(queues, env)?;
        check_classes(filters, |to| to < fair.flows)?;
        let classes = if children.is_empty() {
            Classes::Queues(plain)
        } else {
            let scheduler = plain.into_scheduler();
            let changes = |name| name == "limit" || S::CHANGES.contains(&name);
            let fixed = params.outer.table().into_iter().filter(|row| !changes(row.name));
            let fixed = fixed.map(|row| row.value).collect();
            Classes::Children(Children::new(fair, children, scheduler, fixed, env)?)
        };
        let below = match &classes {
            Classes::Queues(_) => false,
            Classes::Children(all) => all.leaves.iter().any(Leaf::reads_headers),
        };
        Ok(Classful { filters: Filters::new(filters.clone(), below), classes })
    }
}

impl<S: Scheduler> Children<S> {
    fn new(
        fair: &FairParams,
        children: &[Child],
        scheduler: S,
        fixed: Vec<String>,
        env: &Env,
    ) -> Result<Self> {
        let n = cast::index(fair.flows);
        let refused = [
            ("limits", fair.limits.is_empty()),
            ("full", matches!(fair.full, Full::Longest | Full::Arrival)),
            ("drop", fair.drop == End::Head),
            ("ecn", !fair.ecn),
        ];
        if let Some((name, _)) = refused.iter().find(|(_, fits)| !fits) {
            let text = "does not go with children, which have buffers of their own";
            return Err(Error::new(text).at(name));
        }
        let mut built = Leaves::new(children, env);
        let leaf = |i| built.build(i, env.rate).map(|leaf| leaf.expect("there are children"));
        Ok(Children {
            scheduler,
            children: children.to_vec(),
            fixed,
            leaves: (0..n).map(leaf).collect::<Result<Vec<_>>>()?,
            by: fair.by,
            limit: fair.limit,
            backlog: Backlog::default(),
            active: alloc::vec![false; n],
            asleep: Tree::new(n),
        })
    }

    /// Updates the backlog after a call of class `i`, which had `before`.
    fn account(&mut self, i: u32, before: Backlog) {
        let after = self.leaves[i as usize].backlog();
        self.backlog.packets = self.backlog.packets + after.packets - before.packets;
        self.backlog.bytes = self.backlog.bytes + after.bytes - before.bytes;
    }

    /// Puts class `i` in the round.
    fn activate(&mut self, now: Time, i: u32) {
        self.asleep.set(i, OUT);
        self.active[i as usize] = true;
        self.scheduler.on_enqueued(now, i, Item { place: 0, len: 0 }, true);
    }

    /// Removes class `i` from the round: it is empty, or its discipline holds packets back.
    fn deactivate(&mut self, now: Time, i: u32) {
        self.active[i as usize] = false;
        let wakes = self.leaves[i as usize].ready_after(now);
        self.asleep.set(i, wakes.map_or(OUT, |at| at.0.min(OUT - 1)));
    }

    fn enqueue(&mut self, context: &mut Context<'_>, i: u32, packet: Packet, ahead: Backlog) {
        let Backlog { packets, bytes } = self.backlog + ahead;
        if exceeds(self.limit, &packet) || !fits(self.limit, packets, bytes, &packet) {
            return context.drop(packet, DropReason::Full);
        }
        self.scheduler.on_arrival(i, packet.len);
        let leaf = &mut self.leaves[i as usize];
        let before = leaf.backlog();
        leaf.enqueue(context, packet);
        let after = leaf.backlog().packets;
        self.account(i, before);
        // A discipline that held packets back may send the new one now.
        if after > 0 && !self.active[i as usize] {
            self.activate(context.now, i);
        } else if S::READS_NEXT && after > before.packets {
            match self.next(context, i) {
                Some(next) => self.scheduler.on_next(i, next.len),
                None => self.pass(context.now, i),
            }
        }
    }

    /// Returns the next packet of class `i`, without its length if the scheduler does not need it.
    fn next(&mut self, context: &mut Context<'_>, i: u32) -> Option<Item> {
        let leaf = &mut self.leaves[i as usize];
        let before = leaf.backlog();
        if !S::READS_NEXT {
            return (before.packets > 0).then_some(Item { place: 0, len: 0 });
        }
        let len = leaf.peek(context);
        self.account(i, before);
        len.map(|len| Item { place: 0, len })
    }

    /// Puts the classes in the round whose disciplines may send again.
    fn wake(&mut self, now: Time) {
        while let Some((i, at)) = self.asleep.first()
            && at <= now.0
        {
            self.activate(now, i);
        }
    }

    /// Removes class `i`, which has no packet to send, from the round.
    fn pass(&mut self, now: Time, i: u32) {
        self.scheduler.on_dropped(i, DropPosition::Head(0), None);
        self.deactivate(now, i);
    }

    /// Length of the next packet, of a scheduler that selects by the classes with packets only.
    fn peek(&mut self, context: &mut Context<'_>) -> Peek {
        let now = context.now;
        self.wake(now);
        while let Some(i) = self.select(context) {
            let leaf = &mut self.leaves[i as usize];
            let before = leaf.backlog();
            let len = leaf.peek(context);
            self.account(i, before);
            match len {
                Some(len) => return Peek::Packet(len),
                None => self.pass(now, i),
            }
        }
        Peek::Nothing
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let now = context.now;
        self.wake(now);
        loop {
            let Some(i) = self.select(context) else {
                self.scheduler.on_idle();
                return None;
            };
            let leaf = &mut self.leaves[i as usize];
            let before = leaf.backlog();
            let packet = leaf.dequeue(context);
            self.account(i, before);
            let Some(packet) = packet else {
                self.pass(now, i);
                continue;
            };
            let next = self.next(context, i);
            self.scheduler.on_sent(now, i, packet.len, next);
            self.active[i as usize] = next.is_some();
            if S::READS_NEXT && next.is_none() {
                self.deactivate(now, i);
            }
            return Some(packet);
        }
    }

    /// Selects a class, in which there may be no packet that can be sent now.
    fn select(&mut self, context: &mut Context<'_>) -> Option<u32> {
        let now = context.now;
        loop {
            // Of a class without a packet to send: the scheduler stops there.
            let idle = Cell::new(None);
            let Children { scheduler, leaves, backlog, .. } = self;
            let state = RefCell::new((leaves, backlog, &mut *context));
            let head = |i: u32| {
                let (leaves, backlog, context) = &mut *state.borrow_mut();
                let leaf = &mut leaves[i as usize];
                let before = leaf.backlog();
                let len = leaf.peek(context);
                let after = leaf.backlog();
                backlog.packets = backlog.packets + after.packets - before.packets;
                backlog.bytes = backlog.bytes + after.bytes - before.bytes;
                idle.set(len.is_none().then_some(i).or(idle.get()));
                len
            };
            let selected = scheduler.select(now, head);
            match idle.get() {
                Some(i) => self.pass(now, i),
                None => return selected,
            }
        }
    }

    fn reconfigure(&mut self, fresh: Children<S>) -> bool {
        let mut leaves = self.leaves.clone();
        let same = |i| child_of(&self.children, i) == child_of(&fresh.children, i);
        let mut pairs = leaves.iter_mut().zip(fresh.leaves).enumerate();
        let fits = self.fixed == fresh.fixed
            && pairs.all(|(i, (leaf, fresh))| same(i) || leaf.reconfigure(fresh));
        if fits {
            (self.leaves, self.children, self.limit) = (leaves, fresh.children, fresh.limit);
            self.scheduler.change(&fresh.scheduler);
        }
        fits
    }

    fn state_bytes(&self) -> usize {
        let leaves: usize = self.leaves.iter().map(Leaf::state_bytes).sum();
        size_of_val(&*self.leaves)
            + leaves
            + self.active.len()
            + self.asleep.state_bytes()
            + self.scheduler.state_bytes()
    }
}

impl<S: Scheduler> Qdisc for Classful<S> {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.enqueue_behind(context, packet, Backlog::default());
    }

    fn enqueue_behind(&mut self, context: &mut Context<'_>, packet: Packet, ahead: Backlog) {
        context.check_arrival(&packet);
        let of_filter = self.filters.classify(&packet);
        let unmatched = of_filter.is_none() && !self.filters.is_empty();
        if unmatched && !S::HAS_DEFAULT {
            return context.drop(packet, DropReason::AtEnqueue);
        }
        let of_filter = of_filter.map(|class| cast::index32(cast::index(class)));
        match &mut self.classes {
            Classes::Queues(fair) => {
                let i = of_filter.unwrap_or_else(|| fair.index(&packet));
                fair.enqueue_in(context, i, packet, ahead);
            }
            Classes::Children(all) => {
                let n = all.leaves.len();
                let i = of_filter.unwrap_or_else(|| all.by.index(&packet, &all.scheduler, n));
                all.enqueue(context, i, packet, ahead);
            }
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        match &mut self.classes {
            Classes::Queues(fair) => fair.dequeue(context),
            Classes::Children(all) => all.dequeue(context),
        }
    }

    fn peek(&mut self, context: &mut Context<'_>) -> Peek {
        match &mut self.classes {
            _ if !S::PEEKS => Peek::Undecided,
            Classes::Queues(fair) => fair.peek(context.now),
            Classes::Children(all) => all.peek(context),
        }
    }

    fn ready_at(&self) -> Option<Time> {
        match &self.classes {
            Classes::Queues(_) => None,
            Classes::Children(all) => all.asleep.first().map(|(_, at)| Time(at)),
        }
    }

    fn backlog(&self) -> Backlog {
        match &self.classes {
            Classes::Queues(fair) => fair.backlog(),
            Classes::Children(all) => all.backlog,
        }
    }

    fn changes_class(&self) -> bool {
        match &self.classes {
            Classes::Queues(_) => false,
            Classes::Children(all) => all.leaves.iter().any(Leaf::changes_class),
        }
    }

    fn reads_headers(&self) -> bool {
        self.filters.reads_headers()
    }

    fn describe_flow(&mut self, flow: u32, header: &FlowHeader) {
        self.filters.describe_flow(flow, header);
        if let Classes::Children(all) = &mut self.classes
            && self.filters.below_compare
        {
            all.leaves.iter_mut().for_each(|leaf| leaf.describe_flow(flow, header));
        }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        match &self.classes {
            Classes::Queues(fair) => fair.inspect(visit),
            Classes::Children(all) => all.scheduler.inspect(visit),
        }
    }

    fn state_bytes(&self) -> usize {
        let own = self.filters.state_bytes();
        own + match &self.classes {
            Classes::Queues(fair) => size_of_val(self) - size_of_val(fair) + fair.state_bytes(),
            Classes::Children(all) => size_of_val(self) + all.state_bytes(),
        }
    }

    fn reconfigure(&mut self, fresh: Box<dyn Qdisc + Send>) -> bool {
        let Ok(fresh) = (fresh as Box<dyn Any>).downcast::<Self>() else { return false };
        let Classful { filters, classes } = *fresh;
        let (Classes::Children(all), Classes::Children(fresh)) = (&mut self.classes, classes)
        else {
            return false;
        };
        let changed = all.reconfigure(fresh);
        if changed {
            self.filters = filters;
        }
        changed
    }
}

#[cfg(test)]
mod tests;
