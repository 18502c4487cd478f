//! Random streams of the components of a simulation.

use sojourn_aqm::Pcg;

/// Random stream of the component `name` under `seed`.
pub fn random_stream(seed: u64, name: &str) -> Pcg {
    Pcg::stream(seed, name)
}
