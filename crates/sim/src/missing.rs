//! TCPs and traffic sources that users ask for but that are not implemented; see
//! [`sojourn_aqm::missing`].

use sojourn_aqm::missing::Missing;

/// Congestion controls and transports that are not in [`crate::endpoint::tcp::TCPS`].
pub(crate) static SENDERS: &[Missing] = &[
    Missing {
        names: &["bbr2", "bbrv2"],
        about: "the second version of BBR",
        planned: false,
        why: "version 3 has replaced it",
        instead: "bbr3, or bbr, which is version 1",
    },
    Missing {
        names: &["lp"],
        about: "TCP-LP, background transfers that yield to everything else",
        planned: false,
        why: "Linux's version measures delays with an error that decides its rate",
        instead: "ledbat or ledbatpp",
    },
    Missing {
        names: &["quic"],
        about: "QUIC as a name of its own: streams, connection IDs, encryption",
        planned: false,
        why: "a queue sees acks, loss detection and pacing alone, and these are a profile",
        instead: "newreno, cubic or bbr with profile = \"quic\"",
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
    Missing {
        names: &["d2tcp"],
        about: "DCTCP whose flows yield by their deadlines",
        planned: false,
        why: "flows have no deadlines",
        instead: "dctcp",
    },
    Missing {
        names: &["d3"],
        about: "rates for deadlines, which hosts request and routers grant",
        planned: false,
        why: "flows have no deadlines",
        instead: "xcp, in which routers set the rates",
    },
    Missing {
        names: &["l2dct"],
        about: "DCTCP whose flows yield as they send more",
        planned: false,
        why: "no reproduced paper measures it",
        instead: "dctcp",
    },
    Missing {
        names: &["ictcp"],
        about: "receivers that limit their windows against incast",
        planned: false,
        why: "a receiver sees one flow, not the load of its interface",
        instead: "dctcp",
    },
    Missing {
        names: &["homa", "ndp", "eqds", "phost", "expresspass"],
        about: "transports whose receivers grant or pull each packet",
        planned: false,
        why: "senders decide when to send, and a receiver sees one flow, not the load of its \
              interface",
        instead: "hpcc or swift, which keep queues short; prio with a class for short flows",
    },
    Missing {
        names: &["nscc", "uec", "uet"],
        about: "the transport of Ultra Ethernet, which sprays packets and hears of trimmed ones",
        planned: false,
        why: "queues do not trim packets, and each of its packets may take another path",
        instead: "swift, which reacts to the delay too, with spread = \"connection\"",
    },
];

/// Traffic sources that are not in [`crate::traffic::source::SOURCES`].
pub(crate) static SOURCES: &[Missing] = &[Missing {
    names: &["scream", "nada"],
    about: "a video call with another congestion control than Google's",
    planned: false,
    why: "browsers use Google's",
    instead: "call",
}];

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
        let quic = refusal(r#""tcp": "QUIC""#);
        assert!(
            quic.starts_with("flows.f.tcp.name: \"QUIC\" (QUIC as a name of its own"),
            "{quic}"
        );
        assert!(quic.ends_with("use newreno, cubic or bbr with profile = \"quic\""));
    }
}
