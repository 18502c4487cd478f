//! Registry of all disciplines, by name.

mod external;
mod open;

pub use external::{External, FindExternal};
pub use open::Registry;

use crate::aqm::af_qcn::AfQcn;
use crate::aqm::afd::Afd;
use crate::aqm::api::Api;
use crate::aqm::ared::Ared;
use crate::aqm::avq::Avq;
use crate::aqm::blue::Blue;
use crate::aqm::choke::Choke;
use crate::aqm::cobalt::Cobalt;
use crate::aqm::codel::CoDel;
use crate::aqm::feng_red::FengRed;
use crate::aqm::fred::Fred;
use crate::aqm::hred::Hred;
use crate::aqm::pi::Pi;
use crate::aqm::pi2::Pi2;
use crate::aqm::pie::Pie;
use crate::aqm::red::{Red, Tuned};
use crate::aqm::red_opt::RedOpt;
use crate::aqm::rem::Rem;
use crate::aqm::sa_red::SaRed;
use crate::aqm::sfb::Sfb;
use crate::aqm::sred::Sred;
use crate::aqm::{NoAqm, SingleQueue};
use crate::build::{Build, Env};
use crate::error::{Error, Result};
use crate::link::Served;
use crate::missing::{DISCIPLINES, Missing};
use crate::params::{ParamRow, Params, Setting};
use crate::sched::cake::Cake;
use crate::sched::curvy_red::CurvyRed;
use crate::sched::drop_tail::DropTail;
use crate::sched::drr::Drr;
use crate::sched::dual::Dual;
use crate::sched::dualpi2::DualPi2;
use crate::sched::ets::Ets;
use crate::sched::ewfq::Ewfq;
use crate::sched::fair::Fair;
use crate::sched::fq::Fq;
use crate::sched::fq_paced::FqPaced;
use crate::sched::hhf::Hhf;
use crate::sched::htb::Htb;
use crate::sched::pfifo_fast::PfifoFast;
use crate::sched::prio::Priority;
use crate::sched::scfq::Scfq;
use crate::sched::sfq::Sfq;
use crate::sched::stfq::Stfq;
use crate::sched::tbf::Tbf;
use crate::sched::wf2q::Wf2q;
use crate::sched::wfq::Wfq;
use crate::units::Rate;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::TypeId;
use core::fmt;

/// A discipline in the registry.
#[derive(Clone, Copy, Debug)]
pub struct QdiscEntry {
    /// Canonical name; that of Linux if it exists there.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// One-line description.
    pub about: &'static str,
    /// Decisions of the discipline: when it makes them, and from which quantities.
    pub decides: &'static str,
    /// Paper or RFC that defines it.
    pub source: &'static str,
    /// Parameters whose defaults differ from those of the type.
    preset: &'static [(&'static str, &'static str)],
    kind: Kind,
}

/// Way to build the discipline of an entry.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// From the parameters of a type.
    Typed { make: Make, check: Check, type_id: fn() -> TypeId },
    /// By its own rules.
    External(&'static dyn External),
}

