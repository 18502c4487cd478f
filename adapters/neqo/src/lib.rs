//! neqo in virtual time: a node of the simulator in neqo's `test-fixture`, whose queue is a link of
//! sojourn.
//!
//! The simulator is a ring of nodes. A [`Bottleneck`] between a client and a server is the link of
//! one direction, in place of `TailDrop` and `Delay`. The client is the first node of the ring: the
//! simulator starts with it.

use neqo_common::{Datagram, Tos};
use neqo_transport::Output;
use sojourn_aqm::{Clock, Ecn, FiveTuple, Packet, TimedLink};
use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::time::{Duration, Instant};
use test_fixture::sim::Node;

/// Link of one direction. A copy refers to the same link: keep one to read counters after the run.
#[derive(Clone, Debug)]
pub struct Bottleneck {
    link: Rc<RefCell<TimedLink<Datagram>>>,
    /// Starts at the first call.
    clock: Option<Clock>,
}

impl Bottleneck {
    /// Creates a node of a link, which no packet has crossed.
    pub fn new(link: TimedLink<Datagram>) -> Bottleneck {
        Bottleneck { link: Rc::new(RefCell::new(link)), clock: None }
    }

    /// The link: to read its counters, or to change it.
    ///
    /// # Panics
    /// If a link that was returned before is still in use.
    pub fn link(&self) -> RefMut<'_, TimedLink<Datagram>> {
        self.link.borrow_mut()
    }
}

/// Descriptor of a datagram, with the headers of UDP and IP.
fn packet_of(datagram: &Datagram) -> Packet {
    let (source, destination) = (datagram.source(), datagram.destination());
    let flow = FiveTuple {
        source: source.ip(),
        destination: destination.ip(),
        protocol: 17,
        source_port: source.port(),
        destination_port: destination.port(),
    };
    let headers = if source.is_ipv6() { 48 } else { 28 };
    let len = u32::try_from(datagram.len()).expect("a datagram") + headers;
    let tos = u8::from(datagram.tos());
    let (ecn, class) = (Ecn::from_bits(tos), u16::from(tos >> 2));
    flow.identify(0, Packet { len, ecn, class, ..Packet::default() })
}

impl Node for Bottleneck {
    fn process(&mut self, datagram: Option<Datagram>, now: Instant) -> Output {
        let clock = self.clock.get_or_insert_with(|| Clock::new(now));
        let (now, mut link) = (clock.time(now), self.link.borrow_mut());
        if let Some(datagram) = datagram {
            link.push(now, packet_of(&datagram), datagram).expect("time goes on");
        }
        if let Some(delivery) = link.poll(now).expect("time goes on") {
            let mut datagram = delivery.body;
            let tos = delivery.packet.ecn.write_to(datagram.tos().into());
            datagram.set_tos(Tos::from(tos));
            return Output::Datagram(datagram);
        }
        match link.next_poll() {
            // The simulator refuses a callback after no time.
            Some(due) => {
                Output::Callback(Duration::from(due.since(now)).max(Duration::from_nanos(1)))
            }
            None => Output::None,
        }
    }

    fn print_summary(&self, test_name: &str) {
        let mut link = self.link.borrow_mut();
        let stats = link.stats();
        println!(
            "{test_name}: {} packets, {} dropped, {} marked, median queueing delay {:.1} ms",
            stats.arrived_packets,
            stats.dropped(),
            stats.marks.packets,
            1e3 * stats.sojourn.quantile_s(0.5).unwrap_or(0.0),
        );
    }
}
