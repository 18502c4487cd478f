//! Classes of packets with queues of their own in the shared buffer of a switch.

use crate::parsing::keys::table;
use crate::parsing::parse::{self, KeyReader};
use serde_json::{Map, Value as Json};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Setting, read_checked};
use sojourn_aqm::sorting::sort_by_key;
use sojourn_aqm::units::Bytes;
use sojourn_aqm::{ClassGroups, QueueShare, dscp};
use std::ops::RangeInclusive;

table! {
    /// Queue of a class, at each port of a switch, in the shared buffer. CLASS is the class or DSCP
    /// of flows: a number, a range like 32-39, or one of the names CS0 to CS7, AF11 to AF43, EF,
    /// VA, LE.
    static CLASS at "switches.NAME.classes.CLASS", struct ClassKeys of SwitchClass,
        setters class_setters;

    /// Bytes that the queue may hold above its reserve, in relation to those that are free. Queues
    /// with alphas a1 to an that want more hold ai / (1 + a1 + ... + an) of the buffer each.
    alpha: f64, optional "alpha of the switch", ["0.0001" => "10000"], "8";

    /// Part of the buffer that is kept for the queue, at each port.
    reserve: Bytes, optional "reserve of the switch", ["0B" => "1000GB"], "\"20kB\"";
}

/// Parsed definition of the queue of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchClass {
    /// First and last class.
    range: RangeInclusive<u16>,
    keys: ClassKeys,
}

impl SwitchClass {
    /// Classes of the packets of the queue.
    pub fn range(&self) -> RangeInclusive<u16> {
        self.range.clone()
    }

    /// Name in the canonical form: a number, or a range.
    pub fn name(&self) -> String {
        let (first, last) = (self.range.start(), self.range.end());
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    }

    /// Threshold and reserve, as of `others`, the packets of no class, where this class has none.
    pub(super) fn share(&self, others: QueueShare) -> QueueShare {
        QueueShare::new(
            self.keys.alpha.unwrap_or(others.alpha),
            self.keys.reserve.unwrap_or(others.reserve),
        )
    }

    fn parse(name: &str, json: &Json) -> Result<SwitchClass> {
        let range = read_range(name)?;
        let keys = ClassKeys::read(&KeyReader::new(json, &CLASS)?)?;
        Ok(SwitchClass { range, keys })
    }
}

/// Reads a class, a range of classes, or the name of a DSCP.
fn read_range(text: &str) -> Result<RangeInclusive<u16>> {
    if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return dscp::read(Setting::Text(text)).map(|class| class..=class);
    }
    let one = |text| {
        let number = read_checked::<u64>(Setting::Text(text), Some((0, u64::from(u16::MAX))))?;
        Ok::<_, Error>(u16::try_from(number).expect("its range is smaller"))
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Ok(one(first)?..=one(last)?)
}

/// Parses the table of classes. Sorted by class.
///
/// # Errors
/// If a class or one of its values is invalid, or two entries have a class in common; with the path
/// of the entry.
pub(super) fn parse_classes(json: &Json) -> Result<Vec<SwitchClass>> {
    let mut classes = Vec::new();
    for (name, json) in parse::table(json)? {
        classes.push((name, SwitchClass::parse(name, json).map_err(|e| e.at(name))?));
    }
    sort_by_key(&mut classes, |(_, class)| *class.range.start());
    for i in 0..classes.len() {
        groups(classes[..=i].iter().map(|(_, class)| class)).map_err(|e| e.at(classes[i].0))?;
    }
    Ok(classes.into_iter().map(|(_, class)| class).collect())
}

/// Groups of `classes`, from 1 on.
pub(super) fn groups<'a>(classes: impl Iterator<Item = &'a SwitchClass>) -> Result<ClassGroups> {
    let ranges: Vec<_> = classes.map(SwitchClass::range).collect();
    ClassGroups::new(&ranges).map_err(|e| Error::new(e.text().to_string()))
}

/// Canonical JSON form of the classes.
pub(super) fn canonical(classes: &[SwitchClass]) -> Json {
    let mut all = Map::new();
    for class in classes {
        let mut keys = Map::new();
        class.keys.write(&mut keys);
        all.insert(class.name(), keys.into());
    }
    all.into()
}
