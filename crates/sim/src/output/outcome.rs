//! Result of a run: one JSON object of summaries, and columns of numbers.

use crate::config::canonical::write_members;
use crate::config::scenario::Scenario;
use crate::config::switches::SwitchConfig;
use crate::endpoint::call::CallEndpoints;
use crate::parsing::object::insert_all;
use crate::traffic::video::VideoStats;
use serde_json::{Map, Value as Json};
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};
use sojourn_aqm::wire::WireStats;
use sojourn_aqm::{DropReason, Histogram, Link};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write as _};
use std::ops::Deref;
use std::sync::OnceLock;

/// Typed column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Column {
    /// Quantities.
    F64(Vec<f64>),
    /// Counts.
    U64(Vec<u64>),
    /// Indices.
    U32(Vec<u32>),
    /// Small codes.
    U8(Vec<u8>),
    /// Flags.
    Bool(Vec<bool>),
}

/// Result of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// JSON object as printed by `sojourn run --json`, without the version.
    pub summary: Summary,
    /// Columns by name: series, completions, distributions of delays, packet logs.
    pub columns: Vec<(String, Column)>,
}

/// JSON object as text, parsed into a tree on first access: for 100,000 flows the tree is ten times
/// as large as the text.
#[derive(Clone, Debug)]
pub struct Summary {
    text: Pieces,
    tree: OnceLock<Json>,
}

impl Summary {
    /// Creates the object of `flows`, `links`, the `switches` of `scenario`, and `scenario`. Rows
    /// are converted one by one.
    pub(crate) fn new<'a>(
        flows: impl Iterator<Item = Json>,
        links: impl Iterator<Item = (&'a str, Json)>,
        switches: impl Iterator<Item = Json>,
        scenario: &Scenario,
    ) -> Self {
        let mut text = Pieces::default();
        let write = || {
            text.write_str("{\"flows\":[")?;
            for (i, row) in flows.enumerate() {
                write!(text, "{}{row}", if i > 0 { "," } else { "" })?;
            }
            text.write_str("],\"links\":")?;
            write_members(&mut text, links, |text, row| write!(text, "{row}"))?;
            text.write_str(",\"scenario\":")?;
            scenario.write_canonical(&mut text)?;
            if !scenario.switches.is_empty() {
                text.write_str(",\"switches\":")?;
                let names = scenario.switches.iter().map(SwitchConfig::name);
                write_members(&mut text, names.zip(switches), |text, row| write!(text, "{row}"))?;
            }
            text.write_char('}')
        };
        write().expect("memory accepts all text");
        Summary { text, tree: OnceLock::new() }
    }
}

/// Long text in pieces. In one string, it would be copied to twice the memory as it grows.
#[derive(Clone, Debug, Default)]
struct Pieces(Vec<String>);

impl Pieces {
    /// Capacity of a piece, bytes.
    const PIECE: usize = 1 << 14;
}

impl fmt::Write for Pieces {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        match self.0.last_mut() {
            Some(piece) if piece.capacity() - piece.len() >= text.len() => piece.push_str(text),
            _ => {
                let mut piece = String::with_capacity(text.len().max(Pieces::PIECE));
                piece.push_str(text);
                self.0.push(piece);
            }
        }
        Ok(())
    }
}

impl Display for Pieces {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| f.write_str(piece))
    }
}

impl Deref for Summary {
    type Target = Json;

    fn deref(&self) -> &Json {
        let parse = || serde_json::from_str(&self.to_string()).expect("the text is valid JSON");
        self.tree.get_or_init(parse)
    }
}

impl Display for Summary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// Quotient `a / b`; null if `b` is not positive.
pub fn ratio(a: f64, b: f64) -> Json {
    if b > 0.0 { (a / b).into() } else { Json::Null }
}

