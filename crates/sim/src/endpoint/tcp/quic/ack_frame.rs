//! Ranges of packet numbers in an ack.
//!
//! **Source**: RFC 9000 §19.3.1 (ACK ranges), §16 (variable-length integers), §13.2.3 (limit).
//!
//! The ranges are encoded as in an ACK frame, in the 48 bytes that hold the SACK blocks of TCP: the
//! first range, then pairs of gap and range. They hold 24 ranges while gaps and ranges are below 64
//! packets, and 12 below 16,384. The oldest ranges that do not fit are left out.

use super::super::Ack;

/// Bytes for the ranges.
const BYTES: usize = 48;

/// Writes `ranges`, half open and from the highest to the lowest, to `ack`; returns the bytes they
/// take in the ACK frame. `blocks` is the number of ranges; 0 stands for one that starts at 0.
pub(in super::super) fn write_ranges(
    ranges: impl Iterator<Item = (u64, u64)>,
    ack: &mut Ack,
) -> u16 {
    let mut writer = Writer { bytes: [0; BYTES], len: 0 };
    let mut lowest = 0;
    (ack.ack, ack.blocks) = (0, 0);
    for (start, end) in ranges {
        let length = end - 1 - start;
        let fits = if ack.blocks == 0 {
            ack.ack = end;
            writer.put(&[length])
        } else {
            writer.put(&[lowest - end - 1, length])
        };
        if !fits {
            break;
        }
        (lowest, ack.blocks) = (start, ack.blocks + 1);
    }
    if ack.blocks == 1 && lowest == 0 {
        ack.blocks = 0;
    }
    let word = |i: usize| u64::from_le_bytes(writer.bytes[8 * i..8 * i + 8].try_into().unwrap());
    ack.sacks = [0, 1, 2].map(|i| (word(2 * i), word(2 * i + 1)));
    u16::try_from(writer.len).expect("at most 48 bytes")
}

/// Iterates over the ranges of `ack`, half open and from the highest to the lowest.
pub(super) fn read_ranges(ack: &Ack) -> impl Iterator<Item = (u64, u64)> {
    let mut bytes = [0; BYTES];
    let words = ack.sacks.iter().flat_map(|(a, b)| [*a, *b]);
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    let (mut at, mut end, blocks) = (0, ack.ack, ack.blocks);
    let simple = (blocks == 0 && end > 0).then_some((0, end));
    let listed = (0..blocks).map(move |i| {
        if i > 0 {
            end -= get(&bytes, &mut at) + 1;
        }
        let start = end - 1 - get(&bytes, &mut at);
        let range = (start, end);
        end = start;
        range
    });
    simple.into_iter().chain(listed)
}

struct Writer {
    bytes: [u8; BYTES],
    len: usize,
}

impl Writer {
    /// Appends all `values`, or none and returns false if they do not fit.
    fn put(&mut self, values: &[u64]) -> bool {
        let total: usize = values.iter().map(|value| 1 << size_class(*value)).sum();
        if self.len + total > BYTES {
            return false;
        }
        for value in values {
            let class = size_class(*value);
            let size = 1 << class;
            let encoded = (value | u64::from(class) << (8 * size - 2)).to_be_bytes();
            self.bytes[self.len..self.len + size].copy_from_slice(&encoded[8 - size..]);
            self.len += size;
        }
        true
    }
}

/// log2 of the number of bytes that `value` takes: the two bits that precede it.
fn size_class(value: u64) -> u8 {
    match value {
        0..=0x3f => 0,
        0x40..=0x3fff => 1,
        0x4000..=0x3fff_ffff => 2,
        _ => 3,
    }
}

/// Reads the integer at `at`, and moves `at` behind it.
fn get(bytes: &[u8; BYTES], at: &mut usize) -> u64 {
    let size = 1 << (bytes[*at] >> 6);
    let value = bytes[*at..*at + size].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    *at += size;
    value & (u64::MAX >> (66 - 8 * size))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranges of an ack of `ranges`, and the bytes that they take.
    fn sent(ranges: &[(u64, u64)]) -> (Vec<(u64, u64)>, u16) {
        let mut ack = Ack::default();
        let bytes = write_ranges(ranges.iter().copied(), &mut ack);
        assert_eq!(ack.ack, ranges[0].1, "the largest packet number");
        (read_ranges(&ack).collect(), bytes)
    }

    #[test]
    fn integers_have_the_encoding_of_rfc_9000() {
        // The examples of appendix A.1.
        let examples: [(u64, &[u8]); 4] = [
            (37, &[0x25]),
            (15_293, &[0x7b, 0xbd]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (151_288_809_941_952_652, &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]),
        ];
        for (value, expected) in examples {
            let mut writer = Writer { bytes: [0; BYTES], len: 0 };
            assert!(writer.put(&[value]));
            assert_eq!(&writer.bytes[..writer.len], expected);
            let mut at = 0;
            assert_eq!((get(&writer.bytes, &mut at), at), (value, expected.len()));
        }
    }

    #[test]
    fn ranges_are_read_as_written() {
        for ranges in [
            vec![(0, 1)],
            vec![(0, 70_000)],
            vec![(3, 4)],
            vec![(9, 20), (3, 8)],
            vec![(1 << 40, (1 << 40) + 100), (20, 1 << 39), (0, 7)],
        ] {
            assert_eq!(sent(&ranges).0, ranges);
        }
        // First range 10, gap 0 (one packet is missing), range 4: one byte each.
        assert_eq!(sent(&[(9, 20), (3, 8)]).1, 3);
    }

    #[test]
    fn the_oldest_ranges_are_left_out() {
        let many = |step: u64| -> Vec<(u64, u64)> {
            (0..60).map(|i| (step * (60 - i), step * (60 - i) + 1)).collect()
        };
        for (step, count, bytes) in [(3, 24, 47), (100, 16, 46)] {
            let ranges = many(step);
            let (read, taken) = sent(&ranges);
            assert_eq!((read.as_slice(), taken), (&ranges[..count], bytes), "step {step}");
        }
    }

    #[test]
    fn an_ack_of_everything_needs_no_blocks() {
        let mut ack = Ack { blocks: 3, ..Ack::default() };
        write_ranges([(0, 9)].into_iter(), &mut ack);
        assert_eq!((ack.ack, ack.blocks), (9, 0));
        write_ranges([(1, 9)].into_iter(), &mut ack);
        assert_eq!((ack.ack, ack.blocks), (9, 1));
        assert_eq!(read_ranges(&Ack::default()).count(), 0);
    }
}
