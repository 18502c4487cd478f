//! GRED: RED with up to 16 virtual queues in one FIFO queue, each with its own thresholds.
//!
//! **Source** Linux sch_gred; W. Almesberger, J. Hadi Salim, A. Kuznetsov, "Differentiated Services
//! on Linux", 1999, section 3.3; D. Clark, W. Fang, IEEE/ACM ToN 6(4), 1998, for `grio`.
//!
//! **Decides** on arrival, as Linux's RED.
//!
//! **Measures** the average backlog of each virtual queue, or of all together.
//!
//! **Symbols** a *virtual queue* is identified by its DP, for drop precedence; each list of
//! parameters has an entry per virtual queue in the order of `vqs`, the last one applying to all
//! further ones.
//!
//! **Algorithm** The last four bits of the class are the DP of a packet, unless `filters` state it.
//! A packet whose DP has no virtual queue belongs to the one of `default`; if that does not exist
//! either, RED does not see the packet. Virtual queues share one FIFO queue. An arrival updates
//! the average of its virtual queue by the bytes of that virtual queue, RED decides with its
//! thresholds, and the packet is dropped if its virtual queue would exceed its `limits`.
//!
//! With `grio`, RED decides by the sum of the average and the averages of all virtual queues with a
//! smaller `prio` that are not idle, so that these are protected from later ones (RIO). If two of
//! them have the same `prio`, all virtual queues share one average and their limits apply to the
//! backlog of all (WRED).
//!
//! **Departures** (1) In Linux the DP is the index that filters of tc give a packet (tc_index). (2)
//! Averages, gaps between drops and idle times are as in `red` with `variant = "linux"`.
//!
//! **Cost** 1520 bytes of state for three virtual queues; as RED, with `grio` O(n).

use crate::aqm::fits;
use crate::aqm::red::{Level, LinuxRed, RedParams};
use crate::build::{Build, Env};
use crate::cast;
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::SingleFifo;
use crate::flow_header::FlowHeader;
use crate::packet::Packet;
use crate::params::{Checked, nth};
use crate::qdisc::{Backlog, Peek, Qdisc};
use crate::sched::filter::{Filter, Filters, check_classes};
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Rate, Size, Time};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Gred>(
    "gred",
    "RED with a virtual queue per drop precedence in one FIFO queue: RIO and WRED",
)
.aliases(&["wred"])
.decides("on arrival: RED's drop probability, by the drop precedence of the packet")
.source("Linux sch_gred");

/// Number of drop precedences.
const DPS: usize = 16;
/// Largest threshold and limit: Linux has 31 bits with the digits of the average.
const BYTES_MAX: Bytes = Bytes(1 << 30);

