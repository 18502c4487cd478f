//! What makes traffic: bulk uploads, repeated transfers, constant bit rate, and the registry of
//! all sources.

use crate::crowd::params::{Incast, Poisson, Sessions, Web};
use crate::dist::Dist;
use crate::missing;
use crate::onoff::OnOff;
use crate::read::{self, Named};
use crate::trace::Trace;
use serde_json::Value as Json;
use sojourn_aqm::cast;
use sojourn_aqm::dice::Dice;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::missing::Missing;
use sojourn_aqm::params;
use sojourn_aqm::params::{Params, Rows};
use sojourn_aqm::units::{Bytes, Rate, Span};

params! {
    /// An application that always has more to send.
    pub struct Bulk {
        /// When it starts.
        start: Dist<Span> = Dist::Constant(Span::ZERO), [], "", [];
        /// When it stops giving new data; auto for never.
        stop: Option<Span> = None, [], "", [];
    }
}

params! {
    /// Transfers of a size, one after the other, each on a fresh connection.
    pub struct Transfers {
        /// When the first one starts.
        start: Dist<Span> = Dist::Constant(Span::ZERO), [], "", [];
        /// Payload of one transfer.
        size: Dist<Bytes> = Dist::Constant(Bytes(100_000)),
            [Dist::Constant(Bytes(1)) => Dist::Constant(Bytes(1_000_000_000_000))], "S", [];
        /// Pause between the last acknowledgement of one and the start of the next.
        gap: Dist<Span> = Dist::Constant(Span::ZERO), [], "", ["think"];
        /// How many transfers; auto for no end.
        number: Option<u64> = None, [Some(1) => Some(1_000_000_000)], "", [];
        /// When no further transfer starts; auto for never.
        stop: Option<Span> = None, [], "", [];
    }
}

params! {
    /// Packets of one size at a constant rate: over UDP whatever happens to them, or written into
    /// the socket of a TCP that is given, where they wait for their turn.
    pub struct Cbr {
        /// When it starts; the first packet follows within one interval, at random.
        start: Dist<Span> = Dist::Constant(Span::ZERO), [], "", [];
        /// When it stops; auto for never.
        stop: Option<Span> = None, [], "", [];
        /// Bits per second: on the wire over UDP, of payload over TCP.
        rate: Rate = Rate(64_000), [Rate(1) => Rate(1_000_000_000_000)], "", [];
        /// Bytes of a packet: on the wire over UDP; of payload over TCP, where the profile ns2
        /// makes whole segments of each.
        packet: Bytes = Bytes(200), [Bytes(1) => Bytes(65_535)], "", ["size"];
        /// By what share of itself a gap may be longer or shorter, each as likely; 0.5 is ns-2's
        /// random_. It keeps sources of the same rate from colliding for good.
        jitter: f64 = 0.0, [0.0 => 1.0], "", ["random"];
    }
}

impl Cbr {
    /// How long after the first packet the `k`-th follows; no remainder is lost on the way.
    pub fn due(&self, k: u64) -> Span {
        let bits = u128::from(k) * u128::from(self.packet.0) * 8;
        Span(cast::saturate(bits * 1_000_000_000 / u128::from(self.rate.0)))
    }

    /// The gap after the `k`-th packet: one draw, none without jitter.
    pub fn gap(&self, k: u64, dice: &mut impl Dice) -> Span {
        let gap = Span(self.due(k + 1).0 - self.due(k).0);
        if self.jitter == 0.0 {
            return gap;
        }
        let share = 1.0 + self.jitter * (2.0 * dice.uniform() - 1.0);
        Span(cast::trunc(gap.0 as f64 * share))
    }
}

/// A source with its parameters.
#[derive(Clone, Debug, PartialEq)]
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
    /// [`Trace`].
    Trace(Trace),
}

/// The same expression for the parameters of whichever source it is; a trace's are its shift.
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
            Source::Trace(Trace { shift: $p, .. }) => $value,
        }
    };
}

/// A source of the registry.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Where it is defined.
    pub source: &'static str,
    /// Reads its settings.
    read: fn(&Named<'_>) -> Result<Source>,
}

