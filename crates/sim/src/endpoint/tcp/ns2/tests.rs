//! The sender alone, with acks made by hand. Traces of ns-2 are replayed in `tests/tcp_ns2.rs`.

use super::super::params::parse;
use super::*;
use sojourn_aqm::params::Setting::Text;

/// Sender with an unlimited transfer, and its clock. A packet has 1000 bytes, the initial window 10
/// packets, and the round trip of the SYN takes 100 ms.
struct Bench {
    sender: Ns2Sender,
    now: Time,
    out: Vec<Segment>,
}

impl Bench {
    /// Opens a connection at 0 ms.
    fn opened(tcp: &str, settings: &[(&str, &str)]) -> Bench {
        let fixed = [("profile", "ns2"), ("packet", "1000B"), ("initial_window", "10p")];
        let rwnd = ("rwnd", "40p");
        let all = fixed.iter().chain([&rwnd]).chain(settings);
        let params = parse(tcp, all.map(|(k, v)| (*k, Text(v)))).unwrap();
        let sender = Ns2Sender::new(&params, 0.0);
        let mut bench = Bench { sender, now: Time::ZERO, out: Vec::new() };
        bench.sender.open(Time::ZERO, &mut bench.out);
        bench
    }

    /// As `opened`; the SYN is acknowledged at 100 ms, so that packets 1 to 10 are sent.
    fn established(tcp: &str, settings: &[(&str, &str)]) -> Bench {
        let mut bench = Bench::opened(tcp, settings);
        bench.sender.write(Time::ZERO, UNLIMITED, &mut bench.out);
        bench.at(100);
        let window = bench.sender.rwnd.min(10);
        assert_eq!(bench.ack(1), (1..=window).collect::<Vec<_>>());
        bench
    }

    fn at(&mut self, ms: u64) {
        self.now = Time(ms * 1_000_000);
    }

    /// Passes an ack; returns the packets sent.
    fn pass(&mut self, ack: &Ack) -> Vec<u64> {
        self.out.clear();
        self.sender.on_ack(self.now, ack, &mut self.out);
        self.out.iter().map(|segment| segment.seq).collect()
    }

    fn ack(&mut self, ack: u64) -> Vec<u64> {
        self.pass(&Ack { ack, ..Ack::default() })
    }

    /// Passes an ack with an ECN echo.
    fn echo(&mut self, ack: u64) -> Vec<u64> {
        self.pass(&Ack { ack, ece: true, ..Ack::default() })
    }

    /// Passes an ack with one block.
    fn sack(&mut self, ack: u64, block: (u64, u64)) -> Vec<u64> {
        self.pass(&Ack { ack, sacks: [block, (0, 0), (0, 0)], blocks: 1, ..Ack::default() })
    }

    /// Lets the timer expire; returns the packets sent.
    fn expire(&mut self) -> Vec<u64> {
        self.now = self.sender.timer();
        self.out.clear();
        self.sender.on_timer(self.now, &mut self.out);
        self.out.iter().map(|segment| segment.seq).collect()
    }

    /// Time of the timer, ms.
    fn timer_ms(&self) -> u64 {
        self.sender.timer().0 / 1_000_000
    }
}

#[test]
fn a_connection_is_established_by_the_ack_of_its_syn() {
    let mut bench = Bench::opened("newreno", &[]);
    for (ms, ack, established) in [(60, 0, Time::NEVER), (90, 1, Time(90_000_000))] {
        bench.at(ms);
        bench.ack(ack);
        assert_eq!(bench.sender.established(), established);
    }
    bench.sender.write(bench.now, 1, &mut bench.out);
    bench.at(200);
    bench.ack(2);
    assert_eq!(bench.sender.established(), Time(90_000_000), "not by later ones");
}

#[test]
fn packets_and_payload_are_counted() {
    let mut bench = Bench::established("newreno", &[]);
    assert_eq!(bench.sender.acked_bytes(), 0);
    bench.ack(6);
    assert_eq!(bench.sender.acked_bytes(), 5 * 960, "headers have 40 bytes");
    // The SYN, 10 packets, and 6 for the ack; then packet 6 again.
    bench.expire();
    let stats = SenderStats { sent_packets: 18, retransmitted_packets: 1, timeouts: 1 };
    assert_eq!(*bench.sender.stats(), stats);
    bench.expire();
    let stats = SenderStats { sent_packets: 19, retransmitted_packets: 2, timeouts: 2 };
    assert_eq!(*bench.sender.stats(), stats);
}

#[test]
fn data_packets_are_ecn_capable_if_ecn_is_on_and_a_syn_never() {
    for (ecn, expected) in [("false", false), ("true", true)] {
        let mut bench = Bench::opened("newreno", &[("ecn", ecn)]);
        assert_eq!((bench.out[0].syn, bench.out[0].ect), (true, false), "{ecn}");
        bench.sender.write(Time::ZERO, 1, &mut bench.out);
        bench.ack(1);
        assert_eq!((bench.out[0].syn, bench.out[0].ect), (false, expected), "{ecn}");
    }
}

