//! Tests of `cake` as a whole. The files of its parts have their own tests.

use super::memory::Accounting;
use crate::context::{Context, DropReason, Dropped, Marks};
use crate::packet::{Ecn, Packet, TcpFlags};
use crate::params::Setting;
use crate::qdisc::{Backlog, Qdisc};
use crate::units::{Rate, Time};
use rand_core::SeedableRng;
use std::boxed::Box;
use std::prelude::v1::*;

/// A discipline behind which packets leave as soon as it permits.
struct Gate {
    qdisc: Box<dyn Qdisc + Send>,
    rng: rand_pcg::Pcg64Mcg,
    now: Time,
    dropped: Vec<Dropped>,
    marks: Marks,
    sent: Vec<(Time, Packet)>,
}

impl Gate {
    fn new(settings: &str) -> Gate {
        let settings: Vec<_> = settings
            .split_terminator(", ")
            .map(|one| one.split_once('=').unwrap())
            .map(|(name, value)| (name, Setting::Text(value)))
            .collect();
        let qdisc = crate::build("cake", &settings, Rate(1)).unwrap().qdisc;
        let rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let (dropped, marks, sent) = (Vec::new(), Marks::default(), Vec::new());
        Gate { qdisc, rng, now: Time::ZERO, dropped, marks, sent }
    }

