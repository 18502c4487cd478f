//! TCP parameters, their defaults per profile, and validation.

use super::presets::{PRESETS, preset};
use super::registry::{TCPS, TcpEntry};
use crate::endpoint::cc::ControlParams;
pub use crate::endpoint::common_params::{CommonParams, EcnFeedback, LossRecovery, Profile};
use crate::missing::SENDERS;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::missing::Missing;
use sojourn_aqm::params::{ParamRows, Params, Setting, answers, unknown};
use sojourn_aqm::units::{Size, Span};
use std::mem::discriminant;

/// TCP with its parameters, all of them resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpParams {
    pub(super) name: &'static str,
    /// Loss recovery algorithm.
    pub(crate) recovery: LossRecovery,
    /// Congestion control with its own parameters.
    pub(crate) control: ControlParams,
    /// Common parameters; no field is `None`.
    pub(crate) settings: CommonParams,
}

/// Find a TCP by name or alias.
fn find(name: &str) -> Result<&'static TcpEntry> {
    TCPS.iter().find(|e| e.name == name || e.aliases.contains(&name)).ok_or_else(|| {
        let names = TCPS.iter().map(|e| e.name).chain(PRESETS.iter().map(|p| p.0));
        let unknown = || Error::unknown("tcp", name, names);
        Missing::find(SENDERS, name).map_or_else(unknown, |m| m.error(name)).at("name")
    })
}

/// As `parse` of the module, for TCPs of the registry.
///
/// # Errors
/// As there.
pub fn parse<'a>(
    name: &str,
    settings: impl IntoIterator<Item = (&'a str, Setting<'a>)>,
) -> Result<TcpParams> {
    let (name, preset) = preset(name);
    let entry = find(name)?;
    let (mut chosen, mut control) = (CommonParams::default(), (entry.control)());
    for (key, value) in preset.into_iter().chain(settings) {
        let is_in = |rows: &[_]| rows.iter().any(|r| answers(r, key));
        if is_in(&control.table()) {
            control.set(key, value)?;
        } else if is_in(&chosen.table()) {
            chosen.set(key, value)?;
        } else {
            return Err(unknown(&entry.table(), key));
        }
    }
    TcpParams::new(entry.name, chosen, Some(control))
}

impl CommonParams {
    /// Resolve `auto` values and reject contradictions.
    pub(super) fn resolve(&mut self) -> Result<()> {
        let rfc = self.profile == Profile::Rfc;
        let by_profile = |for_rfc, for_ns2| if rfc { for_rfc } else { for_ns2 };
        let ms = Span::ms;
        self.initial_window.get_or_insert(Size::Packets(if rfc { 10 } else { 2 }));
        self.initial_ssthresh.get_or_insert(self.receive_window);
        self.tick.get_or_insert(by_profile(ms(1), ms(10)));
        self.delayed_ack.get_or_insert(rfc);
        self.delayed_ack_timeout.get_or_insert(by_profile(ms(40), ms(100)));
        self.order_timeouts()?;
        if self.header.0 >= self.packet.0 {
            let text = format!("{} leaves no payload in a packet of {}", self.header, self.packet);
            return Err(Error::new(text).at("header"));
        }
        Ok(())
    }

    /// Resolve the timeouts so that `rto_min <= rto_initial <= rto_max`. A value that is `auto`
    /// adapts to those that are set.
    fn order_timeouts(&mut self) -> Result<()> {
        let (min, initial) = match self.profile {
            Profile::Rfc => (Span::s(1), Span::s(1)),
            Profile::Ns2 => (Span::ms(200), Span::s(3)),
        };
        let max = self.rto_max;
        let hint = if self.rto_min.is_none() { "; set rto_min too" } else { "" };
        let min = *self.rto_min.get_or_insert(min.min(max));
        let initial = *self.rto_initial.get_or_insert(initial.max(min).min(max));
        let refuse = |name, text| Err(Error::new(text).at(name));
        if min > max {
            return refuse("rto_min", format!("{min} is longer than rto_max, {max}"));
        }
        if initial > max {
            return refuse("rto_initial", format!("{initial} is longer than rto_max, {max}"));
        }
        if initial < min {
            let text = format!("{initial} is shorter than rto_min, {min}{hint}");
            return refuse("rto_initial", text);
        }
        Ok(())
    }

