//! QFQ+: quick fair queueing, worst-case fair shares by weight at a cost that does not grow.
//!
//! **Source** F. Checconi, L. Rizzo, P. Valente, "QFQ: Efficient Packet Scheduling with Tight
//! Guarantees", IEEE/ACM ToN 21(3), 2013; P. Valente, "Reducing the Execution Time of Fair-Queueing
//! Packet Schedulers", Computer Communications 47, 2014; Linux sch_qfq.
//!
//! **Decides** on departure: the next queue.
//!
//! **Measures** the bytes of each queue.
//!
//! **Symbols** `weights` are φ, `maxpkt` is L, `aggregate` is M; `V`, `S`, `F`.
//!
//! **Algorithm** Queues of equal weight and `maxpkt` form aggregates of up to `aggregate` queues.
//! An aggregate in service sends up to n L bytes, where n is its number of queues, by deficit round
//! robin with the quantum L. It is then charged the bytes that it sent: its start time S is its old
//! finish time, and its new finish time F = S + n L / (n φ).
//!
//! Aggregates wait in groups by the power of two above L / φ. A group sorts its aggregates by start
//! time in slots of that length, and its own start and finish times are rounded to slots. So few
//! bits say which groups have started (S <= V) and are not blocked by a group with more length and
//! an earlier finish time. The first of these sends. V grows by the bytes sent over the sum of all
//! weights.
//!
//! A packet longer than the `maxpkt` of its queue moves the queue to an aggregate of that length.
//! With `aggregate = 1`, each queue is scheduled by its times alone, as in QFQ.
//!
//! **Departures** (1) Classes have numbers in place of handles, and are created in that order. (2)
//! Packets above 65536 bytes, which Linux drops, are sent and charged up to the budget of their
//! aggregate. (3) `aggregate` is a parameter; Linux takes 8, or 2 or 4 on a device whose
//! `txqueuelen` is below 7.
//!
//! **Linux** `sch_qfq` of Linux 6.1 decides the same, packet by packet, so that there is no
//! variant.
//!
//! **Cost** 6104 bytes of state for 16 queues; O(1) per packet. With 100 queues of 60 different
//! weights a packet takes 43 ns on one core, with `drr` 26 ns.

mod groups;

use crate::build::Env;
use crate::cast;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::params::{Checked, nth};
use crate::sched::classful::Classful;
use crate::sched::scheduler::{DropPosition, Item, Scheduler};
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Time};
use alloc::format;
use alloc::vec::Vec;
use groups::{Groups, ONE};

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Classful<Qfq>>(
    "qfq",
    "quick fair queueing (QFQ+): worst-case fair shares by weight at a constant cost",
)
.aliases(&["qfq+", "qfq_plus"])
.preset(&[("flows", "16")])
.decides("on departure: the next queue")
.source("Checconi, Rizzo and Valente, IEEE/ACM ToN 21(3), 2013; Linux sch_qfq");

/// Largest weight of a queue.
const WEIGHT_MAX: u32 = 1024;
/// Largest sum of the weights.
const SUM_MAX: u32 = 64 * WEIGHT_MAX;
/// Most queues of an aggregate.
const AGGREGATE_MAX: usize = 8;
/// Largest `maxpkt`.
const MAXPKT_MAX: u32 = 65_536;

crate::params! {
    /// Parameters of [`Qfq`].
    pub struct QfqParams {
        /// Largest packet of the queues in order; the last one applies to all further queues.
        maxpkt: Vec<Bytes> = [Bytes(1514)].into(),
            [Bytes(512) => Bytes(MAXPKT_MAX as u64)], "L_i", ["lmax"];
        /// Most queues of an aggregate; rounded down to a power of two.
        aggregate: u64 = 8, [1 => AGGREGATE_MAX as u64], "M", [];
    }
}

/// A queue, which is a class of Linux.
#[derive(Clone, Debug, Snapshot)]
struct Class {
    /// Configured weight and `maxpkt`.
    form: (u32, u32),
    aggregate: u32,
    deficit: i64,
    /// True if it has packets.
    active: bool,
}

