//! pfifo_fast: three FIFO queues, chosen by the DSCP and served in strict order.
//!
//! **Source** Linux sch_generic; the default discipline of Linux before fq_codel.
//!
//! **Decides** on departure: the next band; on arrival if the buffer of the band is full.
//!
//! **Measures** nothing.
//!
//! **Algorithm** The last three bits of the DSCP choose a band: 4 and 5 the first, 2 and 3 the
//! third, all others the second. These bits are what RFC 1349 called type of service: minimal
//! delay, maximal throughput, and neither. So CS1 to CS7, EF and the default share the second band.
//! The first band with packets is served; later bands can starve. Each band has a buffer of its
//! own, `limits`, and drops packets that arrive while it is full.
//!
//! **Departures** Linux takes the band of a packet from its priority, which applications can set.
//! It has no `limit` for all bands together.
//!
//! **Cost** 200 bytes of state; O(1) per packet.

use crate::aqm::fits;
use crate::build::{Build, Env};
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::{Fifo, Pool};
use crate::packet::Packet;
use crate::params::{Checked, nth};
use crate::qdisc::{Backlog, Peek, Qdisc};
use crate::snapshot::Snapshot;
use crate::units::Size;
use alloc::format;
use alloc::vec::Vec;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry =
    QdiscEntry::new::<PfifoFast>("pfifo_fast", "three FIFO queues by DSCP, served in strict order")
        .decides("on departure: the next band")
        .source("Linux sch_generic");

/// Band of each value of the last three bits of a DSCP, with Linux's `priomap`.
const BANDS: [u8; 8] = [1, 1, 2, 2, 0, 0, 1, 1];

/// Returns the band of packets of the DSCP `class`: 0 is served first, 2 last.
pub(super) fn band(class: u16) -> usize {
    usize::from(BANDS[usize::from(class & 7)])
}

crate::params! {
    /// Parameters of [`PfifoFast`].
    pub struct PfifoFastParams {
        /// Buffer size of each band, from the first to the third; the last one applies to the rest.
        limits: Vec<Size> = [Size::Packets(1000)].into(),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", [];
        /// Buffer size of all bands together; auto: no other than theirs.
        limit: Option<Size> = None,
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", ["buffer"];
    }
}

/// The pfifo_fast discipline.
#[derive(Clone, Debug, Snapshot)]
pub struct PfifoFast {
    bands: [Fifo; 3],
    limits: [Size; 3],
    limit: Option<Size>,
    pool: Pool,
    backlog: Backlog,
}

impl Build for PfifoFast {
    type Params = PfifoFastParams;

    fn new(params: Checked<'_, PfifoFastParams>, _env: &Env) -> Result<Self> {
        let limits = &params.limits;
        let limit = |i| nth(limits, i).filter(|_| limits.len() <= 3);
        let [Some(first), Some(second), Some(third)] = [0, 1, 2].map(limit) else {
            let text = format!("{} buffers for 3 bands", limits.len());
            return Err(Error::new(text).at("limits"));
        };
        Ok(PfifoFast {
            bands: [Fifo::default(); 3],
            limits: [first, second, third],
            limit: params.limit,
            pool: Pool::default(),
            backlog: Backlog::default(),
        })
    }
}

impl Qdisc for PfifoFast {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        context.check_arrival(&packet);
        let i = band(packet.class);
        let (fifo, Backlog { packets, bytes }) = (&mut self.bands[i], self.backlog);
        let whole = self.limit.is_none_or(|limit| fits(limit, packets, bytes, &packet));
        if !whole || !fits(self.limits[i], fifo.packets(), fifo.bytes().0, &packet) {
            return context.drop(packet, DropReason::Full);
        }
        fifo.push(&mut self.pool, packet);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.len);
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        let packet = self.bands.iter_mut().find_map(|fifo| fifo.pop(&mut self.pool))?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.len);
        Some(packet)
    }

    fn peek(&mut self, _context: &mut Context<'_>) -> Peek {
        Peek::of(self.bands.iter().find_map(|fifo| fifo.front(&self.pool)))
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::priority_map::{PRIOMAP, PriorityMap};
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn the_last_three_bits_of_the_dscp_choose_the_band() {
        // EF, CS6, AF11, AF12, AF42, LE.
        assert_eq!([46, 48, 10, 12, 36, 1].map(band), [1, 1, 2, 0, 0, 1]);
        let prio = PriorityMap::new(&PRIOMAP, &PRIOMAP, 3).unwrap();
        assert!((0..64).all(|dscp| prio.band(dscp) == Some(band(dscp) as u32)), "as prio");
        // Type of service of RFC 1349, with the ECN bits clear: 0x10 low delay, 0x08 throughput.
        assert_eq!([0x10, 0x08, 0x00].map(|tos: u16| band(tos >> 2)), [0, 2, 1]);
    }

    #[test]
    fn the_first_band_goes_first_and_each_has_a_buffer() {
        let mut q = Bench::new("pfifo_fast", &[("limits", "2p 1p")]);
        let dropped = [(2, 1), (0, 2), (4, 3), (3, 4), (1, 5), (5, 6), (4, 7)]
            .map(|(class, body)| q.put_class(class, body, 1000));
        assert_eq!(dropped, [&[][..], &[], &[], &[4], &[5], &[], &[7]]);
        assert_eq!((q.backlog(), q.bytes()), (4, 4000));
        assert_eq!(q.get().0, Some(3));
        assert_eq!((q.backlog(), q.bytes()), (3, 3000));
        assert_eq!(q.drain(), [6, 2, 1]);
        assert_eq!((q.backlog(), q.bytes()), (0, 0));
        let mut q = Bench::new("pfifo_fast", &[("limit", "2500B")]);
        assert_eq!([0, 2].map(|class| q.put_class(class, 1, 1000)), [[0; 0]; 2]);
        assert_eq!(q.put_class(4, 9, 501), [9], "all bands together");
    }

    #[test]
    fn there_are_three_bands() {
        let params = PfifoFastParams { limits: vec![Size::Packets(1); 4], limit: None };
        let error = PfifoFast::build(&params, &Env::new(crate::Rate(8))).unwrap_err();
        assert_eq!(error.to_string(), "limits: 4 buffers for 3 bands");
    }
}
