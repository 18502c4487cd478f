//! State of the parts of loss recovery that are built on RACK: the timer, what an ack delivers, the
//! tail loss probe, undo and F-RTO.

use sojourn_aqm::Snapshot;
use sojourn_aqm::units::Time;

/// Meaning of the sender's timer, as in Linux, which has one for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub(crate) enum TimerKind {
    #[default]
    Retransmission,
    /// Tail loss probe.
    Probe,
    /// End of the reordering window.
    Reordering,
}

/// Newly delivered data of one ack (`tcp_sacktag_write_queue`, `tcp_clean_rtx_queue`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub(crate) struct Delivery {
    /// Transmission time of the first segment sent once that is cumulatively acknowledged.
    pub first_acked: Option<Time>,
    /// Transmission time of the first segment sent once that is selectively acknowledged.
    pub first_sacked: Option<Time>,
    /// Transmission time of the last segment sent once that is cumulatively acknowledged, and of
    /// the last one that is selectively acknowledged.
    pub newest_acked: Option<Time>,
    pub newest_sacked: Option<Time>,
    /// Transmission time of the segment that ends at the cumulative ack, if it was sent once.
    pub last_acked: Option<Time>,
    /// Echoed timestamp, with timestamps.
    pub echo: Option<u32>,
    /// True if retransmitted data is cumulatively acknowledged.
    pub acked_retransmitted: bool,
    /// True if data sent once, before the last reduction, is delivered (`FLAG_ORIG_SACK_ACKED`).
    pub original: bool,
    /// True if data sent once is delivered after data that was sent later.
    pub reordered: bool,
    /// True if new data is selectively acknowledged.
    pub sacked: bool,
}

impl Delivery {
    /// Transmission time of the segment that gives the round-trip time of a congestion control
    /// (`ca_rtt_us`).
    pub(crate) fn timed_by_control(&self) -> Option<Time> {
        self.newest_sacked.or(self.newest_acked.filter(|_| !self.acked_retransmitted))
    }

    /// Transmission time of the segment that gives a round-trip time (RFC 6298 §3: never a
    /// retransmitted one).
    pub(crate) fn timed(&self) -> Option<Time> {
        self.first_acked.filter(|_| !self.acked_retransmitted).or(self.first_sacked)
    }
}

/// State of the probe of a connection.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub(crate) struct TailProbe {
    /// True if the sender sends probes.
    pub on: bool,
    /// Next sequence number at the probe whose ack is missing.
    pub tlp_high_seq: Option<u64>,
    /// True if the probe was a retransmission.
    pub tlp_retrans: bool,
}

impl TailProbe {
    /// Returns the state of a new connection.
    pub(crate) fn new(on: bool) -> TailProbe {
        TailProbe { on, ..TailProbe::default() }
    }

    /// Forgets the probe: losses are being repaired.
    pub(crate) fn forget(&mut self) {
        self.tlp_high_seq = None;
    }

    /// True if a duplicate report that ends at `end` is of the probe.
    pub(crate) fn explains(&self, end: u64) -> bool {
        self.tlp_high_seq == Some(end)
    }
}

/// State that a reduction leaves, so that it can be undone.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub(crate) struct UndoState {
    /// Cumulative ack at the reduction; `None` if there is nothing to undo.
    pub undo_marker: Option<u64>,
    /// Retransmissions not yet reported as duplicates; `None` before the first.
    pub undo_retrans: Option<u64>,
    /// Timestamp of the first retransmission since the state was Open.
    pub retrans_stamp: Option<u32>,
    pub prior_cwnd: u64,
    /// 0 if the reduction is not to be undone.
    pub prior_ssthresh: u64,
}

impl UndoState {
    /// Notes the start of a loss recovery with `retransmissions` in flight. `window` holds the
    /// congestion window and the threshold to return to, unless the window was already reduced.
    pub(crate) fn start(&mut self, una: u64, retransmissions: u64, window: Option<(u64, u64)>) {
        let count = (retransmissions > 0).then_some(retransmissions);
        (self.undo_marker, self.undo_retrans, self.prior_ssthresh) = (Some(una), count, 0);
        if let Some((cwnd, ssthresh)) = window {
            (self.prior_cwnd, self.prior_ssthresh) = (cwnd, ssthresh);
        }
    }

    /// Notes a retransmission, with its timestamp.
    pub(crate) fn on_retransmission(&mut self, timestamp: u32) {
        self.undo_retrans = Some(self.undo_retrans.unwrap_or(0) + 1);
        self.retrans_stamp.get_or_insert(timestamp);
    }

    /// Notes a report of duplicate data up to `end`, `segments` long.
    pub(crate) fn on_dsack(&mut self, end: u64, segments: u64) {
        if self.undo_marker.is_some_and(|marker| end > marker) {
            self.undo_retrans = self.undo_retrans.map(|count| count.saturating_sub(segments));
        }
    }

    /// True if every retransmission was a duplicate.
    pub(crate) fn all_were_duplicates(&self) -> bool {
        self.undo_marker.is_some() && self.undo_retrans == Some(0)
    }

    /// True if an ack with this echo answers data sent before the first retransmission.
    pub(crate) fn was_late(&self, echo: Option<u32>) -> bool {
        let before = |echo: u32, stamp: u32| echo.wrapping_sub(stamp).cast_signed() < 0;
        let late = self.retrans_stamp.zip(echo).is_some_and(|(stamp, echo)| before(echo, stamp));
        self.undo_marker.is_some() && late
    }
}

/// State of F-RTO of a connection.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub(crate) struct Frto {
    /// True if the sender uses F-RTO.
    pub on: bool,
    /// True after a timeout of which it is not known whether it was justified.
    pub undecided: bool,
    /// True if new data goes before lost data in answer to this ack.
    pub new_first: bool,
}
