//! Replay of recorded arrivals through one link in virtual time, with the fate of each packet.

mod htb;
mod xorshift;

use crate::engine::simulation::Progress;
use crate::parsing::parse;
use crate::random_stream::random_stream;
use htb::Htb;
use serde_json::Value as Json;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::random::{CloneRandom, Random};
use sojourn_aqm::registry::Registry;
use sojourn_aqm::units::{Bytes, Rate, Span, Time};
use sojourn_aqm::{DropReason, Ecn, Env, Link, LinkSpec, LogEntry, Packet, Served, TcpFlags};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use xorshift::Xorshift32;

/// Arriving packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    /// Arrival time.
    pub at: Time,
    /// Flow number; also used as hash, so that a few flows never collide.
    pub flow: u32,
    /// Length, bytes.
    pub len: u32,
    /// ECN field.
    pub ecn: Ecn,
    /// Traffic class; the DSCP, where a discipline reads one.
    pub class: u16,
    /// Keys of the hosts that send and receive the packet.
    pub hosts: [u32; 2],
    /// Acknowledgement number, for a TCP ACK without payload.
    pub ack: Option<u32>,
}

impl Arrival {
    fn packet(&self, body: u32) -> Packet {
        let Arrival { flow, len, ecn, class, hosts: [source, destination], ack, .. } = *self;
        let pure = TcpFlags::ACK.with(TcpFlags::PURE);
        let tcp = TcpFlags::default().with_if(ack.is_some(), pure);
        let ack = ack.unwrap_or_default();
        let arrived = self.at;
        Packet { arrived, len, flow, hash: flow, body, source, destination, ack, class, ecn, tcp }
    }
}

/// Decision of another implementation about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// True if the packet was dropped.
    pub dropped: bool,
    /// True if the packet was marked.
    pub marked: bool,
}

/// Result of a replay; one entry per arrival.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Replay {
    /// Fate of each packet.
    pub decisions: Vec<Decision>,
    /// Time of the drop; None if the packet was sent.
    pub dropped_at: Vec<Option<Time>>,
    /// Start of transmission; None if the packet was dropped.
    pub sent_at: Vec<Option<Time>>,
    /// ECN field with which the packet left or was dropped.
    pub ecn_out: Vec<Ecn>,
    /// Internal variables of the AQM just after each arrival.
    pub gauges: Vec<(&'static str, Vec<f64>)>,
    /// True where the AQM could not or did not take the recorded decision; empty without a
    /// recording.
    pub diverged: Vec<bool>,
}

/// Generator that makes the AQM repeat another implementation's decisions. A decision that the AQM
/// rules out (p = 0 or 1) is enforced, so that both stay in step, and reported.
#[derive(Clone)]
struct RecordedDecisions {
    signal: Arc<AtomicBool>,
    impossible: Arc<AtomicBool>,
}

impl Random for RecordedDecisions {
    fn uniform(&mut self) -> f64 {
        0.5
    }

    fn bernoulli(&mut self, p: f64) -> bool {
        let signal = self.signal.load(Ordering::Relaxed);
        if (signal && p <= 0.0) || (!signal && p >= 1.0) {
            self.impossible.store(true, Ordering::Relaxed);
        }
        signal
    }

    fn at_most(&mut self, bound: u64) -> bool {
        // A bound of 0 is hit once in 2^32 draws.
        self.bernoulli(if bound == 0 { 0.0 } else { bound as f64 / f64::from(u32::MAX) })
    }
}

