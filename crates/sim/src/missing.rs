//! TCPs and traffic sources that users ask for but that are not implemented; see
//! [`sojourn_aqm::missing`].

use sojourn_aqm::missing::Missing;

/// Congestion controls and transports that are not in [`crate::endpoint::tcp::TCPS`].
pub static SENDERS: &[Missing] = &[
    Missing {
        names: &["prague"],
        about: "TCP Prague, the L4S sender",
        planned: true,
        why: "it needs accurate ECN feedback and ECT(1), which the TCP here lacks",
        instead: "dctcp, from which it is derived",
    },
    Missing {
        names: &["bbr3", "bbrv3", "bbr2", "bbrv2"],
        about: "the second and third version of BBR",
        planned: true,
        why: "only version 1 is implemented",
        instead: "bbr, which is version 1",
    },
    Missing {
        names: &["ledbat", "ledbat++", "ledbat_plus_plus", "lp"],
        about: "background transfers that yield to everything else",
        planned: true,
        why: "no sender here aims below an equal share",
        instead: "vegas, which also backs off as delay grows but competes for an equal share",
    },
    Missing {
        names: &[
            "westwood",
            "veno",
            "illinois",
            "htcp",
            "hybla",
            "bic",
            "scalable",
            "highspeed",
            "yeah",
            "nv",
            "cdg",
        ],
        about: "one of Linux's less used congestion controls",
        planned: false,
        why: "few hosts use them",
        instead: "cubic (Linux's default), newreno, sack, compound or vegas",
    },
    Missing {
        names: &["quic"],
        about: "the QUIC transport: streams, connection IDs, encryption",
        planned: false,
        why: "in the queue it differs little from TCP with the same congestion control",
        instead: "cubic, sack or bbr with rack = true and pacing = true",
    },
    Missing {
        names: &["mptcp", "mpquic", "multipath"],
        about: "one connection over several paths",
        planned: false,
        why: "a flow has one path",
        instead: "one flow per path, each with its own congestion control",
    },
    Missing {
        names: &["sctp", "dccp"],
        about: "transports other than TCP and UDP",
        planned: false,
        why: "few hosts use them",
        instead: "sack or newreno",
    },
];

/// Traffic sources that are not in [`crate::traffic::source::SOURCES`].
pub static SOURCES: &[Missing] = &[
    Missing {
        names: &["video", "dash", "abr", "streaming"],
        about: "streamed video that adapts its rate",
        planned: true,
        why: "sources do not see how fast their data arrives",
        instead: "transfers, with the size of a segment and the gap between two",
    },
    Missing {
        names: &["webrtc", "gcc", "scream", "nada", "rmcat"],
        about: "a video call that adapts its rate",
        planned: true,
        why: "UDP sources get no feedback",
        instead: "cbr at the rate of the call",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::tcp;
    use crate::traffic::source;

    #[test]
    fn no_name_is_both_implemented_and_missing() {
        let tcps = tcp::TCPS.iter().flat_map(|e| e.aliases.iter().chain([&e.name]));
        let there: Vec<&str> = tcps.copied().collect();
        for name in SENDERS.iter().flat_map(|m| m.names) {
            assert!(!there.contains(name), "{name} exists: remove it here");
        }
        for name in SOURCES.iter().flat_map(|m| m.names) {
            let there = source::SOURCES.iter().any(|e| e.name == *name);
            assert!(!there, "{name} exists: remove it here");
        }
    }

    #[test]
    fn error_for_a_missing_name_suggests_an_alternative() {
        let refusal = |flow: &str| {
            let text = format!(
                r#"{{"duration": "1s", "links": {{"up": {{"rate": "1mbit"}}}},
                "flows": [{{"name": "f", "path": ["up"], {flow}}}]}}"#
            );
            crate::Scenario::from_json(&text).unwrap_err().to_string()
        };
        let prague = refusal(r#""tcp": "Prague""#);
        assert!(prague.starts_with("flows.f.tcp.name: \"Prague\" (TCP Prague"), "{prague}");
        assert!(prague.ends_with("is not available yet; use dctcp, from which it is derived"));
        let video = refusal(r#""source": {"name": "video"}"#);
        assert!(video.starts_with("flows.f.source.name: \"video\" (streamed video"), "{video}");
    }
}
