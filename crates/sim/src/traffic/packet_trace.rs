//! Trace source: recorded packets or flows, replayed at their times.
//!
//! **Source**: RFC 7928 §5 asks for repeatable traffic. The columns are part of the JSON; Python
//! reads the files.

use crate::parsing::distribution::Distribution;
use crate::parsing::parse::{self, NamedParams};
use serde_json::{Value as Json, json};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, ErrorKind, Result};
use sojourn_aqm::params;
use sojourn_aqm::params::{ParamRow, ParamRows, Params};
use sojourn_aqm::units::{Span, Time};
use std::sync::Arc;

params! {
    /// Parameters of a trace besides its columns.
    pub struct TraceParams {
        /// Offset added to all times.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Time from which nothing is sent; auto means the end of the trace.
        stop: Option<Span> = None, [], "", [];
    }
}

/// Recorded packet or flow.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
pub struct TraceRow {
    /// Time since the start of the trace.
    pub at: Span,
    /// Bytes on the wire for a packet, payload bytes for a flow.
    pub bytes: u64,
    /// Number of the member of the group that sends it.
    pub flow: u32,
}

/// Recorded traffic.
#[derive(Clone, Debug, PartialEq, Snapshot)]
pub struct PacketTrace {
    /// Parameters.
    pub shift: TraceParams,
    /// Rows in order of time.
    #[snapshot(skip)]
    pub rows: Arc<[TraceRow]>,
    /// True if the `flow` column is given.
    flows: bool,
}

/// Columns: name and description.
const COLUMNS: [(&str, &str); 3] = [
    ("time_s", "time of each packet or flow in seconds, ascending"),
    ("size_bytes", "size of each packet on the wire, or payload of each flow, in bytes"),
    ("flow", "number of the sending member of the group, from 0; default: the first"),
];

/// Maximum number of rows.
const ROWS_MAX: usize = 50_000_000;
/// Maximum time, seconds.
const LATEST_S: f64 = 1e7;

impl PacketTrace {
    /// Creates a trace of these rows, which are validated with the scenario.
    pub fn new(shift: TraceParams, rows: Vec<TraceRow>) -> PacketTrace {
        let flows = rows.iter().any(|row| row.flow > 0);
        PacketTrace { shift, rows: rows.into(), flows }
    }

    /// Parses a trace. An empty trace is accepted here and rejected by `validate`, so that
    /// the registry can list the parameters.
    ///
    /// # Errors
    /// If a key is unknown, the columns differ in length, or a value is out of range or order.
    pub(crate) fn parse(named: &NamedParams<'_>) -> Result<PacketTrace> {
        let known = |key: &str| COLUMNS.iter().any(|c| c.0 == key);
        let list = named.lists.iter().find(|(key, _)| !known(key));
        if let Some((key, list)) = list {
            return Err(parse::to_setting(list)
                .err()
                .unwrap_or_else(|| Error::new("is a list"))
                .at(key));
        }
        let mut shift = TraceParams::default();
        for (key, value) in &named.settings {
            if known(key) {
                return Err(Error::new(format!("{value} is not a list of numbers")).at(key));
            }
            shift.set(key, *value)?;
        }
        let column = |i: usize, most: f64| {
            let key = COLUMNS[i].0;
            let list = named.lists.iter().find(|(k, _)| *k == key);
            list.map(|(_, list)| numbers(list, most).map_err(|e| e.at(key))).transpose()
        };
        let times = column(0, LATEST_S)?.unwrap_or_default();
        let sizes = column(1, 1e15)?.unwrap_or_default();
        let flows = column(2, 4_294_967_295.0)?;
        for (key, length) in
            [("size_bytes", Some(sizes.len())), ("flow", flows.as_ref().map(Vec::len))]
        {
            if length.is_some_and(|n| n != times.len()) {
                let n = times.len();
                return Err(Error::new(format!("must have {n} rows, as time_s has")).at(key));
            }
        }
        let mut rows = Vec::with_capacity(times.len());
        for (i, (t, size)) in times.iter().zip(&sizes).enumerate() {
            if i > 0 && *t < times[i - 1] {
                return Err(Error::new(format!("{t} is earlier than the previous row"))
                    .at(i)
                    .at("time_s"));
            }
            let whole = |x: f64| x >= 0.0 && libm::trunc(x) == x;
            let flow = flows.as_ref().map_or(0.0, |f| f[i]);
            if !whole(*size) || *size < 1.0 {
                let text = format!("{size} is not a whole number, at least 1");
                return Err(Error::new(text).at(i).at("size_bytes"));
            }
            if !whole(flow) {
                let text = format!("{flow} is not a whole number, at least 0");
                return Err(Error::new(text).at(i).at("flow"));
            }
            let at = Span(cast::trunc(libm::round(t * 1e9)));
            rows.push(TraceRow {
                at,
                bytes: cast::trunc(*size),
                flow: cast::saturate32(cast::trunc(flow)),
            });
        }
        Ok(PacketTrace { shift, rows: rows.into(), flows: flows.is_some() })
    }

