//! Wrapper that checks the contract of a discipline.

use crate::context::Context;
use crate::flow_header::FlowHeader;
use crate::link::Served;
use crate::packet::{Ecn, Packet};
use crate::qdisc::{Backlog, Qdisc};
use crate::snapshot::Snapshot;
use crate::units::Time;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::any::Any;
use core::fmt;

/// Discipline whose contract is checked at every call, for tests of a discipline of your own. It
/// behaves as the discipline in it, and takes about a microsecond more per packet.
///
/// A call panics if:
///
/// - its time is earlier than the time of the previous call, or the arriving packet has another
///   arrival time;
/// - the discipline sends or drops a packet that is not in its queue: the packet left twice, or
///   never entered;
/// - a packet leaves with another ECN field, unless an ECN-capable packet was marked with CE;
/// - a drop is reported with another time;
/// - the backlog differs from the packets that entered and did not leave: one was lost without a
///   report, or is counted wrongly;
/// - no packet can be dequeued although packets are queued, and [`Qdisc::ready_at`] has no later
///   time, or 100 such times have passed without a packet: the backlog never leaves.
///
/// ```should_panic
/// use sojourn_aqm::{Backlog, CheckedQdisc, Context, Link, LinkSpec, Packet, Pcg, Qdisc, Rate};
/// use sojourn_aqm::{Snapshot, Span, Time};
///
/// /// Loses every packet.
/// #[derive(Clone, Snapshot)]
/// struct Hole;
///
/// impl Qdisc for Hole {
///     fn enqueue(&mut self, _: &mut Context<'_>, _: Packet) {}
///     fn dequeue(&mut self, _: &mut Context<'_>) -> Option<Packet> { None }
///     fn backlog(&self) -> Backlog { Backlog::default() }
/// }
///
/// let spec = LinkSpec::new(Rate(10_000_000), Span::ms(5));
/// let checked = CheckedQdisc::new(Box::new(Hole));
/// let mut link = Link::new(spec, Box::new(checked), Pcg::new(1)).unwrap();
/// link.push(Time::ZERO, Packet { len: 1250, ..Packet::default() }); // panics
/// ```
#[derive(Clone, Snapshot)]
pub struct CheckedQdisc {
    inner: Box<dyn Served + Send>,
    /// Number of queued packets by identity, with their ECN fields.
    queued: BTreeMap<Identity, [u32; 4]>,
    held: Backlog,
    now: Time,
    /// Times in a row at which the discipline was ready and had no packet.
    waits: u32,
    ready_at: Option<Time>,
}

/// Fields of a packet that no discipline changes: arrival, body, length and flow.
type Identity = (Time, u32, u32, u32);

/// Most times in a row at which a discipline may be ready without a packet.
const WAITS_MAX: u32 = 100;

impl fmt::Debug for CheckedQdisc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckedQdisc { held, now, .. } = self;
        f.debug_struct("CheckedQdisc").field("held", held).field("now", now).finish_non_exhaustive()
    }
}

impl CheckedQdisc {
    /// Checks `qdisc`, which is empty, from now on.
    ///
    /// # Panics
    /// If `qdisc` is not empty.
    pub fn new(qdisc: Box<dyn Served + Send>) -> CheckedQdisc {
        assert_eq!(qdisc.backlog(), Backlog::default(), "the discipline is not empty");
        CheckedQdisc {
            inner: qdisc,
            queued: BTreeMap::new(),
            held: Backlog::default(),
            now: Time::ZERO,
            waits: 0,
            ready_at: None,
        }
    }

    /// Discipline in the wrapper.
    pub fn inner(&self) -> &dyn Qdisc {
        &*self.inner
    }

    fn identity(packet: &Packet) -> Identity {
        (packet.arrived, packet.body, packet.len, packet.flow)
    }

    /// Checks the time of a call.
    fn begin(&mut self, now: Time) {
        let before = self.now;
        assert!(now >= before, "called at {} ns, after a call at {} ns", now.0, before.0);
        self.now = now;
    }

