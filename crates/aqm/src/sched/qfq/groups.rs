//! Order of the aggregates of QFQ+: groups of similar length, each with slots by start time.

use crate::cast;
use crate::snapshot::Snapshot;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Binary places of virtual times after the point.
const FRACTION: u32 = 30;
/// 1 as a virtual time.
pub(super) const ONE: u32 = 1 << FRACTION;
/// log2 of the largest `maxpkt`.
const LONGEST: u32 = 16;
/// Number of groups.
const GROUPS: usize = 25;
/// Slots of a group.
const SLOTS: u32 = 32;
/// No aggregate.
const NONE: u32 = u32::MAX;

/// Sets of groups, as the paper names them: ready groups are those that no group blocks.
const ELIGIBLE_READY: usize = 0;
const INELIGIBLE_READY: usize = 1;
const ELIGIBLE_BLOCKED: usize = 2;
const INELIGIBLE_BLOCKED: usize = 3;

/// Aggregates of about the same `maxpkt` per weight.
#[derive(Clone, Copy, Debug, Snapshot)]
struct Group {
    /// Virtual start and finish time, multiples of the length of a slot.
    start: u64,
    finish: u64,
    /// First slot, in a ring.
    front: u32,
    /// Slots with aggregates; bit 0 is the first slot.
    full: u64,
    /// Latest aggregate of each slot.
    slots: [u32; SLOTS as usize],
}

/// Virtual times of an aggregate, and its neighbours in its slot.
#[derive(Clone, Copy, Debug, Snapshot)]
pub(super) struct Tags {
    pub start: u64,
    pub finish: u64,
    group: usize,
    next: u32,
    previous: u32,
}

/// Order of the aggregates. Virtual times wrap around.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct Groups {
    groups: Box<[Group]>,
    /// Tags by the number of the aggregate.
    tags: Vec<Tags>,
    /// Groups with aggregates, in four sets.
    sets: [u64; 4],
    /// Virtual time, and its value when an aggregate was last selected.
    v: u64,
    old_v: u64,
    /// log2 of the length of a slot of the first group.
    shift: u32,
}

/// True if the virtual time `a` is later than `b`.
fn later(a: u64, b: u64) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

impl Groups {
    /// Creates the order of up to `n` aggregates, of up to `2^classes` classes each.
    pub fn new(n: usize, classes: u32) -> Groups {
        let slots = [NONE; SLOTS as usize];
        let group = Group { start: 0, finish: 0, front: 0, full: 0, slots };
        Groups {
            groups: [group; GROUPS].into(),
            tags: Vec::with_capacity(n),
            sets: [0; 4],
            v: 0,
            old_v: 0,
            shift: FRACTION + LONGEST + classes - (cast::index32(GROUPS) - 1),
        }
    }

    /// Virtual time.
    pub fn v(&self) -> u64 {
        self.v
    }

    /// Advances the virtual time.
    pub fn advance(&mut self, by: u64) {
        self.v = self.v.wrapping_add(by);
    }

    /// Begins a period at the start time of aggregate `a`.
    pub fn restart(&mut self, a: u32) {
        self.v = self.tags[a as usize].start;
        self.old_v = self.v;
    }

    /// Tags of aggregate `a`.
    pub fn tags(&mut self, a: u32) -> &mut Tags {
        &mut self.tags[a as usize]
    }

    /// Adds aggregate `a`, whose largest packet takes the virtual time `length`.
    pub fn add(&mut self, a: u32, length: u64) {
        // Rounded up to a power of two slots of the first group.
        let slots = length.div_ceil(1 << self.shift).next_power_of_two();
        let group = slots.trailing_zeros() as usize;
        let tags = Tags { start: 0, finish: 0, group, next: NONE, previous: NONE };
        match self.tags.get_mut(a as usize) {
            Some(old) => *old = tags,
            None => self.tags.push(tags),
        }
    }

    /// log2 of the length of a slot of group `k`.
    fn slot(&self, k: usize) -> u32 {
        self.shift + cast::index32(k)
    }

    /// Rounds a virtual time down to a slot of group `k`.
    fn round(&self, time: u64, k: usize) -> u64 {
        let slot = self.slot(k);
        time >> slot << slot
    }

    /// First group of `set` from group `k` on.
    fn first(&self, set: usize, k: usize) -> Option<usize> {
        let rest = self.sets[set] >> k;
        (rest != 0).then(|| k + rest.trailing_zeros() as usize)
    }

    fn move_groups(&mut self, mask: u64, from: usize, to: usize) {
        self.sets[to] |= self.sets[from] & mask;
        self.sets[from] &= !mask;
    }

