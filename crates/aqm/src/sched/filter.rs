//! Filters of a classful discipline: the class of a packet by what the packet is.

mod matches;

pub use matches::{Classes, Dscp, EcnMatch, Host, Mark, Ports};

use crate::error::{Error, Result};
use crate::flow_header::{FlowHeader, Protocol};
use crate::packet::{Packet, TcpFlags};
use crate::params::{Params, Setting, Value, call_text, parse_call};
use crate::snapshot::Snapshot;
use crate::units::Bytes;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

crate::params! {
    /// Filter: the class of packets that match everything that is given. Its text form is
    /// `2(dscp=EF)`, where 2 is the class, or `2` for all packets.
    pub struct Filter {
        /// Class of the packets, numbered as the classes of the discipline.
        to: u64 = 0, [0 => 1_048_576], "", [];
        /// Class of the flow, or a range like 3-7.
        class: Option<Classes> = None, [], "", [];
        /// DSCP, by number or name.
        dscp: Option<Dscp> = None, [], "", [];
        /// ECN field.
        ecn: Option<EcnMatch> = None, [], "", [];
        /// Name of the host that sends the packets.
        source: Option<Host> = None, [], "", ["sender"];
        /// Name of the host that receives the packets.
        destination: Option<Host> = None, [], "", ["receiver"];
        /// Largest length.
        max_length: Option<Bytes> = None, [Bytes(1) => Bytes(1_000_000_000)], "", [];
        /// True for acknowledgements of TCP without payload, false for all other packets.
        pure_ack: Option<bool> = None, [], "", [];
        /// Protocol of the flow.
        protocol: Option<Protocol> = None, [], "", [];
        /// Port of the sender of the packets, or a range like 5000-5999.
        source_port: Option<Ports> = None, [], "", ["sport"];
        /// Port of the receiver of the packets, or a range.
        destination_port: Option<Ports> = None, [], "", ["dport"];
        /// Mark of the flow, or a mark and a mask like 0x10/0xf0.
        mark: Option<Mark> = None, [], "", ["fwmark"];
    }
}

impl Filter {
    /// True if it compares fields of [`FlowHeader`].
    fn reads_headers(&self) -> bool {
        let Filter { protocol, source_port, destination_port, mark, .. } = self;
        let ports = source_port.is_some() || destination_port.is_some();
        protocol.is_some() || ports || mark.is_some()
    }

    /// True if `header`, of the flow of `packet`, matches.
    fn matches_header(&self, packet: &Packet, header: &FlowHeader) -> bool {
        let Filter { protocol, source_port, destination_port, mark, .. } = self;
        let within = |ports: Option<Ports>, port: u16| {
            // Port 0 stands for none.
            ports.is_none_or(|Ports(first, last)| port > 0 && (first..=last).contains(&port))
        };
        let [source, destination] = header.ports_of(packet);
        protocol.is_none_or(|protocol| header.protocol == Some(protocol))
            && within(*source_port, source)
            && within(*destination_port, destination)
            && mark.is_none_or(|Mark { value, mask }| header.mark & mask == value)
    }

    /// True if `packet` matches, apart from the header of its flow.
    #[inline]
    fn matches(&self, packet: &Packet) -> bool {
        let Filter { class, dscp, ecn, source, destination, max_length, pure_ack, .. } = self;
        let pure = || packet.tcp.has(TcpFlags::ACK.with(TcpFlags::PURE));
        class.is_none_or(|Classes(first, last)| (first..=last).contains(&packet.class))
            && dscp.is_none_or(|Dscp(dscp)| packet.class & 63 == dscp)
            && ecn.is_none_or(|ecn| ecn.field() == packet.ecn)
            && source.as_ref().is_none_or(|host| host.key == packet.source)
            && destination.as_ref().is_none_or(|host| host.key == packet.destination)
            && max_length.is_none_or(|most| u64::from(packet.len) <= most.0)
            && pure_ack.is_none_or(|is| is == pure())
    }
}

/// Filters of a discipline, and the headers of flows if one of them reads headers.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct Filters {
    list: Vec<Filter>,
    /// True if a filter of the list compares fields of [`FlowHeader`].
    compare_headers: bool,
    /// True if a discipline of a class does.
    pub below_compare: bool,
    /// Headers by the number of the flow.
    headers: Vec<Option<FlowHeader>>,
}

