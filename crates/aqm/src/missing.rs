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

/// Disciplines of Linux, of RFCs and of papers that are not in the registry.
pub static DISCIPLINES: &[Missing] = &[
    Missing {
        names: &["cbq"],
        about: "a tree of classes with weights and estimated rates",
        planned: false,
        why: "htb serves the same purpose, and Linux has removed it",
        instead: "htb",
    },
    Missing {
        names: &["dsmark"],
        about: "a qdisc that sets the DSCP of the packets of a class",
        planned: false,
        why: "Linux has removed it, and a link here changes no DSCP",
        instead: "dscp of the flows",
    },
    Missing {
        names: &["netem"],
        about: "tc's emulated delay, loss, reordering, duplication and corruption",
        planned: false,
        why: "they are properties of a link, which has them behind its queue",
        instead: "the keys delay, jitter, loss, reorder, duplicate, corrupt and slot of a link",
    },
    Missing {
        names: &["mqprio"],
        about: "transmit queues of an interface for each class of traffic",
        planned: false,
        why: "the device serves them, each device in its own way",
        instead: "mq or multiq (in turn), or prio (in strict order)",
    },
    Missing {
        names: &["taprio", "etf"],
        about: "time-aware shapers of time-sensitive networks",
        planned: false,
        why: "they need a clock that all senders share",
        instead: "prio, with a trace of rates on the link for its time slots",
    },
    Missing {
        names: &["smvs"],
        about: "AQM by sliding mode, variable structure control (Ren and others)",
        planned: false,
        why: "only abstracts of its papers were available, without the control rule",
        instead: "pi, with which its authors compare it",
    },
    Missing {
        names: &["threshold_policy"],
        about: "the threshold policy for small buffers (Patil and Raina)",
        planned: false,
        why: "only the abstract of its paper was available, without the rule",
        instead: "droptail with a small limit",
    },
    Missing {
        names: &["kim_yoon_yeom"],
        about: "AQM for fair flows (Kim, Yoon and Yeom)",
        planned: false,
        why: "only the first page of its paper was available",
        instead: "afd or ewfq",
    },
    Missing {
        names: &["load_based_aqm", "load_based"],
        about: "AQM by the load (in a survey by Ramkrishna and others)",
        planned: false,
        why: "it is a class of algorithms, not one",
        instead: "avq, whose virtual queue follows the load",
    },
    Missing {
        names: &["trimming", "cut_payload"],
        about: "queues that cut the payload of a packet in place of a drop",
        planned: false,
        why: "no sender here reacts to the header of a trimmed packet",
        instead: "step_mark with dctcp, or hpcc, whose queues stay short",
    },
    Missing {
        names: &["pfabric"],
        about: "the shortest remaining flow first",
        planned: false,
        why: "packets do not carry the remaining size of their flow",
        instead: "prio with a class for short flows",
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
        let error = registry::find("TAPRIO").unwrap_err().to_string();
        assert!(error.starts_with("\"TAPRIO\" (time-aware shapers "), "{error}");
        assert!(error.contains(") is not available; use prio, "), "{error}");
        let never = registry::find("netem").unwrap_err().to_string();
        assert!(never.contains("is not available; use the keys delay"), "{never}");
    }
}
