//! Packet capture of both directions as pcapng with nanosecond timestamps, for Wireshark.
//!
//! **Source**: draft-ietf-opsawg-pcapng. A packet is written when its fate is known: on delivery,
//! with the due time and the bytes as delivered; or on a drop, with a comment that gives the
//! reason. The up direction is "outbound", down "inbound". Two interfaces would be an alternative,
//! but libpcap 1.10 does not read files with two raw-IP interfaces. A separate thread writes the
//! file, so that a slow disk delays no packet; packets that it cannot keep up with are omitted and
//! counted.

use sojourn_aqm::cast;
use sojourn_aqm::{Span, Time};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Size from which a chunk is passed to the writer, bytes.
const PIECE: usize = 64 << 10;
/// Maximum number of chunks in the queue of the writer.
const PIECES: usize = 64;
/// Maximum size of a block besides packet and comment, bytes.
const BLOCK_MAX: usize = 128;

/// LINKTYPE_RAW: packets start with their IP header.
const RAW: u16 = 101;
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const OPTION_COMMENT: u16 = 1;
const OPTION_NAME: u16 = 2;
const OPTION_FLAGS: u16 = 2;
const OPTION_RESOLUTION: u16 = 9;

/// Capture of one direction. Both directions share one queue, so that the file has packets in the
/// order in which their fates became known.
#[derive(Clone, Debug)]
pub struct Capture {
    /// 1 for inbound, 2 for outbound.
    direction: u32,
    epoch_ns: u64,
    waiting: Arc<Mutex<PendingWrites>>,
}

/// Data not yet passed to the writer.
#[derive(Debug)]
struct PendingWrites {
    piece: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    missed: u64,
}

/// Thread that writes the file.
pub type Writer = JoinHandle<io::Result<()>>;

/// Opens captures for up and down that write to `file`; `epoch_ns` is the wall-clock time of
/// [`Time::ZERO`], ns since 1970. The writer ends when both captures are dropped.
pub fn open(file: impl Write + Send + 'static, epoch_ns: u64) -> ([Capture; 2], Writer) {
    let (full, pieces) = sync_channel(PIECES);
    let (back, empty) = sync_channel(PIECES);
    (0..PIECES).for_each(|_| back.try_send(Vec::new()).expect("there is room for each"));
    let waiting = PendingWrites { piece: Vec::with_capacity(2 * PIECE), full, empty, missed: 0 };
    let waiting = Arc::new(Mutex::new(waiting));
    let captures =
        [2, 1].map(|direction| Capture { direction, epoch_ns, waiting: waiting.clone() });
    let writer = std::thread::spawn(move || write(file, &pieces, &back));
    (captures, writer)
}

fn write(
    mut file: impl Write,
    pieces: &Receiver<Vec<u8>>,
    back: &SyncSender<Vec<u8>>,
) -> io::Result<()> {
    file.write_all(&file_header())?;
    for mut piece in pieces {
        file.write_all(&piece)?;
        piece.clear();
        // Fails only if all captures are gone.
        let _ = back.try_send(piece);
    }
    file.flush()
}

/// File header: section header block and interface description block.
fn file_header() -> Vec<u8> {
    let mut out = Vec::new();
    block(&mut out, SECTION, |body| {
        body.extend(0x1a2b_3c4d_u32.to_le_bytes());
        body.extend([1, 0, 0, 0]);
        body.extend(u64::MAX.to_le_bytes());
    });
    block(&mut out, INTERFACE, |body| {
        body.extend(RAW.to_le_bytes());
        body.extend([0; 6]);
        option(body, OPTION_NAME, b"link");
        option(body, OPTION_RESOLUTION, &[9]);
        option(body, 0, &[]);
    });
    out
}

