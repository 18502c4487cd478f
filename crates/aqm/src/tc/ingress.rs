//! Policers of a device as links: at the ingress, or at the egress of a device without a queue.

use super::choice::{filter, rules, text};
use super::convert::Discipline;
use super::device::{Device, Filter as Line};
use super::imported_link::ImportedLink;
use super::place::Place;
use super::police::Police;
use super::rule::Rule;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

/// Most policers of a device, each of which is a band of prio.
const MOST: usize = 15;

/// Minor numbers of the ingress and of the egress of clsact.
const HOOKS: [u16; 2] = [0xfff2, 0xfff3];

/// Links of the policers of a device, and the filters that they represent by their place in it.
pub(super) fn links(device: &Device) -> (Vec<ImportedLink>, Vec<usize>) {
    let name = device.site.name();
    let (mut links, mut used) = (Vec::new(), Vec::new());
    let ingress = |filter: &Line| match filter.place {
        Some(Place::Ingress) => filter.words.first().is_none_or(|word| word != "egress"),
        Some(Place::Class((major, minor))) => major == 0xffff && minor != HOOKS[1],
        _ => false,
    };
    let egress = |filter: &Line| match filter.place {
        Some(Place::Ingress) => filter.words.first().is_some_and(|word| word == "egress"),
        Some(Place::Class(place)) => place == (0xffff, HOOKS[1]),
        _ => false,
    };
    let at_ingress = rules(device, ingress);
    links.extend(link(format!("{name} ingress"), &at_ingress, &mut used));
    if device.root.is_none() {
        let at_egress = rules(device, egress);
        links.extend(link(name, &at_egress, &mut used));
    }
    (links, used)
}

/// Link with the policers of `rules`; none if there is no policer.
fn link(
    dev: alloc::string::String,
    rules: &[(usize, &Line, Rule)],
    used: &mut Vec<usize>,
) -> Option<ImportedLink> {
    let mut link = ImportedLink { dev, ..ImportedLink::default() };
    let mut policers: Vec<(&Rule, &Police)> = Vec::new();
    let mut filters = Vec::new();
    for (i, line, rule) in rules {
        let Some(police) = &rule.police else { continue };
        used.push(*i);
        let number = policers.len() as u64;
        let result = match &rule.keys {
            _ if policers.len() == MOST => Err(format!("there are more than {MOST} policers")),
            _ if !rule.action.is_empty() => Err(format!("{}: sojourn has no actions", rule.action)),
            Ok(keys) => filter(keys, number),
            Err(why) => Err(why.clone()),
        };
        match result {
            Ok(filter) => {
                filters.push(filter);
                policers.push((rule, police));
                link.lost.extend(police.lost.iter().cloned());
            }
            Err(why) => link.lost.push(format!("filter {}: {why}", line.words.join(" "))),
        }
    }
    let everything = |rule: &Rule| rule.keys.as_ref().is_ok_and(Vec::is_empty);
    link.qdisc = Some(match policers.as_slice() {
        [] if link.lost.is_empty() => return None,
        [] => super::parse("pfifo limit 1000").ok()?,
        [(rule, police)] if everything(rule) => {
            Discipline { name: "police", settings: police.settings(), lost: Vec::new() }
        }
        _ => {
            // Packets that no filter matches are in the last band.
            let bands = policers.len() + 1;
            let map = [policers.len().to_string().as_str(); 16].join(" ");
            let mut prio = super::parse(&format!("prio bands {bands} priomap {map}")).ok()?;
            let texts = policers.iter().map(|(_, police)| police.discipline());
            let texts = texts.chain(["droptail(limit=1000p)".to_string()]);
            let texts: Vec<_> = texts.collect();
            prio.settings.retain(|(name, _)| !matches!(name.as_str(), "limits" | "drop"));
            prio.set("children", texts.join(" "));
            prio.set("filters", text(&filters));
            prio
        }
    });
    Some(link)
}