/// Queues of equal weight and `maxpkt`.
#[derive(Clone, Debug, Snapshot)]
struct Aggregate {
    /// Weight of each of its queues, and their largest packet.
    form: (u32, u32),
    /// Number of queues.
    size: u32,
    /// 1 / (sum of the weights of its queues), as a virtual time.
    inverse: u32,
    /// Bytes that it may send each time, that it could send this time, and that are left.
    budget_max: u32,
    initial_budget: u32,
    budget: u32,
    round: Round,
}

/// Queues of an aggregate that have packets, in the order of their turns.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct Round {
    queues: [u32; AGGREGATE_MAX],
    len: usize,
}

impl Round {
    fn first(&self) -> Option<u32> {
        self.queues[..self.len].first().copied()
    }

    fn push(&mut self, i: u32) {
        self.queues[self.len] = i;
        self.len += 1;
    }

    fn remove(&mut self, i: u32) {
        let at = self.queues[..self.len].iter().position(|j| *j == i);
        let at = at.expect("an active queue is in the round");
        self.queues[at..self.len].rotate_left(1);
        self.len -= 1;
    }

    fn rotate(&mut self) {
        self.queues[..self.len].rotate_left(1);
    }
}

/// The QFQ+ scheduler.
#[derive(Clone, Debug, Snapshot)]
pub struct Qfq {
    classes: Vec<Class>,
    aggregates: Vec<Aggregate>,
    /// Numbers of aggregates that do not exist.
    free: Vec<u32>,
    /// Aggregates that may have more queues, the latest last.
    open: Vec<u32>,
    /// Most queues of an aggregate.
    most: u32,
    groups: Groups,
    in_service: Option<u32>,
    /// Sum of the weights of all queues, and 1 / sum as a virtual time.
    sum: u32,
    inverse: u32,
    /// Number of queues with packets.
    active: usize,
}

impl Qfq {
    fn aggregate(&mut self, a: u32) -> &mut Aggregate {
        &mut self.aggregates[a as usize]
    }

    /// Returns the aggregate for a further queue of this weight and `maxpkt`.
    fn open(&mut self, form: (u32, u32)) -> u32 {
        let fits = |a: &&u32| self.aggregates[**a as usize].form == form;
        if let Some(a) = self.open.iter().rev().find(fits) {
            return *a;
        }
        let (weight, maxpkt) = form;
        let new = Aggregate {
            form,
            size: 0,
            inverse: ONE / weight,
            budget_max: maxpkt,
            initial_budget: 0,
            budget: 0,
            round: Round::default(),
        };
        let a = self.free.pop().unwrap_or(cast::index32(self.aggregates.len()));
        match self.aggregates.get_mut(a as usize) {
            Some(old) => *old = new,
            None => self.aggregates.push(new),
        }
        self.groups.add(a, u64::from(maxpkt) * u64::from(ONE / weight));
        self.open.push(a);
        a
    }

    /// Sets the number of queues of aggregate `a`.
    fn resize(&mut self, a: u32, size: u32) {
        let aggregate = &mut self.aggregates[a as usize];
        let (weight, maxpkt) = aggregate.form;
        if size == self.most {
            self.open.retain(|b| *b != a);
        } else if aggregate.size == self.most {
            self.open.push(a);
        }
        aggregate.budget_max = size * maxpkt;
        aggregate.inverse = ONE / (weight * size);
        self.sum = self.sum + weight * size - weight * aggregate.size;
        aggregate.size = size;
        self.inverse = ONE / self.sum;
    }

    /// Charges aggregate `a` for the bytes that it has sent.
    fn charge(&mut self, a: u32) {
        let Aggregate { budget_max, initial_budget, budget, inverse, .. } = *self.aggregate(a);
        let sent = budget_max.min(initial_budget - budget);
        let tags = self.groups.tags(a);
        tags.finish = tags.start.wrapping_add(u64::from(sent) * u64::from(inverse));
    }

