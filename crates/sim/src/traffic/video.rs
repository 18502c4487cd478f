//! Adaptive video: segments fetched one after the other, at a rate chosen from the buffer.
//!
//! **Source**: Huang, Johari, McKeown, Trunnell, Watson, "A Buffer-Based Approach to Rate
//! Adaptation: Evidence from a Large Video Streaming Service", SIGCOMM 2014: the map of BBA-0
//! (section 4, algorithm 1) and the start-up phase of BBA-2 (section 6).
//!
//! **Departures**: all segments of a rate have the same size, so the chunk map of BBA-1 and its
//! variable reservoir are as in BBA-0. A request has no packet: it reaches the server together
//! with the acknowledgement of the last byte of the segment before. The rates form a geometric
//! ladder.

use crate::parsing::distribution::Distribution;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params;
use sojourn_aqm::units::{Rate, Span, Time};

/// Shortest segment and reservoir, and longest buffer.
const MIN: Span = Span::ms(100);
const MAX: Span = Span::s(3600);
/// Range of the video rates.
const MIN_RATE: Rate = Rate(1_000);
const MAX_RATE: Rate = Rate(100_000_000_000);

params! {
    /// Adaptive video over TCP: segments fetched one after the other on one connection, each at a
    /// rate that depends on the player's buffer (BBA).
    pub struct Video {
        /// Start time: the first request.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Time from which no further segment is requested; auto means never.
        stop: Option<Span> = None, [], "", [];
        /// Duration of the video in a segment.
        segment: Span = Span::s(4), [MIN => Span::s(600)], "V", [];
        /// Lowest video rate, payload.
        lowest: Rate = Rate(235_000), [MIN_RATE => MAX_RATE], "R_min", ["min_rate"];
        /// Highest video rate, payload.
        highest: Rate = Rate(5_000_000), [MIN_RATE => MAX_RATE], "R_max", ["max_rate"];
        /// Number of video rates; each is the same multiple of the one below.
        levels: u64 = 10, [1 => 100], "", [];
        /// Largest buffer of the player: no segment is requested that would not fit.
        buffer: Span = Span::s(240), [MIN => MAX], "B_max", [];
        /// Buffer up to which the lowest rate is chosen, once the start-up phase is over.
        reservoir: Span = Span::s(90), [MIN => MAX], "r", [];
        /// Range of the buffer above the reservoir in which the rate rises to the highest.
        cushion: Span = Span::s(126), [MIN => MAX], "cu", [];
        /// Buffer with which playback starts, and starts again after a stall; at least a segment.
        resume: Span = Span::s(4), [Span::ZERO => MAX], "", [];
        /// If true, the rate rises from segment to segment while the buffer grows fast (BBA-2's
        /// start-up phase); otherwise the map from buffer to rate holds from the start (BBA-0).
        startup: bool = true, [], "", [];
    }
}

impl Video {
    /// Checks how the parameters depend on each other.
    ///
    /// # Errors
    /// If the rates are not in order, or the buffer is too small for the reservoir and the cushion,
    /// for two segments, or for the buffer with which playback starts.
    pub(crate) fn checked(self) -> Result<Video> {
        if self.highest < self.lowest {
            return Err(Error::new(format!("is below lowest, {}", self.lowest)).at("highest"));
        }
        let parts = [
            ("the sum of reservoir and cushion", self.reservoir + self.cushion),
            ("two segments", self.segment + self.segment),
            ("resume", self.resume),
        ];
        match parts.iter().find(|(_, least)| self.buffer < *least) {
            Some((what, least)) => {
                Err(Error::new(format!("must be at least {what}, {least}")).at("buffer"))
            }
            None => Ok(self),
        }
    }

    /// Video rate of a level in bit/s; level 0 is the lowest.
    fn rate_bps(&self, level: u64) -> f64 {
        let (low, high) = (self.lowest.0 as f64, self.highest.0 as f64);
        if self.levels == 1 {
            return low;
        }
        low * libm::pow(high / low, level as f64 / (self.levels - 1) as f64)
    }

    /// Payload of a segment of this level, bytes.
    fn segment_bytes(&self, level: u64) -> u64 {
        cast::trunc(libm::round(self.rate_bps(level) * self.segment.as_secs() / 8.0)).max(1)
    }

    /// Level that the map from buffer to rate gives after a segment of level `last` (algorithm 1).
    fn map(&self, last: u64, buffer: Span) -> u64 {
        let top = self.levels - 1;
        if buffer <= self.reservoir {
            return 0;
        }
        if buffer >= self.reservoir + self.cushion {
            return top;
        }
        let (low, high) = (self.lowest.0 as f64, self.highest.0 as f64);
        let share = (buffer.0 - self.reservoir.0) as f64 / self.cushion.0 as f64;
        let f = low + (high - low) * share;
        let (up, down) =
            (self.rate_bps((last + 1).min(top)), self.rate_bps(last.saturating_sub(1)));
        if f >= up && last < top {
            (0..=top).rev().find(|level| self.rate_bps(*level) < f).unwrap_or(0)
        } else if f <= down && last > 0 {
            (0..=top).find(|level| self.rate_bps(*level) > f).unwrap_or(top)
        } else {
            last
        }
    }
}

