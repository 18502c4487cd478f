//! TCPs whose congestion control is not in the registry.

use super::params::TcpParams;
use crate::endpoint::cc::{ControlParams, find_external};
use crate::endpoint::common_params::CommonParams;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Params, Setting, answers};

/// Read a TCP whose congestion control is not in the registry; `None` if there is none of the name.
pub(super) fn parse_external(
    name: &str,
    settings: &[(&str, Setting<'_>)],
) -> Option<Result<TcpParams>> {
    let mut chosen = CommonParams::default();
    let shared = chosen.table();
    let is_shared = |key: &str| shared.iter().any(|row| answers(row, key));
    let (common, own): (Vec<_>, Vec<_>) = settings.iter().partition(|(key, _)| is_shared(key));
    let found = find_external(name, &own)?;
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
