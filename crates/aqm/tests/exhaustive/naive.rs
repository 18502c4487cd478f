//! Interface of a model, and calls of the discipline next to it.

use crate::Fixed;
use sojourn_aqm::{Context, DropReason, Packet, Qdisc, Time};

/// Discipline of the library.
pub type Real = Box<dyn Qdisc + Send>;

/// Dropped packets as they were then, with reason.
pub type Losses = Vec<(Packet, DropReason)>;

/// Model: packets in plain vectors, time in nanoseconds.
pub trait Naive {
    /// `packet` arrives; the random number is `u`.
    fn enqueue(&mut self, now: u64, u: f64, packet: Packet, dropped: &mut Losses);
    /// Dequeues.
    fn dequeue(&mut self, now: u64, dropped: &mut Losses) -> Option<Packet>;
    /// The random number of all later departures is `u`; false if the model knows a half only.
    fn draw(&mut self, _u: f64) -> bool {
        false
    }
    /// Backlog in packets and bytes.
    fn held(&self) -> (usize, u64);
    /// Internal variable, if the model has one of this name.
    fn variable(&self, _name: &str) -> Option<f64> {
        None
    }
}

/// Total length of packets in bytes.
pub fn bytes(queue: &[Packet]) -> u64 {
    queue.iter().map(|p| u64::from(p.len)).sum()
}

/// Calls the discipline of the library.
pub fn call<T>(
    real: &mut dyn Qdisc,
    now: Time,
    u: f64,
    f: impl FnOnce(&mut dyn Qdisc, &mut Context<'_>) -> T,
) -> (T, Losses) {
    let (mut rng, mut dropped, mut marks) = (Fixed(u), Vec::new(), sojourn_aqm::Marks::default());
    let out =
        f(real, &mut Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks });
    (out, dropped.iter().map(|l| (l.packet, l.reason)).collect())
}
