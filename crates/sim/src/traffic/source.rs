//! Traffic sources: bulk transfers, repeated transfers, constant bit rate, and the registry of all
//! sources.

use crate::missing;
use crate::parsing::distribution::Distribution;
use crate::parsing::parse::{self, NamedParams};
use crate::traffic::call::Call;
use crate::traffic::cluster::Cluster;
use crate::traffic::external::{self, ExternalSource, FindExternalSource};
use crate::traffic::on_off::OnOff;
use crate::traffic::packet_trace::PacketTrace;
use crate::traffic::session_params::{Incast, Poisson, Sessions, Web};
use crate::traffic::video::Video;
use serde_json::Value as Json;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::missing::Missing;
use sojourn_aqm::params;
use sojourn_aqm::params::{ParamRows, Params};
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Bytes, Rate, Span};

params! {
    /// Application that always has data to send.
    pub struct Bulk {
        /// Start time.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Time from which no new data is sent; auto means never.
        stop: Option<Span> = None, [], "", [];
    }
}

params! {
    /// Sequential transfers, each on a new connection.
    pub struct Transfers {
        /// Start time of the first transfer.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Payload of a transfer.
        size: Distribution<Bytes> = Distribution::Constant(Bytes(100_000)),
            [Distribution::Constant(Bytes(1)) => Distribution::Constant(Bytes(1_000_000_000_000))],
            "S", [];
        /// Pause between the last acknowledgement of a transfer and the start of the next.
        gap: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", ["think"];
        /// Number of transfers; auto means unlimited.
        number: Option<u64> = None, [1 => 1_000_000_000], "", [];
        /// Time from which no further transfer starts; auto means never.
        stop: Option<Span> = None, [], "", [];
    }
}

params! {
    /// Packets of one size at a constant rate: sent over UDP regardless of losses, or written to
    /// the socket of a given TCP, which buffers them.
    pub struct Cbr {
        /// Start time; the first packet follows at a random time within one interval.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Stop time; auto means never.
        stop: Option<Span> = None, [], "", [];
        /// Rate in bit/s: on the wire over UDP, payload over TCP.
        rate: Rate = Rate(64_000), [Rate(1) => Rate(1_000_000_000_000)], "", [];
        /// Packet size in bytes: on the wire over UDP; payload over TCP, where the profile ns2
        /// rounds each packet up to whole segments.
        packet: Bytes = Bytes(200), [Bytes(1) => Bytes(65_535)], "", ["size"];
        /// Maximum relative deviation of a gap, uniformly distributed; 0.5 is ns-2's random_.
        /// Prevents sources of equal rate from staying synchronised.
        jitter: f64 = 0.0, [0.0 => 1.0], "", ["random"];
    }
}

impl Cbr {
    /// Time from the first packet to the `k`-th, exact for any `k` (no accumulated rounding).
    pub(crate) fn offset_of(&self, k: u64) -> Span {
        let bits = u128::from(k) * u128::from(self.packet.0) * 8;
        Span(cast::saturate(bits * 1_000_000_000 / u128::from(self.rate.0)))
    }

    /// Gap after the `k`-th packet. Uses one random number, none without jitter.
    pub(crate) fn next_gap(&self, k: u64, rng: &mut impl Random) -> Span {
        let gap = Span(self.offset_of(k + 1).0 - self.offset_of(k).0);
        if self.jitter == 0.0 {
            return gap;
        }
        let share = 1.0 + self.jitter * (2.0 * rng.uniform() - 1.0);
        Span(cast::trunc(gap.0 as f64 * share))
    }
}

/// Traffic source with its parameters.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Source {
    /// [`Bulk`].
    Bulk(Bulk),
    /// [`Transfers`].
    Transfers(Transfers),
    /// [`Cbr`].
    Cbr(Cbr),
    /// [`OnOff`].
    OnOff(OnOff),
    /// [`Poisson`].
    Poisson(Poisson),
    /// [`Incast`].
    Incast(Incast),
    /// [`Sessions`].
    Sessions(Sessions),
    /// [`Web`].
    Web(Web),
    /// [`Cluster`].
    Cluster(Cluster),
    /// [`Video`].
    Video(Video),
    /// [`Call`].
    Call(Call),
    /// [`PacketTrace`].
    Trace(PacketTrace),
    /// [`ExternalSource`].
    External(ExternalSource),
}

