//! The registry: every TCP by name.

use super::params::{Recovery, Settings};
use crate::cc::{BbrParams, Choice, CompoundParams, CubicParams, DctcpParams, VegasParams};
use sojourn_aqm::params::{Params, Rows};

/// An entry of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The canonical name.
    pub name: &'static str,
    /// Other names that are accepted.
    pub aliases: &'static [&'static str],
    /// What it is, in a line.
    pub about: &'static str,
    /// Where it is defined.
    pub source: &'static str,
    /// How it gets over a loss.
    pub recovery: Recovery,
    /// How its window grows, with defaults.
    pub control: fn() -> Choice,
}

impl Entry {
    /// Every parameter with its default.
    pub fn table(&self) -> Rows {
        let mut rows = Settings::default().table();
        rows.extend((self.control)().table());
        rows
    }
}

/// Every TCP there is.
pub const TCPS: &[Entry] = &[
    Entry {
        name: "bbr",
        aliases: &["bbr1", "bbrv1"],
        about: "paces at the rate that the path was seen to deliver; rfc only",
        source: "Cardwell et al., BBR: Congestion-Based Congestion Control, ACM Queue 2016",
        recovery: Recovery::Sack,
        control: || Choice::Bbr(BbrParams::default()),
    },
    Entry {
        name: "compound",
        aliases: &["ctcp"],
        about: "adds to Reno's window one that grows fast while no queue builds; rfc only",
        source: "Tan et al., A Compound TCP Approach, INFOCOM 2006",
        recovery: Recovery::Sack,
        control: || Choice::Compound(CompoundParams::default()),
    },
    Entry {
        name: "cubic",
        aliases: &[],
        about: "grows with the cube of the time since a cut, never slower than Reno; rfc only",
        source: "RFC 9438",
        recovery: Recovery::Sack,
        control: || Choice::Cubic(CubicParams::default()),
    },
    Entry {
        name: "dctcp",
        aliases: &[],
        about: "is cut by half the share of marked bytes; the receiver echoes each mark; rfc only",
        source: "RFC 8257",
        recovery: Recovery::Sack,
        control: || Choice::Dctcp(DctcpParams::default()),
    },
    Entry {
        name: "newreno",
        aliases: &[],
        about: "stays in fast recovery until all that was outstanding is acknowledged",
        source: "RFC 5681, RFC 6582; ns-2.35 Agent/TCP/Newreno",
        recovery: Recovery::NewReno,
        control: || Choice::Reno,
    },
    Entry {
        name: "reno",
        aliases: &[],
        about: "fast retransmit and a fast recovery that the first ack of new data ends",
        source: "RFC 5681; ns-2.35 Agent/TCP/Reno",
        recovery: Recovery::Reno,
        control: || Choice::Reno,
    },
    Entry {
        name: "sack",
        aliases: &["sack1"],
        about: "the receiver tells what it has, so several losses are repaired in a round trip",
        source: "RFC 2018, RFC 6675; ns-2.35 Agent/TCP/Sack1",
        recovery: Recovery::Sack,
        control: || Choice::Reno,
    },
    Entry {
        name: "tahoe",
        aliases: &[],
        about: "fast retransmit, then slow start from one packet",
        source: "Jacobson, Congestion Avoidance and Control, 1988; ns-2.35 Agent/TCP",
        recovery: Recovery::Tahoe,
        control: || Choice::Reno,
    },
    Entry {
        name: "vegas",
        aliases: &[],
        about: "keeps a few segments queued, told by how long round trips take; rfc only",
        source: "Brakmo, Peterson, TCP Vegas, IEEE JSAC 1995",
        recovery: Recovery::Sack,
        control: || Choice::Vegas(VegasParams::default()),
    },
];
