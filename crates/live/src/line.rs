//! A link with what happens to it at moments that are known before: it changes, it is looked at,
//! its counters start anew. And its wire, which may lose packets. It is told the time.

use sojourn_aqm::{Link, LinkSpec, Packet, Span, Time};
use std::iter::Peekable;

/// What the link becomes, and when, in the order of time.
pub type Changes = Box<dyn Iterator<Item = (Time, LinkSpec)> + Send>;

/// Looks at the link at the moment given.
pub type See = Box<dyn FnMut(Time, &mut Link) + Send>;

/// Whether the wire loses the next packet: asked once for each, in order.
pub type Loses = Box<dyn FnMut() -> bool + Send>;

/// A link and what is planned for it.
pub struct Line {
    /// The link.
    pub link: Link,
    /// Packets lost on the wire of those that arrived in the measured interval.
    pub lost_on_wire: u64,
    loses: Option<Loses>,
    changes: Option<Peekable<Changes>>,
    begin: Option<(Time, See)>,
    look: Option<(Span, Time, See)>,
}

/// What a line does at a moment, those of the same moment in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Change,
    Begin,
    Look,
}

impl Line {
    /// A link with nothing on it, at time zero, that stays as it is and whose wire loses nothing.
    pub fn new(link: Link) -> Line {
        Line { link, lost_on_wire: 0, loses: None, changes: None, begin: None, look: None }
    }

    /// Has the wire lose packets.
    pub fn lose(&mut self, loses: Loses) {
        self.loses = Some(loses);
    }

    /// Has the link change, which is told so.
    pub fn change(&mut self, changes: Changes) {
        self.link.may_change();
        self.changes = Some(changes.peekable());
    }

    /// Has `see` look at the link once per `every`, first after that time.
    pub fn look(&mut self, every: Span, see: See) {
        assert!(every.0 > 0, "looks are some time apart");
        self.look = Some((every, Time::ZERO + every, see));
    }

    /// Has the counters start anew at `at`, after `see` has had a last look at them.
    pub fn begin(&mut self, at: Time, see: See) {
        self.begin = Some((at, see));
    }

    /// The next moment of what is planned.
    fn planned(&mut self) -> Option<(Time, What)> {
        let change = self.changes.as_mut().and_then(Peekable::peek);
        let change = change.map(|(at, _)| (*at, What::Change));
        let begin = self.begin.as_ref().map(|(at, _)| (*at, What::Begin));
        let look = self.look.as_ref().map(|(_, at, _)| (*at, What::Look));
        change.into_iter().chain(begin).chain(look).min()
    }

    /// Does all that was due up to `now`, at the moments when it was due.
    pub fn advance(&mut self, now: Time) {
        while let Some((at, what)) = self.planned().filter(|(at, _)| *at <= now) {
            match what {
                What::Change => {
                    let next = self.changes.as_mut().and_then(Iterator::next);
                    next.into_iter().for_each(|(at, spec)| self.link.change(at, spec));
                }
                What::Begin => {
                    self.link.advance(at);
                    let begin = self.begin.take();
                    begin.into_iter().for_each(|(_, mut see)| see(at, &mut self.link));
                    self.link.begin(at);
                    self.lost_on_wire = 0;
                }
                What::Look => {
                    self.link.advance(at);
                    if let Some((every, next, see)) = &mut self.look {
                        see(at, &mut self.link);
                        *next += *every;
                    }
                }
            }
        }
        self.link.advance(now);
    }

    /// When there will next be something to do; none while there is nothing.
    pub fn wake(&mut self) -> Option<Time> {
        let planned = self.planned().map(|(at, _)| at);
        self.link.wake().into_iter().chain(planned).min()
    }

    /// The next packet that has crossed by `now`: when it had, and whether the wire lost it.
    pub fn poll(&mut self, now: Time) -> Option<(Time, Packet, bool)> {
        let at = self.link.wake().filter(|at| *at <= now)?;
        let packet = self.link.poll(now)?;
        let lost = self.loses.as_mut().is_some_and(|loses| loses());
        let counts = packet.arrived >= self.link.tally().marks.since;
        self.lost_on_wire += u64::from(lost && counts);
        Some((at, packet, lost))
    }
}
