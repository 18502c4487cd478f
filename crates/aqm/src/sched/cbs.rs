//! CBS: a credit-based shaper, which spaces the packets of a stream on a shared link.
//!
//! **Source** IEEE 802.1Q-2018, 8.6.8.2 and Annex L (Forwarding and Queuing for Time-Sensitive
//! Streams, 802.1Qav); Linux sch_cbs; tc-cbs(8).
//!
//! **Decides** on departure: sends the head once the credits are not negative; on arrival if the
//! buffer is full.
//!
//! **Measures** nothing.
//!
//! **Algorithm** A packet is sent if the credits are not negative and the packet before it would be
//! sent by now at the rate of the link. Credits fall at `sendslope` for the time that the link
//! takes to send the packet, to at least -`locredit`. From then on they grow at `idleslope` until
//! the next packet, to at most `hicredit`. A packet that finds an empty queue sets positive credits
//! to 0. So a backlogged queue sends `idleslope` of the link's rate if `sendslope` is the rest of
//! it, packet by packet and without bursts, and up to `hicredit` bytes more after other traffic has
//! delayed it.
//!
//! **Departures** (1) `sendslope` and `locredit` are written without tc's minus sign. (2) As in
//! Linux, credits that are not negative do not grow, and negative ones grow to `hicredit` also
//! while the queue is empty; in the standard they stop at 0. (3) Credits are exact; Linux rounds
//! them to whole bytes whenever it looks at the queue. (4) The queue is a FIFO queue; Linux can
//! have another discipline in its place.
//!
//! **Cost** 160 bytes of state; O(1) per packet.

use crate::aqm::fits;
use crate::bucket::FASTEST;
use crate::build::{Build, Env};
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::SingleFifo;
use crate::packet::Packet;
use crate::params::Checked;
use crate::qdisc::{Backlog, Qdisc};
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Rate, Size, Time};
use alloc::format;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Cbs>(
    "cbs",
    "a credit-based shaper, which spaces packets at a share of the link",
)
.decides("on departure: sends the head once the credits are not negative")
.source("IEEE 802.1Q-2018, 8.6.8.2; Linux sch_cbs");

/// Credits of a byte: they are counted in units of 10^-9 bit.
const BYTE: i128 = 8_000_000_000;

/// Longest frame of Ethernet, from which the standard computes credits.
const FRAME: u128 = 1522;

/// Largest credits, bytes: tc has 32 bits with a sign.
const CREDITS_MAX: Bytes = Bytes(2_147_483_647);

crate::params! {
    /// Parameters of [`Cbs`].
    pub struct CbsParams {
        /// Rate at which credits grow while packets wait; auto: three quarters of the rate of the
        /// link, the largest share that the standard reserves by default.
        idleslope: Option<Rate> = None, [Rate(0) => FASTEST], "idleSlope", [];
        /// Rate at which credits fall while a packet is sent, without tc's minus sign; auto: the
        /// rate of the link minus idleslope.
        sendslope: Option<Rate> = None, [Rate(0) => FASTEST], "sendSlope", [];
        /// Largest credits; auto: a frame of 1522 bytes times idleslope over the rate of the link.
        hicredit: Option<Bytes> = None, [Bytes(0) => CREDITS_MAX], "hiCredit", [];
        /// Smallest credits, without tc's minus sign; auto: a frame of 1522 bytes times sendslope
        /// over the rate of the link.
        locredit: Option<Bytes> = None, [Bytes(0) => CREDITS_MAX], "loCredit", [];
        /// Buffer size.
        limit: Size = Size::Packets(1000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", ["buffer"];
    }
}

/// Credits of a frame at `slope` on a link of `rate`, both in bit/s (Annex L).
pub(crate) fn share(slope: u64, rate: u64) -> Bytes {
    let bytes = (FRAME * u128::from(slope)).div_ceil(u128::from(rate.max(1)));
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)).min(CREDITS_MAX)
}