crate::params! {
    /// Parameters of [`Gred`].
    pub struct GredParams {
        /// DP of each virtual queue.
        vqs: Vec<u64> = [0, 1, 2].into(), [0 => 15], "", ["dps"];
        /// DP of packets whose own has no virtual queue.
        default: u64 = 0, [0 => 15], "", [];
        /// True if the averages of virtual queues with a smaller prio count, too.
        grio: bool = false, [], "", [];
        /// Priority of each virtual queue with grio; the smallest comes first.
        prio: Vec<u64> = [8].into(), [1 => 255], "", [];
        /// Limit of the bytes of each virtual queue, or of all bytes if they share an average.
        limits: Vec<Bytes> = [Bytes(120_000)].into(),
            [Bytes(1) => BYTES_MAX], "", [];
        /// Average below which no packet is dropped.
        min_th: Vec<Bytes> = [Bytes(30_000), Bytes(20_000), Bytes(10_000)].into(),
            [Bytes(0) => BYTES_MAX], "min_th", ["min"];
        /// Average from which on every packet is dropped.
        max_th: Vec<Bytes> = [Bytes(90_000), Bytes(60_000), Bytes(30_000)].into(),
            [Bytes(1) => BYTES_MAX], "max_th", ["max"];
        /// Drop probability, before spreading, when the average reaches max_th.
        max_p: Vec<f64> = [0.02, 0.05, 0.1].into(), [0.0 => 1.0],
            "max_p", ["probability"];
        /// Weight of one arrival in the average, rounded to a power of 1/2.
        w_q: Vec<f64> = [0.001_953_125].into(), [1e-9 => 1.0], "w_q", [];
        /// Mean packet size, from which the decay of the averages in idle times is computed.
        packet: Vec<Bytes> = [Bytes(1000)].into(), [Bytes(1) => Bytes(65_535)], "", ["avpkt"];
        /// Rate from which that decay is computed; without a value the rate of the link.
        bandwidth: Vec<Rate> = Vec::new(), [Rate(1) => Rate(1_000_000_000_000_000)], "", [];
        /// True if ECN-capable packets are marked instead of dropped.
        ecn: Vec<bool> = [false].into(), [], "", [];
        /// True if packets above max_th are dropped even if they are ECN-capable.
        hard_drop: Vec<bool> = [false].into(), [], "", ["harddrop"];
        /// Bytes of all packets above which a packet without a virtual queue is dropped.
        unassigned_limit: Bytes = Bytes(1_514_000), [Bytes(1) => BYTES_MAX], "", [];
        /// Size of the buffer of all packets; auto: no other than the virtual queues'.
        limit: Option<Size> = None,
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", ["buffer"];
        /// Filters in order. The first one that matches a packet states its DP; the DP of other
        /// packets follows from their class.
        filters: Vec<Filter> = Vec::new(), [], "", ["filter"];
    }
}

/// A virtual queue.
#[derive(Clone, Debug, Snapshot)]
struct VirtualQueue {
    red: Box<LinuxRed>,
    prio: u64,
    limit: u64,
    /// Bytes of its packets.
    bytes: u64,
    ecn: bool,
    hard_drop: bool,
}

/// Common average of the virtual queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
enum Mode {
    /// Each has its own.
    Plain,
    /// Each has its own, and averages before it count.
    Rio,
    /// All share one.
    Wred,
}

/// The GRED discipline.
#[derive(Clone, Debug, Snapshot)]
pub struct Gred {
    fifo: SingleFifo,
    /// Index of the virtual queue of each packet in `fifo`. A mark may change what filters match.
    of_packets: VecDeque<Option<u8>>,
    queues: Vec<VirtualQueue>,
    /// Index of the virtual queue of each DP, or of the default.
    of_dp: [Option<u8>; DPS],
    mode: Mode,
    filters: Filters,
    unassigned_limit: u64,
    limit: Option<Size>,
    /// Index of the virtual queue of the last arrival.
    last: usize,
}

impl Build for Gred {
    type Params = GredParams;

    fn new(params: Checked<'_, GredParams>, env: &Env) -> Result<Self> {
        let all = (*params).clone();
        let n = all.vqs.len();
        for (name, values) in [
            ("prio", all.prio.len()),
            ("limits", all.limits.len()),
            ("min_th", all.min_th.len()),
            ("max_th", all.max_th.len()),
            ("max_p", all.max_p.len()),
            ("w_q", all.w_q.len()),
            ("packet", all.packet.len()),
            ("ecn", all.ecn.len()),
            ("hard_drop", all.hard_drop.len()),
            ("bandwidth", all.bandwidth.len().max(1)),
        ] {
            // The defaults are for three.
            if values == 0 || values > n.max(3) {
                let text = format!("{values} values for {n} virtual queues");
                return Err(Error::new(text).at(name));
            }
        }
        check_classes(&all.filters, |to| to < DPS as u64)?;
        let mut of_dp = [None; DPS];
        let mut queues = Vec::new();
        for (i, dp) in all.vqs.iter().enumerate() {
            let place = &mut of_dp[cast::index(*dp)];
            if place.is_some() {
                return Err(Error::new(format!("{dp} is given twice")).at("vqs"));
            }
            *place = u8::try_from(i).ok();
            queues.push(virtual_queue(&all, i, env)?);
        }
        let default = of_dp[cast::index(all.default)];
        let same = |i: usize, queue: &VirtualQueue| {
            queues[..i].iter().any(|other| other.prio == queue.prio)
        };
        let shared = queues.iter().enumerate().any(|(i, queue)| same(i, queue));
        Ok(Gred {
            fifo: SingleFifo::default(),
            of_packets: VecDeque::new(),
            of_dp: of_dp.map(|queue| queue.or(default)),
            mode: match (all.grio, shared) {
                (false, _) => Mode::Plain,
                (true, false) => Mode::Rio,
                (true, true) => Mode::Wred,
            },
            queues,
            filters: Filters::new(all.filters, false),
            unassigned_limit: all.unassigned_limit.0,
            limit: all.limit,
            last: 0,
        })
    }
}