impl Filters {
    /// Filters in order. `below_compare` is true if a discipline of a class reads headers. This is
    /// asked for each packet of a live link, so a tree of 10,000 classes keeps the answer.
    pub fn new(list: Vec<Filter>, below_compare: bool) -> Filters {
        let compare_headers = list.iter().any(Filter::reads_headers);
        Filters { list, compare_headers, below_compare, headers: Vec::new() }
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// True if a filter here, or in a discipline of a class, compares fields of [`FlowHeader`].
    pub fn reads_headers(&self) -> bool {
        self.compare_headers || self.below_compare
    }

    /// States the header of a flow.
    pub fn describe_flow(&mut self, flow: u32, header: &FlowHeader) {
        if self.compare_headers {
            let i = flow as usize;
            if i >= self.headers.len() {
                self.headers.resize(i + 1, None);
            }
            self.headers[i] = Some(*header);
        }
    }

    /// Class of `packet` by the first filter that matches.
    #[inline]
    pub fn classify(&self, packet: &Packet) -> Option<u64> {
        let matches = |filter: &&Filter| {
            filter.matches(packet) && (!self.compare_headers || self.matches_header(filter, packet))
        };
        self.list.iter().find(matches).map(|filter| filter.to)
    }

    fn matches_header(&self, filter: &Filter, packet: &Packet) -> bool {
        if !filter.reads_headers() {
            return true;
        }
        let header = self.headers.get(packet.flow as usize);
        header.is_some_and(|header| header.is_some_and(|h| filter.matches_header(packet, &h)))
    }

    /// Size of the state in bytes.
    pub fn state_bytes(&self) -> usize {
        size_of_val(&*self.list) + size_of_val(&*self.headers)
    }
}

/// Checks that all classes of `filters` are from `first` up, and that `is_class` holds for them.
///
/// # Errors
/// A filter with another class.
pub(crate) fn check_classes(filters: &[Filter], is_class: impl Fn(u64) -> bool) -> Result<()> {
    match filters.iter().enumerate().find(|(_, filter)| !is_class(filter.to)) {
        None => Ok(()),
        Some((i, filter)) => {
            let text = format!("{} is no class of packets", filter.to);
            Err(Error::new(text).at("to").at(i).at("filters"))
        }
    }
}

impl Value for Filter {
    type End = Self;

    fn kind() -> String {
        "filter".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        let mut filter = Filter::default();
        let Setting::Text(text) = setting else {
            filter.set("to", setting)?;
            return Ok(filter);
        };
        let (to, matches) = parse_call(text)?;
        filter.set("to", Setting::Text(to))?;
        matches.into_iter().try_for_each(|(key, value)| filter.set(key, Setting::Text(value)))?;
        Ok(filter)
    }

    fn write(&self) -> String {
        let (rows, defaults) = (self.table(), Filter::default().table());
        let differ = rows.iter().zip(&defaults).filter(|(row, default)| row.value != default.value);
        let matches = differ.map(|(row, _)| (row.name, row.value.as_str()));
        call_text(&self.to.to_string(), matches.filter(|(name, _)| *name != "to"))
    }

    fn is_within(&self, _: &Self::End, _: &Self::End) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::random::hash;
    use std::prelude::v1::*;

    fn read(text: &str) -> super::Result<Filter> {
        Filter::read(Setting::Text(text))
    }

    #[test]
    fn each_match_selects_its_packets() {
        let host = hash("laptop");
        let ack = TcpFlags::ACK.with(TcpFlags::PURE);
        let plain = Packet { len: 1000, class: 46, ecn: Ecn::Ect0, ..Packet::default() };
        let cases = [
            ("1", plain, true),
            ("1(dscp=EF)", plain, true),
            ("1(dscp=EF)", Packet { class: 64 + 46, ..plain }, true),
            ("1(dscp=CS1)", plain, false),
            ("1(class=46)", plain, true),
            ("1(class=46)", Packet { class: 64 + 46, ..plain }, false),
            ("1(class=45-47)", plain, true),
            ("1(class=47-50)", plain, false),
            ("1(ecn=ect0)", plain, true),
            ("1(ecn=ce)", plain, false),
            ("1(source=laptop)", Packet { source: host, ..plain }, true),
            ("1(source=laptop)", Packet { destination: host, ..plain }, false),
            ("1(destination=laptop)", Packet { destination: host, ..plain }, true),
            ("1(max_length=1000B)", plain, true),
            ("1(max_length=999B)", plain, false),
            ("1(pure_ack=true)", Packet { tcp: ack, ..plain }, true),
            ("1(pure_ack=true)", plain, false),
            ("1(pure_ack=false)", Packet { tcp: TcpFlags::ACK, ..plain }, true),
            ("1(dscp=EF, ecn=ect1)", plain, false),
        ];
        for (text, packet, expected) in cases {
            assert_eq!(read(text).unwrap().matches(&packet), expected, "{text}");
        }
    }