/// Evaluate an expression on the parameters of any source; for a trace these are its
/// `TraceParams`, for an external source its `ExternalTimes`.
macro_rules! each {
    ($source:expr, $p:ident => $value:expr) => {
        match $source {
            Source::Bulk($p) => $value,
            Source::Transfers($p) => $value,
            Source::Cbr($p) => $value,
            Source::OnOff($p) => $value,
            Source::Poisson($p) => $value,
            Source::Incast($p) => $value,
            Source::Sessions($p) => $value,
            Source::Web($p) => $value,
            Source::Cluster($p) => $value,
            Source::Video($p) => $value,
            Source::Call($p) => $value,
            Source::Trace(PacketTrace { shift: $p, .. }) => $value,
            Source::External(ExternalSource { times: $p, .. }) => $value,
        }
    };
}

/// Registry entry.
#[derive(Debug)]
pub struct SourceEntry {
    /// Name.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Source: paper, RFC or ns-2 class.
    pub source: &'static str,
    /// Parser of the settings.
    read: fn(&NamedParams<'_>) -> Result<Source>,
}

/// All sources.
pub static SOURCES: &[SourceEntry] = &[
    SourceEntry {
        name: "bulk",
        about: "bulk transfer over TCP: the application always has data to send",
        source: "ns-2's FTP",
        read: |n| n.params().map(Source::Bulk),
    },
    SourceEntry {
        name: "transfers",
        about: "sequential transfers, each on a new TCP connection",
        source: "RFC 7928 section 2.1 (flow completion time)",
        read: |n| n.params().map(Source::Transfers),
    },
    SourceEntry {
        name: "cbr",
        about: "packets of one size at a constant rate, over UDP or a given TCP",
        source: "RFC 7928 section 5 (unresponsive traffic)",
        read: |n| n.params().map(Source::Cbr),
    },
    SourceEntry {
        name: "onoff",
        about: "bursts of packets with random idle periods, over UDP or a given TCP",
        source: "ns-2's Traffic/Exponential and Traffic/Pareto",
        read: |n| n.params().map(Source::OnOff),
    },
    SourceEntry {
        name: "poisson",
        about: "short flows arriving at random, each on a new TCP connection",
        source: "Ismail et al., On the Effectiveness of CoDel in Data Centers (short flows)",
        read: |n| n.params().and_then(Poisson::checked).map(Source::Poisson),
    },
    SourceEntry {
        name: "incast",
        about: "queries answered by all members of the group at the same time, over TCP",
        source: "partition/aggregate: Alizadeh et al., Data Center TCP, SIGCOMM 2010",
        read: |n| n.params().map(Source::Incast),
    },
    SourceEntry {
        name: "sessions",
        about: "web sessions arriving at random: sequential transfers on new TCP connections",
        source: "Joo et al., A Hybrid AQM for Stability and Fast Adaptation (HRED), section IV",
        read: |n| n.params().map(Source::Sessions),
    },
    SourceEntry {
        name: "web",
        about: "users who load pages of several objects over TCP, with think times",
        source: "Feldmann et al., SIGCOMM 1999; ns-2's PagePool/WebTraf",
        read: |n| n.params().and_then(Web::checked).map(Source::Web),
    },
    SourceEntry {
        name: "cluster",
        about: "flows between the hosts of a cluster at random times, also bursts to one receiver",
        source: "Li et al., HPCC, SIGCOMM 2019; Zhao et al., Parsimon, NSDI 2023",
        read: |n| n.params().map(Source::Cluster),
    },
    SourceEntry {
        name: "video",
        about: "adaptive video over TCP: segments at a rate that depends on the player's buffer",
        source: "Huang et al., A Buffer-Based Approach to Rate Adaptation, SIGCOMM 2014",
        read: |n| n.params().and_then(Video::checked).map(Source::Video),
    },
    SourceEntry {
        name: "call",
        about: "one direction of a video call over UDP: its rate follows feedback (GCC)",
        source: "Google Congestion Control, draft-ietf-rmcat-gcc-02",
        read: |n| n.params().and_then(Call::checked).map(Source::Call),
    },
    SourceEntry {
        name: "trace",
        about: "recorded packets over UDP, or recorded flows over a given TCP",
        source: "RFC 7928 section 5 (repeatable traffic)",
        read: |n| PacketTrace::parse(n).map(Source::Trace),
    },
];

impl SourceEntry {
    /// Parameters with their defaults.
    pub fn params(&self) -> ParamRows {
        let named = NamedParams { name: self.name, settings: Vec::new(), lists: Vec::new() };
        (self.read)(&named).map(|s| s.param_rows()).expect("defaults are valid")
    }
}

impl Source {
    /// Parses a source: `"bulk"`, `"bulk(start=1s)"` or `{"name": "bulk", "start": "1s"}`.
    ///
    /// # Errors
    /// If the name or a parameter is unknown, or a value is out of range.
    pub fn parse(json: &Json) -> Result<Source> {
        Source::for_source_with(None, &NamedParams::with_lists(json)?)
    }

