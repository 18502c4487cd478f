//! Sources of short connections, and their parameters.
//!
//! **Source**: Ismail et al., "On the Effectiveness of CoDel in Data Centers" (Poisson); Alizadeh
//! et al., "Data Center TCP", SIGCOMM 2010 (partition/aggregate); Joo et al., "A Hybrid AQM for
//! Stability and Fast Adaptation" (HRED), section IV (sessions of transfers); Feldmann et al.,
//! SIGCOMM 1999, as implemented by ns-2's webtraf (web).

use crate::parsing::distribution::Distribution;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::units::{Bytes, Rate, Span};
use sojourn_aqm::{choice, params};

choice! {
    /// Definition of the completion of a transfer.
    pub enum CompletionRule {
        /// The last byte has been received in order.
        Received = "received",
        /// The sender has received the last ack, as measured by ns-2 scripts.
        Acked = "acked",
    }
}

/// Minimum gap between arrivals; at 0 simulated time would not advance.
const MIN_GAP: Distribution<Span> = Distribution::Constant(Span(1));
/// Maximum gap between arrivals.
const MAX_GAP: Distribution<Span> = Distribution::Constant(Span::s(1_000_000));
/// Smallest mean payload of a transfer.
pub(crate) const MIN_SIZE: Distribution<Bytes> = Distribution::Constant(Bytes(1));
/// Largest mean payload of a transfer.
pub(crate) const BYTES_MAX: Distribution<Bytes> = Distribution::Constant(Bytes(1_000_000_000_000));
/// Upper bound on the concurrent connections of a group.
pub(crate) const MAX_OPEN: u64 = 1_000_000;

params! {
    /// Short flows with random arrivals, each on a new connection.
    pub struct Poisson {
        /// Time from which flows arrive.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Payload of a flow.
        size: Distribution<Bytes> =
            Distribution::Constant(Bytes(100_000)), [MIN_SIZE => BYTES_MAX], "", [];
        /// Time between arrivals in the whole group; auto: exponential, derived from load.
        interval: Option<Distribution<Span>> = None, [MIN_GAP => MAX_GAP], "", [];
        /// Mean payload rate of the whole group; auto: derived from interval, or 1mbit if neither
        /// is given.
        load: Option<Rate> = None, [Rate(1) => Rate(100_000_000_000_000)], "", [];
        /// Number of flows; auto means unlimited.
        number: Option<u64> = None, [1 => 1_000_000_000], "", [];
        /// Time from which no further flow arrives; auto means never.
        stop: Option<Span> = None, [], "", [];
        /// Definition of completion: received in order, or acknowledged.
        until: CompletionRule = CompletionRule::Received, [], "", [];
        /// Maximum number of open connections; further ones are retried after 1 s.
        most: u64 = 10_000, [1 => MAX_OPEN], "", [];
    }
}

params! {
    /// Queries answered by all servers of the group at the same time; the next query follows when
    /// all answers are complete.
    pub struct Incast {
        /// Start time of the first query.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Payload of the answer of one server.
        size: Distribution<Bytes> =
            Distribution::Constant(Bytes(10_000)), [MIN_SIZE => BYTES_MAX], "S", [];
        /// Time from the query to the start of a server's answer.
        jitter: Distribution<Span> = Distribution::Uniform(Span::ZERO, Span::us(10)), [], "", [];
        /// Pause between the completion of the last answer and the next query.
        gap: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", ["delay"];
        /// Number of queries; auto means unlimited.
        number: Option<u64> = None, [1 => 1_000_000_000], "", ["queries"];
        /// Time from which no further query starts; auto means never.
        stop: Option<Span> = None, [], "", [];
        /// If true, each server keeps its connection (and window) between queries.
        persistent: bool = false, [], "", [];
        /// Definition of completion: received in order, or acknowledged.
        until: CompletionRule = CompletionRule::Received, [], "", [];
        /// Maximum number of open connections; further ones are retried after 1 s.
        most: u64 = 10_000, [1 => MAX_OPEN], "", [];
    }
}

params! {
    /// Sessions of several sequential transfers, each on a new connection to a randomly drawn
    /// member of the group.
    pub struct Sessions {
        /// Time from which sessions arrive.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Time between arrivals of sessions in the whole group.
        interval: Distribution<Span> =
            Distribution::Exponential(Span::s(1)), [MIN_GAP => MAX_GAP], "", [];
        /// Number of transfers per session.
        transfers: u64 = 10, [1 => 1_000_000], "", [];
        /// Payload of a transfer.
        size: Distribution<Bytes> =
            Distribution::Pareto(Bytes(5_000), 1.2), [MIN_SIZE => BYTES_MAX], "", [];
        /// Pause between the last acknowledgement of a transfer and the start of the next.
        gap: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", ["think"];
        /// Number of sessions; auto means unlimited.
        number: Option<u64> = None, [1 => 1_000_000_000], "", [];
        /// Time from which no further session arrives; auto means never.
        stop: Option<Span> = None, [], "", [];
        /// Definition of completion: received in order, or acknowledged.
        until: CompletionRule = CompletionRule::Received, [], "", [];
        /// Maximum number of open connections; further ones are retried after 1 s.
        most: u64 = 10_000, [1 => MAX_OPEN], "", [];
    }
}

