//! Registry of all disciplines, by name.
//!
//! The entry of a discipline is in the file of its algorithm.

mod open;

pub use crate::entry::{Built, External, QdiscEntry};
pub use open::{FindExternal, Registry};

use crate::build::Env;
use crate::error::{Error, Result};
use crate::missing::{DISCIPLINES, Missing};
use crate::params::Setting;
use crate::units::Rate;
use crate::{aqm, sched};
use alloc::format;

/// All disciplines.
pub static REGISTRY: &[QdiscEntry] = &[
    sched::drop_tail::ENTRY,
    aqm::red::ENTRY,
    aqm::ared::ENTRY,
    aqm::feng_red::ENTRY,
    aqm::red_opt::ENTRY,
    aqm::sa_red::ENTRY,
    aqm::rio::ENTRY,
    sched::gred::ENTRY,
    aqm::hred::ENTRY,
    aqm::blue::ENTRY,
    aqm::pi::ENTRY,
    aqm::api::ENTRY,
    aqm::rem::ENTRY,
    aqm::avq::ENTRY,
    aqm::codel::ENTRY,
    aqm::choke::ENTRY,
    aqm::cobalt::ENTRY,
    aqm::fred::ENTRY,
    aqm::sfb::ENTRY,
    aqm::sred::ENTRY,
    aqm::afd::ENTRY,
    aqm::af_qcn::ENTRY,
    aqm::pie::ENTRY,
    aqm::pi2::ENTRY,
    aqm::police::ENTRY,
    aqm::step_mark::ENTRY,
    aqm::xcp::ENTRY,
    sched::dualpi2::ENTRY,
    sched::curvy_red::ENTRY,
    sched::drr::ENTRY,
    sched::wfq::ENTRY,
    sched::wf2q::ENTRY,
    sched::scfq::ENTRY,
    sched::stfq::ENTRY,
    sched::prio::ENTRY,
    sched::pfifo_fast::ENTRY,
    sched::ets::ENTRY,
    sched::qfq::ENTRY,
    sched::multiq::ENTRY,
    sched::mq::ENTRY,
    sched::skbprio::ENTRY,
    sched::tbf::ENTRY,
    sched::cbs::ENTRY,
    sched::htb::ENTRY,
    sched::hfsc::ENTRY,
    sched::hhf::ENTRY,
    sched::fq_paced::ENTRY,
    sched::drr::DRR_CODEL,
    sched::wfq::WFQ_CODEL,
    sched::wfq::WFQ_RED,
    sched::fq::FQ_RED,
    sched::ewfq::ENTRY,
    sched::sfq::ENTRY,
    sched::fq::FQ_CODEL,
    sched::cake::ENTRY,
    sched::fq::FQ_PIE,
];

/// Returns the entry called `name`, by canonical name or alias. Case is ignored, and dashes equal
/// underscores.
///
/// # Errors
/// An unknown name (the message suggests the nearest), or one that does not exist here (the message
/// names an alternative).
pub fn find(name: &str) -> Result<&'static QdiscEntry> {
    find_in(REGISTRY.iter(), name)
}

fn find_in<'a>(
    mut entries: impl Iterator<Item = &'a QdiscEntry> + Clone,
    name: &str,
) -> Result<&'a QdiscEntry> {
    let folded = name.to_lowercase().replace('-', "_");
    let all = entries.clone();
    entries.find(|e| e.is_called(&folded)).ok_or_else(|| {
        let unknown = || {
            words_of_tc(name, all.clone())
                .unwrap_or_else(|| Error::unknown("discipline", name, all.map(|e| e.name)))
        };
        Missing::find(DISCIPLINES, name).map_or_else(unknown, |missing| missing.error(name))
    })
}

/// First words of commands of tc.
pub(crate) const TC_COMMANDS: &[&str] = &["tc", "/sbin/tc", "/usr/sbin/tc", "sudo", "qdisc"];

/// Second half of the message about a whole command in place of a discipline.
pub(crate) const NOT_A_COMMAND: &str =
    "begins a command: write the part after \"root\", like \"tc: pie limit 1000\"";

/// Creates the error for a name that is written in the words of tc; None for other names.
fn words_of_tc<'a>(name: &str, mut entries: impl Iterator<Item = &'a QdiscEntry>) -> Option<Error> {
    let (first, _) = name.split_once(char::is_whitespace)?;
    if TC_COMMANDS.contains(&first) {
        return Some(Error::new(format!("{name:?} {NOT_A_COMMAND}")));
    }
    entries.find(|entry| entry.is_called(first))?;
    Some(Error::new(format!("{name:?} has words of tc: write \"tc: {name}\"")))
}

/// Builds the discipline called `name` with `settings` for a link of `rate`.
///
/// # Errors
/// An unknown name or parameter, an invalid value, values that contradict each other, or a rate of
/// 0.
pub fn build(name: &str, settings: &[(&str, Setting<'_>)], rate: Rate) -> Result<Built> {
    find(name)?.build(settings, &Env::new(rate))
}

/// Checks the name of a discipline and its `settings` one by one, without a link.
///
/// # Errors
/// An unknown name or parameter, or an invalid value.
pub fn check(name: &str, settings: &[(&str, Setting<'_>)]) -> Result<()> {
    find(name)?.check(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn an_entry_shows_its_parameters_and_the_size_of_its_state() {
        let shown = |name| {
            let entry = find(name).unwrap();
            (
                entry.params().into_iter().map(|row| row.name).collect::<Vec<_>>(),
                entry.state_bytes(),
            )
        };
        let (names, state) = shown("codel");
        assert!(["limit", "target", "interval", "ecn"].iter().all(|name| names.contains(name)));
        assert!(state > 0 && state < shown("fq_codel").1);
    }

    #[test]
    fn settings_are_checked_without_a_link() {
        assert_eq!(check("codel", &[("target", Setting::Text("5ms"))]), Ok(()));
        let message =
            |name, value| check(name, &[("target", Setting::Text(value))]).unwrap_err().to_string();
        assert!(message("codle", "5ms").contains("did you mean \"codel\"?"));
        let own = message("cake bandwidth 20mbit", "5ms");
        assert!(own.ends_with("has words of tc: write \"tc: cake bandwidth 20mbit\""), "{own}");
        let command = message("tc qdisc add dev eth0 root pie", "5ms");
        assert!(command.ends_with("write the part after \"root\", like \"tc: pie limit 1000\""));
        assert!(message("two words", "5ms").starts_with("unknown discipline \"two words\""));
        assert!(message("codel", "banana").starts_with("target: "));
        assert!(message("red", "5ms").starts_with("target: unknown parameter"));
        for entry in REGISTRY {
            assert_eq!(entry.check(&[]), Ok(()), "{}", entry.name);
        }
    }
}
