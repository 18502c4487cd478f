//! The qdiscs, classes and filters after a script of tc, as JSON.

use super::object::object;
use super::tc_json;
use serde_json::{Value as Json, json};
use sojourn_aqm::error::Result;
use sojourn_aqm::tc::command::Place;
use sojourn_aqm::tc::device::{Device, Qdisc, id};
use sojourn_aqm::tc::table::{Arg, Line};
use sojourn_aqm::tc::{Options, tree};

/// Executes a script, or reads an output of tc, and returns the answer to each command and the
/// state of each device.
///
/// # Errors
/// Lines of an output that contradict each other; or JSON that is not of tc.
pub fn state(text: &str) -> Result<Json> {
    let (text, mut lost) = tc_json::as_text(text)?;
    let state = tree::run(&text, &Options::default())?;
    lost.extend(state.lost);
    let commands = state.commands.iter().map(|command| {
        let error = command.result.as_ref().err().map(ToString::to_string);
        json!({ "line": command.line, "text": command.text, "error": error })
    });
    Ok(json!({
        "commands": commands.collect::<Vec<_>>(),
        "devices": state.devices.iter().map(device).collect::<Vec<_>>(),
        "lost": lost,
    }))
}

fn device(device: &Device) -> Json {
    let mut ids = device.below_root();
    ids.extend(device.ingress);
    let qdiscs: Vec<&Qdisc> = ids.iter().map(|id| &device.qdiscs[id]).collect();
    let classes = qdiscs.iter().flat_map(|qdisc| {
        qdisc.classes.iter().map(|class| {
            let parent = class.parent.map(|parent| id((qdisc.handle, parent)));
            let leaf = qdisc.leaves.get(&class.minor).and_then(|leaf| device.qdiscs.get(leaf));
            json!({
                "kind": class.line.kind.name,
                "id": id((qdisc.handle, class.minor)),
                "parent": parent,
                "leaf": leaf.map(|leaf| format!("{:x}:", leaf.handle)),
                "words": words(&class.line),
            })
        })
    });
    let filters = device.filters.iter().map(|filter| filter.words.join(" "));
    json!({
        "dev": device.site.name(),
        "qdiscs": qdiscs.iter().map(|qdisc| one(qdisc)).collect::<Vec<_>>(),
        "classes": classes.collect::<Vec<_>>(),
        "filters": filters.collect::<Vec<_>>(),
        "lost": device.lost,
    })
}

fn one(qdisc: &Qdisc) -> Json {
    let parent = match qdisc.parent {
        Place::Root => "root".to_string(),
        Place::Ingress => "ingress".to_string(),
        Place::Class(class) => id(class),
    };
    json!({
        "kind": qdisc.line.kind.name,
        "handle": format!("{:x}:", qdisc.handle),
        "parent": parent,
        "stab": qdisc.stab,
        "words": words(&qdisc.line),
    })
}

/// Words with their values, given or by default.
fn words(line: &Line) -> Json {
    let words = line.kind.words.iter();
    let values = words.filter_map(|word| line.get(word.name).map(|arg| (word.name, value(&arg))));
    object(values.map(|(name, value)| (name.to_string(), value)))
}

fn value(arg: &Arg) -> Json {
    match arg {
        Arg::Whole(n) => (*n).into(),
        Arg::Number(x) => (*x).into(),
        Arg::Word(word) => (*word).into(),
        Arg::Text(text) => text.clone().into(),
        Arg::List(list) => list.clone().into(),
        Arg::Several(args) => args.iter().map(value).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_command_leaves_the_state() {
        let state =
            state("tc qdisc add dev eth0 root handle 1: pie\ntc qdisc add dev eth0 root pie")
                .unwrap();
        assert_eq!(state["commands"][0]["error"], Json::Null);
        assert!(state["commands"][1]["error"].as_str().unwrap().contains("pie 1:"));
        let qdisc = &state["devices"][0]["qdiscs"][0];
        assert_eq!(qdisc["kind"], "pie");
        assert_eq!((&qdisc["handle"], &qdisc["parent"]), (&json!("1:"), &json!("root")));
        assert_eq!(qdisc["words"]["target"], 15_000_000);
    }
}
