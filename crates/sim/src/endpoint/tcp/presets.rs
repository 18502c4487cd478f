//! TCPs with the settings of Linux, by name.

use sojourn_aqm::params::Setting;

/// Parameters with their values.
pub(super) type Values = [(&'static str, &'static str)];

/// Settings of Linux's stack that differ from our defaults: the header has time stamps.
const LINUX: &Values = &[
    ("header", "52B"),
    ("rto_min", "200ms"),
    ("rack", "true"),
    ("reordering_window", "true"),
    ("reduce_cwnd", "true"),
];

/// TCPs with the settings of Linux: name, name without them, and settings besides [`LINUX`].
pub(super) const PRESETS: &[(&str, &str, &Values)] = &[
    ("linux_bbr", "bbr", &[("tso", "true")]),
    ("linux_cubic", "cubic", &[("prr", "true"), ("alpha_rises", "false")]),
    ("linux_dctcp", "dctcp", &[("prr", "true")]),
    ("linux_reno", "sack", &[("prr", "true")]),
];

/// Returns the TCP and the settings for which `name` stands, if it is one of [`PRESETS`].
pub(super) fn preset(name: &str) -> (&str, Vec<(&'static str, Setting<'static>)>) {
    let found = PRESETS.iter().find(|(preset, ..)| *preset == name);
    found.map_or((name, Vec::new()), |(_, tcp, own)| {
        let settings = LINUX.iter().chain(*own);
        (*tcp, settings.map(|(key, value)| (*key, Setting::Text(value))).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::super::params::parse;
    use super::*;
    use sojourn_aqm::units::Span;

    #[test]
    fn presets_of_linux_are_settings_that_can_be_overridden() {
        for (name, tcp, own) in PRESETS {
            let found = parse(name, []).unwrap();
            assert_eq!(found.name(), *tcp);
            let rows = found.table();
            for (key, value) in LINUX.iter().chain(*own) {
                assert_eq!(rows.iter().find(|r| r.name == *key).unwrap().value, *value, "{name}");
            }
        }
        let slower = parse("linux_cubic", [("rack", Setting::Flag(false))]).unwrap().settings;
        assert_eq!((slower.rack, slower.prr, slower.rto_min), (false, true, Some(Span::ms(200))));
        let error = parse("linux_cubik", []).unwrap_err().to_string();
        assert!(error.contains("did you mean \"linux_cubic\""), "{error}");
    }
}