    /// Payload of a full packet, bytes.
    pub fn payload(&self) -> u64 {
        self.packet.0 - self.header.0
    }

    /// Header on the wire, bytes.
    pub(super) fn header_bytes(&self) -> u32 {
        cast::saturate32(self.header.0)
    }

    /// Full packet on the wire, bytes.
    pub(crate) fn packet_bytes(&self) -> u32 {
        cast::saturate32(self.packet.0)
    }

    /// Convert `size` to whole packets, at least one.
    pub(super) fn in_packets(&self, size: Size) -> u64 {
        match size {
            Size::Packets(n) => n.max(1),
            Size::Bytes(n) => (n / self.payload()).max(1),
        }
    }

    /// Convert `size` to bytes of payload, at least one packet.
    pub(super) fn in_bytes(&self, size: Size) -> u64 {
        match size {
            Size::Packets(n) => n.saturating_mul(self.payload()),
            Size::Bytes(n) => n.max(self.payload()),
        }
    }
}

impl TcpParams {
    /// Create the named TCP from typed parameters; resolves every `None`. Without `control` the
    /// congestion control has its default parameters.
    ///
    /// # Errors
    /// As [`parse`], with the same messages, or if `control` is not the one of that TCP.
    pub fn new(
        name: &str,
        mut settings: CommonParams,
        control: Option<ControlParams>,
    ) -> Result<TcpParams> {
        let entry = find(name)?;
        let default = (entry.control)();
        let control = control.unwrap_or_else(|| default.clone());
        if discriminant(&control) != discriminant(&default) {
            let text = format!("this is not the congestion control of {name}");
            return Err(Error::new(text).at("control"));
        }
        control.check()?;
        settings.check()?;
        settings.resolve()?;
        TcpParams { name: entry.name, recovery: entry.recovery, control, settings }.validate()
    }

    /// Canonical name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Loss recovery algorithm.
    pub fn recovery(&self) -> LossRecovery {
        self.recovery
    }

    /// Congestion control with its own parameters.
    pub fn control(&self) -> &ControlParams {
        &self.control
    }

    /// Common parameters; no field is `None`.
    pub fn settings(&self) -> &CommonParams {
        &self.settings
    }

    /// Resolve what depends on the congestion control and reject parameters that it does not
    /// support.
    pub(super) fn validate(mut self) -> Result<TcpParams> {
        let rfc = self.settings.profile == Profile::Rfc;
        let bbr = matches!(self.control, ControlParams::Bbr(_) | ControlParams::Bbr3(_));
        let refuse = |what: &str, why: String| Err(Error::new(why).at(what));
        if !rfc && !matches!(self.control, ControlParams::Reno(_)) {
            return refuse("profile", format!("{} requires profile rfc", self.name));
        }
        self.resolve_ecn()?;
        let sets_rate = bbr || matches!(self.control, ControlParams::Prague(_));
        if sets_rate && self.settings.pacing == Some(false) {
            return refuse("pacing", format!("{} requires pacing", self.name));
        }
        if let ControlParams::Vegas(v) = &self.control
            && v.alpha > v.beta
        {
            return refuse("alpha", format!("{} is above beta, {}", v.alpha, v.beta));
        }
        let pacing = *self.settings.pacing.get_or_insert(sets_rate);
        if pacing && !rfc {
            return refuse("pacing", "not available in profile ns2; use profile rfc".into());
        }
        if self.settings.prr && (!rfc || self.recovery != LossRecovery::Sack || sets_rate) {
            let text =
                format!("not supported by {} in this profile; use sack in profile rfc", self.name);
            return refuse("prr", text);
        }
        if self.settings.linux_acks && !(rfc && resolved(self.settings.delayed_ack)) {
            return refuse("linux_acks", "needs delayed_ack = true and profile rfc".into());
        }
        if self.settings.rack && (!rfc || self.recovery != LossRecovery::Sack) {
            let text =
                format!("not supported by {} in this profile; use sack in profile rfc", self.name);
            return refuse("rack", text);
        }
        let cubic = matches!(self.control, ControlParams::Cubic(_));
        let hystart = *self.settings.hystart.get_or_insert(cubic);
        if hystart && !(rfc && (cubic || matches!(self.control, ControlParams::Reno(_)))) {
            let text = format!(
                "not supported by {} in this profile; use cubic or sack in profile rfc",
                self.name
            );
            return refuse("hystart", text);
        }
        Ok(self)
    }

