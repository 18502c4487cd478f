//! A discipline with children and filters as commands of tc: a qdisc, classes, the qdiscs below
//! them, and filters.

use super::branch::shapes::BURST;
use super::convert::{Exported, export};
use super::header::matches;
use super::kinds::fifo::{DRR_CLASS, lost_shared_limit};
use super::kinds::gred;
use super::kinds::qfq::QFQ_CLASS;
use super::kinds::shaper::{HFSC, HFSC_CLASS, HTB, HTB_CLASS};
use super::table::{Arg, Line, Params as Rows};
use crate::error::{Error, Result};
use crate::params::{ParamRow, Setting, Value};
use crate::registry;
use crate::sched::child::{Child, child_of};
use crate::sched::filter::Filter;
use crate::sched::hfsc::ServiceCurve;
use crate::units::{Bytes, Rate};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Command of tc, without the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeCommand {
    /// Object: `qdisc`, `class` or `filter`.
    pub object: &'static str,
    /// Action: `replace`, or `change` of what the commands before it have made.
    pub verb: &'static str,
    /// Words after the device.
    pub words: String,
}

/// Commands for a discipline and all that is below it.
#[derive(Clone, Debug)]
pub struct ExportedTree {
    /// The qdisc itself.
    pub line: Line,
    /// Commands after the one of the qdisc itself.
    pub below: Vec<TreeCommand>,
    /// Features that Linux does not have, one sentence each.
    pub lost: Vec<String>,
}

/// State of an export.
struct Exporter {
    /// Handle of the next qdisc.
    next: u16,
    below: Vec<TreeCommand>,
    lost: Vec<String>,
}

/// Classes of a qdisc: minor numbers of those with a queue, in the order of `children`, and the
/// class numbers of filters.
struct Places {
    leaves: Vec<u16>,
    /// Minor number of class 0 of filters.
    first: u64,
}

/// Translates a discipline with all its parameters to commands; `handle` is the major number of
/// its qdisc, `rate` the rate of the link, if known.
///
/// # Errors
/// An unknown discipline, or one that has no counterpart in Linux.
pub fn export_tree(
    name: &str,
    rows: &[ParamRow],
    rate: Option<Rate>,
    handle: u16,
) -> Result<ExportedTree> {
    let next = handle.saturating_add(1).max(0x10);
    let mut exporter = Exporter { next, below: Vec::new(), lost: Vec::new() };
    let line = exporter.discipline(name, rows, rate, handle)?;
    let Exporter { below, lost, .. } = exporter;
    Ok(ExportedTree { line, below, lost })
}

impl Exporter {
    fn lose(&mut self, lost: Vec<String>) {
        for text in lost {
            if !self.lost.contains(&text) {
                self.lost.push(text);
            }
        }
    }

    fn command(&mut self, object: &'static str, words: String) {
        self.below.push(TreeCommand { object, verb: "replace", words });
    }

    /// Line of a discipline; the commands below it are added.
    fn discipline(
        &mut self,
        name: &str,
        rows: &[ParamRow],
        rate: Option<Rate>,
        handle: u16,
    ) -> Result<Line> {
        let params = Rows { rows, rate };
        let name = registry::find(name)?.name;
        let children: Vec<Child> = list(&params, "children")?;
        let filters: Vec<Filter> = list(&params, "filters")?;
        let (line, places) = match name {
            "htb" => self.htb(&params, handle)?,
            "hfsc" => self.hfsc(&params, handle)?,
            _ => {
                let Exported { line, mut lost } = export(name, rows, rate)?;
                let places = match name {
                    "drr" | "qfq" => self.shares(name, &params, handle, &mut lost),
                    "tbf" => {
                        (!children.is_empty()).then(|| Places { leaves: [1].into(), first: 1 })
                    }
                    "gred" => {
                        self.virtual_queues(&line, handle);
                        None
                    }
                    _ if children.is_empty() && filters.is_empty() => None,
                    _ => Some(bands(&params)),
                };
                let of_tree = |text: &String| {
                    // tbf has a limit of the FIFO queue that the child replaces.
                    let queue = name == "tbf" && text.starts_with("limit = ");
                    let own = lost_shared_limit(text) || text.starts_with("drop = ") || queue;
                    (own && !children.is_empty())
                        || text.starts_with("children = ")
                        || (text.starts_with("filters = ") && name != "gred")
                };
                lost.retain(|text| !of_tree(text));
                self.lose(lost);
                (line, places)
            }
        };
        let Some(places) = places else { return Ok(line) };
        for (i, minor) in places.leaves.iter().enumerate() {
            if let Some(child) = child_of(&children, i) {
                self.child(child, rate, handle, *minor)?;
            } else if matches!(name, "htb" | "hfsc") {
                let limits: Vec<crate::units::Size> = list(&params, "limits")?;
                let limit = limits.get(usize::from(*minor) - 1).or(limits.last());
                if let Some(limit) = limit.filter(|limit| limit.to_string() != "1000p") {
                    let child = format!("droptail(limit={limit})");
                    let child = Child::read(Setting::Text(&child))?;
                    self.child(&child, rate, handle, *minor)?;
                }
            }
        }
        for (i, filter) in filters.iter().enumerate() {
            self.filter(filter, i, handle, &places, name);
        }
        Ok(line)
    }

