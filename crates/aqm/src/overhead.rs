//! Length of a packet on the wire: overhead, smallest packet, and the cells of ATM or the code
//! words of PTM. The words are as in tc-cake(8), and `cells PAYLOAD OVERHEAD` for cells of any
//! size, as netem of Linux has them (`net/sched/sch_netem.c`, packet_time_ns).

use crate::cast;
use crate::error::{Error, Result};
use crate::params::{Setting, Value};
use crate::snapshot::Snapshot;
use alloc::format;
use alloc::string::{String, ToString};

/// Framing of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub enum Framing {
    /// None.
    NoAtm,
    /// Cells of 53 bytes with 48 bytes of payload each.
    Atm,
    /// A byte per 64 bytes, as in VDSL2 (64b/65b, rounded up).
    Ptm,
    /// Cells with that many bytes of payload each, and bytes added to each cell; a negative number
    /// makes a cell shorter than its payload.
    Cells(u16, i16),
}

/// Overhead of a link: what `cake` adds to the length of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct Overhead {
    /// Bytes added to the length without link header; None to keep the length as it is.
    pub bytes: Option<i64>,
    /// Length of the shortest packet in bytes, after `bytes` were added.
    pub mpu: u64,
    /// Framing, applied last.
    pub framing: Framing,
}

/// Effect of a word: bytes, smallest packet, framing.
type Effect = (i64, Option<u64>, Option<Framing>);

const ATM: Option<Framing> = Some(Framing::Atm);
const PTM: Option<Framing> = Some(Framing::Ptm);
const NO_ATM: Option<Framing> = Some(Framing::NoAtm);

/// Words that add bytes, as iproute2's tc defines them.
const PRESETS: [(&str, Effect); 13] = [
    ("ipoa-vcmux", (8, None, ATM)),
    ("ipoa-llcsnap", (16, None, ATM)),
    ("bridged-vcmux", (24, None, ATM)),
    ("bridged-llcsnap", (32, None, ATM)),
    ("pppoa-vcmux", (10, None, ATM)),
    ("pppoa-llc", (14, None, ATM)),
    ("pppoe-vcmux", (32, None, ATM)),
    ("pppoe-llcsnap", (40, None, ATM)),
    ("pppoe-ptm", (30, None, PTM)),
    ("bridged-ptm", (22, None, PTM)),
    ("docsis", (18, Some(64), NO_ATM)),
    ("ethernet", (38, Some(84), None)),
    ("ether-vlan", (4, None, None)),
];

/// Other words: `overhead` and `mpu` take a number.
const WORDS: [&str; 9] =
    ["raw", "conservative", "atm", "ptm", "noatm", "cells", "mpu", "overhead", "via-ethernet"];

impl Framing {
    /// Cells with `payload` bytes each and `more` bytes added to each; None if there are no such
    /// cells. Cells of ATM have their own name.
    pub fn cells(payload: i64, more: i64) -> Option<Framing> {
        if (payload, more) == (48, 5) {
            return Some(Framing::Atm);
        }
        let cells = Framing::Cells(u16::try_from(payload).ok()?, i16::try_from(more).ok()?);
        (payload > 0 && (-256..=256).contains(&more) && payload + more > 0).then_some(cells)
    }
}

impl Overhead {
    /// Lengths as they are.
    pub const RAW: Overhead = Overhead { bytes: None, mpu: 0, framing: Framing::NoAtm };

    /// Returns the length on the wire of a packet of `len` bytes, `header` of which are its link
    /// header.
    #[inline]
    pub fn wire_len(&self, len: u32, header: u64) -> u64 {
        let len = u64::from(len);
        let bare = match self.bytes {
            None => len,
            Some(bytes) => len.saturating_sub(header).saturating_add_signed(bytes),
        };
        let len = bare.max(self.mpu);
        match self.framing {
            Framing::NoAtm => len,
            Framing::Atm => len.div_ceil(48) * 53,
            Framing::Ptm => len + len.div_ceil(64),
            Framing::Cells(payload, more) => {
                let payload = u64::from(payload.max(1));
                len.div_ceil(payload) * payload.saturating_add_signed(more.into())
            }
        }
    }

