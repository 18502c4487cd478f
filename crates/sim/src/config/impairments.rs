//! Text form of the impairments of a link: jitter, reorder, duplicate, corrupt, outages, slot and
//! in_flight_limit of a scenario.

use super::loss;
use crate::parsing::distribution;
use crate::parsing::keys::{KeyType, Table, table};
use crate::parsing::object::insert;
use crate::parsing::parse::{self, KeyReader, display};
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Value, read_checked};
use sojourn_aqm::units::{Bytes, Size, Span};
use sojourn_aqm::wire::{
    Chance, Distribution, Impairments, IntervalLength, Jitter, Outages, Reorder, SlotDelay, Slots,
};

table! {
    /// Random part of the delay of a packet, as `delay TIME JITTER CORRELATION distribution NAME`
    /// of tc-netem.
    static JITTER at "links.NAME.jitter";

    /// Scale of the distribution: the greatest difference from the delay if it is uniform, the
    /// standard deviation if it is normal. A packet arrives no earlier than it was sent.
    size: Span, required, ["0s" => "100000s"], "\"5ms\"";

    /// Distribution: uniform, normal, pareto or paretonormal, as in tc; a file of tc with a dot in
    /// its name (experimental.dist); or the values of such a file, in units of 1/8192 of the size.
    distribution: "name, file or list", default "uniform", [], "\"normal\"";

    /// Correlation with the delay of the previous packet. It makes delays far from the mean rarer,
    /// as in netem.
    correlation: f64, default "0", ["0" => "1"], "0.25";

    /// True if a packet can overtake an earlier one, as in netem without a rate. Otherwise it
    /// arrives no earlier than the packets sent before it.
    reorders: bool, default "true", [], "false";
}

table! {
    /// Packets that overtake others because they are sent without the delay of the link, as
    /// `reorder` of tc-netem.
    static REORDER at "links.NAME.reorder";

    /// Probability that a packet is sent early.
    probability: f64, default "1", ["0" => "1"], "0.25";

    /// Correlation with the previous decision.
    correlation: f64, default "0", ["0" => "1"], "0.5";

    /// Packets up to the next one that can be sent early: with 5 and a probability of 1, each fifth
    /// packet is.
    gap: u64, default "1", ["1" => "1000000000"], "5";
}

table! {
    /// Packets that arrive twice, as `duplicate` of tc-netem. The copy has random losses and delays
    /// of its own.
    static DUPLICATE at "links.NAME.duplicate";

    /// Probability that a packet is duplicated.
    probability: f64, required, ["0" => "1"], "0.01";

    /// Correlation with the previous packet.
    correlation: f64, default "0", ["0" => "1"], "0.25";
}

table! {
    /// Packets with a wrong bit, as `corrupt` of tc-netem: lost at their receiver in a simulation,
    /// with a flipped bit among real packets.
    static CORRUPT at "links.NAME.corrupt";

    /// Probability that a packet is corrupted.
    probability: f64, required, ["0" => "1"], "0.001";

    /// Correlation with the previous packet.
    correlation: f64, default "0", ["0" => "1"], "0.25";
}

table! {
    /// Alternating intervals: the link is up, then it loses every packet, and so on.
    static OUTAGES at "links.NAME.outages";

    /// Length of an interval without outage: a duration, uniform(a, b) or exponential(mean).
    up: "duration or distribution", required, [], "\"exponential(10s)\"";

    /// Length of an outage.
    down: "duration or distribution", required, [], "\"200ms\"";
}

