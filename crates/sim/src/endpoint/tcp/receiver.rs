//! TCP receiver: immediate or delayed cumulative acks, SACK blocks, and ECN echo.
//!
//! Shared by all profiles. `rfc` and `ns2` differ in one case, see [`Receiver::on_segment`]; the
//! acks of `quic` are in `receiver/quic_acks.rs`.

mod linux_acks;
mod linux_compression;
mod linux_rtt;
mod linux_window;
mod quic_acks;

use self::linux_acks::LinuxAcks;
use self::quic_acks::QuicAcks;
use super::jiffies::TimerClock;
use super::params::{EcnFeedback, LossRecovery, Profile, TcpParams, resolved};
use super::ranges::Ranges;
use super::{Ack, SYN_OPTIONS, Segment};
use sojourn_aqm::Snapshot;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};

/// SACK blocks per ack: as in ns-2, and as fit into a header with the timestamps option.
const BLOCKS: usize = 3;
/// Size of a SACK block on the wire, bytes.
const BLOCK_BYTES: u16 = 8;

/// Value that an ack returns in [`Ack::echo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
enum Echo {
    /// Timestamp by the rules of RFC 7323.
    Timestamp,
    /// Sum of the feedback of XCP since the last ack.
    Sum,
    /// Number of the telemetry of the last segment.
    Last,
}

impl Echo {
    fn of(params: &TcpParams) -> Echo {
        match params {
            params if params.is_xcp() => Echo::Sum,
            params if params.wants_telemetry() => Echo::Last,
            _ => Echo::Timestamp,
        }
    }
}

/// Receiver of a flow.
#[derive(Clone, Debug, Snapshot)]
pub struct Receiver {
    /// Next expected sequence number.
    next: u64,
    /// Out-of-order data above `next`.
    held: Ranges,
    /// SACK only: the most recently changed blocks, latest first.
    recent: [(u64, u64); BLOCKS],
    recents: u8,
    /// Time at which the delayed ack is due.
    due: Time,
    /// True while ECE is set on acks: from a mark until the sender's CWR.
    echo: bool,
    /// True if a mark arrived since the last ack.
    marked: bool,
    /// True if CWR arrived since the last ack.
    answered: bool,
    sack: bool,
    ns2: bool,
    feedback: EcnFeedback,
    /// True if a segment may cause an ack of the state before it.
    acks_before: bool,
    /// True if the last segment was marked.
    ce: bool,
    ack_bytes: u16,
    /// Bytes by which the answer to a SYN is longer than an ack.
    syn_options: u16,
    /// Payload bytes per unit of sequence number.
    unit: u64,
    clock: TimerClock,
    /// Delay of a delayed ack; `None` if acks are immediate.
    delay: Option<Span>,
    /// True if duplicate data is reported (RFC 2883), and the data that the next ack reports.
    reports_duplicates: bool,
    duplicate: (u64, u64),
    /// State of `linux_acks`.
    linux: Option<Box<LinuxAcks>>,
    /// State of the profile `quic`.
    quic: Option<Box<QuicAcks>>,
    /// Value that acks return for the timestamps of segments.
    echo_of: Echo,
    /// True if none of these three is used.
    plain: bool,
    /// Sequence number of the FIN of this connection; 0 before it arrives, [`u64::MAX`] once all
    /// data before it has arrived.
    fin: u64,
    /// Last ack: written in place and returned by reference, because it is large. Its count of
    /// marked packets covers the connection so far.
    last: Ack,
    /// Payload bytes delivered in previous connections, less one for a FIN that was received in
    /// order in this connection, modulo 2^64.
    before: u64,
}

