//! Common part of the fair schedulers: one queue per flow, hash or class, an AQM algorithm in each,
//! buffers per queue or one shared buffer, and a [`Scheduler`] that selects the next queue.
//!
//! `Fair<Wfq, CoDel>` is WFQ with CoDel in every queue: a combination is an entry, without code.
//!
//! **Source** see the scheduler; longest-queue drop: B. Suter, T. Lakshman, D. Stiliadis, A.
//! Choudhury, INFOCOM 1998; dynamic thresholds: A. Choudhury, E. Hahne, IEEE/ACM ToN 6(2), 1998.
//! **Decides** as its scheduler and its AQM algorithm do; on arrival if a buffer is full.
//! **Measures** packets and bytes of each queue.
//! **Algorithm** When the shared buffer is full, the queue that is longest for its weight drops a
//! packet; no packet of a flow below its fair share of the buffer is dropped.
//! **Departures** None of its own.
//! **Cost** the scheduler's and the AQM algorithm's; O(log n) where the longest queue drops a
//! packet, or a queue becomes longer than it was since it was last the longest.

use crate::aqm::{Aqm, Verdict, exceeds, fits};
use crate::build::{Build, Builder, Env};
use crate::cast;
use crate::context::{Context, DropReason};
use crate::error::{Error, Result};
use crate::fifo::{Fifo, Pool, QueueView};
use crate::packet::Packet;
use crate::params::{Checked, Combined, Params, nth};
use crate::qdisc::{Backlog, Peek, Qdisc};
use crate::sched::longest::Longest;
use crate::sched::scheduler::{DropPosition, Item, Scheduler};
use crate::sched::tree::{OUT, largest};
use crate::snapshot::Snapshot;
use crate::units::{Size, Time};
use alloc::format;
use alloc::vec::Vec;

crate::choice! {
    /// Identifier of a packet's queue.
    pub enum By {
        /// Number of the flow.
        Flow = "flow",
        /// Hash of the flow.
        Hash = "hash",
        /// Class of the flow in the configuration.
        Class = "class",
    }
}

impl By {
    /// Returns the queue of `packet`, of `n`.
    #[inline]
    pub(super) fn index<S: Scheduler>(self, packet: &Packet, scheduler: &S, n: usize) -> u32 {
        let number = match self {
            By::Flow => packet.flow,
            By::Hash => packet.hash,
            By::Class => scheduler.queue_of(packet.class).unwrap_or(packet.class.into()),
        };
        number % cast::index32(n)
    }
}

crate::choice! {
    /// Queue that drops a packet when the shared buffer is full.
    pub enum Full {
        /// The queue with the most bytes for its weight.
        Longest = "longest" | "lqd",
        /// The arriving packet is dropped.
        Arrival = "arrival" | "tail",
        /// The busy queue with the highest number, if that is not below the arriving packet's.
        Lowest = "lowest" | "push_out",
        /// The arriving packet is dropped, unless its queue is shorter than the free buffer.
        Threshold = "threshold" | "dt",
    }
}

crate::choice! {
    /// End of a queue at which it drops.
    pub enum End {
        /// The oldest packet, so that its sender learns of the congestion early.
        Head = "head",
        /// The newest packet.
        Tail = "tail",
    }
}

