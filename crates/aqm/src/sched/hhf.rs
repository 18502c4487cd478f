//! HHF: the heavy-hitter filter, which delays large flows in favour of all others.
//!
//! **Source** Linux sch_hhf; C. Estan, G. Varghese, "New Directions in Traffic Measurement and
//! Accounting", ACM TOCS 21(3), 2003.
//!
//! **Decides** on arrival: the bucket of the packet; on departure: the next bucket.
//!
//! **Measures** bytes per flow, by a filter of 4 x 1024 counters.
//!
//! **Algorithm** The flow hash gives a place in each of four arrays of counters. A packet that
//! would raise all four above `admit_bytes` makes its flow a *heavy hitter*: it is entered in a
//! table, and leaves it when it was not seen for `evict_timeout`. Any other packet raises its
//! smallest counters only (conservative update). The counters are cleared every `reset_timeout`;
//! with the defaults flows above 26 Mbit/s are heavy. The table holds `hh_limit` flows.
//!
//! Heavy hitters share one bucket and all other flows the other; each is a FIFO queue. The buckets
//! are served by deficit round robin as in FQ-CoDel: the bucket of the others goes first when it
//! becomes busy, and has `non_hh_weight` times the quantum. A full buffer drops the oldest packet
//! of the heavy hitters, or of the others if they have none.
//!
//! **Departures** (1) The owner salts the hash. (2) Times are exact; in Linux they are in ticks of
//! the kernel. (3) `limit` may be in bytes. (4) A flow that is no heavy hitter any more leaves the
//! table at once; in Linux it keeps its place until another flow needs it.
//!
//! **Cost** 65840 bytes of state; O(h) per packet for h heavy hitters.

use crate::build::{Build, Env};
use crate::cast;
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::{Fifo, Pool};
use crate::packet::Packet;
use crate::params::Checked;
use crate::qdisc::{Backlog, Qdisc};
use crate::sched::drr::idle_rounds;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Size, Span, Time};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry =
    QdiscEntry::new::<Hhf>("hhf", "a filter that delays large flows in favour of all others")
        .decides("on arrival: the bucket of the packet; on departure: the next bucket")
        .source("Linux sch_hhf; Estan and Varghese, ACM TOCS 21(3), 2003");

/// Number of arrays, and of counters in each.
const ARRAYS: usize = 4;
const COUNTERS: usize = 1024;

/// Bucket of the heavy hitters, and of all other flows.
const HEAVY: usize = 0;
const OTHERS: usize = 1;

