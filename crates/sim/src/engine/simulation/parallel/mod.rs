//! Simulation on several threads, with the results of one thread in every byte.
//!
//! Links and endpoints are divided into parts, one per thread ([`layout`]). A part is a
//! [`Simulation`] with its own links and endpoints, and nothing in place of the others
//! ([`division`]). All parts simulate the same window of time, then meet, exchange messages and
//! agree on the next window ([`part`], [`meeting`], [`exchange`]). A window is as long as the
//! shortest delay between two parts, so that nothing sent in it arrives in it.
//!
//! At every interruption (change, sample, end of a step) the parts become one simulation again.
//!
//! Two things can go wrong, both rare: a sender opens a connection, and its receiver, in another
//! part, has acted on the previous connection later than that in the same window; or flows are
//! created in two parts at one time, and one thread would first process an event of a flow that
//! both parts have. Either is noticed, and the span is then repeated on one thread, from a copy.

mod division;
mod exchange;
mod graph;
mod layout;
mod meeting;
mod part;
#[cfg(test)]
mod tests;

pub(super) use exchange::Exchange;

use super::{Progress, Simulation};
use layout::Layout;
use meeting::MeetingPlace;
use part::PartResult;
use sojourn_aqm::Link;
use sojourn_aqm::units::{Span, Time};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{available_parallelism, scope};

/// Number of threads that simulate a scenario. Results are the same for every number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Threads {
    /// One.
    #[default]
    One,
    /// As many as the machine can run at once, if the scenario has enough work for them between two
    /// meetings; otherwise one.
    Auto,
    /// This many, or fewer if the scenario cannot be divided into as many parts.
    Exactly(NonZero<usize>),
}

/// Number of spans of a run that are simulated between copies. Each span that must be repeated
/// makes it greater by this factor, up to the greatest number.
const SPANS: u64 = 2;
const MORE_SPANS: u64 = 4;
const SPANS_MAX: u64 = 128;
/// Number of spans in which [`Threads::Auto`] counts packets: the first one, and spans on one
/// thread.
const LOOKS: u64 = 32;
/// Size of a full packet, bits.
const FULL_PACKET_BITS: f64 = 12_000.0;
/// Least number of packets per window and part for [`Threads::Auto`].
const PACKETS_PER_WINDOW: usize = 30;
/// Costs of dividing and uniting, in units of a packet: per link, and per flow.
const PACKETS_PER_LINK: usize = 50;
const PACKETS_PER_FLOW: usize = 5;
/// Least number of packets in a span for [`Threads::Auto`], in multiples of these costs.
const SPAN_PER_COSTS: usize = 3;

impl Simulation {
    /// Sets the number of threads of the steps from now on.
    pub fn set_threads(&mut self, threads: Threads) {
        self.threads = threads;
    }

    /// Number of parts, each on a thread of its own, in which the simulation continues.
    pub fn parts(&mut self) -> usize {
        self.layout(self.end()).map_or(1, |layout| layout.parts)
    }