    /// Sets the budget of aggregate `a`, and its finish time if it uses the whole budget.
    fn refill(&mut self, a: u32) {
        let aggregate = self.aggregate(a);
        let Aggregate { budget_max, inverse, .. } = *aggregate;
        (aggregate.initial_budget, aggregate.budget) = (budget_max, budget_max);
        let tags = self.groups.tags(a);
        tags.finish = tags.start.wrapping_add(u64::from(budget_max) * u64::from(inverse));
    }

    /// Appends queue `i` to the round of its aggregate.
    fn join(&mut self, i: u32) {
        let class = &mut self.classes[i as usize];
        class.active = true;
        self.active += 1;
        let a = class.aggregate;
        let round = &mut self.aggregate(a).round;
        round.push(i);
        if round.len > 1 || self.in_service == Some(a) {
            return;
        }
        self.groups.start(a);
        self.refill(a);
        if self.in_service.is_some() {
            self.groups.schedule(a, false);
        } else {
            self.in_service = Some(a);
            self.groups.restart(a);
        }
    }

    /// Removes queue `i` from the round of its aggregate; returns that if no queue is left in it.
    fn leave(&mut self, i: u32) -> Option<u32> {
        let class = &mut self.classes[i as usize];
        class.active = false;
        self.active -= 1;
        let a = class.aggregate;
        let round = &mut self.aggregate(a).round;
        round.remove(i);
        (round.len == 0).then_some(a)
    }

    /// Removes queue `i`, whose packets were dropped, or which moves.
    fn deactivate(&mut self, i: u32) {
        let Some(a) = self.leave(i) else { return };
        if self.in_service == Some(a) {
            self.charge(a);
            self.in_service = self.groups.next();
        } else {
            self.groups.remove(a);
        }
    }

    /// Moves queue `i` to an aggregate of this weight and `maxpkt`.
    fn change_to(&mut self, i: u32, form: (u32, u32)) {
        let new = self.open(form);
        let Class { aggregate: old, active, .. } = self.classes[i as usize];
        if active {
            self.deactivate(i);
        }
        let size = self.aggregate(old).size;
        if size == 1 {
            self.open.retain(|b| *b != old);
            self.sum -= self.aggregate(old).form.0;
            if self.in_service == Some(old) {
                self.in_service = self.groups.next();
            }
            self.free.push(old);
        } else {
            self.resize(old, size - 1);
        }
        self.add(i, new);
        if active {
            self.join(i);
        }
    }

    /// Adds queue `i`, which is in no aggregate, to aggregate `a`.
    fn add(&mut self, i: u32, a: u32) {
        self.classes[i as usize].aggregate = a;
        let size = self.aggregate(a).size;
        self.resize(a, size + 1);
    }
}

/// Returns the weights as whole numbers.
fn whole(weights: &[f64]) -> Result<Vec<u32>> {
    let whole = |(i, weight): (usize, &f64)| {
        let least = cast::saturate32(cast::trunc(*weight));
        if f64::from(least) != *weight || !(1..=WEIGHT_MAX).contains(&least) {
            let text = format!("{weight} is not a whole number from 1 to {WEIGHT_MAX}");
            return Err(Error::new(text).at(i).at("weights"));
        }
        Ok(least)
    };
    let list = weights.iter().enumerate().map(whole).collect::<Result<Vec<u32>>>()?;
    let sum: u64 = list.iter().map(|weight| u64::from(*weight)).sum();
    if sum > SUM_MAX.into() {
        let text =
            format!("{sum} is the sum for {} queues; it is at most {SUM_MAX}", weights.len());
        return Err(Error::new(text).at("weights"));
    }
    Ok(list)
}

impl Scheduler for Qfq {
    type Params = QfqParams;
    const HAS_DEFAULT: bool = false;
    const READS_NEXT: bool = true;
    const CHANGES: &[&str] = &["weights", "maxpkt"];

