//! Families of disciplines, which are features of the crate.

use crate::error::{Error, ErrorKind};
use alloc::format;
use alloc::vec::Vec;

/// A discipline, and the features without which a build lacks it.
type Needs = (&'static str, &'static [&'static str]);

/// Disciplines by family. Tail drop has none.
const FAMILIES: &[Needs] = &[
    ("afd", &["afd"]),
    ("af_qcn", &["afd"]),
    ("blue", &["blue"]),
    ("sfb", &["blue"]),
    ("cake", &["cake"]),
    ("cbs", &["classful"]),
    ("ets", &["classful"]),
    ("hfsc", &["classful"]),
    ("htb", &["classful"]),
    ("mq", &["classful"]),
    ("multiq", &["classful"]),
    ("police", &["classful"]),
    ("prio", &["classful"]),
    ("qfq", &["classful"]),
    ("skbprio", &["classful"]),
    ("tbf", &["classful"]),
    ("codel", &["codel"]),
    ("cobalt", &["codel"]),
    ("drr", &["fair"]),
    ("ewfq", &["fair"]),
    ("fq", &["fair"]),
    ("hhf", &["fair"]),
    ("pfifo_fast", &["fair"]),
    ("scfq", &["fair"]),
    ("sfq", &["fair"]),
    ("stfq", &["fair"]),
    ("wf2q", &["fair"]),
    ("wfq", &["fair"]),
    ("drr_codel", &["fair", "codel"]),
    ("fq_codel", &["fair", "codel"]),
    ("wfq_codel", &["fair", "codel"]),
    ("fq_pie", &["fair", "pi"]),
    ("fq_red", &["fair", "red"]),
    ("wfq_red", &["fair", "red"]),
    ("curvy_red", &["l4s"]),
    ("dualpi2", &["l4s"]),
    ("api", &["pi"]),
    ("avq", &["pi"]),
    ("pi", &["pi"]),
    ("pi2", &["pi"]),
    ("pie", &["pi"]),
    ("rem", &["pi"]),
    ("ared", &["red"]),
    ("choke", &["red"]),
    ("feng_red", &["red"]),
    ("fred", &["red"]),
    ("gred", &["red"]),
    ("hred", &["red"]),
    ("red", &["red"]),
    ("red_opt", &["red"]),
    ("rio", &["red"]),
    ("sa_red", &["red"]),
    ("sred", &["red"]),
    ("step_mark", &["red"]),
    ("xcp", &["xcp"]),
];

/// Returns the error for the discipline `name` if this build lacks it for want of a feature.
pub(super) fn left_out(name: &str) -> Option<Error> {
    let (_, features) = FAMILIES.iter().find(|(known, _)| *known == name)?;
    let features: Vec<_> = features.iter().map(|feature| format!("{feature:?}")).collect();
    let features = features.join(" and ");
    let text =
        format!("{name:?} is not in this build of sojourn-aqm: enable its features {features}");
    Some(Error::new(text).of_kind(ErrorKind::Unavailable))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::REGISTRY;
    use alloc::collections::BTreeSet;
    use alloc::string::ToString;

    #[test]
    fn every_discipline_but_tail_drop_has_a_family() {
        let known: BTreeSet<_> = FAMILIES.iter().map(|(name, _)| *name).collect();
        let all = REGISTRY.iter().map(|entry| entry.name).filter(|name| *name != "droptail");
        assert_eq!(known, all.collect());
        assert_eq!(known.len(), FAMILIES.len(), "a name is listed twice");
    }

    #[test]
    fn the_refusal_names_the_features() {
        let error = left_out("fq_pie").unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().ends_with("enable its features \"fair\" and \"pi\""), "{error}");
        assert_eq!(left_out("droptail"), None);
    }
}