impl Receiver {
    /// Creates a receiver that waits for its first connection. Draws one random number, the clock
    /// phase, with `jiffies`.
    pub fn new(params: &TcpParams, rng: &mut dyn Random) -> Receiver {
        let s = &params.settings;
        let ns2 = s.profile == Profile::Ns2;
        let linux_acks = s.linux_acks && resolved(s.delayed_ack);
        let ack_bytes = u16::try_from(s.header_bytes()).expect("header is at most 1,000 bytes");
        let quic = s.profile == Profile::Quic;
        let delay = resolved(s.delayed_ack).then(|| resolved(s.delayed_ack_timeout));
        Receiver {
            next: 0,
            held: Ranges::default(),
            recent: [(0, 0); BLOCKS],
            recents: 0,
            due: Time::NEVER,
            echo: false,
            marked: false,
            answered: false,
            sack: params.recovery == LossRecovery::Sack && !quic,
            ns2,
            feedback: resolved(s.ecn_feedback),
            acks_before: resolved(s.ecn_feedback) == EcnFeedback::Rfc8257 || s.linux_acks,
            ce: false,
            ack_bytes,
            syn_options: if s.linux_syn { SYN_OPTIONS } else { 0 },
            unit: if ns2 { s.payload() } else { 1 },
            clock: TimerClock::new(s, rng),
            delay,
            reports_duplicates: s.dsack && params.recovery == LossRecovery::Sack && !quic,
            duplicate: (0, 0),
            linux: linux_acks.then(|| Box::new(LinuxAcks::new(resolved(s.delayed_ack_timeout)))),
            quic: quic.then(|| Box::new(QuicAcks::new(delay))),
            echo_of: Echo::of(params),
            plain: !linux_acks
                && !quic
                && !s.fin
                && Echo::of(params) == Echo::Timestamp
                && !s.timestamps,
            fin: 0,
            last: Ack { wire: ack_bytes, ..Ack::default() },
            before: 0,
        }
    }

    /// Resets the connection; the count of delivered bytes is kept.
    pub fn reset(&mut self) {
        self.before = self.delivered_bytes();
        self.next = 0;
        self.held.clear();
        (self.recents, self.due) = (0, Time::NEVER);
        (self.echo, self.marked, self.answered) = (false, false, false);
        (self.ce, self.last.ce_packets) = (false, 0);
        (self.last.ack, self.last.echo, self.duplicate) = (0, 0, (0, 0));
        self.fin = 0;
        if let Some(linux) = &mut self.linux {
            linux.reset();
        }
        if let Some(quic) = &mut self.quic {
            quic.reset();
        }
    }

    /// Prepares for [`Receiver::on_segment`], with the same arguments. Returns an ack of the state
    /// before the segment, if there is one to send first: with the echo of RFC 8257, a change of
    /// the mark state sends a delayed ack with the old state (§3.2); with `linux_acks`, a new SACK
    /// block may send a compressed ack.
    #[inline]
    pub fn before_segment(&mut self, seg: &Segment, ce: bool) -> Option<&Ack> {
        if self.acks_before { self.ack_before(seg, ce) } else { None }
    }

    #[cold]
    fn ack_before(&mut self, seg: &Segment, ce: bool) -> Option<&Ack> {
        if seg.is_pure_ack() {
            return None;
        }
        // Marks on a SYN are ignored (RFC 8257 §3.5).
        let ce = ce && seg.ect && !seg.syn;
        if self.feedback == EcnFeedback::Rfc8257 && ce != self.ce {
            return self.ce_changed(ce);
        }
        self.before_linux_segment(seg)
    }

    fn ce_changed(&mut self, ce: bool) -> Option<&Ack> {
        let held = self.due != Time::NEVER;
        if held {
            if let Some(linux) = &mut self.linux {
                linux.compression.on_ack();
            }
            self.write_ack(false);
        }
        (self.ce, self.echo) = (ce, ce);
        // Pretend that an ack is delayed: the first segment after a change is acknowledged at once.
        self.due = Time::ZERO;
        held.then_some(&self.last)
    }

