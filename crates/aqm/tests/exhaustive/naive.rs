//! What a model is, and how the discipline is called beside it.

use crate::Fixed;
use sojourn_aqm::sched::Qdisc;
use sojourn_aqm::{Cx, Packet, Time, Why};

/// The library's side.
pub type Real = Box<dyn Qdisc + Send>;

/// Who was lost, as it was then, and why.
pub type Losses = Vec<(Packet, Why)>;

/// A model: packets in plain vectors, time in nanoseconds.
pub trait Naive {
    /// `packet` arrives while the dice show `u`.
    fn enqueue(&mut self, now: u64, u: f64, packet: Packet, lost: &mut Losses);
    /// The next packet is asked for.
    fn dequeue(&mut self, now: u64, lost: &mut Losses) -> Option<Packet>;
    /// Packets and bytes held.
    fn held(&self) -> (usize, u64);
    /// An internal variable, if the model has it under that name.
    fn variable(&self, _name: &str) -> Option<f64> {
        None
    }
}

/// The length of a vector of packets in bytes.
pub fn bytes(line: &[Packet]) -> u64 {
    line.iter().map(|p| u64::from(p.len)).sum()
}

/// Calls the library's side.
pub fn call<T>(
    real: &mut dyn Qdisc,
    now: Time,
    u: f64,
    f: impl FnOnce(&mut dyn Qdisc, &mut Cx<'_>) -> T,
) -> (T, Losses) {
    let (mut dice, mut lost, mut marks) = (Fixed(u), Vec::new(), sojourn_aqm::Marks::default());
    let out = f(real, &mut Cx { now, dice: &mut dice, lost: &mut lost, marks: &mut marks });
    (out, lost.iter().map(|l| (l.packet, l.why)).collect())
}
