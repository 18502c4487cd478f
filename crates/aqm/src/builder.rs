//! Builders of disciplines, with a typed setter per parameter.
//!
//! ```
//! use sojourn_aqm::aqm::codel::CoDel;
//! use sojourn_aqm::sched::fq::Fq;
//! use sojourn_aqm::{Algorithm, Build, Rate, Size, Span};
//!
//! let rate = Rate(10_000_000);
//! let codel = CoDel::builder().target(Span::ms(15)).limit(Size::Bytes(300_000)).build(rate)?;
//! let fq_codel = Fq::<CoDel>::builder().flows(64).target(Span::ms(15)).build(rate)?;
//!
//! let error = CoDel::builder().limit(Size::Packets(0)).build(rate).err().unwrap();
//! assert_eq!(error.path(), "limit");
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```

use crate::error::Result;
use crate::params::{Params, Setting};
use crate::qdisc::{Build, Env};
use crate::units::Rate;
use alloc::boxed::Box;
use core::marker::PhantomData;

/// Builder of the discipline `Q`, whose parameters are `P`. Ranges are checked in
/// [`Builder::build`].
///
/// [`Build::builder`] and [`Algorithm::builder`](crate::aqm::Algorithm::builder) return one with
/// the defaults of the type; those of a name in the registry can differ. Parameters without a
/// setter, such as RED's in an algorithm that tunes RED, are fields of [`Builder::params`].
#[derive(Clone, Debug)]
pub struct Builder<Q, P> {
    /// Parameters.
    pub params: P,
    discipline: PhantomData<fn() -> Q>,
}

impl<Q: Build> Builder<Q, Q::Params> {
    pub(crate) fn new() -> Self {
        Builder { params: Q::Params::default(), discipline: PhantomData }
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

/// Generates the setters of a struct of [`params!`](crate::params!), by its position in the
/// parameters of a discipline:
///
/// - `queue`: of a discipline with an AQM algorithm
/// - `fair`: of a fair scheduler with an order and an AQM algorithm
/// - `order`: of that order
/// - `aqm`: of an AQM algorithm in any discipline
/// - `single`: of an AQM algorithm in a single queue, if a name is also one of a scheduler
/// - `tuner`: of an AQM algorithm that extends another one, in a single queue
/// - `whole`: of a discipline without an AQM algorithm
macro_rules! setters {
    (queue $Name:ident $fields:tt) => {
        $crate::builder::setters! {
            @ [L] [Combined<$Name, L>] [frame] $fields }
    };
    (fair $Name:ident $fields:tt) => {
        $crate::builder::setters! {
            @ [O, L] [Combined<Combined<$Name, O>, L>] [frame frame] $fields }
    };
    (order $Name:ident $fields:tt) => {
        $crate::builder::setters! {
            @ [L] [Combined<Combined<FairParams, $Name>, L>]
            [frame aqm] $fields }
    };
    (aqm $Name:ident $fields:tt) => {
        $crate::builder::setters! {
            @ [F] [Combined<F, $Name>] [aqm] $fields }
    };
    (single $Name:ident $fields:tt) => {
        $crate::builder::setters! {
            @ [] [Combined<SingleParams, $Name>] [aqm] $fields }
    };
    (tuner $Name:ident $fields:tt) => {
        $crate::builder::setters! {
            @ [L] [Combined<SingleParams, Combined<$Name, L>>]
            [aqm frame] $fields }
    };
    (whole $Name:ident $fields:tt) => {
        $crate::builder::setters! {
            @ [] [$Name] [] $fields }
    };
    (@place $builder:ident [$($part:ident)*]) => {
        $builder.params$(.$part)*
    };
    (@ [$($Other:ident),*] [$($Params:tt)*] $place:tt {
        $(
            #[doc = $about:literal]
            $(#[doc = $more:literal])*
            $field:ident: $Type:ty = $default:expr,
                [$($lo:expr => $hi:expr)?], $symbol:literal, [$($alias:literal),*];
        )*
    }) => {
        const _: () = {
            #[allow(unused_imports, reason = "a position needs some of them")]
            use $crate::{aqm::SingleParams, params::Combined, sched::fair::FairParams};

            impl<Q, $($Other),*> $crate::builder::Builder<Q, $($Params)*> {
                $(
                    #[doc = $about]
                    $(#[doc = $more])*
                    #[must_use]
                    pub fn $field(mut self, $field: $Type) -> Self {
                        let params = &mut $crate::builder::setters!(@place self $place);
                        params.$field = $field;
                        self
                    }
                )*
            }
        };
    };
}

pub(crate) use setters;
