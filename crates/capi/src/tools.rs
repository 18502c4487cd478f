//! Functions without a handle.

use crate::border::{Message, SJ_INVALID, SJ_NULL, bytes, call, code, text_of};
use sojourn_aqm::random::flow_hash;
use sojourn_aqm::registry::REGISTRY;
use std::ffi::{c_char, c_int};

/// Version of the binary interface of this header. A program compares it with sj_abi_version().
pub const SJ_ABI_VERSION: u32 = 1;

/// Returns the version of the binary interface of the library: the number changes if a program has
/// to be compiled again.
#[unsafe(no_mangle)]
pub extern "C" fn sj_abi_version() -> u32 {
    SJ_ABI_VERSION
}

/// Returns the version of the library, like "0.1.0". The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn sj_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the text of a code that a function has returned. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn sj_strerror(error_code: c_int) -> *const c_char {
    text_of(error_code).as_ptr()
}

/// Returns the number of disciplines.
#[unsafe(no_mangle)]
pub extern "C" fn sj_discipline_count() -> usize {
    REGISTRY.len()
}

/// Writes the name of the discipline `index` into `name`, which has `bytes` bytes. Returns 0, or
/// SJ_INVALID if there are not so many.
///
/// # Safety
/// `name` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_discipline_name(
    index: usize,
    name: *mut c_char,
    bytes: usize,
) -> c_int {
    let Some(entry) = REGISTRY.get(index) else { return SJ_INVALID };
    if name.is_null() {
        return SJ_NULL;
    }
    Message { start: name, bytes }.write(entry.name);
    0
}

/// Writes the hash of a flow into `*hash`: addresses of 4 or 16 bytes, protocol and ports (0 if
/// there are none). Draw `salt` at random once, so that no sender can choose its queue. Returns 0
/// or an error.
///
/// # Safety
/// `source` and `destination` have `address_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_flow_hash(
    salt: u64,
    source: *const u8,
    destination: *const u8,
    address_bytes: usize,
    protocol: u8,
    source_port: u16,
    destination_port: u16,
    hash: *mut u32,
) -> c_int {
    code(call(|| {
        if hash.is_null() {
            return Err(SJ_NULL);
        }
        if ![4, 16].contains(&address_bytes) {
            return Err(SJ_INVALID);
        }
        // SAFETY: the caller promises this many bytes at both.
        let hosts = unsafe { [bytes(source, address_bytes)?, bytes(destination, address_bytes)?] };
        let ports = [source_port, destination_port];
        // SAFETY: not null; the caller promises that it can be written.
        unsafe { hash.write(flow_hash(salt, protocol, hosts, ports)) };
        Ok(0)
    }))
}
