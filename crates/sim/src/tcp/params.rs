//! What can be chosen about a TCP, its defaults by profile, and the registry of names.

use sojourn_aqm::choice;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params;
use sojourn_aqm::params::{Params, Rows, Setting};
use sojourn_aqm::units::{Bytes, Size, Span};

choice! {
    /// Whose rules a flow follows. Flows of both must not be mixed in one figure: the same name
    /// then stands for two things.
    pub enum Profile {
        /// Byte counting, as RFC 5681, 6582, 6675, 6298, 3042, 3465 and 3168 say.
        Rfc = "rfc",
        /// Packet counting, as the one-way agents of ns-2.35 do it.
        Ns2 = "ns2",
    }
}

/// How a sender gets over a loss; the name of a TCP chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Start over from one packet.
    Tahoe,
    /// Halve, until the first ack of new data.
    Reno,
    /// Halve, until all that was outstanding is acknowledged.
    NewReno,
    /// As NewReno, but the receiver tells what it has.
    Sack,
}

params! {
    /// Parameters of a TCP. `auto` is worked out from the profile by [`parse`].
    pub struct Settings {
        /// Whose rules it follows: the RFCs (in bytes) or ns-2.35's agents (in packets).
        profile: Profile = Profile::Rfc, [], "", [];
        /// Size of a full data packet on the wire, header included.
        packet: Bytes = Bytes(1500), [Bytes(41) => Bytes(65_535)], "", ["mtu"];
        /// Size of the header, which is also that of a SYN and of an ack (a SACK block adds 8 B).
        header: Bytes = Bytes(40), [Bytes(1) => Bytes(1_000)], "", [];
        /// Congestion window at the start; auto: 10p (RFC 6928), in ns2 2p.
        initial_window: Option<Size> = None,
            [Some(Size::Packets(1)) => Some(Size::Packets(1_000_000_000))], "IW", ["iw"];
        /// The receiver's window: the most that may be in flight.
        receive_window: Size = Size::Packets(1_000_000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "rwnd", ["rwnd"];
        /// Slow-start threshold at the start; auto: the receiver's window.
        initial_ssthresh: Option<Size> = None,
            [Some(Size::Packets(1)) => Some(Size::Packets(1_000_000_000_000))],
                "ssthresh", ["ssthresh"];
        /// Shortest retransmission timeout; auto: 1s (RFC 6298), in ns2 200ms.
        rto_min: Option<Span> = None, [Some(Span(1)) => Some(Span::s(60))], "RTO_min", [];
        /// Retransmission timeout before the first measurement; auto: 1s (RFC 6298), in ns2 3s.
        rto_initial: Option<Span> = None, [Some(Span(1)) => Some(Span::s(3600))], "", [];
        /// Longest retransmission timeout, backed off or not.
        rto_max: Span = Span::s(60), [Span(1) => Span::s(3600)], "RTO_max", [];
        /// Clock granularity; auto: 1ms, in ns2 10ms (there all times are whole ticks).
        tick: Option<Span> = None, [Some(Span(1)) => Some(Span::s(1))], "G", ["granularity"];
        /// Whether the receiver acks every second packet only; auto: yes (RFC 5681), in ns2 no.
        delayed_ack: Option<bool> = None, [], "", ["delack"];
        /// Longest time that an ack is delayed; auto: 40ms (as Linux), in ns2 100ms.
        delayed_ack_timeout: Option<Span> = None, [Some(Span(1)) => Some(Span::ms(500))], "", [];
        /// Whether both ends take marks in place of losses (RFC 3168).
        ecn: bool = false, [], "", [];
        /// Whether the first two duplicate acks each let one new packet out (RFC 3042).
        limited_transmit: bool = true, [], "", ["singledup"];
        /// Whether a window of data is cut at most once by duplicate acks (RFC 6582 step 2, ns-2's
        /// bugFix_). Without it Reno halves once per loss. NewReno and SACK in rfc always do it.
        careful: bool = true, [], "", ["bugfix"];
        /// Most packets by which one ack opens the window in slow start (RFC 3465); rfc only.
        abc_limit: u64 = 1, [1 => 2], "L", [];
    }
}

/// A TCP as chosen: its name and its parameters, nothing left to be worked out.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpParams {
    /// What its name says.
    pub recovery: Recovery,
    /// All the rest; after [`parse`] no field is `None`.
    pub settings: Settings,
}

/// An entry of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The canonical name.
    pub name: &'static str,
    /// Other names that are accepted.
    pub aliases: &'static [&'static str],
    /// What it is, in a line.
    pub about: &'static str,
    /// Where it is defined.
    pub source: &'static str,
    /// What the name chooses.
    pub recovery: Recovery,
}

/// Every TCP there is.
pub const TCPS: &[Entry] = &[
    Entry {
        name: "newreno",
        aliases: &[],
        about: "stays in fast recovery until all that was outstanding is acknowledged",
        source: "RFC 5681, RFC 6582; ns-2.35 Agent/TCP/Newreno",
        recovery: Recovery::NewReno,
    },
    Entry {
        name: "reno",
        aliases: &[],
        about: "fast retransmit and a fast recovery that the first ack of new data ends",
        source: "RFC 5681; ns-2.35 Agent/TCP/Reno",
        recovery: Recovery::Reno,
    },
    Entry {
        name: "sack",
        aliases: &["sack1"],
        about: "the receiver tells what it has, so several losses are repaired in a round trip",
        source: "RFC 2018, RFC 6675; ns-2.35 Agent/TCP/Sack1",
        recovery: Recovery::Sack,
    },
    Entry {
        name: "tahoe",
        aliases: &[],
        about: "fast retransmit, then slow start from one packet",
        source: "Jacobson, Congestion Avoidance and Control, 1988; ns-2.35 Agent/TCP",
        recovery: Recovery::Tahoe,
    },
];

