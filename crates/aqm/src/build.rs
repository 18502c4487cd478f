//! Construction of a discipline: environment, parameters, and a builder.

use crate::error::Result;
use crate::params::{Checked, Params, Setting};
use crate::qdisc::Qdisc;
use crate::units::{Rate, Size, Time};
use alloc::boxed::Box;
use core::marker::PhantomData;

/// Environment of a discipline, given when it is built.
#[derive(Clone, Copy, Debug)]
pub struct Env {
    /// Rate of the link.
    pub rate: Rate,
    /// Buffer size that the discipline enforces (B of the papers).
    pub limit: Size,
    /// True if packets may be marked, for algorithms that treat marks and drops differently.
    pub ecn: bool,
    /// Time of the first periodic update; one period after the first arrival if not set. For
    /// comparison with implementations whose timers start at another time.
    pub first_update: Option<Time>,
}

impl Env {
    /// Returns the environment of a link of rate `rate`; the discipline sets the other fields.
    pub fn new(rate: Rate) -> Env {
        Env { rate, limit: Size::Bytes(0), ecn: false, first_update: None }
    }
}

/// A discipline that can be built from parameters.
pub trait Build: Qdisc + Sized {
    /// Parameters of the discipline.
    type Params: Params;

    /// Returns a builder with the default parameters.
    fn builder() -> Builder<Self, Self::Params> {
        Builder::new()
    }

    /// Builds the discipline for a link.
    ///
    /// # Errors
    /// A parameter that is out of range, or parameters that contradict each other or the link.
    fn build(params: &Self::Params, env: &Env) -> Result<Self> {
        Self::from_checked(params.checked()?, env)
    }

    /// Builds it from parameters whose ranges were checked.
    ///
    /// # Errors
    /// Parameters that contradict each other or the link.
    fn from_checked(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self>;
}

/// Builder of the discipline `Q`, whose parameters are `P`. Ranges are checked in
/// [`Builder::build`].
///
/// [`Build::builder`] and [`Algorithm::builder`](crate::aqm::Algorithm::builder) return one with
/// the defaults of the type; those of a name in the registry can differ. Parameters without a
/// setter are fields of [`Builder::params`]: those of an algorithm of another crate, and those of
/// RED in an algorithm that extends RED, which can have the same names.
#[derive(Clone, Debug)]
pub struct Builder<Q, P> {
    /// Parameters.
    pub params: P,
    discipline: PhantomData<fn() -> Q>,
}

impl<Q, P> Builder<Q, P> {
    pub(crate) fn of(params: P) -> Self {
        Builder { params, discipline: PhantomData }
    }
}

impl<Q: Build> Builder<Q, Q::Params> {
    pub(crate) fn new() -> Self {
        Builder::of(Q::Params::default())
    }

    /// Sets the parameter `name` (or one of its aliases), as in the text form.
    ///
    /// # Errors
    /// As [`Params::set`].
    pub fn set(mut self, name: &str, value: Setting<'_>) -> Result<Self> {
        self.params.set(name, value)?;
        Ok(self)
    }

    /// Builds the discipline for a link of `rate`; [`Link::new`](crate::Link::new) takes it.
    ///
    /// # Errors
    /// A parameter that is out of range, or parameters that contradict each other or the link.
    pub fn build(&self, rate: Rate) -> Result<Box<Q>> {
        Q::build(&self.params, &Env::new(rate)).map(Box::new)
    }
}
