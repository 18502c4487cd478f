//! Frame of Linux's less used congestion controls: calls a control as the kernel calls a module,
//! with windows in whole segments, round-trip times in microseconds and a clock of milliseconds.
//!
//! **Source**: Linux 6.12 `include/net/tcp.h` (`tcp_congestion_ops`, the enums `tcp_ca_state` and
//! `tcp_ca_event`), `net/ipv4/tcp_input.c` (`tcp_clean_rtx_queue`, `tcp_cong_control`,
//! `tcp_end_cwnd_reduction`) and `net/ipv4/tcp_cong.c`; the arithmetic is in `linux/segments.rs`.
//!
//! **Symbols**
//!
//! | kernel | here |
//! |---|---|
//! | `pkts_acked` | [`Algorithm::on_acked`] |
//! | `cong_avoid` | [`Algorithm::grow`] |
//! | `ssthresh` | [`Algorithm::ssthresh`] |
//! | `set_state` | [`Algorithm::on_state`] |
//! | `CA_EVENT_COMPLETE_CWR` | [`Algorithm::on_recovered`] |
//! | `CA_EVENT_TX_START` | [`Algorithm::on_start`] |
//! | `tcp_is_cwnd_limited` | [`Acked::full`] |
//!
//! **Departures**: a jiffy is a millisecond. The state Disorder counts as Open. If a reduction is
//! undone, the window returns, but the state of the control does not (in Linux, the state of H-TCP
//! does).
//!
//! **Cost**: one record per segment in flight.

mod segments;

pub(super) use segments::Segments;

use super::{
    CongestionControl, CongestionSignal, NewDataAck, ProcessedAck, RateEstimator, RecoveryState,
    SentSegment, Window,
};
use crate::endpoint::common_params::CommonParams;
use sojourn_aqm::Snapshot;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use std::fmt;

/// State of a connection (`tcp_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub enum State {
    /// No reduction in progress.
    #[default]
    Open,
    /// Round trip after an ECN mark.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// Ack as a control sees it.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub struct Acked {
    /// Arrival time, ms (`jiffies`).
    pub now: u64,
    /// The same, µs (`tcp_mstamp`).
    pub now_us: u64,
    /// Segments that the cumulative ack covers newly (`pkts_acked`).
    pub segments: u64,
    /// Round-trip time of the last delivered segment, µs (`rtt_us`); `None` if it was sent again.
    pub rtt_us: Option<u64>,
    /// Smoothed round-trip time, eighths of a microsecond (`srtt_us`).
    pub srtt_8us: u64,
    /// Bytes delivered since the last delivered segment was sent (`in_flight`).
    pub delivered: u64,
    /// Bytes that the cumulative ack covers newly.
    pub bytes: u64,
    /// Cumulative ack.
    pub una: u64,
    /// Next sequence number to send.
    pub next: u64,
    /// Payload of a segment (`mss_cache`).
    pub mss: u64,
    /// True if the receiver has data above the cumulative ack.
    pub sacked: bool,
    /// True if the window was used, so that it may grow.
    pub full: bool,
    /// State of the connection before the ack.
    pub state: State,
}

/// Rounds microseconds up to milliseconds (`usecs_to_jiffies`).
pub(super) fn jiffies(us: u64) -> u64 {
    us.div_ceil(1_000)
}

/// Congestion control in the terms of the kernel.
pub trait Algorithm: Clone + fmt::Debug {
    /// Parameters of the control.
    type Params;

    /// Creates the control in the state before a connection.
    fn new(params: &Self::Params, rng: &mut dyn Random) -> Self;

    /// Resets to the state before a connection.
    fn reset(&mut self);

    /// Handles the start of a connection with a round-trip time, µs, which may set the window.
    fn on_established(&mut self, _w: &mut Segments, _now: u64, _rtt_us: u64) {}

    /// Handles an ack in any state, before the window grows.
    fn on_acked(&mut self, _w: &mut Segments, _ack: &Acked) {}

    /// Grows the window for `acked` newly delivered segments; the default is Reno.
    fn grow(&mut self, w: &mut Segments, ack: &Acked, acked: u64) {
        if ack.full {
            w.reno(acked);
        }
    }

    /// Returns the threshold after a reduction at `now`; the default is Reno.
    fn ssthresh(&mut self, w: &Segments, _cause: CongestionSignal, _now: u64) -> u64 {
        w.half()
    }

    /// True if the window is to be reduced without a loss or a mark; read after
    /// [`Algorithm::grow`].
    fn backs_off(&self) -> bool {
        false
    }

    /// Handles a change of the state.
    fn on_state(&mut self, _state: State, _now: u64) {}

    /// Handles the end of a reduction after losses or a mark, before the window becomes the
    /// threshold.
    fn on_recovered(&mut self, _w: &mut Segments) {}

    /// Handles a transmission while nothing is in flight.
    fn on_start(&mut self) {}
}

/// Congestion control of Linux.
#[derive(Clone, Debug, Snapshot)]
pub struct Linux<A> {
    algorithm: A,
    rates: RateEstimator,
    state: State,
    /// Segments acknowledged that the window has not grown for (`snd_cwnd_cnt`).
    cnt: u64,
    /// Bytes acknowledged, and delivered, that are no whole segment.
    rest: (u64, u64),
    /// Current ack, and the segments that it delivered newly.
    ack: Acked,
    delivered: u64,
    /// True if the control has seen that ack.
    seen: bool,
    /// Sequence number at which the reduction for a mark ends.
    mark_end: u64,
    /// True after a back-off, until PRR takes it.
    reduced: bool,
}

