//! Any congestion control, with optional pacer, PRR and HyStart++. The sender uses it for all flows
//! except plain Reno.

use super::{
    Acked, Bbr, BbrParams, Cause, Compound, CompoundParams, Control, Cubic, CubicParams, Dctcp,
    DctcpParams, HyStart, Pacer, Prr, Reno, Sent, Settled, State, Vegas, VegasParams, Window,
};
use crate::tcp::TcpParams;
use sojourn_aqm::dice::Dice;
use sojourn_aqm::error::Result;
use sojourn_aqm::params::{Nothing, Params, Rows, Setting};
use sojourn_aqm::units::{Span, Time};

/// Selected congestion control with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// [`Reno`], which has no parameters.
    Reno,
    /// [`Cubic`].
    Cubic(CubicParams),
    /// [`Dctcp`].
    Dctcp(DctcpParams),
    /// [`Vegas`].
    Vegas(VegasParams),
    /// [`Compound`].
    Compound(CompoundParams),
    /// [`Bbr`].
    Bbr(BbrParams),
}

impl Choice {
    /// Set a parameter of the control.
    ///
    /// # Errors
    /// As [`Params::set`].
    pub fn set(&mut self, name: &str, value: Setting<'_>) -> Result<()> {
        match self {
            Choice::Reno => Nothing.set(name, value),
            Choice::Cubic(p) => p.set(name, value),
            Choice::Dctcp(p) => p.set(name, value),
            Choice::Vegas(p) => p.set(name, value),
            Choice::Compound(p) => p.set(name, value),
            Choice::Bbr(p) => p.set(name, value),
        }
    }

    /// Checks the range of every parameter of the control.
    ///
    /// # Errors
    /// As [`Params::check`].
    pub fn check(&self) -> Result<()> {
        match self {
            Choice::Reno => Nothing.check(),
            Choice::Cubic(p) => p.check(),
            Choice::Dctcp(p) => p.check(),
            Choice::Vegas(p) => p.check(),
            Choice::Compound(p) => p.check(),
            Choice::Bbr(p) => p.check(),
        }
    }

    /// Sets a parameter without a check, as [`Params::assign`] does.
    #[cfg(test)]
    pub(crate) fn assign(&mut self, name: &str, value: Setting<'_>) -> Result<()> {
        match self {
            Choice::Reno => Nothing.assign(name, value),
            Choice::Cubic(p) => p.assign(name, value),
            Choice::Dctcp(p) => p.assign(name, value),
            Choice::Vegas(p) => p.assign(name, value),
            Choice::Compound(p) => p.assign(name, value),
            Choice::Bbr(p) => p.assign(name, value),
        }
    }

    /// Parameters of the control.
    pub fn table(&self) -> Rows {
        match self {
            Choice::Reno => Nothing.table(),
            Choice::Cubic(p) => p.table(),
            Choice::Dctcp(p) => p.table(),
            Choice::Vegas(p) => p.table(),
            Choice::Compound(p) => p.table(),
            Choice::Bbr(p) => p.table(),
        }
    }
}

/// Congestion control algorithm.
// Large variants are fine: the whole sender is boxed.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "the sender is boxed as a whole")]
pub enum Law {
    /// RFC 5681.
    Reno(Reno),
    /// RFC 9438.
    Cubic(Cubic),
    /// RFC 8257.
    Dctcp(Dctcp),
    /// Brakmo and Peterson, 1995.
    Vegas(Vegas),
    /// Tan et al., 2006.
    Compound(Compound),
    /// Cardwell et al., 2016.
    Bbr(Bbr),
}

/// Static dispatch of a call to the active control.
macro_rules! each {
    ($law:expr, $control:ident => $call:expr) => {
        match $law {
            Law::Reno($control) => $call,
            Law::Cubic($control) => $call,
            Law::Dctcp($control) => $call,
            Law::Vegas($control) => $call,
            Law::Compound($control) => $call,
            Law::Bbr($control) => $call,
        }
    };
}

/// Congestion control with optional extensions.
#[derive(Clone, Debug)]
pub struct Any {
    law: Law,
    pacer: Option<Pacer>,
    prr: Option<Prr>,
    hystart: Option<HyStart>,
    /// Payload bytes delivered as of the last ack.
    delivered: u64,
}

impl Any {
    /// Active algorithm.
    pub fn law(&self) -> &Law {
        &self.law
    }

    /// Pacing rate in bytes of payload per second; None if pacing is off.
    pub fn pacing_rate(&self) -> Option<f64> {
        self.pacer.as_ref().map(Pacer::rate)
    }