table! {
    /// Times at which packets can arrive, as `slot` of tc-netem: packets that are due wait for the
    /// next slot, as on a radio link. Either min and max, or distribution, delay and jitter.
    static SLOT at "links.NAME.slot";

    /// Least time between two slots.
    min: Span, optional "a distribution", ["0s" => "1000s"], "\"10ms\"";

    /// Greatest time between two slots.
    max: Span, optional "min", ["0s" => "1000s"], "\"20ms\"";

    /// Distribution of the time between two slots, as of jitter.
    distribution: "name, file or list", optional "uniform from min to max", [], "\"normal\"";

    /// Mean time between two slots, with a distribution.
    delay: Span, optional "min and max", ["0s" => "1000s"], "\"15ms\"";

    /// Scale of the distribution.
    jitter: Span, optional "0s", ["0s" => "1000s"], "\"3ms\"";

    /// Packets that arrive in a slot at most.
    packets: u64, optional "no limit", ["1" => "1000000000"], "20";

    /// Bytes after which a slot ends.
    bytes: Bytes, optional "no limit", ["1B" => "1GB"], "\"64kB\"";
}

/// Largest number of values of a distribution, as in tc.
const VALUES_MAX: usize = 16_384;
/// Largest number of listed outages.
const OUTAGES_MAX: usize = 1_000_000;
/// Names of distributions.
const NAMES: [(&str, Distribution); 4] = [
    ("uniform", Distribution::Uniform),
    ("normal", Distribution::Normal),
    ("pareto", Distribution::Pareto),
    ("paretonormal", Distribution::ParetoNormal),
];

/// Keys of a link that are impairments other than loss, in canonical order.
const KEYS: [&str; 7] =
    ["jitter", "reorder", "duplicate", "corrupt", "outages", "slot", "in_flight_limit"];

/// Parses the impairments of a link.
///
/// # Errors
/// If a value is invalid, with its path.
pub(super) fn parse(fields: &KeyReader<'_>) -> Result<Impairments> {
    let mut all = Impairments::default();
    let loss = fields.get_or_default("loss");
    (all.loss, all.loss_ecn) = loss::parse(&loss).map_err(|e| e.at("loss"))?;
    for key in KEYS {
        if let Some(json) = fields.get(key) {
            parse_key(key, json, &mut all).map_err(|e| e.at(key))?;
        }
    }
    Ok(all)
}

pub(super) fn parse_key(key: &str, json: &Json, all: &mut Impairments) -> Result<()> {
    match key {
        "jitter" => all.jitter = Some(jitter(json)?),
        "reorder" => all.reorder = Some(reorder(json)?),
        "duplicate" => all.duplicate = chance(json, &DUPLICATE)?,
        "corrupt" => all.corrupt = chance(json, &CORRUPT)?,
        "outages" => all.outages = Some(outages(json)?),
        "slot" => all.slots = Some(slots(json)?),
        _ => match parse::read(json)? {
            Size::Packets(packets) => all.limit = Some(packets),
            Size::Bytes(_) => {
                let text = format!("{} is not a number of packets like 1000p", display(json));
                return Err(Error::new(text));
            }
        },
    }
    Ok(())
}

fn jitter(json: &Json) -> Result<Jitter> {
    if !json.is_object() {
        let ends = Some((Span::ZERO, super::link_trace::DELAY_MAX));
        return Ok(Jitter::new(read_checked(parse::to_setting(json)?, ends)?));
    }
    let fields = KeyReader::new(json, &JITTER)?;
    let mut jitter = Jitter::new(fields.read_or_default("size")?);
    jitter.correlation = fields.read_or_default("correlation")?;
    jitter.reorders = fields.read_or_default("reorders")?;
    if let Some(json) = fields.get("distribution") {
        jitter.distribution = named_distribution(json).map_err(|e| e.at("distribution"))?;
    }
    Ok(jitter)
}

fn named_distribution(json: &Json) -> Result<Distribution> {
    if let Some(list) = json.as_array() {
        if list.is_empty() || list.len() > VALUES_MAX {
            let text = format!("{} values, allowed: 1 to {VALUES_MAX}", list.len());
            return Err(Error::new(text));
        }
        let value = |(i, json): (usize, &Json)| {
            let whole = json.as_i64().and_then(|x| i16::try_from(x).ok());
            let text = || format!("{} is not a whole number from -32768 to 32767", display(json));
            whole.ok_or_else(|| Error::new(text()).at(i))
        };
        let values: Result<Vec<i16>> = list.iter().enumerate().map(value).collect();
        return Ok(Distribution::Table(values?.into()));
    }
    let name = parse::text(json)?;
    let known = NAMES.iter().find(|(known, _)| *known == name);
    let known = known.map(|(_, distribution)| distribution.clone());
    known.ok_or_else(|| Error::unknown("distribution", name, NAMES.iter().map(|(name, _)| *name)))
}

