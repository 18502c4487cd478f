//! Shared helpers: packets, links and directions.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]
#![allow(dead_code, reason = "not every test uses all helpers")]

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::{Link, LinkSpec, Rate, Setting, Span};
use sojourn_live::pump::Framing;
use sojourn_live::{Direction, DirectionConfig, TimedLink};

/// IPv4 UDP packet of `len` bytes from `port`; its last four bytes are `number`.
pub fn udp(len: usize, port: u16, ecn: u8, number: u32) -> Vec<u8> {
    let mut p = vec![0x45, ecn];
    p.extend((len as u16).to_be_bytes());
    p.extend([0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
    p.extend(port.to_be_bytes());
    p.extend(9u16.to_be_bytes());
    p.extend((len as u16 - 20).to_be_bytes());
    p.extend([0, 0]);
    p.resize(len - 4, 0);
    p.extend(number.to_be_bytes());
    p
}

/// Link with the discipline `name` and `settings`.
pub fn made(name: &str, settings: &[(&str, &str)], link: LinkSpec) -> Link {
    let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, Setting::Text(v))).collect();
    let qdisc = sojourn_aqm::build(name, &settings, link.rate).unwrap().qdisc;
    Link::new(link, qdisc, Pcg64Mcg::seed_from_u64(1)).unwrap()
}

/// Direction over such a link, without random loss or changes.
pub fn spec(name: &str, settings: &[(&str, &str)], link: LinkSpec) -> DirectionConfig {
    DirectionConfig {
        timed_link: TimedLink::new(made(name, settings, link)),
        hash_key: 1,
        framing: Framing::Ip,
    }
}

/// Link of this rate and delay.
pub fn link(mbit: u64, delay_ms: u64) -> LinkSpec {
    LinkSpec::new(Rate(mbit * 1_000_000), Span::ms(delay_ms))
}

/// Passes `packet` to `hop` as if it had been read.
pub fn put(hop: &mut Direction, now: sojourn_aqm::Time, packet: &[u8]) {
    hop.receive_buffer()[..packet.len()].copy_from_slice(packet);
    hop.accept(now, packet.len());
}
