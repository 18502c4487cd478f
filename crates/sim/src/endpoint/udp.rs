//! Endpoints of a UDP flow: a source, without feedback except for calls, and a sink that measures
//! delay and loss.

use crate::endpoint::call::{CallEndpoints, Report};
use crate::traffic::pacing::PacketSchedule;
use crate::traffic::packet_trace::TrafficCursor;
use crate::traffic::source::Source;
use sojourn_aqm::Histogram;
use sojourn_aqm::Pcg;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// UDP source and sink.
#[derive(Clone, Debug, Snapshot)]
pub struct UdpEndpoints {
    sends: DatagramSchedule,
    rng: Pcg,
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
    /// Reports on the last hop to the sender, with their times of arrival.
    reports: VecDeque<(Time, Report)>,
}

/// Schedule and sizes of the datagrams.
#[derive(Clone, Debug, Snapshot)]
enum DatagramSchedule {
    Paced(PacketSchedule),
    Trace(TrafficCursor),
    Call(Box<CallEndpoints>),
}

/// Datagram on its way.
#[derive(Clone, Copy, Debug, Snapshot)]
pub struct Datagram {
    /// Time of transmission.
    pub sent: Time,
    /// Length on the wire, bytes.
    pub len: u32,
    /// Number within the flow; 0 if the source has no feedback.
    pub number: u32,
}

/// Largest datagram of an external source on the wire, bytes.
const LARGEST_DATAGRAM: u64 = 65_535;

/// IPv4 and UDP header, bytes.
const UDP_HEADER: u64 = 28;

impl UdpEndpoints {
    /// Creates the endpoints of the `i`-th flow of a group with this source.
    pub fn new(source: &Source, i: u64, start: Time, mut rng: Pcg) -> UdpEndpoints {
        let paced = PacketSchedule::for_source(source, start, LARGEST_DATAGRAM, &mut rng);
        let (sends, first) = match (source, paced) {
            (Source::Call(params), _) => {
                let interval = CallEndpoints::offset_of(params, 1).0 as f64;
                let first = start + Span(cast::trunc(rng.uniform() * interval));
                (DatagramSchedule::Call(Box::new(CallEndpoints::new(params, first))), first)
            }
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
            reports: VecDeque::new(),
        }
    }

    /// Sends a datagram at `now`: returns its size in bytes and the time of the next one.
    pub fn send(&mut self, now: Time) -> (u32, Time) {
        self.sent += 1;
        match &mut self.sends {
            DatagramSchedule::Paced(pace) => {
                let (bytes, gap) = pace.next_packet(&mut self.rng);
                (cast::saturate32(bytes), now + gap)
            }
            DatagramSchedule::Trace(player) => (player.pop(), player.next_time()),
            DatagramSchedule::Call(call) => call.send(now),
        }
    }

    /// As [`UdpEndpoints::send`], with the datagram.
    pub fn send_datagram(&mut self, now: Time) -> (Datagram, Time) {
        let (len, due) = self.send(now);
        let number = self.call().map_or(0, CallEndpoints::last_packet);
        (Datagram { sent: now, len, number }, due)
    }

    /// Its call; None if the source is another.
    pub fn call(&self) -> Option<&CallEndpoints> {
        match &self.sends {
            DatagramSchedule::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Time at which the next report reaches the sender.
    pub fn next_report(&self) -> Time {
        self.reports.front().map_or(Time::NEVER, |report| report.0)
    }

    /// Schedules the arrival of a report at the sender, not earlier than in the previous call.
    pub fn schedule_report(&mut self, at: Time, report: Report) {
        self.reports.push_back((at, report));
    }

    /// Number of reports that reach the sender by `now`.
    pub fn reports_due(&self, now: Time) -> usize {
        self.reports.iter().take_while(|report| report.0 <= now).count()
    }

    /// Processes the reports that reach the sender by `now`.
    pub fn process_reports(&mut self, now: Time) {
        while self.next_report() <= now
            && let Some((at, report)) = self.reports.pop_front()
        {
            if let DatagramSchedule::Call(call) = &mut self.sends {
                call.on_report(at, &report);
            }
        }
    }

    /// Receives a datagram; returns a report for the sender, if one is due.
    pub fn receive(&mut self, now: Time, datagram: &Datagram) -> Option<Report> {
        self.measure(now, datagram.sent, datagram.len);
        let Datagram { sent, len, number } = *datagram;
        match &mut self.sends {
            DatagramSchedule::Call(call) => call.receive(now, sent, len, number),
            _ => None,
        }
    }

    /// Counts a datagram of `len` bytes that was sent at `sent`.
    fn measure(&mut self, now: Time, sent: Time, len: u32) {
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

    /// Counts a lost datagram.
    pub fn on_loss(&mut self, datagram: &Datagram) {
        self.lost += u64::from(datagram.sent >= self.since);
        if let DatagramSchedule::Call(call) = &mut self.sends {
            call.on_loss(datagram.number);
        }
    }

    /// Starts the measured interval at `now`: resets all counters.
    pub fn start_measuring(&mut self, now: Time) {
        (self.since, self.sent, self.lost) = (now, 0, 0);
        self.delay.clear();
        if let DatagramSchedule::Call(call) = &mut self.sends {
            call.start_measuring(now);
        }
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
