//! Tree of HFSC: runtime curves, deadlines, virtual times and fit times of the classes.

use super::curve::{Curve, ServiceCurve, span, tick};
use crate::snapshot::Snapshot;
use crate::units::Time;
use alloc::vec;
use alloc::vec::Vec;

/// Real-time part of a leaf.
#[derive(Clone, Debug, Snapshot)]
struct RealTime {
    /// R, as configured.
    curve: Curve,
    /// D, the curve of deadlines.
    deadlines: Curve,
    /// E, the curve of eligible times.
    eligibility: Curve,
    /// Service by real-time, bytes (c).
    service: u64,
    /// Eligible time of the head, ticks.
    e: u64,
    /// Deadline of the head, ticks.
    d: u64,
    /// Order among equal eligible times.
    order: u64,
    active: bool,
}

/// Link-share part of a class.
#[derive(Clone, Debug, Snapshot)]
struct Share {
    /// F, as configured.
    curve: Curve,
    /// V, the curve of virtual times.
    virtual_times: Curve,
    /// v, the virtual time.
    v: u64,
    /// Correction of `v` for times in which it did not fit.
    adjustment: u64,
    /// Number of its periods of activity.
    period: u64,
    /// Period of its parent at its last activation.
    parent_period: u64,
    /// Order among equal virtual times.
    order: u64,
    active: bool,
}

/// Upper limit of a class.
#[derive(Clone, Debug, Snapshot)]
struct Limit {
    /// U, as configured.
    curve: Curve,
    /// The runtime curve.
    times: Curve,
    /// Fit time by its own limit, ticks.
    own: u64,
}

/// A class; the first one is the root.
#[derive(Clone, Debug, Default, Snapshot)]
struct Class {
    parent: usize,
    children: Vec<usize>,
    real_time: Option<RealTime>,
    share: Option<Share>,
    limit: Option<Limit>,
    /// All service, bytes (w).
    total: u64,
    /// f, the fit time, ticks.
    f: u64,
    /// Smallest fit time of its active children.
    least_fit: u64,
    /// Largest virtual time that was served among its children, in this period.
    served: u64,
    /// Largest virtual time of a child that became passive.
    left: u64,
    /// Number of active children; for a leaf, 1 if it is active.
    active: u32,
}

/// Classes in one list; class i of the parameters, counted from 0, has the index i + 1.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct Classes {
    classes: Vec<Class>,
    /// Leaves with a real-time curve.
    timed: Vec<usize>,
    /// Number of changes of an order.
    changes: u64,
    /// Arrival of the first packet, from which on ticks are counted: a shift of all arrivals in
    /// time changes nothing.
    origin: Option<Time>,
}

impl Classes {
    pub fn new(parents: &[Option<usize>], curves: &[[Option<ServiceCurve>; 3]]) -> Classes {
        let mut classes = vec![Class::default()];
        for (parent, [rt, ls, ul]) in parents.iter().zip(curves) {
            let new = |curve: &Option<ServiceCurve>| curve.map(Curve::new);
            classes.push(Class {
                parent: parent.map_or(0, |parent| parent + 1),
                real_time: new(rt).map(RealTime::new),
                share: new(ls).map(Share::new),
                limit: new(ul).map(|curve| Limit { curve, times: curve, own: 0 }),
                ..Class::default()
            });
        }
        for i in 1..classes.len() {
            let parent = classes[i].parent;
            classes[parent].children.push(i);
        }
        let timed = (0..classes.len()).filter(|i| classes[*i].real_time.is_some()).collect();
        Classes { classes, timed, changes: 0, origin: None }
    }

    /// True if leaf `i` is active.
    pub fn is_active(&self, i: usize) -> bool {
        self.classes[i + 1].active > 0
    }

    /// True if leaf `i` has a real-time curve.
    pub fn is_timed(&self, i: usize) -> bool {
        self.classes[i + 1].real_time.is_some()
    }

    /// Ticks since the first packet arrived.
    fn tick(&mut self, now: Time) -> u64 {
        tick(now.since(*self.origin.get_or_insert(now)))
    }

