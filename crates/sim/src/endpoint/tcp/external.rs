//! TCPs whose congestion control is not in the registry.

use super::params::{self, TcpParams};
use crate::endpoint::cc::{ControlParams, FindExternalControl};
use crate::endpoint::common_params::CommonParams;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Params, Setting, answers};

/// Create the parameters of the named TCP with these settings; resolves every `auto`. The names
/// `linux_bbr`, `linux_cubic`, `linux_dctcp` and `linux_reno` stand for a TCP with the settings of
/// Linux's stack: time stamps, a minimum timeout of 200 ms, RACK and PRR; for the slope of RFC 8312
/// in CUBIC, and for bursts in BBR. `settings` come after these.
///
/// # Errors
/// If the name or a parameter is unknown, a value is out of range, or two values contradict each
/// other.
pub fn parse<'a>(
    name: &str,
    settings: impl IntoIterator<Item = (&'a str, Setting<'a>)>,
) -> Result<TcpParams> {
    parse_with(None, name, settings)
}

/// As [`parse`], after looking up the name with `find`.
///
/// # Errors
/// As [`parse`].
pub fn parse_with<'a>(
    find: Option<FindExternalControl>,
    name: &str,
    settings: impl IntoIterator<Item = (&'a str, Setting<'a>)>,
) -> Result<TcpParams> {
    let settings: Vec<_> = settings.into_iter().collect();
    let elsewhere = find.and_then(|find| parse_external(find, name, &settings));
    elsewhere.unwrap_or_else(|| params::parse(name, settings))
}

/// Read a TCP whose congestion control is not in the registry; `None` if there is none of the name.
fn parse_external(
    find: FindExternalControl,
    name: &str,
    settings: &[(&str, Setting<'_>)],
) -> Option<Result<TcpParams>> {
    let mut chosen = CommonParams::default();
    let shared = chosen.table();
    let is_shared = |key: &str| shared.iter().any(|row| answers(row, key));
    let (common, own): (Vec<_>, Vec<_>) = settings.iter().partition(|(key, _)| is_shared(key));
    let found = find(name, &own)?;
    Some(found.and_then(|control| {
        if let Some(row) = control.rows.iter().find(|row| is_shared(row.name)) {
            let text = "every TCP has a parameter of this name; choose another one";
            return Err(Error::new(text).at(row.name));
        }
        common.into_iter().try_for_each(|(key, value)| chosen.set(key, value))?;
        chosen.check()?;
        chosen.resolve()?;
        let (name, recovery) = (control.name, control.recovery);
        let control = ControlParams::External(control);
        TcpParams { name, recovery, control, settings: chosen }.validate()
    }))
}
