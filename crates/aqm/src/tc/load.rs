//! Lines of output as the tree of a device.

use super::device::{Below, Class, Device, Filter, Id, Qdisc, id};
use super::kinds::gred;
use super::line::Form;
use super::output::Shown;
use super::place::{Object, Place};
use super::state::State;
use super::table::Line;
use crate::error::{Error, Result};
use crate::sorting::sort_by_key;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Builds the devices of lines of output.
///
/// # Errors
/// Lines that contradict each other: two roots, one handle twice, a class of no qdisc, a circle.
pub(super) fn load(shown: Vec<(usize, Shown)>, state: &mut State) -> Result<()> {
    let mut last: Option<usize> = None;
    let mut later: Vec<(usize, Shown)> = Vec::new();
    let mut touched: Vec<usize> = Vec::new();
    for (number, line) in shown {
        let at = |e: Error| e.at(format!("line {number}"));
        if line.line.is_none() && line.object == Object::Qdisc {
            if let Some(device) = last {
                continued(&mut state.devices[device], &line.words).map_err(at)?;
            }
            continue;
        }
        if line.object != Object::Qdisc {
            later.push((number, line));
            continue;
        }
        state.device(&line.site);
        let index = state.devices.iter().position(|device| device.site == line.site);
        last = index;
        touched.extend(index);
        if let Some(index) = index {
            add(&mut state.devices[index], &line).map_err(at)?;
        }
    }
    sort_by_key(&mut touched, |index| *index);
    touched.dedup();
    for index in &touched {
        let device = &mut state.devices[*index];
        let name = device.site.name();
        connect(device).map_err(|e| e.at(name))?;
    }
    for (number, line) in later {
        let at = |e: Error| e.at(format!("line {number}"));
        match line.object {
            Object::Class => class(state, &line).map_err(at)?,
            _ => filter(state, &line, last),
        }
    }
    for index in touched {
        let device = &mut state.devices[index];
        let name = device.site.name();
        attach(device).map_err(|e| e.at(name))?;
    }
    Ok(())
}

/// Adds the words of the line after a qdisc to the last qdisc.
fn continued(device: &mut Device, words: &[String]) -> Result<()> {
    let Some(qdisc) = device.qdiscs.values_mut().next_back() else { return Ok(()) };
    let text = words.join(" ");
    if qdisc.line.kind.name == "sfq" && text.starts_with("ewma") {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let more = Line::read("sfq", &words, Form::Shown)?;
        for (arg, more) in qdisc.line.args.iter_mut().zip(more.args) {
            *arg = more.or(arg.take());
        }
    } else if qdisc.line.kind.name == "gred" && text.starts_with("vq") {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        gred::add_shown(&mut qdisc.line, &Line::read("gred", &words, Form::Shown)?)?;
    } else {
        qdisc.stab = format!("stab {text}");
    }
    Ok(())
}

fn add(device: &mut Device, shown: &Shown) -> Result<()> {
    let Some(line) = shown.line.clone() else { return Ok(()) };
    device.shown = true;
    let parent = shown.place.unwrap_or(Place::Root);
    let handle = shown.handle.0;
    let same = |qdisc: &&Qdisc| {
        (qdisc.handle == handle && handle != 0 && handle != 0xffff)
            || (qdisc.parent == parent && (handle != 0 || parent == Place::Root))
    };
    if let Some(other) = device.qdiscs.values().find(same) {
        if other.handle == handle && other.parent == parent && other.line == line {
            return Ok(()); // the same output twice
        }
        let text = match parent {
            Place::Root if other.parent == parent => {
                "is a second root: these are two devices; write dev NAME into the lines of each"
            }
            _ => "has the handle or the place of another qdisc",
        };
        return Err(Error::new(text).at(format!("{} {handle:x}:", line.kind.name)));
    }
    let (classes, leaves) = (Vec::new(), BTreeMap::new());
    let stab = String::new();
    device.insert(Qdisc { handle, parent, line, classes, leaves, stab });
    Ok(())
}

/// Finds the root and the ingress.
fn connect(device: &mut Device) -> Result<()> {
    for (id, qdisc) in &device.qdiscs {
        match qdisc.parent {
            Place::Root => device.root = Some(*id),
            Place::Ingress => device.ingress = Some(*id),
            Place::Class(_) => {}
        }
    }
    if device.root.is_some() || device.qdiscs.is_empty() {
        return Ok(());
    }
    // A part of an output: the qdisc whose parent is not in it.
    let above = |qdisc: &Qdisc| match qdisc.parent {
        Place::Class((major, _)) => device.qdiscs.values().any(|other| other.handle == major),
        _ => true,
    };
    let Some((id_of, qdisc)) = device.qdiscs.iter().find(|(_, qdisc)| !above(qdisc)) else {
        if device.ingress.is_some() {
            return Ok(());
        }
        let name = device.qdiscs.values().next().map(Qdisc::name).unwrap_or_default();
        return Err(Error::new("is below itself: a handle or a parent is wrong").at(name));
    };
    if let Place::Class(class) = qdisc.parent {
        let place = id(class);
        device.root = Some(*id_of);
        device.lost.push(format!("parent {place}: this class is not in the text"));
    }
    Ok(())
}

