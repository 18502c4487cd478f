//! TCP receiver: immediate or delayed cumulative acks, SACK blocks, and ECN echo.
//!
//! Shared by both profiles, which differ in one case; see [`Receiver::on_segment`].

mod linux_acks;
mod linux_compression;
mod linux_window;

use self::linux_acks::LinuxAcks;
use super::params::{EcnFeedback, LossRecovery, Profile, TcpParams, resolved};
use super::ranges::Ranges;
use super::{Ack, Segment};
use sojourn_aqm::units::{Span, Time};

/// SACK blocks per ack: as in ns-2, and as fit into a header with the timestamps option.
const BLOCKS: usize = 3;
/// Size of a SACK block on the wire, bytes.
const BLOCK_BYTES: u16 = 8;

/// Receiver of a flow.
#[derive(Clone, Debug)]
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
    /// Payload bytes per unit of sequence number.
    unit: u64,
    /// Delay of a delayed ack; `None` if acks are immediate.
    delay: Option<Span>,
    /// True if duplicate data is reported (RFC 2883), and the data that the next ack reports.
    reports_duplicates: bool,
    duplicate: (u64, u64),
    /// State of `linux_acks`.
    linux: Option<Box<LinuxAcks>>,
    /// Last ack: written in place and returned by reference, because it is large. Its count of
    /// marked packets is that of the connection so far.
    last: Ack,
    /// Payload bytes delivered in previous connections.
    before: u64,
}

impl Receiver {
    /// Create a receiver that waits for its first connection.
    pub fn new(params: &TcpParams) -> Receiver {
        let s = &params.settings;
        let ns2 = s.profile == Profile::Ns2;
        let ack_bytes = u16::try_from(s.header_bytes()).expect("header is at most 1,000 bytes");
        Receiver {
            next: 0,
            held: Ranges::default(),
            recent: [(0, 0); BLOCKS],
            recents: 0,
            due: Time::NEVER,
            echo: false,
            marked: false,
            answered: false,
            sack: params.recovery == LossRecovery::Sack,
            ns2,
            feedback: resolved(s.ecn_feedback),
            acks_before: resolved(s.ecn_feedback) == EcnFeedback::Rfc8257 || s.linux_acks,
            ce: false,
            ack_bytes,
            unit: if ns2 { s.payload() } else { 1 },
            delay: resolved(s.delayed_ack).then(|| resolved(s.delayed_ack_timeout)),
            reports_duplicates: s.dsack && params.recovery == LossRecovery::Sack,
            duplicate: (0, 0),
            linux: s.linux_acks.then(|| Box::new(LinuxAcks::new(resolved(s.delayed_ack_timeout)))),
            last: Ack { wire: ack_bytes, ..Ack::default() },
            before: 0,
        }
    }

