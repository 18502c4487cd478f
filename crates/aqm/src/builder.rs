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
//! let error = CoDel::builder().limit(Size::Packets(0)).build(rate).unwrap_err();
//! assert_eq!(error.path(), "limit");
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```

pub use crate::build::Builder;

/// Generates the setters of a struct of [`params!`](crate::params!) (`define`), or the body of a
/// test that each sets its own parameter (`check`), by its position in the parameters of a
/// discipline:
///
/// - `queue`: of a discipline with an AQM algorithm
/// - `fair`: of a fair scheduler with an order and an AQM algorithm
/// - `order`: of that order
/// - `aqm`: of an AQM algorithm in any discipline
/// - `single`: of an AQM algorithm in a single queue, if a name is also one of a scheduler
/// - `tuner`: of an AQM algorithm that extends another one, in a single queue
/// - `whole`: of a discipline without an AQM algorithm
macro_rules! setters {
    ($mode:ident queue $Name:ident $fields:tt) => {
        $crate::builder::setters! { @$mode [L] [Combined<$Name, L>] [frame] $fields }
    };
    ($mode:ident fair $Name:ident $fields:tt) => {
        $crate::builder::setters! {
            @$mode [O, L] [Combined<Combined<$Name, O>, L>] [frame frame] $fields }
    };
    ($mode:ident order $Name:ident $fields:tt) => {
        $crate::builder::setters! {
            @$mode [L] [Combined<Combined<FairParams, $Name>, L>] [frame aqm] $fields }
    };
    (define aqm $Name:ident $fields:tt) => {
        $crate::builder::setters! { @define [F] [Combined<F, $Name>] [aqm] $fields }
    };
    (check aqm $Name:ident $fields:tt) => {
        $crate::builder::setters! { @check [] [Combined<SingleParams, $Name>] [aqm] $fields }
        $crate::builder::setters! { @check [] [Combined<FqParams, $Name>] [aqm] $fields }
        $crate::builder::setters! {
            @check [] [Combined<Combined<FairParams, DrrParams>, $Name>] [aqm] $fields }
    };
    ($mode:ident single $Name:ident $fields:tt) => {
        $crate::builder::setters! { @$mode [] [Combined<SingleParams, $Name>] [aqm] $fields }
    };
    ($mode:ident tuner $Name:ident $fields:tt) => {
        $crate::builder::setters! {
            @$mode [L] [Combined<SingleParams, Combined<$Name, L>>] [aqm frame] $fields }
    };
    ($mode:ident whole $Name:ident $fields:tt) => {
        $crate::builder::setters! { @$mode [] [$Name] [] $fields }
    };
    (@place $builder:ident [$($part:ident)*]) => {
        $builder.params$(.$part)*
    };
    (@define [$($Other:ident),*] [$($Params:tt)*] $place:tt {
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
    (@check [$($Other:ident),*] [$($Params:tt)*] $place:tt {
        $(
            #[doc = $about:literal]
            $(#[doc = $more:literal])*
            $field:ident: $Type:ty = $default:expr,
                [$($lo:expr => $hi:expr)?], $symbol:literal, [$($alias:literal),*];
        )*
    }) => {{
        #[allow(unused_imports, reason = "a position needs some of them")]
        use $crate::{
            aqm::SingleParams, params::Combined, sched::drr::DrrParams, sched::fair::FairParams,
            sched::fq::FqParams,
        };
        $( type $Other = $crate::params::Nothing; )*
        type All = $($Params)*;
        $(
            let range: Option<($Type, $Type)> = $crate::params!(@range $($lo => $hi)?);
            $crate::builder::tests::check_setter::<All, $Type>(
                stringify!($field), range, |builder, value| builder.$field(value),
            );
        )*
    }};
}

pub(crate) use setters;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::params::{Params, Setting, Value};
    use alloc::string::String;
    use core::fmt::Debug;

    /// Checks that the setter `set` does what [`Params::set`] does for `name`, with a value other
    /// than the default.
    pub(crate) fn check_setter<P: Params + Debug + PartialEq, T: Value>(
        name: &str,
        range: Option<(T, T)>,
        set: impl FnOnce(Builder<(), P>, T) -> Builder<(), P>,
    ) {
        let start = P::default();
        let row = start.table().into_iter().find(|row| row.name == name).unwrap();
        let bounds = range.iter().flat_map(|(lo, hi)| [lo.write(), hi.write()]);
        let words =
            row.kind.split('|').chain(["true", "false", "1ms", "0x1/0x1", "18"]).map(String::from);
        let (text, expected) = bounds
            .chain(words)
            .find_map(|text| {
                let mut params = start.clone();
                params.set(name, Setting::Text(&text)).ok()?;
                (params != start).then_some((text, params))
            })
            .unwrap_or_else(|| panic!("{name} has no value besides its default"));
        let value = T::read(Setting::Text(&text)).unwrap();
        assert_eq!(set(Builder::of(start), value).params, expected, "setter {name}");
    }
}
