//! Registry of TCPs by name.

use crate::endpoint::cc::{
    Bbr3Params, BbrParams, CompoundParams, ControlParams, CubicParams, DctcpParams, LedbatParams,
    LedbatPpParams, PragueParams, RenoParams, VegasParams,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery};
use sojourn_aqm::params::{ParamRows, Params};

/// Registry entry.
#[derive(Clone, Copy, Debug)]
pub struct TcpEntry {
    /// Canonical name.
    pub name: &'static str,
    /// Aliases.
    pub aliases: &'static [&'static str],
    /// One-line description.
    pub about: &'static str,
    /// Source: RFC, paper or ns-2 agent.
    pub source: &'static str,
    /// Loss recovery algorithm.
    pub recovery: LossRecovery,
    /// Congestion control with default parameters.
    pub control: fn() -> ControlParams,
}

impl TcpEntry {
    /// All parameters with their defaults.
    pub fn table(&self) -> ParamRows {
        let mut rows = CommonParams::default().table();
        rows.extend((self.control)().table());
        rows
    }
}

/// All TCPs, sorted by name.
pub const TCPS: &[TcpEntry] = &[
    TcpEntry {
        name: "bbr",
        aliases: &["bbr1", "bbrv1"],
        about: "paces at the measured delivery rate of the path; rfc only",
        source: "Cardwell et al., BBR: Congestion-Based Congestion Control, ACM Queue 2016",
        recovery: LossRecovery::Sack,
        control: || ControlParams::Bbr(BbrParams::default()),
    },
    TcpEntry {
        name: "bbr3",
        aliases: &["bbrv3"],
        about: "as bbr, with bounds from losses and longer pauses between probes; rfc only",
        source: "draft-ietf-ccwg-bbr",
        recovery: LossRecovery::Sack,
        control: || ControlParams::Bbr3(Bbr3Params::default()),
    },
    TcpEntry {
        name: "compound",
        aliases: &["ctcp"],
        about: "adds a delay-based window to Reno's, large while queues are empty; rfc only",
        source: "Tan et al., A Compound TCP Approach, INFOCOM 2006",
        recovery: LossRecovery::Sack,
        control: || ControlParams::Compound(CompoundParams::default()),
    },
    TcpEntry {
        name: "cubic",
        aliases: &[],
        about: "cubic growth since the last reduction, never slower than Reno; rfc only",
        source: "RFC 9438",
        recovery: LossRecovery::Sack,
        control: || ControlParams::Cubic(CubicParams::default()),
    },
    TcpEntry {
        name: "dctcp",
        aliases: &[],
        about: "reduces the window by half the fraction of ECN-marked bytes; rfc only",
        source: "RFC 8257",
        recovery: LossRecovery::Sack,
        control: || ControlParams::Dctcp(DctcpParams::default()),
    },
    TcpEntry {
        name: "ledbat",
        aliases: &[],
        about: "background transfers: keeps the queueing delay at a target; rfc only",
        source: "RFC 6817",
        recovery: LossRecovery::Sack,
        control: || ControlParams::Ledbat(LedbatParams::default()),
    },
    TcpEntry {
        name: "ledbatpp",
        aliases: &["ledbat++", "ledbat_plus_plus"],
        about: "LEDBAT++: ledbat that yields more, and pauses to measure the path; rfc only",
        source: "draft-irtf-iccrg-ledbat-plus-plus",
        recovery: LossRecovery::Sack,
        control: || ControlParams::LedbatPp(LedbatPpParams::default()),
    },
    TcpEntry {
        name: "newreno",
        aliases: &[],
        about: "fast recovery ends when all data outstanding at the loss is acknowledged",
        source: "RFC 5681, RFC 6582; ns-2.35 Agent/TCP/Newreno",
        recovery: LossRecovery::NewReno,
        control: || ControlParams::Reno(RenoParams::default()),
    },
    TcpEntry {
        name: "prague",
        aliases: &[],
        about: "L4S sender: reduces in proportion to counted marks, whatever the RTT; rfc only",
        source: "TCP Prague of L4STeam for Linux, version 0.7; RFC 9331 §4",
        recovery: LossRecovery::Sack,
        control: || ControlParams::Prague(PragueParams::default()),
    },
    TcpEntry {
        name: "reno",
        aliases: &[],
        about: "fast retransmit; fast recovery ends with the first ack of new data",
        source: "RFC 5681; ns-2.35 Agent/TCP/Reno",
        recovery: LossRecovery::Reno,
        control: || ControlParams::Reno(RenoParams::default()),
    },
    TcpEntry {
        name: "sack",
        aliases: &["sack1"],
        about: "selective acknowledgements: repairs several losses per round trip",
        source: "RFC 2018, RFC 6675; ns-2.35 Agent/TCP/Sack1",
        recovery: LossRecovery::Sack,
        control: || ControlParams::Reno(RenoParams::default()),
    },
    TcpEntry {
        name: "tahoe",
        aliases: &[],
        about: "fast retransmit, then slow start from one packet",
        source: "Jacobson, Congestion Avoidance and Control, 1988; ns-2.35 Agent/TCP",
        recovery: LossRecovery::Tahoe,
        control: || ControlParams::Reno(RenoParams::default()),
    },
    TcpEntry {
        name: "vegas",
        aliases: &[],
        about: "delay-based: keeps a few segments queued in the network; rfc only",
        source: "Brakmo, Peterson, TCP Vegas, IEEE JSAC 1995",
        recovery: LossRecovery::Sack,
        control: || ControlParams::Vegas(VegasParams::default()),
    },
];
