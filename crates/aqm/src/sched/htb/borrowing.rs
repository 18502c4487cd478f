//! Classes of HTB that may send now, and from which level they borrow.
//!
//! A class has a *mode*: it may send, may borrow, or may not send. A leaf with packets *reaches* a
//! class above it if every class below that one may borrow. Each class has the set of leaves that
//! reach it. If it may send, these leaves are in the row of its level, from which the next leaf is
//! selected. A change of mode moves the set as a whole.

use crate::bucket::Bucket;
use crate::cast;
use crate::sched::leaf_set::{Change, LeafSet};
use crate::sched::tree::{OUT, Tree};
use crate::snapshot::Snapshot;
use crate::units::Time;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Largest depth of a tree, as in Linux.
pub(super) const DEPTH: u32 = 8;

/// Lowest priority.
pub(super) const PRIO_MAX: u64 = 7;

#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
enum Mode {
    /// No bucket is overdrawn.
    Sends,
    /// The rate bucket is overdrawn.
    Borrows,
    /// The ceiling bucket is overdrawn.
    Waits,
}

/// A class of the tree.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct Class {
    /// Number of the class above it, which is smaller.
    pub parent: Option<usize>,
    /// 0 for a leaf; higher for classes nearer to the root.
    pub level: u32,
    /// Priority, 0 first.
    pub prio: u64,
    pub rate: Bucket,
    pub ceil: Bucket,
    pub quantum: i64,
    /// Bytes left of its turns on each level.
    deficits: [i64; DEPTH as usize],
    mode: Mode,
    /// Number of leaves that reach it.
    reached: u32,
}

impl Class {
    pub fn new(parent: Option<usize>, level: u32, prio: u64, buckets: [Bucket; 2]) -> Class {
        let [rate, ceil] = buckets;
        Class {
            parent,
            level,
            prio,
            rate,
            ceil,
            quantum: 1,
            deficits: [0; DEPTH as usize],
            mode: Mode::Sends,
            reached: 0,
        }
    }

    fn mode_at(&self, now: Time) -> Mode {
        if self.ceil.ready(0) > now {
            Mode::Waits
        } else if self.rate.ready(0) > now {
            Mode::Borrows
        } else {
            Mode::Sends
        }
    }

    /// Time of the next change of its mode.
    fn changes_at(&self) -> Time {
        match self.mode {
            Mode::Sends => Time::NEVER,
            Mode::Borrows => self.rate.ready(0),
            Mode::Waits => self.ceil.ready(0),
        }
    }
}

/// Leaves of a priority that may send and borrow from a level.
#[derive(Clone, Debug, Snapshot)]
struct Row {
    level: u32,
    leaves: LeafSet,
    /// Leaf that is served next.
    turn: usize,
}

/// Classes with their buckets.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct Borrowing {
    classes: Vec<Class>,
    /// Rows by level, then by priority.
    rows: Vec<Row>,
    /// Index of the first row of each level.
    first_row: [usize; DEPTH as usize],
    /// Leaves that reach a class that has children, by priority. Empty for leaves.
    reaching: Vec<Box<[LeafSet]>>,
    /// Times at which the modes of classes change that leaves reach, nanoseconds.
    events: Tree,
    /// Time of the last call.
    now: Time,
}

