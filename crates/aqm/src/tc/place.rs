//! Places of qdiscs, classes and filters, and the devices that they are on.

use super::units;
use crate::error::Result;
use crate::snapshot::Snapshot;
use alloc::string::String;

/// Major and minor number of a class.
pub type Handle = (u16, u16);

/// Object of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A qdisc.
    Qdisc,
    /// A class.
    Class,
    /// A filter.
    Filter,
}

/// Place of a qdisc, class or filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub enum Place {
    /// The root of the device.
    Root,
    /// The ingress of the device.
    Ingress,
    /// A class, or the qdisc if the minor number is 0.
    Class(Handle),
}

/// Device, and the network namespace or host that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Network namespace or host; empty for the one of the script.
    pub space: String,
    /// Device; empty if none is named.
    pub dev: String,
}

/// Reads a place after `parent`.
pub(super) fn place(text: &str) -> Result<Option<Place>> {
    Ok(match text {
        "root" => Some(Place::Root),
        "none" => None,
        _ => match units::class_id(text)? {
            (0xffff, 0xfff1) => Some(Place::Ingress),
            (0, 0) => None,
            class => Some(Place::Class(class)),
        },
    })
}
