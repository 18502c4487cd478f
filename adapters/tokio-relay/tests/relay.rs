//! A relay on the loopback device: rate, delay, and a thin flow next to a flood.

use sojourn_adapter_tokio_relay::relay;
use sojourn_aqm::{Rate, Span, TimedLink};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::time::{interval, timeout};

/// A flood of 12 Mbit/s and a thin flow of 50 datagrams/s through 8 Mbit/s for a second. Returns
/// the median delay of the thin flow, and the flood's rate at the server in Mbit/s.
async fn thin_flow(qdisc: &str) -> (Duration, f64) {
    let link = |qdisc, rate| TimedLink::builder(qdisc, Rate(rate), Span::ms(2)).build().unwrap();
    let bind = || UdpSocket::bind("127.0.0.1:0");
    let (server, relayed) = (bind().await.unwrap(), bind().await.unwrap());
    let (to, server_address) = (relayed.local_addr().unwrap(), server.local_addr().unwrap());
    let (up, down) = (link(qdisc, 8_000_000), link("droptail", 100_000_000));
    let relay = tokio::spawn(relay(relayed, server_address, up, down, 7));

    let flood = tokio::spawn(async move {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut ticks = interval(Duration::from_millis(1));
        for _ in 0..1000 {
            ticks.tick().await;
            for len in [972, 472] {
                _ = socket.send_to(&[1; 972][..len], to).await;
            }
        }
    });
    let start = Instant::now();
    let thin = tokio::spawn(async move {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut ticks = interval(Duration::from_millis(20));
        for _ in 0..50 {
            ticks.tick().await;
            let mut bytes = [0; 72];
            bytes[..16].copy_from_slice(&start.elapsed().as_nanos().to_le_bytes());
            _ = socket.send_to(&bytes, to).await;
        }
    });
    let (mut delays, mut bytes, mut buffer) = (Vec::new(), 0, [0; 2000]);
    while let Ok(Ok((len, _))) =
        timeout(Duration::from_millis(500), server.recv_from(&mut buffer)).await
    {
        if len == 72 {
            let sent = u128::from_le_bytes(buffer[..16].try_into().unwrap());
            let nanos = start.elapsed().as_nanos().saturating_sub(sent);
            delays.push(Duration::from_nanos(u64::try_from(nanos).unwrap()));
        } else if start.elapsed() < Duration::from_secs(1) {
            bytes += len + 28;
        }
    }
    (flood.await.unwrap(), thin.await.unwrap());
    relay.abort();
    delays.sort();
    assert!(delays.len() > 25, "{} datagrams of the thin flow", delays.len());
    (delays[delays.len() / 2], bytes as f64 * 8.0 / 1e6)
}

#[tokio::test]
async fn a_thin_flow_waits_with_a_flood_but_not_with_fair_queues() {
    let (tail, rate) = thin_flow("droptail").await;
    let (fair, fair_rate) = thin_flow("fq_codel").await;
    println!("droptail {tail:?} at {rate} Mbit/s, fq_codel {fair:?} at {fair_rate} Mbit/s");
    assert!((6.0..8.5).contains(&rate) && (6.0..8.5).contains(&fair_rate), "{rate} {fair_rate}");
    assert!(fair < tail / 2, "fq_codel {fair:?}, droptail {tail:?}");
}

#[tokio::test]
async fn answers_return_to_their_client() {
    let link = || TimedLink::builder("codel", Rate(10_000_000), Span::ms(10)).build().unwrap();
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let relayed = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (to, address) = (relayed.local_addr().unwrap(), server.local_addr().unwrap());
    let relay = tokio::spawn(relay(relayed, address, link(), link(), 7));
    tokio::spawn(async move {
        let mut buffer = [0; 100];
        while let Ok((len, from)) = server.recv_from(&mut buffer).await {
            server.send_to(&buffer[..len], from).await.unwrap();
        }
    });
    for name in [b"one", b"two"] {
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (start, mut buffer) = (Instant::now(), [0; 100]);
        client.send_to(name, to).await.unwrap();
        let len = timeout(Duration::from_secs(5), client.recv(&mut buffer)).await.unwrap().unwrap();
        assert_eq!(&buffer[..len], name);
        assert!(start.elapsed() >= Duration::from_millis(20), "{:?}", start.elapsed());
    }
    relay.abort();
}
