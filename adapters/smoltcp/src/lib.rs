//! smoltcp over links of sojourn: a pair of devices, joined by one link per direction.
//!
//! The time of the links is the timestamp that smoltcp passes to a device.

use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use smoltcp::wire::{IpProtocol, Ipv4Packet, TcpPacket};
use sojourn_aqm::{Ecn, FiveTuple, Packet, Time, TimedLink};
use std::cell::{RefCell, RefMut};
use std::rc::Rc;

/// Bytes of an IP packet.
type Bytes = Vec<u8>;

/// Two links; `links[i]` carries the packets of device `i`.
type Links = Rc<RefCell<[TimedLink<Bytes>; 2]>>;

/// Device that sends over a link and receives from another.
#[derive(Clone, Debug)]
pub struct LinkDevice {
    links: Links,
    number: usize,
    mtu: usize,
}

/// Returns two devices that `links` join: the first device sends over the first link. The largest
/// packet has `mtu` bytes.
pub fn joined(links: [TimedLink<Bytes>; 2], mtu: usize) -> [LinkDevice; 2] {
    let links = Rc::new(RefCell::new(links));
    [0, 1].map(|number| LinkDevice { links: Rc::clone(&links), number, mtu })
}

impl LinkDevice {
    /// The link over which the device sends, for its counters.
    pub fn link(&self) -> RefMut<'_, TimedLink<Bytes>> {
        RefMut::map(self.links.borrow_mut(), |links| &mut links[self.number])
    }

    /// Time at which the next packet arrives at one of the devices. Poll both interfaces then.
    pub fn next_arrival(&self) -> Option<Instant> {
        let links = self.links.borrow();
        let next = links.iter().filter_map(TimedLink::next_poll).min()?;
        // smoltcp counts microseconds. A late poll changes no decision of a link.
        let micros = i64::try_from(next.0.div_ceil(1000)).unwrap_or(i64::MAX);
        Some(Instant::from_micros(micros))
    }
}

/// Time of the links.
fn time(now: Instant) -> Time {
    Time(u64::try_from(now.total_micros()).unwrap_or(0).saturating_mul(1000))
}

/// Descriptor of an IP packet.
fn packet(bytes: &[u8]) -> Packet {
    let len = u32::try_from(bytes.len()).expect("at most the MTU");
    let Ok(ip) = Ipv4Packet::new_checked(bytes) else { return Packet { len, ..Packet::default() } };
    let ports = match ip.next_header() {
        IpProtocol::Tcp => TcpPacket::new_checked(ip.payload()).ok(),
        _ => None,
    };
    let [source_port, destination_port] =
        ports.map_or([0, 0], |tcp| [tcp.src_port(), tcp.dst_port()]);
    let flow = FiveTuple {
        source: ip.src_addr().into(),
        destination: ip.dst_addr().into(),
        protocol: ip.next_header().into(),
        source_port,
        destination_port,
    };
    let (class, ecn) = (u16::from(ip.dscp()), Ecn::from_bits(ip.ecn()));
    flow.identify(0, Packet { len, class, ecn, ..Packet::default() })
}

/// Writes a mark into the header.
fn mark(bytes: &mut [u8], ecn: Ecn) {
    if let Ok(mut ip) = Ipv4Packet::new_checked(bytes)
        && ip.ecn() != ecn.bits()
    {
        ip.set_ecn(ecn.bits());
        ip.fill_checksum();
    }
}

impl Device for LinkDevice {
    type RxToken<'a> = RxToken;
    type TxToken<'a> = TxToken<'a>;

    fn receive(&mut self, now: Instant) -> Option<(RxToken, TxToken<'_>)> {
        let from = 1 - self.number;
        let delivery = self.links.borrow_mut()[from].poll(time(now)).expect("time goes on")?;
        let mut bytes = delivery.body;
        mark(&mut bytes, delivery.packet.ecn);
        Some((RxToken { bytes }, TxToken { device: self, now }))
    }

    fn transmit(&mut self, now: Instant) -> Option<TxToken<'_>> {
        Some(TxToken { device: self, now })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

/// Packet that has arrived.
#[derive(Debug)]
pub struct RxToken {
    bytes: Bytes,
}

impl phy::RxToken for RxToken {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.bytes)
    }
}

/// Place for a packet to send.
#[derive(Debug)]
pub struct TxToken<'a> {
    device: &'a LinkDevice,
    now: Instant,
}

impl phy::TxToken for TxToken<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut bytes = vec![0; len];
        let result = write(&mut bytes);
        let descriptor = packet(&bytes);
        self.device.link().push(time(self.now), descriptor, bytes).expect("time goes on");
        result
    }
}
