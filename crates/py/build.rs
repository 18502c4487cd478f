//! Set the engine version at build time: the package version and a hash of all sources of the
//! library and the simulator, that is, of everything that can change a result. It is part of the
//! cache key of stored results.
use std::path::{Path, PathBuf};

fn main() {
    let mut files = Vec::new();
    for part in ["../aqm/src", "../sim/src"] {
        println!("cargo::rerun-if-changed={part}");
        list(Path::new(part), &mut files);
    }
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64; // FNV-1a: std guarantees no stable hash
    for file in &files {
        let text = std::fs::read(file).expect("a source that was listed can be read");
        for byte in text.iter().filter(|&&byte| byte != b'\r') {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=SOJOURN_ENGINE={}+{hash:016x}", env!("CARGO_PKG_VERSION"));
}

/// Adds the Rust files under `folder` to `files`.
fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the sources of the workspace are there");
    for path in entries.map(|entry| entry.expect("an entry can be read").path()) {
        if path.is_dir() {
            list(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
}