/// Attaches each qdisc to its class.
fn attach(device: &mut Device) -> Result<()> {
    let ids: Vec<Id> = device.qdiscs.keys().copied().collect();
    for id_of in ids {
        let Place::Class((major, minor)) = device.qdiscs[&id_of].parent else { continue };
        if device.root == Some(id_of) {
            continue;
        }
        let parent = match (major, device.root) {
            (0, root) => root,
            _ => device.find(major),
        };
        let name = device.qdiscs[&id_of].name();
        let circle = || Error::new("is below itself: a handle or a parent is wrong");
        let Some(parent) = parent else {
            let text = format!("parent {}: this class is not in the text", id((major, minor)));
            device.lost.push(text);
            continue;
        };
        if device.reaches(id_of, parent) {
            return Err(circle().at(name));
        }
        let qdisc = device.qdiscs.get_mut(&parent).expect("the qdisc exists");
        // `tc qdisc show` alone does not list the classes.
        let slot = match qdisc.below() {
            Below::Classes => Some(minor),
            _ => qdisc.slot(minor),
        };
        match slot {
            Some(slot) => drop(qdisc.leaves.insert(slot, id_of)),
            None => return Err(device.no_class(major, minor).at(name)),
        }
    }
    Ok(())
}

/// Adds a class to the qdisc of its major number; its line names no device.
fn class(state: &mut State, shown: &Shown) -> Result<()> {
    let (major, minor) = shown.handle;
    let Some(line) = &shown.line else { return Ok(()) };
    let kind = line.kind.name;
    let fits = |device: &Device| {
        let named = shown.site.dev.is_empty() || device.site.dev == shown.site.dev;
        let qdisc = device.find(major).map(|id| &device.qdiscs[&id]);
        named && qdisc.is_some_and(|qdisc| qdisc.line.kind.name == kind)
    };
    let name = id((major, minor));
    let fitting: Vec<usize> =
        (0..state.devices.len()).filter(|i| fits(&state.devices[*i])).collect();
    let index = match fitting.as_slice() {
        [index] => *index,
        [] => {
            let text = format!("there is no qdisc {kind} {major:x}: for this class");
            return Err(Error::new(format!("{text}; add tc qdisc show")).at(name));
        }
        _ => {
            let text = format!("several devices have a qdisc {kind} {major:x}:");
            return Err(Error::new(format!("{text}; import one device at a time")).at(name));
        }
    };
    let device = &mut state.devices[index];
    let Some(of) = device.find(major) else { return Ok(()) };
    let qdisc = device.qdiscs.get_mut(&of).expect("the qdisc exists");
    if minor == 0 || qdisc.below() != Below::Classes {
        return Ok(()); // the root class of hfsc, or a band
    }
    let parent = match shown.place {
        Some(Place::Class((_, parent))) => Some(parent).filter(|parent| *parent != 0),
        _ => None,
    };
    if let Some(before) = qdisc.class(minor) {
        let same = before.line == *line && before.parent == parent;
        return if same { Ok(()) } else { Err(Error::new("is shown twice").at(name)) };
    }
    let mut above = parent;
    let mut passed = 0;
    while let Some(minor_above) = above {
        passed += 1;
        if minor_above == minor || passed > qdisc.classes.len() + 1 {
            let text = "is below itself: a handle or a parent is wrong";
            return Err(Error::new(text).at(format!("{kind} class {name}")));
        }
        above = qdisc.class(minor_above).and_then(|class| class.parent);
    }
    qdisc.classes.push(Class { minor, parent, line: line.clone() });
    Ok(())
}

fn filter(state: &mut State, shown: &Shown, last: Option<usize>) {
    let named = state.devices.iter().position(|device| device.site.dev == shown.site.dev);
    let index = named.filter(|_| !shown.site.dev.is_empty()).or(last);
    let Some(device) = index.map(|index| &mut state.devices[index]) else { return };
    let first = shown.words.first().map_or("", String::as_str);
    if !matches!(first, "parent" | "protocol" | "ingress" | "egress" | "dev" | "root" | "[") {
        // A line after a filter.
        if let Some(filter) = device.filters.last_mut() {
            filter.words.extend(shown.words.iter().cloned());
        }
        return;
    }
    device.filters.push(Filter { place: shown.place, words: shown.words.clone() });
}
