//! Transfers of s2n-quic.

use crate::{Control, DATAGRAM, Outcome, Setup};
use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::io::testing::{Executor, Handle, Io, primary, spawn, time};
use s2n_quic::provider::random::{Generator, Provider};
use s2n_quic::{Client, Server};
use sojourn_adapter_s2n_quic::{Bottleneck, NoTls};
use sojourn_aqm::{Pcg, Result, Span};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Address of the first host, the server: the executor numbers ports.
const SERVER: u16 = 49_152;

/// Bytes that an application writes at once.
const CHUNK: &[u8] = &[0; 1 << 14];

/// Random numbers of an endpoint.
struct Seeded(Pcg);

impl Provider for Seeded {
    type Generator = Seeded;
    type Error = Infallible;

    fn start(self) -> std::result::Result<Seeded, Infallible> {
        Ok(self)
    }
}

impl Generator for Seeded {
    fn public_random_fill(&mut self, dest: &mut [u8]) {
        dest.fill_with(|| self.0.next_bits().to_le_bytes()[0]);
    }

    fn private_random_fill(&mut self, dest: &mut [u8]) {
        self.public_random_fill(dest);
    }
}

/// Runs transfers of s2n-quic.
///
/// # Errors
/// An invalid discipline.
///
/// # Panics
/// If an endpoint does not start.
pub fn run(setup: &Setup) -> Result<Outcome> {
    let network = Bottleneck::new(setup.links()?, |address: SocketAddr| address.port() == SERVER);
    let mut executor = Executor::new(network.clone(), setup.seed);
    let handle = executor.handle().clone();
    let read: Arc<Vec<AtomicU64>> = Arc::new((0..setup.flows).map(|_| 0.into()).collect());
    let outcome = Arc::new(Mutex::new(None));
    executor.enter(|| {
        let address = serve(setup, &handle, &read);
        (0..setup.flows).for_each(|flow| transfer(setup, &handle, flow, address));
        let (setup, outcome, network) = (setup.clone(), Arc::clone(&outcome), network.clone());
        primary::spawn(async move {
            time::delay(Duration::from(setup.warmup)).await;
            network.with_link(0, |now, link| link.reset_stats(now)).expect("time goes on");
            let count = |flow: &AtomicU64| flow.load(Ordering::Relaxed);
            let before: Vec<u64> = read.iter().map(count).collect();
            time::delay(Duration::from(setup.measured)).await;
            let bytes: Vec<u64> =
                read.iter().zip(before).map(|(flow, before)| count(flow) - before).collect();
            let result = network.with_link(0, |_, link| setup.outcome(link, &bytes));
            *outcome.lock().expect("one thread") = Some(result);
        });
    });
    executor.run();
    let result = outcome.lock().expect("one thread").take();
    Ok(result.expect("the primary task has ended"))
}

/// Returns an interface with packets of 1500 bytes from the start.
fn interface(handle: &Handle) -> Io {
    let builder = handle.builder().with_max_mtu(DATAGRAM + 28).with_initial_mtu(DATAGRAM + 28);
    builder.build().expect("a valid interface")
}

/// Starts the server, which reads; returns its address.
fn serve(setup: &Setup, handle: &Handle, read: &Arc<Vec<AtomicU64>>) -> SocketAddr {
    let random = Seeded(Pcg::stream(setup.seed, "server"));
    let server = Server::builder().with_io(interface(handle)).expect("an interface");
    let server = server.with_tls(NoTls).expect("no TLS").with_random(random).expect("random");
    let mut server = server.start().expect("the server starts");
    let address = server.local_addr().expect("an address");
    let read = Arc::clone(read);
    spawn(async move {
        while let Some(mut connection) = server.accept().await {
            let read = Arc::clone(&read);
            spawn(async move {
                let Ok(Some(mut stream)) = connection.accept_receive_stream().await else { return };
                // The first byte is the number of the flow.
                let mut flow = None;
                while let Ok(Some(chunk)) = stream.receive().await {
                    let flow = *flow.get_or_insert(usize::from(chunk[0]));
                    read[flow].fetch_add(chunk.len() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    address
}

/// Starts a client, which sends until the end.
fn transfer(setup: &Setup, handle: &Handle, flow: usize, address: SocketAddr) {
    let random = Seeded(Pcg::stream(setup.seed, &format!("client.{flow}")));
    let client = Client::builder().with_io(interface(handle)).expect("an interface");
    let client = client.with_tls(NoTls).expect("no TLS").with_random(random).expect("random");
    let client = match setup.control {
        Control::Bbr => client.with_congestion_controller(Bbr::default()).expect("BBR").start(),
        Control::Cubic => {
            client.with_congestion_controller(Cubic::default()).expect("CUBIC").start()
        }
    };
    let (client, start): (_, Span) = (client.expect("the client starts"), setup.start(flow));
    spawn(async move {
        time::delay(Duration::from(start)).await;
        let connect = Connect::new(address).with_server_name("localhost");
        let mut connection = client.connect(connect).await.expect("a connection");
        let mut stream = connection.open_send_stream().await.expect("a stream");
        let first = [u8::try_from(flow).expect("few flows")];
        let mut sent = stream.send(first.to_vec().into()).await;
        while sent.is_ok() {
            sent = stream.send(CHUNK.into()).await;
        }
    });
}
