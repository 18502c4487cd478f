//! Common work of all functions at the border: check pointers, catch panics, report errors.

use sojourn_aqm::cast;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A pointer is null.
pub const SJ_NULL: c_int = -1;
/// An argument is invalid.
pub const SJ_INVALID: c_int = -2;
/// The time is earlier than in a previous call.
pub const SJ_EARLIER: c_int = -3;
/// The packet has 2^30 bytes or more.
pub const SJ_BAD_LENGTH: c_int = -4;
/// The `size` of a struct is not known: the header belongs to another version.
pub const SJ_BAD_SIZE: c_int = -5;
/// The call, or an earlier one with this handle, has panicked: a defect of the library.
pub const SJ_PANICKED: c_int = -6;
/// The bytes are not a snapshot, or one of another version, or damaged.
pub const SJ_BAD_SNAPSHOT: c_int = -7;

/// Result of a call: a value, or a code with a message.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Result of a call that is made for each packet. An error is only a code: a message would have to
/// be freed on every path.
pub(crate) type Quick<T> = Result<T, c_int>;

/// Error of a call.
pub(crate) struct Failure {
    pub(crate) code: c_int,
    /// Message; empty if the text of the code says everything.
    pub(crate) text: String,
}

impl From<c_int> for Failure {
    fn from(code: c_int) -> Failure {
        Failure { code, text: String::new() }
    }
}

impl From<Failure> for c_int {
    fn from(failure: Failure) -> c_int {
        failure.code
    }
}

impl From<sojourn_aqm::Error> for Failure {
    fn from(error: sojourn_aqm::Error) -> Failure {
        Failure { code: code_of(&error), text: error.to_string() }
    }
}

/// Returns the code of an error of the library.
pub(crate) fn code_of(error: &sojourn_aqm::Error) -> c_int {
    match error.path() {
        "now" => SJ_EARLIER,
        "len" => SJ_BAD_LENGTH,
        _ => SJ_INVALID,
    }
}

/// State behind a handle.
#[derive(Debug)]
pub(crate) struct Handle<T> {
    pub(crate) inner: T,
    has_panicked: bool,
}

impl<T> Handle<T> {
    pub(crate) fn new(inner: T) -> Handle<T> {
        Handle { inner, has_panicked: false }
    }

    /// Calls `work` with the state; a panic becomes an error, for this and all later calls.
    #[inline(always)]
    pub(crate) fn call<R, E: From<c_int>>(
        &mut self,
        work: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E> {
        let inner = self.without_catch()?;
        match catch_unwind(AssertUnwindSafe(|| work(inner))) {
            Ok(result) => result,
            Err(_) => {
                self.has_panicked = true;
                Err(SJ_PANICKED.into())
            }
        }
    }

    /// Returns the state, for work that cannot panic.
    #[inline(always)]
    pub(crate) fn without_catch(&mut self) -> Quick<&mut T> {
        if self.has_panicked { Err(SJ_PANICKED) } else { Ok(&mut self.inner) }
    }

    /// Returns a copy; `None` if a call has panicked.
    pub(crate) fn copy(&mut self) -> Option<Handle<T>>
    where
        T: Clone,
    {
        self.call(|inner| Quick::Ok(inner.clone())).ok().map(Handle::new)
    }
}

/// Calls `work`, which has no handle; a panic becomes an error.
pub(crate) fn call<R, E: From<c_int>>(work: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    Handle::new(()).call(|()| work())
}

/// Returns the code of an error, or the number of a result.
#[inline]
pub(crate) fn code<E: Into<c_int>>(outcome: Result<usize, E>) -> c_int {
    match outcome {
        Ok(n) => c_int::try_from(n).unwrap_or(c_int::MAX),
        Err(error) => error.into(),
    }
}

/// Returns the code of an error, or the result.
#[inline(always)]
pub(crate) fn single(outcome: Quick<c_int>) -> c_int {
    outcome.unwrap_or_else(|code| code)
}

/// Buffer of the caller for a message.
#[derive(Clone, Copy)]
pub(crate) struct Message {
    pub(crate) start: *mut c_char,
    pub(crate) bytes: usize,
}

impl Message {
    /// Writes the message of an error, or an empty one, and passes the result on.
    pub(crate) fn report<T>(self, outcome: Outcome<T>) -> Outcome<T> {
        let text = match &outcome {
            Ok(_) => "",
            Err(failure) if failure.text.is_empty() => text_of(failure.code).to_str().unwrap_or(""),
            Err(failure) => &failure.text,
        };
        self.write(text);
        outcome
    }

    /// Writes as much of `text` as there is room for, cut between characters, and a null character.
    pub(crate) fn write(self, text: &str) {
        if self.start.is_null() || self.bytes == 0 {
            return;
        }
        let end = (0..self.bytes.min(text.len() + 1)).rev().find(|end| text.is_char_boundary(*end));
        let end = end.unwrap_or(0);
        // SAFETY: the caller promises `bytes` writable bytes at `start`, which is not null; `end`
        // is less than `bytes` and at most the length of `text`, which is elsewhere.
        unsafe {
            self.start.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), end);
            self.start.add(end).write(0);
        }
    }
}

/// Text of a code.
pub(crate) fn text_of(code: c_int) -> &'static CStr {
    match code {
        SJ_NULL => c"a pointer is null",
        SJ_INVALID => c"an argument is invalid",
        SJ_EARLIER => c"the time is earlier than in a previous call",
        SJ_BAD_LENGTH => c"a packet has 2^30 bytes or more",
        SJ_BAD_SIZE => c"the size of a struct is not known",
        SJ_PANICKED => c"a call has panicked; free the handle",
        SJ_BAD_SNAPSHOT => c"the bytes are not a snapshot of this version, or damaged",
        _ if code >= 0 => c"no error",
        _ => c"unknown error",
    }
}

/// Reads a text of the caller.
///
/// # Safety
/// `text` is null, or ends with a null character.
pub(crate) unsafe fn read<'a>(text: *const c_char) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(SJ_NULL.into());
    }
    // SAFETY: not null, and the caller promises the null character at the end.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure { code: SJ_INVALID, text: "the text is not UTF-8".into() })
}

/// Dereferences a handle.
///
/// # Safety
/// `handle` is null, or a handle that is not freed and that no other call uses.
#[inline(always)]
pub(crate) unsafe fn handle<'a, T>(handle: *mut T) -> Quick<&'a mut T> {
    // SAFETY: the caller promises a valid handle that is used by this call only.
    unsafe { handle.as_mut() }.ok_or(SJ_NULL)
}

/// Checks the `size` of a struct; the struct has the fields of this version if it is no smaller.
#[inline]
pub(crate) fn check_size<T>(size: u32) -> Quick<usize> {
    let bytes = size as usize;
    let aligned = bytes.is_multiple_of(align_of::<T>());
    let known = bytes >= size_of::<T>() && aligned && size <= cast::number(16 * size_of::<T>());
    if known { Ok(bytes) } else { Err(SJ_BAD_SIZE) }
}

/// Bytes of the caller.
///
/// # Safety
/// `start` is null, or has `count` bytes.
pub(crate) unsafe fn bytes<'a>(start: *const u8, count: usize) -> Quick<&'a [u8]> {
    if start.is_null() {
        return Err(SJ_NULL);
    }
    // SAFETY: not null, and the caller promises `count` bytes.
    Ok(unsafe { std::slice::from_raw_parts(start, count) })
}
