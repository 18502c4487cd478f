//! Corruption of a packet: one wrong bit, which a checksum can detect.
//!
//! A device with segmentation offload leaves the checksum to the receiver of the packet, which
//! would compute it over the wrong bit. It is completed first (`struct virtio_net_hdr`; RFC 1071).

use crate::pump::Framing;

/// Flag of the virtio header: the checksum is not complete.
const NEEDS_CHECKSUM: u8 = 1;

/// Changes bit `bit` of the IP packet in `bytes`, which has the bytes of `framing` in front. A
/// number beyond the packet changes nothing.
pub fn corrupt(bytes: &mut [u8], framing: Framing, bit: u32) {
    if framing == Framing::Vnet {
        complete_checksum(bytes);
    }
    let at = framing.bytes() + (bit / 8) as usize;
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << (bit % 8);
    }
}

/// Completes the checksum of a packet with a virtio header, if it is partial.
fn complete_checksum(bytes: &mut [u8]) {
    let header = Framing::Vnet.bytes();
    let field = |at: usize| Some(usize::from(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?)));
    let (Some(start), Some(offset)) = (field(6), field(8)) else { return };
    if bytes[0] & NEEDS_CHECKSUM == 0 {
        return;
    }
    bytes[0] &= !NEEDS_CHECKSUM;
    let Some(covered) = bytes.get_mut(header + start..) else { return };
    if offset + 2 > covered.len() {
        return;
    }
    // The field holds the sum of the pseudo header.
    let sum: u64 = covered
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)))
        .sum();
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let [.., high, low] = (!sum).to_be_bytes();
    covered[offset..offset + 2].copy_from_slice(&[high, low]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_changed_and_changed_back() {
        let mut bytes = [0u8; 30];
        corrupt(&mut bytes, Framing::Ethernet, 13);
        assert_eq!((bytes[15], bytes.iter().filter(|b| **b != 0).count()), (1 << 5, 1));
        corrupt(&mut bytes, Framing::Ethernet, 13);
        corrupt(&mut bytes, Framing::Ethernet, 8 * 16);
        assert_eq!(bytes, [0; 30]);
    }

    #[test]
    fn a_partial_checksum_is_completed_before() {
        // A virtio header; 8 bytes from 2 on are covered, the checksum is at 4 of them.
        let mut bytes = vec![NEEDS_CHECKSUM, 0, 0, 0, 0, 0];
        bytes.extend(2u16.to_ne_bytes());
        bytes.extend(4u16.to_ne_bytes());
        bytes.resize(Framing::Vnet.bytes(), 0);
        bytes.extend([9, 9, 0x12, 0x34, 0xff, 0xf0, 0x00, 0x10, 0xab]);
        corrupt(&mut bytes, Framing::Vnet, 0);
        let packet = &bytes[Framing::Vnet.bytes()..];
        assert_eq!((bytes[0], packet[0]), (0, 8));
        let sum: u32 = [0x1234u32, 0xfff0, 0xab00].iter().sum::<u32>() + 0x10;
        let folded = !((sum & 0xffff) + (sum >> 16)) & 0xffff;
        assert_eq!(u32::from(packet[6]) << 8 | u32::from(packet[7]), folded);
    }
}
