//! Dependencies and safety of the library: two dependencies and its own derive macro, no std, no
//! unsafe code.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::process::Command;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn the_library_depends_only_on_libm_and_rand_core() {
    let derive = "sojourn-derive";
    assert_eq!(tree("sojourn-aqm"), ["libm", "rand_core", "sojourn-aqm", derive]);
    assert_eq!(tree(derive), [derive], "the macro has no dependencies");
}

/// Names of a crate and of all its dependencies.
fn tree(name: &str) -> Vec<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "-p", name, "-e", "normal", "--prefix", "none", "--offline"])
        .args(["--target", "all", "--format", "{p}"])
        .current_dir(HERE)
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    let mut names: Vec<String> = names.map(str::to_string).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn the_library_is_no_std_and_forbids_unsafe_code() {
    let lib = read_to_string(Path::new(HERE).join("src/lib.rs")).unwrap();
    for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
        assert!(lib.lines().any(|line| line == attribute), "src/lib.rs lacks {attribute}");
    }
    const STD: &str = "#[cfg(any(test, feature = \"std\"))]";
    let std = lib.lines().position(|line| line == "extern crate std;").expect("std for the tests");
    assert_eq!(lib.lines().nth(std - 2), Some(STD), "std is used in tests, and by a feature");
}

#[test]
fn every_crate_inherits_the_workspace_lints() {
    let root = Path::new(HERE).join("../..");
    let workspace = read_to_string(root.join("Cargo.toml")).unwrap();
    assert!(workspace.contains("unsafe_code = \"deny\"\n"));
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        let text = read_to_string(&manifest).unwrap();
        let lints = text.contains("[lints]\nworkspace = true\n");
        assert!(lints, "{} does not inherit the workspace lints", manifest.display());
    }
}

#[test]
fn unsafe_code_is_in_two_files_and_the_border_to_c() {
    let crates = Path::new(HERE).join("..");
    let mut allowed = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let source = entry.unwrap().path().join("src");
        let lib = read_to_string(source.join("lib.rs")).unwrap();
        // The module for browsers needs it for the names of its exports, on that target only.
        let forbids = lib.contains("#![forbid(unsafe_code)]\n")
            || lib.contains("#![cfg_attr(not(target_family = \"wasm\"), forbid(unsafe_code))]\n");
        let may = ["sim/src", "py/src", "capi/src"].iter().any(|end| source.ends_with(end));
        assert!(forbids || may, "{} permits it", source.display());
        for file in rust_files(&source) {
            let text = read_to_string(&file).unwrap();
            let times = text.matches("allow(unsafe_code)").count();
            allowed.extend(vec![file.file_name().unwrap().to_owned(); times]);
        }
    }
    allowed.sort();
    assert_eq!(allowed, ["borrowed.rs", "lib.rs", "prefetch.rs"]);
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let deeper = folders.iter().flat_map(|folder| rust_files(folder));
    files.into_iter().filter(|f| f.extension().is_some_and(|e| e == "rs")).chain(deeper).collect()
}
