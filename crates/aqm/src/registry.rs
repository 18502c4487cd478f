//! Registry of all disciplines, by name.
//!
//! The entry of a discipline is in the file of its algorithm.

#[cfg(any(test, not(feature = "full")))]
mod families;
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
    #[cfg(feature = "red")]
    aqm::red::ENTRY,
    #[cfg(feature = "red")]
    aqm::ared::ENTRY,
    #[cfg(feature = "red")]
    aqm::feng_red::ENTRY,
    #[cfg(feature = "red")]
    aqm::red_opt::ENTRY,
    #[cfg(feature = "red")]
    aqm::sa_red::ENTRY,
    #[cfg(feature = "red")]
    aqm::rio::ENTRY,
    #[cfg(feature = "red")]
    sched::gred::ENTRY,
    #[cfg(feature = "red")]
    aqm::hred::ENTRY,
    #[cfg(feature = "blue")]
    aqm::blue::ENTRY,
    #[cfg(feature = "pi")]
    aqm::pi::ENTRY,
    #[cfg(feature = "pi")]
    aqm::api::ENTRY,
    #[cfg(feature = "pi")]
    aqm::rem::ENTRY,
    #[cfg(feature = "pi")]
    aqm::avq::ENTRY,
    #[cfg(feature = "codel")]
    aqm::codel::ENTRY,
    #[cfg(feature = "red")]
    aqm::choke::ENTRY,
    #[cfg(feature = "codel")]
    aqm::cobalt::ENTRY,
    #[cfg(feature = "red")]
    aqm::fred::ENTRY,
    #[cfg(feature = "blue")]
    aqm::sfb::ENTRY,
    #[cfg(feature = "red")]
    aqm::sred::ENTRY,
    #[cfg(feature = "afd")]
    aqm::afd::ENTRY,
    #[cfg(feature = "afd")]
    aqm::af_qcn::ENTRY,
    #[cfg(feature = "pi")]
    aqm::pie::ENTRY,
    #[cfg(feature = "pi")]
    aqm::pi2::ENTRY,
    #[cfg(feature = "classful")]
    aqm::police::ENTRY,
    #[cfg(feature = "red")]
    aqm::step_mark::ENTRY,
    #[cfg(feature = "xcp")]
    aqm::xcp::ENTRY,
    #[cfg(feature = "l4s")]
    sched::dualpi2::ENTRY,
    #[cfg(feature = "l4s")]
    sched::curvy_red::ENTRY,
    #[cfg(feature = "fair")]
    sched::drr::ENTRY,
    #[cfg(feature = "fair")]
    sched::wfq::ENTRY,
    #[cfg(feature = "fair")]
    sched::wf2q::ENTRY,
    #[cfg(feature = "fair")]
    sched::scfq::ENTRY,
    #[cfg(feature = "fair")]
    sched::stfq::ENTRY,
    #[cfg(feature = "classful")]
    sched::prio::ENTRY,
    #[cfg(feature = "fair")]
    sched::pfifo_fast::ENTRY,
    #[cfg(feature = "classful")]
    sched::ets::ENTRY,
    #[cfg(feature = "classful")]
    sched::qfq::ENTRY,
    #[cfg(feature = "classful")]
    sched::multiq::ENTRY,
    #[cfg(feature = "classful")]
    sched::mq::ENTRY,
    #[cfg(feature = "classful")]
    sched::skbprio::ENTRY,
    #[cfg(feature = "classful")]
    sched::tbf::ENTRY,
    #[cfg(feature = "classful")]
    sched::cbs::ENTRY,
    #[cfg(feature = "classful")]
    sched::htb::ENTRY,
    #[cfg(feature = "classful")]
    sched::hfsc::ENTRY,
    #[cfg(feature = "fair")]
    sched::hhf::ENTRY,
    #[cfg(feature = "fair")]
    sched::fq_paced::ENTRY,
    #[cfg(all(feature = "fair", feature = "codel"))]
    sched::drr::DRR_CODEL,
    #[cfg(all(feature = "fair", feature = "codel"))]
    sched::wfq::WFQ_CODEL,
    #[cfg(all(feature = "fair", feature = "red"))]
    sched::wfq::WFQ_RED,
    #[cfg(all(feature = "fair", feature = "red"))]
    sched::fq::FQ_RED,
    #[cfg(feature = "fair")]
    sched::ewfq::ENTRY,
    #[cfg(feature = "fair")]
    sched::sfq::ENTRY,
    #[cfg(all(feature = "fair", feature = "codel"))]
    sched::fq::FQ_CODEL,
    #[cfg(feature = "cake")]
    sched::cake::ENTRY,
    #[cfg(all(feature = "fair", feature = "pi"))]
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
        #[cfg(not(feature = "full"))]
        if let Some(error) = families::left_out(&folded) {
            return error;
        }
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
