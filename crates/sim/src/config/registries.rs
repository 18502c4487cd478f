//! Disciplines, congestion controls and traffic sources that scenarios can name.

use crate::endpoint::cc::FindExternalControl;
use crate::traffic::external::FindExternalSource;
use sojourn_aqm::registry::Registry;

/// Disciplines, congestion controls and traffic sources that can be named in a scenario: the
/// standard ones of the crates, and others.
///
/// A [`Registry`] converts to it, for other disciplines only.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Registries {
    /// Disciplines.
    pub qdiscs: Registry,
    /// Looks up every congestion control first.
    pub controls: Option<FindExternalControl>,
    /// Looks up every traffic source first.
    pub sources: Option<FindExternalSource>,
}

impl Registries {
    /// Returns the standard ones of the crates.
    pub fn standard() -> Registries {
        Registries::default()
    }

    /// Looks up every name of a congestion control with `find` first.
    #[must_use]
    pub fn with_controls(self, find: FindExternalControl) -> Registries {
        Registries { controls: Some(find), ..self }
    }

    /// Looks up every name of a traffic source with `find` first.
    #[must_use]
    pub fn with_sources(self, find: FindExternalSource) -> Registries {
        Registries { sources: Some(find), ..self }
    }
}

impl From<Registry> for Registries {
    fn from(qdiscs: Registry) -> Registries {
        Registries { qdiscs, ..Registries::default() }
    }
}
