//! Counters of a link: packets, bytes, moments of the queue over time, sojourn times and runs of
//! losses. All counters are integers until they are read, so that sums never drift.

use crate::context::{DropReason, Dropped, Marks};
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

mod histogram;
mod recent;

pub use histogram::Histogram;
use recent::RecentDurations;

/// The standard deviation of values with these sums and total weight, the difference taken in
/// whole numbers where they fit.
fn spread(sum: u128, sum_of_squares: u128, weight: u128) -> f64 {
    let (w, s, s2) = (weight as f64, sum as f64, sum_of_squares as f64);
    let variance = match (weight.checked_mul(sum_of_squares), sum.checked_mul(sum)) {
        (Some(a), Some(b)) => a.saturating_sub(b) as f64 / (w * w),
        _ => (s2 / w - (s / w) * (s / w)).max(0.0),
    };
    libm::sqrt(variance)
}

/// Integrals over time of a queue length and of its square.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct Integrals {
    first: u128,
    second: u128,
}

impl Integrals {
    /// Adds `ns` nanoseconds of a queue of length `n`.
    #[inline]
    fn add(&mut self, n: u64, ns: u64) {
        // WebAssembly calls a function for a product of 128 bits, so it avoids one.
        if cfg!(target_family = "wasm") && n < 1 << 16 && ns < 1 << 32 {
            self.first += u128::from(n * ns);
            self.second += u128::from(n * ns * n);
            return;
        }
        let area = u128::from(n) * u128::from(ns);
        self.first += area;
        self.second += area * u128::from(n);
    }
}

/// Runs of losses longer than this are counted as this long.
pub const RUN_MAX: usize = 1024;

/// The counters of one link since [`LinkStats::reset`]: the measured interval.
///
/// Ratios have one population, the packets that arrived in the interval: of `arrived_packets`,
/// [`LinkStats::dropped`] were dropped so far and `marks.packets` marked. Packets that waited when
/// the interval began are counted apart. A departure is counted when it happens, whenever the
/// packet arrived: departures per second are a throughput.
// The layout is fixed, in lines of 64 bytes: a packet that finds an idle link touches the first
// line and a half, any other packet four lines.
#[derive(Clone, Debug, Snapshot)]
#[repr(C)]
pub struct LinkStats {
    /// Time up to which the queue is weighed.
    last: Time,
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Packets whose transmission started.
    pub departed_packets: u64,
    /// Bytes of packets that arrived.
    pub arrived_bytes: u64,
    /// Bytes of packets whose transmission started.
    pub departed_bytes: u64,
    busy_ns: u64,
    /// Lengths of the current runs of losses, of arrivals and of departures.
    run: u32,
    run_at_head: u32,
    /// Packets and bytes in the queue.
    queued_packets: u64,

    queued_bytes: u64,
    /// Packets marked with CE.
    pub marks: Marks,
    /// Sojourn times that are not yet in `sojourn`.
    recent: RecentDurations,

    packets: Integrals,
    bytes: Integrals,

    /// Time in the queue, of packets whose transmission started.
    pub sojourn: Histogram,
    /// Start of the measured interval.
    since: Time,
    /// Packets dropped of those that arrived in the interval, by [`DropReason`] in its order.
    pub dropped_packets: [u64; 4],
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Packets dropped in the interval that had arrived before it, by [`DropReason`] in its order.
    pub dropped_earlier: [u64; 4],
    /// Number of runs of losses by length; allocated at the end of the first run.
    runs: Box<[u64]>,
}

impl Default for LinkStats {
    fn default() -> Self {
        LinkStats {
            last: Time::ZERO,
            arrived_packets: 0,
            departed_packets: 0,
            arrived_bytes: 0,
            departed_bytes: 0,
            busy_ns: 0,
            run: 0,
            run_at_head: 0,
            queued_packets: 0,
            queued_bytes: 0,
            marks: Marks::default(),
            recent: RecentDurations::default(),
            packets: Integrals::default(),
            bytes: Integrals::default(),
            sojourn: Histogram::default(),
            since: Time::ZERO,
            dropped_packets: [0; 4],
            dropped_bytes: 0,
            dropped_earlier: [0; 4],
            runs: Box::default(),
        }
    }
}

impl LinkStats {
    /// See [`Link::HOT_BYTES`](crate::Link::HOT_BYTES).
    pub(crate) const HOT_BYTES: usize = core::mem::offset_of!(LinkStats, sojourn);

    /// Starts the measured interval at `now`; the queue stays as it is. `sending` is the rest of
    /// the transmission under way. Arrivals at `now` itself come after this call.
    pub fn reset(&mut self, now: Time, sending: Span) {
        self.sojourn.clear();
        self.runs.fill(0);
        *self = LinkStats {
            since: now,
            last: now,
            sojourn: core::mem::take(&mut self.sojourn),
            runs: core::mem::take(&mut self.runs),
            queued_packets: self.queued_packets,
            queued_bytes: self.queued_bytes,
            marks: Marks { since: now, ..Marks::default() },
            recent: self.recent.cleared(),
            busy_ns: sending.0,
            ..LinkStats::default()
        };
    }

