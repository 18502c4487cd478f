//! The class of a packet by the filters of tc, as filters of a discipline.

use super::device::{Device, Filter as Line, Qdisc, id};
use super::header::Key;
use super::keys::joined;
use super::kinds;
use super::place::{Handle, Place};
use super::rule::Rule;
use crate::params::{Params, Setting, Value};
use crate::sched::filter::Filter;
use crate::sorting::sort_by_key;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Greatest number of filters of a discipline, with the filters of inner classes.
const MOST: usize = 100_000;

/// Filters of a qdisc as filters of a discipline.
pub(super) struct Choice<'a> {
    device: &'a Device,
    qdisc: &'a Qdisc,
    /// Number of the class with a minor number.
    number: &'a dyn Fn(u16) -> Option<u64>,
    /// Number of the class of packets that no filter of an inner class matches.
    default: Option<u64>,
    /// Filters in order.
    pub filters: Vec<Filter>,
    /// Filters that were looked at, by their place in the device.
    pub used: Vec<usize>,
    /// Filters that are not represented, each with the reason.
    pub lost: Vec<String>,
}

/// Filters at a place in the order in which the kernel tries them, each with its place in the
/// device.
pub(super) fn rules(device: &Device, is_here: impl Fn(&Line) -> bool) -> Vec<(usize, &Line, Rule)> {
    let here = device.filters.iter().enumerate().filter(|(_, filter)| is_here(filter));
    let read = here.map(|(i, filter)| (i, filter, Rule::read(&filter.words)));
    let mut rules: Vec<(usize, &Line, Rule)> = read.filter(|(_, _, rule)| !rule.is_table).collect();
    // Of filters without a pref, the kernel tries the last one first.
    let mut next = AUTOMATIC;
    for (_, _, rule) in &mut rules {
        if rule.pref.is_none() {
            rule.pref = Some(next);
            next -= 1;
        }
    }
    sort_by_key(&mut rules, |(_, _, rule)| rule.pref);
    rules
}

/// First pref that the kernel chooses.
const AUTOMATIC: u32 = 0xc000;

impl<'a> Choice<'a> {
    /// Reads the filters of `qdisc`, whose classes have the numbers `number`.
    pub fn of(
        device: &'a Device,
        qdisc: &'a Qdisc,
        number: &'a dyn Fn(u16) -> Option<u64>,
        default: Option<u64>,
    ) -> Choice<'a> {
        let (filters, used, lost) = (Vec::new(), Vec::new(), Vec::new());
        let mut choice = Choice { device, qdisc, number, default, filters, used, lost };
        choice.place(0, &[], 0);
        choice
    }

    /// Adds the filters at class `minor`, for packets that match `keys` already.
    fn place(&mut self, minor: u16, keys: &[Key], depth: usize) {
        for (i, line, rule) in rules(self.device, |filter| is_at(self.qdisc, filter, minor)) {
            if !self.used.contains(&i) {
                self.used.push(i);
            }
            if let Err(why) = self.rule(&rule, keys, depth) {
                self.lost.push(format!("filter {}: {why}", line.words.join(" ")));
            }
        }
    }

    fn rule(&mut self, rule: &Rule, keys: &[Key], depth: usize) -> Result<(), String> {
        let own = rule.keys.clone()?;
        if self.filters.len() > MOST || depth > 16 {
            return Err("there are too many filters".to_string());
        }
        let queue = queue_mapping(rule).filter(|_| self.qdisc.line.kind.name == "multiq");
        let to = queue.map(|queue| (self.qdisc.handle, queue.saturating_add(1)));
        if self.qdisc.line.kind.name == "multiq" && to.is_none() {
            return Err("multiq chooses the queue by action skbedit queue_mapping".to_string());
        }
        let Some((major, minor)) = to.or(rule.to) else {
            let action = if rule.action.is_empty() { "it names no class" } else { &rule.action };
            return Err(if rule.police.is_some() {
                "a class has no policer".to_string()
            } else {
                format!("{action}: sojourn has no actions")
            });
        };
        if major != 0 && major != self.qdisc.handle {
            return Err(format!("{} is no class of {}", id((major, minor)), self.qdisc.name()));
        }
        let Some(all) = joined(keys, &own) else { return Ok(()) };
        if self.qdisc.is_inner(minor) {
            self.place(minor, &all, depth + 1);
            if let Some(to) = self.default {
                self.add(&all, to, &rule.protocol)?;
            }
        } else {
            let to = (self.number)(minor);
            let to = to.ok_or_else(|| format!("there is no class {}", self.name(minor)))?;
            self.add(&all, to, &rule.protocol)?;
        }
        let lost = rule.police.is_some() || !(rule.action.is_empty() || queue.is_some());
        if lost { Err("the class is chosen, but nothing else happens".to_string()) } else { Ok(()) }
    }

    fn name(&self, minor: u16) -> String {
        let handle: Handle = (self.qdisc.handle, minor);
        id(handle)
    }

    /// Adds a filter, unless one before it matches the same packets.
    fn add(&mut self, keys: &[Key], to: u64, protocol: &str) -> Result<(), String> {
        let filter = filter(keys, to)?;
        if self.filters.contains(&filter) {
            return Ok(());
        }
        match protocol {
            "all" | "ip" | "0x800" | "0x0800" => {}
            "ipv6" | "0x86dd" => return Err("packets are of IPv4 here".to_string()),
            other => return Err(format!("there are no packets of protocol {other}")),
        }
        self.filters.push(filter);
        Ok(())
    }
}