    /// Resolve the ECN parameters, and reject those that the congestion control does not support.
    fn resolve_ecn(&mut self) -> Result<()> {
        let refuse = |what: &str, why: String| Err(Error::new(why).at(what));
        let rfc = self.settings.profile == Profile::Rfc;
        let prague = matches!(self.control, ControlParams::Prague(_));
        let dctcp = matches!(self.control, ControlParams::Dctcp(_));
        // Both work only with ECN.
        let ecn = *self.settings.ecn.get_or_insert(dctcp || prague);
        match &self.control {
            ControlParams::Bbr(_) if ecn => {
                return refuse("ecn", "bbr (version 1) ignores ECN marks".into());
            }
            ControlParams::Bbr3(_) if ecn => {
                let text = "the draft of bbr3 defines no reaction to ECN marks";
                return refuse("ecn", text.into());
            }
            _ => {}
        }
        if prague && !ecn {
            return refuse("ecn", "prague requires ECN; without it, use cubic or sack".into());
        }
        let ect1 = *self.settings.ect1.get_or_insert(prague);
        if ect1 && !ecn {
            return refuse("ect1", "needs ecn = true".into());
        }
        let usual = match &self.control {
            ControlParams::Prague(_) => EcnFeedback::Accurate,
            ControlParams::Dctcp(_) => EcnFeedback::Rfc8257,
            _ => EcnFeedback::Rfc3168,
        };
        let feedback = *self.settings.ecn_feedback.get_or_insert(usual);
        if prague && feedback != EcnFeedback::Accurate {
            return refuse("ecn_feedback", "prague requires accurate feedback".into());
        }
        if !rfc && feedback != EcnFeedback::Rfc3168 {
            let text = "not available in profile ns2; use profile rfc";
            return refuse("ecn_feedback", text.into());
        }
        match &self.control {
            ControlParams::Reno(r) if !rfc && r.beta_ecn != 0.5 => {
                refuse("beta_ecn", "not available in profile ns2; use profile rfc".into())
            }
            _ => Ok(()),
        }
    }

    /// All parameters with their current values.
    pub fn table(&self) -> ParamRows {
        let mut rows = self.settings.table();
        rows.extend(self.control.table());
        rows
    }
}

