//! Service curves of HFSC: two lines, in the integer arithmetic of Linux.
//!
//! Time is counted in ticks of 64 ns and service in bytes. Slopes are fixed-point numbers, rounded
//! up as in Linux, so that deadlines agree to the tick.

use crate::error::{Error, Result};
use crate::params::{Setting, Value};
use crate::snapshot::Snapshot;
use crate::units::{Rate, Span};
use alloc::format;
use alloc::string::{String, ToString};

/// Ticks per second.
const TICKS: u128 = 15_625_000;
/// Binary places of a slope in bytes per tick.
const SLOPE: u32 = 24;
/// Binary places of an inverse slope in ticks per byte.
const INVERSE: u32 = 14;
/// Inverse of the slope 0.
const NEVER: u64 = u64::MAX;

/// Whole ticks of a time.
pub(super) fn tick(span: Span) -> u64 {
    span.0 >> 6
}

/// Time of `ticks`.
pub(super) fn span(ticks: u64) -> Span {
    Span(ticks.saturating_mul(64))
}

/// Service curve of a class: the rate `m1` for the time `d`, then the rate `m2`. Its text form is
/// `10mbit` for one rate, or `m1/d/m2` like `10mbit/20ms/2mbit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct ServiceCurve {
    /// Rate of the first segment.
    pub m1: Rate,
    /// Duration of the first segment.
    pub d: Span,
    /// Rate of the second segment.
    pub m2: Rate,
}

impl ServiceCurve {
    /// Returns the curve of a constant rate.
    pub fn linear(rate: Rate) -> ServiceCurve {
        ServiceCurve { m1: Rate(0), d: Span(0), m2: rate }
    }

    /// True if it gives service at some time.
    pub fn is_some(&self) -> bool {
        self.m1.0 > 0 || self.m2.0 > 0
    }
}

impl Value for ServiceCurve {
    type End = Self;

    fn kind() -> String {
        "service curve".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        let form = "written like 2mbit, 10mbit/20ms/2mbit (m1/d/m2) or none";
        let Setting::Text(text) = setting else {
            return Err(Error::new(format!("{setting} has no unit; a service curve is {form}")));
        };
        let rate = |text: &str| if text == "0" { Ok(Rate(0)) } else { text.parse::<Rate>() };
        let parts: [Option<&str>; 4] = {
            let mut parts = text.split('/');
            core::array::from_fn(|_| parts.next().map(str::trim))
        };
        match parts {
            [Some("none"), None, ..] => Ok(ServiceCurve::default()),
            [Some(m2), None, ..] => rate(m2).map(ServiceCurve::linear),
            // A rate in bytes, like 2MB/s.
            [Some(_), Some("s"), None, _] => rate(text).map(ServiceCurve::linear),
            [Some(m1), Some(d), Some(m2), None] => {
                Ok(ServiceCurve { m1: rate(m1)?, d: d.parse()?, m2: rate(m2)? })
            }
            _ => Err(Error::new(format!("{text:?} is not a service curve, which is {form}"))),
        }
    }

    fn write(&self) -> String {
        let ServiceCurve { m1, d, m2 } = self;
        match (self.is_some(), d.0) {
            (false, _) => "none".to_string(),
            (_, 0) => m2.to_string(),
            _ => format!("{m1}/{d}/{m2}"),
        }
    }

    fn is_within(&self, _: &Self, hi: &Self) -> bool {
        self.m1.0 <= hi.m2.0 && self.m2.0 <= hi.m2.0 && self.d.0 <= Span::s(1000).0
    }
}

/// A slope and its inverse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Snapshot)]
struct Line {
    slope: u64,
    inverse: u64,
}

impl Line {
    fn new(rate: Rate) -> Line {
        let bits = u128::from(rate.0);
        let up = |x: u128, by: u128| u64::try_from(x.div_ceil(by)).unwrap_or(NEVER);
        Line {
            slope: up(bits << (SLOPE - 3), TICKS),
            inverse: if bits == 0 { NEVER } else { up(TICKS << (INVERSE + 3), bits) },
        }
    }

    /// Bytes of `ticks`.
    fn bytes(self, ticks: u64) -> u64 {
        low((u128::from(ticks) * u128::from(self.slope)) >> SLOPE)
    }

    /// Ticks of `bytes`.
    fn ticks(self, bytes: u64) -> u64 {
        match (bytes, self.inverse) {
            (0, _) => 0,
            (_, NEVER) => NEVER,
            _ => low((u128::from(bytes) * u128::from(self.inverse)) >> INVERSE),
        }
    }
}

fn low(x: u128) -> u64 {
    u64::try_from(x).unwrap_or(u64::MAX)
}

/// Curve of two lines that begins at a point: `x` in ticks, `y` in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Snapshot)]
pub(super) struct Curve {
    x: u64,
    y: u64,
    first: Line,
    dx: u64,
    dy: u64,
    second: Line,
}

