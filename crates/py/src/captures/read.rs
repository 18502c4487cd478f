//! Blocks of a capture file: pcap and pcapng, in both byte orders, to frames with a time in
//! nanoseconds.
//!
//! **Source**: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng. The crate `pcap-parser` reads the
//! blocks; it is fuzzed by its authors, and has no unsafe code.

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, EnhancedPacketBlock, InterfaceDescriptionBlock, PcapBlockOwned};
use pcap_parser::{OptionCode, PcapError, PcapHeader};
use std::io::Read;

/// Initial size of the buffer, bytes.
const BUFFER: usize = 1 << 20;
/// Largest block, bytes. libpcap reads packets of at most 256 KiB.
const BLOCK_MAX: usize = 16 << 20;
/// Nanoseconds per second.
const NS: i128 = 1_000_000_000;
/// Option of an enhanced packet block: direction of the packet in its low two bits.
const FLAGS: OptionCode = OptionCode(2);
/// Type of an interface description block.
const INTERFACE: u32 = 1;
/// Beginning of the name of the application, in files that this project wrote.
const OWN: &str = "sojourn";

/// Direction of a packet at the interface where it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
}

/// Captured frame.
pub(super) struct Frame<'a> {
    /// Time of arrival at the queue, nanoseconds since 1970.
    pub ns: i128,
    /// LINKTYPE_ value of the interface.
    pub link_type: i32,
    /// Captured bytes.
    pub bytes: &'a [u8],
    /// Length before capture cut the frame off, bytes.
    pub length: u32,
    pub direction: Option<Direction>,
}

/// Properties of a file or an interface.
#[derive(Clone, Copy)]
struct Interface {
    link_type: i32,
    /// Units of time per second: as a power of ten, or of two.
    base: u8,
    exponent: u8,
    /// Seconds to add to each time.
    offset: i64,
}

impl Interface {
    fn of_pcap(header: &PcapHeader) -> Interface {
        Interface {
            // The bits above are flags about a frame check sequence.
            link_type: header.network.0 & 0xffff,
            base: 10,
            exponent: if header.is_nanosecond_precision() { 9 } else { 6 },
            offset: 0,
        }
    }

    fn of_pcapng(block: &InterfaceDescriptionBlock<'_>) -> Interface {
        let resolution = block.if_tsresol().and_then(Result::ok).unwrap_or(6);
        let number =
            if block.block_type == INTERFACE { i64::from_le_bytes } else { i64::from_be_bytes };
        let offset = block.options.iter().find(|option| option.code == OptionCode::IfTsoffset);
        let offset = offset.and_then(|option| option.as_bytes().ok()?.first_chunk().copied());
        Interface {
            link_type: block.linktype.0,
            base: if resolution & 0x80 == 0 { 10 } else { 2 },
            exponent: resolution & 0x7f,
            // `pcap-parser` reads it as little endian in every file.
            offset: offset.map_or(0, number),
        }
    }

    /// Converts a time to nanoseconds.
    fn ns(&self, time: u64) -> Result<i128, String> {
        let (base, exponent) = (u128::from(self.base), u32::from(self.exponent));
        let per_second = base.checked_pow(exponent).filter(|n| *n < 1 << 96).ok_or_else(|| {
            format!("has times in units of {base}^-{exponent} s, which are not supported")
        })?;
        let whole = u128::from(time) / per_second;
        // Below 2^96 * 10^9.
        let part = u128::from(time) % per_second * NS.unsigned_abs() / per_second;
        let ns = whole * NS.unsigned_abs() + part;
        Ok(i128::from(self.offset) * NS + ns.cast_signed())
    }
}

/// State of the file between blocks.
#[derive(Default)]
struct Section {
    interfaces: Vec<Interface>,
    own: bool,
}

/// Calls `each` for every packet of the capture that `input` holds.
///
/// # Errors
/// The reason why the file, or a frame, cannot be used.
pub(super) fn frames(
    input: impl Read + Send,
    each: &mut dyn FnMut(&Frame<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = pcap_parser::create_reader(BUFFER, input).map_err(|e| fault(&e, 0, 0))?;
    let (mut section, mut packets, mut size) = (Section::default(), 0, BUFFER);
    loop {
        let at = reader.consumed();
        match reader.next() {
            Ok((length, block)) => {
                if length == 0 {
                    return Err(format!("is damaged at byte {at}"));
                }
                packets += u64::from(section.block(&block, each)?);
                drop(block);
                reader.consume(length);
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_)) => {
                reader.refill().map_err(|e| fault(&e, at, packets))?;
            }
            Err(PcapError::BufferTooSmall) if size < BLOCK_MAX => {
                size *= 2;
                if !reader.grow(size) {
                    return Err(format!("is damaged at byte {at}"));
                }
                reader.refill().map_err(|e| fault(&e, at, packets))?;
            }
            Err(e) => return Err(fault(&e, at, packets)),
        }
    }
}