/// Builds virtual queue `i`.
fn virtual_queue(all: &GredParams, i: usize, env: &Env) -> Result<VirtualQueue> {
    let bytes = |list: &[Bytes]| nth(list, i).unwrap_or_default().0;
    let (min, max) = (bytes(&all.min_th), bytes(&all.max_th));
    if min > max {
        let text = format!("{} is below min_th ({})", Bytes(max), Bytes(min));
        return Err(Error::new(text).at("max_th"));
    }
    let red = RedParams {
        max_p: nth(&all.max_p, i).unwrap_or_default(),
        w_q: nth(&all.w_q, i).unwrap_or(1.0),
        packet: nth(&all.packet, i).unwrap_or_default(),
        bandwidth: nth(&all.bandwidth, i),
        ..RedParams::default()
    };
    Ok(VirtualQueue {
        red: LinuxRed::new(&red, [min, max], env.rate)?,
        prio: nth(&all.prio, i).unwrap_or_default(),
        limit: bytes(&all.limits),
        bytes: 0,
        ecn: nth(&all.ecn, i).unwrap_or_default(),
        hard_drop: nth(&all.hard_drop, i).unwrap_or_default(),
    })
}

impl Gred {
    /// Index of the virtual queue of `packet`; None if it has none.
    fn queue_of(&self, packet: &Packet) -> Option<u8> {
        let dp = self.filters.classify(packet).unwrap_or(packet.class.into());
        self.of_dp[cast::index(dp) % DPS]
    }

    /// Bytes that virtual queue `i` counts.
    fn backlog_of(&self, i: usize) -> u64 {
        if self.mode == Mode::Wred { self.fifo.bytes().0 } else { self.queues[i].bytes }
    }

    /// Updates the average of virtual queue `i` at an arrival.
    fn average(&mut self, now: Time, i: usize) {
        let bytes = self.backlog_of(i);
        match self.mode {
            Mode::Plain => {}
            Mode::Rio => {
                let before = |queue: &&VirtualQueue| queue.prio < self.queues[i].prio;
                let states = self.queues.iter().filter(before).map(|queue| queue.red.state());
                // An idle one does not count.
                let busy = states.filter(|(_, idle_since)| idle_since.is_none());
                self.queues[i].red.others = busy.map(|(qavg, _)| qavg).sum();
            }
            Mode::Wred => {
                let state = self.queues[self.last].red.state();
                self.queues[i].red.set_state(state);
            }
        }
        self.queues[i].red.average(now, bytes);
        self.last = i;
    }

    /// Decides about `packet` of virtual queue `i`, whose average is up to date: None to accept it,
    /// true to accept and mark it, false to drop it.
    fn decide(&mut self, context: &mut Context<'_>, i: usize, packet: &Packet) -> Option<bool> {
        let VirtualQueue { red, ecn, hard_drop, .. } = &mut self.queues[i];
        let (level, signals) = red.decide(context.rng);
        let may_mark = *ecn && packet.ecn.capable();
        signals.then_some(may_mark && !(*hard_drop && level == Level::Above))
    }
}