/// Unwrap a value that [`parse`] has resolved.
pub(super) fn resolved<T>(value: Option<T>) -> T {
    value.expect("parameters come from tcp::parse, which resolves them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_values_depend_on_the_profile() {
        let rfc = parse("newreno", []).unwrap().settings;
        assert_eq!((rfc.rto_min, rfc.rto_initial), (Some(Span::s(1)), Some(Span::s(1))));
        assert_eq!((rfc.initial_window, rfc.delayed_ack), (Some(Size::Packets(10)), Some(true)));
        let ns2 = parse("sack1", [("profile", Setting::Text("ns2"))]).unwrap();
        assert_eq!(ns2.name(), "sack");
        assert_eq!(ns2.settings.initial_window, Some(Size::Packets(2)));
        assert_eq!(ns2.settings.tick, Some(Span::ms(10)));
        assert!(ns2.table().iter().all(|r| r.value != "auto"));
    }

    #[test]
    fn settings_round_trip_through_text() {
        let text = [("profile", "ns2"), ("packet", "1kB"), ("rwnd", "40p"), ("rto-min", "10ms")];
        let once = parse("reno", text.map(|(k, v)| (k, Setting::Text(v)))).unwrap();
        let rows = once.table();
        let twice = parse("reno", rows.iter().map(|r| (r.name, Setting::Text(&r.value)))).unwrap();
        assert_eq!(once, twice);
    }

    #[test]
    fn errors_name_the_field() {
        let refusal = |k, v| parse("reno", [(k, Setting::Text(v))]).unwrap_err().to_string();
        assert!(refusal("header", "1500B").starts_with("header: "), "no payload");
        assert!(refusal("rto_max", "0s").starts_with("rto_max: "));
        assert!(refusal("profil", "ns2").contains("did you mean \"profile\""));
        let name = parse("newrenno", []).unwrap_err().to_string();
        assert!(name.starts_with("name: ") && name.contains("did you mean \"newreno\""), "{name}");
    }

    #[test]
    fn typed_settings_are_rejected_like_text() {
        let mut refused = 0;
        for (entry, row) in TCPS.iter().flat_map(|e| e.table().into_iter().map(move |r| (e, r))) {
            let text = |value: &str| parse(entry.name, [(row.name, Setting::Text(value))]);
            let typed = |value: &str| {
                let (mut settings, mut control) = (CommonParams::default(), (entry.control)());
                if control.table().iter().any(|r| r.name == row.name) {
                    control.assign(row.name, Setting::Text(value))?;
                } else {
                    settings.assign(row.name, Setting::Text(value))?;
                }
                TcpParams::new(entry.name, settings, Some(control))
            };
            let (lo, hi) = row.range.split_once(" to ").unwrap_or(("auto", "auto"));
            let beyond = ["0", "0s", "0B", "0p", "-1", "1e300", "18446744073709551615", "200000s"];
            for value in [lo, hi, "9000000000000000000p", "1GB", "true"].iter().chain(&beyond) {
                let [text, typed] =
                    [text(value), typed(value)].map(|r| r.map_err(|e| e.to_string()));
                if text.as_ref().is_err_and(|e| !e.contains("out of range")) && typed.is_err() {
                    continue; // of another kind, or a contradiction
                }
                refused += i32::from(text.is_err());
                assert_eq!(text, typed, "{}: {} = {value}", entry.name, row.name);
            }
        }
        assert!(refused > 100, "{refused} refusals");
        let other = TcpParams::new(
            "newreno",
            CommonParams::default(),
            parse("bbr", []).ok().map(|p| p.control),
        );
        assert!(other.unwrap_err().to_string().starts_with("control: "));
    }

    #[test]
    fn timeouts_are_ordered_or_rejected() {
        let read = |list: &[(&'static str, &'static str)]| {
            let settings = list.iter().map(|(k, v)| (*k, Setting::Text(v)));
            let s = parse("reno", settings).map_err(|e| e.to_string())?.settings;
            Ok((s.rto_min.unwrap(), s.rto_initial.unwrap(), s.rto_max))
        };
        let (ms, s) = (Span::ms, Span::s);
        let ns2 = ("profile", "ns2");
        // `auto` adapts to values that are set.
        assert_eq!(read(&[("rto_max", "500ms")]), Ok((ms(500), ms(500), ms(500))));
        assert_eq!(read(&[("rto_max", "500ms"), ns2]), Ok((ms(200), ms(500), ms(500))));
        assert_eq!(read(&[("rto_max", "50ms"), ns2]), Ok((ms(50), ms(50), ms(50))));
        assert_eq!(read(&[("rto_min", "2s")]), Ok((s(2), s(2), s(60))));
        assert_eq!(read(&[("rto_min", "5s"), ns2]), Ok((s(5), s(5), s(60))));
        assert_eq!(read(&[("rto_min", "60s")]), Ok((s(60), s(60), s(60))));
        assert_eq!(read(&[("rto_initial", "1s")]), Ok((s(1), s(1), s(60))));
        // Values that are set are never changed.
        let refused: [(&[_], &str); 6] = [
            (&[("rto_min", "2s"), ("rto_max", "1s")], "rto_min: 2s is longer than rto_max, 1s"),
            (&[("rto_initial", "61s")], "rto_initial: 61s is longer than rto_max, 60s"),
            (
                &[("rto_initial", "1s"), ("rto_max", "500ms")],
                "rto_initial: 1s is longer than rto_max, 500ms",
            ),
            (
                &[("rto_initial", "999ms")],
                "rto_initial: 999ms is shorter than rto_min, 1s; set rto_min too",
            ),
            (
                &[("rto_initial", "199ms"), ns2],
                "rto_initial: 199ms is shorter than rto_min, 200ms; set rto_min too",
            ),
            (
                &[("rto_initial", "1s"), ("rto_min", "2s")],
                "rto_initial: 1s is shorter than rto_min, 2s",
            ),
        ];
        for (settings, error) in refused {
            assert_eq!(read(settings), Err(error.to_string()));
        }
    }

    #[test]
    fn a_tcp_has_common_and_own_parameters() {
        let cubic = parse("cubic", [("beta", Setting::Number(0.5))]).unwrap();
        let ControlParams::Cubic(own) = &cubic.control else { panic!("{cubic:?}") };
        assert_eq!((own.beta, own.c, cubic.name()), (0.5, 0.4, "cubic"));
        assert!(cubic.table().iter().any(|r| r.name == "beta" && r.value == "0.5"));
        assert!(parse("dctcp", []).unwrap().settings.ecn == Some(true), "dctcp requires ECN");
        assert_eq!(parse("bbr", []).unwrap().settings.pacing, Some(true));
        assert_eq!(parse("ctcp", []).unwrap().settings.pacing, Some(false));
        assert_eq!(parse("cubic", []).unwrap().settings.hystart, Some(true));
        assert_eq!(parse("sack", []).unwrap().settings.hystart, Some(false));
        for entry in TCPS {
            let once = parse(entry.name, []).unwrap();
            let rows = once.table();
            let again = rows.iter().map(|r| (r.name, Setting::Text(&r.value)));
            assert_eq!(parse(entry.name, again).unwrap(), once);
            // No parameter of a congestion control shadows a common one.
            let names = entry.table();
            let shared = CommonParams::default().table().len();
            for own in &names[shared..] {
                assert!(!names[..shared].iter().any(|r| answers(r, own.name)), "{}", own.name);
            }
        }
    }

    #[test]
    fn unsupported_settings_are_rejected() {
        let (on, off) = (Setting::Flag(true), Setting::Flag(false));
        let ns2 = ("profile", Setting::Text("ns2"));
        let refusal = |name: &str, list: &[(&'static str, Setting<'static>)]| {
            parse(name, list.iter().copied()).unwrap_err().to_string()
        };
        assert_eq!(refusal("cubic", &[ns2]), "profile: cubic requires profile rfc");
        assert!(refusal("bbr", &[("ecn", on)]).starts_with("ecn: bbr"));
        assert!(refusal("bbr3", &[("ecn", on)]).contains("bbr3 defines no reaction"));
        assert_eq!(refusal("cubic", &[("ect1", on)]), "ect1: needs ecn = true");
        assert!(parse("dctcp", [("ect1", on)]).is_ok());
        let text = |name, value| [(name, Setting::Text(value))];
        let prague = parse("prague", []).unwrap().settings;
        assert_eq!((prague.ecn, prague.ect1, prague.pacing), (Some(true), Some(true), Some(true)));
        assert_eq!(prague.ecn_feedback, Some(EcnFeedback::Accurate));
        assert!(refusal("prague", &[("ecn", off)]).starts_with("ecn: prague requires ECN"));
        assert!(refusal("prague", &[("pacing", off)]).starts_with("pacing: prague requires"));
        assert_eq!(
            refusal("prague", &text("ecn_feedback", "rfc3168")),
            "ecn_feedback: prague requires accurate feedback"
        );
        let exact = ("ecn_feedback", Setting::Text("accurate"));
        assert!(refusal("sack", &[ns2, exact]).starts_with("ecn_feedback: not available"));
        let abe = ("beta_ecn", Setting::Number(0.8));
        assert!(refusal("sack", &[ns2, abe]).starts_with("beta_ecn: not available"));
        assert!(parse("sack", [("ecn", on), abe, exact]).is_ok());
        assert!(refusal("bbr", &[("pacing", off)]).starts_with("pacing: bbr"));
        assert!(refusal("bbr", &[("prr", on)]).starts_with("prr: not supported by bbr"));
        assert!(refusal("newreno", &[("prr", on)]).starts_with("prr: not supported by newreno"));
        assert!(
            refusal("vegas", &[("hystart", on)]).starts_with("hystart: not supported by vegas")
        );
        assert!(
            refusal("sack", &[("hystart", on), ns2]).starts_with("hystart: not supported by sack")
        );
        assert!(refusal("sack", &[("pacing", on), ns2]).starts_with("pacing: not available"));
        let vegas = refusal("vegas", &[("alpha", Setting::Number(5.0))]);
        assert_eq!(vegas, "alpha: 5 is above beta, 4");
        let reno = refusal("newreno", &[("beta", Setting::Number(0.5))]);
        assert!(reno.starts_with("beta: unknown parameter"), "{reno}");
        let near = refusal("cubic", &[("fast_convergance", on)]);
        assert!(near.contains("did you mean \"fast_convergence\""), "{near}");
        assert!(refusal("dctcp", &[("g", Setting::Number(2.0))]).starts_with("g: "));
    }

    #[test]
    fn bytes_are_rounded_down_to_whole_packets() {
        let params = parse("reno", [("packet", Setting::Text("1040B"))]).unwrap();
        assert_eq!(params.settings(), &params.settings);
        let packets = |n| params.settings().in_packets(Size::Bytes(n));
        let payload = params.settings().payload();
        assert_eq!((payload, packets(10 * payload), packets(10 * payload - 1)), (1_000, 10, 9));
        assert_eq!((packets(1), packets(0)), (1, 1), "at least one");
    }

    #[test]
    fn settings_at_the_bounds_of_others_are_accepted() {
        assert!(parse("vegas", [("alpha", Setting::Number(4.0))]).is_ok(), "alpha = beta");
        let prr = ("prr", Setting::Flag(true));
        assert!(parse("sack", [prr]).is_ok());
        let ns2 = parse("sack", [prr, ("profile", Setting::Text("ns2"))]).unwrap_err().to_string();
        assert!(ns2.starts_with("prr: "), "{ns2}");
    }

    #[test]
    fn acks_as_in_linux_need_delayed_acks_and_the_profile_rfc() {
        let acks = ("linux_acks", Setting::Flag(true));
        assert!(parse("sack", [acks]).is_ok());
        for other in [("delayed_ack", Setting::Flag(false)), ("profile", Setting::Text("ns2"))] {
            let refused = parse("sack", [acks, ("delayed_ack", Setting::Flag(true)), other]);
            assert!(refused.unwrap_err().to_string().starts_with("linux_acks: needs"), "{other:?}");
        }
    }
}