/// Returns the reason why reading failed at byte `at`, after `packets` packets.
fn fault(error: &PcapError<&[u8]>, at: usize, packets: u64) -> String {
    match error {
        PcapError::UnexpectedEof => {
            format!("is truncated: it ends within a block, after {packets} packets")
        }
        PcapError::BufferTooSmall => format!("is damaged at byte {at}: a block of over 16 MiB"),
        PcapError::ReadError => "cannot be read".into(),
        _ if at == 0 => "is damaged: its first block is neither of pcap nor of pcapng".into(),
        _ => format!("is damaged at byte {at}, after {packets} packets"),
    }
}

impl Section {
    /// Processes a block; returns true if it is a packet.
    fn block(
        &mut self,
        block: &PcapBlockOwned<'_>,
        each: &mut dyn FnMut(&Frame<'_>) -> Result<(), String>,
    ) -> Result<bool, String> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                self.interfaces = vec![Interface::of_pcap(header)];
            }
            PcapBlockOwned::Legacy(packet) => {
                let interface = self.interfaces.first().ok_or("has no header")?;
                let per_second = i128::from(10_u32.pow(interface.exponent.into()));
                let ns =
                    i128::from(packet.ts_sec) * NS + i128::from(packet.ts_usec) * (NS / per_second);
                let (link_type, length) = (interface.link_type, packet.origlen);
                let bytes = packet.data;
                each(&Frame { ns, link_type, bytes, length, direction: None })?;
                return Ok(true);
            }
            PcapBlockOwned::NG(Block::SectionHeader(header)) => {
                let writer = header.shb_userappl().and_then(Result::ok);
                let own = writer.is_some_and(|name| name.starts_with(OWN));
                *self = Section { interfaces: Vec::new(), own };
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                self.interfaces.push(Interface::of_pcapng(block));
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                self.packet(packet, each)?;
                return Ok(true);
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                return Err("has packets without times (simple packet blocks)".into());
            }
            PcapBlockOwned::NG(Block::Unknown(block)) if block.block_type == 2 => {
                return Err("has packet blocks of an obsolete kind; editcap -F pcapng \
                            rewrites the file"
                    .into());
            }
            PcapBlockOwned::NG(_) => {}
        }
        Ok(false)
    }

    fn packet(
        &self,
        packet: &EnhancedPacketBlock<'_>,
        each: &mut dyn FnMut(&Frame<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let interface = usize::try_from(packet.if_id).ok().and_then(|i| self.interfaces.get(i));
        let interface = interface
            .ok_or_else(|| format!("is damaged: no interface has the number {}", packet.if_id))?;
        let time = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
        let mut ns = interface.ns(time)?;
        let mut direction = None;
        for option in &packet.options {
            let value = option.as_bytes().unwrap_or_default();
            if option.code == OptionCode::Comment && self.own {
                ns -= waited(value);
            }
            if option.code == FLAGS && value.len() == 4 {
                let low = if packet.big_endian() { value[3] } else { value[0] };
                direction =
                    [None, Some(Direction::In), Some(Direction::Out), None][usize::from(low & 3)];
            }
        }
        let (bytes, length) = (packet.packet_data(), packet.origlen);
        let link_type = interface.link_type;
        each(&Frame { ns, link_type, bytes, length, direction })
    }
}

/// Time from the arrival to the time of a packet, in a comment of ours that ends in "after N ms".
fn waited(comment: &[u8]) -> i128 {
    let text = std::str::from_utf8(comment).unwrap_or_default();
    let number = text.rsplit_once("after ").and_then(|(_, rest)| rest.strip_suffix(" ms"));
    let Some((whole, part)) = number.and_then(|number| number.split_once('.')) else { return 0 };
    if part.len() > 6 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return 0;
    }
    let whole: u32 = whole.parse().unwrap_or_default();
    let part: i128 = format!("{part:0<6}").parse().unwrap_or_default();
    i128::from(whole) * 1_000_000 + part
}
