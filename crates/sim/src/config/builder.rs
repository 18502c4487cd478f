//! Builders of scenarios from typed values. Each value is written in its text form and then parsed
//! like a scenario file, so that both forms have the same ranges, checks and errors.

use super::flows::{Capable, flow_setters};
use super::link_process::LinkProcess;
use super::link_trace::{LinkChange, LinkTrace};
use super::links::link_setters;
use super::registries::Registries;
use super::scenario::{Scenario, scenario_setters};
use super::switch_classes::class_setters;
use super::switches::switch_setters;
use super::{impairments, loss};
use crate::endpoint::tcp::TcpParams;
use crate::parsing::distribution::Distribution;
use crate::parsing::parse;
use crate::traffic::source::Source;
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::Overhead;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{ParamRow, Params, Value};
use sojourn_aqm::registry::Registry;
use sojourn_aqm::units::{Bytes, Rate, Span};
use sojourn_aqm::wire::{Impairments, LossModel};
use sojourn_aqm::{Build, Builder};
use std::any::type_name;

/// Keys of a table of a scenario that are set.
type Keys = Map<String, Json>;

/// Builder of a [`Scenario`]. Keys that are not set have the defaults of a scenario file.
#[derive(Clone, Debug)]
pub struct ScenarioBuilder {
    registries: Registries,
    keys: Keys,
    links: Vec<(String, LinkBuilder)>,
    switches: Vec<(String, SwitchBuilder)>,
    flows: Vec<Json>,
    changes: Vec<Json>,
}

impl Scenario {
    /// Returns a builder of a scenario of this length.
    pub fn builder(duration: Span) -> ScenarioBuilder {
        ScenarioBuilder::new(duration)
    }
}

impl ScenarioBuilder {
    fn new(duration: Span) -> ScenarioBuilder {
        let builder = ScenarioBuilder {
            registries: Registries::standard(),
            keys: Keys::new(),
            links: Vec::new(),
            switches: Vec::new(),
            flows: Vec::new(),
            changes: Vec::new(),
        };
        builder.duration(duration)
    }

    fn set(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.keys.insert(key.into(), value.into());
        self
    }

    /// Sets what the scenario can name: a registry of disciplines, or [`Registries`]; by default
    /// the standard ones.
    #[must_use]
    pub fn registry(self, registries: impl Into<Registries>) -> Self {
        ScenarioBuilder { registries: registries.into(), ..self }
    }

    /// Sets the name, for titles.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.set("name", name)
    }

    scenario_setters!();

    /// Adds a link.
    #[must_use]
    pub fn link(mut self, name: &str, link: LinkBuilder) -> Self {
        self.links.push((name.into(), link));
        self
    }

    /// Adds a switch, a buffer that links share.
    #[must_use]
    pub fn switch(mut self, name: &str, switch: SwitchBuilder) -> Self {
        self.switches.push((name.into(), switch));
        self
    }

    /// Adds a group of flows.
    #[must_use]
    pub fn flow(mut self, name: &str, flow: FlowBuilder) -> Self {
        let mut keys = flow.keys;
        keys.insert("name".into(), name.into());
        self.flows.push(keys.into());
        self
    }

    /// Lets a group of flows join at a time after the start.
    #[must_use]
    pub fn join(mut self, at: Span, group: &str) -> Self {
        self.changes.push(json!({"at": at.write(), "join": [group]}));
        self
    }

    /// Lets a group of flows leave before the end.
    #[must_use]
    pub fn leave(mut self, at: Span, group: &str) -> Self {
        self.changes.push(json!({"at": at.write(), "leave": [group]}));
        self
    }

    /// Changes the rate or the delay of a link at a time after the start.
    #[must_use]
    pub fn change(mut self, at: Span, link: &str, change: LinkChange) -> Self {
        let mut links = Keys::new();
        links.insert(link.into(), change.canonical());
        self.changes.push(json!({"at": at.write(), "links": links}));
        self
    }

    /// Builds the scenario.
    ///
    /// # Errors
    /// As [`Scenario::from_json`], if two links or two switches have the same name, or if a
    /// discipline is not in the registry.
    pub fn build(self) -> Result<Scenario> {
        let mut links = Keys::new();
        for (name, link) in self.links {
            let json = link.json(&self.registries.qdiscs).map_err(|e| e.at(&name).at("links"))?;
            if links.insert(name.clone(), json).is_some() {
                return Err(Error::new(format!("{name:?} names two links")).at("links"));
            }
        }
        let mut switches = Keys::new();
        for (name, SwitchBuilder { keys }) in self.switches {
            if switches.insert(name.clone(), keys.into()).is_some() {
                return Err(Error::new(format!("{name:?} names two switches")).at("switches"));
            }
        }
        let mut keys = self.keys;
        if !switches.is_empty() {
            keys.insert("switches".into(), switches.into());
        }
        keys.insert("links".into(), links.into());
        keys.insert("flows".into(), self.flows.into());
        if !self.changes.is_empty() {
            keys.insert("changes".into(), self.changes.into());
        }
        Scenario::parse(&keys.into(), &self.registries)
    }
}

