//! JSON objects.

use serde_json::{Map, Value as Json};

/// Collects an object. `collect` would compile a sort for each type of iterator.
pub(crate) fn object(rows: impl IntoIterator<Item = (String, Json)>) -> Json {
    let mut map = Map::new();
    map.extend(rows);
    Json::Object(map)
}

/// Adds a member. Not inlined: results and the canonical form have hundreds.
#[inline(never)]
pub(crate) fn insert(into: &mut Map<String, Json>, name: &str, value: Json) {
    into.insert(name.into(), value);
}

/// Adds `members`, whose values are taken.
pub(crate) fn insert_all(into: &mut Map<String, Json>, members: &mut [(&str, Json)]) {
    for (name, value) in members {
        insert(into, name, value.take());
    }
}