crate::params! {
    /// Parameters of every fair scheduler, in addition to its scheduler's and its AQM algorithm's.
    pub struct FairParams {
        /// Size of the buffer that all queues share, in bytes or packets.
        limit: Size = Size::Packets(1000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "B", ["buffer"];
        /// Buffer sizes of the queues in order; the last one applies to all further queues; none
        /// for the shared buffer only.
        limits: Vec<Size> = Vec::new(),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "B_i",
            ["buffers"];
        /// Number of queues; the queue identifier is taken modulo this number.
        flows: u64 = 1024, [1 => 1_048_576], "n", ["buckets", "queues", "classes"];
        /// Identifier of a packet's queue: flow number, flow hash, or configured class.
        by: By = By::Flow, [], "", [];
        /// Weights of the queues in order; the last one applies to all further queues.
        weights: Vec<f64> = [1.0].into(), [1e-6 => 1e6], "w_i", ["weight"];
        /// Queue that drops a packet when the shared buffer is full: the longest for its weight,
        /// the queue of the arriving packet, the queue with the highest number, or by dynamic
        /// threshold.
        full: Full = Full::Longest, [], "", ["overflow"];
        /// End of a queue at which it drops.
        drop: End = End::Head, [], "", [];
        /// True if ECN-capable packets are marked instead of dropped.
        ecn: bool = false, [], "", [];
    }
}

impl<Q, S, A> Builder<Q, Combined<Combined<FairParams, S>, A>> {
    /// Changes the parameters of every fair scheduler.
    #[must_use]
    pub fn fair(mut self, change: impl FnOnce(FairParams) -> FairParams) -> Self {
        self.params.outer.outer = change(self.params.outer.outer);
        self
    }

    /// Changes the parameters of the scheduler.
    #[must_use]
    pub fn scheduler(mut self, change: impl FnOnce(S) -> S) -> Self {
        self.params.outer.inner = change(self.params.outer.inner);
        self
    }
}

#[derive(Clone, Debug, Snapshot)]
struct Queue<A> {
    fifo: Fifo,
    aqm: A,
    weight: f64,
    limit: Option<Size>,
}

impl<A> Queue<A> {
    fn head(&self, pool: &Pool) -> Option<Item> {
        let place = self.fifo.head()?;
        self.fifo.front(pool).map(|p| Item { place, len: p.len })
    }

    /// Key of its length for its weight.
    #[inline]
    fn length(&self) -> u64 {
        let bytes = self.fifo.bytes().0;
        if bytes == 0 { OUT } else { largest(bytes.cast_signed() as f64 / self.weight) }
    }
}

/// A fair queueing discipline with the scheduler `S` and the AQM algorithm `A` in every queue.
#[derive(Clone, Debug, Snapshot)]
pub struct Fair<S, A> {
    params: FairParams,
    scheduler: S,
    queues: Vec<Queue<A>>,
    pool: Pool,
    /// The longest queue, if that drops.
    longest: Option<Longest>,
    /// Queue whose last packet is in transmission.
    last: Option<u32>,
    backlog: Backlog,
    /// True once a packet has arrived.
    started: bool,
}

impl<S: Scheduler, A: Aqm> Build for Fair<S, A> {
    type Params = Combined<Combined<FairParams, S::Params>, A::Params>;

    fn new(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self> {
        let Combined { outer: fair, inner: scheduler } = &params.outer;
        let (scheduler, aqm) = (scheduler.checked()?, params.inner.checked()?);
        let n = cast::index(fair.flows);
        if fair.limits.len() > n {
            let text = format!("{} buffers for {n} queues", fair.limits.len());
            return Err(Error::new(text).at("limits"));
        }
        if fair.weights.is_empty() || fair.weights.len() > n {
            let text = format!("{} weights for {n} queues", fair.weights.len());
            return Err(Error::new(text).at("weights"));
        }
        let queue = |i| {
            let limit = nth(&fair.limits, i);
            let limit_of = limit.unwrap_or(fair.limit);
            let env = Env { limit: limit_of, ecn: fair.ecn, ..*env };
            let weight = nth(&fair.weights, i).unwrap_or(1.0);
            Ok(Queue { fifo: Fifo::default(), aqm: A::new(aqm, &env)?, weight, limit })
        };
        let queues = (0..n).map(queue).collect::<Result<Vec<_>>>()?;
        let weights: Vec<f64> = queues.iter().map(|q| q.weight).collect();
        Ok(Fair {
            scheduler: S::new(scheduler, &Env { limit: fair.limit, ..*env }, &weights)?,
            longest: (fair.full == Full::Longest).then(|| Longest::new(n)),
            queues,
            params: fair.clone(),
            pool: Pool::default(),
            last: None,
            backlog: Backlog::default(),
            started: false,
        })
    }
}

impl<S: Scheduler, A: Aqm> Fair<S, A> {
    /// Returns the scheduler.
    pub(super) fn into_scheduler(self) -> S {
        self.scheduler
    }

    /// Returns the queue of `packet`.
    pub(super) fn index(&self, packet: &Packet) -> u32 {
        self.params.by.index(packet, &self.scheduler, self.queues.len())
    }

    /// True if `packet` can be enqueued in queue `i`, if necessary by dropping others.
    fn room(&self, i: u32, packet: &Packet, ahead: Backlog) -> bool {
        let queue = &self.queues[i as usize];
        let (packets, bytes) = (queue.fifo.packets(), queue.fifo.bytes().0);
        let Backlog { packets: all, bytes: all_bytes } = self.backlog + ahead;
        let shared = || fits(self.params.limit, all, all_bytes, packet);
        let own = queue.limit.is_none_or(|limit| fits(limit, packets, bytes, packet));
        own && match self.params.full {
            Full::Longest => true,
            Full::Arrival => shared(),
            Full::Lowest => shared() || self.last_busy() >= Some(i),
            Full::Threshold => shared() && self.below_threshold(i, ahead),
        }
    }

    /// True if queue `i` is, for its weight, shorter than the free buffer (Choudhury and Hahne).
    fn below_threshold(&self, i: u32, ahead: Backlog) -> bool {
        let queue = &self.queues[i as usize];
        let all = self.backlog + ahead;
        let (mine, all, limit) = match self.params.limit {
            Size::Bytes(limit) => (queue.fifo.bytes().0, all.bytes, limit),
            Size::Packets(limit) => {
                (u64::from(queue.fifo.packets()), u64::from(all.packets), limit)
            }
        };
        (mine as f64) < queue.weight * (limit - all) as f64
    }

    /// Returns the verdict of the AQM algorithm of queue `i`, which may drop packets queued there.
    fn admit(&mut self, context: &mut Context<'_>, i: u32, packet: &Packet) -> Verdict {
        let queue = &mut self.queues[i as usize];
        let (packets, bytes) = (queue.fifo.packets(), queue.fifo.bytes().0);
        let others = self.backlog.bytes - bytes;
        let mut view = QueueView::pooled(&mut queue.fifo, &mut self.pool, others);
        queue.aqm.on_update(context.now, &view);
        let verdict = queue.aqm.on_enqueue(context, &mut view, packet);
        let dropped = packets - queue.fifo.packets();
        if dropped > 0 {
            let bytes = bytes - queue.fifo.bytes().0;
            self.backlog.packets -= dropped;
            self.backlog.bytes -= bytes;
            self.scheduler.on_dropped(i, DropPosition::Head(bytes), queue.head(&self.pool));
        }
        verdict
    }

    fn last_busy(&self) -> Option<u32> {
        self.queues.iter().rposition(|q| !q.fifo.is_empty()).map(cast::index32)
    }

    /// Returns the queue that drops a packet when the shared buffer is full. Of equally long queues
    /// it is the one next in turn, or the one with the lowest number.
    fn payer(&mut self) -> Option<u32> {
        let queues = &self.queues;
        let Some(longest) = &mut self.longest else { return self.last_busy() };
        let (i, length) = longest.find(|i| queues[i as usize].length())?;
        let tied = |j: u32| queues[j as usize].length() == length;
        if longest.is_alone(i) { Some(i) } else { self.scheduler.nearest(&tied).or(Some(i)) }
    }

    /// Drops one packet because the shared buffer is full.
    fn shed(&mut self, context: &mut Context<'_>) {
        let i = self.payer().expect("a full buffer has packets");
        let queue = &mut self.queues[i as usize];
        let tail = queue.fifo.tail();
        let victim = match self.params.drop {
            End::Head => queue.fifo.pop(&mut self.pool),
            End::Tail => queue.fifo.pop_back(&mut self.pool),
        };
        let victim = victim.expect("a queue that is long has packets");
        let loss = match (self.params.drop, tail) {
            (End::Tail, Some(place)) => DropPosition::Tail(place),
            _ => DropPosition::Head(u64::from(victim.len)),
        };
        queue.aqm.on_evict(1);
        if queue.fifo.is_empty() {
            queue.aqm.on_idle(context.now);
        }
        self.scheduler.on_dropped(i, loss, queue.head(&self.pool));
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(victim.len);
        context.drop(victim, DropReason::Full);
    }

    /// Length of the next packet, if the scheduler [can show](Scheduler::PEEKS) it and the AQM
    /// algorithm sends the head.
    pub(super) fn peek(&mut self, now: Time) -> Peek {
        let Fair { scheduler, queues, pool, .. } = self;
        let head = |i: u32| queues[i as usize].fifo.front(pool);
        let i = scheduler.select(now, |i| head(i).map(|packet| packet.len));
        i.map_or(Peek::Nothing, |i| Peek::of(head(i)))
    }

    /// Enqueues or drops `packet`, which belongs to queue `i`. A parent has dequeued `ahead` in
    /// advance.
    #[inline]
    pub(super) fn enqueue_in(
        &mut self,
        context: &mut Context<'_>,
        i: u32,
        mut packet: Packet,
        ahead: Backlog,
    ) {
        context.check_arrival(&packet);
        if !self.started {
            self.started = true;
            self.queues.iter_mut().for_each(|queue| queue.aqm.on_first_packet(context.now));
        }
        let own = self.queues[i as usize].limit;
        if exceeds(self.params.limit, &packet) || own.is_some_and(|l| exceeds(l, &packet)) {
            return context.drop(packet, DropReason::Full);
        }
        self.scheduler.on_arrival(i, packet.len);
        let verdict = self.admit(context, i, &packet);
        if !self.room(i, &packet, ahead) {
            self.queues[i as usize].aqm.on_overflow(context.now);
            return context.drop(packet, DropReason::Full);
        }
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark if self.params.ecn && context.mark(&mut packet) => {}
            Verdict::Mark | Verdict::Drop => return context.drop(packet, DropReason::AtEnqueue),
        }
        let queue = &mut self.queues[i as usize];
        let first = queue.fifo.is_empty();
        queue.fifo.push(&mut self.pool, packet);
        queue.aqm.after_enqueue(&packet);
        if let Some(place) = queue.fifo.tail() {
            self.scheduler.on_enqueued(context.now, i, Item { place, len: packet.len }, first);
        }
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.len);
        if let Some(longest) = &mut self.longest {
            longest.grow(i, queue.length());
        }
        while !(self.backlog + ahead).is_within(self.params.limit) {
            self.shed(context);
        }
    }
}

