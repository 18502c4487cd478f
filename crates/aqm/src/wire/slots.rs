//! Slots: packets that are due wait for the next of a series of times, and leave together.
//!
//! **Source**: Linux, `net/sched/sch_netem.c`, get_slot_next and netem_dequeue; `slot` in
//! tc-netem(8).

use super::chance::Stream;
use super::jitter::Distribution;
use crate::random::Random;
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};

/// Time until the next slot.
#[derive(Clone, Debug, PartialEq, Snapshot)]
#[non_exhaustive]
pub enum SlotDelay {
    /// Uniform between two values.
    Uniform(Span, Span),
    /// Delay with jitter of a distribution.
    Distribution(Span, Span, Distribution),
}

/// Slots.
#[derive(Clone, Debug, PartialEq, Snapshot)]
#[non_exhaustive]
pub struct Slots {
    /// Time until the next slot.
    pub delay: SlotDelay,
    /// Packets that leave in a slot at most.
    pub packets: Option<u64>,
    /// Bytes after which a slot ends.
    pub bytes: Option<u64>,
}

impl Slots {
    /// Returns slots after random times between `min` and `max`, without limits.
    pub const fn new(min: Span, max: Span) -> Slots {
        Slots { delay: SlotDelay::Uniform(min, max), packets: None, bytes: None }
    }
}

/// Process of slots.
#[derive(Clone, Snapshot)]
pub(super) struct SlotProcess {
    slots: Slots,
    /// Start of the current or next slot.
    next: Time,
    packets_left: u64,
    bytes_left: u64,
    rng: Stream,
}

impl SlotProcess {
    pub(super) fn new(slots: &Slots, rng: Stream) -> SlotProcess {
        let (next, packets_left, bytes_left) = (Time::ZERO, 0, 0);
        let mut process = SlotProcess { slots: slots.clone(), next, packets_left, bytes_left, rng };
        process.schedule(Time::ZERO);
        process
    }

    /// Creates the process with a slot at `now`.
    pub(super) fn begin(slots: &Slots, now: Time, rng: Stream) -> SlotProcess {
        let packets_left = slots.packets.unwrap_or(u64::MAX);
        let bytes_left = slots.bytes.unwrap_or(u64::MAX);
        SlotProcess { slots: slots.clone(), next: now, packets_left, bytes_left, rng }
    }

    /// Slots of the process.
    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Random stream of the process.
    pub(super) fn into_stream(self) -> Stream {
        self.rng
    }

    /// Draws the slot after `now`.
    fn schedule(&mut self, now: Time) {
        let random = self.rng.draw32();
        let wait = match &self.slots.delay {
            SlotDelay::Uniform(min, max) => {
                let width = max.0.saturating_sub(min.0);
                Span(min.0 + crate::cast::saturate((u128::from(random) * u128::from(width)) >> 32))
            }
            SlotDelay::Distribution(delay, jitter, distribution) => {
                Span(delay.0.saturating_add_signed(distribution.offset(*jitter, random)))
            }
        };
        self.next = now + wait;
        self.packets_left = self.slots.packets.unwrap_or(u64::MAX);
        self.bytes_left = self.slots.bytes.unwrap_or(u64::MAX);
    }

    /// Start of the current or next slot.
    pub(super) fn start(&self) -> Time {
        self.next
    }

    /// Returns the time at which a packet leaves that is due at `due`: a slot that began before is
    /// over then.
    pub(super) fn leaves(&mut self, due: Time) -> Time {
        if self.next < due {
            self.schedule(due);
        }
        self.next.max(due)
    }

    /// A packet of `len` bytes leaves at `now`.
    pub(super) fn on_sent(&mut self, now: Time, len: u32) {
        self.packets_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(len.into());
        if self.packets_left == 0 || self.bytes_left == 0 {
            self.schedule(now);
        }
    }
}
