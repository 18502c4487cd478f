//! A link of a device, as commands or outputs of tc describe it.

use super::convert::Discipline;
use crate::overhead::Overhead;
use crate::units::{Bytes, Rate, Span};
use crate::wire::Impairments;
use alloc::string::String;
use alloc::vec::Vec;

/// Link that the qdiscs of a device make.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedLink {
    /// Name of the device.
    pub dev: String,
    /// Rate of the shaper, if there is one.
    pub rate: Option<Rate>,
    /// Burst of the shaper, if it has one of several packets.
    pub burst: Option<Bytes>,
    /// Delay of netem, if given.
    pub delay: Option<Span>,
    /// Impairments of netem, with its loss.
    pub impairments: Impairments,
    /// Overhead of the link layer, if given.
    pub overhead: Option<Overhead>,
    /// Discipline.
    pub qdisc: Option<Discipline>,
    /// Words that are not represented, each with the reason.
    pub lost: Vec<String>,
    /// Numbers of the classes in a discipline with several, by their identifiers in tc.
    pub numbers: Vec<(String, u64)>,
    /// Classes of the device that can be chosen.
    pub classes: Vec<String>,
    /// True if one of them was chosen.
    pub chosen: bool,
}