impl<S: Scheduler, A: Aqm> Qdisc for Fair<S, A> {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.enqueue_behind(context, packet, Backlog::default());
    }

    fn enqueue_behind(&mut self, context: &mut Context<'_>, packet: Packet, ahead: Backlog) {
        self.enqueue_in(context, self.index(&packet), packet, ahead);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        // A queue is idle from the end of its last transmission on.
        if let Some(queue) = self.last.take().map(|i| &mut self.queues[i as usize])
            && queue.fifo.is_empty()
        {
            queue.aqm.on_idle(context.now);
        }
        loop {
            let Fair { scheduler, queues, pool, .. } = self;
            let head = |i: u32| queues[i as usize].fifo.front(pool).map(|p| p.len);
            let Some(i) = scheduler.select(context.now, head) else {
                scheduler.on_idle();
                return None;
            };
            let queue = &mut queues[i as usize];
            let (packets, bytes) = (queue.fifo.packets(), queue.fifo.bytes().0);
            let others = self.backlog.bytes - bytes;
            let mut view = QueueView::pooled(&mut queue.fifo, pool, others);
            queue.aqm.on_update(context.now, &view);
            let packet = queue.aqm.on_dequeue(context, &mut view, self.params.ecn);
            let next = queue.head(pool);
            let left = queue.fifo.bytes().0;
            self.backlog.packets -= packets - queue.fifo.packets();
            self.backlog.bytes -= bytes - left;
            match packet {
                Some(packet) => {
                    self.last = next.is_none().then_some(i);
                    scheduler.on_sent(context.now, i, packet.len, next);
                }
                None => queue.aqm.on_idle(context.now),
            }
            // Packets dropped by the AQM algorithm are not charged to the queue.
            let dropped = bytes - left - packet.map_or(0, |p| u64::from(p.len));
            if dropped > 0 {
                scheduler.on_dropped(i, DropPosition::Head(dropped), next);
            }
            if packet.is_some() {
                return packet;
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.scheduler.inspect(visit);
    }

    fn state_bytes(&self) -> usize {
        let aqms: usize = self.queues.iter().map(|q| q.aqm.state_bytes() - size_of::<A>()).sum();
        let tree = self.longest.as_ref().map_or(0, Longest::state_bytes);
        size_of_val(self) + size_of_val(&*self.queues) + aqms + tree + self.scheduler.state_bytes()
    }
}

#[cfg(test)]
mod tests;
