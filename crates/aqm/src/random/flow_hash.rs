//! Hash of a flow identifier, for disciplines with hashed queues.

use super::mix;
use crate::cast;
use crate::packet::Packet;
use core::net::IpAddr;

/// Returns the flow hash of a packet of `protocol` between `hosts`, whose addresses have a multiple
/// of 4 bytes, with source and destination port `ports`.
pub fn flow_hash(salt: u64, protocol: u8, hosts: [&[u8]; 2], ports: [u16; 2]) -> u32 {
    let [from, to] = ports.map(u64::from);
    let start = mix(salt ^ (u64::from(protocol) << 32 | from << 16 | to));
    cast::low32(hosts.into_iter().fold(start, fold))
}

/// Returns the key of the host with this address, which has a multiple of 4 bytes.
pub fn host_key(salt: u64, address: &[u8]) -> u32 {
    cast::low32(fold(mix(salt), address))
}

/// Mixes the bytes of an address, which has a multiple of 4 bytes, into a hash.
fn fold(from: u64, address: &[u8]) -> u64 {
    let word = |bytes: &[u8; 4]| u64::from(u32::from_be_bytes(*bytes));
    address.as_chunks().0.iter().fold(from, |h, bytes| mix(h ^ word(bytes)))
}

/// Identifier of a flow: addresses, protocol and ports.
///
/// ```
/// use sojourn_aqm::{FiveTuple, Packet};
///
/// let flow = FiveTuple {
///     source: [192, 0, 2, 1].into(),
///     destination: [192, 0, 2, 2].into(),
///     protocol: 17, // UDP
///     source_port: 50_000,
///     destination_port: 443,
/// };
/// let packet = flow.identify(0x1234_5678, Packet { len: 1250, ..Packet::default() });
/// assert_eq!(packet.hash, flow.hash(0x1234_5678));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FiveTuple {
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Protocol number (6: TCP, 17: UDP).
    pub protocol: u8,
    /// Port of the sender; 0 if there is none.
    pub source_port: u16,
    /// Port of the receiver; 0 if there is none.
    pub destination_port: u16,
}

impl FiveTuple {
    /// Returns the hash of the flow, for [`Packet::hash`]. Draw `salt` at random once and keep it
    /// secret, so that no sender can choose the queue of its packets. The hash is fast, not
    /// cryptographic.
    pub fn hash(&self, salt: u64) -> u32 {
        let ports = [self.source_port, self.destination_port];
        with_bytes(self.source, |source| {
            with_bytes(self.destination, |destination| {
                flow_hash(salt, self.protocol, [source, destination], ports)
            })
        })
    }

    /// Returns `packet` with the flow hash and the keys of both hosts, which CAKE reads.
    #[must_use]
    pub fn identify(&self, salt: u64, packet: Packet) -> Packet {
        let key = |address| with_bytes(address, |bytes| host_key(salt, bytes));
        let (source, destination) = (key(self.source), key(self.destination));
        Packet { hash: self.hash(salt), source, destination, ..packet }
    }
}

fn with_bytes<T>(address: IpAddr, f: impl FnOnce(&[u8]) -> T) -> T {
    match address {
        IpAddr::V4(v4) => f(&v4.octets()),
        IpAddr::V6(v6) => f(&v6.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(last: u8, port: u16) -> FiveTuple {
        FiveTuple {
            source: [10, 0, 0, last].into(),
            destination: [10, 0, 0, 200].into(),
            protocol: 6,
            source_port: port,
            destination_port: 443,
        }
    }

    #[test]
    fn every_field_and_the_salt_change_the_hash() {
        let base = flow(1, 1);
        let v6 = FiveTuple { source: [0u16, 0, 0, 0, 0, 0, 0x0a00, 1].into(), ..base };
        for other in [
            flow(2, 1),
            flow(1, 2),
            FiveTuple { protocol: 17, ..base },
            FiveTuple { destination_port: 80, ..base },
            FiveTuple { destination: [10, 0, 0, 201].into(), ..base },
            FiveTuple { source: base.destination, destination: base.source, ..base },
            v6,
        ] {
            assert_ne!(base.hash(1), other.hash(1), "{other:?}");
        }
        assert_ne!(base.hash(1), base.hash(2));
        let packet = base.identify(1, Packet { len: 7, ..Packet::default() });
        let other = flow(1, 9).identify(1, Packet::default());
        assert_eq!((packet.len, packet.source), (7, other.source));
        assert_ne!((packet.source, packet.hash), (packet.destination, other.hash));
    }

    #[test]
    fn hashes_are_spread_over_the_queues() {
        // 64 queues, 6400 flows: each queue has 100 on average, standard deviation 10.
        let mut queues = [0u32; 64];
        for port in 0..6400 {
            queues[(flow(1, port).hash(7) % 64) as usize] += 1;
        }
        assert!(queues.iter().all(|n| (55..150).contains(n)), "{queues:?}");
    }
}