impl<A: Algorithm> Linux<A> {
    /// Calls `f` with the window in segments, and returns its result.
    fn with_segments<R>(
        &mut self,
        window: &mut Window,
        f: impl FnOnce(&mut A, &mut Segments) -> R,
    ) -> R {
        let before = Segments::of(window, self.cnt);
        let mut after = before;
        let result = f(&mut self.algorithm, &mut after);
        self.cnt = after.cnt;
        if after.cwnd != before.cwnd {
            window.cwnd = after.cwnd.saturating_mul(window.mss);
        }
        if after.ssthresh != before.ssthresh {
            window.ssthresh = after.ssthresh.saturating_mul(window.mss);
        }
        result
    }

    /// Shows the ack to the control, once.
    fn show(&mut self, now: Time, window: &mut Window, srtt: Option<Span>) {
        if std::mem::replace(&mut self.seen, true) {
            return;
        }
        let sample = self.rates.take_sample(now);
        let mss = window.mss;
        let acked = self.rest.0 + self.ack.bytes;
        let delivered = self.rest.1 + sample.map_or(0, |s| s.news);
        self.rest = (acked % mss, delivered % mss);
        self.delivered = delivered / mss;
        self.ack = Acked {
            now: now.0 / 1_000_000,
            now_us: now.0 / 1_000,
            segments: acked / mss,
            rtt_us: sample.and_then(|s| s.rtt).map(|rtt| rtt.0 / 1_000),
            srtt_8us: srtt.map_or(0, |srtt| srtt.0 / 125),
            delivered: sample.map_or(0, |s| s.delivered),
            mss,
            sacked: self.rates.delivered_bytes() > self.ack.una - 1,
            state: self.state,
            ..self.ack
        };
        let ack = self.ack;
        self.with_segments(window, |a, w| a.on_acked(w, &ack));
    }

    /// Enters `state`.
    fn enter(&mut self, state: State, now: u64) {
        if std::mem::replace(&mut self.state, state) != state {
            self.algorithm.on_state(state, now);
        }
    }
}

impl<A: Algorithm> CongestionControl for Linux<A> {
    type Params = A::Params;

    fn new(params: &A::Params, _: &CommonParams, rng: &mut dyn Random) -> Linux<A> {
        Linux {
            algorithm: A::new(params, rng),
            rates: RateEstimator::default(),
            state: State::Open,
            cnt: 0,
            rest: (0, 0),
            ack: Acked::default(),
            delivered: 0,
            seen: false,
            mark_end: 0,
            reduced: false,
        }
    }

    fn reset(&mut self) {
        self.algorithm.reset();
        self.rates.reset();
        (self.state, self.cnt, self.rest) = (State::Open, 0, (0, 0));
        (self.ack, self.delivered, self.seen, self.mark_end) = (Acked::default(), 0, false, 0);
        self.reduced = false;
    }

    fn initial_window(&mut self, now: Time, window: &Window, rtt: Option<Span>) -> u64 {
        let mut window = *window;
        let rtt_us = rtt.map_or(0, |rtt| rtt.0 / 1_000);
        self.with_segments(&mut window, |a, w| a.on_established(w, now.0 / 1_000_000, rtt_us));
        window.cwnd
    }

    fn on_ecn_feedback(&mut self, ack: u64, bytes: u64, _: u64, next: u64) {
        self.ack = Acked { una: ack, next, bytes, ..self.ack };
        self.seen = false;
    }

    fn uses_delivery_hooks(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, now: Time, from: u64, to: u64) {
        self.rates.on_delivered(now, from, to);
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        self.rates.on_sent(sent);
        if sent.was_idle {
            self.algorithm.on_start();
        }
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck) {
        self.show(acked.at, window, acked.srtt);
        let ack = Acked { full: acked.window_was_full(window), ..self.ack };
        let delivered = std::mem::take(&mut self.delivered);
        if self.state != State::Cwr {
            self.with_segments(window, |a, w| a.grow(w, &ack, delivered));
        }
        if self.algorithm.backs_off() && self.state == State::Open {
            let (cwnd, cause) = (window.cwnd, CongestionSignal::Mark);
            window.ssthresh = self.on_congestion(acked.at, window, cwnd, cause);
            window.cwnd = cwnd.min(window.ssthresh);
            self.reduced = true;
        }
    }

    fn takes_reduction(&mut self) -> bool {
        std::mem::take(&mut self.reduced)
    }

    fn grows_when_recovered(&self) -> bool {
        true
    }

    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
    ) -> u64 {
        let w = Segments::of(&Window { cwnd: flight, ..*window }, self.cnt);
        let at = now.0 / 1_000_000;
        let ssthresh = self.algorithm.ssthresh(&w, cause, at).max(2).saturating_mul(window.mss);
        let state = match cause {
            CongestionSignal::Loss => State::Recovery,
            CongestionSignal::Mark => State::Cwr,
            CongestionSignal::Timeout => State::Loss,
        };
        self.mark_end = if state == State::Cwr { self.ack.next } else { 0 };
        self.enter(state, at);
        ssthresh
    }

    fn on_ack_processed(&mut self, window: &mut Window, ack: &ProcessedAck) {
        self.show(ack.now, window, ack.srtt);
        let state = match ack.state {
            RecoveryState::Open if self.ack.una <= self.mark_end => State::Cwr,
            RecoveryState::Open => State::Open,
            RecoveryState::Recovery => State::Recovery,
            RecoveryState::Loss => State::Loss,
        };
        if state == State::Open && matches!(self.state, State::Cwr | State::Recovery) {
            self.with_segments(window, |a, w| a.on_recovered(w));
        }
        self.enter(state, ack.now.0 / 1_000_000);
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
