//! Values that tc writes as words: `unlimited`, and the names of round-trip times.

use crate::error::{Error, Result};
use crate::params::{Setting, Value};
use crate::snapshot::Snapshot;
use crate::units::{Rate, Span};
use alloc::string::{String, ToString};

/// Rate of the shaper; None for no shaper. Written `auto` or `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct Bandwidth(pub Option<Rate>);

impl Value for Bandwidth {
    type End = Rate;

    fn kind() -> String {
        Option::<Rate>::kind()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        match setting {
            Setting::Text("unlimited") => Ok(Bandwidth(None)),
            _ => Option::<Rate>::read(setting).map(Bandwidth),
        }
    }

    fn write(&self) -> String {
        self.0.write()
    }

    fn is_within(&self, lo: &Self::End, hi: &Self::End) -> bool {
        self.0.is_within(lo, hi)
    }
}

/// Round-trip time of the path: a duration or a name of tc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct Rtt(pub Span);

/// Names of round-trip times.
pub const RTTS: [(&str, Span); 8] = [
    ("datacentre", Span::us(100)),
    ("lan", Span::ms(1)),
    ("metro", Span::ms(10)),
    ("regional", Span::ms(30)),
    ("internet", Span::ms(100)),
    ("oceanic", Span::ms(300)),
    ("satellite", Span::s(1)),
    ("interplanetary", Span::s(1000)),
];

impl Value for Rtt {
    type End = Self;

    fn kind() -> String {
        Span::kind()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        let Setting::Text(text) = setting else { return Span::read(setting).map(Rtt) };
        if let Some((_, rtt)) = RTTS.iter().find(|(name, _)| *name == text) {
            return Ok(Rtt(*rtt));
        }
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) && text != "auto" {
            return Err(Error::unknown(
                "round-trip time",
                text,
                RTTS.iter().map(|(name, _)| *name),
            ));
        }
        Span::read(setting).map(Rtt)
    }

    fn write(&self) -> String {
        self.0.to_string()
    }

    fn is_within(&self, lo: &Self::End, hi: &Self::End) -> bool {
        self.0.is_within(&lo.0, &hi.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_tc_are_read() {
        let rate = |text| Bandwidth::read(Setting::Text(text)).unwrap();
        assert_eq!([rate("unlimited"), rate("auto")], [Bandwidth(None); 2]);
        assert_eq!(rate("10mbit"), Bandwidth(Some(Rate(10_000_000))));
        assert!(Bandwidth::read(Setting::Integer(5)).is_err());
        for (name, rtt) in RTTS {
            assert_eq!(Rtt::read(Setting::Text(name)), Ok(Rtt(rtt)));
            assert_eq!(Rtt::read(Setting::Text(&Rtt(rtt).write())), Ok(Rtt(rtt)));
        }
        let error = |text| Rtt::read(Setting::Text(text)).unwrap_err().to_string();
        assert!(error("ocenic").contains("did you mean \"oceanic\"?"));
        assert!(error("20").contains("no unit") && Rtt::read(Setting::Integer(5)).is_err());
    }

    #[test]
    fn ranges_and_kinds_are_those_of_rates_and_durations() {
        assert_eq!([Bandwidth::kind(), Rtt::kind()], ["rate or auto", "duration"]);
        let rtt = |ms| Rtt(Span::ms(ms));
        assert_eq!(
            [1, 2, 3, 4].map(|ms| rtt(ms).is_within(&rtt(2), &rtt(3))),
            [false, true, true, false]
        );
        let rate = |bits| Bandwidth(Some(Rate(bits)));
        assert_eq!(
            [1, 2, 3, 4].map(|r| rate(r).is_within(&Rate(2), &Rate(3))),
            [false, true, true, false]
        );
    }
}
