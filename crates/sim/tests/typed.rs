//! A scenario of typed values and the same scenario as text: equal scenarios, equal errors, below,
//! at and above every bound; what is accepted runs.

use serde_json::{Value as Json, json};
use sojourn_aqm::aqm::codel::CoDel;
use sojourn_aqm::params::{ParamRow, Params, Setting};
use sojourn_aqm::registry::{QdiscEntry, Registry};
use sojourn_aqm::sched::fq::Fq;
use sojourn_aqm::{Aqm, Build, Bytes, Error, Rate, Result, Span};
use sojourn_sim::config::{
    Distribution, FlowBuilder, LinkBuilder, LinkChange, LinkTrace, LossModel, ScenarioBuilder,
};
use sojourn_sim::tcp::{self, TcpParams};
use sojourn_sim::traffic::{Cbr, PacketTrace, SOURCES, Source, TraceParams, TraceRow};
use sojourn_sim::{Scenario, run, run_with_progress};

/// Scenario with one link and one flow, as data.
fn text() -> Json {
    json!({
        "duration": "1s",
        "links": {
            "up": {"rate": "1mbit", "delay": "5ms"},
            "down": {"rate": "1mbit", "delay": "0s"},
        },
        "flows": [{"name": "f", "path": ["up"], "return_path": ["down"]}],
    })
}

fn link() -> LinkBuilder {
    LinkBuilder::new(Rate(1_000_000), Span::ms(5))
}

fn flow() -> FlowBuilder {
    FlowBuilder::new(["up"]).return_path(["down"])
}

fn typed(link: LinkBuilder, flow: FlowBuilder) -> ScenarioBuilder {
    let down = LinkBuilder::new(Rate(1_000_000), Span::ZERO);
    Scenario::builder(Span::s(1)).link("up", link).link("down", down).flow("f", flow)
}

/// Canonical form of the scenario of text and of the typed one, or their error, if they are equal.
fn same(text: &Json, typed: ScenarioBuilder) -> Result<Scenario> {
    let from_text = Scenario::from_json(&text.to_string());
    let built = typed.build();
    let form = |s: &Result<Scenario>| s.as_ref().map(Scenario::canonical).map_err(Error::clone);
    assert_eq!(form(&from_text), form(&built), "{text}");
    built
}

/// Runs the first 200,000 events, or to the end.
fn try_out(scenario: &Scenario) {
    let mut calls = 0;
    run_with_progress(scenario, &mut |_| {
        calls += 1;
        calls < 3
    });
}

/// Values of `row` around its bounds: at them, and outside.
fn around(row: &ParamRow) -> [Vec<String>; 2] {
    let Some((lo, hi)) = row.range.split_once(" to ") else { return [vec![], vec![]] };
    let kind = row.kind.trim_end_matches(" or auto");
    let at = vec![lo.to_string(), hi.to_string()];
    if kind == "number" {
        let (lo, hi): (f64, f64) = (lo.parse().unwrap(), hi.parse().unwrap());
        return [at, [lo.next_down(), hi.next_up(), f64::MAX].map(|x| x.to_string()).into()];
    }
    let [(lo, unit), (hi, _)] = [whole(kind, lo), whole(kind, hi)];
    let outside = [lo.checked_sub(1), hi.checked_add(1), Some(u64::MAX)].into_iter().flatten();
    let outside = outside.filter(|n| !(lo..=hi).contains(n));
    [at, outside.map(|n| format!("{n}{unit}")).collect()]
}

/// Number of the smallest units in `text`, and their name.
fn whole(kind: &str, text: &str) -> (u64, &'static str) {
    match kind.split_once(',').map_or(kind, |(first, _)| first) {
        "duration" => (text.parse::<Span>().unwrap().0, "ns"),
        "rate" => (text.parse::<Rate>().unwrap().0, "bit"),
        "bytes" => (text.parse::<Bytes>().unwrap().0, "B"),
        "integer" => (text.parse().unwrap(), ""),
        other => panic!("unknown kind {other:?}"),
    }
}