/// The credit-based shaper.
#[derive(Clone, Debug, Snapshot)]
pub struct Cbs {
    fifo: SingleFifo,
    limit: Size,
    /// Rate of the link, bit/s.
    port_rate: i128,
    /// Slopes, bit/s, neither of them negative.
    idleslope: i128,
    sendslope: i128,
    /// Bounds of the credits, in units of 10^-9 bit.
    hicredit: i128,
    locredit: i128,
    /// Credits at `last`, in units of 10^-9 bit.
    credits: i128,
    /// End of the last packet.
    last: Time,
}

impl Build for Cbs {
    type Params = CbsParams;

    fn new(params: Checked<'_, CbsParams>, env: &Env) -> Result<Self> {
        let CbsParams { idleslope, sendslope, hicredit, locredit, limit } = (*params).clone();
        let port = env.rate.max(Rate(1));
        let idle = idleslope.unwrap_or(Rate((port.0 / 4 * 3).max(8)));
        if idle > port && sendslope.is_none() {
            let text = format!("{idle} is above the rate of the link ({port})");
            return Err(Error::new(text).at("idleslope"));
        }
        let send = sendslope.unwrap_or(Rate(port.0.saturating_sub(idle.0)));
        let hi = hicredit.unwrap_or_else(|| share(idle.0, port.0));
        let lo = locredit.unwrap_or_else(|| share(send.0, port.0));
        if idle == Rate(0) && send > Rate(0) && lo > Bytes(0) {
            let text = "0bit: with sendslope and locredit nothing is sent after the first packet";
            return Err(Error::new(text).at("idleslope"));
        }
        let credits = |bytes: Bytes| i128::from(bytes.0) * BYTE;
        Ok(Cbs {
            fifo: SingleFifo::default(),
            limit,
            port_rate: port.0.into(),
            idleslope: idle.0.into(),
            sendslope: send.0.into(),
            hicredit: credits(hi),
            locredit: -credits(lo),
            credits: 0,
            last: Time::ZERO,
        })
    }
}

