//! Network of links in virtual time.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]
#![cfg(target_os = "linux")]

mod common;

use common::{link, made};
use sojourn_aqm::{Opportunities, Span, Time};
use sojourn_live::network::{FIRST_HOST, HostPair, PairStats};
use sojourn_live::pump::Transport;
use sojourn_live::{Network, NetworkConfig, Route, TimedLink};

const SECOND: u64 = 1_000_000_000;

/// Packet from a host at `end` to its peer.
fn packet(end: u8, host: u32, len: usize, protocol: u8, inner: &[u8]) -> Vec<u8> {
    let mut p = vec![0x45, 2];
    p.extend((len as u16).to_be_bytes());
    p.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    let [_, _, x, y] = (FIRST_HOST + host).to_be_bytes();
    p.extend([198, 18 + end, x, y, 198, 19 - end, x, y]);
    p.extend(inner);
    p.resize(len, 0);
    p
}

/// TCP segment with a header of 20 bytes.
fn segment(end: u8, host: u32, sequence: u32, payload: usize, syn: bool) -> Vec<u8> {
    let ports: [u16; 2] = if end == 0 { [7000, 5001] } else { [5001, 7000] };
    let mut inner: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
    inner.extend(sequence.to_be_bytes());
    inner.extend([0, 0, 0, 0, 5 << 4, u8::from(syn) << 1 | 16, 0, 0]);
    packet(end, host, 40 + payload, 6, &inner)
}

fn put(net: &mut Network, end: usize, ms: u64, packet: &[u8]) {
    net.receive_buffer()[..packet.len()].copy_from_slice(packet);
    net.accept(end, Time(ms * 1_000_000), packet.len());
}

/// Packets that leave by `ms`: time, end, bytes.
fn leave(net: &mut Network, ms: u64) -> Vec<(u64, usize, Vec<u8>)> {
    let (mut left, now) = (Vec::new(), Time(ms * 1_000_000));
    while let Some(due) = net.next_delivery(now) {
        let (to, bytes) = net.delivery_bytes(&due);
        left.push((due.at.0 / 1000, to, bytes.to_vec()));
        net.on_written(due, now, false);
    }
    left
}

fn net(links: Vec<TimedLink>, routes: [Route; 2]) -> Network {
    sampled(links, routes, None)
}

fn sampled(links: Vec<TimedLink>, routes: [Route; 2], sample: Option<Span>) -> Network {
    let pair = HostPair { routes, class: 3, hosts: [1, 2] };
    let pairs = vec![pair.clone(), pair];
    let (warm, end) = (Time(SECOND), Time(3 * SECOND));
    Network::new(NetworkConfig { links, pairs, warm, end, sample, salt: 1 })
}

fn links(rates: &[u64]) -> Vec<TimedLink> {
    let timed_link = |mbit: &u64| {
        let mut timed_link = TimedLink::new(made("droptail", &[("limit", "10p")], link(*mbit, 5)));
        timed_link.link.enable_packet_log();
        timed_link
    };
    rates.iter().map(timed_link).collect()
}

#[test]
fn packets_cross_their_links_and_return_after_a_delay() {
    let there = Route { path: vec![1, 0], delay: Span::ZERO };
    let back = Route { path: vec![], delay: Span::ms(30) };
    let mut net = net(links(&[8, 4]), [there, back]);
    let (one, two) = (segment(0, 0, 10, 960, false), segment(0, 1, 10, 460, false));
    put(&mut net, 0, 0, &one);
    put(&mut net, 0, 0, &two);
    put(&mut net, 1, 1, &segment(1, 1, 5, 0, false));
    // The first: 2 ms transmission on the slow link, 5 ms delay, 1 ms on the fast one, 5 ms delay.
    // The second starts behind it on the slow link and takes 1 ms there.
    let left = leave(&mut net, 100);
    assert_eq!(left[0], (13_000, 1, one));
    assert_eq!(left[1], (13_500, 1, two));
    assert_eq!((left[2].0, left[2].1), (31_000, 0));
    assert_eq!((left.len(), net.packets_held(), net.host_pair_of_flow()), (3, 0, vec![0, 1]));
    let waited: Vec<u64> = net.links()[1]
        .link
        .packet_log()
        .iter()
        .map(|r| (r.left - r.packet.arrived).0 / 1000)
        .collect();
    assert_eq!(waited, [0, 2000], "sojourn times count from the arrival at the link");
}