    /// Makes leaf `i` active, whose head has `len` bytes.
    pub fn activate(&mut self, now: Time, i: usize, len: u32) {
        let (i, now) = (i + 1, self.tick(now));
        self.changes += 1;
        if let Some(real_time) = &mut self.classes[i].real_time {
            real_time.activate(now, len, self.changes);
        }
        if self.classes[i].share.is_none() {
            self.classes[i].active = 1;
            return;
        }
        let (mut k, mut rises) = (i, true);
        while k > 0 {
            let class = &mut self.classes[k];
            class.active += u32::from(rises);
            rises &= class.active == 1;
            if rises {
                self.share(now, k);
            }
            let class = &mut self.classes[k];
            class.f = class.limit.as_ref().map_or(0, |limit| limit.own).max(class.least_fit);
            k = class.parent;
            self.update_fit(k);
        }
    }

    /// Starts a period of activity of class `k`.
    fn share(&mut self, now: u64, k: usize) {
        self.changes += 1;
        let parent = self.classes[k].parent;
        let last = self.active(parent).filter(|c| *c != k).map(|c| self.virtual_time(c)).max();
        let Class { served, left, share: of_parent, active, .. } = &self.classes[parent];
        let (served, left, passive) = (*served, *left, *active == 0);
        let parent_period = of_parent.as_ref().map_or(0, |share| share.period);
        if last.is_none() {
            self.classes[parent].served = 0;
        }
        let changes = self.changes;
        let Class { share, limit, total, .. } = &mut self.classes[k];
        let Some(share) = share else { return };
        match last {
            Some(last) => {
                let mean = if served > 0 { served.midpoint(last) } else { last };
                if parent_period != share.parent_period || mean > share.v {
                    share.v = mean;
                }
            }
            None => share.v = left,
        }
        share.virtual_times.update(share.curve, share.v, *total);
        share.adjustment = 0;
        share.period += 1;
        // The parent becomes active with this class.
        share.parent_period = parent_period + u64::from(passive);
        share.order = changes;
        share.active = true;
        if let Some(limit) = limit {
            limit.times.update(limit.curve, now, *total);
            limit.own = limit.times.tick_of(*total);
        }
    }

    /// Selects the leaf to serve at `now`; true if it is served by real-time.
    pub fn select(&mut self, now: Time) -> Option<(usize, bool)> {
        let now = self.tick(now);
        let eligible = self.timed.iter().filter_map(|&i| {
            let real_time = self.classes[i].real_time.as_ref()?;
            let RealTime { e, d, order, active, .. } = real_time;
            (*active && *e <= now).then_some((*d, *e, *order, i))
        });
        if let Some((.., i)) = eligible.min() {
            return Some((i - 1, true));
        }
        if self.classes[0].least_fit > now {
            return None;
        }
        let mut k = 0;
        while !self.classes[k].children.is_empty() {
            let fitting = self.active(k).filter(|c| self.classes[*c].f <= now);
            let order = |c: usize| {
                let share = self.classes[c].share.as_ref();
                share.map_or((0, 0, c), |share| (share.v, share.order, c))
            };
            let (v, _, next) = fitting.map(order).min()?;
            let parent = &mut self.classes[k];
            parent.served = parent.served.max(v);
            k = next;
        }
        Some((k - 1, false))
    }

    /// Charges `len` bytes to leaf `i`, whose next packet has the length `next`, if there is one.
    pub fn charge(&mut self, i: usize, len: u32, by_deadline: bool, next: Option<u32>) {
        let i = i + 1;
        let ends = next.is_none() && self.classes[i].share.is_some();
        self.charge_shares(i, len.into(), ends);
        self.changes += 1;
        let changes = self.changes;
        let Class { real_time, share, active, .. } = &mut self.classes[i];
        if let Some(real_time) = real_time {
            real_time.charge(len, by_deadline, next, changes);
        }
        if share.is_none() {
            *active = u32::from(next.is_some());
        }
    }

