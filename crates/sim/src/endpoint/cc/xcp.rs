//! XCP: the window follows the feedback of routers with the discipline `xcp`.
//!
//! **Source**: draft-falk-xcp-spec-03 §3.1 to §3.3; Katabi, Handley, Rohrs, SIGCOMM 2002.
//!
//! **Symbols** `RTT`, `X`, `Delta_Throughput`, `Reverse_Feedback` of the draft's header.
//!
//! Each packet carries the smoothed round-trip time, the interval `X` = RTT / cwnd between two
//! packets, and the wish for an unlimited throughput, which routers reduce. The receiver returns
//! the sum of what is left in its acks. An ack with the feedback F changes the window by F RTT.
//! Acks do not increase it otherwise.
//!
//! **Departures**: where no router has reduced the wish, no link of the path has the discipline:
//! the window then grows as Reno's, as section 7 of the paper proposes. A path with the discipline
//! on some links only is overloaded if another one is the bottleneck. After a loss the sender
//! recovers with SACK and half of the window, and goes on with XCP. The header of 20 bytes is part
//! of `header`, not added to it. It takes the place of the host addresses, by which disciplines
//! such as cake isolate hosts.
//!
//! **Cost**: constant work per ack.

use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, Reno, TcpEntry, Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::XcpHeader;
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

/// XCP state.
#[derive(Clone, Debug, Snapshot)]
pub struct Xcp {
    /// Payload per byte on the wire, in which throughput counts.
    payload: f64,
    /// Fraction of a byte by which the window exceeds `cwnd`.
    rest: f64,
    /// True if no router has changed the header.
    without_router: bool,
    /// Growth without a router, and the reduction after a loss.
    reno: Reno,
}

impl CongestionControl for Xcp {
    type Params = XcpParams;

    fn new(_: &XcpParams, common: &CommonParams, _: &mut dyn Random) -> Xcp {
        Xcp {
            payload: common.payload() as f64 / common.packet.0 as f64,
            rest: 0.0,
            without_router: false,
            reno: Reno::with_params(common.abc_limit),
        }
    }

    fn reset(&mut self) {
        (self.rest, self.without_router) = (0.0, false);
        self.reno.reset();
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck) {
        if self.without_router {
            self.reno.on_ack(window, acked);
        }
    }

    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
    ) -> u64 {
        self.rest = 0.0;
        self.reno.on_congestion(now, window, flight, cause)
    }

    fn uses_explicit_feedback(&self) -> bool {
        true
    }

    fn on_explicit_feedback(&mut self, window: &mut Window, feedback: i32, srtt: Span) {
        self.without_router = feedback == XcpHeader::UNLIMITED;
        if self.without_router {
            return;
        }
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
        let (rest, reno) = (0.0, Reno::with_params(1));
        let mut xcp = Xcp { payload: 0.96, rest, without_router: false, reno };
        let mut window = Window { cwnd: 10_000, ssthresh: u64::MAX, mss: 1_000 };
        // 12,345 B/s for 100 ms are 1234.5 bytes on the wire, 1185.12 of payload.
        xcp.on_explicit_feedback(&mut window, 12_345, Span::ms(100));
        assert_eq!(window.cwnd, 11_185);
        assert!((xcp.rest - 0.12).abs() < 1e-9, "{}", xcp.rest);
        xcp.on_explicit_feedback(&mut window, -i32::MAX, Span::ms(100));
        assert_eq!((window.cwnd, xcp.rest), (1_000, 0.0), "at least one segment");
        assert_eq!(xcp.on_congestion(Time::ZERO, &window, 9_000, CongestionSignal::Loss), 4_500);
        assert_eq!(xcp.on_congestion(Time::ZERO, &window, 900, CongestionSignal::Timeout), 2_000);
        assert!(!xcp.without_router);
        xcp.on_explicit_feedback(&mut window, XcpHeader::UNLIMITED, Span::ms(100));
        assert_eq!((window.cwnd, xcp.without_router), (1_000, true), "the window grows with acks");
        xcp.reset();
        assert!(!xcp.without_router);
    }
}