/// Options of a replay.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplayOptions<'a> {
    /// Recorded decisions, one per arrival: random numbers are scripted so that the discipline
    /// repeats them. See [`Replay::diverged`].
    pub follow: Option<&'a [Decision]>,
    /// Time of the first periodic update of the discipline; default: one period after the first
    /// arrival.
    pub first_update: Option<Time>,
    /// Seed of the generator xorshift32 that replaces the usual random numbers: one number per
    /// comparison, for recordings that were made with it.
    pub xorshift32: Option<u32>,
    /// Burst of a token bucket that serves the queue as Linux's HTB does; default: a link.
    pub htb_burst: Option<Bytes>,
    /// Recorded departures from the token bucket: its own are delayed to these times, if they are
    /// late by up to 1 us, as the timer of a kernel is.
    pub departures: Option<&'a [Time]>,
    /// Registry of disciplines; default: the standard one.
    pub registry: Option<&'a Registry>,
    /// Recorded times of all periodic updates of the discipline, in place of its own: the timer of
    /// a kernel is late. Requires the token bucket.
    pub updates: Option<&'a [Time]>,
    /// True if internal variables are not read: some disciplines have variables over all queues.
    pub no_gauges: bool,
}

/// Later than every packet, but a time for which a timer can be set.
const NEVER: Time = Time(u64::MAX - 2);

/// Sends `arrivals` through a link of `rate` with the discipline described by `qdisc` (a name, or
/// an object with a name). `progress` is called every 16,384 arrivals; if it returns `false`, the
/// replay stops and the result is `None`.
///
/// # Errors
/// If the discipline or a parameter is unknown, arrivals are not in order of time, or the recording
/// differs in length.
pub fn replay(
    arrivals: &[Arrival],
    qdisc: &Json,
    rate: Rate,
    options: ReplayOptions<'_>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Option<Replay>> {
    let ReplayOptions { follow, .. } = options;
    // With recorded updates the schedule of the discipline never begins.
    let first_update = options.updates.map_or(options.first_update, |_| Some(NEVER));
    let env = Env { first_update, ..Env::new(rate) };
    let standard = Registry::standard();
    let registry = options.registry.unwrap_or(&standard);
    let qdisc = parse::build_qdisc(qdisc, &env, registry)?.1.qdisc;
    if qdisc.reads_headers() {
        let text = "has filters by protocol, ports or mark, which rows of a replay do not have: \
                    use class, dscp, ecn, source, destination, max_length or pure_ack";
        return Err(Error::new(text).at("qdisc"));
    }
    if rate.0 == 0 {
        return Err(Error::new("0bit is not allowed, must be above 0bit").at("rate"));
    }
    if let Some(f) = follow.filter(|f| f.len() != arrivals.len()) {
        let text = format!("has {} rows for {} arrivals", f.len(), arrivals.len());
        return Err(Error::new(text).at("follow"));
    }
    let signal = Arc::new(AtomicBool::new(false));
    let impossible = Arc::new(AtomicBool::new(false));
    let rng: Box<dyn CloneRandom + Send> = match (follow, options.xorshift32) {
        (Some(_), _) => {
            Box::new(RecordedDecisions { signal: signal.clone(), impossible: impossible.clone() })
        }
        (None, Some(seed)) => Box::new(Xorshift32::new(seed).map_err(|e| e.at("rng"))?),
        (None, None) => Box::new(random_stream(1, "replay")),
    };
    let mut server = Server::new(rate, qdisc, rng, options)?;

    let mut out = Replay::default();
    for (i, a) in arrivals.iter().enumerate() {
        if i > 0 && a.at < arrivals[i - 1].at {
            return Err(Error::new("is earlier than the previous row").at(format!("row {i}")));
        }
        let recorded = follow.map_or(Decision::default(), |f| f[i]);
        signal.store(recorded.dropped || recorded.marked, Ordering::Relaxed);
        server.advance(a.at);
        impossible.store(false, Ordering::Relaxed);
        server.push(a.at, a.packet(cast::number(i)));
        if follow.is_some() {
            out.diverged.push(impossible.load(Ordering::Relaxed));
        }
        if !options.no_gauges {
            append_gauges(&mut server, &mut out.gauges);
        }
        let packets = i as u64 + 1;
        if packets.is_multiple_of(1 << 14) {
            let share = packets as f64 / arrivals.len() as f64;
            if !progress(Progress { share, packets }) {
                return Ok(None);
            }
        }
    }
    server.advance(Time(u64::MAX - 1));
    collect_fates(server.packet_log(), arrivals, follow, &mut out);
    Ok(Some(out))
}