impl Curve {
    /// Creates the curve of `of` at the origin.
    pub fn new(of: ServiceCurve) -> Curve {
        let first = Line::new(of.m1);
        let dx = of.d.0.div_ceil(64);
        Curve { x: 0, y: 0, first, dx, dy: first.bytes(dx), second: Line::new(of.m2) }
    }

    /// True if the second line is at least as steep as the first.
    pub fn is_convex(self) -> bool {
        self.first.slope <= self.second.slope
    }

    /// Returns the second line alone.
    pub fn without_first(self) -> Curve {
        Curve { dx: 0, dy: 0, ..self }
    }

    /// Service at the tick `x`.
    fn bytes_at(self, x: u64) -> u64 {
        let Some(after) = x.checked_sub(self.x) else { return self.y };
        match after.checked_sub(self.dx) {
            None | Some(0) => self.y.saturating_add(self.first.bytes(after)),
            Some(rest) => self.y.saturating_add(self.dy).saturating_add(self.second.bytes(rest)),
        }
    }

    /// First tick at which the service is `y`.
    pub fn tick_of(self, y: u64) -> u64 {
        let Some(after) = y.checked_sub(self.y) else { return self.x };
        match after.checked_sub(self.dy) {
            None | Some(0) if self.dy > 0 => self.x.saturating_add(self.first.ticks(after)),
            None | Some(0) => self.x.saturating_add(self.dx),
            Some(rest) => self.x.saturating_add(self.dx).saturating_add(self.second.ticks(rest)),
        }
    }

    /// Replaces the curve by the minimum of itself and `of` that begins at (`x`, `y`), from there
    /// on: the update of a runtime curve when a class becomes active (figure 8 of the paper).
    pub fn update(&mut self, of: Curve, x: u64, y: u64) {
        let now = self.bytes_at(x);
        if of.is_convex() {
            if now >= y {
                (self.x, self.y) = (x, y);
            }
            return;
        }
        // Concave: this curve is the flatter one from `x` on, so the curves cross at most once.
        if now <= y {
            return;
        }
        let at_bend = self.bytes_at(x.saturating_add(of.dx));
        if at_bend >= y.saturating_add(of.dy) {
            (self.x, self.y, self.dx, self.dy) = (x, y, of.dx, of.dy);
            return;
        }
        // The new curve is below until its first line, the steeper one, reaches the second line of
        // this one.
        let (gap, faster) = (now - y, of.first.slope - of.second.slope);
        let mut dx = low((u128::from(gap) << SLOPE) / u128::from(faster));
        dx = dx.saturating_add(self.x.saturating_add(self.dx).saturating_sub(x));
        (self.x, self.y, self.dx, self.dy) = (x, y, dx, of.first.bytes(dx));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 bytes per tick for 100 ticks, then 2 bytes per tick.
    fn concave() -> Curve {
        let (m1, m2) = (Rate(1_000_000_000), Rate(250_000_000));
        Curve::new(ServiceCurve { m1, d: Span(6400), m2 })
    }

    /// The same curve from (`x`, `y`) on.
    fn concave_at(x: u64, y: u64) -> Curve {
        Curve { x, y, ..concave() }
    }

    #[test]
    fn a_curve_and_its_inverse_agree() {
        let curve = concave_at(1000, 500);
        let points = [(0, 500), (1000, 500), (1050, 900), (1100, 1300), (1200, 1500)];
        for (x, y) in points {
            assert_eq!(curve.bytes_at(x), y);
            assert_eq!(curve.tick_of(y), x.max(1000));
        }
    }

    #[test]
    fn an_update_is_the_minimum_of_both_curves() {
        // The service since the last start, and the tick of the new start: below the new curve,
        // above it, and across it.
        for (x, y) in [(50, 400), (50, 300), (300, 1200), (300, 100), (150, 700), (90, 10), (0, 0)]
        {
            let (old, new) = (concave(), concave_at(x, y));
            let mut curve = old;
            curve.update(concave(), x, y);
            for tick in (x..x + 500).step_by(7) {
                let least = old.bytes_at(tick).min(new.bytes_at(tick));
                assert!(curve.bytes_at(tick).abs_diff(least) <= 8, "({x}, {y}) at {tick}");
            }
        }
    }

    #[test]
    fn an_update_of_a_convex_curve_begins_at_the_later_point() {
        let convex = ServiceCurve { m1: Rate(0), d: Span(6400), m2: Rate(1_000_000_000) };
        let mut curve = Curve::new(convex);
        curve.update(Curve::new(convex), 50, 100);
        assert_eq!((curve.x, curve.y), (0, 0), "less service than that");
        curve.update(Curve::new(convex), 200, 300);
        assert_eq!((curve.x, curve.y), (200, 300));
    }
}
