//! One direction, with the time passed in by the test.
#![cfg(target_os = "linux")]

mod common;

use common::{link, put, spec, udp};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::{LinkSpec, Rate, Span, Time};
use sojourn_live::pump::Framing;
use sojourn_live::{Capture, Direction, DirectionConfig, capture, ip};
use std::sync::{Arc, Mutex};

/// Packets that leave by `now`: number, and due time in microseconds.
fn leave(hop: &mut Direction, now: Time) -> Vec<(u32, u64)> {
    let mut left = Vec::new();
    while let Some(due) = hop.next_delivery(now) {
        let number = *hop.delivery_bytes(&due).last_chunk().unwrap();
        left.push((u32::from_be_bytes(number), due.at.0 / 1000));
        hop.on_written(due, now, false);
    }
    left
}

#[test]
fn packets_leave_after_transmission_and_delay() {
    let mut hop = Direction::new(spec("droptail", &[("limit", "2p")], link(8, 5)));
    for number in 0..4 {
        put(&mut hop, Time(0), &udp(1000, 1, 0, number));
    }
    assert_eq!(
        (hop.packets_held(), hop.next_event_time()),
        (3, Some(Time(6_000_000))),
        "one is dropped"
    );
    assert_eq!(leave(&mut hop, Time(5_999_999)), []);
    assert_eq!(leave(&mut hop, Time(9_000_000)), [(0, 6000), (1, 7000), (2, 8000)]);
    let counts = hop.counts();
    assert_eq!((counts.delivered, counts.late, hop.packets_held()), (3, 2, 0));
    assert_eq!(counts.lateness.max_s(), Some(0.003));
    assert_eq!(counts.lateness.quantile_s(0.5).map(|s| (s * 1e3).round()), Some(2.0));
}

#[test]
fn marks_are_written_to_the_header() {
    let red = [("limit", "50p"), ("min_th", "1p"), ("max_th", "2p"), ("w_q", "1"), ("ecn", "true")];
    let mut hop = Direction::new(spec("red", &red, link(8, 0)));
    hop.enable_packet_log();
    (0..40).for_each(|number| put(&mut hop, Time(0), &udp(1000, 1, 2, number)));
    let (mut crossed, mut marked) = (0, 0);
    while let Some(due) = hop.next_delivery(Time(1_000_000_000)) {
        let header = ip::read(hop.delivery_bytes(&due), 0).unwrap();
        crossed += 1;
        marked += u64::from(header.ecn == sojourn_aqm::Ecn::Ce);
        hop.on_written(due, due.at, false);
    }
    assert_eq!(hop.arrivals().len(), 40);
    assert!(marked > 0 && crossed > marked, "{marked} of {crossed}");
    assert_eq!(hop.link().stats().marks.packets, marked);
}

#[test]
fn bytes_before_the_ip_header_are_forwarded_and_not_counted() {
    let red = [("limit", "50p"), ("min_th", "1p"), ("max_th", "2p"), ("w_q", "1"), ("ecn", "true")];
    let mut hop = Direction::new(DirectionConfig {
        framing: Framing::Ethernet,
        ..spec("red", &red, link(8, 0))
    });
    put(&mut hop, Time(0), &[9; 14]);
    put(&mut hop, Time(0), &[9; 5]);
    for number in 0..20 {
        put(&mut hop, Time(0), &[&[9; 14][..], &udp(1000, 1, 2, number)].concat());
    }
    let (mut crossed, mut marked) = (0, 0);
    while let Some(due) = hop.next_delivery(Time(1_000_000_000)) {
        let bytes = hop.delivery_bytes(&due).to_vec();
        assert_eq!((bytes.len(), &bytes[..14]), (1014, &[9; 14][..]));
        crossed += 1;
        marked += u64::from(ip::read(&bytes[14..], 0).unwrap().ecn == sojourn_aqm::Ecn::Ce);
        hop.on_written(due, due.at, false);
    }
    assert_eq!((hop.counts().malformed, hop.link().stats().arrived_packets), (2, 20));
    assert_eq!(hop.link().stats().departed_bytes, crossed * 1000);
    assert!(marked > 0 && hop.link().stats().marks.packets == marked);
}

#[test]
fn a_late_call_processes_changes_and_samples_in_order() {
    let specs = [(2, 4), (4, 2)].map(|(ms, mbit)| (Time(ms * 1_000_000), link(mbit, 0)));
    let make = || {
        let changes = Box::new(specs.into_iter()) as Box<dyn Iterator<Item = _> + Send>;
        let mut spec = spec("droptail", &[("limit", "20p")], link(8, 0));
        spec.timed_link.schedule_changes(changes);
        let mut hop = Direction::new(spec);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let into = seen.clone();
        hop.sample_every(
            Span::ms(2),
            Box::new(move |now, link| {
                let row = (now.0 / 1_000_000, link.spec().rate.0, link.stats().departed_packets);
                into.lock().unwrap().push(row);
            }),
        );
        (0..6).for_each(|number| put(&mut hop, Time(0), &udp(1000, 1, 0, number)));
        (hop, seen)
    };
    let (mut late, seen_late) = make();
    let (mut prompt, seen) = make();
    let mut left = Vec::new();
    for us in 0..20_000 {
        left.extend(leave(&mut prompt, Time(us * 1000)));
    }
    left.extend(leave(&mut prompt, Time(20_000_000)));
    assert_eq!(leave(&mut late, Time(20_000_000)), left);
    let due: Vec<u64> = left.iter().map(|(_, us)| us / 1000).collect();
    assert_eq!(
        due,
        [1, 2, 4, 8, 12, 16],
        "a change precedes a transmission that starts at the same time"
    );
    assert_eq!(seen_late.lock().unwrap()[..2], [(2, 4_000_000, 3), (4, 2_000_000, 4)]);
    assert_eq!(*seen_late.lock().unwrap(), *seen.lock().unwrap());
}

