//! Overhead of a link from the words of a size table (`stab`) and of shapers.

use super::table::{Arg, Line};
use crate::overhead::{Framing, Overhead};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Bytes of the Ethernet header, which Linux counts in the length of a packet.
pub(super) const HEADER: i64 = 14;

/// Framing as tc describes it: bytes added to the length with the Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Bytes added.
    pub overhead: i64,
    /// Smallest length.
    pub mpu: u64,
    /// Cells.
    pub framing: Framing,
}

impl Frame {
    /// The same as overhead of a link, which is added to the length of the IP packet.
    pub fn overhead(self, lost: &mut Vec<String>) -> Option<Overhead> {
        let bytes = self.overhead + HEADER;
        if !(-64..=256).contains(&bytes) || self.mpu > 256 {
            let Frame { overhead, mpu, .. } = self;
            let text = format!("overhead {overhead} mpu {mpu}");
            lost.push(format!("{text}: a link has -64 to 256 bytes and an mpu of up to 256"));
            return None;
        }
        Some(Overhead { bytes: Some(bytes), mpu: self.mpu, framing: self.framing })
    }

    /// Framing of the words `overhead`, `mpu` and `linklayer` of tbf or a class of htb; None if
    /// they are not given.
    pub fn of_line(line: &Line) -> Option<Frame> {
        let is_set = ["overhead", "mpu", "linklayer"].iter().any(|word| {
            let index = line.kind.words.iter().position(|known| known.name == *word);
            let default = index.and_then(|i| line.kind.words[i].default_arg());
            line.given(word).is_some_and(|arg| Some(arg) != default.as_ref())
        });
        let linklayer = match line.get("linklayer") {
            Some(Arg::Text(name)) => name,
            _ => String::new(),
        };
        let frame = Frame {
            overhead: i64::try_from(line.whole("overhead")).unwrap_or(i64::MAX - HEADER),
            mpu: line.whole("mpu"),
            framing: framing(&linklayer)?,
        };
        is_set.then_some(frame)
    }

    /// Framing of a size table, `stab overhead N mpu N linklayer L mtu N tsize N`. Words without
    /// an effect go to `lost`. None if the table changes nothing.
    pub fn of_stab(stab: &str, lost: &mut Vec<String>) -> Option<Frame> {
        let mut frame = Frame { overhead: 0, mpu: 0, framing: Framing::NoAtm };
        let mut words = stab.split_whitespace().skip(1);
        while let (Some(word), Some(value)) = (words.next(), words.next()) {
            let known = match (word, value.parse::<i64>()) {
                ("overhead", Ok(n)) => {
                    frame.overhead = n;
                    true
                }
                ("mpu", Ok(n)) => {
                    frame.mpu = n.unsigned_abs();
                    true
                }
                // The size of the table, whose entries are exact here.
                ("mtu" | "tsize", Ok(_)) => true,
                ("linklayer", _) => {
                    framing(value).inspect(|framing| frame.framing = *framing).is_some()
                }
                _ => false,
            };
            if !known {
                lost.push(format!("stab {word} {value}: sojourn has no such framing"));
            }
        }
        let plain = Frame { overhead: 0, mpu: 0, framing: Framing::NoAtm };
        Some(frame).filter(|frame| *frame != plain)
    }
}

/// Framing with the name of a link layer of tc.
fn framing(name: &str) -> Option<Framing> {
    match name {
        "" | "ethernet" => Some(Framing::NoAtm),
        "atm" | "adsl" => Some(Framing::Atm),
        _ => None,
    }
}
