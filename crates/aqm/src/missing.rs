//! Names that users look for and that do not exist: description, reason, and alternative. Unknown
//! names are looked up here before a spelling correction is suggested.

use crate::error::{Error, ErrorKind};
use alloc::format;

/// A feature that does not exist, with an alternative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Names, the usual one first; lower case, with underscores.
    pub names: &'static [&'static str],
    /// Description, a noun phrase.
    pub about: &'static str,
    /// True if it is planned.
    pub planned: bool,
    /// Reason why it does not exist.
    pub why: &'static str,
    /// Alternative.
    pub instead: &'static str,
}

impl Missing {
    /// Returns the entry of `list` that is called `name`. Case is ignored, and a dash equals an
    /// underscore.
    pub fn find(list: &'static [Missing], name: &str) -> Option<&'static Missing> {
        let folded = name.to_lowercase().replace('-', "_");
        list.iter().find(|m| m.names.contains(&folded.as_str()))
    }

    /// Creates the error for `name`, one of the names of this entry.
    pub fn error(&self, name: &str) -> Error {
        let yet = if self.planned { " yet" } else { "" };
        let Missing { about, instead, .. } = self;
        let text = format!("{name:?} ({about}) is not available{yet}; use {instead}");
        Error::new(text).of_kind(ErrorKind::Unavailable)
    }
}

/// Disciplines and class trees of Linux and of RFCs that are not in the registry.
pub static DISCIPLINES: &[Missing] = &[
    Missing {
        names: &["fq", "sch_fq"],
        about: "tc's fq: a queue per flow that sends packets at their own times",
        planned: true,
        why: "senders pace themselves here",
        instead: "fq_codel, sfq or drr on the link and pacing = true in the tcp of the flows",
    },
    Missing {
        names: &["htb", "hfsc", "cbq", "tbf"],
        about: "a shaper, or a tree of classes with rates of their own",
        planned: true,
        why: "a link has one rate, and of the disciplines only cake has a shaper",
        instead: "the rate of the link or cake as shaper, and drr, wfq or prio by class",
    },
    Missing {
        names: &["ets"],
        about: "strict priority bands followed by weighted ones",
        planned: true,
        why: "prio and drr exist only apart",
        instead: "prio for strict priorities, or drr with by = \"class\" and weights",
    },
    Missing {
        names: &["hhf"],
        about: "the heavy-hitter filter of Linux",
        planned: true,
        why: "other disciplines came first",
        instead: "fq_codel, sfb or afd",
    },
    Missing {
        names: &["pfifo_fast"],
        about: "three priority bands, chosen by the type of service",
        planned: true,
        why: "it differs from prio only in how packets are classified",
        instead: "prio with the class of each flow (0 to 2)",
    },
    Missing {
        names: &["gred", "wred"],
        about: "RED with thresholds per class in one queue",
        planned: false,
        why: "a queue per class does the same and isolates the classes",
        instead: "wfq_red with by = \"class\"",
    },
    Missing {
        names: &["netem"],
        about: "tc's emulated delay, loss, reordering, duplication and corruption",
        planned: false,
        why: "delay and loss are properties of a link; packets are never reordered or duplicated",
        instead: "the keys delay, loss and trace of a link",
    },
    Missing {
        names: &["mq", "mqprio", "multiq"],
        about: "a discipline for each hardware queue of an interface",
        planned: false,
        why: "a link has one transmitter",
        instead: "one link per hardware queue",
    },
    Missing {
        names: &["taprio", "etf", "cbs"],
        about: "time-aware and credit-based shapers of time-sensitive networks",
        planned: false,
        why: "they need a clock that all senders share",
        instead: "prio, with a trace of rates on the link for its time slots",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use alloc::string::ToString;

    #[test]
    fn no_discipline_is_both_registered_and_missing() {
        for missing in DISCIPLINES {
            for name in missing.names {
                let there =
                    registry::REGISTRY.iter().any(|e| e.name == *name || e.aliases.contains(name));
                assert!(!there, "{name} exists: remove it here");
                let text = registry::find(name).unwrap_err().to_string();
                assert!(text.contains("is not available"), "{text}");
            }
        }
    }

    #[test]
    fn the_refusal_says_what_it_is_and_what_to_use() {
        let error = registry::find("HTB").unwrap_err().to_string();
        assert!(error.starts_with("\"HTB\" (a shaper, or a tree "), "{error}");
        assert!(error.contains(") is not available yet; use the rate "), "{error}");
        let never = registry::find("netem").unwrap_err().to_string();
        assert!(never.contains("is not available; use the keys delay"), "{never}");
    }
}
