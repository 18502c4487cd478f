//! Interface between a link and its discipline.
//!
//! The methods are compiled once per discipline: a packet costs one indirect call, and enqueue and
//! dequeue can be inlined into it.

use super::transmitter::Transmitter;
use crate::error::{Error, Result};
use crate::packet::{Ecn, Packet};
use crate::qdisc::Qdisc;
use crate::snapshot::{Reader, Snapshot, Writer};
use crate::units::Time;
use alloc::boxed::Box;

/// A discipline that a link can serve. Implemented for every [`Qdisc`] that is `Clone` and `Send`.
pub trait Served: Qdisc {
    /// Returns a copy with the same packets and state, so that a link can be copied while it runs.
    fn clone_box(&self) -> Box<dyn Served + Send>;
    /// Calls [`Transmitter::receive`] with this discipline.
    #[doc(hidden)]
    fn link_receive(
        &mut self,
        transmitter: &mut Transmitter,
        now: Time,
        packet: &mut Packet,
    ) -> (Time, Option<Ecn>);
    /// Calls [`Transmitter::advance`] with this discipline.
    #[doc(hidden)]
    fn link_advance(&mut self, transmitter: &mut Transmitter, now: Time);
}

impl<Q: Qdisc + Clone + Send> Served for Q {
    // Inlined: else a build for small code has a second copy of every method, in the table of the
    // crate that has this one.
    #[inline]
    fn clone_box(&self) -> Box<dyn Served + Send> {
        Box::new(self.clone())
    }

    fn link_receive(
        &mut self,
        transmitter: &mut Transmitter,
        now: Time,
        packet: &mut Packet,
    ) -> (Time, Option<Ecn>) {
        transmitter.receive(self, now, packet)
    }

    fn link_advance(&mut self, transmitter: &mut Transmitter, now: Time) {
        transmitter.advance(self, now);
    }
}

impl Clone for Box<dyn Served + Send> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

// The type is not in the bytes: a discipline is loaded into one of the same type.
impl Snapshot for Box<dyn Served + Send> {
    fn layout() -> u64 {
        30
    }

    fn layout_of(&self) -> u64 {
        (**self).layout_of()
    }

    fn save_to(&self, out: &mut Writer) -> Result<()> {
        out.bytes(&self.layout_of().to_le_bytes());
        (**self).save_to(out)
    }

    fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
        if input.bytes(8)? != self.layout_of().to_le_bytes() {
            return Err(Error::fixed("the snapshot is of a link with another discipline"));
        }
        (**self).load_from(input)
    }

    fn create_from(input: &mut Reader<'_>) -> Result<Self> {
        Err(input.not_created("a discipline"))
    }
}
