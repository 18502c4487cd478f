//! Token bucket that serves one discipline as a leaf class of Linux's HTB does.
//!
//! For the replay of recordings that were made behind HTB. It differs from a link with a
//! [`TokenBucket`] in two ways: recorded delays of its timer can be repeated, and an empty
//! discipline is not asked for a packet.

use sojourn_aqm::random::CloneRandom;
use sojourn_aqm::sched::{dual::Dual, dualpi2::DualPi2};
use sojourn_aqm::units::{Bytes, Rate, Span, Time};
use sojourn_aqm::{Context, Dropped, LogEntry, Marks, Packet, PacketLog, Qdisc, TokenBucket};
use std::any::Any;
use std::fmt;

/// Class with one discipline.
pub(super) struct Htb {
    qdisc: Box<dyn Qdisc + Send>,
    rng: Box<dyn CloneRandom + Send>,
    rate: Rate,
    bucket: TokenBucket,
    /// Time of the last call.
    now: Time,
    dropped: Vec<Dropped>,
    marks: Marks,
    log: PacketLog,
    /// Recorded times of departures, the latest first.
    recorded: Vec<Time>,
    /// Recorded times of periodic updates, the latest first.
    updates: Vec<Time>,
}

/// Largest delay of a timer for which a recorded departure counts as this one.
const LATEST: Span = Span::us(1);

impl fmt::Debug for Htb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Htb")
            .field("rate", &self.rate)
            .field("bucket", &self.bucket)
            .field("backlog", &self.qdisc.backlog())
            .finish_non_exhaustive()
    }
}

impl Htb {
    /// Creates the class with a full bucket of `burst` bytes.
    pub(super) fn new(
        rate: Rate,
        burst: Bytes,
        qdisc: Box<dyn Qdisc + Send>,
        rng: Box<dyn CloneRandom + Send>,
    ) -> Htb {
        Htb {
            qdisc,
            rng,
            rate,
            bucket: TokenBucket::new(burst),
            now: Time::ZERO,
            dropped: Vec::new(),
            marks: Marks::default(),
            log: PacketLog::new(),
            recorded: Vec::new(),
            updates: Vec::new(),
        }
    }

    /// Delays departures to the `recorded` times, where these are late by up to 1 us: the timer of
    /// the recorded class was.
    #[must_use]
    pub(super) fn with_departures(mut self, recorded: &[Time]) -> Htb {
        self.recorded = latest_first(recorded);
        self
    }

    /// Makes the periodic updates of `dualpi2` at the `recorded` times. Those that it schedules
    /// itself are to be put off by [`Env::first_update`](sojourn_aqm::Env).
    #[must_use]
    pub(super) fn with_updates(mut self, recorded: &[Time]) -> Htb {
        self.updates = latest_first(recorded);
        self
    }

    /// Makes the recorded updates before `now`.
    fn update(&mut self, now: Time) {
        while let Some(at) = self.updates.pop_if(|at| *at < now) {
            let qdisc: &mut dyn Any = &mut *self.qdisc;
            if let Some(dualpi2) = qdisc.downcast_mut::<Dual<DualPi2>>() {
                dualpi2.update_at(at);
            }
        }
    }

    /// Returns the recorded time of a departure that is due at `due`.
    fn observed(&mut self, due: Time) -> Time {
        while self.recorded.pop_if(|at| *at < due).is_some() {}
        self.recorded.last().copied().filter(|at| *at - due <= LATEST).unwrap_or(due)
    }

    /// Enqueues `packet`, which arrives at `now`, and sends what may be sent.
    pub(super) fn push(&mut self, now: Time, mut packet: Packet) {
        self.advance(now);
        packet.arrived = now;
        let Htb { qdisc, rng, dropped, marks, .. } = self;
        qdisc.enqueue(&mut Context { now, rng: &mut **rng, dropped, marks }, packet);
        self.log_dropped();
        self.advance(now);
    }

    /// Sends every packet that may leave up to `now`.
    pub(super) fn advance(&mut self, now: Time) {
        while self.qdisc.backlog().packets > 0 {
            let due = self.now.max(self.bucket.ready_at());
            let at = self.observed(due);
            if at > now {
                break;
            }
            self.update(at);
            self.now = at;
            self.send(at);
        }
        self.update(now);
        self.now = self.now.max(now);
    }

    /// Dequeues at `at` and charges the packet.
    fn send(&mut self, at: Time) {
        let Htb { qdisc, rng, dropped, marks, .. } = self;
        let packet = qdisc.dequeue(&mut Context { now: at, rng: &mut **rng, dropped, marks });
        self.log_dropped();
        let Some(packet) = packet else { return };
        self.bucket.send(at, packet.len, self.rate);
        self.log.push(LogEntry { packet, left: at, why: None });
    }

    fn log_dropped(&mut self) {
        let rows = self.dropped.drain(..);
        self.log.extend(rows.map(|l| LogEntry {
            packet: l.packet,
            left: l.at,
            why: Some(l.reason),
        }));
    }

    /// Calls `visit` with the internal variables of the discipline at the time of the last call.
    pub(super) fn inspect(&mut self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.qdisc.inspect_at(self.now, visit);
    }

    /// Packets that left, in that order.
    pub(super) fn packet_log(&self) -> &[LogEntry] {
        &self.log
    }
}

fn latest_first(times: &[Time]) -> Vec<Time> {
    let mut times = times.to_vec();
    times.sort_unstable_by(|a, b| b.cmp(a));
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::xorshift::Xorshift32;

    #[test]
    fn a_recorded_delay_is_repeated_and_not_passed_on() {
        let rate = Rate(8_000_000);
        let qdisc = sojourn_aqm::build("droptail", &[], rate).unwrap().qdisc;
        let recorded = [0, 0, 1_000_300, 2_000_000, 3_002_000].map(Time);
        let rng = Box::new(Xorshift32::new(1).unwrap());
        let mut htb = Htb::new(rate, Bytes(1000), qdisc, rng).with_departures(&recorded);
        for _ in 0..5 {
            htb.push(Time::ZERO, Packet { len: 1000, ..Packet::default() });
        }
        htb.advance(Time(1_000_000_000));
        let left: Vec<_> = htb.packet_log().iter().map(|row| row.left.0).collect();
        // The last is not one of ours: 2 us are not the delay of a timer.
        assert_eq!(left, [0, 0, 1_000_300, 2_000_000, 3_000_000]);
    }
}
