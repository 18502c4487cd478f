//! Reno: doubles the window per round trip in slow start, then adds one segment per round trip, and
//! halves it after a loss.
//!
//! **Source**: RFC 5681 §3.1 (growth, equation 4), RFC 3465 (growth by acknowledged bytes, not by
//! acks, so that delayed acks do not slow down congestion avoidance), RFC 8511 §3 (a smaller
//! reduction for ECN marks than for losses, by `beta_ecn`; off by default).
//!
//! **Symbols**: `L` of RFC 3465 is the parameter `abc_limit`.
//!
//! **Linux** With `variant = "linux"`, (1) the window is a whole number of segments after a loss,
//! rounded down (`tcp_reno_ssthresh`); (2) with `prr`, the ack that ends a recovery also counts for
//! growth (`tcp_cong_control`); (3) slow start ends exactly at the threshold, and `abc_limit` does
//! not limit it (`tcp_slow_start`). At windows below ten segments this changes the rate by a tenth.

use super::{CongestionControl, CongestionSignal, ControlParams, NewDataAck, TcpEntry, Window};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::Time;
use sojourn_aqm::{choice, params};

choice! {
    /// Variant of Reno.
    pub enum RenoVariant {
        /// RFC 5681.
        Rfc = "rfc",
        /// Linux: whole segments.
        Linux = "linux",
    }
}

params! {
    /// Parameters of [`Reno`].
    pub struct RenoParams {
        /// Threshold after an ECN mark divided by the flight size before; RFC 8511 proposes 0.8.
        /// rfc only.
        beta_ecn: f64 = 0.5, [0.1 => 0.99], "beta_ecn", [];
        /// Variant of the algorithm.
        variant: RenoVariant = RenoVariant::Rfc, [], "", [];
    }
}

/// Entry of Reno in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "reno",
    aliases: &[],
    about: "halves the window; SACK in linux, else recovery ends with the first new ack",
    source: "RFC 5681; ns-2.35 Agent/TCP/Reno",
    profile: Profile::Linux,
    recovery: LossRecovery::Reno,
    control: || ControlParams::Reno(RenoParams::default()),
};

/// Entry of NewReno in the list of TCPs.
pub(super) const NEWRENO: TcpEntry = TcpEntry {
    name: "newreno",
    aliases: &[],
    about: "fast recovery ends when all data outstanding at the loss is acknowledged",
    source: "RFC 5681, RFC 6582; ns-2.35 Agent/TCP/Newreno",
    profile: Profile::Rfc,
    recovery: LossRecovery::NewReno,
    control: || ControlParams::Reno(RenoParams::default()),
};

/// Entry of Reno with SACK in the list of TCPs.
pub(super) const SACK: TcpEntry = TcpEntry {
    name: "sack",
    aliases: &["sack1"],
    about: "selective acknowledgements: repairs several losses per round trip",
    source: "RFC 2018, RFC 6675; ns-2.35 Agent/TCP/Sack1",
    profile: Profile::Rfc,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Reno(RenoParams::default()),
};

/// Entry of Tahoe in the list of TCPs.
pub(super) const TAHOE: TcpEntry = TcpEntry {
    name: "tahoe",
    aliases: &[],
    about: "fast retransmit, then slow start from one packet",
    source: "Jacobson, Congestion Avoidance and Control, 1988; ns-2.35 Agent/TCP",
    profile: Profile::Rfc,
    recovery: LossRecovery::Tahoe,
    control: || ControlParams::Reno(RenoParams::default()),
};

/// Reno state.
#[derive(Clone, Copy, Debug, Snapshot)]
pub struct Reno {
    /// Bytes acknowledged in congestion avoidance since the window last grew.
    bytes_acked: u64,
    /// `L` of RFC 3465: limit on the growth per ack in slow start, segments.
    limit: u32,
    /// Threshold after a mark, as a fraction of the flight size.
    beta_ecn: f64,
    variant: RenoVariant,
}

impl Reno {
    /// Creates a control whose slow start grows the window by at most `limit` segments per ack.
    pub fn with_params(limit: u64) -> Reno {
        let limit = cast::saturate32(limit);
        Reno { bytes_acked: 0, limit, beta_ecn: 0.5, variant: RenoVariant::Rfc }
    }

    /// Largest growth per ack in slow start, segments.
    pub fn limit(&self) -> u64 {
        u64::from(self.limit)
    }