impl Borrowing {
    /// Creates the tree of `classes`, in which parents come before their children.
    pub fn new(mut classes: Vec<Class>) -> Borrowing {
        let n = classes.len();
        // Priorities are numbered without gaps: each costs memory.
        let has = |p: &u64| classes.iter().any(|class| class.level == 0 && class.prio == *p);
        let prios: Vec<u64> = (0..=PRIO_MAX).filter(has).collect();
        let place = |prio| prios.iter().position(|p| *p == prio).unwrap_or(0) as u64;
        classes.iter_mut().for_each(|class| class.prio = place(class.prio));
        let (mut rows, mut first_row) = (Vec::new(), [0; DEPTH as usize]);
        for level in (0..DEPTH).filter(|l| classes.iter().any(|c| c.level == *l)) {
            first_row[level as usize] = rows.len();
            rows.extend(prios.iter().map(|_| Row {
                level,
                leaves: LeafSet::new(0..=n - 1),
                turn: 0,
            }));
        }
        let ranges = leaf_ranges(&classes);
        let sets = |(class, range): (&Class, (usize, usize))| {
            let sets = if class.level == 0 { 0 } else { prios.len() };
            vec![LeafSet::new(range.0..=range.1); sets].into()
        };
        let reaching = classes.iter().zip(ranges).map(sets).collect();
        Borrowing { classes, rows, first_row, reaching, events: Tree::new(n), now: Time::ZERO }
    }

    /// Classes.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Sets the rates and quanta of `fresh`, which has the same tree, and keeps tokens and turns.
    pub fn take_parameters(&mut self, fresh: &Borrowing) {
        for (i, class) in fresh.classes.iter().enumerate() {
            let own = &mut self.classes[i];
            own.rate.change(class.rate);
            own.ceil.change(class.ceil);
            own.quantum = class.quantum;
            self.refresh(self.now, i);
        }
    }

    /// Leaf `i` has packets from now on.
    pub fn activate(&mut self, now: Time, i: usize) {
        let mut class = Some(i);
        while let Some(k) = class {
            self.refresh(now, k);
            class = self.classes[k].parent;
        }
        self.classes[i].reached = 1;
        self.schedule(i);
        self.move_leaves(i, Change::Add);
    }

    /// Leaf `i` has no packets, or none that it may send, from now on.
    pub fn deactivate(&mut self, i: usize) {
        self.move_leaves(i, Change::Remove);
        self.classes[i].reached = 0;
        self.schedule(i);
    }

    /// True if leaf `i` has packets.
    pub fn is_active(&self, i: usize) -> bool {
        self.classes[i].reached > 0
    }

    /// Selects the leaf to serve at `now`, and the level from which it borrows.
    pub fn select(&mut self, now: Time) -> Option<(usize, u32)> {
        while let Some((k, at)) = self.events.first()
            && at <= now.0
        {
            self.refresh(now, k as usize);
        }
        let row = self.rows.iter().find(|row| row.leaves.len() > 0)?;
        row.leaves.next(row.turn).map(|i| (i, row.level))
    }

    /// Charges `bytes` to leaf `i`, which borrows from `level`, and ends its turn if it is over.
    pub fn charge(&mut self, now: Time, i: usize, level: u32, bytes: u32) {
        let mut class = Some(i);
        while let Some(k) = class {
            let one = &mut self.classes[k];
            if one.level >= level {
                one.rate.take(now, bytes);
            }
            one.ceil.take(now, bytes);
            class = one.parent;
            self.refresh(now, k);
        }
        let n = self.classes.len();
        let Class { deficits, quantum, prio, .. } = &mut self.classes[i];
        let deficit = &mut deficits[level as usize];
        *deficit -= i64::from(bytes);
        let over = *deficit < 0;
        // One quantum per turn, as in Linux, however large the packet.
        *deficit += if over { *quantum } else { 0 };
        let row = self.first_row[level as usize] + cast::index(*prio);
        self.rows[row].turn = if over { (i + 1) % n } else { i };
    }

    /// First time at which a leaf may send, if one has packets.
    pub fn ready_at(&self) -> Option<Time> {
        if self.rows.iter().any(|row| row.leaves.len() > 0) {
            return Some(Time::ZERO);
        }
        let ready = |k: u32| self.ready(k as usize).0.min(OUT - 1);
        let at = self.events.least_value(&ready);
        (at != OUT).then_some(Time(at))
    }