crate::params! {
    /// Parameters of [`Hhf`].
    pub struct HhfParams {
        /// Size of the buffer, in packets or bytes.
        limit: Size = Size::Packets(1000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", ["buffer"];
        /// Bytes of the heavy hitters per round.
        quantum: Bytes = Bytes(1514), [Bytes(1) => Bytes(1_000_000_000)], "", [];
        /// Largest number of heavy hitters in the table.
        hh_limit: u64 = 2048, [1 => 1_048_576], "", [];
        /// Time between two clearings of the counters.
        reset_timeout: Span = Span::ms(40), [Span::us(1) => Span::s(1000)], "", [];
        /// Bytes per reset_timeout above which a flow is a heavy hitter.
        admit_bytes: Bytes = Bytes(131_072), [Bytes(0) => Bytes(1_000_000_000_000)], "", [];
        /// Time without a packet after which a flow is no heavy hitter any more.
        evict_timeout: Span = Span::s(1), [Span::us(1) => Span::s(1000)], "", [];
        /// Bytes of the other flows per round, in units of quantum.
        non_hh_weight: u64 = 2, [1 => 1_000_000], "", [];
    }
}

#[derive(Clone, Copy, Debug, Snapshot)]
struct HeavyHitter {
    hash: u32,
    seen: Time,
}

#[derive(Clone, Debug, Default, Snapshot)]
struct Bucket {
    fifo: Fifo,
    deficit: i64,
    /// True if the bucket is in a list.
    listed: bool,
}

/// The HHF discipline.
#[derive(Clone, Debug, Snapshot)]
pub struct Hhf {
    params: HhfParams,
    counters: Box<[u64]>,
    cleared: Option<Time>,
    heavy: Vec<HeavyHitter>,
    buckets: [Bucket; 2],
    /// True if the bucket of the others has not used its first credit.
    others_new: bool,
    /// Order of the old buckets, the next one first.
    old: [Option<usize>; 2],
    pool: Pool,
    backlog: Backlog,
}

impl Build for Hhf {
    type Params = HhfParams;

    fn new(params: Checked<'_, HhfParams>, _env: &Env) -> Result<Self> {
        Ok(Hhf {
            params: (*params).clone(),
            counters: vec![0; ARRAYS * COUNTERS].into(),
            cleared: None,
            heavy: Vec::with_capacity(cast::index(params.hh_limit.min(4096))),
            buckets: [Bucket::default(), Bucket::default()],
            others_new: false,
            old: [None; 2],
            pool: Pool::default(),
            backlog: Backlog::default(),
        })
    }
}

/// Returns the places of a flow in the arrays: three times ten bits of the hash, and their sum.
fn places(hash: u32) -> [usize; ARRAYS] {
    let part = |i: u32| (hash >> (10 * i)) & 1023;
    let last = part(0) ^ part(1) ^ part(2) ^ (hash >> 30);
    let place = |i: usize, part: u32| i * COUNTERS + part as usize;
    [place(0, part(0)), place(1, part(1)), place(2, part(2)), place(3, last)]
}

impl Hhf {
    /// Returns the bucket of `packet`, and counts it.
    fn classify(&mut self, now: Time, packet: &Packet) -> usize {
        let HhfParams { reset_timeout, evict_timeout, admit_bytes, hh_limit, .. } = self.params;
        // They are empty before the first packet.
        if now > *self.cleared.get_or_insert(now) + reset_timeout {
            self.counters.fill(0);
            self.cleared = Some(now);
        }
        self.heavy.retain(|flow| now <= flow.seen + evict_timeout);
        if let Some(flow) = self.heavy.iter_mut().find(|flow| flow.hash == packet.hash) {
            flow.seen = now;
            return HEAVY;
        }
        let places = places(packet.hash);
        let least = places.iter().map(|place| self.counters[*place]).min().unwrap_or(0);
        let raised = least + u64::from(packet.len);
        if raised > admit_bytes.0 {
            if self.heavy.len() as u64 >= hh_limit {
                return OTHERS;
            }
            // Its counters stay as they are, so that flows that share them are not taken for it.
            self.heavy.push(HeavyHitter { hash: packet.hash, seen: now });
            return HEAVY;
        }
        for place in places {
            self.counters[place] = self.counters[place].max(raised);
        }
        OTHERS
    }

    /// Bytes of bucket `i` per round.
    fn quantum(&self, i: usize) -> i64 {
        let HhfParams { quantum, non_hh_weight, .. } = &self.params;
        let weight = if i == HEAVY { 1 } else { *non_hh_weight };
        quantum.0.saturating_mul(weight).min(i64::MAX as u64 >> 1).cast_signed()
    }

    /// Appends bucket `i` to the old ones.
    fn append_old(&mut self, i: usize) {
        let end = usize::from(self.old[0].is_some());
        self.old[end] = Some(i);
    }

    /// Removes the first of the old buckets.
    fn remove_old(&mut self) {
        self.old = [self.old[1], None];
    }

    fn shed(&mut self, context: &mut Context<'_>) {
        let i = if self.buckets[HEAVY].fifo.is_empty() { OTHERS } else { HEAVY };
        if let Some(packet) = self.pop(i) {
            context.drop(packet, DropReason::Full);
        }
    }

    fn pop(&mut self, i: usize) -> Option<Packet> {
        let packet = self.buckets[i].fifo.pop(&mut self.pool)?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.len);
        Some(packet)
    }
}