    /// Simulates everything before `until`, at most the next interruption, on several threads if
    /// there is a division. Returns false if stopped by `progress`, with [`Simulation::now`] at the
    /// time that was reached.
    pub(super) fn run_on_threads(
        &mut self,
        until: Time,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> bool {
        if cfg!(target_family = "wasm") {
            return self.run_events(until, progress); // there are no threads
        }
        let length = self.end() - Time::ZERO;
        while self.now < until {
            let first = self.now == Time::ZERO && self.threads == Threads::Auto;
            let spans = SPANS.saturating_mul(MORE_SPANS.saturating_pow(self.repeated_spans));
            let span = |spans: u64| Span((length.0 / spans).max(1000));
            let end = until.min(self.now + span(if first { LOOKS } else { spans.min(SPANS_MAX) }));
            let (from, packets) = (self.now, self.packets());
            let (goes_on, reached) = match self.layout(end) {
                Some(layout) => (self.run_span(end, &Arc::new(layout), progress), end),
                None if self.threads == Threads::Auto => {
                    let end = end.min(self.now + span(LOOKS));
                    (self.run_events(end, progress), end)
                }
                None => return self.run_events(until, progress),
            };
            if !goes_on {
                return false;
            }
            self.now = reached;
            self.packet_rate = Some((self.packets() - packets) as f64 / (reached - from).0 as f64);
        }
        true
    }

    /// Division for the events up to `until`; `None` if one thread is to simulate them.
    fn layout(&mut self, until: Time) -> Option<Layout> {
        let threads = match self.threads {
            Threads::One => 1,
            Threads::Exactly(threads) => threads.get(),
            Threads::Auto => available_parallelism().map_or(1, NonZero::get),
        };
        // A flow that a part creates would have to be described to the links of all parts, parts
        // would have to agree on the numbers of new paths, and telemetry would have to move with
        // its packets.
        let one = self.routing.is_some() || self.telemetry.is_some();
        if one || threads < 2 || self.links.len() < 2 || self.links.iter().any(Link::reads_headers)
        {
            return None;
        }
        let links = self.links.iter().enumerate();
        let delays: Vec<Span> = links.map(|(l, link)| self.delay_between_parts(l, link)).collect();
        let longest = delays.iter().copied().max().unwrap_or_default();
        let auto = self.threads == Threads::Auto;
        if auto && !self.may_pay(longest, 2, until) {
            return None;
        }
        let packets: Vec<u64> =
            self.links.iter_mut().map(|link| link.stats().departed_packets).collect();
        let layout = Layout::of(&self.scenario, &self.routes, &delays, &packets, threads)?;
        let pays = !auto || self.may_pay(layout.lookahead, layout.parts, until);
        pays.then_some(layout)
    }

    /// True if several threads are expected to be faster than one: there are enough packets between
    /// two meetings, and enough before `until` to pay for dividing and uniting. In the first span,
    /// their number is the one that all links can send.
    fn may_pay(&self, lookahead: Span, parts: usize, until: Time) -> bool {
        let most = |link: &Link| link.spec().rate.0 as f64 / FULL_PACKET_BITS / 1e9;
        let per_ns = self.packet_rate.unwrap_or_else(|| self.links.iter().map(most).sum());
        let costs = PACKETS_PER_LINK * self.links.len() + PACKETS_PER_FLOW * self.flows.len();
        let span = if self.packet_rate.is_some() { until } else { self.end() } - self.now;
        per_ns * lookahead.0 as f64 >= (PACKETS_PER_WINDOW * parts) as f64
            && per_ns * span.0 as f64 >= (SPAN_PER_COSTS * costs) as f64
    }

    /// Simulates up to `end` in parts; returns false if stopped by `progress`.
    fn run_span(
        &mut self,
        end: Time,
        layout: &Arc<Layout>,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> bool {
        let copy = layout.may_fail.then(|| self.clone());
        let mut parts = self.divide(layout);
        let place = MeetingPlace::new(layout.parts);
        let (length, before, others) = (self.end().0, self.departed_in_warmup, AtomicU64::new(0));
        let mut watch = |part: &mut Simulation, now: Time| {
            let packets = before + part.departed_packets() + others.load(Ordering::Relaxed);
            progress(Progress { share: now.0 as f64 / length as f64, packets })
        };
        let (first, rest) = parts.all.split_first_mut().expect("there are parts");
        let work = scope(|threads| {
            for part in rest {
                let (place, others) = (&place, &others);
                let mut known = 0;
                let mut count = move |part: &mut Simulation, _: Time| {
                    let departed = part.departed_packets();
                    others.fetch_add(departed - known, Ordering::Relaxed);
                    known = departed;
                    true
                };
                threads.spawn(move || part.run_part(place, end, &mut count));
            }
            first.run_part(&place, end, &mut watch)
        });
        let conflict = parts.all.iter().any(|part| part.exchange().conflict);
        if conflict || work.result == PartResult::Inexact {
            let repeated_spans = self.repeated_spans + 1;
            *self = Simulation { repeated_spans, ..copy.expect("only parts that may fail do") };
            return self.run_events(end, progress);
        }
        self.unite(parts, work.reached);
        self.work = work.since_call;
        work.result == PartResult::Complete
    }
}
