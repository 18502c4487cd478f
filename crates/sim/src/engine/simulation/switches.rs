//! Switches: links whose queues share a buffer. A port is one queue, or has a queue per class.
//!
//! A link does nothing between two calls, so the bytes that its queue holds are known only after it
//! has been advanced; until then at most those noted last. A packet that is admitted although all
//! ports are taken to hold that many needs no more. Before one that is not, or that could be a new
//! peak, the ports whose next dequeue is due are advanced. That this time was noted earlier is
//! harmless: it is the earliest time at which the queue can become shorter, unless rate or
//! discipline change.

mod classes;

use super::Simulation;
use crate::config::scenario::Scenario;
use classes::Classes;
use serde_json::{Value as Json, json};
use sojourn_aqm::units::Time;
use sojourn_aqm::{DropReason, Ecn, Link, Packet, SharedBuffer, Snapshot};
use std::sync::Arc;

/// Switches of a simulation, and their ports.
#[derive(Clone, Default, Snapshot)]
pub(super) struct Switches {
    /// For each link, its switch and its place among the ports; empty without switches.
    #[snapshot(skip)]
    ports: Arc<[Option<Port>]>,
    all: Vec<Switch>,
}

/// Port of a switch.
#[derive(Clone, Copy)]
pub(super) struct Port {
    switch: u32,
    /// Place among the ports.
    place: u32,
}

/// A switch in operation.
#[derive(Clone, Snapshot)]
struct Switch {
    /// Link of each port.
    #[snapshot(skip)]
    links: Arc<[usize]>,
    buffer: SharedBuffer,
    /// Queues per class; `None` if each port is one queue.
    classes: Option<Box<Classes>>,
    /// For each port, the time of its next dequeue.
    due: Vec<Time>,
    /// Time before which nothing in `due` is.
    earliest: Time,
}

impl Switch {
    /// Notes what `link`, the port at `place`, holds and when its queue becomes shorter.
    fn note(&mut self, place: usize, link: &Link) {
        match &mut self.classes {
            None => self.note_one_queue(place, link),
            Some(classes) => {
                classes.note(&mut self.buffer, place, link);
                self.note_due(place, link);
            }
        }
    }

    /// As [`Switch::note`], without classes.
    #[inline(always)]
    fn note_one_queue(&mut self, place: usize, link: &Link) {
        self.buffer.set_held(place, link.queued_bytes());
        self.note_due(place, link);
    }

    #[inline(always)]
    fn note_due(&mut self, place: usize, link: &Link) {
        self.due[place] = link.next_dequeue();
        self.earliest = self.earliest.min(self.due[place]);
    }

    /// True if a packet of `class` and `len` bytes for the port at `place` needs exact counts at
    /// `now`: with those noted last, it is not admitted, or the buffer holds more than ever.
    #[inline]
    fn needs_counts(&self, place: usize, class: u16, now: Time, len: u32) -> bool {
        if self.earliest > now {
            return false;
        }
        let (buffer, mut queue) = (&self.buffer, place);
        if let Some(classes) = &self.classes {
            queue = classes.queue(place, class);
        }
        !buffer.admits(queue, len) || buffer.held() + u64::from(len) > buffer.peak()
    }
}

impl Switches {
    /// Creates the switches of `scenario`.
    pub(super) fn new(scenario: &Scenario) -> Switches {
        if scenario.switches.is_empty() {
            return Switches::default();
        }
        let mut ports = vec![None; scenario.links.len()];
        for (switch, def) in (0..).zip(&*scenario.switches) {
            for (place, l) in (0..).zip(def.ports()) {
                ports[*l] = Some(Port { switch, place });
            }
        }
        let all = scenario.switches.iter().map(|def| Switch {
            links: def.ports().into(),
            buffer: def.build(),
            classes: Classes::new(def),
            due: vec![Time::NEVER; def.ports().len()],
            earliest: Time::NEVER,
        });
        Switches { ports: ports.into(), all: all.collect() }
    }

    /// Lets the ports with queues per class among `links`, all links, count their bytes by class.
    pub(super) fn count_by_class(&self, links: &mut [Link]) {
        for switch in &self.all {
            if let Some(classes) = &switch.classes {
                switch
                    .links
                    .iter()
                    .for_each(|l| links[*l].count_by_class(classes.groups().clone()));
            }
        }
    }

    /// Port of a switch of link `l`; `None` if it shares no buffer.
    #[inline]
    pub(super) fn port(&self, l: usize) -> Option<Port> {
        self.ports.get(l).copied().flatten()
    }

    /// Forgets when the queue of link `l` becomes shorter: its rate or its discipline changes.
    pub(super) fn forget(&mut self, l: usize) {
        if let Some(Port { switch, place }) = self.port(l) {
            let switch = &mut self.all[switch as usize];
            switch.due[place as usize] = Time::ZERO;
            switch.earliest = Time::ZERO;
        }
    }