    /// Records the packet, which leaves the queue.
    fn leave(&mut self, packet: &Packet, action: &str) {
        let identity = CheckedQdisc::identity(packet);
        let fields = self.queued.get_mut(&identity).unwrap_or_else(|| {
            panic!("{action} {packet:?}, which is not queued: it left twice, or never entered")
        });
        let mut had = |ecn: Ecn| {
            let count = &mut fields[usize::from(ecn.bits())];
            let some = *count > 0;
            *count -= u32::from(some);
            some
        };
        let marked = packet.ecn == Ecn::Ce;
        assert!(
            had(packet.ecn) || marked && (had(Ecn::Ect0) || had(Ecn::Ect1)),
            "{action} {packet:?}, whose ECN field was another one; allowed: a mark with CE"
        );
        if *fields == [0; 4] {
            self.queued.remove(&identity);
        }
        self.held.packets -= 1;
        self.held.bytes -= u64::from(packet.len);
    }

    /// Records the drops of a call, the first of which is number `first`, and checks the backlog.
    fn finish(&mut self, context: &Context<'_>, first: usize) {
        for dropped in &context.dropped[first..] {
            assert_eq!(dropped.at, self.now, "time of the drop of {:?}", dropped.packet);
            self.leave(&dropped.packet, "dropped");
            self.waits = 0;
        }
        let reported = self.inner.backlog();
        assert_eq!(reported, self.held, "the backlog is not what entered and did not leave");
    }

    /// Checks that queued packets will leave, after no packet was dequeued.
    fn check_progress(&mut self) {
        if self.held.packets == 0 {
            return;
        }
        let ready = self.inner.ready_at();
        assert!(
            ready > Some(self.now),
            "no packet of {} can be dequeued, and ready_at is {ready:?}: they never leave",
            self.held.packets
        );
        if self.ready_at.is_some_and(|ready_at| ready_at <= self.now) {
            self.waits += 1;
            assert!(self.waits < WAITS_MAX, "ready {WAITS_MAX} times without a packet");
        }
        self.ready_at = ready;
    }
}

impl Qdisc for CheckedQdisc {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.begin(context.now);
        assert_eq!(packet.arrived, context.now, "arrival time of {packet:?}");
        self.queued.entry(CheckedQdisc::identity(&packet)).or_default()
            [usize::from(packet.ecn.bits())] += 1;
        self.held.packets += 1;
        self.held.bytes += u64::from(packet.len);
        let first = context.dropped.len();
        self.inner.enqueue(context, packet);
        self.finish(context, first);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.begin(context.now);
        let first = context.dropped.len();
        let packet = self.inner.dequeue(context);
        match &packet {
            Some(packet) => {
                self.leave(packet, "sent");
                (self.waits, self.ready_at) = (0, None);
                self.finish(context, first);
            }
            None => {
                self.finish(context, first);
                self.check_progress();
            }
        }
        packet
    }

    fn ready_at(&self) -> Option<Time> {
        self.inner.ready_at()
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }

    fn decides_at_enqueue(&self) -> bool {
        self.inner.decides_at_enqueue()
    }

    fn changes_class(&self) -> bool {
        self.inner.changes_class()
    }

    fn reads_headers(&self) -> bool {
        self.inner.reads_headers()
    }

    fn describe_flow(&mut self, flow: u32, header: &FlowHeader) {
        self.inner.describe_flow(flow, header);
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.inspect(visit);
    }

    fn inspect_at(&mut self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.inspect_at(now, visit);
    }

    fn state_bytes(&self) -> usize {
        self.inner.state_bytes()
    }

    /// Takes the parameters of the discipline in `fresh`, if that is checked as well.
    fn reconfigure(&mut self, fresh: Box<dyn Qdisc + Send>) -> bool {
        let any: &dyn Any = &*fresh;
        match any.downcast_ref::<CheckedQdisc>() {
            Some(checked) => self.inner.reconfigure(checked.inner.clone()),
            None => self.inner.reconfigure(fresh),
        }
    }
}

#[cfg(test)]
mod tests;