    /// Removes group `k` from the sets.
    fn leave(&mut self, k: usize) {
        self.sets.iter_mut().for_each(|set| *set &= !(1 << k));
    }

    /// Sets the times of group `k`, and puts it in its set.
    fn place(&mut self, k: usize, start: u64) {
        let finish = start.wrapping_add(2 << self.slot(k));
        (self.groups[k].start, self.groups[k].finish) = (start, finish);
        let blocked = self
            .first(ELIGIBLE_READY, k)
            .is_some_and(|next| later(finish, self.groups[next].finish));
        let set = usize::from(later(start, self.v)) + 2 * usize::from(blocked);
        self.sets[set] |= 1 << k;
    }

    /// Sets the start time of aggregate `a`, which was idle. It is the old finish time unless that
    /// is past or stale; otherwise V, or what keeps the order of the groups that are eligible.
    pub fn start(&mut self, a: u32) {
        let Tags { finish, group, .. } = self.tags[a as usize];
        let rounded = self.round(finish, group);
        let limit = self.round(self.v, group).wrapping_add(1 << self.slot(group));
        self.tags[a as usize].start = if later(finish, self.v) && !later(rounded, limit) {
            finish
        } else {
            let next = self.first(ELIGIBLE_READY, group).map(|k| self.groups[k].finish);
            match next.filter(|next| later(rounded, *next)) {
                Some(next) if later(limit, next) => next,
                Some(_) => limit,
                None => self.v,
            }
        };
    }

    /// Schedules aggregate `a` by its tags. `idle` if no aggregate is in service.
    pub fn schedule(&mut self, a: u32, idle: bool) {
        let Tags { start, group: k, .. } = self.tags[a as usize];
        let mut rounded = self.round(start, k);
        let group = &self.groups[k];
        if group.full != 0 && !later(group.start, start) {
            return self.insert(a, rounded);
        }
        if group.full != 0 {
            // The start time of the group decreases: its slots move on, as far as there are some.
            let slots = group.start.wrapping_sub(rounded) >> self.slot(k);
            let most = SLOTS - 1 - group.full.ilog2();
            let excess = slots.saturating_sub(most.into()) << self.slot(k);
            rounded = rounded.wrapping_add(excess);
            let tags = &mut self.tags[a as usize];
            tags.start = tags.start.wrapping_add(excess);
            tags.finish = tags.finish.wrapping_add(excess);
            let slots = most.min(cast::saturate32(slots));
            let group = &mut self.groups[k];
            group.full <<= slots;
            group.front = (group.front + SLOTS - slots) % SLOTS;
            self.leave(k);
        } else if self.sets[ELIGIBLE_READY] == 0 && later(rounded, self.v) && idle {
            self.v = rounded;
        }
        self.place(k, rounded);
        self.insert(a, rounded);
    }

    /// Inserts aggregate `a` in the slot of its rounded start time. If that is beyond the last
    /// slot, after changes of classes, its tags decrease.
    fn insert(&mut self, a: u32, rounded: u64) {
        let k = self.tags[a as usize].group;
        let shift = self.slot(k);
        let last = u64::from(SLOTS - 2);
        let ahead = rounded.wrapping_sub(self.groups[k].start);
        let mut slot = ahead >> shift;
        if slot > last {
            let back = ahead.wrapping_sub(last << shift);
            let tags = &mut self.tags[a as usize];
            tags.start = tags.start.wrapping_sub(back);
            tags.finish = tags.finish.wrapping_sub(back);
            slot = last;
        }
        let group = &mut self.groups[k];
        let i = ((group.front + cast::low32(slot)) % SLOTS) as usize;
        let next = core::mem::replace(&mut group.slots[i], a);
        group.full |= 1 << slot;
        (self.tags[a as usize].next, self.tags[a as usize].previous) = (next, NONE);
        if next != NONE {
            self.tags[next as usize].previous = a;
        }
    }

    /// Takes aggregate `a` out of slot `slot` of its group.
    fn unlink(&mut self, a: u32, slot: u32) {
        let Tags { group: k, next, previous, .. } = self.tags[a as usize];
        let group = &mut self.groups[k];
        let i = ((group.front + slot) % SLOTS) as usize;
        if next != NONE {
            self.tags[next as usize].previous = previous;
        }
        if previous == NONE {
            group.slots[i] = next;
        } else {
            self.tags[previous as usize].next = next;
        }
        if group.slots[i] == NONE {
            group.full &= !(1 << slot);
        }
    }