    fn new(params: Checked<'_, QfqParams>, _env: &Env, weights: &[f64]) -> Result<Self> {
        let n = weights.len();
        if params.maxpkt.is_empty() || params.maxpkt.len() > n {
            let text = format!("{} lengths for {n} queues", params.maxpkt.len());
            return Err(Error::new(text).at("maxpkt"));
        }
        let weights = whole(weights)?;
        let most = cast::saturate32(params.aggregate).ilog2();
        let mut qfq = Qfq {
            classes: Vec::with_capacity(n),
            aggregates: Vec::with_capacity(n + 1),
            free: Vec::with_capacity(n + 1),
            open: Vec::with_capacity(n + 1),
            most: 1 << most,
            groups: Groups::new(n + 1, most),
            in_service: None,
            sum: 0,
            inverse: 0,
            active: 0,
        };
        for (i, weight) in weights.into_iter().enumerate() {
            let maxpkt = nth(&params.maxpkt, i).map_or(MAXPKT_MAX, |n| cast::saturate32(n.0));
            let form = (weight, maxpkt);
            let a = qfq.open(form);
            qfq.classes.push(Class { form, aggregate: a, deficit: 0, active: false });
            qfq.add(cast::index32(i), a);
        }
        Ok(qfq)
    }

    #[inline]
    fn on_arrival(&mut self, i: u32, len: u32) {
        let (weight, maxpkt) = self.aggregates[self.classes[i as usize].aggregate as usize].form;
        let len = len.min(MAXPKT_MAX);
        if len > maxpkt {
            self.change_to(i, (weight, len));
        }
    }

    fn on_enqueued(&mut self, _now: Time, i: u32, _packet: Item, first: bool) {
        if first {
            let class = &mut self.classes[i as usize];
            class.deficit = self.aggregates[class.aggregate as usize].form.1.into();
            self.join(i);
        }
    }

    fn on_next(&mut self, i: u32, len: u32) {
        let Class { aggregate, deficit, .. } = self.classes[i as usize];
        let round = &mut self.aggregate(aggregate).round;
        if round.first() == Some(i) && deficit < len.into() {
            round.rotate();
        }
    }

    fn select(&mut self, _now: Time, head: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        let a = self.in_service?;
        let Aggregate { round, budget, .. } = *self.aggregate(a);
        if let Some(i) = round.first()
            && head(i)? <= budget
        {
            return Some(i);
        }
        self.charge(a);
        if round.len > 0 {
            let tags = self.groups.tags(a);
            tags.start = tags.finish;
            self.refill(a);
            self.groups.schedule(a, false);
        } else {
            let aggregate = self.aggregate(a);
            (aggregate.initial_budget, aggregate.budget) =
                (aggregate.budget_max, aggregate.budget_max);
            if self.active == 0 {
                self.in_service = None;
                return None;
            }
        }
        self.in_service = self.groups.next();
        let a = self.in_service?;
        let i = self.aggregate(a).round.first()?;
        head(i).map(|_| i)
    }

    fn on_sent(&mut self, _now: Time, i: u32, len: u32, next: Option<Item>) {
        let class = &mut self.classes[i as usize];
        class.deficit -= i64::from(len);
        let a = class.aggregate;
        let aggregate = &mut self.aggregates[a as usize];
        match next {
            None => drop(self.leave(i)),
            Some(next) if class.deficit < next.len.into() => {
                class.deficit += i64::from(aggregate.form.1);
                aggregate.round.rotate();
            }
            Some(_) => {}
        }
        let aggregate = self.aggregate(a);
        aggregate.budget = aggregate.budget.saturating_sub(len);
        self.groups.advance(u64::from(len) * u64::from(self.inverse));
    }

    fn on_dropped(&mut self, i: u32, _loss: DropPosition, next: Option<Item>) {
        if next.is_none() && self.classes[i as usize].active {
            self.deactivate(i);
        }
    }

    fn change(&mut self, fresh: &Self) {
        for (i, class) in fresh.classes.iter().enumerate() {
            let old = &mut self.classes[i];
            if old.form != class.form {
                old.form = class.form;
                self.change_to(cast::index32(i), class.form);
            }
        }
    }

    fn state_bytes(&self) -> usize {
        size_of_val(&*self.classes) + size_of_val(&*self.aggregates) + self.groups.state_bytes()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Virtual time, bytes per weight; it wraps around at 2^34.
        visit("V", self.groups.v() as f64 / f64::from(ONE));
    }
}

#[cfg(test)]
mod tests;