/// Summary of a link over the measured interval.
///
/// `loss_rate` and `mark_rate` are fractions of the packets that arrived in the interval; the
/// counts of dropped and marked packets and bytes refer to the same packets. Departures are
/// transmissions started in the interval, sojourn times are of departed packets, `utilisation` is
/// a fraction of time, or of the bytes of delivery opportunities (see [`Link::utilisation`]).
pub fn link_summary(name: &str, link: &mut Link, goodput_bps: f64) -> Json {
    let utilisation = link.utilisation();
    let t = link.stats();
    let dropped = |reason| t.dropped_for(reason);
    let quantile = |q: f64| t.sojourn.quantile_s(q);
    let (packets, bytes) = (t.queue_packets(), t.queue_bytes());
    let mut map = Map::new();
    insert_all(
        &mut map,
        &mut [
            ("qdisc", name.into()),
            ("utilisation", utilisation.into()),
            ("goodput_bps", goodput_bps.into()),
            ("loss_rate", ratio(t.dropped() as f64, t.arrived_packets as f64)),
            ("mark_rate", ratio(t.marks.packets as f64, t.arrived_packets as f64)),
            ("queue_mean_bytes", bytes.map(|m| m.0).into()),
            ("queue_std_bytes", bytes.map(|m| m.1).into()),
            ("queue_mean_packets", packets.map(|m| m.0).into()),
            ("queue_std_packets", packets.map(|m| m.1).into()),
            ("sojourn_mean_s", t.sojourn.mean_s().into()),
            ("sojourn_std_s", t.sojourn.std_s().into()),
            ("sojourn_p50_s", quantile(0.5).into()),
            ("sojourn_p95_s", quantile(0.95).into()),
            ("sojourn_p99_s", quantile(0.99).into()),
            ("sojourn_max_s", t.sojourn.max_s().into()),
            ("arrived_packets", t.arrived_packets.into()),
            ("departed_packets", t.departed_packets.into()),
            ("dropped_packets", t.dropped().into()),
            ("dropped_full_packets", dropped(DropReason::Full).into()),
            ("dropped_early_packets", dropped(DropReason::AtEnqueue).into()),
            ("dropped_late_packets", dropped(DropReason::AfterEnqueue).into()),
            ("marked_packets", t.marks.packets.into()),
            ("arrived_bytes", t.arrived_bytes.into()),
            ("departed_bytes", t.departed_bytes.into()),
            ("dropped_bytes", t.dropped_bytes.into()),
            ("consecutive_loss", t.consecutive_loss().into()),
        ],
    );
    Json::Object(map)
}

/// Adds the columns of the distribution of all delays in `histograms`, unless there are none: each
/// distinct delay to the accuracy of [`Histogram`], and its count. `table` is `sojourn/LINK`,
/// `delay/GROUP` or `frame_delay/GROUP`.
pub fn delay_columns<'a>(
    table: &str,
    histograms: impl IntoIterator<Item = &'a Histogram>,
    columns: &mut Vec<(String, Column)>,
) {
    let mut all = BTreeMap::new();
    for (value, n) in histograms.into_iter().flat_map(Histogram::values) {
        *all.entry(value.0).or_default() += n;
    }
    if !all.is_empty() {
        let values = all.keys().map(|ns| *ns as f64 / 1e9).collect();
        columns.push((format!("{table}/value_s"), Column::F64(values)));
        columns.push((format!("{table}/count"), Column::U64(all.into_values().collect())));
    }
}

/// Adds the columns of a link's packet log; `flow_of` maps a packet's flow to an index of the
/// flows.
pub fn packet_log_columns(
    name: &str,
    link: &Link,
    flow_of: &[u32],
    columns: &mut Vec<(String, Column)>,
) {
    let rows = link.packet_log();
    let secs = |ns: u64| ns as f64 / 1e9;
    let fate = |r: &sojourn_aqm::LogEntry| r.why.map_or(0, |w| w as u8);
    let mut put =
        |what: &str, column: Column| columns.push((format!("packet_log/{name}/{what}"), column));
    put("arrived_s", Column::F64(rows.iter().map(|r| secs(r.packet.arrived.0)).collect()));
    put("left_s", Column::F64(rows.iter().map(|r| secs(r.left.0)).collect()));
    put("flow", Column::U32(rows.iter().map(|r| flow_of[r.packet.flow as usize]).collect()));
    put("size_bytes", Column::U32(rows.iter().map(|r| r.packet.len).collect()));
    put("class", Column::U32(rows.iter().map(|r| r.packet.class.into()).collect()));
    put("fate", Column::U8(rows.iter().map(fate).collect()));
    let marked = |r: &sojourn_aqm::LogEntry| r.packet.ecn == sojourn_aqm::Ecn::Ce;
    put("marked", Column::Bool(rows.iter().map(marked).collect()));
}

