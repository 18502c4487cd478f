//! Builder of a [`TimedLink`].

use super::TimedLink;
use super::saved::Recipe;
use super::slab::Slab;
use crate::error::{Error, Result};
use crate::link::{Link, LinkSpec, Served};
use crate::random::Pcg;
use crate::registry::Registry;
use crate::units::Span;
use crate::wire::{Impairments, Wire};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// Longest time that a queue of default size takes to send.
const BUFFER: Span = Span::ms(250);

/// Builder of a [`TimedLink`]; see [`TimedLink::builder`].
#[must_use]
pub struct TimedLinkBuilder<T> {
    spec: LinkSpec,
    text: String,
    qdisc: Option<Box<dyn Served + Send>>,
    buffer: Span,
    seed: u64,
    impairments: Impairments,
    copy: Option<fn(&T) -> T>,
    keeps_undelivered: bool,
}

impl<T> fmt::Debug for TimedLinkBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedLinkBuilder")
            .field("spec", &self.spec)
            .field("text", &self.text)
            .field("seed", &self.seed)
            .field("impairments", &self.impairments)
            .finish_non_exhaustive()
    }
}

impl<T> TimedLinkBuilder<T> {
    pub(super) fn new(qdisc: &str, spec: LinkSpec) -> TimedLinkBuilder<T> {
        TimedLinkBuilder {
            spec,
            text: qdisc.to_string(),
            qdisc: None,
            buffer: BUFFER,
            seed: 1,
            impairments: Impairments::default(),
            copy: None,
            keeps_undelivered: false,
        }
    }

    /// Sets the discipline, in place of the text form: one of your own, or a
    /// [`CheckedQdisc`](crate::CheckedQdisc).
    pub fn qdisc(self, qdisc: Box<dyn Served + Send>) -> Self {
        TimedLinkBuilder { qdisc: Some(qdisc), ..self }
    }

    /// Sets the longest time that a full queue takes to send if the text form has no `limit`; 250
    /// ms if it is not set. It reduces a default limit and never raises one, as
    /// [`Registry::build_text_within`].
    pub fn buffer(self, buffer: Span) -> Self {
        TimedLinkBuilder { buffer, ..self }
    }

    /// Sets the seed of all random numbers; 1 if it is not set.
    pub fn seed(self, seed: u64) -> Self {
        TimedLinkBuilder { seed, ..self }
    }

    /// Sets loss, jitter, reordering, duplication and corruption behind the queue.
    pub fn impairments(self, impairments: Impairments) -> Self {
        TimedLinkBuilder { impairments, ..self }
    }

    /// Copies the body of a packet that is duplicated by cloning it; impairments that duplicate
    /// need it.
    pub fn clone_duplicates(self) -> Self
    where
        T: Clone,
    {
        TimedLinkBuilder { copy: Some(T::clone), ..self }
    }

    /// Keeps dropped and lost packets for [`TimedLink::next_undelivered`].
    pub fn keep_undelivered(self) -> Self {
        TimedLinkBuilder { keeps_undelivered: true, ..self }
    }

    /// Builds the link.
    ///
    /// # Errors
    /// As [`build_text`](crate::build_text); a rate out of range; impairments out of range, or that
    /// duplicate packets without [`TimedLinkBuilder::clone_duplicates`].
    pub fn build(self) -> Result<TimedLink<T>> {
        self.spec.check()?;
        self.impairments.check().map_err(|e| e.at("impairments"))?;
        if self.impairments.duplicate.probability > 0.0 && self.copy.is_none() {
            let text = "needs copies of bodies: call `clone_duplicates`";
            return Err(Error::new(text).at("impairments.duplicate"));
        }
        let (recipe, qdisc) = match self.qdisc {
            Some(qdisc) => (None, qdisc),
            None => {
                let registry = Registry::standard();
                let built = registry.build_text_within(&self.text, self.spec.rate, self.buffer);
                let qdisc = built.map_err(|e| e.at("qdisc"))?.qdisc;
                let Self { text, spec: LinkSpec { rate, .. }, buffer, .. } = self;
                (Some(Recipe { text, rate, buffer }), qdisc)
            }
        };
        let mut link = Link::new(self.spec, qdisc, Pcg::stream(self.seed, "qdisc"))?;
        link.may_change();
        let seed = self.seed;
        let stream = |name: &str| Box::new(Pcg::stream(seed, &format!("wire.{name}"))) as _;
        let has_wire = self.impairments != Impairments::default();
        Ok(TimedLink {
            recipe,
            link,
            bodies: Slab::new(),
            wire: has_wire.then(|| Wire::new(&self.impairments, stream)),
            copy: self.copy,
            undelivered: self.keeps_undelivered.then(VecDeque::new),
        })
    }
}