/// Every source there is.
pub static SOURCES: &[Entry] = &[
    Entry {
        name: "bulk",
        about: "an application that always has more to send, over TCP",
        source: "ns-2's FTP",
        read: |n| n.params().map(Source::Bulk),
    },
    Entry {
        name: "transfers",
        about: "transfers of a size, one after the other, each on a fresh TCP connection",
        source: "RFC 7928 section 2.1 (flow completion time)",
        read: |n| n.params().map(Source::Transfers),
    },
    Entry {
        name: "cbr",
        about: "packets of one size at a constant rate, over UDP or the TCP that is given",
        source: "RFC 7928 section 5 (unresponsive traffic)",
        read: |n| n.params().map(Source::Cbr),
    },
    Entry {
        name: "onoff",
        about: "bursts of packets and random silences, over UDP or the TCP that is given",
        source: "ns-2's Traffic/Exponential and Traffic/Pareto",
        read: |n| n.params().map(Source::OnOff),
    },
    Entry {
        name: "poisson",
        about: "short flows at random times, each on a fresh TCP connection",
        source: "Ismail et al., On the Effectiveness of CoDel in Data Centers (short flows)",
        read: |n| n.params().and_then(Poisson::checked).map(Source::Poisson),
    },
    Entry {
        name: "incast",
        about: "queries that all members of the group answer at once, over TCP",
        source: "partition/aggregate: Alizadeh et al., Data Center TCP, SIGCOMM 2010",
        read: |n| n.params().map(Source::Incast),
    },
    Entry {
        name: "sessions",
        about: "web sessions at random times: transfers in a row on fresh TCP connections",
        source: "Joo et al., A Hybrid AQM for Stability and Fast Adaptation (HRED), section IV",
        read: |n| n.params().map(Source::Sessions),
    },
    Entry {
        name: "web",
        about: "users who read pages of several objects, over TCP, and think between them",
        source: "Feldmann et al., SIGCOMM 1999; ns-2's PagePool/WebTraf",
        read: |n| n.params().and_then(Web::checked).map(Source::Web),
    },
    Entry {
        name: "trace",
        about: "recorded packets over UDP, or recorded flows over the TCP that is given",
        source: "RFC 7928 section 5 (repeatable traffic)",
        read: |n| Trace::of(n).map(Source::Trace),
    },
];

impl Entry {
    /// Its parameters with their defaults.
    pub fn params(&self) -> Rows {
        let named = Named { name: self.name, settings: Vec::new(), lists: Vec::new() };
        (self.read)(&named).map(|s| s.table()).expect("defaults are valid")
    }
}

impl Source {
    /// Reads a source.
    pub fn of(named: &Named<'_>) -> Result<Source> {
        let name = named.name;
        let entry = SOURCES.iter().find(|e| e.name == name).ok_or_else(|| {
            let unknown = || Error::unknown("source", name, SOURCES.iter().map(|e| e.name));
            Missing::find(missing::SOURCES, name)
                .map_or_else(unknown, |missing| missing.error(name))
                .at("name")
        })?;
        (entry.read)(named)
    }

    /// Its name.
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
            Source::Trace(_) => "trace",
        }
    }

    /// Its parameters.
    pub fn table(&self) -> Rows {
        match self {
            Source::Trace(trace) => trace.table(),
            other => each!(other, p => p.table()),
        }
    }

    /// Everything, as it is written.
    pub fn canonical(&self) -> Json {
        match self {
            Source::Trace(trace) => trace.canonical(),
            other => read::canonical(other.name(), &other.table()),
        }
    }

    /// When it starts.
    pub fn start(&self) -> &Dist<Span> {
        each!(self, p => &p.start)
    }

    /// When it stops.
    pub fn stop(&self) -> Option<Span> {
        each!(self, p => p.stop)
    }

    /// Whether it sends over UDP where no TCP is given; every source can go over TCP.
    pub fn udp_by_default(&self) -> bool {
        matches!(self, Source::Cbr(_) | Source::OnOff(_) | Source::Trace(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn gaps_keep_the_rate_with_jitter_and_without() {
        let packet = Bytes(573); // 18.336 ms at 250 kbit/s
        let exact = Cbr { rate: Rate(250_000), packet, ..Cbr::default() };
        let shaken = Cbr { jitter: 0.5, ..exact.clone() };
        let (mut used, mut fresh) = (Pcg64Mcg::seed_from_u64(1), Pcg64Mcg::seed_from_u64(1));
        let sum: u64 = (0..1000).map(|k| exact.gap(k, &mut used).0).sum();
        assert_eq!(Span(sum), exact.due(1000));
        assert_eq!(used, fresh, "without jitter nothing is drawn");
        let gaps: Vec<f64> =
            (0..100_000).map(|k| shaken.gap(k, &mut fresh).as_secs() * 1e3).collect();
        assert!(gaps.iter().all(|g| (9.168..=27.504).contains(g)));
        let mean = gaps.iter().sum::<f64>() / 1e5;
        let half = gaps.iter().filter(|g| **g < 13.752).count();
        assert!((mean - 18.336).abs() < 0.05 && half.abs_diff(25_000) < 500, "{mean}, {half}");
    }
}