/// ns-2 charges two packets per ack in a NewReno recovery (`maxburst`), and as many as the window
/// allows in one of Reno.
#[test]
fn newreno_sends_at_most_two_packets_per_duplicate_ack() {
    for (tcp, sent) in [("newreno", &[7, 12, 13][..]), ("reno", &[7, 12, 13, 14])] {
        let mut bench = Bench::established(tcp, &[("ecn", "true"), ("limited_transmit", "false")]);
        // The mark halves the window to 5: packets 1 to 10 cover it until 6 is acknowledged.
        assert!(bench.echo(2).is_empty());
        (3..7).for_each(|ack| assert!(bench.ack(ack).is_empty()));
        assert_eq!(bench.ack(7), [11], "{tcp}");
        assert_eq!([bench.ack(7), bench.ack(7)], [[0; 0]; 2]);
        // A loss of the same window does not halve it again. Three duplicate acks count for three
        // packets that left.
        assert_eq!(bench.ack(7), sent, "{tcp}");
    }
}

#[test]
fn a_partial_ack_deflates_the_window_by_what_it_acknowledges() {
    let mut bench = Bench::established("newreno", &[("limited_transmit", "false")]);
    assert_eq!([bench.ack(1), bench.ack(1)], [[0; 0]; 2]);
    assert_eq!(bench.ack(1), [1], "10 packets become 5 and 3 of duplicate acks");
    assert_eq!(bench.sender.cwnd_packets(), 5.0);
    // Five packets, two more than the window was inflated by; then one of inflation.
    assert_eq!(bench.ack(6), [6]);
    assert_eq!((bench.sender.cwnd_packets(), bench.sender.inflation), (3.0, 1));
}

/// The packet timed in recovery is new: a partial ack does not cover it.
#[test]
fn a_partial_ack_leaves_the_rtt_sample_of_a_new_packet() {
    let mut bench = Bench::established("newreno", &[("limited_transmit", "false")]);
    bench.at(200);
    (0..5).for_each(|_| drop(bench.ack(1)));
    assert_eq!(bench.ack(1), [11], "5 packets and 6 of duplicate acks");
    bench.at(300);
    assert_eq!(bench.ack(3)[0], 3);
    bench.at(400);
    bench.ack(12);
    // 100 ms, then 200 ms: 8 srtt = 90 ticks, 4 rttvar = 25 ticks: a timeout of 36 ticks.
    assert_eq!(bench.timer_ms(), 400 + 360);
}

#[test]
fn the_first_packet_and_careless_senders_may_cut_again() {
    // Packet 1 is not above `recover`, which starts at 1.
    let mut bench = Bench::established("reno", &[("careful", "true")]);
    (0..3).for_each(|_| drop(bench.ack(1)));
    assert_eq!(bench.sender.cwnd_packets(), 5.0);
    for (careful, cwnd) in [("true", 5.0 + 1.0 / 5.0), ("false", (5.0 + 1.0 / 5.0) / 2.0)] {
        let mut bench = Bench::established("reno", &[("careful", careful)]);
        (0..3).for_each(|_| drop(bench.ack(1)));
        // Packet 5 of the same window is missing, too.
        bench.ack(5);
        (0..3).for_each(|_| drop(bench.ack(5)));
        assert_eq!(bench.sender.cwnd_packets(), cwnd, "careful: {careful}");
    }
}

/// ns-2 halves the window in use, which in recovery includes the inflation.
#[test]
fn a_mark_at_the_end_of_a_recovery_halves_the_inflated_window() {
    let mut bench = Bench::established("reno", &[("ecn", "true")]);
    (0..8).for_each(|_| drop(bench.ack(1)));
    assert_eq!((bench.sender.cwnd_packets(), bench.sender.inflation), (5.0, 8));
    bench.echo(bench.sender.max);
    assert_eq!(bench.sender.cwnd_packets(), 6.5);
}

/// RFC 3168 section 6.1.2: a sender at a window of one packet that is marked again waits longer.
#[test]
fn marks_at_a_window_of_one_packet_back_the_timer_off() {
    let mut bench = Bench::opened("reno", &[("ecn", "true")]);
    bench.sender.write(Time::ZERO, UNLIMITED, &mut bench.out);
    assert_eq!(bench.expire(), [0], "the SYN is lost: 3 s, then 6 s");
    bench.at(4_000);
    assert_eq!((bench.ack(1), bench.timer_ms()), (vec![1], 10_000));
    bench.at(4_100);
    assert_eq!((bench.ack(2), bench.timer_ms()), (vec![2, 3], 4_400), "a sample of 100 ms");
    assert_eq!((bench.expire(), bench.timer_ms()), (vec![2], 5_000), "twice 300 ms");
    bench.at(4_500);
    assert_eq!((bench.ack(4), bench.timer_ms()), (vec![4, 5], 5_100), "no sample: still doubled");
    // A mark at a window of two packets; 8 srtt = 80 and 4 rttvar = 15 ticks.
    bench.at(4_600);
    assert_eq!((bench.echo(5), bench.timer_ms()), (vec![], 4_850));
    bench.at(4_700);
    assert_eq!(bench.echo(6), [6], "once per window");
    // The first mark at a window of one packet, which falls to a half.
    bench.at(4_800);
    assert_eq!((bench.echo(7), bench.timer_ms()), (vec![], 5_020));
    assert_eq!((bench.expire(), bench.timer_ms()), (vec![7], 5_240));
    // The second one: the minimum of 200 ms is doubled.
    bench.at(5_120);
    assert_eq!((bench.echo(8), bench.timer_ms()), (vec![], 5_520));
}

