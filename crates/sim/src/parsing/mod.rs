//! Parsing of scenario files: keys, values and distributions.

pub(crate) mod distribution;
pub(crate) mod keys;
pub(crate) mod object;
pub(crate) mod parse;
pub mod tc;
pub(crate) mod tc_json;
pub(crate) mod tc_state;
