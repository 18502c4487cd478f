//! Reads groups of flows.

use super::{Capable, FLOW, FlowConfig, FlowKeys, LABELS};
use crate::config::flow_routes::{
    GroupRoutes, HOPS_MAX, Hosts, Links, RoutePair, Way, by_name, delay_of,
};
use crate::config::links::LinkConfig;
use crate::config::registries::Registries;
use crate::config::senders::{FlowText, Senders};
use crate::config::spread::{self, LazyTopology, Spread, SpreadUnit};
use crate::endpoint::tcp::TcpParams;
use crate::endpoint::telemetry;
use crate::parsing::distribution::Distribution;
use crate::parsing::parse::{self, KeyReader};
use crate::traffic::source::Source;
use serde_json::Value as Json;
use sojourn_aqm::dscp;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::Value;
use sojourn_aqm::units::{Rate, Span};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Values of a group of flows that do not depend on links.
struct Own {
    keys: FlowKeys,
    source: Arc<Source>,
    tcp: Option<Arc<TcpParams>>,
    rtt: Option<Distribution<Span>>,
    class: u16,
    ecn: Option<Capable>,
    hosts: [Hosts; 2],
    labels: [Option<u64>; 3],
    spread: Option<Spread>,
}

impl Own {
    fn parse<'a>(
        text: &FlowText<'a>,
        fields: &KeyReader<'_>,
        senders: &mut Senders<'a>,
    ) -> Result<Own> {
        let keys = FlowKeys::read(fields)?;
        let source = senders.source(text.source).map_err(|e| e.at("source"))?;
        let tcp = match text.tcp {
            None if source.defaults_to_udp() => None,
            written => Some(senders.tcp(written).map_err(|e| e.at("tcp"))?),
        };
        if let (Source::Call(_), Some(_)) = (&*source, &tcp) {
            let text = "does not go with the source call, which sends over UDP: leave it out";
            return Err(Error::new(text).at("tcp"));
        }
        if let (Source::Trace(trace), 1..) = (&*source, keys.count) {
            trace.validate(keys.count, tcp.is_none()).map_err(|e| e.at("source"))?;
        }
        if let (Source::Cluster(cluster), 1..) = (&*source, keys.count) {
            cluster.validate(keys.count).map_err(|e| e.at("source"))?;
        }
        let ecn = fields.read("ecn")?;
        if let (Some(_), Some(tcp)) = (ecn, &tcp) {
            let text = "is of sources over UDP, and this flow has the TCP";
            let text = format!("{text} {}: set ecn or ect1 of tcp instead", tcp.name());
            return Err(Error::new(text).at("ecn"));
        }
        let class = class(fields)?;
        let hosts = [host(fields, "sender", keys.count)?, host(fields, "receiver", keys.count)?];
        let mut labels = [None; 3];
        for (label, key) in labels.iter_mut().zip(LABELS) {
            *label = fields.read(key)?;
        }
        let spread = Spread::read(fields)?;
        Ok(Own { keys, source, tcp, rtt: fields.read("rtt")?, class, ecn, hosts, labels, spread })
    }
}

/// Default source and TCP.
fn defaults() -> [Json; 2] {
    ["source", "tcp"].map(|key| FLOW.default_of(key))
}

impl FlowConfig {
    /// Checks the values of a group of flows that do not depend on links.
    ///
    /// # Errors
    /// As for a scenario, except for the name and the links.
    pub(crate) fn check(json: &Json, registries: &Registries) -> Result<()> {
        let fields = KeyReader::new(json, &FLOW)?;
        Own::parse(&FlowText::of(json), &fields, &mut Senders::new(registries, defaults()))
            .map(drop)
    }

    fn parse<'a>(
        name: &str,
        text: &FlowText<'a>,
        fields: &KeyReader<'_>,
        (links, topology): (&Links<'_>, &LazyTopology),
        senders: &mut Senders<'a>,
        hops_left: &mut u64,
    ) -> Result<FlowConfig> {
        let Own { keys, source, tcp, rtt, class, ecn, hosts, labels, spread } =
            Own::parse(text, fields, senders)?;
        let ways = match spread {
            Some(_) if fields.get("path").is_none() && fields.get("return_path").is_none() => {
                spread::paths_of(&hosts, keys.count, links, topology)?
            }
            _ => written_paths(fields, keys.count, links)?,
        };
        let returns = !ways[1].is_empty();
        let GroupRoutes { routes, written } = GroupRoutes::new(ways, keys.count, links, hops_left)?;
        if let Some(tcp) = &tcp {
            check_telemetry(tcp, &routes, spread.as_ref())?;
        }
        if spread.is_some() {
            spread::check(&routes, links, topology)?;
        }
        if matches!(&*source, Source::Web(w) if w.request) && !returns {
            let text = "needs a return_path, which requests cross; name one or leave request out";
            return Err(Error::new(text).at("request").at("source"));
        }
        let flow = FlowConfig {
            name: name.to_string(),
            keys,
            source,
            transmission: transmission(tcp.as_deref(), &routes[0], links.all),
            tcp,
            line_rate: routes[0][0].first().map_or(Rate(u64::MAX), |l| links.all[*l].spec().rate),
            routes,
            written,
            rtt,
            class,
            ecn,
            hosts,
            labels,
            spread,
            joins: None,
            leaves: None,
        };
        let delays = flow.routes.iter().map(|route| delay_of(route, links.all));
        let of_links = delays.max().unwrap_or_default();
        if let Some(rtt) = flow.rtt.as_ref().filter(|rtt| rtt.min() < of_links) {
            let text = format!("{:?} can be below the {of_links} of its links", rtt.write());
            return Err(Error::new(text).at("rtt"));
        }
        Ok(flow)
    }
}

