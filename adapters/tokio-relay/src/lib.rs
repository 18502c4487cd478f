//! UDP relay on tokio: datagrams of clients cross a link of sojourn to a server, answers another.

use sojourn_aqm::{Clock, FiveTuple, Packet, TimedLink};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep_until};

/// Headers of IPv4 and UDP, bytes.
const HEADERS: u32 = 28;

/// Largest datagram, bytes.
const DATAGRAM: usize = 65_535;

/// Datagram with the address of the client, and the socket that sends it.
#[derive(Debug)]
pub struct Datagram {
    client: SocketAddr,
    bytes: Vec<u8>,
    socket: Arc<UdpSocket>,
    to: SocketAddr,
}

/// Relays between the clients of `socket` and `server` until an error of the socket: `up` carries
/// datagrams to the server, `down` the answers. Each client has a socket to the server. `salt`
/// makes flow hashes unpredictable: draw it at random.
///
/// # Errors
/// An error of the sockets.
pub async fn relay(
    socket: UdpSocket,
    server: SocketAddr,
    up: TimedLink<Datagram>,
    down: TimedLink<Datagram>,
    salt: u64,
) -> io::Result<()> {
    let (up_queue, up_arrivals) = channel(1024);
    let (down_queue, down_arrivals) = channel(1024);
    tokio::spawn(serve(up, up_arrivals, salt));
    tokio::spawn(serve(down, down_arrivals, salt));
    let socket = Arc::new(socket);
    let mut sockets = BTreeMap::new();
    let mut buffer = vec![0; DATAGRAM];
    loop {
        let (len, client) = socket.recv_from(&mut buffer).await?;
        if !sockets.contains_key(&client) {
            let any =
                SocketAddr::new(if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() }, 0);
            let own = Arc::new(UdpSocket::bind(any).await?);
            own.connect(server).await?;
            tokio::spawn(answers(own.clone(), client, socket.clone(), down_queue.clone()));
            sockets.insert(client, own);
        }
        let socket = sockets[&client].clone();
        let bytes = buffer[..len].to_vec();
        // A full channel means that the link is behind: the datagram is lost, as in a socket.
        _ = up_queue.try_send(Datagram { client, bytes, socket, to: server });
    }
}

/// Passes answers of the server to a client on.
async fn answers(
    from: Arc<UdpSocket>,
    client: SocketAddr,
    socket: Arc<UdpSocket>,
    queue: Sender<Datagram>,
) {
    let mut buffer = vec![0; DATAGRAM];
    while let Ok(len) = from.recv(&mut buffer).await {
        let (socket, bytes) = (socket.clone(), buffer[..len].to_vec());
        _ = queue.try_send(Datagram { client, bytes, socket, to: client });
    }
}

/// Runs a link: pushes what arrives, and sends what reaches the far end.
async fn serve(mut link: TimedLink<Datagram>, mut arrivals: Receiver<Datagram>, salt: u64) {
    let clock = Clock::new(now());
    loop {
        let due = link.next_poll().and_then(|at| clock.instant(at));
        let due = due.unwrap_or_else(|| now() + Duration::from_secs(3600)); // an idle link
        tokio::select! {
            arrival = arrivals.recv() => {
                let Some(datagram) = arrival else { return };
                let len = u32::try_from(datagram.bytes.len()).expect("a datagram") + HEADERS;
                let flow = FiveTuple {
                    source: datagram.client.ip(),
                    destination: datagram.to.ip(),
                    protocol: 17,
                    source_port: datagram.client.port(),
                    destination_port: datagram.to.port(),
                };
                let packet = flow.identify(salt, Packet { len, ..Packet::default() });
                link.push(clock.time(now()), packet, datagram).expect("time goes on");
            }
            () = sleep_until(due.into()) => {}
        }
        while let Some(delivery) = link.poll(clock.time(now())).expect("time goes on") {
            let Datagram { bytes, socket, to, client } = delivery.body;
            // The socket of a client is connected to the server.
            _ = if to == client { socket.try_send_to(&bytes, to) } else { socket.try_send(&bytes) };
        }
    }
}

/// Current time, by which tokio's timers go: in tests it can be virtual.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}
