//! What there is, as data: the tables that `sojourn list` prints and Python's classes come from.

use crate::missing::{SENDERS, SOURCES as SOURCES_MISSING};
use crate::source::SOURCES;
use crate::tcp::TCPS;
use serde_json::{Value as Json, json};
use sojourn_aqm::missing::{self, Missing};
use sojourn_aqm::params::Row;
use sojourn_aqm::sched::{Entry, REGISTRY};

fn row(r: &Row) -> Json {
    json!({
        "name": r.name, "aliases": r.aliases, "kind": r.kind, "value": r.value,
        "range": r.range, "symbol": r.symbol, "about": r.about,
    })
}

fn entry(name: &str, aliases: &[&str], about: &str, source: &str, params: &[Row]) -> Json {
    let params: Vec<Json> = params.iter().map(row).collect();
    json!({
        "name": name, "aliases": aliases, "about": about, "source": source, "params": params,
    })
}

fn absent(list: &[Missing]) -> Json {
    let one = |m: &Missing| {
        json!({
            "name": m.names[0], "aliases": m.names[1..], "about": m.about, "planned": m.planned,
            "why": m.why, "instead": m.instead,
        })
    };
    list.iter().map(one).collect()
}

/// Every discipline, TCP and source with its parameters, their defaults, ranges and units; under
/// `missing` those that do not exist.
pub fn specs() -> Json {
    let discipline = |e: &Entry| {
        let mut spec = entry(e.name, e.aliases, e.about, e.source, &e.params());
        spec["decides"] = json!(e.decides);
        spec["state_bytes"] = json!(e.state());
        spec
    };
    let disciplines: Vec<Json> = REGISTRY.iter().map(discipline).collect();
    let tcp: Vec<Json> =
        TCPS.iter().map(|e| entry(e.name, e.aliases, e.about, e.source, &e.table())).collect();
    let sources: Vec<Json> =
        SOURCES.iter().map(|e| entry(e.name, &[], e.about, e.source, &e.params())).collect();
    let missing = json!({
        "disciplines": absent(missing::DISCIPLINES),
        "tcp": absent(SENDERS),
        "sources": absent(SOURCES_MISSING),
    });
    json!({ "disciplines": disciplines, "tcp": tcp, "sources": sources, "missing": missing })
}
