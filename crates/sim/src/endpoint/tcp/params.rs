//! TCP parameters, their `auto` values per profile, and validation.

use super::presets::{PRESETS, preset, profile_in};
use crate::endpoint::cc::{ControlParams, DcqcnParams, HpccParams, PowerTcpParams, TCPS, TcpEntry};
pub use crate::endpoint::common_params::{CommonParams, EcnFeedback, LossRecovery, Profile};
use crate::missing::SENDERS;
use crate::parsing::parse;
use serde_json::Value as Json;
use sojourn_aqm::cast;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::missing::Missing;
use sojourn_aqm::params::{ParamRows, Params, Setting, unknown};
use sojourn_aqm::units::{Rate, Size, Span};
use std::borrow::Cow;
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

/// Finds a TCP by name or alias.
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
pub(super) fn parse<'a>(
    name: &str,
    settings: impl IntoIterator<Item = (&'a str, Setting<'a>)>,
) -> Result<TcpParams> {
    let (name, preset) = preset(name);
    let entry = find(name)?;
    let settings: Vec<_> = preset.into_iter().chain(settings).collect();
    let profile = profile_in(&settings)?.unwrap_or(entry.profile);
    let (mut chosen, mut control) = entry.defaults(profile);
    for (key, value) in settings {
        if control.knows(key) {
            control.set(key, value)?;
        } else if chosen.knows(key) {
            chosen.set(key, value)?;
        } else {
            return Err(unknown(&entry.table(), key));
        }
    }
    TcpParams::new(entry.name, chosen, Some(control))
}

impl CommonParams {
    /// Resolves `auto` values and rejects contradictions.
    pub(super) fn resolve(&mut self) -> Result<()> {
        let ns2 = self.profile == Profile::Ns2;
        let by_profile = |bytes, packets| if ns2 { packets } else { bytes };
        let ms = Span::ms;
        let (initial, delay) = match self.profile {
            Profile::Ns2 => (2, ms(100)),
            Profile::Quic => (quic_initial_window(self.packet.0), ms(25)),
            _ => (10, ms(40)),
        };
        self.initial_window.get_or_insert(Size::Packets(initial));
        self.initial_ssthresh.get_or_insert(self.receive_window);
        self.tick.get_or_insert(by_profile(ms(1), ms(10)));
        self.delayed_ack.get_or_insert(!ns2);
        self.delayed_ack_timeout.get_or_insert(delay);
        self.order_timeouts()?;
        if self.header.0 >= self.packet.0 {
            let text = format!("{} leaves no payload in a packet of {}", self.header, self.packet);
            return Err(Error::new(text).at("header"));
        }
        Ok(())
    }

