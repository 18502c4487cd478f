//! Machine-readable list of everything that exists: the source of `sojourn list` and of the
//! generated Python classes.

use crate::config::TABLES;
use crate::endpoint::common_params::CommonParams;
use crate::endpoint::tcp::{self, Preset, Profile, TCPS, TcpEntry, presets};
use crate::missing::{SENDERS, SOURCES as SOURCES_MISSING};
use crate::parsing::distribution::{EmpiricalTable, SIZE_TABLES};
use crate::parsing::keys::{DefaultValue, KINDS, Key, Kind, Table};
use crate::parsing::object::object;
use crate::traffic::source::SOURCES;
use serde_json::{Value as Json, json};
use sojourn_aqm::missing::{self, Missing};
use sojourn_aqm::params::{ParamRow, ParamRows, Params, Setting, Value as _};
use sojourn_aqm::registry::{QdiscEntry, REGISTRY};

fn param_json(r: &ParamRow) -> Json {
    json!({
        "name": r.name, "aliases": r.aliases, "kind": r.kind, "value": r.value,
        "range": r.range, "symbol": r.symbol, "about": r.about,
    })
}

fn entry_json(
    name: &str,
    aliases: &[&str],
    about: &str,
    source: &str,
    params: &[ParamRow],
) -> Json {
    let params: Vec<Json> = params.iter().map(param_json).collect();
    json!({
        "name": name, "aliases": aliases, "about": about, "source": source, "params": params,
    })
}

/// Describes a TCP. `values` has the values of all parameters in each profile that the TCP has. A
/// parameter has `depends` if its default depends on the profile.
fn tcp_json(entry: &TcpEntry) -> Json {
    let mut spec = entry_json(entry.name, entry.aliases, entry.about, entry.source, &entry.table());
    let resolved = |profile: Profile| {
        let settings = [("profile", Setting::Text(&profile.write()))];
        tcp::parse(entry.name, settings).ok().map(|params| params.table())
    };
    let named = |profile: Profile| {
        let values = resolved(profile)?.into_iter();
        let values = values.map(|row| (row.name.to_string(), json!(row.value)));
        Some((profile.write(), object(values)))
    };
    let profiles = [Profile::Linux, Profile::Rfc, Profile::Ns2];
    let available = profiles.into_iter().chain([Profile::Quic]).filter(|p| resolved(*p).is_some());
    let tables: Vec<ParamRows> = available.map(|profile| entry.table_in(profile)).collect();
    for (i, row) in entry.table().iter().enumerate() {
        let depends = tables.iter().any(|table| table[i].value != row.value);
        spec["params"][i]["depends"] = json!(depends);
    }
    spec["profile"] = json!(entry.profile.write());
    spec["values"] = object(profiles.into_iter().filter_map(named));
    spec
}

fn size_table_json(table: &EmpiricalTable) -> Json {
    json!({ "name": table.name, "source": table.source, "mean_bytes": table.mean(),
            "points": table.points() })
}

fn missing_json(list: &[Missing]) -> Json {
    let one = |m: &Missing| {
        json!({
            "name": m.names[0], "aliases": m.names[1..], "about": m.about, "planned": m.planned,
            "why": m.why, "instead": m.instead,
        })
    };
    list.iter().map(one).collect()
}

fn table_json(table: &&Table) -> Json {
    let key = |key: &Key| {
        let (required, default, unset) = match key.default {
            DefaultValue::Required => (true, Json::Null, "required"),
            DefaultValue::Is(text) => (false, Json::from(text), text),
            DefaultValue::Means(words) => (false, Json::Null, words),
        };
        let range = key.range.map(|(least, largest)| format!("{least} to {largest}"));
        json!({
            "name": key.name, "kind": key.kind, "required": required, "default": default,
            "unset": unset, "range": range, "about": key.description, "example": key.example,
        })
    };
    let keys: Json = table.keys.iter().map(key).collect();
    json!({ "path": table.path, "about": table.about, "keys": keys })
}

/// Describes every discipline, TCP and source with parameters, defaults, ranges and units as JSON.
/// `common` has the parameters of all TCPs with the defaults of the profile `rfc`; `presets` lists
/// the aliases of TCPs in the profile `linux`; `sizes` lists the named tables of flow sizes.
/// `missing` lists what users ask for and does not exist; `scenario` and `kinds` list the keys of a
/// scenario and the value syntax.
pub fn registry_json() -> Json {
    let discipline = |e: &QdiscEntry| {
        let mut spec = entry_json(e.name, e.aliases, e.about, e.source, &e.params());
        spec["decides"] = json!(e.decides);
        spec["state_bytes"] = json!(e.state_bytes());
        spec
    };
    let disciplines: Vec<Json> = REGISTRY.iter().map(discipline).collect();
    let tcp: Vec<Json> = TCPS.iter().map(tcp_json).collect();
    let preset = |p: Preset| {
        let about = format!("alias of {} with profile = linux", p.tcp);
        let mut spec = entry_json(p.name, &[], &about, "reports/validation-linux-tcp.md", &p.table);
        spec["tcp"] = json!(p.tcp);
        spec
    };
    let sources: Vec<Json> =
        SOURCES.iter().map(|e| entry_json(e.name, &[], e.about, e.source, &e.params())).collect();
    let missing = json!({
        "disciplines": missing_json(missing::DISCIPLINES),
        "tcp": missing_json(SENDERS),
        "sources": missing_json(SOURCES_MISSING),
    });
    let kind = |k: &Kind| json!({ "name": k.name, "about": k.about, "examples": k.examples });
    json!({
        "disciplines": disciplines,
        "tcp": tcp,
        "common": CommonParams::default().table().iter().map(param_json).collect::<Json>(),
        "presets": presets().map(preset).collect::<Json>(),
        "sources": sources,
        "sizes": SIZE_TABLES.iter().map(size_table_json).collect::<Json>(),
        "missing": missing,
        "scenario": TABLES.iter().map(table_json).collect::<Json>(),
        "kinds": KINDS.iter().map(kind).collect::<Json>(),
    })
}
