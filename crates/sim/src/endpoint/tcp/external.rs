//! TCPs whose congestion control is not in the registry.

use super::params::{self, TcpParams};
use super::presets::{apply, profile_in};
use crate::endpoint::cc::{ControlParams, FindExternalControl};
use crate::endpoint::common_params::CommonParams;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Params, Setting};

/// Creates the parameters of the named TCP with these settings; resolves every `auto`. The setting
/// `profile`, or else the profile of the name, sets the defaults of all others: `linux` means the
/// defaults of Linux's stack (time stamps, a minimum timeout of 200 ms, RACK and PRR; Linux's
/// growth of CUBIC, and bursts in BBR). The names `linux_bbr`, `linux_cubic`, `linux_dctcp` and
/// `linux_reno` stand for a TCP in that profile. A TCP that is found elsewhere has the profile
/// `rfc` by default.
///
/// # Errors
/// If the name or a parameter is unknown, a value is out of range, or two values contradict each
/// other.
pub fn parse<'a>(
    name: &str,
    settings: impl IntoIterator<Item = (&'a str, Setting<'a>)>,
) -> Result<TcpParams> {
    parse_with(None, name, settings)
}

/// As [`parse`], after looking up the name with `find`.
///
/// # Errors
/// As [`parse`].
pub fn parse_with<'a>(
    find: Option<FindExternalControl>,
    name: &str,
    settings: impl IntoIterator<Item = (&'a str, Setting<'a>)>,
) -> Result<TcpParams> {
    let settings: Vec<_> = settings.into_iter().collect();
    let elsewhere = find.and_then(|find| parse_external(find, name, &settings));
    elsewhere.unwrap_or_else(|| params::parse(name, settings))
}