    /// Parses a source, after looking up its name with `find`.
    ///
    /// # Errors
    /// As [`Source::parse`].
    pub(crate) fn for_source_with(
        find: Option<FindExternalSource>,
        named: &NamedParams<'_>,
    ) -> Result<Source> {
        let name = named.name;
        if let Some(result) = find.and_then(|find| external::parse_external(find, named)) {
            return result.map(Source::External);
        }
        let entry = SOURCES.iter().find(|e| e.name == name).ok_or_else(|| {
            let unknown = || Error::unknown("source", name, SOURCES.iter().map(|e| e.name));
            Missing::find(missing::SOURCES, name)
                .map_or_else(unknown, |missing| missing.error(name))
                .at("name")
        })?;
        (entry.read)(named)
    }

    /// Name of the source.
    pub fn name(&self) -> &'static str {
        match self {
            Source::Bulk(_) => "bulk",
            Source::Transfers(_) => "transfers",
            Source::Cbr(_) => "cbr",
            Source::OnOff(_) => "onoff",
            Source::Poisson(_) => "poisson",
            Source::Incast(_) => "incast",
            Source::Sessions(_) => "sessions",
            Source::Web(_) => "web",
            Source::Cluster(_) => "cluster",
            Source::Video(_) => "video",
            Source::Call(_) => "call",
            Source::Trace(_) => "trace",
            Source::External(external) => external.name,
        }
    }

    /// Parameters with their values.
    pub fn param_rows(&self) -> ParamRows {
        match self {
            Source::Trace(trace) => trace.table(),
            Source::External(external) => external.table(),
            other => each!(other, p => p.table()),
        }
    }

    /// Canonical JSON form with all parameters.
    pub fn canonical(&self) -> Json {
        match self {
            Source::Trace(trace) => trace.canonical(),
            other => parse::canonical(other.name(), &other.param_rows()),
        }
    }

    /// Distribution of the start time.
    pub fn start(&self) -> &Distribution<Span> {
        each!(self, p => &p.start)
    }

    /// Time of the stop; None means never.
    pub fn stop(&self) -> Option<Span> {
        each!(self, p => p.stop)
    }

    /// True if the source sends over UDP unless a TCP is given. Every source except a call can use
    /// TCP.
    pub fn defaults_to_udp(&self) -> bool {
        match self {
            Source::Cbr(_) | Source::OnOff(_) | Source::Call(_) | Source::Trace(_) => true,
            Source::External(external) => !external.connections,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use sojourn_aqm::Pcg;

    #[test]
    fn gaps_keep_the_rate_with_and_without_jitter() {
        let packet = Bytes(573); // 18.336 ms at 250 kbit/s
        let exact = Cbr { rate: Rate(250_000), packet, ..Cbr::default() };
        let shaken = Cbr { jitter: 0.5, ..exact.clone() };
        let (mut used, mut fresh) = (Pcg::seed_from_u64(1), Pcg::seed_from_u64(1));
        let sum: u64 = (0..1000).map(|k| exact.next_gap(k, &mut used).0).sum();
        assert_eq!(Span(sum), exact.offset_of(1000));
        assert_eq!(used, fresh, "no random number without jitter");
        let gaps: Vec<f64> =
            (0..100_000).map(|k| shaken.next_gap(k, &mut fresh).as_secs() * 1e3).collect();
        assert!(gaps.iter().all(|g| (9.168..=27.504).contains(g)));
        let mean = gaps.iter().sum::<f64>() / 1e5;
        let half = gaps.iter().filter(|g| **g < 13.752).count();
        assert!((mean - 18.336).abs() < 0.05 && half.abs_diff(25_000) < 500, "{mean}, {half}");
    }
}