    /// Returns the length on the wire of a packet of `len` bytes that is sent as TCP segments of up
    /// to `mtu` bytes, each with `header` and a header of 40 bytes.
    pub fn wire_len_of_segments(&self, len: u32, header: u64, mtu: u64) -> u64 {
        let headers = header + 40;
        let (payload, each) = (u64::from(len) - headers, mtu - headers);
        let full = cast::saturate32(mtu);
        let rest = cast::saturate32(headers + (payload - 1) % each + 1);
        (payload - 1) / each * self.wire_len(full, header) + self.wire_len(rest, header)
    }

    fn parse(text: &str) -> Result<Overhead> {
        let (mut overhead, mut raw) = (Overhead::RAW, false);
        let mut words = text.split_whitespace().peekable();
        if words.peek().is_none() {
            return Err(Error::new("is empty; a number, raw, or words like \"docsis\" are due"));
        }
        while let Some(word) = words.next() {
            let word = word.to_lowercase().replace('_', "-");
            match word.as_str() {
                "raw" => {
                    raw = true;
                    overhead = Overhead { mpu: overhead.mpu, ..Overhead::RAW };
                }
                "conservative" => {
                    (overhead.bytes, overhead.framing) = (Some(48), Framing::Atm);
                }
                "atm" => overhead.framing = Framing::Atm,
                "ptm" => overhead.framing = Framing::Ptm,
                "noatm" => overhead.framing = Framing::NoAtm,
                "cells" => {
                    let mut number = |what: &str, least, most| {
                        whole(words.next().unwrap_or_default(), what, least, most)
                    };
                    let payload = number("cells", 1, 65_535)?;
                    let more = number("overhead of cells", (1 - payload).max(-256), 256)?;
                    overhead.framing = Framing::cells(payload, more).unwrap_or(overhead.framing);
                }
                "via-ethernet" => {}
                "mpu" => {
                    let number = words.next().unwrap_or_default();
                    overhead.mpu = whole(number, "mpu", 0, 256)?.unsigned_abs();
                }
                "overhead" => overhead.set(words.next().unwrap_or_default())?,
                _ => match PRESETS.iter().find(|(name, _)| *name == word) {
                    None => overhead.set(&word)?,
                    Some((_, (bytes, mpu, framing))) => {
                        overhead.bytes = Some(overhead.bytes.unwrap_or(0) + bytes);
                        overhead.mpu = mpu.unwrap_or(overhead.mpu);
                        overhead.framing = framing.unwrap_or(overhead.framing);
                    }
                },
            }
        }
        overhead.bytes.map_or(Ok(()), |bytes| in_range(bytes, "overhead", -64, 256))?;
        match overhead.bytes {
            Some(bytes) if raw && bytes != 0 => {
                Err(Error::new(format!("raw keeps the length, but {bytes} bytes are added")))
            }
            // tc shows `raw overhead 0`.
            Some(_) if raw => Ok(Overhead { bytes: None, ..overhead }),
            _ => Ok(overhead),
        }
    }

    /// Sets the bytes written as `word`.
    fn set(&mut self, word: &str) -> Result<()> {
        if word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let known = PRESETS.iter().map(|(name, _)| *name).chain(WORDS);
            return Err(Error::unknown("overhead", word, known));
        }
        self.bytes = Some(whole(word, "overhead", -64, 256)?);
        Ok(())
    }
}

/// The number `text` of bytes of `what`.
fn whole(text: &str, what: &str, least: i64, most: i64) -> Result<i64> {
    let digits = text.strip_suffix('B').or(text.strip_suffix('b')).unwrap_or(text);
    let number = digits.parse().map_err(|_| {
        Error::new(format!("{what} {text:?} is not a whole number of bytes like \"{what} 44\""))
    })?;
    in_range(number, what, least, most).map(|()| number)
}