/// The TCP of that name with those settings, every `auto` worked out.
///
/// # Errors
/// An unknown name or parameter, a value out of range, or two that contradict each other.
pub fn parse<'a>(
    name: &str,
    settings: impl IntoIterator<Item = (&'a str, Setting<'a>)>,
) -> Result<TcpParams> {
    let entry = TCPS
        .iter()
        .find(|e| e.name == name || e.aliases.contains(&name))
        .ok_or_else(|| Error::unknown("tcp", name, TCPS.iter().map(|e| e.name)).at("name"))?;
    let mut chosen = Settings::default();
    for (key, value) in settings {
        chosen.set(key, value)?;
    }
    chosen.work_out()?;
    Ok(TcpParams { recovery: entry.recovery, settings: chosen })
}

impl Settings {
    /// Fills what was left to the profile, and refuses what contradicts itself.
    fn work_out(&mut self) -> Result<()> {
        let rfc = self.profile == Profile::Rfc;
        let by_profile = |for_rfc, for_ns2| if rfc { for_rfc } else { for_ns2 };
        let (s, ms) = (Span::s, Span::ms);
        self.initial_window.get_or_insert(Size::Packets(if rfc { 10 } else { 2 }));
        self.initial_ssthresh.get_or_insert(self.receive_window);
        self.rto_initial.get_or_insert(by_profile(s(1), s(3)));
        self.tick.get_or_insert(by_profile(ms(1), ms(10)));
        self.delayed_ack.get_or_insert(rfc);
        self.delayed_ack_timeout.get_or_insert(by_profile(ms(40), ms(100)));
        let rto_min = *self.rto_min.get_or_insert(by_profile(s(1), ms(200)).min(self.rto_max));
        if rto_min > self.rto_max {
            let text = format!("{rto_min} is longer than rto_max, {}", self.rto_max);
            return Err(Error::new(text).at("rto_min"));
        }
        if self.header.0 >= self.packet.0 {
            let text = format!("{} leaves no payload in a packet of {}", self.header, self.packet);
            return Err(Error::new(text).at("header"));
        }
        Ok(())
    }

    /// Payload bytes of a full packet.
    pub fn payload(&self) -> u64 {
        self.packet.0 - self.header.0
    }

    /// Bytes of header on the wire.
    pub(super) fn header_bytes(&self) -> u32 {
        self.header.0 as u32
    }

    /// Bytes of a full packet on the wire.
    pub(super) fn packet_bytes(&self) -> u32 {
        self.packet.0 as u32
    }

    /// `size` in whole packets of payload, at least one.
    pub(super) fn in_packets(&self, size: Size) -> u64 {
        match size {
            Size::Packets(n) => n.max(1),
            Size::Bytes(n) => (n / self.payload()).max(1),
        }
    }

    /// `size` in bytes of payload, at least one packet's.
    pub(super) fn in_bytes(&self, size: Size) -> u64 {
        match size {
            Size::Packets(n) => n.saturating_mul(self.payload()),
            Size::Bytes(n) => n.max(self.payload()),
        }
    }
}

impl TcpParams {
    /// The canonical name.
    pub fn name(&self) -> &'static str {
        TCPS.iter().find(|e| e.recovery == self.recovery).expect("every recovery is listed").name
    }

    /// Every parameter with its present value.
    pub fn table(&self) -> Rows {
        self.settings.table()
    }
}

/// A value that [`parse`] has worked out.
pub(super) fn worked_out<T>(value: Option<T>) -> T {
    value.expect("parameters come from tcp::parse, which leaves none open")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_decides_what_is_left_open() {
        let rfc = parse("newreno", []).unwrap().settings;
        assert_eq!((rfc.rto_min, rfc.rto_initial), (Some(Span::s(1)), Some(Span::s(1))));
        assert_eq!((rfc.initial_window, rfc.delayed_ack), (Some(Size::Packets(10)), Some(true)));
        let ns2 = parse("sack1", [("profile", Setting::Text("ns2"))]).unwrap();
        assert_eq!(ns2.name(), "sack");
        assert_eq!(ns2.settings.initial_window, Some(Size::Packets(2)));
        assert_eq!(ns2.settings.tick, Some(Span::ms(10)));
        assert!(ns2.table().iter().all(|r| r.value != "auto"));
    }

    #[test]
    fn settings_survive_being_written_and_read() {
        let text = [("profile", "ns2"), ("packet", "1kB"), ("rwnd", "40p"), ("rto-min", "10ms")];
        let once = parse("reno", text.map(|(k, v)| (k, Setting::Text(v)))).unwrap();
        let rows = once.table();
        let twice = parse("reno", rows.iter().map(|r| (r.name, Setting::Text(&r.value)))).unwrap();
        assert_eq!(once, twice);
    }

    #[test]
    fn refusals_name_the_field() {
        let refusal = |k, v| parse("reno", [(k, Setting::Text(v))]).unwrap_err().to_string();
        assert!(refusal("header", "1500B").starts_with("header: "), "no payload");
        assert!(refusal("rto_max", "0s").starts_with("rto_max: "));
        assert!(refusal("profil", "ns2").contains("did you mean \"profile\""));
        let name = parse("newrenno", []).unwrap_err().to_string();
        assert!(name.starts_with("name: ") && name.contains("did you mean \"newreno\""), "{name}");
        let both = [("rto_min", Setting::Text("2s")), ("rto_max", Setting::Text("1s"))];
        assert_eq!(
            parse("reno", both).unwrap_err().to_string(),
            "rto_min: 2s is longer than rto_max, 1s"
        );
    }
}
