//! The two ends of a UDP flow: a source that sends whatever happens, and a sink that measures.

use crate::pace::Pace;
use crate::source::Source;
use crate::trace::Player;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::cast;
use sojourn_aqm::tally::Histogram;
use sojourn_aqm::units::Time;

/// A UDP source and sink.
pub struct UdpEnds {
    sends: Sends,
    rng: Pcg64Mcg,
    /// When the first datagram is due.
    pub first: Time,
    /// When counting began.
    since: Time,
    /// Datagrams sent, received and lost of those sent since counting began.
    pub sent: u64,
    /// See `sent`.
    pub lost: u64,
    /// Payload bytes received since the start.
    pub delivered_bytes: u64,
    delivered_base: u64,
    /// One-way delays.
    pub delay: Histogram,
    last_delay: Option<u64>,
    /// Count, sum and sum of squares of the differences of consecutive delays, ns.
    differences: (u64, i128, i128),
}

/// When datagrams are sent and how large they are.
enum Sends {
    Paced(Pace),
    Trace(Player),
}

/// Header of a UDP datagram over IPv4, bytes.
const UDP_HEADER: u64 = 28;

impl UdpEnds {
    /// The ends of the `i`-th flow of a group with that source.
    pub fn new(source: &Source, i: u64, start: Time, mut rng: Pcg64Mcg) -> UdpEnds {
        let (sends, first) = match (source, Pace::of(source, &mut rng)) {
            (_, Some((pace, first))) => (Sends::Paced(pace), start + first),
            (Source::Trace(trace), None) => {
                let player = Player::new(trace, i, start);
                let first = player.due();
                (Sends::Trace(player), first)
            }
            _ => unreachable!("a scenario gives every other source a TCP"),
        };
        UdpEnds {
            sends,
            rng,
            first,
            since: Time::ZERO,
            sent: 0,
            lost: 0,
            delivered_bytes: 0,
            delivered_base: 0,
            delay: Histogram::default(),
            last_delay: None,
            differences: (0, 0, 0),
        }
    }

    /// The size of the datagram that is sent at `now`, and when the next one is due.
    pub fn send(&mut self, now: Time) -> (u32, Time) {
        self.sent += 1;
        match &mut self.sends {
            Sends::Paced(pace) => {
                let (bytes, gap) = pace.send(&mut self.rng);
                (cast::saturate32(bytes), now + gap)
            }
            Sends::Trace(player) => (player.take(), player.due()),
        }
    }

    /// A datagram of `len` bytes that was sent at `sent` arrives.
    pub fn receive(&mut self, now: Time, sent: Time, len: u32) {
        self.delivered_bytes += u64::from(len).saturating_sub(UDP_HEADER);
        if sent < self.since {
            return;
        }
        let delay = now - sent;
        self.delay.add(delay);
        if let Some(last) = self.last_delay.replace(delay.0) {
            let d = i128::from(delay.0) - i128::from(last);
            let (n, sum, squares) = self.differences;
            self.differences = (n + 1, sum + d, squares + d * d);
        }
    }

    /// A datagram that was sent at `sent` was lost.
    pub fn lose(&mut self, sent: Time) {
        self.lost += u64::from(sent >= self.since);
    }

    /// Starts counting anew at `now`.
    pub fn begin(&mut self, now: Time) {
        (self.since, self.sent, self.lost) = (now, 0, 0);
        self.delay.clear();
        (self.last_delay, self.differences) = (None, (0, 0, 0));
        self.delivered_base = self.delivered_bytes;
    }

    /// Payload received since counting began, bytes.
    pub fn goodput_bytes(&self) -> u64 {
        self.delivered_bytes - self.delivered_base
    }

    /// Standard deviation of the difference between consecutive one-way delays (RFC 3393), seconds.
    pub fn jitter_s(&self) -> Option<f64> {
        let (n, sum, squares) = self.differences;
        let n_f = n as f64;
        let mean = sum as f64 / n_f;
        (n > 0).then(|| libm::sqrt((squares as f64 / n_f - mean * mean).max(0.0)) / 1e9)
    }
}
