//! Rate that every ack computes from a reference, which changes once per round trip: so that acks
//! of one window do not react twice to the same queue. HPCC and PowerTCP share it.

use super::Window;
use super::sending_rate::SendingRate;
use crate::endpoint::common_params::CommonParams;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Rate, Span};

/// Line rate of a sender outside of a scenario.
const UNKNOWN_LINE: Rate = Rate(100_000_000_000);

/// Line rate in units of the lower bound that is not set.
const LINE_PER_LEAST: u64 = 100;

/// Rate with a reference and an average.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct ReferenceRate {
    rate: SendingRate,
    /// Reference R, bit/s.
    reference: f64,
    /// Moving average of the load of the path, in units of what it can carry.
    average: f64,
    /// Round-trip time without queues, T, and its parameter.
    base_rtt: Span,
    given_rtt: Option<Span>,
    /// The reference changes with the next ack beyond this sequence number; 0 before the first ack.
    update_after: u64,
}

impl ReferenceRate {
    /// Creates a rate between `least` (`None`: 1 % of the line rate) and `line`, on a path with the
    /// round-trip time `base_rtt`.
    pub(super) fn new(
        common: &CommonParams,
        (least, line): (Option<Rate>, Option<Rate>),
        base_rtt: Option<Span>,
    ) -> ReferenceRate {
        let line = line.unwrap_or(UNKNOWN_LINE);
        let least = least.unwrap_or(Rate(line.0 / LINE_PER_LEAST)).min(line);
        ReferenceRate {
            rate: SendingRate::new(common, Some(line), (least, line)),
            reference: line.0 as f64,
            average: 1.0,
            base_rtt: base_rtt.unwrap_or(Span::ZERO),
            given_rtt: base_rtt,
            update_after: 0,
        }
    }

    /// Starts a connection at the line rate, whose handshake took `rtt`.
    pub(super) fn start(&mut self, window: &Window, rtt: Option<Span>) {
        self.rate.start(window, rtt);
        self.reference = self.rate.bits();
        (self.average, self.update_after) = (1.0, 0);
        self.base_rtt = self.given_rtt.or(rtt).unwrap_or(Span::ZERO).max(Span(1));
    }

    /// Rate on the wire, bit/s.
    pub(super) fn bits(&self) -> f64 {
        self.rate.bits()
    }

    /// Line rate, bit/s.
    pub(super) fn line(&self) -> f64 {
        self.rate.most()
    }

    /// Reference, bit/s.
    pub(super) fn reference(&self) -> f64 {
        self.reference
    }

    /// Average load of the path.
    pub(super) fn load(&self) -> f64 {
        self.average
    }

    /// Round-trip time without queues.
    pub(super) fn base_rtt(&self) -> Span {
        self.base_rtt
    }

    /// Lowers the round-trip time without queues to `rtt`, if that is less.
    pub(super) fn lower_base_rtt(&mut self, rtt: Span) {
        self.base_rtt = self.base_rtt.min(rtt).max(Span(1));
    }

    /// Bytes in a round trip at the line rate, W0.
    pub(super) fn line_window(&self) -> f64 {
        self.line() * self.base_rtt.0 as f64 / 8e9
    }

    /// Adds `load`, measured over `time`, to the average, and returns it.
    pub(super) fn average(&mut self, load: f64, time: Span) -> f64 {
        let base = self.base_rtt.0 as f64;
        let time = (time.0 as f64).min(base);
        self.average = (self.average * (base - time) + load * time) / base;
        self.average
    }

    /// True if an ack up to `acked` is the first one of packets sent after the reference changed.
    pub(super) fn is_due(&self, acked: u64) -> bool {
        acked > self.update_after
    }

    /// Lets the reference change with the first ack beyond `next`.
    pub(super) fn update_after(&mut self, next: u64) {
        self.update_after = next.max(self.update_after);
    }

    /// Sets the rate within its bounds; `due` is true if it becomes the reference.
    pub(super) fn set(&mut self, bits: f64, due: bool) {
        self.rate.set(bits);
        if due {
            self.reference = self.rate.bits();
        }
    }

    /// Rate at which the sender paces.
    pub(super) fn sending_rate(&self) -> &SendingRate {
        &self.rate
    }

    /// Window of the sender, bytes: what the rate sends in a round trip without queues, rounded up
    /// to whole packets of `mss`.
    pub(super) fn window(&self, mss: u64) -> u64 {
        let bytes = cast::trunc(self.line_window() * self.bits() / self.line());
        bytes.max(1).div_ceil(mss) * mss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { cwnd: 1, ssthresh: u64::MAX, mss: 1_000 };

    fn rate(base_rtt: Option<Span>) -> ReferenceRate {
        let bounds = (None, Some(Rate(10_000_000_000)));
        let mut rate = ReferenceRate::new(&CommonParams::default(), bounds, base_rtt);
        rate.start(&WINDOW, Some(Span::us(40)));
        rate
    }

    #[test]
    fn it_starts_at_the_line_rate_with_a_window_of_a_round_trip() {
        let r = rate(Some(Span::us(20)));
        assert_eq!((r.bits(), r.reference(), r.load()), (1e10, 1e10, 1.0));
        // 10 Gbit/s for 20 us are 25,000 bytes.
        assert_eq!((r.line_window(), r.window(1_000), r.window(1_460)), (25e3, 25_000, 26_280));
        assert_eq!(rate(None).base_rtt(), Span::us(40), "the handshake");
    }

    #[test]
    fn the_reference_changes_once_per_round_trip() {
        let mut r = rate(Some(Span::us(20)));
        r.update_after(5_001);
        assert!(!r.is_due(5_001) && r.is_due(5_002));
        r.set(5e9, false);
        assert_eq!((r.bits(), r.reference(), r.window(1_000)), (5e9, 1e10, 13_000));
        r.set(2e10, true);
        assert_eq!((r.bits(), r.reference()), (1e10, 1e10));
        r.set(1e3, true);
        assert_eq!((r.bits(), r.window(1_000)), (1e8, 1_000), "1 % of the line, at least a packet");
        r.update_after(3_001);
        assert!(!r.is_due(5_001), "never earlier");
    }

    #[test]
    fn a_load_counts_by_its_share_of_the_round_trip() {
        let mut r = rate(Some(Span::us(20)));
        assert_eq!(r.average(3.0, Span::us(5)), 1.5);
        assert_eq!(r.average(0.5, Span::us(30)), 0.5, "at most a round trip");
        r.lower_base_rtt(Span::us(10));
        assert_eq!((r.base_rtt(), r.line_window()), (Span::us(10), 12.5e3));
        r.lower_base_rtt(Span::us(30));
        assert_eq!(r.base_rtt(), Span::us(10));
    }
}