    fn with<T>(&mut self, f: impl FnOnce(&mut dyn Qdisc, &mut Context<'_>) -> T) -> T {
        let Gate { qdisc, rng, now, dropped, marks, .. } = self;
        f(&mut **qdisc, &mut Context { now: *now, rng, dropped, marks })
    }

    /// Sends everything that may leave by `until`, each packet at its own time.
    fn run(&mut self, until: Time) {
        loop {
            let now = self.now;
            while let Some(packet) = self.with(|q, context| q.dequeue(context)) {
                self.sent.push((now, packet));
            }
            match self.qdisc.ready_at().filter(|at| *at <= until) {
                Some(at) => self.now = at,
                None => break,
            }
        }
        self.now = until;
    }

    fn put(&mut self, at: Time, packet: Packet) {
        self.run(Time(at.0.saturating_sub(1)).max(self.now));
        self.now = at;
        self.with(|q, context| q.enqueue(context, Packet { arrived: at, ..packet }));
        self.run(at);
    }

    /// Feeds each flow its packet every `gap` microseconds, for `ms` milliseconds.
    fn feed(&mut self, flows: &[(Packet, u64)], ms: u64) {
        let start = self.now.0;
        let mut due: Vec<u64> = (0..).map(|i| start + 1000 * i).take(flows.len()).collect();
        loop {
            let (next, at) = due.iter().copied().enumerate().min_by_key(|(_, at)| *at).unwrap();
            if at >= start + ms * 1_000_000 {
                return self.run(Time(start + ms * 1_000_000));
            }
            self.put(Time(at), flows[next].0);
            due[next] += flows[next].1 * 1000;
        }
    }

    /// Share of the bytes sent from `ms` on of the packets that `of` accepts.
    fn share(&self, ms: u64, of: impl Fn(&Packet) -> bool) -> f64 {
        let late = self.sent.iter().filter(|(at, _)| at.0 >= ms * 1_000_000).map(|(_, p)| p);
        let bytes = |p: &Packet| f64::from(p.len);
        late.clone().filter(|p| of(p)).map(bytes).sum::<f64>() / late.map(bytes).sum::<f64>()
    }

    fn gauge(&self, name: &str) -> f64 {
        let mut gauge = f64::NAN;
        self.qdisc.inspect(&mut |n, value| gauge = if n == name { value } else { gauge });
        gauge
    }
}

/// Packet of 1500 bytes of a flow between two hosts.
fn packet(flow: u32, source: u32, destination: u32) -> Packet {
    Packet { len: 1500, flow, hash: flow * 8, source, destination, ..Packet::default() }
}

fn of_class(flow: u32, class: u16) -> Packet {
    Packet { class, ..packet(flow, flow, flow) }
}

#[test]
fn the_rate_is_exact_and_idle_time_is_no_credit() {
    let mut gate = Gate::new("bandwidth=10mbit, limit=1000p");
    gate.feed(&[(packet(1, 1, 1), 1000)], 10_000);
    // 1.2 ms each: 8333 and a third, and the one that leaves at time 0.
    assert_eq!(gate.sent.len(), 8334);
    let last = gate.sent.last().unwrap().0;
    assert_eq!(last, Time(8333 * 1_200_000));
    gate.run(Time(30_000_000_000));
    gate.sent.clear();
    gate.put(Time(31_000_000_000), packet(1, 1, 1));
    gate.put(Time(31_000_000_000), packet(1, 1, 1));
    gate.run(Time(32_000_000_000));
    let at: Vec<u64> = gate.sent.iter().map(|(at, _)| at.0 - 31_000_000_000).collect();
    assert_eq!(at, [0, 1_200_000]);
}

#[test]
fn lengths_are_those_on_the_wire() {
    let gaps = |settings: &str, len| {
        let mut gate = Gate::new(&format!("bandwidth=8mbit, {settings}"));
        (0..3).for_each(|_| gate.put(Time(0), Packet { len, ..packet(1, 1, 1) }));
        gate.run(Time(1_000_000_000));
        gate.sent.windows(2).map(|w| (w[1].0.0 - w[0].0.0) / 1000).collect::<Vec<_>>()
    };
    // At 8 Mbit/s a byte takes a microsecond.
    assert_eq!(gaps("overhead=raw", 1500), [1500; 2]);
    assert_eq!(gaps("overhead=pppoe-vcmux", 1500), [32 * 53; 2]);
    assert_eq!(gaps("overhead=pppoe-ptm, header=14B", 1514), [1530 + 24; 2]);
    assert_eq!(gaps("overhead=ethernet", 40), [84; 2]);
    assert_eq!(
        gaps("overhead=raw, split_gso=true", 3040),
        [2 * 1514 + 92; 2],
        "52 bytes in a third one"
    );
    assert_eq!(gaps("overhead=raw", 3040), [3040; 2]);
}

#[test]
fn one_host_with_eight_flows_gets_as_much_as_one_with_one() {
    // Host 1 has flows 1 to 8, host 2 has flow 9; all offer more than there is.
    let mut flows: Vec<_> = (1..=8).map(|f| (packet(f, 1, 100 + f), 1000)).collect();
    flows.push((packet(9, 2, 109), 1000));
    let share = |isolation: &str| {
        let mut gate = Gate::new(&format!("bandwidth=20mbit, isolation={isolation}"));
        gate.feed(&flows, 4000);
        gate.share(1000, |p| p.source == 2)
    };
    let near = |x: f64, y: f64| assert!((x - y).abs() < 0.005, "{x}, expected {y}");
    near(share("triple_isolate"), 0.5);
    near(share("dual_srchost"), 0.5);
    near(share("srchost"), 0.5);
    near(share("dual_dsthost"), 1.0 / 9.0);
    near(share("flows"), 1.0 / 9.0);
    near(share("hosts"), 1.0 / 9.0);
}

#[test]
fn tins_have_precedence_up_to_their_thresholds() {
    // Each offers the whole rate of 16 Mbit/s; voice has a threshold of a quarter, bulk of 1/16.
    let shares = |classes: &[u16], tins: &str| {
        let mut gate = Gate::new(&format!("bandwidth=16mbit, tins={tins}"));
        let flows: Vec<_> = (1..).zip(classes).map(|(f, c)| (of_class(f, *c), 750)).collect();
        gate.feed(&flows, 3000);
        classes.iter().map(|c| gate.share(1000, |p| p.class == *c)).collect::<Vec<_>>()
    };
    let near = |gauge: Vec<f64>, expected: &[f64]| {
        let close = gauge.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.005);
        assert!(close, "{gauge:?}, expected {expected:?}");
    };
    near(shares(&[46, 0], "diffserv3"), &[0.25, 0.75]);
    near(shares(&[46, 8, 0], "diffserv3"), &[0.25, 0.0625, 0.6875]);
    near(shares(&[46], "diffserv3"), &[1.0]);
    near(shares(&[8], "diffserv3"), &[1.0]);
    near(shares(&[46, 34, 8, 0], "diffserv4"), &[0.25, 0.5, 0.0625, 0.1875]);
    near(shares(&[46, 0], "besteffort"), &[0.5, 0.5]);
}