impl Qdisc for Hhf {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.enqueue_behind(context, packet, Backlog::default());
    }

    fn enqueue_behind(&mut self, context: &mut Context<'_>, packet: Packet, ahead: Backlog) {
        context.check_arrival(&packet);
        if !self.params.limit.holds(1, u64::from(packet.len)) {
            return context.drop(packet, DropReason::Full);
        }
        let i = self.classify(context.now, &packet);
        let quantum = self.quantum(i);
        let bucket = &mut self.buckets[i];
        bucket.fifo.push(&mut self.pool, packet);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.len);
        if !bucket.listed {
            (bucket.listed, bucket.deficit) = (true, quantum);
            if i == HEAVY {
                self.append_old(HEAVY);
            } else {
                self.others_new = true;
            }
        }
        while !(self.backlog + ahead).is_within(self.params.limit) {
            self.shed(context);
        }
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        loop {
            let i = if self.others_new { OTHERS } else { self.old[0]? };
            if self.buckets[i].deficit <= 0 {
                self.skip_rounds();
                self.buckets[i].deficit += self.quantum(i);
            } else if let Some(packet) = self.pop(i) {
                self.buckets[i].deficit -= i64::from(packet.len);
                return Some(packet);
            } else if !self.others_new || self.old[0].is_none() {
                // It leaves, but for a pass through the old ones if it was new.
                self.buckets[i].listed = false;
                if core::mem::take(&mut self.others_new) {
                    continue;
                }
                self.remove_old();
                continue;
            }
            if core::mem::take(&mut self.others_new) {
                self.append_old(OTHERS);
            } else {
                self.remove_old();
                self.append_old(i);
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Heavy hitters in the table.
        visit("heavy_hitters", self.heavy.len() as f64);
        // Packets of heavy hitters.
        visit("heavy_packets", f64::from(self.buckets[HEAVY].fifo.packets()));
    }

    fn state_bytes(&self) -> usize {
        let table = cast::index(self.params.hh_limit) * size_of::<HeavyHitter>();
        size_of_val(self) + size_of_val(&*self.counters) + table
    }
}