params! {
    /// Web users: a page consists of several objects from one server, each on a new connection,
    /// partly in parallel; after a page the user thinks.
    pub struct Web {
        /// Number of users.
        sessions: u64 = 400, [1 => 1_000_000], "", [];
        /// Start time of a user's session, drawn per user; launch is added.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Additional delay of each session relative to the previous one.
        launch: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Time from the start of a session to its first page.
        first: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Number of pages per session; auto means unlimited.
        pages: Option<u64> = Some(250), [1 => 1_000_000_000], "", [];
        /// Time from the end of a page (with overlap: from its start) to the next.
        page_gap: Distribution<Span> =
            Distribution::Exponential(Span::s(15)), [], "", ["think", "inter_page"];
        /// If true, the next page does not wait for the end of the current one (webtraf before
        /// November 2001).
        overlap: bool = false, [], "", [];
        /// Number of objects per page, rounded up.
        objects: Distribution<u64> = Distribution::Constant(1),
            [Distribution::Constant(1) => Distribution::Constant(1_000_000)], "", ["page_size"];
        /// Time between requests of objects within a page.
        object_gap: Distribution<Span> =
            Distribution::Exponential(Span::ms(10)), [], "", ["inter_obj"];
        /// Maximum number of objects of a page in transfer at the same time, like the six
        /// connections of a browser; further ones wait until one ends. auto means unlimited.
        parallel: Option<u64> = None, [1 => 1_000_000], "", [];
        /// Payload of an object.
        size: Distribution<Bytes> =
            Distribution::Lomax(Bytes(12_000), 1.2), [MIN_SIZE => BYTES_MAX], "",
            ["object_size"];
        /// If true, each object is requested on its own connection, with one data packet on
        /// return_path; the request counts in the completion time.
        request: bool = false, [], "", [];
        /// Time from which no further page is requested; auto means never.
        stop: Option<Span> = None, [], "", [];
        /// Definition of completion: received in order, or acknowledged.
        until: CompletionRule = CompletionRule::Received, [], "", [];
        /// Maximum number of open connections; further ones are retried after 1 s.
        most: u64 = 10_000, [1 => MAX_OPEN], "", [];
    }
}

impl Poisson {
    /// Distribution of the time between arrivals.
    pub(crate) fn arrivals(&self) -> Distribution<Span> {
        let load = self.load.unwrap_or(Rate(1_000_000));
        self.interval.clone().unwrap_or_else(|| {
            let mean_ns = self.size.mean() * 8e9 / load.0 as f64;
            Distribution::Exponential(Span(cast::trunc(mean_ns).max(1)))
        })
    }

    /// Maximum number of arrivals within `time`. The number of a Poisson process exceeds it with a
    /// probability below e^-50 (Chernoff's bound at ten standard deviations and 100).
    pub(crate) fn max_arrivals(&self, time: Span) -> u64 {
        let gap = self.arrivals();
        let arrivals = match gap {
            Distribution::Exponential(_) => {
                let mean = time.0 as f64 / gap.mean();
                cast::trunc(libm::ceil(mean + 10.0 * libm::sqrt(mean))).saturating_add(100)
            }
            _ => time.0.checked_div(gap.min().0).map_or(u64::MAX, |n| n.saturating_add(1)),
        };
        arrivals.min(self.number.unwrap_or(u64::MAX))
    }

    /// Checks that not both `interval` and `load` are given.
    ///
    /// # Errors
    /// If both are given.
    pub(crate) fn checked(self) -> Result<Poisson> {
        match (&self.interval, self.load) {
            (Some(_), Some(_)) => Err(Error::new("cannot be combined with interval").at("load")),
            _ => Ok(self),
        }
    }
}

impl Web {
    /// Checks that overlapping pages are separated by a gap.
    ///
    /// # Errors
    /// If pages overlap and `page_gap` is 0.
    pub(crate) fn checked(self) -> Result<Web> {
        if self.overlap && self.page_gap.mean() < 1.0 {
            return Err(Error::new("must be above 0 if overlap is set").at("page_gap"));
        }
        Ok(self)
    }
}
