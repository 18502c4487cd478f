//! Disciplines whose parameters are known only at run time, such as those of another language.

use super::{Built, QdiscEntry};
use crate::build::Env;
use crate::error::Result;
use crate::params::Setting;
use core::fmt;

/// A discipline that is built from settings by its own rules. [`QdiscEntry::external`] gives it a
/// name.
///
/// Build a [`SingleQueue`](crate::aqm::SingleQueue) with
/// [`SingleQueue::of`](crate::aqm::SingleQueue::of) around any [`Aqm`](crate::aqm::Aqm), or any
/// other [`Qdisc`](crate::Qdisc).
pub trait External: fmt::Debug + Sync {
    /// Builds the discipline for a link; [`Built::params`] has every parameter with its value.
    ///
    /// # Errors
    /// An unknown parameter, an invalid value, or values that contradict each other.
    fn build(&self, settings: &[(&str, Setting<'_>)], env: &Env) -> Result<Built>;

    /// Checks `settings` one by one, without a link.
    ///
    /// # Errors
    /// An unknown parameter, or an invalid value.
    fn check(&self, settings: &[(&str, Setting<'_>)]) -> Result<()>;
}

/// Looks up a discipline that no entry of a registry has; `None` if the name is not of its kind.
/// See [`Registry::with_external`](super::Registry::with_external).
pub type FindExternal = fn(&str) -> Option<Result<&'static QdiscEntry>>;
