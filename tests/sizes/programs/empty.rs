//! Nothing but the allocator and the panic handler.
#![no_std]
#![no_main]

use sojourn_sizes::{halt, input};

/// Entry of the program.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    core::hint::black_box(input());
    halt()
}