/// Writes a block: type, length, body from `fill`, length.
fn block(out: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    fill(out);
    let length = cast::number(out.len() - start + 4);
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

impl Capture {
    /// Records `packet`, whose fate was decided at `at`, with a comment that may be empty.
    pub fn packet(&self, at: Time, packet: &[u8], comment: &str) {
        let mut waiting = self.waiting();
        let room = waiting.piece.capacity() - waiting.piece.len();
        if room < packet.len() + comment.len() + BLOCK_MAX && !waiting.hand_over() {
            waiting.missed += 1;
            return;
        }
        let (direction, ns) = (self.direction, self.epoch_ns + at.0);
        block(&mut waiting.piece, PACKET, |body| {
            body.extend([0; 4]);
            body.extend(cast::low32(ns >> 32).to_le_bytes());
            body.extend(cast::low32(ns).to_le_bytes());
            body.extend(cast::number(packet.len()).to_le_bytes());
            body.extend(cast::number(packet.len()).to_le_bytes());
            padded(body, packet);
            option(body, OPTION_FLAGS, &direction.to_le_bytes());
            if !comment.is_empty() {
                option(body, OPTION_COMMENT, comment.as_bytes());
            }
            option(body, 0, &[]);
        });
        if waiting.piece.len() >= PIECE {
            waiting.hand_over();
        }
    }

    /// Passes recorded packets to the writer, if it has room.
    pub fn flush(&self) {
        self.waiting().hand_over();
    }

    /// Number of packets of both directions that were omitted.
    pub fn missed(&self) -> u64 {
        self.waiting().missed
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, PendingWrites> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingWrites {
    fn hand_over(&mut self) -> bool {
        if self.piece.is_empty() {
            return true;
        }
        let Ok(mut next) = self.empty.try_recv() else { return false };
        next.reserve(2 * PIECE);
        match self.full.try_send(std::mem::replace(&mut self.piece, next)) {
            Ok(()) => true,
            // Kept until the next attempt; a new empty chunk is made then.
            Err(TrySendError::Full(piece) | TrySendError::Disconnected(piece)) => {
                self.piece = piece;
                false
            }
        }
    }
}

/// Comment for a packet dropped after `waited` in the queue.
pub fn drop_comment(why: &str, waited: Span) -> String {
    format!("dropped: {why}, after {:.3} ms", waited.as_secs() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Blocks of a file: type and body.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let word = |b: &[u8]| u32::from_le_bytes(b[..4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let length = word(&bytes[4..]) as usize;
            assert_eq!(word(&bytes[length - 4..]), length as u32, "length repeated");
            assert_eq!(length % 4, 0);
            blocks.push((word(bytes), bytes[8..length - 4].to_vec()));
            bytes = &bytes[length..];
        }
        blocks
    }

    #[test]
    fn blocks_have_time_direction_bytes_and_comment() {
        let file = Shared::default();
        let ([up, down], writer) = open(file.clone(), 5_000_000_000);
        down.packet(Time(7), &[0x45; 21], "dropped: early, after 1.000 ms");
        up.packet(Time(8), &[0x60; 40], "");
        up.flush();
        drop((up, down));
        writer.join().unwrap().unwrap();
        let blocks_read = blocks(&file.0.lock().unwrap());
        let kinds: Vec<u32> = blocks_read.iter().map(|b| b.0).collect();
        assert_eq!(kinds, [SECTION, INTERFACE, PACKET, PACKET]);
        let lost = &blocks_read[2].1;
        let ns = (5_000_000_007u64).to_le_bytes();
        assert_eq!((&lost[4..8], &lost[8..12]), (&ns[4..], &ns[..4]));
        assert_eq!(lost[12..20], [21, 0, 0, 0, 21, 0, 0, 0]);
        assert_eq!(lost[20..44], [&[0x45; 21][..], &[0; 3]].concat());
        assert_eq!(lost[44..52], [2, 0, 4, 0, 1, 0, 0, 0], "inbound");
        assert_eq!(lost[52..56], [1, 0, 30, 0], "a comment of 30 letters");
        assert_eq!(
            blocks_read[3].1[60..],
            [2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0],
            "outbound, no comment"
        );
    }

    #[test]
    fn a_failing_writer_affects_only_the_capture() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let ([up, down], writer) = open(Broken, 0);
        assert!(writer.join().unwrap().is_err());
        (0..5000).for_each(|_| up.packet(Time(0), &[0; 1500], ""));
        assert!(down.missed() > 4000, "{}", down.missed());
    }
}
