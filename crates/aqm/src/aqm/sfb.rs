//! SFB: stochastic fair BLUE, which limits unresponsive flows.
//!
//! **Source** W. Feng, D. Kandlur, D. Saha, K. Shin, "Stochastic Fair Blue: A Queue Management
//! Algorithm for Enforcing Fairness", INFOCOM 2001; caps and defaults of Linux's sch_sfb, names of
//! tc-sfb(8).
//!
//! **Decides** on arrival.
//!
//! **Measures** the packets of each bin, instantaneous.
//!
//! **Symbols** `levels` (L), `bins` (N), `bin_size`, `pm` per bin, `d1`, `d2`; `pmin` and `qmin`
//! the minima over the levels.
//!
//! **Algorithm** A flow is hashed to one bin per level. Each of its packets adds `d1` to the drop
//! probability of a bin that holds `bin_size` packets, and subtracts `d2` from the drop probability
//! of an empty bin. The drop probability of a packet is the minimum over its bins: a responsive
//! flow shares it with an unresponsive one only if they collide on every level. If even the minimum
//! is 1, the flow is in the penalty box, and all such flows together pass at `penalty_rate`. Above
//! a probability of 1/2, marks are increasingly replaced by drops. The hash changes every
//! `rehash_interval`; before that, a second set of bins is warmed up by the flows in the penalty
//! box.
//!
//! **Departures** (1) Linux stores the bins of a packet with it; here the bins of a new hash count
//! the queued packets once, when they come into use. (2) A second random number decides whether a
//! mark becomes a drop. Linux uses one number for both decisions; the probabilities are equal. (3)
//! The token bucket of the penalty box fills at all times, not only once it is empty. (4)
//! `rehash_interval` counts from the first arrival. (5) The defaults of `d1` and `d2`, 1/1000 and
//! 1/6000, are the defaults of the Linux kernel. `tc` always sends values of its own, by default
//! 0.0005 and 0.00005 (tc-sfb(8)): with these the probabilities rise half as fast and fall three
//! tenths as fast.
//!
//! **Linux** With `variant = "linux"`, as `sch_sfb`: (1) Probabilities have 16 bits; `d1` and `d2`
//! are rounded to them. (2) One random number decides whether a packet is marked and whether a drop
//! replaces the mark. (3) The penalty box is filled once it is empty, with the whole packets of the
//! time since the last attempt to fill it, at most ten seconds, counted in ticks of `1 / hz`. (4) A
//! packet is counted in the bins of the hash with which it arrived. During the warm-up only packets
//! of the penalty box are counted in the next set as well. (5) A set that goes out of use keeps its
//! probabilities until it is used again. (6) The hash changes at the first arrival more than
//! `rehash_interval` after the last change. (7) `penalty_rate` and `penalty_burst` are whole.
//!
//! **Cost** 4400 bytes of state: 32 per bin and level, independent of the number of flows. Per
//! packet one hash per level and a random number; O(n) in the queued packets when the bins change.

mod linux;

use super::{Aqm, SingleQueue, Verdict, fits};
use crate::build::Env;
use crate::cast;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::random::mix;
use crate::snapshot::Snapshot;
use crate::units::{Size, Span, Time};
use alloc::boxed::Box;
use alloc::vec::Vec;
use alloc::{format, vec};
use linux::LinuxSfb;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry =
    QdiscEntry::new::<SingleQueue<Sfb>>("sfb", "BLUE in hashed bins: limits unresponsive flows")
        .decides("on arrival: the smallest drop probability of the flow's bins, one per level")
        .source("Feng, Kandlur, Saha and Shin, INFOCOM 2001; Linux sch_sfb");

crate::choice! {
    /// Variant of the algorithm.
    pub enum Variant {
        /// The paper, with the caps of Linux.
        Paper = "paper",
        /// Linux: probabilities of 16 bits, and its rules for queued packets when the hash changes.
        Linux = "linux",
    }
}

