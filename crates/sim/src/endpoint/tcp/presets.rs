//! TCPs with the settings of Linux, by name.

use super::registry::TCPS;
use sojourn_aqm::params::{ParamRows, Setting};

/// Parameters with their values.
pub(super) type Values = [(&'static str, &'static str)];

/// Settings of Linux's stack that differ from our defaults: the header has time stamps.
const LINUX: &Values = &[
    ("header", "52B"),
    ("rto_min", "200ms"),
    ("rack", "true"),
    ("reordering_window", "true"),
    ("rtt_per_ack", "true"),
    ("timestamps", "true"),
    ("dsack", "true"),
    ("frto", "true"),
    ("tlp", "true"),
    ("tick", "4ms"),
    ("jiffies", "true"),
    ("ecn_fallback", "true"),
    ("reduce_cwnd", "true"),
    ("abc_limit", "2"),
    ("linux_acks", "true"),
];

/// TCPs with the settings of Linux: name, name without them, and settings besides [`LINUX`].
pub(super) const PRESETS: &[(&str, &str, &Values)] = &[
    ("linux_bbr", "bbr", &[("tso", "true")]),
    ("linux_bic", "bic", &[("prr", "true")]),
    ("linux_cdg", "cdg", &[("prr", "true")]),
    ("linux_cubic", "cubic", &[("prr", "true"), ("variant", "linux")]),
    ("linux_dctcp", "dctcp", &[("prr", "true")]),
    ("linux_highspeed", "highspeed", &[("prr", "true")]),
    ("linux_htcp", "htcp", &[("prr", "true")]),
    ("linux_hybla", "hybla", &[("prr", "true")]),
    ("linux_illinois", "illinois", &[("prr", "true")]),
    ("linux_nv", "nv", &[("prr", "true")]),
    ("linux_reno", "sack", &[("prr", "true"), ("variant", "linux")]),
    ("linux_scalable", "scalable", &[("prr", "true")]),
    ("linux_veno", "veno", &[("prr", "true")]),
    ("linux_westwood", "westwood", &[("prr", "true")]),
    ("linux_yeah", "yeah", &[("prr", "true")]),
];

/// Returns the TCP and the settings for which `name` stands, if it is one of [`PRESETS`].
pub(super) fn preset(name: &str) -> (&str, Vec<(&'static str, Setting<'static>)>) {
    let found = PRESETS.iter().find(|(preset, ..)| *preset == name);
    found.map_or((name, Vec::new()), |(_, tcp, own)| {
        let settings = LINUX.iter().chain(*own);
        (*tcp, settings.map(|(key, value)| (*key, Setting::Text(value))).collect())
    })
}

/// Preset with its values, for lists.
#[derive(Debug)]
pub(crate) struct Preset {
    /// Name.
    pub name: &'static str,
    /// TCP whose parameters it sets.
    pub tcp: &'static str,
    /// Settings that differ from the defaults of that TCP, as in a scenario.
    pub settings: Vec<(&'static str, &'static str)>,
    /// All parameters, with the values of the preset.
    pub table: ParamRows,
}

/// Returns all presets.
pub(crate) fn presets() -> impl Iterator<Item = Preset> {
    PRESETS.iter().map(|(name, tcp, own)| {
        let settings: Vec<_> = LINUX.iter().chain(*own).copied().collect();
        let entry = TCPS.iter().find(|entry| entry.name == *tcp);
        let mut table = entry.expect("a preset is of a TCP in the registry").table();
        for (key, value) in &settings {
            let row = table.iter_mut().find(|row| row.name == *key);
            row.expect("a preset sets parameters that exist").value = (*value).into();
        }
        Preset { name, tcp, settings, table }
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

    #[test]
    fn the_list_has_the_settings_of_linux_and_the_values_of_all_parameters() {
        let listed: Vec<_> = presets().collect();
        let names = listed.iter().map(|p| (p.name, p.tcp));
        assert!(names.eq(PRESETS.iter().map(|(name, tcp, _)| (*name, *tcp))));
        let dctcp = listed.iter().find(|p| p.name == "linux_dctcp").unwrap();
        assert!(dctcp.settings.contains(&("header", "52B")));
        assert!(dctcp.settings.contains(&("prr", "true")));
        let value = |key| &dctcp.table.iter().find(|row| row.name == key).unwrap().value;
        // Two settings, a parameter of DCTCP, and one of every TCP that stays.
        let found = ["header", "prr", "g", "packet"].map(value);
        assert_eq!(found, ["52B", "true", "0.0625", "1500B"]);
    }
}