impl Qdisc for Gred {
    fn enqueue(&mut self, context: &mut Context<'_>, mut packet: Packet) {
        context.check_arrival(&packet);
        let (packets, bytes) = (self.fifo.packets(), self.fifo.bytes().0);
        let mut has_room = self.limit.is_none_or(|limit| fits(limit, packets, bytes, &packet));
        let len = u64::from(packet.len);
        let queue = self.queue_of(&packet);
        let mut marks = false;
        if let Some(i) = queue.map(usize::from) {
            self.average(context.now, i);
            match self.decide(context, i, &packet) {
                None => {}
                Some(true) => marks = true,
                Some(false) => return context.drop(packet, DropReason::AtEnqueue),
            }
            has_room &= self.backlog_of(i) + len <= self.queues[i].limit;
        } else {
            has_room &= bytes + len <= self.unassigned_limit;
        }
        if !has_room {
            return context.drop(packet, DropReason::Full);
        }
        if marks {
            context.mark(&mut packet);
        }
        if let Some(i) = queue {
            self.queues[usize::from(i)].bytes += len;
        }
        self.of_packets.push_back(queue);
        self.fifo.push(packet);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let packet = self.fifo.pop()?;
        if let Some(i) = self.of_packets.pop_front().flatten().map(usize::from) {
            self.queues[i].bytes -= u64::from(packet.len);
            if self.backlog_of(i) == 0 {
                // The last arrival has the shared average.
                let i = if self.mode == Mode::Wred { self.last } else { i };
                self.queues[i].red.on_idle(context.now);
            }
        }
        Some(packet)
    }

    fn reads_headers(&self) -> bool {
        self.filters.reads_headers()
    }

