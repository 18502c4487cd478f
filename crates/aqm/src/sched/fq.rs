//! FQ: deficit round robin over hashed flows, new flows first, with an AQM algorithm in each:
//! `Fq<CoDel>` is FQ-CoDel.
//!
//! **Source** T. Hoeiland-Joergensen et al., RFC 8290, 2018 (sections 4 and 5).
//!
//! **Decides** as its AQM algorithm; on arrival if the shared buffer is full.
//!
//! **Measures** the bytes of each flow.
//!
//! **Symbols** `flows`, `quantum`, `limit` as in the RFC.
//!
//! **Algorithm** A flow that becomes busy joins the new flows, which are served before the old ones
//! for one quantum. If the buffer is full, up to `drop_batch` packets, but at most half of the
//! queue, are dropped from the head of the flow with the most bytes.
//!
//! **Departures** A packet brings the hash of its flow, and its queue is `hash % flows`: the
//! program that computes the hash salts it. `limit` may be in bytes
//! (`memory_limit` of Linux, without its overhead). `fq_codel` of Linux does not exempt flows with
//! few packets from drops: with 16 CUBIC flows at 10 Mbit/s it has a third of the delay
//! (`variant = "linux"`, which tc words set; figures on the page of `codel`).
//!
//! **Cost** the state of the AQM algorithm and 64 bytes per flow; O(log n) where the buffer
//! overflows, or a queue becomes longer than it was since it was last the longest.

#[cfg(feature = "codel")]
use crate::aqm::codel::CoDel;
#[cfg(feature = "pi")]
use crate::aqm::pie::Pie;
#[cfg(feature = "red")]
use crate::aqm::red::Red;
use crate::aqm::{Aqm, Verdict, exceeds, fits};
use crate::build::{Build, Env};
use crate::cast;
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::{Fifo, Pool, QueueView};
use crate::packet::Packet;
use crate::params::{Checked, Combined, Params};
use crate::qdisc::{Backlog, Qdisc};
use crate::sched::drr::idle_rounds;
use crate::sched::longest::{Longest, bytes};
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Size};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::any::Any;

/// Entry of `fq_red` in the registry.
#[cfg(feature = "red")]
pub(crate) const FQ_RED: QdiscEntry = QdiscEntry::new::<Fq<Red>>(
    "fq_red",
    "DRR over hashed flows, new flows first, with RED in each",
)
.preset(&[("ecn", "false")])
.decides("on departure: the next flow; on arrival: RED by the average of the flow")
.source("RFC 8290; Floyd and Jacobson, 1993");

/// Entry of `fq_codel` in the registry.
#[cfg(feature = "codel")]
pub(crate) const FQ_CODEL: QdiscEntry = QdiscEntry::new::<Fq<CoDel>>(
    "fq_codel",
    "DRR over hashed flows, CoDel in each (RFC 8290): more delay than `variant = \"linux\"`",
)
.aliases(&["fqcodel"])
.preset(&[("ecn", "true")])
.decides("on departure: the next flow, and CoDel's drops in it")
.source("RFC 8290");

/// Entry of `fq_pie` in the registry.
#[cfg(feature = "pi")]
pub(crate) const FQ_PIE: QdiscEntry = QdiscEntry::new::<Fq<Pie>>(
    "fq_pie",
    "DRR over hashed flows, new flows first, with PIE in each",
)
.aliases(&["fqpie"])
.preset(&[("ecn", "true")])
.decides("on departure: the next flow; on arrival: PIE's drop probability in the flow")
.source("RFC 8033 in the flows of RFC 8290");

