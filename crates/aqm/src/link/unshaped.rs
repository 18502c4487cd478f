//! Parts that links lack in a build without the feature `shaped-links`. Their type has no value, so
//! the compiler removes the code that would use one.

use crate::error::{Error, Result};
use crate::snapshot::{Reader, Snapshot, Writer};
use crate::units::{Rate, Span, Time};

/// Part that no link has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Absent {}

pub(super) type Opportunities = Absent;
pub(super) type Shape = Absent;

impl Absent {
    pub(super) fn seek(&mut self, _: Time) -> Time {
        match *self {}
    }

    pub(super) fn deliver(&mut self, _: Time, _: u32) -> (Time, Time) {
        match *self {}
    }

    pub(super) fn send(&mut self, _: Time, _: u32, _: Rate, _: &mut u64) -> (Time, Time) {
        match *self {}
    }

    pub(super) fn begin(&mut self, _: Time) {
        match *self {}
    }

    pub(super) fn usage(&self, _: Time, _: u64, _: u64) -> [u64; 2] {
        match *self {}
    }

    pub(super) fn used(&self, _: Time) -> Option<Span> {
        match *self {}
    }
}

impl Snapshot for Absent {
    fn layout() -> u64 {
        31
    }

    fn layout_of(&self) -> u64 {
        match *self {}
    }

    fn save_to(&self, _: &mut Writer) -> Result<()> {
        match *self {}
    }

    fn load_from(&mut self, _: &mut Reader<'_>) -> Result<()> {
        match *self {}
    }

    fn create_from(_: &mut Reader<'_>) -> Result<Self> {
        Err(Error::fixed("the snapshot is of a link that needs the feature shaped-links"))
    }
}