fn in_range(number: i64, what: &str, least: i64, most: i64) -> Result<()> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(Error::new(format!("{what} {number} is out of range, allowed: {least} to {most}")))
}

impl Value for Overhead {
    type End = Self;

    fn kind() -> String {
        "overhead".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        match setting {
            Setting::Text(text) => Overhead::parse(text),
            Setting::Integer(_) | Setting::Number(_) => Overhead::parse(&setting.to_string()),
            Setting::Flag(_) => Err(Error::new(format!("{setting} is not a number of bytes"))),
        }
    }

    fn write(&self) -> String {
        let mut text = self.bytes.map_or_else(|| "raw".to_string(), |bytes| bytes.to_string());
        if self.mpu > 0 {
            text += &format!(" mpu {}", self.mpu);
        }
        text + &match self.framing {
            Framing::NoAtm => String::new(),
            Framing::Atm => " atm".to_string(),
            Framing::Ptm => " ptm".to_string(),
            Framing::Cells(payload, more) => format!(" cells {payload} {more}"),
        }
    }

    fn is_within(&self, _: &Self::End, _: &Self::End) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    fn read(text: &str) -> Overhead {
        Overhead::read(Setting::Text(text)).unwrap()
    }

    #[test]
    fn cells_and_code_words_are_exact() {
        // ITU-T I.432 and G.993.2: whole cells, and a byte per 64 bytes or part of them.
        let lens = |text| [1, 48, 49, 64, 84, 1500, 1538].map(|len| read(text).wire_len(len, 0));
        assert_eq!(lens("atm"), [53, 53, 106, 106, 106, 1696, 1749]);
        assert_eq!(lens("ptm"), [2, 49, 50, 65, 86, 1524, 1563]);
        assert_eq!(lens("raw"), [1, 48, 49, 64, 84, 1500, 1538]);
        assert_eq!(lens("0 mpu 64"), [64, 64, 64, 64, 84, 1500, 1538]);
    }

    #[test]
    fn the_link_header_is_replaced_by_the_overhead() {
        let lens = |text| [54, 114, 1514].map(|len| read(text).wire_len(len, 14));
        assert_eq!(lens("raw"), [54, 114, 1514]);
        assert_eq!(lens("0"), [40, 100, 1500]);
        assert_eq!(lens("-20"), [20, 80, 1480]);
        assert_eq!(lens("ethernet"), [84, 138, 1538]);
        assert_eq!(lens("docsis"), [64, 118, 1518]);
        assert_eq!(lens("conservative"), [106, 212, 33 * 53], "1548 bytes are 32.25 cells");
        assert_eq!(lens("pppoe-ptm"), [72, 133, 1554]);
        assert_eq!(lens("raw atm"), [106, 159, 32 * 53]);
        assert_eq!(read("-64").wire_len(30, 14), 0, "not below zero");
    }

    #[test]
    fn a_large_packet_counts_as_its_segments() {
        // 3000 bytes of payload with headers of 54: 1460, 1460 and 80 bytes.
        let lens = |text| read(text).wire_len_of_segments(3054, 14, 1514);
        assert_eq!(lens("raw"), 2 * 1514 + 134);
        assert_eq!(lens("atm ethernet"), 2 * 33 * 53 + 4 * 53);
        assert_eq!(read("raw").wire_len_of_segments(1515, 14, 1514), 1514 + 55);
        assert_eq!(read("raw").wire_len_of_segments(2974, 14, 1514), 2 * 1514);
    }