/// Reads a TCP whose congestion control is not in the registry; `None` if there is none of the
/// name.
fn parse_external(
    find: FindExternalControl,
    name: &str,
    settings: &[(&str, Setting<'_>)],
) -> Option<Result<TcpParams>> {
    let mut chosen = CommonParams::default();
    let (common, own): (Vec<_>, Vec<_>) = settings.iter().partition(|(key, _)| chosen.knows(key));
    let control = find(name, &own)?;
    Some(control.and_then(|control| {
        let profile = profile_in(settings)?.unwrap_or(chosen.profile);
        if let Some(row) = control.rows.iter().find(|row| chosen.knows(row.name)) {
            let text = "every TCP has a parameter of this name; choose another one";
            return Err(Error::new(text).at(row.name));
        }
        let (name, recovery) = (control.name, control.recovery);
        let mut control = ControlParams::External(control);
        apply(profile, &mut chosen, &mut control);
        common.into_iter().try_for_each(|(key, value)| chosen.set(key, value))?;
        chosen.check()?;
        if control.needs_every_ack() {
            chosen.delayed_ack.get_or_insert(false);
        }
        chosen.resolve()?;
        TcpParams { name, recovery, control, settings: chosen }.validate()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::cc::ExternalParams;
    use crate::endpoint::cc::external_testing::{Calls, recorder};
    use crate::endpoint::common_params::EcnFeedback;

    /// Finds `recorder`, whose own parameter is `gain`, `paced`, which has a rate for every
    /// segment and reads marks, and `clash`, whose own one is `ecn`.
    fn find(name: &str, own: &[(&str, Setting<'_>)]) -> Option<Result<ExternalParams>> {
        let key = match name {
            "recorder" | "paced" => "gain",
            "clash" => "ecn",
            _ => return None,
        };
        let other = own.iter().find(|(k, _)| *k != key);
        let error = other.map(|(k, _)| Err(Error::new("not mine").at(k)));
        error.or_else(|| Some(Ok(recorder(&Calls::default(), name == "paced", (key, "1")))))
    }

    fn parsed(name: &str, settings: &[(&'static str, &'static str)]) -> Result<TcpParams> {
        parse_with(Some(find), name, settings.iter().map(|(k, v)| (*k, Setting::Text(v))))
    }

    #[test]
    fn settings_go_to_the_control_or_to_every_tcp() {
        let tcp = parsed("recorder", &[("gain", "1"), ("mtu", "999B")]).unwrap();
        assert_eq!((tcp.name(), tcp.settings.packet.0), ("recorder", 999));
        assert_eq!(tcp.settings.header.0, 40);
        assert!(tcp.settings.rto_min.is_some(), "auto is resolved");
        assert_eq!(parsed("recorder", &[]).unwrap().settings.packet.0, 1500);
    }

    #[test]
    fn a_control_with_a_rate_is_paced_and_every_packet_is_acknowledged() {
        let settings = |name, given: &[_]| parsed(name, given).unwrap().settings;
        let usual = settings("recorder", &[]);
        assert_eq!((usual.pacing, usual.delayed_ack), (Some(false), Some(true)));
        let paced = settings("paced", &[]);
        assert_eq!((paced.pacing, paced.delayed_ack), (Some(true), Some(false)));
        assert_eq!(settings("paced", &[("delayed_ack", "true")]).delayed_ack, Some(true));
        let error = |setting| parsed("paced", &[setting]).unwrap_err().to_string();
        assert_eq!(error(("pacing", "false")), "pacing: recorder requires pacing");
        assert!(error(("prr", "true")).starts_with("prr: not supported"));
    }

    #[test]
    fn a_control_that_reads_marks_has_the_echo_of_dctcp() {
        let ecn = |name, given: &[_]| {
            let settings = parsed(name, given).unwrap().settings;
            (settings.ecn, settings.ecn_feedback)
        };
        assert_eq!(ecn("recorder", &[]), (Some(false), Some(EcnFeedback::Rfc3168)));
        assert_eq!(ecn("paced", &[]), (Some(true), Some(EcnFeedback::Rfc8257)));
        assert_eq!(ecn("paced", &[("ecn", "false")]).0, Some(false));
        let accurate = ecn("paced", &[("ecn_feedback", "accurate")]);
        assert_eq!(accurate, (Some(true), Some(EcnFeedback::Accurate)));
    }

    #[test]
    fn a_sender_shows_the_variables_of_its_control() {
        let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
        let mut seen = |tcp| {
            let mut seen = vec![];
            let sender = crate::endpoint::tcp::Tcp::new(&tcp, &mut rng);
            sender.inspect(&mut |name, value| seen.push((name, value)));
            seen
        };
        assert_eq!(seen(parsed("recorder", &[]).unwrap()), [("own", 7.0)]);
        assert_eq!(seen(parse("reno", []).unwrap()), []);
    }

    #[test]
    fn wrong_settings_are_refused_by_the_one_they_go_to() {
        let error = |name, settings: &[_]| parsed(name, settings).unwrap_err().to_string();
        assert_eq!(error("recorder", &[("gian", "1")]), "gian: not mine");
        let text = "ecn: every TCP has a parameter of this name; choose another one";
        assert_eq!(error("clash", &[]), text);
        assert!(error("recorder", &[("packet", "x")]).starts_with("packet: "));
        assert!(error("recorder", &[("packet", "40B")]).contains("41B to"), "out of range");
        let pair = [("rto_min", "2s"), ("rto_max", "1s")];
        assert!(error("recorder", &pair).starts_with("rto_min: 2s is longer"));
        assert!(error("recorder", &[("profile", "ns2")]).contains("not available in profile ns2"));
        assert!(error("recorder", &[("profile", "linux")]).contains("has no SACK"));
        assert!(error("recordr", &[]).contains("recordr"));
    }

    #[test]
    fn names_that_are_not_found_are_those_of_the_registry() {
        assert_eq!(parsed("reno", &[]).unwrap(), parse("reno", []).unwrap());
        assert!(parse("recorder", []).is_err() && parse_with(None, "recorder", []).is_err());
    }
}
