//! Snapshots of simulations: times at which they are taken, impaired links, what a program adds,
//! and bytes that are not a snapshot. `stepping.rs` takes them with every discipline and TCP.

mod common;

use common::{bytes, parse};
use serde_json::{Value, json};
use sojourn_aqm::error::Result;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::tcp::{
    CommonParams, CongestionSignal, ExternalControl, ExternalMaker, ExternalParams, LossRecovery,
    NewDataAck, Window,
};
use sojourn_sim::{Registries, Scenario, Simulation, run};
use std::sync::Arc;

/// Runs to each of these times, saves and loads, and continues; asserts that a run in one go has
/// the same result.
fn saved_at(json: &Value, times: &[Span]) {
    let scenario = parse(json);
    let expected = bytes(&run(&scenario));
    let mut simulation = Simulation::new(scenario);
    for at in times {
        simulation.run_until(Time::ZERO + *at, &mut |_| true).unwrap();
        let saved = simulation.save().unwrap();
        simulation = Simulation::load(&saved).unwrap();
        assert!(simulation.save().unwrap() == saved, "complete at {at}");
        assert_eq!(simulation.now(), Time::ZERO + *at);
    }
    simulation.run_until(simulation.end(), &mut |_| true).unwrap();
    assert!(bytes(&simulation.result().unwrap()) == expected, "{json}");
}

/// Sessions of all kinds, with changes and a group that joins.
fn busy() -> Value {
    let group = json!({"count": 3, "path": ["up"], "rtt": "20ms"});
    let sessions = |name: &str, source: Value| {
        let mut group = group.clone();
        (group["name"], group["source"]) = (name.into(), source);
        group
    };
    json!({
        "duration": "3s", "warmup": "1s", "sample": "100ms", "packet_log": true, "seed": 3,
        "links": {"up": {"rate": "5mbit", "qdisc": "fq_codel(flows=16)"},
            "back": {"rate": "1mbit"}},
        "flows": [
            {"name": "bulk", "path": ["up"], "rtt": "30ms", "tcp": "cubic"},
            {"name": "later", "path": ["up"], "rtt": "30ms"},
            sessions("poisson", json!({"name": "poisson", "load": "1mbit", "size": "web_search"})),
            sessions("incast", json!({"name": "incast", "gap": "exponential(100ms)"})),
            sessions("cluster", json!({"name": "cluster", "arrivals": 7.3, "senders": 2})),
            sessions("kept", json!({"name": "incast", "persistent": true})),
            {"name": "web", "count": 2, "path": ["up"], "return_path": ["back"], "rtt": "20ms",
             "source": {"name": "web", "think": "200ms", "request": true}},
            sessions("users", json!({"name": "sessions", "interval": "exponential(150ms)"})),
            {"name": "trace", "path": ["up"], "source":
             {"name": "trace", "time_s": [0.1, 0.5, 1.5, 2.9], "size_bytes": [100, 900, 1500, 40]}},
            {"name": "onoff", "path": ["up"], "source": {"name": "onoff", "rate": "1mbit"}},
        ],
        "changes": [
            {"at": "1500ms", "links": {"up": {"rate": "4mbit", "qdisc": {"target": "20ms"}}}},
            {"at": "2s", "links": {"up": {"qdisc": {"target": "9ms"}}}},
            {"at": "2500ms", "join": ["later"], "links": {"up": {"rate": "1mbit"}}},
        ],
    })
}

#[test]
fn a_snapshot_is_taken_at_any_time() {
    let ms = |times: &[u64]| times.iter().map(|ms| Span::ms(*ms)).collect::<Vec<_>>();
    saved_at(&busy(), &ms(&[0, 1, 500, 999, 1_000, 1_001, 1_500, 1_501, 2_000, 2_999, 3_000]));
    let odd: Vec<Span> = (1..40).map(|i| Span(i * 73_456_789)).collect();
    saved_at(&busy(), &odd);
}

#[test]
fn impaired_links_continue() {
    let impairments = [
        json!({"loss": 0.02}),
        json!({"loss": {"p": 0.01, "r": 0.3}, "jitter": {"size": "1ms", "distribution": "normal"}}),
        json!({"jitter": {"size": "5ms", "distribution": "pareto"}, "duplicate": 0.05}),
        json!({"jitter": "2ms", "corrupt": 0.05, "reorder": 0.1}),
        json!({"process": {"every": "70ms", "rate_min": "1mbit", "rate_max": "5mbit",
            "walk": "3mbit", "delay_min": "1ms", "delay_max": "9ms"}}),
        json!({"trace": {"t_ns": [0, 200_000_000], "rate_bps": [5_000_000, 300_000],
            "repeat": "500ms"}}),
    ];
    for keys in impairments {
        let mut json = busy();
        for (key, value) in keys.as_object().unwrap() {
            json["links"]["up"][key] = value.clone();
        }
        if keys.get("trace").or(keys.get("process")).is_some() {
            json["changes"] = json!([]);
        }
        saved_at(&json, &[Span::ms(700), Span::ms(1_777)]);
    }
}

