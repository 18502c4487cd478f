//! XCP: explicit control protocol, in which the router tells each sender how to change its rate.
//!
//! **Source** D. Katabi, M. Handley, C. Rohrs, "Congestion Control for High Bandwidth-Delay Product
//! Networks", SIGCOMM 2002; draft-falk-xcp-spec-03 §3.5.
//!
//! **Decides** on departure: it changes the congestion header of packets of TCP `xcp`, and drops
//! none. The buffer is drop-tail.
//!
//! **Measures** the bytes that arrive, the smallest queue of a round-trip time, and the round-trip
//! times and packet intervals in the headers.
//!
//! **Symbols** `alpha`, `beta`, `gamma`, `phi` (the aggregate feedback), `y` (input rate), `C`, `x`
//! (packet interval in the header), `xi_p`, `xi_n`, `Q`, `Te`, `Tq`, `H_feedback` =
//! `delta_throughput`.
//!
//! **Algorithm** Every `Te`, which is the mean round-trip time, `phi = alpha (C - y) - beta Q /
//! Te`: the spare rate less the rate that drains the persistent queue. `gamma y - |phi|` is added
//! to both the positive and the negative feedback, which shuffles rate between flows even if phi is
//! 0. Each packet gets a share of the positive feedback in proportion to its `x`, so that all flows
//! gain equally per time, and of the negative feedback in proportion to its size, so that fast
//! flows lose more: rates converge to equal shares, whatever the round-trip times. A router only
//! lowers the `delta_throughput` of a packet. What another router has taken from a packet is
//! deducted from the feedback of this one. Q is the smallest queue in `Tq`, half of the round-trip
//! time that is not spent in the queue.
//!
//! **Departures** (1) The first `Te` counts from the first arrival, and is randomised by 20 %. (2)
//! Only packets with a round-trip time above 0 share the feedback; a sender's first packets have
//! none. (3) Other packets, as of TCP or UDP, count in y and in Q only: for them the discipline is
//! a drop-tail buffer, and TCPs that fill it take rate from XCP's senders. (4) C is the rate of the
//! link when the discipline was built: it does not follow changes of the rate.
//!
//! **Cost** 208 bytes of state; a few floating-point operations per packet.

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::cast;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::{Packet, XcpHeader};
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Xcp>>(
    "xcp",
    "explicit control protocol: tells senders of TCP xcp how to change their rate",
)
.decides("on departure: the feedback in the header; drops only when the buffer is full")
.source("Katabi, Handley and Rohrs, SIGCOMM 2002; draft-falk-xcp-spec-03");

crate::params! {
    /// Parameters of [`Xcp`].
    pub struct XcpParams {
        /// Part of the spare rate that is given out in a round-trip time.
        alpha: f64 = 0.4, [0.0 => 1.0], "alpha", [];
        /// Part of the persistent queue that is drained in a round-trip time.
        beta: f64 = 0.226, [0.0 => 1.0], "beta", [];
        /// Part of the traffic that is shuffled between flows in a round-trip time.
        gamma: f64 = 0.1, [0.0 => 1.0], "gamma", [];
        /// Length of the first control interval, before a round-trip time is known.
        interval: Span = Span::ms(50), [Span::ms(1) => Span::s(1)], "Te", [];
    }
}

/// Largest round-trip time that counts.
const RTT_MAX: f64 = 1.0;
/// Shortest control interval.
const TE_MIN: Span = Span::ms(1);
/// Shortest time over which the smallest queue is taken.
const TQ_MIN: Span = Span::ms(2);

/// Feedback of one sign, in bytes per second.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct Feedback {
    /// Not given out yet.
    rest: f64,
    /// Feedback per unit: second of packet interval, or byte.
    per_unit: f64,
}

impl Feedback {
    fn new(total: f64, units: f64) -> Feedback {
        let per_unit = if units > 0.0 { total / units } else { 0.0 };
        Feedback { rest: total, per_unit }
    }

    /// Returns the share of a packet with this number of units.
    fn share(&self, units: f64) -> f64 {
        (self.per_unit * units).min(self.rest)
    }

    /// Deducts feedback that was given out.
    fn take(&mut self, amount: f64) {
        self.rest = (self.rest - amount).max(0.0);
        if self.rest == 0.0 {
            self.per_unit = 0.0;
        }
    }
}

/// State of XCP.
#[derive(Clone, Debug, Snapshot)]
pub struct Xcp {
    alpha: f64,
    beta: f64,
    gamma: f64,
    /// Rate of the link, bytes per second.
    capacity: f64,
    /// Bytes that arrived in this interval, and the sums of x and of rtt times x over the packets
    /// with a header, seconds and square seconds.
    input_bytes: f64,
    sum_x: f64,
    sum_rtt_x: f64,
    /// Mean round-trip time, seconds.
    avg_rtt: f64,
    /// Smallest queue of the last whole Tq, and so far in this one, bytes.
    persistent: f64,
    least: f64,
    positive: Feedback,
    negative: Feedback,
    /// Aggregate feedback of the last interval, bytes per second.
    phi: f64,
    te: Span,
    /// Ends of the control interval and of Tq; never before the first arrival.
    te_end: Time,
    tq_end: Time,
}

