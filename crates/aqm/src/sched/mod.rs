//! Disciplines: what a link sees, and the registry of everything that can be put on one.

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
use crate::params::{Params, Row, Setting};
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

/// What waits in a discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: u64,
}

/// A discipline: packets go in, packets come out, and some are lost on the way through
/// [`Cx::drop`]. It is work-conserving: `None` from [`Qdisc::dequeue`] means that it is empty.
pub trait Qdisc {
    /// Takes `packet`, whose time of arrival is `cx.now`.
    fn enqueue(&mut self, cx: &mut Cx<'_>, packet: Packet);
    /// Gives the next packet to send.
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;
    /// What waits.
    fn backlog(&self) -> Backlog;
    /// Whether all that becomes of a packet is settled when it arrives: lost at once or sent after
    /// all that came before it, marked at once or never. A link then knows when it will be sent.
    fn settles_on_arrival(&self) -> bool {
        false
    }
    /// Shows the internal variables for figures and replays, in SI units.
    fn gauges(&self, _see: &mut dyn FnMut(&'static str, f64)) {}
    /// The same as they are at `now`, where a law catches up with its period only when a packet
    /// comes. It catches up in a copy: looking changes nothing, not even the last bit of a sum.
    fn gauges_at(&mut self, _now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        self.gauges(see);
    }
    /// Bytes of memory that its state takes, whatever waits: packets are not counted.
    fn state(&self) -> usize {
        size_of_val(self)
    }
}

/// What a discipline is told about its link when it is built.
#[derive(Clone, Copy, Debug)]
pub struct Env {
    /// The rate of the link.
    pub rate: Rate,
    /// The buffer that the frame keeps (the law's `B`).
    pub limit: Size,
    /// Whether the frame marks what can be marked, for laws that treat marks and drops apart.
    pub ecn: bool,
    /// When the first periodic update is due; one period after the first arrival if not set. For
    /// comparison with implementations whose timers start at a time of their own.
    pub first_update: Option<Time>,
}

impl Env {
    /// A link of that rate; the rest is filled in by the frame.
    pub fn new(rate: Rate) -> Env {
        Env { rate, limit: Size::Bytes(0), ecn: false, first_update: None }
    }
}

/// A discipline that can be built from parameters.
pub trait Build: Qdisc + Sized {
    /// Its parameters.
    type Params: Params;
    /// Builds it for a link.
    ///
    /// # Errors
    /// Parameters that contradict each other or the link.
    fn build(params: &Self::Params, env: &Env) -> Result<Self>;
}

/// A discipline of the registry.
pub struct Entry {
    /// The canonical name, as Linux has it where Linux has it.
    pub name: &'static str,
    /// Other names that are accepted.
    pub aliases: &'static [&'static str],
    /// What it is, in a line.
    pub about: &'static str,
    /// What it decides, when, and by what.
    pub decides: &'static str,
    /// Where it is defined.
    pub source: &'static str,
    /// Parameters whose defaults differ from those of the type.
    preset: &'static [(&'static str, &'static str)],
    make: Make,
}

type Make = fn(&Entry, &[(&str, Setting<'_>)], &Env) -> Result<Made>;

/// A built discipline with the parameters it was built from.
pub struct Made {
    /// The discipline.
    pub qdisc: Box<dyn Qdisc + Send>,
    /// Every parameter with its value.
    pub params: Vec<Row>,
}

impl Entry {
    /// The parameters with their defaults.
    pub fn params(&self) -> Vec<Row> {
        let env = Env::new(Rate(1_000_000));
        (self.make)(self, &[], &env).map(|made| made.params).expect("defaults are valid")
    }

    /// Bytes of state of one queue at its defaults, packets not counted.
    pub fn state(&self) -> usize {
        let env = Env::new(Rate(1_000_000));
        (self.make)(self, &[], &env).map(|made| made.qdisc.state()).expect("defaults are valid")
    }

    /// Builds the discipline with `settings` for a link.
    ///
    /// # Errors
    /// An unknown parameter, a bad value, or values that contradict each other.
    pub fn build(&self, settings: &[(&str, Setting<'_>)], env: &Env) -> Result<Made> {
        (self.make)(self, settings, env)
    }
}

fn make<Q: Build + Send + 'static>(
    entry: &Entry,
    settings: &[(&str, Setting<'_>)],
    env: &Env,
) -> Result<Made> {
    let mut params = Q::Params::default();
    for (name, value) in entry.preset {
        params.set(name, Setting::Text(value)).expect("presets are valid");
    }
    for (name, value) in settings {
        params.set(name, *value)?;
    }
    Ok(Made { qdisc: Box::new(Q::build(&params, env)?), params: params.table() })
}

macro_rules! registry {
    ($(
        $name:literal $aliases:expr => $Type:ty, preset $preset:expr,
        $about:literal, $decides:literal, $source:literal;
    )*) => {
        /// Every discipline there is.
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
        "a plain queue that loses packets only when it is full",
        "on arrival, at the limit only: which packet is lost",
        "folklore; random drop: Hashem, MIT LCS/TR-465, 1989";
    "red" [] => Single<Red>, preset [],
        "random early detection on the averaged queue",
        "on arrival: a chance that grows with the average queue",
        "Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; gentle: Floyd, 2000";
    "ared" ["adaptive_red"] => Single<Tuned<Ared>>, preset [("gentle", "two_max_th")],
        "RED that adapts max_p to keep the average in the middle of its band",
        "on arrival: RED's chance; max_p moves every half second at most",
        "Floyd, Gummadi and Shenker, 2001";
    "feng_red" ["self_configuring_red", "feng_ared"] => Single<Tuned<FengRed>>, preset [],
        "RED that steps max_p when its average crosses a threshold",
        "on arrival: RED's chance; max_p moves once per crossing",
        "Feng, Kandlur, Saha and Shin, INFOCOM 1999";
    "red_opt" ["redopt"] => Single<Tuned<RedOpt>>, preset [],
        "RED configured by a model from link, round-trip time and number of flows",
        "on arrival: RED's chance, with the parameters of the model",
        "Ziegler, Brandauer and Fdida, IWQoS 2001, as far as reported";
    "sa_red" [] => Single<Tuned<SaRed>>, preset [],
        "RED tuned from the mean and the deviation of its queue",
        "on arrival: RED's chance; max_p and w_q move at the end of every window",
        "Chen, Min and Zhang, GLOBECOM 2012, as documented";
    "hred" [] => Single<Hred>, preset [],
        "maps the queue itself to a chance, and moves the map where the queue leaves its band",
        "on arrival: a chance that grows with the queue, by a map that moves",
        "Joo, Bahk and Lumetta, Journal of Communications and Networks";
    "blue" [] => Single<Blue>, preset [],
        "a chance that overflow raises and idleness lowers",
        "on arrival: a chance that knows nothing of the queue",
        "Feng, Kandlur, Saha and Shin, IEEE/ACM ToN 10(4), 2002";
    "pi" ["pic"] => Single<Pi>, preset [],
        "proportional-integral controller of the queue's length",
        "on arrival: a chance that integrates the distance of the queue from q_ref",
        "Hollot, Misra, Towsley and Gong, INFOCOM 2001";
    "api" ["adaptive_pi"] => Single<Api>, preset [],
        "PI with gains that grow with the distance from q_ref",
        "on arrival: a chance as PI's, integrated faster where the queue is far from q_ref",
        "after Huang et al., CECNet 2013";
    "rem" [] => Single<Rem>, preset [],
        "random exponential marking by a price of the link",
        "on arrival: a chance that grows with a price, which integrates queue and excess rate",
        "Athuraliya, Low, Li and Yin, IEEE Network 15(3), 2001";
    "avq" ["vq"] => Single<Avq>, preset [],
        "adaptive virtual queue: signals what a slower link would lose",
        "on arrival, without chance: whether a virtual queue of adaptive capacity has room",
        "Kunniyur and Srikant, SIGCOMM 2001";
    "codel" [] => Single<CoDel>, preset [],
        "controls the time that packets wait",
        "on departure: signals closer and closer together while every packet waits above target",
        "RFC 8289";
    "choke" [] => Single<Choke>, preset [],
        "RED that drops who meets a packet of its own flow in the queue",
        "on arrival: both packets of a flow where a random one in the queue matches, else as RED",
        "Pan, Prabhakar and Psounis, INFOCOM 2000";
    "cobalt" [] => Single<Cobalt>, preset [],
        "CoDel, with BLUE against those who do not listen",
        "on departure: as CoDel, and a drop by a chance that overflow raises",
        "Hoeiland-Joergensen, Taht and Morton, LANMAN 2018; Palmei et al., LANMAN 2019";
    "fred" [] => Single<Fred>, preset [],
        "RED with an account per flow that waits",
        "on arrival: as RED, but for flows with few packets; flows with many lose each",
        "Lin and Morris, SIGCOMM 1997";
    "sfb" [] => Single<Sfb>, preset [],
        "BLUE in hashed bins: confines the flows that do not listen",
        "on arrival: the least chance of the flow's bins, one per level",
        "Feng, Kandlur, Saha and Shin, INFOCOM 2001; Linux sch_sfb";
    "sred" [] => Single<Sred>, preset [],
        "drops by the number of active flows, which hits on a list of past packets tell",
        "on arrival: a step function of the queue, times a function of the number of flows",
        "Ott, Lakshman and Wong, INFOCOM 1999";
    "afd" [] => Single<Afd>, preset [],
        "fair shares from one queue, by a sample of past packets",
        "on arrival: a chance that leaves every flow the same share, so that the queue settles",
        "Pan, Breslau, Prabhakar and Shenker, ACM CCR 33(2), 2003";
    "af_qcn" ["afqcn"] => Single<AfQcn>, preset [],
        "QCN's feedback with a part for flows above the mean, as signals",
        "on arrival: a chance that grows with the queue, its change and the flow's share",
        "Kabbani et al., HOTI 2010; IEEE 802.1Qau";
    "pie" [] => Single<Pie>, preset [],
        "proportional-integral controller of the time that packets wait",
        "on arrival: a chance that integrates the distance of the queueing delay from target",
        "RFC 8033";
    "pi2" [] => Single<Pi2>, preset [],
        "a linear controller of the delay, its output squared for Classic TCP",
        "on arrival: a chance p'^2, or k p' for ECT(1), where p' integrates the delay",
        "De Schepper, Bondarenko, Tsang and Briscoe, CoNEXT 2016";
    "drr" [] => Fair<Drr, Plain>, preset [],
        "deficit round robin over a queue per flow or class",
        "on departure: whose turn it is; on overflow: the flow with the most bytes loses",
        "Shreedhar and Varghese, SIGCOMM 1995";
    "wfq" ["pgps"] => Fair<Wfq, Plain>, preset [],
        "weighted fair queueing: the order in which a fluid server would finish",
        "on departure: the least finish tag; on overflow: the longest queue for its weight loses",
        "Demers, Keshav, Shenker, SIGCOMM 1989; Parekh and Gallager, IEEE/ACM ToN 1(3), 1993";
    "wf2q" ["wf2q+", "wf2q_plus"] => Fair<Wf2q, Plain>, preset [("flows", "16")],
        "worst-case fair weighted fair queueing (WF2Q+)",
        "on departure: the least finish tag of those that have started",
        "Bennett and Zhang, IEEE/ACM ToN 5(5), 1997";
    "scfq" [] => Fair<Scfq, Plain>, preset [],
        "self-clocked fair queueing",
        "on departure: the least finish tag, by the clock of the packet being sent",
        "Golestani, INFOCOM 1994";
    "stfq" ["start_time_fq"] => Fair<Stfq, Plain>, preset [],
        "start-time fair queueing", "on departure: the least start tag",
        "Goyal, Vin, Cheng, SIGCOMM 1996";
    "prio" ["priority", "strict"] => Fair<Priority, Plain>,
        preset [("flows", "3"), ("by", "class")],
        "strict priority: the lowest-numbered class with packets is served",
        "on departure: whose turn it is", "folklore";
    "drr_codel" [] => Fair<Drr, CoDel>, preset [("ecn", "true")],
        "deficit round robin with CoDel in every queue",
        "on departure: whose turn it is, and CoDel's signals in that queue",
        "Shreedhar and Varghese, SIGCOMM 1995; RFC 8289";
    "wfq_codel" [] => Fair<Wfq, CoDel>, preset [("ecn", "true")],
        "weighted fair queueing with CoDel in every queue",
        "on departure: the least finish tag, and CoDel's signals in that queue",
        "Parekh and Gallager, IEEE/ACM ToN 1(3), 1993; RFC 8289";
    "wfq_red" [] => Fair<Wfq, Red>, preset [],
        "weighted fair queueing with RED in every queue",
        "on departure: the least finish tag; on arrival: RED by the average of that queue",
        "Parekh and Gallager, IEEE/ACM ToN 1(3), 1993; Floyd and Jacobson, 1993";
    "fq_red" [] => Fq<Red>, preset [("ecn", "false")],
        "DRR over hashed flows, each under RED, new flows first",
        "on departure: whose turn it is; on arrival: RED by the average of that flow",
        "RFC 8290; Floyd and Jacobson, 1993";
    "ewfq" [] => Ewfq, preset [],
        "WFQ over one shared buffer, with drops that hold large classes at their share",
        "on departure: WFQ's turn; on arrival: a chance by what the class sent of late",
        "Lu, Voelker and Snoeren, INFOCOM 2012";
    "sfq" [] => Sfq, preset [],
        "round robin over hashed queues, drops from the longest",
        "on departure: whose turn it is; on overflow: the longest queue loses",
        "McKenney, INFOCOM 1990";
    "fq_codel" ["fqcodel"] => Fq<CoDel>, preset [("ecn", "true")],
        "DRR over hashed flows, each under CoDel, new flows first",
        "on departure: whose turn it is, and CoDel's signals in that flow",
        "RFC 8290";
    "fq_pie" ["fqpie"] => Fq<Pie>, preset [("ecn", "true")],
        "DRR over hashed flows, each under PIE, new flows first",
        "on departure: whose turn it is; on arrival: PIE's chance in that flow",
        "RFC 8033 in the flows of RFC 8290";
}

/// The entry called `name`, by canonical name or alias, dashes and case aside.
///
/// # Errors
/// An unknown name, with the nearest; a missing one, with what to use instead.
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
/// An unknown name or parameter, a bad value, or values that contradict each other.
pub fn build(name: &str, settings: &[(&str, Setting<'_>)], rate: Rate) -> Result<Made> {
    find(name)?.build(settings, &Env::new(rate))
}