    /// Processes a segment with CE mark `ce`. Returns the ack, or `None` if it is delayed.
    ///
    /// At most one ack is delayed, for one in-order segment. A segment that is out of order, below
    /// the cumulative ack or fills part of a gap is acknowledged at once (RFC 5681 §4.2), and so is
    /// a SYN. In the `ns2` profile, a duplicate of the last packet is delayed as well. With
    /// accurate ECN feedback, a segment whose mark differs from the mark of the one before is
    /// acknowledged at once (RFC 9768).
    #[inline(always)]
    pub fn on_segment(&mut self, now: Time, seg: &Segment, ce: bool) -> Option<&Ack> {
        if ce || seg.cwr {
            self.marked |= ce && seg.ect && !seg.is_pure_ack();
            self.answered |= seg.cwr;
        }
        let end = seg.seq + if seg.syn { 1 } else { u64::from(seg.len) };
        let in_order = seg.seq <= self.next && end > self.next;
        let whole = self.held.is_empty();
        if in_order && whole {
            self.next = end;
        } else if in_order {
            self.next = self.held.containing(end).map_or(end, |r| r.1);
            self.held.remove_below(self.next);
        } else if end > self.next {
            if self.held.insert(seg.seq, end) == 0 {
                self.note_duplicate(seg, end);
            }
            if self.sack {
                self.move_block_to_front(seg.seq);
            }
        } else if seg.is_pure_ack() {
            return None;
        } else {
            self.note_duplicate(seg, end);
        }
        let accurate = self.feedback == EcnFeedback::Accurate;
        let changed = accurate && !seg.syn && self.count_mark(ce && seg.ect);
        if !self.plain {
            if self.quic.is_some() {
                return self.acknowledge_as_quic(now, seg, ce && seg.ect);
            }
            match self.echo_of {
                Echo::Timestamp => self.note_timestamp(seg),
                Echo::Sum => self.add_feedback(seg),
                Echo::Last => self.last.echo = seg.timestamp,
            }
            self.note_fin(seg);
            if self.linux.is_some() {
                let at_once = seg.syn || changed;
                return self.acknowledge_as_linux(now, seg, in_order, whole, at_once);
            }
        }
        let delayable = || {
            let again = || self.ns2 && end == self.next;
            whole && !seg.syn && (in_order || again()) && !changed
        };
        match self.delay {
            Some(delay) if self.due == Time::NEVER && delayable() => {
                self.due = now + delay;
                None
            }
            _ => {
                self.due = Time::NEVER;
                Some(self.write_ack(seg.syn))
            }
        }
    }

    /// Notes the timestamp of a segment that an ack will be for (RFC 7323 §4.3).
    fn note_timestamp(&mut self, seg: &Segment) {
        let newer = seg.timestamp.wrapping_sub(self.last.echo).cast_signed() >= 0;
        if newer && seg.seq <= self.last.ack {
            self.last.echo = seg.timestamp;
        }
    }

    /// Adds the feedback of XCP to the sum for the next ack, which starts anew after each ack.
    fn add_feedback(&mut self, seg: &Segment) {
        let sum = if self.due == Time::NEVER { 0 } else { self.last.echo.cast_signed() };
        let feedback = seg.timestamp.cast_signed();
        self.last.echo = sum.saturating_add(feedback).cast_unsigned();
    }

    /// Notes a FIN, and does not count it as payload once it is received in order.
    fn note_fin(&mut self, seg: &Segment) {
        if seg.fin && self.fin == 0 {
            self.fin = seg.seq;
        }
        if self.fin > 0 && self.fin < self.next {
            self.before = self.before.wrapping_sub(1);
            self.fin = u64::MAX;
        }
    }

    /// Notes a segment up to `end` that had arrived before.
    #[cold]
    fn note_duplicate(&mut self, seg: &Segment, end: u64) {
        if self.reports_duplicates && !seg.syn {
            self.duplicate = (seg.seq, end);
            self.last.blocks = self.last.blocks.max(1); // so that the next ack writes its blocks
        }
    }

    /// Counts the mark of a segment; returns true if the one before differs.
    #[inline(never)]
    fn count_mark(&mut self, ce: bool) -> bool {
        self.last.ce_packets = self.last.ce_packets.wrapping_add(u16::from(ce));
        std::mem::replace(&mut self.ce, ce) != ce
    }

