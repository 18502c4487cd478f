//! CoDel with a transmitter of the program: a packet in, a packet out.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::hint::black_box;
use sojourn_aqm::aqm::codel::CoDel;
use sojourn_aqm::{Aqm, Context, Marks, Packet, Pcg, Qdisc, Rate, Span, Time};
use sojourn_sizes::{halt, input, length};

/// Entry of the program.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    let codel = CoDel::builder().aqm(|codel| codel.target(Span(input())));
    let mut queue = codel.build(Rate(input())).unwrap_or_else(|_| halt());
    let mut rng = Pcg::new(input());
    let (mut dropped, mut marks) = (Vec::new(), Marks::default());
    loop {
        let now = Time(input());
        let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
        let packet = Packet { arrived: now, len: length(), ..Packet::default() };
        queue.enqueue(&mut context, packet);
        black_box(queue.dequeue(&mut context));
        black_box(dropped.pop());
    }
}
