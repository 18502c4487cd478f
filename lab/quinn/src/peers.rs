//! A client and a server of quinn as state machines.

use bytes::BytesMut;
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    ServerConfig, StreamId, TransportConfig, VarInt,
};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// UDP payload of a full packet: 1500 bytes with the headers of IPv4 and UDP.
const DATAGRAM: u16 = 1472;

/// Endpoint of quinn with its connection.
pub struct Peer {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    remote: SocketAddr,
    /// Stream of the transfer.
    stream: Option<StreamId>,
    /// Bytes of the application read.
    pub read: u64,
}

/// Returns a client that sends to a server, and the server.
pub fn pair(control: &str, seed: u64, now: Instant) -> [Peer; 2] {
    let [client_address, server_address] =
        [4433, 4434].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let key = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a name");
    let certificate = key.cert.der().clone();
    let private = PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()).into();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a certificate");
    let transport = Arc::new(transport(control));
    let mut server = ServerConfig::with_single_cert(vec![certificate], private).expect("a key");
    server.transport_config(Arc::clone(&transport));
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).expect("roots");
    client.transport_config(transport);
    let endpoint = |server: Option<ServerConfig>, lane: u8| {
        let mut key = [lane; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let config = Arc::new(EndpointConfig::default());
        Endpoint::new(config, server.map(Arc::new), false, Some(key))
    };
    let peer = |endpoint, remote| Peer { endpoint, connection: None, remote, stream: None, read: 0 };
    let mut sender = peer(endpoint(None, 1), server_address);
    let connection = sender.endpoint.connect(now, client, server_address, "localhost");
    sender.connection = Some(connection.expect("a valid address"));
    [sender, peer(endpoint(Some(server), 2), client_address)]
}

/// Returns quinn's defaults, with packets of 1500 bytes from the start and without limits of
/// flow control.
fn transport(control: &str) -> TransportConfig {
    let mut config = TransportConfig::default();
    let window = u64::from(DATAGRAM) * 10;
    let controller: Arc<dyn ControllerFactory + Send + Sync> = match control {
        "reno" => {
            let mut reno = NewRenoConfig::default();
            Arc::new(reno.initial_window(window).clone())
        }
        "cubic" => {
            let mut cubic = CubicConfig::default();
            Arc::new(cubic.initial_window(window).clone())
        }
        "bbr" => {
            let mut bbr = BbrConfig::default();
            Arc::new(bbr.initial_window(window).clone())
        }
        _ => panic!("no control {control}"),
    };
    config.congestion_controller_factory(controller);
    config.initial_mtu(DATAGRAM).min_mtu(DATAGRAM).mtu_discovery_config(None);
    config.enable_segmentation_offload(false);
    let unlimited = VarInt::from_u64(1 << 40).expect("below 2^62");
    config.stream_receive_window(unlimited).receive_window(unlimited).send_window(1 << 24);
    config
}

impl Peer {
    /// Receives a datagram.
    pub fn receive(&mut self, now: Instant, data: &[u8]) {
        let mut buffer = Vec::new();
        let data = BytesMut::from(data);
        match self.endpoint.handle(now, self.remote, None, None, data, &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                let accepted = self.endpoint.accept(incoming, now, &mut buffer, None);
                self.connection = Some(accepted.unwrap_or_else(|e| panic!("{:?}", e.cause)));
            }
            _ => {}
        }
    }

    /// Runs the application and returns the datagrams to send.
    pub fn transmit(&mut self, now: Instant, sends: bool) -> Vec<Vec<u8>> {
        let Peer { endpoint, connection, stream, read, .. } = self;
        let Some((handle, connection)) = connection else { return Vec::new() };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while connection.poll().is_some() {}
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        if sends {
            write(connection, stream);
        } else {
            *read += receive_stream(connection, stream);
        }
        let mut datagrams = Vec::new();
        loop {
            let mut buffer = Vec::new();
            if connection.poll_transmit(now, 1, &mut buffer).is_none() {
                return datagrams;
            }
            datagrams.push(buffer);
        }
    }

    /// Time of the next timer.
    pub fn timeout(&mut self) -> Option<Instant> {
        self.connection.as_mut()?.1.poll_timeout()
    }

    /// Number of packets declared lost, and of congestion events.
    pub fn losses(&self) -> [u64; 2] {
        let (_, connection) = self.connection.as_ref().expect("connected");
        let path = connection.stats().path;
        [path.lost_packets, path.congestion_events]
    }
}

/// Fills the send buffer of the stream.
fn write(connection: &mut Connection, stream: &mut Option<StreamId>) {
    if connection.is_handshaking() {
        return;
    }
    if stream.is_none() {
        *stream = connection.streams().open(Dir::Uni);
    }
    let Some(id) = *stream else { return };
    let chunk = [0; 1 << 16];
    while connection.send_stream(id).write(&chunk).is_ok_and(|written| written > 0) {}
}

/// Reads the stream; returns the number of bytes.
fn receive_stream(connection: &mut Connection, stream: &mut Option<StreamId>) -> u64 {
    if stream.is_none() {
        *stream = connection.streams().accept(Dir::Uni);
    }
    let Some(id) = *stream else { return 0 };
    let mut bytes = 0;
    let mut stream = connection.recv_stream(id);
    let mut chunks = stream.read(true).expect("the stream is open");
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        bytes += chunk.bytes.len() as u64;
    }
    _ = chunks.finalize();
    bytes
}
