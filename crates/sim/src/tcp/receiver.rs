//! The receiver: cumulative acks at once or delayed, SACK blocks, and the echo of marks.
//!
//! Both profiles share it; they differ in one case, see [`Receiver::on_segment`].

use super::params::{Profile, Recovery, TcpParams, worked_out};
use super::ranges::Ranges;
use super::{Ack, Segment};
use crate::cc::Choice;
use sojourn_aqm::units::{Span, Time};

/// SACK blocks in an ack, as in ns-2 and in a real header that carries timestamps too.
const BLOCKS: usize = 3;
/// Bytes of a SACK block on the wire.
const BLOCK_BYTES: u32 = 8;

/// The receiving end of a flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// The next sequence number expected.
    next: u64,
    /// What arrived above it.
    held: Ranges,
    /// A sequence number in each of the blocks that changed last, the latest first.
    recent: [u64; BLOCKS],
    recents: u8,
    /// When an ack that is being delayed is due.
    due: Time,
    /// A mark is echoed until the sender says that it has answered.
    echo: bool,
    /// Whether a mark, and an answer to one, came since the last ack.
    marked: bool,
    answered: bool,
    sack: bool,
    ns2: bool,
    /// Whether every mark is echoed by itself (RFC 8257), and whether the last segment was marked.
    exact: bool,
    ce: bool,
    ack_bytes: u32,
    /// Payload bytes of a sequence number.
    unit: u64,
    /// How long an ack is delayed; `None`: not at all.
    delay: Option<Span>,
    /// The ack given last: written in place and lent, since it is large.
    last: Ack,
    /// Payload bytes delivered in connections before this one.
    before: u64,
}

impl Receiver {
    /// A receiver that waits for its first connection.
    pub fn new(params: &TcpParams) -> Receiver {
        let s = &params.settings;
        let ns2 = s.profile == Profile::Ns2;
        Receiver {
            next: 0,
            held: Ranges::default(),
            recent: [0; BLOCKS],
            recents: 0,
            due: Time::NEVER,
            echo: false,
            marked: false,
            answered: false,
            sack: params.recovery == Recovery::Sack,
            ns2,
            exact: worked_out(s.ecn) && matches!(params.control, Choice::Dctcp(_)),
            ce: false,
            ack_bytes: s.header_bytes(),
            unit: if ns2 { s.payload() } else { 1 },
            delay: worked_out(s.delayed_ack).then(|| worked_out(s.delayed_ack_timeout)),
            last: Ack::default(),
            before: 0,
        }
    }

    /// Forgets the connection; what was delivered stays counted.
    pub fn reset(&mut self) {
        self.before = self.delivered_bytes();
        self.next = 0;
        self.held.clear();
        (self.recents, self.due) = (0, Time::NEVER);
        (self.echo, self.marked, self.answered, self.ce) = (false, false, false, false);
    }

    /// To be called before [`Receiver::on_segment`] with the same: where marks are echoed exactly
    /// and a mark begins or ends, an ack that is being delayed leaves first, with the old state
    /// (RFC 8257 §3.2, as two acks).
    #[inline]
    pub fn on_change(&mut self, seg: &Segment, ce: bool) -> Option<&Ack> {
        if !self.exact { None } else { self.changed(seg, ce) }
    }

    #[cold]
    fn changed(&mut self, seg: &Segment, ce: bool) -> Option<&Ack> {
        // Marks on a SYN are ignored (RFC 8257 §3.5).
        let ce = ce && seg.ect && !seg.syn;
        if ce == self.ce {
            return None;
        }
        let held = self.due != Time::NEVER;
        if held {
            self.ack(false);
        }
        self.ce = ce;
        // As if one were held already: the first segment of a new state is acknowledged at once.
        self.due = Time::ZERO;
        held.then_some(&self.last)
    }

    /// Takes a segment, marked (`ce`) or not; the ack that it calls for, or `None` if that is
    /// delayed.
    ///
    /// At most one ack is held back, for one segment in order. Everything out of order, below the
    /// cumulative ack, or filling a part of a gap, is acknowledged at once (RFC 5681 §4.2), and so
    /// is a SYN. ns-2 delays one more: a second copy of the very last packet.
    pub fn on_segment(&mut self, now: Time, seg: &Segment, ce: bool) -> Option<&Ack> {
        self.marked |= ce && seg.ect;
        self.answered |= seg.cwr;
        let end = seg.seq + u64::from(seg.len).max(u64::from(seg.syn));
        let in_order = seg.seq <= self.next && end > self.next;
        let whole = self.held.end().is_none();
        if in_order && whole {
            self.next = end;
        } else if in_order {
            self.next = self.held.around(end).map_or(end, |r| r.1);
            self.held.forget_below(self.next);
        } else if end > self.next {
            self.held.insert(seg.seq, end);
            self.remember(seg.seq);
        }
        let again = self.ns2 && end == self.next;
        let delayable = whole && !seg.syn && (in_order || again);
        match self.delay {
            Some(delay) if delayable && self.due == Time::NEVER => {
                self.due = now + delay;
                None
            }
            _ => {
                self.due = Time::NEVER;
                Some(self.ack(seg.syn))
            }
        }
    }

