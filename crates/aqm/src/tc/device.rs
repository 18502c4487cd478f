//! Qdiscs, classes and filters of a device as a tree.

use super::place::{Handle, Place, Site};
use super::table::Line;
use crate::snapshot::Snapshot;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Key of a qdisc in its device.
pub type Id = usize;

/// Qdisc of a device.
#[derive(Clone, Debug)]
pub struct Qdisc {
    /// Major number of its handle; 0 for a qdisc that the kernel made.
    pub handle: u16,
    /// Place at which it was created.
    pub parent: Place,
    /// Kind with its words.
    pub line: Line,
    /// Classes that commands made, in the order of their creation; none for bands.
    pub classes: Vec<Class>,
    /// Qdiscs below it, by the minor number of the class or band. A qdisc with a single place below
    /// it has the key 1.
    pub leaves: BTreeMap<u16, Id>,
    /// Size table, `stab` with its words; empty if there is none.
    pub stab: String,
}

/// Class of a qdisc.
#[derive(Clone, Debug)]
pub struct Class {
    /// Minor number of its identifier.
    pub minor: u16,
    /// Minor number of the class above it; none if the qdisc is above it.
    pub parent: Option<u16>,
    /// Kind with its words.
    pub line: Line,
}

/// Filter of a qdisc.
#[derive(Clone, Debug, Snapshot)]
pub struct Filter {
    /// Place.
    pub place: Option<Place>,
    /// Words after the place.
    pub words: Vec<String>,
}

/// Device with all that is attached to it.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// Name and namespace.
    pub site: Site,
    /// Qdisc at the root.
    pub root: Option<Id>,
    /// Qdisc at the ingress.
    pub ingress: Option<Id>,
    /// All qdiscs.
    pub qdiscs: BTreeMap<Id, Qdisc>,
    /// Filters in the order of their creation.
    pub filters: Vec<Filter>,
    /// True if it was read from output.
    pub shown: bool,
    /// Words and lines that have no effect, each with the reason.
    pub lost: Vec<String>,
}

/// Places below a qdisc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// None.
    Nothing,
    /// One, whatever the identifier.
    One,
    /// As many bands as given.
    Bands(u16),
    /// Classes that commands make.
    Classes,
}

/// Writes the identifier of a class.
pub fn id(handle: Handle) -> String {
    format!("{:x}:{:x}", handle.0, handle.1)
}

impl Site {
    /// Name of the device, with its namespace if it has one.
    pub fn name(&self) -> String {
        match (self.space.as_str(), self.dev.as_str()) {
            ("", "") => "link".to_string(),
            ("", dev) => dev.to_string(),
            (space, dev) => format!("{space}/{dev}"),
        }
    }
}

impl Qdisc {
    /// Kind and handle, for messages.
    pub fn name(&self) -> String {
        format!("{} {:x}:", self.line.kind.name, self.handle)
    }

    /// Places below it.
    pub fn below(&self) -> Below {
        match self.line.kind.name {
            "tbf" | "netem" | "red" | "sfb" | "cbs" | "etf" | "dsmark" => Below::One,
            "prio" | "ets" => {
                let bands = self.line.whole("bands");
                let bands = if self.line.kind.name == "ets" {
                    super::kinds::flows::bands(&self.line)
                } else {
                    bands
                };
                Below::Bands(u16::try_from(bands).unwrap_or(u16::MAX))
            }
            "mq" | "mqprio" | "multiq" | "taprio" => Below::Bands(u16::MAX),
            "htb" | "hfsc" | "drr" | "qfq" | "cbq" => Below::Classes,
            _ => Below::Nothing,
        }
    }

    /// Class with the minor number `minor`.
    pub fn class(&self, minor: u16) -> Option<&Class> {
        self.classes.iter().find(|class| class.minor == minor)
    }

    /// True if other classes are below the class `minor`.
    pub fn is_inner(&self, minor: u16) -> bool {
        self.classes.iter().any(|class| class.parent == Some(minor))
    }

    /// Key in `leaves` of the class `minor`; none if there is no such class.
    pub fn slot(&self, minor: u16) -> Option<u16> {
        match self.below() {
            Below::Nothing => None,
            Below::One => Some(1),
            Below::Bands(bands) => Some(minor).filter(|m| (1..=bands).contains(m)),
            // The root class of hfsc has the identifier of the qdisc.
            Below::Classes if minor == 0 => (self.line.kind.name == "hfsc").then_some(0),
            Below::Classes => self.class(minor).map(|class| class.minor),
        }
    }
}

impl Device {
    /// Qdisc with the major number `handle`.
    pub fn find(&self, handle: u16) -> Option<Id> {
        let ids = self.qdiscs.iter().filter(|(_, qdisc)| qdisc.handle == handle && handle != 0);
        ids.map(|(id, _)| *id).next()
    }

    /// Adds a qdisc that is not attached yet.
    pub(super) fn insert(&mut self, qdisc: Qdisc) -> Id {
        let id = self.qdiscs.keys().next_back().map_or(0, |last| last + 1);
        self.qdiscs.insert(id, qdisc);
        id
    }

    /// Removes a qdisc if it is attached nowhere, and what is only below it.
    pub(super) fn release(&mut self, id: Id) {
        let mut loose = Vec::from([id]);
        while let Some(id) = loose.pop() {
            let held = |other: &Qdisc| other.leaves.values().any(|leaf| *leaf == id);
            let attached = self.root == Some(id) || self.ingress == Some(id);
            if attached || self.qdiscs.values().any(held) {
                continue;
            }
            if let Some(qdisc) = self.qdiscs.remove(&id) {
                let major = qdisc.handle;
                self.filters.retain(|filter| match filter.place {
                    Some(Place::Class((of, _))) => of != major,
                    _ => true,
                });
                loose.extend(qdisc.leaves.into_values());
            }
        }
    }

    /// True if `below` is the qdisc `above` or below it.
    pub(super) fn reaches(&self, above: Id, below: Id) -> bool {
        let mut next = Vec::from([above]);
        while let Some(id) = next.pop() {
            if id == below {
                return true;
            }
            next.extend(self.qdiscs.get(&id).into_iter().flat_map(|q| q.leaves.values()));
        }
        false
    }

    /// Qdiscs from the root down, with the classes of each before the qdiscs below it.
    pub fn below_root(&self) -> Vec<Id> {
        let mut ids: Vec<Id> = self.root.into_iter().collect();
        let mut next = 0;
        while let Some(id) = ids.get(next).copied() {
            next += 1;
            let leaves = self.qdiscs.get(&id).into_iter().flat_map(|q| q.leaves.values());
            for leaf in leaves {
                if !ids.contains(leaf) {
                    ids.push(*leaf);
                }
            }
        }
        ids
    }
}
