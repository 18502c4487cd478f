//! HyStart as in Linux's CUBIC: ends slow start at once, when the acks of a round arrive in one
//! train longer than half of the least round-trip time, or when round-trip times grow.
//!
//! **Source**: S. Ha, I. Rhee, "Taming the Elephants: New TCP Slow Start", Computer Networks 55(9),
//! 2011; Linux 6.18 `net/ipv4/tcp_cubic.c` (`hystart_update`).
//!
//! **Symbols** `found`, `end_seq`, `round_start`, `last_ack`, `curr_rtt`, `sample_cnt`, `delay_min`
//! as in Linux.

use super::Window;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// Least window, segments (`hystart_low_window`).
const LOW_WINDOW: u64 = 16;
/// Largest gap between acks of a train (`hystart_ack_delta_us`).
const ACK_DELTA: Span = Span::ms(2);
/// Samples of a round before round-trip times are compared.
const MIN_SAMPLES: u32 = 8;
/// Bounds of the growth of the round-trip time: an eighth of the least one, in these limits.
const DELAY_THRESH: (Span, Span) = (Span::ms(4), Span::ms(16));
/// Four bursts of the largest size, whose time at the pacing rate is added to the train.
const FOUR_BURSTS: f64 = 4.0 * 65_536.0;
/// Upper bound of that time.
const MOST_ADDED: Span = Span::ms(1);

/// Ack of the current call: next sequence number that the receiver expects, and that is sent next.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct SeenAck {
    una: u64,
    next: u64,
}

/// HyStart state.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct LinuxHyStart {
    /// True if it has ended slow start, or a loss has.
    found: bool,
    /// End sequence number and transmission time of each segment sent once.
    sent: VecDeque<(u64, Time)>,
    ack: SeenAck,
    /// Transmission time of the last segment that the ack covers.
    covered: Option<Time>,
    end_seq: u64,
    round_start: Time,
    last_ack: Time,
    curr_rtt: Option<Span>,
    sample_cnt: u32,
    delay_min: Option<Span>,
}

impl LinuxHyStart {
    /// Stops: a loss or a mark has ended slow start.
    pub(super) fn end(&mut self) {
        *self = LinuxHyStart { found: true, ..LinuxHyStart::default() };
    }

    /// Starts anew, as after a timeout.
    pub(super) fn restart(&mut self) {
        *self = LinuxHyStart::default();
    }

    /// Records the transmission of new data up to `end`.
    pub(super) fn on_sent(&mut self, now: Time, end: u64) {
        if !self.found {
            self.sent.push_back((end, now));
        }
    }

    /// Handles an ack of everything below `una`; `next` is the next sequence number to send.
    pub(super) fn on_feedback(&mut self, una: u64, next: u64) {
        if self.found {
            return;
        }
        self.ack = SeenAck { una, next };
        while let Some((_, at)) = self.sent.front().copied().filter(|(end, _)| *end <= una) {
            self.covered = Some(at);
            self.sent.pop_front();
        }
    }

    /// Updates with the ack at `now`, before the window grows. Returns true if slow start ends.
    /// `paced` is true if segments are paced.
    pub(super) fn update(
        &mut self,
        now: Time,
        window: &Window,
        srtt: Option<Span>,
        paced: bool,
    ) -> bool {
        let Some(sent) = self.covered.take() else { return false };
        let delay = (now - sent).max(Span::us(1));
        let delay_min = self.delay_min.map_or(delay, |least| least.min(delay));
        self.delay_min = Some(delay_min);
        if self.ack.una > self.end_seq {
            (self.round_start, self.last_ack, self.end_seq) = (now, now, self.ack.next);
            (self.curr_rtt, self.sample_cnt) = (None, 0);
        }
        if window.cwnd < LOW_WINDOW * window.mss {
            return false;
        }
        let mut ends = false;
        if now - self.last_ack <= ACK_DELTA {
            self.last_ack = now;
            let whole = delay_min + added(window, srtt);
            let threshold = if paced { whole } else { Span(whole.0 / 2) };
            ends = now - self.round_start > threshold;
        }
        let curr_rtt = self.curr_rtt.map_or(delay, |least| least.min(delay));
        self.curr_rtt = Some(curr_rtt);
        if self.sample_cnt < MIN_SAMPLES {
            self.sample_cnt += 1;
        } else {
            let growth = Span(delay_min.0 / 8).clamp(DELAY_THRESH.0, DELAY_THRESH.1);
            ends |= curr_rtt > delay_min + growth;
        }
        if ends {
            self.end();
        }
        ends
    }
}