    fn child(&mut self, child: &Child, rate: Option<Rate>, above: u16, minor: u16) -> Result<()> {
        let handle = self.next;
        self.next = self.next.saturating_add(1);
        let at = self.below.len();
        let line = self.discipline(child.name(), &child.rows()?, rate, handle)?;
        let words = format!("parent {above:x}:{minor:x} handle {handle:x}: {}", line.write());
        // Before the commands below it.
        self.below.insert(at, TreeCommand { object: "qdisc", verb: "replace", words });
        Ok(())
    }

    fn class(&mut self, line: &Line, handle: u16, parent: u64, minor: usize) {
        let parent = if parent == 0 { String::new() } else { format!("{parent:x}") };
        let place = format!("parent {handle:x}:{parent} classid {handle:x}:{minor:x}");
        self.command("class", format!("{place} {}", line.write()));
    }

    fn filter(&mut self, filter: &Filter, i: usize, handle: u16, places: &Places, name: &str) {
        let to = filter.to;
        let choice = match name {
            "mq" => Err("mq of Linux has no filters; multiq has".to_string()),
            "multiq" => Ok(format!("action skbedit queue_mapping {to}")),
            _ => Ok(format!("flowid {handle:x}:{:x}", to + places.first)),
        };
        match choice.and_then(|choice| Ok((matches(filter)?, choice))) {
            Ok((all, choice)) => {
                let place = format!("parent {handle:x}: protocol ip pref {}", i + 1);
                for words in all {
                    self.command("filter", format!("{place} {words} {choice}"));
                }
            }
            Err(why) => {
                let text = format!("filters[{i}] = {}: {why}", filter.write());
                self.lose([text].into());
            }
        }
    }

    /// Adds the commands for the virtual queues of `gred`.
    fn virtual_queues(&mut self, line: &Line, handle: u16) {
        let grio = line.says("grio", "grio");
        for queue in gred::queues(line) {
            let words = format!("handle {handle:x}: {}", queue.command(grio).write_given());
            self.below.push(TreeCommand { object: "qdisc", verb: "change", words });
        }
    }

    fn htb(&mut self, params: &Rows<'_>, handle: u16) -> Result<(Line, Option<Places>)> {
        let mut rates: Vec<Rate> = list(params, "rates")?;
        if rates.is_empty() {
            rates = default_rates(params, "rates")?;
        }
        let n = rates.len();
        let parents = parents(params, n)?;
        let ceils: Vec<Rate> = list(params, "ceils")?;
        let prios: Vec<u64> = list(params, "prios")?;
        let bursts: Vec<Bytes> = list(params, "bursts")?;
        let quanta: Vec<Bytes> = list(params, "quanta")?;
        let mut line = Line::new(&HTB);
        let leaves = leaves(&parents);
        let default = default(params, &leaves);
        line.set("default", Arg::Text(format!("{default:#x}")));
        if params.text("limit") != "auto" {
            let text =
                format!("limit = {}: the classes of Linux share no buffer", params.text("limit"));
            self.lose([text].into());
        }
        for i in 0..n {
            let mut class = Line::new(&HTB_CLASS);
            let rate = rates[i];
            let ceil = nth(&ceils, i).or(params.rate).unwrap_or(rate).max(Rate(8));
            class.set("rate", Arg::Whole(rate.0 / 8 * 8));
            class.set("ceil", Arg::Whole(ceil.0 / 8 * 8));
            let burst = nth(&bursts, i).map_or(BURST, |burst| burst.0);
            if burst != BURST {
                class.set("burst", Arg::Whole(burst));
                class.set("cburst", Arg::Whole(burst));
            }
            if let Some(prio) = nth(&prios, i).filter(|prio| *prio > 0) {
                class.set("prio", Arg::Whole(prio));
            }
            if let Some(quantum) = nth(&quanta, i).filter(|_| leaves.contains(&minor(i))) {
                class.set("quantum", Arg::Whole(quantum.0));
            }
            self.class(&class, handle, parents[i], i + 1);
        }
        Ok((line, Some(Places { leaves, first: 0 })))
    }