    /// Grows the window for an ack as Linux does, if it was full.
    fn grow_as_linux(&mut self, window: &mut Window, acked: &NewDataAck) {
        if acked.window_was_full(window) {
            let bytes = linux_slow_start(window, acked);
            self.avoid_congestion(window, bytes);
        }
    }

    /// Grows the window by a segment per window of acknowledged bytes.
    #[inline(always)]
    fn avoid_congestion(&mut self, window: &mut Window, bytes: u64) {
        self.bytes_acked += bytes;
        if self.bytes_acked >= window.cwnd {
            self.bytes_acked -= window.cwnd; // RFC 3465 §2.1
            window.cwnd += window.mss;
        }
    }
}

/// Grows the window in slow start as Linux does (`tcp_slow_start`): by all that is acknowledged, up
/// to the threshold. After a timeout an ack counts for one segment, since it can cover data that
/// arrived earlier. Returns the bytes that are left for congestion avoidance.
pub(super) fn linux_slow_start(window: &mut Window, acked: &NewDataAck) -> u64 {
    if !window.is_in_slow_start() {
        return acked.bytes;
    }
    let most = if acked.after_timeout { window.mss } else { u64::MAX };
    let bytes = acked.bytes.min(most);
    let growth = bytes.min(window.ssthresh - window.cwnd);
    window.cwnd += growth;
    bytes - growth
}

impl CongestionControl for Reno {
    type Params = RenoParams;

    fn new(params: &RenoParams, common: &CommonParams, _: &mut dyn Random) -> Reno {
        let RenoParams { beta_ecn, variant } = *params;
        Reno { beta_ecn, variant, ..Reno::with_params(common.abc_limit) }
    }

    fn reset(&mut self) {
        self.bytes_acked = 0;
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck) {
        if self.variant == RenoVariant::Linux {
            return self.grow_as_linux(window, acked);
        }
        if window.cwnd < window.ssthresh {
            // After a timeout, one ack can cover much data that was never lost (RFC 3465 §2.3).
            let limit = if acked.after_timeout { 1 } else { self.limit() };
            window.cwnd += acked.bytes.min(limit * window.mss); // RFC 5681 (2), RFC 3465 §2.2
            return;
        }
        self.avoid_congestion(window, acked.bytes);
    }

    fn grows_when_recovered(&self) -> bool {
        self.variant == RenoVariant::Linux
    }

