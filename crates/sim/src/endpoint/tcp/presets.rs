//! Settings of the profiles `linux` and `quic`, and the names `linux_*`, which are aliases.

use crate::endpoint::cc::{ControlParams, TCPS, TcpEntry};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::error::Result;
use sojourn_aqm::params::{ParamRows, Params, Setting};
use sojourn_aqm::units::Bytes;

/// Parameters with their values.
pub(super) type Values = [(&'static str, &'static str)];

/// Settings of Linux's stack that differ from the profile `rfc`. The header has room for
/// timestamps. The minimum timeout of 200 ms is an `auto` value of the profile.
const LINUX: &Values = &[
    ("header", "52B"),
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
    ("linux_syn", "true"),
    ("fin", "true"),
    ("reduce_cwnd", "true"),
    ("count_packets", "true"),
    ("abc_limit", "2"),
    ("linux_acks", "true"),
];

/// Header in the profile `quic`: IPv4 and UDP 28, short header with connection id 11, STREAM frame
/// 7, AEAD tag 16.
const QUIC_HEADER: Bytes = Bytes(62);

/// Returns the settings of Linux that depend on the congestion control. Those that set their own
/// rate have no PRR, there as here.
const fn of_control(control: &ControlParams) -> &'static Values {
    match control {
        ControlParams::Bbr(_) => &[("tso", "true"), ("variant", "linux")],
        // Fractions of 256, as Google's kernel rounds them.
        ControlParams::Bbr3(_) => &[
            ("variant", "linux"),
            ("startup_gain", "2.7734375"),
            ("drain_gain", "0.34375"),
            ("loss_thresh", "0.01953125"),
            ("beta", "0.703125"),
            ("headroom", "0.1484375"),
        ],
        ControlParams::Prague(_)
        | ControlParams::Dcqcn(_)
        | ControlParams::Hpcc(_)
        | ControlParams::PowerTcp(_)
        | ControlParams::Swift(_)
        | ControlParams::Timely(_) => &[],
        ControlParams::Cubic(_) | ControlParams::Reno(_) => {
            &[("prr", "true"), ("variant", "linux")]
        }
        _ => &[("prr", "true")],
    }
}

/// Returns the settings of the profile `linux` for `control`.
fn settings_of(
    control: &ControlParams,
) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    LINUX.iter().chain(of_control(control)).copied()
}

/// Sets the parameters to the defaults of `profile`; before, they are the defaults of `rfc`.
pub(super) fn apply(profile: Profile, common: &mut CommonParams, control: &mut ControlParams) {
    common.profile = profile;
    if profile == Profile::Quic {
        common.header = QUIC_HEADER;
    }
    if profile != Profile::Linux {
        return;
    }
    for (key, value) in settings_of(control) {
        let value = Setting::Text(value);
        let set = if common.knows(key) { common.set(key, value) } else { control.set(key, value) };
        set.expect("the settings of Linux are valid");
    }
}