/// Server of the queue: a link, or the token bucket of HTB.
enum Server {
    Link(Box<Link>),
    Htb(Box<Htb>),
}

impl Server {
    fn new(
        rate: Rate,
        qdisc: Box<dyn Served + Send>,
        rng: Box<dyn CloneRandom + Send>,
        options: ReplayOptions<'_>,
    ) -> Result<Server> {
        let spec = LinkSpec::new(rate, Span::ZERO);
        if let Some(burst) = options.htb_burst {
            spec.check()?;
            let htb = Htb::new(rate, burst, qdisc, rng)
                .with_departures(options.departures.unwrap_or_default())
                .with_updates(options.updates.unwrap_or_default());
            return Ok(Server::Htb(htb.into()));
        }
        let mut link = Box::new(Link::new(spec, qdisc, rng)?);
        link.enable_packet_log();
        Ok(Server::Link(link))
    }

    fn advance(&mut self, now: Time) {
        match self {
            Server::Link(link) => {
                link.advance(now);
                while link.pop_in_flight().is_some() {}
            }
            Server::Htb(htb) => htb.advance(now),
        }
    }

    fn push(&mut self, now: Time, packet: Packet) {
        match self {
            Server::Link(link) => {
                link.push(now, packet);
                link.take_dropped();
            }
            Server::Htb(htb) => htb.push(now, packet),
        }
    }