/// Segment of a video.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
struct Segment {
    level: u64,
    requested: Time,
    /// Time of arrival of its last byte; [`Time::NEVER`] as long as it is not known.
    received: Time,
}

/// Player of a video: it requests segments, and shows them.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct VideoPlayer {
    params: Video,
    segments: Vec<Segment>,
    playback: Playback,
    /// Number of segments that `playback` has.
    buffered: usize,
    /// True during the start-up phase.
    starting: bool,
    /// Payload requested so far, bytes.
    requested_bytes: u64,
    /// Time at which the player leaves; [`Time::NEVER`] if it stays.
    left: Time,
}

/// Statistics of a video over the measured interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Snapshot)]
pub struct VideoStats {
    /// Number of segments received.
    pub segments: u64,
    /// Mean video rate of these segments, bit/s; None without segments.
    pub rate_bps: Option<f64>,
    /// Number of segments received with another rate than the one before.
    pub switches: u64,
    /// Time from the first request to the start of playback, whenever it was; None if playback did
    /// not start.
    pub startup: Option<Span>,
    /// Number of times at which playback stopped because the buffer was empty.
    pub stalls: u64,
    /// Time during which playback was stopped for this reason.
    pub stalled: Span,
}

impl VideoPlayer {
    /// Creates a player before its first request.
    pub(crate) fn new(params: Video) -> VideoPlayer {
        VideoPlayer {
            playback: Playback::default(),
            segments: Vec::new(),
            buffered: 0,
            starting: params.startup,
            requested_bytes: 0,
            left: Time::NEVER,
            params,
        }
    }

    /// Requests the next segment at `now`, at which all earlier ones have arrived; returns its size
    /// in bytes.
    pub(crate) fn request(&mut self, now: Time) -> u64 {
        let before = self.buffer_at(now);
        let last = self.segments.last().copied();
        let level = last.map_or(0, |last| self.next_level(last, before));
        self.segments.push(Segment { level, requested: now, received: Time::NEVER });
        let bytes = self.params.segment_bytes(level);
        self.requested_bytes += bytes;
        bytes
    }

    /// Time of the next request if the last segment was received and the server knows it at `now`:
    /// as soon as the segment fits into the buffer.
    pub(crate) fn next_request(&mut self, now: Time) -> Time {
        let full = self.buffer_at(now) + self.params.segment;
        now + Span(full.0.saturating_sub(self.params.buffer.0))
    }

    /// Level of the segment after `last`, with this much video in the buffer.
    fn next_level(&mut self, last: Segment, buffer: Span) -> u64 {
        let (top, v) = (self.params.levels - 1, self.params.segment.as_secs());
        let map = self.params.map(last.level, buffer);
        if !self.starting {
            return map;
        }
        // Growth of the buffer by the last segment; it is V minus the time of the download.
        let growth = v - (last.received.since(last.requested)).as_secs();
        if growth < 0.0 || map > last.level {
            self.starting = false;
            return map;
        }
        let share = buffer.0 as f64 / self.params.buffer.0 as f64;
        let enough = (0.875 - 0.375 * share) * v;
        (last.level + u64::from(growth > enough)).min(top)
    }

    /// True if a segment is requested and its arrival is not known, after this much payload in all.
    pub(crate) fn completes(&self, received_bytes: u64) -> bool {
        self.segments.last().is_some_and(|last| last.received == Time::NEVER)
            && received_bytes >= self.requested_bytes
    }

    /// Records the arrival of the last byte of the last segment at `at`, possibly in the future.
    pub(crate) fn on_received(&mut self, at: Time) {
        if let Some(last) = self.segments.last_mut() {
            last.received = at;
        }
    }

    /// Time of the request for the last segment, and its size in bytes.
    pub(crate) fn last_request(&self) -> (Time, u64) {
        let last = self.segments.last();
        last.map_or((Time::ZERO, 0), |s| (s.requested, self.params.segment_bytes(s.level)))
    }

    /// Leave at `now`: nothing arrives any more, and nothing is measured.
    pub(crate) fn leave(&mut self, now: Time) {
        self.left = self.left.min(now);
    }

    /// Video in the buffer at `now`, which does not decrease from call to call.
    fn buffer_at(&mut self, now: Time) -> Span {
        while let Some(next) = self.segments.get(self.buffered).filter(|s| s.received <= now) {
            self.playback.add(next.received, self.params.segment, self.params.resume);
            self.buffered += 1;
        }
        self.playback.advance(now);
        self.playback.buffer
    }

