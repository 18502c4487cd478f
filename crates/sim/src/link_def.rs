//! What a scenario says of a link.

use crate::changes::{DELAY_MAX, RATE_MAX, Trace};
use crate::read::{self, Fields, Named};
use crate::scenario::good_name;
use serde_json::{Value as Json, json};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Row, Setting, Value};
use sojourn_aqm::units::{Rate, Span};
use sojourn_aqm::{LinkSpec, Made};

/// A link as described.
#[derive(Clone, Debug)]
pub struct LinkDef {
    /// Its name.
    pub name: String,
    /// Rate and delay.
    pub spec: LinkSpec,
    /// The canonical name of its discipline.
    pub qdisc: &'static str,
    /// Every parameter of the discipline.
    pub params: Vec<Row>,
    /// The chance that a packet is lost on the wire, whatever became of the others.
    pub loss: f64,
    /// How its rate or delay was recorded to change.
    pub trace: Option<Trace>,
}

const LINK_KEYS: [&str; 5] = ["rate", "delay", "qdisc", "loss", "trace"];

impl LinkDef {
    fn of(name: &str, json: &Json) -> Result<LinkDef> {
        let fields = Fields::of(json, &LINK_KEYS)?;
        fields.need("rate")?;
        let rate = fields.within("rate", Rate(1), Rate(1), RATE_MAX)?;
        let delay = fields.within("delay", Span::ZERO, Span::ZERO, DELAY_MAX)?;
        let loss = fields.within("loss", 0.0, 0.0, 1.0)?;
        let trace = fields.get("trace").map(Trace::of).transpose().map_err(|e| e.at("trace"))?;
        let spec = LinkSpec { rate, delay };
        let default = Json::from("droptail");
        let qdisc = fields.get("qdisc").unwrap_or(&default);
        let named = Named::of(qdisc).map_err(|e| e.at("qdisc"))?;
        let entry = sojourn_aqm::sched::find(named.name).map_err(|e| {
            if qdisc.is_string() { e.at("qdisc") } else { e.at("name").at("qdisc") }
        })?;
        let made =
            sojourn_aqm::build(entry.name, &named.settings, rate).map_err(|e| e.at("qdisc"))?;
        let (name, params) = (name.to_string(), made.params);
        Ok(LinkDef { name, spec, qdisc: entry.name, params, loss, trace })
    }

    /// The discipline, built anew.
    pub fn build(&self) -> Made {
        let settings: Vec<_> =
            self.params.iter().map(|r| (r.name, Setting::Text(&r.value))).collect();
        sojourn_aqm::build(self.qdisc, &settings, self.spec.rate).expect("it was built before")
    }

    /// The same with everything said.
    pub fn canonical(&self) -> Json {
        let mut link = json!({
            "rate": self.spec.rate.write(),
            "delay": self.spec.delay.write(),
            "qdisc": read::canonical(self.qdisc, &self.params),
            "loss": self.loss,
        });
        if let Some(trace) = &self.trace {
            link["trace"] = trace.canonical();
        }
        link
    }
}

/// Reads the links of a scenario, or of a live link: a table by name.
///
/// # Errors
/// What is refused, with its path.
pub fn links(json: &Json) -> Result<Vec<LinkDef>> {
    let map = read::table(json)?;
    if map.is_empty() {
        return Err(Error::new("there is no link"));
    }
    map.iter()
        .map(|(name, json)| {
            good_name(name).and_then(|()| LinkDef::of(name, json)).map_err(|e| e.at(name))
        })
        .collect()
}
