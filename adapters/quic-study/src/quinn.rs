//! Transfers of quinn.

use crate::{Control, DATAGRAM, Outcome, Setup};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn_proto::{
    ClientConfig, Connection, Dir, Endpoint, EndpointConfig, ServerConfig, StreamId,
    TransportConfig, VarInt,
};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use sojourn_adapter_quinn::Network;
use sojourn_aqm::{Result, Time};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Runs transfers of quinn.
///
/// # Errors
/// An invalid discipline.
#[expect(clippy::disallowed_methods, reason = "an instant exists only by reading the clock")]
pub fn run(setup: &Setup) -> Result<Outcome> {
    let mut network = Network::new(setup.links()?, Instant::now());
    let (client, server) = configs(setup.control);
    let endpoint = |config: Option<ServerConfig>, number: u8| {
        let mut seed = [number; 32];
        seed[..8].copy_from_slice(&setup.seed.to_le_bytes());
        let endpoint = Arc::new(EndpointConfig::default());
        Endpoint::new(endpoint, config.map(Arc::new), false, Some(seed))
    };
    let address = |last: u8, port| SocketAddr::from(([10, 0, 0, last], port));
    let mut starts = Vec::new();
    for flow in 0..setup.flows {
        let host = u8::try_from(2 * flow).expect("few flows");
        network.add_host(address(host, 5000), 0, endpoint(None, host));
        network.add_host(address(host + 1, 443), 1, endpoint(Some(server.clone()), host + 1));
        starts.push((setup.start(flow), host));
    }
    starts.sort();

    let read = RefCell::new(vec![0; setup.flows]);
    let mut streams: Vec<Option<StreamId>> = vec![None; 2 * setup.flows];
    // Even hosts are clients, which send.
    let mut app = |host: usize, connection: &mut Connection| {
        while connection.poll().is_some() {}
        match host % 2 {
            0 => write(connection, &mut streams[host]),
            _ => read.borrow_mut()[host / 2] += receive(connection, &mut streams[host]),
        }
    };
    for (start, host) in starts {
        network.run_until(Time::ZERO + start, &mut app);
        network.connect(host.into(), client.clone(), address(host + 1, 443), "localhost");
    }
    network.run_until(Time::ZERO + setup.warmup, &mut app);
    network.links[0].reset_stats(network.now)?;
    read.borrow_mut().fill(0);
    network.run_until(Time::ZERO + setup.warmup + setup.measured, &mut app);
    let bytes = read.borrow().clone();
    Ok(setup.outcome(&mut network.links[0], &bytes))
}

/// Returns quinn's defaults with packets of 1500 bytes from the start, and without limits of flow
/// control. Keys and signatures have a fixed length, so that runs are equal.
fn configs(control: Control) -> (ClientConfig, ServerConfig) {
    let names = vec!["localhost".to_string()];
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a known algorithm");
    let mut certificate = rcgen::CertificateParams::new(names).expect("a valid name");
    certificate.serial_number = Some(1.into());
    let certificate = certificate.self_signed(&key).expect("a valid certificate").der().clone();
    let private = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a certificate");

    let mut transport = TransportConfig::default();
    let controller: Arc<dyn ControllerFactory + Send + Sync> = match control {
        Control::Bbr => Arc::new(BbrConfig::default()),
        Control::Cubic => Arc::new(CubicConfig::default()),
    };
    let unlimited = VarInt::from_u32(1 << 30);
    transport
        .congestion_controller_factory(controller)
        .initial_mtu(DATAGRAM)
        .min_mtu(DATAGRAM)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .stream_receive_window(unlimited)
        .receive_window(unlimited)
        .send_window(1 << 24);
    let transport = Arc::new(transport);
    let mut server = ServerConfig::with_single_cert(vec![certificate], private).expect("a key");
    server.transport_config(Arc::clone(&transport));
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).expect("roots");
    client.transport_config(transport);
    (client, server)
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
    while connection.send_stream(id).write(&[0; 1 << 14]).is_ok_and(|written| written > 0) {}
}

/// Reads the stream; returns the number of bytes.
fn receive(connection: &mut Connection, stream: &mut Option<StreamId>) -> u64 {
    if stream.is_none() {
        *stream = connection.streams().accept(Dir::Uni);
    }
    let Some(id) = *stream else { return 0 };
    let (mut bytes, mut stream) = (0, connection.recv_stream(id));
    let mut chunks = stream.read(true).expect("the stream is open");
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        bytes += chunk.bytes.len() as u64;
    }
    _ = chunks.finalize();
    bytes
}