/// Assigns the field `name`, which checks no range.
fn assign(source: &mut Source, name: &str, value: &str) {
    let value = Setting::Text(value);
    match source {
        Source::Bulk(p) => p.assign(name, value, false),
        Source::Transfers(p) => p.assign(name, value, false),
        Source::Cbr(p) => p.assign(name, value, false),
        Source::OnOff(p) => p.assign(name, value, false),
        Source::Poisson(p) => p.assign(name, value, false),
        Source::Incast(p) => p.assign(name, value, false),
        Source::Sessions(p) => p.assign(name, value, false),
        Source::Web(p) => p.assign(name, value, false),
        Source::Cluster(p) => p.assign(name, value, false),
        Source::Video(p) => p.assign(name, value, false),
        Source::Call(p) => p.assign(name, value, false),
        Source::Trace(p) => p.shift.assign(name, value, false),
        other => panic!("{} is not tested", other.name()),
    }
    .unwrap();
}

/// Source `name` with its defaults; a trace has one row.
fn source(name: &str) -> (Source, Json) {
    if name == "trace" {
        let rows = vec![TraceRow { at: Span::ms(10), bytes: 500, flow: 0 }];
        let json = json!({"name": "trace", "time_s": [0.01], "size_bytes": [500]});
        return (Source::Trace(PacketTrace::new(TraceParams::default(), rows)), json);
    }
    let json = json!({"name": name});
    (Source::parse(&json).unwrap(), json)
}

#[test]
fn every_source_is_checked_at_its_bounds_like_text() {
    let (mut refused, mut ran) = (0, 0);
    for entry in SOURCES {
        let (plain, _) = source(entry.name);
        for row in plain.param_rows().iter().filter(|row| row.kind != "list of numbers") {
            let [at, outside] = around(row);
            // Times have no range; their ends must work.
            let free = if at.is_empty() { vec!["0s", "18446744073s"] } else { vec![] };
            let free = free.into_iter().filter(|_| row.kind.starts_with("duration"));
            for value in at.iter().map(String::as_str).chain(free) {
                let (mut source, mut json) = source(entry.name);
                assign(&mut source, row.name, value);
                json[row.name] = value.into();
                let mut text = text();
                text["flows"][0]["source"] = json;
                let Ok(scenario) = same(&text, typed(link(), flow().source(source))) else {
                    continue; // contradicts another parameter, or takes too much memory
                };
                try_out(&scenario);
                ran += 1;
            }
            for value in &outside {
                let (mut source, mut json) = source(entry.name);
                assign(&mut source, row.name, value);
                json[row.name] = value.as_str().into();
                let mut text = text();
                text["flows"][0]["source"] = json;
                let error = same(&text, typed(link(), flow().source(source))).unwrap_err();
                assert!(error.text().contains("is out of range, allowed: "), "{error}");
                assert_eq!(error.path(), format!("flows.f.source.{}", row.name));
                refused += 1;
            }
        }
    }
    assert!(refused > 60 && ran > 80, "{refused} refused, {ran} ran");
}

#[test]
fn numbers_that_are_not_finite_are_refused_like_text() {
    for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut json = text();
        json["flows"][0]["source"] = json!({"name": "cbr", "jitter": x.to_string()});
        let cbr = Source::Cbr(Cbr { jitter: x, ..Cbr::default() });
        same(&json, typed(link(), flow().source(cbr))).unwrap_err();

        let mut json = text();
        json["links"]["up"]["loss"] = x.to_string().into();
        same(&json, typed(link().loss(LossModel::Random(x)), flow())).unwrap_err();

        let mut json = text();
        json["flows"][0]["rtt"] = format!("pareto(mean=50ms, shape={x})").into();
        let rtt = Distribution::Pareto(Span::ms(50), x);
        same(&json, typed(link(), flow().rtt(rtt))).unwrap_err();
    }
}