    /// Moves the front of group `k` to its first slot with aggregates; returns the first of these.
    fn scan(&mut self, k: usize) -> Option<u32> {
        let group = &mut self.groups[k];
        if group.full == 0 {
            return None;
        }
        let empty = group.full.trailing_zeros();
        group.front = (group.front + empty) % SLOTS;
        group.full >>= empty;
        Some(group.slots[group.front as usize])
    }

    /// Removes aggregate `a` from the order.
    pub fn remove(&mut self, a: u32) {
        let Tags { start, group: k, .. } = self.tags[a as usize];
        self.tags[a as usize].finish = start;
        let ahead = self.round(start, k).wrapping_sub(self.groups[k].start);
        self.unlink(a, cast::low32(ahead >> self.slot(k)));
        let bit = 1u64 << k;
        if self.groups[k].full == 0 {
            let is_last = self.sets[ELIGIBLE_READY] >> k == 1;
            self.sets[INELIGIBLE_READY] &= !bit;
            self.sets[ELIGIBLE_BLOCKED] &= !bit;
            self.sets[INELIGIBLE_BLOCKED] &= !bit;
            if is_last {
                // Groups above the next lower ready one were blocked by this one alone.
                let lower = self.sets[ELIGIBLE_READY] & (bit - 1);
                let mask = if lower == 0 { u64::MAX } else { u64::MAX << lower.ilog2() };
                self.move_groups(mask, ELIGIBLE_BLOCKED, ELIGIBLE_READY);
                self.move_groups(mask, INELIGIBLE_BLOCKED, INELIGIBLE_READY);
            }
            self.sets[ELIGIBLE_READY] &= !bit;
        } else if self.groups[k].full & 1 == 0
            && let Some(first) = self.scan(k)
        {
            let rounded = self.round(self.tags[first as usize].start, k);
            if self.groups[k].start != rounded {
                self.leave(k);
                self.place(k, rounded);
            }
        }
    }

    /// Takes the next aggregate to serve out of the order.
    pub fn next(&mut self) -> Option<u32> {
        self.update_eligible();
        self.old_v = self.v;
        let k = self.first(ELIGIBLE_READY, 0)?;
        let old_finish = self.groups[k].finish;
        let a = self.groups[k].slots[self.groups[k].front as usize];
        self.unlink(a, 0);
        match self.scan(k) {
            None => self.sets[ELIGIBLE_READY] &= !(1 << k),
            Some(first) => {
                let rounded = self.round(self.tags[first as usize].start, k);
                if self.groups[k].start == rounded {
                    return Some(a);
                }
                self.sets[ELIGIBLE_READY] &= !(1 << k);
                self.place(k, rounded);
            }
        }
        self.unblock(k, old_finish);
        Some(a)
    }

    /// Moves the groups that have become eligible. If none is, V jumps to the first start time.
    fn update_eligible(&mut self) {
        let ineligible = self.sets[INELIGIBLE_READY] | self.sets[INELIGIBLE_BLOCKED];
        if ineligible == 0 {
            return;
        }
        if self.sets[ELIGIBLE_READY] == 0 {
            let start = self.groups[ineligible.trailing_zeros() as usize].start;
            if later(start, self.v) {
                self.v = start;
            }
        }
        // Group k becomes eligible when bit k of V, in slots, changes.
        let (now, before) = (self.v >> self.shift, self.old_v >> self.shift);
        if now != before {
            let bits = u32::BITS - cast::low32(now ^ before).leading_zeros();
            let mask = if bits == u32::BITS { u64::MAX } else { (1 << bits) - 1 };
            self.move_groups(mask, INELIGIBLE_READY, ELIGIBLE_READY);
            self.move_groups(mask, INELIGIBLE_BLOCKED, ELIGIBLE_BLOCKED);
        }
    }

    /// Unblocks the groups below group `k`, whose finish time was `old_finish`.
    fn unblock(&mut self, k: usize, old_finish: u64) {
        if let Some(next) = self.first(ELIGIBLE_READY, k + 1)
            && !later(self.groups[next].finish, old_finish)
        {
            return;
        }
        let mask = (1 << k) - 1;
        self.move_groups(mask, ELIGIBLE_BLOCKED, ELIGIBLE_READY);
        self.move_groups(mask, INELIGIBLE_BLOCKED, INELIGIBLE_READY);
    }

    /// Size in bytes, without the struct itself.
    pub fn state_bytes(&self) -> usize {
        size_of_val(&*self.groups) + size_of_val(&*self.tags)
    }
}
