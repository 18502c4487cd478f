//! Keys of filters that apply one after the other, or together, as keys of one filter.

use super::header::Key;
use crate::params::{ParamRow, Params, Setting, Value};
use crate::sched::filter::{Classes, Filter, Mark, Ports};
use alloc::string::String;
use alloc::vec::Vec;

/// Keys of both lists; None if no packet matches both.
pub(super) fn joined(first: &[Key], second: &[Key]) -> Option<Vec<Key>> {
    let mut all = first.to_vec();
    for (name, value) in second {
        match all.iter_mut().find(|(other, _)| other == name) {
            Some((_, same)) if same == value => {}
            Some((_, other)) => *other = common(name, other, value)?,
            None => all.push((*name, value.clone())),
        }
    }
    Some(all)
}

/// Value of a key whose packets match two different values; None if there are none.
fn common(name: &str, first: &str, second: &str) -> Option<String> {
    fn read<T: Value>(values: [&str; 2]) -> Option<[T; 2]> {
        let [first, second] = values.map(|text| T::read(Setting::Text(text)).ok());
        Some([first?, second?])
    }
    let both = [first, second];
    match name {
        "class" => {
            let [Classes(a, b), Classes(c, d)] = read(both)?;
            (a.max(c) <= b.min(d)).then(|| Classes(a.max(c), b.min(d)).write())
        }
        "source_port" | "destination_port" => {
            let [Ports(a, b), Ports(c, d)] = read(both)?;
            (a.max(c) <= b.min(d)).then(|| Ports(a.max(c), b.min(d)).write())
        }
        "mark" => {
            let [a, b]: [Mark; 2] = read(both)?;
            a.and(b).map(|mark| mark.write())
        }
        _ => None,
    }
}

/// Filter that matches the packets of both; None if there is none. They differ in one range only,
/// and no value is between the two. One DSCP is a range of classes as well.
pub(super) fn union(first: &Filter, second: &Filter) -> Option<Filter> {
    let rows = first.table().into_iter().zip(second.table());
    let different: Vec<_> = rows.filter(|(a, b)| a.value != b.value).collect();
    let name = match different.iter().map(|(a, _)| a.name).collect::<Vec<_>>().as_slice() {
        ["class" | "dscp"] | ["class", "dscp"] => "class",
        ["source_port"] => "source_port",
        ["destination_port"] => "destination_port",
        _ => return None,
    };
    let range = |filter: &Filter| {
        let named = |row: &ParamRow| row.name == name || (name == "class" && row.name == "dscp");
        let mut rows = filter.table().into_iter().filter(named);
        rows.find_map(|row| Ports::read(Setting::Text(&row.value)).ok())
    };
    let (Ports(a, b), Ports(c, d)) = (range(first)?, range(second)?);
    if u32::from(a.max(c)) > u32::from(b.min(d)) + 1 {
        return None;
    }
    let mut both = first.clone();
    if name == "class" {
        both.set("dscp", Setting::Text("auto")).ok()?;
    }
    both.set(name, Setting::Text(&Ports(a.min(c), b.max(d)).write())).ok()?;
    Some(both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn ranges_and_masks_have_common_values() {
        let of = |name: &'static str, first: &str, second: &str| {
            let keys = joined(&[(name, first.to_string())], &[(name, second.to_string())]);
            keys.map(|keys| keys.into_iter().map(|(_, value)| value).collect::<Vec<_>>().join(" "))
        };
        let cases = [
            ("destination_port", "0-1023", "22", Some("22")),
            ("source_port", "10-20", "15-30", Some("15-20")),
            ("source_port", "10-20", "21", None),
            ("class", "40-47", "44-50", Some("44-47")),
            ("mark", "1/0xf", "0x20/0xf0", Some("33/255")),
            ("mark", "1/0xf", "0x21", Some("33")),
            ("mark", "1/0xf", "0x22", None),
            ("protocol", "tcp", "udp", None),
            ("protocol", "tcp", "tcp", Some("tcp")),
        ];
        for (name, first, second, expected) in cases {
            assert_eq!(of(name, first, second).as_deref(), expected, "{name} {first} {second}");
            assert_eq!(of(name, second, first).as_deref(), expected, "{name} {second} {first}");
        }
    }

    #[test]
    fn ranges_next_to_each_other_are_one() {
        let of = |text: &str| Filter::read(Setting::Text(text)).unwrap();
        let both = |a, b| union(&of(a), &of(b)).map(|filter| filter.write());
        let tcp = "1(destination_port=80-85, protocol=tcp)";
        for (second, expected) in [
            ("1(destination_port=86, protocol=tcp)", Some("80-86")),
            ("1(destination_port=70-79, protocol=tcp)", Some("70-85")),
            ("1(destination_port=82-90, protocol=tcp)", Some("80-90")),
            ("1(destination_port=87, protocol=tcp)", None),
            ("1(destination_port=86, protocol=udp)", None),
            ("2(destination_port=86, protocol=tcp)", None),
            ("1(protocol=tcp)", None),
        ] {
            let range = |text: Option<String>| text.map(|t| t.contains(expected.unwrap_or("x")));
            assert_eq!(range(both(tcp, second)), expected.map(|_| true), "{second}");
        }
        assert_eq!(both("1(mark=1)", "1(mark=2)"), None);
        assert_eq!(both("1(dscp=14)", "1(dscp=15)").as_deref(), Some("1(class=14-15)"));
        assert_eq!(both("1(class=12-13)", "1(dscp=14)").as_deref(), Some("1(class=12-14)"));
    }
}