    /// Set the pacer's rate: that of the control if it has one, otherwise derived from the window.
    fn pace(&mut self, window: &Window, srtt: Option<Span>) {
        let Some(pacer) = &mut self.pacer else { return };
        match &self.law {
            Law::Bbr(bbr) => pacer.set(bbr.pacing_rate()),
            _ => pacer.follow(window, srtt),
        }
    }
}

impl Control for Any {
    const HOOKED: bool = true;

    fn new(params: &TcpParams, dice: &mut dyn Dice) -> Any {
        let law = match &params.control {
            Choice::Reno => Law::Reno(Reno::new(params, dice)),
            Choice::Cubic(_) => Law::Cubic(Cubic::new(params, dice)),
            Choice::Dctcp(_) => Law::Dctcp(Dctcp::new(params, dice)),
            Choice::Vegas(_) => Law::Vegas(Vegas::new(params, dice)),
            Choice::Compound(_) => Law::Compound(Compound::new(params, dice)),
            Choice::Bbr(_) => Law::Bbr(Bbr::new(params, dice)),
        };
        let pacer = (params.settings.pacing == Some(true)).then(Pacer::default);
        let prr = params.settings.prr.then(Prr::default);
        let hystart = (params.settings.hystart == Some(true)).then(HyStart::default);
        Any { law, pacer, prr, hystart, delivered: 0 }
    }

    fn reset(&mut self) {
        each!(&mut self.law, c => c.reset());
        self.pacer = self.pacer.as_ref().map(|_| Pacer::default());
        self.prr = self.prr.as_ref().map(|_| Prr::default());
        self.hystart = self.hystart.as_ref().map(|_| HyStart::default());
        self.delivered = 0;
    }

    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        let before = window.cwnd;
        each!(&mut self.law, c => c.grow(window, acked));
        if let Some(hystart) = &mut self.hystart {
            hystart.grown(window, before, acked.now);
        }
    }

    fn cut(&mut self, now: Time, window: &Window, flight: u64, cause: Cause) -> u64 {
        let ssthresh = each!(&mut self.law, c => c.cut(now, window, flight, cause));
        if let Some(prr) = &mut self.prr {
            prr.cut(flight, cause);
        }
        if let Some(hystart) = &mut self.hystart {
            hystart.end();
        }
        ssthresh
    }

    fn counts_marks(&self) -> bool {
        each!(&self.law, c => c.counts_marks())
    }

    fn keeps_window(&self) -> bool {
        each!(&self.law, c => c.keeps_window())
    }

    fn established(&mut self, now: Time, window: &Window, rtt: Option<Span>) {
        each!(&mut self.law, c => c.established(now, window, rtt));
        self.pace(window, rtt);
    }

    fn echoed(&mut self, ack: u64, bytes: u64, ece: bool, next: u64) {
        each!(&mut self.law, c => c.echoed(ack, bytes, ece, next));
        if let Some(hystart) = self.hystart.as_mut().filter(|_| bytes > 0) {
            hystart.acked(ack, next);
        }
    }

    fn follows_delivery(&self) -> bool {
        // BBR always has a pacer.
        self.pacer.is_some() || self.prr.is_some()
    }

    fn delivered(&mut self, now: Time, from: u64, to: u64) {
        each!(&mut self.law, c => c.delivered(now, from, to));
    }

    fn settled(&mut self, window: &mut Window, ack: &Settled) {
        each!(&mut self.law, c => c.settled(window, ack));
        let news = ack.delivered - self.delivered;
        self.delivered = ack.delivered;
        if let Some(prr) = &mut self.prr {
            prr.settled(window, ack, news);
        }
        self.pace(window, ack.srtt);
    }

    fn sent(&mut self, sent: &Sent) {
        each!(&mut self.law, c => c.sent(sent));
        if let Some(pacer) = &mut self.pacer {
            pacer.sent(sent.now, sent.end - sent.seq);
        }
        if let Some(hystart) = self.hystart.as_mut().filter(|_| !sent.again) {
            hystart.sent(sent.now, sent.end);
        }
        if let Some(prr) = self.prr.as_mut().filter(|_| sent.state == State::Recovery) {
            prr.sent(sent.end - sent.seq);
        }
    }

    fn may_send(&mut self, now: Time) -> bool {
        self.pacer.as_mut().is_none_or(|pacer| pacer.may_send(now))
    }

    fn unblock(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            pacer.unblock();
        }
    }

    fn release(&self) -> Time {
        self.pacer.as_ref().map_or(Time::NEVER, Pacer::release)
    }

    fn starved(&mut self, flight: u64) {
        each!(&mut self.law, c => c.starved(flight));
    }
}
