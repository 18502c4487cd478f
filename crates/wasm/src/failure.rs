//! Message of a panic, which ends the module: on WebAssembly a panic is a trap without text.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

thread_local! {
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the message of a panic for [`failure`].
pub(crate) fn set_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        panic::set_hook(Box::new(|info| MESSAGE.with_borrow_mut(|text| *text = info.to_string())));
    });
}

/// Place of the message of the panic that ended the module.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn failure() -> *const u8 {
    MESSAGE.with_borrow(|text| text.as_ptr())
}

/// Number of bytes of the message; 0 if there was no panic.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn failure_len() -> usize {
    MESSAGE.with_borrow(String::len)
}
