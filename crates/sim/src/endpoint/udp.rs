//! Endpoints of a UDP flow: a source without feedback, and a sink that measures delay and loss.

use crate::traffic::pacing::PacketSchedule;
use crate::traffic::packet_trace::TrafficCursor;
use crate::traffic::source::Source;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::cast;
use sojourn_aqm::stats::Histogram;
use sojourn_aqm::units::Time;

/// UDP source and sink.
#[derive(Clone, Debug)]
pub struct UdpEndpoints {
    sends: DatagramSchedule,
    rng: Pcg64Mcg,
    /// Time of the first datagram.
    pub first: Time,
    /// Start of the measured interval.
    since: Time,
    /// Datagrams sent in the measured interval.
    pub sent: u64,
    /// Datagrams lost among those sent in the measured interval.
    pub lost: u64,
    /// Payload bytes received since the start of the run.
    pub delivered_bytes: u64,
    delivered_base: u64,
    /// One-way delays of datagrams sent in the measured interval.
    pub delay: Histogram,
    last_delay: Option<u64>,
    /// Count, sum (ns) and sum of squares (ns²) of the differences between consecutive delays.
    differences: (u64, i128, i128),
}

/// Schedule and sizes of the datagrams.
#[derive(Clone, Debug)]
enum DatagramSchedule {
    Paced(PacketSchedule),
    Trace(TrafficCursor),
}

/// IPv4 and UDP header, bytes.
const UDP_HEADER: u64 = 28;

impl UdpEndpoints {
    /// Create the endpoints of the `i`-th flow of a group with this source.
    pub fn new(source: &Source, i: u64, start: Time, mut rng: Pcg64Mcg) -> UdpEndpoints {
        let (sends, first) = match (source, PacketSchedule::for_source(source, &mut rng)) {
            (_, Some((pace, first))) => (DatagramSchedule::Paced(pace), start + first),
            (Source::Trace(trace), None) => {
                let player = TrafficCursor::new(trace, i, start);
                let first = player.next_time();
                (DatagramSchedule::Trace(player), first)
            }
            _ => unreachable!("a scenario gives every other source a TCP"),
        };
        UdpEndpoints {
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

    /// Send a datagram at `now`: returns its size in bytes and the time of the next one.
    pub fn send(&mut self, now: Time) -> (u32, Time) {
        self.sent += 1;
        match &mut self.sends {
            DatagramSchedule::Paced(pace) => {
                let (bytes, gap) = pace.next_packet(&mut self.rng);
                (cast::saturate32(bytes), now + gap)
            }
            DatagramSchedule::Trace(player) => (player.pop(), player.next_time()),
        }
    }

    /// Receive a datagram of `len` bytes that was sent at `sent`.
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

    /// Count a lost datagram that was sent at `sent`.
    pub fn on_loss(&mut self, sent: Time) {
        self.lost += u64::from(sent >= self.since);
    }

    /// Start the measured interval at `now`: reset all counters.
    pub fn start_measuring(&mut self, now: Time) {
        (self.since, self.sent, self.lost) = (now, 0, 0);
        self.delay.clear();
        (self.last_delay, self.differences) = (None, (0, 0, 0));
        self.delivered_base = self.delivered_bytes;
    }

    /// Payload bytes received in the measured interval.
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