/// Refuses paths with more links than telemetry has room for, and a path per packet, if `tcp` uses
/// telemetry.
fn check_telemetry(tcp: &TcpParams, routes: &[RoutePair], spread: Option<&Spread>) -> Result<()> {
    let unit = spread.map(|spread| spread.unit);
    if tcp.wants_telemetry() && matches!(unit, Some(SpreadUnit::Packet | SpreadUnit::RoundRobin)) {
        let text = format!(
            "does not go with {}, which compares the links of successive packets: use connection \
             or flowlet",
            tcp.name()
        );
        return Err(Error::new(text).at("spread"));
    }
    let longest = routes.iter().map(|[path, _]| path.len()).max().unwrap_or_default();
    if tcp.wants_telemetry() && longest > telemetry::HOPS_MAX {
        let text = format!(
            "has {longest} links, and packets of {} have room for the telemetry of {}",
            tcp.name(),
            telemetry::HOPS_MAX
        );
        return Err(Error::new(text).at("path"));
    }
    Ok(())
}

/// Time of the transmissions of a full packet of `tcp` over the links of a path, and of its ack
/// back.
fn transmission(tcp: Option<&TcpParams>, [path, back]: &RoutePair, links: &[LinkConfig]) -> Span {
    let time = |way: &[usize], bytes: u64| {
        let of_link = |l: &usize| Span((bytes * 8_000_000_000).div_ceil(links[*l].spec().rate.0));
        way.iter().map(of_link).fold(Span::ZERO, |sum, of_link| sum + of_link)
    };
    tcp.map_or(Span::ZERO, |tcp| {
        time(path, tcp.settings().packet.0) + time(back, tcp.settings().header.0)
    })
}

/// Path and return path of a group of `count` flows, as written.
fn written_paths(fields: &KeyReader<'_>, count: u64, links: &Links<'_>) -> Result<[Way; 2]> {
    let way = |json: &Json, key| Way::parse(json, count, links).map_err(|e| e.at(key));
    let path = way(fields.require("path")?, "path")?;
    if path.is_empty() {
        return Err(Error::new("names no link").at("path"));
    }
    let none = Json::Array(Vec::new());
    let back = fields.get("return_path").unwrap_or(&none);
    Ok([path, way(back, "return_path")?])
}

/// The traffic class, by its number or as a DSCP.
fn class(fields: &KeyReader<'_>) -> Result<u16> {
    let Some(json) = fields.get("dscp") else {
        let class = u16::try_from(fields.read_or_default::<u64>("class")?);
        return Ok(class.expect("its range is the range of u16"));
    };
    if fields.get("class").is_some() {
        let text = "sets the class of the packets, which is also given: leave one of them out";
        return Err(Error::new(text).at("dscp"));
    }
    parse::to_setting(json).and_then(dscp::read).map_err(|e| e.at("dscp"))
}

/// The names of the hosts in `key`.
fn host(fields: &KeyReader<'_>, key: &str, count: u64) -> Result<Hosts> {
    let Some(json) = fields.get(key) else { return Ok(Hosts::Own) };
    Hosts::parse(json, count).map_err(|e: Error| e.at(key))
}

/// Reads the groups of flows of a scenario with these links.
///
/// # Errors
/// If a value is invalid or a name is given twice, with its path.
pub(in crate::config) fn parse_flows<'a>(
    texts: impl IntoIterator<Item = FlowText<'a>>,
    links: &[LinkConfig],
    registries: &'a Registries,
) -> Result<Vec<FlowConfig>> {
    let mut flows: Vec<FlowConfig> = Vec::new();
    let by_name = by_name(links.iter().map(|link| link.name.as_str()).collect());
    let links = Links { all: links, by_name };
    let topology = LazyTopology::default();
    let mut known = BTreeSet::new();
    let mut hops_left = HOPS_MAX;
    let mut senders = Senders::new(registries, defaults());
    for (i, text) in texts.into_iter().enumerate() {
        let json = text.keys;
        let fields = KeyReader::new(json, &FLOW).map_err(|e| {
            // Name the flow in the path if its name is known.
            match json.get("name").and_then(Json::as_str) {
                Some(name) => e.at(name),
                None => e.at(i),
            }
        })?;
        let name = fields.require("name").and_then(|n| parse::text(n).map_err(|e| e.at("name")));
        let name = name.map_err(|e| e.at(i))?;
        parse::check_name(name).map_err(|e| e.at("name").at(i))?;
        if !known.insert(name) {
            return Err(Error::new(format!("{name:?} names two flows")).at("name").at(i));
        }
        let network = (&links, &topology);
        let flow = FlowConfig::parse(name, &text, &fields, network, &mut senders, &mut hops_left);
        flows.push(flow.map_err(|e| e.at(name))?);
    }
    if flows.is_empty() {
        return Err(Error::new("there is no flow"));
    }
    Ok(flows)
}
