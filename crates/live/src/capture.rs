//! Packet capture of both directions as pcapng with nanosecond timestamps, for Wireshark.
//!
//! A packet is written when its fate is known: on delivery, with the due time and the bytes as
//! delivered; or on a drop, with a comment that gives the reason. Each comment says how long before
//! that the packet arrived. The up direction is "outbound", down "inbound". A separate thread
//! writes the file, so that a slow disk delays no packet; packets that it cannot keep up with are
//! omitted and counted.

use crate::pcapng::{self, BLOCK_MAX, CapturedPacket, Direction};
use sojourn_aqm::{Span, Time};
use std::fmt;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Size from which a chunk is passed to the writer, bytes.
const PIECE: usize = 64 << 10;
/// Maximum number of chunks in the queue of the writer.
const PIECES: usize = 64;
/// Size of a comment for which there is room, bytes; a longer one costs an allocation.
const COMMENT: usize = 128;

/// Capture of one direction. Both directions share one queue, so that the file has packets in the
/// order in which their fates became known.
#[derive(Clone, Debug)]
pub struct Capture {
    direction: Direction,
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
    let captures = [Direction::Outbound, Direction::Inbound].map(|direction| Capture {
        direction,
        epoch_ns,
        waiting: waiting.clone(),
    });
    let writer = std::thread::spawn(move || write(file, &pieces, &back));
    (captures, writer)
}

fn write(
    mut file: impl Write,
    pieces: &Receiver<Vec<u8>>,
    back: &SyncSender<Vec<u8>>,
) -> io::Result<()> {
    file.write_all(&pcapng::file_header("link"))?;
    for mut piece in pieces {
        file.write_all(&piece)?;
        piece.clear();
        // Fails only if all captures are gone.
        let _ = back.try_send(piece);
    }
    file.flush()
}

impl Capture {
    /// Records `packet`, whose fate was decided at `at`, with a comment that may be empty.
    pub fn packet(&self, at: Time, packet: &[u8], comment: fmt::Arguments<'_>) {
        let mut waiting = self.waiting();
        let room = waiting.piece.capacity() - waiting.piece.len();
        if room < packet.len() + BLOCK_MAX + COMMENT && !waiting.hand_over() {
            waiting.missed += 1;
            return;
        }
        let length = u32::try_from(packet.len()).expect("packets are short");
        let (ns, direction, bytes) = (self.epoch_ns + at.0, self.direction, packet);
        let packet = CapturedPacket { ns, direction, bytes, length };
        pcapng::packet(&mut waiting.piece, &packet, comment);
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

/// Time since the arrival of a packet, as the comments end: "after 1.250000 ms".
#[derive(Clone, Copy, Debug)]
pub struct After(pub Span);

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {}.{:06} ms", self.0.0 / 1_000_000, self.0.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcapng::{INTERFACE, PACKET, SECTION};
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
        down.packet(Time(7), &[0x45; 21], format_args!("dropped: early, {}", After(Span::ms(1))));
        up.packet(Time(8), &[0x60; 40], format_args!(""));
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
        assert_eq!(lost[52..56], [1, 0, 33, 0], "a comment of 33 letters");
        assert_eq!(&lost[56..89], b"dropped: early, after 1.000000 ms");
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
        (0..5000).for_each(|_| up.packet(Time(0), &[0; 1500], format_args!("")));
        assert!(down.missed() > 4000, "{}", down.missed());
    }
}
