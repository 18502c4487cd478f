//! A transfer of smoltcp's TCP through a link of 10 Mbit/s, in virtual time.

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::{self, CongestionControl};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use sojourn_adapter_smoltcp::{LinkDevice, joined};
use sojourn_aqm::{Rate, Span, TimedLink};

/// Largest queue of the socket: smoltcp's TCP has this window at most.
const WINDOW: usize = 256_000;

struct Host {
    device: LinkDevice,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

impl Host {
    fn new(mut device: LinkDevice, address: u8) -> Host {
        let config = Config::new(HardwareAddress::Ip);
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        let cidr = IpCidr::new(IpAddress::v4(10, 0, 0, address), 24);
        interface.update_ip_addrs(|addresses| addresses.push(cidr).unwrap());
        let buffer = || tcp::SocketBuffer::new(vec![0; WINDOW]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_congestion_control(CongestionControl::Cubic);
        socket.set_ack_delay(None);
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Host { device, interface, sockets, socket }
    }

    fn socket(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    fn poll(&mut self, now: Instant) {
        self.interface.poll(now, &mut self.device, &mut self.sockets);
    }

    fn next(&mut self, now: Instant) -> Option<Instant> {
        self.interface.poll_at(now, &self.sockets)
    }
}

/// Goodput in Mbit/s, sojourn times in ms (median, 99th percentile), and drops.
#[derive(Debug, PartialEq)]
struct Outcome {
    mbit: f64,
    p50_ms: f64,
    p99_ms: f64,
    dropped: u64,
}

fn transfer(qdisc: &str) -> Outcome {
    let link = |qdisc, rate| {
        TimedLink::builder(qdisc, Rate(rate), Span::ms(20)).build().expect("a valid link")
    };
    let [a, b] = joined([link(qdisc, 10_000_000), link("droptail", 100_000_000)], 1500);
    let (mut client, mut server) = (Host::new(a, 1), Host::new(b, 2));
    server.socket().listen(80).unwrap();
    let Host { interface, sockets, socket, .. } = &mut client;
    let socket = sockets.get_mut::<tcp::Socket>(*socket);
    socket.connect(interface.context(), (IpAddress::v4(10, 0, 0, 2), 80), 50_000).unwrap();

    let (seconds, mut received, mut now) = (20, 0, Instant::ZERO);
    while now < Instant::from_secs(seconds) {
        client.poll(now);
        server.poll(now);
        while client.socket().can_send() {
            client.socket().send_slice(&[0; 4096]).unwrap();
        }
        while server.socket().can_recv() {
            received += server.socket().recv(|data| (data.len(), data.len())).unwrap();
        }
        client.poll(now);
        server.poll(now); // sends the window that reading has opened
        let timers = client.next(now).into_iter().chain(server.next(now));
        let next = timers.chain(client.device.next_arrival()).min();
        now = next.unwrap_or(now).max(now + Duration::from_micros(1));
    }
    let mut link = client.device.link();
    let stats = link.stats();
    let quantile = |q| stats.sojourn.quantile_s(q).unwrap() * 1e3;
    Outcome {
        mbit: received as f64 * 8.0 / seconds as f64 / 1e6,
        p50_ms: quantile(0.5),
        p99_ms: quantile(0.99),
        dropped: stats.dropped(),
    }
}

#[test]
fn codel_keeps_the_delay_of_a_transfer_short() {
    let [tail, codel] = ["droptail", "codel"].map(transfer);
    println!("{tail:?}\n{codel:?}");
    // The window is 205 ms at this rate, 165 ms more than the path holds.
    assert!(tail.mbit > 9.0 && tail.p50_ms > 100.0, "{tail:?}");
    assert!(codel.p50_ms < 20.0 && codel.dropped > 0, "{codel:?}");
    // smoltcp's TCP has no selective acknowledgements, so that it loses speed with each drop.
    assert!(codel.mbit > 4.0, "{codel:?}");
}

#[test]
fn a_transfer_is_equal_each_time() {
    assert_eq!(transfer("fq_codel"), transfer("fq_codel"));
}