#[test]
fn retransmissions_and_losses_are_counted_after_the_warm_up() {
    let route = || Route { path: vec![0], delay: Span::ZERO };
    let mut net = net(links(&[8]), [route(), route()]);
    put(&mut net, 0, 10, &segment(0, 0, u32::MAX - 1, 0, true));
    put(&mut net, 0, 20, &segment(0, 0, u32::MAX, 500, false));
    leave(&mut net, 1000);
    assert_eq!(net.sent_by_pair()[0], PairStats::default());
    // Across the wraparound: new, retransmission, new; then datagrams that overflow the queue.
    put(&mut net, 0, 1100, &segment(0, 0, 499, 500, false));
    put(&mut net, 0, 1101, &segment(0, 0, u32::MAX, 500, false));
    put(&mut net, 0, 1102, &segment(0, 0, 999, 500, false));
    put(&mut net, 1, 1103, &segment(1, 0, 9, 0, false));
    leave(&mut net, 1500);
    (0..20).for_each(|_| put(&mut net, 0, 1600, &packet(0, 1, 1000, 17, &[1, 2, 3, 4])));
    leave(&mut net, 2500);
    assert_eq!(net.sent_by_pair()[0], PairStats { packets: 3, retransmitted: 1, lost: 0 });
    assert_eq!(net.sent_by_pair()[1], PairStats { packets: 20, retransmitted: 0, lost: 9 });
    // The same ports are reused with a new sequence number.
    put(&mut net, 0, 2600, &segment(0, 0, 100, 0, true));
    put(&mut net, 0, 2610, &segment(0, 0, 101, 500, false));
    assert_eq!(net.sent_by_pair()[0].retransmitted, 1);
}

#[test]
fn received_bytes_are_sampled() {
    let route = || Route { path: vec![0], delay: Span::ZERO };
    let mut net = sampled(links(&[8]), [route(), route()], Some(Span::ms(10)));
    // 1 ms transmission and 5 ms delay each. Pure acks do not count, data in either direction does.
    put(&mut net, 0, 0, &segment(0, 0, 10, 960, false));
    put(&mut net, 0, 1, &segment(0, 1, 10, 460, false));
    put(&mut net, 1, 2, &segment(1, 1, 5, 0, false));
    put(&mut net, 1, 12, &segment(1, 1, 5, 160, false));
    put(&mut net, 0, 34, &segment(0, 0, 970, 960, false));
    leave(&mut net, 45);
    let seen = net.received_by_sample();
    assert_eq!(
        seen,
        [[1000, 500], [0, 200], [0, 0], [0, 0]],
        "arrival at the time of a sample is not included"
    );
    leave(&mut net, 3000);
    assert_eq!(net.received_by_sample().len(), 300);
    assert_eq!(net.received_by_sample()[4], [1000, 0]);
}

#[test]
fn invalid_addresses_are_counted_and_nothing_arrives_after_the_end() {
    let route = || Route { path: vec![0], delay: Span::ZERO };
    let mut net = net(links(&[8]), [route(), route()]);
    let mut to_another = segment(0, 0, 1, 100, false);
    to_another[19] += 1;
    put(&mut net, 0, 0, &to_another);
    put(&mut net, 0, 0, &segment(0, 2, 1, 100, false)); // there are two hosts
    put(&mut net, 1, 0, &segment(0, 0, 1, 100, false)); // from the wrong end
    put(&mut net, 0, 0, &[0x60; 40]);
    put(&mut net, 0, 0, &[]);
    assert_eq!((net.counts().malformed, net.packets_held()), (5, 0));
    put(&mut net, 0, 3000, &segment(0, 0, 1, 100, false));
    put(&mut net, 0, 2999, &segment(0, 0, 1, 960, false));
    assert_eq!(leave(&mut net, 4000).len(), 0, "due after the end");
    assert_eq!((net.next_event_time(), net.packets_held()), (None, 1));
}

#[test]
fn a_trace_driven_link_drains() {
    let mut links = links(&[8]);
    let every_ten = Opportunities::new(vec![Span::ms(10)], 1504, 4).unwrap();
    links[0].link.set_opportunities(every_ten);
    let route = || Route { path: vec![0], delay: Span::ZERO };
    let mut net = net(links, [route(), Route::default()]);
    (0..3).for_each(|i| put(&mut net, 0, 3, &segment(0, 0, i * 1460 + 1, 1460, false)));
    let times: Vec<u64> = leave(&mut net, 100).iter().map(|left| left.0 / 1000).collect();
    assert_eq!(times, [15, 25, 35]);
}
