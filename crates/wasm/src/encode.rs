//! Bytes of a result.

use serde_json::{Value as Json, json};
use sojourn_aqm::cast;
use sojourn_sim::{Column, Outcome};

/// Bytes of a result: the length of a header (32 bits), the header, the summary, and the columns.
/// The header is a JSON object: `summary`, the number of bytes of the summary; `columns`, a list of
/// `[NAME, TYPE, BYTES]`, in which TYPE is the NumPy name of the type.
pub fn outcome(outcome: &Outcome) -> Vec<u8> {
    let summary = outcome.summary.to_string();
    let mut values = Vec::new();
    let columns: Json = outcome
        .columns
        .iter()
        .map(|(name, column)| {
            let before = values.len();
            let kind = append(column, &mut values);
            json!([name, kind, values.len() - before])
        })
        .collect();
    let header = json!({ "summary": summary.len(), "columns": columns }).to_string();
    let mut bytes = cast::number(header.len()).to_le_bytes().to_vec();
    bytes.extend(header.into_bytes());
    bytes.extend(summary.into_bytes());
    bytes.extend(values);
    bytes
}

/// Appends the values of a column and returns the NumPy name of their type.
fn append(column: &Column, to: &mut Vec<u8>) -> &'static str {
    match column {
        Column::F64(v) => {
            to.extend(v.iter().flat_map(|x| x.to_le_bytes()));
            "float64"
        }
        Column::U64(v) => {
            to.extend(v.iter().flat_map(|x| x.to_le_bytes()));
            "uint64"
        }
        Column::U32(v) => {
            to.extend(v.iter().flat_map(|x| x.to_le_bytes()));
            "uint32"
        }
        Column::U8(v) => {
            to.extend(v);
            "uint8"
        }
        Column::Bool(v) => {
            to.extend(v.iter().map(|x| u8::from(*x)));
            "bool"
        }
        other => unreachable!("{other:?} has no NumPy type"),
    }
}