    fn on_congestion(
        &mut self,
        _: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
    ) -> u64 {
        self.bytes_acked = 0;
        let left = match cause {
            CongestionSignal::Mark => cast::trunc(flight as f64 * self.beta_ecn), // RFC 8511 §3.2
            _ => flight / 2,                                                      // RFC 5681 (4)
        };
        let whole = match self.variant {
            RenoVariant::Rfc => left,
            RenoVariant::Linux => left / window.mss * window.mss,
        };
        whole.max(2 * window.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acked(bytes: u64) -> NewDataAck {
        let (rtt, srtt) = (None, None);
        NewDataAck { at: Time::ZERO, bytes, flight: bytes, rtt, srtt, after_timeout: false }
    }

    #[test]
    fn grows_one_segment_per_window_of_acked_bytes() {
        for (acks, bytes) in [(10, 1_000), (5, 2_000), (1, 10_000)] {
            let mut w = Window { cwnd: 10_000, ssthresh: 5_000, mss: 1_000 };
            let mut reno = Reno::with_params(1);
            (0..acks).for_each(|_| reno.on_ack(&mut w, &acked(bytes)));
            assert_eq!(w.cwnd, 11_000, "{acks} acks");
        }
    }

    #[test]
    fn at_the_threshold_and_with_a_remainder_it_is_one_segment_per_window() {
        let mut w = Window { cwnd: 10_000, ssthresh: 10_000, mss: 1_000 };
        let mut reno = Reno::with_params(1);
        let window_after = |bytes| {
            reno.on_ack(&mut w, &acked(bytes));
            w.cwnd
        };
        // Of 15,000 bytes, 5,000 count towards the next segment, which needs 11,000.
        assert_eq!(
            [9_000, 6_000, 5_000, 1_000].map(window_after),
            [10_000, 11_000, 11_000, 12_000]
        );
    }

    #[test]
    fn slow_start_is_limited_by_l() {
        for (limit, after_timeout, grown) in [(1, false, 1), (2, false, 2), (2, true, 1)] {
            let mut w = Window { cwnd: 2_000, ssthresh: 50_000, mss: 1_000 };
            let ack = NewDataAck { after_timeout, ..acked(5_000) };
            Reno::with_params(limit).on_ack(&mut w, &ack);
            assert_eq!(w.cwnd, 2_000 + grown * 1_000);
        }
    }

    #[test]
    fn loss_halves_the_flight_size_down_to_two_segments() {
        let w = Window { cwnd: 90_000, ssthresh: 0, mss: 1_000 };
        let mut reno = Reno { bytes_acked: 900, ..Reno::with_params(1) };
        assert_eq!(reno.on_congestion(Time::ZERO, &w, 20_000, CongestionSignal::Loss), 10_000);
        assert_eq!(reno.on_congestion(Time::ZERO, &w, 3_000, CongestionSignal::Timeout), 2_000);
        assert_eq!(reno.bytes_acked, 0);
    }

    #[test]
    fn in_linux_the_window_after_a_loss_is_whole() {
        let w = Window { cwnd: 5_000, ssthresh: 0, mss: 1_000 };
        let mut reno = Reno { variant: RenoVariant::Linux, ..Reno::with_params(1) };
        let mut left = |flight| reno.on_congestion(Time::ZERO, &w, flight, CongestionSignal::Loss);
        assert_eq!([9_000, 5_000, 3_000].map(&mut left), [4_000, 2_000, 2_000]);
    }

    #[test]
    fn mark_reduces_by_beta_ecn() {
        // RFC 8511: 0.8 for marks, still 0.5 for losses.
        let w = Window { cwnd: 90_000, ssthresh: 0, mss: 1_000 };
        let mut abe = Reno { beta_ecn: 0.8, ..Reno::with_params(1) };
        let mut left = |flight, cause| abe.on_congestion(Time::ZERO, &w, flight, cause);
        assert_eq!(left(20_000, CongestionSignal::Mark), 16_000);
        assert_eq!(left(20_000, CongestionSignal::Loss), 10_000);
        assert_eq!(left(20_000, CongestionSignal::Timeout), 10_000);
        assert_eq!(left(1_000, CongestionSignal::Mark), 2_000, "never below two segments");
        let mut plain = Reno::with_params(1);
        assert_eq!(plain.on_congestion(Time::ZERO, &w, 20_001, CongestionSignal::Mark), 10_000);
    }

    /// Linux, `tcp_is_cwnd_limited`.
    #[test]
    fn in_linux_a_window_that_was_not_full_stays() {
        for (variant, cwnd) in [(RenoVariant::Rfc, 11_000), (RenoVariant::Linux, 10_000)] {
            let mut reno = Reno { variant, ..Reno::with_params(1) };
            let mut w = Window { cwnd: 10_000, ssthresh: u64::MAX, mss: 1_000 };
            reno.on_ack(&mut w, &NewDataAck { flight: 5_000, ..acked(1_000) });
            assert_eq!(w.cwnd, cwnd, "half full");
            reno.on_ack(&mut w, &NewDataAck { flight: 6_000, ..acked(1_000) });
            assert_eq!(w.cwnd, cwnd + 1_000, "more than half full in slow start");
        }
    }

    /// Linux, `tcp_slow_start` and `tcp_cong_avoid_ai`: of three segments, one reaches the
    /// threshold of ten, and two count in congestion avoidance.
    #[test]
    fn in_linux_slow_start_ends_at_the_threshold() {
        let mut reno = Reno { variant: RenoVariant::Linux, ..Reno::with_params(1) };
        let mut w = Window { cwnd: 9_000, ssthresh: 10_000, mss: 1_000 };
        let ack = |bytes| NewDataAck { flight: 9_000, ..acked(bytes) };
        reno.on_ack(&mut w, &ack(3_000));
        assert_eq!((w.cwnd, reno.bytes_acked), (10_000, 2_000));
        reno.on_ack(&mut w, &ack(8_000));
        assert_eq!((w.cwnd, reno.bytes_acked), (11_000, 0));
        let mut w = Window { cwnd: 3_000, ssthresh: 10_000, mss: 1_000 };
        reno.on_ack(&mut w, &ack(4_000));
        assert_eq!(w.cwnd, 7_000, "no limit per ack");
        reno.on_ack(&mut w, &NewDataAck { after_timeout: true, ..ack(4_000) });
        assert_eq!(w.cwnd, 8_000, "one segment after a timeout");
    }
}