crate::params! {
    /// Parameters of [`Sfb`].
    pub struct SfbParams {
        /// Number of levels, each with its own hash.
        levels: u64 = 8, [1 => 16], "L", [];
        /// Bins per level.
        bins: u64 = 16, [1 => 4096], "N", ["buckets"];
        /// Packets in a bin from which on its drop probability rises.
        bin_size: u64 = 20, [1 => 1_000_000], "bin_size", ["target"];
        /// Packets in every bin of a flow at which all its packets are dropped.
        max: u64 = 25, [1 => 1_000_000], "", [];
        /// Increase of a full bin's drop probability per arrival; tc-sfb(8) sends 0.0005.
        d1: f64 = 0.001, [0.0 => 1.0], "d1", ["increment"];
        /// Decrease of an empty bin's drop probability per arrival; tc-sfb(8) sends 0.00005.
        d2: f64 = 1.0 / 6000.0, [0.0 => 1.0], "d2", ["decrement"];
        /// Time between two changes of the hash.
        rehash_interval: Span = Span::s(600), [Span::ms(1) => Span::s(3600)], "", ["rehash"];
        /// Time before a change at which the next bins start to warm up.
        warmup: Span = Span::s(60), [Span::ZERO => Span::s(3600)], "", ["warmup_time", "db"];
        /// Rate at which packets leave the penalty box, packets per second.
        penalty_rate: f64 = 10.0, [0.0 => 1e6], "", [];
        /// Burst of packets that may leave the penalty box at once.
        penalty_burst: f64 = 20.0, [0.0 => 1e6], "", [];
        /// Variant of the algorithm.
        variant: Variant = Variant::Paper, [], "", [];
        /// Linux: timer ticks per second (CONFIG_HZ), in which the penalty box is filled.
        hz: u64 = 250, [1 => 10_000], "", [];
    }
}

#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct Bin {
    /// Packets in the queue.
    qlen: u32,
    /// Drop probability.
    pm: f64,
}

/// Bins of all levels under one hash.
#[derive(Clone, Debug, Snapshot)]
struct Bins {
    bins: Vec<Bin>,
    levels: u64,
    salt: u64,
}

impl Bins {
    /// Calls `f` for the bins of a flow, one per level.
    fn each(&mut self, hash: u32, f: impl FnMut(&mut Bin)) {
        let key = self.salt << 32 | u64::from(hash);
        Bins::each_bin(&mut self.bins, self.levels, key, f);
    }

    /// Calls `f` for the bins of a key of salt and hash, one per level.
    fn each_bin<B>(bins: &mut [B], levels: u64, key: u64, mut f: impl FnMut(&mut B)) {
        let n = bins.len() as u64 / levels;
        for level in 0..levels {
            let h = mix(key ^ level << 59);
            let k = ((h >> 32) * n) >> 32;
            f(&mut bins[cast::index(level * n + k)]);
        }
    }

    fn count(&mut self, hash: u32, by: i32) {
        self.each(hash, |bin| bin.qlen = bin.qlen.wrapping_add_signed(by));
    }

    /// Restarts with another hash, counting the packets queued now.
    fn renew(&mut self, salt: u64, queue: &QueueView<'_>) {
        self.salt = salt;
        self.bins.fill(Bin::default());
        queue.for_each(|p| self.count(p.hash, 1));
    }

    /// Updates the bins of an arriving packet; returns their smallest drop probability and smallest
    /// queue.
    fn arrive(&mut self, hash: u32, params: &SfbParams) -> (f64, u32) {
        let (mut pmin, mut qmin) = (1.0f64, u32::MAX);
        self.each(hash, |bin| {
            if bin.qlen == 0 {
                bin.pm = (bin.pm - params.d2).max(0.0);
            } else if u64::from(bin.qlen) >= params.bin_size {
                bin.pm = (bin.pm + params.d1).min(1.0);
            }
            (pmin, qmin) = (pmin.min(bin.pm), qmin.min(bin.qlen));
        });
        (pmin, qmin)
    }
}

/// State of SFB.
#[derive(Clone, Debug, Snapshot)]
pub struct Sfb {
    params: SfbParams,
    limit: Size,
    /// Bins in use.
    current: Bins,
    /// Bins of the next period; they are updated only during the warm-up.
    spare: Bins,
    warming: bool,
    /// Time of the next change of the hash; never before the first arrival.
    rehash_at: Time,
    /// Tokens of the penalty box, packets, and the time of that value.
    tokens: f64,
    tokens_at: Time,
    /// Smallest drop probability and queue of the last arrival's bins, for inspection.
    pmin: f64,
    qmin: u32,
    /// State of Linux's SFB, which replaces the fields above.
    linux: Option<Box<LinuxSfb>>,
}

impl Sfb {
    /// Changes the hash and starts the warm-up when they are due.
    fn rehash(&mut self, context: &mut Context<'_>, queue: &QueueView<'_>) {
        let SfbParams { rehash_interval, warmup, .. } = self.params;
        let salt = |context: &mut Context<'_>| u64::from(context.rng.below(u32::MAX));
        if context.now >= self.rehash_at {
            let more = (context.now - self.rehash_at).0 / rehash_interval.0;
            core::mem::swap(&mut self.current, &mut self.spare);
            if !self.warming || more > 0 {
                self.current.renew(salt(context), queue);
            }
            self.rehash_at += Span((more + 1) * rehash_interval.0);
            self.warming = false;
        }
        if !self.warming && self.rehash_at - context.now <= warmup {
            self.spare.renew(salt(context), queue);
            self.warming = true;
        }
    }