crate::params! {
    /// Parameters of every FQ discipline, in addition to its AQM algorithm's.
    pub struct FqParams {
        /// Size of the buffer that all flows share, in bytes or packets.
        limit: Size = Size::Packets(10_240),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", ["buffer", "memory_limit"];
        /// Number of hash queues.
        flows: u64 = 1024, [1 => 65_536], "", [];
        /// Bytes that a flow may send per round.
        quantum: Bytes = Bytes(1514), [Bytes(64) => Bytes(1_000_000_000)], "", [];
        /// Largest number of packets dropped at once when the buffer overflows.
        drop_batch: u64 = 64, [1 => 65_536], "", [];
        /// True if ECN-capable packets are marked instead of dropped.
        ecn: bool = true, [], "", [];
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
enum Listed {
    No,
    New,
    Old,
}

#[derive(Clone, Debug, Snapshot)]
struct Flow<A> {
    fifo: Fifo,
    aqm: A,
    deficit: i64,
    listed: Listed,
}

/// FQ with the AQM algorithm `A` in every flow.
///
/// A packet goes to the queue `hash % flows` of its [`Packet::hash`]. The caller computes the hash
/// from the flow identifier with a secret salt; packets without a hash (0) share one queue.
///
/// ```
/// use sojourn_aqm::aqm::codel::CoDel;
/// use sojourn_aqm::sched::fq::Fq;
/// use sojourn_aqm::{Build, Rate, Span};
///
/// let fq_codel = Fq::<CoDel>::builder()
///     .queue(|fq| fq.flows(64).ecn(true))
///     .aqm(|codel| codel.target(Span::ms(15)))
///     .build(Rate(10_000_000))?;
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
#[derive(Clone, Debug, Snapshot)]
pub struct Fq<A> {
    params: FqParams,
    flows: Vec<Flow<A>>,
    pool: Pool,
    new_flows: VecDeque<u32>,
    old_flows: VecDeque<u32>,
    longest: Longest,
    backlog: Backlog,
    /// True once a packet has arrived.
    started: bool,
}

impl<A: Aqm> Build for Fq<A> {
    type Params = Combined<FqParams, A::Params>;

    fn new(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self> {
        let env = Env { limit: params.outer.limit, ecn: params.outer.ecn, ..*env };
        let aqm = params.inner.checked()?;
        let flow = |_| {
            let aqm = A::new(aqm, &env)?;
            Ok(Flow { fifo: Fifo::default(), aqm, deficit: 0, listed: Listed::No })
        };
        let flows = (0..params.outer.flows).map(flow).collect::<Result<Vec<_>>>()?;
        Ok(Fq {
            new_flows: VecDeque::with_capacity(flows.len()),
            old_flows: VecDeque::with_capacity(flows.len()),
            longest: Longest::new(flows.len()),
            flows,
            params: params.outer.clone(),
            pool: Pool::default(),
            backlog: Backlog::default(),
            started: false,
        })
    }
}

impl<A: Aqm> Fq<A> {
    /// Credits the rounds of the old flows in which none can send.
    fn skip(&mut self) {
        let Fq { params, flows, old_flows, .. } = self;
        let short =
            old_flows.iter().map(|i| (1 - flows[*i as usize].deficit).max(0).cast_unsigned());
        let credit = idle_rounds(short.map(|s| (s, params.quantum.0))) * params.quantum.0;
        old_flows.iter().for_each(|i| flows[*i as usize].deficit += credit.cast_signed());
    }

    // RFC 8290 §4.1: drops several packets at once from the head of the flow with the most bytes,
    // so that an unresponsive flow does not cause a search per packet.
    fn shed(&mut self, context: &mut Context<'_>) {
        let flows = &self.flows;
        let longest = self.longest.find(|i| bytes(flows[i as usize].fifo.bytes().0));
        let (i, _) = longest.expect("a full buffer has packets");
        let flow = &mut self.flows[i as usize];
        // Half of an odd number is rounded down, as in Linux.
        let half = flow.fifo.bytes().0.div_ceil(2);
        let mut dropped = 0;
        while let Some(victim) = flow.fifo.pop(&mut self.pool) {
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(victim.len);
            context.drop(victim, DropReason::Full);
            dropped += 1;
            if u64::from(dropped) >= self.params.drop_batch || flow.fifo.bytes().0 <= half {
                break;
            }
        }
        flow.aqm.on_evict(dropped);
    }
}

impl<A: Aqm> Qdisc for Fq<A> {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.enqueue_behind(context, packet, Backlog::default());
    }

    fn enqueue_behind(&mut self, context: &mut Context<'_>, mut packet: Packet, ahead: Backlog) {
        context.check_arrival(&packet);
        if !self.started {
            self.started = true;
            self.flows.iter_mut().for_each(|flow| flow.aqm.on_first_packet(context.now));
        }
        if exceeds(self.params.limit, &packet) {
            return context.drop(packet, DropReason::Full);
        }
        let i = packet.hash % cast::index32(self.flows.len());
        let flow = &mut self.flows[i as usize];
        let (packets, queued) = (flow.fifo.packets(), flow.fifo.bytes().0);
        let others = self.backlog.bytes - queued;
        let mut queue = QueueView::pooled(&mut flow.fifo, &mut self.pool, others);
        flow.aqm.on_update(context.now, &queue);
        let Backlog { packets: all, bytes: all_bytes } = self.backlog + ahead;
        let arrival_pays = flow.aqm.drops_arrival_when_full();
        if arrival_pays && !fits(self.params.limit, all, all_bytes, &packet) {
            flow.aqm.on_overflow(context.now);
            return context.drop(packet, DropReason::Full);
        }
        let verdict = flow.aqm.on_enqueue(context, &mut queue, &packet);
        let dropped = packets - flow.fifo.packets();
        if dropped > 0 {
            self.backlog.packets -= dropped;
            self.backlog.bytes -= queued - flow.fifo.bytes().0;
        }
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark if self.params.ecn && context.mark(&mut packet) => {}
            Verdict::Mark | Verdict::Drop => return context.drop(packet, DropReason::AtEnqueue),
        }
        flow.aqm.after_enqueue(&packet);
        flow.fifo.push(&mut self.pool, packet);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.len);
        self.longest.grow(i, bytes(flow.fifo.bytes().0));
        if flow.listed == Listed::No {
            flow.deficit = self.params.quantum.0.cast_signed();
            flow.listed = Listed::New;
            self.new_flows.push_back(i);
        }
        // A smaller limit, set while the discipline runs, may be less than the packets ahead.
        while !(self.backlog + ahead).is_within(self.params.limit) && self.backlog.packets > 0 {
            self.shed(context);
        }
    }

    // RFC 8290 §4.2
    #[inline(always)]
    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let mut turns = 0;
        loop {
            let from_new = !self.new_flows.is_empty();
            let list = if from_new { &mut self.new_flows } else { &mut self.old_flows };
            let i = *list.front()?;
            let flow = &mut self.flows[i as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.params.quantum.0.cast_signed();
                flow.listed = Listed::Old;
                list.pop_front();
                self.old_flows.push_back(i);
                turns += 1;
                if self.new_flows.is_empty() && turns >= self.old_flows.len() {
                    self.skip();
                    turns = 0;
                }
                continue;
            }
            turns = 0;
            let (packets, queued) = (flow.fifo.packets(), flow.fifo.bytes().0);
            let others = self.backlog.bytes - queued;
            let mut queue = QueueView::pooled(&mut flow.fifo, &mut self.pool, others);
            flow.aqm.on_update(context.now, &queue);
            let packet = flow.aqm.on_dequeue(context, &mut queue, self.params.ecn);
            self.backlog.packets -= packets - flow.fifo.packets();
            self.backlog.bytes -= queued - flow.fifo.bytes().0;
            if let Some(packet) = packet {
                flow.deficit -= i64::from(packet.len);
                return Some(packet);
            }
            flow.aqm.on_idle(context.now);
            list.pop_front();
            // An emptied new flow stays among the old ones for a round, so that it cannot return as
            // new within the round and starve them.
            if from_new && !self.old_flows.is_empty() {
                flow.listed = Listed::Old;
                self.old_flows.push_back(i);
            } else {
                flow.listed = Listed::No;
            }
        }
    }

    fn reconfigure(&mut self, fresh: Box<dyn Qdisc + Send>) -> bool {
        let Some(fresh) = (&*fresh as &dyn Any).downcast_ref::<Self>() else { return false };
        let mut first = self.flows.iter().zip(&fresh.flows).take(1);
        let fits = first.any(|(flow, fresh)| flow.aqm.clone().reconfigure(&fresh.aqm));
        if fresh.flows.len() != self.flows.len() || !fits {
            return false;
        }
        for (flow, fresh) in self.flows.iter_mut().zip(&fresh.flows) {
            flow.aqm.reconfigure(&fresh.aqm);
        }
        self.params = fresh.params.clone();
        true
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state_bytes(&self) -> usize {
        let aqms: usize = self.flows.iter().map(|f| f.aqm.state_bytes() - size_of::<A>()).sum();
        let lists = self.new_flows.capacity() + self.old_flows.capacity();
        size_of_val(self)
            + size_of_val(&*self.flows)
            + aqms
            + lists * size_of::<u32>()
            + self.longest.state_bytes()
    }
}

#[cfg(test)]
mod tests;
