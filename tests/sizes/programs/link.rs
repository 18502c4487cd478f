//! A link with CoDel.
#![no_std]
#![no_main]

use core::hint::black_box;
use sojourn_aqm::aqm::codel::CoDel;
use sojourn_aqm::{Aqm, Link, LinkSpec, Packet, Pcg, Rate, Span, Time};
use sojourn_sizes::{halt, input, length};

/// Entry of the program.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    let spec = LinkSpec::new(Rate(input()), Span(input()));
    let codel = CoDel::builder().aqm(|codel| codel.target(Span(input())));
    let codel = codel.build(spec.rate).unwrap_or_else(|_| halt());
    let mut link = Link::new(spec, codel, Pcg::new(input())).unwrap_or_else(|_| halt());
    loop {
        let now = Time(input());
        link.push(now, Packet { len: length(), ..Packet::default() });
        black_box(link.next_poll());
        black_box(link.poll(now));
        black_box(link.take_dropped().next());
    }
}
