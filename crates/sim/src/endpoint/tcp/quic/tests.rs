use super::super::{Ack, Receiver, Tcp, parse};
use super::*;
use crate::endpoint::tcp::UNLIMITED;
use rand_core::SeedableRng;
use sojourn_aqm::Pcg;
use sojourn_aqm::params::Setting::{self, Text};

mod losses;
mod properties;

const MS: u64 = 1_000_000;

fn params(name: &str, more: &[(&'static str, &'static str)]) -> TcpParams {
    // 1000 bytes of payload; hystart would shorten slow start.
    let all = [("profile", "quic"), ("packet", "1062B")];
    let all = all.iter().chain(more).map(|(key, value)| (*key, Text(value)));
    parse(name, all).unwrap()
}

fn sender(name: &str, more: &[(&'static str, &'static str)]) -> QuicSender {
    QuicSender::new(&params(name, more), &mut Pcg::seed_from_u64(1))
}

fn ms(n: u64) -> Time {
    Time(n * MS)
}

/// An ack of these ranges of packet numbers, half open and from the highest to the lowest.
fn ack(ranges: &[(u64, u64)]) -> Ack {
    let mut ack = Ack::default();
    write_ranges(ranges.iter().copied(), &mut ack);
    ack
}

/// A connection with a round-trip time of 100 ms and ten packets of new data, sent at 100 ms.
fn opened(name: &str, more: &[(&'static str, &'static str)]) -> (QuicSender, Vec<Segment>) {
    let (mut s, mut out) = (sender(name, more), Vec::new());
    s.open(ms(0), &mut out);
    s.write(ms(0), UNLIMITED, &mut out);
    assert_eq!(out.len(), 1, "the SYN");
    s.on_ack(ms(100), &ack(&[(0, 1)]), &mut out);
    out.remove(0);
    assert_eq!(s.established(), ms(100));
    (s, out)
}

/// Packet numbers and first bytes of what was sent.
fn sent(out: &mut Vec<Segment>) -> Vec<(u32, u64)> {
    out.drain(..).map(|s| (s.timestamp, s.seq)).collect()
}

const RENO: &str = "newreno";
/// Without a pacer, what is sent depends on the window only.
const UNPACED: &[(&str, &str)] = &[("pacing", "false")];

#[test]
fn a_connection_starts_with_ten_packets() {
    let (s, mut out) = opened(RENO, &[]);
    assert_eq!(out[0].wire_bytes, 1062);
    let expected: Vec<_> = (0..10).map(|i| (i + 1, 1 + 1_000 * u64::from(i))).collect();
    assert_eq!(sent(&mut out), expected);
    assert_eq!((s.in_flight(), s.srtt()), (10_000, Some(Span::ms(100))));
    // The timer: 100 + 4 * 50 + 25 ms after the last transmission.
    assert_eq!(s.timer(), ms(100 + 325));
}

#[test]
fn the_initial_window_is_limited_in_bytes() {
    for (packet, packets) in [("1500B", 10.0), ("1501B", 9.0), ("4kB", 3.0), ("9kB", 2.0)] {
        let tcp = parse(RENO, [("profile", Text("quic")), ("packet", Text(packet))]).unwrap();
        let s = QuicSender::new(&tcp, &mut Pcg::seed_from_u64(1));
        assert_eq!(s.cwnd_packets(), packets, "{packet}");
    }
}

#[test]
fn slow_start_grows_by_all_acknowledged_bytes() {
    let (mut s, mut out) = opened(RENO, UNPACED);
    out.clear();
    s.on_ack(ms(200), &ack(&[(0, 6)]), &mut out);
    assert_eq!((s.cwnd_packets(), out.len()), (15.0, 10), "five packets in one ack");
}

#[test]
fn the_window_grows_by_a_packet_per_window_after_slow_start() {
    let (mut s, mut out) = opened(RENO, &[("pacing", "false"), ("initial_ssthresh", "10p")]);
    s.on_ack(ms(200), &ack(&[(0, 10)]), &mut out);
    assert_eq!(s.cwnd_packets(), 10.0);
    s.on_ack(ms(200), &ack(&[(0, 11)]), &mut out);
    assert_eq!(s.cwnd_packets(), 11.0);
}