#[test]
fn random_loss_drops_its_fraction() {
    let mut spec = spec("droptail", &[("limit", "10p")], link(8, 0));
    let mut fourth = (0..4).cycle();
    spec.timed_link.set_loss(Box::new(move || fourth.next() == Some(0)));
    let mut hop = Direction::new(spec);
    let mut left = 0;
    for ms in 1..4000 {
        put(&mut hop, Time(ms * 1_000_000), &udp(500, 1, 0, 0));
        left += leave(&mut hop, Time(ms * 1_000_000)).len();
    }
    let lost = hop.lost_on_wire();
    assert_eq!((lost, left, hop.packets_held()), (1000, 2998, 1), "the last is in flight");
}

#[test]
fn nothing_is_allocated_per_packet() {
    for law in ["droptail", "codel", "fq_codel", "red", "pie"] {
        let mut hop = Direction::new(spec(law, &[("limit", "200p")], link(80, 2)));
        // 10 % overload: the queue fills and every discipline drops packets.
        let mut play = |from: u64, to: u64| {
            for i in from..to {
                let now = Time(i * 90_000);
                hop.receive_buffer()[..1000].copy_from_slice(&udp_of(i));
                hop.accept(now, 1000);
                while let Some(due) = hop.next_delivery(now) {
                    hop.on_written(due, now, false);
                }
            }
        };
        play(1, 30_000);
        let counted = allocation_counter::measure(|| play(30_000, 130_000));
        assert_eq!(counted.count_total, 0, "{law}");
    }
}

/// Packet of one of eight flows, without allocation.
fn udp_of(i: u64) -> [u8; 1000] {
    let mut packet = [0; 1000];
    packet[..4].copy_from_slice(&[0x45, (i % 3) as u8, 3, 232]);
    packet[8..10].copy_from_slice(&[64, 17]);
    packet[21] = (i % 8) as u8;
    packet
}

#[test]
fn a_capture_records_the_fate_of_each_packet() {
    #[derive(Clone, Default)]
    struct File(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for File {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let file = File::default();
    let ([up, down], writer): ([Capture; 2], _) = capture::open(file.clone(), 0);
    let delay = Span::ms(1);
    let slow = LinkSpec::new(Rate(8_000_000), delay);
    let mut hop = Direction::new(spec("droptail", &[("limit", "1p")], slow));
    hop.capture(up);
    (0..3).for_each(|number| put(&mut hop, Time(0), &udp(100, 1, 0, number)));
    assert_eq!(leave(&mut hop, Time(10_000_000)).len(), 2);
    down.flush();
    drop((hop, down));
    writer.join().unwrap().unwrap();
    let bytes = file.0.lock().unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert_eq!(text.matches("dropped: the buffer is full, after 0.000000 ms").count(), 1);
    // 0.1 ms of transmission each, and a delay of 1 ms.
    assert_eq!(text.matches("delivered after 1.100000 ms").count(), 1);
    assert_eq!(text.matches("delivered after 1.200000 ms").count(), 1);
    let blocks = bytes.windows(8).filter(|w| w == &[6, 0, 0, 0, 176, 0, 0, 0]).count();
    assert_eq!(blocks, 2, "two delivered, of 100 bytes, with a comment of 27");
}

/// Everything is impaired: what arrives, and what is lost, adds up, and no buffer stays in use.
#[test]
fn copies_and_corrupt_packets_are_delivered() {
    use sojourn_aqm::wire::{Chance, Impairments, Jitter, LossModel, Wire};
    let mut all = Impairments::default();
    all.duplicate = Chance::new(0.2);
    all.corrupt = Chance::new(0.2);
    all.loss = LossModel::Random(0.1);
    all.jitter = Some(Jitter::new(Span::ms(5)));
    let stream = |name: &str| Box::new(Pcg64Mcg::seed_from_u64(name.len() as u64)) as _;
    let mut spec = spec("droptail", &[("limit", "100p")], link(10, 20));
    spec.timed_link.set_wire(Wire::new(&all, stream));
    let mut hop = Direction::new(spec);
    let (mut numbers, mut wrong) = (Vec::new(), 0);
    let original = udp(1000, 7, 0, 0);
    let mut deliver = |hop: &mut Direction, now: Time| {
        while let Some(due) = hop.next_delivery(now) {
            assert!(due.at <= now);
            let bytes = hop.delivery_bytes(&due).to_vec();
            numbers.push(u32::from_be_bytes(bytes[996..].try_into().unwrap()));
            let bits = |(a, b): (&u8, &u8)| (a ^ b).count_ones();
            wrong += bytes[..996].iter().zip(&original[..996]).map(bits).sum::<u32>();
            hop.on_written(due, now, false);
        }
    };
    let at = |number: u32| Time(2_000_000 * u64::from(number));
    for number in 0..1000 {
        deliver(&mut hop, at(number));
        put(&mut hop, at(number), &udp(1000, 7, 0, number));
    }
    (1000..1100).for_each(|number| deliver(&mut hop, at(number)));
    assert_eq!(hop.next_event_time(), None);
    let stats = *hop.wire_stats().unwrap();
    assert_eq!(numbers.len() as u64, 1000 - stats.lost + stats.duplicated);
    assert!(stats.lost > 60 && stats.duplicated > 120 && stats.reordered > 100, "{stats:?}");
    let wrong = u64::from(wrong);
    assert!(wrong <= stats.corrupted && wrong > stats.corrupted * 9 / 10, "{wrong} {stats:?}");
    assert_eq!(hop.packets_held(), 0);
}