    /// First time at which a leaf that reaches class `k` may borrow from it or a class above it.
    fn ready(&self, k: usize) -> Time {
        let (mut ceiling, mut best) = (Time::ZERO, Time::NEVER);
        let mut class = Some(k);
        while let Some(k) = class {
            let Class { rate, ceil, parent, .. } = &self.classes[k];
            ceiling = ceiling.max(ceil.ready(0));
            best = best.min(ceiling.max(rate.ready(0)));
            class = *parent;
        }
        best
    }

    /// Updates the mode of class `k`, and when it changes next.
    fn refresh(&mut self, now: Time, k: usize) {
        self.now = now;
        let mode = self.classes[k].mode_at(now);
        if mode != self.classes[k].mode {
            self.move_leaves(k, Change::Remove);
            self.classes[k].mode = mode;
            self.move_leaves(k, Change::Add);
        }
        self.schedule(k);
    }

    fn schedule(&mut self, k: usize) {
        let class = &self.classes[k];
        let at = if class.reached == 0 { OUT } else { class.changes_at().0 };
        self.events.set(cast::index32(k), at);
    }

    /// Adds all leaves that reach class `k` to the sets above it, or removes them.
    fn move_leaves(&mut self, k: usize, change: Change) {
        let Class { level, prio, reached, .. } = self.classes[k];
        if reached == 0 {
            return;
        }
        if level == 0 {
            self.change_above(k, cast::index(prio), 1, change, |leaves| leaves.change(k, change));
            return;
        }
        let sets = core::mem::take(&mut self.reaching[k]);
        for (prio, set) in sets.iter().enumerate().filter(|(_, set)| set.len() > 0) {
            self.change_above(k, prio, set.len(), change, |all| all.change_all(set, change));
        }
        self.reaching[k] = sets;
    }

    /// Calls `apply` with each set above class `k` that its leaves of the priority `prio` reach.
    /// `n` leaves are added or removed.
    fn change_above(
        &mut self,
        k: usize,
        prio: usize,
        n: u32,
        change: Change,
        apply: impl Fn(&mut LeafSet),
    ) {
        let mut k = k;
        loop {
            let Class { mode, level, parent, .. } = self.classes[k];
            match (mode, parent) {
                (Mode::Sends, _) => {
                    return apply(&mut self.rows[self.first_row[level as usize] + prio].leaves);
                }
                (Mode::Borrows, Some(above)) => {
                    apply(&mut self.reaching[above][prio]);
                    let reached = &mut self.classes[above].reached;
                    *reached = if change == Change::Add { *reached + n } else { *reached - n };
                    self.schedule(above);
                    k = above;
                }
                (Mode::Borrows, None) | (Mode::Waits, _) => return,
            }
        }
    }

    /// Size in bytes, without the struct itself.
    pub fn state_bytes(&self) -> usize {
        let sets = self.reaching.iter().flatten().map(|set| size_of_val(set) + set.state_bytes());
        let rows = self.rows.iter().map(|row| size_of_val(row) + row.leaves.state_bytes());
        size_of_val(&*self.classes)
            + size_of_val(&*self.reaching)
            + sets.chain(rows).sum::<usize>()
            + self.events.state_bytes()
    }
}

