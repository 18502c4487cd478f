//! COBALT as `cake` and `cobalt` with the variant `linux` run it: a CoDel that remembers its count,
//! and BLUE, in the integer arithmetic of Linux.

use crate::cast;
use crate::context::Context;
use crate::packet::Packet;
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};

/// Parameters of COBALT in a tin, or in a queue of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct Settings {
    /// Sojourn time above which a packet is over target.
    pub target: Span,
    /// Interval of CoDel.
    pub interval: Span,
    /// Time of a packet of the largest size at the rate of the tin.
    pub mtu_time: Span,
    /// Increase of `p_blue` by an overflow, as a fraction of 2^32.
    pub p_inc: u32,
    /// Decrease of `p_blue` by an empty queue, as a fraction of 2^32.
    pub p_dec: u32,
}

impl Settings {
    /// Returns the parameters for the wanted target and interval, which grow if a packet of the
    /// largest size takes long, with `cake`'s steps of BLUE.
    pub fn new(target: Span, interval: Span, mtu_time: Span) -> Settings {
        let grown = target.max(Span(mtu_time.0.saturating_mul(3) / 2));
        let interval = Span(interval.0.saturating_add(grown.0 - target.0));
        let interval = interval.max(Span(grown.0.saturating_mul(2)));
        Settings { target: grown, interval, mtu_time, p_inc: P_INC, p_dec: P_DEC }
    }
}

/// State of COBALT in a queue.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub struct Cobalt {
    /// Number of signals, less the decrements since the queue was last over target.
    pub count: u32,
    /// `1/sqrt(count)` as a fraction of 2^32; zero before the first signal, as in Linux.
    inverse_root: u32,
    /// Drop probability of BLUE as a fraction of 2^32.
    pub p_blue: u32,
    /// True while the queue is over target.
    pub dropping: bool,
    /// Time of the next signal, or of the next decrement.
    pub drop_next: Time,
    /// Time of the last change of `p_blue`.
    blue_at: Option<Time>,
}

const P_INC: u32 = 1 << 24;
const P_DEC: u32 = 1 << 20;

/// Number of counts whose inverse root is taken from a table.
const TABLE: usize = 16;

/// `1/sqrt(count)` for small counts.
static INVERSE_ROOTS: [u32; TABLE] = {
    let mut table = [u32::MAX; TABLE];
    let mut count = 2;
    while count < TABLE {
        table[count] = exact(count as u128);
        count += 1;
    }
    table
};

/// Returns `1/sqrt(count)` rounded down, for a count of at least 2.
#[expect(clippy::cast_possible_truncation, reason = "a fraction of 2^32, below it")]
const fn exact(count: u128) -> u32 {
    ((1u128 << 64) / count).isqrt() as u32
}

/// Returns a better estimate of `1/sqrt(count)` than `root`: a Newton step.
#[expect(clippy::cast_possible_truncation, reason = "a fraction of 2^32, below it")]
const fn newton(root: u32, count: u64) -> u32 {
    let root = root as u64;
    let square = (root * root) >> 32;
    let value = ((3u64 << 32).wrapping_sub(count * square)) >> 2;
    ((value * root) >> 31) as u32
}

impl Cobalt {
    /// True if the state is not at rest: such a queue is kept when it is empty.
    pub fn is_active(&self, now: Time) -> bool {
        self.p_blue > 0 || self.count > 0 || now < self.drop_next
    }

    /// True if the packet at the head must be dropped; marks it instead if `ecn` is true and the
    /// packet can carry a mark. `bulk` is the number of bulk flows of the tin on ingress, else 0.
    pub fn should_drop(
        &mut self,
        context: &mut Context<'_>,
        packet: &mut Packet,
        settings: &Settings,
        bulk: u64,
        ecn: bool,
    ) -> bool {
        let now = context.now;
        let sojourn = now.since(packet.arrived).0;
        let packets = |n: u64| settings.mtu_time.0.saturating_mul(n);
        let over =
            sojourn > settings.target.0 && sojourn > packets(4) && sojourn > packets(2 * bulk);
        let due = self.is_due(now);
        // As in Linux, not touched by the time that the next lines may set.
        let mut late = now > self.drop_next;
        if over {
            if !self.dropping {
                self.drop_next = self.after(now, settings);
            }
            self.count = self.count.max(1);
        }
        self.dropping = over;
        let mut drop = false;
        if due && over {
            drop = !(ecn && context.mark(packet));
            self.set_count(self.count.saturating_add(1));
            self.drop_next = self.after(self.drop_next, settings);
            late = now > self.drop_next;
        } else if due {
            self.decay(now, settings);
            late = now > self.drop_next;
        }
        // A mark does not save a packet from BLUE, which acts on flows that ignore marks.
        // A number is drawn for a dropped packet, too.
        if self.p_blue > 0 {
            drop |= context.rng.bernoulli(f64::from(self.p_blue) / 4_294_967_296.0);
        }
        if self.count == 0 {
            self.drop_next = now + settings.interval;
        } else if late && !drop {
            self.drop_next = now;
        }
        drop
    }

    /// Takes note that a packet of this queue was dropped because the memory was full.
    pub fn on_overflow(&mut self, now: Time, settings: &Settings) {
        if self.may_change(now, settings) {
            self.p_blue = self.p_blue.saturating_add(settings.p_inc);
            self.blue_at = Some(now);
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// Takes note that the queue was found empty.
    pub fn on_empty(&mut self, now: Time, settings: &Settings) {
        if self.p_blue > 0 && self.may_change(now, settings) {
            self.p_blue = self.p_blue.saturating_sub(settings.p_dec);
            self.blue_at = Some(now);
        }
        self.dropping = false;
        if self.is_due(now) {
            self.step_back(settings);
        }
    }

    fn is_due(&self, now: Time) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    /// True if BLUE's last change is more than a target ago.
    fn may_change(&self, now: Time, settings: &Settings) -> bool {
        self.blue_at.is_none_or(|at| now.since(at) > settings.target)
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.inverse_root = match INVERSE_ROOTS.get(count as usize) {
            Some(root) => *root,
            None => newton(self.inverse_root, count.into()),
        };
    }

    /// Returns the time one interval times the inverse root after `at`.
    fn after(&self, at: Time, settings: &Settings) -> Time {
        let scaled = u128::from(settings.interval.0) * u128::from(self.inverse_root);
        at + Span(cast::saturate(scaled >> 32))
    }

    /// Decrements the count and schedules the next decrement.
    fn step_back(&mut self, settings: &Settings) {
        self.set_count(self.count - 1);
        self.drop_next = self.after(self.drop_next, settings);
    }

    /// Makes all decrements that are due.
    fn decay(&mut self, now: Time, settings: &Settings) {
        // The sum of 1/sqrt(k) up to n is less than 2 sqrt(n): later than that, all are due.
        let all = 2.0 * libm::sqrt(f64::from(self.count)) + 1.0;
        if now.since(self.drop_next).0 as f64 > all * settings.interval.0 as f64 {
            self.set_count(0);
        }
        while self.is_due(now) {
            self.step_back(settings);
        }
    }
}

#[cfg(test)]
mod tests;
