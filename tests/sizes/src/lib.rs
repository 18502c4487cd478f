//! Allocator, panic handler and inputs of programs without a standard library, whose code `make
//! sizes` measures.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Memory of a program, bytes.
const ROOM: usize = 65536;

#[repr(align(16))]
struct Room(UnsafeCell<[u8; ROOM]>);

// SAFETY: `Bump` gives each byte to one owner.
unsafe impl Sync for Room {}

static BYTES: Room = Room(UnsafeCell::new([0; ROOM]));

/// Smallest allocator: memory is not used again.
struct Bump(AtomicUsize);

// SAFETY: each call returns other bytes of the room, aligned and within it, or null. A bare
// processor has one thread.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let from = (self.0.load(Ordering::Relaxed) + layout.align() - 1) & !(layout.align() - 1);
        if from + layout.size() > ROOM {
            return core::ptr::null_mut();
        }
        self.0.store(from + layout.size(), Ordering::Relaxed);
        // SAFETY: `from` is within the room.
        unsafe { BYTES.0.get().cast::<u8>().add(from) }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Bump = Bump(AtomicUsize::new(0));

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    halt()
}

/// Stops the program.
pub fn halt() -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Returns a number that the compiler does not know.
pub fn input() -> u64 {
    core::hint::black_box(3)
}

/// Returns a packet length that the compiler does not know.
pub fn length() -> u32 {
    core::hint::black_box(1500)
}