    #[test]
    fn the_first_match_decides_and_the_text_is_canonical() {
        let filters = ["3(dscp=EF, class=0-99)", "2", "1"].map(|text| read(text).unwrap());
        let packet = |class| Packet { class, ..Packet::default() };
        let all = Filters::new(filters.to_vec(), false);
        assert_eq!(all.classify(&packet(46)), Some(3));
        assert_eq!(all.classify(&packet(0)), Some(2));
        assert_eq!(Filters::new(filters[..1].to_vec(), false).classify(&packet(0)), None);
        assert_eq!(filters.map(|f| f.write()), ["3(class=0-99, dscp=46)", "2", "1"]);
    }

    #[test]
    fn headers_of_flows_are_matched_in_both_directions() {
        let web = FlowHeader {
            protocol: Some(Protocol::Tcp),
            source: 7,
            ports: [443, 50_000],
            mark: 0x21,
        };
        let cases = [
            ("1(protocol=tcp)", true, true),
            ("1(protocol=udp)", false, false),
            ("1(source_port=443)", true, false),
            ("1(sport=400-500)", true, false),
            ("1(destination_port=443)", false, true),
            ("1(dport=50000)", true, false),
            ("1(mark=33)", true, true),
            ("1(mark=0x20/0xf0)", true, true),
            ("1(mark=0x10/0xf0)", false, false),
            ("1(protocol=tcp, dport=443, dscp=EF)", false, false),
        ];
        for (text, there, back) in cases {
            let mut filters = Filters::new([read(text).unwrap()].into(), false);
            let packet = |source| Packet { flow: 3, source, ..Packet::default() };
            assert!(filters.reads_headers());
            assert_eq!(filters.classify(&packet(7)), None, "{text}: nothing is known of the flow");
            filters.describe_flow(3, &web);
            let matched = [packet(7), packet(8)].map(|packet| filters.classify(&packet).is_some());
            assert_eq!(matched, [there, back], "{text}");
            let other = Packet { flow: 2, ..packet(7) };
            assert_eq!(filters.classify(&other), None, "{text}: another flow");
        }
        assert!(!Filters::new([read("1(dscp=EF)").unwrap()].into(), false).reads_headers());
        let mut filters = Filters::new([read("1(dport=0-1023)").unwrap()].into(), false);
        filters.describe_flow(3, &FlowHeader { ports: [443, 0], ..web });
        let packet = |source| Packet { flow: 3, source, ..Packet::default() };
        assert_eq!(filters.classify(&packet(7)), None, "it has no destination port");
        assert_eq!(filters.classify(&packet(8)), Some(1));
    }

    #[test]
    fn a_filter_below_other_classes_learns_of_flows() {
        let inner = "prio(flows=2, filters=0(dport=443) 1)";
        for parent in ["prio(flows=1, children=INNER)", "htb(rates=1mbit, children=INNER)"] {
            let plain = parent.replace("INNER", "codel");
            let deep = parent.replace("INNER", &format!("tbf(rate=1mbit, children={inner})"));
            let build = |text: &str| crate::build_text(text, crate::Rate(1_000_000)).unwrap().qdisc;
            assert!(!build(&plain).reads_headers());
            assert!(build(&deep).reads_headers(), "{deep}");
        }
    }

    #[test]
    fn faults_are_named() {
        let error = |text| read(text).unwrap_err().to_string();
        assert!(error("x").starts_with("to: \"x\" is not a whole number"));
        assert!(error("1(port=5)").starts_with("port: unknown parameter \"port\""));
        assert!(error("1(dport=65536)").starts_with("destination_port: 65536 is out of range"));
        assert_eq!(
            error("1(mark=0x20/0xf)"),
            "mark: \"0x20/0xf\" has bits outside its mask: none matches"
        );
        assert!(error("1(mark=a)").starts_with("mark: \"a\" is no mark"));
        assert!(error("1(protocol=sctp)").starts_with("protocol: unknown choice"));
        assert_eq!(error("1(class=7-3)"), "class: \"7-3\" ends before it begins");
        assert!(error("1(class=70000)").starts_with("class: 70000 is out of range"));
        assert!(error("1(dscp=AF14)").starts_with("dscp: unknown DSCP"));
        assert!(error("1(max_length=64)").starts_with("max_length: "));
    }
}
