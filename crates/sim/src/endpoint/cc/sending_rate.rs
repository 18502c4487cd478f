//! Sending rate of a control that has a rate in place of a window: its bounds, its start, and the
//! window that does not limit it.

use super::Window;
use crate::endpoint::common_params::CommonParams;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Rate, Span};

/// Sending rate between bounds.
#[derive(Clone, Debug, Snapshot)]
pub struct SendingRate {
    /// Rate on the wire, bit/s.
    bits: f64,
    /// First rate; `None` for the initial window per round-trip time.
    initial: Option<Rate>,
    /// Bounds, bit/s.
    least: f64,
    most: f64,
    /// Payload per byte on the wire.
    payload: f64,
    /// Receive window, bytes.
    window: u64,
}

impl SendingRate {
    /// Creates a rate between `least` and `most` that starts at `initial`.
    pub(crate) fn new(
        common: &CommonParams,
        initial: Option<Rate>,
        (least, most): (Rate, Rate),
    ) -> SendingRate {
        let payload = common.payload() as f64 / common.packet.0 as f64;
        let window = common.in_bytes(common.receive_window);
        let (least, most) = (least.0 as f64, most.0 as f64);
        SendingRate { bits: least, initial, least, most, payload, window }
    }

    /// Starts a connection whose handshake took `rtt`; without it, at the least rate unless the
    /// first rate was set.
    pub(crate) fn start(&mut self, window: &Window, rtt: Option<Span>) {
        let by_window = |rtt: Span| 8.0 * window.cwnd as f64 / self.payload / rtt.as_secs();
        let measured = rtt.filter(|rtt| rtt.0 > 0).map(by_window);
        let initial = self.initial.map(|rate| rate.0 as f64).or(measured);
        self.set(initial.unwrap_or(self.least));
    }

    /// Rate on the wire, bit/s.
    pub(crate) fn bits(&self) -> f64 {
        self.bits
    }

    /// Largest rate on the wire, bit/s.
    pub(crate) fn most(&self) -> f64 {
        self.most
    }

    /// Sets the rate within its bounds.
    pub(crate) fn set(&mut self, bits: f64) {
        self.bits = bits.clamp(self.least, self.most);
    }

    /// Rate of the pacer, bytes of payload per second.
    pub(crate) fn pacing(&self) -> f64 {
        self.bits * self.payload / 8.0
    }

    /// Window of the sender, bytes: the receive window, so that only the rate limits it.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_aqm::units::Bytes;

    const WINDOW: Window = Window { cwnd: 9_600, ssthresh: u64::MAX, mss: 960 };

    fn rate(initial: Option<Rate>) -> SendingRate {
        let common = CommonParams { packet: Bytes(1_000), ..CommonParams::default() };
        SendingRate::new(&common, initial, (Rate(1_000_000), Rate(10_000_000)))
    }

    #[test]
    fn the_first_rate_is_the_initial_window_per_round_trip_unless_it_is_set() {
        let start = |initial, rtt| {
            let mut rate = rate(initial);
            rate.start(&WINDOW, rtt);
            (rate.bits(), rate.pacing())
        };
        // 10 packets of 1000 B in 40 ms are 2 Mbit/s, of which 96 % is payload.
        assert_eq!(start(None, Some(Span::ms(40))), (2e6, 240_000.0));
        assert_eq!(start(None, None).0, 1e6);
        assert_eq!(start(None, Some(Span::ZERO)).0, 1e6);
        assert_eq!(start(Some(Rate(5_000_000)), Some(Span::ms(40))).0, 5e6);
    }

    #[test]
    fn a_rate_stays_within_its_bounds() {
        let mut rate = rate(None);
        let mut set = |bits| {
            rate.set(bits);
            rate.bits()
        };
        assert_eq!([5e5, 1e6, 3e6, 1e7, 2e7].map(&mut set), [1e6, 1e6, 3e6, 1e7, 1e7]);
        assert_eq!((rate.most(), rate.window()), (1e7, 960_000_000));
    }
}
