//! Test bench for the unit tests of the disciplines: a discipline driven by hand.

use crate::aqm::{Aqm, Verdict};
use crate::build::Env;
use crate::context::{Context, DropReason, Dropped, Marks};
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::{Ecn, Packet};
use crate::params::{Checked, Nothing, Setting};
use crate::qdisc::Qdisc;
use crate::registry::find;
use crate::snapshot::Snapshot;
use crate::units::{Rate, Time};
use rand_core::SeedableRng;
use std::boxed::Box;
use std::vec::Vec;

pub struct Bench {
    qdisc: Box<dyn Qdisc + Send>,
    rng: rand_pcg::Pcg64Mcg,
    now: Time,
    ecn: Ecn,
    marks: Marks,
}

impl Bench {
    /// Creates the discipline `name` on a link of 8 mbit, where a packet of 1000 bytes takes 1 ms.
    pub fn new(name: &str, settings: &[(&str, &str)]) -> Bench {
        Bench::seeded(name, settings, 1)
    }

    pub fn seeded(name: &str, settings: &[(&str, &str)], seed: u64) -> Bench {
        let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, Setting::Text(v))).collect();
        let built = find(name).unwrap().build(&settings, &Env::new(Rate(8_000_000))).unwrap();
        let rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
        Bench {
            qdisc: built.qdisc,
            rng,
            now: Time::ZERO,
            ecn: Ecn::NotEct,
            marks: Marks::default(),
        }
    }

    pub fn at_ms(&mut self, ms: u64) {
        self.now = Time(ms * 1_000_000);
    }

    pub fn at_ns(&mut self, ns: u64) {
        self.now = Time(ns);
    }

    /// Changes the parameters to `settings` of the discipline `name`, if that is possible.
    pub fn reconfigure(&mut self, name: &str, settings: &[(&str, &str)]) -> bool {
        let fresh = Bench::new(name, settings).qdisc;
        self.qdisc.reconfigure(fresh)
    }

    /// Makes all further packets ECN-capable.
    pub fn ect(&mut self) {
        self.ecn(Ecn::Ect0);
    }

    /// Sets the ECN field of all further packets.
    pub fn ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    fn with<T>(&mut self, f: impl FnOnce(&mut dyn Qdisc, &mut Context<'_>) -> T) -> (T, Vec<u32>) {
        let mut dropped: Vec<Dropped> = Vec::new();
        let (rng, marks) = (&mut self.rng, &mut self.marks);
        let mut context = Context { now: self.now, rng, dropped: &mut dropped, marks };
        let out = f(&mut *self.qdisc, &mut context);
        (out, dropped.iter().map(|l| l.packet.body).collect())
    }

    /// Enqueues a packet of flow 0; returns the bodies of the dropped packets.
    pub fn put(&mut self, body: u32, len: u32) -> Vec<u32> {
        self.put_flow(0, body, len)
    }

    pub fn put_class(&mut self, class: u16, body: u32, len: u32) -> Vec<u32> {
        self.put_class_flow(class, 0, body, len)
    }

    pub fn put_class_flow(&mut self, class: u16, flow: u32, body: u32, len: u32) -> Vec<u32> {
        let (arrived, ecn) = (self.now, self.ecn);
        let packet =
            Packet { arrived, len, flow, hash: flow, class, body, ecn, ..Packet::default() };
        self.with(|q, context| q.enqueue(context, packet)).1
    }

    /// Enqueues a packet of 1000 bytes that is due `us` microseconds from now.
    pub fn put_due(&mut self, flow: u32, body: u32, us: u32) -> Vec<u32> {
        let packet =
            Packet { arrived: self.now, len: 1000, flow, hash: flow, body, ..Packet::default() };
        let packet = packet.with_departure(self.now + crate::units::Span::us(us.into()));
        self.with(|q, context| q.enqueue(context, packet)).1
    }

    pub fn put_flow(&mut self, flow: u32, body: u32, len: u32) -> Vec<u32> {
        let (arrived, ecn) = (self.now, self.ecn);
        let packet = Packet { arrived, len, flow, hash: flow, body, ecn, ..Packet::default() };
        self.with(|q, context| q.enqueue(context, packet)).1
    }

    /// Dequeues the next packet; returns its body and the bodies of the packets dropped on the way.
    pub fn get(&mut self) -> (Option<u32>, Vec<u32>) {
        let (packet, dropped) = self.with(|q, context| q.dequeue(context));
        (packet.map(|p| p.body), dropped)
    }

    pub fn drain(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.get().0).collect()
    }

    /// Number of queued packets.
    pub fn backlog(&self) -> u32 {
        self.qdisc.backlog().packets
    }

    /// Number of queued bytes.
    pub fn bytes(&self) -> u64 {
        self.qdisc.backlog().bytes
    }

    /// Time in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now.0
    }

    /// Time at which a shaper may release a packet.
    pub fn ready_at(&self) -> Option<Time> {
        self.qdisc.ready_at()
    }

    pub fn marked(&self) -> u64 {
        self.marks.packets
    }

    pub fn gauge(&self, name: &str) -> f64 {
        let mut value = None;
        self.qdisc.inspect(&mut |n, v| value = if n == name { Some(v) } else { value });
        value.unwrap_or_else(|| panic!("no gauge {name}"))
    }
}

/// AQM that drops packets with body 0 at dequeue, and the head of the queue when body 9 arrives.
#[derive(Clone, Default, Snapshot)]
pub struct DropsZero {
    /// Times at which it was started.
    pub started: Vec<Time>,
}

impl Aqm for DropsZero {
    type Params = Nothing;
    fn new(_: Checked<'_, Nothing>, _: &Env) -> Result<Self> {
        Ok(DropsZero::default())
    }

    fn on_first_packet(&mut self, now: Time) {
        self.started.push(now);
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        if packet.body == 9
            && let Some(head) = queue.pop()
        {
            context.drop(head, DropReason::AtEnqueue);
        }
        Verdict::Pass
    }

    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _ecn: bool,
    ) -> Option<Packet> {
        loop {
            match queue.pop()? {
                zero if zero.body == 0 => context.drop(zero, DropReason::AfterEnqueue),
                packet => return Some(packet),
            }
        }
    }
}
