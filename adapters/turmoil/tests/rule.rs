//! Datagrams, and a transfer of turmoil's TCP, through a rule with a link of sojourn.

use sojourn_adapter_turmoil::LinkRule;
use sojourn_aqm::{LinkSpec, Rate, Span};
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use turmoil_net::fixture::ClientServer;
use turmoil_net::shim::tokio::net::UdpSocket;

const SERVER: &str = "10.1.0.2";

/// Sends datagrams of 1000 bytes at 16 Mbit/s through 8 Mbit/s. Returns the number that arrived,
/// and the delay of the last one.
fn flood(qdisc: &str, datagrams: u32) -> (u32, Duration) {
    let to: IpAddr = SERVER.parse().unwrap();
    let spec = LinkSpec::new(Rate(8_000_000), Span::ms(5));
    let rule = LinkRule::new(qdisc, spec, 1, to).unwrap();
    let seen = Rc::new(Cell::new((0, Duration::ZERO)));
    let counts = Rc::clone(&seen);
    let server = async move {
        let socket = UdpSocket::bind("0.0.0.0:9").await.unwrap();
        let (mut buffer, start) = ([0; 2000], Instant::now());
        while let Ok((_, _)) = socket.recv_from(&mut buffer).await {
            let sent = u64::from_le_bytes(buffer[..8].try_into().unwrap());
            let delay = start.elapsed().saturating_sub(Duration::from_nanos(sent));
            counts.set((counts.get().0 + 1, delay));
        }
    };
    ClientServer::new().server(SERVER, server).run("10.1.0.1", async move {
        let guard = turmoil_net::rule(rule);
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let (mut bytes, start) = ([0; 972], Instant::now()); // 1000 bytes with headers
        for n in 0..datagrams {
            let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap();
            bytes[..8].copy_from_slice(&nanos.to_le_bytes());
            socket.send_to(&bytes, (SERVER, 9)).await.unwrap();
            if n % 2 == 1 {
                sleep(Duration::from_millis(1)).await;
            }
        }
        _ = timeout(Duration::from_secs(2), std::future::pending::<()>()).await;
        drop(guard);
    });
    seen.get()
}

#[test]
fn a_full_queue_drops_and_delays() {
    // 100 packets last 100 ms, 5 ms of delay follow; a tick of the fixture is 1 ms.
    let (count, last) = flood("droptail(limit=100p)", 1000);
    assert!((595..=605).contains(&count), "{count}: 500 in half a second, and the queue");
    assert!((104..=110).contains(&last.as_millis()), "{last:?}");
}

#[test]
fn pie_keeps_the_queue_shorter_and_runs_are_equal() {
    let [tail, pie, again] =
        ["droptail", "pie", "pie"].map(|name| flood(&format!("{name}(limit=500p)"), 8000));
    assert!(tail.1.as_millis() > 500 && pie.1.as_millis() < 60, "{tail:?} {pie:?}");
    assert_eq!(pie, again);
}

#[test]
fn disciplines_that_decide_later_are_refused() {
    let spec = LinkSpec::new(Rate(8_000_000), Span::ms(5));
    for name in ["codel", "fq_codel", "cake"] {
        let error = LinkRule::new(name, spec, 1, SERVER.parse().unwrap()).unwrap_err();
        assert!(error.to_string().starts_with("qdisc: decides about packets after"), "{error}");
    }
    assert!(LinkRule::new("codle", spec, 1, SERVER.parse().unwrap()).is_err());
}
