//! Snapshots: the state of a running link as bytes, from which an equal link continues.
//!
//! [`Snapshot`] is derived for every type that holds state. [`Link::save`](crate::Link::save) and
//! [`TimedLink::save`](crate::TimedLink::save) write the state behind a header; the bytes do not
//! depend on the machine.
//!
//! ```
//! use sojourn_aqm::{Link, LinkSpec, Packet, Pcg, Rate, Span, Time, build_text};
//!
//! let spec = LinkSpec::new(Rate(10_000_000), Span::ms(25));
//! let build = || Link::new(spec, build_text("codel(target=15ms)", spec.rate)?.qdisc, Pcg::new(1));
//! let mut link = build()?;
//! link.push(Time::ZERO, Packet { len: 1500, ..Packet::default() });
//!
//! let bytes = link.save()?;
//! let mut other = build()?; // on another machine, perhaps
//! other.load(&bytes)?;
//! assert_eq!(other.next_poll(), link.next_poll());
//! assert_eq!(other.save()?, bytes);
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```
//!
//! # Versions
//! A snapshot is read by the version of the library that wrote it. Another version, or a build in
//! which a type has other fields, refuses it: see [`FORMAT`].

mod envelope;
mod reseed;
mod values;

pub use envelope::{FORMAT, Kind, open, seal};
pub(crate) use envelope::{load_bytes, to_bytes};
pub use reseed::reseed;
pub use sojourn_derive::Snapshot;

use crate::error::{Error, Result};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// State as bytes. `#[derive(Snapshot)]` saves and loads every field of a struct or enum; a field
/// with `#[snapshot(skip)]` keeps the value that it was built with.
///
/// Parameters of a user-made discipline are fields like others:
///
/// ```
/// use sojourn_aqm::Snapshot;
///
/// #[derive(Clone, Debug, Snapshot)]
/// struct EveryNth {
///     n: u64,
///     count: u64,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the state of `{Self}` cannot be saved",
    note = "add `#[derive(sojourn_aqm::Snapshot)]` to the type"
)]
pub trait Snapshot {
    /// Hash of the names and types of all fields, also of fields of fields.
    fn layout() -> u64
    where
        Self: Sized;

    /// Same as [`Snapshot::layout`] for a value whose type is not known.
    fn layout_of(&self) -> u64;

    /// Appends the state.
    ///
    /// # Errors
    /// State that cannot be saved, such as a random number generator of another crate.
    fn save_to(&self, out: &mut Writer) -> Result<()>;

    /// Replaces the state by a saved one. After an error the state is unspecified: drop the value.
    ///
    /// # Errors
    /// Bytes that are not a state of this type.
    fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()>;

    /// Creates a value with the saved state.
    ///
    /// # Errors
    /// As [`Snapshot::load_from`], and for types that can only be loaded in place.
    fn create_from(input: &mut Reader<'_>) -> Result<Self>
    where
        Self: Sized;
}

/// Error of a build without the feature `snapshot`.
#[cold]
#[doc(hidden)]
pub fn refused<T>() -> Result<T> {
    Err(Error::fixed("this build cannot save and load state: it lacks the feature snapshot"))
}

/// Odd, so that a multiplication loses nothing.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Combines the hashes of a type and of the types of its fields.
#[doc(hidden)]
pub fn layout(own: u64, fields: &[u64]) -> u64 {
    let step = |hash: u64, field: &u64| (hash ^ field).rotate_left(29).wrapping_mul(MULTIPLIER);
    fields.iter().fold(own, step)
}

/// Bytes of a snapshot that is being written.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    in_place: bool,
}

impl Writer {
    /// True if the bytes are loaded into the same value at once, by [`reseed`]. A type without
    /// random streams then may write nothing, if it also reads nothing: see
    /// [`Reader::new_seed`].
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Appends a byte.
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Appends bytes, whose number the reader must know.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends an integer in groups of 7 bits, the lowest first. The highest bit of a byte is set
    /// if another one follows.
    pub fn number(&mut self, mut value: u128) {
        while value >= 0x80 {
            self.bytes.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.bytes.push(value.to_le_bytes()[0]);
    }

    /// Appends the number of elements of a list.
    pub fn length(&mut self, length: usize) {
        self.number(length as u128);
    }

    /// Appends the number of a variant of an enum.
    #[doc(hidden)]
    pub fn variant(&mut self, variant: u32) {
        self.number(variant.into());
    }

    /// Appends a text.
    pub fn text(&mut self, text: &str) {
        self.length(text.len());
        self.bytes(text.as_bytes());
    }

    /// The bytes written so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Bytes of a snapshot that is being read.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    new_seed: Option<u64>,
}

impl<'a> Reader<'a> {
    /// Creates a reader of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, new_seed: None }
    }

    /// Seed from which random streams get other numbers; `None` if they continue as saved. The
    /// bytes are of an [in-place](Writer::is_in_place) copy if there is one.
    pub fn new_seed(&self) -> Option<u64> {
        self.new_seed
    }

    /// Removes and returns a byte.
    ///
    /// # Errors
    /// If none is left.
    pub fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.rest.split_first().ok_or_else(too_short)?;
        self.rest = rest;
        Ok(*first)
    }

    /// Removes and returns `count` bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (first, rest) = self.rest.split_at_checked(count).ok_or_else(too_short)?;
        self.rest = rest;
        Ok(first)
    }

    /// Removes and returns an integer.
    ///
    /// # Errors
    /// If it is incomplete, or does not fit into 128 bits.
    pub fn number(&mut self) -> Result<u128> {
        let mut value = 0;
        for shift in (0..u128::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.invalid("integer"))
    }

    /// Removes and returns the number of elements of a list. Each element takes a byte or more, so
    /// it is at most the number of bytes left.
    ///
    /// # Errors
    /// A larger number.
    pub fn length(&mut self) -> Result<usize> {
        let length = usize::try_from(self.number()?).map_err(|_| too_short())?;
        if length > self.rest.len() { Err(too_short()) } else { Ok(length) }
    }

    /// Removes and returns the number of a variant of an enum.
    #[doc(hidden)]
    pub fn variant(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| self.invalid("variant"))
    }

    /// Removes and returns a text.
    ///
    /// # Errors
    /// If it is incomplete, or not UTF-8.
    pub fn text(&mut self) -> Result<&'a str> {
        let length = self.length()?;
        core::str::from_utf8(self.bytes(length)?).map_err(|_| self.invalid("text"))
    }

    /// Number of bytes left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// If bytes are left.
    pub fn finish(&self) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Error::new(format!("the snapshot has {} bytes too many", self.rest.len())))
    }

    /// Error for a value that no `what` has.
    #[cold]
    pub fn invalid(&self, what: &str) -> Error {
        Error::new(format!("the snapshot has an invalid value of {what}"))
    }

    /// Error for a state of `what` in a snapshot where the value to load has none.
    #[cold]
    pub fn not_created(&self, what: &str) -> Error {
        let text = "is in the snapshot and not in what it is loaded into: build that from the same \
                    parameters";
        Error::new(format!("{what} {text}"))
    }
}

/// Error for a snapshot that ends too early.
#[cold]
fn too_short() -> Error {
    Error::new(String::from("the snapshot ends too early"))
}
