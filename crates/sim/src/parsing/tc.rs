//! Disciplines and links in the language of Linux's `tc`, as JSON.

use crate::parsing::parse::with_qdisc;
use crate::parsing::tc_json;
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Setting, Value};
use sojourn_aqm::registry::{QdiscEntry, Registry};
use sojourn_aqm::tc::kinds::KINDS;
use sojourn_aqm::tc::table::{Becomes, Kind, Ours, Unit, Word};
use sojourn_aqm::tc::{Discipline, Form, ImportedLink, Line, Loss, units};
use sojourn_aqm::units::Rate;
use sojourn_aqm::{Built, Env, tc};

pub use super::tc_json::lines;
pub use super::tc_state::state;

/// Parses a qdisc with its words, with or without `tc:` before it; returns name, settings, and the
/// words that are lost.
///
/// # Errors
/// As [`tc::parse`].
pub fn parse(text: &str) -> Result<Json> {
    let discipline = tc::parse(text)?;
    let lost = discipline.lost.clone();
    Ok(json!({ "qdisc": qdisc(&discipline), "lost": lost }))
}

fn qdisc(discipline: &Discipline) -> Json {
    let mut map = Map::new();
    map.insert("name".into(), discipline.name.into());
    for (name, value) in &discipline.settings {
        map.insert(name.clone(), plain(value));
    }
    Json::Object(map)
}

/// Value of a setting in its JSON type: flags and numbers are not text.
fn plain(value: &str) -> Json {
    match value {
        "true" => true.into(),
        "false" => false.into(),
        _ => value.parse::<u64>().map(Json::from).unwrap_or_else(|_| {
            let number = value.parse::<f64>().ok().filter(|x| x.is_finite());
            number.map_or_else(|| value.into(), Json::from)
        }),
    }
}

/// Reads commands, the output of `tc qdisc show` or of `tc -j qdisc show`; returns a list of
/// links. `class` (like `1:10`) chooses one of several classes, `speed` is the rate of devices of
/// which `rate 10%` is a share.
///
/// # Errors
/// As [`tc::import`]; or JSON that is not of tc.
pub fn import(text: &str, class: Option<&str>, speed: Option<&str>) -> Result<Json> {
    let class = class.map(units::class_id).transpose().map_err(|e| e.at("--class"))?;
    let options = tc::Options { class, speed: read_speed(speed)?, ..tc::Options::default() };
    let (text, mut lost) = tc_json::as_text(text)?;
    let mut links = tc::import(&text, &options)?;
    if let Some(first) = links.first_mut() {
        first.lost.append(&mut lost);
    }
    Ok(links.iter().map(link).collect())
}

fn read_speed(speed: Option<&str>) -> Result<Option<Rate>> {
    speed.map(str::parse::<Rate>).transpose().map_err(|e| e.at("rate"))
}

fn link(imported: &ImportedLink) -> Json {
    let loss = imported.loss.map(|loss| match loss {
        Loss::Random(share) => share.into(),
        Loss::Bursts([p, r, bad, good]) => json!({ "p": p, "r": r, "1-h": bad, "1-k": good }),
    });
    json!({
        "dev": imported.dev,
        "rate": imported.rate.map(|rate| rate.write()),
        "burst": imported.burst.map(|burst| burst.write()),
        "delay": imported.delay.map(|delay| delay.write()),
        "loss": loss,
        "qdisc": imported.qdisc.as_ref().map(qdisc),
        "lost": imported.lost,
    })
}

