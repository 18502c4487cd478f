//! Blocks of a pcapng file with raw IP packets and times in nanoseconds.
//!
//! **Source**: draft-ietf-opsawg-pcapng. A file has one interface; the direction of each packet is
//! in its flags. Two interfaces would be an alternative, but libpcap 1.10 does not read files with
//! two raw-IP interfaces.
//!
//! The blocks are written without an allocation. That is why no crate does it: pcap-file 2.0 and
//! the writer of pcap-parser 0.17 allocate for each packet, and have large dependencies.

use std::fmt;
use std::io::Write;

/// LINKTYPE_RAW: packets start with their IP header.
const RAW: u16 = 101;
/// Type of a section header block.
pub const SECTION: u32 = 0x0a0d_0d0a;
/// Type of an interface description block.
pub const INTERFACE: u32 = 1;
/// Type of an enhanced packet block.
pub const PACKET: u32 = 6;
const OPTION_COMMENT: u16 = 1;
const OPTION_NAME: u16 = 2;
const OPTION_FLAGS: u16 = 2;
const OPTION_APPLICATION: u16 = 4;
const OPTION_RESOLUTION: u16 = 9;
/// Maximum size of a packet block besides packet and comment, bytes.
pub const BLOCK_MAX: usize = 128;
/// Longest comment, bytes.
const COMMENT_MAX: usize = 1000;

/// Direction of a packet at the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Direction {
    /// It came in.
    Inbound = 1,
    /// It went out.
    Outbound = 2,
}

/// Packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// Time, nanoseconds since 1970.
    pub ns: u64,
    /// Direction.
    pub direction: Direction,
    /// Captured bytes, from the IP header on.
    pub bytes: &'a [u8],
    /// Length of the whole packet, bytes; larger than `bytes` if that is cut off.
    pub length: u32,
}

/// Returns the start of a file: section header block and interface description block. `interface`
/// is the name of the interface.
pub fn file_header(interface: &str) -> Vec<u8> {
    let mut out = Vec::new();
    block(&mut out, SECTION, |body| {
        body.extend(0x1a2b_3c4d_u32.to_le_bytes());
        body.extend([1, 0, 0, 0]);
        body.extend(u64::MAX.to_le_bytes());
        option(body, OPTION_APPLICATION, concat!("sojourn ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(body, 0, &[]);
    });
    block(&mut out, INTERFACE, |body| {
        body.extend(RAW.to_le_bytes());
        body.extend([0; 6]);
        option(body, OPTION_NAME, interface.as_bytes());
        option(body, OPTION_RESOLUTION, &[9]);
        option(body, 0, &[]);
    });
    out
}

/// Appends a packet with a comment to `out`. The comment is cut off after 1,000 bytes; an empty one
/// is left out.
pub fn packet(out: &mut Vec<u8>, packet: &CapturedPacket<'_>, comment: fmt::Arguments<'_>) {
    let CapturedPacket { ns, direction, bytes, length } = *packet;
    block(out, PACKET, |body| {
        let [high, low] = [ns >> 32, ns & u64::from(u32::MAX)];
        body.extend([0; 4]);
        body.extend(&high.to_le_bytes()[..4]);
        body.extend(&low.to_le_bytes()[..4]);
        body.extend(number(bytes.len()).to_le_bytes());
        body.extend(length.to_le_bytes());
        padded(body, bytes);
        option(body, OPTION_FLAGS, &(direction as u32).to_le_bytes());
        let start = body.len();
        body.extend(OPTION_COMMENT.to_le_bytes());
        body.extend([0; 2]);
        body.write_fmt(comment).expect("a Vec takes every byte");
        body.truncate(start + 4 + COMMENT_MAX);
        let size = body.len() - start - 4;
        let written = u16::try_from(size).expect("at most the longest comment");
        body[start + 2..start + 4].copy_from_slice(&written.to_le_bytes());
        body.extend(&[0; 3][..size.wrapping_neg() % 4]);
        if size == 0 {
            body.truncate(start);
        }
        option(body, 0, &[]);
    });
}

/// Appends a block: type, length, body from `fill`, length.
fn block(out: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    fill(out);
    let length = number(out.len() - start + 4);
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    out.extend(length.to_le_bytes());
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    let length = u16::try_from(value.len()).expect("options are short");
    body.extend(length.to_le_bytes());
    padded(body, value);
}

fn padded(body: &mut Vec<u8>, value: &[u8]) {
    body.extend(value);
    body.extend(&[0; 3][..value.len().wrapping_neg() % 4]);
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("blocks are short")
}