    /// Weighs the queue as it stands up to `now`.
    #[inline]
    pub fn pass(&mut self, now: Time) {
        // The integrals of an idle link are not touched.
        if self.queued_packets > 0 {
            self.pass_busy(now);
        } else {
            self.last = self.last.max(now);
        }
    }

    /// As [`LinkStats::pass`], with packets in the queue.
    #[inline(always)]
    fn pass_busy(&mut self, now: Time) {
        if now > self.last {
            let ns = now.0 - self.last.0;
            self.packets.add(self.queued_packets, ns);
            self.bytes.add(self.queued_bytes, ns);
            self.last = now;
        }
    }

    /// See [`Link::count_in_batches`](crate::Link::count_in_batches).
    pub(crate) fn count_in_batches(&mut self) {
        self.recent.start();
    }

    /// Counts the recent sojourn times, as a reader of `sojourn` expects.
    pub(crate) fn count_recent(&mut self) {
        self.recent.count(&mut self.sojourn);
    }

    #[inline]
    pub(crate) fn on_enqueue(&mut self, now: Time, len: u32) {
        self.pass(now);
        self.arrived_packets += 1;
        self.arrived_bytes += u64::from(len);
        self.queued_packets += 1;
        self.queued_bytes += u64::from(len);
    }

    #[inline(always)]
    pub(crate) fn on_departure(&mut self, now: Time, len: u32, sojourn: Span, sending: Span) {
        self.pass_busy(now);
        self.departed_packets += 1;
        self.departed_bytes += u64::from(len);
        self.queued_packets -= 1;
        self.queued_bytes -= u64::from(len);
        self.recent.add(sojourn, &mut self.sojourn);
        self.busy_ns += sending.0;
        Self::end_run(&mut self.runs, &mut self.run_at_head);
    }

    pub(crate) fn on_drop(&mut self, Dropped { packet, reason: why, at }: &Dropped) {
        let len = u64::from(packet.len);
        self.pass(*at);
        if packet.arrived < self.since {
            self.dropped_earlier[*why as usize - 1] += 1;
        } else {
            self.dropped_packets[*why as usize - 1] += 1;
            self.dropped_bytes += len;
        }
        self.queued_packets -= 1;
        self.queued_bytes -= len;
        let run = match why {
            DropReason::AfterEnqueue => &mut self.run_at_head,
            DropReason::Full | DropReason::AtEnqueue | DropReason::SharedBuffer => &mut self.run,
        };
        *run = run.saturating_add(1);
    }

    /// An arrival was accepted: a run of losses ends.
    #[inline]
    pub(crate) fn on_accept(&mut self) {
        Self::end_run(&mut self.runs, &mut self.run);
    }

    #[inline]
    fn end_run(runs: &mut Box<[u64]>, run: &mut u32) {
        if *run > 0 {
            if runs.is_empty() {
                *runs = vec![0; RUN_MAX].into();
            }
            runs[(*run as usize).min(RUN_MAX) - 1] += 1;
            *run = 0;
        }
    }

    /// Packets dropped of those that arrived in the interval.
    pub fn dropped(&self) -> u64 {
        self.dropped_packets.iter().sum()
    }

    /// Packets dropped for `reason`, of those that arrived in the interval.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped_packets[reason as usize - 1]
    }

    /// Packets dropped in the interval, whenever they arrived, by [`DropReason`] in its order.
    pub fn drops(&self) -> [u64; 4] {
        core::array::from_fn(|i| self.dropped_packets[i] + self.dropped_earlier[i])
    }

    /// Loss events by length: entry i counts runs of i + 1 packets lost in a row, as arrivals (or,
    /// for losses at the head, as departures) saw them; a run still open counts. Longer runs than
    /// [`RUN_MAX`] count as that long.
    pub fn consecutive_loss(&self) -> Vec<u64> {
        let (mut runs, mut open) = (self.runs.clone(), [self.run, self.run_at_head]);
        open.iter_mut().for_each(|run| Self::end_run(&mut runs, run));
        let len = runs.iter().rposition(|n| *n > 0).map_or(0, |i| i + 1);
        runs[..len].to_vec()
    }

    /// Mean and standard deviation over time of the packets waiting.
    pub fn queue_packets(&self) -> Option<(f64, f64)> {
        self.moments(self.packets)
    }

    /// Mean and standard deviation over time of the bytes waiting.
    pub fn queue_bytes(&self) -> Option<(f64, f64)> {
        self.moments(self.bytes)
    }

    fn moments(&self, Integrals { first, second }: Integrals) -> Option<(f64, f64)> {
        let time = u128::from(self.last.since(self.since).0);
        (time > 0).then(|| (first as f64 / time as f64, spread(first, second, time)))
    }

    /// Number of packets and bytes in the queue.
    pub fn backlog(&self) -> (u64, u64) {
        (self.queued_packets, self.queued_bytes)
    }

    /// Busy time of the link so far, given `sending`, the remaining time of the current
    /// transmission.
    pub fn busy(&self, sending: Span) -> Span {
        Span(self.busy_ns - sending.0)
    }

    /// Length of the interval so far.
    pub fn window(&self) -> Span {
        self.last.since(self.since)
    }
}

#[cfg(test)]
mod tests;
