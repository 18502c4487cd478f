//! The sources of short connections and their parameters.
//!
//! **Source**: Ismail et al., "On the Effectiveness of CoDel in Data Centers" (Poisson); Alizadeh
//! et al., "Data Center TCP", SIGCOMM 2010 (partition/aggregate); Joo et al., the HRED paper,
//! section IV (sessions of transfers); Feldmann et al., SIGCOMM 1999, as ns-2's webtraf has it
//! (web).

use crate::dist::Dist;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::units::{Bytes, Rate, Span};
use sojourn_aqm::{choice, params};

choice! {
    /// When a transfer counts as complete.
    pub enum Until {
        /// When its last byte has been received in order.
        Received = "received",
        /// When the sender knows it: the last ack is back, as ns-2's scripts measure.
        Acked = "acked",
    }
}

/// The least pause between arrivals: with none at all time would not pass.
const PAUSE: Dist<Span> = Dist::Constant(Span(1));
/// The longest.
const LONG: Dist<Span> = Dist::Constant(Span::s(1_000_000));
const BYTE: Dist<Bytes> = Dist::Constant(Bytes(1));
const BYTES_MAX: Dist<Bytes> = Dist::Constant(Bytes(1_000_000_000_000));
/// The most connections that a group may have open.
const MOST: u64 = 1_000_000;

params! {
    /// Short flows that arrive one after the other, each on a connection of its own.
    pub struct Poisson {
        /// When the first one may arrive.
        start: Dist<Span> = Dist::Constant(Span::ZERO), [], "", [];
        /// Payload of a flow.
        size: Dist<Bytes> = Dist::Constant(Bytes(100_000)), [BYTE => BYTES_MAX], "", [];
        /// Time from one arrival to the next, in the whole group; auto: exponential, by the load.
        interval: Option<Dist<Span>> = None, [Some(PAUSE) => Some(LONG)], "", [];
        /// Payload that arrives per second on average, in the whole group; auto: by the interval,
        /// or 1mbit if neither is given.
        load: Option<Rate> = None, [Some(Rate(1)) => Some(Rate(100_000_000_000_000))], "", [];
        /// How many flows; auto for no end.
        number: Option<u64> = None, [Some(1) => Some(1_000_000_000)], "", [];
        /// When no further flow arrives; auto for never.
        stop: Option<Span> = None, [], "", [];
        /// When a flow counts as complete.
        until: Until = Until::Received, [], "", [];
        /// Most connections open at once; what comes beyond asks again after a second.
        most: u64 = 10_000, [1 => MOST], "", [];
    }
}

params! {
    /// Queries that all servers of the group answer at once; the next one follows when all answers
    /// are complete.
    pub struct Incast {
        /// When the first query is made.
        start: Dist<Span> = Dist::Constant(Span::ZERO), [], "", [];
        /// Payload of one server's answer.
        size: Dist<Bytes> = Dist::Constant(Bytes(10_000)), [BYTE => BYTES_MAX], "S", [];
        /// How long after the query a server begins to answer.
        jitter: Dist<Span> = Dist::Uniform(Span::ZERO, Span::us(10)), [], "", [];
        /// Pause between the last answer's completion and the next query.
        gap: Dist<Span> = Dist::Constant(Span::ZERO), [], "", ["delay"];
        /// How many queries; auto for no end.
        number: Option<u64> = None, [Some(1) => Some(1_000_000_000)], "", ["queries"];
        /// When no further query is made; auto for never.
        stop: Option<Span> = None, [], "", [];
        /// Whether a server keeps its connection (and window) from one query to the next.
        persistent: bool = false, [], "", [];
        /// When an answer counts as complete.
        until: Until = Until::Received, [], "", [];
        /// Most connections open at once; what comes beyond asks again after a second.
        most: u64 = 10_000, [1 => MOST], "", [];
    }
}

