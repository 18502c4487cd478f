//! SFB as in Linux (`sch_sfb`): probabilities of 16 bits, and bins stored with each packet.

use super::{Bins, SfbParams};
use crate::aqm::Verdict;
use crate::cast;
use crate::context::Context;
use crate::packet::Packet;
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// Probability 1, in units of 2^-16.
const MAX_PROB: u32 = 0xFFFF;

#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct Bin {
    /// Packets in the queue.
    qlen: u32,
    /// Drop probability.
    p_mark: u32,
}

/// Keys of the bins that count a packet, per set; `None` if a set does not count it.
type Keys = [Option<u64>; 2];

/// State of Linux's SFB.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct LinuxSfb {
    /// Two sets of bins, of which `slot` is in use.
    bins: [Vec<Bin>; 2],
    salts: [u64; 2],
    slot: usize,
    levels: u64,
    bin_size: u32,
    max: u32,
    increment: u32,
    decrement: u32,
    interval: Span,
    warmup: Span,
    /// Time of the last change of the hash.
    rehashed: Time,
    warming: bool,
    /// Time of the first arrival, from which ticks are counted.
    first: Time,
    /// Ticks per second.
    hz: u64,
    penalty_rate: u64,
    penalty_burst: u64,
    tokens: u64,
    /// Tick of the last refill.
    token_tick: u64,
    /// Keys of the arriving packet, then of the queued packets.
    arriving: Keys,
    queued: VecDeque<Keys>,
    p_min: u32,
    q_min: u32,
}

impl LinuxSfb {
    pub(super) fn new(params: &SfbParams, started: Time) -> Box<LinuxSfb> {
        let bins = || vec![Bin::default(); cast::index(params.levels * params.bins)];
        let fixed = |p: f64| cast::low32(cast::trunc(p * f64::from(MAX_PROB) + 0.5));
        Box::new(LinuxSfb {
            bins: [bins(), bins()],
            salts: [1, 2],
            slot: 0,
            levels: params.levels,
            bin_size: cast::low32(params.bin_size),
            max: cast::low32(params.max),
            increment: fixed(params.d1),
            decrement: fixed(params.d2),
            interval: params.rehash_interval,
            warmup: params.warmup,
            rehashed: started,
            warming: false,
            first: Time::NEVER,
            hz: params.hz,
            penalty_rate: cast::trunc(params.penalty_rate),
            penalty_burst: cast::trunc(params.penalty_burst),
            tokens: cast::trunc(params.penalty_burst),
            token_tick: 0,
            arriving: [None; 2],
            queued: VecDeque::new(),
            p_min: 0,
            q_min: 0,
        })
    }

    fn tick(&self, now: Time) -> u64 {
        let ns = u128::from(now.since(self.first).0);
        cast::saturate(ns * u128::from(self.hz) / 1_000_000_000)
    }

    /// Starts the clock at the first arrival.
    pub(super) fn on_first_packet(&mut self, now: Time) {
        self.first = now;
        if self.rehashed == Time::NEVER {
            self.rehashed = now;
        }
    }

    /// Decides about `packet`, for which the queue has room.
    pub(super) fn on_enqueue(&mut self, context: &mut Context<'_>, packet: &Packet) -> Verdict {
        self.rehash(context);
        let slot = self.slot;
        let key = |salt: u64| salt << 32 | u64::from(packet.hash);
        self.arriving = [None; 2];
        self.arriving[slot] = Some(key(self.salts[slot]));
        (self.p_min, self.q_min) = self.count(slot, key(self.salts[slot]));
        if self.q_min >= self.max {
            return Verdict::Drop;
        }
        if self.p_min >= MAX_PROB {
            let spare = slot ^ 1;
            if self.warming {
                self.arriving[spare] = Some(key(self.salts[spare]));
                self.count(spare, key(self.salts[spare]));
            }
            return if self.limited(context.now) { Verdict::Drop } else { Verdict::Pass };
        }
        let r = context.rng.draw32() & MAX_PROB;
        if r >= self.p_min {
            return Verdict::Pass;
        }
        // Above one half, a growing part of the marks are drops.
        if self.p_min > MAX_PROB / 2 && r < (self.p_min - MAX_PROB / 2) * 2 {
            return Verdict::Drop;
        }
        Verdict::Mark
    }

    /// Changes the hash or starts the warm-up, if due. The set that goes out of use keeps its
    /// probabilities, and gets another hash.
    fn rehash(&mut self, context: &mut Context<'_>) {
        let end = self.rehashed + self.interval;
        let now = context.now;
        if now > end {
            self.salts[self.slot] = u64::from(context.rng.draw32());
            self.slot ^= 1;
            (self.warming, self.rehashed) = (false, now);
        } else if self.warmup > Span::ZERO && now + self.warmup > end {
            self.warming = true;
        }
    }

    /// Updates the bins of an arriving packet in a set; returns their smallest probability and
    /// smallest queue.
    fn count(&mut self, slot: usize, key: u64) -> (u32, u32) {
        let LinuxSfb { increment, decrement, bin_size, levels, .. } = *self;
        let (mut p_min, mut q_min) = (u32::MAX, u32::MAX);
        Bins::each_bin(&mut self.bins[slot], levels, key, |bin| {
            if bin.qlen == 0 {
                bin.p_mark = bin.p_mark.saturating_sub(decrement);
            } else if bin.qlen >= bin_size {
                bin.p_mark = (bin.p_mark + increment).min(MAX_PROB);
            }
            (p_min, q_min) = (p_min.min(bin.p_mark), q_min.min(bin.qlen));
        });
        (p_min, q_min)
    }

    /// True if the packet may not leave the penalty box. The box is filled only once it is empty,
    /// with the whole packets of at most ten seconds.
    fn limited(&mut self, now: Time) -> bool {
        if self.penalty_rate == 0 || self.penalty_burst == 0 {
            return true;
        }
        if self.tokens < 1 {
            let tick = self.tick(now);
            let age = (tick - self.token_tick).min(10 * self.hz);
            self.tokens = (age * self.penalty_rate / self.hz).min(self.penalty_burst);
            self.token_tick = tick;
            if self.tokens < 1 {
                return true;
            }
        }
        self.tokens -= 1;
        false
    }

    /// Counts the packet that arrived last as queued.
    pub(super) fn after_enqueue(&mut self) {
        let keys = self.arriving;
        self.each_counted(keys, |bin| bin.qlen = (bin.qlen + 1).min(MAX_PROB));
        self.queued.push_back(keys);
    }

    /// Counts the packet at the head as sent.
    pub(super) fn on_sent(&mut self) {
        let keys = self.queued.pop_front().unwrap_or_default();
        self.each_counted(keys, |bin| bin.qlen = bin.qlen.saturating_sub(1));
    }

    fn each_counted(&mut self, keys: Keys, mut f: impl FnMut(&mut Bin)) {
        for (bins, key) in self.bins.iter_mut().zip(keys) {
            if let Some(key) = key {
                Bins::each_bin(bins, self.levels, key, &mut f);
            }
        }
    }

    /// Values shown by `inspect`: probability, queue and tokens.
    pub(super) fn shown(&self) -> [f64; 3] {
        let p_min = f64::from(self.p_min) / f64::from(MAX_PROB);
        [p_min, f64::from(self.q_min), self.tokens as f64]
    }

    /// Size of the state in bytes.
    pub(super) fn state_bytes(&self) -> usize {
        size_of_val(self)
            + 2 * size_of_val(&*self.bins[0])
            + self.queued.capacity() * size_of::<Keys>()
    }
}

#[cfg(test)]
mod tests;
