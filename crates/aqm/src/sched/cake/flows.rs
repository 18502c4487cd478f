//! Queues of a tin: found by an eight-way set-associative hash, fair to flows and hosts.

use crate::aqm::cobalt::linux::Cobalt;
use crate::cast;
use crate::fifo::Fifo;
use crate::packet::Packet;
use crate::random::mix;
use crate::sched::ring::Ring;
use crate::snapshot::Snapshot;
use alloc::boxed::Box;
use alloc::vec;

/// Queues per tin, and entries of each table of hosts.
pub const QUEUES: usize = 1024;
/// Queues of a set: a new flow takes an unused one of these.
const WAYS: usize = 8;

crate::choice! {
    /// Isolation of flows and hosts from each other.
    pub enum Isolation {
        /// One queue for all.
        Flowblind = "flowblind",
        /// A queue per source host.
        Srchost = "srchost",
        /// A queue per destination host.
        Dsthost = "dsthost",
        /// A queue per pair of hosts.
        Hosts = "hosts",
        /// A queue per flow.
        Flows = "flows",
        /// A queue per flow; source hosts share fairly.
        DualSrchost = "dual_srchost",
        /// A queue per flow; destination hosts share fairly.
        DualDsthost = "dual_dsthost",
        /// A queue per flow; source and destination hosts share fairly.
        TripleIsolate = "triple_isolate",
    }
}

impl Isolation {
    /// True if hosts at this end (0 source, 1 destination) share fairly.
    fn shares(self, end: usize) -> bool {
        match self {
            Isolation::TripleIsolate => true,
            Isolation::DualSrchost => end == 0,
            Isolation::DualDsthost => end == 1,
            _ => false,
        }
    }
}

/// State of a queue in the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Snapshot)]
pub enum State {
    /// In no list.
    #[default]
    Unused,
    /// Has not used up its first credit: in the list of new queues.
    Sparse,
    /// Emptied with its credit used up: in the list of old queues, not yet bulk.
    SparseWait,
    /// In the list of old queues; counts as load of its hosts.
    Bulk,
    /// Empty, until COBALT is at rest.
    Decaying,
}

/// A queue.
#[derive(Clone, Debug, Default, Snapshot)]
pub struct Flow {
    /// Its packets.
    pub fifo: Fifo,
    /// Its AQM.
    pub cobalt: Cobalt,
    /// Bytes that it may send in this round.
    pub deficit: i64,
    /// State in the rotation.
    pub state: State,
    /// Entries of its source and destination in the tables of hosts.
    hosts: [u16; 2],
}

/// Table of the hosts at one end.
#[derive(Clone, Debug, Snapshot)]
struct Hosts {
    tags: Box<[u32]>,
    /// Number of bulk queues of each host.
    bulk: Box<[u32]>,
}

/// Numbers of lookups that did not find the queue at once, as tc shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct Ways {
    /// The flow had another queue of the set.
    pub indirect_hits: u64,
    /// The flow took an unused queue.
    pub misses: u64,
    /// All queues of the set were in use: the flow shares one.
    pub collisions: u64,
}

/// Queues of a tin.
#[derive(Clone, Debug, Snapshot)]
pub struct Flows {
    isolation: Isolation,
    tags: Box<[u32]>,
    /// The queues.
    pub flows: Box<[Flow]>,
    hosts: [Hosts; 2],
    /// Lists of queues: new, old, decaying.
    lists: [Ring; 3],
    /// Number of sparse queues, waiting queues included.
    pub sparse: u32,
    /// Number of bulk queues.
    pub bulk: u32,
    /// Counters of lookups.
    pub ways: Ways,
}

const NEW: usize = 0;
const OLD: usize = 1;
const DECAYING: usize = 2;

/// List of the queues in `state`.
fn list(state: State) -> Option<usize> {
    match state {
        State::Unused => None,
        State::Sparse => Some(NEW),
        State::SparseWait | State::Bulk => Some(OLD),
        State::Decaying => Some(DECAYING),
    }
}

/// Hashes of the source and the destination key; they differ for one host at both ends, so that
/// the two directions between two hosts have different pairs.
fn host_hashes(packet: &Packet) -> [u32; 2] {
    let [source, destination] = [packet.source, packet.destination].map(u64::from);
    [mix(source), mix(destination | 1 << 32)].map(cast::low32)
}