    /// Charges `len` bytes to class `i` and all above it.
    fn charge_shares(&mut self, i: usize, len: u64, ends: bool) {
        let (mut k, mut ends) = (i, ends);
        while k > 0 {
            self.changes += 1;
            let (parent, changes) = (self.classes[k].parent, self.changes);
            let served = self.classes[parent].served;
            let class = &mut self.classes[k];
            class.total += len;
            let total = class.total;
            let Some(share) = class.share.as_mut().filter(|_| class.active > 0) else {
                k = parent;
                continue;
            };
            class.active -= u32::from(ends);
            ends &= class.active == 0;
            share.v = share.virtual_times.tick_of(total).saturating_add(share.adjustment);
            if share.v < served {
                share.adjustment += served - share.v;
                share.v = served;
            }
            share.order = changes;
            if ends {
                share.active = false;
                let left = share.v;
                let above = &mut self.classes[parent];
                above.left = above.left.max(left);
            } else {
                if let Some(limit) = &mut class.limit {
                    limit.own = limit.times.tick_of(total);
                }
                class.f = class.limit.as_ref().map_or(0, |limit| limit.own).max(class.least_fit);
            }
            self.update_fit(parent);
            k = parent;
        }
    }

    /// First time at which a leaf may be served, if one is active.
    pub fn ready_at(&self) -> Option<Time> {
        let timed = self.timed.iter().filter_map(|i| self.classes[*i].real_time.as_ref());
        let eligible = timed.filter(|real_time| real_time.active).map(|real_time| real_time.e);
        let fits = self.active(0).next().map(|_| self.classes[0].least_fit);
        let origin = self.origin?;
        eligible.chain(fits).min().map(|tick| origin + span(tick))
    }

    /// Active children of class `k`.
    fn active(&self, k: usize) -> impl Iterator<Item = usize> {
        let children = self.classes[k].children.iter().copied();
        children.filter(|c| self.classes[*c].share.as_ref().is_some_and(|share| share.active))
    }

    fn virtual_time(&self, k: usize) -> u64 {
        self.classes[k].share.as_ref().map_or(0, |share| share.v)
    }

    fn update_fit(&mut self, k: usize) {
        let least = self.active(k).map(|c| self.classes[c].f).min();
        self.classes[k].least_fit = least.unwrap_or(0);
    }

    /// Size in bytes, without the struct itself.
    pub fn state_bytes(&self) -> usize {
        let children = self.classes.iter().map(|class| size_of_val(&*class.children));
        size_of_val(&*self.classes) + size_of_val(&*self.timed) + children.sum::<usize>()
    }
}

impl RealTime {
    fn new(curve: Curve) -> RealTime {
        RealTime {
            curve,
            deadlines: curve,
            eligibility: curve,
            service: 0,
            e: 0,
            d: 0,
            order: 0,
            active: false,
        }
    }

    /// Starts a period of activity.
    fn activate(&mut self, now: u64, len: u32, order: u64) {
        self.deadlines.update(self.curve, now, self.service);
        // A convex curve is eligible as by its second line: the service of the first comes later.
        let convex = self.curve.is_convex();
        self.eligibility = if convex { self.deadlines.without_first() } else { self.deadlines };
        self.active = true;
        self.e = self.eligibility.tick_of(self.service);
        self.d = self.deadlines.tick_of(self.service + u64::from(len));
        self.order = order;
    }

    fn charge(&mut self, len: u32, by_deadline: bool, next: Option<u32>, order: u64) {
        self.service += if by_deadline { u64::from(len) } else { 0 };
        self.active = next.is_some();
        let Some(next) = next else { return };
        if by_deadline {
            self.e = self.eligibility.tick_of(self.service);
            self.order = order;
        }
        self.d = self.deadlines.tick_of(self.service + u64::from(next));
    }
}

impl Share {
    fn new(curve: Curve) -> Share {
        Share {
            curve,
            virtual_times: curve,
            v: 0,
            adjustment: 0,
            period: 0,
            parent_period: 0,
            order: 0,
            active: false,
        }
    }
}
