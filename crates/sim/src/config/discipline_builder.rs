//! Disciplines of the links of a run.

use super::links::LinkConfig;
use sojourn_aqm::Served;
use sojourn_aqm::params::ParamRow;
use sojourn_aqm::units::Rate;
use std::collections::BTreeMap;

/// Builder of the disciplines of a run. Links with the same rate and parameters have copies of one
/// discipline, since to parse the parameters takes longer.
#[derive(Default)]
pub(crate) struct DisciplineBuilder {
    built: BTreeMap<(&'static str, *const ParamRow, Rate), Box<dyn Served + Send>>,
}

impl DisciplineBuilder {
    /// Builds the discipline of a link.
    pub(crate) fn build(&mut self, link: &LinkConfig) -> Box<dyn Served + Send> {
        if link.entry.is_external() {
            return link.build().qdisc;
        }
        let key = (link.qdisc, link.params.as_ptr(), link.rate());
        self.built.entry(key).or_insert_with(|| link.build().qdisc).clone()
    }
}