    fn hfsc(&mut self, params: &Rows<'_>, handle: u16) -> Result<(Line, Option<Places>)> {
        let mut curves: Vec<Vec<ServiceCurve>> = Vec::new();
        for name in ["ls", "rt", "ul"] {
            curves.push(list(params, name)?);
        }
        if curves[0].is_empty() && curves[1].is_empty() {
            curves[0] =
                default_rates(params, "ls")?.into_iter().map(ServiceCurve::linear).collect();
        }
        let n = curves[0].len().max(curves[1].len());
        let parents = parents(params, n)?;
        let leaves = leaves(&parents);
        let mut line = Line::new(&HFSC);
        line.set("default", Arg::Text(format!("{:#x}", default(params, &leaves))));
        if params.text("limit") != "auto" {
            let text =
                format!("limit = {}: the classes of Linux share no buffer", params.text("limit"));
            self.lose([text].into());
        }
        for (i, parent) in parents.iter().enumerate() {
            let mut class = Line::new(&HFSC_CLASS);
            let curve = |list: &Vec<ServiceCurve>| {
                let curve = list.get(i).copied().filter(ServiceCurve::is_some)?;
                Some(Arg::List([curve.m1.0 / 8 * 8, curve.d.0, curve.m2.0 / 8 * 8].into()))
            };
            let [ls, rt, ul] = [curve(&curves[0]), curve(&curves[1]), curve(&curves[2])];
            for (word, curve) in [("rt", rt), ("ls", ls), ("ul", ul)] {
                if let Some(curve) = curve {
                    class.set(word, curve);
                }
            }
            self.class(&class, handle, *parent, i + 1);
        }
        Ok((line, Some(Places { leaves, first: 0 })))
    }

    /// Classes of drr or qfq.
    fn shares(
        &mut self,
        name: &str,
        params: &Rows<'_>,
        handle: u16,
        lost: &mut Vec<String>,
    ) -> Option<Places> {
        let flows: u64 = params.text("flows").parse().unwrap_or(1);
        if flows > MOST_CLASSES || params.text("by") != "class" {
            return None;
        }
        let own = ["flows = ", "quantum = ", "weights = ", "maxpkt = "];
        lost.retain(|text| !own.iter().any(|start| text.starts_with(start)));
        let quantum = params.text("quantum").parse::<Bytes>().map_or(1500, |bytes| bytes.0);
        let maxpkt: Vec<Bytes> = list(params, "maxpkt").unwrap_or_default();
        let weights: Vec<f64> = list(params, "weights").unwrap_or_default();
        let leaves: Vec<u16> = (0..crate::cast::index(flows)).map(minor).collect();
        for i in 0..leaves.len() {
            let weight = nth(&weights, i).unwrap_or(1.0);
            let mut class = Line::new(if name == "qfq" { &QFQ_CLASS } else { &DRR_CLASS });
            if name == "qfq" {
                class.set("weight", Arg::Whole(crate::cast::trunc(weight)));
                class.set("maxpkt", Arg::Whole(nth(&maxpkt, i).map_or(1514, |bytes| bytes.0)));
            } else {
                let bytes = crate::cast::trunc(quantum as f64 * weight).max(1);
                class.set("quantum", Arg::Whole(bytes));
            }
            let place = format!("parent {handle:x}: classid {handle:x}:{:x}", i + 1);
            self.command("class", format!("{place} {}", class.write_given()));
        }
        Some(Places { leaves, first: 1 })
    }
}

/// Most classes of a qdisc that are written.
const MOST_CLASSES: u64 = 65_534;

fn minor(i: usize) -> u16 {
    u16::try_from(i + 1).unwrap_or(u16::MAX)
}

fn bands(params: &Rows<'_>) -> Places {
    let bands: u16 = params.text("flows").parse().unwrap_or(3);
    Places { leaves: (1..=bands).collect(), first: 1 }
}

fn leaves(parents: &[u64]) -> Vec<u16> {
    let is_parent = |i: usize| parents.contains(&(i as u64 + 1));
    (0..parents.len()).filter(|i| !is_parent(*i)).map(minor).collect()
}

fn default(params: &Rows<'_>, leaves: &[u16]) -> u64 {
    let number: u64 = params.text("default").parse().unwrap_or(0);
    if number > 0 { number } else { leaves.first().copied().unwrap_or(1).into() }
}

/// Parents of `n` classes.
fn parents(params: &Rows<'_>, n: usize) -> Result<Vec<u64>> {
    let parents: Vec<u64> = list(params, "parents")?;
    let of = |i: usize| match nth(&parents, i) {
        Some(parent) => parent,
        None => u64::from(i > 0),
    };
    if n as u64 > MOST_CLASSES {
        return Err(Error::new(format!("{n} classes, tc has up to {MOST_CLASSES}")));
    }
    Ok((0..n).map(of).collect())
}

/// Rates of the three classes that a shaper has without a list.
fn default_rates(params: &Rows<'_>, name: &str) -> Result<Vec<Rate>> {
    let text = "is empty, so the classes have the rate of the link, which is unknown";
    let rate = params.rate.ok_or_else(|| Error::new(text).at(name))?;
    Ok(Vec::from([rate, Rate(rate.0 / 2), Rate(rate.0 / 2)]))
}

/// List of a parameter; empty if there is no such parameter.
fn list<T: Value>(params: &Rows<'_>, name: &str) -> Result<Vec<T>> {
    Vec::<T>::read(Setting::Text(params.text(name))).map_err(|e| e.at(name))
}

/// Entry `i`, the last one applying to all further ones.
fn nth<T: Copy>(list: &[T], i: usize) -> Option<T> {
    list.get(i).or(list.last()).copied()
}