    fn describe_flow(&mut self, flow: u32, header: &FlowHeader) {
        self.filters.describe_flow(flow, header);
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.fifo.packets(), bytes: self.fifo.bytes().0 }
    }

    fn peek(&mut self, _context: &mut Context<'_>) -> Peek {
        Peek::of(self.fifo.front())
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let Some(VirtualQueue { red, .. }) = self.queues.get(self.last) else { return };
        // Average backlog of the virtual queue of the last arrival, bytes.
        visit("avg", red.avg());
        // Drop probability of that virtual queue before spreading.
        visit("pb", red.pb());
        // Drop probability of the last arrival.
        visit("pa", red.pa());
    }

    fn state_bytes(&self) -> usize {
        let queue = size_of::<VirtualQueue>() + size_of::<LinuxRed>();
        size_of_val(self) + self.queues.len() * queue + self.filters.state_bytes()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use crate::{Rate, Setting};
    use std::prelude::v1::*;

    /// Two virtual queues that accept averages below 1000 bytes; an arrival counts one half.
    const TWO: [(&str, &str); 4] =
        [("vqs", "0 5"), ("min_th", "1000B"), ("max_th", "1001B"), ("w_q", "0.5")];

    fn bench(more: &[(&str, &str)]) -> Bench {
        Bench::new("gred", &[&TWO[..], more].concat())
    }

    /// Bodies of the dropped packets, of 1000 bytes each.
    fn dropped(q: &mut Bench, packets: &[(u16, u32)]) -> Vec<u32> {
        packets.iter().flat_map(|(class, body)| q.put_class(*class, *body, 1000)).collect()
    }

    #[test]
    fn each_virtual_queue_has_its_average() {
        let mut q = bench(&[]);
        // Averages at the arrivals: 0, 500, then 500/2 + 2000/2.
        assert_eq!(dropped(&mut q, &[(0, 1), (0, 2), (0, 3)]), [3]);
        assert_eq!((q.gauge("avg"), q.gauge("pb"), q.gauge("pa")), (1250.0, 1.0, 1.0));
        assert_eq!(dropped(&mut q, &[(5, 4), (21, 5), (5, 6)]), [6], "21 is 5 modulo 16");
        assert_eq!(dropped(&mut q, &[(3, 7)]), [7], "the default is 0");
        assert_eq!(q.drain(), [1, 2, 4, 5]);
    }

    #[test]
    fn with_grio_the_averages_of_smaller_priorities_count() {
        let mut q = bench(&[("grio", "true"), ("prio", "1 2")]);
        assert_eq!(dropped(&mut q, &[(0, 1), (0, 2), (5, 3), (0, 4)]), [4]);
        assert_eq!(dropped(&mut q, &[(5, 5)]), [5], "its own average is 500, the sum 1750");
        assert_eq!(dropped(&mut bench(&[]), &[(0, 1), (0, 2), (5, 3), (0, 4), (5, 5)]), [4]);
        q.drain();
        // The average of the first stays 1250 until its next arrival, but it is idle.
        assert_eq!(dropped(&mut q, &[(5, 6)]), [0; 0]);
    }

    #[test]
    fn with_equal_priorities_one_average_and_all_bytes_count() {
        let mut q = bench(&[("grio", "true"), ("limits", "9kB 2500B")]);
        assert_eq!(dropped(&mut q, &[(0, 1), (0, 2), (5, 3)]), [3]);
        assert_eq!(q.gauge("avg"), 1250.0);
        q.drain();
        q.at_ms(10_000);
        assert_eq!(dropped(&mut q, &[(5, 4)]), [0; 0]);
        assert_eq!(q.gauge("avg"), 0.0, "the shared average has decayed");
        let wide = [("vqs", "0 5"), ("grio", "true"), ("limits", "9kB 2500B")];
        let mut q = Bench::new("gred", &wide);
        assert_eq!(dropped(&mut q, &[(0, 1), (0, 2), (5, 3), (0, 4)]), [3], "of 5: 2500 in all");
    }

    #[test]
    fn packets_without_a_virtual_queue_pass_up_to_a_limit() {
        let mut q = bench(&[("default", "9"), ("unassigned_limit", "2500B")]);
        assert_eq!(dropped(&mut q, &[(3, 1), (9, 2), (3, 3), (5, 4), (3, 5)]), [3, 5]);
        assert_eq!((q.drain(), q.bytes()), (vec![1, 2, 4], 0));
    }

    #[test]
    fn filters_state_the_dp() {
        let mut q = bench(&[("filters", "5(dscp=AF21) 0(dscp=AF22)")]);
        assert_eq!(dropped(&mut q, &[(18, 1), (20, 2), (18, 3), (20, 4), (18, 5)]), [5]);
    }

    #[test]
    fn a_marked_packet_is_kept_unless_drops_are_hard() {
        for (hard, lost) in [("false", vec![]), ("true", vec![3])] {
            let mut q = bench(&[("ecn", "true"), ("hard_drop", hard)]);
            q.ect();
            assert_eq!(dropped(&mut q, &[(0, 1), (0, 2), (0, 3)]), lost);
            assert_eq!(q.marked(), 1 - lost.len() as u64);
        }
    }

    #[test]
    fn a_mark_does_not_change_the_virtual_queue() {
        let mut q = bench(&[("ecn", "true"), ("filters", "5(ecn=ce)")]);
        q.ect();
        assert_eq!(dropped(&mut q, &[(0, 1), (0, 2), (0, 3)]), [0; 0]);
        assert_eq!((q.marked(), q.drain()), (1, vec![1, 2, 3]));
        // Both virtual queues are empty: neither counts the marked packet.
        q.at_ms(10_000);
        assert_eq!(dropped(&mut q, &[(5, 4), (0, 5)]), [0; 0]);
        assert_eq!(q.gauge("avg"), 0.0);
    }

    #[test]
    fn parameters_that_contradict_each_other_are_refused() {
        let error = |settings: &[(&str, &str)]| {
            let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, Setting::Text(v))).collect();
            crate::build("gred", &settings, Rate(8_000_000)).map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(error(&[("vqs", "1 2 1")]), "vqs: 1 is given twice");
        assert_eq!(error(&[("min_th", "1 2")]).split(':').next(), Some("min_th"));
        let above = "max_th: 30kB is below min_th (50kB)";
        assert_eq!(error(&[("min_th", "50kB")]), above, "of the third one");
        let four = "w_q: 4 values for 3 virtual queues";
        assert_eq!(error(&[("w_q", "0.5 0.5 0.5 0.5")]), four);
        assert_eq!(error(&[("filters", "16")]), "filters.0.to: 16 is no class of packets");
    }
}
