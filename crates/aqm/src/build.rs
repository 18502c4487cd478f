//! Construction of a discipline: environment, parameters, and a builder.

use crate::error::Result;
use crate::params::{Checked, Combined, Params, Setting, checked};
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

    /// Checks that the rate is at least 1 bit/s.
    ///
    /// # Errors
    /// A rate of 0.
    #[inline(never)]
    pub(crate) fn check(&self) -> Result<()> {
        checked(self.rate, Some((Rate(1), Rate(u64::MAX)))).map(drop).map_err(|e| e.at_name("rate"))
    }
}

/// A discipline that can be built from parameters.
pub trait Build: Qdisc + Sized {
    /// Parameters of the discipline.
    type Params: Params;

    /// Builds the discipline for a link, from parameters whose ranges were checked.
    ///
    /// # Errors
    /// Parameters that contradict each other or the link.
    fn new(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self>;

    /// Checks the ranges of `params` and builds the discipline for a link.
    ///
    /// # Errors
    /// A parameter that is out of range, parameters that contradict each other or the link, or a
    /// rate of 0.
    fn build(params: &Self::Params, env: &Env) -> Result<Self> {
        env.check()?;
        Self::new(params.checked()?, env)
    }

    /// Returns a builder with the default parameters.
    fn builder() -> Builder<Self, Self::Params>
    where
        Self::Params: Default,
    {
        Builder::new()
    }
}

/// Builder of the discipline `Q`, whose parameters are `P`. Ranges are checked in
/// [`Builder::build`].
///
/// Each step changes the parameters of one part with the setters of their type, of which the page
/// of that type has a list:
///
/// ```
/// use sojourn_aqm::aqm::{ared::Ared, codel::CoDel};
/// use sojourn_aqm::aqm::red::Tuned;
/// use sojourn_aqm::sched::{cake::Cake, drr::Drr, fair::Fair, fq::Fq};
/// use sojourn_aqm::{Aqm, Build, Bytes, Rate, Size, Span};
///
/// let rate = Rate(10_000_000);
/// let codel = CoDel::builder()
///     .queue(|queue| queue.limit(Size::Bytes(300_000)))
///     .aqm(|codel| codel.target(Span::ms(15)))
///     .build(rate)?;
/// let fq_codel = Fq::<CoDel>::builder()
///     .queue(|fq| fq.flows(64))
///     .aqm(|codel| codel.target(Span::ms(15)))
///     .build(rate)?;
/// let drr_codel = Fair::<Drr, CoDel>::builder()
///     .fair(|fair| fair.flows(64))
///     .scheduler(|drr| drr.quantum(Bytes(1500)))
///     .build(rate)?;
/// let cake = Cake::builder().params(|cake| cake.ingress(true)).build(rate)?;
/// let ared = Tuned::<Ared>::builder()
///     .tuner(|ared| ared.interval(Span::ms(250)))
///     .red(|red| red.min_th(Size::Packets(5)))
///     .build(rate)?;
///
/// let error = CoDel::builder().queue(|queue| queue.limit(Size::Packets(0))).build(rate);
/// assert_eq!(error.unwrap_err().path(), "limit");
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
///
/// [`Build::builder`] and [`Aqm::builder`](crate::aqm::Aqm::builder) return a builder
/// with the defaults of the type. An entry of the registry can have other defaults
/// ([`QdiscEntry::preset`](crate::QdiscEntry::preset)).
#[derive(Clone, Debug)]
pub struct Builder<Q, P> {
    /// Parameters.
    pub params: P,
    discipline: PhantomData<fn() -> Q>,
}

impl<Q, P> Builder<Q, P> {
    /// Changes the parameters.
    #[must_use]
    pub fn params(self, change: impl FnOnce(P) -> P) -> Self {
        Builder { params: change(self.params), ..self }
    }
}

impl<Q, O, I> Builder<Q, Combined<O, I>> {
    /// Changes the parameters of the discipline. [`Builder::aqm`] changes the parameters of its AQM
    /// algorithm.
    #[must_use]
    pub fn queue(mut self, change: impl FnOnce(O) -> O) -> Self {
        self.params.outer = change(self.params.outer);
        self
    }

    /// Changes the parameters of the AQM algorithm, which may be in every queue.
    #[must_use]
    pub fn aqm(mut self, change: impl FnOnce(I) -> I) -> Self {
        self.params.inner = change(self.params.inner);
        self
    }
}

impl<Q, P: Default> Builder<Q, P> {
    pub(crate) fn new() -> Self {
        Builder { params: P::default(), discipline: PhantomData }
    }
}

impl<Q: Build> Builder<Q, Q::Params> {
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