/// Adds the number, mean and percentiles (nearest rank) of completion times.
pub fn insert_completions(durations_s: &mut [f64], into: &mut Map<String, Json>) {
    durations_s.sort_unstable_by(f64::total_cmp);
    let n = durations_s.len();
    let rank = |q: f64| {
        let i = cast::index(cast::trunc(libm::ceil(q * n as f64)));
        durations_s.get(i.max(1) - 1).copied()
    };
    let mean = (n > 0).then(|| durations_s.iter().sum::<f64>() / n as f64);
    insert_all(
        into,
        &mut [
            ("completed", n.into()),
            ("fct_mean_s", mean.into()),
            ("fct_p50_s", rank(0.5).into()),
            ("fct_p99_s", rank(0.99).into()),
        ],
    );
}

/// Adds the counters of a wire to the summary of a link.
pub fn insert_wire_stats(stats: &WireStats, row: &mut Json) {
    let WireStats { lost, marked, duplicated, corrupted, reordered, .. } = *stats;
    row["lost_on_wire_packets"] = lost.into();
    row["marked_on_wire_packets"] = marked.into();
    row["duplicated_packets"] = duplicated.into();
    row["corrupted_packets"] = corrupted.into();
    row["reordered_packets"] = reordered.into();
}

/// Adds the statistics of a video.
pub fn insert_video(video: &VideoStats, into: &mut Map<String, Json>) {
    insert_all(
        into,
        &mut [
            ("video_segments", video.segments.into()),
            ("video_rate_bps", video.rate_bps.into()),
            ("video_switches", video.switches.into()),
            ("video_startup_s", video.startup.map(Span::as_secs).into()),
            ("video_stalls", video.stalls.into()),
            ("video_stalled_s", video.stalled.as_secs().into()),
        ],
    );
}

/// Adds the statistics of the frames of a call.
pub fn insert_call(call: &CallEndpoints, into: &mut Map<String, Json>) {
    let delay = &call.frame_delay;
    insert_all(
        into,
        &mut [
            ("frames", call.captured_frames.into()),
            ("lost_frames", call.lost_frames.into()),
            ("frame_delay_mean_s", delay.mean_s().into()),
            ("frame_delay_p50_s", delay.quantile_s(0.5).into()),
            ("frame_delay_p95_s", delay.quantile_s(0.95).into()),
            ("frame_delay_p99_s", delay.quantile_s(0.99).into()),
            ("frame_delay_max_s", delay.max_s().into()),
        ],
    );
}

/// Columns of completed transfers and answered queries.
#[derive(Default)]
pub(crate) struct Completions {
    flow: Vec<u32>,
    start: Vec<f64>,
    took: Vec<f64>,
    startup: Vec<f64>,
    bytes: Vec<u64>,
    queries: (Vec<u32>, Vec<f64>, Vec<f64>),
}

impl Completions {
    /// Adds a transfer of `flow`; `took` is its duration, `startup` the time until its first byte
    /// could be sent.
    pub(crate) fn add(&mut self, flow: u32, start: Time, [took, startup]: [Span; 2], bytes: u64) {
        self.flow.push(flow);
        self.start.push(start.0 as f64 / 1e9);
        self.took.push(took.as_secs());
        self.startup.push(startup.as_secs());
        self.bytes.push(bytes);
    }

    /// Adds queries of the group whose first flow is `flow`: start time and duration of each.
    pub(crate) fn add_queries(&mut self, flow: u32, queries: &[(Time, Span)]) {
        for (start, took) in queries {
            self.queries.0.push(flow);
            self.queries.1.push(start.0 as f64 / 1e9);
            self.queries.2.push(took.as_secs());
        }
    }

    /// Appends the columns; the columns of queries only if `queries`.
    pub(crate) fn columns(self, queries: bool, columns: &mut Vec<(String, Column)>) {
        let mut put = |what: &str, column| columns.push((what.into(), column));
        put("fct/flow", Column::U32(self.flow));
        put("fct/start_s", Column::F64(self.start));
        put("fct/duration_s", Column::F64(self.took));
        put("fct/startup_s", Column::F64(self.startup));
        put("fct/bytes", Column::U64(self.bytes));
        if queries {
            put("query/flow", Column::U32(self.queries.0));
            put("query/start_s", Column::F64(self.queries.1));
            put("query/duration_s", Column::F64(self.queries.2));
        }
    }
}

/// Common first members of the summary of a flow.
pub(crate) fn flow_summary_head(
    name: &str,
    group: &str,
    goodput_bps: f64,
    rtt_s: f64,
) -> Map<String, Json> {
    let mut map = Map::new();
    insert_all(
        &mut map,
        &mut [
            ("name", name.into()),
            ("group", group.into()),
            ("goodput_bps", goodput_bps.into()),
            ("rtt_s", rtt_s.into()),
        ],
    );
    map
}