    /// Pushes `packet` onto `link`, which is `port`, or drops it. The bytes that the ports hold
    /// must be known if the packet [needs them](Simulation::free_buffer).
    #[inline]
    pub(super) fn admit(&mut self, port: Port, link: &mut Link, now: Time, packet: &mut Packet) {
        let (switch, place) = (&mut self.all[port.switch as usize], port.place as usize);
        if switch.classes.is_some() {
            switch.admit_by_class(place, link, now, packet);
        } else if switch.buffer.admits(place, packet.len) {
            link.push_copy(now, packet);
            switch.note_one_queue(place, link);
        } else {
            link.refuse(now, *packet);
        }
    }

    /// As [`Switches::admit`], for a link that computes departures: returns what [`Link::send`]
    /// does, `None` if the packet was dropped.
    #[inline]
    pub(super) fn send(
        &mut self,
        port: Port,
        link: &mut Link,
        now: Time,
        packet: &mut Packet,
    ) -> Option<(Time, Ecn)> {
        let (switch, place) = (&mut self.all[port.switch as usize], port.place as usize);
        if switch.classes.is_some() {
            return switch.send_by_class(place, link, now, packet);
        }
        if !switch.buffer.admits(place, packet.len) {
            link.refuse(now, *packet);
            link.take_dropped();
            return None;
        }
        let sent = link.send(now, packet);
        switch.note_one_queue(place, link);
        sent
    }

    /// Starts the measured interval; all links are at its time.
    pub(super) fn reset_stats(&mut self, links: &[Link]) {
        for switch in &mut self.all {
            for place in 0..switch.links.len() {
                let link = &links[switch.links[place]];
                switch.note(place, link);
                if let Some(classes) = &mut switch.classes {
                    classes.reset_stats(place, link);
                }
            }
            switch.buffer.reset_peaks();
        }
    }

    /// Adds the counters of `link`, which has the index `l`, to its summary if it is a port.
    pub(super) fn summarise_port(&self, l: usize, link: &mut Link, row: &mut Json) {
        if let Some(Port { switch, place }) = self.port(l) {
            let (switch, place) = (&self.all[switch as usize], place as usize);
            let peak = match &switch.classes {
                None => switch.buffer.peak_of(place),
                Some(classes) => classes.peak_of(place),
            };
            row["dropped_buffer_packets"] =
                link.stats().dropped_for(DropReason::SharedBuffer).into();
            row["queue_max_bytes"] = peak.into();
        }
    }

    /// Summaries of all switches, in the order of `scenario`.
    pub(super) fn summaries(&self, scenario: &Scenario) -> impl Iterator<Item = Json> {
        self.all.iter().zip(&*scenario.switches).map(|(switch, def)| {
            let mut row = json!({ "buffer_max_bytes": switch.buffer.peak() });
            if let Some(classes) = &switch.classes {
                row["classes"] = classes.summary(def, &switch.buffer);
            }
            row
        })
    }

    /// Switches for each of `parts` parts of a simulation: each has those whose links it owns.
    pub(super) fn divide(&self, parts: usize) -> Vec<Switches> {
        vec![self.clone(); parts]
    }

    /// Takes back each switch from the part that owns its links, `owners` by link.
    pub(super) fn unite(&mut self, parts: &[&Switches], owners: &[u32]) {
        for (i, switch) in self.all.iter_mut().enumerate() {
            let owner = owners[switch.links[0]] as usize;
            switch.clone_from(&parts[owner].all[i]);
        }
    }
}

impl Simulation {
    /// Advances the ports of the switch of `port` whose next dequeue is due at `now`, if packets of
    /// `class` and of `len` bytes in all need the exact bytes in the buffer.
    #[inline]
    pub(super) fn free_buffer(&mut self, port: Port, class: u16, now: Time, len: u32) {
        let switch = &self.switches.all[port.switch as usize];
        if switch.needs_counts(port.place as usize, class, now, len) {
            self.advance_ports(port.switch as usize, now);
        }
    }

    fn advance_ports(&mut self, switch: usize, now: Time) {
        self.switches.all[switch].earliest = Time::NEVER;
        for place in 0..self.switches.all[switch].due.len() {
            let Switch { links, due, earliest, .. } = &mut self.switches.all[switch];
            if due[place] > now {
                *earliest = due[place].min(*earliest);
                continue;
            }
            let l = links[place];
            let link = &mut self.links[l];
            link.advance(now);
            self.switches.all[switch].note(place, link);
            // Other links have handed over their packets on arrival, and drop none later.
            if !link.computes_departures() {
                self.collect_from_link(l);
            }
        }
    }
}
