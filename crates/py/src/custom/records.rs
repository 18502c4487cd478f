//! Packet, queue, connection, links and flow as native code sees them.

use sojourn_aqm::HopTelemetry;
use sojourn_sim::tcp::TELEMETRY_LINKS;

/// Packet as compiled code sees it; `PACKET` of `sojourn.custom.layouts` has the same fields.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketRecord {
    pub size: i64,
    pub flow: i64,
    pub hash: i64,
    pub class: i64,
    pub ecn: i64,
    pub arrived: i64,
    pub sojourn: i64,
    pub markable: bool,
}

/// Queue as compiled code sees it; `QUEUE` of `sojourn.custom.layouts` has the same fields.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueRecord {
    pub now: i64,
    pub bytes: i64,
    pub packets: i64,
    /// Address of the random number generator during a call, otherwise 0.
    pub rng: usize,
    /// 1 after an exception.
    pub error: i64,
}

/// Connection as compiled code sees it; `CONNECTION` of `sojourn.custom.layouts` has the same
/// fields. A round-trip time of -1 is None, and so is a rate that is not a number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConnectionRecord {
    pub now: i64,
    pub cwnd: i64,
    pub ssthresh: i64,
    pub mss: i64,
    pub acked: i64,
    pub flight: i64,
    pub rtt: i64,
    pub srtt: i64,
    pub min_rtt: i64,
    pub packet: i64,
    pub snd_una: i64,
    pub snd_nxt: i64,
    pub path: i64,
    pub marked: i64,
    pub delivered: i64,
    pub prior_delivered: i64,
    pub interval: i64,
    pub lost: i64,
    pub newly_lost: i64,
    pub pacing_rate: f64,
    pub delivery_rate: f64,
    /// Address of the random number generator during a call, otherwise 0.
    pub rng: usize,
    /// 1 after an exception.
    pub error: i64,
    /// 1 if the threshold may be set, 2 if the window may, too, 3 if only the window may, 4 as 2
    /// and that the control limits itself.
    pub access: i64,
    /// Number of links in [`LinksRecord`].
    pub links: i64,
    pub after_timeout: bool,
    pub paced: bool,
    pub in_fast_recovery: bool,
    pub is_app_limited: bool,
    pub app_limited: bool,
    /// True if the method limits itself.
    pub limits: bool,
    pub idle_restart: bool,
}

/// Telemetry of a link as compiled code sees it; `LINK` of `sojourn.custom.layouts` has the same
/// fields.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkRecord {
    pub at: i64,
    pub sent_bytes: i64,
    pub queue_bytes: i64,
    pub packet_bytes: i64,
    pub rate: i64,
}

/// Telemetry of the links of a path as compiled code sees it, in place of a packet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct LinksRecord {
    pub links: [LinkRecord; TELEMETRY_LINKS],
}

impl LinksRecord {
    /// Telemetry of these links.
    pub fn of(links: &[HopTelemetry]) -> LinksRecord {
        let mut record = LinksRecord::default();
        for (place, link) in record.links.iter_mut().zip(links) {
            *place = LinkRecord {
                at: link.at.0.cast_signed(),
                sent_bytes: link.sent_bytes.cast_signed(),
                queue_bytes: link.queue_bytes.into(),
                packet_bytes: link.packet_bytes.into(),
                rate: link.rate.0.cast_signed(),
            };
        }
        record
    }
}

/// Flow as a compiled source sees it; `ARRIVALS` of `sojourn.custom.layouts` has the same fields.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ArrivalRecord {
    pub now: i64,
    /// Time and size of the next arrival, if the answer is 1.
    pub time: i64,
    pub size: i64,
    /// Largest size.
    pub largest: i64,
    /// Address of the random number generator during a call, otherwise 0.
    pub rng: usize,
    /// 1 after an exception.
    pub error: i64,
}

/// Record through which native code draws random numbers.
pub trait Draws {
    /// Field with the address of the generator.
    fn rng(&mut self) -> &mut usize;
}

impl Draws for QueueRecord {
    #[inline]
    fn rng(&mut self) -> &mut usize {
        &mut self.rng
    }
}

impl Draws for ArrivalRecord {
    #[inline]
    fn rng(&mut self) -> &mut usize {
        &mut self.rng
    }
}

impl Draws for ConnectionRecord {
    #[inline]
    fn rng(&mut self) -> &mut usize {
        &mut self.rng
    }
}