    /// When [`Receiver::on_timer`] is due; [`Time::NEVER`] if no ack is being delayed.
    pub fn timer(&self) -> Time {
        self.due
    }

    /// The delayed ack, once it is due.
    pub fn on_timer(&mut self, now: Time) -> Option<&Ack> {
        if now < self.due {
            return None;
        }
        self.due = Time::NEVER;
        Some(self.ack(false))
    }

    /// Asks for the memory that the next segment will need and that does not lie in it.
    #[inline]
    pub fn fetch(&self) {
        self.held.fetch();
    }

    /// The ack given last.
    pub fn last(&self) -> &Ack {
        &self.last
    }

    /// Payload bytes delivered in order, each once, in all connections.
    pub fn delivered_bytes(&self) -> u64 {
        self.before + self.received_in_connection()
    }

    /// Payload bytes delivered in order in this connection.
    pub fn received_in_connection(&self) -> u64 {
        self.next.saturating_sub(1) * self.unit
    }

    /// Puts the block around `seq` first among those that changed last.
    fn remember(&mut self, seq: u64) {
        let block = self.held.around(seq).expect("it was just put there");
        let mut recent = [seq; BLOCKS];
        let mut count = 1u8;
        for &old in &self.recent[..usize::from(self.recents)] {
            // A block that has become part of the new one is not told twice.
            if usize::from(count) < BLOCKS && !(block.0..block.1).contains(&old) {
                recent[usize::from(count)] = old;
                count += 1;
            }
        }
        (self.recent, self.recents) = (recent, count);
    }