    /// Statistics of the interval from `warm` to `end`; nothing was requested from `stop` on.
    pub(crate) fn stats(&self, warm: Time, end: Time, stop: Time) -> VideoStats {
        let end = end.min(self.left);
        let got = |s: &&Segment| s.received < end;
        let mut playback = Playback::default();
        for segment in self.segments.iter().filter(got) {
            playback.add(segment.received, self.params.segment, self.params.resume);
        }
        // Without further requests, an empty buffer is the end of the video.
        let missing = self.segments.iter().any(|s| s.received >= end);
        if missing || end < stop {
            playback.advance(end);
        }
        playback.stalls.extend(playback.stalled_since.take().map(|since| (since, end)));
        let here = |s: &&Segment| got(s) && s.received >= warm;
        let rates = self.segments.iter().filter(here).map(|s| self.params.rate_bps(s.level));
        let segments = rates.clone().count() as u64;
        let changed = |pair: &&[Segment]| {
            pair[0].level != pair[1].level && pair[1].received < end && pair[1].received >= warm
        };
        let stalls = playback.stalls.iter();
        VideoStats {
            segments,
            rate_bps: (segments > 0).then(|| rates.sum::<f64>() / segments as f64),
            switches: self.segments.windows(2).filter(changed).count() as u64,
            startup: playback.started.map(|at| at.since(self.segments[0].requested)),
            stalls: stalls.clone().filter(|(since, _)| *since >= warm).count() as u64,
            stalled: stalls.fold(Span::ZERO, |sum, (a, b)| sum + b.since(warm.max(*a))),
        }
    }
}

/// Playback of segments as they arrive.
#[derive(Clone, Debug, Default, Snapshot)]
struct Playback {
    /// Video in the buffer at `now`.
    buffer: Span,
    now: Time,
    playing: bool,
    /// Start of playback.
    started: Option<Time>,
    /// Start of the current stall.
    stalled_since: Option<Time>,
    /// Start and end of each stall that is over.
    stalls: Vec<(Time, Time)>,
}

impl Playback {
    /// Advances to `to`.
    fn advance(&mut self, to: Time) {
        let passed = to.since(self.now);
        if self.playing && passed > self.buffer {
            self.stalled_since = Some(self.now + self.buffer);
            (self.playing, self.buffer) = (false, Span::ZERO);
        } else if self.playing {
            self.buffer = Span(self.buffer.0 - passed.0);
        }
        self.now = self.now.max(to);
    }

