//! The language of tc: whole lines, round trips, wrong lines.

mod corpus;
mod filters;
mod gred;
mod import;
mod lost;
mod nearest;
mod round_trip;
mod scripts;
mod trees;
mod wire;
mod wrong;
