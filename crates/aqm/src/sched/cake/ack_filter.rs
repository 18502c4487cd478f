//! ACK filter: which older ACK of its connection a new segment makes superfluous.

use crate::fifo::{Fifo, Pool};
use crate::packet::{Packet, TcpFlags};

crate::choice! {
    /// Filter of acknowledgements.
    pub enum AckFilter {
        /// None.
        Off = "off" | "false" | "no_ack_filter",
        /// Removes an ACK if another one that the new one covers is queued too.
        On = "on" | "true" | "ack_filter",
        /// Also removes the only such ACK, directly before the new one.
        Aggressive = "aggressive" | "ack_filter_aggressive",
    }
}

/// Flags whose change must reach the sender.
const ECN: TcpFlags = TcpFlags::ECE.with(TcpFlags::CWR);

/// True if both packets are of one connection and direction.
fn same_connection(a: &Packet, b: &Packet) -> bool {
    (a.hash, a.source, a.destination) == (b.hash, b.source, b.destination)
}

/// True if `old` tells the sender nothing that `new` does not.
fn covers(new: &Packet, old: &Packet) -> bool {
    let older = new.ack.wrapping_sub(old.ack).cast_signed();
    if !old.tcp.has(TcpFlags::PURE) || older < 0 || old.tcp.has(TcpFlags::DSACK) {
        return false;
    }
    let sack = [old, new].map(|p| p.tcp.has(TcpFlags::SACK));
    let full = [old, new].iter().all(|p| p.tcp.has(TcpFlags::SACK_FULL));
    match sack {
        // Equal duplicate ACKs count the packets that left the network.
        [false, false] => older > 0,
        [false, true] => true,
        [true, false] => false,
        // A receiver reports all that it holds: all blocks of the old one, unless there was no
        // room.
        [true, true] => !full,
    }
}

/// Place in `queue`, from its head, of the ACK that its last packet makes superfluous.
pub fn superfluous(filter: AckFilter, fifo: &Fifo, pool: &Pool) -> Option<u32> {
    let last = fifo.packets().checked_sub(1).filter(|last| *last > 0)?;
    let new = fifo.get(pool, last).filter(|new| new.tcp.has(TcpFlags::ACK))?;
    // The first ACK that may go, and its flags.
    let mut candidate: Option<(u32, TcpFlags)> = None;
    for (k, old) in (0..last).zip(fifo.iter(pool)) {
        if !old.tcp.has(TcpFlags::ACK) || !same_connection(old, new) {
            continue;
        }
        let flags = old.tcp.only(ECN);
        candidate = candidate.filter(|(_, other)| *other == flags);
        if covers(new, old) {
            match candidate {
                Some((first, _)) => return Some(first),
                None => candidate = Some((k, flags)),
            }
        }
    }
    let (only, flags) = candidate?;
    let next_to_new = only + 1 == last && flags == new.tcp.only(ECN);
    (filter == AckFilter::Aggressive && next_to_new).then_some(only)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    const PURE: TcpFlags = TcpFlags::ACK.with(TcpFlags::PURE);

    fn ack(ack: u32, tcp: TcpFlags) -> Packet {
        Packet { ack, tcp, len: 52, ..Packet::default() }
    }

    /// Places of the ACK that each filter removes.
    fn removed(packets: &[Packet]) -> [Option<u32>; 2] {
        let (mut fifo, mut pool) = (Fifo::default(), Pool::default());
        packets.iter().for_each(|p| fifo.push(&mut pool, *p));
        [AckFilter::On, AckFilter::Aggressive].map(|f| superfluous(f, &fifo, &pool))
    }

    #[test]
    fn one_older_ack_stays_unless_aggressive() {
        let [a, b, c] = [1, 2, 3].map(|n| ack(n, PURE));
        assert_eq!(removed(&[a]), [None; 2]);
        assert_eq!(removed(&[a, b]), [None, Some(0)]);
        assert_eq!(removed(&[a, b, c]), [Some(0); 2]);
        // A data segment covers ACKs too, a SYN or a packet without ACK does not.
        assert_eq!(removed(&[a, b, ack(3, TcpFlags::ACK)]), [Some(0); 2]);
        assert_eq!(removed(&[a, b, ack(3, TcpFlags::default())]), [None; 2]);
        // Sequence numbers wrap around.
        assert_eq!(removed(&[ack(u32::MAX, PURE), ack(0, PURE), ack(5, PURE)]), [Some(0); 2]);
        assert_eq!(removed(&[c, ack(4, PURE), b]), [None; 2], "not covered");
    }

    #[test]
    fn other_connections_and_data_are_passed_over() {
        let [a, b, c] = [1, 2, 3].map(|n| ack(n, PURE));
        let other = Packet { hash: 9, ..b };
        assert_eq!(removed(&[a, other, c]), [None; 2], "only the one directly before");
        assert_eq!(removed(&[a, other, b, c]), [Some(0); 2]);
        let data = ack(2, TcpFlags::ACK);
        assert_eq!(removed(&[a, data, c]), [None; 2]);
        assert_eq!(removed(&[data, a, c]), [None, Some(1)]);
        assert_eq!(removed(&[data, a, b, c]), [Some(1); 2]);
    }

    #[test]
    fn duplicate_acks_survive() {
        let [a, b] = [1, 2].map(|n| ack(n, PURE));
        assert_eq!(removed(&[b, b, b, b]), [None; 2]);
        assert_eq!(removed(&[a, a, a, b]), [Some(0); 2]);
    }

    #[test]
    fn a_change_of_ecn_flags_is_kept() {
        let pure = |n| ack(n, PURE);
        let echo = |n| ack(n, PURE.with(TcpFlags::ECE));
        assert_eq!(removed(&[pure(1), echo(2), pure(3)]), [None; 2]);
        assert_eq!(removed(&[echo(1), pure(2), pure(3), pure(4)]), [Some(1); 2]);
        assert_eq!(removed(&[pure(1), echo(2)]), [None; 2]);
        assert_eq!(removed(&[echo(1), echo(2)]), [None, Some(0)]);
        // The flags of a packet that cannot be removed count as well.
        let data = ack(2, TcpFlags::ACK.with(TcpFlags::CWR));
        assert_eq!(removed(&[pure(1), data, pure(3), pure(4)]), [None, Some(2)]);
    }

    #[test]
    fn blocks_that_may_be_unreported_later_are_kept() {
        let sack = PURE.with(TcpFlags::SACK);
        let full = sack.with(TcpFlags::SACK_FULL);
        let plain = ack(1, PURE);
        let [s, f, d] = [sack, full, sack.with(TcpFlags::DSACK)].map(|flags| ack(1, flags));
        assert_eq!(removed(&[plain, s]), [None, Some(0)], "more is reported");
        assert_eq!(removed(&[s, ack(2, PURE)]), [None; 2], "less is reported");
        assert_eq!(removed(&[s, s, s]), [Some(0); 2]);
        assert_eq!(removed(&[s, s, f]), [Some(0); 2]);
        assert_eq!(removed(&[f, f, f]), [None; 2]);
        assert_eq!(removed(&[d, d, s]), [None; 2]);
    }
}