    /// Adds a segment that arrives at `at`, and starts if `resume` is in the buffer.
    fn add(&mut self, at: Time, segment: Span, resume: Span) {
        self.advance(at);
        self.buffer = self.buffer + segment;
        if !self.playing && self.buffer >= resume {
            self.playing = true;
            self.started.get_or_insert(at);
            self.stalls.extend(self.stalled_since.take().map(|since| (since, at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of 1, 2, 4 and 8 Mbit/s; segments of 4 s; reservoir 10 s, cushion 20 s.
    fn video() -> Video {
        let (lowest, highest) = (Rate(1_000_000), Rate(8_000_000));
        let (buffer, reservoir, cushion) = (Span::s(40), Span::s(10), Span::s(20));
        Video { lowest, highest, levels: 4, buffer, reservoir, cushion, ..Video::default() }
    }

    fn at(s: f64) -> Time {
        Time(cast::trunc(s * 1e9))
    }

    #[test]
    fn ladder_is_geometric() {
        let sizes: Vec<u64> = (0..4).map(|level| video().segment_bytes(level)).collect();
        assert_eq!(sizes, [500_000, 1_000_000, 2_000_000, 4_000_000]);
        assert_eq!(Video { levels: 1, ..video() }.segment_bytes(0), 500_000);
    }

    /// f(B) = 1 Mbit/s + 7 Mbit/s * (B - 10 s) / 20 s.
    #[test]
    fn map_keeps_the_rate_until_the_next_one_is_reached() {
        let v = video();
        for (last, buffer, level) in [
            (3, 10.0, 0), // reservoir
            (0, 30.0, 3), // above the cushion
            (0, 12.0, 0), // f = 1.7, below the next rate, 2
            (0, 13.0, 1), // f = 2.05
            (0, 25.0, 2), // f = 6.25: highest below
            (2, 14.0, 2), // f = 2.4, above the rate below
            (2, 12.8, 1), // f = 1.98: lowest above
            (3, 12.0, 1), // f = 1.7
            (3, 29.9, 3), // f = 7.97, the rate stays
        ] {
            let got = v.map(last, Span(at(buffer).0));
            assert_eq!(got, level, "after {last}, {buffer} s");
        }
    }

    /// At 10 Mbit/s a segment of 1 Mbit/s takes 0.4 s: growth 3.6 s, above 0.875 * 4 s = 3.5 s at
    /// an empty buffer. One of 2 Mbit/s takes 0.8 s; one of 4 Mbit/s 1.6 s.
    #[test]
    fn startup_climbs_while_the_buffer_grows_fast_enough() {
        let mut player = VideoPlayer::new(video());
        let mut now = Time::ZERO;
        let mut got = vec![];
        for _ in 0..8 {
            let bytes = player.request(now);
            got.push(bytes / 500_000);
            now += Span(bytes * 800);
            player.on_received(now);
            now = player.next_request(now);
        }
        // Before the third request the buffer has 7.2 s, and it grew by 3.2 s: less than
        // (0.875 - 0.375 * 7.2 / 40) * 4 s = 3.23 s. Before the fourth it has 10.4 s, and 3.11 s
        // are enough. From then on it grows by 2.4 s per segment, and the map asks for less than 8.
        assert_eq!(got, [1, 2, 2, 4, 4, 4, 4, 4]);
        let end = now + Span::ms(1);
        let stats = player.stats(Time::ZERO, end, Time::NEVER);
        assert_eq!((stats.segments, stats.switches, stats.stalls), (8, 2, 0));
        assert_eq!(stats.startup, Some(Span::ms(400)));
        assert_eq!(stats.rate_bps, Some(25e6 / 8.0));
    }

    #[test]
    fn requests_wait_until_a_segment_fits() {
        let mut player = VideoPlayer::new(Video { levels: 1, ..video() });
        let mut now = Time::ZERO;
        let mut waits = vec![];
        for _ in 0..12 {
            player.request(now);
            now += Span::ms(100);
            player.on_received(now);
            let next = player.next_request(now);
            waits.push(next.since(now).0 / 1_000_000);
            now = next;
        }
        // The buffer is 4 s after the first, then grows by 3.9 s per segment: 39.1 s after ten.
        // The next request waits until it is 36 s; then, until 100 ms less than 4 s have passed.
        assert_eq!(waits, [0, 0, 0, 0, 0, 0, 0, 0, 0, 3100, 3900, 3900]);
    }

    /// Segments of 4 s at 0.5, 3 and 10 s: playback starts at 0.5 s and has 8 s of video, so it
    /// stops at 8.5 s and goes on at 10 s; it stops again at 14 s.
    #[test]
    fn stalls_are_those_of_the_arrivals() {
        let mut player = VideoPlayer::new(video());
        for (level, got) in [(0.0, 0.5), (0.5, 3.0), (3.0, 10.0)] {
            player.request(at(level));
            player.on_received(at(got));
        }
        let stats = |warm, end, stop| {
            let s = player.stats(at(warm), at(end), stop);
            (s.segments, s.stalls, s.stalled.0 / 1_000_000)
        };
        assert_eq!(stats(0.0, 20.0, Time::NEVER), (3, 2, 7500));
        assert_eq!(stats(0.0, 20.0, at(15.0)), (3, 1, 1500), "the video is over at 14 s");
        assert_eq!(stats(9.0, 12.0, Time::NEVER), (1, 0, 1000), "began before the warm-up ended");
        assert_eq!(stats(0.0, 9.0, Time::NEVER), (2, 1, 500));
        assert_eq!(stats(0.0, 0.4, Time::NEVER), (0, 0, 0), "playback has not started");
    }

    #[test]
    fn playback_goes_on_with_enough_in_the_buffer() {
        let mut player = VideoPlayer::new(Video { resume: Span::s(8), ..video() });
        for got in [1.0, 2.0, 11.0, 13.0] {
            player.request(at(got - 0.5));
            player.on_received(at(got));
        }
        let stats = player.stats(Time::ZERO, at(14.0), Time::NEVER);
        assert_eq!(stats.startup, Some(Span::ms(1500)));
        assert_eq!((stats.stalls, stats.stalled), (1, Span::s(3)), "from 10 s to 13 s");
    }

    #[test]
    fn contradictory_parameters_are_refused() {
        let refused = |v: Video| v.checked().unwrap_err().to_string();
        let text = refused(Video { lowest: Rate(9_000_000), ..video() });
        assert_eq!(text, "highest: is below lowest, 9mbit");
        let text = refused(Video { cushion: Span::s(31), ..video() });
        assert_eq!(text, "buffer: must be at least the sum of reservoir and cushion, 41s");
        let text = refused(Video { segment: Span::s(21), ..video() });
        assert_eq!(text, "buffer: must be at least two segments, 42s");
        let text = refused(Video { resume: Span::s(50), ..video() });
        assert_eq!(text, "buffer: must be at least resume, 50s");
        assert!(Video::default().checked().is_ok());
    }
}