    /// True if one more packet may leave the penalty box.
    fn released(&mut self, now: Time) -> bool {
        let SfbParams { penalty_rate, penalty_burst, .. } = self.params;
        let grown = self.tokens + now.since(self.tokens_at).as_secs() * penalty_rate;
        (self.tokens, self.tokens_at) = (grown.min(penalty_burst), now);
        let released = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(released));
        released
    }

    fn count(&mut self, packet: &Packet, by: i32) {
        self.current.count(packet.hash, by);
        if self.warming {
            self.spare.count(packet.hash, by);
        }
    }
}

impl Aqm for Sfb {
    type Params = SfbParams;

    fn new(params: Checked<'_, SfbParams>, env: &Env) -> Result<Self> {
        let SfbParams { levels, bins, bin_size, max, warmup, rehash_interval, .. } = *params;
        if max < bin_size {
            let text = format!("{max} is below bin_size ({bin_size}): no probability would rise");
            return Err(Error::new(text).at("max"));
        }
        if warmup > rehash_interval {
            let text = format!("{warmup} is longer than rehash_interval ({rehash_interval})");
            return Err(Error::new(text).at("warmup"));
        }
        let bins =
            |salt| Bins { bins: vec![Bin::default(); cast::index(levels * bins)], levels, salt };
        let started = env.first_update.unwrap_or(Time::NEVER);
        Ok(Sfb {
            linux: (params.variant == Variant::Linux).then(|| LinuxSfb::new(&params, started)),
            limit: env.limit,
            current: bins(1),
            spare: bins(2),
            warming: false,
            rehash_at: started,
            tokens: params.penalty_burst,
            tokens_at: Time::ZERO,
            pmin: 0.0,
            qmin: 0,
            params: (*params).clone(),
        })
    }

    fn on_first_packet(&mut self, now: Time) {
        if self.rehash_at == Time::NEVER {
            self.rehash_at = now + self.params.rehash_interval;
        }
        if let Some(linux) = &mut self.linux {
            linux.on_first_packet(now);
        }
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        if !fits(self.limit, queue.packets(), queue.bytes(), packet) {
            return Verdict::Drop;
        }
        if let Some(linux) = &mut self.linux {
            return linux.on_enqueue(context, packet);
        }
        self.rehash(context, queue);
        (self.pmin, self.qmin) = self.current.arrive(packet.hash, &self.params);
        if u64::from(self.qmin) >= self.params.max {
            return Verdict::Drop;
        }
        if self.pmin >= 1.0 {
            if self.warming {
                self.spare.arrive(packet.hash, &self.params);
            }
            return if self.released(context.now) { Verdict::Pass } else { Verdict::Drop };
        }
        if !context.rng.bernoulli(self.pmin) {
            return Verdict::Pass;
        }
        // A share of 2 (pmin - 1/2) of all packets is dropped even if ECN-capable.
        let spared = self.pmin <= 0.5 || context.rng.bernoulli((1.0 - self.pmin) / self.pmin);
        if spared { Verdict::Mark } else { Verdict::Drop }
    }

    fn after_enqueue(&mut self, packet: &Packet) {
        match &mut self.linux {
            Some(linux) => linux.after_enqueue(),
            None => self.count(packet, 1),
        }
    }

    fn sends_head(&self) -> bool {
        true
    }

    fn on_dequeue(
        &mut self,
        _context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _ecn: bool,
    ) -> Option<Packet> {
        let packet = queue.pop()?;
        match &mut self.linux {
            Some(linux) => linux.on_sent(),
            None => self.count(&packet, -1),
        }
        Some(packet)
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        if let Some(linux) = &self.linux {
            let shown = ["pmin", "qmin", "tokens"].into_iter().zip(linux.shown());
            return shown.for_each(|(name, value)| visit(name, value));
        }
        // Smallest drop probability of the last arrival's bins.
        visit("pmin", self.pmin);
        // Smallest queue of the last arrival's bins, packets.
        visit("qmin", f64::from(self.qmin));
        // Packets that may leave the penalty box at once.
        visit("tokens", self.tokens);
    }

    fn state_bytes(&self) -> usize {
        let bins = size_of_val(&*self.current.bins) + size_of_val(&*self.spare.bins);
        size_of_val(self) + bins + self.linux.as_ref().map_or(0, |linux| linux.state_bytes())
    }
}

#[cfg(test)]
mod tests;