fn chance(json: &Json, table: &'static Table) -> Result<Chance> {
    if !json.is_object() {
        let probability = read_checked(parse::to_setting(json)?, Some((0.0, 1.0)))?;
        return Ok(Chance::new(probability));
    }
    let fields = KeyReader::new(json, table)?;
    let probability = fields.read_or_default("probability")?;
    Ok(Chance::correlated(probability, fields.read_or_default("correlation")?))
}

fn reorder(json: &Json) -> Result<Reorder> {
    let mut reorder = Reorder::new(chance(json, &REORDER)?);
    if json.is_object() {
        reorder.gap = KeyReader::new(json, &REORDER)?.read_or_default("gap")?;
    }
    Ok(reorder)
}

/// Parses `"10s..10.5s"`.
fn outage(json: &Json) -> Result<(Span, Span)> {
    let text = parse::text(json)?;
    let Some((start, end)) = text.split_once("..") else {
        return Err(Error::new(format!("{text:?} is not an interval like \"10s..10.5s\"")));
    };
    let (start, end): (Span, Span) = (start.trim().parse()?, end.trim().parse()?);
    if end <= start {
        return Err(Error::new(format!("{text:?} does not end after its start")));
    }
    Ok((start, end))
}

fn outages(json: &Json) -> Result<Outages> {
    if json.is_object() {
        let fields = KeyReader::new(json, &OUTAGES)?;
        let length = |key: &str| interval(fields.require(key)?).map_err(|e| e.at(key));
        return Ok(Outages::Intervals { up: length("up")?, down: length("down")? });
    }
    let list = json.as_array().ok_or_else(|| {
        Error::new(format!("{} is neither a list of intervals nor a table", display(json)))
    })?;
    if list.len() > OUTAGES_MAX {
        return Err(Error::new(format!("{} outages, allowed: {OUTAGES_MAX}", list.len())));
    }
    let mut times: Vec<(Span, Span)> = Vec::with_capacity(list.len());
    for (i, json) in list.iter().enumerate() {
        let (start, end) = outage(json).map_err(|e| e.at(i))?;
        if let Some((_, last)) = times.last().filter(|(_, last)| start < *last) {
            let text = format!("starts at {start}, before the end of the previous one at {last}");
            return Err(Error::new(text).at(i));
        }
        times.push((start, end));
    }
    Ok(Outages::Times(times.into()))
}

fn interval(json: &Json) -> Result<IntervalLength> {
    use distribution::Distribution as D;
    let length: D<Span> = parse::read(json)?;
    match length {
        D::Constant(span) => Ok(IntervalLength::Constant(span)),
        D::Uniform(least, end) => Ok(IntervalLength::Uniform(least, end)),
        D::Exponential(mean) => Ok(IntervalLength::Exponential(mean)),
        _ => {
            let text = "is not a duration, uniform(a, b) or exponential(mean)";
            Err(Error::new(format!("{} {text}", display(json))))
        }
    }
}

