//! The pump over socket pairs: needs no privileges; no bound on lateness is asserted.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]
#![cfg(target_os = "linux")]

mod common;

use common::{link, spec, udp};
use rustix::io::{read, write};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use sojourn_aqm::{Link, LinkSpec, LogEntry, Packet, Span, Time};
use sojourn_live::{Direction, DirectionConfig, Pump, Report, Start};
use std::os::fd::OwnedFd;
use std::thread;

/// Socket pair: the program's end, and the pump's.
fn pair() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

/// Sends packets of several sizes, flows and ECN fields in bursts, for some tens of milliseconds.
fn load(into: &OwnedFd, packets: u32) {
    for i in 0..packets {
        let len = [100, 1500, 700, 1500][i as usize % 4];
        write(into, &udp(len, (i % 7) as u16, (i % 3) as u8, i)).unwrap();
        if i % 50 == 0 {
            thread::sleep(std::time::Duration::from_millis(3));
        }
    }
}

/// Sends a load through `up` and returns the report of that direction.
fn run(up: DirectionConfig, packets: u32) -> Report<Direction> {
    let mut hop = Direction::new(up);
    hop.enable_packet_log();
    hop.sample_every(Span::ms(7), Box::new(|_, link| link.inspect(&mut |_, _| {})));
    let ((program, near), (far, server)) = (pair(), pair());
    let down = Direction::new(spec("droptail", &[("limit", "10p")], link(1, 0)));
    let pump = Pump::start_bidirectional(near, far, hop, down, Start::now()).unwrap();
    let drain = thread::spawn(move || {
        let mut buffer = [0; 2048];
        while read(&server, &mut buffer).is_ok_and(|n| n > 0) {}
    });
    load(&program, packets);
    let [up, down] = <[_; 2]>::try_from(pump.stop()).ok().unwrap();
    drain.join().unwrap();
    assert!(down.unwrap().failed.is_none());
    up.unwrap()
}

/// Packet log of `link` for the arrivals of a live run, called at their times only.
fn replayed(
    mut link: Link,
    changes: &[(Time, LinkSpec)],
    arrivals: &[Packet],
    end: Time,
) -> Vec<LogEntry> {
    link.enable_packet_log();
    let mut changes = changes.iter().peekable();
    for packet in arrivals {
        while let Some((at, spec)) = changes.next_if(|(at, _)| *at <= packet.arrived) {
            link.change(*at, *spec);
        }
        link.push(packet.arrived, *packet);
    }
    changes.filter(|(at, _)| *at <= end).for_each(|(at, spec)| link.change(*at, *spec));
    link.advance(end);
    link.packet_log().to_vec()
}

#[test]
fn live_equals_simulated_under_every_discipline() {
    let speed = link(100, 1);
    for entry in sojourn_aqm::registry::REGISTRY {
        let make = || spec(entry.name, &[("limit", "60kB")], speed);
        let mut report = run(make(), 400);
        let arrivals = report.carrier.arrivals().to_vec();
        let end = Time::ZERO + report.ran;
        let simulated = replayed(make().timed_link.link, &[], &arrivals, end);
        assert!(arrivals.len() > 300, "{}: {} arrived", entry.name, arrivals.len());
        assert!(report.carrier.link().packet_log() == simulated, "{}", entry.name);
        assert!(report.failed.is_none());
    }
}

#[test]
fn live_equals_simulated_while_the_link_changes() {
    let changes: Vec<(Time, LinkSpec)> = (0..40)
        .map(|i| (Time(i * 1_000_000), link([5, 80, 0, 30][i as usize % 4], i % 3)))
        .collect();
    let make = || {
        let list = changes.clone().into_iter();
        let mut spec = spec("codel", &[("limit", "60kB")], link(5, 0));
        spec.timed_link.schedule_changes(Box::new(list));
        spec
    };
    let mut report = run(make(), 600);
    let arrivals = report.carrier.arrivals().to_vec();
    let end = Time::ZERO + report.ran;
    let simulated = replayed(make().timed_link.link, &changes, &arrivals, end);
    assert!(simulated.iter().any(|row| row.why.is_some()), "some packets are dropped");
    assert!(report.carrier.link().packet_log() == simulated);
}

#[test]
fn packets_cross_both_ways_unchanged_and_not_too_early() {
    let make = || Direction::new(spec("droptail", &[("limit", "100p")], link(10, 5)));
    let ((program, near), (far, server)) = (pair(), pair());
    let pump = Pump::start_bidirectional(near, far, make(), make(), Start::now()).unwrap();
    let mut buffer = [0; 2048];
    // A stopwatch of its own, because processor time would not show waiting.
    #[expect(clippy::disallowed_methods, reason = "a bound from below, of what must take time")]
    let start = std::time::Instant::now();
    for i in 0..5 {
        write(&program, &udp(1000, 1, 0, i)).unwrap();
        let n = read(&server, &mut buffer).unwrap();
        assert_eq!(buffer[..n], udp(1000, 1, 0, i));
        write(&server, &buffer[..n]).unwrap();
        let n = read(&program, &mut buffer).unwrap();
        assert_eq!(buffer[..n], udp(1000, 1, 0, i));
    }
    // 0.8 ms transmission and 5 ms delay in each direction, five times.
    assert!(start.elapsed().as_millis() >= 58, "{:?}", start.elapsed());
    assert!(!pump.has_failed());
    for report in pump.stop() {
        let report = report.unwrap();
        assert_eq!(report.carrier.counts().delivered, 5);
        assert!(report.ran >= Span::ms(58) && report.cpu < report.ran);
    }
}

#[test]
fn a_pump_with_a_closed_end_stops_and_reports_failure() {
    let make = || Direction::new(spec("droptail", &[("limit", "100p")], link(10, 0)));
    let ((program, near), (far, _server)) = (pair(), pair());
    let pump = Pump::start_bidirectional(near, far, make(), make(), Start::now()).unwrap();
    drop(program);
    while !pump.has_failed() {
        thread::yield_now();
    }
    let ended: Vec<_> = pump.stop().into_iter().map(Option::unwrap).collect();
    let [up, down] = <[_; 2]>::try_from(ended).ok().unwrap();
    assert!(up.failed.is_some() && down.failed.is_none());
}
