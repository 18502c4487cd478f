//! Lines that people write: each is read, and survives the way to a discipline and back.

use sojourn_aqm::tc::command::{self, Item};
use sojourn_aqm::tc::script::statements;
use sojourn_aqm::tc::table::{Becomes, Line};
use sojourn_aqm::tc::{Form, export};
use sojourn_aqm::{Rate, Setting, registry};

const CORPUS: &str = include_str!("corpus.txt");

fn lines() -> impl Iterator<Item = &'static str> {
    CORPUS.lines().filter(|line| !line.starts_with(['#', '@']) && !line.trim().is_empty())
}

/// Reads a command or a line of output.
fn qdisc(line: &str) -> Line {
    let statement = statements(line).swap_remove(0);
    match command::parse(&statement, None).unwrap_or_else(|e| panic!("{line}: {e}")) {
        Item::Command(command) => {
            let qdisc = command.line.unwrap_or_else(|| panic!("{line}: no qdisc"));
            qdisc.completed(Form::Command).unwrap_or_else(|e| panic!("{line}: {e}"))
        }
        Item::Shown(shown) => shown.line.unwrap_or_else(|| panic!("{line}: no qdisc")),
        _ => panic!("{line}: not a command"),
    }
}

#[test]
fn every_line_is_read() {
    assert!(lines().count() >= 150, "{}", lines().count());
    for line in lines() {
        let qdisc = qdisc(line);
        assert!(line.contains(qdisc.kind.name), "{line}: {}", qdisc.kind.name);
    }
}

#[test]
fn every_line_with_a_discipline_here_survives_the_round_trip() {
    let mut translated = 0;
    for line in lines() {
        let qdisc = qdisc(line);
        let Becomes::Discipline(name) = qdisc.kind.becomes else { continue };
        let Ok(entry) = registry::find(name) else {
            let error = qdisc.discipline().unwrap_err().to_string();
            assert!(error.contains("sojourn has no such discipline"), "{line}: {error}");
            continue;
        };
        let discipline = qdisc.discipline().unwrap();
        let settings: Vec<_> =
            discipline.settings.iter().map(|(k, v)| (k.as_str(), Setting::Text(v))).collect();
        let built = sojourn_aqm::build(entry.name, &settings, Rate(20_000_000));
        let built = built.unwrap_or_else(|e| panic!("{line}: {e}"));
        let out = export(entry.name, &built.params, None).unwrap();
        let back = Line::parse(&out.line.write(), Form::Command).unwrap().discipline().unwrap();
        assert_eq!(back.settings, discipline.settings, "{line}: {:?}", out.line);
        translated += 1;
    }
    assert!(translated >= 60, "{translated}");
}
