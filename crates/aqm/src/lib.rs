#![no_std]
extern crate alloc;
#[cfg(test)]
extern crate std;
pub mod dice;
pub mod error;
pub mod packet;
pub mod params;
pub mod units;
