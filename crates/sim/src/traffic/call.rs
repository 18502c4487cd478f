//! Parameters of a video call: frames over UDP at a rate that follows the receiver's feedback.
//!
//! The congestion control is in `endpoint::gcc`, the frames and the feedback in `endpoint::call`.

use crate::parsing::distribution::Distribution;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params;
use sojourn_aqm::units::{Bytes, Rate, Span};

/// Range of the rates.
const MIN_RATE: Rate = Rate(1_000);
const MAX_RATE: Rate = Rate(10_000_000_000);

params! {
    /// Real-time video in one direction over UDP: frames at a constant frequency, whose size
    /// follows the rate that Google Congestion Control (GCC) allows.
    pub struct Call {
        /// Start time; the first frame follows at a random time within one frame interval.
        start: Distribution<Span> = Distribution::Constant(Span::ZERO), [], "", [];
        /// Stop time; auto means never.
        stop: Option<Span> = None, [], "", [];
        /// Frames per second.
        frames: u64 = 30, [1 => 1_000], "", ["fps"];
        /// Largest packet on the wire.
        packet: Bytes = Bytes(1_200), [Bytes(100) => Bytes(65_535)], "", ["size"];
        /// Rate on the wire before the first feedback.
        initial: Rate = Rate(300_000), [MIN_RATE => MAX_RATE], "", [];
        /// Lowest rate on the wire.
        lowest: Rate = Rate(50_000), [MIN_RATE => MAX_RATE], "", ["min_rate"];
        /// Highest rate on the wire.
        highest: Rate = Rate(2_500_000), [MIN_RATE => MAX_RATE], "", ["max_rate"];
        /// Rate at which the packets of a frame leave, as a multiple of the rate of the call.
        pacing: f64 = 2.5, [1.0 => 1_000.0], "", [];
        /// Longest time between two feedback messages; a decrease is reported at once.
        feedback: Span = Span::s(1), [Span::ms(10) => Span::s(10)], "", [];
    }
}

impl Call {
    /// Checks that the rates are in order.
    ///
    /// # Errors
    /// If `initial` or `highest` is below `lowest`, or `initial` above `highest`.
    pub(crate) fn checked(self) -> Result<Call> {
        if self.highest < self.lowest {
            return Err(Error::new(format!("is below lowest, {}", self.lowest)).at("highest"));
        }
        if !(self.lowest..=self.highest).contains(&self.initial) {
            let text =
                format!("must be from lowest, {}, to highest, {}", self.lowest, self.highest);
            return Err(Error::new(text).at("initial"));
        }
        Ok(self)
    }
}