params! {
    /// Sessions of some transfers each, one after the other, every one on a fresh connection from
    /// a member of the group that is drawn anew.
    pub struct Sessions {
        /// When the first session may arrive.
        start: Dist<Span> = Dist::Constant(Span::ZERO), [], "", [];
        /// Time from one session's arrival to the next, in the whole group.
        interval: Dist<Span> = Dist::Exponential(Span::s(1)), [PAUSE => LONG], "", [];
        /// How many transfers make a session.
        transfers: u64 = 10, [1 => 1_000_000], "", [];
        /// Payload of one transfer.
        size: Dist<Bytes> = Dist::Pareto(Bytes(5_000), 1.2), [BYTE => BYTES_MAX], "", [];
        /// Pause between the last acknowledgement of one transfer and the start of the next.
        gap: Dist<Span> = Dist::Constant(Span::ZERO), [], "", ["think"];
        /// How many sessions; auto for no end.
        number: Option<u64> = None, [Some(1) => Some(1_000_000_000)], "", [];
        /// When no further session arrives; auto for never.
        stop: Option<Span> = None, [], "", [];
        /// When a transfer counts as complete.
        until: Until = Until::Received, [], "", [];
        /// Most connections open at once; what comes beyond asks again after a second.
        most: u64 = 10_000, [1 => MOST], "", [];
    }
}

params! {
    /// Users who read pages: a page is some objects from one server, each on a connection of its
    /// own, at times that overlap; then the user thinks.
    pub struct Web {
        /// How many users there are.
        sessions: u64 = 400, [1 => 1_000_000], "", [];
        /// When a user's session begins, drawn for each; launch comes on top.
        start: Dist<Span> = Dist::Constant(Span::ZERO), [], "", [];
        /// How long after the session before it a session begins.
        launch: Dist<Span> = Dist::Constant(Span::ZERO), [], "", [];
        /// How long after its session's begin the first page is asked for.
        first: Dist<Span> = Dist::Constant(Span::ZERO), [], "", [];
        /// How many pages a session has; auto for no end.
        pages: Option<u64> = Some(250), [Some(1) => Some(1_000_000_000)], "", [];
        /// Time from the end of a page (from its start, with overlap) to the next.
        page_gap: Dist<Span> = Dist::Exponential(Span::s(15)), [], "", ["think", "inter_page"];
        /// Whether the next page does not wait for the end of this one (webtraf before Nov 2001).
        overlap: bool = false, [], "", [];
        /// How many objects a page has, rounded up.
        objects: Dist<u64> = Dist::Constant(1),
            [Dist::Constant(1) => Dist::Constant(1_000_000)], "", ["page_size"];
        /// Time from one object's request to the next within a page.
        object_gap: Dist<Span> = Dist::Exponential(Span::ms(10)), [], "", ["inter_obj"];
        /// Payload of an object.
        size: Dist<Bytes> = Dist::Lomax(Bytes(12_000), 1.2), [BYTE => BYTES_MAX], "",
            ["object_size"];
        /// Whether an object is asked for by a connection of its own, which crosses the
        /// return_path with one packet of data; its time counts.
        request: bool = false, [], "", [];
        /// When no further page is asked for; auto for never.
        stop: Option<Span> = None, [], "", [];
        /// When an object counts as complete.
        until: Until = Until::Received, [], "", [];
        /// Most connections open at once; what comes beyond asks again after a second.
        most: u64 = 10_000, [1 => MOST], "", [];
    }
}

impl Poisson {
    /// The time from one arrival to the next.
    pub fn arrivals(&self) -> Dist<Span> {
        let load = self.load.unwrap_or(Rate(1_000_000));
        self.interval.clone().unwrap_or_else(|| {
            let mean_ns = self.size.mean() * 8e9 / load.0 as f64;
            Dist::Exponential(Span(cast::trunc(mean_ns).max(1)))
        })
    }

    /// Refuses two values that say the same.
    pub fn checked(self) -> Result<Poisson> {
        match (&self.interval, self.load) {
            (Some(_), Some(_)) => {
                Err(Error::new("is given beside interval; one says the other").at("load"))
            }
            _ => Ok(self),
        }
    }
}

impl Web {
    /// Refuses pages that follow each other at once.
    pub fn checked(self) -> Result<Web> {
        if self.overlap && self.page_gap.mean() < 1.0 {
            return Err(Error::new("with overlap there must be a gap").at("page_gap"));
        }
        Ok(self)
    }
}
