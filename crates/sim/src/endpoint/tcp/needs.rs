//! Requirements of congestion controls on the common parameters, and the order of their own.

use crate::endpoint::cc::ControlParams;
use crate::endpoint::cc::dcqcn::DcqcnParams;
use crate::endpoint::cc::hpcc::HpccParams;
use crate::endpoint::cc::powertcp::{PowerTcpParams, PowerTcpVariant};
use sojourn_aqm::error::{Error, Result};
use std::fmt::Display;

/// Refuses parameter `low` of the value `below` if it exceeds `high`.
fn in_order<T: PartialOrd + Display>(low: &str, below: &T, high: &str, above: &T) -> Result<()> {
    if below > above {
        return Err(Error::new(format!("{below} is above {high}, {above}")).at(low));
    }
    Ok(())
}

impl ControlParams {
    /// True if the control sets its pacing rate, so that it needs the pacer.
    pub(super) fn sets_rate(&self) -> bool {
        match self {
            ControlParams::Bbr(_)
            | ControlParams::Bbr3(_)
            | ControlParams::Dcqcn(_)
            | ControlParams::Hpcc(_)
            | ControlParams::PowerTcp(_)
            | ControlParams::Prague(_)
            | ControlParams::Swift(_)
            | ControlParams::Timely(_) => true,
            ControlParams::External(p) => p.maker.is_paced(),
            _ => false,
        }
    }

    /// Default of the parameter `pacing`.
    pub(super) fn default_pacing(&self) -> bool {
        match self {
            ControlParams::External(p) => p.maker.default_pacing(),
            _ => self.sets_rate(),
        }
    }

    /// True if packets collect telemetry of the links that they cross.
    pub(crate) fn wants_telemetry(&self) -> bool {
        match self {
            ControlParams::Hpcc(_) => true,
            ControlParams::PowerTcp(p) => p.variant == PowerTcpVariant::Int,
            ControlParams::External(p) => p.maker.uses_telemetry(),
            _ => false,
        }
    }

    /// True if the control reacts to the fraction of marks and works without accurate feedback: the
    /// receiver then echoes the marks of each packet (RFC 8257 §3.2).
    pub(super) fn needs_exact_echo(&self) -> bool {
        match self {
            ControlParams::Dctcp(_) => true,
            ControlParams::External(p) => p.maker.uses_marks(),
            _ => false,
        }
    }

    /// True if every packet is acknowledged at once unless `delayed_ack` is set.
    pub(super) fn needs_every_ack(&self) -> bool {
        match self {
            ControlParams::Dcqcn(_)
            | ControlParams::Hpcc(_)
            | ControlParams::PowerTcp(_)
            | ControlParams::Swift(_)
            | ControlParams::Timely(_) => true,
            ControlParams::External(p) => p.maker.is_paced(),
            _ => false,
        }
    }

    /// Checks that lower bounds do not exceed upper bounds.
    pub(super) fn check_order(&self) -> Result<()> {
        match self {
            ControlParams::Vegas(p) => in_order("alpha", &p.alpha, "beta", &p.beta),
            ControlParams::Swift(p) if p.fs_min >= p.fs_max => {
                let text = format!("{} is not below fs_max, {}", p.fs_min, p.fs_max);
                Err(Error::new(text).at("fs_min"))
            }
            ControlParams::Timely(p) => {
                in_order("min_rate", &p.min_rate, "max_rate", &p.max_rate)?;
                in_order("t_low", &p.t_low, "t_high", &p.t_high)
            }
            ControlParams::Dcqcn(DcqcnParams { min_rate: least, max_rate: Some(most), .. })
            | ControlParams::Hpcc(HpccParams {
                min_rate: Some(least), max_rate: Some(most), ..
            })
            | ControlParams::PowerTcp(PowerTcpParams {
                min_rate: Some(least),
                max_rate: Some(most),
                ..
            }) => in_order("min_rate", least, "max_rate", most),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use sojourn_aqm::params::Setting::Text;
    use sojourn_aqm::units::Span;

    fn refusal(name: &str, settings: &[(&'static str, &'static str)]) -> String {
        let settings = settings.iter().map(|(key, value)| (*key, Text(value)));
        parse(name, settings).map_or_else(|error| error.to_string(), |_| "accepted".into())
    }

    #[test]
    fn bounds_in_the_wrong_order_are_refused() {
        for (name, settings, error) in [
            ("swift", [("fs_min", "3"), ("fs_max", "3")], "fs_min: 3 is not below fs_max, 3"),
            ("swift", [("fs_min", "2"), ("fs_max", "3")], "accepted"),
            ("timely", [("t_low", "3us"), ("t_high", "2us")], "t_low: 3us is above t_high, 2us"),
            ("timely", [("t_low", "2us"), ("t_high", "2us")], "accepted"),
            ("vegas", [("alpha", "3"), ("beta", "2")], "alpha: 3 is above beta, 2"),
        ] {
            assert_eq!(refusal(name, &settings), error, "{name}");
        }
        for name in ["dcqcn", "timely", "hpcc", "powertcp"] {
            let rates = [("min_rate", "2mbit"), ("line_rate", "1mbit")];
            assert!(refusal(name, &rates).starts_with("min_rate: 2"), "{}", refusal(name, &rates));
            assert_eq!(refusal(name, &[("min_rate", "1mbit"), ("max_rate", "1mbit")]), "accepted");
        }
        let alone = refusal("timely", &[("t_low", "600us")]);
        assert_eq!(alone, "t_low: 600us is above t_high, 500us");
    }

    #[test]
    fn senders_of_data_centres_are_paced_and_every_packet_is_acknowledged() {
        for (name, ecn) in [
            ("dcqcn", true),
            ("hpcc", false),
            ("powertcp", false),
            ("swift", false),
            ("timely", false),
        ] {
            let s = parse(name, []).unwrap().settings;
            assert_eq!((s.pacing, s.delayed_ack, s.ecn), (Some(true), Some(false), Some(ecn)));
            assert_eq!(
                parse(name, [("delayed_ack", Text("true"))]).unwrap().settings.delayed_ack,
                Some(true)
            );
            assert!(refusal(name, &[("pacing", "false")]).contains("requires pacing"));
            assert!(refusal(name, &[("prr", "true")]).starts_with("prr: "));
            let other = refusal(name, &[("ecn", if ecn { "false" } else { "true" })]);
            assert!(other.starts_with("ecn: ") && other.contains(name), "{other}");
        }
        let one_bit = refusal("dcqcn", &[("ecn_feedback", "rfc8257")]);
        assert_eq!(one_bit, "ecn_feedback: dcqcn requires accurate feedback");
        let usual = parse("sack", []).unwrap().settings;
        assert_eq!(usual.delayed_ack_timeout, Some(Span::ms(40)));
        assert_eq!(usual.delayed_ack, Some(true));
    }
}