impl Xcp {
    /// Ends a control interval: computes the feedback of the next one.
    fn end_interval(&mut self) {
        if self.sum_x > 0.0 {
            self.avg_rtt = self.sum_rtt_x / self.sum_x;
        }
        let y = self.input_bytes / self.te.as_secs();
        self.phi = if self.input_bytes > 0.0 && self.avg_rtt > 0.0 {
            self.alpha * (self.capacity - y) - self.beta * self.persistent / self.avg_rtt
        } else {
            0.0
        };
        let shuffle = (self.gamma * y - self.phi.abs()).max(0.0);
        self.positive = Feedback::new(self.phi.max(0.0) + shuffle, self.sum_x);
        self.negative = Feedback::new((-self.phi).max(0.0) + shuffle, self.input_bytes);
        (self.input_bytes, self.sum_x, self.sum_rtt_x) = (0.0, 0.0, 0.0);
        if self.avg_rtt > 0.0 {
            self.te = seconds(self.avg_rtt).max(TE_MIN);
        }
    }

    /// Time over which the next smallest queue is taken, with `queue` bytes queued.
    fn tq(&self, queue: f64) -> Span {
        seconds((self.avg_rtt - queue / self.capacity).max(0.0) / 2.0).max(TQ_MIN)
    }

    /// Changes the header of a departing packet of `len` bytes.
    fn give(&mut self, header: &mut XcpHeader, len: f64) {
        if header.rtt == Span::ZERO {
            header.delta_throughput = 0;
            return;
        }
        let wish = f64::from(header.delta_throughput);
        let (mut positive, mut negative) =
            (self.positive.share(header.x.as_secs()), self.negative.share(len));
        let feedback = positive - negative;
        if wish >= feedback {
            header.delta_throughput = whole(feedback);
        } else {
            // Another router allows less: the flow does not use the rest of its share.
            negative = (negative + feedback - wish).min(self.negative.rest);
            positive = (wish + negative).max(0.0);
        }
        self.positive.take(positive);
        self.negative.take(negative);
    }
}

fn seconds(seconds: f64) -> Span {
    Span(cast::trunc(seconds * 1e9))
}

/// Rounds to a whole number towards 0.
#[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
fn whole(x: f64) -> i32 {
    x as i32
}

impl Aqm for Xcp {
    type Params = XcpParams;

    fn new(params: Checked<'_, XcpParams>, env: &Env) -> Result<Self> {
        let XcpParams { alpha, beta, gamma, interval } = *params;
        Ok(Xcp {
            alpha,
            beta,
            gamma,
            // Above 0, by which the queue is divided.
            capacity: (env.rate.0 as f64 / 8.0).max(1.0),
            input_bytes: 0.0,
            sum_x: 0.0,
            sum_rtt_x: 0.0,
            avg_rtt: 0.0,
            persistent: 0.0,
            least: 0.0,
            positive: Feedback::default(),
            negative: Feedback::default(),
            phi: 0.0,
            te: interval,
            te_end: Time::NEVER,
            tq_end: Time::NEVER,
        })
    }

    fn on_update(&mut self, now: Time, queue: &QueueView<'_>) {
        let bytes = queue.bytes() as f64;
        while self.te_end <= now {
            let is_silent = self.input_bytes == 0.0;
            self.end_interval();
            // Further intervals without arrivals change nothing.
            let missed = if is_silent { now.since(self.te_end).0 / self.te.0 } else { 0 };
            self.te_end += Span(self.te.0.saturating_mul(missed.max(1)));
        }
        while self.tq_end <= now {
            (self.persistent, self.least) = (self.least, bytes);
            let tq = self.tq(bytes);
            // The queue is constant between packets.
            let missed = if self.persistent == bytes { now.since(self.tq_end).0 / tq.0 } else { 0 };
            self.tq_end += Span(tq.0.saturating_mul(missed.max(1)));
        }
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        _queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        if self.te_end == Time::NEVER {
            let factor = 0.8 + 0.4 * context.rng.uniform();
            self.te_end = context.now + seconds(self.te.as_secs() * factor);
            self.tq_end = self.te_end;
        }
        self.input_bytes += f64::from(packet.len);
        if let Some(header) = packet.xcp().filter(|header| header.rtt > Span::ZERO) {
            let x = header.x.as_secs();
            self.sum_x += x;
            self.sum_rtt_x += header.rtt.as_secs().min(RTT_MAX) * x;
        }
        Verdict::Pass
    }

    fn on_dequeue(
        &mut self,
        _context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _ecn: bool,
    ) -> Option<Packet> {
        let packet = queue.pop()?;
        self.least = self.least.min(queue.bytes() as f64);
        let Some(mut header) = packet.xcp() else { return Some(packet) };
        self.give(&mut header, f64::from(packet.len));
        Some(packet.with_xcp(header))
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Aggregate feedback of the last interval, bits per second.
        visit("phi", 8.0 * self.phi);
        // Mean round-trip time, seconds.
        visit("avg_rtt", self.avg_rtt);
        // Persistent queue, bytes.
        visit("q", self.persistent);
    }
}

#[cfg(test)]
mod tests;