impl Hhf {
    /// Credits at once the rounds in which neither bucket can send, if a packet is much larger than
    /// a quantum.
    fn skip_rounds(&mut self) {
        let short = |i: usize| {
            let missing = (1 - self.buckets[i].deficit).max(0).cast_unsigned();
            (missing, self.quantum(i).cast_unsigned())
        };
        let listed = [HEAVY, OTHERS].into_iter().filter(|i| self.buckets[*i].listed);
        let rounds = idle_rounds(listed.map(short)).cast_signed();
        for i in [HEAVY, OTHERS] {
            if self.buckets[i].listed {
                self.buckets[i].deficit += rounds * self.quantum(i);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;
    use crate::testing::Bench;
    use std::prelude::v1::*;

    const SMALL: [(&str, &str); 2] = [("admit_bytes", "3000B"), ("quantum", "1000B")];

    #[test]
    fn a_flow_above_the_threshold_is_heavy_until_it_pauses() {
        let mut q = Bench::new("hhf", &SMALL);
        // Three packets fit under 3000 bytes; the fourth makes the flow heavy.
        (0..3).for_each(|body| drop(q.put_flow(7, body, 1000)));
        assert_eq!(q.gauge("heavy_hitters"), 0.0);
        q.put_flow(7, 3, 1000);
        assert_eq!([q.gauge("heavy_hitters"), q.gauge("heavy_packets")], [1.0, 1.0]);
        q.at_ms(1000);
        q.put_flow(7, 4, 1000);
        assert_eq!(q.gauge("heavy_packets"), 2.0, "within a second");
        q.at_ms(2001);
        q.put_flow(7, 5, 1000);
        assert_eq!([q.gauge("heavy_hitters"), q.gauge("heavy_packets")], [0.0, 2.0]);
    }

    #[test]
    fn the_counters_are_cleared() {
        let mut q = Bench::new("hhf", &SMALL);
        for k in 0..20 {
            q.at_ms(41 * k); // three packets per 40 ms
            (0..3).for_each(|body| drop(q.put_flow(7, body, 1000)));
        }
        assert_eq!(q.gauge("heavy_hitters"), 0.0);
    }

    #[test]
    fn others_go_first_and_have_twice_the_bytes() {
        let mut q = Bench::new("hhf", &[("admit_bytes", "0B"), ("quantum", "1000B")]);
        q.put_flow(1, 1, 1000); // heavy: no byte is admitted
        assert_eq!((q.gauge("heavy_packets"), q.backlog(), q.bytes()), (1.0, 1, 1000));
        assert_eq!((q.drain(), q.backlog(), q.bytes()), (vec![1], 0, 0), "there are no others");
        let mut q = Bench::new("hhf", &SMALL);
        (0..9).for_each(|body| drop(q.put_flow(7, body, 1000))); // 0 to 2 are with the others
        assert_eq!([q.get().0, q.get().0, q.get().0], [0, 1, 3].map(Some), "a round: two and one");
        [20, 21].into_iter().for_each(|flow| drop(q.put_flow(flow, flow, 1000)));
        assert_eq!(q.drain(), [2, 20, 4, 21, 5, 6, 7, 8]);
        q.put_flow(7, 30, 1000);
        q.put_flow(22, 31, 1000);
        assert_eq!(q.drain(), [31, 30], "new others have priority");
    }

    #[test]
    fn a_place_in_each_array_is_ten_bits_of_the_hash_or_their_sum() {
        let hash = 3 << 30 | 7 << 20 | 5 << 10 | 9;
        let sum = 3 ^ 7 ^ 5 ^ 9;
        assert_eq!(places(hash), [9, 1024 + 5, 2 * 1024 + 7, 3 * 1024 + sum]);
    }

    #[test]
    fn the_counters_hold_for_the_whole_of_reset_timeout() {
        for (ms, heavy) in [(40, 1.0), (41, 0.0)] {
            let mut q = Bench::new("hhf", &SMALL);
            (0..3).for_each(|body| drop(q.put_flow(7, body, 1000)));
            q.at_ms(ms);
            q.put_flow(7, 3, 1000);
            assert_eq!(q.gauge("heavy_hitters"), heavy, "{ms} ms");
        }
    }

    #[test]
    fn packets_much_larger_than_a_quantum_are_shared_by_weight() {
        let mut q = Bench::new("hhf", &[("admit_bytes", "20kB"), ("quantum", "10B")]);
        // Flow 7 is heavy from its 21st packet on; flows 20 to 39 have one packet each.
        (0..40).for_each(|_| drop(q.put_flow(7, 7, 1000)));
        assert_eq!(q.drain().len(), 40);
        (0..20).for_each(|_| drop(q.put_flow(7, 7, 1000)));
        (20..40).for_each(|flow| drop(q.put_flow(flow, flow, 1000)));
        let heavy = (0..18).filter(|_| q.get().0 == Some(7)).count();
        assert_eq!(heavy, 6, "a third");
    }

    #[test]
    fn heavy_hitters_lose_their_oldest_packet() {
        let settings = [("limit", "5p"), ("admit_bytes", "3000B")];
        let mut q = Bench::new("hhf", &settings);
        (0..5).for_each(|body| drop(q.put_flow(7, body, 1000)));
        assert_eq!(q.put_flow(8, 9, 1000), [3], "the first of the heavy hitter");
        assert_eq!(q.put_flow(8, 10, 1000), [4]);
        assert_eq!(q.put_flow(8, 11, 1000), [0], "there is none left");
    }

    #[test]
    fn a_full_table_admits_no_further_flow() {
        let mut q = Bench::new("hhf", &[("admit_bytes", "0B"), ("hh_limit", "1")]);
        (1..4).for_each(|flow| drop(q.put_flow(flow, flow, 1000)));
        assert_eq!([q.gauge("heavy_hitters"), q.gauge("heavy_packets")], [1.0, 1.0]);
    }

    #[test]
    fn skipped_rounds_leave_the_one_that_lets_a_listed_bucket_send() {
        let params = HhfParams { quantum: Bytes(1000), ..HhfParams::default() };
        let env = Env::new(crate::units::Rate(8_000_000));
        let mut hhf = Hhf::new(params.checked().unwrap(), &env).unwrap();
        let mut after = |listed: [bool; 2], deficits: [i64; 2]| {
            for i in [HEAVY, OTHERS] {
                (hhf.buckets[i].listed, hhf.buckets[i].deficit) = (listed[i], deficits[i]);
            }
            hhf.skip_rounds();
            [HEAVY, OTHERS].map(|i| hhf.buckets[i].deficit)
        };
        // Ten rounds of 1000 and of 2000 bytes; one more lets the heavy hitters send.
        assert_eq!(after([true; 2], [-10_000, -30_000]), [0, -10_000]);
        assert_eq!(after([true; 2], [-10_000, 1]), [-10_000, 1], "the others can send");
        assert_eq!(after([false, true], [-1000, -30_000]), [-1000, 0], "the others alone");
    }
}