#[test]
fn damaged_and_other_bytes_are_refused() {
    let mut simulation = Simulation::new(parse(&busy()));
    simulation.run_until(Time::ZERO + Span::ms(1_200), &mut |_| true).unwrap();
    let saved = simulation.save().unwrap();
    let message = |bytes: &[u8]| Simulation::load(bytes).unwrap_err().to_string();
    let mut place = 12_345usize;
    for i in 0..2_000 {
        // A linear congruential generator chooses the places.
        place = (place * 69_069 + 1) % saved.len();
        let mut wrong = saved.clone();
        if i % 2 == 0 {
            wrong.truncate(place)
        } else {
            wrong[place] ^= 1 << (i / 2 % 8)
        }
        let text = message(&wrong);
        assert!(text.starts_with("snapshot: "), "{text}");
        assert!(place < 32 || text == "snapshot: is damaged or incomplete", "{text}");
    }
    assert_eq!(message(b""), "snapshot: is not a snapshot of sojourn");
    let mut wrong = saved.clone();
    wrong[8] = 2;
    assert_eq!(message(&wrong), "snapshot: has format 2; this version reads format 1");
}

/// Additive increase with a count that has to be saved.
#[derive(Clone, Debug)]
struct Counting {
    acks: u64,
    is_saved: bool,
}

impl ExternalControl for Counting {
    fn reset(&mut self) {
        self.acks = 0;
    }

    fn on_ack(&mut self, window: &mut Window, _: &NewDataAck, _: &mut dyn Random) {
        self.acks += 1;
        window.cwnd += self.acks % 7;
    }

    fn on_congestion(
        &mut self,
        _: Time,
        window: &Window,
        _: u64,
        _: CongestionSignal,
        _: &mut dyn Random,
    ) -> u64 {
        window.cwnd / 2
    }

    fn copy(&self) -> Box<dyn ExternalControl> {
        Box::new(self.clone())
    }

    fn save(&self) -> Result<Vec<u8>> {
        let refused = || sojourn_aqm::Error::new("is not saved");
        self.is_saved.then(|| self.acks.to_le_bytes().to_vec()).ok_or_else(refused)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let bytes = bytes.try_into().map_err(|_| sojourn_aqm::Error::new("is not a count"))?;
        self.acks = u64::from_le_bytes(bytes);
        Ok(())
    }
}

impl ExternalMaker for Counting {
    fn make(&self, _: &CommonParams) -> Box<dyn ExternalControl> {
        Box::new(self.clone())
    }
}

#[test]
fn controls_of_a_program_are_saved_or_refused_by_name() {
    let registries = Registries::standard().with_controls(|name, _| {
        let name = ["counting", "silent"].into_iter().find(|known| *known == name)?;
        let maker = Arc::new(Counting { acks: 0, is_saved: name == "counting" });
        let (recovery, rows) = (LossRecovery::Sack, Vec::new());
        Some(Ok(ExternalParams { name, recovery, rows, maker }))
    });
    let scenario = |tcp: &str| {
        let json = json!({"duration": "4s", "links": {"up": {"rate": "5mbit"}},
            "flows": [{"name": "own", "path": ["up"], "rtt": "30ms", "tcp": tcp}]});
        Scenario::from_json_with(&registries, &json.to_string()).unwrap()
    };
    let expected = bytes(&run(scenario("counting")));
    let mut simulation = Simulation::new(scenario("counting"));
    simulation.run_until(Time::ZERO + Span::ms(1_500), &mut |_| true).unwrap();
    let saved = simulation.save().unwrap();
    let mut loaded = Simulation::load_with(&registries, &saved).unwrap();
    loaded.run_until(loaded.end(), &mut |_| true).unwrap();
    assert!(bytes(&loaded.result().unwrap()) == expected);
    let unknown = Simulation::load(&saved).unwrap_err().to_string();
    assert!(unknown.contains("unknown tcp \"counting\""), "{unknown}");
    let refused = Simulation::new(scenario("silent")).save().unwrap_err().to_string();
    assert_eq!(refused, "flows.own: is not saved");
}