/// Time that is added to the least round-trip time (`hystart_ack_delay`).
fn added(window: &Window, srtt: Option<Span>) -> Span {
    let Some(srtt) = srtt.filter(|srtt| srtt.0 > 0) else { return Span::ZERO };
    let pacing_rate = 2.0 * window.cwnd as f64 / srtt.as_secs();
    Span(sojourn_aqm::cast::trunc(FOUR_BURSTS / pacing_rate * 1e9)).min(MOST_ADDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::ms(100);

    /// Sends segments of 1000 bytes and acknowledges them one by one.
    struct Trace {
        hystart: LinuxHyStart,
        window: Window,
        una: u64,
        next: u64,
    }

    impl Trace {
        fn new(segments: u64) -> Trace {
            let window = Window { cwnd: segments * 1_000, ssthresh: u64::MAX, mss: 1_000 };
            Trace { hystart: LinuxHyStart::default(), window, una: 1, next: 1 }
        }

        fn send(&mut self, at: Span, segments: u64) {
            for _ in 0..segments {
                self.next += 1_000;
                self.hystart.on_sent(Time::ZERO + at, self.next);
            }
        }

        /// Ack of the next segment at `at`.
        fn ack(&mut self, at: Span, paced: bool) -> bool {
            self.una += 1_000;
            self.hystart.on_feedback(self.una, self.next);
            self.hystart.update(Time::ZERO + at, &self.window, Some(RTT), paced)
        }

        /// Number of acks, `gap` apart from `from` on, until slow start ends.
        fn acks(&mut self, from: Span, gap: Span, most: u64, paced: bool) -> Option<u64> {
            (0..most).find(|i| self.ack(from + Span(i * gap.0), paced))
        }
    }

    /// 32 segments at 0: the first ack at 100 ms starts the round and sets the least time, 100 ms.
    /// One ms is added for four bursts: the train is too long after 50.5 ms.
    #[test]
    fn a_train_longer_than_half_of_the_least_round_trip_ends_slow_start() {
        for (gap, paced, ends) in [
            (Span::ms(2), false, Some(26)),
            (Span::ms(1), false, Some(51)),
            (Span::ms(2), true, Some(51)),
            (Span::us(2_001), false, None),
        ] {
            let mut trace = Trace::new(64);
            // Acks do not show a longer round trip: each segment is sent as late as its ack.
            for i in 0..64 {
                trace.send(Span(i * gap.0), 1);
            }
            assert_eq!(trace.acks(RTT, gap, 64, paced), ends, "{gap:?} {paced}");
        }
    }

    #[test]
    fn round_trips_that_grow_by_an_eighth_end_slow_start() {
        // The second round of 16: its 9th sample is compared. 12.5 ms are allowed.
        for (rtt, ends) in [(112, None), (113, Some(8))] {
            let mut trace = Trace::new(16);
            trace.send(Span::ZERO, 16);
            assert_eq!(trace.acks(RTT, Span::ZERO, 16, false), None);
            trace.send(RTT, 16);
            let ended = trace.acks(RTT + Span::ms(rtt), Span::ZERO, 16, false);
            assert_eq!(ended, ends, "{rtt}");
        }
    }

    #[test]
    fn small_windows_are_not_looked_at() {
        let mut trace = Trace::new(15);
        trace.send(Span::ZERO, 64);
        assert_eq!(trace.acks(RTT, Span::ms(2), 64, false), None);
    }

    #[test]
    fn the_threshold_of_the_delay_is_between_4_and_16_ms() {
        for (base, allowed) in [(10, 4), (200, 16)] {
            for (more, ends) in [(allowed, false), (allowed + 1, true)] {
                let mut trace = Trace::new(16);
                trace.send(Span::ZERO, 16);
                trace.acks(Span::ms(base), Span::ZERO, 16, false);
                trace.send(Span::ms(base), 16);
                let ended = trace.acks(Span::ms(2 * base + more), Span::ZERO, 16, false);
                assert_eq!(ended.is_some(), ends, "{base} {more}");
            }
        }
    }

    #[test]
    fn it_acts_once_and_again_after_a_timeout() {
        let mut trace = Trace::new(64);
        (0..64).for_each(|i| trace.send(Span::ms(2 * i), 1));
        assert!(trace.acks(RTT, Span::ms(2), 64, false).is_some());
        assert!(trace.hystart.sent.is_empty(), "nothing is kept");
        trace.send(Span::s(1), 64);
        assert_eq!(trace.acks(Span::s(2), Span::ms(2), 64, false), None);
        trace.hystart.restart();
        trace.una = trace.next;
        (0..64).for_each(|i| trace.send(Span::s(3) + Span::ms(2 * i), 1));
        assert!(trace.acks(Span::s(3) + RTT, Span::ms(2), 64, false).is_some());
        trace.hystart.restart();
        trace.una = trace.next;
        trace.hystart.end();
        (0..64).for_each(|i| trace.send(Span::s(5) + Span::ms(2 * i), 1));
        assert_eq!(trace.acks(Span::s(5) + RTT, Span::ms(2), 64, false), None, "after a loss");
    }
}