/// A key of a scenario, and how a typed value sets it.
type Case<T> = (&'static str, fn(T) -> ScenarioBuilder, Vec<T>);

/// Compares the two forms of each case: the value at `pointer` of the text, and the typed one.
fn compare<T: Copy>(cases: Vec<Case<T>>, write: impl Fn(T) -> Json) -> u32 {
    let mut refused = 0;
    for (pointer, set, values) in cases {
        for value in values {
            let mut json = text();
            let (table, key) = pointer.rsplit_once('/').unwrap();
            let table = if table.is_empty() { &mut json } else { json.pointer_mut(table).unwrap() };
            table[key] = write(value);
            match same(&json, set(value)) {
                Ok(scenario) => try_out(&scenario),
                Err(error) => {
                    assert!(error.path().ends_with(key), "{error}");
                    refused += 1;
                }
            }
        }
    }
    refused
}

#[test]
fn typed_keys_are_checked_at_their_bounds_like_text() {
    let spans = |list: &[u64]| list.iter().map(|ns| Span(*ns)).collect::<Vec<_>>();
    let refused = compare(
        vec![
            (
                "/warmup",
                |x| typed(link(), flow()).warmup(x),
                spans(&[0, 999_999_999, 1_000_000_000]),
            ),
            ("/sample", |x| typed(link(), flow()).sample(x), spans(&[999, 1000, 1_000_000_001])),
            (
                "/links/up/delay",
                |x| typed(LinkBuilder::new(Rate(1_000_000), x), flow()),
                spans(&[0, 100_000_000_000_000, 100_000_000_000_001, u64::MAX]),
            ),
            (
                "/flows/0/rtt",
                |x| typed(link(), flow().rtt(x)),
                spans(&[4_999_999, 5_000_000, u64::MAX]),
            ),
        ],
        |x: Span| x.to_string().into(),
    );
    assert_eq!(refused, 6);
    let refused = compare(
        vec![
            ("/seed", |x| typed(link(), flow()).seed(x), vec![0, 1 << 53, (1 << 53) + 1, u64::MAX]),
            ("/flows/0/count", |x| typed(link(), flow().count(x)), vec![1, 2_000_001, u64::MAX]),
        ],
        |x: u64| x.into(),
    );
    assert_eq!(refused, 4);
    let mut none = text();
    none["flows"][0]["count"] = 0.into();
    let error = same(&none, typed(link(), flow().count(0))).unwrap_err();
    assert_eq!(error.to_string(), "flows: there is no flow: every count is 0");
    let refused = compare(
        vec![(
            "/links/up/rate",
            |x| typed(LinkBuilder::new(x, Span::ms(5)), flow()),
            [0, 1, 100_000_000_000_000, 100_000_000_000_001, u64::MAX].map(Rate).into(),
        )],
        |x: Rate| x.to_string().into(),
    );
    assert_eq!(refused, 3);
    let below = (-0.0f64).next_down();
    let refused = compare(
        vec![(
            "/links/up/loss",
            |x| typed(link().loss(LossModel::Random(x)), flow()),
            vec![below, 0.0, 1.0, 1.0f64.next_up()],
        )],
        |x: f64| x.into(),
    );
    assert_eq!(refused, 2);
}

#[test]
fn the_duration_is_checked_like_text() {
    for (ns, fits) in [(0, false), (1, true), (10_000_000_000_000_001, false), (u64::MAX, false)] {
        let mut json = text();
        json["duration"] = Span(ns).to_string().into();
        let typed = Scenario::builder(Span(ns));
        let typed =
            typed.link("up", link()).link("down", LinkBuilder::new(Rate(1_000_000), Span(0)));
        assert_eq!(same(&json, typed.flow("f", flow())).is_ok(), fits, "{ns} ns");
    }
}

#[test]
fn bursts_of_losses_are_checked_like_text() {
    let outside = [(0, -0.1), (1, 1.1), (2, f64::MAX), (3, f64::MIN)];
    for (i, x) in outside.into_iter().chain((0..4).flat_map(|i| [(i, 0.0), (i, 1.0)])) {
        let mut v = [0.1, 0.2, 0.3, 0.4];
        v[i] = x;
        let [p, r, bad_loss, good_loss] = v;
        let mut json = text();
        json["links"]["up"]["loss"] = json!({"p": p, "r": r, "1-h": bad_loss, "1-k": good_loss});
        let loss = LossModel::Bursts { p, r, bad_loss, good_loss };
        let scenario = same(&json, typed(link().loss(loss), flow()));
        assert_eq!(scenario.is_ok(), (0.0..=1.0).contains(&x), "{v:?}");
    }
}

#[test]
fn distributions_are_checked_like_text() {
    let ms = Span::ms;
    let cases = [
        Distribution::Uniform(ms(60), ms(50)),
        Distribution::Uniform(ms(4), ms(50)),
        Distribution::Uniform(ms(5), ms(5)),
        Distribution::Exponential(ms(0)),
        Distribution::Pareto(ms(50), 1.0),
        Distribution::Pareto(ms(50), 1.0f64.next_up()),
        Distribution::Pareto(ms(50), -3.0),
        Distribution::Lomax(ms(50), 0.0),
        Distribution::Constant(Span(u64::MAX)),
    ];
    for rtt in cases {
        let mut json = text();
        json["flows"][0]["rtt"] = sojourn_aqm::params::Value::write(&rtt).into();
        if let Ok(scenario) = same(&json, typed(link(), flow().rtt(rtt.clone()))) {
            try_out(&scenario);
        }
        // An unchecked distribution does not panic either.
        let mut rng = sojourn_sim::internals::random_stream(1, "test");
        rtt.sample(&mut rng);
    }
}

#[test]
fn changes_are_checked_like_text() {
    let change = |rate, delay| LinkChange { rate, delay };
    for (at, link_name, new) in [
        (999, "up", change(Some(Rate(0)), None)),
        (999, "up", change(Some(Rate(100_000_000_000_001)), None)),
        (999, "up", change(None, Some(Span(u64::MAX)))),
        (999, "up", change(None, None)),
        (1000, "up", change(Some(Rate(1)), None)),
        (500, "upp", change(Some(Rate(1)), None)),
    ] {
        let at = Span::ms(at);
        let mut keys = json!({});
        if let Some(rate) = new.rate {
            keys["rate"] = rate.to_string().into();
        }
        if let Some(delay) = new.delay {
            keys["delay"] = delay.to_string().into();
        }
        let mut json = text();
        json["changes"] = json!([{"at": at.to_string(), "links": {link_name: keys}}]);
        if let Ok(scenario) = same(&json, typed(link(), flow()).change(at, link_name, new)) {
            run(&scenario);
        }
    }
    let mut json = text();
    json["changes"] = json!([
        {"at": "100ms", "join": ["f"]},
        {"at": "200ms", "leave": ["f"]},
        {"at": "300ms", "leave": ["f"]}
    ]);
    let [a, b, c] = [100, 200, 300].map(Span::ms);
    let error =
        same(&json, typed(link(), flow()).join(a, "f").leave(b, "f").leave(c, "f")).unwrap_err();
    assert_eq!(error.path(), "changes.2.leave.0");
}

#[test]
fn recorded_traffic_is_checked_like_text() {
    let row = |at, bytes, flow| TraceRow { at, bytes, flow };
    for (rows, fits) in [
        (vec![row(Span(0), 1, 0), row(Span::ms(1), 65_535, 0)], true),
        (vec![], false),
        (vec![row(Span(0), 0, 0)], false),
        (vec![row(Span(0), 65_536, 0)], false),
        (vec![row(Span(0), u64::MAX, 0)], false),
        (vec![row(Span(0), 100, 1)], false),
        (vec![row(Span(0), 100, u32::MAX)], false),
        (vec![row(Span::ms(2), 100, 0), row(Span::ms(1), 100, 0)], false),
        (vec![row(Span(u64::MAX), 100, 0)], false),
    ] {
        let mut source = json!({"name": "trace"});
        source["time_s"] = rows.iter().map(|r| r.at.0 as f64 / 1e9).collect();
        source["size_bytes"] = rows.iter().map(|r| r.bytes).collect();
        if rows.iter().any(|r| r.flow > 0) {
            source["flow"] = rows.iter().map(|r| r.flow).collect();
        }
        let mut json = text();
        json["flows"][0]["source"] = source;
        let trace = Source::Trace(PacketTrace::new(TraceParams::default(), rows.clone()));
        let scenario = same(&json, typed(link(), flow().source(trace)));
        assert_eq!(scenario.is_ok(), fits, "{rows:?}: {:?}", scenario.err());
    }
}

#[test]
fn a_recorded_link_is_checked() {
    let at = || vec![Span::ZERO, Span::ms(100)];
    let rates = |n| Some(vec![Rate(1_000_000); n]);
    let trace = LinkTrace::new(at(), rates(2), None, Some(Span::ms(101))).unwrap();
    let mut json = text();
    json["links"]["up"]["trace"] =
        json!({"t_ns": [0, 100_000_000], "rate_bps": [1_000_000, 1_000_000], "repeat": "101ms"});
    let scenario = same(&json, typed(link().trace(&trace), flow())).unwrap();
    run(&scenario);
    for (trace, path) in [
        (LinkTrace::new(at(), rates(1), None, None), "rate_bps"),
        (LinkTrace::new(at(), None, None, None), ""),
        (LinkTrace::new(vec![], rates(0), None, None), "t_ns"),
        (LinkTrace::new(vec![Span::ms(1); 2], rates(2), None, None), "t_ns.1"),
        (LinkTrace::new(at(), rates(2), None, Some(Span::ZERO)), "repeat"),
        (LinkTrace::new(at(), rates(2), Some(vec![Span(u64::MAX); 2]), None), "delay_ns.0"),
        (LinkTrace::new(vec![Span(u64::MAX)], rates(1), None, None), "t_ns.0"),
    ] {
        assert_eq!(trace.unwrap_err().path(), path);
    }
    for times in [vec![], vec![0], vec![5, 3], vec![u64::MAX], vec![1, 3, 3]] {
        let mut json = text();
        json["links"]["up"]["trace"] = json!({"opportunities_ms": times});
        if let Ok(scenario) = same(&json, typed(link().opportunities_ms(&times), flow())) {
            run(&scenario);
        }
    }
}

#[test]
fn typed_disciplines_and_tcps_are_those_of_text() {
    let mut json = text();
    json["links"]["up"]["qdisc"] = "codel(target=15ms, limit=300kB)".into();
    json["flows"][0]["tcp"] = "cubic(ecn=true)".into();
    let codel = CoDel::builder()
        .queue(|q| q.limit(sojourn_aqm::Size::Bytes(300_000)))
        .aqm(|c| c.target(Span::ms(15)));
    let cubic: TcpParams = tcp::parse("cubic", [("ecn", Setting::Flag(true))]).unwrap();
    same(&json, typed(link().discipline(&codel), flow().tcp(&cubic))).unwrap();
    json["links"]["up"]["qdisc"] = "fq_codel(flows=0, ecn=false)".into();
    let fq = Fq::<CoDel>::builder().queue(|q| q.flows(0));
    let error = same(&json, typed(link().discipline(&fq), flow().tcp(&cubic))).unwrap_err();
    assert_eq!(error.path(), "links.up.qdisc.flows");
    json["links"]["up"]["qdisc"] = "red".into();
    same(&json, typed(link().discipline(&codel).qdisc("red"), flow().tcp(&cubic))).unwrap();

    // A type is found in the registry of the scenario.
    type Mine = Fq<sojourn_aqm::aqm::blue::Blue>;
    let mine = || typed(link().discipline(&Mine::builder().queue(|q| q.flows(2))), flow());
    let error = mine().build().unwrap_err();
    assert_eq!(error.path(), "links.up.qdisc");
    assert!(error.text().ends_with("is not in the registry of the scenario"), "{error}");
    let registry = Registry::standard().with(QdiscEntry::new::<Mine>("fq_blue", "")).unwrap();
    let scenario = mine().registry(registry).build().unwrap();
    assert_eq!(scenario.links()[1].qdisc(), "fq_blue");
    run(&scenario);
}

#[test]
fn names_are_checked_like_text() {
    let mut json = text();
    json["flows"][0]["path"] = json!(["upp"]);
    same(&json, typed(link(), FlowBuilder::new(["upp"]).return_path(["down"]))).unwrap_err();
    let mut json = text();
    json["flows"] = json!([{"name": "a b", "path": ["up"], "return_path": ["down"]}]);
    let two = |name: &str| {
        let down = LinkBuilder::new(Rate(1_000_000), Span::ZERO);
        Scenario::builder(Span::s(1)).link("up", link()).link("down", down).flow(name, flow())
    };
    same(&json, two("a b")).unwrap_err();
    let error = two("f").flow("f", flow()).build().unwrap_err();
    assert_eq!(error.path(), "flows.1.name");
    let error = two("f").link("up", link()).build().unwrap_err();
    assert_eq!(error.to_string(), "links: \"up\" names two links");
    let scenario = two("f").name("titled").packet_log(true).sample_flows(false).sample(Span::ms(5));
    let canonical = scenario.build().unwrap().canonical();
    assert_eq!(
        json!([canonical["name"], canonical["packet_log"], canonical["sample_flows"]]),
        json!(["titled", true, false])
    );
}