/// Builder of a link of a [`ScenarioBuilder`]. The default discipline is the same as in a scenario
/// file.
#[derive(Clone, Debug)]
pub struct LinkBuilder {
    keys: Keys,
    discipline: Option<Discipline>,
}

/// Discipline given by type.
#[derive(Clone, Debug)]
struct Discipline {
    type_name: &'static str,
    name_in: fn(&Registry) -> Option<&'static str>,
    params: Vec<ParamRow>,
}

impl LinkBuilder {
    /// Returns a builder of a link of this rate and one-way delay.
    pub fn new(rate: Rate, delay: Span) -> LinkBuilder {
        let link = LinkBuilder { keys: Keys::new(), discipline: None };
        link.rate(rate).delay(delay)
    }

    fn set(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.keys.insert(key.into(), value.into());
        self
    }

    /// Sets the discipline by type. The registry of the scenario must have an entry for the type.
    #[must_use]
    pub fn discipline<Q: Build + 'static>(self, builder: &Builder<Q, Q::Params>) -> Self {
        let discipline = Discipline {
            type_name: type_name::<Q>(),
            name_in: |registry| registry.entry_of::<Q>().map(|entry| entry.name),
            params: builder.params.table(),
        };
        LinkBuilder { discipline: Some(discipline), ..self }
    }

    /// Sets the discipline by name, with parameters if needed: `codel(target=15ms)`.
    #[must_use]
    pub fn qdisc(self, text: &str) -> Self {
        LinkBuilder { discipline: None, ..self.set("qdisc", text) }
    }

    link_setters!();

    /// Sets the random loss after the queue.
    #[must_use]
    pub fn loss(self, loss: LossModel) -> Self {
        self.set("loss", loss::canonical(loss, false))
    }

    /// Sets the impairments after the queue, random loss included.
    #[must_use]
    pub fn impairments(mut self, all: &Impairments) -> Self {
        impairments::write(all, &mut self.keys);
        self.set("loss", loss::canonical(all.loss, all.loss_ecn))
    }

    /// Replays recorded changes of rate or delay.
    #[must_use]
    pub fn trace(self, trace: &LinkTrace) -> Self {
        self.set("trace", trace.canonical())
    }

    /// Changes rate or delay at random.
    #[must_use]
    pub fn process(self, process: &LinkProcess) -> Self {
        self.set("process", process.canonical())
    }

    /// Replays recorded delivery opportunities, at these times in milliseconds.
    #[must_use]
    pub fn opportunities_ms(self, times: &[u64]) -> Self {
        self.set("trace", json!({ "opportunities_ms": times }))
    }

    fn json(mut self, registry: &Registry) -> Result<Json> {
        if let Some(discipline) = self.discipline {
            let name = (discipline.name_in)(registry).ok_or_else(|| {
                let name = discipline.type_name;
                Error::new(format!("{name} is not in the registry of the scenario")).at("qdisc")
            })?;
            self.keys.insert("qdisc".into(), parse::canonical(name, &discipline.params));
        }
        Ok(self.keys.into())
    }
}