/// Returns the entry of a table for `hash`, and how it was found: an entry with this tag, otherwise
/// a `free` entry of the set, otherwise the entry at the hash itself.
fn seek(hash: u32, tags: &[u32], free: impl Fn(usize) -> bool) -> (usize, Found) {
    let start = hash as usize % QUEUES;
    let set = start - start % WAYS;
    let ways = (0..WAYS).map(|i| set + (start + i) % WAYS);
    if let Some(i) = ways.clone().find(|i| tags[*i] == hash) {
        return (i, Found::Tag);
    }
    let mut ways = ways;
    ways.find(|i| free(*i)).map_or((start, Found::None), |i| (i, Found::Free))
}

#[derive(PartialEq)]
enum Found {
    Tag,
    Free,
    None,
}

impl Flows {
    pub fn new(isolation: Isolation) -> Flows {
        let table = || vec![0; QUEUES].into();
        let hosts = || Hosts { tags: table(), bulk: table() };
        Flows {
            isolation,
            tags: table(),
            flows: (0..QUEUES).map(|_| Flow::default()).collect(),
            hosts: [hosts(), hosts()],
            lists: [(); 3].map(|()| Ring::new(QUEUES)),
            sparse: 0,
            bulk: 0,
            ways: Ways::default(),
        }
    }

