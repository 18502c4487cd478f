//! Registry of TCPs by name.

use super::presets;
use crate::endpoint::cc::{
    Bbr3Params, BbrParams, BicParams, CdgParams, CompoundParams, ControlParams, CubicParams,
    DctcpParams, HighSpeedParams, HtcpParams, HyblaParams, IllinoisParams, LedbatParams,
    LedbatPpParams, NvParams, PragueParams, RenoParams, ScalableParams, VegasParams, VenoParams,
    WestwoodParams, YeahParams,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
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
    /// Profile of the name without further settings.
    pub profile: Profile,
    /// Loss recovery algorithm, except in the profile `linux`, where it is SACK.
    pub recovery: LossRecovery,
    /// Congestion control with its defaults in the profiles `rfc` and `ns2`.
    pub control: fn() -> ControlParams,
}

impl TcpEntry {
    /// Returns the default parameters in a profile.
    pub fn defaults(&self, profile: Profile) -> (CommonParams, ControlParams) {
        let (mut common, mut control) = (CommonParams::default(), (self.control)());
        presets::apply(profile, &mut common, &mut control);
        (common, control)
    }

    /// Returns all parameters with their defaults in the profile of the name.
    pub fn table(&self) -> ParamRows {
        self.table_in(self.profile)
    }

    /// Returns all parameters with their defaults in a profile.
    pub fn table_in(&self, profile: Profile) -> ParamRows {
        let (common, control) = self.defaults(profile);
        let mut rows = common.table();
        rows.extend(control.table());
        rows
    }

    /// Returns the loss recovery algorithm in a profile: Linux's Reno has SACK.
    pub fn recovery_in(&self, profile: Profile) -> LossRecovery {
        match (profile, self.recovery) {
            (Profile::Linux, LossRecovery::Reno) => LossRecovery::Sack,
            (_, recovery) => recovery,
        }
    }
}

