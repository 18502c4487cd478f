//! Switches: links whose queues share a buffer.

use super::flow_routes::by_name;
use super::links::LinkConfig;
use super::switch_classes::{self, SwitchClass};
use crate::parsing::keys::table;
use crate::parsing::parse::{self, KeyReader};
use serde_json::{Map, Value as Json};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::sorting::sort_by_key;
use sojourn_aqm::units::Bytes;
use sojourn_aqm::{ClassGroups, QueueShare, SharedBuffer};
use std::collections::BTreeMap;

table! {
    /// Switch: its ports are links whose queues share a buffer. A packet is dropped on arrival if
    /// its port would then hold more bytes above its reserve than alpha times those that are free
    /// (Choudhury and Hahne, 1998), whatever the discipline. The packet in transmission is not in
    /// the buffer.
    static SWITCH at "switches.NAME", struct SwitchKeys of SwitchConfig, setters switch_setters;

    /// Size of the buffer that all ports share. The limit of the discipline at a port holds as
    /// well: set it as large.
    buffer: Bytes, required, ["1B" => "1000GB"], "\"4MB\"";

    /// Bytes that a port may hold above its reserve, in relation to those that are free. n ports
    /// that want more hold alpha / (1 + alpha n) of the buffer each.
    alpha: f64, default "1", ["0.0001" => "10000"], "0.125";

    /// Part of the buffer that is kept for each port; with classes, for each queue.
    reserve: Bytes, default "0B", ["0B" => "1000GB"], "\"10kB\"";

    /// Classes of packets that have a queue of their own at each port, with its alpha and reserve,
    /// by class or DSCP of the flow. Packets of all other classes share one more queue per port.
    classes: "table of classes", optional "none: a port is one queue", [],
        "{ EF = { alpha = 8, reserve = \"20kB\" } }";

    /// Links that are the ports of the switch; a link is a port of one switch at most.
    ports: "list of names", required, [], "[\"up\"]";
}

/// Parsed definition of a switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Name.
    pub(crate) name: String,
    /// Buffer, threshold and reserve.
    pub(crate) keys: SwitchKeys,
    /// Classes with a queue of their own at each port, in the order of their groups, from 1 on.
    pub(crate) classes: Vec<SwitchClass>,
    /// Indices of its links, ascending.
    pub(crate) ports: Vec<usize>,
}

impl SwitchConfig {
    fn parse(name: &str, json: &Json, links: &BTreeMap<&str, usize>) -> Result<SwitchConfig> {
        let fields = KeyReader::new(json, &SWITCH)?;
        let keys = SwitchKeys::read(&fields)?;
        let port = |(i, json): (usize, &Json)| {
            let link = parse::text(json).map_err(|e| e.at(i))?;
            let unknown = || Error::unknown("link", link, links.keys().copied()).at(i);
            links.get(link).copied().ok_or_else(unknown)
        };
        let list = parse::list(fields.require("ports")?);
        let ports = list.and_then(|list| {
            if list.is_empty() {
                return Err(Error::new("names no link"));
            }
            list.iter().enumerate().map(port).collect::<Result<Vec<usize>>>()
        });
        let mut ports = ports.map_err(|e| e.at("ports"))?;
        sort_by_key(&mut ports, |l| *l);
        let classes = match fields.get("classes") {
            Some(json) => switch_classes::parse_classes(json).map_err(|e| e.at("classes"))?,
            None => Vec::new(),
        };
        let config = SwitchConfig { name: name.to_string(), keys, classes, ports };
        config.try_build()?;
        Ok(config)
    }

    fn try_build(&self) -> Result<SharedBuffer> {
        let SwitchKeys { buffer, alpha, reserve } = self.keys;
        let others = QueueShare::new(alpha, reserve);
        let classes = self.classes.iter().map(|class| class.share(others));
        let of_port: Vec<QueueShare> = std::iter::once(others).chain(classes).collect();
        SharedBuffer::with_shares(buffer, &of_port.repeat(self.ports.len()))
    }

    /// Builds the buffer. Each of [`SwitchConfig::ports`] has a queue, or one for each of
    /// [`SwitchConfig::groups`].
    pub fn build(&self) -> SharedBuffer {
        self.try_build().expect("the definition was validated by a first build")
    }

    /// Groups of classes with queues of their own at each port: one for each of
    /// [`SwitchConfig::classes`], and group 0 with all other classes.
    pub fn groups(&self) -> ClassGroups {
        switch_classes::groups(self.classes.iter()).expect("they were validated")
    }

    /// Classes with a queue of their own at each port, ascending.
    pub fn classes(&self) -> &[SwitchClass] {
        &self.classes
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Indices of the links that are its ports, ascending.
    pub fn ports(&self) -> &[usize] {
        &self.ports
    }

    fn canonical(&self, links: &[LinkConfig]) -> Json {
        let mut map = Map::new();
        self.keys.write(&mut map);
        if !self.classes.is_empty() {
            map.insert("classes".into(), switch_classes::canonical(&self.classes));
        }
        let names = self.ports.iter().map(|l| Json::from(links[*l].name()));
        map.insert("ports".into(), names.collect());
        map.into()
    }
}

/// Parses the table of switches, sorted by name.
///
/// # Errors
/// If a name or a definition is invalid, or two switches share a link; with the path of the value.
pub(super) fn parse_switches(json: &Json, links: &[LinkConfig]) -> Result<Vec<SwitchConfig>> {
    let names = by_name(links.iter().map(LinkConfig::name).collect());
    let mut owners: Vec<Option<&str>> = vec![None; links.len()];
    let mut switches = Vec::new();
    for (name, json) in parse::table(json)? {
        let switch = parse::check_name(name)
            .and_then(|()| SwitchConfig::parse(name, json, &names))
            .map_err(|e| e.at(name))?;
        for l in &switch.ports {
            if let Some(other) = owners[*l].replace(name) {
                let link = links[*l].name();
                let text = match other == name {
                    true => format!("names the link {link} twice"),
                    false => format!("{link} is a port of the switch {other} already"),
                };
                return Err(Error::new(text).at("ports").at(name));
            }
        }
        switches.push(switch);
    }
    Ok(switches)
}

/// Canonical JSON form of all switches.
pub(super) fn canonical(switches: &[SwitchConfig], links: &[LinkConfig]) -> Json {
    let mut all = Map::new();
    for switch in switches {
        all.insert(switch.name.clone(), switch.canonical(links));
    }
    all.into()
}
