//! Operations on a discipline, decoded from bytes; used by the fuzz target and, with random bytes,
//! by the suite.

use crate::cases::{Case, draw};
use crate::ledger::{Event, Ledger};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::registry::REGISTRY;
use sojourn_aqm::{Ecn, Packet, Span, TcpFlags};

/// Lengths from one byte to more than most buffers hold.
const LENS: [u32; 12] = [1, 40, 64, 100, 500, 999, 1000, 1500, 1501, 4000, 9000, 65_535];

/// Flow numbers and hashes at both ends of their range, and small ones.
fn flow(byte: u8) -> u32 {
    match byte % 16 {
        14 => u32::MAX,
        15 => u32::MAX - 1,
        n => u32::from(n),
    }
}

/// Pauses from zero over a packet time to a day.
fn wait(byte: u8) -> Span {
    match byte % 8 {
        0 => Span(0),
        1 => Span(1),
        2..=5 => Span(u64::from(byte) * 50_000),
        6 => Span::ms(u64::from(byte)),
        _ if byte > 250 => Span::s(86_400),
        _ => Span::s(u64::from(byte)),
    }
}

/// Applies operations to `ledger`, two bytes each.
pub fn apply(ledger: &mut Ledger, bytes: &[u8]) {
    for (n, pair) in (0..).zip(bytes.chunks_exact(2)) {
        let (op, arg) = (pair[0], pair[1]);
        match op % 8 {
            0..4 => {
                let flow = flow(arg);
                let len = LENS[usize::from(op / 8) % LENS.len()];
                // One hash per flow, several flows per hash.
                let hash = if flow > 8 { flow } else { flow / 2 };
                let ecn = Ecn::from_bits(arg / 16);
                // Three hosts, four classes, and short packets that are ACKs.
                let (source, class) = (flow % 3, [0, 8, 46, 34][flow as usize % 4]);
                let pure = TcpFlags::ACK.with(TcpFlags::PURE);
                let tcp = TcpFlags::default().with_if(len < 100, pure);
                let packet = Packet {
                    len,
                    flow,
                    hash,
                    ecn,
                    source,
                    class,
                    ack: n,
                    tcp,
                    ..Packet::default()
                };
                ledger.put(packet);
            }
            4..7 => drop(ledger.get()),
            _ => ledger.wait(wait(arg)),
        }
    }
}

/// Runs a random discipline; the first eight bytes select it and its settings.
pub fn life(bytes: &[u8]) {
    let Some((head, rest)) = bytes.split_first_chunk::<8>() else { return };
    let seed = u64::from_le_bytes(*head);
    let entry = &REGISTRY[usize::from(head[0]) % REGISTRY.len()];
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let settings = draw(&entry.params(), &mut rng);
    let case = Case { entry, settings };
    if case.try_build().is_none() {
        return;
    }
    let mut ledger = Ledger::new(&case, seed);
    apply(&mut ledger, rest);
    ledger.drain();
    ledger.trace.clear();
}

/// Trace of `case` for `bytes`, checked at every step.
pub fn trace(case: &Case, seed: u64, bytes: &[u8]) -> Vec<Event> {
    let mut ledger = Ledger::new(case, seed);
    apply(&mut ledger, bytes);
    ledger.drain();
    ledger.trace
}