    /// Validates against the group of `count` flows; `packets` is true if the rows are packets.
    ///
    /// # Errors
    /// If the trace is empty, a row names a member that does not exist, or a packet is too large.
    pub(crate) fn validate(&self, count: u64, packets: bool) -> Result<()> {
        if self.rows.is_empty() {
            let error = Error::new("is missing or empty").of_kind(ErrorKind::Missing);
            return Err(error.at("time_s"));
        }
        for (i, row) in self.rows.iter().enumerate() {
            if u64::from(row.flow) >= count {
                let text = format!("{} must be below the count of the group, {count}", row.flow);
                return Err(Error::new(text).at(i).at("flow"));
            }
            if packets && row.bytes > 65_535 {
                let text = format!("{} bytes exceed the largest packet, 65535 bytes", row.bytes);
                return Err(Error::new(text).at(i).at("size_bytes"));
            }
        }
        Ok(())
    }

    /// Maximum number of concurrent flows.
    pub(crate) fn max_open(&self) -> u64 {
        (self.rows.len() as u64).min(10_000)
    }

    /// Rows of one member of the group.
    pub(crate) fn rows_of_member(&self, member: u64) -> Arc<[TraceRow]> {
        self.rows.iter().filter(|r| u64::from(r.flow) == member).copied().collect()
    }

    /// Parameters; columns are listed without values.
    pub(crate) fn table(&self) -> ParamRows {
        let column = |(name, about): &(&'static str, &'static str)| ParamRow {
            name,
            aliases: &[],
            kind: "list of numbers".into(),
            value: "[]".into(),
            range: String::new(),
            symbol: "",
            about,
        };
        COLUMNS.iter().map(column).chain(self.shift.table()).collect()
    }

    /// Canonical JSON form with all parameters and columns.
    pub(crate) fn canonical(&self) -> Json {
        let mut json = parse::canonical("trace", &self.shift.table());
        let seconds = |r: &TraceRow| r.at.0 as f64 / 1e9;
        json["time_s"] = self.rows.iter().map(seconds).collect::<Vec<_>>().into();
        json["size_bytes"] = self.rows.iter().map(|r| r.bytes).collect::<Vec<_>>().into();
        if self.flows {
            json["flow"] = json!(self.rows.iter().map(|r| r.flow).collect::<Vec<_>>());
        }
        json
    }
}

fn numbers(list: &Json, most: f64) -> Result<Vec<f64>> {
    let list = parse::list(list)?;
    if list.len() > ROWS_MAX {
        return Err(Error::new(format!("{} rows are more than {ROWS_MAX}", list.len())));
    }
    let number = |(i, json): (usize, &Json)| {
        let number = json.as_f64().filter(|x| (0.0..=most).contains(x));
        number.ok_or_else(|| {
            let shown = parse::display(json);
            Error::new(format!("{shown} is not a number from 0 to {most}")).at(i)
        })
    };
    list.iter().enumerate().map(number).collect()
}

/// Position of a member in its rows.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct TrafficCursor {
    #[snapshot(skip)]
    rows: Arc<[TraceRow]>,
    next: usize,
    start: Time,
}

impl TrafficCursor {
    /// Creates a cursor at the first row of `member`.
    pub(crate) fn new(trace: &PacketTrace, member: u64, start: Time) -> TrafficCursor {
        TrafficCursor { rows: trace.rows_of_member(member), next: 0, start }
    }

    /// Time of the next packet; [`Time::NEVER`] after the last.
    pub(crate) fn next_time(&self) -> Time {
        self.rows.get(self.next).map_or(Time::NEVER, |r| self.start + r.at)
    }

    /// Advances to the next row; returns the size of the current packet in bytes.
    pub(crate) fn pop(&mut self) -> u32 {
        self.next += 1;
        self.rows.get(self.next - 1).map_or(0, |r| cast::saturate32(r.bytes))
    }
}
