//! The class of a packet by the filters of tc, as filters of a discipline.

use super::device::{Below, Device, Filter as Line, Qdisc, id};
use super::header::Key;
use super::keys::{joined, union};
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
    /// Pref of the last filter, and the place of the first filter with this pref.
    last_pref: Option<u32>,
    first_of_pref: usize,
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
    // A handle of the same pref ends the meaning of the mark as the class.
    let with_handle: Vec<(Option<u32>, Option<Place>)> = rules
        .iter()
        .filter(|(_, line, rule)| !rule.by_mark && line.words.iter().any(|word| word == "fw"))
        .map(|(_, line, rule)| (rule.pref, line.place))
        .collect();
    for (_, line, rule) in rules.iter_mut().filter(|(_, _, rule)| rule.by_mark) {
        rule.is_table = with_handle.contains(&(rule.pref, line.place));
    }
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
        let (last_pref, first_of_pref) = (None, 0);
        let mut choice = Choice {
            device,
            qdisc,
            number,
            default,
            filters,
            last_pref,
            first_of_pref,
            used,
            lost,
        };
        choice.place(0, &[], 0);
        choice
    }

    /// Adds the filters at class `minor`, for packets that match `keys` already.
    fn place(&mut self, minor: u16, keys: &[Key], depth: usize) {
        for (i, line, rule) in rules(self.device, |filter| is_at(self.qdisc, filter, minor)) {
            if !self.used.contains(&i) {
                self.used.push(i);
            }
            let rules = self.of_marks(rule);
            for rule in rules {
                if let Err(why) = self.rule(&rule, keys, depth) {
                    self.lost.push(format!("filter {}: {why}", line.words.join(" ")));
                }
            }
        }
    }

    /// Rules for `fw` without a handle: one for each mark that is the identifier of a class. A band
    /// is also chosen by its minor number alone. Other rules are returned as they are, those that
    /// only name a table are not.
    fn of_marks(&self, rule: Rule) -> Vec<Rule> {
        if rule.is_table {
            return Vec::new();
        }
        let (handle, kind) = (self.qdisc.handle, self.qdisc.line.kind.name);
        let bands = match self.qdisc.below() {
            Below::Bands(bands) if matches!(kind, "prio" | "ets") => bands,
            Below::Classes => 0,
            _ => return [rule].into(),
        };
        if !rule.by_mark {
            return [rule].into();
        }
        let majors = if bands > 0 { &[0, handle][..] } else { &[handle] };
        let classes = self.qdisc.classes.iter().map(|class| class.minor).chain(1..=bands);
        let marks = classes.flat_map(|minor| majors.iter().map(move |major| (*major, minor)));
        let of_mark = |(major, minor): Handle| {
            let mark = u32::from(major) << 16 | u32::from(minor);
            let keys = Ok(Vec::from([("mark", mark.to_string())]));
            Rule { keys, to: Some((handle, minor)), ..rule.clone() }
        };
        marks.map(of_mark).collect()
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
                self.add(&all, to, rule)?;
            }
        } else {
            let to = (self.number)(minor);
            let to = to.ok_or_else(|| format!("there is no class {}", self.name(minor)))?;
            self.add(&all, to, rule)?;
        }
        let lost = rule.police.is_some() || !(rule.action.is_empty() || queue.is_some());
        if lost { Err("the class is chosen, but nothing else happens".to_string()) } else { Ok(()) }
    }

    fn name(&self, minor: u16) -> String {
        let handle: Handle = (self.qdisc.handle, minor);
        id(handle)
    }

    /// Adds a filter, unless one before it matches the same packets. The ranges of filters with the
    /// same pref are joined: an export writes a range as several filters.
    fn add(&mut self, keys: &[Key], to: u64, rule: &Rule) -> Result<(), String> {
        let filter = filter(keys, to)?;
        if self.filters.contains(&filter) {
            return Ok(());
        }
        match rule.protocol.as_str() {
            "all" | "ip" | "0x800" | "0x0800" => {}
            "ipv6" | "0x86dd" => return Err("packets are of IPv4 here".to_string()),
            other => return Err(format!("there are no packets of protocol {other}")),
        }
        if self.last_pref != rule.pref {
            (self.last_pref, self.first_of_pref) = (rule.pref, self.filters.len());
        }
        self.filters.push(filter);
        while let [.., first, second] = &self.filters[self.first_of_pref..]
            && let Some(both) = union(first, second)
        {
            self.filters.truncate(self.filters.len() - 2);
            self.filters.push(both);
        }
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