type Check = fn(&QdiscEntry, &[(&str, Setting<'_>)]) -> Result<()>;

type Make = fn(&QdiscEntry, &[(&str, Setting<'_>)], &Env, Set) -> Result<Built>;

/// Mode of setting parameters.
#[derive(Clone, Copy, PartialEq)]
enum Set {
    /// Check each value when it is set.
    Text,
    /// As assigned to the fields.
    Assigned,
}

/// A discipline and the parameters from which it was built.
pub struct Built {
    /// The discipline.
    pub qdisc: Box<dyn Served + Send>,
    /// Every parameter with its value.
    pub params: Vec<ParamRow>,
}

impl fmt::Debug for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Built").field("params", &self.params).finish_non_exhaustive()
    }
}

impl QdiscEntry {
    /// Creates an entry for the discipline `Q`, to be added with [`Registry::with`]. It has no
    /// aliases; `decides` and `source` are empty. Assign these fields if needed.
    pub const fn new<Q: Build + Clone + Send>(
        name: &'static str,
        about: &'static str,
    ) -> QdiscEntry {
        QdiscEntry {
            name,
            aliases: &[],
            about,
            decides: "",
            source: "",
            preset: &[],
            kind: Kind::Typed {
                make: make::<Q>,
                check: check_settings::<Q::Params>,
                type_id: TypeId::of::<Q>,
            },
        }
    }

    /// Creates an entry for a discipline whose parameters are known only at run time.
    pub const fn external(
        name: &'static str,
        about: &'static str,
        external: &'static dyn External,
    ) -> QdiscEntry {
        let kind = Kind::External(external);
        QdiscEntry { name, aliases: &[], about, decides: "", source: "", preset: &[], kind }
    }

    /// Returns the parameters with their defaults; empty if an [`External`] refuses its defaults.
    pub fn params(&self) -> Vec<ParamRow> {
        self.with_defaults().map(|made| made.params).unwrap_or_default()
    }

    /// Returns the size of the state in bytes with default parameters, without packets; 0 if an
    /// [`External`] refuses its defaults.
    pub fn state(&self) -> usize {
        self.with_defaults().map_or(0, |made| made.qdisc.state())
    }

    fn with_defaults(&self) -> Option<Built> {
        let made = self.build(&[], &Env::new(Rate(1_000_000)));
        match self.kind {
            Kind::Typed { .. } => Some(made.expect("defaults are valid")),
            Kind::External(_) => made.ok(),
        }
    }

    /// Builds the discipline with `settings` for a link.
    ///
    /// # Errors
    /// An unknown parameter, an invalid value, or values that contradict each other.
    pub fn build(&self, settings: &[(&str, Setting<'_>)], env: &Env) -> Result<Built> {
        match self.kind {
            Kind::Typed { make, .. } => make(self, settings, env, Set::Text),
            Kind::External(external) => external.build(settings, env),
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Checks `settings` one by one, without a link.
    ///
    /// # Errors
    /// An unknown parameter, or an invalid value.
    pub fn check(&self, settings: &[(&str, Setting<'_>)]) -> Result<()> {
        match self.kind {
            Kind::Typed { check, .. } => check(self, settings),
            Kind::External(external) => external.check(settings),
        }
    }

    /// Builds it from typed parameters whose fields were assigned these values, unchecked until
    /// then. For tests: both ways must refuse the same.
    ///
    /// # Errors
    /// As [`QdiscEntry::build`].
    #[doc(hidden)]
    pub fn build_assigned(&self, settings: &[(&str, Setting<'_>)], env: &Env) -> Result<Built> {
        match self.kind {
            Kind::Typed { make, .. } => make(self, settings, env, Set::Assigned),
            Kind::External(external) => external.build(settings, env),
        }
    }
}

fn make<Q: Build + Clone + Send>(
    entry: &QdiscEntry,
    settings: &[(&str, Setting<'_>)],
    env: &Env,
    set: Set,
) -> Result<Built> {
    let params = parse::<Q::Params>(entry, settings, set)?;
    Ok(Built { qdisc: Box::new(Q::build(&params, env)?), params: params.table() })
}

fn check_settings<P: Params>(entry: &QdiscEntry, settings: &[(&str, Setting<'_>)]) -> Result<()> {
    parse::<P>(entry, settings, Set::Text).map(drop)
}

/// Returns the defaults of `entry` with `settings` applied.
fn parse<P: Params>(entry: &QdiscEntry, settings: &[(&str, Setting<'_>)], set: Set) -> Result<P> {
    let mut params = P::default();
    for (name, value) in entry.preset {
        params.set(name, Setting::Text(value)).expect("presets are valid");
    }
    for (name, value) in settings {
        match set {
            Set::Text => params.set(name, *value)?,
            Set::Assigned => params.assign(name, *value)?,
        }
    }
    Ok(params)
}

macro_rules! registry {
    ($(
        $name:literal $aliases:expr => $Type:ty, preset $preset:expr,
        $about:literal, $decides:literal, $source:literal;
    )*) => {
        /// All disciplines.
        pub static REGISTRY: &[QdiscEntry] = &[$(QdiscEntry {
            name: $name, aliases: &$aliases, about: $about,
            decides: $decides, source: $source,
            preset: &$preset,
            kind: Kind::Typed {
                make: make::<$Type>,
                check: check_settings::<<$Type as Build>::Params>,
                type_id: TypeId::of::<$Type>,
            },
        }),*];
    };
}

registry! {
    "droptail" ["fifo", "taildrop", "tail_drop", "drop_tail", "pfifo", "bfifo"] => DropTail,
        preset [],
        "a FIFO queue that drops packets only when it is full",
        "on arrival, when the buffer is full: the packet to drop",
        "folklore; random drop: Hashem, MIT LCS/TR-465, 1989";
    "red" [] => SingleQueue<Red>, preset [],
        "random early detection by the average queue",
        "on arrival: a drop probability that grows with the average queue",
        "Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; gentle: Floyd, 2000";
    "ared" ["adaptive_red"] => SingleQueue<Tuned<Ared>>, preset [("gentle", "two_max_th")],
        "adaptive RED: adapts max_p to keep the average queue between the thresholds",
        "on arrival: RED's drop probability; max_p changes every half second at most",
        "Floyd, Gummadi and Shenker, 2001";
    "feng_red" ["self_configuring_red", "feng_ared"] => SingleQueue<Tuned<FengRed>>, preset [],
        "self-configuring RED: changes max_p when the average queue crosses a threshold",
        "on arrival: RED's drop probability; max_p changes once per crossing",
        "Feng, Kandlur, Saha and Shin, INFOCOM 1999";
    "red_opt" ["redopt"] => SingleQueue<Tuned<RedOpt>>, preset [],
        "RED configured by a model of link, round-trip time and number of flows",
        "on arrival: RED's drop probability, with the parameters of the model",
        "Ziegler, Brandauer and Fdida, IWQoS 2001, as far as reported";
    "sa_red" [] => SingleQueue<Tuned<SaRed>>, preset [],
        "RED tuned from the mean and the deviation of its queue",
        "on arrival: RED's drop probability; max_p and w_q change after every window",
        "Chen, Min and Zhang, GLOBECOM 2012, reconstructed";
    "hred" [] => SingleQueue<Hred>, preset [],
        "hybrid RED: maps the queue to a drop probability, and adapts the map outside a band",
        "on arrival: a drop probability that grows with the queue, by an adaptive map",
        "Joo, Bahk and Lumetta, Journal of Communications and Networks";
    "blue" [] => SingleQueue<Blue>, preset [],
        "a drop probability that overflow raises and an idle link lowers",
        "on arrival: a drop probability that does not depend on the queue",
        "Feng, Kandlur, Saha and Shin, IEEE/ACM ToN 10(4), 2002";
    "pi" ["pic"] => SingleQueue<Pi>, preset [],
        "proportional integral controller of the queue length",
        "on arrival: a drop probability that integrates the deviation of the queue from q_ref",
        "Hollot, Misra, Towsley and Gong, INFOCOM 2001";
    "api" ["adaptive_pi"] => SingleQueue<Api>, preset [],
        "PI with gains that grow with the distance from q_ref",
        "on arrival: PI's drop probability, integrated faster if the queue is far from q_ref",
        "after Huang et al., CECNet 2013";
    "rem" [] => SingleQueue<Rem>, preset [],
        "random exponential marking by a price of the link",
        "on arrival: a drop probability by a price, the integral of queue and excess rate",
        "Athuraliya, Low, Li and Yin, IEEE Network 15(3), 2001";
    "avq" ["vq"] => SingleQueue<Avq>, preset [],
        "adaptive virtual queue: drops or marks the packets that a slower link would drop",
        "on arrival, deterministic: drops if a virtual queue of adaptive capacity is full",
        "Kunniyur and Srikant, SIGCOMM 2001";
    "codel" [] => SingleQueue<CoDel>, preset [],
        "controlled delay: keeps the sojourn time at a target",
        "on departure: drops at an increasing rate while the sojourn time stays above target",
        "RFC 8289";
    "choke" [] => SingleQueue<Choke>, preset [],
        "RED that drops an arrival and a random queued packet if both are of one flow",
        "on arrival: drops both packets if a random queued one is of the same flow, else as RED",
        "Pan, Prabhakar and Psounis, INFOCOM 2000";
    "cobalt" [] => SingleQueue<Cobalt>, preset [],
        "CoDel, combined with BLUE against unresponsive flows",
        "on departure: as CoDel, plus a drop probability that overflow raises",
        "Hoeiland-Joergensen, Taht and Morton, LANMAN 2018; Palmei et al., LANMAN 2019";
    "fred" [] => SingleQueue<Fred>, preset [],
        "RED with an account per active flow",
        "on arrival: as RED, except that flows with few packets are exempt, with many are dropped",
        "Lin and Morris, SIGCOMM 1997";
    "sfb" [] => SingleQueue<Sfb>, preset [],
        "BLUE in hashed bins: limits unresponsive flows",
        "on arrival: the smallest drop probability of the flow's bins, one per level",
        "Feng, Kandlur, Saha and Shin, INFOCOM 2001; Linux sch_sfb";
    "sred" [] => SingleQueue<Sred>, preset [],
        "stabilized RED: estimates the number of active flows from a list of past packets",
        "on arrival: a step function of the queue, times a function of the number of flows",
        "Ott, Lakshman and Wong, INFOCOM 1999";
    "afd" [] => SingleQueue<Afd>, preset [],
        "fair shares from a single queue, by a sample of past packets",
        "on arrival: a drop probability per flow that limits each to the fair share",
        "Pan, Breslau, Prabhakar and Shenker, ACM CCR 33(2), 2003";
    "af_qcn" ["afqcn"] => SingleQueue<AfQcn>, preset [],
        "QCN's feedback plus a part for flows above the mean, as drops or marks",
        "on arrival: a drop probability that grows with the queue, its change and the flow's share",
        "Kabbani et al., HOTI 2010; IEEE 802.1Qau";
    "pie" [] => SingleQueue<Pie>, preset [],
        "proportional integral controller of the queueing delay",
        "on arrival: a drop probability that integrates the deviation of the delay from target",
        "RFC 8033";
    "pi2" [] => SingleQueue<Pi2>, preset [],
        "linear controller of the queueing delay, its output squared for Classic TCP",
        "on arrival: a drop probability p'^2, or k p' for ECT(1), where p' integrates the delay",
        "De Schepper, Bondarenko, Tsang and Briscoe, CoNEXT 2016";
    "dualpi2" ["dualq", "dualq_coupled"] => Dual<DualPi2>, preset [],
        "two coupled queues for L4S and Classic packets under one PI controller",
        "on departure: the queue, and a drop or mark with p'^2 in C, k p' or a delay ramp in L",
        "RFC 9332";
    "curvy_red" ["dualq_curvy_red"] => Dual<CurvyRed>, preset [("scheduler", "ts_fifo")],
        "two coupled queues for L4S and Classic packets under RED with a squared probability",
        "on departure: the queue, and a drop or mark by the average delay in C, or a step in L",
        "RFC 9332, appendix B";
    "drr" [] => Fair<Drr, NoAqm>, preset [],
        "deficit round robin over a queue per flow or class",
        "on departure: the next queue; on overflow: drops from the flow with the most bytes",
        "Shreedhar and Varghese, SIGCOMM 1995";
    "wfq" ["pgps"] => Fair<Wfq, NoAqm>, preset [],
        "weighted fair queueing: sends packets in the order of a fluid server",
        "on departure: the smallest finish tag; on overflow: drops from the longest queue",
        "Demers, Keshav, Shenker, SIGCOMM 1989; Parekh and Gallager, IEEE/ACM ToN 1(3), 1993";
    "wf2q" ["wf2q+", "wf2q_plus"] => Fair<Wf2q, NoAqm>, preset [("flows", "16")],
        "worst-case fair weighted fair queueing (WF2Q+)",
        "on departure: the smallest finish tag of the packets that have started",
        "Bennett and Zhang, IEEE/ACM ToN 5(5), 1997";
    "scfq" [] => Fair<Scfq, NoAqm>, preset [],
        "self-clocked fair queueing",
        "on departure: the smallest finish tag, with the packet in transmission as clock",
        "Golestani, INFOCOM 1994";
    "stfq" ["start_time_fq"] => Fair<Stfq, NoAqm>, preset [],
        "start-time fair queueing", "on departure: the smallest start tag",
        "Goyal, Vin, Cheng, SIGCOMM 1996";
    "prio" ["priority", "strict"] => Fair<Priority, NoAqm>,
        preset [("flows", "3"), ("by", "class")],
        "strict priority: serves the first band with packets; the band follows from the DSCP",
        "on departure: the next band", "Linux sch_prio";
    "pfifo_fast" [] => PfifoFast, preset [],
        "three FIFO queues by DSCP, served in strict order",
        "on departure: the next band", "Linux sch_generic";
    "ets" [] => Fair<Ets, NoAqm>, preset [("flows", "8"), ("by", "class")],
        "strict priority for the first classes, deficit round robin for the others",
        "on departure: the next class", "IEEE 802.1Qaz-2011; Linux sch_ets";
    "tbf" ["token_bucket"] => Tbf, preset [],
        "a token bucket filter: a FIFO queue with a rate and a burst of its own",
        "on departure: whether there are tokens", "Linux sch_tbf";
    "htb" [] => Htb, preset [],
        "a tree of classes with guaranteed and highest rates, which borrow what others leave",
        "on departure: the next class, and when it may send",
        "Devera, 2002; Linux sch_htb";
    "hhf" [] => Hhf, preset [],
        "a filter that delays large flows in favour of all others",
        "on arrival: the bucket of the packet; on departure: the next bucket",
        "Linux sch_hhf; Estan and Varghese, ACM TOCS 21(3), 2003";
    "fq" ["sch_fq"] => FqPaced, preset [],
        "a queue per flow that sends packets at their own times, with a highest rate per flow",
        "on departure: the next flow, and when it may send", "Linux sch_fq";
    "drr_codel" [] => Fair<Drr, CoDel>, preset [("ecn", "true")],
        "deficit round robin with CoDel in every queue",
        "on departure: the next queue, and CoDel's drops in it",
        "Shreedhar and Varghese, SIGCOMM 1995; RFC 8289";
    "wfq_codel" [] => Fair<Wfq, CoDel>, preset [("ecn", "true")],
        "weighted fair queueing with CoDel in every queue",
        "on departure: the smallest finish tag, and CoDel's drops in that queue",
        "Parekh and Gallager, IEEE/ACM ToN 1(3), 1993; RFC 8289";
    "wfq_red" [] => Fair<Wfq, Red>, preset [],
        "weighted fair queueing with RED in every queue",
        "on departure: the smallest finish tag; on arrival: RED by the average of the queue",
        "Parekh and Gallager, IEEE/ACM ToN 1(3), 1993; Floyd and Jacobson, 1993";
    "fq_red" [] => Fq<Red>, preset [("ecn", "false")],
        "DRR over hashed flows, new flows first, with RED in each",
        "on departure: the next flow; on arrival: RED by the average of the flow",
        "RFC 8290; Floyd and Jacobson, 1993";
    "ewfq" [] => Ewfq, preset [],
        "WFQ over one shared buffer, with drops that limit large classes to their share",
        "on departure: the next class; on arrival: a drop probability by its recent bytes",
        "Lu, Voelker and Snoeren, INFOCOM 2012";
    "sfq" [] => Sfq, preset [],
        "stochastic fairness queueing: round robin over hashed queues",
        "on departure: the next queue; on overflow: drops from the longest queue",
        "McKenney, INFOCOM 1990";
    "fq_codel" ["fqcodel"] => Fq<CoDel>, preset [("ecn", "true")],
        "DRR over hashed flows, CoDel in each (RFC 8290): more delay than `variant = \"linux\"`",
        "on departure: the next flow, and CoDel's drops in it",
        "RFC 8290";
    "cake" ["sch_cake"] => Cake, preset [],
        "shaper, tins by DSCP, and fair queues for hosts and flows with COBALT in each",
        "on departure: the next packet and COBALT's drops; on arrival: superfluous ACKs",
        "Hoeiland-Joergensen, Taht and Morton, LANMAN 2018; Linux sch_cake";
    "fq_pie" ["fqpie"] => Fq<Pie>, preset [("ecn", "true")],
        "DRR over hashed flows, new flows first, with PIE in each",
        "on departure: the next flow; on arrival: PIE's drop probability in the flow",
        "RFC 8033 in the flows of RFC 8290";
}

/// Returns the entry called `name`, by canonical name or alias. Case is ignored, and dashes equal
/// underscores.
///
/// # Errors
/// An unknown name (the message suggests the nearest), or one that does not exist here (the message
/// names an alternative).
pub fn find(name: &str) -> Result<&'static QdiscEntry> {
    find_in(REGISTRY.iter(), name)
}

fn find_in<'a>(
    mut entries: impl Iterator<Item = &'a QdiscEntry> + Clone,
    name: &str,
) -> Result<&'a QdiscEntry> {
    let folded = name.to_lowercase().replace('-', "_");
    let all = entries.clone();
    entries.find(|e| e.is_called(&folded)).ok_or_else(|| {
        let unknown = || Error::unknown("discipline", name, all.map(|e| e.name));
        Missing::find(DISCIPLINES, name).map_or_else(unknown, |missing| missing.error(name))
    })
}

/// Builds the discipline called `name` with `settings` for a link of `rate`.
///
/// # Errors
/// An unknown name or parameter, an invalid value, or values that contradict each other.
pub fn build(name: &str, settings: &[(&str, Setting<'_>)], rate: Rate) -> Result<Built> {
    find(name)?.build(settings, &Env::new(rate))
}

/// Checks the name of a discipline and its `settings` one by one, without a link.
///
/// # Errors
/// An unknown name or parameter, or an invalid value.
pub fn check(name: &str, settings: &[(&str, Setting<'_>)]) -> Result<()> {
    find(name)?.check(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn an_entry_shows_its_parameters_and_the_size_of_its_state() {
        let shown = |name| {
            let entry = find(name).unwrap();
            (entry.params().into_iter().map(|row| row.name).collect::<Vec<_>>(), entry.state())
        };
        let (names, state) = shown("codel");
        assert!(["limit", "target", "interval", "ecn"].iter().all(|name| names.contains(name)));
        assert!(state > 0 && state < shown("fq_codel").1);
    }

    #[test]
    fn settings_are_checked_without_a_link() {
        assert_eq!(check("codel", &[("target", Setting::Text("5ms"))]), Ok(()));
        let message =
            |name, value| check(name, &[("target", Setting::Text(value))]).unwrap_err().to_string();
        assert!(message("codle", "5ms").contains("did you mean \"codel\"?"));
        assert!(message("codel", "banana").starts_with("target: "));
        assert!(message("red", "5ms").starts_with("target: unknown parameter"));
        for entry in REGISTRY {
            assert_eq!(entry.check(&[]), Ok(()), "{}", entry.name);
        }
    }
}
