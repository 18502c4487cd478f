//! The language of tc: whole lines, round trips, wrong lines.

mod corpus;
mod import;
mod nearest;
mod round_trip;
mod wrong;