/// Builder of a switch of a [`ScenarioBuilder`]. By default alpha is 1, and nothing is reserved.
#[derive(Clone, Debug)]
pub struct SwitchBuilder {
    keys: Keys,
}

impl SwitchBuilder {
    /// Returns a builder of a switch whose ports are these links, with a buffer of this size.
    pub fn new<'a>(buffer: Bytes, ports: impl IntoIterator<Item = &'a str>) -> SwitchBuilder {
        SwitchBuilder { keys: Keys::new() }.set("ports", names(ports)).buffer(buffer)
    }

    fn set(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.keys.insert(key.into(), value.into());
        self
    }

    switch_setters!();

    /// Adds a class with a queue of its own at each port, named as in a scenario file: `"EF"`,
    /// `"46"`, `"32-39"`.
    #[must_use]
    pub fn class(mut self, name: &str, class: ClassBuilder) -> Self {
        let classes = self.keys.entry("classes").or_insert_with(|| Keys::new().into());
        let classes = classes.as_object_mut().expect("it was inserted as a table");
        classes.insert(name.into(), class.keys.into());
        self
    }
}

/// Builder of the queue of a class of a [`SwitchBuilder`]. By default it has the alpha and the
/// reserve of the switch.
#[derive(Clone, Debug, Default)]
pub struct ClassBuilder {
    keys: Keys,
}

impl ClassBuilder {
    /// Returns a builder of a queue.
    pub fn new() -> ClassBuilder {
        ClassBuilder::default()
    }

    fn set(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.keys.insert(key.into(), value.into());
        self
    }

    class_setters!();
}

/// Builder of a group of flows of a [`ScenarioBuilder`]. Keys that are not set have the defaults of
/// a scenario file: one bulk transfer, over TCP.
#[derive(Clone, Debug)]
pub struct FlowBuilder {
    keys: Keys,
}

impl FlowBuilder {
    /// Returns a builder of flows that cross these links in order.
    pub fn new<'a>(path: impl IntoIterator<Item = &'a str>) -> FlowBuilder {
        FlowBuilder { keys: Keys::new() }.set("path", names(path))
    }

    fn set(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.keys.insert(key.into(), value.into());
        self
    }

    flow_setters!();

    /// Sets the traffic source.
    #[must_use]
    pub fn source(self, source: Source) -> Self {
        self.set("source", source.canonical())
    }

    /// Sets the TCP; the default depends on the source.
    #[must_use]
    pub fn tcp(self, tcp: &TcpParams) -> Self {
        self.set("tcp", tcp.canonical())
    }

    /// Sets the links that acknowledgements and requests cross in order; by default none.
    #[must_use]
    pub fn return_path<'a>(self, path: impl IntoIterator<Item = &'a str>) -> Self {
        self.set("return_path", names(path))
    }

    /// Sets the round-trip propagation delay, for all flows or as a distribution; by default the
    /// delay of the links.
    #[must_use]
    pub fn rtt(self, rtt: impl Into<Distribution<Span>>) -> Self {
        self.set("rtt", rtt.into().write())
    }

    /// Sets the traffic class of the packets.
    #[must_use]
    pub fn class(self, class: u16) -> Self {
        self.set("class", class)
    }

    /// Sets the ECN field of the packets of a source over UDP.
    #[must_use]
    pub fn ecn(self, ecn: Capable) -> Self {
        self.set("ecn", ecn.write())
    }
}

fn names<'a>(path: impl IntoIterator<Item = &'a str>) -> Json {
    path.into_iter().map(Json::from).collect()
}