/// All TCPs, sorted by name.
pub const TCPS: &[TcpEntry] = &[
    TcpEntry {
        name: "bbr",
        aliases: &["bbr1", "bbrv1"],
        about: "paces at the measured delivery rate of the path; not in ns2",
        source: "Cardwell et al., BBR: Congestion-Based Congestion Control, ACM Queue 2016",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Bbr(BbrParams::default()),
    },
    TcpEntry {
        name: "bbr3",
        aliases: &["bbrv3"],
        about: "as bbr, with bounds from losses and longer pauses between probes; not in ns2",
        source: "draft-ietf-ccwg-bbr",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Bbr3(Bbr3Params::default()),
    },
    TcpEntry {
        name: "bic",
        aliases: &[],
        about: "binary search for the window at which packets were lost; not in ns2",
        source: "Xu, Harfoush, Rhee, BIC, INFOCOM 2004; Linux tcp_bic.c",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Bic(BicParams::default()),
    },
    TcpEntry {
        name: "cdg",
        aliases: &[],
        about: "reduces with a probability that rises with the slope of the delay; not in ns2",
        source: "Hayes, Armitage, CAIA Delay-Gradient, Networking 2011; Linux tcp_cdg.c",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Cdg(CdgParams::default()),
    },
    TcpEntry {
        name: "compound",
        aliases: &["ctcp"],
        about: "adds a delay-based window to Reno's, large while queues are empty; not in ns2",
        source: "Tan et al., A Compound TCP Approach, INFOCOM 2006",
        profile: Profile::Rfc,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Compound(CompoundParams::default()),
    },
    TcpEntry {
        name: "cubic",
        aliases: &[],
        about: "cubic growth since the last reduction, never slower than Reno; not in ns2",
        source: "RFC 9438",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Cubic(CubicParams::default()),
    },
    TcpEntry {
        name: "dctcp",
        aliases: &[],
        about: "reduces the window by half the fraction of ECN-marked bytes; not in ns2",
        source: "RFC 8257",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Dctcp(DctcpParams::default()),
    },
    TcpEntry {
        name: "highspeed",
        aliases: &["hstcp"],
        about: "grows faster and reduces less the larger the window is; not in ns2",
        source: "RFC 3649; Linux tcp_highspeed.c",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::HighSpeed(HighSpeedParams::default()),
    },
    TcpEntry {
        name: "htcp",
        aliases: &["h-tcp"],
        about: "grows faster the longer it is since the last congestion; not in ns2",
        source: "Shorten, Leith, H-TCP, PFLDnet 2004; Linux tcp_htcp.c",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Htcp(HtcpParams::default()),
    },
    TcpEntry {
        name: "hybla",
        aliases: &[],
        about: "grows per second as Reno at a round-trip time of 25 ms; not in ns2",
        source: "Caini, Firrincieli, TCP Hybla, IJSCN 22, 2004; Linux tcp_hybla.c",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Hybla(HyblaParams::default()),
    },
    TcpEntry {
        name: "illinois",
        aliases: &[],
        about: "the queueing delay decides how much the window grows and shrinks; not in ns2",
        source: "Liu, Başar, Srikant, TCP-Illinois, 2008; Linux tcp_illinois.c",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Illinois(IllinoisParams::default()),
    },
    TcpEntry {
        name: "ledbat",
        aliases: &[],
        about: "background transfers: keeps the queueing delay at a target; not in ns2",
        source: "RFC 6817",
        profile: Profile::Rfc,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Ledbat(LedbatParams::default()),
    },
    TcpEntry {
        name: "ledbatpp",
        aliases: &["ledbat++", "ledbat_plus_plus"],
        about: "LEDBAT++: ledbat that yields more, and pauses to measure the path; not in ns2",
        source: "draft-irtf-iccrg-ledbat-plus-plus",
        profile: Profile::Rfc,
        recovery: LossRecovery::Sack,
        control: || ControlParams::LedbatPp(LedbatPpParams::default()),
    },
    TcpEntry {
        name: "newreno",
        aliases: &[],
        about: "fast recovery ends when all data outstanding at the loss is acknowledged",
        source: "RFC 5681, RFC 6582; ns-2.35 Agent/TCP/Newreno",
        profile: Profile::Rfc,
        recovery: LossRecovery::NewReno,
        control: || ControlParams::Reno(RenoParams::default()),
    },
    TcpEntry {
        name: "nv",
        aliases: &[],
        about: "delay-based, for data centres: window that the measured rate needs; not in ns2",
        source: "Brakmo, TCP-NV: An Update to TCP-Vegas, 2010; Linux tcp_nv.c",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Nv(NvParams::default()),
    },
    TcpEntry {
        name: "prague",
        aliases: &[],
        about: "L4S sender: reduces in proportion to counted marks, whatever the RTT; not in ns2",
        source: "TCP Prague of L4STeam for Linux, version 0.7; RFC 9331 §4",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Prague(PragueParams::default()),
    },
    TcpEntry {
        name: "reno",
        aliases: &[],
        about: "halves the window; SACK in linux, else recovery ends with the first new ack",
        source: "RFC 5681; ns-2.35 Agent/TCP/Reno",
        profile: Profile::Linux,
        recovery: LossRecovery::Reno,
        control: || ControlParams::Reno(RenoParams::default()),
    },
    TcpEntry {
        name: "sack",
        aliases: &["sack1"],
        about: "selective acknowledgements: repairs several losses per round trip",
        source: "RFC 2018, RFC 6675; ns-2.35 Agent/TCP/Sack1",
        profile: Profile::Rfc,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Reno(RenoParams::default()),
    },
    TcpEntry {
        name: "scalable",
        aliases: &["stcp"],
        about: "grows by a hundredth per round trip, reduces by an eighth; not in ns2",
        source: "Kelly, Scalable TCP, ACM CCR 33(2), 2003; Linux tcp_scalable.c",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Scalable(ScalableParams::default()),
    },
    TcpEntry {
        name: "tahoe",
        aliases: &[],
        about: "fast retransmit, then slow start from one packet",
        source: "Jacobson, Congestion Avoidance and Control, 1988; ns-2.35 Agent/TCP",
        profile: Profile::Rfc,
        recovery: LossRecovery::Tahoe,
        control: || ControlParams::Reno(RenoParams::default()),
    },
    TcpEntry {
        name: "vegas",
        aliases: &[],
        about: "delay-based: keeps a few segments queued in the network; not in ns2",
        source: "Brakmo, Peterson, TCP Vegas, IEEE JSAC 1995",
        profile: Profile::Rfc,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Vegas(VegasParams::default()),
    },
    TcpEntry {
        name: "veno",
        aliases: &[],
        about: "as Reno, reducing less after losses while the queue is short; not in ns2",
        source: "Fu, Liew, TCP Veno, IEEE JSAC 21(2), 2003; Linux tcp_veno.c",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Veno(VenoParams::default()),
    },
    TcpEntry {
        name: "westwood",
        aliases: &["westwood+"],
        about: "after losses, the window is the measured bandwidth times the least RTT; not in ns2",
        source: "Grieco, Mascolo, Westwood+, ACM CCR 34(2), 2004; Linux tcp_westwood.c",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Westwood(WestwoodParams::default()),
    },
    TcpEntry {
        name: "yeah",
        aliases: &[],
        about: "grows as scalable while the queue is short, else as Reno; not in ns2",
        source: "Baiocchi, Castellani, Vacirca, YeAH-TCP, PFLDnet 2007; Linux tcp_yeah.c",
        profile: Profile::Linux,
        recovery: LossRecovery::Sack,
        control: || ControlParams::Yeah(YeahParams::default()),
    },
];
