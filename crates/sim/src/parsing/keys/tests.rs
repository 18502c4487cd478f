//! Tests of the keys of a scenario.

use super::*;
use crate::config::TABLES;
use crate::config::changes::LINK_CHANGE;
use crate::config::link_trace::{DELAY_MAX, RATE_MAX};
use crate::config::links::LINK;
use crate::parsing::distribution::Distribution;
use sojourn_aqm::Size;
use sojourn_aqm::params::Setting;

/// Parses the value `toml` as the given kind and formats it again.
fn read(kind: &str, toml: &str) -> Option<String> {
    fn as_a<T: Value>(toml: &str) -> Option<String> {
        let quoted = toml.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
        let setting = match (quoted, toml.parse()) {
            (Some(text), _) => Setting::Text(text),
            (None, Ok(number)) => Setting::Number(number),
            _ => Setting::Flag(toml == "true"),
        };
        T::read(setting).ok().map(|value| value.write())
    }
    match kind {
        "duration" => as_a::<Span>(toml),
        "rate" => as_a::<Rate>(toml),
        "bytes" => as_a::<Bytes>(toml),
        "size" => as_a::<Size>(toml),
        "number" => as_a::<f64>(toml),
        "integer" => as_a::<u64>(toml),
        "flag" => as_a::<bool>(toml),
        "overhead" => as_a::<sojourn_aqm::Overhead>(toml),
        "auto" => as_a::<Option<Span>>(toml),
        "distribution" => {
            as_a::<Distribution<Span>>(toml).or_else(|| as_a::<Distribution<Bytes>>(toml))
        }
        _ => None,
    }
}

#[test]
fn the_examples_of_each_kind_are_read_as_that_kind() {
    for kind in &KINDS {
        for example in kind.examples {
            assert!(read(kind.name, example).is_some(), "{}: {example}", kind.name);
        }
    }
    assert!(read("rate", "\"10mbps\"").is_none());
}

#[test]
fn ranges_of_keys_and_columns_agree() {
    let largest = |table: &Table, key: &str| table.key(key).range.expect("a range").1;
    for table in [&LINK, &LINK_CHANGE] {
        assert_eq!(largest(table, "rate").parse::<Rate>().unwrap(), RATE_MAX);
        assert_eq!(largest(table, "delay").parse::<Span>().unwrap(), DELAY_MAX);
    }
}

#[test]
fn every_key_is_described_and_unique() {
    for table in TABLES {
        for (i, key) in table.keys.iter().enumerate() {
            assert!(key.description.ends_with('.') && !key.example.is_empty(), "{}", key.name);
            assert!(!table.keys[..i].iter().any(|other| other.name == key.name));
        }
    }
}

#[test]
fn types_of_keys_have_the_kind_of_their_values() {
    for (here, there) in kinds() {
        assert_eq!(here, there);
    }
}