#[test]
fn without_a_shaper_packets_leave_at_once_and_tins_share_by_weight() {
    let mut gate = Gate::new("tins=diffserv4");
    assert_eq!(gate.qdisc.ready_at(), None);
    let classes = [46, 34, 8, 0];
    for i in 0..4000 {
        gate.with(|q, context| q.enqueue(context, of_class(i % 4, classes[i as usize % 4])));
    }
    let mut sent = [0.0; 4];
    for _ in 0..1000 {
        let packet = gate.with(|q, context| q.dequeue(context)).unwrap();
        sent[packet.flow as usize] += 1.0 / 1000.0;
    }
    for (share, weight) in sent.into_iter().zip([256.0f64, 512.0, 64.0, 1024.0]) {
        assert!((share - weight / 1856.0).abs() < 0.01, "{sent:?}");
    }
}

#[test]
fn a_sparse_flow_waits_for_one_packet() {
    let mut flows: Vec<_> = (1..=8).map(|f| (packet(f, f, f), 1000)).collect();
    flows.push((Packet { len: 200, ..packet(9, 9, 9) }, 20_000));
    let mut gate = Gate::new("bandwidth=20mbit");
    gate.feed(&flows, 3000);
    let sparse = gate.sent.iter().filter(|(_, p)| p.flow == 9);
    // At the start all flows are new.
    let late = sparse.clone().filter(|(_, p)| p.arrived.0 > 1_000_000_000);
    let most = late.map(|(at, p)| (*at - p.arrived).0).max().unwrap();
    assert_eq!((sparse.count(), gate.dropped.iter().any(|l| l.packet.flow == 9)), (150, false));
    assert!(most <= 2 * 600_000, "{most} ns; a packet takes 600,000");
}

#[test]
fn full_memory_drops_the_head_of_the_longest_queue() {
    let mut gate = Gate::new("bandwidth=1mbit, limit=15000B");
    for i in 0..7 {
        gate.put(Time(0), Packet { body: i, ..packet(1, 1, 1) });
    }
    for i in 10..15 {
        gate.put(Time(0), Packet { body: i, ..packet(2, 2, 2) });
    }
    // The first has left; six and five are 16,500 bytes.
    let dropped =
        |gate: &Gate| gate.dropped.iter().map(|l| (l.packet.body, l.reason)).collect::<Vec<_>>();
    assert_eq!(dropped(&gate), [(1, DropReason::Full)]);
    assert_eq!(gate.qdisc.backlog(), Backlog { packets: 10, bytes: 15_000 });
    // An overflow raises BLUE's probability by 1/256.
    let gauges = ["memory", "p_blue", "count"].map(|name| gate.gauge(name));
    assert_eq!(gauges, [15_000.0, 1.0 / 256.0, 1.0]);
    gate.put(Time(0), Packet { body: 15, len: 100, ..packet(3, 3, 3) });
    assert_eq!(dropped(&gate)[1..], [(2, DropReason::Full)]);
    // By the memory of the kernel, four packets of 2304 bytes are within 10,000.
    let mut gate = Gate::new("bandwidth=1mbit, limit=10000B, memory=truesize");
    (0..9).for_each(|i| gate.put(Time(0), Packet { body: i, len: 1514, ..packet(1, 1, 1) }));
    assert_eq!((gate.sent.len(), gate.dropped.len()), (1, 4));
    assert_eq!(gate.gauge("memory"), 4.0 * 2304.0);
    let of = |len| Accounting::Truesize.of(len);
    assert_eq!([60, 208, 209, 656, 657].map(of), [832, 832, 1280, 1280, 2304]);
}

#[test]
fn the_limit_follows_rate_and_round_trip_time() {
    let limit = |settings| {
        let mut gate = Gate::new(settings);
        for i in 0..16_000 {
            gate.with(|q, context| q.enqueue(context, Packet { len: 1000, ..packet(1, 1, i) }));
        }
        gate.gauge("memory")
    };
    assert_eq!(limit("bandwidth=100mbit"), 5_000_000.0, "four intervals");
    assert_eq!(limit("bandwidth=10mbit"), 4_194_000.0, "4 MiB");
    assert_eq!(limit("bandwidth=1gbit"), 15_503_000.0, "10,240 packets");
    assert_eq!(limit("bandwidth=auto"), 15_503_000.0);
    assert_eq!(limit("bandwidth=100mbit, rtt=200ms"), 10_000_000.0);
}