#[test]
fn a_window_that_the_application_does_not_use_stays() {
    let (mut s, mut out) = (sender(RENO, UNPACED), Vec::new());
    s.open(ms(0), &mut out);
    s.write(ms(0), 9_000, &mut out);
    s.on_ack(ms(100), &ack(&[(0, 1)]), &mut out);
    s.on_ack(ms(200), &ack(&[(0, 10)]), &mut out);
    assert_eq!((s.cwnd_packets(), s.done(), s.timer()), (10.0, true, Time::NEVER));
    // Ten packets fill it.
    s.write(ms(300), 10_000, &mut out);
    s.on_ack(ms(400), &ack(&[(0, 20)]), &mut out);
    assert_eq!(s.cwnd_packets(), 20.0);
}

#[test]
fn the_pacer_spreads_a_window_after_the_initial_burst() {
    let (mut s, mut out) = opened(RENO, &[]);
    out.clear();
    // The bucket refills 12.5 packets in 100 ms, up to ten; an ack of all ten packets allows 20.
    s.on_ack(ms(200), &ack(&[(0, 11)]), &mut out);
    assert_eq!(out.len(), 10);
    // 20 kB per 100 ms, times 1.25: 4 ms per packet.
    assert_eq!(s.timer(), ms(204));
    s.on_timer(ms(204), &mut out);
    assert_eq!((out.len(), s.timer()), (11, ms(208)));
}

#[test]
fn the_delay_of_an_ack_is_no_round_trip_time() {
    let (mut s, mut out) = opened(RENO, UNPACED);
    let delayed = Ack { echo: 20_000, ..ack(&[(0, 2)]) };
    s.on_ack(ms(228), &delayed, &mut out);
    // 128 - 20 = 108: 7/8 100 + 1/8 108.
    assert_eq!(s.srtt(), Some(Span::ms(101)));
    // An ack whose largest packet is not new gives no sample.
    s.on_ack(ms(400), &ack(&[(0, 2)]), &mut out);
    assert_eq!(s.srtt(), Some(Span::ms(101)));
}

#[test]
fn a_lost_handshake_packet_is_repeated_with_a_new_number() {
    let (mut s, mut out) = (sender(RENO, &[]), Vec::new());
    s.open(ms(0), &mut out);
    assert_eq!(s.timer(), ms(999), "333 + 4 * 166.5");
    s.on_timer(ms(999), &mut out);
    let numbers: Vec<_> = out.iter().map(|s| (s.syn, s.timestamp, s.retransmission)).collect();
    assert_eq!(numbers, [(true, 0, false), (true, 1, true)]);
    assert_eq!((s.timer(), s.stats().timeouts), (ms(999 + 1_998), 1));
    s.on_ack(ms(1_100), &ack(&[(1, 2)]), &mut out);
    assert_eq!((s.srtt(), s.cwnd_packets()), (Some(Span::ms(101)), 10.0));
}

#[test]
fn a_mark_reduces_the_window_once_per_recovery_period() {
    let more = [("pacing", "false"), ("ecn", "true")];
    let (mut s, mut out) = opened(RENO, &more);
    assert!(out.iter().all(|s| s.ect));
    let marked = |ranges: &[_], ce_packets| Ack { ce_packets, ..ack(ranges) };
    s.on_ack(ms(200), &marked(&[(0, 2)], 1), &mut out);
    assert_eq!((s.cwnd_packets(), s.ssthresh_packets()), (5.0, 5.0));
    s.on_ack(ms(201), &marked(&[(0, 4)], 2), &mut out);
    assert_eq!(s.cwnd_packets(), 5.0, "sent before the reduction");
}

#[test]
fn a_flow_stops_at_the_receive_window() {
    let (s, out) = opened(RENO, &[("receive_window", "4p")]);
    assert_eq!((out.len(), s.in_flight()), (4, 4_000));
}

#[test]
fn settings_of_other_profiles_are_refused() {
    let refusal = |name: &str, key, value: &'static str| {
        let list = [("profile", Text("quic")), (key, Setting::Text(value))];
        parse(name, list).unwrap_err().to_string()
    };
    for name in ["vegas", "tahoe", "dctcp", "bbr3"] {
        let error = refusal(name, "packet", "1500B");
        assert_eq!(error, format!("profile: {name} is not available in profile quic"));
    }
    for key in ["prr", "rack", "linux_acks"] {
        assert!(refusal("cubic", key, "true").starts_with(&format!("{key}: ")), "{key}");
    }
    assert!(refusal("cubic", "ecn_feedback", "rfc3168").contains("only accurate feedback"));
    assert!(refusal("bbr", "ecn", "true").starts_with("ecn: "));
    let tcp = params("cubic", &[]);
    assert_eq!(tcp.settings.delayed_ack_timeout, Some(Span::ms(25)));
    assert_eq!((tcp.settings.pacing, tcp.settings.header.0), (Some(true), 62));
}