impl Cbs {
    /// Time from which on a packet can be sent.
    fn ready(&self) -> Time {
        let debt = -self.credits.min(0);
        // Without idleslope there is no debt.
        let wait = (debt + self.idleslope - 1) / self.idleslope.max(1);
        Time(self.last.0.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    /// Credits at `now`, in units of 10^-9 bit.
    fn credits(&self, now: Time) -> i128 {
        if self.credits >= 0 {
            return self.credits;
        }
        let elapsed = i128::from(now.since(self.last).0);
        (self.credits + elapsed * self.idleslope).min(self.hicredit)
    }
}

impl Qdisc for Cbs {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        context.check_arrival(&packet);
        if !fits(self.limit, self.fifo.packets(), self.fifo.bytes().0, &packet) {
            return context.drop(packet, DropReason::Full);
        }
        if self.fifo.is_empty() && self.credits > 0 {
            (self.credits, self.last) = (0, context.now);
        }
        self.fifo.push(packet);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let now = context.now;
        if now < self.ready() {
            return None;
        }
        let packet = self.fifo.pop()?;
        let bits = i128::from(packet.len) * BYTE;
        let credits = self.credits(now) - bits * self.sendslope / self.port_rate;
        self.credits = credits.max(self.locredit);
        // The time of the packet on the link, in nanoseconds.
        let time = u64::try_from(bits / self.port_rate).unwrap_or(u64::MAX);
        self.last = Time(now.0.saturating_add(time));
        Some(packet)
    }

    fn ready_at(&self) -> Option<Time> {
        (!self.fifo.is_empty()).then(|| self.ready())
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.fifo.packets(), bytes: self.fifo.bytes().0 }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Credits at the end of the last packet, bytes.
        visit("credits", self.credits as f64 / BYTE as f64);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use crate::{Rate, Setting, Time};
    use std::prelude::v1::*;

    /// Times in us at which `packets` packets of 1000 bytes leave a link of 8 mbit.
    fn sent(q: &mut Bench, packets: u32) -> Vec<u64> {
        (0..packets).for_each(|body| assert_eq!(q.put(body, 1000), [0; 0]));
        let mut times = Vec::new();
        while q.backlog() > 0 {
            if q.get().0.is_none() {
                q.at_ns(q.ready_at().unwrap().0);
                assert!(q.get().0.is_some(), "ready_at keeps its promise");
            }
            times.push(q.now_ns() / 1000);
        }
        times
    }

    #[test]
    fn a_backlogged_queue_sends_at_idleslope_without_bursts() {
        // Annex L for a quarter of the link: a packet takes 1 ms and costs 750 bytes of credits,
        // which grow by 250 bytes per ms.
        let slopes = [("idleslope", "2mbit"), ("sendslope", "6mbit")];
        let mut q = Bench::new("cbs", &slopes);
        assert_eq!(sent(&mut q, 4), [0, 4000, 8000, 12_000]);
        assert_eq!(q.gauge("credits"), -750.0);
        let mut q = Bench::new("cbs", &[("idleslope", "2mbit")]);
        assert_eq!(sent(&mut q, 4), [0, 4000, 8000, 12_000], "sendslope is the rest of the link");
        let mut q = Bench::new("cbs", &[]);
        assert_eq!(sent(&mut q, 4), [0, 1333, 2666, 4000], "three quarters of 8 mbit");
    }

    #[test]
    fn locredit_bounds_the_debt_and_no_packet_overlaps_the_one_before() {
        let slopes = [("idleslope", "2mbit"), ("sendslope", "6mbit"), ("locredit", "250B")];
        let mut q = Bench::new("cbs", &slopes);
        assert_eq!(sent(&mut q, 3), [0, 2000, 4000]);
        let mut q = Bench::new("cbs", &[("idleslope", "2mbit"), ("sendslope", "0bit")]);
        assert_eq!(sent(&mut q, 3), [0, 1000, 2000], "no debt: the rate of the link");
    }

    #[test]
    fn a_delayed_queue_catches_up_by_hicredit() {
        let slopes = [("idleslope", "2mbit"), ("sendslope", "6mbit"), ("hicredit", "750B")];
        let mut q = Bench::new("cbs", &slopes);
        q.put(1, 1000);
        assert_eq!(q.get().0, Some(1));
        (2..6).for_each(|body| assert_eq!(q.put(body, 1000), [0; 0]));
        // Other traffic takes the link until 20 ms: credits would be 4000, and are 750.
        q.at_ms(20);
        assert_eq!((q.get().0, q.gauge("credits")), (Some(2), 0.0));
        assert_eq!(q.ready_at(), Some(Time(21_000_000)));
        q.at_ms(21);
        assert_eq!((q.get().0, q.gauge("credits")), (Some(3), -750.0));
        assert_eq!(q.ready_at(), Some(Time(25_000_000)));
    }

    #[test]
    fn an_empty_queue_loses_its_positive_credits() {
        let slopes = [("idleslope", "2mbit"), ("sendslope", "6mbit"), ("hicredit", "2kB")];
        let mut q = Bench::new("cbs", &slopes);
        q.put(1, 1000);
        q.get();
        q.put(2, 1000);
        q.at_ms(20);
        assert_eq!((q.get().0, q.gauge("credits")), (Some(2), 1250.0));
        q.at_ms(30);
        q.put(3, 1000);
        assert_eq!((q.get().0, q.gauge("credits")), (Some(3), -750.0));
    }

    #[test]
    fn packets_beyond_the_limit_are_dropped() {
        let mut q = Bench::new("cbs", &[("limit", "2p")]);
        assert_eq!((1..4).flat_map(|body| q.put(body, 1000)).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_slope_above_the_link_needs_a_sendslope() {
        let build = |settings: &[(&str, &str)]| {
            let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, Setting::Text(v))).collect();
            crate::build("cbs", &settings, Rate(8_000_000)).map(|_| ())
        };
        let error = build(&[("idleslope", "9mbit")]).unwrap_err().to_string();
        assert_eq!(error, "idleslope: 9mbit is above the rate of the link (8mbit)");
        assert!(build(&[("idleslope", "9mbit"), ("sendslope", "1mbit")]).is_ok());
        let error = build(&[("idleslope", "0bit")]).unwrap_err().to_string();
        assert!(error.starts_with("idleslope: 0bit: with sendslope and locredit "), "{error}");
        assert!(build(&[("idleslope", "0bit"), ("locredit", "0B")]).is_ok(), "never in debt");
    }
}
