//! Switches of the reference engine: sums over all queues at every arrival.

use crate::Plain;
use sojourn_aqm::Packet;
use sojourn_sim::config::{SwitchClass, SwitchConfig};
use std::ops::RangeInclusive;

/// Links with a shared buffer: size, queues of each link, and the links.
pub struct PlainSwitch {
    buffer: u64,
    /// Queues by class. The last one has all classes.
    queues: Vec<PlainQueue>,
    links: Vec<usize>,
}

/// Queue of a shared buffer: its classes, alpha and reserve.
struct PlainQueue {
    classes: RangeInclusive<u16>,
    alpha: f64,
    reserve: u64,
}

impl PlainSwitch {
    pub fn new(def: &SwitchConfig) -> PlainSwitch {
        let queue = |class: &SwitchClass| PlainQueue {
            classes: class.range(),
            alpha: class.alpha().unwrap_or_else(|| def.alpha()),
            reserve: class.reserve().unwrap_or_else(|| def.reserve()).0,
        };
        let mut queues: Vec<PlainQueue> = def.classes().iter().map(queue).collect();
        let (alpha, reserve) = (def.alpha(), def.reserve().0);
        queues.push(PlainQueue { classes: 0..=u16::MAX, alpha, reserve });
        PlainSwitch { buffer: def.buffer().0, queues, links: def.ports().to_vec() }
    }
}

impl Plain {
    /// True if the switch of link `l`, if it has one, has room for `packet`.
    pub fn admits(&self, l: usize, packet: Packet) -> bool {
        let Some(switch) = self.switches.iter().find(|switch| switch.links.contains(&l)) else {
            return true;
        };
        let queue_of = |class| switch.queues.iter().position(|q| q.classes.contains(&class));
        let held = |l: usize, queue| {
            let of_queue = self.links[l].held.iter().filter(|(c, _)| queue_of(**c) == Some(queue));
            of_queue.map(|(_, bytes)| bytes).sum::<u64>()
        };
        let share = |queue: usize, bytes: u64| bytes.saturating_sub(switch.queues[queue].reserve);
        let (mut used, mut reserved) = (0, 0);
        for port in &switch.links {
            for (i, queue) in switch.queues.iter().enumerate() {
                used += share(i, held(*port, i));
                reserved += queue.reserve;
            }
        }
        let free = switch.buffer - reserved - used;
        let queue = queue_of(packet.class).expect("the last one has all classes");
        let then = share(queue, held(l, queue) + u64::from(packet.len));
        let more = then - share(queue, held(l, queue));
        let alpha = switch.queues[queue].alpha;
        more <= free && (then == 0 || then as f64 <= alpha * free as f64)
    }
}
