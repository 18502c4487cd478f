//! Header and checksum of a snapshot.

use super::{Reader, Snapshot, Writer};
use crate::error::{Error, Result};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Version of the format of snapshots. A program that reads another one refuses a snapshot, as does
/// another version of this crate, or a build in which a type has other fields.
pub const FORMAT: u32 = 1;

/// First bytes of every snapshot.
const MAGIC: &[u8; 8] = b"sojourn\x1a";

/// Version of this crate.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Kind of the thing in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A [`Link`](crate::Link).
    Link,
    /// A [`TimedLink`](crate::TimedLink).
    TimedLink,
    /// A simulation of `sojourn-sim`.
    Simulation,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Link, Kind::TimedLink, Kind::Simulation];

    /// Name in messages.
    fn name(self) -> &'static str {
        match self {
            Kind::Link => "link",
            Kind::TimedLink => "timed link",
            Kind::Simulation => "simulation",
        }
    }
}

/// FNV-1a, 64 bits: it differs if a single byte differs.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Returns `body`, the state of a `kind` whose types have the hash `layout`, with a header and a
/// checksum.
pub fn seal(kind: Kind, layout: u64, body: Writer) -> Vec<u8> {
    let body = body.into_bytes();
    let mut out = Writer::default();
    out.bytes(MAGIC);
    out.bytes(&FORMAT.to_le_bytes());
    out.text(VERSION);
    out.byte(kind as u8);
    out.bytes(&layout.to_le_bytes());
    out.length(body.len());
    out.bytes(&body);
    let mut bytes = out.into_bytes();
    bytes.extend(checksum(&bytes).to_le_bytes());
    bytes
}

/// Checks the header and the checksum of a snapshot of a `kind`, and returns its body.
///
/// # Errors
/// Bytes that are not a snapshot, one of another version, build or kind, or a damaged one.
pub fn open(bytes: &[u8], kind: Kind, layout: u64) -> Result<Reader<'_>> {
    let fault = |text: String| Error::new(text).at("snapshot");
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Err(fault(String::from("is not a snapshot of sojourn")));
    };
    let damaged = || fault(String::from("is damaged or incomplete"));
    let mut input = Reader::new(rest);
    let read = |_| damaged();
    let format = input.bytes(4).map_err(read)?;
    let format = format.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
    if format != FORMAT {
        return Err(fault(format!("has format {format}; this version reads format {FORMAT}")));
    }
    let version = input.text().map_err(read)?;
    if version != VERSION {
        let text =
            format!("was written by sojourn {version:.20}, and is read by that version only");
        return Err(fault(format!("{text}; this is {VERSION}")));
    }
    let Some((content, sum)) = bytes.split_last_chunk::<8>() else { return Err(damaged()) };
    if checksum(content) != u64::from_le_bytes(*sum) {
        return Err(damaged());
    }
    let of = Kind::ALL.get(usize::from(input.byte().map_err(read)?)).ok_or_else(damaged)?;
    if *of != kind {
        return Err(fault(format!("is of a {}, not of a {}", of.name(), kind.name())));
    }
    if input.bytes(8).map_err(read)? != layout.to_le_bytes() {
        let text = "was written by another build of this version, or is of a link with other types";
        return Err(fault(String::from(text)));
    }
    let length = input.length().map_err(read)?;
    let body = Reader::new(input.bytes(length).map_err(read)?);
    if input.left() == sum.len() { Ok(body) } else { Err(damaged()) }
}

/// Returns `value`, which is of a `kind`, as a snapshot.
///
/// # Errors
/// State that cannot be saved.
pub(crate) fn to_bytes<T: Snapshot>(kind: Kind, value: &T) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    value.save_to(&mut out)?;
    Ok(seal(kind, T::layout(), out))
}

/// Loads a snapshot of a `kind` into `value`.
///
/// # Errors
/// As [`open`], and a state that does not fit `value`.
pub(crate) fn load_bytes<T: Snapshot>(kind: Kind, value: &mut T, bytes: &[u8]) -> Result<()> {
    let mut input = open(bytes, kind, T::layout())?;
    value.load_from(&mut input)?;
    input.finish()
}