    /// An ack of what is here now.
    fn ack(&mut self, syn: bool) -> &Ack {
        // One mark among the packets acknowledged is enough; an answer ends only what was echoed
        // before (RFC 3168 §6.1.3).
        self.echo = if self.exact { self.ce } else { self.marked || self.echo && !self.answered };
        (self.marked, self.answered) = (false, false);
        let ack = &mut self.last;
        (ack.ack, ack.ece, ack.syn) = (self.next, self.echo, syn);
        if self.sack {
            (ack.sacks, ack.blocks) = Default::default();
            for i in 0..usize::from(self.recents) {
                // A block that the cumulative ack has passed is gone for good.
                if let Some(block) = self.held.around(self.recent[i]) {
                    self.recent[usize::from(ack.blocks)] = self.recent[i];
                    ack.sacks[usize::from(ack.blocks)] = block;
                    ack.blocks += 1;
                }
            }
            self.recents = ack.blocks;
        }
        ack.wire = self.ack_bytes + u32::from(ack.blocks) * BLOCK_BYTES;
        ack
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

    /// A packet of one unit.
    fn at(seq: u64) -> Segment {
        Segment { seq, len: 1, ect: true, ..Segment::default() }
    }

    fn blocks(ack: Ack) -> (u64, Vec<(u64, u64)>, u32) {
        (ack.ack, ack.sacks[..ack.blocks.into()].to_vec(), ack.wire)
    }

    #[test]
    fn latest_block_comes_first_and_three_are_told() {
        let mut r = receiver("ns2", false);
        let mut take = |seq| blocks(*r.on_segment(Time::ZERO, &at(seq), false).unwrap());
        assert_eq!(take(1), (2, vec![], 40));
        assert_eq!(take(3), (2, vec![(3, 4)], 48));
        assert_eq!(take(5), (2, vec![(5, 6), (3, 4)], 56));
        assert_eq!(take(7), (2, vec![(7, 8), (5, 6), (3, 4)], 64));
        assert_eq!(take(9), (2, vec![(9, 10), (7, 8), (5, 6)], 64));
        assert_eq!(take(4), (2, vec![(3, 6), (9, 10), (7, 8)], 64), "grown together");
        assert_eq!(take(7), (2, vec![(7, 8), (3, 6), (9, 10)], 64), "a duplicate is news too");
        assert_eq!(take(2), (6, vec![(7, 8), (9, 10)], 56), "in order: no block of its own");
        assert_eq!(take(6), (8, vec![(9, 10)], 48));
        assert_eq!(take(8), (10, vec![], 40));
    }

    #[test]
    fn every_second_packet_in_order_is_acknowledged() {
        for profile in ["rfc", "ns2"] {
            let mut r = receiver(profile, true);
            let mut take = |seq| r.on_segment(Time::ZERO, &at(seq), false).map(|a| a.ack);
            assert_eq!([1, 2, 3, 4].map(&mut take), [None, Some(3), None, Some(5)]);
            assert_eq!(take(5), None);
            assert_eq!(take(8), Some(6), "out of order: at once, for both");
            assert_eq!(take(6), Some(7), "fills a part of the gap");
            assert_eq!(take(7), Some(9), "fills the rest");
            assert_eq!(take(3), Some(9), "below: at once");
            assert_eq!(take(9), None);
        }
    }

    #[test]
    fn delayed_ack_comes_by_timer() {
        let mut r = receiver("ns2", true);
        assert_eq!(r.on_segment(Time(5), &at(1), false), None);
        assert_eq!(r.timer(), Time(5) + Span::ms(100));
        assert_eq!(r.on_timer(Time(6)), None);
        assert_eq!(r.on_timer(r.timer()).map(|a| a.ack), Some(2));
        assert_eq!(r.timer(), Time::NEVER);
    }

    #[test]
    fn second_copy_of_the_last_packet_is_delayed_by_ns2_alone() {
        for (profile, expected) in [("rfc", Some(3)), ("ns2", None)] {
            let mut r = receiver(profile, true);
            let taken =
                [1, 2, 2].map(|seq| r.on_segment(Time::ZERO, &at(seq), false).map(|a| a.ack));
            assert_eq!(taken, [None, Some(3), expected]);
        }
    }

    #[test]
    fn mark_is_echoed_until_answered() {
        let mut r = receiver("rfc", false);
        let mut echo =
            |seq, ce, cwr| r.on_segment(Time::ZERO, &Segment { cwr, ..at(seq) }, ce).unwrap().ece;
        assert!(!echo(1, false, false));
        assert!(echo(2, true, false) && echo(3, false, false) && echo(4, false, false));
        assert!(!echo(5, false, true) && !echo(6, false, false));
        assert!(echo(7, true, true), "answered and marked again");
    }

    #[test]
    fn bytes_count_once_and_over_connections() {
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
    fn dctcp_tells_the_exact_extent_of_marks() {
        let s = [("header", Text("40B"))];
        let mut r = Receiver::new(&parse("dctcp", s).unwrap());
        let mut take = |seq, len, ce| {
            let seg = Segment { seq, len, syn: seq == 0, ect: true, ..Segment::default() };
            let first = r.on_change(&seg, ce).copied();
            let second = r.on_segment(Time::ZERO, &seg, ce).copied();
            let told = |a: Ack| (a.ack, a.ece);
            (first.map(told), second.map(told))
        };
        // (the ack that was held, the segment's own), each (next expected, echo)
        assert_eq!(take(0, 0, true), (None, Some((1, false))), "a marked SYN tells nothing");
        assert_eq!(take(1, 1, false), (None, None));
        assert_eq!(take(2, 1, false), (None, Some((3, false))));
        assert_eq!(take(3, 1, false), (None, None));
        assert_eq!(take(4, 1, true), (Some((4, false)), Some((5, true))), "a mark begins");
        assert_eq!(take(5, 1, true), (None, None));
        assert_eq!(take(6, 1, true), (None, Some((7, true))), "delayed as usual");
        assert_eq!(take(7, 1, false), (None, Some((8, false))), "it ends, and nothing was held");
        assert_eq!(take(8, 1, false), (None, None));
        assert_eq!(take(10, 1, true), (Some((9, false)), Some((9, true))), "out of order too");
    }

    #[test]
    fn marks_are_told_byte_for_byte_whatever_their_pattern() {
        use sojourn_aqm::dice::Dice;
        let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(3);
        for _ in 0..200 {
            let mut r = Receiver::new(&parse("dctcp", []).unwrap());
            r.on_segment(Time::ZERO, &Segment { syn: true, ..Segment::default() }, false);
            let (mut una, mut echoed, mut marked, p) = (1, 0, 0, rng.uniform());
            for seq in 1..200 {
                let ce = rng.chance(p);
                marked += u64::from(ce);
                let held = r.on_change(&at(seq), ce).copied();
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