    #[test]
    fn words_add_up_as_in_tc() {
        let of = |bytes, mpu, framing| Overhead { bytes: Some(bytes), mpu, framing };
        assert_eq!(read("pppoe-vcmux ether-vlan"), of(36, 0, Framing::Atm));
        assert_eq!(read("ethernet ether-vlan ether-vlan"), of(46, 84, Framing::NoAtm));
        assert_eq!(read("overhead 18 mpu 64 noatm"), of(18, 64, Framing::NoAtm));
        assert_eq!(read("30 ptm"), read("pppoe_ptm"));
        assert_eq!(read("ether-vlan overhead 18 ether-vlan"), of(22, 0, Framing::NoAtm));
        assert_eq!(read("conservative"), of(48, 0, Framing::Atm));
        assert_eq!(read("8 conservative noatm"), of(48, 0, Framing::NoAtm));
        assert_eq!(read("docsis atm raw"), Overhead { mpu: 64, ..Overhead::RAW });
        assert_eq!(read("raw overhead 0"), Overhead::RAW);
        assert_eq!(Overhead::read(Setting::Integer(-8)), Ok(of(-8, 0, Framing::NoAtm)));
        assert_eq!(read("via-ethernet docsis"), read("docsis"));
        assert_eq!(read("18 noatm").write(), "18");
        for (name, (bytes, mpu, framing)) in PRESETS {
            let expected = of(bytes, mpu.unwrap_or(0), framing.unwrap_or(Framing::NoAtm));
            assert_eq!(read(name), expected, "{name}");
            assert_eq!(read(&expected.write()), expected, "a written value is read");
        }
    }

    /// Formula of netem: whole cells, and one more for the rest.
    #[test]
    fn cells_have_any_size() {
        for (payload, more) in [(100, 5), (1, 0), (53, -5), (1000, 256), (300, -256), (2, -1)] {
            let overhead = read(&format!("20 cells {payload} {more}"));
            for len in [0u64, 1, 28, 29, 80, 81, 99, 1480, 65_000] {
                let bytes = len + 20;
                let cells = bytes / payload + u64::from(!bytes.is_multiple_of(payload));
                let expected = cells * payload.saturating_add_signed(more);
                let len = u32::try_from(len).unwrap();
                assert_eq!(overhead.wire_len(len, 0), expected, "{len} {payload} {more}");
            }
            assert_eq!(read(&overhead.write()), overhead);
        }
        assert_eq!(read("cells 48 5"), read("atm"), "the cells of ATM have a name");
        assert_eq!(read("mpu 64 cells 100 5").write(), "raw mpu 64 cells 100 5");
        let error = |text| Overhead::read(Setting::Text(text)).unwrap_err().to_string();
        assert!(error("cells 0 5").contains("cells 0 is out of range, allowed: 1 to 65535"));
        assert!(error("cells 100").contains("overhead of cells \"\" is not a whole number"));
        assert!(error("cells 10 -10").contains("cells -10 is out of range, allowed: -9 to 256"));
    }

    #[test]
    fn wrong_words_are_refused() {
        let error = |text| Overhead::read(Setting::Text(text)).unwrap_err().to_string();
        assert!(error("pppoe-vcmx").contains("did you mean \"pppoe-vcmux\"?"));
        assert!(error("257").contains("overhead 257 is out of range, allowed: -64 to 256"));
        assert!(error("256 ether-vlan").contains("overhead 260 is out of range"));
        assert!(error("raw overhead 44").contains("raw keeps the length, but 44 bytes are added"));
        assert!(error("18 mpu").contains("mpu \"\" is not a whole number of bytes"));
        assert!(error("mpu 257").contains("out of range"));
        assert!(error("1.5").contains("not a whole number"));
        assert!(error(" ").contains("is empty"));
        assert!(Overhead::read(Setting::Flag(true)).is_err());
        assert!(Overhead::read(Setting::Number(1.5)).is_err());
    }

    #[test]
    fn the_range_is_part_of_the_words() {
        assert!(read("256").is_within(&Overhead::RAW, &Overhead::RAW));
        assert_eq!(Overhead::kind(), "overhead");
    }
}
