//! Entry of a discipline in the registry: its name, its description, and how it is built.

use crate::build::{Build, Env};
use crate::error::Result;
use crate::link::Served;
use crate::params::field::described;
use crate::params::{Checked, ParamRow, Params, Setting};
use crate::units::Rate;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::TypeId;
use core::fmt;

/// A discipline that is built from settings by its own rules. [`QdiscEntry::external`] gives it a
/// name.
///
/// An [`Aqm`](crate::aqm::Aqm) may have parameters that are known only at run time: its
/// [`Params`] are then a type with a table of them.
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

/// A discipline in the registry.
#[derive(Clone, Copy, Debug)]
pub struct QdiscEntry {
    /// Canonical name; the name in Linux if it exists there.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// One-line description.
    pub about: &'static str,
    /// Decisions of the discipline: when it makes them, and from which quantities.
    pub decides: &'static str,
    /// Paper or RFC that defines it.
    pub source: &'static str,
    /// Parameters with other defaults than the type has.
    pub preset: &'static [(&'static str, &'static str)],
    kind: Kind,
}

/// Way to build the discipline of an entry.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// From the parameters of a type.
    Typed { make: Make, table: Table, type_id: fn() -> TypeId },
    /// By its own rules.
    External(&'static dyn External),
}

type Table = fn(&QdiscEntry, &[(&str, Setting<'_>)]) -> Result<Vec<ParamRow>>;

type Make = fn(&QdiscEntry, &[(&str, Setting<'_>)], &Env, Set) -> Result<Built>;

/// Mode of setting parameters.
#[derive(Clone, Copy, PartialEq)]
enum Set {
    /// Check each value when it is set.
    Text,
    /// As assigned to the fields.
    Assigned,
}

/// A discipline and the parameters from which it was built.
pub struct Built {
    /// The discipline.
    pub qdisc: Box<dyn Served + Send>,
    /// Every parameter with its value.
    pub params: Vec<ParamRow>,
}

impl fmt::Debug for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Built").field("params", &self.params).finish_non_exhaustive()
    }
}

impl QdiscEntry {
    /// Creates an entry for the discipline `Q`, without aliases, `decides` and `source`. Another
    /// crate adds it with [`Registry::with`](crate::registry::Registry::with).
    pub const fn new<Q: Build + Clone + Send>(name: &'static str, about: &'static str) -> QdiscEntry
    where
        Q::Params: Default,
    {
        QdiscEntry {
            name,
            aliases: &[],
            about: described(about),
            decides: "",
            source: "",
            preset: &[],
            kind: Kind::Typed {
                make: make::<Q>,
                table: table::<Q::Params>,
                type_id: TypeId::of::<Q>,
            },
        }
    }

    /// Sets other accepted names.
    #[must_use]
    pub const fn aliases(self, aliases: &'static [&'static str]) -> QdiscEntry {
        QdiscEntry { aliases, ..self }
    }

    /// Sets the decisions of the discipline.
    #[must_use]
    pub const fn decides(self, decides: &'static str) -> QdiscEntry {
        QdiscEntry { decides: described(decides), ..self }
    }

    /// Sets the paper or RFC that defines the discipline.
    #[must_use]
    pub const fn source(self, source: &'static str) -> QdiscEntry {
        QdiscEntry { source: described(source), ..self }
    }

    /// Sets the parameters with other defaults than the type has.
    #[must_use]
    pub const fn preset(self, preset: &'static [(&'static str, &'static str)]) -> QdiscEntry {
        QdiscEntry { preset, ..self }
    }

    /// Creates an entry for a discipline whose parameters are known only at run time.
    pub const fn external(
        name: &'static str,
        about: &'static str,
        external: &'static dyn External,
    ) -> QdiscEntry {
        let kind = Kind::External(external);
        QdiscEntry { name, aliases: &[], about, decides: "", source: "", preset: &[], kind }
    }

    /// True if the discipline is built by the rules of an [`External`].
    pub const fn is_external(&self) -> bool {
        matches!(self.kind, Kind::External(_))
    }

    /// Returns the parameters with their defaults; empty if an [`External`] refuses its defaults.
    pub fn params(&self) -> Vec<ParamRow> {
        self.with_defaults().map(|built| built.params).unwrap_or_default()
    }

    /// Returns the size of the state in bytes with default parameters, without packets; 0 if an
    /// [`External`] refuses its defaults.
    pub fn state_bytes(&self) -> usize {
        self.with_defaults().map_or(0, |built| built.qdisc.state_bytes())
    }

    fn with_defaults(&self) -> Option<Built> {
        let built = self.build(&[], &Env::new(Rate(1_000_000)));
        match self.kind {
            Kind::Typed { .. } => Some(built.expect("defaults are valid")),
            Kind::External(_) => built.ok(),
        }
    }

    /// Builds the discipline with `settings` for a link.
    ///
    /// # Errors
    /// An unknown parameter, an invalid value, values that contradict each other, or a rate of 0.
    pub fn build(&self, settings: &[(&str, Setting<'_>)], env: &Env) -> Result<Built> {
        match self.kind {
            Kind::Typed { make, .. } => make(self, settings, env, Set::Text),
            Kind::External(external) => {
                env.check()?;
                external.build(settings, env)
            }
        }
    }

    /// Type of the discipline; `None` for an [`External`].
    pub(crate) fn type_id(&self) -> Option<TypeId> {
        match self.kind {
            Kind::Typed { type_id, .. } => Some(type_id()),
            Kind::External(_) => None,
        }
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Checks `settings` one by one, without a link.
    ///
    /// # Errors
    /// An unknown parameter, or an invalid value.
    pub fn check(&self, settings: &[(&str, Setting<'_>)]) -> Result<()> {
        match self.kind {
            Kind::Typed { table, .. } => table(self, settings).map(drop),
            Kind::External(external) => external.check(settings),
        }
    }

    /// Returns every parameter with its value under `settings`, which are checked one by one; none
    /// for an [`External`].
    ///
    /// # Errors
    /// As [`QdiscEntry::check`].
    pub(crate) fn table(&self, settings: &[(&str, Setting<'_>)]) -> Result<Vec<ParamRow>> {
        match self.kind {
            Kind::Typed { table, .. } => table(self, settings),
            Kind::External(external) => external.check(settings).map(|()| Vec::new()),
        }
    }

    /// Builds it from typed parameters whose fields were assigned these values, unchecked until
    /// then. For tests: both ways must refuse the same.
    ///
    /// # Errors
    /// As [`QdiscEntry::build`].
    #[doc(hidden)]
    pub fn build_assigned(&self, settings: &[(&str, Setting<'_>)], env: &Env) -> Result<Built> {
        match self.kind {
            Kind::Typed { make, .. } => make(self, settings, env, Set::Assigned),
            Kind::External(external) => external.build(settings, env),
        }
    }
}

fn make<Q: Build<Params: Default> + Clone + Send>(
    entry: &QdiscEntry,
    settings: &[(&str, Setting<'_>)],
    env: &Env,
    mode: Set,
) -> Result<Built> {
    let mut params = Q::Params::default();
    prepare(entry, settings, env, mode, &mut params)?;
    let qdisc = Box::new(Q::new(Checked::proven(&params), env)?);
    Ok(Built { qdisc, params: params.table() })
}

/// Sets the parameters and makes the checks of [`Build::build`]. Not inlined: compiled once for all
/// types.
#[inline(never)]
fn prepare(
    entry: &QdiscEntry,
    settings: &[(&str, Setting<'_>)],
    env: &Env,
    mode: Set,
    params: &mut dyn Params,
) -> Result<()> {
    apply(entry, settings, mode, params)?;
    env.check()?;
    params.check()
}

fn table<P: Params + Default>(
    entry: &QdiscEntry,
    settings: &[(&str, Setting<'_>)],
) -> Result<Vec<ParamRow>> {
    applied(entry, settings, &mut P::default())
}

/// Sets the parameters, whose present values are defaults, and returns every parameter. Not
/// inlined: compiled once for all types.
#[inline(never)]
fn applied(
    entry: &QdiscEntry,
    settings: &[(&str, Setting<'_>)],
    params: &mut dyn Params,
) -> Result<Vec<ParamRow>> {
    apply(entry, settings, Set::Text, params)?;
    Ok(params.table())
}

/// Applies the preset of `entry` and then `settings`. Not inlined: compiled once for all types.
#[inline(never)]
fn apply(
    entry: &QdiscEntry,
    settings: &[(&str, Setting<'_>)],
    mode: Set,
    params: &mut dyn Params,
) -> Result<()> {
    for (name, value) in entry.preset {
        params.set(name, Setting::Text(value)).expect("presets are valid");
    }
    let checks = mode == Set::Text;
    settings.iter().try_for_each(|(name, value)| params.assign(name, *value, checks))
}
