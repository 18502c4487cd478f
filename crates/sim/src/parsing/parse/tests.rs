//! Unit tests of the parser of a scenario's JSON.

use super::*;
use serde_json::json;

fn texts(key: &str, json: &Json) -> Result<String> {
    list_to_text(key, json, &sojourn_aqm::registry::find("htb")?.params())
}

#[test]
fn children_and_filters_are_tables_or_text() {
    let children = json!([
        "fq_codel",
        "sfq(perturb=10s)",
        "tc: pfifo limit 7",
        { "name": "prio", "flows": 2, "children": [{ "name": "codel", "ecn": true }, "pie"] },
    ]);
    let text = "fq_codel sfq(perturb=10s) droptail(limit=7p) \
                prio(flows=2, children=codel(ecn=true) pie)";
    assert_eq!(texts("children", &children).unwrap(), text);
    let again = sojourn_aqm::Env::new(Rate(8_000_000));
    let named = json!({ "name": "htb", "rates": ["8mbit", "1mbit"], "children": text });
    let refused = build_qdisc(&named, &again, &Registry::standard()).unwrap_err();
    assert_eq!(refused.to_string(), "children: 4 values for 2 classes");
    assert_eq!(texts("children", &json!({ "name": "codel" })).unwrap(), "codel");
    let filters = json!([{ "to": 2, "dscp": "EF" }, { "to": 3, "source": "tv" }, 2, "3()"]);
    assert_eq!(texts("filters", &filters).unwrap(), "2(dscp=46) 3(source=tv) 2 3");
}

#[test]
fn faults_of_children_and_filters_have_a_path() {
    let error = |key, json| texts(key, &json).unwrap_err().to_string();
    let cases = [
        (error("children", json!(["codle"])), "children.0: unknown discipline \"codle\""),
        (error("children", json!([{ "name": "codle" }])), "children.0.name: unknown discipline"),
        (error("children", json!(["sfq", { "name": "codel", "target": 5 }])), "children.1.target:"),
        (error("children", json!([{ "target": "5ms" }])), "children.0.name: is missing"),
        (error("children", json!([7])), "children.0: 7 is not a table"),
        (
            error("children", json!([{ "name": "prio", "children": [{ "name": "x" }] }])),
            "children.0.children.0.name: unknown discipline \"x\"",
        ),
        (error("filters", json!([{ "dscp": "EF" }])), "filters.0.to: is missing"),
        (error("filters", json!([{ "to": 1, "port": 80 }])), "filters.0.port: unknown parameter"),
    ];
    for (message, start) in cases {
        assert!(message.starts_with(start), "{message}");
    }
}

#[test]
fn titles_have_no_control_or_direction_characters() {
    for title in ["", "scenario", "Büro 3: 5 → 6 Mbit/s, 日本", "a b"] {
        assert_eq!(check_title(title), Ok(()), "{title}");
    }
    for c in ['\0', '\n', '\t', '\u{1b}', '\u{7f}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{feff}'] {
        let error = check_title(&format!("a{c}b")).unwrap_err().to_string();
        assert!(error.contains(&format!("U+{:04X}", u32::from(c))), "{error}");
    }
}