/// Translates a discipline to the nearest qdisc of Linux, with its text in commands and in the
/// output of `tc qdisc show`, and with what Linux cannot do.
///
/// # Errors
/// An invalid discipline, or one that has no counterpart in Linux.
pub fn export(json: &Json, rate: Option<&str>) -> Result<Json> {
    let known = rate.map(str::parse::<Rate>).transpose().map_err(|e| e.at("rate"))?;
    let env = Env::new(known.unwrap_or(Rate(10_000_000)));
    let build = |entry: &QdiscEntry, settings: &[(&str, Setting<'_>)]| {
        Ok((entry.name, entry.build(settings, &env)?))
    };
    let (name, Built { params, .. }) = with_qdisc(json, env.rate, &Registry::default(), build)?;
    let exported = tc::export(name, &params, known)?;
    let line: &Line = &exported.line;
    // As tc completes it: thresholds of RED and others.
    let whole = Line::parse(&line.write(), Form::Command)?;
    let options: Json = serde_json::from_str(&whole.shown_json())
        .map_err(|e| Error::new(format!("options: {e}")))?;
    Ok(json!({
        "kind": line.kind.name,
        "line": line.write(),
        "shown": whole.shown(),
        "options": options,
        "lost": exported.lost,
        "differs": line.kind.differs,
    }))
}

/// Tables of all qdiscs, for pages and completion.
pub fn tables() -> Json {
    let word = |word: &Word| {
        let (ours, why) = match word.ours {
            Ours::To(name) => (name, ""),
            Ours::Scaled(name, _) => (name, "scaled"),
            Ours::Computed => ("", "computed"),
            Ours::Lost(why) => ("", why),
            Ours::Harmless => ("", "no effect"),
        };
        let words: Vec<_> = match word.unit {
            Unit::Choice(choices) => {
                choices.iter().map(|(w, v)| [*w, *v]).filter(|[w, _]| !w.is_empty()).collect()
            }
            Unit::Words(words) => words.iter().map(|(w, _)| [*w, ""]).collect(),
            _ => Vec::new(),
        };
        json!({
            "name": word.name, "unit": word.unit.name(), "default": word.default,
            "parameter": ours, "note": why, "words": words, "output_only": word.output_only,
        })
    };
    let kind = |kind: &&'static Kind| {
        let (discipline, why) = match kind.becomes {
            Becomes::Discipline(name) => (name, ""),
            Becomes::Link => ("", "link"),
            Becomes::Nothing(why) => ("", why),
        };
        let fixed =
            kind.fixed.iter().map(|f| json!({"name": f.name, "linux": f.linux, "why": f.why}));
        json!({
            "name": kind.name, "discipline": discipline, "why": why, "differs": kind.differs,
            "words": kind.words.iter().map(word).collect::<Vec<_>>(),
            "fixed": fixed.collect::<Vec<_>>(),
        })
    };
    KINDS.iter().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `tc -j qdisc show` of iproute2 6.1 on Linux 6.1, shortened.
    const SHOWN: &str = r#"[
        {"kind":"noqueue","handle":"0:","dev":"lo","root":true,"refcnt":2,"options":{}},
        {"kind":"fq_codel","handle":"1:","dev":"eth0","root":true,"refcnt":2,"options":{
            "limit":1000,
            "flows":1024,"quantum":1514,"target":4999,"interval":99999,"memory_limit":33554432,
            "ecn":true,"drop_batch":64}},
        {"kind":"netem","handle":"1:","dev":"eth1","root":true,"options":{"limit":1000,"delay":
            {"delay":0.01,"jitter":0,"correlation":0},"loss-random":{"loss":0.01,"correlation":0},
            "rate":{"rate":1250000,"packetoverhead":0},"ecn":false,"gap":0}},
        {"kind":"sfb","handle":"1:","dev":"eth2","root":true,"options":{
            "rehash":600000,"db":60000000,
            "limit":1000,"max":25,"target":20,"increment":0.0005,"decrement":5e-05,
            "penalty_rate":10,"penalty_burst":20}},
        {"kind":"cake","handle":"8001:","dev":"eth3","root":true,"refcnt":2,"options":{
            "bandwidth":2500000,"diffserv":"diffserv4","flowmode":"dual-srchost","nat":false,
            "wash":true,"ingress":true,"ack-filter":"aggressive","split_gso":true,"rtt":50000,
            "raw":false,"atm":"atm","overhead":-4,"mpu":64,"memlimit":4194304,"fwmark":"0"}}]"#;

    #[test]
    fn output_of_tc_as_json_becomes_links() {
        let links = import(SHOWN, None, None).unwrap();
        assert_eq!(
            links[0]["qdisc"],
            json!({"name": "fq_codel", "limit": "1000p", "variant": "linux"})
        );
        let netem = &links[1];
        assert_eq!(netem["dev"], "eth1");
        assert_eq!([&netem["rate"], &netem["delay"]], ["10mbit", "10ms"]);
        assert_eq!((&netem["loss"], &netem["qdisc"]["limit"]), (&json!(0.01), &json!("1000p")));
        assert_eq!(links[2]["qdisc"]["rehash_interval"], "600ms");
        let cake = &links[3]["qdisc"];
        let words = ["tins", "isolation", "ack_filter", "rtt", "limit", "overhead"];
        let read: Vec<_> = words.map(|word| cake[word].as_str().unwrap()).into();
        assert_eq!(
            read,
            ["diffserv4", "dual_srchost", "aggressive", "50ms", "4194304B", "-4 mpu 64 atm"]
        );
        assert_eq!([&cake["wash"], &cake["ingress"]], [true, true]);
        assert_eq!(links[3]["lost"], json!([]));
        assert_eq!(links.as_array().unwrap().len(), 4);
    }

    #[test]
    fn an_export_has_the_output_of_tc() {
        let out = export(&json!("fq_codel(limit=500p, target=20ms)"), None).unwrap();
        assert_eq!(out["line"], "fq_codel limit 500 target 20ms");
        assert_eq!(out["options"]["target"], 20_000);
        assert!(out["shown"].as_str().unwrap().starts_with("limit 500p flows 1024 "), "{out}");
        let error = export(&json!("wfq"), None).unwrap_err().to_string();
        assert!(error.contains("Linux has no qdisc for wfq"), "{error}");
    }
}
