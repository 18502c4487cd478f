//! Keys of filters that apply one after the other, or together, as keys of one filter.

use super::header::Key;
use crate::params::{Setting, Value};
use crate::sched::filter::{Classes, Mark, Ports};
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
}
