//! Links of tc as the keys of links of a scenario.

use crate::config::{impairments, loss};
use crate::parsing::object::object;
use crate::parsing::{tc, tc_json};
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::error::Result;
use sojourn_aqm::params::Value;
use sojourn_aqm::tc::{ImportedLink, units};
use sojourn_aqm::units::Rate;
use sojourn_aqm::wire::LossModel;

/// Reads commands, the output of `tc qdisc show` or of `tc -j qdisc show`; returns a list of
/// links. `class` (like `1:10`) chooses one of several classes, `speed` is the rate of devices of
/// which `rate 10%` is a share.
///
/// # Errors
/// As [`sojourn_aqm::tc::import`]; or JSON that is not of tc.
pub fn import(text: &str, class: Option<&str>, speed: Option<&str>) -> Result<Json> {
    let class = class.map(units::class_id).transpose().map_err(|e| e.at("--class"))?;
    let options = sojourn_aqm::tc::Options {
        class,
        speed: read_speed(speed)?,
        ..sojourn_aqm::tc::Options::default()
    };
    let (text, mut lost) = tc_json::as_text(text)?;
    let mut links = sojourn_aqm::tc::import(&text, &options)?;
    if let Some(first) = links.first_mut() {
        first.lost.append(&mut lost);
    }
    Ok(links.iter().map(link).collect())
}

/// Keys of a link for the impairments of netem.
const KEYS: [&str; 6] = ["jitter", "reorder", "duplicate", "corrupt", "slot", "in_flight_limit"];

fn read_speed(speed: Option<&str>) -> Result<Option<Rate>> {
    speed.map(str::parse::<Rate>).transpose().map_err(|e| e.at("rate"))
}

fn link(imported: &ImportedLink) -> Json {
    let wire = &imported.impairments;
    let loses = wire.loss != LossModel::default();
    let mut keys = Map::new();
    for key in KEYS {
        keys.insert(key.into(), Json::Null);
    }
    impairments::write(wire, &mut keys);
    let classes = imported.numbers.iter().map(|(id, number)| (id.clone(), (*number).into()));
    let json = json!({
        "dev": imported.dev,
        "rate": imported.rate.map(|rate| rate.write()),
        "burst": imported.burst.map(|burst| burst.write()),
        "delay": imported.delay.map(|delay| delay.write()),
        "loss": loses.then(|| loss::canonical(wire.loss, wire.loss_ecn)),
        "overhead": imported.overhead.map(|overhead| overhead.write()),
        "qdisc": imported.qdisc.as_ref().map(tc::qdisc),
        "classes": object(classes),
        "lost": imported.lost,
    });
    if let Json::Object(map) = json {
        keys.extend(map);
    }
    Json::Object(keys)
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
}