    /// Resolves the timeouts so that `rto_min <= rto_initial <= rto_max`. A value that is `auto`
    /// adapts to those that are set.
    fn order_timeouts(&mut self) -> Result<()> {
        let (min, initial) = match self.profile {
            Profile::Linux => (Span::ms(200), Span::s(1)),
            Profile::Ns2 => (Span::ms(200), Span::s(3)),
            _ => (Span::s(1), Span::s(1)),
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

    /// Converts `size` to whole packets, at least one.
    pub(super) fn in_packets(&self, size: Size) -> u64 {
        match size {
            Size::Packets(n) => n.max(1),
            Size::Bytes(n) => (n / self.payload()).max(1),
        }
    }

    /// Converts `size` to bytes of payload, at least one packet.
    pub(crate) fn in_bytes(&self, size: Size) -> u64 {
        match size {
            Size::Packets(n) => n.saturating_mul(self.payload()),
            Size::Bytes(n) => n.max(self.payload()),
        }
    }
}

impl TcpParams {
    /// Creates the named TCP from typed parameters; resolves every `None`. Without `control` the
    /// congestion control has the default parameters of the profile in `settings`.
    /// `CommonParams::default()` is the profile `rfc`; [`TcpEntry::defaults`] returns the defaults
    /// of each profile.
    ///
    /// # Errors
    /// As [`super::parse`], with the same messages, or if `control` is not the one of that TCP.
    pub fn new(
        name: &str,
        mut settings: CommonParams,
        control: Option<ControlParams>,
    ) -> Result<TcpParams> {
        let entry = find(name)?;
        let profile = settings.profile;
        let (_, default) = entry.defaults(profile);
        let control = control.unwrap_or_else(|| default.clone());
        if discriminant(&control) != discriminant(&default) {
            let text = format!("this is not the congestion control of {name}");
            return Err(Error::new(text).at("control"));
        }
        control.check()?;
        settings.check()?;
        if control.needs_every_ack() {
            settings.delayed_ack.get_or_insert(false);
        }
        settings.resolve()?;
        let recovery = entry.recovery_in(profile);
        TcpParams { name: entry.name, recovery, control, settings }.validate()
    }

    /// Parameters of a sender whose first link has the rate `line`, and whose packets return after
    /// `base_rtt` without queues, if the control asks for it.
    pub(crate) fn on_path(
        &self,
        line: Rate,
        base_rtt: impl FnOnce() -> Span,
    ) -> Cow<'_, TcpParams> {
        let of_control = |control| Cow::Owned(TcpParams { control, ..self.clone() });
        match &self.control {
            ControlParams::Dcqcn(p) if p.max_rate.is_none() => {
                of_control(ControlParams::Dcqcn(DcqcnParams { max_rate: Some(line), ..p.clone() }))
            }
            ControlParams::Hpcc(p) => of_control(ControlParams::Hpcc(HpccParams {
                max_rate: p.max_rate.or(Some(line)),
                base_rtt: p.base_rtt.or_else(|| Some(base_rtt())),
                ..p.clone()
            })),
            ControlParams::PowerTcp(p) => of_control(ControlParams::PowerTcp(PowerTcpParams {
                max_rate: p.max_rate.or(Some(line)),
                base_rtt: p.base_rtt.or_else(|| Some(base_rtt())),
                ..p.clone()
            })),
            _ => Cow::Borrowed(self),
        }
    }

    /// True if packets collect telemetry of the links that they cross.
    pub(crate) fn wants_telemetry(&self) -> bool {
        self.control.wants_telemetry()
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

    /// Resolves what depends on the congestion control and rejects parameters that it does not
    /// support.
    pub(super) fn validate(mut self) -> Result<TcpParams> {
        let ns2 = self.settings.profile == Profile::Ns2;
        let quic = self.settings.profile == Profile::Quic;
        let sack = !ns2 && !quic && self.recovery == LossRecovery::Sack;
        let refuse = |what: &str, why: String| Err(Error::new(why).at(what));
        if ns2 && !matches!(self.control, ControlParams::Reno(_)) {
            return refuse("profile", format!("{} is not available in profile ns2", self.name));
        }
        if quic && !self.has_quic() {
            return refuse("profile", format!("{} is not available in profile quic", self.name));
        }
        if self.settings.profile == Profile::Linux && !sack {
            let text = format!("{} has no SACK, which Linux has; use reno", self.name);
            return refuse("profile", text);
        }
        let feedback = self.is_xcp() || self.wants_telemetry();
        if feedback && (self.settings.profile != Profile::Rfc || self.settings.timestamps) {
            let text = format!("{} is available in profile rfc without timestamps", self.name);
            return refuse("profile", text);
        }
        self.resolve_ecn()?;
        let sets_rate = self.control.sets_rate();
        if sets_rate && self.settings.pacing == Some(false) {
            return refuse("pacing", format!("{} requires pacing", self.name));
        }
        self.control.check_order()?;
        let pacing = *self.settings.pacing.get_or_insert(self.control.default_pacing() || quic);
        if pacing && ns2 {
            return refuse("pacing", "not available in profile ns2; use profile rfc".into());
        }
        if self.settings.prr && (!sack || sets_rate) {
            let text =
                format!("not supported by {} in this profile; use sack in profile rfc", self.name);
            return refuse("prr", text);
        }
        if self.settings.linux_acks && (ns2 || quic) {
            let profile = if quic { "quic" } else { "ns2" };
            let text = format!("not available in profile {profile}; use profile rfc");
            return refuse("linux_acks", text);
        }
        if self.settings.rack && !sack {
            let text =
                format!("not supported by {} in this profile; use sack in profile rfc", self.name);
            return refuse("rack", text);
        }
        let cubic = matches!(self.control, ControlParams::Cubic(_));
        let hystart = *self.settings.hystart.get_or_insert(cubic);
        if hystart && (ns2 || !(cubic || matches!(self.control, ControlParams::Reno(_)))) {
            let text = format!(
                "not supported by {} in this profile; use cubic or sack in profile rfc",
                self.name
            );
            return refuse("hystart", text);
        }
        Ok(self)
    }

    /// True if segments carry a congestion header of XCP.
    pub(crate) fn is_xcp(&self) -> bool {
        matches!(self.control, ControlParams::Xcp(_))
    }

    /// True if the profile `quic` has the congestion control.
    fn has_quic(&self) -> bool {
        let known = matches!(
            self.control,
            ControlParams::Reno(_) | ControlParams::Cubic(_) | ControlParams::Bbr(_)
        );
        known && self.recovery != LossRecovery::Tahoe
    }

    /// Resolves the ECN parameters, and rejects those that the congestion control does not support.
    fn resolve_ecn(&mut self) -> Result<()> {
        let refuse = |what: &str, why: String| Err(Error::new(why).at(what));
        let ns2 = self.settings.profile == Profile::Ns2;
        let quic = self.settings.profile == Profile::Quic;
        let prague = matches!(self.control, ControlParams::Prague(_));
        let dcqcn = matches!(self.control, ControlParams::Dcqcn(_));
        let exact_echo = self.control.needs_exact_echo();
        // These work only with ECN.
        let ecn = *self.settings.ecn.get_or_insert(dcqcn || exact_echo || prague);
        match &self.control {
            ControlParams::Bbr(_) if ecn => {
                return refuse("ecn", "bbr (version 1) ignores ECN marks".into());
            }
            ControlParams::Bbr3(_) if ecn => {
                let text = "the draft of bbr3 defines no reaction to ECN marks";
                return refuse("ecn", text.into());
            }
            ControlParams::Swift(_) | ControlParams::Timely(_) if ecn => {
                let text = format!("{} reacts to delay and ignores ECN marks", self.name);
                return refuse("ecn", text);
            }
            ControlParams::Hpcc(_) | ControlParams::PowerTcp(_) if ecn => {
                let what = if self.wants_telemetry() { "telemetry" } else { "delay" };
                let text = format!("{} reacts to {what} and ignores ECN marks", self.name);
                return refuse("ecn", text);
            }
            _ => {}
        }
        if (prague || dcqcn) && !ecn {
            let text = format!("{} requires ECN; without it, use cubic or sack", self.name);
            return refuse("ecn", text);
        }
        let ect1 = *self.settings.ect1.get_or_insert(prague);
        if ect1 && !ecn {
            return refuse("ect1", "needs ecn = true".into());
        }
        let usual = match &self.control {
            ControlParams::Prague(_) | ControlParams::Dcqcn(_) => EcnFeedback::Accurate,
            _ if exact_echo => EcnFeedback::Rfc8257,
            _ if quic => EcnFeedback::Accurate,
            _ => EcnFeedback::Rfc3168,
        };
        let feedback = *self.settings.ecn_feedback.get_or_insert(usual);
        if (prague || dcqcn) && feedback != EcnFeedback::Accurate {
            return refuse("ecn_feedback", format!("{} requires accurate feedback", self.name));
        }
        if quic && feedback != EcnFeedback::Accurate {
            return refuse("ecn_feedback", "profile quic has only accurate feedback".into());
        }
        if ns2 && feedback != EcnFeedback::Rfc3168 {
            let text = "not available in profile ns2; use profile rfc";
            return refuse("ecn_feedback", text.into());
        }
        match &self.control {
            ControlParams::Reno(r) if ns2 && r.beta_ecn != 0.5 => {
                refuse("beta_ecn", "not available in profile ns2; use profile rfc".into())
            }
            _ => Ok(()),
        }
    }

    /// Canonical JSON form with all parameters.
    pub(crate) fn canonical(&self) -> Json {
        parse::canonical(self.name, &self.table())
    }

    /// All parameters with their current values.
    pub fn table(&self) -> ParamRows {
        let mut rows = self.settings.table();
        rows.extend(self.control.table());
        rows
    }
}

/// Initial window of QUIC in packets of `packet` bytes: at most 14,720 bytes of UDP payload, but
/// two packets (RFC 9002 §7.2).
fn quic_initial_window(packet: u64) -> u64 {
    let datagram = packet.saturating_sub(28).max(1);
    (14_720 / datagram).clamp(2, 10)
}

/// Unwraps a value that [`parse`] has resolved.
pub(super) fn resolved<T>(value: Option<T>) -> T {
    value.expect("parameters come from tcp::parse, which resolves them")
}

#[cfg(test)]
mod tests;