#[test]
fn limited_transmit_respects_the_receive_window() {
    let sent = |rwnd| Bench::established("newreno", &[("rwnd", rwnd)]).ack(1);
    assert_eq!((sent("40p"), sent("5p")), (vec![11], vec![]));
    let mut bench = Bench::established("newreno", &[("rwnd", "5p")]);
    assert_eq!(bench.ack(4), [6, 7, 8]);
    assert!(bench.ack(4).is_empty());
}

#[test]
fn new_data_after_a_pause_restarts_the_timer() {
    let mut bench = Bench::opened("newreno", &[]);
    bench.sender.write(Time::ZERO, 1, &mut bench.out);
    bench.at(100);
    assert_eq!((bench.ack(1), bench.timer_ms()), (vec![1], 400));
    bench.at(150);
    bench.ack(2);
    bench.at(200);
    bench.sender.write(bench.now, 1, &mut bench.out);
    let rto = bench.sender.rtt.rto();
    assert_eq!(bench.sender.timer(), bench.now + rto, "not the timer of the last ack");
}

mod sack {
    use super::*;

    /// Karn's rule: the ack of a retransmitted packet is no sample.
    #[test]
    fn a_recovery_stops_the_timing_of_a_packet() {
        let mut bench = Bench::established("sack", &[]);
        bench.at(200);
        (3..6).for_each(|end| drop(bench.sack(1, (2, end))));
        assert!(bench.sender.sack.recovering());
        bench.at(500);
        bench.ack(bench.sender.max);
        assert_eq!(bench.timer_ms(), 500 + 300);
    }

    #[test]
    fn a_new_connection_has_no_recovery() {
        let mut bench = Bench::established("sack", &[]);
        (3..6).for_each(|end| drop(bench.sack(1, (2, end))));
        assert!(bench.sender.sack.recovering());
        bench.sender.abort();
        bench.out.clear();
        bench.sender.open(bench.now, &mut bench.out);
        bench.sender.write(bench.now, UNLIMITED, &mut bench.out);
        assert_eq!(bench.out.iter().map(|segment| segment.seq).collect::<Vec<_>>(), [0]);
        assert_eq!(bench.ack(1), (1..=10).collect::<Vec<_>>());
    }

    #[test]
    fn acks_without_new_blocks_are_no_duplicates() {
        let mut bench = Bench::established("sack", &[]);
        (3..6).for_each(|end| drop(bench.sack(1, (2, end))));
        assert_eq!(bench.sender.dup_acks(), 3);
        for (end, dup) in [(5, 3), (6, 4), (6, 4)] {
            bench.sack(1, (2, end));
            assert_eq!(bench.sender.dup_acks(), dup, "{end}");
        }
    }

    #[test]
    fn a_recovery_sends_no_data_beyond_the_receive_window() {
        let mut bench = Bench::established("sack", &[("rwnd", "5p")]);
        assert_eq!(bench.ack(3), [6, 7]);
        let sent: Vec<_> = (5..9).flat_map(|end| bench.sack(3, (4, end))).collect();
        assert_eq!(sent, [3], "packets 3 to 7 fill it");
    }

    /// The number below which an earlier connection retransmits no hole is applied while the window
    /// is open. A mark closes it here: the blocks lower the number first, so packet 8 is repaired.
    #[test]
    fn a_closed_window_does_not_apply_the_floor_of_an_earlier_connection() {
        let mut bench = Bench::established("sack", &[("ecn", "true")]);
        for (ack, last) in [(11, 21), (22, 33)] {
            assert_eq!(bench.ack(ack).last(), Some(&last));
        }
        bench.sack(22, (23, 24)); // the number is 22
        bench.sender.open(bench.now, &mut bench.out);
        bench.sender.write(bench.now, UNLIMITED, &mut bench.out);
        assert_eq!(bench.ack(1), (1..=10).collect::<Vec<_>>());
        // The window of 5 ends at packet 10, the last one sent.
        assert_eq!((bench.echo(6), bench.sender.cwnd_packets()), (vec![], 5.0));
        bench.sack(6, (7, 8));
        bench.sack(6, (9, 10));
        assert_eq!(bench.sack(6, (9, 11)), [6]);
        assert_eq!(bench.sack(6, (9, 12)), [8, 13]);
    }
}
