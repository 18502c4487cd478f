//! Context of a call into a discipline.

use crate::packet::{Ecn, Packet};
use crate::random::Random;
use crate::snapshot::Snapshot;
use crate::units::Time;
use alloc::vec::Vec;
use core::fmt;

/// Reason for a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Snapshot)]
#[repr(u8)]
#[non_exhaustive]
pub enum DropReason {
    /// The buffer was full.
    Full = 1,
    /// An AQM algorithm dropped the packet at enqueue.
    AtEnqueue = 2,
    /// An AQM algorithm dropped the packet after it was enqueued, or its link went down.
    AfterEnqueue = 3,
    /// A [`SharedBuffer`](crate::SharedBuffer) did not admit the packet.
    SharedBuffer = 4,
}

/// A dropped packet. Its owner receives it to free the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct Dropped {
    /// The packet.
    pub packet: Packet,
    /// Reason for the drop.
    pub reason: DropReason,
    /// Time of the drop.
    pub at: Time,
}

/// Context of a call into a discipline: the time, the random numbers, and the list of dropped
/// packets.
pub struct Context<'a> {
    /// Time of the call.
    pub now: Time,
    /// Random number generator of the link.
    pub rng: &'a mut dyn Random,
    /// Dropped packets are appended here.
    pub dropped: &'a mut Vec<Dropped>,
    /// Counters of marks.
    pub marks: &'a mut Marks,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Context { now, rng: _, dropped, marks } = self;
        f.debug_struct("Context")
            .field("now", now)
            .field("dropped", dropped)
            .field("marks", marks)
            .finish_non_exhaustive()
    }
}

/// Number of packets marked with CE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct Marks {
    /// Packets that arrived at or after `since`.
    pub packets: u64,
    /// Packets that arrived before `since`.
    pub earlier: u64,
    /// Start of the measured interval.
    pub since: Time,
}

impl Marks {
    /// Number of all marked packets.
    pub fn all(&self) -> u64 {
        self.packets + self.earlier
    }
}

impl Context<'_> {
    /// Checks in debug builds that `packet`, which is enqueued, arrives now.
    #[inline(always)]
    pub(crate) fn check_arrival(&self, packet: &Packet) {
        debug_assert_eq!(packet.arrived, self.now, "set `arrived` to the time of `enqueue`");
    }

    /// Drops `packet`.
    #[inline]
    pub fn drop(&mut self, packet: Packet, why: DropReason) {
        if self.dropped.capacity() == 0 {
            // Room for a burst: AQMs that drop at the head at random may drop a dozen at once.
            self.dropped.reserve(32);
        }
        self.dropped.push(Dropped { packet, reason: why, at: self.now });
    }

    /// Marks `packet` with CE if it is ECN-capable; returns true if it is. A packet that already
    /// carries CE is not counted again (RFC 3168 §5).
    #[inline]
    pub fn mark(&mut self, packet: &mut Packet) -> bool {
        if packet.ecn.capable() && packet.ecn != Ecn::Ce {
            packet.ecn = Ecn::Ce;
            let earlier = packet.arrived < self.marks.since;
            *(if earlier { &mut self.marks.earlier } else { &mut self.marks.packets }) += 1;
        }
        packet.ecn.capable()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    #[test]
    fn a_packet_is_marked_once_and_counted_by_its_arrival() {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let (mut dropped, mut marks) = (Vec::new(), Marks { since: Time(10), ..Marks::default() });
        let mut context =
            Context { now: Time(20), rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
        let mut mark = |ecn, arrived| {
            let mut packet = Packet { ecn, arrived: Time(arrived), ..Packet::default() };
            (context.mark(&mut packet), packet.ecn, context.marks.packets, context.marks.earlier)
        };
        assert_eq!(mark(Ecn::NotEct, 15), (false, Ecn::NotEct, 0, 0));
        assert_eq!(mark(Ecn::Ect0, 9), (true, Ecn::Ce, 0, 1));
        assert_eq!(mark(Ecn::Ect1, 10), (true, Ecn::Ce, 1, 1), "at the start of the interval");
        assert_eq!(mark(Ecn::Ect0, 11), (true, Ecn::Ce, 2, 1));
        assert_eq!(mark(Ecn::Ce, 12), (true, Ecn::Ce, 2, 1), "RFC 3168 section 5");
        assert_eq!(context.marks.all(), 3);
        let packet = Packet { body: 7, ..Packet::default() };
        context.drop(packet, DropReason::AfterEnqueue);
        assert_eq!(dropped, [Dropped { packet, reason: DropReason::AfterEnqueue, at: Time(20) }]);
    }
}
