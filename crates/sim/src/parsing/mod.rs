//! Parsing of scenario files: keys, values and distributions.

pub mod distribution;
pub(crate) mod dscp;
pub mod keys;
pub mod parse;
pub mod tc;
