//! Marks by a threshold of the sojourn time, in addition to the marks of an AQM algorithm:
//! `ce_threshold` of Linux's codel and fq_codel.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::packet::Packet;
use crate::params::{Setting, Value};
use crate::snapshot::Snapshot;
use crate::units::Span;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// Selection of packets by their ECN field, written `VALUE/MASK` as in tc: those for which the
/// field under the mask has the value. `0x0/0x0` selects all, `0x1/0x1` ECT(1) and CE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct EcnSelector {
    value: u8,
    mask: u8,
}

impl EcnSelector {
    /// All packets.
    pub const ALL: EcnSelector = EcnSelector { value: 0, mask: 0 };

    /// Returns the selector, or `None` if it selects no packet or more than the ECN field.
    pub fn new(value: u8, mask: u8) -> Option<EcnSelector> {
        (mask <= 3 && value & !mask == 0).then_some(EcnSelector { value, mask })
    }

    /// True if `packet` is selected.
    #[inline]
    pub fn selects(self, packet: &Packet) -> bool {
        packet.ecn as u8 & self.mask == self.value
    }
}

impl fmt::Display for EcnSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}/{:#x}", self.value, self.mask)
    }
}

impl Value for EcnSelector {
    type End = Self;

    fn kind() -> String {
        "ECN selector".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        let number = |text: &str| {
            let text = text.trim();
            let hex = text.strip_prefix("0x").map(|digits| u8::from_str_radix(digits, 16).ok());
            hex.unwrap_or_else(|| text.parse().ok())
        };
        let parts = match setting {
            Setting::Text(text) => text.split_once('/'),
            _ => None,
        };
        let parts = parts.and_then(|(value, mask)| number(value).zip(number(mask)));
        parts.and_then(|(value, mask)| EcnSelector::new(value, mask)).ok_or_else(|| {
            Error::new(format!("{setting} is not VALUE/MASK of an ECN field, like 0x1/0x1"))
        })
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn is_within(&self, _: &Self::End, _: &Self::End) -> bool {
        true
    }
}

/// Threshold of the sojourn time above which packets are marked.
#[derive(Clone, Copy, Debug, Snapshot)]
pub(crate) struct CeThreshold {
    above: Span,
    selector: EcnSelector,
}

impl CeThreshold {
    /// Creates the threshold; `None` is never.
    pub fn new(above: Option<Span>, selector: EcnSelector) -> CeThreshold {
        CeThreshold { above: above.unwrap_or(Span(u64::MAX)), selector }
    }

    /// False if no packet can be marked.
    #[inline]
    pub fn is_set(self) -> bool {
        self.above != Span(u64::MAX)
    }

    /// Marks `packet`, which leaves after `sojourn`, if that is longer, and the packet is selected
    /// and ECN-capable.
    #[inline]
    pub fn apply(self, sojourn: Span, context: &mut Context<'_>, packet: &mut Packet) {
        if sojourn > self.above && self.selector.selects(packet) {
            context.mark(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn selectors_are_read_and_written_as_in_tc() {
        let read = |text| EcnSelector::read(Setting::Text(text));
        for (text, written) in [("0x1/0x1", "0x1/0x1"), ("2/3", "0x2/0x3"), ("0/0", "0x0/0x0")] {
            let selector = read(text).unwrap();
            assert_eq!([selector.to_string(), selector.write()], [written; 2]);
            assert!(selector.is_within(&EcnSelector::ALL, &EcnSelector::ALL), "it has no range");
        }
        assert_eq!(EcnSelector::kind(), "ECN selector");
        for wrong in ["1", "0x2/0x1", "0x1/0x5", "a/b", "1/"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let selected = |text| {
            let selector = read(text).unwrap();
            [0, 1, 2, 3].map(|bits| {
                selector.selects(&Packet { ecn: Ecn::from_bits(bits), ..Packet::default() })
            })
        };
        assert_eq!(selected("0x1/0x1"), [false, true, false, true]);
        assert_eq!(selected("0x2/0x3"), [false, false, true, false]);
    }

    #[test]
    fn codel_marks_what_waited_for_longer_whatever_it_decides() {
        for (name, ecn, selector, marked) in [
            ("codel", Ecn::Ect0, "0/0", 3),
            ("codel", Ecn::NotEct, "0/0", 0),
            ("codel", Ecn::Ect0, "1/1", 0),
            ("fq_codel", Ecn::Ect1, "1/1", 3),
        ] {
            let settings = [("ce_threshold", "1ms"), ("ce_threshold_selector", selector)];
            let mut q = Bench::new(name, &settings);
            q.ecn(ecn);
            // After 0, 1, 2, 3 and 4 ms; a sojourn time of 1 ms is not above the threshold.
            (0..5).for_each(|i| drop(q.put(i, 1000)));
            for ms in 0..5 {
                q.at_ms(ms);
                q.get();
            }
            assert_eq!(q.marked(), marked, "{name}, {ecn:?}, {selector}");
        }
    }
}
