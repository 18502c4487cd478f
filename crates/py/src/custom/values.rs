//! State of a TCP connection that a congestion control in Python sees.

use super::records::ConnectionRecord;
use sojourn_aqm::Snapshot;

/// Attributes that a method may set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub enum Access {
    /// Nothing: no method is being called.
    #[default]
    Outside,
    /// Window, threshold and pacing rate.
    Window,
    /// Threshold and pacing rate.
    Threshold,
    /// Window and pacing rate, with which a connection starts.
    Start,
    /// Window, threshold, pacing rate, and that the control limits itself.
    RateSample,
}

/// A count as compiled code sees it.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// State of a connection. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub struct Values {
    pub access: Access,
    /// True if the flow has a pacer.
    pub paced: bool,
    /// Length of a full packet, bytes.
    pub packet: u64,
    pub now: u64,
    pub cwnd: u64,
    pub ssthresh: u64,
    pub mss: u64,
    pub acked: u64,
    pub flight: u64,
    pub rtt: Option<u64>,
    pub srtt: Option<u64>,
    pub min_rtt: Option<u64>,
    pub after_timeout: bool,
    /// Rate of the pacer, bit/s.
    pub pacing_rate: Option<f64>,
    /// Sequence numbers of the last ack with telemetry or ECN feedback.
    pub snd_una: u64,
    pub snd_nxt: u64,
    /// Path of the last telemetry.
    pub path: u64,
    /// True if the class defines `on_ecn_feedback`.
    pub reads_marks: bool,
    /// Payload that the last ack reports as marked, bytes.
    pub marked: u64,
    /// Delivery rate sample of the last ack.
    pub rates: RateValues,
}

/// Delivery rate sample of an ack. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub struct RateValues {
    /// True if the class defines `on_rate_sample`.
    pub is_read: bool,
    pub delivered: u64,
    pub prior_delivered: u64,
    /// Delivery rate, bit/s.
    pub delivery_rate: Option<f64>,
    pub interval: u64,
    pub lost: u64,
    pub newly_lost: u64,
    pub in_fast_recovery: bool,
    pub is_app_limited: bool,
    pub app_limited: bool,
    /// True if the method limits itself.
    pub limits: bool,
    pub idle_restart: bool,
}

impl Values {
    /// The connection as compiled code sees it.
    pub fn record(&self) -> ConnectionRecord {
        let optional = |time: Option<u64>| time.map_or(-1, u64::cast_signed);
        ConnectionRecord {
            now: self.now.cast_signed(),
            cwnd: signed(self.cwnd),
            ssthresh: signed(self.ssthresh),
            mss: self.mss.cast_signed(),
            acked: self.acked.cast_signed(),
            flight: self.flight.cast_signed(),
            rtt: optional(self.rtt),
            srtt: optional(self.srtt),
            min_rtt: optional(self.min_rtt),
            packet: self.packet.cast_signed(),
            snd_una: self.snd_una.cast_signed(),
            snd_nxt: self.snd_nxt.cast_signed(),
            path: self.path.cast_signed(),
            marked: self.marked.cast_signed(),
            delivered: self.rates.delivered.cast_signed(),
            prior_delivered: self.rates.prior_delivered.cast_signed(),
            interval: self.rates.interval.cast_signed(),
            lost: self.rates.lost.cast_signed(),
            newly_lost: self.rates.newly_lost.cast_signed(),
            delivery_rate: self.rates.delivery_rate.unwrap_or(f64::NAN),
            pacing_rate: self.pacing_rate.unwrap_or(f64::NAN),
            rng: 0,
            error: 0,
            access: match self.access {
                Access::RateSample => 4,
                Access::Start => 3,
                Access::Window => 2,
                Access::Threshold => 1,
                Access::Outside => 0,
            },
            links: 0,
            after_timeout: self.after_timeout,
            paced: self.paced,
            in_fast_recovery: self.rates.in_fast_recovery,
            is_app_limited: self.rates.is_app_limited,
            app_limited: self.rates.app_limited,
            limits: self.rates.limits,
            idle_restart: self.rates.idle_restart,
        }
    }

    /// The connection after compiled code has changed this one.
    pub fn changed(self, record: &ConnectionRecord) -> Values {
        let bytes = |before: u64, after: i64| {
            let same = signed(before) == after;
            if same { before } else { after.cast_unsigned() }
        };
        let rate = record.pacing_rate;
        Values {
            cwnd: bytes(self.cwnd, record.cwnd),
            ssthresh: bytes(self.ssthresh, record.ssthresh),
            pacing_rate: (!rate.is_nan()).then_some(rate),
            rates: RateValues { limits: record.limits, ..self.rates },
            ..self
        }
    }
}
