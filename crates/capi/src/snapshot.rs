//! Snapshots at the border: bytes that a handle owns, and handles that bytes create.

use crate::border::{
    Failure, Handle, Message, Outcome, Quick, SJ_BAD_SNAPSHOT, SJ_NULL, bytes, call, code,
};
use sojourn_aqm::Result;
use std::ffi::c_int;

/// Calls `snapshot`, which returns bytes that the state of the handle owns, and writes their
/// address and their number.
///
/// # Safety
/// `start` and `count` are null or can be written; `message` has the bytes that it states.
pub(crate) unsafe fn save<T>(
    handle: Quick<&mut Handle<T>>,
    snapshot: impl FnOnce(&mut T) -> Outcome<&[u8]>,
    start: *mut *const u8,
    count: *mut usize,
    message: Message,
) -> c_int {
    let saved = handle.map_err(Failure::from).and_then(|handle| {
        handle.call(|state| {
            if start.is_null() || count.is_null() {
                return Err(Failure::from(SJ_NULL));
            }
            let snapshot = snapshot(state)?;
            // SAFETY: not null; the caller promises that both can be written.
            unsafe {
                start.write(snapshot.as_ptr());
                count.write(snapshot.len());
            }
            Ok(0)
        })
    });
    code(message.report(saved))
}

/// Writes a handle that `create` returns for the bytes of a snapshot into `*handle`, or null.
///
/// # Safety
/// `handle` is null or can be written; `start` is null or has `count` bytes; `message` has the
/// bytes that it states.
pub(crate) unsafe fn load<T>(
    handle: *mut *mut T,
    start: *const u8,
    count: usize,
    create: impl FnOnce(&[u8]) -> Result<T>,
    message: Message,
) -> c_int {
    let loaded = call(|| {
        if handle.is_null() {
            return Err(Failure::from(SJ_NULL));
        }
        // SAFETY: not null; the caller promises that it can be written.
        unsafe { handle.write(std::ptr::null_mut()) };
        // SAFETY: the caller promises `count` bytes.
        let created = create(unsafe { bytes(start, count) }?)
            .map_err(|error| Failure { code: SJ_BAD_SNAPSHOT, text: error.to_string() })?;
        // SAFETY: as above.
        unsafe { handle.write(Box::into_raw(Box::new(created))) };
        Ok(0)
    });
    code(message.report(loaded))
}
