//! JSON objects.

use serde_json::{Map, Value as Json};

/// Collects an object. `collect` would compile a sort for each type of iterator.
pub(crate) fn object(rows: impl IntoIterator<Item = (String, Json)>) -> Json {
    let mut map = Map::new();
    map.extend(rows);
    Json::Object(map)
}