    fn inspect(&mut self, visit: &mut dyn FnMut(&'static str, f64)) {
        match self {
            Server::Link(link) => link.inspect(visit),
            Server::Htb(htb) => htb.inspect(visit),
        }
    }

    fn packet_log(&self) -> &[LogEntry] {
        match self {
            Server::Link(link) => link.packet_log(),
            Server::Htb(htb) => htb.packet_log(),
        }
    }
}

/// Appends the variables of the AQM to `gauges`.
fn append_gauges(server: &mut Server, gauges: &mut Vec<(&'static str, Vec<f64>)>) {
    let mut k = 0;
    server.inspect(&mut |name, value| {
        if k == gauges.len() {
            gauges.push((name, Vec::new()));
        }
        gauges[k].1.push(value);
        k += 1;
    });
}

/// Reads the fate of each packet from the packet log and compares it with the recording.
fn collect_fates(
    log: &[LogEntry],
    arrivals: &[Arrival],
    follow: Option<&[Decision]>,
    out: &mut Replay,
) {
    let n = arrivals.len();
    out.decisions = vec![Decision::default(); n];
    (out.dropped_at, out.sent_at) = (vec![None; n], vec![None; n]);
    out.ecn_out = vec![Ecn::NotEct; n];
    for row in log {
        let i = row.packet.body as usize;
        let marked = row.packet.ecn == Ecn::Ce && arrivals[i].ecn != Ecn::Ce;
        out.decisions[i] = Decision { dropped: row.why.is_some(), marked };
        let at = if row.why.is_some() { &mut out.dropped_at } else { &mut out.sent_at };
        at[i] = Some(row.left);
        out.ecn_out[i] = row.packet.ecn;
        // A packet dropped because the buffer is full does not depend on random numbers.
        if row.why == Some(DropReason::Full) && follow.is_some() {
            out.diverged[i] = false;
        }
    }
    for (i, recorded) in follow.unwrap_or_default().iter().enumerate() {
        out.diverged[i] |= out.decisions[i] != *recorded;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn every_ms(n: u64) -> Vec<Arrival> {
        (0..n)
            .map(|i| Arrival { at: Time(i * 1_000_000), len: 1500, ..Arrival::default() })
            .collect()
    }

    #[test]
    fn times_match_a_fifo() {
        let out = replay(
            &every_ms(4),
            &json!({"name": "droptail", "limit": "1p"}),
            Rate(8_000_000),
            ReplayOptions::default(),
            &mut |_| true,
        )
        .unwrap()
        .unwrap();
        // 1.5 ms each: the packet of 1 ms waits until 1.5 ms; the packet of 2 ms until 3.0 ms, when
        // the one of 3 ms arrives.
        let sent: Vec<_> = out.sent_at.iter().map(|t| t.map(|t| t.0 / 1000)).collect();
        assert_eq!(sent, [Some(0), Some(1500), Some(3000), Some(4500)]);
        assert!(out.gauges.is_empty() && out.diverged.is_empty());
    }

    #[test]
    fn replay_follows_recorded_decisions_and_reports_impossible_ones() {
        let red = json!({"name": "red", "w_q": 1, "min_th": "2p", "max_th": "6p"});
        let arrivals = vec![Arrival { len: 1000, ..Arrival::default() }; 8];
        let mut recorded = vec![Decision::default(); 8];
        recorded[1].dropped = true; // the average is 0: impossible, no random number is drawn
        recorded[5].dropped = true; // the average is 4: possible
        let follow = |rows| ReplayOptions { follow: Some(rows), ..ReplayOptions::default() };
        let out = replay(&arrivals, &red, Rate(8_000_000), follow(&recorded), &mut |_| true);
        let out = out.unwrap().expect("nobody stops it");
        let diverged: Vec<_> = (0..8).filter(|i| out.diverged[*i]).collect();
        assert_eq!(diverged, [1]);
        assert!(out.decisions[5].dropped && !out.decisions[1].dropped);
        let short = replay(&arrivals, &red, Rate(8_000_000), follow(&recorded[1..]), &mut |_| true);
        assert_eq!(short.unwrap_err().to_string(), "follow: has 7 rows for 8 arrivals");
    }

    #[test]
    fn recorded_updates_take_the_place_of_the_schedule() {
        let dualpi2 = json!({"name": "dualpi2", "variant": "linux"});
        let p_after = |updates: Option<&[Time]>| {
            let htb_burst = Some(Bytes(1500));
            let options = ReplayOptions { htb_burst, updates, ..ReplayOptions::default() };
            let out = replay(&every_ms(100), &dualpi2, Rate(4_000_000), options, &mut |_| true);
            let gauges = out.unwrap().expect("nobody stops it").gauges;
            let p = gauges.into_iter().find(|(name, _)| *name == "p_prime");
            p.expect("the discipline shows it").1
        };
        assert!(p_after(None)[99] > 0.0);
        assert!(p_after(Some(&[])).iter().all(|p| *p == 0.0), "no update");
        // After a burst of one packet, one leaves per 3 ms: at 60 ms, the packet of 22 ms is at the
        // head.
        let one = p_after(Some(&[Time(60_000_000)]));
        assert_eq!(one[60], 0.0, "what arrives at the time of an update comes first");
        let p = 0.16 * (0.038 - 0.015) + 3.2 * 0.038;
        assert!((one[61] - p).abs() < 1e-3 * p, "{} {p}", one[61]);
        assert_eq!(one[61].to_bits(), one[99].to_bits());
    }

    #[test]
    fn progress_can_stop_a_replay() {
        let (mut reports, droptail) = (vec![], json!("droptail"));
        let options = ReplayOptions::default();
        let out = replay(&every_ms(50_000), &droptail, Rate(8_000_000), options, &mut |so_far| {
            reports.push((so_far.packets, so_far.share));
            reports.len() < 2
        });
        assert_eq!(out.unwrap().map(|r| r.decisions.len()), None);
        assert_eq!(reports, [(16_384, 0.32768), (32_768, 0.65536)]);
    }
}
