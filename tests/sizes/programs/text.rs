//! A discipline from its text form.
#![no_std]
#![no_main]

use core::hint::black_box;
use sojourn_aqm::{Rate, build_text};
use sojourn_sizes::{halt, input};

/// Entry of the program.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    black_box(build_text(black_box("codel(target=5ms)"), Rate(input())).is_ok());
    halt()
}