/// First and last leaf below each class; for a leaf, itself.
fn leaf_ranges(classes: &[Class]) -> Vec<(usize, usize)> {
    let own = |(i, class): (usize, &Class)| if class.level == 0 { (i, i) } else { (usize::MAX, 0) };
    let mut ranges: Vec<_> = classes.iter().enumerate().map(own).collect();
    for (i, class) in classes.iter().enumerate().rev() {
        if let Some(parent) = class.parent {
            let ((first, last), (low, high)) = (ranges[i], ranges[parent]);
            ranges[parent] = (low.min(first), high.max(last));
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::units::{Bytes, Rate};
    use rand_core::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    /// Random tree of `n` classes with up to four levels.
    fn tree(n: usize, rng: &mut Pcg64Mcg) -> Vec<Class> {
        let mut depths: Vec<u32> = Vec::new();
        let mut parents = Vec::new();
        for i in 0..n {
            let parent = (i > 0 && rng.below(8) > 0).then(|| rng.below(i as u32) as usize);
            let parent = parent.filter(|k| depths[*k] < 4);
            depths.push(parent.map_or(1, |k| depths[k] + 1));
            parents.push(parent);
        }
        let class = |i: usize| {
            let level = if parents.contains(&Some(i)) { DEPTH - depths[i] } else { 0 };
            let bucket = || Bucket::new(Rate(100_000), Bytes(0));
            Class::new(parents[i], level, (i % 5) as u64 % 3, [bucket(), bucket()])
        };
        let mut classes: Vec<Class> = (0..n).map(class).collect();
        for class in &mut classes {
            let mut bucket = |most: u64| {
                let rate = Rate(100_000 * (1 + u64::from(rng.below(80))));
                Bucket::new(rate, Bytes(most * u64::from(rng.below(3))))
            };
            (class.rate, class.ceil) = (bucket(800), bucket(1500));
            class.quantum = 300 + i64::from(rng.below(2000));
        }
        classes
    }

    /// Selects as by definition: of all active leaves the one with the lowest level, priority and
    /// distance from the turn.
    fn search(all: &Borrowing, now: Time) -> (Option<(usize, u32)>, Option<Time>) {
        let n = all.classes.len();
        let lender = |i: usize| {
            let (mut ceiling, mut best) = (Time::ZERO, (Time::NEVER, 0));
            let mut class = Some(i);
            while let Some(k) = class {
                let Class { rate, ceil, level, parent, .. } = &all.classes[k];
                ceiling = ceiling.max(ceil.ready(0));
                let at = ceiling.max(rate.ready(0)).max(now);
                best = if at < best.0 { (at, *level) } else { best };
                class = *parent;
            }
            best
        };
        let active = || (0..n).filter(|i| all.classes[*i].level == 0 && all.is_active(*i));
        let ready = active().filter(|i| lender(*i).0 <= now).map(|i| {
            let (level, prio) = (lender(i).1, all.classes[i].prio);
            let turn = all.rows[all.first_row[level as usize] + prio as usize].turn;
            (level, prio, (i + n - turn) % n, i)
        });
        (ready.min().map(|(level, _, _, i)| (i, level)), active().map(|i| lender(i).0).min())
    }

    #[test]
    fn agrees_with_a_search_of_all_leaves() {
        for seed in 0..60 {
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            let n = [1, 2, 3, 7, 20, 90, 300][seed as usize % 7];
            let mut all = Borrowing::new(tree(n, &mut rng));
            let leaves: Vec<usize> = (0..n).filter(|i| all.classes[*i].level == 0).collect();
            let mut now = Time::ZERO;
            let (mut sent, mut blocked) = (0, 0);
            for _ in 0..2000 {
                let pause = 3_000_000 / (n as u32 + 9);
                now = Time(now.0 + u64::from(rng.below(3)) * u64::from(rng.below(pause)));
                let i = leaves[rng.below(leaves.len() as u32) as usize];
                match (rng.below(6), all.is_active(i)) {
                    (0 | 1, false) => all.activate(now, i),
                    (0, true) => all.deactivate(i),
                    _ => {
                        let (expected, at) = search(&all, now);
                        let selected = all.select(now);
                        assert_eq!(selected, expected, "seed {seed} at {now:?}");
                        if let Some((i, level)) = selected {
                            all.charge(now, i, level, 60 + rng.below(1440));
                            sent += 1;
                        } else {
                            assert_eq!(all.ready_at(), at, "seed {seed} at {now:?}");
                            blocked += 1;
                        }
                    }
                }
            }
            assert!(sent > 30 && blocked > 50, "seed {seed}: {sent} sent, {blocked} blocked");
        }
    }
}