/// Queue that a filter chooses by the action `skbedit queue_mapping N`, if it does nothing else.
fn queue_mapping(rule: &Rule) -> Option<u16> {
    let mut words = rule.action.strip_prefix("skbedit")?.split_whitespace();
    let queue = (words.next() == Some("queue_mapping")).then(|| words.next()).flatten()?;
    let harmless = ["pipe", "continue", "pass", "ok", "index", "ref", "bind"];
    let mut rest = words.filter(|word| word.parse::<u32>().is_err());
    rest.all(|word| harmless.contains(&word)).then(|| queue.parse().ok()).flatten()
}

impl Qdisc {
    /// Number of transmit queues of `mq` and `multiq`: all of an output, or up to the last one to
    /// which a qdisc or a filter is attached.
    pub(super) fn queues(&self, device: &Device) -> u16 {
        let last = self.leaves.keys().next_back().copied().unwrap_or(0);
        kinds::queues::queues(&self.line).unwrap_or_else(|| last.max(last_queue(device, self)))
    }
}

/// Number of the last queue that filters of `multiq` choose, counted from 1; 0 if there is none.
fn last_queue(device: &Device, qdisc: &Qdisc) -> u16 {
    let rules = rules(device, |filter| is_at(qdisc, filter, 0));
    let queues = rules.iter().filter_map(|(_, _, rule)| queue_mapping(rule));
    queues.map(|queue| queue.saturating_add(1)).max().unwrap_or(0)
}

/// True if the filter is attached to class `minor` of the qdisc, or to the qdisc if it is 0.
fn is_at(qdisc: &Qdisc, filter: &Line, minor: u16) -> bool {
    match filter.place {
        Some(Place::Class(place)) => place == (qdisc.handle, minor),
        Some(Place::Ingress) => false,
        Some(Place::Root) | None => minor == 0 && qdisc.parent == Place::Root,
    }
}

/// Filter with these keys.
///
/// # Errors
/// A key that filters do not have, or a value that it does not take.
pub(super) fn filter(keys: &[Key], to: u64) -> Result<Filter, String> {
    let mut filter = Filter::default();
    let to = to.to_string();
    let all = keys.iter().map(|(key, value)| (*key, value.as_str())).chain([("to", to.as_str())]);
    for (key, value) in all {
        filter.set(key, Setting::Text(value)).map_err(|e| e.to_string())?;
    }
    Ok(filter)
}

/// Text of `filters` as a parameter.
pub(super) fn text(filters: &[Filter]) -> String {
    filters.iter().map(Value::write).collect::<Vec<_>>().join(" ")
}
