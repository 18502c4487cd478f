//! Random streams of the components of a simulation.

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::random;

/// Random stream of the component `name` under `seed`.
pub fn random_stream(seed: u64, name: &str) -> Pcg64Mcg {
    let key = random::stream_key(seed, name);
    Pcg64Mcg::from_seed(key[..16].try_into().expect("half of 32 bytes"))
}
