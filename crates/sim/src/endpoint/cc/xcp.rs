//! XCP: the window follows the feedback of routers with the discipline `xcp`.
//!
//! **Source**: draft-falk-xcp-spec-03 §3.1 to §3.3; Katabi, Handley, Rohrs, SIGCOMM 2002.
//!
//! **Symbols** `RTT`, `X`, `Delta_Throughput`, `Reverse_Feedback` of the draft's header.
//!
//! Each packet carries the smoothed round-trip time, the interval `X` = RTT / cwnd between two
//! packets, and the wish for an unlimited throughput, which routers reduce. The receiver returns
//! the sum of what is left in its acks. An ack with the feedback F changes the window by F RTT. Acks
//! do not increase it otherwise.
//!
//! **Departures**: a path without a router of XCP grants the wish, so that the sender overloads it:
//! all routers must have the discipline. After a loss the sender recovers with SACK and half of the window, and goes on with
//! XCP. The header of 20 bytes is part of `header`, not added to it.
//!
//! **Cost**: constant work per ack.

use super::{CongestionControl, CongestionSignal, ControlParams, NewDataAck, TcpEntry, Window};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::cast;
pub use sojourn_aqm::params::Nothing as XcpParams;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "xcp",
    aliases: &[],
    about: "follows the feedback of routers with the discipline xcp; profile rfc only",
    source: "draft-falk-xcp-spec-03",
    profile: Profile::Rfc,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Xcp(XcpParams),
};

/// Smallest window after a loss, segments.
const LEAST: u64 = 2;

/// XCP state.
#[derive(Clone, Debug)]
pub struct Xcp {
    /// Payload per byte on the wire, in which throughput counts.
    payload: f64,
    /// Fraction of a byte by which the window exceeds `cwnd`.
    rest: f64,
}

impl CongestionControl for Xcp {
    type Params = XcpParams;

    fn new(_: &XcpParams, common: &CommonParams, _: &mut dyn Random) -> Xcp {
        Xcp { payload: common.payload() as f64 / common.packet.0 as f64, rest: 0.0 }
    }

    fn reset(&mut self) {
        self.rest = 0.0;
    }

    fn on_ack(&mut self, _: &mut Window, _: &NewDataAck) {}

    fn on_congestion(&mut self, _: Time, window: &Window, flight: u64, _: CongestionSignal) -> u64 {
        self.rest = 0.0;
        (flight / 2).max(LEAST * window.mss)
    }

    fn uses_explicit_feedback(&self) -> bool {
        true
    }

    fn on_explicit_feedback(&mut self, window: &mut Window, feedback: i32, srtt: Span) {
        let change = f64::from(feedback) * srtt.as_secs() * self.payload;
        let next = (window.cwnd as f64 + self.rest + change).max(window.mss as f64);
        window.cwnd = cast::trunc(next);
        self.rest = next - window.cwnd as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_changes_the_window_by_its_rate_times_the_round_trip_time() {
        let mut xcp = Xcp { payload: 0.96, rest: 0.0 };
        let mut window = Window { cwnd: 10_000, ssthresh: u64::MAX, mss: 1_000 };
        // 12,345 B/s for 100 ms are 1234.5 bytes on the wire, 1185.12 of payload.
        xcp.on_explicit_feedback(&mut window, 12_345, Span::ms(100));
        assert_eq!(window.cwnd, 11_185);
        assert!((xcp.rest - 0.12).abs() < 1e-9, "{}", xcp.rest);
        xcp.on_explicit_feedback(&mut window, -i32::MAX, Span::ms(100));
        assert_eq!((window.cwnd, xcp.rest), (1_000, 0.0), "at least one segment");
        assert_eq!(xcp.on_congestion(Time::ZERO, &window, 9_000, CongestionSignal::Loss), 4_500);
        assert_eq!(xcp.on_congestion(Time::ZERO, &window, 900, CongestionSignal::Timeout), 2_000);
    }
}
