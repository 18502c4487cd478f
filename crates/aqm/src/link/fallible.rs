//! Calls of a link that return an error where the others panic: for hosts whose clocks or packets
//! are not under their control.

use super::{LEN_MAX, Link, LinkSpec};
use crate::error::{Error, Result};
use crate::packet::{Ecn, Packet};
use crate::units::Time;
use alloc::format;

impl Link {
    /// Checks that a call at `now` is not earlier than the last one.
    ///
    /// # Errors
    /// An earlier time.
    pub fn check_time(&self, now: Time) -> Result<()> {
        if now >= self.now() {
            return Ok(());
        }
        let text = format!("{} ns is earlier than the last call at {} ns", now.0, self.now().0);
        Err(Error::new(text).at("now"))
    }

    /// Checks that the link can carry a packet of `len` bytes.
    fn check_len(len: u32) -> Result<()> {
        if len < LEN_MAX {
            return Ok(());
        }
        let text = format!("{len} bytes are out of range, allowed: below {LEN_MAX} bytes");
        Err(Error::new(text).at("len"))
    }

    /// Calls [`Link::push`], or refuses the packet where that panics. The state does not change on
    /// an error; the owner keeps the body.
    ///
    /// # Errors
    /// An earlier time than in a previous call, or a packet of [`LEN_MAX`] bytes or more.
    pub fn try_push(&mut self, now: Time, packet: Packet) -> Result<()> {
        self.check_time(now)?;
        Link::check_len(packet.len)?;
        self.push(now, packet);
        Ok(())
    }

    /// Calls [`Link::send`], or returns an error where that panics.
    ///
    /// # Errors
    /// As [`Link::try_push`]; a link that does not compute its departures at enqueue.
    pub fn try_send(&mut self, now: Time, packet: &mut Packet) -> Result<Option<(Time, Ecn)>> {
        self.check_time(now)?;
        Link::check_len(packet.len)?;
        if !self.computes_departures() {
            return Err(
                Error::new("decides about packets after they arrive; use `push`").at("qdisc")
            );
        }
        Ok(self.send(now, packet))
    }

    /// Calls [`Link::poll`], or returns an error where that panics.
    ///
    /// # Errors
    /// An earlier time than in a previous call.
    pub fn try_poll(&mut self, now: Time) -> Result<Option<Packet>> {
        self.check_time(now)?;
        Ok(self.poll(now))
    }

    /// Calls [`Link::advance`], or returns an error where that panics.
    ///
    /// # Errors
    /// An earlier time than in a previous call.
    pub fn try_advance(&mut self, now: Time) -> Result<()> {
        self.check_time(now)?;
        self.advance(now);
        Ok(())
    }

    /// Calls [`Link::reset_stats`], or returns an error where that panics.
    ///
    /// # Errors
    /// An earlier time than in a previous call.
    pub fn try_reset_stats(&mut self, now: Time) -> Result<()> {
        self.check_time(now)?;
        self.reset_stats(now);
        Ok(())
    }

    /// Calls [`Link::may_change`], or returns an error where that panics.
    ///
    /// # Errors
    /// A link at which packets have arrived.
    pub fn try_may_change(&mut self) -> Result<()> {
        if !self.is_unused() {
            return Err(Error::new("packets have arrived; declare changes before the first one"));
        }
        self.may_change();
        Ok(())
    }

    /// Calls [`Link::change`], or returns an error where that panics.
    ///
    /// # Errors
    /// An earlier time than in a previous call, a link without [`Link::may_change`], or another
    /// rate for a link with opportunities.
    pub fn try_change(&mut self, now: Time, spec: LinkSpec) -> Result<()> {
        self.check_time(now)?;
        if !self.changes_are_declared() {
            return Err(Error::new("the link was not declared to change before the first packet"));
        }
        if self.has_opportunities() && spec.rate != self.spec().rate {
            return Err(Error::new("a link with opportunities has no rate").at("rate"));
        }
        self.change(now, spec);
        Ok(())
    }

    /// Calls [`Link::reconfigure`], or returns an error where that panics.
    ///
    /// # Errors
    /// An earlier time than in a previous call.
    pub fn try_reconfigure(
        &mut self,
        now: Time,
        fresh: alloc::boxed::Box<dyn crate::qdisc::Qdisc + Send>,
    ) -> Result<bool> {
        self.check_time(now)?;
        Ok(self.reconfigure(now, fresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Pcg;
    use crate::text_form::build_text;
    use crate::units::{Rate, Span};

    fn link(text: &str) -> Link {
        let spec = LinkSpec::new(Rate(8_000_000), Span::ms(10));
        Link::new(spec, build_text(text, spec.rate).unwrap().qdisc, Pcg::new(1)).unwrap()
    }

    fn packet(len: u32) -> Packet {
        Packet { len, ..Packet::default() }
    }

    #[test]
    fn wrong_calls_are_refused_and_change_nothing() {
        let mut link = link("codel");
        link.try_push(Time(5_000_000), packet(1000)).unwrap();
        let early = Time(4_999_999);
        let errors = [
            link.try_push(early, packet(1000)).unwrap_err(),
            link.try_poll(early).unwrap_err(),
            link.try_advance(early).unwrap_err(),
            link.try_reset_stats(early).unwrap_err(),
            link.try_send(early, &mut packet(1)).unwrap_err(),
            link.try_change(early, link.spec()).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.path(), "now");
            assert!(error.text().contains("earlier than the last call at 5000000 ns"), "{error}");
        }
        assert_eq!(link.try_push(link.now(), packet(LEN_MAX)).unwrap_err().path(), "len");
        assert_eq!(link.try_send(link.now(), &mut packet(1)).unwrap_err().path(), "qdisc");
        assert!(
            link.try_may_change().is_err() && link.try_change(link.now(), link.spec()).is_err()
        );
        assert_eq!((link.now(), link.stats().arrived_packets), (Time(5_000_000), 1));
        assert_eq!(link.try_poll(Time(16_000_000)).unwrap().map(|p| p.len), Some(1000));
    }

    #[test]
    fn right_calls_equal_those_that_panic() {
        let mut link = link("droptail");
        let mut sent = packet(1000);
        assert_eq!(
            link.try_send(Time(0), &mut sent).unwrap(),
            Some((Time(11_000_000), Ecn::NotEct))
        );
        assert_eq!(link.try_advance(Time(1_000_000)), Ok(()));
        assert_eq!(link.try_reset_stats(Time(1_000_000)), Ok(()));
        assert_eq!(link.stats().arrived_packets, 0);
        let mut other = self::link("droptail");
        assert_eq!(other.try_may_change(), Ok(()));
        let slow = LinkSpec { rate: Rate(4_000_000), ..other.spec() };
        assert_eq!(other.try_change(Time(0), slow), Ok(()));
        assert_eq!(other.try_push(Time(0), packet(1000)), Ok(()));
        assert_eq!(other.next_poll(), Some(Time(12_000_000)));
    }
}