    /// True if a queue has packets or credit to pay back.
    pub fn is_active(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// Returns the queue of `packet`.
    pub fn find(&mut self, packet: &Packet) -> u32 {
        let hosts = host_hashes(packet);
        let hash = match self.isolation {
            Isolation::Flowblind => 0,
            Isolation::Srchost => hosts[0],
            Isolation::Dsthost => hosts[1],
            Isolation::Hosts => hosts[0] ^ hosts[1],
            _ => packet.hash,
        };
        let direct = hash as usize % QUEUES;
        let used = |i: usize, flows: &[Flow]| flows[i].state != State::Unused;
        if self.tags[direct] == hash && used(direct, &self.flows) {
            return cast::index32(direct);
        }
        let (i, way) = seek(hash, &self.tags, |i| !used(i, &self.flows));
        match way {
            Found::Tag => self.ways.indirect_hits += u64::from(i != direct),
            Found::Free => self.ways.misses += 1,
            Found::None => self.ways.collisions += 1,
        }
        self.tags[i] = hash;
        if way != Found::Tag || !used(i, &self.flows) {
            self.assign_hosts(i, hosts);
        }
        cast::index32(i)
    }

    /// Records the hosts of the flow that takes queue `i`.
    fn assign_hosts(&mut self, i: usize, hashes: [u32; 2]) {
        let is_bulk = self.flows[i].state == State::Bulk;
        for (end, hash) in hashes.into_iter().enumerate().filter(|(e, _)| self.isolation.shares(*e))
        {
            let hosts = &mut self.hosts[end];
            if is_bulk {
                hosts.bulk[usize::from(self.flows[i].hosts[end])] -= 1;
            }
            let (host, _) = seek(hash, &hosts.tags, |h| hosts.bulk[h] == 0);
            hosts.tags[host] = hash;
            hosts.bulk[host] += u32::from(is_bulk);
            let host = u16::try_from(host).expect("a table has 1024 entries");
            self.flows[i].hosts[end] = host;
        }
    }

    /// Number of bulk queues of the busier host of queue `i`, at least 1.
    pub fn load(&self, i: u32) -> u32 {
        let flow = &self.flows[i as usize];
        let of = |end: usize| {
            let shares = self.isolation.shares(end);
            if shares { self.hosts[end].bulk[usize::from(flow.hosts[end])] } else { 0 }
        };
        of(0).max(of(1)).max(1)
    }

    /// Next queue to look at. Decaying ones come first if `decaying_first`, else last.
    pub fn next(&self, decaying_first: bool) -> Option<u32> {
        let [new, old, decaying] = self.lists.each_ref().map(Ring::first);
        let first = if decaying_first { decaying } else { None };
        first.or(new).or(old).or(decaying)
    }

    /// Sets the state of queue `i` and puts it at the end of the list of that state.
    pub fn set_state(&mut self, i: u32, to: State) {
        let from = self.flows[i as usize].state;
        self.relabel(i, to);
        if let Some(list) = list(from) {
            self.lists[list].remove(i);
        }
        if let Some(list) = list(to) {
            self.lists[list].push(i);
        }
    }

    /// Sets the state of queue `i`, which stays where it is in its list.
    pub fn relabel(&mut self, i: u32, to: State) {
        let flow = &mut self.flows[i as usize];
        let from = core::mem::replace(&mut flow.state, to);
        let change = |count: &mut u32, of: fn(State) -> bool| {
            *count = *count + u32::from(of(to)) - u32::from(of(from));
        };
        change(&mut self.sparse, |s| matches!(s, State::Sparse | State::SparseWait));
        change(&mut self.bulk, |s| s == State::Bulk);
        let hosts = flow.hosts;
        for end in (0..2).filter(|end| self.isolation.shares(*end)) {
            let count = &mut self.hosts[end].bulk[usize::from(hosts[end])];
            *count = *count + u32::from(to == State::Bulk) - u32::from(from == State::Bulk);
        }
    }

    /// Queues that wait for credit, if all others that have packets do too.
    pub fn waiting(&self) -> impl Iterator<Item = u32> {
        self.lists[OLD].iter()
    }

    /// True if a queue has not yet used up its first credit.
    pub fn has_new(&self) -> bool {
        self.lists[NEW].first().is_some()
    }

    /// Moves the first old queue to the end.
    pub fn rotate_old(&mut self) {
        self.lists[OLD].rotate();
    }

    /// Number of old queues.
    pub fn old(&self) -> usize {
        self.lists[OLD].len()
    }

    /// Size of the tables in bytes.
    pub fn state_bytes(&self) -> usize {
        let hosts = |h: &Hosts| size_of_val(&*h.tags) + size_of_val(&*h.bulk);
        size_of_val(&*self.tags)
            + size_of_val(&*self.flows)
            + self.hosts.iter().map(hosts).sum::<usize>()
            + self.lists.iter().map(Ring::state_bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    fn packet(hash: u32, source: u32) -> Packet {
        Packet { hash, source, destination: 1000 + source, ..Packet::default() }
    }

    /// Looks up the queue of `hash` and makes it bulk.
    fn take(flows: &mut Flows, hash: u32, source: u32) -> u32 {
        let i = flows.find(&packet(hash, source));
        flows.set_state(i, State::Bulk);
        i
    }

    #[test]
    fn a_set_has_eight_queues_and_the_ninth_flow_shares_one() {
        let mut flows = Flows::new(Isolation::Flows);
        let hash = |k: u32| 19 + 1024 * k;
        let queues: Vec<u32> = (1..=8).map(|k| take(&mut flows, hash(k), 0)).collect();
        assert_eq!(queues, [19, 20, 21, 22, 23, 16, 17, 18], "from its own way on, within the set");
        assert_eq!(flows.ways, Ways { indirect_hits: 0, misses: 8, collisions: 0 });
        assert_eq!(flows.find(&packet(hash(1), 0)), 19);
        assert_eq!(flows.find(&packet(hash(6), 0)), 16);
        assert_eq!(flows.ways, Ways { indirect_hits: 1, misses: 8, collisions: 0 });
        assert_eq!(flows.find(&packet(hash(9), 0)), 19);
        assert_eq!(flows.ways, Ways { indirect_hits: 1, misses: 8, collisions: 1 });
        // The shared queue has the tag of the last flow; the first one collides in its turn.
        assert_eq!(flows.find(&packet(hash(1), 0)), 19);
        assert_eq!(flows.ways.collisions, 2);
        // An unused queue with the tag is found again, one with another tag is taken.
        flows.set_state(16, State::Unused);
        assert_eq!((flows.find(&packet(hash(6), 0)), flows.ways.indirect_hits), (16, 2));
        assert_eq!((flows.find(&packet(hash(9), 0)), flows.ways.misses), (16, 9));
    }

    #[test]
    fn the_load_of_a_host_is_its_bulk_queues() {
        let mut flows = Flows::new(Isolation::TripleIsolate);
        let queues: Vec<u32> = (0..4).map(|k| take(&mut flows, 100 * k, 7)).collect();
        let other = take(&mut flows, 900, 8);
        assert_eq!(([flows.load(queues[0]), flows.load(other)], flows.bulk), ([4, 1], 5));
        flows.relabel(queues[0], State::Decaying);
        assert_eq!((flows.load(queues[1]), flows.bulk), (3, 4));
        // Of the two hosts of a flow the busier one counts.
        let to_busy = Packet { hash: 950, source: 9, destination: 1007, ..Packet::default() };
        let i = flows.find(&to_busy);
        assert_eq!(flows.load(i), 3);
        let mut by_source = Flows::new(Isolation::DualSrchost);
        let i = by_source.find(&to_busy);
        by_source.set_state(i, State::Bulk);
        take(&mut by_source, 1, 7);
        assert_eq!(by_source.load(i), 1);
        let mut flows = Flows::new(Isolation::Flows);
        let i = (0..4).map(|k| take(&mut flows, k, 7)).last().unwrap();
        assert_eq!(flows.load(i), 1);
    }

    #[test]
    fn a_collision_moves_the_load_to_the_new_host() {
        let mut flows = Flows::new(Isolation::DualSrchost);
        for k in 1..=8 {
            take(&mut flows, 8 + 1024 * k, 1);
        }
        let probe = flows.find(&packet(5, 1));
        assert_eq!(flows.load(probe), 8);
        let shared = flows.find(&packet(8 + 1024 * 9, 2));
        assert_eq!((flows.load(probe), flows.load(shared)), (7, 1));
    }

    #[test]
    fn the_modes_of_hosts_ignore_ports() {
        let queue = |isolation, hash, source, destination| {
            let mut flows = Flows::new(isolation);
            flows.find(&Packet { hash, source, destination, ..Packet::default() })
        };
        for (isolation, by_source, by_destination) in [
            (Isolation::Flowblind, false, false),
            (Isolation::Srchost, true, false),
            (Isolation::Dsthost, false, true),
            (Isolation::Hosts, true, true),
        ] {
            let first = queue(isolation, 1, 2, 3);
            assert_eq!(first, queue(isolation, 500, 2, 3));
            assert_eq!(first != queue(isolation, 1, 9, 3), by_source, "{isolation:?}");
            assert_eq!(first != queue(isolation, 1, 2, 9), by_destination, "{isolation:?}");
        }
        let pair = |source, destination| queue(Isolation::Hosts, 1, source, destination);
        assert_ne!(pair(2, 3), pair(1, 0), "no plain xor");
        assert_ne!(pair(2, 3), pair(3, 2), "directions differ");
    }

    #[test]
    fn old_queues_wait_in_turn() {
        let mut flows = Flows::new(Isolation::Flows);
        flows.set_state(3, State::Sparse);
        assert_eq!((flows.has_new(), flows.old()), (true, 0));
        [3, 5, 7].into_iter().for_each(|i| flows.set_state(i, State::Bulk));
        assert_eq!((flows.has_new(), flows.old()), (false, 3));
        assert_eq!(
            (flows.next(false), flows.waiting().collect::<Vec<_>>()),
            (Some(3), vec![3, 5, 7])
        );
        flows.rotate_old();
        assert_eq!(flows.waiting().collect::<Vec<_>>(), [5, 7, 3]);
    }

    #[test]
    fn queues_load_the_hosts_at_the_end_that_shares() {
        for (isolation, one_source, one_destination) in [
            (Isolation::DualSrchost, 3, 1),
            (Isolation::DualDsthost, 1, 3),
            (Isolation::TripleIsolate, 3, 3),
        ] {
            let load = |hosts: [[u32; 2]; 3]| {
                let mut flows = Flows::new(isolation);
                let mut last = 0;
                for (hash, [source, destination]) in (10..).zip(hosts) {
                    last = flows.find(&Packet { hash, source, destination, ..Packet::default() });
                    flows.set_state(last, State::Bulk);
                }
                flows.load(last)
            };
            assert_eq!(load([[1, 4], [1, 5], [1, 6]]), one_source, "{isolation:?}");
            assert_eq!(load([[1, 4], [2, 4], [3, 4]]), one_destination, "{isolation:?}");
        }
    }

    #[test]
    fn hosts_with_the_same_place_have_an_entry_each() {
        let place = |source| host_hashes(&packet(0, source))[0] as usize % QUEUES;
        let other = (8..).find(|source| place(*source) == place(7)).unwrap();
        let mut flows = Flows::new(Isolation::DualSrchost);
        take(&mut flows, 1, 7);
        let i = take(&mut flows, 2, other);
        assert_eq!(flows.load(i), 1);
    }

    #[test]
    fn a_pair_of_hosts_has_the_sum_of_their_bits_as_its_tag() {
        let mut flows = Flows::new(Isolation::Hosts);
        let i = flows.find(&packet(1, 2));
        let [source, destination] = host_hashes(&packet(1, 2));
        assert_eq!(flows.tags[i as usize], source ^ destination);
    }
}