#[test]
fn drops_on_ingress_use_up_the_rate() {
    let sent = |ingress| {
        let mut gate = Gate::new(&format!("bandwidth=12mbit, ingress={ingress}"));
        gate.feed(&[(packet(1, 1, 1), 800)], 20_000);
        let (sent, dropped) = (gate.sent.len() as f64, gate.dropped.len() as f64);
        (sent, dropped, gate.sent.last().unwrap().0.0 as f64 / 1e9)
    };
    let (plain, _, end) = sent(false);
    assert!((plain - 1000.0 * end).abs() < 2.0, "a packet per millisecond: {plain} by {end} s");
    // Sent and dropped together are the rate, but for the two thirds that always pass.
    let (sent, dropped, end) = sent(true);
    assert!(dropped > 100.0 && sent < plain);
    assert!(sent >= 2.0 / 3.0 * 1000.0 * end - 2.0);
    assert!(
        (sent + dropped - 1000.0 * end) < 0.01 * plain || sent < 0.68 * plain,
        "{sent} {dropped}"
    );
}

#[test]
fn the_last_packet_of_a_queue_is_marked_but_not_dropped() {
    let run = |ecn: Ecn| {
        let mut gate = Gate::new("bandwidth=1mbit, rtt=1ms, overhead=0 mpu 256");
        // Two flows of 100 packets/s each on a line for 83: one packet each, seconds old.
        for i in 0..3000u64 {
            gate.put(Time(i * 8_000_000), Packet { ecn, ..packet(1, 1, 1) });
        }
        gate.run(Time(100_000_000_000));
        (gate.marks.packets, gate.dropped.len(), gate.sent.len())
    };
    let (marks, dropped, sent) = run(Ecn::Ect0);
    assert!(marks > 100 && dropped == 0 && sent == 3000, "{marks} {dropped} {sent}");
    let (marks, dropped, sent) = run(Ecn::NotEct);
    assert!(marks == 0 && dropped > 100 && sent == 3000 - dropped, "{marks} {dropped} {sent}");
    let mut gate = Gate::new("bandwidth=1mbit, rtt=1us");
    for flow in 0..200 {
        gate.put(Time(0), Packet { ecn: Ecn::NotEct, ..packet(flow, flow, flow) });
    }
    gate.run(Time(100_000_000_000));
    assert_eq!((gate.dropped.len(), gate.sent.len()), (0, 200), "seconds old, but alone");
}

#[test]
fn superfluous_acks_are_removed() {
    let passed = |filter| {
        let mut gate = Gate::new(&format!("bandwidth=1mbit, ack_filter={filter}"));
        let tcp = TcpFlags::ACK.with(TcpFlags::PURE);
        for burst in 0..20u32 {
            for i in 0..8 {
                let ack = Packet { len: 66, ack: burst * 8 + i, tcp, ..packet(1, 1, 1) };
                gate.put(Time(u64::from(burst) * 20_000_000), ack);
            }
        }
        gate.run(Time(1_000_000_000));
        let last = gate.sent.last().unwrap().1.ack;
        assert_eq!((last, gate.sent.len() + gate.dropped.len()), (159, 160));
        assert!(gate.dropped.iter().all(|l| l.reason == DropReason::AfterEnqueue));
        gate.sent.len()
    };
    // Of each burst the first leaves at once; of the others the last two or the last one.
    assert_eq!([passed("off"), passed("on"), passed("aggressive")], [160, 60, 40]);
}

#[test]
fn a_packet_that_is_split_removes_no_ack() {
    let removed = |split, len| {
        let settings = format!("bandwidth=1mbit, ack_filter=on, split_gso={split}");
        let mut gate = Gate::new(&settings);
        gate.put(Time(0), packet(1, 1, 1));
        for ack in [1, 2] {
            let tcp = TcpFlags::ACK.with(TcpFlags::PURE);
            gate.put(Time(0), Packet { len: 66, ack, tcp, ..packet(1, 1, 1) });
        }
        // Data that acknowledges more than both.
        gate.put(Time(0), Packet { len, ack: 3, tcp: TcpFlags::ACK, ..packet(1, 1, 1) });
        gate.dropped.iter().map(|l| l.packet.ack).collect::<Vec<_>>()
    };
    assert_eq!(removed(false, 3028), [1]);
    let mtu = 1514;
    assert_eq!([mtu - 14, mtu, mtu + 1].map(|len| removed(true, len)), [vec![1], vec![1], vec![]]);
}