    /// Reset the connection; the count of delivered bytes is kept.
    pub fn reset(&mut self) {
        self.before = self.delivered_bytes();
        self.next = 0;
        self.held.clear();
        (self.recents, self.due) = (0, Time::NEVER);
        (self.echo, self.marked, self.answered) = (false, false, false);
        (self.ce, self.last.ce_packets) = (false, 0);
        (self.last.ack, self.last.echo, self.duplicate) = (0, 0, (0, 0));
        if let Some(linux) = &mut self.linux {
            linux.reset();
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

    /// Process a segment with CE mark `ce`. Returns the ack, or `None` if it is delayed.
    ///
    /// At most one ack is delayed, for one in-order segment. A segment that is out of order, below
    /// the cumulative ack or fills part of a gap is acknowledged at once (RFC 5681 §4.2), and so is
    /// a SYN. In the `ns2` profile, a duplicate of the last packet is delayed as well. With
    /// accurate ECN feedback, a segment whose mark differs from that of the one before is
    /// acknowledged at once (RFC 9768).
    #[inline(always)]
    pub fn on_segment(&mut self, now: Time, seg: &Segment, ce: bool) -> Option<&Ack> {
        if ce || seg.cwr {
            self.marked |= ce && seg.ect;
            self.answered |= seg.cwr;
        }
        // RFC 7323 §4.3: the timestamp of the segment that an ack is for.
        if seg.timestamp > 0 && seg.seq <= self.last.ack {
            let newer = seg.timestamp.wrapping_sub(self.last.echo).cast_signed() >= 0;
            self.last.echo = if newer { seg.timestamp } else { self.last.echo };
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
        } else {
            self.note_duplicate(seg, end);
        }
        let accurate = self.feedback == EcnFeedback::Accurate;
        let changed = accurate && !seg.syn && self.count_mark(ce && seg.ect);
        if self.linux.is_some() {
            let at_once = seg.syn || changed;
            return self.acknowledge_as_linux(now, seg, in_order, whole, at_once);
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

    /// Notes a segment up to `end` that had arrived before.
    #[cold]
    fn note_duplicate(&mut self, seg: &Segment, end: u64) {
        if self.reports_duplicates && !seg.syn {
            self.duplicate = (seg.seq, end);
        }
    }

    /// Count the mark of a segment; returns true if the one before differs.
    #[inline(never)]
    fn count_mark(&mut self, ce: bool) -> bool {
        self.last.ce_packets = self.last.ce_packets.wrapping_add(u16::from(ce));
        std::mem::replace(&mut self.ce, ce) != ce
    }

    /// Time at which [`Receiver::on_timer`] is due; [`Time::NEVER`] if no ack is delayed.
    pub fn timer(&self) -> Time {
        self.due
    }

    /// Send the delayed ack, if it is due.
    #[inline]
    pub fn on_timer(&mut self, now: Time) -> Option<&Ack> {
        if now < self.due { None } else { Some(self.send_delayed_ack()) }
    }

    #[cold]
    fn send_delayed_ack(&mut self) -> &Ack {
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
        self.before + self.received_in_connection()
    }

    /// Payload bytes delivered in order in this connection.
    pub fn received_in_connection(&self) -> u64 {
        self.next.saturating_sub(1) * self.unit
    }

    /// Move the block around `seq` to the front of the recently changed blocks.
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

    /// Write an ack of the current state.
    #[inline(always)]
    fn write_ack(&mut self, syn: bool) -> &Ack {
        if self.marked | self.answered {
            self.update_echo();
        }
        let ack = &mut self.last;
        (ack.ack, ack.ece, ack.syn) = (self.next, self.echo, syn);
        // Without blocks now and in the last ack, nothing changes.
        if self.recents | ack.blocks > 0 || self.duplicate.1 > 0 {
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

    /// Write the SACK blocks of the ack.
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
mod tests {
    use super::super::parse;
    use super::*;
    use sojourn_aqm::params::Setting::{Flag, Text};

    fn receiver(profile: &str, delayed: bool) -> Receiver {
        let s = [("profile", Text(profile)), ("delayed_ack", Flag(delayed))];
        let mut r = Receiver::new(&parse("sack", s).unwrap());
        let syn = r.on_segment(Time::ZERO, &Segment { syn: true, ..Segment::default() }, false);
        assert_eq!(syn.map(|a| (a.ack, a.syn, a.wire)), Some((1, true, 40)), "at once");
        r
    }

    /// Segment of one unit.
    fn at(seq: u64) -> Segment {
        Segment { seq, len: 1, ect: true, ..Segment::default() }
    }

    fn blocks(ack: Ack) -> (u64, Vec<(u64, u64)>, u16) {
        (ack.ack, ack.sacks[..ack.blocks.into()].to_vec(), ack.wire)
    }

    #[test]
    fn latest_block_comes_first_of_at_most_three() {
        let mut r = receiver("ns2", false);
        let mut take = |seq| blocks(*r.on_segment(Time::ZERO, &at(seq), false).unwrap());
        assert_eq!(take(1), (2, vec![], 40));
        assert_eq!(take(3), (2, vec![(3, 4)], 48));
        assert_eq!(take(5), (2, vec![(5, 6), (3, 4)], 56));
        assert_eq!(take(7), (2, vec![(7, 8), (5, 6), (3, 4)], 64));
        assert_eq!(take(9), (2, vec![(9, 10), (7, 8), (5, 6)], 64));
        assert_eq!(take(4), (2, vec![(3, 6), (9, 10), (7, 8)], 64), "merged");
        assert_eq!(
            take(7),
            (2, vec![(7, 8), (3, 6), (9, 10)], 64),
            "a duplicate also moves its block to the front"
        );
        assert_eq!(take(2), (6, vec![(7, 8), (9, 10)], 56), "in order: no block of its own");
        assert_eq!(take(6), (8, vec![(9, 10)], 48));
        assert_eq!(take(8), (10, vec![], 40));
    }

    #[test]
    fn every_second_in_order_packet_is_acknowledged() {
        for profile in ["rfc", "ns2"] {
            let mut r = receiver(profile, true);
            let mut take = |seq| r.on_segment(Time::ZERO, &at(seq), false).map(|a| a.ack);
            assert_eq!([1, 2, 3, 4].map(&mut take), [None, Some(3), None, Some(5)]);
            assert_eq!(take(5), None);
            assert_eq!(take(8), Some(6), "out of order: acknowledges both at once");
            assert_eq!(take(6), Some(7), "fills a part of the gap");
            assert_eq!(take(7), Some(9), "fills the rest");
            assert_eq!(take(3), Some(9), "below: at once");
            assert_eq!(take(9), None);
        }
    }

    #[test]
    fn delayed_ack_is_sent_by_the_timer() {
        let mut r = receiver("ns2", true);
        assert_eq!(r.on_segment(Time(5), &at(1), false), None);
        assert_eq!(r.timer(), Time(5) + Span::ms(100));
        assert_eq!(r.on_timer(Time(6)), None);
        assert_eq!(r.on_timer(r.timer()).map(|a| a.ack), Some(2));
        assert_eq!(r.timer(), Time::NEVER);
    }

    #[test]
    fn ack_of_a_duplicate_of_the_last_packet_is_delayed_only_in_ns2() {
        for (profile, expected) in [("rfc", [Some(3), None]), ("ns2", [None, Some(4)])] {
            let mut r = receiver(profile, true);
            let mut take = |seq| r.on_segment(Time::ZERO, &at(seq), false).map(|a| a.ack);
            assert_eq!([1, 2].map(&mut take), [None, Some(3)]);
            assert_eq!([2, 3].map(&mut take), expected, "the duplicate leaves no gap");
        }
    }

    #[test]
    fn mark_is_echoed_until_cwr() {
        let mut r = receiver("rfc", false);
        let mut echo =
            |seq, ce, cwr| r.on_segment(Time::ZERO, &Segment { cwr, ..at(seq) }, ce).unwrap().ece;
        assert!(!echo(1, false, false));
        assert!(echo(2, true, false) && echo(3, false, false) && echo(4, false, false));
        assert!(!echo(5, false, true) && !echo(6, false, false));
        assert!(echo(7, true, true), "CWR and a new mark");
    }

    #[test]
    fn bytes_count_once_and_across_connections() {
        let mut r = receiver("ns2", false);
        for seq in [1, 2, 2, 4, 4] {
            r.on_segment(Time::ZERO, &at(seq), false);
        }
        assert_eq!(r.received_in_connection(), 2 * 1460);
        r.on_segment(Time::ZERO, &at(3), false);
        r.reset();
        assert_eq!((r.received_in_connection(), r.delivered_bytes()), (0, 4 * 1460));
        r.on_segment(Time::ZERO, &Segment { syn: true, ..Segment::default() }, false);
        r.on_segment(Time::ZERO, &at(1), false);
        assert_eq!((r.received_in_connection(), r.delivered_bytes()), (1460, 5 * 1460));
    }

    #[test]
    fn dctcp_echoes_every_mark() {
        let s = [("header", Text("40B"))];
        let mut r = Receiver::new(&parse("dctcp", s).unwrap());
        let mut take = |seq, len, ce| {
            let seg = Segment { seq, len, syn: seq == 0, ect: true, ..Segment::default() };
            let first = r.before_segment(&seg, ce).copied();
            let second = r.on_segment(Time::ZERO, &seg, ce).copied();
            let told = |a: Ack| (a.ack, a.ece);
            (first.map(told), second.map(told))
        };
        // (the delayed ack, the segment's own ack), each as (next expected, ECN echo)
        assert_eq!(take(0, 0, true), (None, Some((1, false))), "a mark on a SYN is ignored");
        assert_eq!(take(1, 1, false), (None, None));
        assert_eq!(take(2, 1, false), (None, Some((3, false))));
        assert_eq!(take(3, 1, false), (None, None));
        assert_eq!(take(4, 1, true), (Some((4, false)), Some((5, true))), "marks start");
        assert_eq!(take(5, 1, true), (None, None));
        assert_eq!(take(6, 1, true), (None, Some((7, true))), "delayed as usual");
        assert_eq!(take(7, 1, false), (None, Some((8, false))), "marks end; no ack was delayed");
        assert_eq!(take(8, 1, false), (None, None));
        assert_eq!(take(10, 1, true), (Some((9, false)), Some((9, true))), "out of order too");
    }

    #[test]
    fn accurate_feedback_counts_every_mark() {
        let s = [("ecn", Flag(true)), ("ecn_feedback", Text("accurate"))];
        let mut r = Receiver::new(&parse("cubic", s).unwrap());
        let syn = Segment { syn: true, ect: true, ..Segment::default() };
        let first = r.on_segment(Time::ZERO, &syn, true).copied().unwrap();
        assert_eq!((first.ce_packets, first.ece), (0, false), "SYNs do not count");
        let mut take = |seq, ce| {
            assert_eq!(r.before_segment(&at(seq), ce), None, "no second ack");
            r.on_segment(Time::ZERO, &at(seq), ce).map(|a| (a.ack, a.ce_packets, a.ece))
        };
        assert_eq!(take(1, false), None);
        assert_eq!(take(2, true), Some((3, 1, false)), "as usual");
        assert_eq!(take(3, false), Some((4, 1, false)), "at once: the marks end");
        assert_eq!(take(4, true), Some((5, 2, false)), "at once: the marks start");
        assert_eq!([take(5, true), take(6, true)], [None, Some((7, 4, false))]);
        assert_eq!(take(9, true), Some((7, 5, false)), "out of order");
        assert_eq!(take(9, true), Some((7, 6, false)), "duplicates count: packets, not bytes");
        let not_capable = Segment { ect: false, ..at(7) };
        assert_eq!(r.on_segment(Time::ZERO, &not_capable, true).map(|a| a.ce_packets), Some(6));
        r.reset();
        assert_eq!(r.on_segment(Time::ZERO, &syn, false).map(|a| a.ce_packets), Some(0));
    }

    #[test]
    fn echoed_bytes_equal_marked_bytes_for_random_marks() {
        use sojourn_aqm::random::Random;
        let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(3);
        for _ in 0..200 {
            let mut r = Receiver::new(&parse("dctcp", []).unwrap());
            r.on_segment(Time::ZERO, &Segment { syn: true, ..Segment::default() }, false);
            let (mut una, mut echoed, mut marked, p) = (1, 0, 0, rng.uniform());
            for seq in 1..200 {
                let ce = rng.bernoulli(p);
                marked += u64::from(ce);
                let held = r.before_segment(&at(seq), ce).copied();
                let own = r.on_segment(Time::ZERO, &at(seq), ce).copied();
                for ack in held.into_iter().chain(own) {
                    echoed += if ack.ece { ack.ack - una } else { 0 };
                    una = ack.ack;
                }
            }
            let last = r.on_timer(Time::NEVER).copied();
            echoed += last.filter(|a| a.ece).map_or(0, |a| a.ack - una);
            assert_eq!(echoed, marked);
        }
    }
}
