//! Definition of a link in a scenario.

use crate::changes::{self, Trace};
use crate::keys;
use crate::read::{self, Fields};
use crate::scenario::good_name;
use crate::wire::Loss;
use serde_json::{Value as Json, json};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Row, Setting, Value};
use sojourn_aqm::sched::Env;
use sojourn_aqm::units::Span;
use sojourn_aqm::{LinkSpec, Made, Opportunities};

/// Parsed definition of a link.
#[derive(Clone, Debug)]
pub struct LinkDef {
    /// Name.
    pub name: String,
    /// Rate and propagation delay.
    pub spec: LinkSpec,
    /// Canonical name of the discipline.
    pub qdisc: &'static str,
    /// All parameters of the discipline.
    pub params: Vec<Row>,
    /// Random loss after the queue.
    pub loss: Loss,
    /// Recorded changes of rate or delay.
    pub trace: Option<Trace>,
    /// Recorded delivery opportunities, which replace the rate.
    pub opportunities: Option<Opportunities>,
    /// State of the discipline without packets, bytes.
    pub state: usize,
}

/// Memory of a link besides its discipline, bytes; mostly its delay histogram.
const LINK_BYTES: usize = 80_000;
/// Maximum memory of all links of a scenario, bytes.
const MEMORY_MAX: usize = 2_000_000_000;

/// Capacity of a delivery opportunity in mahimahi's mm-link, bytes: an IP packet of 1500 bytes and
/// its framing.
pub const OPPORTUNITY_BYTES: u32 = 1504;
/// Framing per packet in mm-link, bytes: the TUN header in front of the IP header.
pub const OPPORTUNITY_HEADER_BYTES: u32 = 4;
/// Latest delivery opportunity of a trace, milliseconds.
const MOMENT_MAX: u64 = 10_000_000_000;

impl LinkDef {
    fn of(name: &str, json: &Json) -> Result<LinkDef> {
        let fields = Fields::of(json, &keys::LINK)?;
        let (rate, delay) = (fields.value("rate")?, fields.value("delay")?);
        let loss = fields.or_default("loss");
        let loss = Loss::of(&loss).map_err(|e| e.at("loss"))?;
        let (trace, opportunities) = match fields.get("trace") {
            Some(trace) => recorded(trace).map_err(|e| e.at("trace"))?,
            None => (None, None),
        };
        let spec = LinkSpec { rate, delay };
        let (entry, made) =
            read::qdisc(&fields.or_default("qdisc"), &Env::new(rate)).map_err(|e| e.at("qdisc"))?;
        let state = made.qdisc.state();
        let (name, params) = (name.to_string(), made.params);
        Ok(LinkDef { name, spec, qdisc: entry.name, params, loss, trace, opportunities, state })
    }

    /// Build a new instance of the discipline.
    pub fn build(&self) -> Made {
        let settings: Vec<_> =
            self.params.iter().map(|r| (r.name, Setting::Text(&r.value))).collect();
        sojourn_aqm::build(self.qdisc, &settings, self.spec.rate)
            .expect("the definition was validated by a first build")
    }

    /// Canonical JSON form with all parameters.
    pub fn canonical(&self) -> Json {
        let mut link = json!({
            "rate": self.spec.rate.write(),
            "delay": self.spec.delay.write(),
            "qdisc": read::canonical(self.qdisc, &self.params),
            "loss": self.loss.canonical(),
        });
        if let Some(trace) = &self.trace {
            link["trace"] = trace.canonical();
        }
        if let Some(opportunities) = &self.opportunities {
            let ms = opportunities.moments().iter().map(|moment| moment.0 / 1_000_000);
            link["trace"] = json!({ "opportunities_ms": ms.collect::<Vec<_>>() });
        }
        link
    }
}

/// Parse a `trace`: delivery opportunities in milliseconds, or rates and delays over time.
fn recorded(json: &Json) -> Result<(Option<Trace>, Option<Opportunities>)> {
    let key = "opportunities_ms";
    if json.get(key).is_none() {
        return Ok((Some(Trace::of(json)?), None));
    }
    let fields = Fields::of(json, &keys::TRACE)?;
    if let Some(other) = read::table(json)?.keys().find(|other| *other != key) {
        return Err(Error::new(format!("cannot be combined with {key}")).at(other));
    }
    let ms = changes::column(&fields, key, MOMENT_MAX)?.unwrap_or_default();
    changes::few(ms.len()).map_err(|e| e.at(key))?;
    let moments = ms.into_iter().map(Span::ms).collect();
    let made = Opportunities::new(moments, OPPORTUNITY_BYTES, OPPORTUNITY_HEADER_BYTES)
        .map_err(|e| e.at(key))?;
    Ok((None, Some(made)))
}

/// Parse the links of a scenario or of a live link: a table by name.
///
/// # Errors
/// If there is no link, a name or a definition is invalid, or the links take too much memory; with
/// the path of the value.
pub fn links(json: &Json) -> Result<Vec<LinkDef>> {
    let map = read::table(json)?;
    if map.is_empty() {
        return Err(Error::new("there is no link"));
    }
    // Check before building, which needs this memory.
    fits_memory(map.len(), map.len().saturating_mul(LINK_BYTES))?;
    let mut links = Vec::with_capacity(map.len());
    let mut bytes = 0usize;
    for (name, json) in map {
        let link =
            good_name(name).and_then(|()| LinkDef::of(name, json)).map_err(|e| e.at(name))?;
        bytes = bytes.saturating_add(LINK_BYTES + link.state);
        links.push(link);
    }
    fits_memory(links.len(), bytes)?;
    Ok(links)
}

/// Check that `count` links with `bytes` of memory stay within [`MEMORY_MAX`].
fn fits_memory(count: usize, bytes: usize) -> Result<()> {
    if bytes <= MEMORY_MAX {
        return Ok(());
    }
    let mb = |bytes: usize| bytes.div_ceil(1_000_000);
    let text = format!(
        "{count} links with their disciplines take {} MB of memory, allowed: {} MB",
        mb(bytes),
        mb(MEMORY_MAX)
    );
    Err(Error::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_limited_by_memory() {
        let refused = |count: usize, qdisc: Json| {
            let link = json!({"rate": "1mbit", "qdisc": qdisc});
            let map = (0..count).map(|i| (format!("l{i}"), link.clone())).collect();
            links(&Json::Object(map)).err().map(|e| e.to_string())
        };
        let many = refused(65_536, json!("droptail")).expect("too many");
        assert_eq!(
            many,
            "65536 links with their disciplines take 5243 MB of memory, allowed: 2000 MB"
        );
        let large = refused(400, json!({"name": "fq_codel", "flows": 65_536})).expect("too large");
        assert!(large.starts_with("400 links with their disciplines take "), "{large}");
        assert_eq!(refused(100, json!("droptail")), None);
    }
}
