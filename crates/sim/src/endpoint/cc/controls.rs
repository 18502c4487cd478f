//! Registry of congestion controls: type of an entry, and the macro that declares the list.

use super::ControlParams;
use crate::endpoint::common_params::{LossRecovery, Profile};
use sojourn_aqm::params::field::described;

/// TCP of the registry.
#[derive(Clone, Copy, Debug)]
pub struct TcpEntry {
    /// Canonical name.
    pub name: &'static str,
    /// Aliases.
    pub aliases: &'static [&'static str],
    /// One-line description.
    pub about: &'static str,
    /// Source: RFC, paper or ns-2 agent.
    pub source: &'static str,
    /// Profile of the name without further settings.
    pub profile: Profile,
    /// Loss recovery algorithm, except in the profile `linux`, where it is SACK.
    pub recovery: LossRecovery,
    /// Congestion control with its defaults in the profiles `rfc` and `ns2`.
    pub control: fn() -> ControlParams,
}

/// Returns the entries sorted by name, without their descriptions if the module has none.
pub(super) const fn sorted<const N: usize>(mut entries: [TcpEntry; N]) -> [TcpEntry; N] {
    let mut end = 0;
    while end < N {
        entries[end].about = described(entries[end].about);
        entries[end].source = described(entries[end].source);
        let mut i = end;
        while i > 0 && is_less(entries[i].name.as_bytes(), entries[i - 1].name.as_bytes()) {
            (entries[i - 1], entries[i]) = (entries[i], entries[i - 1]);
            i -= 1;
        }
        end += 1;
    }
    entries
}

/// True if `a` comes before `b` in the order of bytes.
const fn is_less(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() {
        if a[i] != b[i] {
            return a[i] < b[i];
        }
        i += 1;
    }
    a.len() < b.len()
}

/// Declares the list of controls. A line has the module with the type of the control and the type
/// of its parameters, the type that a sender uses, and the entries of the module:
/// `reno::{Reno, RenoParams}: Reno, [TCP, SACK];`.
///
/// It defines [`ControlParams`], `ControlAlgorithm`, `TCPS` and the macro `dispatch_to!`, and
/// exports the types of every line. The dollar sign in the first line is for `dispatch_to!`.
macro_rules! controls {
    (
        ($d:tt)
        $($module:ident::{$name:ident, $params:ident}: $control:ty, [$($entry:ident),*];)*
    ) => {
        $(pub(crate) use $module::{$name, $params};)*

        /// Parameters of the controls, for the module `tcp` of the crate.
        pub(crate) mod params {
            $(pub use super::$module::$params;)*
        }

        /// Selected congestion control with its parameters.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum ControlParams {
            $(#[doc = concat!("[`", stringify!($params), "`].")] $name($params),)*
        }

        impl ControlParams {
            /// Sets a parameter of the control.
            ///
            /// # Errors
            /// As [`Params::set`].
            pub fn set(&mut self, name: &str, value: Setting<'_>) -> Result<()> {
                match self { $(ControlParams::$name(p) => p.set(name, value),)* }
            }

            /// True if the control has a parameter of that name or alias.
            pub(crate) fn knows(&self, name: &str) -> bool {
                match self { $(ControlParams::$name(p) => p.knows(name),)* }
            }

            /// Checks the range of every parameter of the control.
            ///
            /// # Errors
            /// As [`Params::check`].
            pub fn check(&self) -> Result<()> {
                match self { $(ControlParams::$name(p) => p.check(),)* }
            }

            /// Sets a parameter without a check, as [`Params::assign`] does.
            #[cfg(test)]
            pub(crate) fn assign(&mut self, name: &str, value: Setting<'_>) -> Result<()> {
                match self { $(ControlParams::$name(p) => p.assign(name, value, false),)* }
            }

            /// Parameters of the control.
            pub fn table(&self) -> ParamRows {
                match self { $(ControlParams::$name(p) => p.table(),)* }
            }
        }

        /// Congestion control algorithm.
        #[derive(Clone, Debug, sojourn_aqm::Snapshot)]
        pub enum ControlAlgorithm {
            $(#[doc = concat!("`", stringify!($name), "`.")] $name($control),)*
        }

        impl ControlAlgorithm {
            /// Creates the selected control, as [`CongestionControl::new`].
            fn new(
                params: &ControlParams,
                common: &CommonParams,
                rng: &mut dyn Random,
            ) -> ControlAlgorithm {
                match params {
                    $(ControlParams::$name(own) => {
                        ControlAlgorithm::$name(CongestionControl::new(own, common, rng))
                    })*
                }
            }
        }

        /// All TCPs, sorted by name.
        pub const TCPS: &[TcpEntry] = &controls::sorted([$($($module::$entry,)*)*]);

        /// Static dispatch of a call to the active control.
        macro_rules! dispatch_to {
            ($d algorithm:expr, $d c:ident => $d call:expr) => {
                match $d algorithm { $(ControlAlgorithm::$name($d c) => $d call,)* }
            };
        }
        use dispatch_to;
    };
}
pub(super) use controls;

#[cfg(test)]
mod tests {
    use super::super::TCPS;
    use super::*;

    #[test]
    fn entries_are_sorted_by_name() {
        assert!(TCPS.is_sorted_by(|a, b| a.name < b.name), "a name is in the list once");
        for (a, b) in [("bbr", "bbr3"), ("ledbat", "nv"), ("sack", "scalable")] {
            assert!(is_less(a.as_bytes(), b.as_bytes()) && !is_less(b.as_bytes(), a.as_bytes()));
        }
    }
}
