//! Lost parts of a device: qdiscs, classes and filters that are not on the way of its link.

use super::device::{Device, Filter, id};
use super::link::Way;
use super::place::Place;
use super::rule::Rule;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Most lost lines that are listed for a device.
const LISTED: usize = 20;

impl Way<'_> {
    /// Names qdiscs, classes and filters that are not on the way.
    pub(super) fn rest(&mut self, all: &[Device]) {
        let device = self.device;
        let mut rest = Vec::new();
        for id_of in device.below_root() {
            let qdisc = &device.qdiscs[&id_of];
            if !self.passed.contains(&id_of) {
                let place = match qdisc.parent {
                    Place::Class(class) => format!(" at {}", id(class)),
                    Place::Root | Place::Ingress => String::new(),
                };
                let line = qdisc.line.write_given();
                rest.push(format!("qdisc {line}{place}: is not on the way of the link"));
            }
            for class in &qdisc.classes {
                let handle = (qdisc.handle, class.minor);
                if !self.classes.contains(&handle) {
                    let line = class.line.write_given();
                    rest.push(format!(
                        "class {} {line}: is not on the way of the link",
                        id(handle)
                    ));
                }
            }
        }
        let unused = device.filters.iter().enumerate().filter(|(i, _)| !self.filters.contains(i));
        let unused = unused.map(|(_, filter)| filter).filter(|filter| !redirects(filter, all));
        rest.extend(unused.filter_map(|filter| {
            let rule = Rule::read(&filter.words);
            let words = filter.words.join(" ");
            let why = match (rule.police.is_some(), rule.is_table) {
                (_, true) => return None,
                (true, _) => "a link has one queue, and no policer in front of it",
                _ => "flows choose no class of tc here",
            };
            Some(format!("filter {words}: {why}"))
        }));
        if let Some(ingress) = device.ingress.and_then(|id| device.qdiscs.get(&id))
            && !ingress.stab.is_empty()
        {
            rest.push(format!("{}: nothing queues at the ingress", ingress.stab));
        }
        rest.extend(device.lost.iter().cloned());
        let more = rest.len().saturating_sub(LISTED);
        rest.truncate(LISTED);
        self.link.lost.extend(rest);
        if more > 0 {
            self.lose(format!("{more} more qdiscs, classes and filters: as these"));
        }
    }
}

/// True if a filter only sends packets to a device that is a link of its own, like ifb0.
fn redirects(filter: &Filter, all: &[Device]) -> bool {
    let words = &filter.words;
    let mirred = words.iter().any(|word| word == "mirred");
    let police = words.iter().any(|word| word == "police");
    let target = words.iter().rposition(|word| word == "dev").and_then(|at| words.get(at + 1));
    mirred
        && !police
        && target.is_some_and(|dev| all.iter().any(|d| d.site.dev == *dev && d.root.is_some()))
}