#[test]
fn code_points_are_washed_and_rates_follow_the_arrivals() {
    let mut gate = Gate::new("bandwidth=16mbit, wash=true");
    gate.feed(&[(of_class(1, 46), 750), (of_class(2, 0), 750)], 2000);
    assert!(gate.sent.iter().all(|(_, p)| p.class == 0));
    assert!((gate.share(500, |p| p.flow == 1) - 0.25).abs() < 0.01, "read before it is cleared");
    // 12 Mbit/s arrive on average: a packet per millisecond, every tenth one 50 us late.
    let mut gate = Gate::new("autorate_ingress=true");
    for i in 0..20_000u64 {
        let late = if i % 10 == 9 { 50_000 } else { 0 };
        gate.put(Time(i * 1_000_000 + late), packet(1, 1, 1));
    }
    let sent = gate.sent.iter().filter(|(at, _)| at.0 >= 10_000_000_000).count() as f64;
    assert!((sent / 10_000.0 / (15.0 / 16.0) - 1.0).abs() < 0.02, "{sent} packets in 10 s");
}

#[test]
fn packets_of_many_quanta_cost_no_round_each() {
    // Round by round, these would take a minute.
    for settings in [
        "bandwidth=100gbit, limit=1000GB, rtt=interplanetary",
        "limit=1000GB, rtt=interplanetary, isolation=triple_isolate",
    ] {
        let mut gate = Gate::new(settings);
        for i in 0..200 {
            for (flow, len) in [(1, 1_000_000_000), (2, 500_000_000), (2, 500_000_000)] {
                let large = Packet { len, body: i, ..packet(flow, 1, flow) };
                gate.with(|q, context| q.enqueue(context, large));
            }
        }
        gate.run(Time(100_000_000_000_000));
        let half = gate.sent[..300].iter().filter(|(_, p)| p.flow == 1).count();
        assert!((99..=101).contains(&half), "{half} of 100");
        assert_eq!(gate.sent.len(), 600);
    }
}

/// Flows of the packets that leave at time 0, without a shaper.
fn order_of(settings: &str, packets: impl IntoIterator<Item = (Packet, u32)>) -> Vec<u32> {
    let mut gate = Gate::new(&format!("limit=1000000p, tins=besteffort, {settings}"));
    for (packet, len) in packets {
        gate.with(|q, context| q.enqueue(context, Packet { len, ..packet }));
    }
    gate.run(Time(0));
    gate.sent.iter().map(|(_, packet)| packet.flow).collect()
}

#[test]
fn a_large_debt_is_paid_at_once_but_not_while_a_new_flow_sends() {
    let flow = |i| packet(i, i, i);
    // 4 GB are 2.6 million quanta of 1514 bytes.
    let alone = order_of("isolation=flows", (0..40).map(|_| (flow(1), 4_000_000_000)));
    assert_eq!(alone, [1; 40]);
    // The 100 flows of a host get 15 bytes per round.
    let many = (0..500).map(|i| (packet(i % 100, 1, i % 100), 4_000_000_000));
    assert_eq!(order_of("isolation=dual_srchost", many).len(), 500);
    // The debt of flow 1 is 660 rounds long; flow 2 has all of its 20,000 bytes sent in 14.
    let mut packets = vec![(flow(1), 1_000_000), (flow(1), 1000)];
    packets.extend([(flow(2), 1000); 20]);
    let mut expected = vec![1];
    expected.extend([2; 20]);
    expected.push(1);
    assert_eq!(order_of("isolation=flows", packets), expected);
}

#[test]
fn debts_that_are_paid_at_once_leave_no_more_than_a_quantum() {
    let mut packets = Vec::new();
    for i in [1, 2] {
        packets.push((packet(i, i, i), 1_000_000_000));
        packets.extend([(packet(i, i, i), 1000); 10]);
    }
    let order = order_of("isolation=flows", packets);
    // 1514 bytes are at most two packets.
    assert!(order.windows(3).all(|w| w != [w[0]; 3]), "{order:?}");
}