    /// Time at which [`Receiver::on_timer`] is due; [`Time::NEVER`] if no ack is delayed.
    pub fn timer(&self) -> Time {
        self.due
    }

    /// Sends the delayed ack, if it is due.
    #[inline]
    pub fn on_timer(&mut self, now: Time) -> Option<&Ack> {
        if now < self.due { None } else { Some(self.send_delayed_ack()) }
    }

    #[cold]
    fn send_delayed_ack(&mut self) -> &Ack {
        if self.quic.is_some() {
            self.write_quic_ack(self.due, false);
            return &self.last;
        }
        if let Some(linux) = &mut self.linux
            && !linux.on_ack()
        {
            linux.on_timer();
        }
        self.due = Time::NEVER;
        self.write_ack(false)
    }

    /// Prefetch the ranges that the next segment will need.
    #[inline]
    pub fn fetch(&self) {
        self.held.fetch();
    }

    /// Last ack.
    pub fn last_ack(&self) -> &Ack {
        &self.last
    }

    /// Payload bytes delivered in order in all connections; duplicates count once.
    pub fn delivered_bytes(&self) -> u64 {
        self.before.wrapping_add(self.received_in_connection())
    }

    /// Payload bytes delivered in order in this connection.
    pub fn received_in_connection(&self) -> u64 {
        self.next.saturating_sub(1) * self.unit
    }

    /// Moves the block around `seq` to the front of the recently changed blocks.
    fn move_block_to_front(&mut self, seq: u64) {
        let block = self.held.containing(seq).expect("the block was just inserted");
        let mut recent = [block; BLOCKS];
        let mut count = 1u8;
        for &old in &self.recent[..usize::from(self.recents)] {
            // Skip blocks that were merged into the new one.
            if usize::from(count) < BLOCKS && !(block.0..block.1).contains(&old.0) {
                recent[usize::from(count)] = old;
                count += 1;
            }
        }
        (self.recent, self.recents) = (recent, count);
    }

    /// Writes an ack of the current state.
    #[inline(always)]
    fn write_ack(&mut self, syn: bool) -> &Ack {
        if self.marked | self.answered {
            self.update_echo();
        }
        let ack = &mut self.last;
        (ack.ack, ack.ece, ack.syn) = (self.next, self.echo, syn);
        // Without blocks now and in the last ack, nothing changes.
        if self.recents | ack.blocks > 0 {
            self.write_blocks();
        }
        &self.last
    }

    #[inline(never)]
    fn update_echo(&mut self) {
        // One mark among the acknowledged packets is enough; CWR clears only marks echoed before it
        // (RFC 3168 §6.1.3).
        self.echo = match self.feedback {
            EcnFeedback::Rfc3168 => self.marked || self.echo && !self.answered,
            EcnFeedback::Rfc8257 => self.ce,
            EcnFeedback::Accurate => false,
        };
        (self.marked, self.answered) = (false, false);
    }

    /// Writes the SACK blocks of the ack.
    fn write_blocks(&mut self) {
        let ack = &mut self.last;
        (ack.sacks, ack.blocks) = Default::default();
        let duplicate = std::mem::take(&mut self.duplicate);
        if duplicate.1 > 0 {
            (ack.sacks[0], ack.blocks) = (duplicate, 1); // RFC 2883
        }
        let mut kept = 0;
        for i in 0..usize::from(self.recents) {
            // Drop blocks below the cumulative ack.
            if self.recent[i].0 > self.next {
                self.recent[usize::from(kept)] = self.recent[i];
                kept += 1;
                if usize::from(ack.blocks) < BLOCKS {
                    ack.sacks[usize::from(ack.blocks)] = self.recent[i];
                    ack.blocks += 1;
                }
            }
        }
        self.recents = kept;
        ack.wire = self.ack_bytes + u16::from(ack.blocks) * BLOCK_BYTES;
    }
}

#[cfg(test)]
mod tests;