fn slots(json: &Json) -> Result<Slots> {
    let fields = KeyReader::new(json, &SLOT)?;
    let has = |key: &str| fields.get(key).is_some();
    let by_distribution = has("distribution") || has("delay") || has("jitter");
    if let Some(key) = ["min", "max"].into_iter().find(|key| by_distribution && has(key)) {
        let text = "cannot be combined with distribution, delay and jitter";
        return Err(Error::new(text).at(key));
    }
    let mut slots = if by_distribution {
        let name = fields.require("distribution")?;
        let delay = fields.read("delay")?;
        let delay = delay.ok_or_else(|| Error::new("is missing").at("delay"))?;
        let jitter = fields.read("jitter")?.unwrap_or(Span::ZERO);
        let distribution = named_distribution(name).map_err(|e| e.at("distribution"))?;
        let mut slots = Slots::new(delay, delay);
        slots.delay = SlotDelay::Distribution(delay, jitter, distribution);
        slots
    } else {
        let min: Span = match fields.read("min")? {
            Some(min) => min,
            None => return Err(Error::new("is missing").at("min")),
        };
        let max = fields.read("max")?.unwrap_or(min);
        if max < min {
            return Err(Error::new(format!("{max} is less than min, {min}")).at("max"));
        }
        Slots::new(min, max)
    };
    slots.packets = fields.read("packets")?;
    slots.bytes = fields.read("bytes")?.map(|bytes: Bytes| bytes.0);
    Ok(slots)
}

/// Writes the impairments other than loss into the canonical form of a link.
pub(crate) fn write(all: &Impairments, map: &mut Map<String, Json>) {
    let mut put = |key: &str, value: Json| insert(map, key, value);
    if let Some(Jitter { size, distribution, correlation, reorders, .. }) = &all.jitter {
        let value = json!({
            "size": size.write(), "distribution": canonical_distribution(distribution),
            "correlation": correlation.to_json(), "reorders": reorders,
        });
        put("jitter", value);
    }
    let pair = |chance: Chance| {
        let Chance { probability, correlation, .. } = chance;
        json!({ "probability": probability.to_json(), "correlation": correlation.to_json() })
    };
    if let Some(reorder) = &all.reorder {
        let mut value = pair(reorder.chance);
        value["gap"] = reorder.gap.into();
        put("reorder", value);
    }
    for (key, chance) in [("duplicate", all.duplicate), ("corrupt", all.corrupt)] {
        if chance != Chance::default() {
            put(key, pair(chance));
        }
    }
    if let Some(outages) = &all.outages {
        put("outages", canonical_outages(outages));
    }
    if let Some(slots) = &all.slots {
        put("slot", canonical_slots(slots));
    }
    if let Some(limit) = all.limit {
        put("in_flight_limit", Size::Packets(limit).write().into());
    }
}

fn canonical_distribution(distribution: &Distribution) -> Json {
    match distribution {
        Distribution::Table(values) => values.iter().copied().map(i64::from).collect(),
        other => {
            let name = NAMES.iter().find(|(_, known)| known == other).map(|(name, _)| *name);
            name.unwrap_or_default().into()
        }
    }
}

fn canonical_outages(outages: &Outages) -> Json {
    let length = |length: &IntervalLength| match length {
        IntervalLength::Uniform(least, end) => {
            distribution::Distribution::Uniform(*least, *end).write()
        }
        IntervalLength::Exponential(mean) => distribution::Distribution::Exponential(*mean).write(),
        IntervalLength::Constant(span) => span.write(),
        other => unreachable!("{other:?} has a text form"),
    };
    match outages {
        Outages::Times(times) => {
            let text = |(start, end): &(Span, Span)| format!("{}..{}", start.write(), end.write());
            times.iter().map(text).collect()
        }
        Outages::Intervals { up, down } => json!({ "up": length(up), "down": length(down) }),
        other => unreachable!("{other:?} has a text form"),
    }
}

fn canonical_slots(slots: &Slots) -> Json {
    let mut json = match &slots.delay {
        SlotDelay::Uniform(min, max) => json!({ "min": min.write(), "max": max.write() }),
        SlotDelay::Distribution(delay, jitter, distribution) => json!({
            "distribution": canonical_distribution(distribution),
            "delay": delay.write(), "jitter": jitter.write(),
        }),
        other => unreachable!("{other:?} has a text form"),
    };
    if let Some(packets) = slots.packets {
        json["packets"] = packets.into();
    }
    if let Some(bytes) = slots.bytes {
        json["bytes"] = Bytes(bytes).write().into();
    }
    json
}

#[cfg(test)]
mod tests;
