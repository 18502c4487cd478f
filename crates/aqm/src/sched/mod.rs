//! Queue disciplines as a link sees them, and the registry of all disciplines.

pub mod drop_tail;
pub mod drr;
pub mod ewfq;
pub mod fair;
pub mod fq;
pub mod prio;
pub mod scfq;
pub mod sfq;
pub mod stfq;
pub mod wf2q;
pub mod wfq;

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
use crate::aqm::{Plain, Single};
use crate::cx::Cx;
use crate::error::{Error, Result};
use crate::missing::{DISCIPLINES, Missing};
use crate::packet::Packet;
use crate::params::{Checked, Params, Row, Setting};
use crate::units::{Rate, Size, Time};
use alloc::boxed::Box;
use alloc::vec::Vec;
use drop_tail::DropTail;
use drr::Drr;
use ewfq::Ewfq;
use fair::Fair;
use fq::Fq;
use prio::Priority;
use scfq::Scfq;
use sfq::Sfq;
use stfq::Stfq;
use wf2q::Wf2q;
use wfq::Wfq;

/// Packets and bytes in a discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of packets.
    pub packets: u32,
    /// Number of bytes.
    pub bytes: u64,
}

/// A queue discipline. Packets are enqueued and dequeued; dropped packets leave through
/// [`Cx::drop`]. It is work-conserving: `None` from [`Qdisc::dequeue`] means that it is empty.
pub trait Qdisc {
    /// Enqueues or drops `packet`, whose arrival time is `cx.now`.
    fn enqueue(&mut self, cx: &mut Cx<'_>, packet: Packet);
    /// Dequeues the next packet to send.
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;
    /// Number of packets and bytes in the queue.
    fn backlog(&self) -> Backlog;
    /// True if every decision about a packet is made at enqueue: dropped at once or sent after all
    /// earlier packets, marked at once or never. A link can then compute its departure time at
    /// enqueue.
    fn settles_on_arrival(&self) -> bool {
        false
    }
    /// Calls `see` with the name and value of each internal variable, in SI units.
    fn gauges(&self, _see: &mut dyn FnMut(&'static str, f64)) {}
    /// Same as [`Qdisc::gauges`] at the time `now`, including periodic updates that are due. These
    /// are applied to a copy: an inspection does not change the state, not even in the last bit.
    fn gauges_at(&mut self, _now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        self.gauges(see);
    }
    /// Size of the state in bytes, without packets.
    fn state(&self) -> usize {
        size_of_val(self)
    }
}

/// Environment of a discipline, given when it is built.
#[derive(Clone, Copy, Debug)]
pub struct Env {
    /// Rate of the link.
    pub rate: Rate,
    /// Buffer size that the discipline enforces (B of the papers).
    pub limit: Size,
    /// True if packets may be marked, for algorithms that treat marks and drops differently.
    pub ecn: bool,
    /// Time of the first periodic update; one period after the first arrival if not set. For
    /// comparison with implementations whose timers start at another time.
    pub first_update: Option<Time>,
}

impl Env {
    /// Returns the environment of a link of rate `rate`; the discipline sets the other fields.
    pub fn new(rate: Rate) -> Env {
        Env { rate, limit: Size::Bytes(0), ecn: false, first_update: None }
    }
}

/// A discipline that can be built from parameters.
pub trait Build: Qdisc + Sized {
    /// Parameters of the discipline.
    type Params: Params;
    /// Builds the discipline for a link.
    ///
    /// # Errors
    /// A parameter that is out of range, or parameters that contradict each other or the link.
    fn build(params: &Self::Params, env: &Env) -> Result<Self> {
        Self::from_checked(params.checked()?, env)
    }

    /// Builds it from parameters whose ranges were checked.
    ///
    /// # Errors
    /// Parameters that contradict each other or the link.
    fn from_checked(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self>;
}

/// A discipline in the registry.
pub struct Entry {
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
    make: Make,
}

type Make = fn(&Entry, &[(&str, Setting<'_>)], &Env, Set) -> Result<Made>;

/// Mode of setting parameters.
#[derive(Clone, Copy, PartialEq)]
enum Set {
    /// Check each value when it is set.
    Text,
    /// As assigned to the fields.
    Assigned,
}

/// A discipline and the parameters from which it was built.
pub struct Made {
    /// The discipline.
    pub qdisc: Box<dyn Qdisc + Send>,
    /// Every parameter with its value.
    pub params: Vec<Row>,
}

impl Entry {
    /// Returns the parameters with their defaults.
    pub fn params(&self) -> Vec<Row> {
        let env = Env::new(Rate(1_000_000));
        self.build(&[], &env).map(|made| made.params).expect("defaults are valid")
    }

    /// Returns the size of the state in bytes with default parameters, without packets.
    pub fn state(&self) -> usize {
        let env = Env::new(Rate(1_000_000));
        self.build(&[], &env).map(|made| made.qdisc.state()).expect("defaults are valid")
    }

    /// Builds the discipline with `settings` for a link.
    ///
    /// # Errors
    /// An unknown parameter, an invalid value, or values that contradict each other.
    pub fn build(&self, settings: &[(&str, Setting<'_>)], env: &Env) -> Result<Made> {
        (self.make)(self, settings, env, Set::Text)
    }

    /// Builds it from typed parameters whose fields were assigned these values, unchecked until
    /// then. For tests: both ways must refuse the same.
    ///
    /// # Errors
    /// As [`Entry::build`].
    #[doc(hidden)]
    pub fn build_assigned(&self, settings: &[(&str, Setting<'_>)], env: &Env) -> Result<Made> {
        (self.make)(self, settings, env, Set::Assigned)
    }
}

fn make<Q: Build + Send + 'static>(
    entry: &Entry,
    settings: &[(&str, Setting<'_>)],
    env: &Env,
    set: Set,
) -> Result<Made> {
    let mut params = Q::Params::default();
    for (name, value) in entry.preset {
        params.set(name, Setting::Text(value)).expect("presets are valid");
    }
    for (name, value) in settings {
        match set {
            Set::Text => params.set(name, *value)?,
            Set::Assigned => params.assign(name, *value)?,
        }
    }
    Ok(Made { qdisc: Box::new(Q::build(&params, env)?), params: params.table() })
}

macro_rules! registry {
    ($(
        $name:literal $aliases:expr => $Type:ty, preset $preset:expr,
        $about:literal, $decides:literal, $source:literal;
    )*) => {
        /// All disciplines.
        pub static REGISTRY: &[Entry] = &[$(Entry {
            name: $name, aliases: &$aliases, about: $about,
            decides: $decides, source: $source,
            preset: &$preset, make: make::<$Type>,
        }),*];
    };
}

registry! {
    "droptail" ["fifo", "taildrop", "tail_drop", "drop_tail", "pfifo", "bfifo"] => DropTail,
        preset [],
        "a FIFO queue that drops packets only when it is full",
        "on arrival, when the buffer is full: the packet to drop",
        "folklore; random drop: Hashem, MIT LCS/TR-465, 1989";
    "red" [] => Single<Red>, preset [],
        "random early detection by the average queue",
        "on arrival: a drop probability that grows with the average queue",
        "Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; gentle: Floyd, 2000";
    "ared" ["adaptive_red"] => Single<Tuned<Ared>>, preset [("gentle", "two_max_th")],
        "adaptive RED: adapts max_p to keep the average queue between the thresholds",
        "on arrival: RED's drop probability; max_p changes every half second at most",
        "Floyd, Gummadi and Shenker, 2001";
    "feng_red" ["self_configuring_red", "feng_ared"] => Single<Tuned<FengRed>>, preset [],
        "self-configuring RED: changes max_p when the average queue crosses a threshold",
        "on arrival: RED's drop probability; max_p changes once per crossing",
        "Feng, Kandlur, Saha and Shin, INFOCOM 1999";
    "red_opt" ["redopt"] => Single<Tuned<RedOpt>>, preset [],
        "RED configured by a model of link, round-trip time and number of flows",
        "on arrival: RED's drop probability, with the parameters of the model",
        "Ziegler, Brandauer and Fdida, IWQoS 2001, as far as reported";
    "sa_red" [] => Single<Tuned<SaRed>>, preset [],
        "RED tuned from the mean and the deviation of its queue",
        "on arrival: RED's drop probability; max_p and w_q change after every window",
        "Chen, Min and Zhang, GLOBECOM 2012, reconstructed";
    "hred" [] => Single<Hred>, preset [],
        "hybrid RED: maps the queue to a drop probability, and adapts the map outside a band",
        "on arrival: a drop probability that grows with the queue, by an adaptive map",
        "Joo, Bahk and Lumetta, Journal of Communications and Networks";
    "blue" [] => Single<Blue>, preset [],
        "a drop probability that overflow raises and an idle link lowers",
        "on arrival: a drop probability that does not depend on the queue",
        "Feng, Kandlur, Saha and Shin, IEEE/ACM ToN 10(4), 2002";
    "pi" ["pic"] => Single<Pi>, preset [],
        "proportional integral controller of the queue length",
        "on arrival: a drop probability that integrates the deviation of the queue from q_ref",
        "Hollot, Misra, Towsley and Gong, INFOCOM 2001";
    "api" ["adaptive_pi"] => Single<Api>, preset [],
        "PI with gains that grow with the distance from q_ref",
        "on arrival: PI's drop probability, integrated faster if the queue is far from q_ref",
        "after Huang et al., CECNet 2013";
    "rem" [] => Single<Rem>, preset [],
        "random exponential marking by a price of the link",
        "on arrival: a drop probability by a price, the integral of queue and excess rate",
        "Athuraliya, Low, Li and Yin, IEEE Network 15(3), 2001";
    "avq" ["vq"] => Single<Avq>, preset [],
        "adaptive virtual queue: drops or marks the packets that a slower link would drop",
        "on arrival, deterministic: drops if a virtual queue of adaptive capacity is full",
        "Kunniyur and Srikant, SIGCOMM 2001";
    "codel" [] => Single<CoDel>, preset [],
        "controlled delay: keeps the sojourn time at a target",
        "on departure: drops at an increasing rate while the sojourn time stays above target",
        "RFC 8289";
    "choke" [] => Single<Choke>, preset [],
        "RED that drops an arrival and a random queued packet if both are of one flow",
        "on arrival: drops both packets if a random queued one is of the same flow, else as RED",
        "Pan, Prabhakar and Psounis, INFOCOM 2000";
    "cobalt" [] => Single<Cobalt>, preset [],
        "CoDel, combined with BLUE against unresponsive flows",
        "on departure: as CoDel, plus a drop probability that overflow raises",
        "Hoeiland-Joergensen, Taht and Morton, LANMAN 2018; Palmei et al., LANMAN 2019";
    "fred" [] => Single<Fred>, preset [],
        "RED with an account per active flow",
        "on arrival: as RED, except that flows with few packets are exempt, with many are dropped",
        "Lin and Morris, SIGCOMM 1997";
    "sfb" [] => Single<Sfb>, preset [],
        "BLUE in hashed bins: limits unresponsive flows",
        "on arrival: the smallest drop probability of the flow's bins, one per level",
        "Feng, Kandlur, Saha and Shin, INFOCOM 2001; Linux sch_sfb";
    "sred" [] => Single<Sred>, preset [],
        "stabilized RED: estimates the number of active flows from a list of past packets",
        "on arrival: a step function of the queue, times a function of the number of flows",
        "Ott, Lakshman and Wong, INFOCOM 1999";
    "afd" [] => Single<Afd>, preset [],
        "fair shares from a single queue, by a sample of past packets",
        "on arrival: a drop probability per flow that limits each to the fair share",
        "Pan, Breslau, Prabhakar and Shenker, ACM CCR 33(2), 2003";
    "af_qcn" ["afqcn"] => Single<AfQcn>, preset [],
        "QCN's feedback plus a part for flows above the mean, as drops or marks",
        "on arrival: a drop probability that grows with the queue, its change and the flow's share",
        "Kabbani et al., HOTI 2010; IEEE 802.1Qau";
    "pie" [] => Single<Pie>, preset [],
        "proportional integral controller of the queueing delay",
        "on arrival: a drop probability that integrates the deviation of the delay from target",
        "RFC 8033";
    "pi2" [] => Single<Pi2>, preset [],
        "linear controller of the queueing delay, its output squared for Classic TCP",
        "on arrival: a drop probability p'^2, or k p' for ECT(1), where p' integrates the delay",
        "De Schepper, Bondarenko, Tsang and Briscoe, CoNEXT 2016";
    "drr" [] => Fair<Drr, Plain>, preset [],
        "deficit round robin over a queue per flow or class",
        "on departure: the next queue; on overflow: drops from the flow with the most bytes",
        "Shreedhar and Varghese, SIGCOMM 1995";
    "wfq" ["pgps"] => Fair<Wfq, Plain>, preset [],
        "weighted fair queueing: sends packets in the order of a fluid server",
        "on departure: the smallest finish tag; on overflow: drops from the longest queue",
        "Demers, Keshav, Shenker, SIGCOMM 1989; Parekh and Gallager, IEEE/ACM ToN 1(3), 1993";
    "wf2q" ["wf2q+", "wf2q_plus"] => Fair<Wf2q, Plain>, preset [("flows", "16")],
        "worst-case fair weighted fair queueing (WF2Q+)",
        "on departure: the smallest finish tag of the packets that have started",
        "Bennett and Zhang, IEEE/ACM ToN 5(5), 1997";
    "scfq" [] => Fair<Scfq, Plain>, preset [],
        "self-clocked fair queueing",
        "on departure: the smallest finish tag, with the packet in transmission as clock",
        "Golestani, INFOCOM 1994";
    "stfq" ["start_time_fq"] => Fair<Stfq, Plain>, preset [],
        "start-time fair queueing", "on departure: the smallest start tag",
        "Goyal, Vin, Cheng, SIGCOMM 1996";
    "prio" ["priority", "strict"] => Fair<Priority, Plain>,
        preset [("flows", "3"), ("by", "class")],
        "strict priority: serves the lowest-numbered class with packets",
        "on departure: the next class", "folklore";
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
        "DRR over hashed flows, new flows first, with CoDel in each",
        "on departure: the next flow, and CoDel's drops in it",
        "RFC 8290";
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
pub fn find(name: &str) -> Result<&'static Entry> {
    let folded = name.to_lowercase().replace('-', "_");
    REGISTRY.iter().find(|e| e.name == folded || e.aliases.contains(&folded.as_str())).ok_or_else(
        || {
            let unknown = || Error::unknown("discipline", name, REGISTRY.iter().map(|e| e.name));
            Missing::find(DISCIPLINES, name).map_or_else(unknown, |missing| missing.error(name))
        },
    )
}

/// Builds the discipline called `name` with `settings` for a link of `rate`.
///
/// # Errors
/// An unknown name or parameter, an invalid value, or values that contradict each other.
pub fn build(name: &str, settings: &[(&str, Setting<'_>)], rate: Rate) -> Result<Made> {
    find(name)?.build(settings, &Env::new(rate))
}
