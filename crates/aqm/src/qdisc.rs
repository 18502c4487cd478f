//! Queue discipline, to which a transmitter enqueues and from which it dequeues.

use crate::context::Context;
use crate::flow_header::FlowHeader;
use crate::packet::Packet;
use crate::snapshot::Snapshot;
use crate::units::{Size, Time};
use alloc::boxed::Box;
use core::any::Any;
use core::ops::Add;

/// Packets and bytes in a discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct Backlog {
    /// Number of packets.
    pub packets: u32,
    /// Number of bytes.
    pub bytes: u64,
}

impl Backlog {
    /// True if a buffer of size `limit` holds it.
    #[inline(always)]
    pub(crate) fn is_within(self, limit: Size) -> bool {
        limit.holds(self.packets, self.bytes)
    }
}

impl Add for Backlog {
    type Output = Backlog;

    #[inline(always)]
    fn add(self, other: Backlog) -> Backlog {
        Backlog { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// Answer of [`Qdisc::peek`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub enum Peek {
    /// Length of the packet that [`Qdisc::dequeue`] returns at this time, bytes.
    Packet(u32),
    /// [`Qdisc::dequeue`] returns `None` at this time.
    Nothing,
    /// Only [`Qdisc::dequeue`] tells: it decides, or changes the state.
    Undecided,
}

impl Peek {
    /// Creates the answer of a queue with this head.
    #[inline]
    pub fn of(head: Option<&Packet>) -> Peek {
        head.map_or(Peek::Nothing, |packet| Peek::Packet(packet.len))
    }
}

/// A queue discipline. Packets are enqueued and dequeued; dropped packets leave through
/// [`Context::drop`]. `None` from [`Qdisc::dequeue`] means that it is empty, or, for a discipline
/// with a shaper, that it must wait until [`Qdisc::ready_at`].
///
/// A [`Link`](crate::Link) does this for you. With a transmitter of your own, set `arrived`, from
/// which the time in the queue is measured, and take the dropped packets out of `dropped`:
///
/// ```
/// use rand_core::SeedableRng;
/// use sojourn_aqm::aqm::codel::CoDel;
/// use sojourn_aqm::{Aqm, Context, Dropped, Marks, Packet, Qdisc, Rate, Time};
///
/// let mut codel = CoDel::builder().build(Rate(10_000_000))?;
/// let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
/// let (mut dropped, mut marks) = (Vec::new(), Marks::default());
///
/// let now = Time::ZERO; // a packet arrives
/// let packet = Packet { arrived: now, len: 1250, body: 7, ..Packet::default() };
/// let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
/// codel.enqueue(&mut context, packet);
///
/// let now = Time(1_000_000); // the transmitter is free
/// let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
/// let sent = codel.dequeue(&mut context);
/// assert_eq!(sent.map(|packet| packet.body), Some(7));
/// for Dropped { packet, .. } in dropped {
///     println!("free the body {}", packet.body);
/// }
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
///
/// A type that is also `Clone` and `Send` can be [served](crate::link::Served) by a link.
pub trait Qdisc: Any + Snapshot {
    /// Enqueues or drops `packet`, whose arrival time is `context.now`.
    ///
    /// # Panics
    /// The disciplines of this crate: in debug builds, if [`Packet::arrived`] is another time.
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet);
    /// Same as [`Qdisc::enqueue`], where a parent has dequeued `ahead` in advance, because
    /// [`Qdisc::peek`] was undecided. These packets count as queued when the arriving packet is
    /// compared with the size of the buffer. The default ignores them, which suits a discipline
    /// that always answers [`Qdisc::peek`].
    fn enqueue_behind(&mut self, context: &mut Context<'_>, packet: Packet, _ahead: Backlog) {
        self.enqueue(context, packet);
    }
    /// Dequeues the next packet to send.
    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet>;
    /// Length of the next packet to send, for a parent that must know it before it dequeues.
    fn peek(&mut self, _context: &mut Context<'_>) -> Peek {
        Peek::Undecided
    }
    /// Earliest time at which [`Qdisc::dequeue`] may return a packet, if it holds packets that a
    /// shaper delays; `None` if it is work-conserving or empty. Asked only after
    /// [`Qdisc::dequeue`] returned `None`.
    fn ready_at(&self) -> Option<Time> {
        None
    }
    /// Number of packets and bytes in the queue.
    fn backlog(&self) -> Backlog;
    /// True if every decision about a packet is made at enqueue. The packet is then dropped or
    /// marked at once, or it leaves unchanged after all earlier packets. A link can compute its
    /// departure time at enqueue.
    fn decides_at_enqueue(&self) -> bool {
        false
    }
    /// True if a packet may leave with another [class](Packet::class) than it arrived with. The
    /// default is false; a link that [counts bytes by class](crate::Link::count_by_class) relies
    /// on it.
    fn changes_class(&self) -> bool {
        false
    }
    /// True if decisions depend on header fields that only [`Qdisc::describe_flow`] states.
    fn reads_headers(&self) -> bool {
        false
    }
    /// States the header fields of the packets of `flow` that arrive from now on. It is to be
    /// called before the first packet of each flow if the discipline
    /// [reads them](Qdisc::reads_headers), and after [`Qdisc::reconfigure`] for all flows; without
    /// it, filters by these fields do not match. Numbers of flows must be small then.
    fn describe_flow(&mut self, _flow: u32, _header: &FlowHeader) {}
    /// Calls `visit` with the name and value of each internal variable, in SI units.
    fn inspect(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
    /// Same as [`Qdisc::inspect`] at the time `now`, including periodic updates that are due. These
    /// are applied to a copy: an inspection does not change the state, not even in the last bit.
    fn inspect_at(&mut self, _now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inspect(visit);
    }
    /// Size of the state in bytes, without packets.
    fn state_bytes(&self) -> usize {
        size_of_val(self)
    }
    /// Takes the parameters of `fresh` and keeps packets and state. Returns false, and changes
    /// nothing, if it cannot: `fresh` is of another type, or this discipline cannot change the
    /// parameters in which they differ while it runs.
    fn reconfigure(&mut self, _fresh: Box<dyn Qdisc + Send>) -> bool {
        false
    }
}