/// Returns the profile that a list of settings selects; the last one counts.
///
/// # Errors
/// If there is no such profile.
pub(super) fn profile_in(settings: &[(&str, Setting<'_>)]) -> Result<Option<Profile>> {
    let mut common = CommonParams::default();
    let mut profile = None;
    for (_, value) in settings.iter().filter(|(key, _)| *key == "profile") {
        common.set("profile", *value)?;
        profile = Some(common.profile);
    }
    Ok(profile)
}

/// Aliases: name, and TCP with the profile `linux`.
pub(super) const PRESETS: &[(&str, &str)] = &[
    ("linux_bbr", "bbr"),
    ("linux_bic", "bic"),
    ("linux_cdg", "cdg"),
    ("linux_cubic", "cubic"),
    ("linux_dctcp", "dctcp"),
    ("linux_highspeed", "highspeed"),
    ("linux_htcp", "htcp"),
    ("linux_hybla", "hybla"),
    ("linux_illinois", "illinois"),
    ("linux_nv", "nv"),
    ("linux_reno", "reno"),
    ("linux_scalable", "scalable"),
    ("linux_veno", "veno"),
    ("linux_westwood", "westwood"),
    ("linux_yeah", "yeah"),
];

/// Returns the TCP and the setting for which `name` stands, if it is one of [`PRESETS`].
pub(super) fn preset(name: &str) -> (&str, Option<(&'static str, Setting<'static>)>) {
    let entry = PRESETS.iter().find(|(preset, _)| *preset == name);
    entry.map_or((name, None), |(_, tcp)| (*tcp, Some(("profile", Setting::Text("linux")))))
}

/// Alias with its values, for lists.
#[derive(Debug)]
pub(crate) struct Preset {
    /// Name.
    pub name: &'static str,
    /// TCP that it stands for.
    pub tcp: &'static str,
    /// All parameters, with the values of the profile `linux`.
    pub table: ParamRows,
}

/// Returns all aliases.
pub(crate) fn presets() -> impl Iterator<Item = Preset> {
    PRESETS.iter().map(|(name, tcp)| {
        let entry = TCPS.iter().find(|entry| entry.name == *tcp);
        let table = entry.expect("an alias is of a TCP in the registry").table_in(Profile::Linux);
        Preset { name, tcp, table }
    })
}

impl TcpEntry {
    /// Returns the default parameters in a profile.
    pub fn defaults(&self, profile: Profile) -> (CommonParams, ControlParams) {
        let (mut common, mut control) = (CommonParams::default(), (self.control)());
        apply(profile, &mut common, &mut control);
        (common, control)
    }

    /// Returns all parameters with their defaults in the profile of the name.
    pub fn table(&self) -> ParamRows {
        self.table_in(self.profile)
    }

    /// Returns all parameters with their defaults in a profile.
    pub fn table_in(&self, profile: Profile) -> ParamRows {
        let (common, control) = self.defaults(profile);
        let mut rows = common.table();
        rows.extend(control.table());
        rows
    }

    /// Returns the loss recovery algorithm in a profile: Linux's Reno has SACK.
    pub fn recovery_in(&self, profile: Profile) -> LossRecovery {
        match (profile, self.recovery) {
            (Profile::Linux, LossRecovery::Reno) => LossRecovery::Sack,
            (_, recovery) => recovery,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::params::parse;
    use super::*;
    use sojourn_aqm::units::Span;

    fn text<'a>(key: &'a str, value: &'a str) -> (&'a str, Setting<'a>) {
        (key, Setting::Text(value))
    }

    #[test]
    fn names_of_controls_that_hosts_run_mean_the_profile_linux() {
        for name in ["bbr", "bbr3", "cubic", "dctcp", "prague", "reno"] {
            let tcp = parse(name, []).unwrap();
            assert_eq!(tcp, parse(name, [text("profile", "linux")]).unwrap());
            assert_eq!((tcp.settings.profile, tcp.recovery), (Profile::Linux, LossRecovery::Sack));
            let rows = tcp.table();
            for (key, value) in settings_of(&tcp.control) {
                assert_eq!(rows.iter().find(|r| r.name == key).unwrap().value, value, "{name}");
            }
        }
        for name in [
            "compound", "dcqcn", "ledbat", "ledbatpp", "newreno", "sack", "swift", "tahoe",
            "timely", "vegas",
        ] {
            assert_eq!(parse(name, []).unwrap().settings.profile, Profile::Rfc, "{name}");
        }
    }

    #[test]
    fn single_settings_override_the_profile_in_any_order() {
        let rack = ("rack", Setting::Flag(false));
        for list in [[text("profile", "linux"), rack], [rack, text("profile", "linux")]] {
            let settings = parse("sack", list).unwrap().settings;
            assert_eq!((settings.rack, settings.prr), (false, true));
            assert_eq!(settings.rto_min, Some(Span::ms(200)));
        }
        let twice = [text("profile", "ns2"), text("profile", "rfc")];
        assert_eq!(parse("cubic", twice).unwrap().settings.profile, Profile::Rfc);
        let error = parse("cubic", [text("profile", "linus")]).unwrap_err().to_string();
        assert!(error.starts_with("profile: ") && error.contains("did you mean"), "{error}");
    }

    #[test]
    fn the_profile_rfc_has_none_of_the_settings_of_linux() {
        for entry in TCPS {
            let tcp = parse(entry.name, [text("profile", "rfc")]).unwrap();
            assert_eq!(tcp.recovery, entry.recovery);
            let (common, control) = (CommonParams::default(), (entry.control)());
            let plain = super::super::TcpParams::new(entry.name, common, Some(control)).unwrap();
            assert_eq!(tcp, plain, "{}", entry.name);
            assert!(!tcp.settings.rack && !tcp.settings.prr && tcp.settings.header.0 == 40);
        }
    }

    #[test]
    fn linux_needs_selective_acks() {
        let without_linux = ["hpcc", "powertcp", "xcp"];
        for entry in TCPS.iter().filter(|entry| !without_linux.contains(&entry.name)) {
            let sack = !["newreno", "tahoe"].contains(&entry.name);
            let result = parse(entry.name, [text("profile", "linux")]);
            assert_eq!(result.is_ok(), sack, "{}", entry.name);
            let error = result.err().map(|e| e.to_string()).unwrap_or_default();
            assert!(sack || error.starts_with("profile: ") && error.contains("no SACK"), "{error}");
        }
        let reno = |profile| parse("reno", [text("profile", profile)]).unwrap().recovery;
        let expected = [LossRecovery::Sack, LossRecovery::Reno, LossRecovery::Reno];
        assert_eq!(["linux", "rfc", "ns2"].map(reno), expected);
    }

    #[test]
    fn the_names_of_presets_are_aliases() {
        for preset in presets() {
            let tcp = parse(preset.name, []).unwrap();
            assert_eq!(tcp, parse(preset.tcp, []).unwrap());
            let rows = preset.table.iter().map(|row| text(row.name, &row.value));
            assert_eq!(tcp, parse(preset.tcp, rows).unwrap());
        }
        let slower = parse("linux_cubic", [("rack", Setting::Flag(false))]).unwrap().settings;
        assert_eq!((slower.rack, slower.prr, slower.rto_min), (false, true, Some(Span::ms(200))));
        let error = parse("linux_cubik", []).unwrap_err().to_string();
        assert!(error.contains("did you mean \"linux_cubic\""), "{error}");
    }
}
